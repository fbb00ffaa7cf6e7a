//! The `scale` subresource: desired and observed counts of any kind that tells where it keeps them.

mod owners;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path, go_quote};
use gardener_merge::{Manager, Operation};
use gardener_schema::Schema;
use gardener_schema::json::type_of;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::decode::Source;
use crate::definition::{Draft, Scale};
use crate::handle::Call;
use crate::json_path;
use crate::posted::Posted;
use crate::registry::{PatchKind, Scope, WriteOptions, by_operations, not_an_object, not_of_this_type, shown_object};
use crate::respond::{self, Body};
use crate::{meta, object};

use owners::Places;

/// The kind of all scales.
const KIND: Posted = Posted {
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
};

/// Serves `get`, `update` and `patch` of an object's scale.
pub(crate) async fn call(call: &Call, scope: &Scope, verb: &str) -> Result<Response<Body>, ApiError> {
    let paths = scope.spec()?.scale.clone().ok_or_else(ApiError::no_such_path)?;
    let accept = call.accept_one_shape()?;
    if !matches!(verb, "get" | "update" | "patch") {
        return Err(ApiError::method_not_allowed());
    }
    let options = match verb {
        "get" => WriteOptions::default(),
        _ => WriteOptions {
            owners_are_known: true,
            ..call.write_options()?
        },
    };
    let main = Scope {
        subresource: String::new(),
        admitted: true,
        ..scope.clone()
    };
    let places = Places::of(&scope.definition);
    let schema = KIND.schema().ok_or_else(ApiError::no_such_path)?;
    let manager = |operation: Operation| Manager {
        name: &options.field_manager,
        operation,
        api_version: owners::API_VERSION,
        subresource: &scope.subresource,
    };
    for _ in 0..5 {
        let entry = scope.entry()?;
        let mut parent = object::value_of(&entry);
        scope.to_requested(&mut parent).await?;
        let current = scale_of(&parent, &paths);
        if verb == "get" {
            return Ok(respond::value(StatusCode::OK, &current, accept));
        }
        let mut live = current.clone();
        let entries = places.to_scale(&parent);
        if entries.as_array().is_some_and(|entries| !entries.is_empty()) {
            meta::set(&mut live, "managedFields", Some(entries));
        }
        let mut wanted = match verb {
            "update" => call.decoded()?.value,
            _ => patched(call, scope, &live, &options, &manager(Operation::Apply), &schema)?,
        };
        // a patch that does not touch the revision means whatever is there
        if verb == "patch" && meta::resource_version(&wanted) == meta::resource_version(&live) {
            meta::set(&mut wanted, "resourceVersion", None);
        }
        let applies = verb == "patch" && call.patch_kind()? == PatchKind::Apply;
        let asked_revision = meta::resource_version(&wanted).to_owned();
        if !asked_revision.is_empty() && asked_revision != entry.mod_revision.to_string() {
            return Err(ApiError::conflict(
                &scope.definition.group,
                &scope.definition.plural,
                &scope.name,
                "the object has been modified; please apply your changes to the latest version and try again",
            ));
        }
        check(scope, &wanted)?;
        let own_namespace = meta::namespace(&wanted);
        if !own_namespace.is_empty() && own_namespace != scope.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        main.check_uid(&wanted, &parent)?;
        let context = scope.context(call.cluster.clock().now(), options.dry_run);
        let mut warnings = Vec::new();
        let revision = Some(entry.mod_revision.to_string().into());
        meta::set(&mut wanted, "resourceVersion", revision);
        if !applies {
            let nothing_kept = gardener_merge::fieldset::Set::default();
            gardener_merge::update(
                Some(&live),
                &mut wanted,
                &schema,
                &manager(Operation::Update),
                "",
                &nothing_kept,
            );
        }
        let owners = meta::take_managed_fields(&mut wanted);
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
        let replicas = check(scope, &wanted)?;
        let owned = json!({"metadata": {"managedFields": owners}});
        let api_version = scope.definition.api_version(&scope.version);
        let owners = places.to_object(&parent, &owned, &api_version);
        meta::set(&mut parent, "managedFields", Some(owners));
        set_path(&mut parent, &paths.spec_replicas, json!(replicas));
        match main.update(parent, &Source::default(), &options).await {
            Ok(written) => {
                let mut response = respond::value(StatusCode::OK, &scale_of(&written.object, &paths), accept);
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

/// The scale that a patch asks for; of one that is applied, its managedFields tell who owns what then.
fn patched(
    call: &Call,
    scope: &Scope,
    live: &Value,
    options: &WriteOptions,
    manager: &Manager<'_>,
    schema: &Schema,
) -> Result<Value, ApiError> {
    let patch = crate::decode::decode(&call.body, crate::decode::Format::Yaml)?.value;
    let patched = match call.patch_kind()? {
        PatchKind::Json => by_operations(live, &patch, options)?,
        // a scale has no lists: the two merging patches do the same to it
        PatchKind::Merge | PatchKind::Strategic => gardener_merge::merge_patch(live, &patch).map_err(ApiError::from)?,
        PatchKind::Apply => {
            let (version, kind) = (meta::text(&patch, "/apiVersion"), meta::text(&patch, "/kind"));
            if version.is_empty() || kind.is_empty() {
                return Err(not_of_this_type(version, kind));
            }
            // what is applied is merged into the scale, which has a name
            let mut named = patch.clone();
            if meta::name(&named).is_empty() {
                meta::set(&mut named, "name", Some(scope.name.clone().into()));
            }
            check(scope, &named)?;
            let reset = gardener_merge::fieldset::Set::default();
            return Ok(gardener_merge::apply(
                Some(live),
                &patch,
                schema,
                manager,
                options.force,
                "",
                &reset,
            )?);
        }
    };
    match schema.decode(&patched, KIND.kind) {
        Ok(()) => Ok(patched),
        Err(why) => Err(not_an_object(shown_object(&patched, live), why.to_string())),
    }
}

/// The count that a scale asks for.
fn check(scope: &Scope, scale: &Value) -> Result<i64, ApiError> {
    let cannot = |version: &str, kind: &str, why: &str| {
        ApiError::bad_request(format!(
            "{kind} in version {} cannot be handled as a Scale: {why}",
            go_quote(version)
        ))
    };
    let (api_version, kind) = (meta::text(scale, "/apiVersion"), meta::text(scale, "/kind"));
    if !matches!(kind, "" | "Scale") {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let why = format!("converting ({version}.{kind}) to (autoscaling.Scale): unknown conversion");
        return Err(cannot(version, kind, &why));
    }
    let found = scale.pointer("/spec/replicas").filter(|count| !count.is_null());
    let replicas = match found {
        None => 0,
        Some(count) => match count.as_i64().filter(|count| i32::try_from(*count).is_ok()) {
            Some(count) => count,
            None => {
                let what = match count {
                    Value::Number(number) => format!("number {number}"),
                    other => type_of(other).to_owned(),
                };
                let why =
                    format!("json: cannot unmarshal {what} into Go struct field ScaleSpec.spec.replicas of type int32");
                return Err(cannot("v1", "Scale", &why));
            }
        },
    };
    match meta::name(scale) {
        "" => return Err(scope.no_name()),
        name if name != scope.name => return Err(scope.other_name(name)),
        _ => {}
    }
    if replicas < 0 {
        let at = Path::new("spec.replicas");
        let error = Error::invalid(&at, replicas, "must be greater than or equal to 0");
        return Err(ApiError::invalid("autoscaling", "Scale", &scope.name, &[error]));
    }
    Ok(replicas)
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
        if let Some(value) = object.pointer(&format!("/metadata/{key}")) {
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
