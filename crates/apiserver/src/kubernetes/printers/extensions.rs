//! Rows of kinds that extend the API server: custom resources, aggregation, webhooks, policies, flow control, devices.

use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, count, created, items, name, number, or};
use crate::meta;

pub(in crate::kubernetes) fn custom_resource_definition(_: Timestamp, crd: &Value) -> Vec<Value> {
    vec![name(crd), created(crd)]
}

pub(in crate::kubernetes) fn api_service(now: Timestamp, service: &Value) -> Vec<Value> {
    let target = service.at("/spec/service").filter(|own| own.is_object()).map_or_else(
        || "Local".to_owned(),
        |own| format!("{}/{}", meta::text(own, "/namespace"), meta::text(own, "/name")),
    );
    let available = items(service, "/status/conditions")
        .find(|condition| meta::text(condition, "/type") == "Available")
        .map_or_else(
            || "Unknown".to_owned(),
            |condition| {
                let status = meta::text(condition, "/status");
                if status == "True" {
                    status.to_owned()
                } else {
                    format!("{status} ({})", meta::text(condition, "/reason"))
                }
            },
        );
    vec![name(service), target.into(), available.into(), age(now, service).into()]
}

pub(in crate::kubernetes) fn webhook_configuration(now: Timestamp, configuration: &Value) -> Vec<Value> {
    vec![
        name(configuration),
        count(configuration, "/webhooks"),
        age(now, configuration).into(),
    ]
}

pub(in crate::kubernetes) fn admission_policy(now: Timestamp, policy: &Value) -> Vec<Value> {
    let list = if meta::text(policy, "/kind").starts_with("Mutating") {
        "/spec/mutations"
    } else {
        "/spec/validations"
    };
    let kind = policy.at("/spec/paramKind").map_or_else(
        || "<unset>".to_owned(),
        |own| format!("{}/{}", meta::text(own, "/apiVersion"), meta::text(own, "/kind")),
    );
    vec![name(policy), count(policy, list), kind.into(), age(now, policy).into()]
}

pub(in crate::kubernetes) fn admission_policy_binding(now: Timestamp, binding: &Value) -> Vec<Value> {
    let parameter = binding.at("/spec/paramRef").map_or_else(
        || "<unset>".to_owned(),
        |own| {
            let (namespace, own_name) = (meta::text(own, "/namespace"), or(meta::text(own, "/name"), "*"));
            if namespace.is_empty() {
                own_name.to_owned()
            } else {
                format!("{namespace}/{own_name}")
            }
        },
    );
    vec![
        name(binding),
        meta::text(binding, "/spec/policyName").into(),
        parameter.into(),
        age(now, binding).into(),
    ]
}

pub(in crate::kubernetes) fn flow_schema(now: Timestamp, schema: &Value) -> Vec<Value> {
    let dangling = items(schema, "/status/conditions")
        .find(|condition| meta::text(condition, "/type") == "Dangling")
        .map_or("?", |condition| meta::text(condition, "/status"));
    vec![
        name(schema),
        meta::text(schema, "/spec/priorityLevelConfiguration/name").into(),
        json!(number(schema, "/spec/matchingPrecedence")),
        or(meta::text(schema, "/spec/distinguisherMethod/type"), "<none>").into(),
        age(now, schema).into(),
        dangling.into(),
    ]
}

pub(in crate::kubernetes) fn priority_level_configuration(now: Timestamp, level: &Value) -> Vec<Value> {
    let limited = |path: &str| {
        let own = level.at(&format!("/spec/limited/{path}")).and_then(Value::as_i64);
        own.map_or_else(|| json!("<none>"), |own| json!(own))
    };
    vec![
        name(level),
        meta::text(level, "/spec/type").into(),
        limited("nominalConcurrencyShares"),
        limited("limitResponse/queuing/queues"),
        limited("limitResponse/queuing/handSize"),
        limited("limitResponse/queuing/queueLengthLimit"),
        age(now, level).into(),
    ]
}

pub(in crate::kubernetes) fn resource_claim(now: Timestamp, claim: &Value) -> Vec<Value> {
    let mut states = Vec::new();
    if meta::is_deleting(claim) {
        states.push("deleted");
    }
    if claim.at("/status/allocation").is_none() {
        states.push("pending");
    } else {
        states.push("allocated");
        states.push(if items(claim, "/status/reservedFor").next().is_some() {
            "reserved"
        } else {
            ""
        });
    }
    states.retain(|state| !state.is_empty());
    vec![name(claim), states.join(",").into(), age(now, claim).into()]
}

pub(in crate::kubernetes) fn resource_slice(now: Timestamp, slice: &Value) -> Vec<Value> {
    vec![
        name(slice),
        meta::text(slice, "/spec/nodeName").into(),
        meta::text(slice, "/spec/driver").into(),
        meta::text(slice, "/spec/pool/name").into(),
        age(now, slice).into(),
    ]
}
