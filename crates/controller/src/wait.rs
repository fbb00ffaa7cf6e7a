//! Waiting until one object, or all of a kind together, are as wanted, or gone.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use kube::Api;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout_at};

use crate::ObjectRef;
use crate::informer::Watched;
use crate::queue::RateLimit;
use crate::raw::Raw;

/// How patient a wait is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How often the object is judged anew although nothing happened to it; for judgements that depend on time.
    pub recheck: Duration,
    /// When to give up.
    pub timeout: Duration,
}

impl Patience {
    /// Waits so long, and judges anew only when something happens: for judgements that do not depend on time.
    pub const fn of(timeout: Duration) -> Self {
        Self {
            recheck: timeout,
            timeout,
        }
    }
}

/// How long an API that refuses is left alone.
const PAUSES: RateLimit = RateLimit {
    base: Duration::from_millis(50),
    max: Duration::from_secs(5),
};

/// A judgement on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<T, E> {
    /// It is as wanted.
    Ready(T),
    /// Not yet, for this reason.
    Pending(E),
    /// It will never be, for this reason.
    Hopeless(E),
}

/// Why a wait ended without success. Carries what the judge last said, if it said anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError<E: std::fmt::Display> {
    /// The time is over.
    #[error("{}", match last { Some(last) => last.to_string(), None => format!("nothing was seen of it: {trouble}") })]
    Timeout {
        /// The last reason for waiting; none if the object could never be read.
        last: Option<E>,
        /// Why the object could not be read; empty if it could.
        trouble: String,
    },
    /// The judge gave up.
    #[error("{0}")]
    Hopeless(E),
}

impl<E: std::fmt::Display> WaitError<E> {
    /// What the judge last said.
    pub fn last(self) -> Option<E> {
        match self {
            Self::Timeout { last, .. } => last,
            Self::Hopeless(last) => Some(last),
        }
    }
}

/// Waits until `judge` is content with the object called `name` (none: it is not there). It is asked at every change of the
/// object and every `patience.recheck`.
///
/// # Errors
/// [`WaitError`] with the judge's last word.
pub async fn wait_for<K: Watched, T, E: std::fmt::Display>(
    api: &Api<K>,
    name: &str,
    patience: Patience,
    mut judge: impl FnMut(Option<&K>) -> Verdict<T, E>,
) -> Result<T, WaitError<E>> {
    let deadline = Instant::now() + patience.timeout;
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = pin!(watcher(Raw::api(api.clone()), config));
    // A period of zero is no period.
    let period = patience.recheck.max(Duration::from_millis(1));
    let mut recheck = interval_at(Instant::now() + period, period);
    recheck.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen: Option<Option<K>> = None;
    let mut listed: Result<Option<K>, serde_json::Error> = Ok(None);
    let mut last = None;
    let mut trouble = String::new();
    let mut again = Instant::now();
    let mut refusals = 0;
    loop {
        let changed = tokio::select! {
            biased;
            event = async { sleep_until(again).await; events.next().await } => match event {
                Some(Ok(event)) => {
                    // `Init` only says that a list is tried.
                    if !matches!(event, Event::Init) {
                        trouble.clear();
                        refusals = 0;
                    }
                    let now = match event {
                        Event::Init => { listed = Ok(None); None }
                        Event::InitApply(object) => { listed = object.read().map(Some); None }
                        Event::InitDone => Some(std::mem::replace(&mut listed, Ok(None))),
                        Event::Apply(object) => Some(object.read().map(Some)),
                        Event::Delete(_) => Some(Ok(None)),
                    };
                    match now {
                        None => false,
                        Some(Ok(object)) => { seen = Some(object); true }
                        Some(Err(error)) => { trouble = error.to_string(); seen = None; false }
                    }
                }
                Some(Err(error)) => {
                    trouble = error.to_string();
                    again = Instant::now() + PAUSES.delay(refusals);
                    refusals += 1;
                    false
                }
                None => { again = deadline; false }
            },
            _ = recheck.tick() => true,
            () = sleep_until(deadline) => return Err(WaitError::Timeout { last, trouble }),
        };
        if let (true, Some(object)) = (changed, &seen) {
            match judge(object.as_ref()) {
                Verdict::Ready(found) => return Ok(found),
                Verdict::Pending(reason) => last = Some(reason),
                Verdict::Hopeless(reason) => return Err(WaitError::Hopeless(reason)),
            }
        }
    }
}

/// Waits until `check` is content with all objects of an API together. It is asked at every change.
///
/// # Errors
/// The last reason of `check`, or why nothing could be listed, when the time is over.
pub async fn wait_for_all<K: Watched>(
    api: &Api<K>,
    patience: Patience,
    check: impl Fn(&[K]) -> Result<(), String>,
) -> Result<(), String> {
    wait_for_selected(api, watcher::Config::default(), patience, check).await
}

/// Waits until `check` is content with those objects of an API together that are `selected`. It is asked at every change.
///
/// # Errors
/// As [`wait_for_all`].
pub async fn wait_for_selected<K: Watched>(
    api: &Api<K>,
    selected: watcher::Config,
    patience: Patience,
    check: impl Fn(&[K]) -> Result<(), String>,
) -> Result<(), String> {
    let deadline = Instant::now() + patience.timeout;
    let mut events = pin!(watcher(Raw::api(api.clone()), selected));
    let mut known: BTreeMap<ObjectRef, K> = BTreeMap::new();
    let mut listed = false;
    let mut last = "nothing could be listed".to_owned();
    let mut refusals = 0;
    while let Ok(Some(event)) = timeout_at(deadline, events.next()).await {
        match event {
            Ok(Event::Init) => {
                known.clear();
                listed = false;
            }
            Ok(Event::InitDone) => {
                listed = true;
                refusals = 0;
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => match object.read() {
                Ok(read) => drop(known.insert(ObjectRef::of(&object), read)),
                Err(error) => return Err(format!("{} cannot be read: {error}", ObjectRef::of(&object))),
            },
            Ok(Event::Delete(object)) => drop(known.remove(&ObjectRef::of(&object))),
            Err(error) => {
                last = error.to_string();
                sleep_until(deadline.min(Instant::now() + PAUSES.delay(refusals))).await;
                refusals += 1;
            }
        }
        if listed {
            let all: Vec<K> = known.values().cloned().collect();
            match check(&all) {
                Ok(()) => return Ok(()),
                Err(why) => last = why,
            }
        }
    }
    Err(last)
}

/// Waits until the object called `name` is gone.
///
/// # Errors
/// [`WaitError::Timeout`]: it is still there.
pub async fn wait_deleted<K: Watched>(api: &Api<K>, name: &str, patience: Patience) -> Result<(), WaitError<String>> {
    wait_for(api, name, patience, |object| match object {
        None => Verdict::Ready(()),
        Some(object) => {
            let finalizers = object.finalizers().join(", ");
            Verdict::Pending(format!("{name} is still present, finalizers: [{finalizers}]"))
        }
    })
    .await
}

#[cfg(test)]
mod tests;
