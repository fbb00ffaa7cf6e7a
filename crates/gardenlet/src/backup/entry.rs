//! The BackupEntry controller: a shoot's place in a bucket; its extension gives etcd the credentials [EXT-55].

use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::meta::is_true;
use gardener_apis::constants::{annotation, finalizer};
use gardener_apis::core::v1beta1::{BackupBucket, BackupEntry};
use gardener_apis::extensions::v1alpha1 as extensions;
use gardener_controller::apply as patching;
use gardener_controller::{Action, Controller, Informer, ObjectRef, Read};
use gardener_rules::backups::{State, check_bucket, deletion_grace};
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::{Backup, Failed, Keeper, extension_informer, failure, feed, feed_told};
use crate::Config;
use crate::extension::ExtensionObject;
use crate::failed;

/// Names of the informer's indexes of entries.
mod index {
    pub(super) const NAME: &str = "name";
    pub(super) const BUCKET: &str = "bucket";
}

/// How many entries are worked on at a time.
const CONCURRENT_SYNCS: usize = 20;

/// Runs the controller until `stop`.
pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let queue = failed::queue();
    let entries: Informer<BackupEntry> =
        Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), &stop);
    entries.add_index(index::NAME, |entry| vec![entry.name_any()]);
    entries.add_index(index::BUCKET, |entry| vec![entry.spec.bucket_name.clone()]);
    let seed = config.seed_name.clone();
    feed(&entries, &queue, move |entry| is_ours(entry, &seed));
    // of other seeds there may be entries, too: those are not reconciled
    let found = |index: &'static str| {
        let entries = entries.clone();
        move |name: String| -> Vec<ObjectRef> {
            let found = entries.by_index(index, &name);
            found.iter().map(|entry| ObjectRef::of(&**entry)).collect()
        }
    };
    let Some(objects) = extension_informer::<extensions::BackupEntry>(&config, &stop).await else {
        return;
    };
    let named = found(index::NAME);
    feed_told(&objects, &queue, ExtensionObject::last_operation, move |object| {
        named(object.name_any())
    });
    let buckets: Informer<BackupBucket> =
        Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), &stop);
    let within = found(index::BUCKET);
    feed_told(&buckets, &queue, Backup::last_operation, move |bucket| {
        within(bucket.name_any())
    });
    let keeper = Arc::new(Keeper::new(config, "backupentry"));
    Controller::new("backupentry", CONCURRENT_SYNCS, queue)
        .run(stop, move |key| {
            let keeper = Arc::clone(&keeper);
            async move { keeper.reconcile_entry(&key).await }
        })
        .await;
}

fn is_ours(entry: &BackupEntry, seed: &str) -> bool {
    entry.spec.seed_name.as_deref() == Some(seed)
}

impl Keeper {
    async fn reconcile_entry(&self, key: &ObjectRef) -> Result<Action, Failed> {
        let api: Api<BackupEntry> = Api::namespaced(self.config.garden.clone(), &key.namespace);
        let Some(entry) = api.read_opt(&key.name).await? else {
            return Ok(Action::Done);
        };
        if !is_ours(&entry, &self.config.seed_name) {
            return Ok(Action::Done);
        }
        if entry.metadata.deletion_timestamp.is_some() {
            return self.delete_entry(&api, entry).await;
        }
        let (entry, _) = patching::add_finalizer(&api, &entry, finalizer::GARDENER).await?;
        let entry = self.settle(&api, entry).await?;
        let Some((bucket, credentials)) = self.bucket_of(&api, &entry).await? else {
            return Ok(Action::Done);
        };
        let specify = |object: &mut extensions::BackupEntry| {
            object.spec.r#type.clone_from(&bucket.spec.provider.r#type);
            object.spec.region.clone_from(&bucket.spec.provider.region);
            object.spec.provider_config.clone_from(&bucket.spec.provider_config);
            object.spec.bucket_name.clone_from(&entry.spec.bucket_name);
            let provider_status = &bucket.status.provider_status;
            object.spec.backup_bucket_provider_status.clone_from(provider_status);
            object.spec.secret_ref = entry.secret_reference();
        };
        if self.bring(&api, &entry, &credentials, specify).await?.is_some() {
            self.tell(&api, &entry, &State::Succeeded).await?;
        }
        Ok(Action::Done)
    }

    /// Tells which seed the entry is on.
    async fn settle(&self, api: &Api<BackupEntry>, entry: BackupEntry) -> Result<BackupEntry, Failed> {
        let (entry, _) = patching::patch_status(api, &entry, |entry| {
            if entry.status.seed_name.is_none() {
                entry.status.seed_name.clone_from(&entry.spec.seed_name);
            }
        })
        .await?;
        Ok(entry)
    }

    /// The bucket of an entry and the credentials for it. None if the bucket is not ready: then the entry tells so, and comes again once the
    /// bucket is.
    async fn bucket_of(
        &self,
        api: &Api<BackupEntry>,
        entry: &BackupEntry,
    ) -> Result<Option<(BackupBucket, Secret)>, Failed> {
        let buckets: Api<BackupBucket> = Api::all(self.config.garden.clone());
        let name = &entry.spec.bucket_name;
        let checked = match buckets.read(name).await {
            Ok(bucket) => check_bucket(&bucket).map(|()| bucket),
            Err(error) => Err(failure(format!(
                "failed getting associated BackupBucket {name:?}: {}",
                gardener_controller::api_error(&error)
            ))),
        };
        let bucket = match checked {
            Ok(bucket) => bucket,
            Err(error) => {
                self.fail(api, entry, error).await?;
                return Ok(None);
            }
        };
        let generated = bucket
            .status
            .generated_secret_ref
            .as_ref()
            .map(|generated| ObjectReference {
                kind: Some("Secret".to_owned()),
                name: generated.name.clone(),
                namespace: generated.namespace.clone(),
                ..ObjectReference::default()
            });
        let reference = generated.as_ref().or(bucket.spec.credentials_ref.as_ref());
        let (_, credentials) = self.credentials(api, entry, reference).await?;
        Ok(Some((bucket, credentials)))
    }

    async fn delete_entry(&self, api: &Api<BackupEntry>, entry: BackupEntry) -> Result<Action, Failed> {
        if !patching::has_finalizer(&entry, finalizer::GARDENER) {
            return Ok(Action::Done);
        }
        if let Some(wait) = self.wait_for_deletion(api, &entry).await? {
            return Ok(Action::RequeueAfter(wait));
        }
        let entry = self.tell(api, &entry, &State::Processing).await?;
        let Some((_, credentials)) = self.bucket_of(api, &entry).await? else {
            return Ok(Action::Done);
        };
        if let Some(later) = self.remove(api, &entry, &credentials).await? {
            return Ok(later);
        }
        let entry = self.tell(api, &entry, &State::Succeeded).await?;
        patching::remove_finalizer(api, &entry, finalizer::GARDENER).await?;
        Ok(Action::Done)
    }

    /// How long a deleted entry is still kept; tells until when. None if its time has come, or somebody wants it gone at once.
    async fn wait_for_deletion(&self, api: &Api<BackupEntry>, entry: &BackupEntry) -> Result<Option<Duration>, Failed> {
        let noted = |key: &str| entry.annotations().get(key).map_or("", String::as_str);
        let deleted = entry.metadata.deletion_timestamp.as_ref();
        let Some(deleted) = deleted.filter(|_| !is_true(noted(annotation::BACKUP_ENTRY_FORCE_DELETION))) else {
            return Ok(None);
        };
        let settings = &self.config.settings.backup_entry;
        let grace = deletion_grace(
            settings.deletion_grace_period_hours,
            &settings.deletion_grace_period_shoot_purposes,
            noted(annotation::SHOOT_PURPOSE),
        );
        let passed = Duration::try_from(self.config.clock.now().duration_since(deleted.0)).unwrap_or_default();
        let Some(left) = grace.checked_sub(passed).filter(|left| !left.is_zero()) else {
            return Ok(None);
        };
        let when = (deleted.0 + grace).strftime("%Y-%m-%d %H:%M:%S +0000 UTC");
        let pending = State::Pending(format!("Deletion of backup entry is scheduled for {when}"));
        self.tell(api, entry, &pending).await?;
        Ok(Some(left))
    }
}
