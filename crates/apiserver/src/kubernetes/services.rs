//! Services: cluster IPs and node ports.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use ipnet::IpNet;
use serde_json::{Value, json};

use super::checks::{port_number, port_protocol};
use super::strategy::Kind;
use crate::definition::Context;
use crate::meta;

/// Where node ports come from.
const NODE_PORTS: std::ops::Range<i64> = 30_000..32_768;

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.name = meta::dns1123_label;
    kind.prepare_create = |context, service| allocate(context, service, None);
    kind.prepare_update = |context, service, old| allocate(context, service, Some(old));
    kind.validate = validate;
    kind.validate_update = |service, old| {
        let (new_ip, old_ip) = (
            meta::text(service, "/spec/clusterIP"),
            meta::text(old, "/spec/clusterIP"),
        );
        let external = |service: &Value| meta::text(service, "/spec/type") == "ExternalName";
        if new_ip == old_ip || external(service) || external(old) || old_ip.is_empty() {
            return Vec::new();
        }
        vec![Error::invalid(
            &Path::new("spec").child("clusterIPs").index(0),
            json!([new_ip]),
            "may not change once set",
        )]
    };
    kind.fields = |service| {
        vec![
            ("spec.clusterIP".into(), meta::text(service, "/spec/clusterIP").into()),
            ("spec.type".into(), meta::text(service, "/spec/type").into()),
        ]
    };
    kind
}

fn validate(service: &Value) -> ErrorList {
    let path = Path::new("spec").child("ports");
    let ports = service
        .pointer("/spec/ports")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut errors = Vec::new();
    let headless = meta::text(service, "/spec/clusterIP") == "None";
    let external = meta::text(service, "/spec/type") == "ExternalName";
    if ports.is_empty() && !headless && !external {
        errors.push(Error::required(&path, ""));
    }
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = path.index(index);
        let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
        errors.extend(port_number(number, &at.child("port")));
        errors.extend(port_protocol(meta::text(port, "/protocol"), &at.child("protocol")));
        let target = port.get("targetPort").and_then(Value::as_i64);
        errors.extend(target.and_then(|target| port_number(target, &at.child("targetPort"))));
        let name = meta::text(port, "/name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(Error::required(&at.child("name"), ""));
            }
        } else {
            errors.extend(
                meta::dns1123_label(name)
                    .into_iter()
                    .map(|error| Error::invalid(&at.child("name"), name, error)),
            );
            if !names.insert(name) {
                errors.push(Error::duplicate(&at.child("name"), name));
            }
        }
    }
    let kind = meta::text(service, "/spec/type");
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !kinds.contains(&kind) {
        errors.push(Error::not_supported(&Path::new("spec").child("type"), kind, &kinds));
    }
    errors
}

/// The range that cluster IPs come from: the cluster's ServiceCIDR `kubernetes`, or upstream's default.
fn service_range(context: &Context<'_>) -> String {
    context
        .lister
        .get("networking.k8s.io", "servicecidrs", "", "kubernetes")
        .and_then(|cidr| cidr.pointer("/spec/cidrs/0").and_then(Value::as_str).map(str::to_owned))
        .unwrap_or_else(|| "10.0.0.0/24".to_owned())
}

fn allocate(context: &Context<'_>, service: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    let kind = meta::text(service, "/spec/type").to_owned();
    if kind == "ExternalName" {
        return Ok(());
    }
    let kept = old
        .map(|old| meta::text(old, "/spec/clusterIP").to_owned())
        .filter(|ip| !ip.is_empty());
    let asked = meta::text(service, "/spec/clusterIP").to_owned();
    let used = || -> BTreeSet<String> {
        let addresses = context.lister.field_values("", "services", "spec.clusterIP");
        addresses.into_iter().collect()
    };
    let range = service_range(context);
    let outside = |ip: &str| match (ip.parse::<IpAddr>(), range.parse::<IpNet>()) {
        (Ok(ip), Ok(range)) => !range.contains(&ip) && ip.is_ipv4() == range.addr().is_ipv4(),
        _ => false,
    };
    if old.is_none() && outside(&asked) {
        let error = Error::invalid(
            &Path::new("spec").child("clusterIPs"),
            json!([asked]),
            format!("failed to allocate IP {asked}: the provided network does not match the current range"),
        );
        return Err(ApiError::invalid("", "Service", meta::name(service), &[error]));
    }
    let ip = match (asked.is_empty(), kept) {
        (false, _) => asked.clone(),
        (true, Some(kept)) => kept,
        (true, None) => free_ip(context, &range, &used())?,
    };
    if old.is_none() && !asked.is_empty() && asked != "None" && used().contains(&asked) {
        let error = Error::invalid(
            &Path::new("spec").child("clusterIPs").index(0),
            json!([asked]),
            "failed to allocate IP: provided IP is already allocated",
        );
        return Err(ApiError::invalid("", "Service", meta::name(service), &[error]));
    }
    let family = if ip.contains(':') { "IPv6" } else { "IPv4" };
    let wants_node_ports = matches!(kind.as_str(), "NodePort" | "LoadBalancer") && lacks_node_ports(service);
    let own_uid = meta::text(service, "/metadata/uid").to_owned();
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    spec.insert("clusterIP".into(), ip.clone().into());
    spec.entry("clusterIPs").or_insert_with(|| json!([ip]));
    spec.entry("ipFamilies").or_insert_with(|| json!([family]));
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!("SingleStack"));
    if wants_node_ports {
        let others = context.lister.list("", "services", None);
        let others: Vec<&Value> = others
            .iter()
            .map(std::convert::AsRef::as_ref)
            .filter(|other| meta::text(other, "/metadata/uid") != own_uid)
            .collect();
        allocate_node_ports(spec, old, &others);
    }
    Ok(())
}

fn lacks_node_ports(service: &Value) -> bool {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array);
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

fn allocate_node_ports(spec: &mut serde_json::Map<String, Value>, old: Option<&Value>, others: &[&Value]) {
    let ports_of = |service: &Value| -> Vec<i64> {
        service
            .pointer("/spec/ports")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|port| port.get("nodePort").and_then(Value::as_i64))
            .collect()
    };
    let mut used: BTreeSet<i64> = others.iter().flat_map(|other| ports_of(other)).collect();
    let old_ports = old
        .and_then(|old| old.pointer("/spec/ports"))
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for port in spec
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if port
            .get("nodePort")
            .and_then(Value::as_i64)
            .is_some_and(|port| port > 0)
        {
            continue;
        }
        let same =
            |other: &&Value| other.get("port") == port.get("port") && other.get("protocol") == port.get("protocol");
        let kept = old_ports
            .iter()
            .find(same)
            .and_then(|other| other.get("nodePort").and_then(Value::as_i64))
            .filter(|port| *port > 0);
        let number = kept.or_else(|| NODE_PORTS.clone().find(|number| !used.contains(number)));
        if let (Some(number), Some(port)) = (number, port.as_object_mut()) {
            used.insert(number);
            port.insert("nodePort".into(), json!(number));
        }
    }
}
