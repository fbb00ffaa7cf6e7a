//! Persistent volumes.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::quantity::Amount;
use serde_json::{Value, json};

use super::checks::{amount, list, no_backsteps, number, one_of, required_syntax, spec_of, syntax, text};
use super::strategy::Kind;
use super::{drivers, internal, pods, storage};
use crate::meta;

/// How claims and volumes may be used.
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
/// As what volumes are given to pods.
pub(super) const MODES: [&str; 2] = ["Block", "Filesystem"];
const BETA_ANNOTATIONS: [(&str, &str); 2] = [
    (
        "volume.beta.kubernetes.io/storage-class",
        "deprecated since v1.8; use \"storageClassName\" attribute instead",
    ),
    (
        "volume.beta.kubernetes.io/mount-options",
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

/// What is not bound yet is pending.
pub(super) fn pending(object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    let status = members.entry("status").or_insert_with(|| json!({}));
    if let Some(status) = status.as_object_mut() {
        status.entry("phase").or_insert_with(|| json!("Pending"));
    }
}

/// The sources of persistent volumes, in the order in which they are looked at.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

fn required(source: &Value, key: &str, at: &Path, errors: &mut ErrorList) {
    if text(source, key).is_empty() {
        errors.push(Error::required(&at.child(key), ""));
    }
}

fn lun(source: &Value, at: &Path, errors: &mut ErrorList) {
    if let Some(lun) = number(source, "lun").filter(|lun| !(0..=255).contains(lun)) {
        errors.push(Error::invalid(
            &at.child("lun"),
            lun,
            "must be between 0 and 255, inclusive",
        ));
    }
}

/// Whether a text is the name of an initiator or target of iSCSI.
fn is_iscsi_name(name: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(rest) = name.strip_prefix("iqn.") {
        let (date, rest) = rest.split_once('.').unwrap_or_default();
        let bytes = date.as_bytes();
        let is_date = bytes.len() == 7
            && bytes
                .iter()
                .enumerate()
                .all(|(at, byte)| if at == 4 { *byte == b'-' } else { byte.is_ascii_digit() });
        let (domain, unit) = rest
            .split_once(':')
            .map_or((rest, None), |(domain, unit)| (domain, Some(unit)));
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        return is_date
            && domain.starts_with(|first: char| first.is_ascii_alphabetic())
            && domain.bytes().all(fits)
            && unit != Some("");
    }
    if let Some(rest) = name.strip_prefix("eui.") {
        return rest.len() == 16 && is_hex(rest);
    }
    name.strip_prefix("naa.")
        .is_some_and(|rest| matches!(rest.len(), 16 | 32) && is_hex(rest))
}

fn validate_iscsi(source: &Value, volume: &str, at: &Path, errors: &mut ErrorList) {
    required(source, "targetPortal", at, errors);
    let (portal, initiator) = (
        text(source, "targetPortal"),
        source.get("initiatorName").and_then(Value::as_str),
    );
    if initiator.is_some() && volume.len() + 1 + portal.len() > 64 {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
        errors.push(Error::invalid(&at.child("targetportal"), portal, why));
    }
    required(source, "iqn", at, errors);
    let name = text(source, "iqn");
    if !name.is_empty() && !is_iscsi_name(name) {
        errors.push(Error::invalid(&at.child("iqn"), name, "must be valid format"));
    }
    lun(source, at, errors);
    let secret = source.get("secretRef");
    let is_true = |key: &str| source.get(key) == Some(&Value::Bool(true));
    match secret {
        None if is_true("chapAuthDiscovery") || is_true("chapAuthSession") => {
            errors.push(Error::required(&at.child("secretRef"), ""));
        }
        Some(secret) => required(secret, "name", &at.child("secretRef"), errors),
        None => {}
    }
    if let Some(name) = initiator.filter(|name| !is_iscsi_name(name)) {
        errors.push(Error::invalid(&at.child("initiatorname"), name, "must be valid format"));
    }
}

fn validate_fc(source: &Value, at: &Path, errors: &mut ErrorList) {
    let (targets, ids) = (list(source, "targetWWNs"), list(source, "wwids"));
    let place = at.child("targetWWNs");
    match (targets.is_empty(), ids.is_empty()) {
        (true, true) => {
            let why = "must specify either targetWWNs or wwids, but not both";
            errors.push(Error::required(&place, why));
        }
        (false, false) => {
            let why = "targetWWNs and wwids can not be specified simultaneously";
            errors.push(Error::invalid(&place, targets.to_vec(), why));
        }
        _ => {}
    }
    if !targets.is_empty() {
        if number(source, "lun").is_none() {
            let why = "lun is required if targetWWNs is specified";
            errors.push(Error::required(&at.child("lun"), why));
        }
        lun(source, at, errors);
    }
}

fn validate_csi(source: &Value, at: &Path, errors: &mut ErrorList) {
    drivers::driver_name(source, "driver", at, errors);
    required(source, "volumeHandle", at, errors);
    for key in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let Some(secret) = source.get(key) else { continue };
        let at = at.child(key);
        required_syntax(text(secret, "name"), meta::dns1123_subdomain, &at.child("name"), errors);
        required_syntax(
            text(secret, "namespace"),
            meta::dns1123_label,
            &at.child("namespace"),
            errors,
        );
    }
}

fn validate_source(key: &str, source: &Value, volume: &str, at: &Path, errors: &mut ErrorList) {
    match key {
        "hostPath" => pods::volumes::validate_host_path(source, at, errors),
        "nfs" => {
            required(source, "server", at, errors);
            required(source, "path", at, errors);
            let own = text(source, "path");
            if !own.starts_with('/') {
                errors.push(Error::invalid(&at.child("path"), own, "must be an absolute path"));
            }
        }
        "iscsi" => validate_iscsi(source, volume, at, errors),
        "fc" => validate_fc(source, at, errors),
        "local" => {
            required(source, "path", at, errors);
            no_backsteps(text(source, "path"), &at.child("path"), errors);
        }
        "csi" => validate_csi(source, at, errors),
        "gcePersistentDisk" => required(source, "pdName", at, errors),
        "awsElasticBlockStore" | "cinder" => required(source, "volumeID", at, errors),
        "flexVolume" => required(source, "driver", at, errors),
        "azureFile" => {
            required(source, "secretName", at, errors);
            required(source, "shareName", at, errors);
        }
        "vsphereVolume" => required(source, "volumePath", at, errors),
        "portworxVolume" => required(source, "volumeID", at, errors),
        "azureDisk" => {
            required(source, "diskName", at, errors);
            required(source, "diskURI", at, errors);
        }
        "glusterfs" => {
            required(source, "endpoints", at, errors);
            required(source, "path", at, errors);
        }
        _ => {}
    }
}

fn validate_sources(spec: &Value, volume: &str, path: &Path, errors: &mut ErrorList) {
    let mut found = SOURCES.iter().filter_map(|key| Some((*key, spec.get(*key)?)));
    let has_place = spec.pointer("/nodeAffinity/required").is_some();
    match found.next() {
        None => {}
        Some((key, source)) => {
            validate_source(key, source, volume, &path.child(key), errors);
            if key == "local" && !has_place {
                let why = "Local volume requires node affinity";
                errors.push(Error::required(&path.child("nodeAffinity"), why));
            }
        }
    }
    for (key, _) in found {
        let why = "may not specify more than 1 volume type";
        errors.push(Error::forbidden(&path.child(key), why));
    }
    if !SOURCES.iter().any(|key| spec.get(*key).is_some()) {
        errors.push(Error::required(path, "must specify a volume type"));
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
    validate_sources(spec, "", path, errors);
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
    if let Some(required) = spec.pointer("/nodeAffinity/required") {
        let at = path.child("nodeAffinity").child("required");
        pods::scheduling::validate_node_selector(required, &at, &mut errors);
    }
    validate_sources(spec, meta::name(volume), &path, &mut errors);
    let root = spec.pointer("/hostPath/path").and_then(Value::as_str);
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

fn list_text(texts: Option<&Value>) -> String {
    texts.map_or_else(|| "null".to_owned(), Value::to_string)
}

/// Where a volume can be used, as upstream shows it.
fn affinity_text(affinity: Option<&Value>) -> String {
    let Some(required) = affinity.and_then(|affinity| affinity.get("required")) else {
        return "null".to_owned();
    };
    let requirements = |term: &Value, key: &str| -> String {
        let all = list(term, key);
        if all.is_empty() {
            return "null".to_owned();
        }
        let shown: Vec<String> = all
            .iter()
            .map(|one| {
                format!(
                    "{{\"Key\":{},\"Operator\":{},\"Values\":{}}}",
                    Value::from(text(one, "key")),
                    Value::from(text(one, "operator")),
                    list_text(one.get("values"))
                )
            })
            .collect();
        format!("[{}]", shown.join(","))
    };
    let terms: Vec<String> = list(required, "nodeSelectorTerms")
        .iter()
        .map(|term| {
            format!(
                "{{\"MatchExpressions\":{},\"MatchFields\":{}}}",
                requirements(term, "matchExpressions"),
                requirements(term, "matchFields")
            )
        })
        .collect();
    format!("{{\"Required\":{{\"NodeSelectorTerms\":[{}]}}}}", terms.join(","))
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
    if SOURCES.iter().any(|key| own.get(key) != other.get(key)) {
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
    if place.is_some() && spec.get("nodeAffinity") != place {
        let why = "field is immutable, except for updating from beta label to GA";
        errors.push(Error::literal(
            &Path::new("nodeAffinity"),
            affinity_text(spec.get("nodeAffinity")),
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

pub(super) fn volumes(mut kind: Kind) -> Kind {
    kind.validate = validate;
    kind.whole_first = true;
    kind.validate_update = validate_update;
    kind.default_stored = pending;
    kind.prepare_create = |context, volume| {
        storage::add_finalizer(volume, "kubernetes.io/pv-protection");
        if let Some(members) = volume.as_object_mut() {
            members.insert(
                "status".into(),
                json!({"phase": "Pending", "lastPhaseTransitionTime": meta::rfc3339(context.now)}),
            );
        }
        Ok(())
    };
    kind.warnings = |volume, _| {
        let annotations = volume.pointer("/metadata/annotations");
        let has = |key: &str| annotations.is_some_and(|all| all.get(key).is_some());
        let found = BETA_ANNOTATIONS.iter().filter(|(key, _)| has(key));
        let mut warnings: Vec<String> = found
            .map(|(key, why)| format!("metadata.annotations[{key}]: {why}"))
            .collect();
        if text(spec_of(volume), "persistentVolumeReclaimPolicy") == "Recycle" {
            warnings.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
        }
        warnings
    };
    kind
}
