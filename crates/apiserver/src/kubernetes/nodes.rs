//! Nodes keep the status they register with.

use gardener_apimachinery::field::{Error, Path};
use serde_json::{Value, json};

use super::strategy::Kind;
use crate::meta;

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.keeps_status = true;
    kind.default = |node| {
        let cidr = node.pointer("/spec/podCIDR").and_then(Value::as_str).map(str::to_owned);
        if let (Some(cidr), Some(spec)) = (cidr, node.get_mut("spec").and_then(Value::as_object_mut)) {
            spec.entry("podCIDRs").or_insert_with(|| json!([cidr]));
        }
    };
    // a node that registers is not ready until its controller says so
    kind.prepare_create = |_, node| {
        let Some(members) = node.as_object_mut() else {
            return Ok(());
        };
        let spec = members.entry("spec").or_insert_with(|| json!({}));
        if let Some(spec) = spec.as_object_mut() {
            let taints = spec.entry("taints").or_insert_with(|| json!([]));
            if let Some(taints) = taints.as_array_mut()
                && !taints
                    .iter()
                    .any(|taint| taint.get("key") == Some(&json!("node.kubernetes.io/not-ready")))
            {
                taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
            }
        }
        Ok(())
    };
    kind.validate = |node| {
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        let mut errors = Vec::new();
        for (index, taint) in meta::elements(node, "/spec/taints").iter().enumerate() {
            let path = Path::new("metadata").child("taints").index(index);
            match meta::text(taint, "/effect") {
                "" => errors.push(Error::required(&path.child("effect"), "")),
                effect if !effects.contains(&effect) => {
                    errors.push(Error::not_supported(&path.child("effect"), effect, &effects));
                }
                _ => {}
            }
        }
        errors
    };
    kind.validate_update = |node, old| {
        let ranges = |node: &Value| node.pointer("/spec/podCIDRs").cloned().filter(|all| !all.is_null());
        match ranges(old) {
            Some(before) if ranges(node) != Some(before.clone()) => vec![Error::forbidden(
                &Path::new("spec").child("podCIDRs"),
                "node updates may not change podCIDR except from \"\" to valid",
            )],
            _ => Vec::new(),
        }
    };
    kind.fields = |node| {
        vec![(
            "spec.unschedulable".into(),
            node.pointer("/spec/unschedulable")
                .and_then(Value::as_bool)
                .unwrap_or(false)
                .to_string(),
        )]
    };
    kind
}
