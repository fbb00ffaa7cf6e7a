//! What gardener-node-agent needs in the shoot [OSC-6].

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

/// The Secret in kube-system with the operating system config of a pool, and the checksum that its nodes report.
pub fn secret(name: &str, pool: &str, config: &Value) -> (Value, String) {
    use base64::Engine;
    let text = without_times(config).to_string();
    let checksum = crate::checksum::long(&text);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": name, "namespace": "kube-system",
            "labels": {
                "gardener.cloud/role": "operating-system-config",
                "worker.gardener.cloud/pool": pool,
            },
            "annotations": {"checksum/data-script": checksum},
        },
        "data": {"osc.yaml": base64::engine::general_purpose::STANDARD.encode(text)},
    });
    (secret, checksum)
}

/// The config with what its nodes read: times and bookkeeping would change it without content [OSC-6].
fn without_times(config: &Value) -> Value {
    let part = |pointer: &str| config.at(pointer).cloned().unwrap_or(Value::Null);
    let mut status = json!({});
    if let Some(fields) = status.as_object_mut() {
        for key in ["extensionUnits", "extensionFiles", "inPlaceUpdates"] {
            let value = part(&format!("/status/{key}"));
            if !value.is_null() {
                fields.insert(key.to_owned(), value);
            }
        }
    }
    json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "OperatingSystemConfig",
        "metadata": {"name": part("/metadata/name"), "namespace": part("/metadata/namespace")},
        "spec": part("/spec"),
        "status": status,
    })
}

/// Who may do what: node agents by their bootstrap tokens and certificates, kubelets by theirs.
pub fn shoot_objects(secrets: &[String]) -> Vec<Value> {
    let group = |name: &str| json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}]);
    let binding = |name: &str, role: &str, subjects: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": subjects,
        })
    };
    let names: Vec<&str> = secrets
        .iter()
        .map(String::as_str)
        .chain(["gardener-valitail"])
        .collect();
    vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gardener-node-agent"},
            "rules": [
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch", "update"]},
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "delete"]},
                {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
                {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create", "get"]},
            ],
        }),
        binding(
            "gardener-node-agent",
            "gardener-node-agent",
            group("gardener.cloud:node-agents"),
        ),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "gardener-node-agent", "namespace": "kube-system"},
            "rules": [
                {"apiGroups": [""], "resources": ["secrets"], "resourceNames": names, "verbs": ["get", "list", "watch"]},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "list", "watch", "update", "patch"]},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "gardener-node-agent", "namespace": "kube-system"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "gardener-node-agent"},
            "subjects": group("gardener.cloud:node-agents"),
        }),
        binding(
            "system:node-bootstrapper",
            "system:node-bootstrapper",
            group("system:bootstrappers"),
        ),
        binding(
            "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
            "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
            group("system:bootstrappers"),
        ),
        binding(
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            group("system:nodes"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn osc_6_times_do_not_count() {
        let config = |time: &str, path: &str| {
            json!({
                "metadata": {"name": "x", "resourceVersion": time},
                "spec": {"files": [{"path": path}]},
                "status": {"lastOperation": {"lastUpdateTime": time}},
            })
        };
        let checksum = |config: &Value| secret("key", "pool", config).1;
        assert_eq!(checksum(&config("1", "/a")), checksum(&config("2", "/a")));
        assert_ne!(checksum(&config("1", "/a")), checksum(&config("1", "/b")));
    }
}
