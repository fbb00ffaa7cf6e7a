//! The BackupEntry controller: a shoot's place in a bucket; its extension gives etcd the credentials [EXT-55].

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::core::v1beta1::{BackupBucket, BackupEntry};
use gardener_apis::extensions::v1alpha1 as extensions;
use gardener_controller::apply as patching;
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, RateLimit};
use gardener_rules::operation::OperationType;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::Config;
use crate::apply;
use crate::backup_bucket::{Failed, last_operation};
use crate::extension::{self, Ask, Timing};

const FINALIZER: &str = "gardener";

/// Runs the controller until `stop`.
pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let queue: Queue<ObjectRef> = Queue::with_limit(RateLimit {
        base: Duration::from_millis(200),
        max: Duration::from_secs(120),
    });
    let entries: Informer<BackupEntry> =
        Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), &stop);
    let seed = config.seed_name.clone();
    entries.feed_if(
        &queue,
        move |change| {
            let is_ours = change.object().spec.seed_name.as_deref() == Some(seed.as_str());
            is_ours
                && match change {
                    Change::Applied { old: Some(old), new } => {
                        old.spec != new.spec || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
                    }
                    _ => true,
                }
        },
        |one| [ObjectRef::of(one)],
    );
    let config = Arc::new(config);
    Controller::new("backupentry", 20, queue)
        .run(stop, move |key| {
            let config = Arc::clone(&config);
            async move { reconcile(&config, &key).await }
        })
        .await;
}

async fn reconcile(config: &Config, key: &ObjectRef) -> Result<Action, Failed> {
    let api: Api<BackupEntry> = Api::namespaced(config.garden.clone(), &key.namespace);
    let Some(entry) = api.get_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    let deleted = entry.metadata.deletion_timestamp.is_some();
    if let Some(wait) = remaining_grace(config, &entry) {
        return Ok(Action::RequeueAfter(wait));
    }
    let entry = if deleted {
        entry
    } else {
        patching::add_finalizer(&api, &entry, FINALIZER).await?.0
    };
    let kind = OperationType::next(deleted, entry.status.last_operation.as_ref()).as_str();
    let worked = if deleted {
        remove(config, &entry).await
    } else {
        work(config, &entry).await
    };
    let now = config.clock.time();
    let seed = config.seed_name.clone();
    match worked {
        Ok(()) => {
            let (patched, _) = patching::patch_status(&api, &entry, |entry| {
                entry.status.last_error = None;
                entry.status.seed_name = Some(seed.clone());
                entry.status.observed_generation = entry.metadata.generation;
                entry.status.last_operation = Some(last_operation(
                    kind,
                    "Succeeded",
                    100,
                    "Backup Entry has been successfully reconciled.",
                    now.clone(),
                ));
            })
            .await?;
            if deleted {
                patching::remove_finalizer(&api, &patched, FINALIZER).await?;
            }
            Ok(Action::Done)
        }
        Err(error) => {
            patching::patch_status(&api, &entry, |entry| {
                entry.status.last_error = Some(error.last_error(now.clone()));
                entry.status.last_operation = Some(last_operation(
                    kind,
                    "Error",
                    50,
                    &format!("{error} Operation will be retried."),
                    now.clone(),
                ));
            })
            .await?;
            Err(error)
        }
    }
}

/// How long a deleted entry is still kept (`controllers.backupEntry.deletionGracePeriodHours`).
fn remaining_grace(config: &Config, entry: &BackupEntry) -> Option<Duration> {
    let deleted = entry.metadata.deletion_timestamp.as_ref()?.0;
    let grace = Duration::from_secs(u64::from(config.settings.backup_entry_deletion_grace_period_hours) * 3600);
    let passed = Duration::try_from(config.clock.now().duration_since(deleted)).unwrap_or_default();
    grace.checked_sub(passed).filter(|left| !left.is_zero())
}

fn secret_name(entry: &BackupEntry) -> String {
    format!("entry-{}", entry.name_any())
}

async fn work(config: &Config, entry: &BackupEntry) -> Result<(), Failed> {
    let buckets: Api<BackupBucket> = Api::all(config.garden.clone());
    let bucket = buckets.get(&entry.spec.bucket_name).await?;
    if bucket
        .status
        .last_operation
        .as_ref()
        .is_none_or(|last| last.state != "Succeeded")
    {
        return Err(Failed::new(format!(
            "associated BackupBucket {:?} is not ready yet",
            bucket.name_any()
        )));
    }
    let reference = bucket.spec.credentials_ref.clone().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(
        config.garden.clone(),
        reference.namespace.as_deref().unwrap_or("garden"),
    );
    let data = secrets.get(reference.name.as_deref().unwrap_or_default()).await?.data;
    let secret = secret_name(entry);
    let manifest = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": secret, "namespace": "garden"}, "data": data,
    });
    apply::apply(&config.seed, &manifest).await?;
    let api: Api<extensions::BackupEntry> = Api::all(config.seed.clone());
    let mut initial = extensions::BackupEntry::default();
    initial.metadata.name = Some(entry.name_any());
    extension::deploy(&api, initial, Ask::IfChanged, &config.clock, |object| {
        object.spec.r#type.clone_from(&bucket.spec.provider.r#type);
        object.spec.region.clone_from(&bucket.spec.provider.region);
        object.spec.bucket_name.clone_from(&entry.spec.bucket_name);
        object
            .spec
            .backup_bucket_provider_status
            .clone_from(&bucket.status.provider_status);
        object.spec.secret_ref.name = Some(secret.clone());
        object.spec.secret_ref.namespace = Some("garden".to_owned());
    })
    .await?;
    extension::wait_ready(&api, &entry.name_any(), Timing::LONG).await?;
    Ok(())
}

async fn remove(config: &Config, entry: &BackupEntry) -> Result<(), Failed> {
    let api: Api<extensions::BackupEntry> = Api::all(config.seed.clone());
    extension::delete(&api, &entry.name_any(), &config.clock).await?;
    extension::wait_gone(&api, &entry.name_any(), Timing::LONG).await?;
    apply::delete(
        &config.seed,
        &apply::name("v1", "Secret", Some("garden"), &secret_name(entry)),
    )
    .await?;
    Ok(())
}
