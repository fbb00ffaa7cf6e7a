//! Shoots whose quota limits their lifetime get an expiration date, and are deleted when it is over [GCM-42].

use gardener_apis::constants::annotation;
use gardener_apis::core::v1beta1::{Quota, SecretBinding, Shoot};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_controller::{Action, Change, ObjectRef, Queue, apply, operation};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Api;

use crate::manager::{ReconcileError, or_gone};
use crate::{Config, Manager};

pub(super) async fn run(manager: &Manager) {
    let shoots = manager.informer::<Shoot>();
    let queue: Queue<ObjectRef> = Queue::new();
    let is_new = |change: &Change<Shoot>| matches!(change, Change::Applied { old: None, .. });
    shoots.feed_if(&queue, is_new, |shoot| [ObjectRef::of(shoot)]);
    shoots.synced().await;
    let config = manager.config.clone();
    let syncs = manager.config.controllers.shoot_quota.concurrent_syncs;
    let controller = manager.controller("shoot-quota", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let config = config.clone();
        async move { reconcile(&config, &key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

/// The quotas of the binding that a shoot uses. A binding that is not there is an error: nobody knows then what it would say.
async fn quotas(config: &Config, shoot: &Shoot) -> Result<Vec<ObjectReference>, ReconcileError> {
    let namespace = shoot.project_namespace();
    if let Some(name) = &shoot.spec.secret_binding_name {
        let api: Api<SecretBinding> = Api::namespaced(config.garden.clone(), namespace);
        return Ok(api.get(name).await?.quotas);
    }
    if let Some(name) = &shoot.spec.credentials_binding_name {
        let api: Api<CredentialsBinding> = Api::namespaced(config.garden.clone(), namespace);
        return Ok(api.get(name).await?.quotas);
    }
    Ok(Vec::new())
}

/// The shortest lifetime that any of the quotas allows, in days.
async fn lifetime(config: &Config, shoot: &Shoot) -> Result<Option<i32>, ReconcileError> {
    let mut shortest: Option<i32> = None;
    for reference in quotas(config, shoot).await? {
        let namespace = reference.namespace.unwrap_or_default();
        let api: Api<Quota> = Api::namespaced(config.garden.clone(), &namespace);
        let quota = api.get(&reference.name.unwrap_or_default()).await?;
        if let Some(days) = quota.spec.cluster_lifetime_days {
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
    let again = Ok(Action::RequeueAfter(
        config.controllers.shoot_quota.sync_period.to_std(),
    ));
    let Some(days) = lifetime(config, &shoot).await? else {
        apply::patch(&api, &shoot, |shoot| {
            if let Some(annotations) = &mut shoot.metadata.annotations {
                annotations.remove(annotation::SHOOT_EXPIRATION_TIMESTAMP);
            }
        })
        .await?;
        return again;
    };
    let created = shoot.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let allowed = SignedDuration::from_hours(24 * i64::from(days));
    let written = shoot.annotation(annotation::SHOOT_EXPIRATION_TIMESTAMP);
    let (shoot, expiry) = match written.map(str::parse::<Timestamp>) {
        Some(Ok(expiry)) => (shoot, expiry),
        Some(Err(error)) => return Err(ReconcileError::Blocked(error.to_string())),
        None => {
            let created = created.unwrap_or_else(|| config.clock.now());
            let expiry = created.saturating_add(allowed).unwrap_or(created);
            let patched = apply::patch(&api, &shoot, |shoot| {
                let annotations = shoot.metadata.annotations.get_or_insert_default();
                annotations.insert(annotation::SHOOT_EXPIRATION_TIMESTAMP.to_owned(), expiry.to_string());
            });
            (patched.await?.0, expiry)
        }
    };
    if expiry > config.clock.now() {
        return again;
    }
    let confirmed = apply::patch(&api, &shoot, |shoot| {
        let annotations = shoot.metadata.annotations.get_or_insert_default();
        operation::confirm_deletion(annotations, config.clock.now());
    });
    if or_gone(confirmed.await)?.is_some() {
        apply::delete(&api, &key.name).await?;
    }
    Ok(Action::Done)
}
