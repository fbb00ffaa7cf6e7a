//! Rows of storage kinds.

use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, count, created, items, joined, name, or};
use crate::meta;

fn flag(object: &Value, pointer: &str) -> Value {
    json!(object.at(pointer).and_then(Value::as_bool).unwrap_or(false))
}

pub(in crate::kubernetes) fn storage_class(now: Timestamp, class: &Value) -> Vec<Value> {
    let default = class
        .at("/metadata/annotations/storageclass.kubernetes.io~1is-default-class")
        .and_then(Value::as_str)
        == Some("true");
    let shown = if default {
        format!("{} (default)", meta::name(class))
    } else {
        meta::name(class).to_owned()
    };
    vec![
        shown.into(),
        meta::text(class, "/provisioner").into(),
        meta::text(class, "/reclaimPolicy").into(),
        meta::text(class, "/volumeBindingMode").into(),
        flag(class, "/allowVolumeExpansion"),
        age(now, class).into(),
    ]
}

pub(in crate::kubernetes) fn csi_driver(now: Timestamp, driver: &Value) -> Vec<Value> {
    let tokens = joined(items(driver, "/spec/tokenRequests").map(|request| meta::text(request, "/audience")));
    let tokens = if tokens == "<none>" {
        "<unset>".to_owned()
    } else {
        tokens
    };
    vec![
        name(driver),
        flag(driver, "/spec/attachRequired"),
        flag(driver, "/spec/podInfoOnMount"),
        flag(driver, "/spec/storageCapacity"),
        tokens.into(),
        flag(driver, "/spec/requiresRepublish"),
        joined(items(driver, "/spec/volumeLifecycleModes").filter_map(Value::as_str)).into(),
        age(now, driver).into(),
    ]
}

pub(in crate::kubernetes) fn csi_node(now: Timestamp, node: &Value) -> Vec<Value> {
    vec![name(node), count(node, "/spec/drivers"), age(now, node).into()]
}

pub(in crate::kubernetes) fn csi_storage_capacity(_: Timestamp, capacity: &Value) -> Vec<Value> {
    vec![name(capacity), created(capacity)]
}

pub(in crate::kubernetes) fn volume_attachment(now: Timestamp, attachment: &Value) -> Vec<Value> {
    vec![
        name(attachment),
        meta::text(attachment, "/spec/attacher").into(),
        or(meta::text(attachment, "/spec/source/persistentVolumeName"), "").into(),
        meta::text(attachment, "/spec/nodeName").into(),
        flag(attachment, "/status/attached"),
        age(now, attachment).into(),
    ]
}

pub(in crate::kubernetes) fn volume_attributes_class(now: Timestamp, class: &Value) -> Vec<Value> {
    vec![
        name(class),
        meta::text(class, "/driverName").into(),
        age(now, class).into(),
    ]
}
