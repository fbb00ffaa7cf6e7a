//! From a kind to its resource in the target cluster, by discovery that is kept until a kind is missing.

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
    known: Arc<Mutex<Option<(Discovery, Instant)>>>,
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
        if let Some((discovery, asked)) = known.as_ref() {
            let found = resolve(discovery, &gvk);
            if found.is_some() || asked.elapsed() < REFRESH_INTERVAL {
                return Ok(found);
            }
        }
        let discovery = Discovery::new(self.client.clone()).run_aggregated().await?;
        let found = resolve(&discovery, &gvk);
        *known = Some((discovery, Instant::now()));
        Ok(found)
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

fn resolve(discovery: &Discovery, gvk: &GroupVersionKind) -> Option<Mapping> {
    let (resource, capabilities) = discovery.resolve_gvk(gvk)?;
    Some(Mapping {
        resource,
        namespaced: capabilities.scope == Scope::Namespaced,
    })
}
