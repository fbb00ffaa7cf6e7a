//! The shoot's system components [CP-43], [CP-F29], [CP-F50..54].

use std::time::Duration;

use gardener_controller::Read;
use gardener_controller::wait::{Patience, Verdict, wait_for};
use gardener_rules::worker_pool;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::{Botanist, Done};
use crate::components::{shoot_system, vpn};
use crate::health;
use crate::managed_resource;
use gardener_apis::resources::v1alpha1::ManagedResource;

impl Botanist {
    /// [CP-F29]
    pub(crate) async fn deploy_namespaces(&self) -> Done {
        self.deploy_to_shoot("shoot-core-namespaces", &shoot_system::namespaces())
            .await
    }

    /// [CP-F30]
    pub(crate) async fn wait_for_namespaces(&self) -> Done {
        managed_resource::wait_healthy(
            self.seed_client(),
            &self.namespace,
            "shoot-core-namespaces",
            Duration::from_secs(120),
        )
        .await
    }

    /// [CP-F50]
    pub(crate) async fn deploy_system(&self) -> Done {
        let view = self.view();
        self.deploy_to_shoot(
            "shoot-core-system",
            &shoot_system::core(&view.cluster(), &self.project.name_any()),
        )
        .await
    }

    /// [CP-F51]
    pub(crate) async fn deploy_cluster_identity(&self) -> Done {
        let identity = self.shoot().status.cluster_identity.clone().unwrap_or_default();
        self.deploy_to_shoot(
            "shoot-core-cluster-identity",
            &shoot_system::cluster_identity(&identity),
        )
        .await
    }

    pub(crate) async fn deploy_coredns(&self) -> Done {
        let restarted_at = self.coredns_restarted_at().await?;
        let objects = shoot_system::coredns(&self.view().cluster(), restarted_at.as_deref());
        self.deploy_to_shoot("shoot-core-coredns", &objects).await
    }

    /// kube-proxy: what is shared, one DaemonSet per pool and version, and no others.
    pub(crate) async fn deploy_kube_proxy(&self) -> Done {
        let view = self.view();
        let cluster = view.cluster();
        let mut kept = Vec::new();
        if shoot_system::has_kube_proxy(&cluster) {
            self.deploy_to_shoot("shoot-core-kube-proxy", &shoot_system::kube_proxy(&cluster))
                .await?;
            kept.push("shoot-core-kube-proxy".to_owned());
            for pool in &view.shoot.spec.provider.workers {
                let version = worker_pool::kubernetes_version(&view.shoot, pool);
                let name = shoot_system::kube_proxy_name(&pool.name, version);
                let restarted_at = self.kube_proxy_restarted_at(&name).await?;
                let (name, objects) = shoot_system::kube_proxy_of_pool(&pool.name, version, restarted_at.as_deref());
                self.deploy_to_shoot(&name, &objects).await?;
                kept.push(name);
            }
        }
        let api: Api<ManagedResource> = self.seed_api();
        for resource in api.read_list(&ListParams::default()).await? {
            let name = resource.name_any();
            if name.starts_with("shoot-core-kube-proxy") && !kept.contains(&name) {
                managed_resource::delete(self.seed_client(), &self.namespace, &name).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn deploy_metrics_server(&self) -> Done {
        self.deploy_to_shoot("shoot-core-metrics-server", &shoot_system::metrics_server())
            .await
    }

    pub(crate) async fn deploy_vpn_shoot(&self) -> Done {
        self.deploy_to_shoot("shoot-core-vpn-shoot", &vpn::shoot_objects(&self.view().cluster()))
            .await
    }

    /// apiserver-proxy, node-exporter or node-problem-detector.
    pub(crate) async fn deploy_daemon(&self, daemon: &str) -> Done {
        for (name, objects) in shoot_system::daemons() {
            if name.ends_with(daemon) {
                self.deploy_to_shoot(name, &objects).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn deploy_blackbox_exporter(&self) -> Done {
        self.deploy_to_shoot("shoot-core-blackbox-exporter", &shoot_system::blackbox_exporter())
            .await
    }

    /// Waits until the shoot's end of the tunnel runs [CP-F65].
    pub(crate) async fn wait_for_tunnel(&self) -> Done {
        let api: Api<Deployment> = Api::namespaced(self.shoot_client().await?, "kube-system");
        let timeout = Duration::from_secs(900);
        let judge = |found: Option<&Deployment>| match found.map(health::deployment) {
            Some(Ok(())) => Verdict::Ready(()),
            None => Verdict::Pending("deployment kube-system/vpn-shoot does not exist yet".to_owned()),
            Some(Err(why)) => Verdict::Pending(format!("deployment kube-system/vpn-shoot is not available: {why}")),
        };
        Ok(wait_for(&api, vpn::SHOOT_NAME, Patience::of(timeout), judge).await?)
    }
}
