//! The informers of a component: one of each kind, however many of its controllers follow it.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::Informer;
use crate::informer::Watched;

/// Informers that end together: with the token, or with the last handle on them. Clones are handles on the same.
#[derive(Clone)]
pub struct Informers {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    watching: watcher::Config,
    stop: CancellationToken,
    started: Mutex<Started>,
}

#[derive(Default)]
struct Started {
    by_kind: BTreeMap<TypeId, Box<dyn Any + Send + Sync>>,
    all: Vec<(String, Box<dyn Fn() -> bool + Send + Sync>)>,
}

impl Informers {
    /// No informers yet. Those that follow will watch as `watching` says.
    pub fn new(client: Client, watching: watcher::Config, stop: &CancellationToken) -> Self {
        Self {
            shared: Arc::new(Shared {
                client,
                watching,
                stop: stop.clone(),
                started: Mutex::default(),
            }),
        }
    }

    /// The informer of all objects of a kind; started when it is asked for first.
    pub fn of<K: Watched + Resource<DynamicType = ()>>(&self) -> Informer<K> {
        let mut started = self.shared.started.lock();
        let known = started.by_kind.get(&TypeId::of::<K>());
        if let Some(known) = known.and_then(|known| known.downcast_ref::<Informer<K>>()) {
            return known.clone();
        }
        let api: Api<K> = Api::all(self.shared.client.clone());
        let informer = Informer::start(api, self.shared.watching.clone(), &self.shared.stop);
        started.by_kind.insert(TypeId::of::<K>(), Box::new(informer.clone()));
        started.note(K::plural(&()).into_owned(), &informer);
        informer
    }

    /// An informer of its own, of the objects that `api` reaches and a label selector matches.
    pub fn selected<K: Watched + Resource<DynamicType = ()>>(&self, api: Api<K>, labels: &str) -> Informer<K> {
        let watching = self.shared.watching.clone().labels(labels);
        let informer = Informer::start(api, watching, &self.shared.stop);
        let name = format!("{} ({labels})", K::plural(&()));
        self.shared.started.lock().note(name, &informer);
        informer
    }

    /// Those whose first list is not complete.
    pub fn unsynced(&self) -> Vec<String> {
        let started = self.shared.started.lock();
        let unsynced = started.all.iter().filter(|(_, is_synced)| !is_synced());
        unsynced.map(|(name, _)| name.clone()).collect()
    }
}

impl Started {
    fn note<K: Watched>(&mut self, name: String, informer: &Informer<K>) {
        let informer = informer.clone();
        self.all.push((name, Box::new(move || informer.is_synced())));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::json;

    use super::*;
    use crate::fake::Fake;

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_followed_once() {
        let fake = Fake::new();
        fake.put("/api/v1/namespaces/n/configmaps/a", json!({}));
        let stop = CancellationToken::new();
        let informers = Informers::new(fake.client(), watcher::Config::default(), &stop);
        let (one, other) = (informers.of::<ConfigMap>(), informers.of::<ConfigMap>());
        let secrets = informers.selected::<Secret>(Api::all(fake.client()), "a=b");
        assert_eq!(informers.unsynced(), ["configmaps", "secrets (a=b)"]);
        one.synced().await;
        assert!(other.is_synced());
        secrets.synced().await;
        assert_eq!(informers.unsynced(), Vec::<String>::new());
    }
}
