//! Controllers of shoots `[GCM-17]` `[GCM-40]`–`[GCM-44]`: maintenance, hibernation by schedules, quotas' lifetimes, retries, the status label, and
//! finalizers on what shoots refer to.

mod hibernation;
mod maintenance;
mod quota;
mod reference;
mod retry;

use std::collections::BTreeMap;

use gardener_apis::constants::label;
use gardener_apis::core::v1beta1::Shoot;
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, apply};
use gardener_rules::status_label;
use kube::Api;
use kube::runtime::watcher;
use tokio_util::sync::CancellationToken;

use crate::{CONCURRENCY, Config, ReconcileError};

pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let shoots: Informer<Shoot> = Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), &stop);
    let queue: Queue<ObjectRef> = Queue::new();
    shoots.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                old.status != new.status || old.metadata.labels != new.metadata.labels
            }
            Change::Applied { old: None, .. } => true,
            Change::Deleted(_) => false,
        },
        |shoot| [ObjectRef::of(shoot)],
    );
    shoots.synced().await;
    let labels = {
        let (config, shoots) = (config.clone(), shoots.clone());
        Controller::new("shoot-statuslabel", CONCURRENCY, queue).run(stop.clone(), move |key| {
            let (config, shoots) = (config.clone(), shoots.clone());
            async move { set_label(&config, &shoots, &key).await }
        })
    };
    tokio::join!(
        labels,
        maintenance::run(config.clone(), shoots.clone(), watcher::Config::default(), stop.clone()),
        hibernation::run(config.clone(), shoots.clone(), stop.clone()),
        quota::run(config.clone(), shoots.clone(), stop.clone()),
        retry::run(config.clone(), shoots.clone(), stop.clone()),
        reference::run(config, shoots, stop),
    );
}

pub(crate) async fn run_maintenance(config: Config, stop: CancellationToken) {
    // nobody is to look after watches in years of virtual time
    let watching = watcher::Config::default().timeout(u32::MAX).disable_bookmarks();
    let shoots = Informer::start(Api::all(config.garden.clone()), watching.clone(), &stop);
    shoots.synced().await;
    maintenance::run(config, shoots, watching, stop).await;
}

async fn set_label(config: &Config, shoots: &Informer<Shoot>, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let Some(shoot) = shoots.get(key) else {
        return Ok(Action::Done);
    };
    let api: Api<Shoot> = Api::namespaced(config.garden.clone(), &key.namespace);
    let status = status_label::of(&shoot);
    let patched = apply::patch(&api, shoot.as_ref(), |shoot| {
        shoot
            .metadata
            .labels
            .get_or_insert_with(BTreeMap::new)
            .insert(label::SHOOT_STATUS.to_owned(), status.as_str().to_owned());
    })
    .await;
    match patched {
        Err(error) if error.is_not_found() => Ok(Action::Done),
        other => other.map(|_| Action::Done).map_err(ReconcileError::from),
    }
}
