//! Aggregation: versions of API groups that other servers serve, as APIServices of the cluster tell.
//!
//! [`backend`] knows the servers, [`proxy`] sends requests on, [`availability`] keeps the APIServices' conditions and what the servers tell of
//! their resources. Versions that are served here are in the registry; their APIServices have no service and lead nowhere.

mod availability;
mod backend;
mod connector;
mod local;
mod proxy;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use crate::cluster::LogicalCluster;
use crate::followed::Followed;
pub use availability::run;
pub(crate) use backend::{Backend, Backends};
pub(crate) use local::{LOCAL, group_priority};
pub(crate) use proxy::{Forwarded, Origin, forward};

/// What the API server shows to other servers: its certificate and key (PEM), by which they know that it speaks for its users.
#[derive(Clone, Debug)]
pub struct ProxyIdentity {
    /// Certificate chain.
    pub certificate: String,
    /// Key.
    pub key: String,
}

/// The servers behind one logical cluster.
#[derive(Default)]
pub struct Aggregation {
    backends: Mutex<Followed<Backends>>,
    identity: ArcSwapOption<ProxyIdentity>,
    /// What each server told of its resources, by `<group>/<version>`.
    told: Mutex<BTreeMap<String, Arc<Told>>>,
}

/// What a server told of the resources of one version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// The version as an element of aggregated discovery, as it was told last.
    pub(crate) discovery: Option<Value>,
    /// Whether the server told it when it was asked last.
    pub(crate) is_current: bool,
    /// The hash of its OpenAPI document, when there is one.
    pub(crate) openapi: Option<String>,
    /// That document.
    pub(crate) document: Option<Bytes>,
}

impl Aggregation {
    /// Shows this certificate to servers from now on.
    pub fn identify(&self, identity: ProxyIdentity) {
        self.identity.store(Some(Arc::new(identity)));
    }

    /// The servers of the cluster, as its APIServices tell them now.
    pub(crate) fn backends(&self, cluster: &LogicalCluster) -> Arc<Backends> {
        let kind = ("apiregistration.k8s.io", "apiservices");
        self.backends.lock().current(cluster, kind, Backends::of)
    }

    /// The server of a version, if another than this one serves it.
    pub(crate) fn backend(&self, cluster: &LogicalCluster, group: &str, version: &str) -> Option<Arc<Backend>> {
        self.backends(cluster).find(group, version)
    }

    /// What the server of a version told last.
    pub(crate) fn told(&self, group: &str, version: &str) -> Option<Arc<Told>> {
        self.told.lock().get(&format!("{group}/{version}")).cloned()
    }

    /// Keeps what the server of a version tells.
    pub(crate) fn tell(&self, backend: &Backend, told: Told) {
        let key = format!("{}/{}", backend.group, backend.version);
        self.told.lock().insert(key, Arc::new(told));
    }
}
