//! Small plugins that complete shoots: tolerations, exposure class, autoscaling, reserved resources, [ADM-37], [ADM-38], [ADM-41], [ADM-44].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::{ExposureClass, Shoot};
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{put, typed, typed_old};
use crate::lookup;

/// The text of an admission error whose shoot has no project.
pub(super) const NO_PROJECT: &str =
    "Internal error occurred: could not find referenced project: Project.core.gardener.cloud \"<unknown>\" not found";

/// [ADM-37].
pub(super) struct ShootTolerationRestriction;

#[async_trait]
impl Admission for ShootTolerationRestriction {
    fn name(&self) -> &'static str {
        "ShootTolerationRestriction"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation != Operation::Create || !attributes.subresource.is_empty() {
            return Ok(());
        }
        let Some(mut shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        let Some(project) = lookup::project_of(attributes.context.lister, attributes.namespace) else {
            return Err(attributes.forbidden(NO_PROJECT));
        };
        let defaults = project.spec.tolerations.map(|both| both.defaults).unwrap_or_default();
        for toleration in defaults {
            if !shoot.spec.tolerations.iter().any(|own| own.key == toleration.key) {
                shoot.spec.tolerations.push(toleration);
            }
        }
        put(attributes, &shoot)
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let Some(shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        if typed_old::<Shoot>(attributes).is_some_and(|old| old.spec.tolerations == shoot.spec.tolerations) {
            return Ok(());
        }
        let project = lookup::project_of(attributes.context.lister, attributes.namespace);
        let whitelist = project
            .and_then(|project| project.spec.tolerations)
            .map(|both| both.whitelist)
            .unwrap_or_default();
        // A whitelisted key without value allows every value of it.
        let allowed = shoot.spec.tolerations.iter().all(|toleration| {
            whitelist
                .iter()
                .any(|own| own.key == toleration.key && (own.value.is_none() || own.value == toleration.value))
        });
        if allowed {
            return Ok(());
        }
        Err(attributes.forbidden("error while validating tolerations against allowlist"))
    }
}

/// [ADM-38].
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
        let Some(mut shoot) = typed::<Shoot>(attributes) else {
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
        }
        for toleration in scheduling.tolerations {
            match shoot.spec.tolerations.iter().find(|own| own.key == toleration.key) {
                Some(own) if own.value != toleration.value => {
                    return Err(attributes.forbidden(&format!(
                        "toleration with key {:?} conflicts with the ones of referenced exposureclass",
                        toleration.key
                    )));
                }
                Some(_) => {}
                None => shoot.spec.tolerations.push(toleration),
            }
        }
        put(attributes, &shoot)
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
        let Some(mut shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        if shoot.is_workerless() || shoot.in_deletion() || shoot.spec.kubernetes.vertical_pod_autoscaler.is_some() {
            return Ok(());
        }
        shoot
            .spec
            .kubernetes
            .vertical_pod_autoscaler
            .get_or_insert_default()
            .enabled = true;
        put(attributes, &shoot)
    }
}

/// [ADM-44] in its static form.
pub(super) struct ShootResourceReservation;

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
        let Some(mut shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        if shoot.is_workerless() || shoot.in_deletion() {
            return Ok(());
        }
        let reserved = shoot
            .spec
            .kubernetes
            .kubelet
            .get_or_insert_default()
            .kube_reserved
            .get_or_insert_default();
        reserved.cpu.get_or_insert_with(|| Quantity("80m".into()));
        reserved.memory.get_or_insert_with(|| Quantity("1Gi".into()));
        reserved.pid.get_or_insert_with(|| Quantity("20k".into()));
        put(attributes, &shoot)
    }
}
