//! Rows of networking and discovery kinds.

use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::{age, items, name, number, or, selector};
use crate::meta;

pub(in crate::kubernetes) fn ingress(now: Timestamp, ingress: &Value) -> Vec<Value> {
    let mut hosts: Vec<String> = Vec::new();
    for host in items(ingress, "/spec/rules")
        .map(|rule| meta::text(rule, "/host"))
        .filter(|host| !host.is_empty())
    {
        hosts.push(host.to_owned());
    }
    let address: Vec<String> = items(ingress, "/status/loadBalancer/ingress")
        .map(|own| or(meta::text(own, "/ip"), meta::text(own, "/hostname")).to_owned())
        .collect();
    let ports = if items(ingress, "/spec/tls").next().is_some() {
        "80, 443"
    } else {
        "80"
    };
    let hosts = if hosts.is_empty() {
        "*".to_owned()
    } else {
        super::core::some_of(hosts)
    };
    vec![
        name(ingress),
        or(meta::text(ingress, "/spec/ingressClassName"), "<none>").into(),
        hosts.into(),
        address.join(",").into(),
        ports.into(),
        age(now, ingress).into(),
    ]
}

pub(in crate::kubernetes) fn ingress_class(now: Timestamp, class: &Value) -> Vec<Value> {
    let parameters = class.at("/spec/parameters").map_or_else(
        || "<none>".to_owned(),
        |own| {
            let group = meta::text(own, "/apiGroup");
            let kind = meta::text(own, "/kind");
            if group.is_empty() {
                format!("{kind}/{}", meta::text(own, "/name"))
            } else {
                format!("{kind}.{group}/{}", meta::text(own, "/name"))
            }
        },
    );
    vec![
        name(class),
        meta::text(class, "/spec/controller").into(),
        parameters.into(),
        age(now, class).into(),
    ]
}

pub(in crate::kubernetes) fn network_policy(now: Timestamp, policy: &Value) -> Vec<Value> {
    vec![
        name(policy),
        selector(policy.at("/spec/podSelector")).into(),
        age(now, policy).into(),
    ]
}

pub(in crate::kubernetes) fn ip_address(now: Timestamp, address: &Value) -> Vec<Value> {
    let parent = address.at("/spec/parentRef").map_or_else(String::new, |parent| {
        let group = meta::text(parent, "/group");
        let resource = meta::text(parent, "/resource");
        let resource = if group.is_empty() {
            resource.to_owned()
        } else {
            format!("{resource}.{group}")
        };
        format!(
            "{resource}/{}/{}",
            meta::text(parent, "/namespace"),
            meta::text(parent, "/name")
        )
    });
    // upstream tells the age, too, without a column for it
    vec![name(address), parent.into(), age(now, address).into()]
}

pub(in crate::kubernetes) fn service_cidr(now: Timestamp, cidr: &Value) -> Vec<Value> {
    let cidrs: Vec<&str> = items(cidr, "/spec/cidrs").filter_map(Value::as_str).collect();
    vec![name(cidr), cidrs.join(",").into(), age(now, cidr).into()]
}

pub(in crate::kubernetes) fn endpoint_slice(now: Timestamp, slice: &Value) -> Vec<Value> {
    let short = |list: Vec<String>| {
        if list.is_empty() {
            return "<unset>".to_owned();
        }
        super::core::some_of(list)
    };
    let ports = items(slice, "/ports")
        .map(|port| match (port.get("port"), port.get("name")) {
            (None, None) => "*".to_owned(),
            (None, Some(name)) => name.as_str().unwrap_or_default().to_owned(),
            _ => number(port, "/port").to_string(),
        })
        .collect();
    let addresses = items(slice, "/endpoints")
        .flat_map(|endpoint| items(endpoint, "/addresses").filter_map(Value::as_str))
        .map(str::to_owned)
        .collect();
    vec![
        name(slice),
        meta::text(slice, "/addressType").into(),
        short(ports).into(),
        short(addresses).into(),
        age(now, slice).into(),
    ]
}
