//! What must hold of the environment of containers, and of references to fields of the pod.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::Value;

use super::containers::validate_key;
use crate::kubernetes::checks::{list, required_syntax, syntax, text};
use crate::meta;

/// Fields of pods that the environment may tell.
const OF_ENVIRONMENT: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of pods that files may tell.
const OF_FILES: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// Fields that can be converted, though not all of them may be told.
const KNOWN: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

fn variable(name: &str) -> Vec<String> {
    match name.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'=') {
        true => Vec::new(),
        false => vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        ],
    }
}

pub(super) fn validate(container: &Value, path: &Path, errors: &mut ErrorList) {
    for (index, entry) in list(container, "env").iter().enumerate() {
        let at = path.child("env").index(index);
        required_syntax(text(entry, "name"), variable, &at.child("name"), errors);
        validate_source(entry, &at.child("valueFrom"), errors);
    }
    let path = path.child("envFrom");
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        let at = path.index(index);
        let prefix = text(source, "prefix");
        syntax(variable(prefix), prefix, &at.child("prefix"), errors);
        let mut found = 0;
        for key in ["configMapRef", "secretRef"] {
            if let Some(reference) = source.get(key) {
                found += 1;
                let at = at.child(key).child("name");
                required_syntax(text(reference, "name"), meta::dns1123_subdomain, &at, errors);
            }
        }
        match found {
            0 => errors.push(Error::invalid(
                &path,
                "",
                "must specify one of: `configMapRef` or `secretRef`",
            )),
            1 => {}
            _ => errors.push(Error::invalid(
                &path,
                "",
                "may not have more than one field specified at a time",
            )),
        }
    }
}

fn validate_source(entry: &Value, at: &Path, errors: &mut ErrorList) {
    let Some(source) = entry.get("valueFrom") else { return };
    let mut found = 0;
    for key in [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ] {
        let Some(reference) = source.get(key) else { continue };
        found += 1;
        let at = at.child(key);
        match key {
            "fieldRef" => validate_field(reference, false, &at, errors),
            "resourceFieldRef" => validate_resource(reference, false, &at, errors),
            "configMapKeyRef" | "secretKeyRef" => validate_key(reference, &at, errors),
            _ => {}
        }
    }
    let why = match found {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        _ if !text(entry, "value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(Error::invalid(at, "", why));
}

/// A reference to a field of the pod, from the environment or from a file.
pub(super) fn validate_field(reference: &Value, of_file: bool, at: &Path, errors: &mut ErrorList) {
    let field = text(reference, "fieldPath");
    let place = at.child("fieldPath");
    if field.is_empty() {
        errors.push(Error::required(&place, ""));
        return;
    }
    let subscript = field
        .strip_suffix("']")
        .and_then(|field| field.split_once("['"))
        .filter(|(_, key)| !key.is_empty());
    if let Some((map, key)) = subscript {
        match map {
            "metadata.annotations" => syntax(meta::qualified_name(&key.to_lowercase()), key, at, errors),
            "metadata.labels" => syntax(meta::qualified_name(key), key, at, errors),
            _ => {
                let why = format!("error converting fieldPath: field label does not support subscript: {field}");
                errors.push(Error::invalid(&place, field, why));
            }
        }
        return;
    }
    if !KNOWN.contains(&field) {
        let why = format!("error converting fieldPath: field label not supported: {field}");
        errors.push(Error::invalid(&place, field, why));
        return;
    }
    let known: &[&str] = if of_file { &OF_FILES } else { &OF_ENVIRONMENT };
    if !known.contains(&field) {
        errors.push(Error::not_supported(&place, field, known));
    }
}

/// A reference to an amount of a container's resources.
pub(super) fn validate_resource(reference: &Value, of_file: bool, at: &Path, errors: &mut ErrorList) {
    let resource = text(reference, "resource");
    let is_huge = ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|prefix| resource.starts_with(prefix));
    if of_file && text(reference, "containerName").is_empty() {
        errors.push(Error::required(&at.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(Error::required(&at.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !is_huge {
        errors.push(Error::not_supported(&at.child("resource"), resource, &RESOURCES));
    }
}
