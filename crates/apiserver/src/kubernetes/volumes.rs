//! Persistent volumes.

mod sources;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::quantity::Amount;
use serde_json::{Value, json};

use super::checks::{self, amount, annotation, list, one_of, spec_of, syntax, text};
use super::strategy::Kind;
use super::{internal, pods};
use crate::meta;

/// How claims and volumes may be used.
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
/// As what volumes are given to pods.
pub(super) const MODES: [&str; 2] = ["Block", "Filesystem"];
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
const BETA_ANNOTATIONS: [(&str, &str); 2] = [
    (
        "volume.beta.kubernetes.io/storage-class",
        "deprecated since v1.8; use \"storageClassName\" attribute instead",
    ),
    (
        MOUNT_OPTIONS,
        "deprecated since v1.31; use \"mountOptions\" attribute instead",
    ),
];

/// The modes in which a claim or volume may be used.
pub(super) fn validate_access(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let at = path.child("accessModes");
    let modes: Vec<&str> = list(spec, "accessModes").iter().filter_map(Value::as_str).collect();
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.push(Error::not_supported(&at, *mode, &ACCESS_MODES));
    }
    let has_others = modes
        .iter()
        .any(|mode| *mode != "ReadWriteOncePod" && ACCESS_MODES.contains(mode));
    if modes.contains(&"ReadWriteOncePod") && has_others {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(Error::forbidden(&at, why));
    }
}

/// The name of a class, if one is told.
pub(super) fn class_name(spec: &Value, key: &str, path: &Path, errors: &mut ErrorList) {
    let class = text(spec, key);
    if !class.is_empty() {
        syntax(meta::dns1123_subdomain(class), class, &path.child(key), errors);
    }
}

/// An amount of more than nothing.
pub(super) fn positive(amount: Option<&Value>, at: &Path, errors: &mut ErrorList) {
    let Some(shown) = amount.and_then(Value::as_str) else {
        return;
    };
    let Ok(amount) = shown.parse::<Amount>() else { return };
    if amount.is_negative() || amount.is_zero() {
        errors.push(Error::invalid(at, shown, "must be greater than zero"));
    }
}

/// A volume that stands in an attachment: it is for a driver, and belongs to nobody.
pub(super) fn validate_inline(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let why = "may not be specified in the context of inline volumes";
    let forbidden = |key: &str, errors: &mut ErrorList| {
        let is_set = match spec.get(key) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Object(members)) => key == "claimRef" || key == "nodeAffinity" || !members.is_empty(),
            Some(_) => true,
        };
        if is_set {
            errors.push(Error::forbidden(&path.child(key), why));
        }
    };
    forbidden("claimRef", errors);
    forbidden("capacity", errors);
    if spec.get("csi").is_none() {
        let why = "has to be specified in the context of inline volumes";
        errors.push(Error::required(&path.child("csi"), why));
    }
    if list(spec, "accessModes").is_empty() {
        errors.push(Error::required(&path.child("accessModes"), ""));
    }
    validate_access(spec, path, errors);
    if !matches!(text(spec, "persistentVolumeReclaimPolicy"), "" | "Retain") {
        let why = "may only be Retain in the context of inline volumes";
        errors.push(Error::forbidden(&path.child("persistentVolumeReclaimPolicy"), why));
    }
    forbidden("nodeAffinity", errors);
    sources::validate(spec, "", path, errors);
    forbidden("storageClassName", errors);
    if !matches!(text(spec, "volumeMode"), "" | "Filesystem") {
        let why = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.push(Error::forbidden(&path.child("volumeMode"), why));
    }
}

fn validate(volume: &Value) -> ErrorList {
    let mut errors = Vec::new();
    let none = Value::Null;
    let (spec, path) = (spec_of(volume), Path::new("spec"));
    if list(spec, "accessModes").is_empty() {
        errors.push(Error::required(&path.child("accessModes"), ""));
    }
    validate_access(spec, &path, &mut errors);
    let capacity = spec.get("capacity").unwrap_or(&none);
    let at = path.child("capacity");
    let amounts = capacity.as_object();
    if amounts.is_none_or(serde_json::Map::is_empty) {
        errors.push(Error::required(&at, ""));
    }
    if capacity.get("storage").is_none() || amounts.is_some_and(|amounts| amounts.len() > 1) {
        errors.push(Error::not_supported(&at, capacity.clone(), &["storage"]));
    }
    for (name, value) in amounts.into_iter().flatten() {
        if let Some(amount) = amount(value).filter(|amount| amount.is_negative()) {
            let why = "must be a valid resource quantity";
            errors.push(Error::invalid(&at.key(name), amount.value(), why));
        }
        positive(Some(value), &at.key(name), &mut errors);
    }
    let policies = ["Delete", "Recycle", "Retain"];
    one_of(spec, "persistentVolumeReclaimPolicy", &policies, &path, &mut errors);
    if spec.get("nodeAffinity").is_some() && spec.at("/nodeAffinity/required").is_none() {
        let at = path.child("nodeAffinity").child("required");
        errors.push(Error::required(&at, "must specify required node constraints"));
    }
    if let Some(required) = spec.at("/nodeAffinity/required") {
        let at = path.child("nodeAffinity").child("required");
        pods::scheduling::validate_node_selector(required, &at, &mut errors);
    }
    sources::validate(spec, meta::name(volume), &path, &mut errors);
    let root = spec.at("/hostPath/path").and_then(Value::as_str);
    let is_root =
        root.is_some_and(|path| path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | ".")));
    if is_root && text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(Error::forbidden(&path.child("persistentVolumeReclaimPolicy"), why));
    }
    class_name(spec, "storageClassName", &path, &mut errors);
    one_of(spec, "volumeMode", &MODES, &path, &mut errors);
    if let Some(class) = spec.get("volumeAttributesClassName").and_then(Value::as_str) {
        if class.is_empty() {
            let why = "an empty string is disallowed";
            errors.push(Error::required(&path.child("volumeAttributesClassName"), why));
        }
        class_name(spec, "volumeAttributesClassName", &path, &mut errors);
        if spec.get("csi").is_none() {
            let why = "has to be specified when using volumeAttributesClassName";
            errors.push(Error::required(&path.child("csi"), why));
        }
    }
    errors
}

/// Labels of nodes that have other names today.
const RENAMED: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// Whether a volume is where it was. Its requirements may name the same labels by their names of today.
fn is_same_place(place: Option<&Value>, before: &Value) -> bool {
    const TERMS: &str = "/required/nodeSelectorTerms";
    let Some(place) = place else { return false };
    let mut before = before.clone();
    let old = before.at_mut(TERMS).and_then(Value::as_array_mut);
    for (old, new) in old.into_iter().flatten().zip(meta::elements(place, TERMS)) {
        for key in ["matchExpressions", "matchFields"] {
            let old = old.get_mut(key).and_then(Value::as_array_mut);
            for (old, new) in old.into_iter().flatten().zip(list(new, key)) {
                let (was, is) = (text(old, "key"), text(new, "key"));
                if RENAMED.contains(&(was, is)) {
                    checks::keep(old.as_object_mut(), new, "key");
                }
            }
        }
    }
    before == *place
}

fn validate_update(volume: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, before) = (spec_of(volume), spec_of(old));
    let may_expand = before
        .get("csi")
        .is_some_and(|csi| csi.get("controllerExpandSecretRef").is_none());
    let source = |spec: &Value| {
        let mut spec = spec.clone();
        let csi = spec.get_mut("csi").and_then(Value::as_object_mut);
        if let Some(csi) = csi.filter(|_| may_expand) {
            csi.remove("controllerExpandSecretRef");
        }
        spec
    };
    let (own, other) = (source(spec), source(before));
    if sources::SOURCES.iter().any(|key| own.get(key) != other.get(key)) {
        let at = Path::new("spec").child("persistentvolumesource");
        let changes = internal::changes("core.PersistentVolumeSource", before, &own);
        let why = format!("spec.persistentvolumesource is immutable after creation\n{changes}");
        errors.push(Error::forbidden(&at, why));
    }
    if spec.get("volumeMode") != before.get("volumeMode") {
        let shown = spec.get("volumeMode").cloned().unwrap_or(Value::Null);
        errors.push(Error::invalid(&Path::new("volumeMode"), shown, "field is immutable"));
    }
    let place = before.get("nodeAffinity");
    if place.is_some_and(|place| !is_same_place(spec.get("nodeAffinity"), place)) {
        let why = "field is immutable, except for updating from beta label to GA";
        errors.push(Error::literal(
            &Path::new("nodeAffinity"),
            internal::text(
                "*core.VolumeNodeAffinity",
                spec.get("nodeAffinity").unwrap_or(&Value::Null),
            ),
            why,
        ));
    }
    let key = "volumeAttributesClassName";
    if before.get(key).is_some() && spec.get(key).is_none() {
        let why = "update from non-nil value to nil is forbidden";
        errors.push(Error::forbidden(&Path::new("spec").child(key), why));
    }
    errors
}

/// Options of mounting in an annotation, which volumes of some types only have.
fn validate_mount_options(volume: &Value) -> Option<Error> {
    annotation(volume, MOUNT_OPTIONS)?;
    if sources::has_mount_options(spec_of(volume)) {
        return None;
    }
    let at = Path::new("metadata").child("annotations").child(MOUNT_OPTIONS);
    Some(Error::forbidden(
        &at,
        "may not specify mount options for this volume type",
    ))
}

pub(super) fn volumes(mut kind: Kind) -> Kind {
    kind.validate = validate;
    kind.validate_create = |volume| validate_mount_options(volume).into_iter().collect();
    kind.whole_first = true;
    kind.validate_update = |volume, old| {
        let mut errors: ErrorList = validate_mount_options(volume).into_iter().collect();
        errors.extend(validate_update(volume, old));
        errors
    };
    // with the phase changes when it did
    kind.prepare_status = |context, volume, old| {
        let phase = |volume: &Value| meta::text(volume, "/status/phase").to_owned();
        let since = |volume: &Value| volume.at("/status/lastPhaseTransitionTime").cloned();
        let told = match (phase(volume) == phase(old), since(volume)) {
            (true, None) => since(old),
            (false, own) if own.is_none() || own == since(old) => Some(meta::rfc3339(context.now).into()),
            (_, own) => own,
        };
        if let (Some(told), Some(status)) = (told, volume.get_mut("status").and_then(Value::as_object_mut)) {
            status.insert("lastPhaseTransitionTime".into(), told);
        }
    };
    kind.prepare_create = |context, volume| {
        if let Some(members) = volume.as_object_mut() {
            members.insert(
                "status".into(),
                json!({"phase": "Pending", "lastPhaseTransitionTime": meta::rfc3339(context.now)}),
            );
        }
        Ok(())
    };
    kind.warnings = |volume, _| {
        let annotations = volume.at("/metadata/annotations");
        let has = |key: &str| annotations.is_some_and(|all| all.get(key).is_some());
        let found = BETA_ANNOTATIONS.iter().filter(|(key, _)| has(key));
        let mut warnings: Vec<String> = found
            .map(|(key, why)| format!("metadata.annotations[{key}]: {why}"))
            .collect();
        if text(spec_of(volume), "persistentVolumeReclaimPolicy") == "Recycle" {
            warnings.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
        }
        let path = Path::new("spec")
            .child("nodeAffinity")
            .child("required")
            .child("nodeSelectorTerms");
        let terms = meta::elements(volume, "/spec/nodeAffinity/required/nodeSelectorTerms");
        for (index, term) in terms.iter().enumerate() {
            pods::warnings::of_terms(term, false, &path.index(index), &mut warnings);
        }
        // of these two upstream says nothing here
        let is_told = |key: &str| !["flocker", "quobyte"].contains(&key) && spec_of(volume).get(key).is_some();
        let found = pods::warnings::OLD_SOURCES.iter().filter(|(key, _)| is_told(key));
        warnings.extend(found.map(|(key, why)| format!("spec.{key}: {why}")));
        warnings
    };
    kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::strategy::kind_of;

    #[test]
    fn places_may_be_told_by_the_names_of_today() {
        let volume = |key: &str, value: &str| {
            let term = json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]});
            json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}})
        };
        let old = volume("failure-domain.beta.kubernetes.io/zone", "a");
        for (key, value, expected) in [
            ("failure-domain.beta.kubernetes.io/zone", "a", 0),
            ("topology.kubernetes.io/zone", "a", 0),
            ("topology.kubernetes.io/zone", "b", 1),
            ("topology.kubernetes.io/region", "a", 1),
        ] {
            assert_eq!(
                validate_update(&volume(key, value), &old).len(),
                expected,
                "{key}={value}"
            );
        }
        assert_eq!(validate_update(&json!({"spec": {}}), &old).len(), 1);
    }

    #[test]
    fn old_sources_and_labels_are_told() {
        let term = json!({"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "Exists"}]});
        let volume = json!({"spec": {
            "rbd": {},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }});
        assert_eq!(
            (kind_of("", "persistentvolumes").warnings)(&volume, None),
            [
                "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use \"kubernetes.io/os\" instead",
                "spec.rbd: deprecated in v1.28, non-functional in v1.31+",
            ]
        );
    }
}
