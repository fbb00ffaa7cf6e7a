//! Nodes keep the status they register with.

use serde_json::{Value, json};

use super::strategy::Kind;

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
