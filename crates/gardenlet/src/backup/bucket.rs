//! The BackupBucket controller: a seed with backups has a bucket; its extension makes it [EXT-3.9].

use std::sync::Arc;

use gardener_apis::constants::{GARDEN_NAMESPACE, finalizer};
use gardener_apis::core::v1beta1::BackupBucket;
use gardener_apis::extensions::v1alpha1 as extensions;
use gardener_controller::apply as patching;
use gardener_controller::{Action, Controller, Informer, ObjectRef, Read};
use gardener_rules::backups::State;
use k8s_openapi::api::core::v1::{Secret, SecretReference};
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::{Backup, Failed, Keeper, extension_informer, feed, feed_told};
use crate::Config;
use crate::extension::ExtensionObject;
use crate::failed;

/// Tells the extension where to put the Secret that it generates.
const GENERATED_SECRET_NAMESPACE: &str = "backupbucket.extensions.gardener.cloud/generated-secret-namespace";
/// What the name of the generated Secret begins with in the garden.
const GENERATED_PREFIX: &str = "generated-bucket-";
/// How many buckets are worked on at a time.
const CONCURRENT_SYNCS: usize = 20;

/// Runs the controller until `stop`.
pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let queue = failed::queue();
    let buckets: Informer<BackupBucket> =
        Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), &stop);
    let seed = config.seed_name.clone();
    feed(&buckets, &queue, move |bucket| is_ours(bucket, &seed));
    let Some(objects) = extension_informer::<extensions::BackupBucket>(&config, &stop).await else {
        return;
    };
    feed_told(&objects, &queue, ExtensionObject::last_operation, |object| {
        [ObjectRef::cluster_scoped(object.name_any())]
    });
    let keeper = Arc::new(Keeper::new(config, "backupbucket"));
    Controller::new("backupbucket", CONCURRENT_SYNCS, queue)
        .run(stop, move |key| {
            let keeper = Arc::clone(&keeper);
            async move { keeper.reconcile_bucket(&key).await }
        })
        .await;
}

fn is_ours(bucket: &BackupBucket, seed: &str) -> bool {
    bucket.spec.seed_name.as_deref() == Some(seed)
}

impl Keeper {
    async fn reconcile_bucket(&self, key: &ObjectRef) -> Result<Action, Failed> {
        let api: Api<BackupBucket> = Api::all(self.config.garden.clone());
        let Some(bucket) = api.read_opt(&key.name).await? else {
            return Ok(Action::Done);
        };
        if !is_ours(&bucket, &self.config.seed_name) {
            return Ok(Action::Done);
        }
        if bucket.metadata.deletion_timestamp.is_some() {
            return self.delete_bucket(&api, bucket).await;
        }
        let (bucket, _) = patching::add_finalizer(&api, &bucket, finalizer::GARDENER).await?;
        let (secrets, credentials) = self
            .credentials(&api, &bucket, bucket.spec.credentials_ref.as_ref())
            .await?;
        patching::add_finalizer(&secrets, &credentials, finalizer::BACKUP_BUCKET).await?;
        let specify = |object: &mut extensions::BackupBucket| {
            let namespace = (GENERATED_SECRET_NAMESPACE.to_owned(), GARDEN_NAMESPACE.to_owned());
            object.annotations_mut().extend([namespace]);
            object.spec.r#type.clone_from(&bucket.spec.provider.r#type);
            object.spec.region.clone_from(&bucket.spec.provider.region);
            object.spec.provider_config.clone_from(&bucket.spec.provider_config);
            object.spec.secret_ref = bucket.secret_reference();
        };
        if let Some(object) = self.bring(&api, &bucket, &credentials, specify).await? {
            let bucket = self.take_over(&api, &bucket, &object).await?;
            self.tell(&api, &bucket, &State::Succeeded).await?;
        }
        Ok(Action::Done)
    }

    /// Brings what the extension made of the bucket into the garden: its status, and the Secret it generated.
    async fn take_over(
        &self,
        api: &Api<BackupBucket>,
        bucket: &BackupBucket,
        object: &extensions::BackupBucket,
    ) -> Result<BackupBucket, Failed> {
        let generated = object.status.generated_secret_ref.as_ref();
        // The reference first: by it the garden lets this gardenlet write the Secret.
        let (bucket, _) = patching::patch_status(api, bucket, |bucket| {
            if generated.is_some() {
                bucket.status.generated_secret_ref = Some(SecretReference {
                    name: Some(format!("{GENERATED_PREFIX}{}", bucket.name_any())),
                    namespace: Some(GARDEN_NAMESPACE.to_owned()),
                });
            }
            if object.status.provider_status.is_some() {
                bucket.status.provider_status.clone_from(&object.status.provider_status);
            }
        })
        .await?;
        let Some(generated) = generated else {
            return Ok(bucket);
        };
        let place = |part: &Option<String>| part.clone().unwrap_or_default();
        let from: Api<Secret> = Api::namespaced(self.config.seed.clone(), &place(&generated.namespace));
        let made = from.read(&place(&generated.name)).await?;
        let mut initial = Secret::default();
        initial.metadata.name = Some(format!("{GENERATED_PREFIX}{}", bucket.name_any()));
        initial.metadata.namespace = Some(GARDEN_NAMESPACE.to_owned());
        let secrets: Api<Secret> = Api::namespaced(self.config.garden.clone(), GARDEN_NAMESPACE);
        patching::create_or_patch(&secrets, initial, |secret| {
            secret.metadata.owner_references = bucket.controller_owner_ref(&()).map(|owner| vec![owner]);
            if !patching::has_finalizer(secret, finalizer::BACKUP_BUCKET) {
                secret.finalizers_mut().push(finalizer::BACKUP_BUCKET.to_owned());
            }
            secret.data.clone_from(&made.data);
        })
        .await?;
        Ok(bucket)
    }

    async fn delete_bucket(&self, api: &Api<BackupBucket>, bucket: BackupBucket) -> Result<Action, Failed> {
        if !patching::has_finalizer(&bucket, finalizer::GARDENER) {
            return Ok(Action::Done);
        }
        let bucket = self.tell(api, &bucket, &State::Processing).await?;
        if let Some(generated) = &bucket.status.generated_secret_ref {
            let place = |part: &Option<String>| part.clone().unwrap_or_default();
            let secrets: Api<Secret> = Api::namespaced(self.config.garden.clone(), &place(&generated.namespace));
            if let Some(secret) = secrets.read_opt(&place(&generated.name)).await? {
                patching::remove_finalizer(&secrets, &secret, finalizer::BACKUP_BUCKET).await?;
                patching::delete(&secrets, &secret.name_any()).await?;
            }
        }
        let (secrets, credentials) = self
            .credentials(api, &bucket, bucket.spec.credentials_ref.as_ref())
            .await?;
        if let Some(later) = self.remove(api, &bucket, &credentials).await? {
            return Ok(later);
        }
        let bucket = self.tell(api, &bucket, &State::Succeeded).await?;
        patching::remove_finalizer(&secrets, &credentials, finalizer::BACKUP_BUCKET).await?;
        patching::remove_finalizer(api, &bucket, finalizer::GARDENER).await?;
        Ok(Action::Done)
    }
}
