//! What must hold of the environment of containers, and of references to fields of the pod.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use super::containers::{each_container, validate_key};
use crate::kubernetes::checks::{amount, list, no_backsteps, required_syntax, syntax, text};
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
const DIVISORS_OF_CPU: [&str; 2] = ["1m", "1"];
const DIVISORS: [&str; 13] = [
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
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
            _ => validate_file_key(reference, &at, errors),
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
    let version = text(reference, "apiVersion");
    if !matches!(version, "" | "v1") {
        let why = format!("error converting fieldPath: unsupported pod version: {version}");
        errors.push(Error::invalid(&place, field, why));
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
    // as clients of old call it
    let field = if field == "spec.host" { "spec.nodeName" } else { field };
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
    let (divisor, kind) = (
        text(reference, "divisor"),
        resource.split_once('.').map_or("", |(_, kind)| kind),
    );
    let (known, what) = match kind {
        "cpu" => (&DIVISORS_OF_CPU[..], "the cpu resource"),
        "memory" => (&DIVISORS[..], "the memory resource"),
        "ephemeral-storage" => (&DIVISORS[..], "the local ephemeral storage resource"),
        _ if is_huge => (&DIVISORS[..], "the hugepages resource"),
        _ => return,
    };
    let is_set = amount(&Value::from(divisor)).is_some_and(|divisor| !divisor.is_zero());
    if is_set && !known.contains(&divisor) {
        let shown = if kind == "cpu" {
            "1m and 1".to_owned()
        } else {
            known.join(", ")
        };
        let why = format!("only divisor's values {shown} are supported with {what}");
        errors.push(Error::invalid(&at.child("divisor"), resource, why));
    }
}

/// A reference to a variable in a file of a volume.
fn validate_file_key(reference: &Value, at: &Path, errors: &mut ErrorList) {
    required_syntax(text(reference, "key"), variable, &at.child("key"), errors);
    required_syntax(
        text(reference, "volumeName"),
        meta::dns1123_label,
        &at.child("volumeName"),
        errors,
    );
    match text(reference, "path") {
        "" => errors.push(Error::required(&at.child("path"), "")),
        path => no_backsteps(path, &at.child("path"), errors),
    }
}

/// Files of variables are in volumes that are the pod's own and begin empty.
pub(super) fn validate_file_volumes(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let volumes = list(spec, "volumes");
    for (at, container) in each_container(spec, path) {
        for (index, entry) in list(container, "env").iter().enumerate() {
            let Some(reference) = entry.at("/valueFrom/fileKeyRef") else {
                continue;
            };
            let name = text(reference, "volumeName");
            let at = at
                .child("env")
                .index(index)
                .child("valueFrom")
                .child("fileKeyRef")
                .child("volumeName");
            // of several volumes of one name the last one counts
            match volumes.iter().rfind(|volume| text(volume, "name") == name) {
                None => errors.push(Error::not_found(&at, name)),
                Some(volume) if volume.get("emptyDir").is_none() => {
                    errors.push(Error::invalid(&at, name, "referenced volume must be of type emptyDir"));
                }
                Some(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_host_is_the_node() {
        let told = |field: &str, of_file: bool| {
            let mut errors = ErrorList::new();
            validate_field(&json!({"fieldPath": field}), of_file, &Path::new("f"), &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(told("spec.host", false), [""; 0]);
        assert_eq!(
            told("spec.host", true),
            [
                "f.fieldPath: Unsupported value: \"spec.nodeName\": supported values: \"metadata.annotations\", \"metadata.labels\", \"metadata.name\", \"metadata.namespace\", \"metadata.uid\"",
            ]
        );
        assert_eq!(told("spec.hosts", false).len(), 1);
    }
}
