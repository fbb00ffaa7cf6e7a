//! The cluster IPs and ports of nodes that services get, from pkg/registry/core/service of Kubernetes: which are free, and which may be asked for.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::pointer::Pointed;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::{checks_health, families, has_node_ports};
use crate::definition::Context;
use crate::kubernetes::checks::{number, spec_of, text};
use crate::meta;

/// Where ports of nodes come from.
const NODE_PORTS: std::ops::Range<i64> = 30_000..32_768;
const OUTSIDE_PORT: &str = "provided port is not in the valid range. The range of valid ports is 30000-32767";
const TAKEN_PORT: &str = "provided port is already allocated";

/// The ranges that cluster IPs come from: the cluster's ServiceCIDR `kubernetes`, or upstream's default.
fn service_ranges(context: &Context<'_>) -> Vec<String> {
    let configured = context
        .lister
        .get("networking.k8s.io", "servicecidrs", "", "kubernetes");
    let ranges: Vec<String> = configured
        .iter()
        .flat_map(|cidr| meta::elements(cidr, "/spec/cidrs"))
        .filter_map(|range| range.as_str().map(str::to_owned))
        .collect();
    match ranges.is_empty() {
        true => vec!["10.0.0.0/24".to_owned()],
        false => ranges,
    }
}

/// Gives a service the cluster IPs and ports of nodes that it lacks, and refuses those that it asks for and may not have.
pub(super) fn allocate(context: &Context<'_>, service: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    if families::kind(service) == "ExternalName" {
        return Ok(());
    }
    allocate_addresses(context, service, old)?;
    allocate_ports(context, service, old)
}

fn allocate_addresses(context: &Context<'_>, service: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    let name = meta::name(service).to_owned();
    let ranges = service_ranges(context);
    let configured: Vec<&str> = ranges.iter().map(|range| families::family(range)).collect();
    if let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) {
        families::follow_address(spec, old);
        families::choose(spec, old, &configured).map_err(|errors| ApiError::invalid("", "Service", &name, &errors))?;
    }
    let mut addresses = addresses_of(service);
    if meta::text(service, "/spec/clusterIP") != "None" {
        let used = LazyCell::new(|| used_addresses(context, ranges.len() > 1));
        let range_of = |family: &str| {
            let range = ranges.iter().find(|range| families::family(range) == family);
            range.map_or("", String::as_str)
        };
        check_addresses(service, old, |asked| {
            let range = range_of(families::family(asked));
            why_not(asked, range, context.dry_run, |asked| used.contains(asked))
        })?;
        let families = meta::elements(service, "/spec/ipFamilies")
            .iter()
            .filter_map(Value::as_str);
        for family in families.skip(addresses.len()) {
            addresses.push(free_ip(context, range_of(family), &used)?);
        }
    }
    if let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) {
        if let Some(first) = addresses.first() {
            spec.insert("clusterIP".into(), first.as_str().into());
        }
        spec.insert("clusterIPs".into(), json!(addresses));
    }
    Ok(())
}

fn allocate_ports(context: &Context<'_>, service: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    let of_balancer = service.at("/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
    let has_some = match families::kind(service) {
        "NodePort" => true,
        "LoadBalancer" => of_balancer,
        _ => false,
    };
    let wants_some = has_some && lacks_node_ports(service);
    let names_some = named_node_ports(service).any(|port| port != 0);
    let kept_health_port = old.and_then(health_port).filter(|port| *port != 0);
    let asked_health_port = health_port(service);
    let others = match names_some || wants_some || asked_health_port.is_some() && kept_health_port.is_none() {
        true => others_of(context, service),
        false => Vec::new(),
    };
    if names_some {
        check_node_ports(context, service, old, &others)?;
    }
    if let Some(spec) = service
        .get_mut("spec")
        .and_then(Value::as_object_mut)
        .filter(|_| wants_some)
    {
        allocate_node_ports(spec, old, &others);
    }
    match (asked_health_port, kept_health_port) {
        (Some(0), Some(kept)) => set_health_port(service, kept),
        (Some(asked), None) => allocate_health_port(service, asked, &others)?,
        // another one than it had is a matter of validation
        (Some(_), Some(_)) | (None, _) => {}
    }
    Ok(())
}

/// The port of nodes by which a balancer sees whether a node has pods of the service: zero, if any will do; none, if the service needs none.
pub(super) fn health_port(service: &Value) -> Option<i64> {
    let asked = || service.at("/spec/healthCheckNodePort").and_then(Value::as_i64);
    checks_health(spec_of(service)).then(|| asked().unwrap_or(0))
}

/// Gives a service the port of nodes that [`health_port`] tells.
fn allocate_health_port(service: &mut Value, asked: i64, others: &[Arc<Value>]) -> Result<(), ApiError> {
    let mut used: BTreeSet<i64> = others.iter().flat_map(|other| node_ports_of(other)).collect();
    used.extend(named_node_ports(service));
    let refused = |why: &str| {
        let why = format!("failed to allocate requested HealthCheck NodePort {asked}: {why}");
        Err(ApiError::internal(&why))
    };
    let port = match asked {
        0 => NODE_PORTS.clone().find(|port| !used.contains(port)),
        asked if !NODE_PORTS.contains(&asked) => return refused(OUTSIDE_PORT),
        asked if used.contains(&asked) => return refused(TAKEN_PORT),
        asked => Some(asked),
    };
    if let Some(port) = port {
        set_health_port(service, port);
    }
    Ok(())
}

fn set_health_port(service: &mut Value, port: i64) {
    if let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("healthCheckNodePort".to_owned(), json!(port));
    }
}

/// The cluster IPs of all services. Only services of two families have more than one.
fn used_addresses(context: &Context<'_>, has_two_families: bool) -> BTreeSet<String> {
    let mut used: BTreeSet<String> = context
        .lister
        .field_values("", "services", "spec.clusterIP")
        .into_iter()
        .collect();
    if has_two_families {
        let services = context.lister.list("", "services", None);
        used.extend(services.iter().flat_map(|service| addresses_of(service)));
    }
    used
}

/// A service's cluster IPs.
fn addresses_of(service: &Value) -> Vec<String> {
    let spec = service.get("spec").and_then(Value::as_object);
    spec.map_or_else(Vec::new, |spec| families::texts(spec, "clusterIPs"))
}

/// Where an address lies, seen from a range of cluster IPs.
enum Place {
    Inside,
    /// It means the network, or all of it: no service may have it.
    Edge,
    Outside,
}

fn within(address: &str, range: &str) -> Place {
    let (Ok(address), Ok(range)) = (address.parse::<IpAddr>(), range.parse::<IpNet>()) else {
        return Place::Outside;
    };
    let is_edge = address == range.network() || address.is_ipv4() && address == range.broadcast();
    match range.contains(&address) {
        true if is_edge => Place::Edge,
        true => Place::Inside,
        false => Place::Outside,
    }
}

/// Why a service may not have an address of a range.
fn why_not(asked: &str, range: &str, is_tried: bool, is_used: impl Fn(&str) -> bool) -> Option<String> {
    match within(asked, range) {
        // upstream looks for the range in another way when it only tries
        Place::Edge if is_tried => Some(format!(
            "the provided IP ({asked}) is not in the valid range. The range of valid IPs is {range}"
        )),
        Place::Edge | Place::Outside => Some("the provided network does not match the current range".to_owned()),
        // what is only tried takes no address
        Place::Inside if !is_tried && is_used(asked) => Some("provided IP is already allocated".to_owned()),
        Place::Inside => None,
    }
}

/// Refuses cluster IPs that a service which has none asks for and may not have.
fn check_addresses(
    service: &Value,
    old: Option<&Value>,
    why_not: impl Fn(&str) -> Option<String>,
) -> Result<(), ApiError> {
    // a service that led outside had none, and others keep theirs, which is a matter of validation
    if old.is_some_and(|old| families::kind(old) != "ExternalName") {
        return Ok(());
    }
    let asked = addresses_of(service);
    // what is no address is a matter of validation, too
    let is_address = |address: &&String| address.parse::<IpAddr>().is_ok();
    for address in asked.iter().filter(is_address) {
        if let Some(why) = why_not(address) {
            let at = Path::new("spec").child("clusterIPs");
            let error = Error::invalid(&at, json!(asked), format!("failed to allocate IP {address}: {why}"));
            return Err(ApiError::invalid("", "Service", meta::name(service), &[error]));
        }
    }
    Ok(())
}

/// The services beside this one.
fn others_of(context: &Context<'_>, service: &Value) -> Vec<Arc<Value>> {
    let own_uid = meta::text(service, "/metadata/uid");
    let mut services = context.lister.list("", "services", None);
    services.retain(|other| own_uid.is_empty() || meta::text(other, "/metadata/uid") != own_uid);
    services
}

/// Refuses ports of nodes that are not for services, or another's. One number may serve several protocols of one service.
fn check_node_ports(
    context: &Context<'_>,
    service: &Value,
    old: Option<&Value>,
    others: &[Arc<Value>],
) -> Result<(), ApiError> {
    if !has_node_ports(service) {
        return Ok(());
    }
    let refused = |index: usize, number: i64, why: &str| {
        let at = Path::new("spec").child("ports").index(index).child("nodePort");
        let error = Error::invalid(&at, number, why);
        Err(ApiError::invalid("", "Service", meta::name(service), &[error]))
    };
    let taken: BTreeSet<i64> = others.iter().flat_map(|other| node_ports_of(other)).collect();
    let kept = old.map(node_ports_of).unwrap_or_default();
    let mut own: BTreeSet<(i64, &str)> = BTreeSet::new();
    for (index, port) in meta::elements(service, "/spec/ports").iter().enumerate() {
        let number = number(port, "nodePort").unwrap_or(0);
        if number == 0 {
            continue;
        }
        if !NODE_PORTS.contains(&number) {
            return refused(index, number, OUTSIDE_PORT);
        }
        // what is only tried takes no port, so that the second one is free, too
        let is_twice = !own.insert((number, text(port, "protocol"))) && !context.dry_run;
        if is_twice || taken.contains(&number) && !kept.contains(&number) {
            return refused(index, number, TAKEN_PORT);
        }
    }
    Ok(())
}

/// All ports of nodes that a service takes.
fn node_ports_of(service: &Value) -> Vec<i64> {
    let health = service.at("/spec/healthCheckNodePort").and_then(Value::as_i64);
    named_node_ports(service).chain(health).collect()
}

/// The ports of nodes that a service's ports name.
fn named_node_ports(service: &Value) -> impl Iterator<Item = i64> {
    let ports = meta::elements(service, "/spec/ports").iter();
    ports.filter_map(|port| number(port, "nodePort"))
}

fn lacks_node_ports(service: &Value) -> bool {
    let ports = service.at("/spec/ports").and_then(Value::as_array);
    ports.into_iter().flatten().any(|port| {
        let number = port.get("nodePort").and_then(Value::as_i64);
        number.is_none_or(|number| number <= 0)
    })
}

fn free_ip(context: &Context<'_>, range: &str, used: &BTreeSet<String>) -> Result<String, ApiError> {
    let exhausted = || ApiError::internal("failed to allocate a serviceIP: range is full");
    let (base, bits) = range.split_once('/').ok_or_else(exhausted)?;
    let bits: u32 = bits.parse().map_err(|_| exhausted())?;
    let base: IpAddr = base.parse().map_err(|_| exhausted())?;
    let size = match base {
        IpAddr::V4(_) => 1u128 << (32 - bits.min(32)),
        IpAddr::V6(_) => 1u128 << (128 - bits.min(128)).min(64),
    };
    // the first address is the API server's own
    for offset in 2..size.saturating_sub(1) {
        let candidate = match base {
            IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from(
                u32::from(ip).wrapping_add(u32::try_from(offset).unwrap_or(u32::MAX)),
            )),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from(u128::from(ip).wrapping_add(offset))),
        };
        let text = candidate.to_string();
        if !used.contains(&text) && (context.dry_run || context.lister.reserve(&text, context.now)) {
            return Ok(text);
        }
    }
    Err(exhausted())
}

/// Gives ports of nodes to the ports that have none: those that ports of the same names had, or free ones.
fn allocate_node_ports(spec: &mut serde_json::Map<String, Value>, old: Option<&Value>, others: &[Arc<Value>]) {
    let old_ports = old.filter(|old| has_node_ports(old));
    let old_ports = old_ports.map_or(&[][..], |old| meta::elements(old, "/spec/ports"));
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    let Some(ports) = ports else { return };
    let named = |port: &Value| number(port, "nodePort").filter(|number| *number > 0);
    let mut used: BTreeSet<i64> = others.iter().flat_map(|other| node_ports_of(other)).collect();
    used.extend(ports.iter().filter_map(named));
    // in a new service, protocols of one port share that of the nodes
    let of_same = ports
        .iter()
        .filter_map(|port| Some((number(port, "port")?, named(port)?)));
    let mut shared: BTreeMap<i64, i64> = of_same.rev().filter(|_| old.is_none()).collect();
    for port in ports.iter_mut().filter(|port| named(port).is_none()) {
        let own = number(port, "port").unwrap_or_default();
        let same_name = |other: &&Value| text(other, "name") == text(port, "name");
        let kept = old_ports.iter().rfind(same_name).and_then(named);
        let is_free = |number: &i64| !used.contains(number);
        let known = shared.get(&own).copied().or_else(|| kept.filter(is_free));
        let found = known.or_else(|| NODE_PORTS.clone().find(is_free));
        if let (Some(found), Some(port)) = (found, port.as_object_mut()) {
            used.insert(found);
            if old.is_none() {
                shared.insert(own, found);
            }
            port.insert("nodePort".into(), json!(found));
        }
    }
}
