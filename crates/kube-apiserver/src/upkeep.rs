//! What kube-apiserver keeps up by itself: what servers behind it are told, the range of service addresses, the service `kubernetes`, and the addresses behind that service: those of
//! all servers that live. As upstream's servers, each tells in etcd that it does, so that ours and theirs know of each other.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_apiserver::kubernetes::layout::server_leases;
use gardener_apiserver::object;
use gardener_landscape::{kubernetes_service, token_tracking};
use gardener_store::{Change, CommitError, Expect, Key, ListOptions, Store};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort as SlicePort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client};
use serde_json::json;

use crate::CLUSTER;
use crate::announced;
use crate::flags::{CallerFlags, Flags};
use crate::write::write;

/// How often all is looked at again; as upstream.
const INTERVAL: Duration = Duration::from_secs(10);
/// How often a write is made anew when somebody else was faster.
const ATTEMPTS: usize = 5;
/// The service, its endpoints and its slice.
const NAME: &str = "kubernetes";

pub(crate) struct Upkeep {
    client: Client,
    store: Arc<dyn Store>,
    ranges: Vec<IpNet>,
    address: IpAddr,
    port: u16,
    endpoints: bool,
    callers: CallerFlags,
    clock: Clock,
}

impl Upkeep {
    pub(crate) fn new(client: Client, store: Arc<dyn Store>, flags: &Flags, clock: Clock) -> Self {
        Self {
            client,
            store,
            ranges: flags.service_cluster_ip_range.clone(),
            address: flags.serving.advertised(),
            port: flags.serving.port(),
            endpoints: flags.endpoint_reconciler_type != "none",
            callers: flags.callers.clone(),
            clock,
        }
    }

    /// Looks at everything once. What does not work now is tried again later.
    pub(crate) async fn once(&self) {
        let ranges: Vec<String> = self.ranges.iter().map(ToString::to_string).collect();
        if let Err(error) =
            kubernetes_service::provide(&self.client, &ranges, Some(self.port.into()), &self.clock).await
        {
            tracing::warn!(%error, "the service kubernetes cannot be kept up");
        }
        if let Err(error) = announced::provide(&self.client, &self.callers, &self.clock).await {
            tracing::warn!(%error, "servers behind this one cannot be told whom to believe");
        }
        token_tracking::provide(&self.client, &self.clock).await;
        // an address that only this machine has leads nobody else here
        if self.endpoints && !self.address.is_loopback() {
            self.reconcile(true).await;
        }
    }

    /// Looks at everything again and again. Does not end.
    pub(crate) async fn keep(&self) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.once().await;
        }
    }

    /// This server is about to end: its address goes.
    pub(crate) async fn leave(&self) {
        if self.endpoints {
            self.reconcile(false).await;
        }
    }

    /// Tells the other servers that this one lives, or that it ends, and gives the addresses of all that live.
    async fn alive(&self, present: bool) -> Result<BTreeSet<String>, CommitError> {
        let key = |address: &str| Key::new(server_leases(), format!("{CLUSTER}/{address}"));
        let own = self.address.to_string();
        let told = json!({
            "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "kubernetes", "namespace": "default"},
            "subsets": [{"addresses": [{"ip": own}]}],
        });
        let (key, expect) = (key(&own), Expect::Any);
        let change = match present {
            true => Change::Put {
                key,
                expect,
                value: object::encode(&told),
            },
            false => Change::Delete { key, expect },
        };
        match self.store.commit(change).await {
            // it was gone already
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        let listing = self
            .store
            .list(&server_leases(), &format!("{CLUSTER}/"), &ListOptions::default());
        let entries = listing.map(|listing| listing.entries).unwrap_or_default();
        let names = entries.iter().filter_map(|entry| entry.key.path.rsplit('/').next());
        Ok(names.map(str::to_owned).collect())
    }

    async fn reconcile(&self, present: bool) {
        let alive = match self.alive(present).await {
            Ok(alive) => alive,
            Err(error) => {
                tracing::warn!(%error, "the other servers cannot be told of this one");
                return;
            }
        };
        for _ in 0..ATTEMPTS {
            let done = async {
                self.reconcile_endpoints(&alive).await?;
                self.reconcile_slice(&alive).await
            };
            match done.await {
                Ok(()) => return,
                // another server was faster
                Err(kube::Error::Api(status)) if matches!(status.code, 409) => {}
                Err(error) => {
                    tracing::warn!(%error, "the endpoints of the service kubernetes cannot be kept up");
                    return;
                }
            }
        }
    }

    async fn reconcile_endpoints(&self, alive: &BTreeSet<String>) -> Result<(), kube::Error> {
        let api: Api<Endpoints> = Api::namespaced(self.client.clone(), "default");
        let found = api.get_opt(NAME).await?;
        let mut endpoints = found.clone().unwrap_or_default();
        let subsets = endpoints.subsets.iter().flatten();
        let addresses = subsets.flat_map(|subset| subset.addresses.iter().flatten().map(|address| address.ip.clone()));
        if addresses.collect::<BTreeSet<_>>() == *alive {
            return Ok(());
        }
        let port = EndpointPort {
            name: Some("https".into()),
            port: self.port.into(),
            protocol: Some("TCP".into()),
            ..EndpointPort::default()
        };
        let address = |ip| EndpointAddress {
            ip,
            ..EndpointAddress::default()
        };
        let subset = EndpointSubset {
            addresses: Some(alive.iter().cloned().map(address).collect()),
            ports: Some(vec![port]),
            ..EndpointSubset::default()
        };
        endpoints.subsets = (!alive.is_empty()).then(|| vec![subset]);
        // the slice is ours, too
        let label = ("endpointslice.kubernetes.io/skip-mirror".to_owned(), "true".to_owned());
        endpoints.metadata.name = Some(NAME.to_owned());
        endpoints.metadata.labels.get_or_insert_default().extend([label]);
        write(&api, NAME, found.is_some(), &endpoints).await
    }

    async fn reconcile_slice(&self, alive: &BTreeSet<String>) -> Result<(), kube::Error> {
        let api: Api<EndpointSlice> = Api::namespaced(self.client.clone(), "default");
        let found = api.get_opt(NAME).await?;
        let there = found.iter().flat_map(|slice| slice.endpoints.iter().flatten());
        let there = there.flat_map(|endpoint| endpoint.addresses.clone());
        if there.collect::<BTreeSet<_>>() == *alive {
            return Ok(());
        }
        let endpoint = |ip| Endpoint {
            addresses: vec![ip],
            conditions: Some(EndpointConditions {
                ready: Some(true),
                ..EndpointConditions::default()
            }),
            ..Endpoint::default()
        };
        let slice = EndpointSlice {
            address_type: if self.address.is_ipv4() { "IPv4" } else { "IPv6" }.to_owned(),
            endpoints: Some(alive.iter().cloned().map(endpoint).collect()),
            metadata: ObjectMeta {
                name: Some(NAME.to_owned()),
                labels: Some([("kubernetes.io/service-name".to_owned(), NAME.to_owned())].into()),
                resource_version: found.as_ref().and_then(|slice| slice.metadata.resource_version.clone()),
                ..ObjectMeta::default()
            },
            ports: Some(vec![SlicePort {
                name: Some("https".into()),
                port: Some(self.port.into()),
                protocol: Some("TCP".into()),
                ..SlicePort::default()
            }]),
        };
        write(&api, NAME, found.is_some(), &slice).await
    }
}
