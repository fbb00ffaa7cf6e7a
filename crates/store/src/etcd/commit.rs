//! Changes as transactions of etcd, and what its answers say of them.

use std::sync::Arc;

use bytes::Bytes;

use super::client::CallError;
use super::mirror;
use super::{EtcdStore, wire};
use crate::write::Bounds;
use crate::{Change, CommitError, Committed, Entry, Expect, Key, Revision};

/// The largest request that etcd takes unless it is told otherwise.
const REQUEST_LIMIT: usize = 3 << 19;

fn op(request: wire::Request) -> wire::RequestOp {
    wire::RequestOp { request: Some(request) }
}

/// What must hold of a place for a change to happen; nothing if none.
fn compare(place: &[u8], change: &Change) -> Option<wire::Compare> {
    let (_, expect, value) = change.parts();
    let (result, revision) = match expect {
        Expect::Any if value.is_none() => (wire::CompareResult::Greater, 0),
        Expect::Any => return None,
        Expect::Absent => (wire::CompareResult::Equal, 0),
        Expect::Present => (wire::CompareResult::Greater, 0),
        Expect::Revision(revision) => (wire::CompareResult::Equal, revision),
    };
    Some(wire::Compare {
        result: result.into(),
        target: wire::CompareTarget::Mod.into(),
        key: place.to_vec(),
        target_union: Some(wire::TargetUnion::ModRevision(wire::signed(revision))),
    })
}

impl EtcdStore {
    /// Refuses what needs no question to etcd.
    fn check(&self, changes: &[Change]) -> Result<Vec<Vec<u8>>, CommitError> {
        let mut bounds = Bounds::new(self.max_value);
        let mut places = Vec::with_capacity(changes.len());
        for change in changes {
            bounds.check(change)?;
            let (key, ..) = change.parts();
            let place = self
                .mirror
                .format
                .layout
                .place(key)
                .ok_or_else(|| CommitError::Refused {
                    reason: format!("the layout has no place for {key}").into(),
                })?;
            places.push(place.into_bytes());
        }
        Ok(places)
    }

    /// Makes changes in one transaction. They are acknowledged when the index has them.
    pub(super) async fn transact(&self, changes: &[Change]) -> Result<Vec<Committed>, CommitError> {
        let places = self.check(changes)?;
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let set_back = self.mirror.check(0, 0);
        set_back.map_err(|reason| CommitError::Unreachable { reason })?;
        // gone and not there at once: no transaction can say that
        if let Some(Change::Delete { key, .. }) = changes.iter().find(|change| {
            matches!(
                change,
                Change::Delete {
                    expect: Expect::Absent,
                    ..
                }
            )
        }) {
            return Err(self.conflict(key).await);
        }
        let mut request = wire::TxnRequest::default();
        let mut lease = 0;
        for (place, change) in places.iter().zip(changes) {
            request.compare.extend(compare(place, change));
            match change {
                Change::Put { key, expect, .. } => {
                    let place_text = String::from_utf8_lossy(place);
                    let stored = change.sealed(&self.mirror.format.encryption, &*place_text)?;
                    let lives = self.mirror.format.layout.time_to_live(key);
                    let own = match lives {
                        Some(lives) => self
                            .leases
                            .take(&self.client, lives)
                            .await
                            .map_err(|error| failed(error, change))?,
                        None => 0,
                    };
                    lease = lease.max(own);
                    request.success.push(op(wire::Request::Put(wire::PutRequest {
                        key: place.clone(),
                        value: stored.unwrap_or_default(),
                        lease: own,
                    })));
                    if *expect != Expect::Absent {
                        // tells since when the key is there
                        request.success.push(op(wire::Request::Range(wire::RangeRequest {
                            key: place.clone(),
                            keys_only: true,
                            ..wire::RangeRequest::default()
                        })));
                    }
                }
                Change::Delete { .. } => {
                    request
                        .success
                        .push(op(wire::Request::DeleteRange(wire::DeleteRangeRequest {
                            key: place.clone(),
                            prev_kv: true,
                        })));
                }
            }
            request.failure.push(op(wire::Request::Range(wire::RangeRequest {
                key: place.clone(),
                keys_only: true,
                ..wire::RangeRequest::default()
            })));
        }
        let mut answered = self.client.txn(request.clone()).await;
        if let Err(CallError::Refused(reason)) = &answered
            && lease != 0
            && reason.contains("lease not found")
        {
            // nobody else ends leases, but an etcd that was restored may never have had it
            self.leases.forget(lease).await;
            let again = Box::pin(self.transact(changes)).await;
            return again;
        }
        let answer = match &mut answered {
            Ok(answer) => std::mem::take(answer),
            Err(error) => {
                let largest = changes
                    .iter()
                    .max_by_key(|change| change.parts().2.map_or(0, Bytes::len));
                return Err(largest.map_or(CommitError::Closed, |change| failed(error.clone(), change)));
            }
        };
        let revision = wire::revision(answer.header.as_ref());
        self.seen(revision).await?;
        if !answer.succeeded {
            return Err(self.refused(changes, &answer.responses).await);
        }
        Ok(self.committed(changes, revision, answer.responses))
    }

    /// Which of the changes etcd found not to hold, by what it read of their keys.
    async fn refused(&self, changes: &[Change], found: &[wire::ResponseOp]) -> CommitError {
        for (change, one) in changes.iter().zip(found) {
            let revision = match &one.response {
                Some(wire::Response::Range(range)) => range.kvs.first().map(|kv| wire::number(kv.mod_revision)),
                _ => None,
            };
            let (key, expect, value) = change.parts();
            if !expect.holds(revision) || (value.is_none() && revision.is_none()) {
                return CommitError::Conflict {
                    key: key.clone(),
                    current: self.mirror.index.get(key),
                };
            }
        }
        CommitError::Refused {
            reason: "etcd does not say which change it refuses".into(),
        }
    }

    async fn conflict(&self, key: &Key) -> CommitError {
        if let Err(behind) = self.newest().await {
            return CommitError::Unreachable { reason: behind.reason };
        }
        CommitError::Conflict {
            key: key.clone(),
            current: self.mirror.index.get(key),
        }
    }

    /// The entries that changes made.
    fn committed(&self, changes: &[Change], revision: Revision, answers: Vec<wire::ResponseOp>) -> Vec<Committed> {
        let mut answers = answers.into_iter().filter_map(|one| one.response);
        let mut all = Vec::with_capacity(changes.len());
        for change in changes {
            let entry = match change {
                Change::Put { key, expect, value } => {
                    let _put = answers.next();
                    let mut kv = wire::KeyValue {
                        create_revision: wire::signed(revision),
                        mod_revision: wire::signed(revision),
                        version: 1,
                        ..wire::KeyValue::default()
                    };
                    if *expect != Expect::Absent
                        && let Some(wire::Response::Range(range)) = answers.next()
                        && let Some(found) = range.kvs.into_iter().next()
                    {
                        kv = found;
                    }
                    self.entry(key, revision, || {
                        mirror::of(key.clone(), self.mirror.format.form, &kv, value)
                    })
                }
                Change::Delete { key, .. } => {
                    let mut kv = match answers.next() {
                        Some(wire::Response::DeleteRange(deleted)) => {
                            deleted.prev_kvs.into_iter().next().unwrap_or_default()
                        }
                        _ => wire::KeyValue::default(),
                    };
                    kv.mod_revision = wire::signed(revision);
                    self.mirror.format.last(key, kv)
                }
            };
            all.push(Committed { revision, entry });
        }
        all
    }

    /// The index's entry of a key at a revision, so that all readers share one; `make` where it has a newer one already.
    fn entry(&self, key: &Key, revision: Revision, make: impl FnOnce() -> Entry) -> Arc<Entry> {
        let found = self.mirror.index.get(key);
        found
            .filter(|entry| entry.mod_revision == revision)
            .unwrap_or_else(|| Arc::new(make()))
    }

    /// Waits until the index has seen a change of our own.
    async fn seen(&self, revision: Revision) -> Result<(), CommitError> {
        let Some(arrival) = self.mirror.arrival(revision) else {
            return Ok(());
        };
        match tokio::time::timeout(super::PATIENCE, super::follow::arrived(arrival, &self.progress)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(CommitError::Unknown {
                reason: self.mirror.lost().reason,
            }),
            Err(_) => Err(CommitError::Unknown {
                reason: "etcd made it, but did not tell of it in time".into(),
            }),
        }
    }
}

fn failed(error: CallError, change: &Change) -> CommitError {
    match error {
        CallError::NotDone(reason) => CommitError::Unreachable { reason },
        CallError::Unknown(reason) => CommitError::Unknown { reason },
        CallError::TooLarge => CommitError::TooLarge {
            key: change.parts().0.clone(),
            size: change.parts().2.map_or(0, Bytes::len),
            limit: REQUEST_LIMIT,
        },
        other => CommitError::Refused { reason: other.reason() },
    }
}
