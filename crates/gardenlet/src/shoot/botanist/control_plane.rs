//! The components of the control plane: etcd, kube-apiserver, controllers.

use std::time::Duration;

use gardener_apimachinery::pointer::Pointed;
use gardener_apis::druid::v1alpha1::Etcd;
use gardener_apis::machine::v1alpha1::{Machine, MachineDeployment};
use gardener_controller::Read;
use gardener_controller::operation;
use gardener_controller::wait::{Patience, Verdict, wait_for};
use gardener_flow::TaskError;
use gardener_rules::credentials_rotation::{self, Encryption, Keys};
use gardener_rules::machines::node_limit::max_nodes_total;
use gardener_rules::shoot_operation::OperationType;
use gardener_rules::shoot_replicas;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::Value;

use super::{Botanist, Done};
use crate::components::cluster_autoscaler::Bounds;
use crate::components::etcd::{self, Backup, Role};
use crate::components::{
    Cluster, cluster_autoscaler, kube_apiserver, kube_controller_manager, kube_scheduler, machine_controller_manager,
    monitoring, resource_manager, vertical_pod_autoscaler, vpn,
};
use crate::{health, managed_resource};

const FIVE_MINUTES: Duration = Duration::from_secs(300);

impl Botanist {
    /// The replicas of an etcd: 0 while the cluster sleeps [CP-40].
    async fn etcd_replicas(&self, role: Role) -> Result<i32, TaskError> {
        let api: Api<Etcd> = self.seed_api();
        let live = api.read_opt(role.name()).await?;
        let situation = self.situation();
        if situation.hibernation_enabled {
            return Ok(live.map_or(0, |etcd| etcd.spec.replicas));
        }
        Ok(if self.view().cluster().failure_tolerance().is_empty() {
            1
        } else {
            3
        })
    }

    /// [CP-F16]
    pub(crate) async fn deploy_etcds(&self) -> Done {
        let backup = self.seed.spec.backup.as_ref().map(|backup| Backup {
            provider: backup.provider.clone(),
            bucket: self.bucket_name(),
            prefix: self.backup_entry_name(),
        });
        let api: Api<Etcd> = self.seed_api();
        for role in Role::ALL {
            let replicas = self.etcd_replicas(role).await?;
            let view = self.view();
            let manifest = etcd::etcd(&view.cluster(), role, replicas, backup.as_ref());
            let written: Etcd = crate::apply::apply(self.seed_client(), &manifest).await?.read()?;
            // also after a change of before, whose asking or work got lost
            if health::etcd(&written).is_err() {
                let current = api.read(role.name()).await?;
                let now = self.now();
                gardener_controller::apply::patch(&api, &current, |etcd| {
                    operation::ask(etcd.annotations_mut(), operation::value::RECONCILE, now)
                })
                .await?;
            }
        }
        Ok(())
    }

    /// [CP-F17]
    pub(crate) async fn wait_for_etcds(&self) -> Done {
        let api: Api<Etcd> = self.seed_api();
        for role in Role::ALL {
            wait_for(&api, role.name(), Patience::of(FIVE_MINUTES), |etcd| {
                match etcd.map(health::etcd) {
                    None => Verdict::Pending(format!("etcd {:?} not found", role.name())),
                    Some(Ok(())) => Verdict::Ready(()),
                    Some(Err(why)) => Verdict::Pending(why),
                }
            })
            .await?;
        }
        Ok(())
    }

    /// Sets the replicas of both etcds.
    pub(crate) async fn scale_etcds(&self, replicas: i32) -> Done {
        let api: Api<Etcd> = self.seed_api();
        for role in Role::ALL {
            if let Some(current) = api.read_opt(role.name()).await? {
                let now = self.now();
                gardener_controller::apply::patch(&api, &current, |etcd| {
                    if etcd.spec.replicas != replicas {
                        etcd.spec.replicas = replicas;
                        operation::ask(etcd.annotations_mut(), operation::value::RECONCILE, now);
                    }
                })
                .await?;
            }
        }
        Ok(())
    }

    async fn audit_policy(&self) -> Result<Option<String>, TaskError> {
        let shoot = self.shoot();
        let server = shoot.spec.kubernetes.kube_api_server.as_ref();
        let reference = server
            .and_then(|one| one.audit_config.as_ref())
            .and_then(|one| one.audit_policy.as_ref())
            .and_then(|one| one.config_map_ref.as_ref());
        let Some(name) = reference.and_then(|one| one.name.clone()) else {
            return Ok(None);
        };
        let api: Api<ConfigMap> = Api::namespaced(self.garden().clone(), &shoot.namespace().unwrap_or_default());
        let data = api.read(&name).await?.data.unwrap_or_default();
        data.get("policy")
            .cloned()
            .map(Some)
            .ok_or_else(|| TaskError::new(format!("audit policy ConfigMap {name:?} lacks key \"policy\"")))
    }

    /// Deploys the API server; while the key of its values is rotated in the order in which no replica meets what it cannot read [CP-F20], [CP-92].
    pub(crate) async fn deploy_api_server(&self) -> Done {
        self.learn_situation().await?;
        let shoot = self.shoot();
        let phase = credentials_rotation::etcd_encryption_key_phase(&shoot);
        let keys = Keys::of(phase, self.api_servers_know_both_keys().await?);
        self.deploy_api_server_with(keys).await?;
        if keys == Keys::OldWrites {
            self.wait_for_api_server().await?;
            self.tell_that_api_servers_know_both_keys(true).await?;
            self.deploy_api_server_with(Keys::NewWrites).await?;
        } else if phase == credentials_rotation::COMPLETING {
            self.tell_that_api_servers_know_both_keys(false).await?;
        }
        Ok(())
    }

    async fn deploy_api_server_with(&self, keys: Keys) -> Done {
        let view = self.view();
        let cluster = view.cluster();
        let scale_down_disabled = view
            .shoot
            .annotations()
            .get("alpha.control-plane.scaling.shoot.gardener.cloud/scale-down-disabled")
            .is_some_and(|one| one == "true");
        let minimum =
            shoot_replicas::kube_api_server_minimum(!cluster.failure_tolerance().is_empty(), scale_down_disabled);
        let replicas = shoot_replicas::kube_api_server(&self.situation(), minimum);
        let keys = self.encryption_keys(keys)?;
        let leaving = Encryption::of(&view.shoot).leaving();
        let secret = kube_apiserver::encryption_secret(&cluster, &keys, &leaving);
        let configuration = kube_apiserver::configuration(&cluster, self.audit_policy().await?);
        // What is mounted by name and may change must roll the pods.
        let checksum = |content: &str| crate::checksum::short(content);
        let maps: String = configuration.iter().map(ToString::to_string).collect();
        let checksums = vec![
            (
                "checksum/secret-etcd-encryption".to_owned(),
                checksum(&secret.to_string()),
            ),
            ("checksum/configmaps".to_owned(), checksum(&maps)),
        ];
        let mut manifests = vec![secret];
        manifests.extend(configuration);
        self.apply(&manifests).await?;
        self.apply(&kube_apiserver::workload(&cluster, replicas, minimum, checksums))
            .await?;
        let mut state = self.state.write();
        state.situation.api_server = Some(replicas);
        Ok(())
    }

    /// Waits until a Deployment is rolled out.
    pub(crate) async fn wait_for_deployment(&self, name: &str, timeout: Duration) -> Done {
        let api: Api<Deployment> = self.seed_api();
        let judge = |found: Option<&Deployment>| match found.map(health::rolled_out) {
            None => Verdict::Pending(format!("deployment {name:?} not found")),
            Some(Ok(())) => Verdict::Ready(()),
            Some(Err(why)) => Verdict::Pending(format!("deployment {name:?} is not rolled out: {why}")),
        };
        Ok(wait_for(&api, name, Patience::of(timeout), judge).await?)
    }

    /// [CP-F21]
    pub(crate) async fn wait_for_api_server(&self) -> Done {
        self.wait_for_deployment(kube_apiserver::NAME, FIVE_MINUTES).await
    }

    /// [CP-F24]
    pub(crate) async fn deploy_resource_manager(&self) -> Done {
        let replicas = self.controller_replicas(resource_manager::NAME, 2).await?;
        self.apply(&resource_manager::manifests(&self.view().cluster(), replicas))
            .await?;
        self.deploy_to_shoot(
            "shoot-core-gardener-resource-manager",
            &resource_manager::shoot_objects(),
        )
        .await
    }

    /// [CP-F25]
    pub(crate) async fn wait_for_resource_manager(&self) -> Done {
        self.wait_for_deployment(resource_manager::NAME, FIVE_MINUTES).await
    }

    /// [CP-F38]
    pub(crate) async fn deploy_scheduler(&self) -> Done {
        let replicas = self.controller_replicas(kube_scheduler::NAME, 1).await?;
        self.apply(&kube_scheduler::manifests(&self.view().cluster(), replicas))
            .await?;
        self.deploy_to_shoot(
            "shoot-core-kube-scheduler",
            &kube_controller_manager::shoot_objects(kube_scheduler::NAME),
        )
        .await
    }

    /// [CP-F41]
    pub(crate) async fn deploy_controller_manager(&self) -> Done {
        let replicas = self.controller_replicas(kube_controller_manager::NAME, 1).await?;
        self.apply(&kube_controller_manager::manifests(&self.view().cluster(), replicas))
            .await?;
        let objects = kube_controller_manager::shoot_objects(kube_controller_manager::NAME);
        self.deploy_to_shoot("shoot-core-kube-controller-manager", &objects)
            .await
    }

    /// [CP-F42]
    pub(crate) async fn wait_for_controller_manager(&self) -> Done {
        self.wait_for_deployment(kube_controller_manager::NAME, Duration::from_secs(180))
            .await
    }

    /// [CP-F31]
    pub(crate) async fn deploy_vpn(&self) -> Done {
        let replicas = self.controller_replicas(vpn::SEED_NAME, 1).await?;
        self.apply(&vpn::manifests(&self.view().cluster(), replicas)).await
    }

    /// [CP-F56], [CP-62]
    pub(crate) async fn deploy_machine_controller_manager(&self) -> Done {
        let api: Api<MachineDeployment> = self.seed_api();
        let listed = api.read_list(&ListParams::default()).await?;
        let machines = listed.iter().any(|one| one.status.replicas.unwrap_or_default() > 0);
        let name = machine_controller_manager::NAME;
        let live = self.live(name).await?.unwrap_or_default();
        let is_create = self.operation == OperationType::Create;
        let replicas = shoot_replicas::machine_controller_manager(&self.situation(), live, machines, is_create);
        self.apply(&machine_controller_manager::manifests(&self.view().cluster(), replicas))
            .await?;
        self.deploy_to_shoot(
            "shoot-core-machine-controller-manager",
            &machine_controller_manager::shoot_objects(),
        )
        .await
    }

    /// [CP-F59]
    pub(crate) async fn deploy_cluster_autoscaler(&self) -> Done {
        let view = self.view();
        let cluster = view.cluster();
        let worker = self.state.read().worker.clone().unwrap_or_default();
        if !cluster_autoscaler::is_wanted(&cluster) {
            managed_resource::delete(self.seed_client(), &self.namespace, cluster_autoscaler::RESOURCE).await?;
            return self.destroy_cluster_autoscaler().await;
        }
        let replicas = self.controller_replicas(cluster_autoscaler::NAME, 1).await?;
        let bounds = Bounds {
            deployments: worker.status.machine_deployments,
            max_nodes_total: self.max_nodes_total(&cluster).await?,
        };
        self.apply(&cluster_autoscaler::manifests(&cluster, replicas, &bounds))
            .await?;
        let objects = cluster_autoscaler::shoot_objects(&cluster, &bounds.deployments);
        self.deploy_to_shoot(cluster_autoscaler::RESOURCE, &objects).await
    }

    /// The most nodes of the shoot [MCH-126].
    async fn max_nodes_total(&self, cluster: &Cluster<'_>) -> Result<i64, TaskError> {
        let allowed = self
            .cloud_profile
            .at("/spec/limits/maxNodesTotal")
            .and_then(Value::as_i64);
        let allowed = allowed.and_then(|allowed| i32::try_from(allowed).ok());
        let machines = match allowed {
            Some(_) => self
                .seed_api::<Machine>()
                .list_metadata(&ListParams::default())
                .await?
                .items
                .len(),
            None => 0,
        };
        Ok(max_nodes_total(&cluster.networks(), allowed, machines))
    }

    /// [CP-F39]
    pub(crate) async fn deploy_vertical_pod_autoscaler(&self) -> Done {
        let view = self.view();
        let cluster = view.cluster();
        let resource = vertical_pod_autoscaler::RESOURCE;
        if vertical_pod_autoscaler::is_wanted(&cluster) {
            for name in vertical_pod_autoscaler::NAMES {
                let replicas = self.controller_replicas(name, 1).await?;
                let manifests = vertical_pod_autoscaler::manifests(&cluster, name, replicas);
                self.apply(&manifests).await?;
            }
            let objects = vertical_pod_autoscaler::shoot_objects();
            return self.deploy_to_shoot(resource, &objects).await;
        }
        for name in vertical_pod_autoscaler::NAMES {
            // the Deployments go last: as long as there is one, there may be more
            if self.live(name).await?.is_some() {
                crate::managed_resource::delete(self.seed_client(), &self.namespace, resource).await?;
                let manifests = vertical_pod_autoscaler::manifests(&cluster, name, 0);
                crate::apply::delete_all(self.seed_client(), &manifests).await?;
            }
        }
        Ok(())
    }

    /// [CP-F67]
    pub(crate) async fn deploy_monitoring(&self) -> Done {
        let replicas = i32::from(!self.situation().hibernation_enabled);
        self.apply(&monitoring::manifests(&self.view().cluster(), replicas))
            .await?;
        self.deploy_to_shoot("shoot-core-monitoring", &monitoring::shoot_objects())
            .await
    }

    /// Sets the replicas of a Deployment; one that is not there is fine.
    pub(crate) async fn scale(&self, name: &str, replicas: i32) -> Done {
        let api: Api<Deployment> = self.seed_api();
        if let Some(current) = api.read_opt(name).await? {
            gardener_controller::apply::patch(&api, &current, |deployment| deployment.spec.replicas = Some(replicas))
                .await?;
        }
        Ok(())
    }
}
