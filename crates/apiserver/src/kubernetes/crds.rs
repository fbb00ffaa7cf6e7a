//! CustomResourceDefinitions: names and conditions are settled when they are written, so that their resources are served at once.

mod validate;

use gardener_apimachinery::ApiError;
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
    kind.marks_for_deletion = |crd, now| {
        crate::crd::termination::mark(crd, now);
        true
    };
    kind.validate_create = |crd| validate::definition(crd, None);
    kind.validate_update = |crd, old| validate::definition(crd, Some(old));
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
    if context.dry_run {
        // nobody settles the names of what is not stored
        let status = crd
            .get("status")
            .filter(|status| status.get("acceptedNames").is_some())
            .cloned();
        let mut status =
            status.unwrap_or_else(|| json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}}));
        if let (Some(members), Some(status)) = (crd.as_object_mut(), status.as_object_mut()) {
            status.insert("storedVersions".into(), stored.into());
            members.insert("status".into(), std::mem::take(status).into());
        }
        return Ok(());
    }
    let mut conditions = if taken {
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
    // those that others keep
    conditions.extend(
        before
            .iter()
            .filter(|condition| !matches!(meta::text(condition, "/type"), "NamesAccepted" | "Established"))
            .cloned(),
    );
    if let Some(members) = crd.as_object_mut() {
        members.insert("status".into(), json!({"acceptedNames": if taken { json!({"plural": "", "kind": ""}) } else { names }, "conditions": conditions, "storedVersions": stored}));
    }
    Ok(())
}
