//! Endpoints and EndpointSlices.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use super::checks::{self, list, number, syntax, text};
use super::strategy::Kind;
use super::{addresses, defaults};
use crate::meta;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_TOPOLOGY: usize = 16;
const MAX_HINTS: usize = 8;

fn label(object: &Value, key: &str, path: &Path, errors: &mut ErrorList) {
    let name = text(object, key);
    if !name.is_empty() {
        syntax(meta::dns1123_label(name), name, &path.child(key), errors);
    }
}

fn node_name(object: &Value, key: &str, path: &Path, errors: &mut ErrorList) {
    if let Some(name) = object.get(key).and_then(Value::as_str) {
        syntax(meta::dns1123_subdomain(name), name, &path.child(key), errors);
    }
}

fn protocol(port: &Value, path: &Path, errors: &mut ErrorList) {
    let at = path.child("protocol");
    match text(port, "protocol") {
        "" => errors.push(Error::required(&at, "")),
        own if !PROTOCOLS.contains(&own) => errors.push(Error::not_supported(&at, own, &PROTOCOLS)),
        _ => {}
    }
    app_protocol(port, path, errors);
}

fn app_protocol(port: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(own) = port.get("appProtocol").and_then(Value::as_str) {
        syntax(meta::qualified_name(own), own, &path.child("appProtocol"), errors);
    }
}

fn validate_subsets(endpoints: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, subset) in list(endpoints, "subsets").iter().enumerate() {
        let path = Path::new("subsets").index(index);
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            errors.push(Error::required(
                &path,
                "must specify `addresses` or `notReadyAddresses`",
            ));
        }
        for key in ["addresses", "notReadyAddresses"] {
            for (index, address) in list(subset, key).iter().enumerate() {
                let at = path.child(key).index(index);
                let ip = text(address, "ip");
                addresses::address(ip, &at.child("ip"), &mut errors);
                label(address, "hostname", &at, &mut errors);
                node_name(address, "nodeName", &at, &mut errors);
                addresses::of_endpoint(ip, &at.child("ip"), &mut errors);
            }
        }
        let ports = list(subset, "ports");
        for (index, port) in ports.iter().enumerate() {
            let at = path.child("ports").index(index);
            if text(port, "name").is_empty() && ports.len() > 1 {
                errors.push(Error::required(&at.child("name"), ""));
            }
            label(port, "name", &at, &mut errors);
            errors.extend(checks::port_number(
                number(port, "port").unwrap_or(0),
                &at.child("port"),
            ));
            protocol(port, &at, &mut errors);
        }
    }
    errors
}

pub(super) fn endpoints(mut kind: Kind) -> Kind {
    kind.create_on_update = true;
    kind.default = defaults::endpoints;
    kind.validate_create = validate_subsets;
    // what is there may stay
    kind.validate_update = |endpoints, old| match endpoints.get("subsets") == old.get("subsets") {
        true => Vec::new(),
        false => validate_subsets(endpoints),
    };
    kind.warnings = |endpoints, _| {
        let mut found = Vec::new();
        if is_managed_by(
            endpoints,
            "endpoints.kubernetes.io/managed-by",
            &["endpoint-controller"],
        ) {
            return found;
        }
        for (index, subset) in list(endpoints, "subsets").iter().enumerate() {
            for key in ["addresses", "notReadyAddresses"] {
                let at = Path::new("subsets").index(index).child(key);
                let all = list(subset, key).iter().enumerate();
                found.extend(
                    all.filter_map(|(index, own)| addresses::unusual(text(own, "ip"), &at.index(index).child("ip"))),
                );
            }
        }
        found
    };
    kind
}

/// Controllers that write addresses of slices in their usual form.
const SLICE_CONTROLLERS: [&str; 2] = [
    "endpointslice-controller.k8s.io",
    "endpointslicemirroring-controller.k8s.io",
];

/// Whether a label tells that one of these controllers writes an object.
fn is_managed_by(object: &Value, label: &str, controllers: &[&str]) -> bool {
    let labels = object.at("/metadata/labels");
    labels.is_some_and(|labels| controllers.contains(&text(labels, label)))
}

fn validate_slice_ports(slice: &Value, errors: &mut ErrorList) {
    let (ports, path) = (list(slice, "ports"), Path::new("ports"));
    if ports.len() > MAX_PORTS {
        errors.push(Error::too_many(&path, ports.len(), MAX_PORTS));
        return;
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let at = path.index(index);
        let name = text(port, "name");
        label(port, "name", &at, errors);
        match names.contains(&name) {
            true => errors.push(Error::duplicate(&at.child("name"), name)),
            false => names.push(name),
        }
        // here one that is there without a letter is told as unknown
        match port.get("protocol").and_then(Value::as_str) {
            Some("") => {
                errors.push(Error::not_supported(&at.child("protocol"), "", &PROTOCOLS));
                app_protocol(port, &at, errors);
            }
            _ => protocol(port, &at, errors),
        }
    }
}

/// Tells what is wrong with a name.
type Syntax = fn(&str) -> Vec<String>;

/// Zones or nodes for which an endpoint is meant.
fn validate_hints(hints: &Value, path: &Path, errors: &mut ErrorList) {
    let kinds: [(&str, Syntax); 2] = [("forZones", meta::label_value), ("forNodes", meta::dns1123_subdomain)];
    for (key, check) in kinds {
        let (all, path) = (list(hints, key), path.child(key));
        if all.len() > MAX_HINTS {
            errors.push(Error::too_many(&path, all.len(), MAX_HINTS));
            return;
        }
        let mut names: Vec<&str> = Vec::new();
        for (index, hint) in all.iter().enumerate() {
            let at = path.index(index).child("name");
            let name = text(hint, "name");
            match names.contains(&name) {
                true => errors.push(Error::duplicate(&at, name)),
                false => names.push(name),
            }
            syntax(check(name), name, &at, errors);
        }
    }
}

fn validate_address(address: &str, kind: &str, list_at: &Path, at: &Path, errors: &mut ErrorList) {
    let wrong_family = |is_wanted: fn(&std::net::IpAddr) -> bool, name: &str, errors: &mut ErrorList| {
        if addresses::lenient(address).is_some_and(|own| !is_wanted(&own)) {
            errors.push(Error::invalid(list_at, address, format!("must be an {name} address")));
        }
        addresses::of_endpoint(address, at, errors);
    };
    match kind {
        "IPv4" => {
            let before = errors.len();
            addresses::address(address, at, errors);
            if errors.len() == before {
                wrong_family(std::net::IpAddr::is_ipv4, "IPv4", errors);
            }
        }
        "IPv6" => {
            let wrong = addresses::canonical_address(address);
            if wrong.is_empty() {
                wrong_family(std::net::IpAddr::is_ipv6, "IPv6", errors);
            }
            syntax(wrong, address, at, errors);
        }
        "FQDN" => errors.extend(names::fully_qualified_domain_name(address, at)),
        _ => {}
    }
}

fn validate_endpoints(slice: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (endpoints, path) = (list(slice, "endpoints"), Path::new("endpoints"));
    if endpoints.len() > MAX_ENDPOINTS {
        return vec![Error::too_many(&path, endpoints.len(), MAX_ENDPOINTS)];
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = path.index(index);
        let (own, at) = (list(endpoint, "addresses"), path.child("addresses"));
        match own.len() {
            0 => errors.push(Error::required(&at, "must contain at least 1 address")),
            many if many > MAX_ADDRESSES => errors.push(Error::too_many(&at, many, MAX_ADDRESSES)),
            _ => {}
        }
        for (index, address) in own.iter().enumerate() {
            let address = address.as_str().unwrap_or_default();
            validate_address(address, text(slice, "addressType"), &at, &at.index(index), &mut errors);
        }
        node_name(endpoint, "nodeName", &path, &mut errors);
        let topology = checks::map(endpoint, "deprecatedTopology").count();
        if topology > MAX_TOPOLOGY {
            errors.push(Error::too_many(
                &path.child("deprecatedTopology"),
                topology,
                MAX_TOPOLOGY,
            ));
        }
        checks::labels(endpoint, "deprecatedTopology", &path, &mut errors);
        if let Some(name) = endpoint.get("hostname").and_then(Value::as_str) {
            syntax(meta::dns1123_label(name), name, &path.child("hostname"), &mut errors);
        }
        if let Some(hints) = endpoint.get("hints") {
            validate_hints(hints, &path.child("hints"), &mut errors);
        }
    }
    errors
}

/// Takes away what only the beta version of slices had.
fn drop_topology(slice: &mut Value) {
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        endpoint.remove("deprecatedTopology");
    }
}

pub(super) fn slices(mut kind: Kind) -> Kind {
    kind.whole_first = true;
    kind.validate = |slice| {
        let mut errors = ErrorList::new();
        let (own, at) = (text(slice, "addressType"), Path::new("addressType"));
        let known = ["FQDN", "IPv4", "IPv6"];
        if own.is_empty() {
            errors.push(Error::required(&at, ""));
        } else if !known.contains(&own) {
            errors.push(Error::not_supported(&at, own, &known));
        }
        validate_slice_ports(slice, &mut errors);
        errors
    };
    kind.validate_create = validate_endpoints;
    kind.prepare_create = |_, slice| {
        drop_topology(slice);
        Ok(())
    };
    kind.prepare_update = |_, slice, old| {
        if slice.get("endpoints") != old.get("endpoints") {
            drop_topology(slice);
        }
        // labels tell whose endpoints these are
        let labels = |slice: &Value| slice.at("/metadata/labels").cloned();
        let generation = |slice: &Value| slice.at("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        if labels(slice) != labels(old) && generation(slice) == generation(old) {
            meta::set(slice, "generation", Some((generation(old) + 1).into()));
        }
        Ok(())
    };
    kind.validate_update = |slice, old| {
        let mut errors = match slice.get("endpoints") == old.get("endpoints") {
            true => Vec::new(),
            false => validate_endpoints(slice),
        };
        if slice.get("addressType") != old.get("addressType") {
            let own = text(slice, "addressType");
            errors.push(Error::invalid(&Path::new("addressType"), own, "field is immutable"));
        }
        errors
    };
    kind.warnings = |slice, old| {
        let mut found = Vec::new();
        if text(slice, "addressType") == "FQDN" && old.is_none() {
            found.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        if is_managed_by(slice, "endpointslice.kubernetes.io/managed-by", &SLICE_CONTROLLERS) {
            return found;
        }
        for (index, endpoint) in list(slice, "endpoints").iter().enumerate() {
            let at = Path::new("endpoints").index(index).child("addresses");
            let all = list(endpoint, "addresses").iter().filter_map(Value::as_str).enumerate();
            found.extend(all.filter_map(|(index, own)| addresses::unusual(own, &at.index(index))));
        }
        found
    };
    kind
}
