//! What etcd wants done now and then: leases for keys that end by themselves, and cutting its history.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::client::{CallError, Client};
use super::wire;
use crate::Revision;

/// How long a lease is given to more keys at most; and at most this part of its keys' life.
const REUSE: (Duration, u32) = (Duration::from_secs(60), 20);
/// How many keys one lease takes.
const KEYS_PER_LEASE: u32 = 1000;

/// The lease that new keys of one life span get.
#[derive(Clone, Copy, Debug)]
struct Lease {
    id: i64,
    ends: Instant,
    keys: u32,
}

/// The leases in use, by the time that their keys live.
#[derive(Debug, Default)]
pub(super) struct Leases {
    current: tokio::sync::Mutex<BTreeMap<Duration, Lease>>,
}

impl Leases {
    /// A lease under which a key lives at least `lives`, and not much longer. Leases are dear, so keys share them.
    pub(super) async fn take(&self, client: &Client, lives: Duration) -> Result<i64, CallError> {
        let mut current = self.current.lock().await;
        let now = Instant::now();
        if let Some(lease) = current.get_mut(&lives)
            && now + lives <= lease.ends
            && lease.keys < KEYS_PER_LEASE
        {
            lease.keys += 1;
            return Ok(lease.id);
        }
        let granted = lives + REUSE.0.min(lives / REUSE.1);
        let id = client.grant(granted).await?;
        let lease = Lease {
            id,
            ends: now + granted,
            keys: 1,
        };
        current.insert(lives, lease);
        Ok(id)
    }

    /// etcd does not know a lease any more.
    pub(super) async fn forget(&self, id: i64) {
        self.current.lock().await.retain(|_, lease| lease.id != id);
    }
}

/// The key by which servers agree who cuts history, as kube-apiserver has it: its version counts the times, its value is the revision of the last.
const COMPACTION_KEY: &[u8] = b"compact_rev_key";

/// Cuts the history of etcd again and again behind where it was one interval ago.
pub(super) async fn compact(client: Arc<Client>, interval: Duration) {
    let (mut times, mut revision) = (0, 0);
    loop {
        sleep(interval).await;
        match compact_once(&client, times, revision).await {
            Ok(now) => (times, revision) = now,
            Err(error) => tracing::warn!(reason = &*error.reason(), "etcd's history could not be cut"),
        }
    }
}

/// Cuts at `revision`, if nobody else has done so since the version of the key was `times`. Gives the version and the revision for the next time.
pub(super) async fn compact_once(
    client: &Client,
    times: i64,
    revision: Revision,
) -> Result<(i64, Revision), CallError> {
    let compare = wire::Compare {
        result: wire::CompareResult::Equal.into(),
        target: wire::CompareTarget::Version.into(),
        key: COMPACTION_KEY.to_vec(),
        target_union: Some(wire::TargetUnion::Version(times)),
    };
    let put = wire::PutRequest {
        key: COMPACTION_KEY.to_vec(),
        value: Bytes::from(revision.to_string()),
        lease: 0,
    };
    let get = wire::RangeRequest {
        key: COMPACTION_KEY.to_vec(),
        ..wire::RangeRequest::default()
    };
    let op = |request| wire::RequestOp { request: Some(request) };
    let answer = client
        .txn(wire::TxnRequest {
            compare: vec![compare],
            success: vec![op(wire::Request::Put(put))],
            failure: vec![op(wire::Request::Range(get))],
        })
        .await?;
    let now = wire::revision(answer.header.as_ref());
    if !answer.succeeded {
        let found = answer.responses.into_iter().find_map(|one| match one.response {
            Some(wire::Response::Range(range)) => range.kvs.into_iter().next(),
            _ => None,
        });
        return Ok((found.map_or(0, |kv| kv.version), now));
    }
    if revision > 0 {
        client.compact(revision).await?;
        tracing::debug!(revision, "etcd's history was cut");
    }
    Ok((times + 1, now))
}
