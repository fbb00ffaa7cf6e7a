//! Writes kubeconfigs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_pki::Issued;
use serde_json::{Value, json};

/// How a cluster is reached and who asks.
pub struct Access<'a> {
    /// Name of cluster, context and user.
    pub name: &'a str,
    /// URL of the API server.
    pub server: &'a str,
    /// The host name to ask for in TLS, when it is not the URL's.
    pub tls_server_name: Option<&'a str>,
    /// Certificate of the authority, PEM.
    pub authority: &'a str,
    /// The client's certificate and key.
    pub client: &'a Issued,
}

/// A kubeconfig with these ways in; the first is the current context.
pub fn kubeconfig(ways: &[Access<'_>]) -> Value {
    let clusters: Vec<Value> = ways
        .iter()
        .map(|way| {
            let mut cluster =
                json!({"certificate-authority-data": STANDARD.encode(way.authority), "server": way.server});
            if let (Some(cluster), Some(name)) = (cluster.as_object_mut(), way.tls_server_name) {
                cluster.insert("tls-server-name".into(), name.into());
            }
            json!({"name": way.name, "cluster": cluster})
        })
        .collect();
    let users: Vec<Value> = ways
        .iter()
        .map(|way| {
            json!({"name": way.name, "user": {
                "client-certificate-data": STANDARD.encode(&way.client.certificate),
                "client-key-data": STANDARD.encode(&way.client.key),
            }})
        })
        .collect();
    let contexts: Vec<Value> = ways
        .iter()
        .map(|way| json!({"name": way.name, "context": {"cluster": way.name, "user": way.name}}))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Config",
        "current-context": ways.first().map_or("", |way| way.name),
        "clusters": clusters, "contexts": contexts, "users": users, "preferences": {},
    })
}
