//! Ingresses and their classes, network policies, and the objects for addresses and ranges of services.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::addresses::{self, Range};
use super::checks::{self, annotation, label_selector, list, number, spec_of, syntax, text};
use super::internal;
use super::strategy::Kind;
use crate::meta;

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
/// The longest name of a class's controller.
const CONTROLLER_MAX: usize = 250;

/// What is wrong with a host of which the first part may be any.
fn wildcard_host(host: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if host.len() > 253 {
        wrong.push("must be no more than 253 characters".to_owned());
    }
    let fits = host.strip_prefix("*.").is_some_and(|rest| {
        meta::dns1123_subdomain(rest)
            .iter()
            .all(|why| why.starts_with("must be no more"))
    });
    if !fits {
        wrong.push("a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')".to_owned());
    }
    wrong
}

fn host(host: &str) -> Vec<String> {
    match host.contains('*') {
        true => wildcard_host(host),
        false => meta::dns1123_subdomain(host),
    }
}

/// A kind or name that is to be part of a path.
fn segment(object: &Value, key: &str, path: &Path, errors: &mut ErrorList) {
    checks::required_syntax(
        text(object, key),
        gardener_apimachinery::names::path_segment,
        &path.child(key),
        errors,
    );
}

/// An API group that is told.
fn api_group(object: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(group) = object.get("apiGroup").and_then(Value::as_str) {
        syntax(meta::dns1123_subdomain(group), group, &path.child("apiGroup"), errors);
    }
}

fn validate_backend(backend: &Value, path: &Path, errors: &mut ErrorList) {
    match (backend.get("resource"), backend.get("service")) {
        (Some(_), Some(_)) => errors.push(Error::invalid(
            path,
            "",
            "cannot set both resource and service backends",
        )),
        (None, None) => errors.push(Error::invalid(path, "", "resource or service backend is required")),
        (Some(resource), None) => {
            let at = path.child("resource");
            api_group(resource, &at, errors);
            segment(resource, "kind", &at, errors);
            segment(resource, "name", &at, errors);
        }
        (None, Some(service)) => {
            let at = path.child("service");
            checks::required_syntax(text(service, "name"), meta::dns1123_label, &at.child("name"), errors);
            let none = Value::Null;
            let port = service.get("port").unwrap_or(&none);
            let at = at.child("port");
            match (text(port, "name"), number(port, "number").unwrap_or(0)) {
                ("", 0) => errors.push(Error::required(path, "port name or number is required")),
                ("", number) => errors.extend(checks::port_number(number, &at.child("number"))),
                (name, 0) => syntax(checks::port_name(name), name, &at.child("name"), errors),
                _ => errors.push(Error::invalid(path, "", "cannot set both port name & port number")),
            }
        }
    }
}

fn validate_path(rule: &Value, path: &Path, errors: &mut ErrorList) {
    let at = path.child("path");
    let own = text(rule, "path");
    let mut invalid = |why: String| errors.push(Error::invalid(&at, own, why));
    match rule.get("pathType").and_then(Value::as_str) {
        None => {
            errors.push(Error::required(&path.child("pathType"), "pathType must be specified"));
            return;
        }
        Some("Exact" | "Prefix") => {
            if !own.starts_with('/') {
                invalid("must be an absolute path".to_owned());
            }
            for wrong in ["//", "/./", "/../", "%2f", "%2F"]
                .iter()
                .filter(|wrong| own.contains(**wrong))
            {
                invalid(format!("must not contain '{wrong}'"));
            }
            for wrong in ["/..", "/."].iter().filter(|wrong| own.ends_with(**wrong)) {
                invalid(format!("cannot end with '{wrong}'"));
            }
        }
        Some("ImplementationSpecific") => {
            if !own.is_empty() && !own.starts_with('/') {
                invalid("must be an absolute path".to_owned());
            }
        }
        Some(other) => errors.push(Error::not_supported(
            &path.child("pathType"),
            other,
            &["Exact", "ImplementationSpecific", "Prefix"],
        )),
    }
    let none = Value::Null;
    validate_backend(rule.get("backend").unwrap_or(&none), &path.child("backend"), errors);
}

fn validate_ingress(ingress: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(ingress), Path::new("spec"));
    let rules = list(spec, "rules");
    if let Some(backend) = spec.get("defaultBackend") {
        validate_backend(backend, &path.child("defaultBackend"), &mut errors);
    } else if rules.is_empty() {
        let why = "either `defaultBackend` or `rules` must be specified";
        let shown = spec.get("rules").cloned().unwrap_or(Value::Null);
        errors.push(Error::invalid(&path, shown, why));
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = path.child("rules").index(index);
        let name = text(rule, "host");
        if !name.is_empty() {
            if addresses::lenient(name).is_some() {
                errors.push(Error::invalid(&at.child("host"), name, addresses::NO_NAME));
            }
            syntax(host(name), name, &at.child("host"), &mut errors);
        }
        let Some(http) = rule.get("http") else { continue };
        let at = at.child("http").child("paths");
        if list(http, "paths").is_empty() {
            errors.push(Error::required(&at, ""));
        }
        for (index, rule) in list(http, "paths").iter().enumerate() {
            validate_path(rule, &at.index(index), &mut errors);
        }
    }
    for (index, tls) in list(spec, "tls").iter().enumerate() {
        let at = path.child("tls").index(index);
        for (index, name) in list(tls, "hosts").iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            syntax(host(name), name, &at.child("hosts").index(index), &mut errors);
        }
        let secret = text(tls, "secretName");
        if !secret.is_empty() {
            syntax(
                meta::dns1123_subdomain(secret),
                secret,
                &at.child("secretName"),
                &mut errors,
            );
        }
    }
    if let Some(class) = spec.get("ingressClassName").and_then(Value::as_str) {
        let at = path.child("ingressClassName");
        syntax(meta::dns1123_subdomain(class), class, &at, &mut errors);
    }
    errors
}

pub(super) fn ingresses(mut kind: Kind) -> Kind {
    kind.validate = validate_ingress;
    kind.validate_create = |ingress| {
        let class = spec_of(ingress).get("ingressClassName").and_then(Value::as_str);
        match (annotation(ingress, CLASS_ANNOTATION), class) {
            (Some(annotated), Some(class)) if annotated != class => {
                let at = Path::new("annotations").child(CLASS_ANNOTATION);
                let why = "must match `ingressClassName` when both are specified";
                vec![Error::invalid(&at, annotated, why)]
            }
            _ => Vec::new(),
        }
    };
    kind.validate_status = |ingress, old| {
        let none = Value::Null;
        let known = old.at("/status/loadBalancer").unwrap_or(&none);
        let known: Vec<&str> = list(known, "ingress").iter().map(|one| text(one, "ip")).collect();
        let path = Path::new("status").child("loadBalancer");
        let mut errors = ErrorList::new();
        let status = ingress.at("/status/loadBalancer").unwrap_or(&none);
        for (index, one) in list(status, "ingress").iter().enumerate() {
            let at = path.child("ingress").index(index);
            let (ip, name) = (text(one, "ip"), text(one, "hostname"));
            if !ip.is_empty() && !known.contains(&ip) {
                addresses::address(ip, &at.child("ip"), &mut errors);
            }
            if !name.is_empty() {
                syntax(meta::dns1123_subdomain(name), name, &at.child("hostname"), &mut errors);
                if addresses::lenient(name).is_some() {
                    errors.push(Error::invalid(&at.child("hostname"), name, addresses::NO_NAME));
                }
            }
        }
        errors
    };
    kind.warnings = |ingress, old| {
        let is_old =
            annotation(ingress, CLASS_ANNOTATION).is_some() && spec_of(ingress).get("ingressClassName").is_none();
        match is_old && old.is_none() {
            true => vec![format!(
                "annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
            )],
            false => Vec::new(),
        }
    };
    kind
}

/// Whether a text is a path of URLs.
fn is_http_path(path: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    !path.is_empty() && path.bytes().all(fits)
}

fn controller(name: &str, at: &Path, errors: &mut ErrorList) {
    if name.len() > CONTROLLER_MAX {
        errors.push(Error::too_long(at, CONTROLLER_MAX));
    }
    domain_prefixed(name, at, errors);
}

/// A path with a domain before it.
pub(crate) fn domain_prefixed(name: &str, at: &Path, errors: &mut ErrorList) {
    match name.split_once('/') {
        _ if name.is_empty() => errors.push(Error::required(at, "")),
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            syntax(meta::dns1123_subdomain(domain), domain, at, errors);
            if !is_http_path(path) {
                let why = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                errors.push(Error::invalid(at, path, why));
            }
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(Error::invalid(at, name, why));
        }
    }
}

pub(super) fn ingress_classes(mut kind: Kind) -> Kind {
    kind.default = |class| {
        if let Some(parameters) = class.at_mut("/spec/parameters").and_then(Value::as_object_mut)
            && parameters.get("scope").is_none_or(Value::is_null)
        {
            parameters.insert("scope".into(), json!("Cluster"));
        }
    };
    kind.validate = |class| {
        let mut errors = ErrorList::new();
        let (spec, path) = (spec_of(class), Path::new("spec"));
        controller(text(spec, "controller"), &path.child("controller"), &mut errors);
        let Some(parameters) = spec.get("parameters") else {
            return errors;
        };
        let at = path.child("parameters");
        api_group(parameters, &at, &mut errors);
        segment(parameters, "kind", &at, &mut errors);
        segment(parameters, "name", &at, &mut errors);
        let namespace = parameters.get("namespace").and_then(Value::as_str);
        match (text(parameters, "scope"), namespace) {
            ("Namespace", None) => errors.push(Error::required(
                &at.child("namespace"),
                "`parameters.scope` is set to 'Namespace'",
            )),
            ("Namespace", Some(namespace)) => {
                syntax(
                    meta::dns1123_label(namespace),
                    namespace,
                    &at.child("namespace"),
                    &mut errors,
                );
            }
            ("Cluster", Some(_)) => errors.push(Error::forbidden(
                &at.child("namespace"),
                "`parameters.scope` is set to 'Cluster'",
            )),
            ("Cluster", None) => {}
            (other, _) => errors.push(Error::not_supported(
                &at.child("scope"),
                other,
                &["Cluster", "Namespace"],
            )),
        }
        errors
    };
    kind.validate_update = |class, old| {
        let controller = |class: &Value| text(spec_of(class), "controller").to_owned();
        match controller(class) == controller(old) {
            true => Vec::new(),
            false => vec![Error::invalid(
                &Path::new("spec").child("controller"),
                controller(class),
                "field is immutable",
            )],
        }
    };
    kind
}

fn validate_policy_port(port: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(protocol) = port.get("protocol").and_then(Value::as_str)
        && !["TCP", "UDP", "SCTP"].contains(&protocol)
    {
        errors.push(Error::not_supported(
            &path.child("protocol"),
            protocol,
            &["TCP", "UDP", "SCTP"],
        ));
    }
    let (at, end_at) = (path.child("port"), path.child("endPort"));
    let end = number(port, "endPort");
    match (port.get("port"), end) {
        (None, Some(end)) => {
            errors.push(Error::invalid(
                &end_at,
                end,
                "may not be specified when `port` is not specified",
            ));
        }
        (None, None) => {}
        (Some(Value::String(name)), end) => {
            if let Some(end) = end {
                errors.push(Error::invalid(
                    &end_at,
                    end,
                    "may not be specified when `port` is non-numeric",
                ));
            }
            syntax(checks::port_name(name), name, &at, errors);
        }
        (Some(first), end) => {
            let first = first.as_i64().unwrap_or(0);
            errors.extend(checks::port_number(first, &at));
            if let Some(end) = end {
                if end < first {
                    // upstream shows the first port here
                    errors.push(Error::invalid(
                        &end_at,
                        first,
                        "must be greater than or equal to `port`",
                    ));
                }
                errors.extend(checks::port_number(end, &end_at));
            }
        }
    }
}

fn validate_block(block: &Value, known: &[String], path: &Path, errors: &mut ErrorList) {
    let judge = |text: &str, at: &Path, errors: &mut ErrorList| {
        if !known.iter().any(|own| own == text) {
            addresses::range(text, at, errors);
        }
    };
    let (whole, at) = (text(block, "cidr"), path.child("cidr"));
    if whole.is_empty() {
        errors.push(Error::required(&at, ""));
        return;
    }
    judge(whole, &at, errors);
    let Some(whole) = Range::lenient(whole) else { return };
    for (index, part) in list(block, "except").iter().enumerate() {
        let (part, at) = (part.as_str().unwrap_or_default(), path.child("except").index(index));
        judge(part, &at, errors);
        if Range::lenient(part).is_some_and(|range| !whole.strictly_contains(&range)) {
            errors.push(Error::invalid(&at, part, "must be a strict subset of `cidr`"));
        }
    }
}

fn validate_peer(peer: &Value, known: &[String], path: &Path, errors: &mut ErrorList) {
    let mut peers = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = peer.get(key) {
            peers += 1;
            label_selector(selector, &path.child(key), errors);
        }
    }
    match peer.get("ipBlock") {
        Some(block) => {
            validate_block(block, known, &path.child("ipBlock"), errors);
            if peers > 0 {
                errors.push(Error::forbidden(path, "may not specify both ipBlock and another peer"));
            }
        }
        None if peers == 0 => errors.push(Error::required(path, "must specify a peer")),
        None => {}
    }
}

const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

fn validate_policy(policy: &Value, known: &[String]) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(policy), Path::new("spec"));
    let none = Value::Null;
    label_selector(
        spec.get("podSelector").unwrap_or(&none),
        &path.child("podSelector"),
        &mut errors,
    );
    for (rules, peers) in DIRECTIONS {
        for (index, rule) in list(spec, rules).iter().enumerate() {
            let at = path.child(rules).index(index);
            for (index, port) in list(rule, "ports").iter().enumerate() {
                validate_policy_port(port, &at.child("ports").index(index), &mut errors);
            }
            for (index, peer) in list(rule, peers).iter().enumerate() {
                validate_peer(peer, known, &at.child(peers).index(index), &mut errors);
            }
        }
    }
    let (types, at) = (list(spec, "policyTypes"), path.child("policyTypes"));
    if types.len() > 2 {
        errors.push(Error::invalid(
            &at,
            types.to_vec(),
            "may not specify more than two policyTypes",
        ));
        return errors;
    }
    let known = ["Ingress", "Egress"];
    for (index, own) in types.iter().enumerate() {
        let own = own.as_str().unwrap_or_default();
        if !known.contains(&own) {
            errors.push(Error::not_supported(&at.index(index), own, &known));
        }
    }
    errors
}

/// The ranges that a policy has; they may stay as they are.
fn ranges(policy: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (rules, peers) in DIRECTIONS {
        let peers = list(spec_of(policy), rules).iter().flat_map(|rule| list(rule, peers));
        for block in peers.filter_map(|peer| peer.get("ipBlock")) {
            found.push(text(block, "cidr").to_owned());
            found.extend(
                list(block, "except")
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned),
            );
        }
    }
    found
}

pub(super) fn policies(mut kind: Kind) -> Kind {
    kind.counts_empty = true;
    kind.validate_create = |policy| validate_policy(policy, &[]);
    kind.validate_update = |policy, old| validate_policy(policy, &ranges(old));
    kind.warnings = |policy, _| {
        let mut found = Vec::new();
        for (direction, peers) in DIRECTIONS {
            let path = Path::new("spec").child(direction);
            for (index, rule) in list(spec_of(policy), direction).iter().enumerate() {
                let at = path.index(index).child(peers);
                for (index, peer) in list(rule, peers).iter().enumerate() {
                    let Some(block) = peer.get("ipBlock") else { continue };
                    let at = at.index(index).child("ipBlock");
                    found.extend(addresses::unusual_range(text(block, "cidr"), &at.child("cidr")));
                    for (index, part) in list(block, "except").iter().filter_map(Value::as_str).enumerate() {
                        found.extend(addresses::unusual_range(part, &at.child("except").index(index)));
                    }
                }
            }
        }
        found
    };
    kind
}

pub(super) fn ip_addresses(mut kind: Kind) -> Kind {
    kind.name = addresses::canonical_address;
    kind.completes_name_prefix = false;
    kind.whole_first = true;
    kind.validate = |address| {
        let mut errors = ErrorList::new();
        let at = Path::new("spec").child("parentRef");
        let Some(parent) = spec_of(address).get("parentRef") else {
            return vec![Error::required(&at, "")];
        };
        let group = text(parent, "group");
        if !group.is_empty() {
            syntax(meta::dns1123_subdomain(group), group, &at.child("group"), &mut errors);
        }
        segment(parent, "resource", &at, &mut errors);
        segment(parent, "name", &at, &mut errors);
        if !text(parent, "namespace").is_empty() {
            segment(parent, "namespace", &at, &mut errors);
        }
        errors
    };
    kind.validate_update = |address, old| {
        let parent = |address: &Value| spec_of(address).get("parentRef").cloned().unwrap_or(Value::Null);
        match parent(address) == parent(old) {
            true => Vec::new(),
            false => vec![Error::literal(
                &Path::new("spec").child("parentRef"),
                internal::text("*networking.ParentReference", &parent(address)),
                "field is immutable",
            )],
        }
    };
    kind
}

fn validate_ranges(cidr: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, at) = (spec_of(cidr), Path::new("spec").child("cidrs"));
    let ranges: Vec<&str> = list(spec, "cidrs").iter().filter_map(Value::as_str).collect();
    match ranges.len() {
        0 => return vec![Error::required(&at, "at least one CIDR required")],
        1 | 2 => {}
        _ => {
            let shown = json!({"CIDRs": ranges});
            return vec![Error::invalid(&at, shown, "may only hold up to 2 values")];
        }
    }
    for (index, range) in ranges.iter().enumerate() {
        addresses::canonical_range(range, &at.index(index), &mut errors);
    }
    let families: Vec<bool> = ranges
        .iter()
        .filter_map(|range| Some(Range::lenient(range)?.is_ipv4()))
        .collect();
    if let [first, second] = families.as_slice()
        && first == second
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(Error::invalid(&at, json!(ranges), why));
    }
    errors
}

pub(super) fn service_cidrs(mut kind: Kind) -> Kind {
    kind.validate_create = validate_ranges;
    kind.validate_update = |cidr, old| {
        let at = Path::new("spec").child("cidrs");
        let (new, old) = (list(spec_of(cidr), "cidrs"), list(spec_of(old), "cidrs"));
        let may_grow = old.len() == 1 && new.len() == 2;
        if new.len() != old.len() && !may_grow {
            let shown = spec_of(cidr).get("cidrs").cloned().unwrap_or_default();
            return vec![Error::invalid(&at, shown, "field is immutable")];
        }
        let changed = new.iter().zip(old).enumerate().filter(|(_, (new, old))| new != old);
        let mut errors: ErrorList = changed
            .map(|(index, (new, _))| Error::invalid(&at.index(index), new.clone(), "field is immutable"))
            .collect();
        if may_grow {
            errors.extend(validate_ranges(cidr));
        }
        errors
    };
    kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::strategy::kind_of;

    #[test]
    fn unusual_addresses_are_told() {
        let found = |group: &str, resource: &str, object: Value| (kind_of(group, resource).warnings)(&object, None);
        let block = json!({"ipBlock": {"cidr": "10.0.0.1/8", "except": ["fd00:0::/64"]}});
        let policy = json!({"spec": {"ingress": [{"from": [block]}], "egress": [{"to": [{}, block]}]}});
        let told = found("networking.k8s.io", "networkpolicies", policy);
        assert_eq!(told.len(), 4);
        assert!(
            told.iter()
                .any(|own| own.starts_with("spec.egress[0].to[1].ipBlock.except[0]: IPv6 CIDR")),
            "{told:?}"
        );
        let endpoints = |labels: Value| json!({"metadata": {"labels": labels}, "subsets": [{"notReadyAddresses": [{"ip": "fd00:0::1"}]}]});
        let expected = "subsets[0].notReadyAddresses[0].ip: IPv6 address \"fd00:0::1\" should be in RFC 5952 canonical format (\"fd00::1\")";
        assert_eq!(found("", "endpoints", endpoints(json!({}))), [expected]);
        let managed = json!({"endpoints.kubernetes.io/managed-by": "endpoint-controller"});
        assert_eq!(found("", "endpoints", endpoints(managed)), [""; 0]);
        let slice = json!({"addressType": "IPv6", "endpoints": [{"addresses": ["fd00:0::1"]}]});
        assert_eq!(found("discovery.k8s.io", "endpointslices", slice).len(), 1);
        let node = json!({"spec": {"podCIDRs": ["fd00:0::/64"]}});
        assert_eq!(found("", "nodes", node).len(), 1);
        let service = json!({"spec": {
            "type": "LoadBalancer",
            "clusterIP": "fd00:0::1",
            "clusterIPs": ["fd00:0::1"],
            "externalIPs": ["fd00:0::2"],
            "loadBalancerIP": "010.0.0.1",
            "loadBalancerSourceRanges": ["10.0.0.1/8"],
        }});
        let told = found("", "services", service);
        let told: Vec<&str> = told
            .iter()
            .filter_map(|own| own.split_once(": "))
            .map(|(at, _)| at)
            .collect();
        let expected = [
            "spec.clusterIPs[0]",
            "spec.externalIPs[0]",
            "spec.loadBalancerIP",
            "spec.loadBalancerSourceRanges[0]",
        ];
        assert_eq!(told, expected);
    }
}
