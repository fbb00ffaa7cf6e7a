//! The kinds of `core.gardener.cloud` besides Shoots.

use std::collections::BTreeMap;
use std::time::Duration;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::ErrorList;
use gardener_apimachinery::names;
use gardener_apis::constants::{annotation, operation};
use gardener_apis::core::v1::{self, from_v1beta1, to_v1beta1};
use gardener_apis::core::v1beta1::*;
use gardener_apiserver::definition::Context;
use gardener_apiserver::selectable::Selectable;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::features::Features;
use crate::generation::{becomes_true, content_changed, deletion_begins, operation_bumps, operation_changes};
use crate::helm_configuration;
use crate::kind::GardenKind;
use crate::rows::{self, NONE, UNKNOWN, age, or};

fn reference(reference: Option<&ObjectReference>) -> (String, String) {
    let text = |value: Option<&String>| value.cloned().unwrap_or_default();
    (
        text(reference.and_then(|reference| reference.name.as_ref())),
        text(reference.and_then(|reference| reference.namespace.as_ref())),
    )
}

fn machine_amounts<'a>(types: &'a mut [MachineType], volumes: &'a mut [VolumeType]) -> Vec<&'a mut Quantity> {
    let mut amounts = Vec::new();
    for machine in types {
        amounts.extend([&mut machine.cpu, &mut machine.gpu, &mut machine.memory]);
        if let Some(storage) = &mut machine.storage {
            amounts.extend(storage.size.iter_mut());
            amounts.extend(storage.min_size.iter_mut());
        }
    }
    amounts.extend(volumes.iter_mut().filter_map(|volume| volume.min_size.as_mut()));
    amounts
}

impl GardenKind for Project {
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = true;
    const FIELDS: &[Selectable] = &[Selectable::text("spec.namespace", "/spec/namespace")];
    fn set_defaults(&mut self, _: u64) {
        default_project(self);
    }
    fn bumps(&mut self, old: &Self) -> bool {
        content_changed(self, old)
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_project(self, None)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_project_update(self, old)
    }
    fn check_status(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_project_status_update(self, old)
    }
    fn canonicalize(&mut self) {
        canonicalize_project(self);
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let name = |subject: &Option<k8s_openapi::api::rbac::v1::Subject>| subject.as_ref().map(|s| s.name.clone());
        vec![
            or(self.spec.namespace.as_deref(), UNKNOWN),
            or(self.status.phase.as_deref(), UNKNOWN),
            or(name(&self.spec.owner).as_deref(), UNKNOWN),
            or(name(&self.spec.created_by).as_deref(), UNKNOWN),
            age(now, &self.metadata),
        ]
    }
}

impl GardenKind for Seed {
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = true;
    fn name_errors(name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn set_defaults(&mut self, _: u64) {
        default_seed(self);
    }
    fn quantities(&mut self) -> Vec<&mut Quantity> {
        let configs = self
            .spec
            .settings
            .iter_mut()
            .filter_map(|settings| settings.excess_capacity_reservation.as_mut())
            .flat_map(|reservation| reservation.configs.iter_mut())
            .flat_map(|config| config.resources.values_mut());
        let volume = self
            .spec
            .volume
            .iter_mut()
            .filter_map(|volume| volume.minimum_size.as_mut());
        configs.chain(volume).collect()
    }
    fn bumps(&mut self, old: &Self) -> bool {
        let kept = [
            "renew-garden-access-secrets",
            "renew-workload-identity-tokens",
            operation::RENEW_KUBECONFIG,
        ];
        content_changed(self, old)
            || deletion_begins(self, old)
            || (operation_changes(self, old) && operation_bumps(self, &[operation::RECONCILE], &kept))
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_seed(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_seed_update(self, old)
    }
    fn check_status(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_seed_status_update(self, old)
    }
    fn canonicalize(&mut self) {
        canonicalize_seed(self);
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let conditions = &self.status.conditions;
        let status = |kind: &str| rows::condition(conditions, kind);
        let summary = if status("GardenletReady") == Some("Unknown") {
            "Unknown"
        } else if status("GardenletReady") != Some("True")
            || status("BackupBucketsReady").is_some_and(|status| status != "True")
            || matches!(status("ExtensionsReady"), None | Some("False" | "Unknown"))
            || matches!(status("SeedSystemComponentsHealthy"), Some("False" | "Unknown"))
        {
            "NotReady"
        } else {
            "Ready"
        };
        vec![
            summary.into(),
            rows::operation(self.status.last_operation.as_ref()),
            self.spec.provider.r#type.as_str().into(),
            self.spec.provider.region.as_str().into(),
            age(now, &self.metadata),
            or(
                self.status.gardener.as_ref().map(|gardener| gardener.version.as_str()),
                UNKNOWN,
            ),
            or(self.status.kubernetes_version.as_deref(), UNKNOWN),
        ]
    }
}

impl GardenKind for CloudProfile {
    const GENERATION: bool = false;
    const UNCONDITIONAL: bool = true;
    fn set_defaults(&mut self, _: u64) {
        default_cloud_profile(self);
    }
    fn quantities(&mut self) -> Vec<&mut Quantity> {
        machine_amounts(&mut self.spec.machine_types, &mut self.spec.volume_types)
    }
    fn prepare_create(&mut self, context: &Context<'_>) {
        drop_inactive_versions(self, context.now);
    }
    fn prepare_update(&mut self, old: &Self, _: &Context<'_>) {
        sync_architectures(&mut self.spec, Some(&old.spec));
    }
    fn check_with(&self, old: Option<&Self>, context: &Context<'_>, features: &Features) -> ErrorList {
        let rules = features.profile_rules(context.now);
        match old {
            None => validate_cloud_profile(self, rules),
            Some(old) => {
                let mut errors = validate_cloud_profile_update(self, old, rules);
                errors.extend(validate_added_versions(&self.spec, &old.spec, context.now));
                errors
            }
        }
    }
    fn canonicalize(&mut self) {
        sync_architectures(&mut self.spec, None);
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        vec![self.spec.r#type.as_str().into(), age(now, &self.metadata)]
    }
}

impl GardenKind for NamespacedCloudProfile {
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = true;
    fn set_defaults(&mut self, _: u64) {
        default_namespaced_cloud_profile(self);
    }
    fn quantities(&mut self) -> Vec<&mut Quantity> {
        let mut amounts = machine_amounts(&mut self.spec.machine_types, &mut self.spec.volume_types);
        let told = &mut self.status.cloud_profile_spec;
        amounts.extend(machine_amounts(&mut told.machine_types, &mut told.volume_types));
        amounts
    }
    fn prepare_create(&mut self, context: &Context<'_>) {
        drop_inactive_overrides(self, None, context.now);
    }
    fn prepare_update(&mut self, old: &Self, context: &Context<'_>) {
        drop_inactive_overrides(self, Some(old), context.now);
    }
    fn check_with(&self, old: Option<&Self>, context: &Context<'_>, features: &Features) -> ErrorList {
        let rules = features.profile_rules(context.now);
        match old {
            None => validate_namespaced_cloud_profile(self, rules),
            Some(old) => validate_namespaced_cloud_profile_update(self, old, rules),
        }
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        vec![
            self.spec.parent.name.as_str().into(),
            self.spec.parent.kind.as_str().into(),
            age(now, &self.metadata),
        ]
    }
}

impl GardenKind for BackupBucket {
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = false;
    const FIELDS: &[Selectable] = &[
        Selectable::text("spec.seedName", "/spec/seedName"),
        Selectable::text("spec.shootRef.name", "/spec/shootRef/name"),
        Selectable::text("spec.shootRef.namespace", "/spec/shootRef/namespace"),
    ];
    fn name_errors(name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn bumps(&mut self, old: &Self) -> bool {
        content_changed(self, old) || deletion_begins(self, old) || operation_bumps(self, &[operation::RECONCILE], &[])
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_backup_bucket(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_backup_bucket_update(self, old)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let [state, progress] = rows::state_and_progress(self.status.last_operation.as_ref());
        vec![
            self.spec.provider.r#type.as_str().into(),
            self.spec.seed_name.as_deref().into(),
            state,
            progress,
            age(now, &self.metadata),
        ]
    }
}

impl GardenKind for BackupEntry {
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = false;
    const FIELDS: &[Selectable] = &[
        Selectable::text("spec.seedName", "/spec/seedName"),
        Selectable::text("spec.bucketName", "/spec/bucketName"),
        Selectable::text("spec.shootRef.name", "/spec/shootRef/name"),
        Selectable::text("spec.shootRef.namespace", "/spec/shootRef/namespace"),
    ];
    fn name_errors(name: &str) -> Vec<String> {
        names::path_segment(name)
    }

    fn bumps(&mut self, old: &Self) -> bool {
        content_changed(self, old)
            || deletion_begins(self, old)
            || becomes_true(self, old, annotation::BACKUP_ENTRY_FORCE_DELETION)
            || operation_bumps(self, &[operation::RECONCILE, operation::MIGRATE], &[])
            || (operation_changes(self, old) && operation_bumps(self, &[], &[operation::RESTORE]))
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_backup_entry(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_backup_entry_update(self, old)
    }
    fn canonicalize(&mut self) {
        canonicalize_backup_entry(self);
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let [state, progress] = rows::state_and_progress(self.status.last_operation.as_ref());
        vec![
            self.spec.bucket_name.as_str().into(),
            self.spec.seed_name.as_deref().into(),
            state,
            progress,
            age(now, &self.metadata),
        ]
    }
}

impl GardenKind for ControllerRegistration {
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = false;
    fn name_errors(name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn set_defaults(&mut self, _: u64) {
        default_controller_registration(self);
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_controller_registration(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_controller_registration_update(self, old)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let resources: Vec<String> = self
            .spec
            .resources
            .iter()
            .map(|resource| format!("{}/{}", resource.kind, resource.r#type))
            .collect();
        vec![resources.join(", ").into(), age(now, &self.metadata)]
    }
}

impl GardenKind for ControllerInstallation {
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = false;
    const FIELDS: &[Selectable] = &[
        Selectable::text("spec.registrationRef.name", "/spec/registrationRef/name"),
        Selectable::text("spec.seedRef.name", "/spec/seedRef/name"),
        Selectable::text("spec.shootRef.name", "/spec/shootRef/name"),
        Selectable::text("spec.shootRef.namespace", "/spec/shootRef/namespace"),
    ];
    fn name_errors(name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_controller_installation(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_controller_installation_update(self, old)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let (seed, _) = reference(self.spec.seed_ref.as_ref());
        let (shoot, namespace) = reference(self.spec.shoot_ref.as_ref());
        let cluster = match (shoot.is_empty(), seed.is_empty()) {
            (false, _) => format!("Shoot/{namespace}/{shoot}"),
            (true, false) => format!("Seed/{seed}"),
            (true, true) => UNKNOWN.into(),
        };
        let mut cells = vec![reference(Some(&self.spec.registration_ref)).0.into(), cluster.into()];
        for kind in ["Valid", "Installed", "Healthy", "Progressing"] {
            cells.push(rows::condition_cell(&self.status.conditions, kind));
        }
        cells.push(age(now, &self.metadata));
        cells
    }
}

impl GardenKind for v1::ControllerDeployment {
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = false;
    const ONE_VERSION: bool = false;
    fn decode_embedded(version: &str, object: &Value) -> Result<(), String> {
        helm_configuration::decode(version, object)
    }
    fn name_errors(name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn bumps(&mut self, old: &Self) -> bool {
        // who is given the garden's kubeconfig does not count
        let counted = Self {
            inject_garden_kubeconfig: old.inject_garden_kubeconfig,
            ..self.clone()
        };
        content_changed(&counted, old) || deletion_begins(self, old)
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        v1::validate_controller_deployment(self)
    }
    fn check_update(&self, _: &Self, _: &Context<'_>) -> ErrorList {
        v1::validate_controller_deployment(self)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        vec![age(now, &self.metadata)]
    }
    fn convert(object: &mut Value, from: &str, to: &str) -> Result<(), ApiError> {
        let refused = |why: serde_json::Error| {
            ApiError::bad_request(format!(
                "ControllerDeployment in version {from:?} cannot be handled as a ControllerDeployment: {why}"
            ))
        };
        match (from, to) {
            ("v1beta1", "v1") => {
                let old = ControllerDeployment::deserialize(&*object).map_err(refused)?;
                *object = serde_json::to_value(from_v1beta1(&old).map_err(refused)?).map_err(refused)?;
            }
            ("v1", "v1beta1") => {
                let new = Self::deserialize(&*object).map_err(refused)?;
                *object = serde_json::to_value(to_v1beta1(&new)).map_err(refused)?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl GardenKind for ExposureClass {
    const GENERATION: bool = false;
    const UNCONDITIONAL: bool = false;
    fn name_errors(name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_exposure_class(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_exposure_class_update(self, old)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        vec![self.handler.as_str().into(), age(now, &self.metadata)]
    }
}

impl GardenKind for InternalSecret {
    const GENERATION: bool = false;
    const UNCONDITIONAL: bool = true;
    const FIELDS: &[Selectable] = &[Selectable::text("type", "/type")];
    fn set_defaults(&mut self, _: u64) {
        merge_string_data(self);
    }
    fn prepare_update(&mut self, old: &Self, _: &Context<'_>) {
        if self.r#type.as_deref().unwrap_or_default().is_empty() {
            self.r#type.clone_from(&old.r#type);
        }
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_internal_secret(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_internal_secret_update(self, old)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        vec![
            self.r#type.clone().unwrap_or_default().into(),
            self.data.len().into(),
            age(now, &self.metadata),
        ]
    }
}

impl GardenKind for Quota {
    const GENERATION: bool = false;
    const UNCONDITIONAL: bool = true;
    fn quantities(&mut self) -> Vec<&mut Quantity> {
        self.spec.metrics.iter_mut().flat_map(BTreeMap::values_mut).collect()
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_quota(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_quota_update(self, old)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let lifetime = self
            .spec
            .cluster_lifetime_days
            .map_or("<unspecified>".into(), |days| format!("{days} days"));
        vec![
            format!("{}.{}", text(&self.spec.scope.api_version), text(&self.spec.scope.kind)).into(),
            lifetime.into(),
            age(now, &self.metadata),
        ]
    }
}

impl GardenKind for SecretBinding {
    const GENERATION: bool = false;
    const UNCONDITIONAL: bool = true;
    const NAMES_NAMELESS: bool = true;
    const WARNS: bool = true;
    const DEFAULTED_AS_SENT: bool = true;
    fn set_defaults(&mut self, _: u64) {
        default_secret_binding(self);
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_secret_binding_creation(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_secret_binding_update(self, old)
    }
    fn warn(&self, _: Option<&Self>, _: Timestamp, _: Duration) -> Vec<String> {
        vec![
            concat!(
                "SecretBinding is deprecated in favour of CredentialsBinding. For migration instructions, see: ",
                "https://github.com/gardener/gardener/blob/master/docs/usage/shoot-operations/secretbinding-to-credentialsbinding-migration.md"
            )
            .into(),
        ]
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        vec![
            format!("{}/{}", text(&self.secret_ref.namespace), text(&self.secret_ref.name)).into(),
            or(self.provider.as_ref().map(|provider| provider.r#type.as_str()), NONE),
            age(now, &self.metadata),
        ]
    }
}

impl GardenKind for ShootState {
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = false;
    fn name_errors(name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_shoot_state(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_shoot_state_update(self, old)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        vec![
            self.spec.gardener.len().into(),
            self.spec.extensions.len().into(),
            age(now, &self.metadata),
        ]
    }
}
