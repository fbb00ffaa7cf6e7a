//! Stopping a control plane [CP-120]: what is waited for in the shoot before that, and in which order what stops. What must be over is told by
//! `rules::falling_asleep`.

use std::time::Duration;

use gardener_controller::Read;
use gardener_controller::error_codes;
use gardener_controller::wait::{Patience, Verdict, wait_for, wait_for_all};
use gardener_flow::TaskError;
use gardener_rules::falling_asleep::{no_endpoints, no_nodes, no_pods};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::time::Instant;

use super::cleanup::clean_volume_attachments;
use super::{Botanist, Done};
use crate::components::{
    cluster_autoscaler, kube_apiserver, kube_controller_manager, kube_scheduler, resource_manager,
    vertical_pod_autoscaler, vpn,
};

/// How long all that runs in a shoot has to end.
const TEN_MINUTES: Duration = Duration::from_secs(600);
const FIVE_MINUTES: Duration = Duration::from_secs(300);

impl Botanist {
    /// Waits until a Deployment has no pods left.
    async fn wait_for_no_pods(&self, name: &str) -> Done {
        let api: Api<Deployment> = self.seed_api();
        let judge = |found: Option<&Deployment>| match found
            .and_then(|one| one.status.as_ref())
            .and_then(|status| status.replicas)
        {
            None | Some(0) => Verdict::Ready(()),
            Some(left) => Verdict::Pending(format!("deployment {name:?} still has {left} pods")),
        };
        Ok(wait_for(&api, name, Patience::of(FIVE_MINUTES), judge).await?)
    }

    /// Waits until nothing is left in the shoot that only runs on nodes, while there is still somebody who notices that.
    async fn wait_until_nothing_runs(&self) -> Done {
        if self.is_workerless() {
            return Ok(());
        }
        let client = self.shoot_client().await?;
        let deadline = Instant::now() + TEN_MINUTES;
        let left = || Patience::of(deadline.saturating_duration_since(Instant::now()));
        wait_for_all(&Api::all(client.clone()), left(), no_nodes)
            .await
            .map_err(TaskError::new)?;
        let pods: Api<Pod> = Api::all(client.clone());
        let ended = wait_for_all(&pods, left(), |pods| no_pods(pods).map_err(|running| running.message)).await;
        if let Err(why) = ended {
            return Err(still_running(&pods, why).await);
        }
        self.wait_for_endpoints(&client, left()).await?;
        clean_volume_attachments(&client, self.now()).await
    }

    async fn wait_for_endpoints(&self, client: &Client, patience: Patience) -> Done {
        let services: Api<Service> = Api::all(client.clone());
        let services = services.read_list(&ListParams::default()).await?;
        let endpoints: Api<Endpoints> = Api::all(client.clone());
        let shoot = self.shoot();
        let judge = |endpoints: &[Endpoints]| no_endpoints(&shoot, &services, endpoints);
        wait_for_all(&endpoints, patience, judge).await.map_err(TaskError::new)
    }

    /// Stops the control plane, from the controllers to etcd [CP-120].
    pub(crate) async fn hibernate_control_plane(&self) -> Done {
        // who sleeps already is not asked
        if self
            .live(kube_apiserver::NAME)
            .await?
            .is_some_and(|live| live.replicas > 0)
        {
            self.wait_until_nothing_runs().await?;
        }
        let stopped = [
            resource_manager::NAME,
            kube_controller_manager::NAME,
            kube_scheduler::NAME,
            vpn::SEED_NAME,
            cluster_autoscaler::NAME,
        ];
        for name in stopped.into_iter().chain(vertical_pod_autoscaler::NAMES) {
            self.scale(name, 0).await?;
        }
        for name in [resource_manager::NAME, kube_controller_manager::NAME] {
            self.wait_for_no_pods(name).await?;
        }
        let autoscaler = crate::apply::name(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            Some(&self.namespace),
            kube_apiserver::NAME,
        );
        crate::apply::delete(self.seed_client(), &autoscaler).await?;
        self.scale(kube_apiserver::NAME, 0).await?;
        self.wait_for_no_pods(kube_apiserver::NAME).await?;
        self.scale_etcds(0).await
    }
}

/// The error that something still runs; users have to see to what is theirs.
async fn still_running(pods: &Api<Pod>, why: String) -> TaskError {
    let error = TaskError::new(why);
    let pods = pods.read_list(&ListParams::default()).await.unwrap_or_default();
    match no_pods(&pods) {
        Err(running) if running.is_users => error.with_codes([error_codes::CLEANUP_CLUSTER_RESOURCES]),
        _ => error,
    }
}
