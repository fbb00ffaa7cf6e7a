//! Services. What they are given, cluster IPs and node ports, is in `allocation`, of which families in `families`.

mod allocation;
mod families;

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::addresses;
use super::checks::{self, ip_address, list, number, one_of, port_number, port_protocol, text};
use super::strategy::Kind;
use crate::meta;
use crate::selectable::Selectable;

pub use allocation::{MADE_FOR_SERVICES, address_family, gives_address, ip_address_labels};

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.name = meta::dns1123_label;
    kind.create_on_update = true;
    kind.prepare_create = |_, service| {
        let is_external = families::kind(service) == "ExternalName";
        if let Some(spec) = service
            .get_mut("spec")
            .and_then(Value::as_object_mut)
            .filter(|_| is_external)
        {
            spec.remove("internalTrafficPolicy");
        }
        Ok(())
    };
    kind.default_stored = families::fill_stored;
    kind.reserve = |context, service| allocation::allocate(context, service, None);
    kind.prepare_update = |context, service, old| {
        drop_what_type_has_not(service, old);
        allocation::allocate(context, service, Some(old))
    };
    kind.companions = Some(allocation::ip_addresses);
    kind.validate = validate;
    kind.validate_status = validate_status;
    kind.validate_update = |service, old| {
        let mut errors = families::validate_change(service, old);
        let class = |service: &Value| service.at("/spec/loadBalancerClass").cloned().unwrap_or(Value::Null);
        let is_balancer = |service: &Value| families::kind(service) == "LoadBalancer";
        if is_balancer(service) && is_balancer(old) && class(service) != class(old) {
            let at = Path::new("spec").child("loadBalancerClass");
            errors.push(Error::invalid(&at, class(service), "may not change once set"));
        }
        let looked_at = (allocation::health_port(service), allocation::health_port(old));
        if matches!(looked_at, (Some(new), Some(old)) if new != old && old != 0) {
            let at = Path::new("spec").child("healthCheckNodePort");
            errors.push(Error::forbidden(&at, "field is immutable"));
        }
        // upstream looks at the class again with the rest
        let spec = checks::spec_of(service);
        validate_class(spec, text(spec, "type"), &Path::new("spec"), &mut errors);
        errors
    };
    kind.warnings = |service, _| warnings(service);
    kind.fields = const {
        &[
            Selectable::text("spec.clusterIP", "/spec/clusterIP"),
            Selectable::text("spec.type", "/spec/type"),
        ]
    };
    kind
}

const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

fn validate(service: &Value) -> ErrorList {
    let mut errors = Vec::new();
    let none = Value::Null;
    let (spec, path) = (service.get("spec").unwrap_or(&none), Path::new("spec"));
    let kind = text(spec, "type");
    let ports = list(spec, "ports");
    // what is made by way of its status has an address in one of both places only
    let headless = list(spec, "clusterIPs") == [json!("None")];
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(Error::required(&path.child("ports"), ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(Error::invalid(&path.child("clusterIPs").index(0), "None", why));
        }
        "ExternalName" => validate_external(spec, &path, &mut errors),
        _ => {}
    }
    validate_ports(ports, &path.child("ports"), &mut errors);
    checks::labels(spec, "selector", &path, &mut errors);
    one_of(spec, "sessionAffinity", &["ClientIP", "None"], &path, &mut errors);
    let timeout = spec
        .at("/sessionAffinityConfig/clientIP/timeoutSeconds")
        .and_then(Value::as_i64)
        .filter(|_| text(spec, "sessionAffinity") == "ClientIP");
    if let Some(seconds) = timeout.filter(|seconds| !(1..=86_400).contains(seconds)) {
        let at = path
            .child("sessionAffinityConfig")
            .child("clientIP")
            .child("timeoutSeconds");
        errors.push(Error::invalid(
            &at,
            seconds,
            "must be greater than 0 and less than 86400",
        ));
    }
    for (index, address) in list(spec, "externalIPs").iter().filter_map(Value::as_str).enumerate() {
        let at = path.child("externalIPs").index(index);
        let before = errors.len();
        addresses::address(address, &at, &mut errors);
        if errors.len() == before {
            addresses::of_endpoint(address, &at, &mut errors);
        }
    }
    if !TYPES.contains(&kind) {
        errors.push(Error::not_supported(&path.child("type"), kind, &TYPES));
    }
    validate_distinct_ports(kind, ports, &path.child("ports"), &mut errors);
    let ranges = list(spec, "loadBalancerSourceRanges");
    let at = path.child("LoadBalancerSourceRanges");
    if !ranges.is_empty() && kind != "LoadBalancer" {
        let why = "may only be used when `type` is 'LoadBalancer'";
        errors.push(Error::forbidden(&at, why));
    }
    for (index, range) in ranges.iter().filter_map(Value::as_str).enumerate() {
        addresses::range(range.trim(), &at.index(index), &mut errors);
    }
    if ranges.is_empty() {
        validate_annotated_ranges(service, kind, &mut errors);
    }
    if kind != "LoadBalancer" && spec.get("allocateLoadBalancerNodePorts").is_some() {
        let why = "may only be used when `type` is 'LoadBalancer'";
        errors.push(Error::forbidden(&path.child("allocateLoadBalancerNodePorts"), why));
    }
    validate_class(spec, kind, &path, &mut errors);
    validate_policies(spec, kind, &path, &mut errors);
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    if let Some(own) = spec.get("trafficDistribution").and_then(Value::as_str)
        && !known.contains(&own)
    {
        errors.push(Error::not_supported(&path.child("trafficDistribution"), own, &known));
    }
    if kind != "ExternalName"
        && let Some(members) = spec.as_object()
    {
        // addresses that are there were looked at when they came
        errors.extend(families::validate(members, &families::texts(members, "clusterIPs")));
    }
    errors
}

/// Ranges from which a load balancer may be asked, as they were told before there was a field for them.
fn validate_annotated_ranges(service: &Value, kind: &str, errors: &mut ErrorList) {
    let Some(told) = checks::annotation(service, SOURCE_RANGES) else {
        return;
    };
    let at = Path::new("metadata").child("annotations").key(SOURCE_RANGES);
    if kind != "LoadBalancer" {
        errors.push(Error::forbidden(&at, "may only be used when `type` is 'LoadBalancer'"));
    }
    let ranges = told.split(',').filter(|_| !told.trim().is_empty());
    for range in ranges {
        addresses::range(range.trim(), &at, errors);
    }
}

/// Who makes the load balancer.
fn validate_class(spec: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    let Some(class) = spec.get("loadBalancerClass").and_then(Value::as_str) else {
        return;
    };
    let at = path.child("loadBalancerClass");
    match kind {
        "LoadBalancer" => checks::syntax(meta::qualified_name(class), class, &at, errors),
        _ => errors.push(Error::forbidden(&at, "may only be used when `type` is 'LoadBalancer'")),
    }
}

fn validate_external(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for key in ["clusterIPs", "ipFamilies"] {
        if !list(spec, key).is_empty() || key == "clusterIPs" && !text(spec, "clusterIP").is_empty() {
            let why = "may not be set for ExternalName services";
            errors.push(Error::forbidden(&path.child(key), why));
        }
    }
    if spec.get("ipFamilyPolicy").is_some() {
        let why = "may not be set for ExternalName services";
        errors.push(Error::forbidden(&path.child("ipFamilyPolicy"), why));
    }
    let at = path.child("externalName");
    match text(spec, "externalName") {
        "" => errors.push(Error::required(&at, "")),
        name => {
            let name = name.strip_suffix('.').unwrap_or(name);
            checks::syntax(meta::dns1123_subdomain(name), name, &at, errors);
        }
    }
}

fn validate_ports(ports: &[Value], path: &Path, errors: &mut ErrorList) {
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = path.index(index);
        let name = text(port, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(Error::required(&at.child("name"), ""));
            }
        } else {
            checks::syntax(meta::dns1123_label(name), name, &at.child("name"), errors);
            if !names.insert(name) {
                errors.push(Error::duplicate(&at.child("name"), name));
            }
        }
        errors.extend(port_number(number(port, "port").unwrap_or(0), &at.child("port")));
        errors.extend(port_protocol(text(port, "protocol"), &at.child("protocol")));
        checks::port(port, "targetPort", &at, errors);
        if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
            checks::syntax(
                meta::qualified_name(protocol),
                protocol,
                &at.child("appProtocol"),
                errors,
            );
        }
    }
}

fn validate_distinct_ports(kind: &str, ports: &[Value], path: &Path, errors: &mut ErrorList) {
    if kind == "ClusterIP" {
        let taking = ports
            .iter()
            .enumerate()
            .filter(|(_, port)| number(port, "nodePort").unwrap_or(0) != 0);
        for (index, _) in taking {
            let why = "may not be used when `type` is 'ClusterIP'";
            errors.push(Error::forbidden(&path.index(index).child("nodePort"), why));
        }
    }
    let (mut of_nodes, mut own) = (BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports.iter().enumerate() {
        let protocol = text(port, "protocol");
        let on_node = number(port, "nodePort").unwrap_or(0);
        if on_node != 0 && !of_nodes.insert((protocol, on_node)) {
            errors.push(Error::duplicate(&path.index(index).child("nodePort"), on_node));
        }
        let number = number(port, "port").unwrap_or(0);
        if !own.insert((protocol, number)) {
            let mut error = Error::duplicate(&path.index(index), "");
            error.show_as(format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}",
                Value::from(protocol)
            ));
            errors.push(error);
        }
    }
}

fn validate_policies(spec: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    let external = text(spec, "externalTrafficPolicy");
    let from_outside =
        matches!(kind, "LoadBalancer" | "NodePort") || kind == "ClusterIP" && !list(spec, "externalIPs").is_empty();
    if from_outside {
        one_of(spec, "externalTrafficPolicy", &["Cluster", "Local"], path, errors);
    } else if !external.is_empty() {
        let why = "may only be set for externally-accessible services";
        errors.push(Error::invalid(&path.child("externalTrafficPolicy"), external, why));
    }
    if let Some(port) = number(spec, "healthCheckNodePort").filter(|port| *port != 0) {
        let why = match checks_health(spec) {
            false => Some("may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"),
            true => (!(1..=65_535).contains(&port)).then_some("must be between 1 and 65535, inclusive"),
        };
        errors.extend(why.map(|why| Error::invalid(&path.child("healthCheckNodePort"), port, why)));
    }
    one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"], path, errors);
}

/// Sentences about what is of no use, or old.
fn warnings(service: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let none = Value::Null;
    let spec = service.get("spec").unwrap_or(&none);
    let (kind, externals) = (text(spec, "type"), !list(spec, "externalIPs").is_empty());
    let headless = kind == "ClusterIP" && text(spec, "clusterIP") == "None";
    let mut warn = |text: &str| warnings.push(text.to_owned());
    if service
        .at("/metadata/annotations/service.kubernetes.io~1topology-aware-hints")
        .is_some()
    {
        warn(
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead",
        );
    }
    if headless {
        if !text(spec, "loadBalancerIP").is_empty() {
            warn("spec.loadBalancerIP is ignored for headless services");
        }
        if externals {
            warn("spec.externalIPs is ignored for headless services");
        }
        if text(spec, "sessionAffinity") != "None" {
            warn("spec.SessionAffinity is ignored for headless services");
        }
    }
    if externals && !headless && kind != "ExternalName" {
        warn("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
    }
    if kind == "ExternalName" && externals {
        warn("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
    }
    if kind != "ExternalName" && !text(spec, "externalName").is_empty() {
        warn("spec.externalName is ignored when spec.type is not \"ExternalName\"");
    }
    if text(spec, "trafficDistribution") == "PreferClose" {
        warn("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    }
    warnings
}

fn validate_status(service: &Value, _: &Value) -> ErrorList {
    let ingress = meta::elements(service, "/status/loadBalancer/ingress");
    let at = Path::new("status").child("loadBalancer").child("ingress");
    let mut errors = Vec::new();
    if meta::text(service, "/spec/type") != "LoadBalancer" && !ingress.is_empty() {
        errors.push(Error::forbidden(
            &at,
            "may only be used when `spec.type` is 'LoadBalancer'",
        ));
        return errors;
    }
    for (index, own) in ingress.iter().enumerate() {
        let (ip, name) = (text(own, "ip"), text(own, "hostname"));
        if !ip.is_empty() {
            ip_address(ip, &at.index(index).child("ip"), &mut errors);
        }
        if !name.is_empty() {
            checks::syntax(
                meta::dns1123_subdomain(name),
                name,
                &at.index(index).child("hostname"),
                &mut errors,
            );
        }
    }
    errors
}

/// Whether a balancer asks nodes by a port of theirs whether they have pods of the service.
fn checks_health(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// Whether a service of this type has ports of nodes.
fn has_node_ports(service: &Value) -> bool {
    matches!(meta::text(service, "/spec/type"), "NodePort" | "LoadBalancer")
}

/// Whether a service is reached from outside of the cluster.
pub(super) fn is_reached_from_outside(service: &Value) -> bool {
    let is_internal = meta::text(service, "/spec/type") == "ClusterIP";
    has_node_ports(service) || is_internal && !meta::elements(service, "/spec/externalIPs").is_empty()
}

/// Takes away what the service does not have any more, where the client left it as it was.
fn drop_what_type_has_not(service: &mut Value, old: &Value) {
    let kind = |service: &Value| meta::text(service, "/spec/type").to_owned();
    let ended = |has: &dyn Fn(&Value) -> bool| has(old) && !has(service);
    let has_address = ended(&|service| kind(service) != "ExternalName");
    let balances = ended(&|service| kind(service) == "LoadBalancer");
    let (ports, health) = (
        ended(&has_node_ports),
        ended(&|service| checks_health(checks::spec_of(service))),
    );
    let outside = ended(&is_reached_from_outside);
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let before = |key: &str| old.get("spec").and_then(|spec| spec.get(key));
    let drop_kept = |spec: &mut serde_json::Map<String, Value>, keys: &[&str]| {
        if keys.iter().all(|key| spec.get(*key) == before(key)) {
            keys.iter().for_each(|key| drop(spec.remove(*key)));
        }
    };
    let is_nothing = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        other => other.is_null(),
    };
    if has_address {
        for key in ["clusterIP", "clusterIPs"] {
            // who takes one form of the address away takes the other
            if spec.get(key).is_some_and(is_nothing) {
                spec.remove(key);
            }
        }
        match (spec.contains_key("clusterIP"), spec.contains_key("clusterIPs")) {
            (true, false) => drop_kept(spec, &["clusterIP"]),
            (false, true) => drop_kept(spec, &["clusterIPs"]),
            _ => drop_kept(spec, &["clusterIP", "clusterIPs"]),
        }
        drop_kept(spec, &["ipFamilies"]);
        drop_kept(spec, &["ipFamilyPolicy"]);
        drop_kept(spec, &["internalTrafficPolicy"]);
    }
    if health {
        drop_kept(spec, &["healthCheckNodePort"]);
    }
    if balances {
        drop_kept(spec, &["allocateLoadBalancerNodePorts"]);
        drop_kept(spec, &["loadBalancerClass"]);
    }
    if outside {
        drop_kept(spec, &["externalTrafficPolicy"]);
    }
    let numbers =
        |ports: &[Value]| -> BTreeSet<i64> { ports.iter().filter_map(|port| number(port, "nodePort")).collect() };
    let own = spec.get_mut("ports").and_then(Value::as_array_mut);
    if let Some(own) = own.filter(|_| ports)
        && numbers(own).is_subset(&numbers(meta::elements(old, "/spec/ports")))
    {
        for port in own.iter_mut().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
}
