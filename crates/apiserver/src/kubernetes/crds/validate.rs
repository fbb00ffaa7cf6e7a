//! What is wrong with a CustomResourceDefinition besides the inside of its schemas, which [`gardener_schema::crd`] judges.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use gardener_apimachinery::pointer::Pointed;
use gardener_schema::crd::at_path;
use regex::Regex;
use serde_json::{Value, json};

use super::subschemas;
use crate::crd::approval::{self, Approval};
use crate::kubernetes::{internal, webhooks};
use crate::meta;
use crate::trust::Authorities;

/// How many fields of a version may be selected by.
const SELECTABLE_FIELDS: usize = 8;

/// Finds what is wrong with a definition, or with its change. What was there before and is refused today may stay.
pub(super) fn definition(crd: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = crd.get("spec").unwrap_or(&Value::Null);
    let path = Path::new("spec");
    let group = meta::text(spec, "/group");
    if group.is_empty() {
        errors.push(Error::required(&path.child("group"), ""));
    } else {
        let wrong = names::dns_subdomain(group);
        if !wrong.is_empty() {
            errors.push(Error::invalid(&path.child("group"), group, wrong.join(",")));
        } else if !group.contains('.') {
            let why = "should be a domain with at least one dot";
            errors.push(Error::invalid(&path.child("group"), group, why));
        }
    }
    one_of(spec, "scope", &["Cluster", "Namespaced"], &path, &mut errors);
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) && has_defaults(spec) {
        let why = "must be false in order to use defaults in the schema";
        errors.push(Error::invalid(&path.child("preserveUnknownFields"), true, why));
    }
    let old_spec = old.and_then(|old| old.get("spec"));
    versions(spec, old_spec, &path, &mut errors);
    for key in ["plural", "singular", "kind", "listKind"] {
        if meta::text(spec, &format!("/names/{key}")).is_empty() {
            errors.push(Error::required(&path.child("names").child(key), ""));
        }
    }
    let names = spec.get("names").unwrap_or(&Value::Null);
    own_names(names, &path.child("names"), &mut errors);
    alike(spec, old_spec, &path, &mut errors);
    conversion(spec, old, &path.child("conversion"), &mut errors);
    if let Some(old) = old {
        unchanged(crd, old, &path, &mut errors);
    }
    errors.extend(status(crd));
    stored_versions(crd, &mut errors);
    errors.extend(unapproved(crd, old));
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true))
        && old.is_none_or(|old| old.at("/spec/preserveUnknownFields") != Some(&Value::Bool(true)))
    {
        let why =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(Error::invalid(&path.child("preserveUnknownFields"), true, why));
    }
    errors
}

/// Finds what is wrong with what a definition's status says.
pub(super) fn status(crd: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let names = crd.at("/status/acceptedNames").unwrap_or(&Value::Null);
    own_names(names, &Path::new("status.acceptedNames"), &mut errors);
    errors
}

/// Whether a schema of some version has a default somewhere.
fn has_defaults(spec: &Value) -> bool {
    fn has_default(schema: &Value) -> bool {
        let own = schema.get("default").is_some_and(|default| !default.is_null());
        own || subschemas(schema).any(has_default)
    }
    let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    let mut schemas = versions.filter_map(|version| version.at("/schema/openAPIV3Schema"));
    schemas.any(has_default)
}

/// What is missing for a definition in one of the community's groups. Where the approval does not change, nothing is.
fn unapproved(crd: &Value, old: Option<&Value>) -> Option<Error> {
    let (approval, why) = approval::of(crd)?;
    let before = old.map(|old| approval::said(approval::told(old)).0);
    if before == Some(approval) {
        return None;
    }
    let path = Path::new("metadata.annotations").key(approval::ANNOTATION);
    match approval {
        Approval::Approved | Approval::Bypassed => None,
        Approval::Missing => Some(Error::required(&path, why)),
        Approval::Invalid => Some(Error::invalid(&path, approval::told(crd), why)),
    }
}

/// A definition is named for what it defines.
pub(super) fn own_name(crd: &Value, name: &str) -> Vec<String> {
    let (plural, group) = (meta::text(crd, "/spec/names/plural"), meta::text(crd, "/spec/group"));
    if name == format!("{plural}.{group}") {
        return Vec::new();
    }
    vec!["must be spec.names.plural+\".\"+spec.group".to_owned()]
}

fn one_of(object: &Value, key: &str, supported: &[&str], path: &Path, errors: &mut ErrorList) {
    let value = meta::text(object, &format!("/{key}"));
    if value.is_empty() {
        errors.push(Error::required(&path.child(key), ""));
    } else if !supported.contains(&value) {
        errors.push(Error::not_supported(&path.child(key), value, supported));
    }
}

fn label(value: &str, path: &Path, errors: &mut ErrorList) {
    let wrong = names::dns1035_label(value);
    if !wrong.is_empty() {
        errors.push(Error::invalid(path, value, wrong.join(",")));
    }
}

fn own_names(own: &Value, path: &Path, errors: &mut ErrorList) {
    for key in ["plural", "singular"] {
        let value = meta::text(own, &format!("/{key}"));
        if !value.is_empty() {
            label(value, &path.child(key), errors);
        }
    }
    for key in ["kind", "listKind"] {
        let value = meta::text(own, &format!("/{key}"));
        let wrong = names::dns1035_label(&value.to_lowercase());
        if !value.is_empty() && !wrong.is_empty() {
            let why = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            errors.push(Error::invalid(&path.child(key), value, why));
        }
    }
    let each = |key: &str, errors: &mut ErrorList| {
        for (at, name) in meta::elements(own, &format!("/{key}")).iter().enumerate() {
            label(name.as_str().unwrap_or_default(), &path.child(key).index(at), errors);
        }
    };
    each("shortNames", errors);
    let (kind, list_kind) = (meta::text(own, "/kind"), meta::text(own, "/listKind"));
    if !kind.is_empty() && kind == list_kind {
        let why = "kind and listKind may not be the same";
        errors.push(Error::invalid(&path.child("listKind"), list_kind, why));
    }
    each("categories", errors);
}

/// A member that all versions have alike; upstream then has it once for all.
fn common<'a>(versions: &'a [Value], key: &str) -> Option<&'a Value> {
    let first = versions.first()?.get(key)?;
    versions
        .iter()
        .all(|version| version.get(key) == Some(first))
        .then_some(first)
}

/// Versions as upstream shows them: without what all of them have alike.
fn shown(spec: &Value) -> String {
    let versions = meta::elements(spec, "/versions");
    if spec.get("versions").is_none_or(Value::is_null) {
        return "null".to_owned();
    }
    let mut shown = versions.to_vec();
    for key in ["schema", "subresources", "additionalPrinterColumns", "selectableFields"] {
        if common(versions, key).is_some() {
            for version in shown.iter_mut().filter_map(Value::as_object_mut) {
                version.remove(key);
            }
        }
    }
    internal::text("[]apiextensions.CustomResourceDefinitionVersion", &shown.into())
}

/// The schema of a version, where it has one.
fn root(version: &Value) -> Option<&Value> {
    version
        .at("/schema/openAPIV3Schema")
        .filter(|schema| schema.is_object())
}

fn versions(spec: &Value, old: Option<&Value>, path: &Path, errors: &mut ErrorList) {
    let versions = meta::elements(spec, "/versions");
    let at_top = |key: &str| common(versions, key).is_some();
    let at = |index: usize| path.child("versions").index(index);
    for (index, version) in versions.iter().enumerate() {
        if root(version).is_none() {
            errors.push(Error::required(&at(index).child("schema").child("openAPIV3Schema"), ""));
        }
    }
    for (index, version) in versions.iter().enumerate() {
        label(meta::text(version, "/name"), &at(index).child("name"), errors);
        deprecation(version, &at(index), errors);
        if !at_top("schema") {
            schema(version, old, has_status(version), &at(index).child("schema"), errors);
        }
        if !at_top("subresources") {
            subresources(version, &at(index).child("subresources"), errors);
        }
        if !at_top("additionalPrinterColumns") {
            columns(version, &at(index).child("additionalPrinterColumns"), errors);
        }
        if !at_top("selectableFields") {
            // a schema that all versions have alike is none of this one: upstream refuses that, too
            let own = root(version).filter(|_| !at_top("schema"));
            let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
            selectable_fields(version, own.ok_or(why), &at(index).child("selectableFields"), errors);
        }
    }
    let names: Vec<&str> = versions.iter().map(|version| meta::text(version, "/name")).collect();
    let error = |why: &str| Error::literal(&path.child("versions"), shown(spec), why);
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        errors.push(error("must contain unique version names"));
    }
    let stored = |version: &&Value| version.get("storage") == Some(&Value::Bool(true));
    if versions.iter().filter(stored).count() != 1 {
        errors.push(error("must have exactly one version marked as storage version"));
    }
    match versions.first().map_or("", |first| meta::text(first, "/name")) {
        "" => {}
        name => label(name, &path.child("version"), errors),
    }
}

/// What all versions have alike, which upstream has once for all of them.
fn alike(spec: &Value, old: Option<&Value>, path: &Path, errors: &mut ErrorList) {
    let versions = meta::elements(spec, "/versions");
    let at_top = |key: &str| common(versions, key).is_some();
    let Some(first) = versions.first() else { return };
    if at_top("schema") {
        let any_status = versions.iter().any(has_status);
        schema(first, old, any_status, &path.child("validation"), errors);
    }
    if at_top("subresources") {
        subresources(first, &path.child("subresources"), errors);
    }
    if at_top("additionalPrinterColumns") {
        columns(first, &path.child("additionalPrinterColumns"), errors);
    }
    if at_top("selectableFields") {
        let own = root(first).filter(|_| at_top("schema"));
        let why = "may only be set when validations.schema is included";
        selectable_fields(first, own.ok_or(why), &path.child("selectableFields"), errors);
    }
}

/// What may stand at the root of a schema of which the part of the status is taken: the API's name and Go's, in Go's order.
const BESIDE_STATUS: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// What is at the root of a schema that would be lost for the status.
fn beside_status(schema: &Value, path: &Path) -> Option<Error> {
    let kind = meta::text(schema, "/type");
    if !matches!(kind, "" | "object") {
        let why =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(Error::invalid(&path.child("type"), kind, why));
    }
    let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    let members = schema.as_object().into_iter().flatten();
    let mut others = members.filter(|(key, value)| is_set(value) && !BESIDE_STATUS.iter().any(|(own, _)| own == key));
    others.next()?;
    let names: Vec<&str> = BESIDE_STATUS.iter().map(|(_, name)| *name).collect();
    let why = format!(
        "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
        names.join(" ")
    );
    let shown = internal::text("apiextensions.JSONSchemaProps", schema);
    Some(Error::literal(path, shown, why))
}

/// Whether the status of a version's objects is a subresource.
fn has_status(version: &Value) -> bool {
    version.at("/subresources/status").is_some()
}

/// Checks a version's schema, if it is not the one that the version had; what must hold if the status of its objects is a subresource
/// (`has_status`), in any case.
fn schema(version: &Value, old: Option<&Value>, has_status: bool, path: &Path, errors: &mut ErrorList) {
    let Some(own) = version.at("/schema/openAPIV3Schema").filter(|own| own.is_object()) else {
        return;
    };
    let name = version.get("name");
    let mut before = old
        .map(|old| meta::elements(old, "/versions").iter())
        .into_iter()
        .flatten();
    let before = before.find(|other| other.get("name") == name);
    let path = path.child("openAPIV3Schema");
    if has_status {
        errors.extend(beside_status(own, &path));
    }
    if before.and_then(|before| before.at("/schema/openAPIV3Schema")) == Some(own) {
        return;
    }
    if own.get("nullable") == Some(&Value::Bool(true)) {
        let why = "nullable cannot be true at the root";
        errors.push(Error::forbidden(&path.child("nullable"), why));
    }
    errors.extend(gardener_schema::crd::validate(own, &path));
}

/// What Go does not print: all but letters, marks, numbers, punctuation, symbols and the usual space.
static NOT_PRINTED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[^\p{L}\p{M}\p{N}\p{P}\p{S} ]").ok());

fn deprecation(version: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return;
    };
    let mut wrong = Vec::new();
    if version.get("deprecated") != Some(&Value::Bool(true)) {
        wrong.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > 256 {
            wrong.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            wrong.push("must not be an empty string".to_owned());
        }
        if let Some(found) = NOT_PRINTED.as_ref().and_then(|pattern| pattern.find(warning)) {
            wrong.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {}",
                found.start()
            ));
        }
    }
    let path = path.child("deprecationWarning");
    errors.extend(wrong.into_iter().map(|why| Error::invalid(&path, warning, why)));
}

fn simple_path(text: &str, path: &Path, errors: &mut ErrorList) -> bool {
    let simple = text.starts_with('.');
    if !simple {
        errors.push(Error::invalid(path, text, "must be a simple json path starting with ."));
    }
    simple
}

fn subresources(version: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(scale) = version.at("/subresources/scale").filter(|scale| scale.is_object()) else {
        return;
    };
    for (key, root) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let (text, path) = (meta::text(scale, &format!("/{key}")), path.child("scale").child(key));
        if text.is_empty() {
            errors.push(Error::required(&path, ""));
        } else if simple_path(text, &path, errors) && !text.starts_with(root) {
            let why = format!("should be a json path under {}", root.trim_end_matches('.'));
            errors.push(Error::invalid(&path, text, why));
        }
    }
    let selector = meta::text(scale, "/labelSelectorPath");
    let path = path.child("scale").child("labelSelectorPath");
    if !selector.is_empty()
        && simple_path(selector, &path, errors)
        && !selector.starts_with(".spec.")
        && !selector.starts_with(".status.")
    {
        let why = "should be a json path under either .spec or .status";
        errors.push(Error::invalid(&path, selector, why));
    }
}

fn columns(version: &Value, path: &Path, errors: &mut ErrorList) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = [
        "byte",
        "date",
        "date-time",
        "double",
        "float",
        "int32",
        "int64",
        "password",
    ];
    for (at, column) in meta::elements(version, "/additionalPrinterColumns").iter().enumerate() {
        let path = path.index(at);
        let text = |key: &str| meta::text(column, &format!("/{key}"));
        if text("name").is_empty() {
            errors.push(Error::required(&path.child("name"), ""));
        }
        let why = format!("must be one of {}", TYPES.join(","));
        if text("type").is_empty() {
            errors.push(Error::required(&path.child("type"), why));
        } else if !TYPES.contains(&text("type")) {
            errors.push(Error::invalid(&path.child("type"), text("type"), why));
        }
        if !text("format").is_empty() && !FORMATS.contains(&text("format")) {
            let why = format!("must be one of {}", FORMATS.join(","));
            errors.push(Error::invalid(&path.child("format"), text("format"), why));
        }
        if text("jsonPath").is_empty() {
            errors.push(Error::required(&path.child("JSONPath"), ""));
        } else {
            simple_path(text("jsonPath"), &path.child("JSONPath"), errors);
        }
    }
}

/// Fields to select by must be in the schema, or else `schema` tells why there is none.
fn selectable_fields(version: &Value, schema: Result<&Value, &str>, path: &Path, errors: &mut ErrorList) {
    let fields = meta::elements(version, "/selectableFields");
    if fields.is_empty() {
        return;
    }
    let schema = match schema {
        Ok(schema) => schema,
        Err(why) => return errors.push(Error::invalid(path, "", why)),
    };
    let mut seen: Vec<&str> = Vec::new();
    for (at, own) in fields.iter().enumerate() {
        let path = path.index(at).child("jsonPath");
        let text = meta::text(own, "/jsonPath");
        if text.is_empty() {
            errors.push(Error::required(&path, ""));
            continue;
        }
        let found = match at_path(schema, text, false) {
            Ok(found) => found,
            Err(why) => {
                errors.push(Error::invalid(&path, text, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if text == ".metadata" || text.starts_with(".metadata.") {
            errors.push(Error::invalid(&path, text, "must not point to fields in metadata"));
        }
        if !matches!(meta::text(found, "/type"), "string" | "boolean" | "integer") {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(Error::invalid(&path, text, why));
        }
        match seen.contains(&text) {
            true => errors.push(Error::duplicate(&path, text)),
            false => seen.push(text),
        }
    }
    if seen.len() > SELECTABLE_FIELDS {
        errors.push(Error::too_many(path, seen.len(), SELECTABLE_FIELDS));
    }
}

fn conversion(spec: &Value, old: Option<&Value>, path: &Path, errors: &mut ErrorList) {
    let Some(conversion) = spec.get("conversion").filter(|conversion| conversion.is_object()) else {
        return;
    };
    let strategy = meta::text(conversion, "/strategy");
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) && strategy != "None" {
        let why = "must be None if spec.preserveUnknownFields is true";
        errors.push(Error::invalid(&path.child("strategy"), strategy, why));
    }
    one_of(conversion, "strategy", &["None", "Webhook"], path, errors);
    let config = conversion
        .at("/webhook/clientConfig")
        .filter(|config| config.is_object());
    let versions: Vec<String> = meta::elements(conversion, "/webhook/conversionReviewVersions")
        .iter()
        .map(|version| version.as_str().unwrap_or_default().to_owned())
        .collect();
    let (config_path, versions_path) = (
        path.child("webhookClientConfig"),
        path.child("conversionReviewVersions"),
    );
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            errors.push(Error::forbidden(&config_path, why));
        }
        if !versions.is_empty() {
            errors.push(Error::forbidden(&versions_path, why));
        }
        return;
    }
    match config {
        Some(config) => {
            webhooks::client_config(config, &config_path, errors);
            errors.extend(wrong_bundle(config, old, &config_path));
        }
        None => errors.push(Error::required(
            &config_path,
            "required when strategy is set to Webhook",
        )),
    }
    if versions.is_empty() {
        errors.push(Error::required(&versions_path, ""));
        return;
    }
    webhooks::conversion_review_versions(&versions, &versions_path, errors);
    let is_known = |versions: &[String]| versions.iter().any(|own| matches!(own.as_str(), "v1" | "v1beta1"));
    let before: Vec<String> = old
        .map(|old| meta::elements(old, "/spec/conversion/webhook/conversionReviewVersions"))
        .unwrap_or_default()
        .iter()
        .filter_map(|version| version.as_str().map(str::to_owned))
        .collect();
    if !is_known(&versions) && (before.is_empty() || is_known(&before)) {
        errors.push(Error::invalid(
            &versions_path,
            json!(versions),
            "must include at least one of v1, v1beta1",
        ));
    }
}

/// Whether a definition was established.
fn is_established(crd: &Value) -> bool {
    meta::elements(crd, "/status/conditions")
        .iter()
        .any(|condition| meta::text(condition, "/type") == "Established" && meta::text(condition, "/status") == "True")
}

/// Whether a webhook's authorities (base64 of PEM) can be used.
fn is_bundle(told: &str) -> bool {
    let pem = STANDARD.decode(told).ok();
    pem.is_some_and(|pem| Authorities::of_bundle(&pem).is_some())
}

/// What is wrong with the authorities of a webhook that converts: they must be usable once the definition is established, unless they were not before.
fn wrong_bundle(config: &Value, old: Option<&Value>, path: &Path) -> Option<Error> {
    let told = config.get("caBundle").and_then(Value::as_str).unwrap_or_default();
    let before = old.filter(|old| is_established(old))?;
    let before = meta::text(before, "/spec/conversion/webhook/clientConfig/caBundle");
    if told.is_empty() || is_bundle(told) || !before.is_empty() && !is_bundle(before) {
        return None;
    }
    let why = "unable to load root certificates: unable to parse bytes as PEM block";
    Some(Error::invalid(&path.child("caBundle"), told, why))
}

/// What a change must leave as it was.
fn unchanged(crd: &Value, old: &Value, path: &Path, errors: &mut ErrorList) {
    let fields: &[&str] = match is_established(old) {
        true => &["scope", "names/kind", "group", "names/plural"],
        false => &["group", "names/plural"],
    };
    for field in fields {
        let pointer = format!("/spec/{field}");
        let value = crd.at(&pointer).cloned().unwrap_or(Value::Null);
        if Some(&value) != old.at(&pointer) {
            let path = field.split('/').fold(path.clone(), |path, part| path.child(part));
            errors.push(Error::invalid(&path, value, "field is immutable"));
        }
    }
}

fn stored_versions(crd: &Value, errors: &mut ErrorList) {
    let path = Path::new("status").child("storedVersions");
    let stored = meta::elements(crd, "/status/storedVersions");
    let versions = meta::elements(crd, "/spec/versions");
    if stored.is_empty() {
        errors.push(Error::invalid(
            &path,
            Value::Null,
            "must have at least one stored version",
        ));
        return;
    }
    let mut told = BTreeSet::new();
    for version in versions {
        let name = version.get("name").unwrap_or(&Value::Null);
        // upstream counts a name once: a version that has another one's name is not among them
        let is_first = told.insert(name.as_str().unwrap_or_default());
        if version.get("storage") == Some(&Value::Bool(true)) && !(is_first && stored.contains(name)) {
            let why = format!("must have the storage version {}", meta::text(version, "/name"));
            errors.push(Error::invalid(&path, stored.to_vec(), why));
        }
    }
    for (at, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version.get("name") == Some(name)) {
            let name = name.as_str().unwrap_or_default();
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(Error::invalid(&path.index(at), name, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(errors: &ErrorList) -> Vec<String> {
        errors
            .iter()
            .map(|error| format!("{}: {}", error.path, error.detail))
            .collect()
    }

    #[test]
    fn schemas_are_judged_again_when_the_status_becomes_a_subresource() {
        let version = |name: &str, status: bool, title: &str| {
            let mut version = json!({
                "name": name,
                "schema": {"openAPIV3Schema": {"type": "object", "title": title, "maxProperties": 3}},
            });
            if status {
                version["subresources"] = json!({"status": {}});
            }
            version
        };
        let judged = |versions: Vec<Value>, old: Vec<Value>| {
            let mut errors = ErrorList::new();
            let (spec, old) = (json!({"versions": versions}), json!({"versions": old}));
            super::versions(&spec, Some(&old), &Path::new("spec"), &mut errors);
            alike(&spec, Some(&old), &Path::new("spec"), &mut errors);
            errors.retain(|error| error.detail.contains("status subresource"));
            errors
                .iter()
                .map(|error| error.path.as_str().to_owned())
                .collect::<Vec<_>>()
        };
        let (plain, with_status) = (version("v1", false, "a"), version("v1", true, "a"));
        assert_eq!(judged(vec![plain.clone()], vec![plain.clone()]), [""; 0]);
        assert_eq!(
            judged(vec![with_status], vec![plain.clone()]),
            ["spec.validation.openAPIV3Schema"]
        );
        assert_eq!(
            judged(vec![plain.clone(), version("v2", true, "a")], vec![plain.clone()]),
            ["spec.validation.openAPIV3Schema"]
        );
        assert_eq!(
            judged(vec![plain.clone(), version("v2", true, "b")], vec![plain]),
            ["spec.versions[1].schema.openAPIV3Schema"]
        );
    }

    #[test]
    fn authorities_of_established_definitions_are_usable() {
        let authority = gardener_pki::authority("a", 0, std::time::Duration::from_secs(60)).unwrap();
        let (usable, useless) = (STANDARD.encode(authority.certificate), STANDARD.encode("none"));
        let crd = |established: &str, bundle: &str| {
            json!({
                "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}},
                "status": {"conditions": [{"type": "Established", "status": established}]},
            })
        };
        for (old, new, is_refused) in [
            (None, &useless, false),
            (Some(crd("False", "")), &useless, false),
            (Some(crd("True", "")), &useless, true),
            (Some(crd("True", &usable)), &useless, true),
            (Some(crd("True", &useless)), &useless, false),
            (Some(crd("True", "")), &usable, false),
        ] {
            let wrong = wrong_bundle(&json!({"caBundle": new}), old.as_ref(), &Path::new("c"));
            assert_eq!(wrong.is_some(), is_refused, "{old:?}");
        }
    }

    #[test]
    fn warnings_of_versions_are_printable() {
        for (warning, expected) in [
            ("old, use v2 – ü", None),
            ("a\u{200b}", Some(1)),
            ("ü\u{a0}", Some(2)),
            ("\n", Some(0)),
        ] {
            let mut errors = ErrorList::new();
            let version = json!({"deprecated": true, "deprecationWarning": warning});
            deprecation(&version, &Path::new("v"), &mut errors);
            let expected: Vec<String> = expected
                .map(|at: usize| format!("v.deprecationWarning: must only contain printable UTF-8 characters; non-printable character found at index {at}"))
                .into_iter()
                .collect();
            assert_eq!(told(&errors), expected, "{warning:?}");
        }
    }
}
