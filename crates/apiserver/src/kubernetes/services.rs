//! Services. What they are given, cluster IPs and node ports, is in `allocation`, of which families in `families`.

mod allocation;
mod families;

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::addresses;
use super::checks::{self, list, number, one_of, port_number, port_protocol, text};
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
    kind.validate_create = |service| validate(service, None);
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
        errors.extend(validate(service, Some(old)));
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
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MODE: &str = "service.kubernetes.io/topology-mode";
const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// What is wrong with a service, or with its change: addresses and ranges that were there may stay.
fn validate(service: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = Vec::new();
    let was_there = |key: &str, own: &str| {
        let before = old.map_or(&[][..], |old| list(checks::spec_of(old), key));
        before.iter().filter_map(Value::as_str).any(|old| old.trim() == own)
    };
    let none = Value::Null;
    let (spec, path) = (service.get("spec").unwrap_or(&none), Path::new("spec"));
    if let (Some(hints), Some(mode)) = (checks::annotation(service, HINTS), checks::annotation(service, MODE))
        && hints != mode
    {
        let why = format!("must match annotations[{HINTS}] when both are specified");
        let at = Path::new("metadata").child("annotations").key(MODE);
        errors.push(Error::invalid(&at, mode, why));
    }
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
        if !was_there("externalIPs", address) {
            addresses::address(address, &at, &mut errors);
        }
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
    for (index, range) in ranges.iter().filter_map(Value::as_str).map(str::trim).enumerate() {
        if !was_there("loadBalancerSourceRanges", range) {
            addresses::range(range, &at.index(index), &mut errors);
        }
    }
    if ranges.is_empty() {
        validate_annotated_ranges(service, old, kind, &mut errors);
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
fn validate_annotated_ranges(service: &Value, old: Option<&Value>, kind: &str, errors: &mut ErrorList) {
    let Some(told) = checks::annotation(service, SOURCE_RANGES) else {
        return;
    };
    let at = Path::new("metadata").child("annotations").key(SOURCE_RANGES);
    if kind != "LoadBalancer" {
        errors.push(Error::forbidden(&at, "may only be used when `type` is 'LoadBalancer'"));
    }
    if old.and_then(|old| checks::annotation(old, SOURCE_RANGES)) == Some(told) {
        return;
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
    let path = Path::new("spec");
    let unusual = |key: &str| -> Vec<String> {
        let all = list(spec, key).iter().filter_map(Value::as_str).enumerate();
        let at = path.child(key);
        all.filter_map(|(index, own)| addresses::unusual(own, &at.index(index)))
            .collect()
    };
    if checks::annotation(service, HINTS).is_some() {
        warnings.push(format!("annotation {HINTS} is deprecated, please use {MODE} instead"));
    }
    if !matches!(text(spec, "clusterIP"), "" | "None") {
        warnings.extend(unusual("clusterIPs"));
    }
    let mut warn = |text: &str| warnings.push(text.to_owned());
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
    warnings.extend(unusual("externalIPs"));
    if externals && !headless && kind != "ExternalName" {
        warnings.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    warnings.extend(addresses::unusual(
        text(spec, "loadBalancerIP"),
        &path.child("loadBalancerIP"),
    ));
    let ranges = list(spec, "loadBalancerSourceRanges").iter().filter_map(Value::as_str);
    for (index, range) in ranges.enumerate() {
        let at = path.child("loadBalancerSourceRanges").index(index);
        warnings.extend(addresses::unusual_range(range, &at));
    }
    let mut warn = |text: &str| warnings.push(text.to_owned());
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

fn validate_status(service: &Value, old: &Value) -> ErrorList {
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
    let before = meta::elements(old, "/status/loadBalancer/ingress");
    for (index, own) in ingress.iter().enumerate() {
        let at = at.index(index);
        let (ip, name) = (text(own, "ip"), text(own, "hostname"));
        // what was there may stay
        if !ip.is_empty() && !before.iter().any(|before| text(before, "ip") == ip) {
            addresses::address(ip, &at.child("ip"), &mut errors);
        }
        let mode = at.child("ipMode");
        match own.get("ipMode").and_then(Value::as_str) {
            None if !ip.is_empty() => errors.push(Error::required(&mode, "must be specified when `ip` is set")),
            None => {}
            Some(_) if ip.is_empty() => {
                errors.push(Error::forbidden(&mode, "may not be specified when `ip` is not set"));
            }
            Some(_) => checks::one_of_if_set(own, "ipMode", &["Proxy", "VIP"], &at, &mut errors),
        }
        if !name.is_empty() {
            let at = at.child("hostname");
            checks::syntax(meta::dns1123_subdomain(name), name, &at, &mut errors);
            if addresses::lenient(name).is_some() {
                errors.push(Error::invalid(&at, name, addresses::NO_NAME));
            }
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
    if kind(service) != "LoadBalancer"
        && let Some(status) = service.get_mut("status").and_then(Value::as_object_mut)
    {
        status.insert("loadBalancer".to_owned(), json!({}));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_balancers_are_told_by_address_or_by_name() {
        let service =
            |told: Value| json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [told]}}});
        let old = service(json!({"ip": "010.0.0.1", "ipMode": "VIP"}));
        for (told, expected) in [
            (json!({"ip": "10.0.0.1", "ipMode": "VIP"}), None),
            (json!({"ip": "010.0.0.1", "ipMode": "Proxy"}), None),
            (
                json!({"ip": "010.0.0.2", "ipMode": "VIP"}),
                Some("[0].ip: Invalid value: \"010.0.0.2\": must not have leading 0s"),
            ),
            (
                json!({"ip": "10.0.0.1"}),
                Some("[0].ipMode: Required value: must be specified when `ip` is set"),
            ),
            (
                json!({"ip": "10.0.0.1", "ipMode": "Other"}),
                Some("[0].ipMode: Unsupported value: \"Other\": supported values: \"Proxy\", \"VIP\""),
            ),
            (
                json!({"hostname": "a.b", "ipMode": "VIP"}),
                Some("[0].ipMode: Forbidden: may not be specified when `ip` is not set"),
            ),
            (
                json!({"hostname": "10.0.0.1"}),
                Some("[0].hostname: Invalid value: \"10.0.0.1\": must be a DNS name, not an IP address"),
            ),
        ] {
            let errors = validate_status(&service(told), &old);
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let expected: Vec<String> = expected
                .into_iter()
                .map(|own| format!("status.loadBalancer.ingress{own}"))
                .collect();
            assert_eq!(errors, expected);
        }
        let mut told = service(json!({"ip": "10.0.0.1"}));
        super::super::defaults::service(&mut told);
        assert_eq!(told.at("/status/loadBalancer/ingress/0/ipMode"), Some(&json!("VIP")));
    }

    #[test]
    fn who_is_no_load_balancer_any_more_has_none() {
        let status = json!({"loadBalancer": {"ingress": [{"ip": "10.0.0.1", "ipMode": "VIP"}]}});
        let service = |kind: &str| json!({"spec": {"type": kind}, "status": status});
        let mut changed = service("ClusterIP");
        drop_what_type_has_not(&mut changed, &service("LoadBalancer"));
        assert_eq!(changed.at("/status"), Some(&json!({"loadBalancer": {}})));
        let mut same = service("LoadBalancer");
        drop_what_type_has_not(&mut same, &service("LoadBalancer"));
        assert_eq!(same.at("/status"), Some(&status));
    }

    #[test]
    fn addresses_that_were_there_may_stay() {
        let service = |address: &str, range: &str| {
            json!({"spec": {
                "type": "LoadBalancer",
                "externalIPs": [address],
                "loadBalancerSourceRanges": [range],
            }})
        };
        let old = service("010.0.0.1", " 10.0.0.1/8");
        let wrong = |address: &str, range: &str, old: Option<&Value>| {
            let of_address = |at: &str| at.contains("externalIPs[") || at.contains("Ranges[");
            let errors = validate(&service(address, range), old);
            errors.iter().filter(|error| of_address(error.path.as_str())).count()
        };
        assert_eq!(wrong("010.0.0.1", "10.0.0.1/8", None), 2);
        assert_eq!(wrong("010.0.0.1", "10.0.0.1/8", Some(&old)), 0);
        assert_eq!(wrong("010.0.0.2", "10.0.0.2/8", Some(&old)), 2);
    }

    #[test]
    fn annotations_of_topology_agree() {
        let told = |hints: &str, mode: &str| {
            let service = json!({
                "metadata": {"annotations": {HINTS: hints, MODE: mode}},
                "spec": {"type": "ExternalName", "externalName": "a.b", "internalTrafficPolicy": "Cluster"},
            });
            validate(&service, None)
                .iter()
                .filter(|error| error.path.as_str().starts_with("metadata"))
                .count()
        };
        assert_eq!(told("Auto", "Auto"), 0);
        assert_eq!(told("Auto", "Disabled"), 1);
    }
}
