//! Restarts that maintenance asks for by tasks: pods of the control plane [CP-F71], and core addons of the shoot [UPD-47].

use gardener_apis::constants::task;
use gardener_controller::Read;
use gardener_flow::TaskError;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kube::Api;
use kube::api::{DeleteParams, ListParams};

use super::{Botanist, Done};
use crate::components::shoot_system::RESTARTED_AT;
use crate::components::workload::RESTART;

impl Botanist {
    /// Whether pods of the control plane are to be restarted.
    pub(crate) fn restarts_control_plane_pods(&self) -> bool {
        self.has_task(task::RESTART_CONTROL_PLANE_PODS)
    }

    /// Deletes the pods of the control plane that may be restarted, which their controllers make anew [CP-F71].
    pub(crate) async fn restart_control_plane_pods(&self) -> Done {
        let pods: Api<Pod> = self.seed_api();
        let labelled = ListParams::default().labels(&format!("{}={}", RESTART.0, RESTART.1));
        pods.delete_collection(&DeleteParams::default(), &labelled).await?;
        self.remove_task(task::RESTART_CONTROL_PLANE_PODS).await
    }

    /// When CoreDNS was restarted the last time: now, when it is asked for.
    pub(crate) async fn coredns_restarted_at(&self) -> Result<Option<String>, TaskError> {
        let api: Api<Deployment> = Api::namespaced(self.shoot_client().await?, "kube-system");
        let live = api.read_opt("coredns").await?;
        Ok(self.restarted_at(live.map(|deployment| deployment.spec.template)))
    }

    /// When a DaemonSet of kube-proxy was restarted the last time: now, when it is asked for.
    pub(crate) async fn kube_proxy_restarted_at(&self, name: &str) -> Result<Option<String>, TaskError> {
        let api: Api<DaemonSet> = Api::namespaced(self.shoot_client().await?, "kube-system");
        let live = api.read_opt(name).await?;
        Ok(self.restarted_at(live.map(|set| set.spec.template)))
    }

    fn restarted_at(&self, live: Option<PodTemplateSpec>) -> Option<String> {
        if self.has_task(task::RESTART_CORE_ADDONS) {
            return Some(self.config.clock.time().0.to_string());
        }
        let annotations = live?.metadata?.annotations?;
        annotations.get(RESTARTED_AT).cloned()
    }
}
