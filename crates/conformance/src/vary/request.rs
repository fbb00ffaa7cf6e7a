//! Changes of what a request asks for: its method, path, query, headers, and the type that it says its body has.

use gardener_apimachinery::chance::Chance;

use super::pick;
use crate::sequence::Step;

/// Query parameters with values that mean something to some requests, and some that mean nothing.
const PARAMETERS: [(&str, &[&str]); 19] = [
    ("dryRun", &["All", "", "None", "all"]),
    ("fieldValidation", &["Strict", "Warn", "Ignore", "", "strict"]),
    ("fieldManager", &["m", "", "a%20b", "a%0Ab"]),
    ("force", &["true", "false", "1", "", "x"]),
    ("limit", &["1", "2", "0", "-1", "x", ""]),
    ("continue", &["x", ""]),
    ("resourceVersion", &["0", "1", "", "-1", "x", "99999999999"]),
    ("resourceVersionMatch", &["Exact", "NotOlderThan", "", "x"]),
    (
        "labelSelector",
        &[
            "a%3Db",
            "a%3D%3Db",
            "a!%3Db",
            "a",
            "!a",
            "a%20in%20(b,c)",
            "a%20notin%20(b)",
            "a%20in%20()",
            "a%3Db,",
            "%3Db",
            "a%3Eb",
            "a%3E1",
            "-a%3Db",
            "a%3Db%20c",
            "",
        ],
    ),
    (
        "fieldSelector",
        &[
            "metadata.name%3Da",
            "metadata.name!%3Da",
            "metadata.namespace%3D${ns}",
            "metadata.name%3Da,metadata.name%3Db",
            "spec.x%3Da",
            "metadata.name",
            "metadata.name%20in%20(a)",
            "%3D",
            "a%3Db%3Dc",
            "",
        ],
    ),
    ("propagationPolicy", &["Orphan", "Background", "Foreground", "", "x"]),
    ("gracePeriodSeconds", &["0", "1", "-1", "x", ""]),
    ("orphanDependents", &["true", "false", "x"]),
    ("pretty", &["true", "1", "false"]),
    ("timeoutSeconds", &["1", "0", "-1", "x"]),
    ("timeout", &["1s", "0s", "x", "1"]),
    ("allowWatchBookmarks", &["true", "x"]),
    ("sendInitialEvents", &["true", "false", "x"]),
    ("unknown", &["x"]),
];

/// What a body may be said to be.
const CONTENT_TYPES: [&str; 12] = [
    "application/json",
    "application/yaml",
    "application/json; charset=utf-8",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "text/plain",
    "application/*",
    "x",
];

/// How an answer may be wanted.
const ACCEPTED: [&str; 14] = [
    "application/json",
    "application/yaml",
    "*/*",
    "text/plain",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/yaml;as=Table;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
    "application/cbor,application/json",
    "text/html,application/json;q=0.5",
    "",
];

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// Segments that may come after a path, or take the place of its last.
const SEGMENTS: [&str; 10] = [
    "status", "scale", "log", "exec", "binding", "eviction", "token", "A_b", "x", "",
];

/// Changes one thing about a request and tells how. None, if it cannot be changed in the way that was picked.
pub(super) fn change(step: &mut Step, chance: &Chance) -> Option<String> {
    match chance.below(10) {
        0 => method(step, chance),
        1 => path(step, chance),
        2 if step.body.is_some() || step.text.is_some() => {
            let made = pick(&CONTENT_TYPES, chance)?;
            step.content_type = Some((*made).to_owned());
            Some(format!("Content-Type {made}"))
        }
        2..=4 => {
            let made = pick(&ACCEPTED, chance)?;
            step.headers.insert("Accept".to_owned(), (*made).to_owned());
            Some(format!("Accept {made}"))
        }
        _ => query(step, chance),
    }
}

/// Whether a change could reach beyond the sequence's own objects: what is deleted there is missed by all that come later.
fn may_delete_elsewhere(request: &str) -> bool {
    request.starts_with("DELETE ") && !request.contains("${ns}")
}

/// Sets a request, if it harms no other.
fn set(step: &mut Step, request: String) -> Option<String> {
    if may_delete_elsewhere(&request) {
        return None;
    }
    step.request.clone_from(&request);
    Some(request)
}

fn method(step: &mut Step, chance: &Chance) -> Option<String> {
    let (_, rest) = step.request.split_once(' ')?;
    let made = pick(&METHODS, chance)?;
    // a namespace that goes takes with it what the next steps are about
    if *made == "DELETE" && rest.ends_with("/namespaces/${ns}") {
        return None;
    }
    set(step, format!("{made} {rest}"))
}

fn path(step: &mut Step, chance: &Chance) -> Option<String> {
    let (method, rest) = step.request.split_once(' ')?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let segment = pick(&SEGMENTS, chance)?;
    let (before, last) = path.rsplit_once('/')?;
    let made = match chance.below(6) {
        0 => format!("{path}/{segment}"),
        1 => format!("{before}/{segment}"),
        2 if method != "DELETE" => before.to_owned(),
        3 => format!("{before}/{}", last.to_uppercase()),
        4 => path.replacen("/v1/", "/v1beta1/", 1),
        _ => path.replace("/namespaces/${ns}", ""),
    };
    if made == path || made.is_empty() {
        return None;
    }
    let question = if query.is_empty() { "" } else { "?" };
    set(step, format!("{method} {made}{question}{query}"))
}

fn query(step: &mut Step, chance: &Chance) -> Option<String> {
    let (before, query) = step.request.split_once('?').unwrap_or((&step.request, ""));
    let mut pairs: Vec<String> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(str::to_owned)
        .collect();
    let is_watch = |pair: &String| pair.starts_with("watch=") || pair.starts_with("timeoutSeconds=");
    let replaced = match chance.below(4) {
        // a watch that becomes none is answered otherwise than it is read, and one without an end is waited for
        0 => pick(&pairs, chance).filter(|pair| !is_watch(pair)).cloned(),
        _ => None,
    };
    match replaced {
        Some(replaced) => pairs.retain(|pair| *pair != replaced),
        None => {
            let (name, values) = pick(&PARAMETERS, chance)?;
            if *name == "timeoutSeconds" && pairs.iter().any(is_watch) {
                return None;
            }
            let value = pick(values, chance)?;
            pairs.retain(|pair| !pair.starts_with(&format!("{name}=")));
            pairs.push(format!("{name}={value}"));
        }
    }
    let question = if pairs.is_empty() { "" } else { "?" };
    let request = format!("{before}{question}{}", pairs.join("&"));
    set(step, request)
}
