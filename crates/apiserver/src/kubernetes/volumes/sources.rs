//! The sources of persistent volumes: where a volume really is.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use crate::kubernetes::checks::{list, map, no_backsteps, number, one_of, required_syntax, syntax, text};
use crate::kubernetes::drivers;
use crate::kubernetes::pods::{self, in_tree};
use crate::meta;

/// All sources, in the order in which they are looked at.
pub(super) const SOURCES: [&str; 22] = [
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

/// Sources of which options of mounting are known.
const WITH_MOUNT_OPTIONS: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

fn required(source: &Value, key: &str, at: &Path, errors: &mut ErrorList) {
    if text(source, key).is_empty() {
        errors.push(Error::required(&at.child(key), ""));
    }
}

fn required_list(source: &Value, key: &str, at: &Path, errors: &mut ErrorList) {
    if list(source, key).is_empty() {
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

fn partition(source: &Value, at: &Path, errors: &mut ErrorList) {
    if let Some(partition) = number(source, "partition").filter(|partition| !(0..=255).contains(partition)) {
        // upstream says so of a range that begins at 0
        let why = "must be between 1 and 255, inclusive";
        errors.push(Error::invalid(&at.child("partition"), partition, why));
    }
}

/// Who may see the secret of a volume is told with its namespace.
fn secret(source: &Value, at: &Path, errors: &mut ErrorList) {
    if let Some(secret) = source.get("secretRef") {
        let at = at.child("secretRef");
        required(secret, "name", &at, errors);
        required(secret, "namespace", &at, errors);
    }
}

fn validate_glusterfs(source: &Value, at: &Path, errors: &mut ErrorList) {
    required(source, "endpoints", at, errors);
    required(source, "path", at, errors);
    let at = at.child("endpointsNamespace");
    match source.get("endpointsNamespace").and_then(Value::as_str) {
        None => {}
        Some("") => {
            let why = "if the endpointnamespace is set, it must be a valid namespace name";
            errors.push(Error::invalid(&at, "", why));
        }
        Some(own) => syntax(meta::dns1123_label(own), own, &at, errors),
    }
}

/// Whether a text is a host and a port, with brackets around a host that has colons.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, _)) = text.rsplit_once(':') else {
        return false;
    };
    let inner = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']'),
        None => Some(host).filter(|host| !host.contains(':')),
    };
    inner.is_some_and(|inner| !inner.contains(['[', ']']))
}

fn validate_quobyte(source: &Value, at: &Path, errors: &mut ErrorList) {
    let (registry, why) = (
        text(source, "registry"),
        "must be a host:port pair or multiple pairs separated by commas",
    );
    if registry.is_empty() {
        errors.push(Error::required(&at.child("registry"), why));
    } else if text(source, "tenant").len() >= 65 {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(Error::required(&at.child("tenant"), why));
    } else {
        let wrong = registry.split(',').filter(|own| !is_host_and_port(own));
        errors.extend(wrong.map(|_| Error::invalid(&at.child("registry"), registry, why)));
    }
    required(source, "volume", at, errors);
}

fn validate_flex(source: &Value, at: &Path, errors: &mut ErrorList) {
    required(source, "driver", at, errors);
    for (key, _) in map(source, "options") {
        let domain = key.split_once('/').map_or(key.as_str(), |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if [".kubernetes.io", ".k8s.io"].iter().any(|own| domain.ends_with(own)) {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(Error::invalid(&at.child("options").key(key), key.as_str(), why));
        }
    }
}

fn validate_azure_disk(source: &Value, at: &Path, errors: &mut ErrorList) {
    required(source, "diskName", at, errors);
    required(source, "diskURI", at, errors);
    one_of(source, "cachingMode", &["None", "ReadOnly", "ReadWrite"], at, errors);
    one_of(source, "kind", &["Dedicated", "Managed", "Shared"], at, errors);
    let (begin, form) = match source.get("kind").and_then(Value::as_str) {
        None => return,
        Some("Managed") => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        Some(_) => (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        ),
    };
    let place = text(source, "diskURI");
    if !place.starts_with(begin) {
        errors.push(Error::not_supported(&at.child("diskURI"), place, &[form]));
    }
}

fn validate_storage_os(source: &Value, at: &Path, errors: &mut ErrorList) {
    let (name, namespace) = (text(source, "volumeName"), text(source, "volumeNamespace"));
    required_syntax(name, meta::dns1123_label, &at.child("volumeName"), errors);
    if !namespace.is_empty() {
        syntax(
            meta::dns1123_label(namespace),
            namespace,
            &at.child("volumeNamespace"),
            errors,
        );
    }
    secret(source, at, errors);
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
        "fc" => in_tree::validate_fc(source, at, errors),
        "local" => match text(source, "path") {
            "" => required(source, "path", at, errors),
            path => no_backsteps(path, &at.child("path"), errors),
        },
        "csi" => validate_csi(source, at, errors),
        "gcePersistentDisk" => {
            required(source, "pdName", at, errors);
            partition(source, at, errors);
        }
        "awsElasticBlockStore" => {
            required(source, "volumeID", at, errors);
            partition(source, at, errors);
        }
        "cinder" => {
            required(source, "volumeID", at, errors);
            secret(source, at, errors);
        }
        "flexVolume" => validate_flex(source, at, errors),
        "azureFile" => {
            required(source, "secretName", at, errors);
            required(source, "shareName", at, errors);
            if source.get("secretNamespace").is_some_and(|own| !own.is_null()) {
                required(source, "secretNamespace", at, errors);
            }
        }
        "vsphereVolume" => required(source, "volumePath", at, errors),
        "portworxVolume" => required(source, "volumeID", at, errors),
        "azureDisk" => validate_azure_disk(source, at, errors),
        "glusterfs" => validate_glusterfs(source, at, errors),
        "flocker" => in_tree::validate_flocker(source, at, errors),
        "rbd" => {
            required_list(source, "monitors", at, errors);
            required(source, "image", at, errors);
        }
        "cephfs" => required_list(source, "monitors", at, errors),
        "quobyte" => validate_quobyte(source, at, errors),
        "photonPersistentDisk" => required(source, "pdID", at, errors),
        "scaleIO" => {
            for key in ["gateway", "system", "volumeName"] {
                required(source, key, at, errors);
            }
        }
        "storageos" => validate_storage_os(source, at, errors),
        _ => {}
    }
}

/// Finds what is wrong with the source of a volume, which has to be one.
pub(super) fn validate(spec: &Value, volume: &str, path: &Path, errors: &mut ErrorList) {
    let has_place = spec.at("/nodeAffinity/required").is_some();
    let mut has_one = false;
    for (key, source) in SOURCES.iter().filter_map(|key| Some((*key, spec.get(*key)?))) {
        // upstream lets these be beside others
        if has_one && key != "flexVolume" {
            let told = if key == "cephfs" { "cephFS" } else { key };
            let why = "may not specify more than 1 volume type";
            errors.push(Error::forbidden(&path.child(told), why));
            continue;
        }
        has_one = true;
        let told = if key == "gcePersistentDisk" {
            "persistentDisk"
        } else {
            key
        };
        validate_source(key, source, volume, &path.child(told), errors);
        if key == "local" && !has_place {
            let why = "Local volume requires node affinity";
            errors.push(Error::required(&path.child("nodeAffinity"), why));
        }
    }
    if !has_one {
        errors.push(Error::required(path, "must specify a volume type"));
    }
}

/// Whether a volume's type knows options of mounting.
pub(super) fn has_mount_options(spec: &Value) -> bool {
    WITH_MOUNT_OPTIONS.iter().any(|key| spec.get(*key).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_are_looked_at() {
        let found = |spec: Value| -> Vec<String> {
            let mut errors = ErrorList::new();
            validate(&spec, "v", &Path::new("spec"), &mut errors);
            errors.iter().map(|error| error.path.to_string()).collect()
        };
        for (spec, expected) in [
            (json!({}), vec!["spec"]),
            (
                json!({"nfs": {"server": "a", "path": "/b"}, "cephfs": {}}),
                vec!["spec.cephFS"],
            ),
            (
                json!({"nfs": {"server": "a", "path": "/b"}, "flexVolume": {}}),
                vec!["spec.flexVolume.driver"],
            ),
            (
                json!({"gcePersistentDisk": {"partition": 256}}),
                vec!["spec.persistentDisk.pdName", "spec.persistentDisk.partition"],
            ),
            (json!({"quobyte": {"registry": "a:1,[b::c]:2", "volume": "v"}}), vec![]),
            (
                json!({"quobyte": {"registry": "a::1,b", "volume": "v"}}),
                vec!["spec.quobyte.registry"; 2],
            ),
            (
                json!({"azureDisk": {"diskName": "a", "diskURI": "b", "kind": "Managed"}}),
                vec!["spec.azureDisk.diskURI"],
            ),
            (json!({"local": {}}), vec!["spec.local.path", "spec.nodeAffinity"]),
        ] {
            assert_eq!(found(spec.clone()), expected, "{spec}");
        }
    }
}
