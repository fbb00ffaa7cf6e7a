//! What must hold of a pod's spec, in pods and in templates.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::Value;

use super::{containers, scheduling, security, volumes};
use crate::kubernetes::checks::{ip_address, list, number, one_of, syntax, text};
use crate::meta;

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/// Checks a spec. `of_pod`: not that of a template.
pub(in crate::kubernetes) fn validate(spec: &Value, of_pod: bool, path: &Path, errors: &mut ErrorList) {
    let known = volumes::validate(spec, &path.child("volumes"), errors);
    containers::validate(spec, &known, path, errors);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        containers::host_ports_are_own(spec, of_pod, path, errors);
    }
    one_of(spec, "restartPolicy", &RESTART_POLICIES, path, errors);
    one_of(spec, "dnsPolicy", &DNS_POLICIES, path, errors);
    crate::kubernetes::checks::labels(spec, "nodeSelector", path, errors);
    security::validate_pod(spec, path, errors);
    security::validate_host_process(spec, path, errors);
    scheduling::validate_affinity(spec, &path.child("affinity"), errors);
    validate_dns(spec, &path.child("dnsConfig"), errors);
    scheduling::validate_gates(spec, path, errors);
    scheduling::validate_spread(spec, &path.child("topologySpreadConstraints"), errors);
    validate_names(spec, path, errors);
    scheduling::validate_tolerations(spec, &path.child("tolerations"), errors);
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let at = path.child("hostAliases").index(index);
        ip_address(text(alias, "ip"), &at.child("ip"), errors);
        for (index, name) in list(alias, "hostnames").iter().filter_map(Value::as_str).enumerate() {
            let at = at.child("hostnames").index(index);
            syntax(meta::dns1123_subdomain(name), name, &at, errors);
        }
    }
    for key in ["priorityClassName", "runtimeClassName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            syntax(meta::dns1123_subdomain(name), name, &path.child(key), errors);
        }
    }
    one_of(
        spec,
        "preemptionPolicy",
        &["PreemptLowerPriority", "Never"],
        path,
        errors,
    );
    if let Some(overhead) = spec.get("overhead") {
        containers::validate_amounts(overhead, &path.child("overhead").child("limits"), errors);
    }
    if let Some(os) = spec.get("os") {
        let at = path.child("os");
        match text(os, "name") {
            "" => errors.push(Error::required(&at.child("name"), "")),
            "linux" | "windows" => {}
            other => errors.push(Error::not_supported(&at, other, &["linux", "windows"])),
        }
    }
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
        ip_address(server, &path.child("nameservers").index(index), errors);
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
