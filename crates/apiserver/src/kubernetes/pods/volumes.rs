//! What must hold of a pod's volumes.

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::quantity::Amount;
use serde_json::Value;

use super::containers::{PULL_POLICIES, Volumes};
use super::environment::{validate_field, validate_resource};
use super::in_tree;
use crate::kubernetes::checks::{
    descending_path, labels, list, map, no_backsteps, number, required_syntax, syntax, text,
};
use crate::kubernetes::{claims, drivers};
use crate::meta;

/// The kinds of volumes, in the order in which they are looked at.
pub(in crate::kubernetes) const SOURCES: [&str; 30] = [
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
    "image",
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

/// Checks the volumes of a spec; answers those that are sound. `pod` is the name of the pod
/// whose spec it is; none in a template.
pub(super) fn validate<'v>(spec: &'v Value, pod: Option<&str>, path: &Path, errors: &mut ErrorList) -> Volumes<'v> {
    let mut known = Volumes::new();
    let volumes = list(spec, "volumes");
    let made: Vec<String> = match pod {
        Some(pod) if !pod.is_empty() => volumes
            .iter()
            .filter(|volume| volume.get("ephemeral").is_some())
            .map(|volume| format!("{pod}-{}", text(volume, "name")))
            .collect(),
        _ => Vec::new(),
    };
    for (index, volume) in volumes.iter().enumerate() {
        let at = path.index(index);
        let mut wrong = ErrorList::new();
        validate_source(volume, pod, &at, &mut wrong);
        let name = text(volume, "name");
        required_syntax(name, meta::dns1123_label, &at.child("name"), &mut wrong);
        if !name.is_empty() && known.contains_key(name) {
            wrong.push(Error::duplicate(&at.child("name"), name));
        }
        if wrong.is_empty() {
            known.insert(name, volume);
        }
        errors.append(&mut wrong);
        if let Some(claim) = volume.get("persistentVolumeClaim").map(|own| text(own, "claimName"))
            && made.iter().any(|own| own == claim)
        {
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            let at = at.child("persistentVolumeClaim").child("claimName");
            errors.push(Error::invalid(&at, claim, why));
        }
    }
    known
}

fn validate_source(volume: &Value, pod: Option<&str>, path: &Path, errors: &mut ErrorList) {
    let mut found = SOURCES.iter().filter_map(|key| Some((*key, volume.get(*key)?)));
    let Some((key, source)) = found.next() else {
        errors.push(Error::required(path, "must specify a volume type"));
        return;
    };
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
        "persistentVolumeClaim" => required(source, &["claimName"], &at, errors),
        "downwardAPI" => {
            mode(source, "defaultMode", &at, errors);
            for item in list(source, "items") {
                // upstream does not tell which
                validate_pod_file(item, &at, errors);
            }
        }
        "projected" => validate_projected(source, &at, errors),
        "csi" => {
            drivers::driver_name(source, "driver", &at, errors);
            if let Some(secret) = source.get("nodePublishSecretRef") {
                match text(secret, "name") {
                    "" => errors.push(Error::required(&at.child("nodePublishSecretRef").child("name"), "")),
                    name => syntax(meta::dns1123_subdomain(name), name, &at.child("name"), errors),
                }
            }
        }
        "ephemeral" => validate_ephemeral(source, text(volume, "name"), pod, path, errors),
        "image" => {
            if pod.is_some() {
                required(source, &["reference"], &at, errors);
            }
            match text(source, "pullPolicy") {
                "" => errors.push(Error::required(&at.child("pullPolicy"), "")),
                policy if !PULL_POLICIES.contains(&policy) => {
                    errors.push(Error::not_supported(&at.child("pullPolicy"), policy, &PULL_POLICIES));
                }
                _ => {}
            }
        }
        _ => in_tree::validate(key, source, path, errors),
    }
    for (key, _) in found {
        errors.push(Error::forbidden(
            &path.child(in_tree::name_of_second(key)),
            "may not specify more than 1 volume type",
        ));
    }
    if let Some(target) = volume.get("iscsi").filter(|own| own.get("initiatorName").is_some()) {
        let name = text(volume, "name");
        if name.len() + 1 + text(target, "targetPortal").len() > 64 {
            let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
            errors.push(Error::invalid(&path.child("name"), name, why));
        }
    }
}

/// The metadata of a template of claims, which has labels and annotations only.
pub(in crate::kubernetes) fn template_metadata(metadata: &Value, path: &Path, errors: &mut ErrorList) {
    for (key, _) in map(metadata, "annotations") {
        let wrong = meta::qualified_name(&key.to_lowercase());
        syntax(wrong, key, &path.child("annotations"), errors);
    }
    labels(metadata, "labels", path, errors);
    for (key, told) in NOT_OF_TEMPLATES {
        if metadata.get(key).is_some_and(|value| !value.is_null()) {
            errors.push(Error::forbidden(&path.child(told), "cannot be set"));
        }
    }
}

/// Members of metadata that templates of claims cannot have, in the order of Go's fields, and what refusals call them.
const NOT_OF_TEMPLATES: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

/// A volume for which a claim is made with the pod.
fn validate_ephemeral(source: &Value, volume: &str, pod: Option<&str>, path: &Path, errors: &mut ErrorList) {
    let at = path.child("ephemeral").child("volumeClaimTemplate");
    match source.get("volumeClaimTemplate") {
        None => errors.push(Error::required(&at, "")),
        Some(template) => {
            let metadata = template.get("metadata").unwrap_or(&Value::Null);
            template_metadata(metadata, &at.child("metadata"), errors);
            let spec = template.get("spec").unwrap_or(&Value::Null);
            claims::validate_spec(spec, &at.child("spec"), errors);
        }
    }
    if let Some(pod) = pod.filter(|pod| !pod.is_empty() && !volume.is_empty()) {
        let claim = format!("{pod}-{volume}");
        for why in meta::dns1123_subdomain(&claim) {
            let why = format!("PVC name {}: {why}", go_quote(&claim));
            errors.push(Error::invalid(&path.child("name"), volume, why));
        }
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
        validate_item(item, &at.child("items").index(index), errors);
    }
}

fn validate_item(item: &Value, at: &Path, errors: &mut ErrorList) {
    required(item, &["key"], at, errors);
    file_path(text(item, "path"), &at.child("path"), errors);
    mode(item, "mode", at, errors);
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

/// Notes a path of a file that is put into a volume, which no other source may have. `shown` is what messages show.
fn once(place: &str, shown: &str, paths: &mut Vec<String>, volume: &Path, errors: &mut ErrorList) {
    if place.is_empty() {
        return;
    }
    if paths.iter().any(|own| own == place) {
        errors.push(Error::invalid(volume, shown, "conflicting duplicate paths"));
    } else {
        paths.push(place.to_owned());
    }
}

fn validate_projected(volume: &Value, path: &Path, errors: &mut ErrorList) {
    mode(volume, "defaultMode", path, errors);
    let mut paths = Vec::new();
    for (index, source) in list(volume, "sources").iter().enumerate() {
        let at = path.child("sources").index(index);
        let mut found = 0;
        for key in ["secret", "configMap", "downwardAPI", "serviceAccountToken"] {
            let Some(own) = source.get(key) else { continue };
            found += 1;
            let place = at.child(key);
            match key {
                "secret" | "configMap" => {
                    required(own, &["name"], &place, errors);
                    for (index, item) in list(own, "items").iter().enumerate() {
                        validate_item(item, &place.child("items").index(index), errors);
                        once(text(item, "path"), text(own, "name"), &mut paths, path, errors);
                    }
                }
                "downwardAPI" => {
                    for item in list(own, "items") {
                        validate_pod_file(item, &place, errors);
                        once(text(item, "path"), text(item, "path"), &mut paths, path, errors);
                    }
                }
                _ => validate_token(own, &place, path, errors),
            }
        }
        if found > 1 {
            let why = "may not specify more than 1 volume type per source";
            errors.push(Error::forbidden(&at, why));
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
        path => file_path(path, &volume.child("path"), errors),
    }
}
