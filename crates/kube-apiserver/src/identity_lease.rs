//! The Lease kube-system/apiserver-…, by which everybody can see which servers of a cluster live, and since when: each server renews its own, takes it
//! away when it ends, and takes away those of servers that ended without.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use gardener_apimachinery::clock::Clock;
use gardener_controller::apply;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use crate::write::write;

/// How long a server is believed to live after it was last seen; as upstream.
const SECONDS: i32 = 3600;
/// How often a server shows that it lives; as upstream.
const RENEWED: Duration = Duration::from_secs(10);
/// How often leases of servers that are gone are looked for; as upstream.
const COLLECTED: Duration = Duration::from_secs(3600);
/// How often a write is made anew when somebody else was faster.
const ATTEMPTS: usize = 5;
const COMPONENT: &str = "apiserver.kubernetes.io/identity";
const SERVER: &str = "kube-apiserver";

/// One server's lease.
pub(crate) struct IdentityLease {
    leases: Api<Lease>,
    clock: Clock,
    host: String,
    holder: String,
    /// Where other servers reach this one, as `<address>:<port>`.
    peer: String,
    /// Whether the server ends. Held while the lease is written, so that none is after that.
    ends: Mutex<bool>,
}

impl IdentityLease {
    /// The lease of a server of the machine named `host`. `life` tells this life of the server from others.
    pub(crate) fn new(client: Client, clock: Clock, host: String, life: &str, peer: String) -> Arc<Self> {
        Arc::new(Self {
            leases: Api::namespaced(client, "kube-system"),
            clock,
            holder: format!("{}_{life}", name(&host)),
            host,
            peer,
            ends: Mutex::new(false),
        })
    }

    /// Shows that the server lives, again and again. Does not end.
    pub(crate) async fn keep(&self) {
        // that of a life before leads nowhere
        self.remove().await;
        tokio::join!(self.keep_own(), self.collect());
    }

    async fn keep_own(&self) {
        loop {
            if let Err(error) = self.renew().await {
                tracing::warn!(%error, "this server cannot show that it lives");
            }
            tokio::time::sleep(RENEWED).await;
        }
    }

    async fn collect(&self) {
        loop {
            if let Err(error) = self.collect_once().await {
                tracing::warn!(%error, "leases of servers that are gone cannot be taken away");
            }
            tokio::time::sleep(COLLECTED).await;
        }
    }

    /// The server is about to end: its lease goes.
    pub(crate) async fn leave(&self) {
        *self.ends.lock().await = true;
        self.remove().await;
    }

    async fn remove(&self) {
        match self.leases.delete(&name(&self.host), &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => tracing::warn!(%error, "this server's lease cannot be taken away"),
        }
    }

    async fn renew(&self) -> Result<(), kube::Error> {
        let ends = self.ends.lock().await;
        if *ends {
            return Ok(());
        }
        let name = name(&self.host);
        let mut attempt = 1;
        loop {
            let found = self.leases.get_opt(&name).await?;
            let exists = found.is_some();
            match write(&self.leases, &name, exists, &self.renewed(found.unwrap_or_default())).await {
                // a server of the same machine was faster
                Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => attempt += 1,
                written => return written,
            }
        }
    }

    fn renewed(&self, mut lease: Lease) -> Lease {
        let labels = [(COMPONENT, SERVER), ("kubernetes.io/hostname", &self.host)];
        let annotations = [("kubernetes.io/peer-advertise-address", self.peer.as_str())];
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let metadata = &mut lease.metadata;
        metadata.name = Some(name(&self.host));
        metadata.labels.get_or_insert_default().extend(labels.map(owned));
        metadata
            .annotations
            .get_or_insert_default()
            .extend(annotations.map(owned));
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(self.holder.clone());
        spec.lease_duration_seconds = Some(SECONDS);
        spec.renew_time = Some(self.clock.micro_time());
        lease
    }

    async fn collect_once(&self) -> Result<(), kube::Error> {
        let those = ListParams::default().labels(&format!("{COMPONENT}={SERVER}"));
        for lease in self.leases.list(&those).await?.items {
            if !has_expired(lease.spec.as_ref(), &self.clock) {
                continue;
            }
            // it was renewed in the meantime, or another server was faster
            match apply::delete_locked(&self.leases, &lease).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The name that the server of a machine has: the same one in each of its lives.
pub(crate) fn name(host: &str) -> String {
    let mut hash = Sha256::new();
    for part in [host, SERVER] {
        hash.update(u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
        hash.update(part);
    }
    let hash = hash.finalize();
    let half = hash.first_chunk::<16>().map_or(&[][..], <[u8; 16]>::as_slice);
    format!("apiserver-{}", BASE32_NOPAD.encode(half).to_lowercase())
}

/// Whether a lease tells of a server that is gone. One that does not tell when it ends is none.
fn has_expired(spec: Option<&LeaseSpec>, clock: &Clock) -> bool {
    let told = spec.and_then(|spec| Some((spec.renew_time.as_ref()?, spec.lease_duration_seconds?)));
    told.is_none_or(|(renewed, seconds)| renewed.0.as_second() + i64::from(seconds) < clock.now().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    use gardener_testkit::seed::{Seed, pass};
    use kube::api::PostParams;
    use serde_json::json;

    #[test]
    fn a_machine_has_the_name_that_upstream_gives_it() {
        assert_eq!(name("vm"), "apiserver-wlv32tlttr4jl3gtroqexyxapa");
    }

    #[tokio::test(start_paused = true)]
    async fn servers_that_live_have_leases_and_others_have_none() {
        let seed = Seed::with_groups(&[]).await;
        let lease = |life| {
            IdentityLease::new(
                seed.client.clone(),
                seed.clock.clone(),
                "vm".to_owned(),
                life,
                "192.0.2.2:443".to_owned(),
            )
        };
        let leases: Api<Lease> = Api::namespaced(seed.client.clone(), "kube-system");
        let other = |name: &str, component: &str, renewed: &str| {
            serde_json::from_value(json!({
                "metadata": {"name": name, "labels": {COMPONENT: component}},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 3600, "renewTime": renewed},
            }))
            .unwrap()
        };
        let now = seed.clock.now();
        let ago = |seconds: i64| {
            format!(
                "{}.000000Z",
                &(now - k8s_openapi::jiff::Span::new().seconds(seconds)).to_string()[..19]
            )
        };
        for lease in [
            other("gone", SERVER, &ago(3700)),
            other("going", SERVER, &ago(3000)),
            other("another", "gardener-apiserver", &ago(3700)),
        ] {
            leases.create(&PostParams::default(), &lease).await.unwrap();
        }
        let names = async || {
            let found = leases.list(&ListParams::default()).await.unwrap();
            let mut names: Vec<_> = found
                .items
                .into_iter()
                .filter_map(|lease| lease.metadata.name)
                .collect();
            names.sort();
            names
        };
        let own = name("vm");
        let keeping = tokio::spawn({
            let first = lease("first");
            async move { first.keep().await }
        });
        pass(1).await;
        assert_eq!(names().await, ["another", &own, "going"]);
        let found = leases.get(&own).await.unwrap();
        let labels = found.metadata.labels.unwrap();
        assert_eq!(labels["kubernetes.io/hostname"], "vm");
        assert_eq!(labels[COMPONENT], SERVER);
        let spec = found.spec.unwrap();
        assert_eq!(spec.holder_identity, Some(format!("{own}_first")));
        pass(10).await;
        assert!(leases.get(&own).await.unwrap().spec.unwrap().renew_time > spec.renew_time);
        pass(3600).await;
        assert_eq!(names().await, ["another", &own]);
        // killed, and started again
        keeping.abort();
        let second = lease("second");
        let keeping = tokio::spawn({
            let second = Arc::clone(&second);
            async move { second.keep().await }
        });
        pass(1).await;
        let again = leases.get(&own).await.unwrap();
        assert_ne!(again.metadata.uid, found.metadata.uid);
        assert_eq!(again.spec.unwrap().holder_identity, Some(format!("{own}_second")));
        second.leave().await;
        pass(20).await;
        assert_eq!(names().await, ["another"]);
        keeping.abort();
    }
}
