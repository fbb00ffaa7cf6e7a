//! The `scale` subresource: desired and observed counts of any kind that tells where it keeps them.

use std::sync::{Arc, LazyLock};

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path, go_quote};
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::type_meta::unreadable;
use gardener_merge::fieldset::Set;
use gardener_merge::scale::CountPaths;
use gardener_merge::{Manager, Operation};
use gardener_schema::Schema;
use http::{Response, StatusCode};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::accept::{Accept, Shape};
use crate::decode::{self, Decoded, Format, Source, Unknown};
use crate::definition::{Column, Definition, Draft, Scale};
use crate::handle::{Call, no_list};
use crate::json_path;
use crate::posted::Posted;
use crate::protobuf::GoOrder;
use crate::registry::{
    PatchKind, Scope, WriteOptions, by_operations, not_an_object, not_of_this_type, sent_revision, shown_patched,
};
use crate::respond::{self, Body};
use crate::table::{self, column};
use crate::{meta, object};

/// What scales are: group, version and kind.
const KIND: (&str, &str, &str) = ("autoscaling", "v1", "Scale");
/// Versions with scales of their own, which upstream reads but does not take.
const OLDER: [&str; 3] = ["apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"];
/// What upstream says of any body that it cannot read as a custom resource's scale: it does not find the scale's own kind to name it.
const NOT_REGISTERED: &str = "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"";
/// What stands for a count that a custom resource does not have, while its scale is patched.
const UNSET: i32 = i32::MIN;
/// The type of scales.
static SCHEMA: LazyLock<Arc<Schema>> =
    LazyLock::new(|| Posted::from(KIND).schema().unwrap_or_else(|| Arc::new(Schema::any())));

/// Serves `get`, `update` and `patch` of an object's scale.
pub(crate) async fn call(call: &Call, scope: &Scope, verb: &str) -> Result<Response<Body>, ApiError> {
    let mut said = Vec::new();
    let served = serve(call, scope, verb, &mut said).await;
    // what is to say of the body is said in any case
    served.inspect_err(|_| scope.refused_with.extend_if_none(said))
}

async fn serve(call: &Call, scope: &Scope, verb: &str, said: &mut Vec<String>) -> Result<Response<Body>, ApiError> {
    let paths = scope.spec()?.scale.clone().ok_or_else(ApiError::no_such_path)?;
    let accept = call.accept_shapes(scope)?;
    if !matches!(verb, "get" | "update" | "patch") {
        return Err(ApiError::method_not_allowed());
    }
    let options = match verb {
        "get" => WriteOptions::default(),
        _ => call.write_options()?,
    };
    let main = Scope {
        subresource: String::new(),
        admitted: true,
        ..scope.clone()
    };
    let through = WriteOptions {
        owned: true,
        ..options.clone()
    };
    let owners = owners(&scope.definition);
    let api_version = scope.definition.api_version(&scope.version);
    let sent = match verb {
        "update" => Some(sent(call, scope, &options, said)?),
        _ => None,
    };
    for _ in 0..5 {
        let entry = match (scope.entry(), verb) {
            (Err(_), "get") if paths.is_missed => {
                let definition = &scope.definition;
                let plural = format!("{}/scale", definition.plural);
                return Err(ApiError::not_found(&definition.group, &plural, &scope.name));
            }
            (entry, _) => entry?,
        };
        let mut parent = object::value_of(&entry);
        scope.to_requested(&mut parent).await?;
        let mut current = scale_of(&parent, &paths);
        // a count that was never written is none that a patch leaves alone
        let is_unset = !scope.definition.is_go_type() && json_path::first(&parent, &paths.spec_replicas).is_none();
        if verb == "get" {
            if is_unset {
                let path = go_quote(&dotted(&paths.spec_replicas));
                let why = format!("the spec replicas field {path} does not exist");
                return Err(ApiError::internal(why));
            }
            return shown(call, scope, current, accept);
        }
        let entries = parent.at("/metadata/managedFields").cloned();
        let of_scale = owners.to_scale(entries.as_ref());
        if of_scale.as_array().is_some_and(|entries| !entries.is_empty()) {
            meta::set(&mut current, "managedFields", Some(of_scale));
        }
        if is_unset {
            set_path(&mut current, "spec.replicas", json!(UNSET));
        }
        let now = call.cluster.clock().now();
        let mut warnings = said.clone();
        let wanted = match &sent {
            Some(sent) => sent.clone(),
            None => {
                let patched = patched(call, scope, &current, &options, now, &mut warnings)?;
                check_place(scope, &patched)?;
                patched
            }
        };
        // what replaces a scale is judged as what replaces the object; what a patch makes is not
        if verb == "update" {
            main.check_uid(&wanted, &parent, options.dry_run)?;
        }
        if is_unset && wanted.at("/spec/replicas") == Some(&json!(UNSET)) {
            return Err(ApiError::bad_request(format!(
                "the spec replicas field {} cannot be empty",
                go_quote(&dotted(&paths.spec_replicas))
            )));
        }
        if paths.is_judged {
            check_count(scope, &wanted)?;
        }
        // what scales of custom resources say is judged with the resource
        if scope.definition.is_go_type() {
            check_uid(scope, &wanted, &current)?;
        }
        let asked_revision = meta::resource_version(&wanted).to_owned();
        if asked_revision.is_empty() && scope.definition.is_go_type() {
            main.may_be_unconditional()?;
        }
        if !asked_revision.is_empty() && sent_revision(&asked_revision)? != entry.mod_revision {
            return Err(scope.modified());
        }
        let context = scope.context(now, options.dry_run);
        let mut wanted = wanted;
        if verb == "update" || call.patch_kind()? != PatchKind::Apply {
            // Go leaves out a count of nothing: nobody owns it
            let spec = wanted.get_mut("spec").and_then(Value::as_object_mut);
            if let Some(spec) = spec.filter(|spec| spec.get("replicas") == Some(&json!(0))) {
                spec.remove("replicas");
            }
            let manager = manager(&options, Operation::Update);
            let (time, nothing) = (meta::rfc3339(now), Set::default());
            gardener_merge::update(Some(&current), &mut wanted, &SCHEMA, &manager, &time, &nothing);
        }
        // admission does not see who owns what
        let of_scale = meta::take_managed_fields(&mut wanted);
        meta::take_managed_fields(&mut current);
        meta::set(
            &mut wanted,
            "resourceVersion",
            Some(entry.mod_revision.to_string().into()),
        );
        let wanted = scope
            .admit_body(
                &context,
                &options,
                wanted,
                Some(&Draft::from(current)),
                |_| Ok(()),
                &mut warnings,
            )
            .await?;
        if paths.is_judged {
            check_count(scope, &wanted)?;
        }
        let replicas = count(&wanted);
        set_path(&mut parent, &paths.spec_replicas, json!(replicas));
        let entries = owners.to_object(entries.as_ref(), of_scale.as_ref(), &api_version);
        let some = entries.as_array().is_some_and(|entries| !entries.is_empty());
        meta::set(&mut parent, "managedFields", some.then_some(entries));
        match main.update(parent, &Source::default(), &through, None).await {
            Ok(written) => {
                let mut response = shown(call, scope, scale_of(&written.object, &paths), accept)?;
                warnings.extend(written.warnings);
                respond::warn(&mut response, &warnings);
                return Ok(response);
            }
            Err(error) if error.reason() == "Conflict" && asked_revision.is_empty() => {}
            Err(error) => return Err(error),
        }
    }
    Err(ApiError::conflict(
        &scope.definition.group,
        &scope.definition.plural,
        &scope.name,
        "the object changes too often; try again",
    ))
}

/// The scale that is to replace one, as it was sent. Whether there is one to replace is seen afterwards.
fn sent(call: &Call, scope: &Scope, options: &WriteOptions, warnings: &mut Vec<String>) -> Result<Value, ApiError> {
    let Decoded { mut value, source } = call.decoded_kind(gardener_merge::scale::API_VERSION, KIND.2)?;
    check_kind(scope, &value)?;
    let cannot = |why: String| match scope.definition.is_go_type() {
        true => ApiError::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}")),
        false => ApiError::bad_request(NOT_REGISTERED),
    };
    SCHEMA.canonicalize(&mut value);
    let judged = source.judge_decoded(&SCHEMA, (&value, KIND.2), options.field_validation, warnings);
    judged.map_err(cannot)?;
    SCHEMA.prune(&mut value);
    check_place(scope, &value)?;
    Ok(value)
}

/// Refuses a scale of another namespace or name.
fn check_place(scope: &Scope, scale: &Value) -> Result<(), ApiError> {
    scope.check_posted_namespace(scale)?;
    scope.check_scale_name(scale)
}

/// A path as definitions write it.
fn dotted(path: &str) -> String {
    format!(".{}", path.trim_start_matches('.'))
}

/// A scale in the form the client accepts.
fn shown(call: &Call, scope: &Scope, scale: Value, accept: Accept) -> Result<Response<Body>, ApiError> {
    let shown = match accept.shape {
        Shape::Object => scale,
        Shape::Metadata => table::metadata_only(&scope.definition, &scale, accept.meta_version()),
        Shape::MetadataList => {
            return Err(no_list(match scope.definition.is_go_type() {
                true => "autoscaling.Scale",
                false => "v1.Scale",
            }));
        }
        Shape::Table => {
            let style = call.table_style(accept)?;
            let count = |path: &str| scale.at(path).and_then(Value::as_i64).unwrap_or(0).into();
            let age = table::age(call.cluster.clock().now(), &scale);
            let cells = vec![
                meta::name(&scale).into(),
                count("/spec/replicas"),
                count("/status/replicas"),
                age.into(),
            ];
            let row = table::row(&scope.definition, &scale, cells, style);
            let revision = json!({"resourceVersion": meta::resource_version(&scale)});
            let columns = table::definitions(columns(scope.definition.is_go_type()));
            table::of_rows(style, revision, columns, vec![row].into())
        }
    };
    Ok(respond::value(StatusCode::OK, &shown, accept))
}

/// The columns of a scale's table. Built-in kinds say less of them than custom resources.
fn columns(is_go_type: bool) -> Vec<Column> {
    let (name, age) = match is_go_type {
        true => ("", "string"),
        false => ("name", "date"),
    };
    [
        (column("Name", "string", name, 0), "Name of the scaled object."),
        (column("Desired", "integer", "", 0), "How many instances are wanted."),
        (column("Available", "integer", "", 0), "How many instances there are."),
        (column("Age", age, "", 0), "How long ago the object was created."),
    ]
    .map(|(column, description)| Column {
        description: description.into(),
        ..column
    })
    .into()
}

/// The count that a scale asks for.
fn count(scale: &Value) -> i64 {
    scale.at("/spec/replicas").and_then(Value::as_i64).unwrap_or(0)
}

/// Refuses a body that is no scale, or one of another version.
fn check_kind(scope: &Scope, body: &Value) -> Result<(), ApiError> {
    if !scope.definition.is_go_type() {
        return match scope.other_kind(KIND, body) {
            None => Ok(()),
            Some(_) => Err(ApiError::bad_request(NOT_REGISTERED)),
        };
    }
    let api_version = meta::text(body, "/apiVersion");
    if OLDER.contains(&api_version) && matches!(meta::text(body, "/kind"), "" | "Scale") {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            gardener_merge::scale::API_VERSION
        )));
    }
    scope.check_posted_kind(KIND, body)
}

/// Refuses a scale of less than nothing.
fn check_count(scope: &Scope, scale: &Value) -> Result<(), ApiError> {
    let replicas = count(scale);
    if replicas >= 0 {
        return Ok(());
    }
    let at = Path::new("spec.replicas");
    let error = Error::invalid(&at, replicas, "must be greater than or equal to 0");
    Err(ApiError::invalid("autoscaling", "Scale", &scope.name, &[error]))
}

/// Refuses a scale that is to be of another object than that of the name.
fn check_uid(scope: &Scope, wanted: &Value, current: &Value) -> Result<(), ApiError> {
    let (asked, found) = (
        meta::text(wanted, "/metadata/uid"),
        meta::text(current, "/metadata/uid"),
    );
    if asked.is_empty() || asked == found {
        return Ok(());
    }
    Err(ApiError::conflict(
        &scope.definition.group,
        &format!("{}/scale", scope.definition.plural),
        &scope.name,
        &format!("Precondition failed: UID in precondition: {asked}, UID in object meta: {found}"),
    ))
}

impl Scope {
    /// Refuses a scale of another name.
    fn check_scale_name(&self, scale: &Value) -> Result<(), ApiError> {
        match meta::name(scale) {
            "" => Err(self.no_name()),
            name if name != self.name => Err(self.other_name(name)),
            _ => Ok(()),
        }
    }
}

/// Where the versions of a kind have what their scales count.
fn owners(definition: &Definition) -> CountPaths {
    let mut owners = CountPaths::default();
    for version in &definition.versions {
        let count = version.scale.as_ref().map(|paths| paths.spec_replicas.as_str());
        owners.add(definition.api_version(&version.name), count);
    }
    owners
}

fn manager(options: &WriteOptions, operation: Operation) -> Manager<'_> {
    Manager {
        name: &options.field_manager,
        operation,
        api_version: gardener_merge::scale::API_VERSION,
        subresource: "scale",
    }
}

/// A scale as a patch makes it; who applies it owns what it tells.
fn patched(
    call: &Call,
    scope: &Scope,
    current: &Value,
    options: &WriteOptions,
    now: Timestamp,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let Decoded { value: patch, source } = decode::decode(&call.body, Format::Yaml)?;
    let kind = call.patch_kind()?;
    if kind == PatchKind::Strategic {
        scope.strategic_schema()?;
    }
    let (mut new, source) = match kind {
        PatchKind::Json => (by_operations(current, &patch, options)?, Source::default()),
        PatchKind::Merge => (
            gardener_merge::merge_patch(current, &patch).map_err(ApiError::from)?,
            source,
        ),
        PatchKind::Strategic => {
            let merged = gardener_merge::strategic(current, &patch, &SCHEMA).map_err(ApiError::from)?;
            (merged, source)
        }
        PatchKind::Apply => return applied(scope, current, &patch, options, now),
    };
    if kind == PatchKind::Strategic {
        wrap_count(&mut new);
    }
    let refused = |why: String| {
        let order = GoOrder::of_kind(KIND.0, KIND.1, KIND.2);
        not_an_object(shown_patched(kind, current, &patch, order), why)
    };
    if let (PatchKind::Json | PatchKind::Merge, Some(why)) = (kind, unreadable(&new)) {
        return Err(refused(why));
    }
    if let Some(why) = scope.other_kind(KIND, &new) {
        return Err(refused(why));
    }
    SCHEMA.canonicalize(&mut new);
    if let Err(why) = SCHEMA.decode(&new, KIND.2) {
        let why = match kind {
            PatchKind::Strategic => SCHEMA
                .convert(&new)
                .map_or_else(|other| other.to_string(), |()| why.to_string()),
            _ => why.to_string(),
        };
        return Err(refused(why));
    }
    let unknown = Unknown::OnTheWay(SCHEMA.unknown_fields(&new));
    source
        .judge(unknown, options.field_validation, warnings)
        .map_err(refused)?;
    SCHEMA.prune(&mut new);
    Ok(new)
}

/// A scale as an applied configuration makes it.
fn applied(
    scope: &Scope,
    current: &Value,
    config: &Value,
    options: &WriteOptions,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let (version, kind) = (meta::text(config, "/apiVersion"), meta::text(config, "/kind"));
    if (version, kind) != (gardener_merge::scale::API_VERSION, KIND.2) {
        return Err(not_of_this_type(version, kind));
    }
    let what = |place: String| {
        format!(
            "object ({place}; {}, Kind={}) to proper version",
            gardener_merge::scale::API_VERSION,
            KIND.2
        )
    };
    // upstream asks the resource's own converter for a scale, which knows none
    const NOT_ITS_OWN: &str = "request to convert CR to an invalid group/version: autoscaling/v1";
    let is_go_type = scope.definition.is_go_type();
    if !is_go_type && current.at("/metadata/managedFields").is_none() {
        let what = what("/".to_owned());
        return Err(ApiError::unclassified(format!(
            "failed to create manager for existing fields: failed to convert live {what}: {NOT_ITS_OWN}"
        )));
    }
    let manager = manager(options, Operation::Apply);
    let (time, nothing) = (meta::rfc3339(now), Set::default());
    let mut new = gardener_merge::apply(Some(current), config, &SCHEMA, &manager, options.force, &time, &nothing)
        .map_err(ApiError::from)?;
    if !is_go_type {
        let what = what(format!("{}/{}", meta::namespace(config), meta::name(config)));
        return Err(ApiError::unclassified(format!(
            "failed to convert new {what}: {NOT_ITS_OWN}"
        )));
    }
    wrap_count(&mut new);
    Ok(new)
}

/// A whole number that is too large loses its upper bits where Go converts it without reading it.
fn wrap_count(scale: &mut Value) {
    if let Some(count) = scale.at_mut("/spec/replicas")
        && let Some(number) = count.as_i64()
    {
        *count = json!(number as i32);
    }
}

fn scale_of(object: &Value, paths: &Scale) -> Value {
    let number = |path: &str| json_path::first(object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    let selector = paths
        .selector
        .as_deref()
        .and_then(|path| json_path::first(object, path))
        .map(selector_text);
    if let (Value::Object(status), Some(selector)) = (&mut status, selector) {
        status.insert("selector".into(), selector.into());
    }
    let mut metadata = serde_json::Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.at(&format!("/metadata/{key}")) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let spec = match number(&paths.spec_replicas) {
        0 => json!({}),
        replicas => json!({"replicas": replicas}),
    };
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

/// A selector as text, from either of its forms.
fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    let labels = selector
        .get("matchLabels")
        .or_else(|| selector.get("matchExpressions").is_none().then_some(selector));
    let mut parts: Vec<String> = meta::string_map(labels)
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    for expression in selector
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        let values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        parts.push(match expression.get("operator").and_then(Value::as_str) {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

fn set_path(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for step in path.trim_start_matches('.').split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        let Value::Object(members) = at else { return };
        at = members.entry(step).or_insert(Value::Null);
    }
    *at = value;
}
