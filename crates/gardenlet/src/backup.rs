//! Backups: what the controllers of BackupBuckets ([`bucket`]) and of BackupEntries ([`entry`]) have in common. Both bring credentials and an
//! extension's object into the seed and tell in the garden what the extension says. What is decided is in `gardener_rules::backups`.
//!
//! Not here: moving an entry to another seed, and credentials that are a WorkloadIdentity.

pub(crate) mod bucket;
pub(crate) mod entry;

use std::collections::BTreeMap;
use std::time::Duration;

use gardener_apis::constants::GARDEN_NAMESPACE;
use gardener_apis::core::v1beta1::{BackupBucket, BackupEntry, LastError, LastOperation, Shoot};
use gardener_apis::extensions::v1alpha1 as extensions;
use gardener_controller::apply::{self as patching, ApplyError, Writable};
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::informer::Watched;
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, operation};
use gardener_rules::backups::{self, Decision, Found, FoundObject, FoundSecret, Kind, State};
use gardener_rules::operation::{OperationType, SUCCEEDED, last_operation};
use k8s_openapi::api::core::v1::{ObjectReference, Secret, SecretReference};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::Config;
use crate::extension::{self, Ask, ExtensionObject};
use crate::seed::system;

/// How soon a deletion that waits for an extension looks again.
const STILL_PRESENT: Duration = Duration::from_secs(5);

/// Why a backup could not be brought up or removed. What its extension says is told in its status and is none of these, but for what keeps a
/// deletion from going on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("{}", gardener_controller::api_error(.0))]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error("credentials of a backup must be a Secret with a namespace and a name, got {kind} {namespace:?}/{name:?}")]
    Credentials {
        kind: String,
        namespace: String,
        name: String,
    },
    #[error("{0}")]
    Extension(String),
}

/// The name of a shoot's BackupEntry, in the garden and in the seed [CP-42].
pub(crate) fn entry_name(technical_id: &str, shoot: &Shoot) -> String {
    match shoot.status.uid.as_str() {
        "" => format!("{technical_id}--{}", shoot.uid().unwrap_or_default()),
        uid => format!("{technical_id}--{uid}"),
    }
}

/// What a status tells of an operation.
struct Told<'a> {
    last_operation: &'a mut Option<LastOperation>,
    last_error: &'a mut Option<LastError>,
    observed_generation: &'a mut Option<i64>,
}

/// A BackupBucket or a BackupEntry.
trait Backup: Writable + Watched + Resource<DynamicType = ()> {
    /// The extension's object of the same name.
    type Extension: ExtensionObject + Default;
    const KIND: Kind;
    /// What the name of the Secret in the seed begins with.
    const SECRET_PREFIX: &'static str;

    fn last_operation(&self) -> Option<&LastOperation>;
    fn told(&mut self) -> Told<'_>;

    fn operation(&self) -> OperationType {
        OperationType::next(self.meta().deletion_timestamp.is_some(), self.last_operation())
    }

    fn secret_name(&self) -> String {
        format!("{}{}", Self::SECRET_PREFIX, self.name_any())
    }

    /// How the extension's object refers to the Secret.
    fn secret_reference(&self) -> SecretReference {
        SecretReference {
            name: Some(self.secret_name()),
            namespace: Some(GARDEN_NAMESPACE.to_owned()),
        }
    }
}

/// What a status tells of an error that has no codes.
fn failure(description: String) -> LastError {
    LastError {
        description,
        ..LastError::default()
    }
}

macro_rules! backups {
    ($($kind:ident: $subject:expr, $prefix:literal;)*) => {$(
        impl Backup for $kind {
            type Extension = extensions::$kind;
            const KIND: Kind = $subject;
            const SECRET_PREFIX: &'static str = $prefix;

            fn last_operation(&self) -> Option<&LastOperation> {
                self.status.last_operation.as_ref()
            }

            fn told(&mut self) -> Told<'_> {
                Told {
                    last_operation: &mut self.status.last_operation,
                    last_error: &mut self.status.last_error,
                    observed_generation: &mut self.status.observed_generation,
                }
            }
        }
    )*};
}

backups! {
    BackupBucket: Kind::Bucket, "bucket-";
    BackupEntry: Kind::Entry, "entry-";
}

/// Whether two operations are told alike, whenever that was.
fn is_same(one: &LastOperation, other: &LastOperation) -> bool {
    let last_update_time = other.last_update_time.clone();
    LastOperation {
        last_update_time,
        ..one.clone()
    } == *other
}

/// An informer of a kind of extensions' objects, started once the seed serves it. None if gardenlet stops before.
async fn extension_informer<K: ExtensionObject>(config: &Config, stop: &CancellationToken) -> Option<Informer<K>> {
    let definition = format!("{}.{}", K::plural(&()), K::group(&()));
    stop.run_until_cancelled(system::until_served(&config.seed, &definition))
        .await?;
    Some(Informer::start(
        Api::all(config.seed.clone()),
        watcher::Config::default(),
        stop,
    ))
}

/// Feeds the backups that somebody changed or deleted; what only their status tells is no reason for work.
fn feed<K: Backup>(
    informer: &Informer<K>,
    queue: &Queue<ObjectRef>,
    is_ours: impl Fn(&K) -> bool + Send + Sync + 'static,
) {
    let wanted = move |change: &Change<K>| {
        is_ours(change.object())
            && match change {
                Change::Applied { old: Some(old), new } => {
                    let (old, new) = (old.meta(), new.meta());
                    old.generation != new.generation || old.deletion_timestamp != new.deletion_timestamp
                }
                _ => true,
            }
    };
    informer.feed_if(queue, wanted, |one| [ObjectRef::of(one)]);
}

/// Feeds what `keys` gives for objects whose last operation, as `tells` reads it, became another one, or that are gone.
fn feed_told<K: Watched, I: IntoIterator<Item = ObjectRef>>(
    informer: &Informer<K>,
    queue: &Queue<ObjectRef>,
    tells: impl Fn(&K) -> Option<&LastOperation> + Send + Sync + 'static,
    keys: impl Fn(&K) -> I + Send + Sync + 'static,
) {
    let wanted = move |change: &Change<K>| match change {
        Change::Applied { old: Some(old), new } => tells(old) != tells(new),
        Change::Applied { old: None, new } => tells(new).is_some(),
        Change::Deleted(_) => true,
    };
    informer.feed_if(queue, wanted, keys);
}

/// What both controllers work with.
struct Keeper {
    config: Config,
    recorder: Recorder,
}

impl Keeper {
    fn new(config: Config, controller: &str) -> Self {
        let recorder = Recorder::new(
            config.garden.clone(),
            config.clock.clone(),
            format!("{controller}-controller"),
        );
        Self { config, recorder }
    }

    fn seed_secrets(&self) -> Api<Secret> {
        Api::namespaced(self.config.seed.clone(), GARDEN_NAMESPACE)
    }

    fn extensions<K: Backup>(&self) -> Api<K::Extension> {
        Api::all(self.config.seed.clone())
    }

    /// The Secret in the garden that holds a backup's credentials, and where it is; a backup without them tells so.
    async fn credentials<K: Backup>(
        &self,
        api: &Api<K>,
        backup: &K,
        reference: Option<&ObjectReference>,
    ) -> Result<(Api<Secret>, Secret), Failed> {
        match self.referred(reference).await {
            Err(error) => {
                let description = format!("failed to get backup credentials: {error}");
                self.fail(api, backup, failure(description)).await?;
                Err(error)
            }
            found => found,
        }
    }

    async fn referred(&self, reference: Option<&ObjectReference>) -> Result<(Api<Secret>, Secret), Failed> {
        let reference = reference.cloned().unwrap_or_default();
        let text = |value: Option<String>| value.unwrap_or_default();
        let (kind, namespace, name) = (text(reference.kind), text(reference.namespace), text(reference.name));
        if kind != "Secret" || namespace.is_empty() || name.is_empty() {
            return Err(Failed::Credentials { kind, namespace, name });
        }
        let secrets: Api<Secret> = Api::namespaced(self.config.garden.clone(), &namespace);
        let secret = secrets.read(&name).await?;
        Ok((secrets, secret))
    }

    /// Makes the Secret in the seed hold the credentials; its time tells when it was written.
    async fn write_secret<K: Backup>(&self, backup: &K, credentials: &Secret, now: Timestamp) -> Result<(), Failed> {
        let mut initial = Secret::default();
        initial.metadata.name = Some(backup.secret_name());
        initial.metadata.namespace = Some(GARDEN_NAMESPACE.to_owned());
        patching::create_or_patch(&self.seed_secrets(), initial, |secret| {
            let written = (operation::TIMESTAMP.to_owned(), operation::format_timestamp(now));
            secret.metadata.annotations = Some(BTreeMap::from([written]));
            secret.metadata.labels = None;
            secret.data.clone_from(&credentials.data);
        })
        .await?;
        Ok(())
    }

    /// Brings a backup's credentials and object, as `specify` makes it, into the seed, and asks its extension where that is due. Tells how it
    /// stands, but for success: that is the caller's. Answers the object if its extension has succeeded.
    async fn bring<K: Backup>(
        &self,
        api: &Api<K>,
        backup: &K,
        credentials: &Secret,
        specify: impl Fn(&mut K::Extension),
    ) -> Result<Option<K::Extension>, Failed> {
        let now = self.config.clock.now();
        let extensions = self.extensions::<K>();
        let secret = self.seed_secrets().read_opt(&backup.secret_name()).await?;
        let object = extensions.read_opt(&backup.name_any()).await?;
        let found = Found {
            secret: secret.as_ref().map(|secret| FoundSecret {
                is_current: secret.data == credentials.data,
                written: operation::timestamp(secret),
            }),
            object: object.as_ref().map(|object| FoundObject {
                is_current: {
                    let mut wanted = object.clone();
                    specify(&mut wanted);
                    wanted == *object
                },
                is_asked: operation::operation(object).is_some(),
                last_operation: object.last_operation(),
                last_error: object.last_error(),
            }),
        };
        let Decision {
            write_secret,
            ask,
            state,
        } = backups::decide(&found, now);
        if write_secret {
            self.write_secret(backup, credentials, now).await?;
        }
        if state == State::Succeeded {
            return Ok(object);
        }
        match state {
            State::Failed(error) => self.fail(api, backup, error).await?,
            state => self.tell(api, backup, &state).await?,
        };
        if ask {
            let mut initial = K::Extension::default();
            initial.meta_mut().name = Some(backup.name_any());
            extension::deploy(&extensions, initial, Ask::Always, &self.config.clock, specify).await?;
        }
        Ok(None)
    }

    /// Deletes a backup's object in the seed; its extension may still need the credentials, so it gets those of now. Once it is gone, the
    /// Secret goes, and nothing is left but to take the finalizer away. Answers when to look again if it is not gone yet.
    async fn remove<K: Backup>(
        &self,
        api: &Api<K>,
        backup: &K,
        credentials: &Secret,
    ) -> Result<Option<Action>, Failed> {
        let (extensions, name) = (self.extensions::<K>(), backup.name_any());
        let secret = self.seed_secrets().read_opt(&backup.secret_name()).await?;
        let Some(object) = extensions.read_opt(&name).await? else {
            if secret.is_some() {
                patching::delete(&self.seed_secrets(), &backup.secret_name()).await?;
            }
            return Ok(None);
        };
        if secret.is_none_or(|secret| secret.data != credentials.data) {
            self.write_secret(backup, credentials, self.config.clock.now()).await?;
        }
        if object.meta().deletion_timestamp.is_none() {
            extension::delete(&extensions, &name, &self.config.clock).await?;
            return Ok(Some(Action::RequeueAfter(STILL_PRESENT)));
        }
        let Some(error) = object.last_error() else {
            return Ok(Some(Action::RequeueAfter(STILL_PRESENT)));
        };
        let told = LastError {
            description: K::KIND.deletion_failure_description(&error.description),
            ..error.clone()
        };
        self.fail(api, backup, told).await?;
        Err(Failed::Extension(error.description.clone()))
    }

    /// Tells in the status and by an event that something is wrong.
    async fn fail<K: Backup>(&self, api: &Api<K>, backup: &K, error: LastError) -> Result<K, Failed> {
        let reason = match backup.operation() {
            OperationType::Delete => "DeleteError",
            _ => "ReconcileError",
        };
        let about = object_reference(backup, &());
        let message = &error.description;
        self.recorder.publish(&about, Severity::Warning, reason, message).await;
        self.tell(api, backup, &State::Failed(error)).await
    }

    /// Tells in the status how it stands; what it says already it is not told again.
    async fn tell<K: Backup>(&self, api: &Api<K>, backup: &K, state: &State) -> Result<K, Failed> {
        let operation = backup.operation();
        let now = self.config.clock.time();
        let (name, progress, description) = match state {
            State::Pending(text) => ("Pending", 0, text.clone()),
            State::Processing => ("Processing", 0, K::KIND.start_description(operation)),
            State::Failed(error) => ("Error", 50, error.description.clone()),
            State::Succeeded => (SUCCEEDED, 100, K::KIND.success_description(operation)),
        };
        let told = last_operation(operation, name, progress, description, now);
        let (written, _) = patching::patch_status(api, backup, |backup| {
            let generation = backup.meta().generation;
            let status = backup.told();
            match state {
                State::Failed(error) => *status.last_error = Some(error.clone()),
                State::Succeeded => *status.last_error = None,
                State::Pending(_) | State::Processing => {}
            }
            let is_told = *status.observed_generation == generation
                && status.last_operation.as_ref().is_some_and(|last| is_same(last, &told));
            if !is_told {
                *status.observed_generation = generation;
                *status.last_operation = Some(told.clone());
            }
        })
        .await?;
        Ok(written)
    }
}
