//! Small plugins that complete shoots: exposure class, autoscaling, name service, reserved resources, [ADM-38], [ADM-41], [ADM-44].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::quantity::Amount;
use gardener_apimachinery::selector::LabelSelector;
use gardener_apis::core::v1beta1::{ExposureClass, KubeletConfigReserved, Shoot};
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use gardener_rules::reserved_resources;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{put, typed};
use crate::lookup;

/// The text of an admission error whose shoot has no project.
pub(super) const NO_PROJECT: &str =
    "Internal error occurred: could not find referenced project: Project.core.gardener.cloud \"<unknown>\" not found";

/// [ADM-38], [DEF-55].
pub(super) struct ShootExposureClass;

#[async_trait]
impl Admission for ShootExposureClass {
    fn name(&self) -> &'static str {
        "ShootExposureClass"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation != Operation::Create || !attributes.subresource.is_empty() {
            return Ok(());
        }
        let Some(shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        let Some(name) = shoot.spec.exposure_class_name.clone() else {
            return Ok(());
        };
        let Some(class) = lookup::get::<ExposureClass>(attributes.context.lister, "", &name) else {
            return Err(attributes.forbidden(&format!("exposureclass.core.gardener.cloud {name:?} not found")));
        };
        let Some(scheduling) = class.scheduling else {
            return Ok(());
        };
        let mut shoot = Shoot::clone(&shoot);
        if let Some(selector) = scheduling.seed_selector {
            let own = shoot.spec.seed_selector.get_or_insert_default();
            for (key, value) in selector.match_labels {
                if own.match_labels.get(&key).is_some_and(|existing| *existing != value) {
                    return Err(attributes.forbidden(
                        "matching labels of the seed selector conflicts with the ones of referenced exposureclass",
                    ));
                }
                own.match_labels.insert(key, value);
            }
            own.match_expressions.extend(selector.match_expressions);
            own.provider_types.extend(selector.provider_types);
            own.provider_types.sort();
            own.provider_types.dedup();
        }
        for toleration in scheduling.tolerations {
            // as with upstream, one of the same value is a conflict, too
            if shoot.spec.tolerations.iter().any(|own| own.key == toleration.key) {
                return Err(attributes.forbidden(&format!(
                    "toleration with key {:?} conflicts with the ones of referenced exposureclass",
                    toleration.key
                )));
            }
            shoot.spec.tolerations.push(toleration);
        }
        put(attributes, shoot);
        Ok(())
    }
}

/// [DEF-57].
pub(super) struct ShootVpaEnabledByDefault;

#[async_trait]
impl Admission for ShootVpaEnabledByDefault {
    fn name(&self) -> &'static str {
        "ShootVPAEnabledByDefault"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation != Operation::Create || !attributes.subresource.is_empty() {
            return Ok(());
        }
        let Some(shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        if shoot.is_workerless() || shoot.in_deletion() || shoot.spec.kubernetes.vertical_pod_autoscaler.is_some() {
            return Ok(());
        }
        let mut shoot = Shoot::clone(&shoot);
        shoot
            .spec
            .kubernetes
            .vertical_pod_autoscaler
            .get_or_insert_default()
            .enabled = true;
        put(attributes, shoot);
        Ok(())
    }
}

/// [DEF-58]: only where it is switched on.
pub(super) struct ShootNodeLocalDnsEnabledByDefault;

#[async_trait]
impl Admission for ShootNodeLocalDnsEnabledByDefault {
    fn name(&self) -> &'static str {
        "ShootNodeLocalDNSEnabledByDefault"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation != Operation::Create || !attributes.subresource.is_empty() {
            return Ok(());
        }
        let Some(shoot) = typed::<Shoot>(attributes).filter(|shoot| !shoot.is_workerless()) else {
            return Ok(());
        };
        let mut shoot = Shoot::clone(&shoot);
        let components = shoot.spec.system_components.get_or_insert_default();
        if components.node_local_dns.is_none() {
            components.node_local_dns.get_or_insert_default().enabled = true;
        }
        put(attributes, shoot);
        Ok(())
    }
}

/// [DEF-60]: only where it is switched on, with domains whose names are not looked for in shoots.
#[derive(Default)]
pub(super) struct ShootDnsRewriting {
    /// What every new shoot gets.
    pub(super) common_suffixes: Vec<String>,
}

#[async_trait]
impl Admission for ShootDnsRewriting {
    fn name(&self) -> &'static str {
        "ShootDNSRewriting"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let creates = attributes.operation == Operation::Create && attributes.subresource.is_empty();
        if !creates || self.common_suffixes.is_empty() {
            return Ok(());
        }
        let Some(shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        let mut shoot = Shoot::clone(&shoot);
        let components = shoot.spec.system_components.get_or_insert_default();
        let rewriting = components
            .core_dns
            .get_or_insert_default()
            .rewriting
            .get_or_insert_default();
        rewriting.common_suffixes.extend(self.common_suffixes.iter().cloned());
        put(attributes, shoot);
        Ok(())
    }
}

/// [ADM-44], [DEF-59].
#[derive(Default)]
pub(super) struct ShootResourceReservation {
    /// Of which shoots the pools get what suits their machines; the others get the same for all.
    pub(super) by_machine: Option<LabelSelector>,
}

fn fill(reserved: &mut KubeletConfigReserved, cpu: String, memory: String) {
    reserved.cpu.get_or_insert(Quantity(cpu));
    reserved.memory.get_or_insert(Quantity(memory));
    reserved.pid.get_or_insert_with(|| Quantity("20k".into()));
}

#[async_trait]
impl Admission for ShootResourceReservation {
    fn name(&self) -> &'static str {
        "ShootResourceReservation"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if !matches!(attributes.operation, Operation::Create | Operation::Update) || !attributes.subresource.is_empty()
        {
            return Ok(());
        }
        let Some(shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        if shoot.is_workerless() || shoot.in_deletion() {
            return Ok(());
        }
        let by_machine = self
            .by_machine
            .as_ref()
            .is_some_and(|selector| selector.matches(&shoot.metadata.labels.clone().unwrap_or_default()));
        let mut shoot = Shoot::clone(&shoot);
        let kubelet = shoot.spec.kubernetes.kubelet.as_ref();
        if !by_machine || kubelet.is_some_and(|kubelet| kubelet.kube_reserved.is_some()) {
            let kubelet = shoot.spec.kubernetes.kubelet.get_or_insert_default();
            fill(
                kubelet.kube_reserved.get_or_insert_default(),
                "80m".into(),
                "1Gi".into(),
            );
            put(attributes, shoot);
            return Ok(());
        }
        let Some(reference) = shoot.spec.cloud_profile_reference() else {
            // the validation says what is missing
            return Ok(());
        };
        let profile = lookup::cloud_profile(attributes.context.lister, attributes.namespace, Some(&reference))
            .map_err(ApiError::internal)?;
        let mut errors = Vec::new();
        for (i, worker) in shoot.spec.provider.workers.iter_mut().enumerate() {
            let mut types = profile.machine_types.iter();
            let Some(machine) = types.find(|machine| machine.name == worker.machine.r#type) else {
                let path = Path::new("spec.provider.workers").index(i).child("machine.type");
                errors.push(Error::invalid(
                    &path,
                    worker.machine.r#type.as_str(),
                    "worker machine type unknown",
                ));
                continue;
            };
            let amount = |text: &Quantity| text.0.parse().unwrap_or_else(|_| Amount::units(0));
            let cpu = Amount::milli(reserved_resources::cpu(amount(&machine.cpu).milli_value()));
            let memory = Amount::bytes(reserved_resources::memory(amount(&machine.memory).value()));
            let kubelet = worker
                .kubernetes
                .get_or_insert_default()
                .kubelet
                .get_or_insert_default();
            fill(
                kubelet.kube_reserved.get_or_insert_default(),
                cpu.to_string(),
                memory.to_string(),
            );
        }
        if !errors.is_empty() {
            return Err(attributes.invalid(&errors));
        }
        put(attributes, shoot);
        Ok(())
    }
}
