//! Whether gardenlets live [GCM-20]: of seeds, and of shoots that host themselves.

use gardener_apis::constants::{annotation, label, operation};
use gardener_apis::core::v1beta1::{Condition, Seed, Shoot};
use gardener_apis::seedmanagement::v1alpha1::ManagedSeed;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply, conditions};
use gardener_rules::{constraints, shoot_conditions};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::{Api, ResourceExt};

use crate::configuration;
use crate::manager::{ReconcileError, or_gone};
use crate::{Config, Manager};

/// Where gardenlets of seeds keep their leases.
const LEASE_NAMESPACE: &str = "gardener-system-seed-lease";
/// Begins the names of the leases of gardenlets of shoots.
const SHOOT_LEASE_PREFIX: &str = "self-hosted-shoot-";
const GARDENLET_READY: &str = "GardenletReady";
const REASON: &str = "StatusUnknown";

/// Whose gardenlet it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    Seed(String),
    Shoot(ObjectRef),
}

pub(super) async fn run(manager: &Manager) {
    let (seeds, shoots) = (manager.informer::<Seed>(), manager.informer::<Shoot>());
    let queue: Queue<Host> = Queue::new();
    seeds.feed_if(
        &queue,
        |change| matches!(change, Change::Applied { old: None, .. }),
        |seed| [Host::Seed(seed.name_any())],
    );
    shoots.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => hosts_itself(new) && !hosts_itself(old),
            Change::Applied { old: None, new } => hosts_itself(new),
            Change::Deleted(_) => false,
        },
        |shoot| [Host::Shoot(ObjectRef::of(shoot))],
    );
    tokio::join!(seeds.synced(), shoots.synced());
    let settings = manager.config.controllers.seed.clone();
    let controller = manager.controller("gardenlet-lifecycle", settings.concurrent_syncs, queue);
    let own = (manager.clone(), shoots);
    let reconcile = move |host: Host| {
        let ((manager, shoots), again) = (own.clone(), Action::RequeueAfter(settings.sync_period.to_std()));
        async move {
            let is_there = match &host {
                Host::Seed(name) => of_seed(&manager, &shoots, name).await?,
                Host::Shoot(key) => of_shoot(&manager, key).await?,
            };
            Ok::<_, ReconcileError>(if is_there { again } else { Action::Done })
        }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

fn hosts_itself(shoot: &Shoot) -> bool {
    let told = shoot.labels().get(label::SHOOT_SELF_HOSTED);
    told.is_some_and(|value| value == "true")
}

fn is_within(since: Timestamp, period: gardener_apimachinery::duration::Duration, now: Timestamp) -> bool {
    let period = SignedDuration::from_nanos(period.as_nanos());
    since.saturating_add(period).unwrap_or(Timestamp::MAX) > now
}

/// Whether a lease was renewed in time.
fn is_renewed(lease: Option<&Lease>, settings: &configuration::Seed, now: Timestamp) -> bool {
    let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.as_ref());
    renewed.is_some_and(|renewed| is_within(renewed.0, settings.monitor_period, now))
}

/// Whether a gardenlet is silent for so long that nobody knows how its shoots are.
fn is_long_silent(conditions: &[Condition], settings: &configuration::Seed, now: Timestamp) -> bool {
    let silent = conditions::get(conditions, GARDENLET_READY);
    let since = silent.and_then(|own| own.last_transition_time.as_ref());
    since.is_none_or(|since| !is_within(since.0, settings.shoot_monitor_period(), now))
}

/// The conditions in which the gardenlet's is unknown.
fn with_silence(list: Vec<Condition>, now: &Time) -> Vec<Condition> {
    let old = conditions::get_or_init(&list, GARDENLET_READY, now);
    let message = "Gardenlet stopped posting status updates.";
    conditions::merge(list, [conditions::with(&old, "Unknown", REASON, message, now)])
}

/// The conditions in which these are unknown.
fn with_unknown(list: Vec<Condition>, types: impl Iterator<Item = &'static str>, now: &Time) -> Vec<Condition> {
    types.fold(list, |list, kind| {
        let old = conditions::get_or_init(&list, kind, now);
        let message = "Gardenlet stopped sending heartbeats.";
        conditions::merge(list, [conditions::with(&old, "Unknown", REASON, message, now)])
    })
}

/// Answers whether the seed is there.
async fn of_seed(manager: &Manager, shoots: &Informer<Shoot>, name: &str) -> Result<bool, ReconcileError> {
    let (config, settings) = (&manager.config, &manager.config.controllers.seed);
    let api: Api<Seed> = manager.all();
    let Some(seed) = api.read_opt(name).await? else {
        return Ok(false);
    };
    let now = config.clock.time();
    let lease = match seed.status.conditions.is_empty() {
        // its gardenlet has not told anything yet
        true => return Ok(true),
        false => manager.within::<Lease>(LEASE_NAMESPACE).read_opt(name).await?,
    };
    if is_renewed(lease.as_ref(), settings, now.0) {
        return Ok(true);
    }
    let told = apply::patch_status(&api, &seed, |seed| {
        seed.status.conditions = with_silence(std::mem::take(&mut seed.status.conditions), &now);
    });
    let Some((seed, _)) = or_gone(told.await)? else {
        return Ok(false);
    };
    let expired = seed.status.client_certificate_expiration_timestamp.as_ref();
    if expired.is_some_and(|expired| expired.0 < now.0) {
        bootstrap_anew(manager, name).await?;
    }
    if is_long_silent(&seed.status.conditions, settings, now.0) {
        let all = shoots.list();
        let own = all
            .iter()
            .filter(|shoot| shoot.status.seed_name.as_deref() == Some(name));
        for shoot in own {
            mark_unknown(config, shoot, &now).await?;
        }
    }
    Ok(true)
}

/// Answers whether the shoot is there.
async fn of_shoot(manager: &Manager, key: &ObjectRef) -> Result<bool, ReconcileError> {
    let (config, settings) = (&manager.config, &manager.config.controllers.seed);
    let api: Api<Shoot> = manager.within(&key.namespace);
    let Some(shoot) = api.read_opt(&key.name).await? else {
        return Ok(false);
    };
    let now = config.clock.time();
    if shoot.status.conditions.is_empty() {
        return Ok(true);
    }
    let leases: Api<Lease> = manager.within(&key.namespace);
    let lease = leases.read_opt(&format!("{SHOOT_LEASE_PREFIX}{}", key.name)).await?;
    if is_renewed(lease.as_ref(), settings, now.0) {
        return Ok(true);
    }
    let told = apply::patch_status(&api, &shoot, |shoot| {
        shoot.status.conditions = with_silence(std::mem::take(&mut shoot.status.conditions), &now);
    });
    let Some((shoot, _)) = or_gone(told.await)? else {
        return Ok(false);
    };
    if is_long_silent(&shoot.status.conditions, settings, now.0) {
        mark_unknown(config, &shoot, &now).await?;
    }
    Ok(true)
}

/// A gardenlet whose certificate is over cannot come back by itself: its ManagedSeed, if there is one, lets it bootstrap anew.
async fn bootstrap_anew(manager: &Manager, name: &str) -> Result<(), ReconcileError> {
    let api: Api<ManagedSeed> = manager.within(gardener_apis::constants::GARDEN_NAMESPACE);
    let Some(managed_seed) = api.read_opt(name).await? else {
        return Ok(());
    };
    let asked = apply::patch(&api, &managed_seed, |managed_seed| {
        let annotations = managed_seed.annotations_mut();
        annotations.insert(annotation::OPERATION.to_owned(), operation::RECONCILE.to_owned());
    });
    or_gone(asked.await)?;
    Ok(())
}

async fn mark_unknown(config: &Config, shoot: &Shoot, now: &Time) -> Result<(), ReconcileError> {
    let api: Api<Shoot> = Api::namespaced(config.garden.clone(), shoot.project_namespace());
    let written = apply::patch_status(&api, shoot, |shoot| {
        let types: Vec<&'static str> = shoot_conditions::types(shoot).collect();
        let status = &mut shoot.status;
        status.conditions = with_unknown(std::mem::take(&mut status.conditions), types.into_iter(), now);
        status.constraints = with_unknown(
            std::mem::take(&mut status.constraints),
            constraints::REQUIRED.into_iter(),
            now,
        );
    });
    or_gone(written.await)?;
    Ok(())
}
