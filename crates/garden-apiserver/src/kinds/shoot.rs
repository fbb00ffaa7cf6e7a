//! Shoots: what a write of the object, of its status and of its binding changes besides, [GAPI-30] – [GAPI-41], [ST-10] – [ST-15], [MIG-22], [MIG-23],
//! [TOL-20].

use std::time::Duration;

use gardener_apimachinery::field::ErrorList;
use gardener_apimachinery::names;
use gardener_apis::constants::label;
use gardener_apis::core::v1beta1::*;
use gardener_apiserver::definition::Context;
use gardener_apiserver::selectable::Selectable;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::features::{self, Features};
use crate::generation;
use crate::kind::GardenKind;
use crate::rows::{self, NONE, PENDING, UNKNOWN, or};

/// Takes away the label of self-hosted shoots from others; who hosts itself gets it when it is stored.
fn host_label(shoot: &mut Shoot, hosts_itself: impl FnOnce(&Shoot) -> bool) {
    if !hosts_itself(shoot)
        && let Some(labels) = &mut shoot.metadata.labels
    {
        labels.remove(label::SHOOT_SELF_HOSTED);
        // Go leaves out empty maps
        shoot.metadata.labels = shoot.metadata.labels.take().filter(|labels| !labels.is_empty());
    }
}

impl GardenKind for Shoot {
    const FIELDS: &[Selectable] = &[
        Selectable::text("spec.seedName", "/spec/seedName"),
        Selectable::text("spec.cloudProfileName", "/spec/cloudProfileName"),
        Selectable::text("spec.cloudProfile.Name", "/spec/cloudProfile/name"),
        Selectable::text("spec.cloudProfile.Kind", "/spec/cloudProfile/kind"),
        Selectable::text("status.seedName", "/status/seedName"),
    ];
    const LISTS_KEPT_EMPTY: &'static [&'static str] = &[
        "/spec/kubernetes/clusterAutoscaler/ignoreTaints",
        "/spec/kubernetes/kubelet/preloadedImagesVerificationAllowlist",
        "/spec/provider/workers/*/kubernetes/kubelet/preloadedImagesVerificationAllowlist",
    ];
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = false;
    const WARNS: bool = true;
    const SPEC_FOR_STATUS: Option<&'static [&'static str]> = Some(&["seedName"]);

    fn set_defaults(&mut self, chance: u64) {
        default_shoot(self, chance);
    }

    fn quantities(&mut self) -> Vec<&mut Quantity> {
        let own = self.spec.kubernetes.kubelet.iter_mut();
        let pools = self
            .spec
            .provider
            .workers
            .iter_mut()
            .filter_map(|worker| worker.kubernetes.as_mut()?.kubelet.as_mut());
        own.chain(pools)
            .flat_map(|kubelet| {
                kubelet
                    .kube_reserved
                    .iter_mut()
                    .flat_map(|reserved| {
                        [
                            &mut reserved.cpu,
                            &mut reserved.memory,
                            &mut reserved.ephemeral_storage,
                            &mut reserved.pid,
                        ]
                    })
                    .chain([&mut kubelet.container_log_max_size])
            })
            .flatten()
            .collect()
    }

    fn prepare_create(&mut self, _: &Context<'_>) {
        host_label(self, |shoot| shoot.spec.is_self_hosted());
        sync_cloud_profile(self, None);
        sync_dns_secrets(&mut self.spec);
    }

    fn prepare_update(&mut self, _: &Self, _: &Context<'_>) {
        host_label(self, |shoot| shoot.spec.is_self_hosted());
        generation::normalize_operations(&mut self.metadata);
        sync_dns_secrets(&mut self.spec);
    }

    /// `binding` moves a shoot to a seed, [GAPI-66].
    const VIEWS: &'static [&'static str] = &["binding"];

    fn prepare_view(&mut self, old: &Self, _: &Context<'_>) -> bool {
        self.status = old.status.clone();
        // [GAPI-36]: a shoot that waited for its seed starts afresh.
        let waits = |operation: &LastOperation| operation.r#type == "Create" && operation.state == "Pending";
        if old.spec.seed_name.is_none() && self.spec.seed_name.is_some() {
            self.status.last_operation = self.status.last_operation.take().filter(|own| !waits(own));
        }
        self.spec != old.spec
    }

    fn prepare_status(&mut self, old: &Self, _: &Context<'_>) -> bool {
        // whether a shoot hosts itself does not change, and its pools tell it, which are not read here
        let before = old.metadata.labels.as_ref();
        let was_told = before.is_some_and(|labels| labels.contains_key(label::SHOOT_SELF_HOSTED));
        host_label(self, |_| was_told);
        if was_told {
            let labels = self.metadata.labels.get_or_insert_default();
            labels.insert(label::SHOOT_SELF_HOSTED.into(), "true".into());
        }
        let migrated = |shoot: &Self| {
            shoot.status.last_operation.as_ref().is_some_and(|operation| {
                operation.r#type == "Migrate" && matches!(operation.state.as_str(), "Succeeded" | "Aborted")
            })
        };
        let prepared = |shoot: &Self, completes: bool| {
            shoot
                .status
                .credentials
                .as_ref()
                .and_then(|credentials| credentials.rotation.as_ref())
                .and_then(|rotation| rotation.etcd_encryption_key.as_ref())
                .is_some_and(|key| {
                    key.phase == "Prepared" && (!completes || key.auto_complete_after_prepared == Some(true))
                })
        };
        migrated(self) || (prepared(self, true) && !prepared(old, false))
    }

    fn bumps(&mut self, old: &Self) -> bool {
        let bumps = generation::shoot_bumps(self, old);
        // what the user changed of the reference counts, though it may be made undone here
        sync_cloud_profile(self, Some(old));
        bumps
    }

    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_shoot_creation(self)
    }

    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_shoot_update(self, old)
    }

    fn check_status(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_shoot_status_update(self, old)
    }

    fn canonicalize(&mut self) {
        canonicalize_shoot(self);
    }

    fn gated(&self, old: Option<&Self>, features: &Features) -> ErrorList {
        features::shoot(self, old, features)
    }

    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let profile = match self.spec.cloud_profile_reference() {
            Some(reference) if reference.kind == "NamespacedCloudProfile" => {
                format!("{}/{}", self.project_namespace(), reference.name)
            }
            Some(reference) => reference.name,
            None => UNKNOWN.into(),
        };
        let hibernation = match (self.hibernation_enabled(), self.status.hibernated) {
            (true, true) => "Hibernated",
            (true, false) => "Hibernating",
            (false, true) => "Waking Up",
            (false, false) => "Awake",
        };
        let status = self
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(label::SHOOT_STATUS));
        let conditions = &self.status.conditions;
        let mut cells = vec![
            profile.into(),
            self.spec.provider.r#type.as_str().into(),
            self.spec.region.as_str().into(),
            or(self.spec.seed_name.as_deref(), NONE),
            self.spec.kubernetes_version().into(),
            hibernation.into(),
            rows::operation(self.status.last_operation.as_ref()),
            or(status.map(String::as_str), PENDING),
            or(self.spec.purpose.as_deref(), NONE),
            or(Some(self.status.gardener.version.as_str()), UNKNOWN),
        ];
        for kind in [
            "APIServerAvailable",
            "ControlPlaneHealthy",
            "ObservabilityComponentsHealthy",
            "EveryNodeReady",
            "SystemComponentsHealthy",
        ] {
            cells.push(rows::condition_cell(conditions, kind));
        }
        cells.push(rows::age(now, &self.metadata));
        cells
    }

    fn warn(&self, old: Option<&Self>, now: Timestamp, rotation: Duration) -> Vec<String> {
        shoot_warnings(self, old, now, rotation)
    }

    fn name_errors(name: &str) -> Vec<String> {
        names::dns_label(name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gapi_38_only_who_hosts_itself_is_told_so() {
        let labels = json!({label::SHOOT_SELF_HOSTED: "true", "a": "b"});
        let mut shoot: Shoot = serde_json::from_value(json!({"metadata": {"name": "a", "labels": labels}})).unwrap();
        host_label(&mut shoot, |_| true);
        assert_eq!(shoot.metadata.labels.as_ref().unwrap().len(), 2);
        host_label(&mut shoot, |shoot| shoot.spec.is_self_hosted());
        assert_eq!(
            shoot.metadata.labels.as_ref().unwrap().keys().collect::<Vec<_>>(),
            ["a"]
        );
        let own = [(label::SHOOT_SELF_HOSTED.to_owned(), "true".to_owned())];
        shoot.metadata.labels = Some(own.into());
        host_label(&mut shoot, |_| false);
        assert_eq!(shoot.metadata.labels, None);
    }
}
