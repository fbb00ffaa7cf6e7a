//! Infrastructure, ControlPlane and Network resources, and the BackupEntry.

use gardener_apis::constants::{annotation, task};
use gardener_apis::core::v1beta1::{BackupEntry, NetworkingStatus};
use gardener_apis::extensions::v1alpha1::{ControlPlane, Infrastructure, Network};
use gardener_controller::secrets::{Class, data};
use gardener_controller::wait::{Patience, Verdict, wait_for};
use gardener_rules::shoot_operation::OperationType;
use k8s_openapi::api::core::v1::SecretReference;
use kube::{Api, Resource, ResourceExt};
use serde_json::Value;
use std::time::Duration;

use super::{Botanist, Done};
use crate::extension::{self, Ask, Timing};

impl Botanist {
    pub(crate) fn cloud_provider(&self) -> SecretReference {
        SecretReference {
            name: Some("cloudprovider".to_owned()),
            namespace: Some(self.namespace.clone()),
        }
    }

    /// The SSH key of the nodes' user.
    pub(crate) fn ssh_public_key(&self) -> Option<k8s_openapi::ByteString> {
        self.manager
            .get("ssh-keypair", Class::Current)?
            .data?
            .remove(data::PUBLIC_KEY)
    }

    /// [CP-F8]
    pub(crate) async fn deploy_infrastructure(&self) -> Done {
        let api: Api<Infrastructure> = self.seed_api();
        let shoot = self.shoot();
        let mut initial = Infrastructure::default();
        initial.metadata.name = Some(shoot.name_any());
        initial.metadata.namespace = Some(self.namespace.clone());
        let is_asked = self.has_task(task::DEPLOY_INFRASTRUCTURE) || self.operation == OperationType::Restore;
        let ask = if is_asked { Ask::Always } else { Ask::IfNeeded };
        let key = self.ssh_public_key();
        extension::deploy(&api, initial, ask, &self.config.clock, |object| {
            object.spec.r#type.clone_from(&shoot.spec.provider.r#type);
            object
                .spec
                .provider_config
                .clone_from(&shoot.spec.provider.infrastructure_config);
            object.spec.region.clone_from(&shoot.spec.region);
            object.spec.secret_ref = self.cloud_provider();
            object.spec.ssh_public_key.clone_from(&key);
        })
        .await?;
        Ok(())
    }

    /// [CP-F9]: what it tells about networks becomes the shoot's [EXT-30].
    pub(crate) async fn wait_for_infrastructure(&self) -> Done {
        let api: Api<Infrastructure> = self.seed_api();
        let ready = extension::wait_ready(&api, &self.shoot_name(), Timing::INFRASTRUCTURE).await?;
        let status = ready.status.clone();
        self.state.write().infrastructure = Some(ready);
        let networking = self.shoot().spec.networking.clone().unwrap_or_default();
        let told = status.networking.unwrap_or_default();
        let nodes = if told.nodes.is_empty() {
            status.nodes_cidr.into_iter().collect()
        } else {
            told.nodes
        };
        if networking.nodes.is_none()
            && let Some(first) = nodes.first().cloned()
        {
            self.learn_nodes(first).await?;
        }
        let or = |told: Vec<String>, spec: Option<String>| {
            if told.is_empty() {
                spec.into_iter().collect()
            } else {
                told
            }
        };
        let known = NetworkingStatus {
            nodes: or(nodes, networking.nodes),
            pods: or(told.pods, networking.pods),
            services: or(told.services, networking.services),
            egress_cidrs: status.egress_cidrs,
        };
        self.patch_status(|shoot| shoot.status.networking = Some(known.clone()))
            .await?;
        self.remove_task(task::DEPLOY_INFRASTRUCTURE).await?;
        self.sync_cluster().await
    }

    /// What the infrastructure tells other resources.
    pub(crate) fn infrastructure_status(&self) -> Option<Value> {
        self.state
            .read()
            .infrastructure
            .as_ref()
            .and_then(|one| one.status.provider_status.clone())
    }

    /// [CP-F27]
    pub(crate) async fn deploy_control_plane(&self) -> Done {
        let api: Api<ControlPlane> = self.seed_api();
        let shoot = self.shoot();
        let mut initial = ControlPlane::default();
        initial.metadata.name = Some(shoot.name_any());
        initial.metadata.namespace = Some(self.namespace.clone());
        let infrastructure = self.infrastructure_status();
        extension::deploy(&api, initial, Ask::Always, &self.config.clock, |object| {
            object.spec.r#type.clone_from(&shoot.spec.provider.r#type);
            object
                .spec
                .provider_config
                .clone_from(&shoot.spec.provider.control_plane_config);
            object.spec.region.clone_from(&shoot.spec.region);
            object.spec.secret_ref = self.cloud_provider();
            object.spec.infrastructure_provider_status.clone_from(&infrastructure);
        })
        .await?;
        Ok(())
    }

    /// [CP-F28]
    pub(crate) async fn wait_for_control_plane(&self) -> Done {
        let api: Api<ControlPlane> = self.seed_api();
        extension::wait_ready(&api, &self.shoot_name(), Timing::SHORT).await?;
        Ok(())
    }

    /// [CP-F52]
    pub(crate) async fn deploy_network(&self) -> Done {
        let api: Api<Network> = self.seed_api();
        let view = self.view();
        let networking = view.shoot.spec.networking.clone().unwrap_or_default();
        let cluster = view.cluster();
        let first = |cidrs: Vec<String>| cidrs.into_iter().next().unwrap_or_default();
        let (pods, services) = (first(cluster.pod_cidrs()), first(cluster.service_cidrs()));
        let mut initial = Network::default();
        initial.metadata.name = Some(view.shoot.name_any());
        initial.metadata.namespace = Some(self.namespace.clone());
        extension::deploy(&api, initial, Ask::Always, &self.config.clock, |object| {
            object.spec.r#type = networking.r#type.clone().unwrap_or_default();
            object.spec.provider_config.clone_from(&networking.provider_config);
            object.spec.pod_cidr.clone_from(&pods);
            object.spec.service_cidr.clone_from(&services);
            object.spec.ip_families.clone_from(&networking.ip_families);
        })
        .await?;
        Ok(())
    }

    /// Waits for the Network.
    pub(crate) async fn wait_for_network(&self) -> Done {
        let api: Api<Network> = self.seed_api();
        extension::wait_ready(&api, &self.shoot_name(), Timing::SHORT).await?;
        Ok(())
    }

    /// The name of the shoot's BackupEntry [CP-42].
    pub(crate) fn backup_entry_name(&self) -> String {
        crate::backup::entry_name(&self.namespace, &self.shoot())
    }

    /// Whether the seed keeps backups.
    pub(crate) fn has_backup(&self) -> bool {
        self.seed.spec.backup.is_some()
    }

    /// The name of the seed's bucket: the seed's uid [EXT-3.9].
    pub(crate) fn bucket_name(&self) -> String {
        self.seed.uid().unwrap_or_default()
    }

    /// [CP-F15]: in the garden; its controller makes the one in the seed.
    pub(crate) async fn deploy_backup_entry(&self) -> Done {
        let shoot = self.shoot();
        let api: Api<BackupEntry> = Api::namespaced(self.garden().clone(), &shoot.namespace().unwrap_or_default());
        let mut initial = BackupEntry::default();
        initial.metadata.name = Some(self.backup_entry_name());
        initial.metadata.namespace = shoot.namespace();
        let owner = shoot.controller_owner_ref(&()).map(|owner| vec![owner]);
        let bucket = self.bucket_name();
        let seed = self.config.seed_name.clone();
        let purpose = shoot.spec.purpose.clone();
        gardener_controller::apply::create_or_patch(&api, initial, |entry| {
            if let Some(purpose) = &purpose {
                let annotations = entry.annotations_mut();
                annotations.insert(annotation::SHOOT_PURPOSE.to_owned(), purpose.clone());
            }
            entry.spec.bucket_name = bucket.clone();
            entry.spec.seed_name = Some(seed.clone());
            entry.metadata.owner_references = owner.clone();
        })
        .await?;
        Ok(())
    }

    /// Waits for it.
    pub(crate) async fn wait_for_backup_entry(&self) -> Done {
        let shoot = self.shoot();
        let api: Api<BackupEntry> = Api::namespaced(self.garden().clone(), &shoot.namespace().unwrap_or_default());
        let timeout = Duration::from_secs(600);
        let judge = |entry: Option<&BackupEntry>| {
            let Some(entry) = entry else {
                return Verdict::Pending("BackupEntry not found".to_owned());
            };
            let state = entry
                .status
                .last_operation
                .as_ref()
                .map_or("", |last| last.state.as_str());
            let observed = entry.status.observed_generation == entry.metadata.generation;
            match &entry.status.last_error {
                None if observed && state == "Succeeded" => Verdict::Ready(()),
                Some(error) => Verdict::Pending(format!("error during reconciliation: {}", error.description)),
                None => Verdict::Pending(format!("BackupEntry state is not succeeded but {state:?}")),
            }
        };
        wait_for(&api, &self.backup_entry_name(), Patience::of(timeout), judge).await?;
        Ok(())
    }

    /// Deletes it.
    pub(crate) async fn delete_backup_entry(&self) -> Done {
        let shoot = self.shoot();
        let api: Api<BackupEntry> = Api::namespaced(self.garden().clone(), &shoot.namespace().unwrap_or_default());
        gardener_controller::apply::delete(&api, &self.backup_entry_name()).await?;
        Ok(())
    }
}
