//! Controllers of seeds `[GCM-20]`–`[GCM-23]`: whether their gardenlets live, their extensions and buckets are well, and the namespace with
//! what they may read.

mod checks;
mod secrets;

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::core::v1beta1::{BackupBucket, ControllerInstallation, Seed, Shoot};
use gardener_controller::informer::Watched;
use gardener_controller::{Action, Controller, Informer, Queue, apply, conditions};
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::{CONCURRENCY, Config, ReconcileError};

/// How often a seed's lease is looked at.
const LIFECYCLE_INTERVAL: Duration = Duration::from_secs(10);
/// How old a lease may be.
const MONITOR_PERIOD: i64 = 40;
/// How long a gardenlet may be silent until its shoots' conditions become unknown.
const SHOOT_MONITOR_PERIOD: i64 = 200;
/// Where gardenlets keep their leases.
const LEASE_NAMESPACE: &str = "gardener-system-seed-lease";
/// How often extensions and buckets are looked at without a change.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

pub(crate) const GARDENLET_READY: &str = "GardenletReady";

fn informer<K: Watched + kube::Resource<DynamicType = ()>>(config: &Config, stop: &CancellationToken) -> Informer<K> {
    Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), stop)
}

pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let seeds: Informer<Seed> = informer(&config, &stop);
    let shoots: Informer<Shoot> = informer(&config, &stop);
    let installations: Informer<ControllerInstallation> = informer(&config, &stop);
    let buckets: Informer<BackupBucket> = informer(&config, &stop);
    let lifecycle: Queue<String> = Queue::new();
    let extensions: Queue<String> = Queue::new();
    let backups: Queue<String> = Queue::new();
    for queue in [&lifecycle, &extensions, &backups] {
        seeds.feed_if(
            queue,
            |change| matches!(change, gardener_controller::Change::Applied { old: None, .. }),
            |seed| [seed.name_any()],
        );
    }
    installations.feed(&extensions, |installation| {
        installation.spec.seed_ref.as_ref().and_then(|own| own.name.clone())
    });
    buckets.feed(&backups, |bucket| bucket.spec.seed_name.clone());
    tokio::join!(
        seeds.synced(),
        shoots.synced(),
        installations.synced(),
        buckets.synced()
    );
    let shared = Arc::new((config.clone(), shoots, installations, buckets));
    let (a, b, c) = (shared.clone(), shared.clone(), shared);
    tokio::join!(
        Controller::new("seed-lifecycle", CONCURRENCY, lifecycle).run(stop.clone(), move |name| {
            let shared = a.clone();
            async move { reconcile_lifecycle(&shared.0, &shared.1, &name).await }
        }),
        Controller::new("seed-extensions-check", CONCURRENCY, extensions).run(stop.clone(), move |name| {
            let shared = b.clone();
            async move {
                checks::extensions(&shared.0, &shared.2, &name)
                    .await
                    .map(|()| Action::RequeueAfter(CHECK_INTERVAL))
            }
        }),
        Controller::new("seed-backupbuckets-check", CONCURRENCY, backups).run(stop.clone(), move |name| {
            let shared = c.clone();
            async move {
                checks::backup_buckets(&shared.0, &shared.3, &name)
                    .await
                    .map(|()| Action::RequeueAfter(CHECK_INTERVAL))
            }
        }),
        secrets::run(config, seeds, stop),
    );
}

/// `[GCM-20]`.
async fn reconcile_lifecycle(config: &Config, shoots: &Informer<Shoot>, name: &str) -> Result<Action, ReconcileError> {
    let api: Api<Seed> = Api::all(config.garden.clone());
    let Some(seed) = api.get_opt(name).await? else {
        return Ok(Action::Done);
    };
    let again = Ok(Action::RequeueAfter(LIFECYCLE_INTERVAL));
    if seed.status.conditions.is_empty() {
        return again;
    }
    let leases: Api<Lease> = Api::namespaced(config.garden.clone(), LEASE_NAMESPACE);
    let renewed = leases
        .get_opt(name)
        .await?
        .and_then(|lease| lease.spec)
        .and_then(|spec| spec.renew_time);
    let now = config.clock.time();
    if renewed.is_some_and(|renewed| now.0.as_second() - renewed.0.as_second() <= MONITOR_PERIOD) {
        return again;
    }
    const REASON: &str = "StatusUnknown";
    let (seed, _) = apply::patch_status(&api, &seed, |seed| {
        let old = conditions::get_or_init(&seed.status.conditions, GARDENLET_READY, &now);
        let unknown = conditions::with(
            &old,
            "Unknown",
            REASON,
            "Gardenlet stopped posting status updates.",
            &now,
        );
        seed.status.conditions = conditions::merge(std::mem::take(&mut seed.status.conditions), [unknown]);
    })
    .await?;
    let since = conditions::get(&seed.status.conditions, GARDENLET_READY)
        .and_then(|condition| condition.last_transition_time.clone());
    if since.is_none_or(|since| now.0.as_second() - since.0.as_second() < SHOOT_MONITOR_PERIOD) {
        return again;
    }
    for shoot in shoots
        .list()
        .iter()
        .filter(|shoot| shoot.status.seed_name.as_deref() == Some(name))
    {
        let api: Api<Shoot> = Api::namespaced(config.garden.clone(), shoot.project_namespace());
        apply::patch_status(&api, shoot.as_ref(), |shoot| {
            for list in [&mut shoot.status.conditions, &mut shoot.status.constraints] {
                for condition in list.iter_mut() {
                    let concerned = !matches!(
                        condition.r#type.as_str(),
                        "CACertificateValiditiesAcceptable" | "ReadyForMigration"
                    );
                    if concerned {
                        *condition = conditions::with(
                            condition,
                            "Unknown",
                            REASON,
                            "Gardenlet stopped sending heartbeats.",
                            &now,
                        );
                    }
                }
            }
        })
        .await?;
    }
    again
}
