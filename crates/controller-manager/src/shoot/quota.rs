//! Shoots whose quota limits their lifetime get an expiration date, and are deleted when it is over [GCM-42].

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::constants::annotation;
use gardener_apis::core::v1beta1::{Quota, SecretBinding, Shoot};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, apply};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;
use tokio_util::sync::CancellationToken;

use crate::{CONCURRENCY, Config, ReconcileError};

/// `controllers.shootQuota.syncPeriod`.
const PERIOD: Duration = Duration::from_secs(3600);

pub(super) async fn run(config: Config, shoots: Informer<Shoot>, stop: CancellationToken) {
    let queue: Queue<ObjectRef> = Queue::new();
    shoots.feed_if(
        &queue,
        |change| matches!(change, Change::Applied { old: None, .. }),
        |shoot| [ObjectRef::of(shoot)],
    );
    let config = Arc::new(config);
    Controller::new("shoot-quota", CONCURRENCY, queue)
        .run(stop, move |key| {
            let config = config.clone();
            async move { reconcile(&config, &key).await }
        })
        .await;
}

/// The quotas of the binding that a shoot uses.
async fn quotas(config: &Config, shoot: &Shoot) -> Result<Vec<ObjectReference>, ReconcileError> {
    let namespace = shoot.project_namespace();
    if let Some(name) = &shoot.spec.credentials_binding_name {
        let api: Api<CredentialsBinding> = Api::namespaced(config.garden.clone(), namespace);
        return Ok(api
            .get_opt(name)
            .await?
            .map(|binding| binding.quotas)
            .unwrap_or_default());
    }
    if let Some(name) = &shoot.spec.secret_binding_name {
        let api: Api<SecretBinding> = Api::namespaced(config.garden.clone(), namespace);
        return Ok(api
            .get_opt(name)
            .await?
            .map(|binding| binding.quotas)
            .unwrap_or_default());
    }
    Ok(Vec::new())
}

/// The shortest lifetime that any of the quotas allows, in days.
async fn lifetime(config: &Config, shoot: &Shoot) -> Result<Option<i32>, ReconcileError> {
    let mut shortest: Option<i32> = None;
    for reference in quotas(config, shoot).await? {
        let namespace = reference.namespace.unwrap_or_default();
        let api: Api<Quota> = Api::namespaced(config.garden.clone(), &namespace);
        let quota = api.get_opt(&reference.name.unwrap_or_default()).await?;
        if let Some(days) = quota.and_then(|quota| quota.spec.cluster_lifetime_days) {
            shortest = Some(shortest.map_or(days, |shortest| shortest.min(days)));
        }
    }
    Ok(shortest)
}

async fn reconcile(config: &Config, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let api: Api<Shoot> = Api::namespaced(config.garden.clone(), &key.namespace);
    let Some(shoot) = api.get_opt(&key.name).await?.filter(|shoot| !shoot.in_deletion()) else {
        return Ok(Action::Done);
    };
    let again = Ok(Action::RequeueAfter(PERIOD));
    let Some(days) = lifetime(config, &shoot).await? else {
        apply::patch(&api, &shoot, |shoot| {
            if let Some(annotations) = &mut shoot.metadata.annotations {
                annotations.remove(annotation::SHOOT_EXPIRATION_TIMESTAMP);
            }
        })
        .await?;
        return again;
    };
    let written = shoot.annotation(annotation::SHOOT_EXPIRATION_TIMESTAMP);
    let expiry = written.and_then(|text| text.parse::<Timestamp>().ok());
    let expiry = match expiry {
        Some(expiry) => expiry,
        None => {
            let created = shoot.metadata.creation_timestamp.as_ref().map(|time| time.0);
            let created = created.unwrap_or_else(|| config.clock.now());
            let expiry = created
                .saturating_add(SignedDuration::from_hours(24 * i64::from(days)))
                .unwrap_or(created);
            apply::patch(&api, &shoot, |shoot| {
                let annotations = shoot.metadata.annotations.get_or_insert_default();
                annotations.insert(annotation::SHOOT_EXPIRATION_TIMESTAMP.to_owned(), expiry.to_string());
            })
            .await?;
            return match expiry > config.clock.now() {
                true => again,
                // looked at anew at once: the next pass deletes it
                false => Ok(Action::RequeueAfter(Duration::from_secs(1))),
            };
        }
    };
    if expiry > config.clock.now() {
        return again;
    }
    let (shoot, _) = apply::patch(&api, &shoot, |shoot| {
        let annotations = shoot.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::CONFIRMATION_DELETION.to_owned(), "true".to_owned());
    })
    .await?;
    apply::delete(&api, shoot.own_name()).await?;
    again
}
