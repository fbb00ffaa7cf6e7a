//! What must hold of a pod's volumes.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::quantity::Amount;
use serde_json::Value;

use super::containers::Volumes;
use super::environment::{validate_field, validate_resource};
use crate::kubernetes::checks::{descending_path, list, no_backsteps, number, required_syntax, text};
use crate::meta;

/// The kinds of volumes, in the order in which they are looked at.
const SOURCES: [&str; 29] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
];
const HOST_PATHS: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// Checks the volumes of a spec; answers those that are sound.
pub(super) fn validate<'v>(spec: &'v Value, path: &Path, errors: &mut ErrorList) -> Volumes<'v> {
    let mut known = Volumes::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let at = path.index(index);
        let mut wrong = ErrorList::new();
        validate_source(volume, &at, &mut wrong);
        let name = text(volume, "name");
        required_syntax(name, meta::dns1123_label, &at.child("name"), &mut wrong);
        if !name.is_empty() && known.contains_key(name) {
            wrong.push(Error::duplicate(&at.child("name"), name));
        }
        if wrong.is_empty() {
            known.insert(name, volume);
        }
        errors.append(&mut wrong);
    }
    known
}

fn validate_source(volume: &Value, path: &Path, errors: &mut ErrorList) {
    let mut found = SOURCES.iter().filter_map(|key| Some((*key, volume.get(*key)?)));
    let Some((key, source)) = found.next() else { return };
    let at = path.child(key);
    match key {
        "emptyDir" => {
            let size = text(source, "sizeLimit").parse::<Amount>();
            if size.is_ok_and(Amount::is_negative) {
                let why = "SizeLimit field must be a valid resource quantity";
                errors.push(Error::forbidden(&at.child("sizeLimit"), why));
            }
        }
        "hostPath" => validate_host_path(source, &at, errors),
        "secret" => {
            required(source, &["secretName"], &at, errors);
            validate_files(source, &at, errors);
        }
        "configMap" => {
            required(source, &["name"], &at, errors);
            validate_files(source, &at, errors);
        }
        "nfs" => {
            required(source, &["server", "path"], &at, errors);
            if !text(source, "path").starts_with('/') {
                let why = "must be an absolute path";
                errors.push(Error::invalid(&at.child("path"), text(source, "path"), why));
            }
        }
        "persistentVolumeClaim" => required(source, &["claimName"], &at, errors),
        "downwardAPI" => {
            mode(source, "defaultMode", &at, errors);
            for item in list(source, "items") {
                // upstream does not tell which
                validate_pod_file(item, &at, errors);
            }
        }
        "projected" => validate_projected(source, &at, errors),
        "csi" => required(source, &["driver"], &at, errors),
        "ephemeral" if source.get("volumeClaimTemplate").is_none() => {
            errors.push(Error::required(&at.child("volumeClaimTemplate"), ""));
        }
        _ => {}
    }
    for (key, _) in found {
        errors.push(Error::forbidden(
            &path.child(key),
            "may not specify more than 1 volume type",
        ));
    }
}

fn required(source: &Value, keys: &[&str], at: &Path, errors: &mut ErrorList) {
    let missing = keys.iter().filter(|key| text(source, key).is_empty());
    errors.extend(missing.map(|key| Error::required(&at.child(key), "")));
}

/// The path and type of a folder of the node.
pub(in crate::kubernetes) fn validate_host_path(source: &Value, at: &Path, errors: &mut ErrorList) {
    let place = text(source, "path");
    if place.is_empty() {
        errors.push(Error::required(&at.child("path"), ""));
        return;
    }
    no_backsteps(place, &at.child("path"), errors);
    let kind = text(source, "type");
    if !HOST_PATHS.contains(&kind) {
        errors.push(Error::not_supported(&at.child("type"), kind, &HOST_PATHS));
    }
}

fn mode(source: &Value, key: &str, at: &Path, errors: &mut ErrorList) {
    if let Some(mode) = number(source, key).filter(|mode| !(0..=0o777).contains(mode)) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(Error::invalid(&at.child(key), mode, why));
    }
}

/// A path of a file in a volume.
fn file_path(value: &str, at: &Path, errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(Error::required(at, ""));
        return;
    }
    descending_path(value, at, errors);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.push(Error::invalid(at, value, "must not start with '..'"));
    }
}

/// The files that a secret or config map becomes.
fn validate_files(source: &Value, at: &Path, errors: &mut ErrorList) {
    mode(source, "defaultMode", at, errors);
    validate_items(source, at, errors);
}

fn validate_items(source: &Value, at: &Path, errors: &mut ErrorList) {
    for (index, item) in list(source, "items").iter().enumerate() {
        let at = at.child("items").index(index);
        required(item, &["key"], &at, errors);
        file_path(text(item, "path"), &at.child("path"), errors);
        mode(item, "mode", &at, errors);
    }
}

/// A file that tells of the pod.
fn validate_pod_file(item: &Value, at: &Path, errors: &mut ErrorList) {
    file_path(text(item, "path"), &at.child("path"), errors);
    match (item.get("fieldRef"), item.get("resourceFieldRef")) {
        (Some(reference), other) => {
            validate_field(reference, true, &at.child("fieldRef"), errors);
            if other.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(Error::invalid(at, "resource", why));
            }
        }
        (None, Some(reference)) => validate_resource(reference, true, &at.child("resourceFieldRef"), errors),
        (None, None) => {
            let why = "one of fieldRef and resourceFieldRef is required";
            errors.push(Error::required(at, why));
        }
    }
    mode(item, "mode", at, errors);
}

fn validate_projected(volume: &Value, path: &Path, errors: &mut ErrorList) {
    mode(volume, "defaultMode", path, errors);
    for (index, source) in list(volume, "sources").iter().enumerate() {
        let at = path.child("sources").index(index);
        let keys = [
            "secret",
            "configMap",
            "downwardAPI",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ];
        let found: Vec<&str> = keys.into_iter().filter(|key| source.get(*key).is_some()).collect();
        for (number, key) in found.iter().enumerate() {
            let Some(own) = source.get(*key) else { continue };
            let place = at.child(key);
            if number > 0 {
                let why = "may not specify more than 1 volume type per source";
                errors.push(Error::forbidden(&at, why));
                continue;
            }
            match *key {
                "secret" | "configMap" => {
                    required(own, &["name"], &place, errors);
                    validate_items(own, &place, errors);
                }
                "downwardAPI" => {
                    for item in list(own, "items") {
                        validate_pod_file(item, &place, errors);
                    }
                }
                "serviceAccountToken" => validate_token(own, &place, path, errors),
                _ => {}
            }
        }
    }
}

fn validate_token(token: &Value, at: &Path, volume: &Path, errors: &mut ErrorList) {
    let why = match number(token, "expirationSeconds") {
        Some(..600) => Some("may not specify a duration less than 10 minutes"),
        Some(seconds) if seconds > 1 << 32 => Some("may not specify a duration larger than 2^32 seconds"),
        _ => None,
    };
    if let Some(why) = why {
        let seconds = number(token, "expirationSeconds").unwrap_or(0);
        errors.push(Error::invalid(&at.child("expirationSeconds"), seconds, why));
    }
    match text(token, "path") {
        // upstream looks for it in the volume
        "" => errors.push(Error::required(&volume.child("path"), "")),
        path => file_path(path, &at.child("path"), errors),
    }
}
