//! The namespace of a control plane [CP-2].

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Cluster;

/// The annotation with the zones.
pub const ZONES: &str = "high-availability-config.resources.gardener.cloud/zones";
/// The annotation with the failure tolerance.
pub const FAILURE_TOLERANCE: &str = "high-availability-config.resources.gardener.cloud/failure-tolerance-type";

/// The namespace; `extensions` are the types of the enabled extensions.
pub fn manifest(cluster: &Cluster<'_>, extensions: &BTreeSet<String>, zones: &[String]) -> Value {
    let mut labels = Map::new();
    let mut label = |key: String, value: &str| labels.insert(key, value.into());
    let seed_provider = cluster.seed.spec.provider.r#type.as_str();
    label("gardener.cloud/role".to_owned(), "shoot");
    label("seed.gardener.cloud/provider".to_owned(), seed_provider);
    label(
        "shoot.gardener.cloud/provider".to_owned(),
        &cluster.shoot.spec.provider.r#type,
    );
    let network = cluster
        .shoot
        .spec
        .networking
        .as_ref()
        .and_then(|one| one.r#type.as_deref());
    if let Some(network) = network {
        label("networking.shoot.gardener.cloud/provider".to_owned(), network);
    }
    let backup = cluster.seed.spec.backup.as_ref().map(|backup| backup.provider.as_str());
    label(
        "backup.gardener.cloud/provider".to_owned(),
        backup.unwrap_or(seed_provider),
    );
    for kind in extensions {
        label(format!("extensions.gardener.cloud/{kind}"), "true");
    }
    label("pod-security.kubernetes.io/enforce".to_owned(), "privileged");
    label(
        "high-availability-config.resources.gardener.cloud/consider".to_owned(),
        "true",
    );
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": cluster.namespace, "labels": labels,
            "annotations": {
                "shoot.gardener.cloud/uid": cluster.shoot.metadata.uid.as_deref().unwrap_or_default(),
                FAILURE_TOLERANCE: cluster.failure_tolerance(),
                ZONES: zones.join(","),
            },
        },
    })
}
