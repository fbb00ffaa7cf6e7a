//! Opens nodes of a shoot for other pods when their critical components run `[GRM-45]`. Whether they do is decided in `rules::critical_components`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use gardener_apis::constants::TAINT_CRITICAL_COMPONENTS_NOT_READY as TAINT;
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Controller, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::critical_components::{self, LABEL};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::Config;

const CONCURRENCY: usize = 5;
const NAMESPACE: &str = "kube-system";
/// How soon a node that waits is looked at again; CSI drivers are not watched.
const RECHECK: Duration = Duration::from_secs(10);
const COMPONENT: &str = "critical-components-controller";

/// Why a node could not be looked at.
#[derive(Debug, thiserror::Error)]
enum NodeError {
    #[error(transparent)]
    Apply(#[from] apply::ApplyError),
    #[error("{}", gardener_controller::api_error(.0))]
    Api(#[from] kube::Error),
}

struct Opener {
    nodes: Api<Node>,
    csi_nodes: Api<CSINode>,
    pods: Informer<Pod>,
    daemon_sets: Informer<DaemonSet>,
    recorder: Recorder,
}

/// Runs the controller, when this manager is a shoot's.
pub(crate) async fn run(config: Config, stop: CancellationToken) {
    if config.namespace.is_none() {
        stop.cancelled().await;
        return;
    }
    let target = || config.target.clone();
    let critical = watcher::Config::default().labels(&format!("{LABEL}=true"));
    let nodes_api: Api<Node> = Api::all(target());
    let nodes: Informer<Node> = Informer::start(nodes_api.clone(), watcher::Config::default(), &stop);
    let pods: Informer<Pod> = Informer::start(Api::namespaced(target(), NAMESPACE), critical.clone(), &stop);
    let daemon_sets: Informer<DaemonSet> = Informer::start(Api::namespaced(target(), NAMESPACE), critical, &stop);
    let queue: Queue<ObjectRef> = Queue::new();
    // the beats of a node that waits are no reason to look
    nodes.feed_if(
        &queue,
        |change| match change {
            gardener_controller::Change::Applied { old, new } => {
                waits(new)
                    && old
                        .as_ref()
                        .is_none_or(|old| old.spec != new.spec || old.metadata.labels != new.metadata.labels)
            }
            _ => false,
        },
        |node| [ObjectRef::of(node)],
    );
    let known = nodes.clone();
    pods.feed(&queue, move |pod| {
        let name = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let node = name.map(ObjectRef::cluster_scoped);
        node.filter(|node| known.get(node).is_some_and(|node| waits(&node)))
    });
    let known = nodes.clone();
    daemon_sets.feed_if(
        &queue,
        // its status follows its pods, which are watched themselves
        |change| match change {
            gardener_controller::Change::Applied { old: Some(old), new } => {
                old.metadata.generation != new.metadata.generation || old.metadata.labels != new.metadata.labels
            }
            _ => true,
        },
        move |_| {
            let all = known.list();
            let waiting = all.iter().filter(|node| waits(node));
            waiting.map(|node| ObjectRef::of(node.as_ref())).collect::<Vec<_>>()
        },
    );
    nodes.synced().await;
    pods.synced().await;
    daemon_sets.synced().await;
    let opener = Arc::new(Opener {
        nodes: nodes_api,
        csi_nodes: Api::all(target()),
        pods,
        daemon_sets,
        recorder: Recorder::new(target(), config.clock.clone(), COMPONENT),
    });
    Controller::new("node-critical-components", CONCURRENCY, queue)
        .run(stop, move |key| {
            let opener = opener.clone();
            async move { opener.reconcile(&key).await }
        })
        .await;
}

/// Whether other pods are kept from a node.
fn waits(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default().iter().any(|taint| taint.key == TAINT)
}

impl Opener {
    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, NodeError> {
        let Some(node) = self.nodes.read_opt(&key.name).await?.filter(waits) else {
            return Ok(Action::Done);
        };
        let (sets, pods) = (self.daemon_sets.list(), self.pods.list());
        let sets: Vec<&DaemonSet> = sets.iter().map(AsRef::as_ref).collect();
        let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
        let drivers = self.drivers(&node, &pods).await?;
        let about = object_reference(&node, &());
        if let Some(missing) = critical_components::missing(&node, &sets, &pods, &drivers) {
            let (reason, message) = (missing.reason(), missing.message());
            self.recorder.publish(&about, Severity::Warning, reason, &message).await;
            return Ok(Action::RequeueAfter(RECHECK));
        }
        apply::patch_locked(&self.nodes, &node, |node| {
            if let Some(taints) = node.spec.as_mut().and_then(|spec| spec.taints.as_mut()) {
                taints.retain(|taint| taint.key != TAINT);
            }
        })
        .await?;
        let message = "All node-critical components got ready, removing taint";
        self.recorder
            .publish(&about, Severity::Normal, "NodeCriticalComponentsReady", message)
            .await;
        Ok(Action::Done)
    }

    /// The CSI drivers registered at a node; not asked for when no pod wants one.
    async fn drivers(&self, node: &Node, pods: &[&Pod]) -> Result<BTreeSet<String>, kube::Error> {
        if critical_components::required_drivers(pods).is_empty() {
            return Ok(BTreeSet::new());
        }
        let found = self.csi_nodes.read_opt(&node.name_any()).await?;
        let drivers = found.into_iter().flat_map(|found| found.spec.drivers);
        Ok(drivers.map(|driver| driver.name).collect())
    }
}

#[cfg(test)]
mod tests;
