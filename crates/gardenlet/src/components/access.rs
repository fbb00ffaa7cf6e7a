//! Access to the shoot's API for what runs in the seed [CP-101], [EXT-180].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::kubeconfig::{self, Authority, Cluster, User};
use gardener_apis::core::v1beta1::Shoot;
use serde_json::{Value, json};

/// The Secret into which the token of a component's service account is written.
pub fn token_request(namespace: &str, secret: &str, account: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": secret, "namespace": namespace,
            "labels": {
                "resources.gardener.cloud/purpose": "token-requestor",
                "resources.gardener.cloud/class": "shoot",
            },
            "annotations": {
                "serviceaccount.resources.gardener.cloud/name": account,
                "serviceaccount.resources.gardener.cloud/namespace": "kube-system",
            },
        },
    })
}

/// The access Secret of a component, `shoot-access-<component>`.
pub fn component(namespace: &str, component: &str) -> Value {
    token_request(namespace, &name(component), component)
}

/// The name of a component's access Secret.
pub fn name(component: &str) -> String {
    format!("shoot-access-{component}")
}

/// A kubeconfig whose token is read from a file, or, without one, is written into it.
fn shoot_kubeconfig(server: &str, authority: &str, token_file: Option<&str>) -> Value {
    let cluster = Cluster {
        server: server.to_owned(),
        tls_server_name: None,
        authority: Authority::Certificate(authority),
    };
    kubeconfig::kubeconfig("shoot", cluster, token_file.map_or(User::Token(""), User::TokenFile))
}

/// The generic kubeconfig, to be mounted beside a token; its name changes with its content [EXT-72].
pub fn generic_kubeconfig(namespace: &str, authority: &str) -> (String, Value) {
    let file = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/token";
    let text = shoot_kubeconfig("https://kube-apiserver", authority, Some(file)).to_string();
    let name = format!("generic-token-kubeconfig-{}", crate::checksum::short(&text));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": name, "namespace": namespace, "labels": {
            "name": "generic-token-kubeconfig", "managed-by": "secrets-manager",
        }},
        "data": {"kubeconfig": STANDARD.encode(text)},
    });
    (name, secret)
}

/// The Secrets of gardenlet's own access [CP-101].
pub fn gardener_secrets(namespace: &str, external: Option<&str>, internal: &str, authority: &str) -> Vec<Value> {
    let with_kubeconfig = |name: &str, server: &str| {
        let mut secret = token_request(namespace, name, name);
        let text = shoot_kubeconfig(server, authority, None).to_string();
        let data = json!({"kubeconfig": STANDARD.encode(text)});
        // The token requestor writes the token into it: after the creation it is not gardenlet's.
        if let Some(fields) = secret.as_object_mut() {
            fields.insert("data".to_owned(), data);
        }
        secret
    };
    let external = external.map_or_else(|| internal.to_owned(), |host| format!("https://{host}"));
    vec![
        with_kubeconfig("gardener", &external),
        with_kubeconfig("gardener-internal", internal),
    ]
}

/// What the shoot holds for gardenlet's access.
pub fn gardener_objects() -> Vec<Value> {
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "kube-system"}, "automountServiceAccountToken": false});
    let subject = |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": "kube-system"});
    vec![
        account("gardener"),
        account("gardener-internal"),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "gardener.cloud:system:gardener"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [subject("gardener"), subject("gardener-internal")],
        }),
        // [AUTH-41]
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "gardener.cloud:system:admins"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "gardener.cloud:system:admins"},
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "gardener.cloud:project:admins"},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "gardener.cloud:system:read-only"},
            "rules": [
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
                {"nonResourceURLs": ["*"], "verbs": ["get"]},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "gardener.cloud:system:viewers"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gardener.cloud:system:read-only"},
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "gardener.cloud:system:viewers"},
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "gardener.cloud:project:viewers"},
            ],
        }),
    ]
}

/// The credentials of the provider's account as components in the seed read them [CP-44].
pub fn cloud_provider_secret(namespace: &str, shoot: &Shoot, data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": "cloudprovider", "namespace": namespace,
            "labels": {
                "gardener.cloud/purpose": "cloudprovider",
                format!("provider.shoot.gardener.cloud/{}", shoot.spec.provider.r#type): "true",
            },
        },
        "data": data,
    })
}
