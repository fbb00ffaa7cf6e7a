//! Extension resources of a shoot: which there are, and when in its life they are worked on [EXT-110].

use std::time::Duration;

use gardener_apis::core::v1beta1::{ContainerRuntime as OwnRuntime, ControllerRegistration, Shoot, Worker};
use gardener_apis::extensions::v1alpha1::{ContainerRuntime, Extension};
use gardener_controller::Read;
use gardener_flow::TaskError;
use k8s_openapi::NamespaceResourceScope;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use serde_json::Value;

use super::{Botanist, Done};
use crate::extension::{self, Ask, ExtensionObject, Timing};

/// An extension that the shoot has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) kind: String,
    provider_config: Option<Value>,
    reconcile: String,
    delete: String,
    timeout: Duration,
}

/// The extensions of a shoot: listed and not disabled, or enabled by their registration for all [EXT-101].
pub(crate) fn wanted(shoot: &Shoot, registrations: &[ControllerRegistration]) -> Vec<Wanted> {
    let workerless = shoot.spec.provider.workers.is_empty();
    let resources = registrations
        .iter()
        .flat_map(|one| &one.spec.resources)
        .filter(|one| one.kind == "Extension");
    let mut found: Vec<Wanted> = Vec::new();
    for resource in resources {
        let listed = shoot.spec.extensions.iter().find(|one| one.r#type == resource.r#type);
        let enabled = match listed {
            Some(listed) => listed.disabled != Some(true),
            None => {
                resource.auto_enable.iter().any(|one| one == "shoot")
                    && (!workerless || resource.workerless_supported == Some(true))
            }
        };
        if !enabled || resource.primary == Some(false) || found.iter().any(|one| one.kind == resource.r#type) {
            continue;
        }
        let cycle = resource.lifecycle.clone().unwrap_or_default();
        found.push(Wanted {
            kind: resource.r#type.clone(),
            provider_config: listed.and_then(|one| one.provider_config.clone()),
            reconcile: cycle.reconcile.unwrap_or_else(|| "AfterKubeAPIServer".to_owned()),
            delete: cycle.delete.unwrap_or_else(|| "BeforeKubeAPIServer".to_owned()),
            timeout: resource
                .reconcile_timeout
                .map_or(Duration::from_secs(180), |time| time.to_std()),
        });
    }
    found
}

impl Botanist {
    fn due(&self, moment: &str) -> impl Iterator<Item = &Wanted> {
        self.extensions.iter().filter(move |one| one.reconcile == moment)
    }

    /// Deploys the extensions of one moment in the life of the cluster.
    pub(crate) async fn deploy_extensions(&self, moment: &str) -> Done {
        let api: Api<Extension> = self.seed_api();
        for one in self.due(moment) {
            let mut initial = Extension::default();
            initial.metadata.name = Some(one.kind.clone());
            initial.metadata.namespace = Some(self.namespace.clone());
            extension::deploy(&api, initial, Ask::Always, &self.config.clock, |object| {
                object.spec.r#type.clone_from(&one.kind);
                object.spec.provider_config.clone_from(&one.provider_config);
            })
            .await?;
        }
        Ok(())
    }

    /// Waits for the extensions of a moment.
    pub(crate) async fn wait_for_extensions(&self, moment: &str) -> Done {
        let api: Api<Extension> = self.seed_api();
        for one in self.due(moment) {
            extension::wait_ready(&api, &one.kind, Timing::SHORT.with_timeout(one.timeout)).await?;
        }
        Ok(())
    }

    /// Whether there are extensions for a moment.
    pub(crate) fn has_extensions(&self, moment: &str) -> bool {
        self.due(moment).next().is_some()
    }

    /// Those of the extensions in the seed that go.
    async fn going_extensions(&self, goes: impl Fn(&Extension) -> bool) -> Result<Vec<String>, TaskError> {
        let api: Api<Extension> = self.seed_api();
        let listed = api.read_list(&ListParams::default()).await?;
        Ok(listed
            .iter()
            .filter(|one| goes(one))
            .map(ResourceExt::name_any)
            .collect())
    }

    fn is_stale(&self, object: &Extension) -> bool {
        !self.extension_types().contains(&object.spec.r#type)
    }

    fn goes_at(&self, object: &Extension, moment: &str) -> bool {
        let known = self.extensions.iter().find(|one| one.kind == object.spec.r#type);
        known.map_or("BeforeKubeAPIServer", |one| one.delete.as_str()) == moment
    }

    /// Deletes extensions that are no longer wanted [CP-F70].
    pub(crate) async fn delete_stale_extensions(&self) -> Done {
        let going = self.going_extensions(|object| self.is_stale(object)).await?;
        self.delete_named::<Extension>(&going).await
    }

    /// Waits until they are gone.
    pub(crate) async fn wait_for_stale_extensions(&self) -> Done {
        let going = self.going_extensions(|object| self.is_stale(object)).await?;
        self.wait_for_end_of::<Extension>(&going).await
    }

    /// Deletes the extensions that go at one moment of the deletion.
    pub(crate) async fn delete_extensions(&self, moment: &str) -> Done {
        let going = self.going_extensions(|object| self.goes_at(object, moment)).await?;
        self.delete_named::<Extension>(&going).await
    }

    /// Waits until they are gone.
    pub(crate) async fn wait_for_end_of_extensions(&self, moment: &str) -> Done {
        let going = self.going_extensions(|object| self.goes_at(object, moment)).await?;
        self.wait_for_end_of::<Extension>(&going).await
    }

    /// Deletes extension objects of the control plane's namespace.
    pub(crate) async fn delete_named<K>(&self, names: &[String]) -> Done
    where
        K: ExtensionObject + Resource<Scope = NamespaceResourceScope>,
    {
        for name in names {
            extension::delete::<K>(&self.seed_api(), name, &self.config.clock).await?;
        }
        Ok(())
    }

    /// Waits until such objects are gone.
    pub(crate) async fn wait_for_end_of<K>(&self, names: &[String]) -> Done
    where
        K: ExtensionObject + Resource<Scope = NamespaceResourceScope>,
    {
        for name in names {
            extension::wait_gone::<K>(&self.seed_api(), name, Timing::SHORT).await?;
        }
        Ok(())
    }

    /// The container runtimes that pools have: a pool and one of its runtimes.
    fn container_runtimes(shoot: &Shoot) -> impl Iterator<Item = (&Worker, &OwnRuntime)> {
        let pools = shoot.spec.provider.workers.iter();
        pools.flat_map(|pool| {
            let runtimes = pool.cri.iter().flat_map(|cri| &cri.container_runtimes);
            runtimes.map(move |runtime| (pool, runtime))
        })
    }

    /// Container runtimes of the pools [CP-F70].
    pub(crate) async fn deploy_container_runtimes(&self) -> Done {
        let api: Api<ContainerRuntime> = self.seed_api();
        for (pool, runtime) in Self::container_runtimes(&self.shoot()) {
            let mut initial = ContainerRuntime::default();
            initial.metadata.name = Some(runtime_name(pool, runtime));
            initial.metadata.namespace = Some(self.namespace.clone());
            extension::deploy(&api, initial, Ask::Always, &self.config.clock, |object| {
                object.spec.r#type.clone_from(&runtime.r#type);
                object.spec.provider_config.clone_from(&runtime.provider_config);
                object.spec.binary_path = "/var/bin/containerruntimes".to_owned();
                object.spec.worker_pool.name.clone_from(&pool.name);
                let labels = ["worker.gardener.cloud/pool", "worker.garden.sapcloud.io/group"];
                let labels = labels.map(|key| (key.to_owned(), pool.name.clone()));
                object.spec.worker_pool.selector.match_labels = Some(labels.into());
            })
            .await?;
        }
        Ok(())
    }

    /// Waits for them.
    pub(crate) async fn wait_for_container_runtimes(&self) -> Done {
        let api: Api<ContainerRuntime> = self.seed_api();
        for (pool, runtime) in Self::container_runtimes(&self.shoot()) {
            extension::wait_ready(&api, &runtime_name(pool, runtime), Timing::SHORT).await?;
        }
        Ok(())
    }

    /// The container runtimes in the seed that no pool has any more; all of them, if the shoot goes.
    async fn stale_container_runtimes(&self) -> Result<Vec<String>, TaskError> {
        let shoot = self.shoot();
        let kept: Vec<String> = match shoot.in_deletion() {
            true => Vec::new(),
            false => Self::container_runtimes(&shoot)
                .map(|(pool, runtime)| runtime_name(pool, runtime))
                .collect(),
        };
        let api: Api<ContainerRuntime> = self.seed_api();
        let listed = api.read_list(&ListParams::default()).await?;
        let names = listed.iter().map(ResourceExt::name_any);
        Ok(names.filter(|name| !kept.contains(name)).collect())
    }

    /// Deletes container runtimes that are no longer wanted.
    pub(crate) async fn delete_stale_container_runtimes(&self) -> Done {
        let going = self.stale_container_runtimes().await?;
        self.delete_named::<ContainerRuntime>(&going).await
    }

    /// Waits until they are gone.
    pub(crate) async fn wait_for_stale_container_runtimes(&self) -> Done {
        let going = self.stale_container_runtimes().await?;
        self.wait_for_end_of::<ContainerRuntime>(&going).await
    }
}

fn runtime_name(pool: &Worker, runtime: &OwnRuntime) -> String {
    format!("{}-{}", runtime.r#type, pool.name)
}
