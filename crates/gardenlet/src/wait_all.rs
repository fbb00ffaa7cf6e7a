//! Waiting until all objects of a kind together are as wanted.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::StreamExt;
use gardener_controller::ObjectRef;
use gardener_controller::informer::Watched;
use gardener_controller::wait::Patience;
use kube::Api;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Waits until `check` is content with all objects of an API. It is asked at every change.
///
/// # Errors
/// The last reason of `check`, when the time is over.
pub async fn wait_for_all<K>(
    api: &Api<K>,
    patience: Patience,
    check: impl Fn(&[K]) -> Result<(), String>,
) -> Result<(), String>
where
    K: Watched,
    K::DynamicType: Clone,
{
    let deadline = Instant::now() + patience.timeout;
    let mut events = pin!(watcher(api.clone(), watcher::Config::default()));
    let mut known: BTreeMap<ObjectRef, K> = BTreeMap::new();
    let mut listed = false;
    let mut last = "nothing could be listed".to_owned();
    while let Ok(Some(event)) = timeout_at(deadline, events.next()).await {
        match event {
            Ok(Event::Init) => {
                known.clear();
                listed = false;
            }
            Ok(Event::InitDone) => listed = true,
            Ok(Event::InitApply(object) | Event::Apply(object)) => drop(known.insert(ObjectRef::of(&object), object)),
            Ok(Event::Delete(object)) => drop(known.remove(&ObjectRef::of(&object))),
            Err(error) => {
                last = error.to_string();
                let again = Instant::now() + std::time::Duration::from_secs(1);
                sleep_until(again.min(deadline)).await;
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
