//! From a kind to its resource in the target cluster, by discovery that is kept until a kind is missing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_controller::ObjectRef;
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{Discovery, Scope};
use kube::{Api, Client, api::DynamicObject};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How soon discovery may be asked again for a kind that was missing.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);

impl Mapping {
    /// Where an object of the kind is; a namespace does not count if the kind has none.
    pub(crate) fn place(&self, namespace: &str, name: &str) -> ObjectRef {
        ObjectRef::new(if self.namespaced { namespace } else { "" }, name)
    }
}

/// Knows the kinds of a cluster.
#[derive(Clone)]
pub(crate) struct Mapper {
    client: Client,
    known: Arc<Mutex<Option<Known>>>,
}

/// What a cluster said of its kinds.
struct Known {
    discovery: Discovery,
    /// When it was asked.
    asked: Instant,
    /// What was found in what it said: each kind is looked for again and again.
    found: HashMap<GroupVersionKind, Mapping>,
}

impl Known {
    fn find(&mut self, gvk: &GroupVersionKind) -> Option<Mapping> {
        if let Some(found) = self.found.get(gvk) {
            return Some(found.clone());
        }
        let (resource, capabilities) = self.discovery.resolve_gvk(gvk)?;
        let namespaced = capabilities.scope == Scope::Namespaced;
        let mapping = Mapping { resource, namespaced };
        self.found.insert(gvk.clone(), mapping.clone());
        Some(mapping)
    }
}

/// A kind and where its objects live.
#[derive(Clone)]
pub(crate) struct Mapping {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: bool,
}

impl Mapper {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            known: Arc::default(),
        }
    }

    /// The mapping of a kind; `None` when the cluster does not serve it.
    pub(crate) async fn find(&self, api_version: &str, kind: &str) -> Result<Option<Mapping>, kube::Error> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let mut known = self.known.lock().await;
        if let Some(known) = known.as_mut() {
            let found = known.find(&gvk);
            if found.is_some() || known.asked.elapsed() < REFRESH_INTERVAL {
                return Ok(found);
            }
        }
        let discovery = Discovery::new(self.client.clone()).run_aggregated().await?;
        let known = known.insert(Known {
            discovery,
            asked: Instant::now(),
            found: HashMap::new(),
        });
        Ok(known.find(&gvk))
    }

    /// The API of objects of a mapping in a namespace.
    pub(crate) fn api(&self, mapping: &Mapping, namespace: &str) -> Api<DynamicObject> {
        if mapping.namespaced {
            Api::namespaced_with(self.client.clone(), namespace, &mapping.resource)
        } else {
            Api::all_with(self.client.clone(), &mapping.resource)
        }
    }
}
