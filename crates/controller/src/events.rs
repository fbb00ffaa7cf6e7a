//! Writes core/v1 Events about objects, counting repeated ones instead of writing them anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::clock::Clock;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::json;

use crate::apply::is_not_found;

/// How an event is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something happened.
    Normal,
    /// Something needs attention.
    Warning,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// What makes two events the same: object, severity, reason, message.
type Same = (String, String, String, String, Severity, String, String);

/// How many different events are remembered for counting.
const REMEMBERED: usize = 4096;

#[derive(Default)]
struct Memory {
    known: BTreeMap<Same, Known>,
    /// The least recently used first.
    used: BTreeMap<u64, Same>,
    uses: u64,
}

#[derive(Clone)]
struct Known {
    name: String,
    count: i32,
    used: u64,
}

impl Memory {
    /// The event's name and how often it happened, including now.
    fn count(&mut self, same: &Same, fresh: impl FnOnce(u64) -> String) -> Known {
        self.uses += 1;
        let used = self.uses;
        let known = match self.known.remove(same) {
            Some(known) => {
                self.used.remove(&known.used);
                Known {
                    count: known.count.saturating_add(1),
                    used,
                    ..known
                }
            }
            None => Known {
                name: fresh(used),
                count: 1,
                used,
            },
        };
        self.used.insert(used, same.clone());
        self.known.insert(same.clone(), known.clone());
        while self.known.len() > REMEMBERED
            && let Some((_, oldest)) = self.used.pop_first()
        {
            self.known.remove(&oldest);
        }
        known
    }

    fn forget(&mut self, same: &Same) {
        if let Some(known) = self.known.remove(same) {
            self.used.remove(&known.used);
        }
    }
}

/// Writes events of one component. Clones share what they counted.
#[derive(Clone)]
pub struct Recorder {
    client: Client,
    clock: Clock,
    component: Arc<str>,
    memory: Arc<Mutex<Memory>>,
}

impl Recorder {
    /// A recorder of a component such as `shoot-controller`.
    pub fn new(client: Client, clock: Clock, component: impl Into<Arc<str>>) -> Self {
        Self {
            client,
            clock,
            component: component.into(),
            memory: Arc::default(),
        }
    }

    /// Writes an event about an object (see [`crate::reference::object_reference`]). Failures are logged only: no reconcile should
    /// fail for an event.
    pub async fn publish(&self, about: &ObjectReference, severity: Severity, reason: &str, message: &str) {
        if let Err(error) = self.write(about, severity, reason, message).await {
            tracing::debug!(?about, reason, %error, "cannot write an event");
        }
    }

    async fn write(
        &self,
        about: &ObjectReference,
        severity: Severity,
        reason: &str,
        message: &str,
    ) -> Result<(), kube::Error> {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let namespace = match text(&about.namespace) {
            namespace if namespace.is_empty() => "default".to_owned(),
            namespace => namespace,
        };
        let same = (
            text(&about.kind),
            text(&about.namespace),
            text(&about.name),
            text(&about.uid),
            severity,
            reason.to_owned(),
            message.to_owned(),
        );
        let now = self.clock.now();
        let fresh = |number: u64| {
            // The number and the component keep apart what happens in one nanosecond of a paused clock.
            let own = self
                .component
                .bytes()
                .fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
            let nanos = now.as_nanosecond().unsigned_abs() + u128::from(number) + (u128::from(own) << 8);
            format!("{}.{nanos:x}", text(&about.name))
        };
        let events: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let mut known = self.memory.lock().count(&same, fresh);
        if known.count > 1 {
            let patch = json!({"count": known.count, "lastTimestamp": self.clock.time()});
            let patched = events
                .patch(&known.name, &PatchParams::default(), &Patch::Merge(patch))
                .await;
            match patched {
                // It expired: the count starts anew.
                Err(error) if is_not_found(&error) => {
                    let mut memory = self.memory.lock();
                    memory.forget(&same);
                    known = memory.count(&same, fresh);
                }
                other => return other.map(|_| ()),
            }
        }
        let event = Event {
            metadata: ObjectMeta {
                name: Some(known.name),
                namespace: Some(namespace),
                ..ObjectMeta::default()
            },
            involved_object: about.clone(),
            type_: Some(severity.as_str().to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            count: Some(known.count),
            first_timestamp: Some(self.clock.time()),
            last_timestamp: Some(self.clock.time()),
            source: Some(EventSource {
                component: Some(self.component.to_string()),
                host: None,
            }),
            reporting_component: Some(self.component.to_string()),
            reporting_instance: Some(String::new()),
            ..Event::default()
        };
        events.create(&PostParams::default(), &event).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::jiff::Timestamp;
    use kube::api::ListParams;

    use super::*;
    use crate::fake::Fake;
    use crate::reference::object_reference;

    fn object(name: &str) -> ObjectReference {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.into());
        object.metadata.namespace = Some("n".into());
        object_reference(&object, &())
    }

    #[tokio::test(start_paused = true)]
    async fn repeated_events_are_counted() {
        let fake = Fake::new();
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let recorder = Recorder::new(fake.client(), clock, "shoot-controller");
        let (a, b) = (object("a"), object("b"));
        for about in [&a, &a, &b, &a] {
            recorder.publish(about, Severity::Warning, "ReconcileError", "no").await;
        }
        recorder.publish(&a, Severity::Warning, "ReconcileError", "other").await;
        let events: Api<Event> = Api::namespaced(fake.client(), "n");
        let list = events.list(&ListParams::default()).await.unwrap();
        let mut told: Vec<_> = list
            .items
            .iter()
            .map(|event| {
                let about = event.involved_object.name.as_deref().unwrap();
                (about, event.message.as_deref().unwrap(), event.count.unwrap())
            })
            .collect();
        told.sort_unstable();
        assert_eq!(told, [("a", "no", 3), ("a", "other", 1), ("b", "no", 1)]);

        let gone = list.items[0].metadata.name.clone().unwrap();
        fake.remove(&format!("/api/v1/namespaces/n/events/{gone}"));
        fake.writes();
        recorder.publish(&a, Severity::Warning, "ReconcileError", "no").await;
        assert_eq!(fake.writes().len(), 2, "the patch failed, then it was created");
    }

    #[test]
    fn memory_is_bounded_and_forgets_the_least_recently_used() {
        let same = |number: usize| -> Same {
            let empty = String::new;
            let reason = number.to_string();
            (empty(), empty(), empty(), empty(), Severity::Normal, reason, empty())
        };
        let mut memory = Memory::default();
        for number in 0..REMEMBERED {
            memory.count(&same(number), |_| "x".into());
        }
        assert_eq!(memory.count(&same(0), |_| "x".into()).count, 2);
        memory.count(&same(REMEMBERED), |_| "x".into());
        assert_eq!(memory.known.len(), REMEMBERED);
        assert_eq!(memory.used.len(), REMEMBERED);
        assert_eq!(memory.count(&same(0), |_| "x".into()).count, 3);
        assert_eq!(memory.count(&same(1), |_| "x".into()).count, 1);
    }
}
