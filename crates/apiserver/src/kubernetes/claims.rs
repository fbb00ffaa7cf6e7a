//! Claims of volumes.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::quantity::Amount;
use serde_json::{Value, json};

use super::checks::{self, amount, annotation, list, map, one_of, spec_of, syntax, text};
use super::strategy::Kind;
use super::volumes::{self, MODES};
use super::{defaults, internal, resource_names};
use crate::meta;

/// How claims named their class before they had a field for it.
pub(super) const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const SNAPSHOTS: &str = "snapshot.storage.k8s.io";
/// Where the growth of a volume may be.
const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];
/// What upstream says of a changed spec; what changed follows.
const IMMUTABLE: &str =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/// Brings both ways to name a source of data into agreement. A source of old that is neither a claim nor a snapshot is dropped, and so is one in
/// another namespace, which upstream does not follow by default; what was there before stays.
fn agree_on_sources(claim: &mut Value, old: Option<&Value>) {
    let had = |key: &str| old.is_some_and(|old| spec_of(old).get(key).is_some());
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let is_elsewhere = |reference: &Value| !text(reference, "namespace").is_empty();
    if spec.get("dataSourceRef").is_some_and(is_elsewhere) && !had("dataSourceRef") {
        spec.remove("dataSourceRef");
    }
    let plain = |source: &Value| {
        let group = source.get("apiGroup").cloned().unwrap_or(Value::Null);
        json!({"apiGroup": group, "kind": text(source, "kind"), "name": text(source, "name")})
    };
    match (spec.get("dataSource"), spec.get("dataSourceRef")) {
        (Some(source), None) => {
            let is_known = matches!(
                (text(source, "apiGroup"), text(source, "kind")),
                ("", "PersistentVolumeClaim") | (SNAPSHOTS, "VolumeSnapshot")
            );
            let reference = plain(source);
            if is_known || had("dataSource") {
                spec.insert("dataSourceRef".into(), reference);
            } else {
                spec.remove("dataSource");
            }
        }
        (None, Some(reference)) if text(reference, "namespace").is_empty() => {
            let source = plain(reference);
            spec.insert("dataSource".into(), source);
        }
        _ => {}
    }
}

fn validate_source(source: &Value, at: &Path, errors: &mut ErrorList) {
    let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
    if text(source, "name").is_empty() {
        errors.push(Error::required(&at.child("name"), ""));
    }
    if kind.is_empty() {
        errors.push(Error::required(&at.child("kind"), ""));
    }
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(Error::invalid(at, kind, why));
    }
    if !group.is_empty() {
        syntax(meta::dns1123_subdomain(group), group, &at.child("apiGroup"), errors);
    }
    let namespace = text(source, "namespace");
    if !namespace.is_empty() {
        syntax(
            meta::dns1123_label(namespace),
            namespace,
            &at.child("namespace"),
            errors,
        );
    }
}

/// What a claim asks for.
pub(super) fn validate_spec(spec: &Value, path: &Path, errors: &mut ErrorList) {
    if list(spec, "accessModes").is_empty() {
        let why = "at least 1 access mode is required";
        errors.push(Error::required(&path.child("accessModes"), why));
    }
    if let Some(selector) = spec.get("selector") {
        checks::label_selector(selector, &path.child("selector"), errors);
    }
    volumes::validate_access(spec, path, errors);
    let at = path.child("resources").key("storage");
    match spec.at("/resources/requests/storage") {
        None => errors.push(Error::required(&at, "")),
        amount => volumes::positive(amount, &at, errors),
    }
    volumes::class_name(spec, "storageClassName", path, errors);
    one_of(spec, "volumeMode", &MODES, path, errors);
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    for (key, source) in [("dataSource", source), ("dataSourceRef", reference)] {
        if let Some(source) = source {
            validate_source(source, &path.child(key), errors);
        }
    }
    if let (Some(source), Some(reference)) = (source, reference) {
        let member = |source: &Value| ["apiGroup", "kind", "name"].map(|key| text(source, key).to_owned());
        if !text(reference, "namespace").is_empty() {
            let why = "may not be specified when dataSourceRef.namespace is specified";
            errors.push(Error::invalid(path, json!({}), why));
        } else if member(source) != member(reference) {
            // the value that upstream shows here is a path, which has no members
            errors.push(Error::invalid(path, json!({}), "must match dataSourceRef"));
        }
    }
    volumes::class_name(spec, "volumeAttributesClassName", path, errors);
}

/// The class that a claim names, in the annotation of old or in its spec; empty: none.
pub(super) fn class(claim: &Value) -> &str {
    annotation(claim, CLASS_ANNOTATION).unwrap_or_else(|| text(spec_of(claim), "storageClassName"))
}

/// An amount of which a part is no whole byte, as Go shows it.
pub(super) fn fraction(value: &Value) -> Option<String> {
    let amount = amount(value)?;
    (amount.milli_value() % 1000 != 0).then(|| amount.to_string())
}

/// Warns of fractions of bytes in what a claim asks for.
pub(super) fn warn_of_fractions(spec: &Value, path: &Path, found: &mut Vec<String>) {
    for key in ["requests", "limits"] {
        if let Some(shown) = spec.at(&format!("/resources/{key}/storage")).and_then(fraction) {
            let at = path.child("resources").child(key).key("storage");
            found.push(format!(
                "{at}: fractional byte value \"{shown}\" is invalid, must be an integer"
            ));
        }
    }
}

fn validate_update(claim: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_bound = meta::text(claim, "/status/phase") == "Bound";
    let (mut fixed, mut before) = (spec_of(claim).clone(), spec_of(old).clone());
    let (had, has) = (annotation(old, CLASS_ANNOTATION), annotation(claim, CLASS_ANNOTATION));
    let class = fixed.get("storageClassName").and_then(Value::as_str).map(str::to_owned);
    let had_none = before.get("storageClassName").is_none();
    // a claim gets a class once, which the annotation may have told before
    let gets_class = had_none && class.is_some() && (had.is_none() || had == class.as_deref());
    let becomes_attribute = gets_class && had.is_some() && (has.is_none() || has == had);
    // a claim is bound once, and grows when it is
    if text(&before, "volumeName").is_empty() {
        checks::keep(before.as_object_mut(), &fixed, "volumeName");
    }
    if gets_class {
        checks::keep(fixed.as_object_mut(), &before, "storageClassName");
    }
    if is_bound {
        checks::keep(fixed.as_object_mut(), &before, "volumeAttributesClassName");
        let old = before.at("/resources/requests").unwrap_or(&Value::Null);
        let requests = fixed.at_mut("/resources/requests").and_then(Value::as_object_mut);
        checks::keep(requests, old, "storage");
    }
    let (has, had) = (has.unwrap_or_default(), had.unwrap_or_default());
    if !becomes_attribute && has != had {
        let at = Path::new("metadata").child("annotations").key(CLASS_ANNOTATION);
        errors.push(Error::invalid(&at, has, "field is immutable"));
    }
    if fixed != before {
        let changes = internal::changes("core.PersistentVolumeClaimSpec", &before, &fixed);
        errors.push(Error::forbidden(&Path::new("spec"), format!("{IMMUTABLE}\n{changes}")));
    }
    // what is not told is nothing
    let amount_of = |claim: &Value, at: &str| claim.at(at).and_then(amount).unwrap_or(Amount::units(0));
    let request = |claim: &Value| amount_of(claim, "/spec/resources/requests/storage");
    let new = request(claim);
    if new < request(old) && new <= amount_of(old, "/status/capacity/storage") {
        let at = Path::new("spec").child("resources").child("requests").child("storage");
        errors.push(Error::forbidden(&at, "field can not be less than status.capacity"));
    }
    let mode = |claim: &Value| spec_of(claim).get("volumeMode").cloned().unwrap_or(Value::Null);
    if mode(claim) != mode(old) {
        errors.push(Error::invalid(
            &Path::new("volumeMode"),
            mode(claim),
            "field is immutable",
        ));
    }
    let class = |claim: &Value| {
        spec_of(claim)
            .get("volumeAttributesClassName")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    if class(claim) != class(old) && old.at("/status/currentVolumeAttributesClassName").is_some() {
        let what = match class(claim).as_deref() {
            None => "nil",
            Some("") => "empty string",
            Some(_) => return errors,
        };
        let why = format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
        errors.push(Error::forbidden(
            &Path::new("spec").child("volumeAttributesClassName"),
            why,
        ));
    }
    errors
}

/// A resource of a claim's status.
fn resource_name(name: &str, at: &Path, errors: &mut ErrorList) -> bool {
    let wrong = meta::qualified_name(name);
    let is_wrong = !wrong.is_empty();
    syntax(wrong, name, at, errors);
    if is_wrong {
        return false;
    }
    let is_known = name == "storage" || !resource_names::is_native(name);
    if !is_known {
        errors.push(Error::not_supported(at, name, &["storage"]));
    }
    is_known
}

fn basic(value: &Value, at: &Path, errors: &mut ErrorList) -> bool {
    let negative = amount(value).filter(|amount| amount.is_negative());
    if let Some(amount) = negative {
        errors.push(Error::invalid(at, amount.value(), "must be a valid resource quantity"));
    }
    negative.is_none()
}

fn validate_status(claim: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (status, path) = (claim.get("status").unwrap_or(&Value::Null), Path::new("status"));
    for (name, value) in map(status, "capacity") {
        basic(value, &path.child("capacity").key(name), &mut errors);
    }
    let at = path.child("allocatedResourceStatuses");
    for (name, state) in map(status, "allocatedResourceStatuses") {
        resource_name(name, &at, &mut errors);
        if !RESIZE_STATES.contains(&state.as_str().unwrap_or_default()) {
            // upstream shows the resource, not its state
            errors.push(Error::not_supported(&at, name.as_str(), &RESIZE_STATES));
        }
    }
    let at = path.child("allocatedResources");
    for (name, value) in map(status, "allocatedResources") {
        if resource_name(name, &at, &mut errors) {
            basic(value, &at.key(name), &mut errors);
        }
    }
    errors
}

pub(super) fn claims(mut kind: Kind) -> Kind {
    kind.validate = |claim| {
        let mut errors = Vec::new();
        validate_spec(spec_of(claim), &Path::new("spec"), &mut errors);
        errors
    };
    kind.default = defaults::persistent_volume_claim;
    kind.whole_in_between = true;
    kind.default_stored = |claim| agree_on_sources(claim, None);
    kind.validate_update = validate_update;
    kind.validate_status = |claim, _| validate_status(claim);
    kind.prepare_create = |_, claim| {
        agree_on_sources(claim, None);
        if let Some(members) = claim.as_object_mut() {
            members.insert("status".into(), json!({"phase": "Pending"}));
        }
        Ok(())
    };
    kind.prepare_update = |_, claim, old| {
        agree_on_sources(claim, Some(old));
        Ok(())
    };
    kind.warnings = |claim, _| {
        let mut found = Vec::new();
        if annotation(claim, CLASS_ANNOTATION).is_some() {
            found.push(format!(
                "metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
            ));
        }
        warn_of_fractions(spec_of(claim), &Path::new("spec"), &mut found);
        found
    };
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_the_annotation_may_become_the_attribute() {
        let claim = |annotated: Option<&str>, class: Option<&str>| {
            let mut claim = json!({"metadata": {"annotations": {}}, "spec": {}, "status": {"phase": "Pending"}});
            if let Some(annotated) = annotated {
                claim["metadata"]["annotations"][CLASS_ANNOTATION] = annotated.into();
            }
            if let Some(class) = class {
                claim["spec"]["storageClassName"] = class.into();
            }
            claim
        };
        for (old, new, expected) in [
            ((Some("a"), None), (Some("a"), Some("a")), 0),
            ((Some("a"), None), (None, Some("a")), 0),
            ((None, None), (None, Some("a")), 0),
            ((Some("a"), None), (None, Some("b")), 2),
            ((Some("a"), None), (None, None), 1),
            ((None, Some("a")), (None, Some("b")), 1),
            ((None, Some("a")), (None, None), 1),
        ] {
            let errors = validate_update(&claim(new.0, new.1), &claim(old.0, old.1));
            assert_eq!(errors.len(), expected, "{old:?} {new:?}: {errors:?}");
        }
    }
}
