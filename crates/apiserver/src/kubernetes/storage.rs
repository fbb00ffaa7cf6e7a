//! Kinds that hold data: secrets, config maps, volumes and claims.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names::config_key;
use gardener_apimachinery::quantity::Amount;
use serde_json::{Value, json};

use super::checks::{self, list, map, one_of, syntax, text};
use super::strategy::Kind;
use super::{defaults, pods};
use crate::meta;

pub(super) fn secrets(mut kind: Kind) -> Kind {
    kind.default = |secret| {
        let Some(members) = secret.as_object_mut() else { return };
        if let Some(Value::Object(texts)) = members.remove("stringData") {
            let data = members.entry("data").or_insert_with(|| json!({}));
            if let Some(data) = data.as_object_mut() {
                for (key, text) in texts {
                    data.insert(key, STANDARD.encode(text.as_str().unwrap_or_default()).into());
                }
            }
        }
        if members
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .is_empty()
        {
            members.insert("type".into(), "Opaque".into());
        }
    };
    kind.validate = |secret| {
        let mut errors = validate_keys(secret, "data");
        let data = |key: &str| secret.get("data").and_then(|data| data.get(key)).is_some();
        let required: &[&str] = match meta::text(secret, "/type") {
            "kubernetes.io/tls" => &["tls.crt", "tls.key"],
            "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
            "kubernetes.io/dockercfg" => &[".dockercfg"],
            "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
            _ => &[],
        };
        let missing = |key: &str| Error::required(&Path::new("data").key(key), "");
        match meta::text(secret, "/type") {
            "kubernetes.io/dockerconfigjson" => errors.extend(no_json(secret, ".dockerconfigjson")),
            "kubernetes.io/dockercfg" => errors.extend(no_json(secret, ".dockercfg")),
            // one of the two is enough
            "kubernetes.io/basic-auth" if !data("username") && !data("password") => {
                errors.extend(["username", "password"].map(missing));
            }
            "kubernetes.io/service-account-token" => {
                let key = "kubernetes.io/service-account.name";
                let named = secret.pointer("/metadata/annotations").and_then(|all| all.get(key));
                if named.and_then(Value::as_str).unwrap_or_default().is_empty() {
                    errors.push(Error::required(
                        &Path::new("metadata").child("annotations").key(key),
                        "",
                    ));
                }
            }
            _ => {}
        }
        errors.extend(required.iter().filter(|key| !data(key)).map(|key| missing(key)));
        errors
    };
    kind.validate_update = |secret, old| {
        let mut errors = immutable(secret, old, &["data"]);
        if secret.get("type") != old.get("type") {
            errors.push(Error::invalid(
                &Path::new("type"),
                meta::text(secret, "/type"),
                "field is immutable",
            ));
        }
        errors
    };
    kind.fields = |secret| vec![("type".into(), meta::text(secret, "/type").into())];
    kind
}

/// What is wrong with a value that has to be JSON, in Go's words; none where there is no value.
fn no_json(secret: &Value, key: &str) -> Option<Error> {
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    let bytes = STANDARD.decode(encoded).ok()?;
    let error = serde_json::from_slice::<Value>(&bytes).err()?;
    let why = match bytes.get(error.column().saturating_sub(1)) {
        Some(first) if !error.is_eof() && error.line() == 1 && error.column() == 1 => {
            format!(
                "invalid character '{}' looking for beginning of value",
                first.escape_ascii()
            )
        }
        _ if error.is_eof() => "unexpected end of JSON input".to_owned(),
        _ => error.to_string(),
    };
    let path = Path::new("data").key(key);
    Some(Error::invalid(&path, "<secret contents redacted>", why))
}

pub(super) fn config_maps(mut kind: Kind) -> Kind {
    kind.validate = |map| {
        let mut errors = validate_keys(map, "data");
        let binary = map.get("binaryData").and_then(Value::as_object);
        let texts = map.get("data").and_then(Value::as_object).into_iter().flatten();
        for (key, _) in texts.filter(|(key, _)| binary.is_some_and(|binary| binary.contains_key(*key))) {
            let at = Path::new("data").key(key);
            errors.push(Error::invalid(
                &at,
                key.as_str(),
                "duplicate of key present in binaryData",
            ));
        }
        errors.extend(validate_keys(map, "binaryData"));
        errors
    };
    kind.validate_update = |map, old| immutable(map, old, &["data", "binaryData"]);
    kind
}

/// Most bytes that a secret or config map holds.
const MAX_DATA: usize = 1024 * 1024;

fn validate_keys(object: &Value, member: &str) -> ErrorList {
    let mut errors = Vec::new();
    let path = Path::new(member);
    let mut total = 0;
    for (key, value) in object.get(member).and_then(Value::as_object).into_iter().flatten() {
        let wrong = config_key(key).into_iter();
        errors.extend(wrong.map(|why| Error::invalid(&path.key(key), key.as_str(), why)));
        total += value.as_str().map_or(0, str::len);
    }
    if total > MAX_DATA {
        errors.push(Error::too_long(&path, MAX_DATA));
    }
    errors
}

fn immutable(object: &Value, old: &Value, members: &[&str]) -> ErrorList {
    if old.get("immutable").and_then(Value::as_bool) != Some(true) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    if object.get("immutable").and_then(Value::as_bool) != Some(true) {
        errors.push(Error::forbidden(
            &Path::new("immutable"),
            "field is immutable when `immutable` is set",
        ));
    }
    errors.extend(
        members
            .iter()
            .filter(|member| object.get(**member) != old.get(**member))
            .map(|member| Error::forbidden(&Path::new(member), "field is immutable when `immutable` is set")),
    );
    errors
}

/// A source of data without kind or name is none.
fn drop_empty_source(claim: &mut Value) {
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    for key in ["dataSource", "dataSourceRef"] {
        if spec
            .get(key)
            .is_some_and(|source| text(source, "kind").is_empty() && text(source, "name").is_empty())
        {
            spec.remove(key);
        }
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut finalizers = meta::finalizers(object);
    if !finalizers.iter().any(|own| own == finalizer) {
        finalizers.push(finalizer.to_owned());
        meta::set(object, "finalizers", Some(json!(finalizers)));
    }
}

/// How claims and volumes may be used.
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

fn validate_modes(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let at = path.child("accessModes");
    let modes: Vec<&str> = list(spec, "accessModes").iter().filter_map(Value::as_str).collect();
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.push(Error::not_supported(&at, *mode, &ACCESS_MODES));
    }
    if modes.len() > 1 && modes.contains(&"ReadWriteOncePod") {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(Error::forbidden(&at, why));
    }
}

fn validate_class(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        syntax(
            meta::dns1123_subdomain(class),
            class,
            &path.child("storageClassName"),
            errors,
        );
    }
}

fn positive(amount: Option<&Value>, at: &Path, errors: &mut ErrorList) {
    let Some(shown) = amount.and_then(Value::as_str) else {
        return;
    };
    let Ok(amount) = shown.parse::<Amount>() else { return };
    if amount.is_negative() || amount.is_zero() {
        errors.push(Error::invalid(at, shown, "must be greater than zero"));
    }
}

/// Storage classes: all but what they allow is decided once.
pub(super) fn classes(mut kind: Kind) -> Kind {
    kind.validate = |class| {
        let mut errors = Vec::new();
        let (root, at) = (Path::root(), Path::new("provisioner"));
        match text(class, "provisioner") {
            "" => errors.push(Error::required(&at, "")),
            name => syntax(meta::qualified_name(&name.to_lowercase()), name, &at, &mut errors),
        }
        if map(class, "parameters").any(|(key, _)| key.is_empty()) {
            let at = Path::new("parameters");
            errors.push(Error::invalid(&at, "", "field can not be empty."));
        }
        one_of(class, "reclaimPolicy", &["Delete", "Retain"], &root, &mut errors);
        let modes = ["Immediate", "WaitForFirstConsumer"];
        one_of(class, "volumeBindingMode", &modes, &root, &mut errors);
        errors
    };
    kind.validate_update = |class, old| {
        let mut errors = Vec::new();
        for key in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            if class.get(key) != old.get(key) {
                let value = class.get(key).cloned().unwrap_or(Value::Null);
                errors.push(Error::invalid(&Path::new(key), value, "field is immutable"));
            }
        }
        errors
    };
    kind
}

/// What drivers say of nodes.
pub(super) fn csi_nodes(mut kind: Kind) -> Kind {
    kind.validate = |node| {
        let mut errors = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for (index, driver) in meta::elements(node, "/spec/drivers").iter().enumerate() {
            let at = Path::new("spec").child("drivers").index(index);
            let name = text(driver, "name");
            checks::required_syntax(name, meta::dns1123_subdomain, &at.child("name"), &mut errors);
            if text(driver, "nodeID").is_empty() {
                errors.push(Error::required(&at.child("nodeID"), ""));
            }
            if names.contains(&name) {
                errors.push(Error::duplicate(&at.child("name"), name));
            }
            names.push(name);
        }
        errors
    };
    kind
}

pub(super) fn attachments(mut kind: Kind) -> Kind {
    kind.validate = |attachment| {
        let mut errors = Vec::new();
        let none = Value::Null;
        let (spec, path) = (attachment.get("spec").unwrap_or(&none), Path::new("spec"));
        checks::required_syntax(
            text(spec, "attacher"),
            meta::dns1123_subdomain,
            &path.child("attacher"),
            &mut errors,
        );
        let source = spec.get("source").unwrap_or(&none);
        let found = ["inlineVolumeSpec", "persistentVolumeName"]
            .iter()
            .filter(|key| source.get(**key).is_some());
        if found.count() != 1 {
            let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.push(Error::required(&path.child("source"), why));
        }
        let node = text(spec, "nodeName");
        syntax(
            meta::dns1123_subdomain(node),
            node,
            &path.child("nodeName"),
            &mut errors,
        );
        errors
    };
    kind
}

pub(super) fn claims(mut kind: Kind) -> Kind {
    kind.validate = |claim| {
        let mut errors = Vec::new();
        let none = Value::Null;
        let (spec, path) = (claim.get("spec").unwrap_or(&none), Path::new("spec"));
        if list(spec, "accessModes").is_empty() {
            let why = "at least 1 access mode is required";
            errors.push(Error::required(&path.child("accessModes"), why));
        }
        if let Some(selector) = spec.get("selector") {
            checks::label_selector(selector, &path.child("selector"), &mut errors);
        }
        validate_modes(spec, &path, &mut errors);
        let at = path.child("resources").key("storage");
        match spec.pointer("/resources/requests/storage") {
            None => errors.push(Error::required(&at, "")),
            amount => positive(amount, &at, &mut errors),
        }
        validate_class(spec, &path, &mut errors);
        one_of(spec, "volumeMode", &VOLUME_MODES, &path, &mut errors);
        errors
    };
    kind.default = |claim| {
        defaults::persistent_volume_claim(claim);
        drop_empty_source(claim);
    };
    kind.validate_update = |claim, old| {
        // what binding sets, and what may grow
        let bound = !meta::text(old, "/spec/volumeName").is_empty();
        let fixed = |claim: &Value| {
            let mut spec = claim.get("spec").cloned().unwrap_or_default();
            if let Some(spec) = spec.as_object_mut() {
                if bound {
                    spec.remove("resources");
                    spec.remove("volumeAttributesClassName");
                } else {
                    spec.remove("volumeName");
                }
                if old.pointer("/spec/storageClassName").is_none() {
                    spec.remove("storageClassName");
                }
            }
            spec
        };
        match fixed(claim) == fixed(old) {
            true => Vec::new(),
            false => vec![Error::forbidden(
                &Path::new("spec"),
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
            )],
        }
    };
    kind.default_stored = pending;
    kind.prepare_create = |_, claim| {
        add_finalizer(claim, "kubernetes.io/pvc-protection");
        if let Some(members) = claim.as_object_mut() {
            members.insert("status".into(), json!({"phase": "Pending"}));
        }
        Ok(())
    };
    kind
}

/// What is not bound yet is pending.
fn pending(object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    let status = members.entry("status").or_insert_with(|| json!({}));
    if let Some(status) = status.as_object_mut() {
        status.entry("phase").or_insert_with(|| json!("Pending"));
    }
}

/// The sources of persistent volumes that are told apart here.
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

fn validate_volume(volume: &Value) -> ErrorList {
    let mut errors = Vec::new();
    let none = Value::Null;
    let (spec, path) = (volume.get("spec").unwrap_or(&none), Path::new("spec"));
    if list(spec, "accessModes").is_empty() {
        errors.push(Error::required(&path.child("accessModes"), ""));
    }
    validate_modes(spec, &path, &mut errors);
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
        let amount = value.as_str().and_then(|text| text.parse::<Amount>().ok());
        if let Some(amount) = amount.filter(|amount| amount.is_negative()) {
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
    let mut found = SOURCES.iter().filter_map(|key| Some((*key, spec.get(*key)?)));
    match found.next() {
        None => errors.push(Error::required(&path, "must specify a volume type")),
        Some(("hostPath", source)) => pods::volumes::validate_host_path(source, &path.child("hostPath"), &mut errors),
        Some(_) => {}
    }
    for (key, _) in found {
        let why = "may not specify more than 1 volume type";
        errors.push(Error::forbidden(&path.child(key), why));
    }
    validate_class(spec, &path, &mut errors);
    one_of(spec, "volumeMode", &VOLUME_MODES, &path, &mut errors);
    errors
}

pub(super) fn volumes(mut kind: Kind) -> Kind {
    kind.validate = validate_volume;
    kind.whole_first = true;
    kind.validate_update = |volume, old| {
        let source = |volume: &Value| SOURCES.map(|key| volume.get("spec").and_then(|spec| spec.get(key)).cloned());
        if source(volume) == source(old) {
            return Vec::new();
        }
        let at = Path::new("spec").child("persistentvolumesource");
        let why = "spec.persistentvolumesource is immutable after creation";
        vec![Error::forbidden(&at, why)]
    };
    kind.default_stored = pending;
    kind.prepare_create = |context, volume| {
        add_finalizer(volume, "kubernetes.io/pv-protection");
        if let Some(members) = volume.as_object_mut() {
            members.insert(
                "status".into(),
                json!({"phase": "Pending", "lastPhaseTransitionTime": meta::rfc3339(context.now)}),
            );
        }
        Ok(())
    };
    kind
}
