//! Extension objects: deploying, waiting, deleting, as the contract wants it [EXT-20..25]. Not what their specs say.

use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_apis::core::v1beta1::{LastError, LastOperation};
use gardener_apis::extensions::v1alpha1 as extensions;
use gardener_controller::Read;
use gardener_controller::apply::{self, ApplyError, Writable};
use gardener_controller::informer::Watched;
use gardener_controller::operation;
use gardener_controller::wait::{Patience, Verdict, wait_for};
use gardener_flow::TaskError;
use gardener_rules::extension_readiness::{self, NotReady, Observed};
use kube::{Api, Resource};
use tokio::time::Instant;

/// What all extension objects have.
pub trait ExtensionObject: Writable + Watched + Resource<DynamicType = ()> {
    /// `status.lastError`.
    fn last_error(&self) -> Option<&LastError>;
    /// `status.lastOperation`.
    fn last_operation(&self) -> Option<&LastOperation>;
    /// `status.observedGeneration`.
    fn observed_generation(&self) -> i64;
}

macro_rules! extension_objects {
    ($($kind:ident),* $(,)?) => {$(
        impl ExtensionObject for extensions::$kind {
            fn last_error(&self) -> Option<&LastError> {
                self.status.last_error.as_ref()
            }
            fn last_operation(&self) -> Option<&LastOperation> {
                self.status.last_operation.as_ref()
            }
            fn observed_generation(&self) -> i64 {
                self.status.observed_generation.unwrap_or_default()
            }
        }
    )*};
}

extension_objects!(
    BackupBucket,
    BackupEntry,
    ContainerRuntime,
    ControlPlane,
    DNSRecord,
    Extension,
    Infrastructure,
    Network,
    OperatingSystemConfig,
    Worker,
);

/// How patient gardenlet is with a kind [EXT-23].
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    interval: Duration,
    severe: Duration,
    timeout: Duration,
}

impl Timing {
    const fn seconds(interval: u64, severe: u64, timeout: u64) -> Self {
        Self {
            interval: Duration::from_secs(interval),
            severe: Duration::from_secs(severe),
            timeout: Duration::from_secs(timeout),
        }
    }

    /// Infrastructure.
    pub const INFRASTRUCTURE: Self = Self::seconds(10, 180, 600);
    /// Worker and BackupEntry.
    pub const LONG: Self = Self::seconds(5, 30, 600);
    /// ControlPlane, Network, ContainerRuntime, OperatingSystemConfig, and Extension without a time of its own.
    pub const SHORT: Self = Self::seconds(5, 30, 180);
    /// DNSRecord.
    pub const DNS: Self = Self::seconds(5, 15, 120);

    /// The same with another timeout.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// Whether a deploy triggers the extension [EXT-24].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Always.
    Always,
    /// If the object is new, not at rest, or its spec changed.
    IfChanged,
    /// If the object is new or not at rest.
    IfNeeded,
}

fn observed<K: ExtensionObject>(object: &K) -> Observed<'_> {
    let annotation = |key: &str| object.annotations().get(key).map(String::as_str);
    Observed {
        generation: object.meta().generation.unwrap_or_default(),
        observed_generation: object.observed_generation(),
        operation: annotation(operation::OPERATION),
        timestamp: annotation(operation::TIMESTAMP),
        last_error: object.last_error(),
        last_operation: object.last_operation(),
    }
}

/// Whether an extension object is ready [EXT-20].
///
/// # Errors
/// Why not.
pub fn check<K: ExtensionObject>(object: &K) -> Result<(), NotReady> {
    extension_readiness::check(&observed(object))
}

/// Makes the object be as `specify` makes it, and asks its extension to work.
///
/// # Errors
/// What the API says.
pub async fn deploy<K: ExtensionObject>(
    api: &Api<K>,
    initial: K,
    ask: Ask,
    clock: &Clock,
    specify: impl Fn(&mut K),
) -> Result<K, ApplyError> {
    let current = api.read_opt(&initial.name_any()).await?;
    let asks = match (&current, ask) {
        (None, _) | (_, Ask::Always) => true,
        (Some(current), Ask::IfNeeded) => extension_readiness::must_be_asked_again(&observed(current)),
        (Some(current), Ask::IfChanged) => {
            let mut wanted = current.clone();
            specify(&mut wanted);
            apply::differ(current, &wanted)? || extension_readiness::must_be_asked_again(&observed(current))
        }
    };
    let now = clock.now();
    let deployed = apply::create_or_patch_from(api, current, initial, |object| {
        specify(object);
        if asks {
            operation::ask(object.annotations_mut(), operation::value::RECONCILE, now);
        }
    })
    .await?;
    Ok(deployed.0)
}

fn error(kind: &str, place: &str, reason: &NotReady) -> TaskError {
    let text = format!(
        "Error while waiting for {kind} {place} to become ready: {}",
        reason.message()
    );
    TaskError::new(text).with_codes(reason.codes().iter().cloned())
}

fn place<K: ExtensionObject>(api: &Api<K>, name: &str) -> String {
    match api.namespace() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

struct Reason(NotReady);

impl std::fmt::Display for Reason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.0.message())
    }
}

/// Waits until the object passes `check`; an error that the extension tells is tolerated for a time [EXT-21].
///
/// # Errors
/// The last check that failed, with the extension's codes.
pub async fn wait_until<K: ExtensionObject>(
    api: &Api<K>,
    name: &str,
    timing: Timing,
    check: impl Fn(&K) -> Result<(), NotReady> + Send,
) -> Result<K, TaskError> {
    let started = Instant::now();
    let patience = Patience {
        recheck: timing.interval,
        timeout: timing.timeout,
    };
    let judge = |found: Option<&K>| {
        let Some(object) = found else {
            return Verdict::Pending(Reason(NotReady::Waiting("object not found".to_owned())));
        };
        match check(object) {
            Ok(()) => Verdict::Ready(object.clone()),
            Err(reason @ NotReady::Error { .. }) if started.elapsed() > timing.severe => {
                Verdict::Hopeless(Reason(reason))
            }
            Err(reason) => Verdict::Pending(Reason(reason)),
        }
    };
    let waited = wait_for(api, name, patience, judge).await;
    waited.map_err(|failure| {
        let text = failure.to_string();
        let reason = failure.last().map_or(NotReady::Waiting(text), |reason| reason.0);
        error(&K::kind(&()), &place(api, name), &reason)
    })
}

/// Waits until the object is ready [EXT-20], [EXT-21].
///
/// # Errors
/// The last check that failed, with the extension's codes.
pub async fn wait_ready<K: ExtensionObject>(api: &Api<K>, name: &str, timing: Timing) -> Result<K, TaskError> {
    wait_until(api, name, timing, check).await
}

/// Deletes the object, with the confirmation that admission asks for [EXT-25].
///
/// # Errors
/// What the API says.
pub async fn delete<K: ExtensionObject>(api: &Api<K>, name: &str, clock: &Clock) -> Result<(), ApplyError> {
    let Some(current) = api.read_opt(name).await? else {
        return Ok(());
    };
    let now = clock.now();
    let confirmed = apply::patch(api, &current, |object| {
        operation::confirm_deletion(object.annotations_mut(), now);
    })
    .await;
    match confirmed {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    apply::delete(api, name).await?;
    Ok(())
}

/// Waits until the object is gone [EXT-22].
///
/// # Errors
/// It is still there; with the extension's error and codes.
pub async fn wait_gone<K: ExtensionObject>(api: &Api<K>, name: &str, timing: Timing) -> Result<(), TaskError> {
    let patience = Patience::of(timing.timeout);
    let (kind, place) = (K::kind(&()).into_owned(), place(api, name));
    let judge = |found: Option<&K>| match found {
        None => Verdict::Ready(()),
        Some(object) => {
            let (message, codes) = match object.last_error() {
                Some(error) => (error.description.clone(), error.codes.clone()),
                None => (String::new(), Vec::new()),
            };
            let message = if message.is_empty() {
                format!("{kind} {place} is still present")
            } else {
                format!("{kind} {place} is still present, last observed error: {message}")
            };
            Verdict::Pending(Reason(NotReady::Error { message, codes }))
        }
    };
    let waited = wait_for(api, name, patience, judge).await;
    waited.map_err(|failure| {
        let text = failure.to_string();
        let codes = failure.last().map(|reason| reason.0.codes().to_vec());
        TaskError::new(format!("Failed to delete {kind} {place}: {text}")).with_codes(codes.unwrap_or_default())
    })
}
