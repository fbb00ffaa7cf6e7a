//! Shoots stay within the quotas of their credentials, [ADM-35].

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apis::constants::annotation;
use gardener_apis::core::v1beta1::*;
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use gardener_rules::quota;
use gardener_schema::formats;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::{typed, typed_old};
use crate::lookup;

/// The plugin.
pub(super) struct ShootQuotaValidator;

#[async_trait]
impl Admission for ShootQuotaValidator {
    fn name(&self) -> &'static str {
        "ShootQuotaValidator"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.subresource.is_empty() || attributes.operation == Operation::Delete {
            return Ok(());
        }
        let Some(shoot) = typed::<Shoot>(attributes).filter(|shoot| !shoot.in_deletion()) else {
            return Ok(());
        };
        let old = typed_old::<Shoot>(attributes);
        let takes_more = old.as_ref().is_none_or(|old| quota::may_take_more(&shoot, old));
        let planned = old.as_ref().and_then(|old| {
            let own = shoot.annotation(annotation::SHOOT_EXPIRATION_TIMESTAMP)?;
            (old.annotation(annotation::SHOOT_EXPIRATION_TIMESTAMP) != Some(own)).then_some(own)
        });
        if !takes_more && planned.is_none() {
            return Ok(());
        }
        let mut longest: Option<i32> = None;
        for reference in references(attributes, &shoot)? {
            let (namespace, name) = (
                reference.namespace.unwrap_or_default(),
                reference.name.unwrap_or_default(),
            );
            let quota = lookup::get::<Quota>(attributes.context.lister, &namespace, &name)
                .ok_or_else(|| missing("quota.core.gardener.cloud", &name))?;
            let days = quota.spec.cluster_lifetime_days;
            longest = longest.into_iter().chain(days).min();
            if takes_more {
                within(attributes, &shoot, &quota)?;
            }
        }
        match planned.zip(longest) {
            Some((planned, days)) => lives_within(attributes, planned, days),
            None => Ok(()),
        }
    }
}

fn missing(resource: &str, name: &str) -> ApiError {
    ApiError::internal(format!("{resource} {name:?} not found"))
}

/// The quotas of a shoot's credentials.
fn references(attributes: &Attributes<'_>, shoot: &Shoot) -> Result<Vec<ObjectReference>, ApiError> {
    let (lister, namespace) = (attributes.context.lister, attributes.namespace);
    if let Some(name) = &shoot.spec.secret_binding_name {
        let binding = lookup::get::<SecretBinding>(lister, namespace, name);
        let binding = binding.ok_or_else(|| missing("secretbinding.core.gardener.cloud", name))?;
        return Ok(binding.quotas);
    }
    if let Some(name) = &shoot.spec.credentials_binding_name {
        let binding = lookup::get::<CredentialsBinding>(lister, namespace, name);
        let binding = binding.ok_or_else(|| missing("credentialsbinding.security.gardener.cloud", name))?;
        return Ok(binding.quotas);
    }
    Ok(Vec::new())
}

/// What all shoots of a quota take together with this one must be within it. Reads all bindings and shoots that the quota is for.
fn within(attributes: &Attributes<'_>, shoot: &Shoot, quota: &Quota) -> Result<(), ApiError> {
    let lister = attributes.context.lister;
    let for_project = quota::is_for_project(quota).map_err(ApiError::internal)?;
    let scope = for_project.then_some(attributes.namespace);
    let named = |metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
        (
            metadata.namespace.clone().unwrap_or_default(),
            metadata.name.clone().unwrap_or_default(),
        )
    };
    let secret_bindings: Vec<_> = lookup::list::<SecretBinding>(lister, scope)
        .iter()
        .filter(|binding| quota::refers(&binding.quotas, quota))
        .map(|binding| named(&binding.metadata))
        .collect();
    let credentials_bindings: Vec<_> = lookup::list::<CredentialsBinding>(lister, scope)
        .iter()
        .filter(|binding| quota::refers(&binding.quotas, quota))
        .map(|binding| named(&binding.metadata))
        .collect();
    let uses = |other: &Shoot| {
        let at = |name: &Option<String>| Some((other.project_namespace().to_owned(), name.clone()?));
        at(&other.spec.secret_binding_name).is_some_and(|binding| secret_bindings.contains(&binding))
            || at(&other.spec.credentials_binding_name).is_some_and(|binding| credentials_bindings.contains(&binding))
    };
    let is_this =
        |other: &Shoot| other.own_name() == shoot.own_name() && other.project_namespace() == shoot.project_namespace();
    let mut wanted = taken(attributes, shoot)?;
    let others = lookup::list::<Shoot>(lister, scope);
    for other in others.iter().filter(|other| !is_this(other) && uses(other)) {
        for (metric, amount) in taken(attributes, other)? {
            quota::add(&mut wanted, metric, amount);
        }
    }
    let exceeded = quota::exceeded(quota, &wanted);
    if exceeded.is_empty() {
        return Ok(());
    }
    let metrics: String = exceeded.iter().map(|metric| format!("{metric} ")).collect();
    Err(attributes.forbidden(&format!("quota limits exceeded. Unable to allocate further {metrics}")))
}

fn taken(attributes: &Attributes<'_>, shoot: &Shoot) -> Result<quota::Amounts, ApiError> {
    let reference = shoot.spec.cloud_profile_reference();
    let profile = lookup::cloud_profile(attributes.context.lister, shoot.project_namespace(), reference.as_ref())
        .map_err(ApiError::internal)?;
    quota::taken(shoot, &profile).map_err(ApiError::internal)
}

fn lives_within(attributes: &Attributes<'_>, planned: &str, days: i32) -> Result<(), ApiError> {
    formats::time(planned).map_err(ApiError::internal)?;
    let planned: Timestamp = planned.parse().map_err(ApiError::internal)?;
    let most = attributes
        .context
        .now
        .saturating_add(SignedDuration::from_hours(24 * i64::from(days)));
    match most.is_ok_and(|most| planned > most) {
        true => Err(attributes.forbidden(&format!(
            "requested shoot expiration time is too long. Can only be extended by {days} day(s)"
        ))),
        false => Ok(()),
    }
}
