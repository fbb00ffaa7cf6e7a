//! The watch that keeps the index up to date, and the readers who want it to be.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tonic::codec::Streaming;

use super::client::{CallError, Client, classify};
use super::mirror::{self, Mirror, range_end};
use super::wire;
use crate::{Behind, Revision};

/// How long until a watch that ended is begun anew; doubled each time that it fails, up to the second.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// How long changes may be on their way before etcd is asked how far the watch is, and then asked again.
const ON_THE_WAY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(20));

/// Follows etcd for ever.
pub(super) struct Follower {
    pub(super) client: Arc<Client>,
    pub(super) mirror: Arc<Mirror>,
    pub(super) progress: Arc<Notify>,
}

/// Why a watch ended.
enum End {
    /// Begin anew where it was.
    Broken(Arc<str>),
    /// What was told cannot be followed change by change: all has to be read anew.
    Anew(Arc<str>),
}

impl Follower {
    pub(super) async fn run(self) {
        let mut wait = RETRY.0;
        loop {
            let before = self.mirror.index.revision();
            let end = self.watch().await;
            if self.mirror.index.revision() > before {
                wait = RETRY.0;
            }
            match end {
                End::Broken(reason) => {
                    tracing::warn!(reason = &*reason, "the watch on etcd ended and begins anew");
                    sleep(wait).await;
                    wait = (wait * 2).min(RETRY.1);
                }
                End::Anew(why) => match mirror::read(&self.client, &self.mirror.format, None).await {
                    Ok(image) => {
                        tracing::warn!(revision = image.revision, why = &*why, "all of etcd was read anew");
                        self.mirror.replace(image);
                    }
                    Err(error) => {
                        let reason = error.reason();
                        tracing::error!(reason = &*reason, "etcd cannot be read anew");
                        if matches!(error, CallError::Encrypted(..)) {
                            self.mirror.shut(reason);
                        }
                        sleep(wait).await;
                        wait = (wait * 2).min(RETRY.1);
                    }
                },
            }
        }
    }

    async fn watch(&self) -> End {
        let (requests, sent) = mpsc::unbounded_channel();
        let start = self.mirror.index.revision() + 1;
        let prefix = self.mirror.format.layout.prefix().as_bytes();
        let create = wire::WatchCreateRequest {
            key: prefix.to_vec(),
            range_end: range_end(prefix),
            start_revision: wire::signed(start),
            progress_notify: true,
            fragment: true,
        };
        let union = Some(wire::WatchUnion::Create(create));
        // the receiver lives
        requests.send(wire::WatchRequest { union }).ok();
        match self.client.watch(sent).await {
            Ok((member, stream)) => {
                let end = self.read(stream, &requests).await;
                if matches!(end, End::Broken(_)) {
                    self.client.leave(member);
                }
                end
            }
            Err(error) => End::Broken(error.reason()),
        }
    }

    async fn read(
        &self,
        mut stream: Streaming<wire::WatchResponse>,
        requests: &mpsc::UnboundedSender<wire::WatchRequest>,
    ) -> End {
        // what came of a revision that comes in several pieces
        let mut pieces: Vec<wire::WatchEvent> = Vec::new();
        loop {
            let message = tokio::select! {
                biased;
                message = stream.message() => message,
                () = self.progress.notified() => {
                    let union = Some(wire::WatchUnion::Progress(wire::WatchProgressRequest {}));
                    requests.send(wire::WatchRequest { union }).ok();
                    continue;
                }
            };
            let response = match message {
                Ok(Some(response)) => response,
                Ok(None) => return End::Broken("etcd ended it".into()),
                Err(status) => return End::Broken(classify(&status).reason()),
            };
            if response.compact_revision != 0 {
                return End::Anew("its history was cut behind us".into());
            }
            if response.canceled {
                return End::Broken(response.cancel_reason.into());
            }
            if response.created {
                let now = wire::revision(response.header.as_ref());
                if let Err(reason) = self.mirror.not_set_back(self.mirror.index.revision(), now) {
                    return End::Broken(reason);
                }
                continue;
            }
            if response.events.is_empty() && pieces.is_empty() {
                self.mirror.advance(wire::revision(response.header.as_ref()));
                continue;
            }
            pieces.extend(response.events);
            if !response.fragment
                && let Err(error) = self.mirror.take(&std::mem::take(&mut pieces))
            {
                return End::Anew(error.reason());
            }
        }
    }
}

/// A reader who waits for the index to be as new as etcd was when the reader came.
pub(super) type Reader = oneshot::Sender<Result<(), Behind>>;

/// Asks etcd for all readers who wait how far it is, and tells them when the index is there. All that come while one question is under way share
/// the next one.
pub(super) async fn serve_readers(
    client: Arc<Client>,
    mirror: Arc<Mirror>,
    progress: Arc<Notify>,
    mut readers: mpsc::UnboundedReceiver<Reader>,
) {
    while let Some(first) = readers.recv().await {
        let mut waiting = vec![first];
        while let Ok(next) = readers.try_recv() {
            waiting.push(next);
        }
        let before = mirror.index.revision();
        let newest = newest(&client, &*mirror.format.layout)
            .await
            .map_err(|error| error.reason());
        let newest = newest.and_then(|revision| mirror.check(before, revision).map(|()| revision));
        match newest {
            Ok(revision) => {
                let (mirror, progress) = (Arc::clone(&mirror), Arc::clone(&progress));
                match mirror.arrival(revision) {
                    None => tell(waiting, &Ok(())),
                    Some(arrival) => drop(tokio::spawn(async move {
                        let told = match arrived(arrival, &progress).await {
                            true => Ok(()),
                            false => Err(mirror.lost()),
                        };
                        tell(waiting, &told);
                    })),
                }
            }
            Err(reason) => tell(waiting, &Err(Behind { reason })),
        }
    }
}

/// Tells all who wait the same. Who no longer waits need not be told.
fn tell(waiting: Vec<Reader>, told: &Result<(), Behind>) {
    for reader in waiting {
        reader.send(told.clone()).ok();
    }
}

/// The revision that etcd as a whole has reached: a read that all members agree on.
pub(super) async fn newest(client: &Client, layout: &dyn super::Layout) -> Result<Revision, CallError> {
    let request = wire::RangeRequest {
        key: layout.prefix().as_bytes().to_vec(),
        keys_only: true,
        limit: 1,
        ..wire::RangeRequest::default()
    };
    Ok(wire::revision(client.range(request).await?.header.as_ref()))
}

/// Waits for a revision; false if it will not come. The change of that revision may be outside of our prefix: then etcd is asked how far the watch is.
/// It does not answer while the watch is behind, so it is asked again.
pub(super) async fn arrived(mut arrival: oneshot::Receiver<()>, progress: &Notify) -> bool {
    let mut wait = ON_THE_WAY.0;
    loop {
        match timeout(wait, &mut arrival).await {
            Ok(told) => return told.is_ok(),
            Err(_) => progress.notify_one(),
        }
        wait = ON_THE_WAY.1;
    }
}
