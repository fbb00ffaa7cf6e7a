//! The kinds of the security, operations and seedmanagement groups.

use std::time::Duration;

use gardener_apimachinery::field::{ErrorList, Path};
use gardener_apimachinery::names;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::{annotation, operation};
use gardener_apis::core::v1beta1::spec_warnings;
use gardener_apis::operations::v1alpha1::{
    Bastion, validate_bastion, validate_bastion_status_update, validate_bastion_update,
};
use gardener_apis::security::v1alpha1::*;
use gardener_apis::seedmanagement::v1alpha1::*;
use gardener_apiserver::definition::Context;
use gardener_apiserver::selectable::Selectable;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::gardenlet_configuration;
use crate::generation::{annotation_of, becomes_text_true, content_changed, deletion_begins, operation_bumps};
use crate::kind::GardenKind;
use crate::rows::{self, PENDING, age, ago, or, until};

impl GardenKind for CredentialsBinding {
    const GENERATION: bool = false;
    const UNCONDITIONAL: bool = false;
    const NAMES_NAMELESS: bool = true;
    const DEFAULTED_AS_SENT: bool = true;
    fn set_defaults(&mut self, _: u64) {
        default_credentials_binding(self);
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_credentials_binding(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_credentials_binding_update(self, old)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let reference = &self.credentials_ref;
        vec![
            self.provider.r#type.as_str().into(),
            text(&reference.api_version).into(),
            text(&reference.kind).into(),
            format!("{}/{}", text(&reference.namespace), text(&reference.name)).into(),
            age(now, &self.metadata),
        ]
    }
}

impl GardenKind for WorkloadIdentity {
    const GENERATION: bool = false;
    const UNCONDITIONAL: bool = false;
    const NAMES_NAMELESS: bool = true;
    fn prepare_create(&mut self, _: &Context<'_>) {
        default_workload_identity(self);
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_workload_identity(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_workload_identity_update(self, old)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        vec![
            self.status.sub.as_str().into(),
            self.spec.target_system.r#type.as_str().into(),
            self.spec.audiences.join(",").into(),
            age(now, &self.metadata),
        ]
    }
}

/// [GAPI-37]: a heartbeat now, and an hour to live.
fn beat(bastion: &mut Bastion, now: Timestamp) {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    bastion.status.last_heartbeat_timestamp = Some(Time(now));
    bastion.status.expiration_timestamp = Some(Time(now + SignedDuration::from_hours(1)));
}

fn keep_alive(bastion: &mut Bastion, now: Timestamp) {
    if annotation_of(&bastion.metadata, annotation::OPERATION) == Some(operation::KEEPALIVE) {
        if let Some(annotations) = &mut bastion.metadata.annotations {
            annotations.remove(annotation::OPERATION);
        }
        beat(bastion, now);
    }
}

impl GardenKind for Bastion {
    const GENERATION: bool = true;
    const LISTS_KEPT_EMPTY: &'static [&'static str] = &["/spec/ingress"];
    const KEEPS_STATUS: bool = true;
    const UNCONDITIONAL: bool = false;
    const FIELDS: &[Selectable] = &[
        Selectable::text("spec.seedName", "/spec/seedName"),
        Selectable::text("spec.shootRef.name", "/spec/shootRef/name"),
    ];
    fn name_errors(name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn prepare_create(&mut self, context: &Context<'_>) {
        keep_alive(self, context.now);
        beat(self, context.now);
    }
    fn prepare_update(&mut self, _: &Self, context: &Context<'_>) {
        keep_alive(self, context.now);
    }
    fn prepare_status(&mut self, _: &Self, _: &Context<'_>) -> bool {
        if let Some(heartbeat) = &self.status.last_heartbeat_timestamp {
            self.status.expiration_timestamp = Some(Time(heartbeat.0 + SignedDuration::from_hours(1)));
        }
        false
    }
    fn bumps(&mut self, old: &Self) -> bool {
        content_changed(self, old)
            || deletion_begins(self, old)
            || annotation_of(&self.metadata, annotation::OPERATION) == Some(operation::RECONCILE)
            || becomes_text_true(self, old, annotation::CONFIRMATION_FORCE_DELETION)
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_bastion(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_bastion_update(self, old)
    }
    fn check_status(&self, _: &Self, context: &Context<'_>) -> ErrorList {
        validate_bastion_status_update(self, context.now)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let ingress = self.status.ingress.as_ref();
        let address = ingress
            .and_then(|ingress| ingress.hostname.as_deref().filter(|host| !host.is_empty()))
            .or_else(|| ingress.and_then(|ingress| ingress.ip.as_deref()));
        vec![
            self.spec.shoot_ref.name.as_str().into(),
            or(self.spec.seed_name.as_deref(), PENDING),
            or(address, PENDING),
            ago(now, self.status.last_heartbeat_timestamp.as_ref()),
            until(now, self.status.expiration_timestamp.as_ref()),
            age(now, &self.metadata),
        ]
    }
}

impl GardenKind for ManagedSeed {
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = false;
    const FIELDS: &[Selectable] = &[Selectable::text("spec.shoot.name", "/spec/shoot/name")];
    fn decode_embedded(_: &str, object: &Value) -> Result<(), String> {
        gardenlet_configuration::decode(object.at("/spec/gardenlet/config"))
    }
    fn name_errors(name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn set_defaults(&mut self, _: u64) {
        default_managed_seed(self);
        let gardenlet = &mut self.spec.gardenlet;
        gardenlet_configuration::normalize(gardenlet.config.as_mut());
        if let Some(own) = &mut gardenlet.deployment {
            gardenlet_configuration::default_deployment(&mut own.additional_volumes, &mut own.env);
        }
    }
    fn bumps(&mut self, old: &Self) -> bool {
        content_changed(self, old)
            || deletion_begins(self, old)
            || operation_bumps(self, &[operation::RECONCILE], &[operation::RENEW_KUBECONFIG])
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_managed_seed(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_managed_seed_update(self, old)
    }
    fn check_status(&self, _: &Self, _: &Context<'_>) -> ErrorList {
        validate_managed_seed_status_update(self)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let status = match rows::condition(&self.status.conditions, "SeedRegistered") {
            Some("True") => "Registered",
            Some("False") => "NotRegistered",
            _ => "Unknown",
        };
        vec![
            status.into(),
            or(self.spec.shoot.as_ref().map(|shoot| shoot.name.as_str()), rows::UNKNOWN),
            age(now, &self.metadata),
        ]
    }
}

impl GardenKind for ManagedSeedSet {
    const GENERATION: bool = true;
    const UNCONDITIONAL: bool = false;
    const WARNS: bool = true;
    fn decode_embedded(_: &str, object: &Value) -> Result<(), String> {
        gardenlet_configuration::decode(object.at("/spec/template/spec/gardenlet/config"))
    }
    fn set_defaults(&mut self, _: u64) {
        default_managed_seed_set(self);
        let gardenlet = &mut self.spec.template.spec.gardenlet;
        gardenlet_configuration::normalize(gardenlet.config.as_mut());
        if let Some(own) = &mut gardenlet.deployment {
            gardenlet_configuration::default_deployment(&mut own.additional_volumes, &mut own.env);
        }
    }
    fn bumps(&mut self, old: &Self) -> bool {
        content_changed(self, old) || deletion_begins(self, old) || operation_bumps(self, &[operation::RECONCILE], &[])
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_managed_seed_set(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_managed_seed_set_update(self, old)
    }
    fn check_status(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_managed_seed_set_status_update(self, old)
    }
    fn warn(&self, _: Option<&Self>, _: Timestamp, _: Duration) -> Vec<String> {
        spec_warnings(&self.spec.shoot_template.spec, &Path::new("spec.shootTemplate.spec"))
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        let pending = self.status.pending_replica.as_ref();
        let pending = pending.map(|replica| format!("{}:{}", replica.name, replica.reason));
        vec![
            format!(
                "{}/{}",
                self.status.ready_replicas.unwrap_or_default(),
                self.spec.replicas.unwrap_or_default()
            )
            .into(),
            pending.unwrap_or_default().into(),
            age(now, &self.metadata),
        ]
    }
}

impl GardenKind for Gardenlet {
    /// As with upstream, which takes the status from what is stored for all other kinds.
    const UPDATE_KEEPS_SENT_STATUS: bool = true;
    const GENERATION: bool = true;
    const KEEPS_STATUS: bool = true;
    const UNCONDITIONAL: bool = false;
    fn decode_embedded(_: &str, object: &Value) -> Result<(), String> {
        gardenlet_configuration::decode(object.at("/spec/config"))
    }
    fn name_errors(name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn set_defaults(&mut self, _: u64) {
        default_gardenlet(self);
        gardenlet_configuration::normalize(self.spec.config.as_mut());
        let own = &mut self.spec.deployment;
        gardenlet_configuration::default_deployment(&mut own.additional_volumes, &mut own.env);
    }
    fn bumps(&mut self, old: &Self) -> bool {
        let kept = [operation::RENEW_KUBECONFIG, "force-redeploy"];
        content_changed(self, old)
            || deletion_begins(self, old)
            || operation_bumps(self, &[operation::RECONCILE], &kept)
    }
    fn check(&self, _: &Context<'_>) -> ErrorList {
        validate_gardenlet(self)
    }
    fn check_update(&self, old: &Self, _: &Context<'_>) -> ErrorList {
        validate_gardenlet_update(self, old)
    }
    fn check_status(&self, _: &Self, _: &Context<'_>) -> ErrorList {
        validate_gardenlet_status_update(self)
    }
    fn cells(&self, now: Timestamp) -> Vec<Value> {
        vec![
            self.spec.deployment.helm.oci_repository.url().into(),
            rows::condition_cell(&self.status.conditions, "GardenletReconciled"),
            age(now, &self.metadata),
        ]
    }
}
