//! What must hold of volumes whose drivers once were part of Kubernetes.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::Value;

use crate::kubernetes::checks::{descending_path, is_true, list, map, number, syntax, text};
use crate::meta;

const CACHING_MODES: [&str; 3] = ["None", "ReadOnly", "ReadWrite"];
const DISK_KINDS: [&str; 3] = ["Dedicated", "Managed", "Shared"];
const MANAGED_DISKS: &str =
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const BLOB_DISKS: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
const HOST_PORTS: &str = "must be a host:port pair or multiple pairs separated by commas";

/// The name under which upstream refuses a kind of volume beside another.
pub(super) fn name_of_second(key: &str) -> &str {
    match key {
        "cephfs" => "cephFS",
        "downwardAPI" => "downwarAPI",
        other => other,
    }
}

/// Checks the source of a volume; the path is the volume's.
pub(super) fn validate(key: &str, source: &Value, path: &Path, errors: &mut ErrorList) {
    let at = path.child(match key {
        "gcePersistentDisk" => "persistentDisk",
        other => other,
    });
    let needed: &[&str] = match key {
        "gitRepo" => &["repository"],
        "gcePersistentDisk" => &["pdName"],
        "awsElasticBlockStore" | "cinder" | "portworxVolume" => &["volumeID"],
        "nfs" => &["server", "path"],
        "glusterfs" => &["endpoints", "path"],
        "flexVolume" => &["driver"],
        "azureFile" => &["secretName", "shareName"],
        "azureDisk" => &["diskName", "diskURI"],
        "vsphereVolume" => &["volumePath"],
        "photonPersistentDisk" => &["pdID"],
        "scaleIO" => &["gateway", "system", "volumeName"],
        "iscsi" => &["targetPortal", "iqn"],
        _ => &[],
    };
    if matches!(key, "rbd" | "cephfs") && list(source, "monitors").is_empty() {
        errors.push(Error::required(&at.child("monitors"), ""));
    }
    let missing = needed.iter().filter(|key| text(source, key).is_empty());
    errors.extend(missing.map(|key| Error::required(&at.child(key), "")));
    match key {
        "gitRepo" => descending_path(text(source, "directory"), &at.child("directory"), errors),
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            if let Some(part) = number(source, "partition").filter(|part| !(0..=255).contains(part)) {
                let why = "must be between 1 and 255, inclusive";
                errors.push(Error::invalid(&at.child("partition"), part, why));
            }
        }
        "nfs" => {
            let own = text(source, "path");
            if !own.starts_with('/') {
                errors.push(Error::invalid(&at.child("path"), own, "must be an absolute path"));
            }
        }
        "rbd" if text(source, "image").is_empty() => errors.push(Error::required(&at.child("image"), "")),
        "cinder" => named_secret(source, &at, errors),
        "flocker" => validate_flocker(source, &at, errors),
        "quobyte" => validate_quobyte(source, &at, errors),
        "fc" => validate_fc(source, &at, errors),
        "iscsi" => validate_iscsi(source, &at, errors),
        "flexVolume" => validate_flex(source, &at, errors),
        "azureDisk" => validate_azure_disk(source, &at, errors),
        "storageos" => {
            match text(source, "volumeName") {
                "" => errors.push(Error::required(&at.child("volumeName"), "")),
                name => syntax(meta::dns1123_label(name), name, &at.child("volumeName"), errors),
            }
            let namespace = text(source, "volumeNamespace");
            if !namespace.is_empty() {
                let wrong = meta::dns1123_label(namespace);
                syntax(wrong, namespace, &at.child("volumeNamespace"), errors);
            }
            named_secret(source, &at, errors);
        }
        _ => {}
    }
}

/// A reference to a secret, where there is one, has a name.
fn named_secret(source: &Value, at: &Path, errors: &mut ErrorList) {
    if source.get("secretRef").is_some_and(|own| text(own, "name").is_empty()) {
        errors.push(Error::required(&at.child("secretRef").child("name"), ""));
    }
}

/// Of pods and of persistent volumes, as [`validate_fc`].
pub(in crate::kubernetes) fn validate_flocker(source: &Value, at: &Path, errors: &mut ErrorList) {
    let (name, id) = (text(source, "datasetName"), text(source, "datasetUUID"));
    match (name.is_empty(), id.is_empty()) {
        (true, true) => {
            let why = "one of datasetName and datasetUUID is required";
            errors.push(Error::required(at, why));
        }
        (false, false) => {
            let why = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(Error::invalid(at, "resource", why));
        }
        _ => {}
    }
    if name.contains('/') {
        errors.push(Error::invalid(&at.child("datasetName"), name, "must not contain '/'"));
    }
}

fn validate_quobyte(source: &Value, at: &Path, errors: &mut ErrorList) {
    let registry = text(source, "registry");
    if registry.is_empty() {
        errors.push(Error::required(&at.child("registry"), HOST_PORTS));
    } else if text(source, "tenant").len() >= 65 {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(Error::required(&at.child("tenant"), why));
    } else {
        let is_pair = |pair: &&str| {
            let (host, _) = pair.rsplit_once(':').unwrap_or(("[", ""));
            let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            inner.map_or(!host.contains([':', '[', ']']), |inner| !inner.contains(['[', ']']))
        };
        for _ in registry.split(',').filter(|pair| !is_pair(pair)) {
            errors.push(Error::invalid(&at.child("registry"), registry, HOST_PORTS));
        }
    }
    if text(source, "volume").is_empty() {
        errors.push(Error::required(&at.child("volume"), ""));
    }
}

/// A volume on Fibre Channel.
pub(in crate::kubernetes) fn validate_fc(source: &Value, at: &Path, errors: &mut ErrorList) {
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
        match number(source, "lun") {
            None => {
                let why = "lun is required if targetWWNs is specified";
                errors.push(Error::required(&at.child("lun"), why));
            }
            Some(lun) => unit(lun, at, errors),
        }
    }
}

fn unit(lun: i64, at: &Path, errors: &mut ErrorList) {
    if !(0..=255).contains(&lun) {
        let why = "must be between 0 and 255, inclusive";
        errors.push(Error::invalid(&at.child("lun"), lun, why));
    }
}

/// What is wrong with the name of a target or initiator.
fn iscsi_name(name: &str) -> Option<&'static str> {
    let wrong = "must be valid format";
    let alphanumeric =
        |text: &str, len: usize| text.len() == len && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // one character of any kind stands between prefix and number
    let behind_one = |text: &str| {
        text.chars()
            .next()
            .map(|first| text.split_at(first.len_utf8()).1.to_owned())
    };
    let is_right = match name.get(..3) {
        Some("iqn") => is_qualified(name),
        Some("eui") => behind_one(name.get(3..)?).is_some_and(|rest| alphanumeric(&rest, 16)),
        Some("naa") => behind_one(name.get(3..)?).is_some_and(|rest| alphanumeric(&rest, 32)),
        _ => return Some("must be valid format starting with iqn, eui, or naa"),
    };
    (!is_right).then_some(wrong)
}

/// Whether a name ends like `iqn.2001-04.com.example:storage`.
fn is_qualified(name: &str) -> bool {
    name.match_indices("iqn.").any(|(at, prefix)| {
        let Some((date, rest)) = name.get(at + prefix.len()..).and_then(|rest| rest.split_once('.')) else {
            return false;
        };
        let is_date = date.len() == 7
            && date
                .bytes()
                .enumerate()
                .all(|(at, byte)| if at == 4 { byte == b'-' } else { byte.is_ascii_digit() });
        let Some((domain, unit)) = rest.split_once(':') else {
            return false;
        };
        let of_domain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        let of_unit = |byte: u8| !b",;*&$| \t\n\r\x0c".contains(&byte);
        is_date && !domain.is_empty() && domain.bytes().all(of_domain) && !unit.is_empty() && unit.bytes().all(of_unit)
    })
}

fn validate_iscsi(source: &Value, at: &Path, errors: &mut ErrorList) {
    let name = text(source, "iqn");
    if let Some(why) = iscsi_name(name).filter(|_| !name.is_empty()) {
        errors.push(Error::invalid(&at.child("iqn"), name, why));
    }
    unit(number(source, "lun").unwrap_or(0), at, errors);
    let asks_secret = is_true(source, "chapAuthDiscovery") || is_true(source, "chapAuthSession");
    if asks_secret && source.get("secretRef").is_none() {
        errors.push(Error::required(&at.child("secretRef"), ""));
    }
    if let Some(name) = source.get("initiatorName").and_then(Value::as_str)
        && let Some(why) = iscsi_name(name)
    {
        errors.push(Error::invalid(&at.child("initiatorname"), name, why));
    }
}

fn validate_flex(source: &Value, at: &Path, errors: &mut ErrorList) {
    for (key, _) in map(source, "options") {
        let domain = key.split_once('/').map_or(key.as_str(), |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(Error::invalid(&at.child("options").key(key), key.as_str(), why));
        }
    }
}

fn validate_azure_disk(source: &Value, at: &Path, errors: &mut ErrorList) {
    for (key, known) in [("cachingMode", CACHING_MODES), ("kind", DISK_KINDS)] {
        if let Some(own) = source.get(key).and_then(Value::as_str)
            && !known.contains(&own)
        {
            errors.push(Error::not_supported(&at.child(key), own, &known));
        }
    }
    let place = text(source, "diskURI");
    let (begins, form) = match source.get("kind").and_then(Value::as_str) {
        None => return,
        Some("Managed") => ("/subscriptions/", MANAGED_DISKS),
        Some(_) => ("https://", BLOB_DISKS),
    };
    if !place.starts_with(begins) {
        errors.push(Error::not_supported(&at.child("diskURI"), place, &[form]));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_targets() {
        let (sixteen, thirty_two) = ("0123456789abcdef", "0123456789abcdef0123456789abcdef");
        for (name, is_right) in [
            ("iqn.2001-04.com.example:storage.disk1", true),
            ("iqn.2001-04.com.example", false),
            ("iqn.2001-4.com.example:a", false),
            ("iqn.2001-04.com.example:a b", false),
            (&format!("eui.{sixteen}"), true),
            (&format!("eui.{thirty_two}"), false),
            (&format!("naa.{thirty_two}"), true),
            ("naa", false),
            ("abc", false),
        ] {
            assert_eq!(iscsi_name(name).is_none(), is_right, "{name}");
        }
    }

    #[test]
    fn what_is_missing_is_told() {
        for (key, source, expected) in [
            (
                "gcePersistentDisk",
                json!({}),
                vec!["v.persistentDisk.pdName: Required value"],
            ),
            (
                "rbd",
                json!({}),
                vec!["v.rbd.monitors: Required value", "v.rbd.image: Required value"],
            ),
            ("quobyte", json!({"registry": "a:1,[::1]:2", "volume": "v"}), vec![]),
            (
                "quobyte",
                json!({"registry": "a", "volume": "v"}),
                vec![
                    "v.quobyte.registry: Invalid value: \"a\": must be a host:port pair or multiple pairs separated by commas",
                ],
            ),
            (
                "azureDisk",
                json!({"diskName": "d", "diskURI": "/subscriptions/x", "kind": "Managed"}),
                vec![],
            ),
            (
                "flexVolume",
                json!({"driver": "d", "options": {"k8s.io/a": "b"}}),
                vec![
                    "v.flexVolume.options[k8s.io/a]: Invalid value: \"k8s.io/a\": kubernetes.io and k8s.io namespaces are reserved",
                ],
            ),
        ] {
            let mut errors = Vec::new();
            validate(key, &source, &Path::new("v"), &mut errors);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{key} {source}");
        }
    }
}
