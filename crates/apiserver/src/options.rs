//! The options of requests, from query strings and the bodies of deletions: reading and checking them.
//!
//! Those of lists and watches are in [`crate::registry::ListQuery`].

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::go_json::type_of;
use gardener_apimachinery::type_meta::unreadable;
use http::Method;
use http::header::USER_AGENT;
use serde_json::{Value, json};

use crate::handle::Call;
use crate::registry::{
    AskedOptions, DeleteOptions, FieldValidation, PatchKind, Preconditions, UNVERSIONED, WriteOptions, core_named,
};

/// Longest name of a field manager, in bytes.
const MANAGER_MAX: usize = 128;

/// The fields of DeleteOptions and their types as Go names them.
const DELETE_FIELDS: [(&str, &str, &str); 8] = [
    ("gracePeriodSeconds", "number", "int64"),
    ("preconditions", "object", "v1.Preconditions"),
    ("preconditions.uid", "string", "types.UID"),
    ("preconditions.resourceVersion", "string", "string"),
    ("orphanDependents", "bool", "bool"),
    ("propagationPolicy", "string", "v1.DeletionPropagation"),
    ("dryRun", "array", "[]string"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "bool", "bool"),
];

/// Whether Go prints a character as it is.
fn is_printable(character: char) -> bool {
    character == ' ' || !character.is_control() && !character.is_whitespace()
}

impl Call {
    /// The options of a create, update or patch.
    ///
    /// # Errors
    /// 422 that names all options that are wrong.
    pub(crate) fn write_options(&self) -> Result<WriteOptions, ApiError> {
        let is_patch = self.method == Method::PATCH;
        let is_apply = is_patch && self.patch_kind().is_ok_and(|kind| kind == PatchKind::Apply);
        let manager = self.query.get("fieldManager").unwrap_or_default();
        let mut errors = ErrorList::new();
        let force = self.query.optional_flag("force");
        if is_apply && manager.is_empty() {
            let why = "is required for apply patch";
            errors.push(Error::required(&Path::new("fieldManager"), why));
        }
        if is_patch && !is_apply && force.is_some() {
            let why = "may not be specified for non-apply patch";
            errors.push(Error::forbidden(&Path::new("force"), why));
        }
        errors.extend(wrong_manager(manager, || Path::new("fieldManager")));
        let dry_run: Vec<&str> = self.query.all("dryRun").collect();
        errors.extend(wrong_dry_run(&dry_run));
        let field_validation = match self.query.get("fieldValidation").unwrap_or("Warn") {
            "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let known = ["", "Ignore", "Strict", "Warn"];
                errors.push(Error::not_supported(&Path::new("fieldValidation"), other, &known));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            let kind = match self.method {
                Method::PATCH => "PatchOptions",
                Method::PUT => "UpdateOptions",
                _ => "CreateOptions",
            };
            return Err(ApiError::invalid("meta.k8s.io", kind, "", &errors));
        }
        Ok(WriteOptions {
            dry_run: !dry_run.is_empty(),
            field_manager: match manager {
                "" if !is_apply => self.manager_of_agent(),
                manager => manager.to_owned(),
            },
            asked: AskedOptions {
                field_manager: manager.to_owned(),
                field_validation: self.query.get("fieldValidation").unwrap_or_default().to_owned(),
            },
            field_validation,
            force: force.unwrap_or_default(),
            owned: false,
        })
    }

    /// The field manager of a client that names none: its program.
    fn manager_of_agent(&self) -> String {
        let agent = self.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let mut name = String::new();
        let program = agent.unwrap_or_default().split('/').next().unwrap_or_default();
        for character in program.chars().filter(|character| is_printable(*character)) {
            if name.len() + character.len_utf8() > MANAGER_MAX {
                break;
            }
            name.push(character);
        }
        if name.is_empty() { "unknown".to_owned() } else { name }
    }

    /// The options of a deletion: those of the body or, without one, those of the query.
    ///
    /// # Errors
    /// 400 for options that cannot be read, 415 for a body of another content type, 422 for options that contradict each other.
    pub(crate) fn delete_options(&self) -> Result<DeleteOptions, ApiError> {
        let options = if self.body.is_empty() {
            self.delete_options_of_query()?
        } else {
            let decoded = self.decoded_or(("v1", "DeleteOptions"), |why| ApiError::bad_request(why))?;
            delete_options_of(decoded.value)?
        };
        options.validate()?;
        Ok(options)
    }

    fn delete_options_of_query(&self) -> Result<DeleteOptions, ApiError> {
        let dry_run: Vec<String> = self.query.all("dryRun").map(str::to_owned).collect();
        let text = |name: &str| self.query.get(name).map(str::to_owned);
        // upstream reads the members of preconditions as parameters of their own
        let preconditions = Preconditions {
            uid: text("uid"),
            resource_version: text("resourceVersion"),
        };
        Ok(DeleteOptions {
            grace_period_seconds: self.query.number("gracePeriodSeconds")?,
            propagation_policy: self
                .query
                .has("propagationPolicy")
                .then(|| text("propagationPolicy").unwrap_or_default()),
            orphan_dependents: self.query.optional_flag("orphanDependents"),
            dry_run: (!dry_run.is_empty()).then_some(dry_run),
            preconditions: (preconditions.uid.is_some() || preconditions.resource_version.is_some())
                .then_some(preconditions),
        })
    }
}

fn delete_options_of(mut body: Value) -> Result<DeleteOptions, ApiError> {
    if body.is_null() {
        return Ok(DeleteOptions::default());
    }
    if let Some(why) = unreadable(&body) {
        return Err(ApiError::bad_request(why));
    }
    let text = |key: &str| body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let kind = text("kind").unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" {
        let version = core_named(text("apiVersion").unwrap_or("meta.k8s.io/v1"));
        if version == "v1" && UNVERSIONED.contains(&kind) {
            return Err(ApiError::bad_request(format!(
                "converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion"
            )));
        }
        return Err(ApiError::bad_request(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    let cannot = |found: &str, field: &str, go: &str| {
        let why = format!("json: cannot unmarshal {found} into Go struct field {field} of type {go}");
        Err(ApiError::bad_request(why))
    };
    for (field, json, go) in DELETE_FIELDS {
        let (found, place) = match field.split_once('.') {
            Some((parent, member)) => (
                body.get(parent).and_then(|parent| parent.get(member)),
                format!("Preconditions.{field}"),
            ),
            None => (body.get(field), format!("DeleteOptions.{field}")),
        };
        let Some(found) = found.filter(|value| !value.is_null()) else {
            continue;
        };
        match found {
            found if type_of(found) != json => return cannot(type_of(found), &place, go),
            Value::Number(number) if !number.is_i64() => return cannot(&format!("number {number}"), &place, go),
            Value::Array(elements) => {
                let mut elements = elements.iter().filter(|own| !own.is_null());
                if let Some(other) = elements.find(|own| !own.is_string()) {
                    return cannot(type_of(other), &place, "string");
                }
            }
            _ => {}
        }
    }
    // an element that is null is Go's zero value
    let dry_run = body.get_mut("dryRun").and_then(Value::as_array_mut);
    for element in dry_run.into_iter().flatten().filter(|element| element.is_null()) {
        *element = json!("");
    }
    serde_json::from_value(body).map_err(|error| ApiError::bad_request(error.to_string()))
}

/// What is wrong with the name of a field manager.
pub(crate) fn wrong_manager(manager: &str, path: impl Fn() -> Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > MANAGER_MAX {
        errors.push(Error::too_long(&path(), MANAGER_MAX));
    }
    for (at, character) in manager
        .char_indices()
        .filter(|(_, character)| !is_printable(*character))
    {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(character));
        errors.push(Error::invalid(&path(), manager, why));
    }
    errors
}

/// What is wrong with the values of `dryRun`, if anything.
pub(crate) fn wrong_dry_run<S: AsRef<str> + serde::Serialize>(dry_run: &[S]) -> Option<Error> {
    let is_wrong = dry_run.iter().any(|value| value.as_ref() != "All");
    is_wrong.then(|| Error::not_supported(&Path::new("dryRun"), json!(dry_run), &["All"]))
}
