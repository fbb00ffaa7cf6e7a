//! The BackupBucket controller: a seed with backups has a bucket; its extension makes it [EXT-3.9].

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::core::v1beta1::{BackupBucket, LastError, LastOperation};
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
use crate::extension::{self, Ask, Timing};

const FINALIZER: &str = "gardener";

/// Why a backup's object could not be brought up.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failed {
    message: String,
    codes: Vec<String>,
}

macro_rules! failed_from {
    ($($error:ty),*) => {$(
        impl From<$error> for Failed {
            fn from(error: $error) -> Self {
                Self { message: error.to_string(), codes: Vec::new() }
            }
        }
    )*};
}
failed_from!(kube::Error, patching::ApplyError, apply::ManifestError);

impl From<gardener_flow::TaskError> for Failed {
    fn from(error: gardener_flow::TaskError) -> Self {
        Self {
            message: error.to_string(),
            codes: error.codes().to_vec(),
        }
    }
}

impl Failed {
    pub(crate) fn last_error(&self, now: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time) -> LastError {
        LastError {
            description: self.message.clone(),
            codes: self.codes.clone(),
            task_id: None,
            last_update_time: Some(now),
        }
    }

    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            codes: Vec::new(),
        }
    }
}

/// The operation of a backup's object, as its status tells it.
pub(crate) fn last_operation(
    kind: &str,
    state: &str,
    progress: i32,
    description: &str,
    now: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,
) -> LastOperation {
    LastOperation {
        r#type: kind.to_owned(),
        state: state.to_owned(),
        progress,
        description: description.to_owned(),
        last_update_time: Some(now),
    }
}

/// Runs the controller until `stop`.
pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let queue: Queue<ObjectRef> = Queue::with_limit(RateLimit {
        base: Duration::from_millis(200),
        max: Duration::from_secs(120),
    });
    let buckets: Informer<BackupBucket> =
        Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), &stop);
    let seed = config.seed_name.clone();
    buckets.feed_if(
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
    Controller::new("backupbucket", 5, queue)
        .run(stop, move |key| {
            let config = Arc::clone(&config);
            async move { reconcile(&config, &key).await }
        })
        .await;
}

async fn reconcile(config: &Config, key: &ObjectRef) -> Result<Action, Failed> {
    let api: Api<BackupBucket> = Api::all(config.garden.clone());
    let Some(bucket) = api.get_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    let deleted = bucket.metadata.deletion_timestamp.is_some();
    let bucket = if deleted {
        bucket
    } else {
        patching::add_finalizer(&api, &bucket, FINALIZER).await?.0
    };
    let kind = OperationType::next(deleted, bucket.status.last_operation.as_ref()).as_str();
    let worked = if deleted {
        remove(config, &bucket).await.map(|()| None)
    } else {
        work(config, &bucket).await.map(Some)
    };
    let now = config.clock.time();
    match worked {
        Ok(done) => {
            let (patched, _) = patching::patch_status(&api, &bucket, |bucket| {
                bucket.status.last_error = None;
                bucket.status.observed_generation = bucket.metadata.generation;
                bucket.status.last_operation = Some(last_operation(
                    kind,
                    "Succeeded",
                    100,
                    "Backup Bucket has been successfully reconciled.",
                    now.clone(),
                ));
                if let Some(done) = done.clone() {
                    bucket.status.provider_status = done.status.provider_status;
                }
            })
            .await?;
            if deleted {
                patching::remove_finalizer(&api, &patched, FINALIZER).await?;
            }
            Ok(Action::Done)
        }
        Err(error) => {
            patching::patch_status(&api, &bucket, |bucket| {
                bucket.status.last_error = Some(error.last_error(now.clone()));
                bucket.status.last_operation = Some(last_operation(
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

fn secret_name(bucket: &BackupBucket) -> String {
    format!("bucket-{}", bucket.name_any())
}

async fn work(config: &Config, bucket: &BackupBucket) -> Result<extensions::BackupBucket, Failed> {
    let reference = bucket.spec.credentials_ref.clone().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(
        config.garden.clone(),
        reference.namespace.as_deref().unwrap_or("garden"),
    );
    let data = secrets.get(reference.name.as_deref().unwrap_or_default()).await?.data;
    let secret = secret_name(bucket);
    let manifest = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": secret, "namespace": "garden"}, "data": data,
    });
    apply::apply(&config.seed, &manifest).await?;
    let api: Api<extensions::BackupBucket> = Api::all(config.seed.clone());
    let mut initial = extensions::BackupBucket::default();
    initial.metadata.name = Some(bucket.name_any());
    extension::deploy(&api, initial, Ask::IfChanged, &config.clock, |object| {
        object.spec.r#type.clone_from(&bucket.spec.provider.r#type);
        object.spec.region.clone_from(&bucket.spec.provider.region);
        object.spec.provider_config.clone_from(&bucket.spec.provider_config);
        object.spec.secret_ref.name = Some(secret.clone());
        object.spec.secret_ref.namespace = Some("garden".to_owned());
    })
    .await?;
    Ok(extension::wait_ready(&api, &bucket.name_any(), Timing::LONG).await?)
}

async fn remove(config: &Config, bucket: &BackupBucket) -> Result<(), Failed> {
    let api: Api<extensions::BackupBucket> = Api::all(config.seed.clone());
    extension::delete(&api, &bucket.name_any(), &config.clock).await?;
    extension::wait_gone(&api, &bucket.name_any(), Timing::LONG).await?;
    apply::delete(
        &config.seed,
        &apply::name("v1", "Secret", Some("garden"), &secret_name(bucket)),
    )
    .await?;
    Ok(())
}
