//! Operating system configs, node agent secrets and the Worker [CP-F48..66], [EXT-60..62].

use std::collections::BTreeMap;
use std::time::Duration;

use gardener_apimachinery::pointer::Pointed;
use gardener_apis::core::v1beta1::{MachineType, Worker as Pool};
use gardener_apis::extensions::v1alpha1::{
    OperatingSystemConfig, Worker, WorkerPool, WorkerPoolClusterAutoscaler, WorkerPoolDataVolume,
    WorkerPoolMachineControllerManager, WorkerPoolMachineImage, WorkerPoolNodeTemplate, WorkerPoolUserDataSecretRef,
    WorkerPoolVolume,
};
use gardener_controller::Read;
use gardener_controller::wait::{Patience, wait_for_all};
use gardener_flow::TaskError;
use gardener_rules::care::nodes::has_config;
use gardener_rules::extension_readiness::NotReady;
use gardener_rules::worker_pool;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::garden::whole;
use super::{Botanist, Done};
use crate::components::node_agent;
use crate::components::operating_system_config::{self, Nodes};
use crate::extension::{self, Ask, Timing};

impl Botanist {
    fn keys(&self) -> Vec<(Pool, String)> {
        let shoot = self.shoot();
        let pools = shoot.spec.provider.workers.iter();
        pools
            .map(|pool| (pool.clone(), worker_pool::node_agent_secret_name(&shoot, pool)))
            .collect()
    }

    /// [CP-F48]
    pub(crate) async fn deploy_operating_system_configs(&self) -> Done {
        let api: Api<OperatingSystemConfig> = self.seed_api();
        let view = self.view();
        let cluster = view.cluster();
        let (server, cluster_ca, client_ca) = (self.server_url(), self.cluster_ca()?, self.bundle("ca-client")?);
        for (pool, key) in self.keys() {
            let nodes = Nodes {
                cluster: &cluster,
                pool: &pool,
                key: &key,
                server: &server,
                cluster_ca: &cluster_ca,
                client_ca: &client_ca,
            };
            for manifest in [
                operating_system_config::provision(&nodes),
                operating_system_config::reconcile(&nodes),
            ] {
                let wanted: OperatingSystemConfig = serde_json::from_value(manifest)?;
                extension::deploy(&api, wanted.clone(), Ask::Always, &self.config.clock, |object| {
                    object.spec = wanted.spec.clone();
                    object.labels_mut().extend(wanted.labels().clone());
                })
                .await?;
            }
        }
        Ok(())
    }

    /// [CP-F49]
    pub(crate) async fn wait_for_operating_system_configs(&self) -> Done {
        let api: Api<OperatingSystemConfig> = self.seed_api();
        for (_, key) in self.keys() {
            for suffix in ["init", "original"] {
                extension::wait_ready(&api, &format!("{key}-{suffix}"), Timing::SHORT).await?;
            }
        }
        Ok(())
    }

    /// Configs of no pool, but those that machines still have [OSC-2]; all, if the shoot goes.
    async fn stale_operating_system_configs(&self) -> Result<Vec<String>, TaskError> {
        let api: Api<OperatingSystemConfig> = self.seed_api();
        let listed = api.read_list(&ListParams::default()).await?;
        let names = listed.iter().map(ResourceExt::name_any);
        if self.shoot().in_deletion() {
            return Ok(names.collect());
        }
        let label = "worker.gardener.cloud/gardener-node-agent-secret-name";
        let mut kept: Vec<String> = self.keys().into_iter().map(|(_, key)| key).collect();
        let used: Api<gardener_apis::machine::v1alpha1::Machine> = self.seed_api();
        for machine in used.read_list(&ListParams::default()).await? {
            let template = serde_json::to_value(&machine.spec)?;
            let key = template.at(&format!("/nodeTemplate/metadata/labels/{}", label.replace('/', "~1")));
            kept.extend(key.and_then(serde_json::Value::as_str).map(str::to_owned));
        }
        let is_stale = |name: &String| {
            let key = name.trim_end_matches("-init").trim_end_matches("-original");
            !kept.iter().any(|one| one == key)
        };
        Ok(names.filter(is_stale).collect())
    }

    /// Deletes configs that nobody has any more.
    pub(crate) async fn delete_stale_operating_system_configs(&self) -> Done {
        let going = self.stale_operating_system_configs().await?;
        self.delete_named::<OperatingSystemConfig>(&going).await
    }

    /// Waits until they are gone.
    pub(crate) async fn wait_for_stale_operating_system_configs(&self) -> Done {
        let going = self.stale_operating_system_configs().await?;
        self.wait_for_end_of::<OperatingSystemConfig>(&going).await
    }

    /// [CP-F54]: the node agents' Secrets and what they are allowed to.
    pub(crate) async fn deploy_node_agent(&self) -> Done {
        let api: Api<OperatingSystemConfig> = self.seed_api();
        let mut objects = Vec::new();
        let mut checksums = BTreeMap::new();
        for (pool, key) in self.keys() {
            let config = api.read(&format!("{key}-original")).await?;
            let (secret, checksum) = node_agent::secret(&key, &pool.name, &whole(&config)?);
            objects.push(secret);
            checksums.insert(pool.name, (key, checksum));
        }
        let names: Vec<String> = checksums.values().map(|(key, _)| key.clone()).collect();
        objects.extend(node_agent::shoot_objects(&names));
        self.state.write().pool_secrets = checksums;
        self.deploy_to_shoot("shoot-gardener-node-agent", &objects).await
    }

    fn machine_type(&self, name: &str) -> Option<MachineType> {
        let types = self.cloud_profile.at("/spec/machineTypes")?.as_array()?;
        let found = types
            .iter()
            .find(|one| one.get("name").and_then(serde_json::Value::as_str) == Some(name))?;
        serde_json::from_value(found.clone()).ok()
    }

    fn node_template(&self, pool: &Pool, existing: Option<&WorkerPool>) -> Option<WorkerPoolNodeTemplate> {
        if let Some(existing) = existing
            && existing.machine_type == pool.machine.r#type
            && existing.node_template.is_some()
        {
            return existing.node_template.clone();
        }
        let machine = self.machine_type(&pool.machine.r#type)?;
        let capacity = [("cpu", machine.cpu), ("gpu", machine.gpu), ("memory", machine.memory)];
        Some(WorkerPoolNodeTemplate {
            capacity: capacity
                .into_iter()
                .map(|(name, amount)| (name.to_owned(), amount))
                .collect(),
            ..WorkerPoolNodeTemplate::default()
        })
    }

    async fn pool(&self, pool: &Pool, key: &str, existing: Option<&WorkerPool>) -> Result<WorkerPool, TaskError> {
        let api: Api<OperatingSystemConfig> = self.seed_api();
        let config = api.read_opt(&format!("{key}-init")).await?;
        let config = config
            .ok_or_else(|| TaskError::new(format!("missing operating system config for worker pool {}", pool.name)))?;
        let secret = config.status.cloud_config.and_then(|one| one.secret_ref.name);
        let secret =
            secret.ok_or_else(|| TaskError::new(format!("missing secret name for worker pool {}", pool.name)))?;
        let shoot = self.shoot();
        let text = |duration: Option<gardener_apis::Duration>| duration.map(|one| one.to_string());
        let image = pool.machine.image.clone().unwrap_or_default();
        let creation_timeout = self
            .machine_type(&pool.machine.r#type)
            .and_then(|one| one.machine_controller_manager)
            .and_then(|one| one.machine_creation_timeout);
        let manager = pool.machine_controller_manager.clone().unwrap_or_default();
        let autoscaler = pool.cluster_autoscaler.clone();
        let zero = k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(0);
        Ok(WorkerPool {
            name: pool.name.clone(),
            machine_type: pool.machine.r#type.clone(),
            architecture: Some(pool.machine.architecture.clone().unwrap_or_else(|| "amd64".to_owned())),
            machine_image: Some(WorkerPoolMachineImage {
                name: image.name,
                version: image.version.unwrap_or_default(),
            }),
            minimum: pool.minimum,
            maximum: pool.maximum,
            max_surge: pool.max_surge.clone().or_else(|| Some(zero.clone())),
            max_unavailable: pool.max_unavailable.clone().or(Some(zero)),
            annotations: pool.annotations.clone(),
            labels: worker_pool::node_labels(&shoot, pool, key),
            taints: pool.taints.clone(),
            zones: pool.zones.clone(),
            priority: pool.priority,
            update_strategy: Some(
                pool.update_strategy
                    .clone()
                    .unwrap_or_else(|| "AutoRollingUpdate".to_owned()),
            ),
            kubernetes_version: Some(worker_pool::kubernetes_version(&shoot, pool).to_owned()),
            kubelet_config: worker_pool::kubelet_config(&shoot, pool).cloned(),
            kubelet_data_volume_name: pool.kubelet_data_volume_name.clone(),
            node_agent_secret_name: Some(key.to_owned()),
            node_template: self.node_template(pool, existing),
            provider_config: pool.provider_config.clone(),
            user_data_secret_ref: WorkerPoolUserDataSecretRef {
                key: "cloud_config".to_owned(),
                name: Some(secret),
                optional: None,
            },
            volume: pool.volume.clone().map(|volume| WorkerPoolVolume {
                name: volume.name,
                r#type: volume.r#type,
                size: volume.size,
                encrypted: volume.encrypted,
            }),
            data_volumes: pool
                .data_volumes
                .iter()
                .map(|volume| WorkerPoolDataVolume {
                    name: volume.name.clone(),
                    r#type: volume.r#type.clone(),
                    size: volume.size.clone(),
                    encrypted: volume.encrypted,
                })
                .collect(),
            machine_controller_manager: Some(WorkerPoolMachineControllerManager {
                auto_preserve_failed_machine_max: manager.auto_preserve_failed_machine_max,
                disable_health_timeout: manager.disable_health_timeout,
                in_place_update_timeout: text(manager.in_place_update_timeout),
                machine_creation_timeout: text(manager.machine_creation_timeout.or(creation_timeout)),
                machine_drain_timeout: text(manager.machine_drain_timeout),
                machine_health_timeout: text(manager.machine_health_timeout),
                machine_preserve_timeout: text(manager.machine_preserve_timeout),
                max_evict_retries: manager.max_evict_retries,
                node_conditions: manager.node_conditions,
            })
            .filter(|one| *one != WorkerPoolMachineControllerManager::default()),
            cluster_autoscaler: autoscaler.map(|one| WorkerPoolClusterAutoscaler {
                max_node_provision_time: text(one.max_node_provision_time),
                scale_down_gpu_utilization_threshold: one
                    .scale_down_gpu_utilization_threshold
                    .map(|one| one.to_string()),
                scale_down_unneeded_time: text(one.scale_down_unneeded_time),
                scale_down_unready_time: text(one.scale_down_unready_time),
                scale_down_utilization_threshold: one.scale_down_utilization_threshold.map(|one| one.to_string()),
            }),
        })
    }

    /// [CP-F57]
    pub(crate) async fn deploy_worker(&self) -> Done {
        let api: Api<Worker> = self.seed_api();
        let shoot = self.shoot();
        let existing = api.read_opt(&shoot.name_any()).await?;
        let mut pools = Vec::new();
        for (pool, key) in self.keys() {
            let before = existing
                .as_ref()
                .and_then(|one| one.spec.pools.iter().find(|one| one.name == pool.name));
            pools.push(self.pool(&pool, &key, before).await?);
        }
        self.state.write().worker = existing;
        let mut initial = Worker::default();
        initial.metadata.name = Some(shoot.name_any());
        initial.metadata.namespace = Some(self.namespace.clone());
        let infrastructure = self.infrastructure_status();
        let key = self.ssh_public_key();
        extension::deploy(&api, initial, Ask::Always, &self.config.clock, |object| {
            object.spec.r#type.clone_from(&shoot.spec.provider.r#type);
            object.spec.region.clone_from(&shoot.spec.region);
            object.spec.secret_ref = self.cloud_provider();
            object.spec.ssh_public_key.clone_from(&key);
            object.spec.infrastructure_provider_status.clone_from(&infrastructure);
            object.spec.pools.clone_from(&pools);
        })
        .await?;
        Ok(())
    }

    /// [CP-F58], [EXT-62]
    pub(crate) async fn wait_for_machine_deployments(&self) -> Done {
        let api: Api<Worker> = self.seed_api();
        let before: Option<Time> = self
            .state
            .read()
            .worker
            .as_ref()
            .and_then(|one| one.status.machine_deployments_last_update_time.clone());
        let ready = extension::wait_until(&api, &self.shoot_name(), Timing::LONG, move |worker: &Worker| {
            let updated = &worker.status.machine_deployments_last_update_time;
            let is_newer = match (updated, &before) {
                (Some(updated), Some(before)) => updated.0 > before.0,
                (Some(_), None) => true,
                (None, _) => false,
            };
            // Done within the same second: then the times do not tell it, but the operation does.
            if is_newer || (updated.is_some() && extension::check(worker).is_ok()) {
                return Ok(());
            }
            match &worker.status.last_error {
                Some(error)
                    if before
                        .as_ref()
                        .is_none_or(|before| error.last_update_time.as_ref().is_some_and(|at| at.0 > before.0)) =>
                {
                    Err(NotReady::Error {
                        message: error.description.clone(),
                        codes: error.codes.clone(),
                    })
                }
                _ => Err(NotReady::Waiting(
                    "worker status machineDeployments has not been updated".to_owned(),
                )),
            }
        })
        .await?;
        self.state.write().worker = Some(ready);
        Ok(())
    }

    /// [CP-F60]
    pub(crate) async fn wait_for_worker(&self) -> Done {
        let api: Api<Worker> = self.seed_api();
        let ready = extension::wait_ready(&api, &self.shoot_name(), Timing::LONG).await?;
        self.state.write().worker = Some(ready);
        Ok(())
    }

    /// [CP-F66], [GNA-14]
    pub(crate) async fn wait_for_nodes(&self) -> Done {
        let api: Api<Node> = Api::all(self.shoot_client().await?);
        let secrets = self.state.read().pool_secrets.clone();
        let timeout = Duration::from_secs(8 * 60);
        let patience = Patience::of(timeout);
        wait_for_all(&api, patience, |nodes| {
            nodes.iter().try_for_each(|node| check_node(node, &secrets))
        })
        .await
        .map_err(TaskError::new)
    }
}

/// Whether a node has the current config of its pool [GNA-14].
fn check_node(node: &Node, secrets: &BTreeMap<String, (String, String)>) -> Result<(), String> {
    let Some(pool) = node.labels().get("worker.gardener.cloud/pool") else {
        return Ok(());
    };
    let Some((key, desired)) = secrets.get(pool) else {
        return Ok(());
    };
    has_config(node, key, desired)
}
