//! CustomResourceDefinitions: names and conditions are settled when they are written, so that their resources are served at once.

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::{Value, json};

use super::strategy::Kind;
use crate::definition::Context;
use crate::meta;

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.default = |crd| {
        let kind_name = meta::text(crd, "/spec/names/kind").to_owned();
        if let Some(names) = crd.pointer_mut("/spec/names").and_then(Value::as_object_mut) {
            names
                .entry("singular")
                .or_insert_with(|| kind_name.to_lowercase().into());
            names
                .entry("listKind")
                .or_insert_with(|| format!("{kind_name}List").into());
        }
        if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
            spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
        }
    };
    kind.prepare_create = accept_names;
    kind.prepare_update = |context, crd, _| accept_names(context, crd);
    kind.validate = validate;
    kind
}

/// Writes the status: names accepted unless another CRD of the group has them, and then established.
fn accept_names(context: &Context<'_>, crd: &mut Value) -> Result<(), ApiError> {
    let names = crd.pointer("/spec/names").cloned().unwrap_or_else(|| json!({}));
    let group = meta::text(crd, "/spec/group").to_owned();
    let own = meta::name(crd).to_owned();
    let taken = context
        .lister
        .list("apiextensions.k8s.io", "customresourcedefinitions", None)
        .iter()
        .any(|other| {
            meta::name(other) != own
                && meta::text(other, "/spec/group") == group
                && other.pointer("/spec/names/kind") == names.get("kind")
        });
    let mut stored: Vec<Value> = crd
        .pointer("/status/storedVersions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for version in crd
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if version.get("storage").and_then(Value::as_bool) == Some(true)
            && let Some(name) = version.get("name")
            && !stored.contains(name)
        {
            stored.push(name.clone());
        }
    }
    let before = crd
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        let same = before
            .iter()
            .find(|condition| meta::text(condition, "/type") == kind && meta::text(condition, "/status") == status);
        let since = same.map_or_else(
            || meta::rfc3339(context.now),
            |condition| meta::text(condition, "/lastTransitionTime").to_owned(),
        );
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
    };
    let conditions = if taken {
        vec![
            condition("NamesAccepted", "False", "KindConflict", "the kind is already in use"),
            condition("Established", "False", "NotAccepted", "not all names are accepted"),
        ]
    } else {
        vec![
            condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            condition(
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
        ]
    };
    if let Some(members) = crd.as_object_mut() {
        members.insert("status".into(), json!({"acceptedNames": if taken { json!({"plural": "", "kind": ""}) } else { names }, "conditions": conditions, "storedVersions": stored}));
    }
    Ok(())
}

fn validate(crd: &Value) -> ErrorList {
    let spec = Path::new("spec");
    let mut errors = Vec::new();
    let (group, plural) = (meta::text(crd, "/spec/group"), meta::text(crd, "/spec/names/plural"));
    if group.is_empty() {
        errors.push(Error::required(&spec.child("group"), ""));
    }
    let expected = format!("{plural}.{group}");
    if meta::name(crd) != expected {
        errors.push(Error::invalid(
            &Path::new("metadata").child("name"),
            meta::name(crd),
            "must be spec.names.plural+\".\"+spec.group".to_string(),
        ));
    }
    let scope = meta::text(crd, "/spec/scope");
    if !["Cluster", "Namespaced"].contains(&scope) {
        errors.push(Error::not_supported(
            &spec.child("scope"),
            scope,
            &["Cluster", "Namespaced"],
        ));
    }
    for key in ["plural", "kind"] {
        if meta::text(crd, &format!("/spec/names/{key}")).is_empty() {
            errors.push(Error::required(&spec.child("names").child(key), ""));
        }
    }
    let versions = crd
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let stored = versions
        .iter()
        .filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
        .count();
    if stored != 1 {
        errors.push(Error::invalid(
            &spec.child("versions"),
            json!(versions),
            "must have exactly one version marked as storage version",
        ));
    }
    for (index, version) in versions.iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none() {
            errors.push(Error::required(
                &spec
                    .child("versions")
                    .index(index)
                    .child("schema")
                    .child("openAPIV3Schema"),
                "schemas are required",
            ));
        }
    }
    errors
}
