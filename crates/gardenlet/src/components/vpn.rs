//! The tunnel between control plane and nodes [CP-117].

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::Cluster;
use super::workload::{Container, Workload, container, deployment, secret_volume, service};

/// The Deployment's name in the seed.
pub const SEED_NAME: &str = "vpn-seed-server";
/// The Deployment's name in the shoot.
pub const SHOOT_NAME: &str = "vpn-shoot";

/// The end in the seed.
pub fn manifests(cluster: &Cluster<'_>, replicas: i32) -> Vec<Value> {
    let namespace = cluster.namespace;
    let selector = [("app", SEED_NAME)];
    let server = container(Container {
        name: SEED_NAME,
        image: "vpn-seed-server:v0.40.0".to_owned(),
        mounts: vec![
            ("certs", "/srv/secrets/vpn-server"),
            ("tlsauth", "/srv/secrets/tlsauth"),
        ],
        ports: &[("tcp-tunnel", 1194)],
        requests: ("20m", "20Mi"),
        ..Container::default()
    });
    let proxy = container(Container {
        name: "envoy-proxy",
        image: "envoy:v1.34.0".to_owned(),
        mounts: vec![("certs", "/srv/secrets/vpn-server")],
        ports: &[("http-connect", 9443)],
        requests: ("20m", "20Mi"),
        ..Container::default()
    });
    vec![
        service(
            namespace,
            SEED_NAME,
            &selector,
            &[("openvpn", 1194, 1194), ("envoy", 9443, 9443)],
        ),
        deployment(Workload {
            namespace,
            name: SEED_NAME,
            selector: &selector,
            replicas: Some(replicas),
            priority_class: "gardener-system-300",
            containers: vec![server, proxy],
            volumes: vec![
                secret_volume("certs", &cluster.secret("vpn-seed-server")),
                secret_volume("tlsauth", &cluster.secret("vpn-seed-server-tlsauth")),
            ],
            ..Workload::default()
        }),
    ]
}

/// The end in the shoot.
pub fn shoot_objects(cluster: &Cluster<'_>) -> Vec<Value> {
    let endpoint = cluster
        .external_host
        .clone()
        .unwrap_or_else(|| cluster.internal_host.clone());
    let mut client = super::shoot_system::deployment(
        SHOOT_NAME,
        "vpn-shoot-client:v0.40.0",
        1,
        json!([
            {"name": "ENDPOINT", "value": endpoint},
            {"name": "REVERSED_VPN_HEADER", "value": format!("outbound|1194||vpn-seed-server.{}.svc.cluster.local", cluster.namespace)},
        ]),
    );
    if let Some(labels) = client
        .at_mut("/spec/template/metadata/labels")
        .and_then(Value::as_object_mut)
    {
        // Care looks for tunnels by it.
        labels.insert("type".to_owned(), "tunnel".into());
    }
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": SHOOT_NAME, "namespace": "kube-system"}, "automountServiceAccountToken": false}),
        client,
    ]
}
