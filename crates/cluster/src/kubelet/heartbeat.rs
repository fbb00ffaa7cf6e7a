//! A node's registration and heartbeat: the Node object, its status, and its Lease.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::quantity::Amount;
use gardener_controller::{Action, Read, apply};
use ipnet::IpNet;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::{Addresses, Engine, NodeConfig, NodeKey, NodeState};
use crate::error::Error;

/// The label of nodes whose pods are no processes.
pub const SIMULATED_LABEL: &str = "gardener.cloud/simulated";
/// The namespace of the Leases.
const LEASES: &str = crate::environment::NODE_LEASES;
/// How long a Lease holds.
const LEASE_SECONDS: i32 = 40;
/// How often it is renewed.
const RENEW: Duration = Duration::from_secs(10);
/// How often the status is told though nothing changed.
const STATUS: Duration = Duration::from_secs(300);
/// How soon to look whether the node has got a range for its pods.
const UNTIL_RANGE: Duration = Duration::from_millis(100);
/// How soon to try again when the API cannot be reached or the Node is not there.
const AGAIN: Duration = Duration::from_secs(5);

/// What is remembered between heartbeats.
#[derive(Default)]
pub(super) struct Heart {
    /// When the status was told last.
    told: Option<Instant>,
    leased: bool,
    uid: String,
}

/// One heartbeat of a node.
pub(super) async fn beat(engine: Arc<Engine>, key: NodeKey) -> Result<Action, Error> {
    let Some(node) = engine.node(&key) else {
        return Ok(Action::Done);
    };
    let mut heart = node.heart.lock().await;
    match try_beat(&engine, &node, &mut heart).await {
        Ok(true) if node.addresses.lock().is_none() => {
            // the Node is read again until it has a range
            heart.told = None;
            Ok(Action::RequeueAfter(UNTIL_RANGE))
        }
        Ok(true) => Ok(Action::RequeueAfter(RENEW)),
        Ok(false) => Ok(Action::RequeueAfter(AGAIN)),
        Err(error) => {
            tracing::debug!(cluster = %key.0, node = %key.1, %error, "a heartbeat failed");
            heart.told = None;
            Ok(Action::RequeueAfter(AGAIN))
        }
    }
}

async fn try_beat(engine: &Engine, node: &NodeState, heart: &mut Heart) -> Result<bool, Error> {
    let clock = &engine.config.clock;
    if heart.told.is_none_or(|told| told.elapsed() >= STATUS) {
        let api: Api<Node> = Api::all(node.config.client.clone());
        let Some(registered) = register(engine, node, &api).await? else {
            return Ok(false);
        };
        if registered.uid().unwrap_or_default() != heart.uid {
            heart.uid = registered.uid().unwrap_or_default();
            heart.leased = false;
        }
        let now = clock.time();
        apply::patch_status(&api, &registered, |registered| {
            let before = registered.status.take().unwrap_or_default();
            registered.status = Some(status(&node.config, before, &now));
        })
        .await?;
        heart.told = Some(Instant::now());
    }
    renew(node, heart, clock).await?;
    Ok(true)
}

async fn register(engine: &Engine, node: &NodeState, api: &Api<Node>) -> Result<Option<Node>, Error> {
    let config = &node.config;
    let registered = match api.read_opt(&config.name).await? {
        Some(found) => {
            let missing = config
                .labels
                .iter()
                .any(|(key, value)| found.labels().get(key) != Some(value));
            if missing && config.register {
                let (patched, _) = apply::patch(api, &found, |found| found.labels_mut().extend(labels(config))).await?;
                patched
            } else {
                found
            }
        }
        None if config.register => {
            let range = config.pod_cidr.as_ref().and_then(|cidr| cidr.parse::<IpNet>().ok());
            let clock = &engine.config.clock;
            api.create(&PostParams::default(), &initial(config, range, &clock.time()))
                .await?
        }
        None => return Ok(None),
    };
    let mut addresses = node.addresses.lock();
    if addresses.is_none() {
        let own = config
            .pod_cidr
            .clone()
            .or_else(|| registered.spec.as_ref().and_then(|spec| spec.pod_cidr.clone()));
        let Some(range) = own.and_then(|cidr| cidr.parse::<IpNet>().ok()) else {
            return Ok(Some(registered));
        };
        *addresses = Some(Addresses::new(range));
        // pods may have waited for their addresses
        for pod in node.pods.list() {
            let pod = gardener_controller::ObjectRef::of(pod.as_ref());
            engine.pods.add(super::PodKey {
                node: node.key.clone(),
                pod,
            });
        }
    }
    Ok(Some(registered))
}

async fn renew(node: &NodeState, heart: &mut Heart, clock: &gardener_apimachinery::clock::Clock) -> Result<(), Error> {
    let api: Api<Lease> = Api::namespaced(node.config.client.clone(), LEASES);
    let name = &node.config.name;
    let spec = LeaseSpec {
        holder_identity: Some(name.clone()),
        lease_duration_seconds: Some(LEASE_SECONDS),
        renew_time: Some(clock.micro_time()),
        ..LeaseSpec::default()
    };
    if heart.leased {
        let patch = json!({"spec": {"renewTime": spec.renew_time}});
        match api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Err(error) if apply::is_not_found(&error) => heart.leased = false,
            other => return Ok(other.map(|_| ())?),
        }
    }
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Node".into(),
        name: name.clone(),
        uid: heart.uid.clone(),
        ..OwnerReference::default()
    };
    let initial = Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            ..ObjectMeta::default()
        },
        spec: None,
    };
    apply::create_or_patch(&api, initial, |lease| {
        lease.metadata.owner_references = Some(vec![owner.clone()]);
        lease.spec = Some(spec.clone());
    })
    .await?;
    heart.leased = true;
    Ok(())
}

fn labels(config: &NodeConfig) -> BTreeMap<String, String> {
    let mut labels = config.labels.clone();
    let standard = [
        (SIMULATED_LABEL, "true"),
        ("kubernetes.io/hostname", config.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", config.architecture.as_str()),
        ("beta.kubernetes.io/arch", config.architecture.as_str()),
    ];
    for (key, value) in standard {
        labels.entry(key.to_owned()).or_insert_with(|| value.to_owned());
    }
    labels
}

fn initial(config: &NodeConfig, range: Option<IpNet>, now: &Time) -> Node {
    let cidr = range.map(|range| range.to_string());
    Node {
        metadata: ObjectMeta {
            name: Some(config.name.clone()),
            labels: Some(labels(config)),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            pod_cidrs: cidr.clone().map(|cidr| vec![cidr]),
            pod_cidr: cidr,
            provider_id: config.provider_id.clone(),
            taints: (!config.taints.is_empty()).then(|| config.taints.clone()),
            ..NodeSpec::default()
        }),
        status: Some(status(config, NodeStatus::default(), now)),
    }
}

fn quantities(config: &NodeConfig) -> BTreeMap<String, Quantity> {
    let mut capacity = config.capacity.clone();
    capacity.entry("pods".to_owned()).or_insert_with(|| "110".to_owned());
    capacity
        .into_iter()
        .map(|(name, amount)| {
            let amount = amount.parse::<Amount>().map_or(amount, |amount| amount.to_string());
            (name, Quantity(amount))
        })
        .collect()
}

/// The status of a healthy node; conditions of others stay.
fn status(config: &NodeConfig, before: NodeStatus, now: &Time) -> NodeStatus {
    const CONDITIONS: [(&str, &str, &str, &str); 4] = [
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        (
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        (
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let mut conditions = before.conditions.unwrap_or_default();
    for (type_, status, reason, message) in CONDITIONS {
        let known = conditions.iter().find(|own| own.type_ == type_);
        let since = known
            .filter(|own| own.status == status)
            .and_then(|own| own.last_transition_time.clone());
        let condition = NodeCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(now.clone()),
            last_transition_time: Some(since.unwrap_or_else(|| now.clone())),
        };
        match conditions.iter_mut().find(|own| own.type_ == type_) {
            Some(own) => *own = condition,
            None => conditions.push(condition),
        }
    }
    let id = crate::pods::hash(&(&config.cluster, &config.name), None);
    NodeStatus {
        addresses: Some(
            config
                .addresses
                .iter()
                .map(|(type_, address)| NodeAddress {
                    type_: type_.clone(),
                    address: address.clone(),
                })
                .collect(),
        ),
        capacity: Some(quantities(config)),
        allocatable: Some(quantities(config)),
        conditions: Some(conditions),
        node_info: Some(NodeSystemInfo {
            architecture: config.architecture.clone(),
            container_runtime_version: config.runtime_version.clone(),
            kernel_version: "simulated".to_owned(),
            kubelet_version: config.kubelet_version.clone(),
            operating_system: "linux".to_owned(),
            os_image: config.os_image.clone(),
            boot_id: id.clone(),
            machine_id: id.clone(),
            system_uuid: id,
            ..NodeSystemInfo::default()
        }),
        ..before
    }
}
