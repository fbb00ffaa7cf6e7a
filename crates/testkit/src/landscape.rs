//! A whole landscape in memory and in virtual time: garden, one seed, all components. With feature `landscape`.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apis::core::v1beta1::Shoot;
use gardener_landscape::apply::{self, Manifest};
use gardener_landscape::landscape::seed_cluster;
use gardener_landscape::{Options, Storage, manifests};
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;

use crate::garden::NAMESPACE;

/// How much virtual time [`Landscape::until`] gives before it fails.
pub const PATIENCE: Duration = Duration::from_secs(3600);
/// How much virtual time passes between two looks of [`Landscape::until`].
const LOOK: Duration = Duration::from_secs(1);

/// A running landscape. Needs a paused runtime of one thread; its time starts with 2026.
pub struct Landscape {
    inner: gardener_landscape::Landscape,
    log: EventLog,
}

/// What happened to the shoots, in order.
#[derive(Clone)]
struct EventLog {
    lines: Arc<Mutex<Vec<String>>>,
    clock: Clock,
    start: Timestamp,
}

impl EventLog {
    fn tell(&self, what: &str) {
        let passed = self.clock.now().duration_since(self.start).as_millis();
        let line = format!("{:>6}.{:03} {what}", passed / 1000, passed % 1000);
        tracing::info!(target: "event_log", "{line}");
        self.lines.lock().push(line);
    }

    /// Follows the last operations of shoots.
    async fn shoots(self, garden: Client) {
        let mut seen = std::collections::BTreeMap::new();
        let shoots = Api::<Shoot>::all(garden);
        let mut changes = std::pin::pin!(watcher(shoots, watcher::Config::default()).default_backoff());
        while let Ok(Some(change)) = changes.try_next().await {
            match change {
                watcher::Event::Apply(shoot) | watcher::Event::InitApply(shoot) => {
                    let name = format!("{}/{}", shoot.namespace().unwrap_or_default(), shoot.name_any());
                    let Some(own) = &shoot.status.last_operation else {
                        continue;
                    };
                    let line = format!(
                        "shoot {name}: {} {} {}% {}",
                        own.r#type, own.state, own.progress, own.description
                    );
                    if seen.get(&name) != Some(&line) {
                        self.tell(&line);
                        seen.insert(name, line);
                    }
                }
                watcher::Event::Delete(shoot) => {
                    let name = format!("{}/{}", shoot.namespace().unwrap_or_default(), shoot.name_any());
                    seen.remove(&name);
                    self.tell(&format!("shoot {name}: gone"));
                }
                watcher::Event::Init | watcher::Event::InitDone => {}
            }
        }
    }

    /// Follows the Events of shoots.
    async fn events(self, garden: Client) {
        let events = Api::<Event>::all(garden);
        let mut changes = std::pin::pin!(
            watcher(events, watcher::Config::default())
                .default_backoff()
                .applied_objects()
        );
        while let Ok(Some(event)) = changes.try_next().await {
            let about = &event.involved_object;
            if about.kind.as_deref() == Some("Shoot") {
                self.tell(&format!(
                    "event {}/{}: {} {} {} (x{})",
                    about.namespace.as_deref().unwrap_or_default(),
                    about.name.as_deref().unwrap_or_default(),
                    event.type_.as_deref().unwrap_or_default(),
                    event.reason.as_deref().unwrap_or_default(),
                    event.message.as_deref().unwrap_or_default(),
                    event.count.unwrap_or(1),
                ));
            }
        }
    }
}

#[allow(clippy::unwrap_used, clippy::panic)] // memory does not refuse; waiting is an assertion
impl Landscape {
    /// Starts a landscape whose chance is fixed by `number`, with one seed, its CloudProfile and projects, and no shoot.
    pub async fn start(number: u64) -> Self {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(start);
        let inner = gardener_landscape::Landscape::open(Options {
            store: Storage::Memory.open().unwrap(),
            clock: clock.clone(),
            chance: Chance::seeded(number),
            entry: None,
            seeds: 1,
        })
        .await
        .unwrap();
        inner.run().await.unwrap();
        let log = EventLog {
            lines: Arc::default(),
            clock,
            start,
        };
        tokio::spawn(log.clone().shoots(inner.garden_client()));
        tokio::spawn(log.clone().events(inner.garden_client()));
        let landscape = Self { inner, log };
        for manifest in manifests::landscape(1) {
            landscape.apply(&manifest).await;
        }
        landscape
    }

    /// An administrator's client of the garden.
    pub fn garden(&self) -> Client {
        self.inner.garden_client()
    }

    /// The API server, for clients of other users than an administrator.
    pub fn server(&self) -> &gardener_apiserver::Server {
        &self.inner.server
    }

    /// An administrator's client of a seed.
    pub fn seed(&self, name: &str) -> Client {
        self.inner.client(&seed_cluster(name))
    }

    /// An administrator's client of a shoot.
    pub fn shoot(&self, technical_id: &str) -> Client {
        self.inner.client(technical_id)
    }

    /// Applies a manifest in the garden.
    pub async fn apply(&self, manifest: &Manifest) {
        if let Err(error) = apply::apply(&self.garden(), manifest).await {
            panic!("{error}");
        }
    }

    /// The virtual time.
    pub fn clock(&self) -> &Clock {
        &self.log.clock
    }

    /// Lets virtual time pass until `condition` answers with `Ok`; its `Err` says what there is instead.
    ///
    /// # Panics
    /// When [`PATIENCE`] is over, with what was seen last.
    pub async fn until<T, F, Fut>(&self, what: &str, mut condition: F) -> T
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, String>>,
    {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            match condition().await {
                Ok(found) => {
                    self.log.tell(&format!("story: {what}"));
                    return found;
                }
                Err(seen) if tokio::time::Instant::now() > deadline => {
                    let log = self.event_log();
                    let tail = log[log.len().saturating_sub(15)..].join("\n");
                    panic!("{what}: not after {PATIENCE:?} of virtual time; last seen: {seen}\n{tail}")
                }
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// Waits until the Shoot `local` of the project `local` is created.
    ///
    /// # Panics
    /// As [`Self::until`].
    pub async fn until_shoot_is_created(&self) {
        let shoots: Api<Shoot> = Api::namespaced(self.garden(), NAMESPACE);
        let created = || async {
            let shoot = shoots.get("local").await.map_err(|error| error.to_string())?;
            let last = shoot.status.last_operation.unwrap_or_default();
            (last.state == "Succeeded").then_some(()).ok_or(last.description)
        };
        self.until("the shoot is created", created).await;
    }

    /// What happened so far: each change of a Shoot's `status.lastOperation`, each Event about a Shoot, and each wait that ended, with the virtual
    /// time since the start in seconds.
    pub fn event_log(&self) -> Vec<String> {
        self.log.lines.lock().clone()
    }

    /// Ends everything.
    pub async fn stop(self) {
        self.inner.stop().await;
    }
}
