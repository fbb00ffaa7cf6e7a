//! What gardenlets tell in the garden that others wait for, without seeds and without work: who lets only a garden live in virtual time starts this beside it.
//!
//! It ends rotations of credentials at once, and follows hibernation. What failed stays failed: nobody knows when it would not.

use std::sync::Arc;

use gardener_apimachinery::clock::Clock;
use gardener_apis::constants::annotation;
use gardener_apis::core::v1beta1::Shoot;
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, apply};
use gardener_rules::credentials_rotation::{
    COMPLETING, PREPARING, etcd_encryption_key_phase, is_handled, started, succeeded,
};
use gardener_rules::shoot_operation::remaining_operations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

fn rotations(shoot: &Shoot) -> Vec<String> {
    let asked = shoot.operations(annotation::OPERATION).into_iter();
    asked.filter(|own| is_handled(own)).map(str::to_owned).collect()
}

/// Whether gardenlet would do something that is told here.
fn has_work(shoot: &Shoot) -> bool {
    let last = shoot.status.last_operation.as_ref();
    let works = !shoot.in_deletion() && last.is_some_and(|last| last.state != "Failed");
    let follows = shoot.status.hibernated == shoot.hibernation_enabled();
    let phase = etcd_encryption_key_phase(shoot);
    works && (!follows || !rotations(shoot).is_empty() || matches!(phase, PREPARING | COMPLETING))
}

/// What gardenlet's next operations make of the status.
fn tell(shoot: &mut Shoot, rotations: &[String], now: &Time) {
    started(shoot, rotations, now);
    succeeded(shoot, now);
    // a rotation in two steps that goes on by itself
    started(shoot, &[], now);
    succeeded(shoot, now);
    shoot.status.hibernated = shoot.hibernation_enabled();
}

async fn work(client: &Client, clock: &Clock, key: &ObjectRef) -> Result<Action, apply::ApplyError> {
    let api: Api<Shoot> = Api::namespaced(client.clone(), &key.namespace);
    let Some(shoot) = api.get_opt(&key.name).await?.filter(has_work) else {
        return Ok(Action::Done);
    };
    let (rotations, now) = (rotations(&shoot), clock.time());
    let (shoot, _) = apply::patch_status(&api, &shoot, |shoot| tell(shoot, &rotations, &now)).await?;
    if rotations.is_empty() {
        return Ok(Action::Done);
    }
    apply::patch(&api, &shoot, |shoot| {
        let annotations = shoot.metadata.annotations.get_or_insert_default();
        let asked = annotations.remove(annotation::OPERATION).unwrap_or_default();
        if let Some(left) = remaining_operations(&asked, &rotations) {
            annotations.insert(annotation::OPERATION.to_owned(), left);
        }
    })
    .await?;
    Ok(Action::Done)
}

/// Stands in for the gardenlets of all seeds until `stop`. It has no timers.
pub async fn run(client: Client, clock: Clock, stop: CancellationToken) {
    // nobody is to look after watches in years of virtual time
    let watching = watcher::Config::default().timeout(u32::MAX).disable_bookmarks();
    let shoots: Informer<Shoot> = Informer::start(Api::all(client.clone()), watching, &stop);
    let queue: Queue<ObjectRef> = Queue::new();
    let is_asked = |change: &Change<Shoot>| matches!(change, Change::Applied { new, .. } if has_work(new));
    shoots.feed_if(&queue, is_asked, |shoot| [ObjectRef::of(shoot)]);
    let shared = Arc::new((client, clock));
    Controller::new("gardenlet-stand-in", 5, queue)
        .run(stop, move |key| {
            let shared = Arc::clone(&shared);
            async move { work(&shared.0, &shared.1, &key).await }
        })
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shoot(operation: &str, state: &str, hibernated: (bool, bool), phase: &str) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "annotations": {"gardener.cloud/operation": operation}},
            "spec": {"hibernation": {"enabled": hibernated.0}, "provider": {"type": "local", "workers": [{"name": "w"}]}},
            "status": {
                "lastOperation": {"type": "Reconcile", "state": state}, "hibernated": hibernated.1,
                "credentials": {"rotation": {"etcdEncryptionKey": {"phase": phase}}},
            },
        }))
        .unwrap()
    }

    #[test]
    fn what_a_gardenlet_would_tell() {
        let awake = (false, false);
        for (own, expected) in [
            (shoot("", "Succeeded", awake, "Completed"), false),
            (shoot("", "Succeeded", awake, "Prepared"), false),
            (shoot("", "Succeeded", awake, "Preparing"), true),
            (shoot("rotate-ssh-keypair", "Succeeded", awake, ""), true),
            (shoot("rotate-ca-start", "Succeeded", awake, ""), false),
            (shoot("rotate-ssh-keypair", "Failed", awake, ""), false),
            (shoot("", "Succeeded", (true, false), ""), true),
        ] {
            assert_eq!(has_work(&own), expected, "{own:?}");
        }
        let mut own = shoot("rotate-etcd-encryption-key", "Succeeded", (true, false), "");
        let (rotations, now) = (rotations(&own), Time("2026-01-01T00:00:00Z".parse().unwrap()));
        tell(&mut own, &rotations, &now);
        own.metadata.annotations = None;
        assert_eq!(
            (etcd_encryption_key_phase(&own), own.status.hibernated),
            ("Completed", true)
        );
        assert!(!has_work(&own), "then there is nothing left to tell");
    }
}
