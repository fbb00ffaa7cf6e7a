//! What a worker pool's nodes are told apart by: the node agent secret name [MCH-25..28] and the injected labels [MCH-29].

use std::collections::BTreeMap;

use gardener_apis::core::v1beta1::{KubeletConfig, PendingWorkersRollout, Shoot, Worker};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sha2::{Digest, Sha256};

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The first `length` digits of the hash of the hashes [MCH-24].
pub fn hash_of_hashes(data: &[String], length: usize) -> String {
    let mut hash = sha256(&data.iter().map(|one| sha256(one)).collect::<String>());
    hash.truncate(length);
    hash
}

/// The Kubernetes version of a pool: its own, or the cluster's [EXT-60].
pub fn kubernetes_version<'a>(shoot: &'a Shoot, pool: &'a Worker) -> &'a str {
    let own = pool.kubernetes.as_ref().and_then(|one| one.version.as_deref());
    own.or(shoot.spec.kubernetes.version.as_deref()).unwrap_or_default()
}

/// The kubelet configuration of a pool: its own, or the cluster's [EXT-60].
pub fn kubelet_config<'a>(shoot: &'a Shoot, pool: &'a Worker) -> Option<&'a KubeletConfig> {
    let own = pool.kubernetes.as_ref().and_then(|one| one.kubelet.as_ref());
    own.or(shoot.spec.kubernetes.kubelet.as_ref())
}

/// Whether a pool's machines are updated in place.
pub fn is_in_place(pool: &Worker) -> bool {
    matches!(
        pool.update_strategy.as_deref(),
        Some("AutoInPlaceUpdate" | "ManualInPlaceUpdate")
    )
}

/// Whether node-local DNS is on.
pub fn has_node_local_dns(shoot: &Shoot) -> bool {
    let components = shoot.spec.system_components.as_ref();
    components
        .and_then(|all| all.node_local_dns.as_ref())
        .is_some_and(|one| one.enabled)
}

fn major_minor(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

fn effective_initiation(pool: &str, own: &Option<Time>, pending: &[PendingWorkersRollout]) -> Option<String> {
    let time = match pending.iter().find(|one| one.name == pool) {
        Some(waiting) => &waiting.last_initiation_time,
        None => own,
    };
    time.as_ref().map(|time| time.0.to_string())
}

/// When the pool's authorities and its service account key were last rotated, as far as they concern the pool [MCH-25].
fn rotations(shoot: &Shoot, pool: &str) -> Vec<String> {
    let rotation = shoot.status.credentials.as_ref().and_then(|one| one.rotation.as_ref());
    let Some(rotation) = rotation else { return Vec::new() };
    let authorities = rotation.certificate_authorities.as_ref();
    let key = rotation.service_account_key.as_ref();
    [
        authorities
            .and_then(|one| effective_initiation(pool, &one.last_initiation_time, &one.pending_workers_rollouts)),
        key.and_then(|one| effective_initiation(pool, &one.last_initiation_time, &one.pending_workers_rollouts)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn kubelet_data(kubelet: Option<&KubeletConfig>) -> Vec<String> {
    let Some(kubelet) = kubelet else { return Vec::new() };
    let mut data = Vec::new();
    if let Some(reserved) = &kubelet.kube_reserved {
        let text = |quantity: &Option<Quantity>| quantity.as_ref().map_or_else(|| "0".to_owned(), |one| one.0.clone());
        let parts = [
            &reserved.cpu,
            &reserved.memory,
            &reserved.pid,
            &reserved.ephemeral_storage,
        ];
        data.push(parts.map(text).join("-"));
    }
    if let Some(hard) = &kubelet.eviction_hard {
        let parts = [
            &hard.image_fs_available,
            &hard.image_fs_inodes_free,
            &hard.memory_available,
            &hard.node_fs_available,
            &hard.node_fs_inodes_free,
        ];
        data.push(parts.map(|one| one.clone().unwrap_or_default()).join("-"));
    }
    data.extend(kubelet.cpu_manager_policy.clone());
    data
}

/// Whether node-local DNS takes part in the key: only where it changes how kubelets resolve names [MCH-25].
fn node_local_dns_counts(shoot: &Shoot, version: &str) -> bool {
    let proxy = shoot.spec.kubernetes.kube_proxy.as_ref();
    let ipvs = proxy.and_then(|one| one.mode.as_deref()) == Some("IPVS");
    let minor: u32 = version
        .split('.')
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    has_node_local_dns(shoot) && (minor < 34 || ipvs)
}

/// The name of a pool's node agent secret, the "OSC key": another one replaces the nodes [MCH-25].
pub fn node_agent_secret_name(shoot: &Shoot, pool: &Worker) -> String {
    let prefix = format!("gardener-node-agent-{}", pool.name);
    if is_in_place(pool) {
        return prefix;
    }
    let version = kubernetes_version(shoot, pool);
    let image = pool.machine.image.as_ref();
    let image = image.map(|one| format!("{}{}", one.name, one.version.as_deref().unwrap_or_default()));
    let mut data = vec![
        major_minor(version),
        pool.machine.r#type.clone(),
        image.unwrap_or_default(),
    ];
    if let Some(volume) = &pool.volume {
        data.push(volume.size.clone());
        data.extend(volume.r#type.clone());
    }
    data.extend(pool.cri.as_ref().map(|cri| cri.name.clone()));
    data.extend(rotations(shoot, &pool.name));
    if node_local_dns_counts(shoot, version) {
        data.push("node-local-dns".to_owned());
    }
    data.extend(kubelet_data(kubelet_config(shoot, pool)));
    format!("{prefix}-{}", hash_of_hashes(&data, 16))
}

/// The labels of a pool's nodes: the user's, and what gardenlet adds [MCH-29].
pub fn node_labels(shoot: &Shoot, pool: &Worker, secret_name: &str) -> BTreeMap<String, String> {
    let mut labels = pool.labels.clone();
    let mut set = |key: &str, value: &str| labels.insert(key.to_owned(), value.to_owned());
    set("node.kubernetes.io/role", "node");
    set(
        "kubernetes.io/arch",
        pool.machine.architecture.as_deref().unwrap_or("amd64"),
    );
    set(
        "networking.gardener.cloud/node-local-dns-enabled",
        if has_node_local_dns(shoot) { "true" } else { "false" },
    );
    if pool.system_components.as_ref().is_none_or(|one| one.allow) {
        set("worker.gardener.cloud/system-components", "true");
    }
    set("worker.gardener.cloud/pool", &pool.name);
    set("worker.garden.sapcloud.io/group", &pool.name);
    set("worker.gardener.cloud/gardener-node-agent-secret-name", secret_name);
    if let Some(cri) = &pool.cri {
        set("worker.gardener.cloud/cri-name", &cri.name);
        for runtime in &cri.container_runtimes {
            let key = format!("containerruntime.worker.gardener.cloud/{}", runtime.r#type);
            set(&key, "true");
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use gardener_apis::core::v1beta1::{
        CARotation, CRI, Machine, NodeLocalDNS, ShootCredentials, ShootCredentialsRotation, ShootMachineImage,
        SystemComponents, Volume,
    };

    use super::*;

    fn shoot() -> Shoot {
        let mut shoot = Shoot::default();
        shoot.spec.kubernetes.version = Some("1.35.2".into());
        shoot
    }

    fn pool() -> Worker {
        Worker {
            name: "a".into(),
            machine: Machine {
                r#type: "large".into(),
                image: Some(ShootMachineImage {
                    name: "linux".into(),
                    version: Some("1.0.0".into()),
                    ..ShootMachineImage::default()
                }),
                ..Machine::default()
            },
            volume: Some(Volume {
                size: "20Gi".into(),
                r#type: Some("ssd".into()),
                ..Volume::default()
            }),
            cri: Some(CRI {
                name: "containerd".into(),
                ..CRI::default()
            }),
            ..Worker::default()
        }
    }

    #[test]
    fn mch_25_what_replaces_nodes_and_what_does_not() {
        let key = node_agent_secret_name(&shoot(), &pool());
        let data: Vec<String> = ["1.35", "large", "linux1.0.0", "20Gi", "ssd", "containerd"]
            .map(Into::into)
            .into();
        assert_eq!(key, format!("gardener-node-agent-a-{}", hash_of_hashes(&data, 16)));
        type Change = (&'static str, fn(&mut Shoot, &mut Worker), bool);
        let table: [Change; 9] = [
            (
                "patch version",
                |shoot, _| shoot.spec.kubernetes.version = Some("1.35.3".into()),
                true,
            ),
            (
                "minor version",
                |shoot, _| shoot.spec.kubernetes.version = Some("1.36.0".into()),
                false,
            ),
            (
                "labels",
                |_, pool| drop(pool.labels.insert("x".into(), "y".into())),
                true,
            ),
            ("maximum", |_, pool| pool.maximum = 9, true),
            ("zones", |_, pool| pool.zones.push("z".into()), true),
            ("machine type", |_, pool| pool.machine.r#type = "small".into(), false),
            (
                "kubelet",
                |_, pool| {
                    pool.kubernetes.get_or_insert_default().kubelet = Some(KubeletConfig {
                        cpu_manager_policy: Some("static".into()),
                        ..KubeletConfig::default()
                    });
                },
                false,
            ),
            (
                "node-local DNS from 1.34 on",
                |shoot, _| {
                    let dns = NodeLocalDNS {
                        enabled: true,
                        ..NodeLocalDNS::default()
                    };
                    shoot.spec.system_components = Some(SystemComponents {
                        node_local_dns: Some(dns),
                        ..SystemComponents::default()
                    });
                },
                true,
            ),
            (
                "CA rotation",
                |shoot, _| {
                    let authorities = CARotation {
                        last_initiation_time: Some(Time("2026-03-01T10:00:00Z".parse().unwrap())),
                        ..CARotation::default()
                    };
                    let rotation = ShootCredentialsRotation {
                        certificate_authorities: Some(authorities),
                        ..ShootCredentialsRotation::default()
                    };
                    shoot.status.credentials = Some(ShootCredentials {
                        rotation: Some(rotation),
                        ..ShootCredentials::default()
                    });
                },
                false,
            ),
        ];
        for (what, change, same) in table {
            let (mut shoot, mut pool) = (shoot(), pool());
            change(&mut shoot, &mut pool);
            assert_eq!(node_agent_secret_name(&shoot, &pool) == key, same, "{what}");
        }
    }

    #[test]
    fn cp_85_a_pending_pool_keeps_its_key() {
        let (mut rotated, pool) = (shoot(), pool());
        let before = node_agent_secret_name(&rotated, &pool);
        let authorities = CARotation {
            last_initiation_time: Some(Time("2026-03-01T10:00:00Z".parse().unwrap())),
            pending_workers_rollouts: vec![PendingWorkersRollout {
                name: "a".into(),
                last_initiation_time: None,
            }],
            ..CARotation::default()
        };
        rotated.status.credentials = Some(ShootCredentials {
            rotation: Some(ShootCredentialsRotation {
                certificate_authorities: Some(authorities),
                ..ShootCredentialsRotation::default()
            }),
            ..ShootCredentials::default()
        });
        assert_eq!(node_agent_secret_name(&rotated, &pool), before);
    }

    #[test]
    fn mch_29_injected_labels_win() {
        let mut pool = pool();
        pool.labels = [("worker.gardener.cloud/pool", "mine"), ("own", "1")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        let labels = node_labels(&shoot(), &pool, "key");
        assert_eq!(labels["worker.gardener.cloud/pool"], "a");
        assert_eq!(labels["own"], "1");
        assert_eq!(labels["worker.gardener.cloud/gardener-node-agent-secret-name"], "key");
    }
}
