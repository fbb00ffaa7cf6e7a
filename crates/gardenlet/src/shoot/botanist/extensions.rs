//! Extension resources of a shoot: which there are, and when in its life they are worked on [EXT-110].

use std::time::Duration;

use gardener_apis::core::v1beta1::{ControllerRegistration, Shoot};
use gardener_apis::extensions::v1alpha1::{ContainerRuntime, Extension};
use gardener_controller::Read;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::Value;

use super::{Botanist, Done};
use crate::extension::{self, Ask, Timing};

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
    /// Deploys the extensions of one moment in the life of the cluster, and waits for them.
    pub(crate) async fn deploy_extensions(&self, moment: &str) -> Done {
        let api: Api<Extension> = self.seed_api();
        let due: Vec<&Wanted> = self.extensions.iter().filter(|one| one.reconcile == moment).collect();
        for one in &due {
            let mut initial = Extension::default();
            initial.metadata.name = Some(one.kind.clone());
            initial.metadata.namespace = Some(self.namespace.clone());
            extension::deploy(&api, initial, Ask::Always, &self.config.clock, |object| {
                object.spec.r#type.clone_from(&one.kind);
                object.spec.provider_config.clone_from(&one.provider_config);
            })
            .await?;
        }
        if self.skips_readiness() {
            return Ok(());
        }
        for one in due {
            extension::wait_ready(&api, &one.kind, Timing::SHORT.with_timeout(one.timeout)).await?;
        }
        Ok(())
    }

    /// Whether there are extensions for a moment.
    pub(crate) fn has_extensions(&self, moment: &str) -> bool {
        self.extensions.iter().any(|one| one.reconcile == moment)
    }

    /// Deletes extensions that are no longer wanted [CP-F70].
    pub(crate) async fn delete_stale_extensions(&self) -> Done {
        let api: Api<Extension> = self.seed_api();
        let kept = self.extension_types();
        self.delete_extensions_where(&api, |object| !kept.contains(&object.spec.r#type))
            .await
    }

    /// Deletes the extensions that go at one moment of the deletion.
    pub(crate) async fn delete_extensions(&self, moment: &str) -> Done {
        let api: Api<Extension> = self.seed_api();
        let goes = |object: &Extension| {
            let known = self.extensions.iter().find(|one| one.kind == object.spec.r#type);
            known.map_or("BeforeKubeAPIServer", |one| one.delete.as_str()) == moment
        };
        self.delete_extensions_where(&api, goes).await
    }

    async fn delete_extensions_where(&self, api: &Api<Extension>, goes: impl Fn(&Extension) -> bool) -> Done {
        let listed = api.read_list(&ListParams::default()).await?;
        let going: Vec<String> = listed
            .iter()
            .filter(|one| goes(one))
            .map(ResourceExt::name_any)
            .collect();
        for name in &going {
            extension::delete(api, name, &self.config.clock).await?;
        }
        for name in &going {
            extension::wait_gone(api, name, Timing::SHORT).await?;
        }
        Ok(())
    }

    /// Container runtimes of the pools [CP-F70].
    pub(crate) async fn deploy_container_runtimes(&self) -> Done {
        let api: Api<ContainerRuntime> = self.seed_api();
        let mut names = Vec::new();
        let shoot = self.shoot();
        for pool in &shoot.spec.provider.workers {
            for runtime in pool.cri.iter().flat_map(|cri| &cri.container_runtimes) {
                let name = format!("{}-{}", runtime.r#type, pool.name);
                let mut initial = ContainerRuntime::default();
                initial.metadata.name = Some(name.clone());
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
                names.push(name);
            }
        }
        for name in &names {
            extension::wait_ready(&api, name, Timing::SHORT).await?;
        }
        self.delete_container_runtimes(&names).await
    }

    /// Deletes all container runtimes but some.
    pub(crate) async fn delete_container_runtimes(&self, kept: &[String]) -> Done {
        let api: Api<ContainerRuntime> = self.seed_api();
        let listed = api.read_list(&ListParams::default()).await?;
        let going: Vec<String> = listed
            .iter()
            .map(ResourceExt::name_any)
            .filter(|name| !kept.contains(name))
            .collect();
        for name in &going {
            extension::delete(&api, name, &self.config.clock).await?;
        }
        for name in &going {
            extension::wait_gone(&api, name, Timing::SHORT).await?;
        }
        Ok(())
    }
}
