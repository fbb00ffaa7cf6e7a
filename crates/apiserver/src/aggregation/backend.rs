//! The servers that APIServices lead to.

use std::cmp::Reverse;
use std::sync::Arc;

use gardener_schema::openapi;
use gardener_store::Entry;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use tokio::sync::OnceCell;

use super::ProxyIdentity;
use super::connector::{self, HttpClient};
use crate::discovery::version_rank;
use crate::egress::Egress;
use crate::object;
use crate::webhooks::ServiceReference;

/// All servers behind a cluster.
#[derive(Default)]
pub(crate) struct Backends {
    all: Vec<Arc<Backend>>,
}

/// The server of one version of a group.
pub(crate) struct Backend {
    /// Name of the APIService.
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) service: ServiceReference,
    /// Whether the last look found it working.
    pub(crate) available: bool,
    /// Place of its group and of its version among others; higher comes first.
    pub(crate) priority: (i32, i32),
    ca_bundle: Vec<u8>,
    insecure: bool,
    client: OnceCell<Result<HttpClient, String>>,
}

impl Backends {
    pub(super) fn of(entries: &[Arc<Entry>]) -> Self {
        let mut all: Vec<Arc<Backend>> = entries
            .iter()
            .filter_map(|entry| object::parse::<APIService>(entry))
            .filter_map(Backend::of)
            .map(Arc::new)
            .collect();
        // groups in the order of their names where nobody says otherwise; the better version of a group first
        all.sort_by_cached_key(|backend| {
            let (of_group, of_version) = backend.priority;
            let (group, version) = (backend.group.clone(), backend.version.clone());
            let rank = version_rank(&version);
            (Reverse(of_group), group, Reverse(of_version), Reverse(rank), version)
        });
        Self { all }
    }

    /// The server of a version.
    pub(crate) fn find(&self, group: &str, version: &str) -> Option<Arc<Backend>> {
        self.iter()
            .find(|backend| backend.group == group && backend.version == version)
            .cloned()
    }

    /// All of them, the preferred first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.all.iter()
    }
}

impl Backend {
    fn of(found: APIService) -> Option<Self> {
        let spec = found.spec?;
        let service = spec.service?;
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        Some(Self {
            name: found.metadata.name.unwrap_or_default(),
            group: spec.group.unwrap_or_default(),
            version: spec.version.unwrap_or_default(),
            service: ServiceReference {
                namespace: service.namespace.unwrap_or_default(),
                name: service.name.unwrap_or_default(),
                path: String::new(),
                port: service.port.and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
            },
            available: conditions
                .iter()
                .any(|condition| condition.type_ == "Available" && condition.status == "True"),
            priority: (spec.group_priority_minimum, spec.version_priority),
            ca_bundle: spec.ca_bundle.map(|bundle| bundle.0).unwrap_or_default(),
            insecure: spec.insecure_skip_tls_verify.unwrap_or(false),
            client: OnceCell::new(),
        })
    }

    /// The path under which the version is.
    pub(crate) fn path(&self) -> String {
        openapi::base_path(&self.group, &self.version)
    }

    /// The way to the server; connections are kept.
    pub(super) async fn client(
        &self,
        identity: Option<&ProxyIdentity>,
        egress: &Arc<Egress>,
    ) -> Result<&HttpClient, String> {
        let made = self
            .client
            .get_or_init(|| async {
                connector::client(
                    &self.service.host(),
                    &self.ca_bundle,
                    self.insecure,
                    identity,
                    Arc::clone(egress),
                )
                .await
            })
            .await;
        made.as_ref().map_err(Clone::clone)
    }
}
