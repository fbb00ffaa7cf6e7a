//! What must hold of a pod's spec, in pods and in templates.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::{Value, json};

use super::{containers, environment, resources, scheduling, security, volumes};
use crate::kubernetes::addresses;
use crate::kubernetes::checks::{is_true, list, number, one_of, syntax, text};
use crate::kubernetes::internal;
use crate::meta;

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const PREEMPTION_POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/// Checks a spec. `pod` is the name of the pod that has it; none in a template.
pub(in crate::kubernetes) fn validate(spec: &Value, pod: Option<&str>, path: &Path, errors: &mut ErrorList) {
    let known = volumes::validate(spec, pod, &path.child("volumes"), errors);
    validate_claims(spec, &path.child("resourceClaims"), errors);
    let claims = list(spec, "resourceClaims").iter().map(|claim| text(claim, "name"));
    let claims: BTreeSet<&str> = claims.filter(|name| !name.is_empty()).collect();
    containers::validate(spec, &known, &claims, path, errors);
    resources::validate_pod(spec, &claims, path, errors);
    if is_true(spec, "hostNetwork") {
        containers::host_ports_are_own(spec, pod.is_some(), path, errors);
    }
    one_of(spec, "restartPolicy", &RESTART_POLICIES, path, errors);
    one_of(spec, "dnsPolicy", &DNS_POLICIES, path, errors);
    crate::kubernetes::checks::labels(spec, "nodeSelector", path, errors);
    security::validate_pod(spec, path, errors);
    scheduling::validate_affinity(spec, &path.child("affinity"), errors);
    validate_dns(spec, &path.child("dnsConfig"), errors);
    scheduling::validate_gates(spec, path, errors);
    scheduling::validate_spread(spec, &path.child("topologySpreadConstraints"), errors);
    security::validate_host_process(spec, path, errors);
    security::validate_users(spec, path, errors);
    validate_host_name(spec, &path.child("hostnameOverride"), errors);
    validate_names(spec, path, errors);
    scheduling::validate_tolerations(spec, &path.child("tolerations"), errors);
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let at = path.child("hostAliases").index(index);
        addresses::address(text(alias, "ip"), &at.child("ip"), errors);
        for (index, name) in list(alias, "hostnames").iter().filter_map(Value::as_str).enumerate() {
            let at = at.child("hostnames").index(index);
            syntax(meta::dns1123_subdomain(name), name, &at, errors);
        }
    }
    let class = text(spec, "priorityClassName");
    if !class.is_empty() {
        syntax(
            meta::dns1123_subdomain(class),
            class,
            &path.child("priorityClassName"),
            errors,
        );
    }
    if let Some(class) = spec.get("runtimeClassName").and_then(Value::as_str) {
        syntax(
            meta::dns1123_subdomain(class),
            class,
            &path.child("runtimeClassName"),
            errors,
        );
    }
    match spec.get("preemptionPolicy").is_some_and(|policy| policy == "") {
        true => errors.push(Error::required(&path.child("preemptionPolicy"), "")),
        false => one_of(spec, "preemptionPolicy", &PREEMPTION_POLICIES, path, errors),
    }
    if let Some(overhead) = spec.get("overhead") {
        let limits = json!({"limits": overhead});
        let at = path.child("overhead");
        resources::validate(
            &limits,
            resources::validate_name_of_container,
            &BTreeSet::new(),
            &at,
            errors,
        );
    }
    if let Some(os) = spec.get("os") {
        let at = path.child("os");
        match text(os, "name") {
            "" => errors.push(Error::required(&at.child("name"), "")),
            "linux" | "windows" => security::validate_system(spec, path, errors),
            other => errors.push(Error::not_supported(&at, other, &["linux", "windows"])),
        }
    }
    environment::validate_file_volumes(spec, path, errors);
}

/// Claims of devices: each names one that is there, or one to be made.
fn validate_claims(spec: &Value, path: &Path, errors: &mut ErrorList) {
    const KINDS: [&str; 2] = ["resourceClaimName", "resourceClaimTemplateName"];
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, claim) in list(spec, "resourceClaims").iter().enumerate() {
        let (at, name) = (path.index(index), text(claim, "name"));
        if name.is_empty() {
            errors.push(Error::required(&at.child("name"), ""));
        } else if names.insert(name) {
            syntax(meta::dns1123_label(name), name, &at.child("name"), errors);
        } else {
            errors.push(Error::duplicate(&at.child("name"), name));
        }
        let why = match KINDS.iter().filter(|key| claim.get(**key).is_some()).count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
        };
        if let Some(why) = why {
            let shown = internal::text("core.PodResourceClaim", claim);
            errors.push(Error::literal(&at, shown, why));
        }
        for key in KINDS {
            if let Some(other) = claim.get(key).and_then(Value::as_str) {
                syntax(meta::dns1123_subdomain(other), other, &at.child(key), errors);
            }
        }
    }
}

/// The name that the host has in the eyes of the pod.
fn validate_host_name(spec: &Value, at: &Path, errors: &mut ErrorList) {
    let Some(name) = spec.get("hostnameOverride").and_then(Value::as_str) else {
        return;
    };
    for key in ["setHostnameAsFQDN", "hostNetwork"] {
        if is_true(spec, key) {
            let why = format!("may not be specified when {key} is true");
            errors.push(Error::forbidden(at, why));
        }
    }
    if name.len() > 64 {
        errors.push(Error::too_long(at, 64));
    }
    syntax(meta::dns1123_subdomain(name), name, at, errors);
}

fn validate_names(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for (key, check) in [
        ("serviceAccountName", meta::dns1123_subdomain as fn(&str) -> Vec<String>),
        ("nodeName", meta::dns1123_subdomain),
    ] {
        let name = text(spec, key);
        if !name.is_empty() {
            syntax(check(name), name, &path.child(key), errors);
        }
    }
    if let Some(seconds) =
        number(spec, "activeDeadlineSeconds").filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds))
    {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.push(Error::invalid(&path.child("activeDeadlineSeconds"), seconds, why));
    }
    for key in ["hostname", "subdomain"] {
        let name = text(spec, key);
        if !name.is_empty() {
            syntax(meta::dns1123_label(name), name, &path.child(key), errors);
        }
    }
}

fn validate_dns(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let config = spec.get("dnsConfig");
    if text(spec, "dnsPolicy") == "None" {
        let Some(config) = config else {
            let why = "must provide `dnsConfig` when `dnsPolicy` is None";
            errors.push(Error::required(path, why));
            return;
        };
        if list(config, "nameservers").is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(Error::required(&path.child("nameservers"), why));
            return;
        }
    }
    let Some(config) = config else { return };
    let servers = list(config, "nameservers");
    if servers.len() > 3 {
        let shown = Value::Array(servers.to_vec());
        let why = "must not have more than 3 nameservers";
        errors.push(Error::invalid(&path.child("nameservers"), shown, why));
    }
    for (index, server) in servers.iter().filter_map(Value::as_str).enumerate() {
        addresses::address(server, &path.child("nameservers").index(index), errors);
    }
    let searches: Vec<&str> = list(config, "searches").iter().filter_map(Value::as_str).collect();
    if searches.len() > 32 {
        let why = "must not have more than 32 search paths";
        errors.push(Error::invalid(&path.child("searches"), searches.clone(), why));
    }
    if searches.join(" ").len() > 2048 {
        let why = "must not have more than 2048 characters (including spaces) in the search list";
        errors.push(Error::invalid(&path.child("searches"), searches.clone(), why));
    }
    for (index, search) in searches.iter().enumerate().filter(|(_, search)| **search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        let wrong = gardener_apimachinery::names::dns_subdomain_with_underscore(search);
        syntax(wrong, search, &path.child("searches").index(index), errors);
    }
    for (index, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.push(Error::required(
                &path.child("options").index(index),
                "must not be empty",
            ));
        }
    }
}
