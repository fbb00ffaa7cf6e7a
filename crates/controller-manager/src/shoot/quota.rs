//! Shoots whose quota limits their lifetime get an expiration date, and are deleted when it is over [GCM-42]. What is done is decided in
//! `rules::shoot_lifetime`.

use std::time::Duration;

use gardener_apis::constants::annotation;
use gardener_apis::core::v1beta1::{Quota, SecretBinding, Shoot};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_controller::{Action, Change, ObjectRef, Queue, Read, apply, operation};
use gardener_rules::shoot_lifetime::{Lifetime, lifetime, shortest};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
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
        return Ok(api.read(name).await?.quotas);
    }
    if let Some(name) = &shoot.spec.credentials_binding_name {
        let api: Api<CredentialsBinding> = Api::namespaced(config.garden.clone(), namespace);
        return Ok(api.read(name).await?.quotas);
    }
    Ok(Vec::new())
}

/// The shortest lifetime that any of the quotas allows, in days.
async fn lifetime_in_days(config: &Config, shoot: &Shoot) -> Result<Option<i32>, ReconcileError> {
    let mut found = Vec::new();
    for reference in quotas(config, shoot).await? {
        let namespace = reference.namespace.unwrap_or_default();
        let api: Api<Quota> = Api::namespaced(config.garden.clone(), &namespace);
        found.push(api.read(&reference.name.unwrap_or_default()).await?);
    }
    Ok(shortest(&found))
}

/// When a shoot is looked at again that lives until `end`, or for ever. Who foretells leaves out looks at which nothing has come yet.
fn again(config: &Config, end: Option<Timestamp>) -> Action {
    let period = config.controllers.shoot_quota.sync_period.to_std();
    if !config.foretells {
        return Action::RequeueAfter(period);
    }
    let Some(end) = end else { return Action::Done };
    let left = Duration::try_from(end.duration_since(config.clock.now())).unwrap_or_default();
    let looks = left.as_nanos().div_ceil(period.as_nanos().max(1)).max(1);
    Action::RequeueAfter(period.saturating_mul(u32::try_from(looks).unwrap_or(u32::MAX)))
}

async fn reconcile(config: &Config, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let api: Api<Shoot> = Api::namespaced(config.garden.clone(), &key.namespace);
    let Some(shoot) = api.read_opt(&key.name).await?.filter(|shoot| !shoot.in_deletion()) else {
        return Ok(Action::Done);
    };
    let days = lifetime_in_days(config, &shoot).await?;
    let found = lifetime(&shoot, days, config.clock.now()).map_err(ReconcileError::Blocked)?;
    let (shoot, end) = match found {
        Lifetime::Unlimited => {
            apply::patch(&api, &shoot, |shoot| {
                if let Some(annotations) = &mut shoot.metadata.annotations {
                    annotations.remove(annotation::SHOOT_EXPIRATION_TIMESTAMP);
                }
            })
            .await?;
            return Ok(again(config, None));
        }
        Lifetime::Until { end, is_told: true } => (shoot, end),
        Lifetime::Until { end, is_told: false } => {
            let patched = apply::patch(&api, &shoot, |shoot| {
                let annotations = shoot.metadata.annotations.get_or_insert_default();
                annotations.insert(annotation::SHOOT_EXPIRATION_TIMESTAMP.to_owned(), end.to_string());
            });
            (patched.await?.0, end)
        }
    };
    if end >= config.clock.now() {
        return Ok(again(config, Some(end)));
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
