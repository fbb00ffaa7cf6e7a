//! Watches: changes of a collection as a stream of frames.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use std::vec;

use bytes::{BufMut, Bytes, BytesMut};
use futures::{Stream, stream};
use gardener_apimachinery::ApiError;
use gardener_store::{Entry, Event, EventKind, ReadError, Revision, Watch};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::accept::{Accept, Encoding, Shape};
use crate::flow_control::Seat;
use crate::registry::{ListQuery, Scope, parse_revision, read_error};
use crate::request::Query;
use crate::table::{self, Include, PARTIAL, Style};
use crate::watch_end::RunningWatch;
use crate::{meta, object, protobuf, respond};

/// How often a watch tells how far it is.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// How long before its deadline a watch tells it for the last time.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// The name under which the end of the initial events is marked.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// How many frames are sent at once.
const GATHERED: usize = 64;

struct State {
    scope: Scope,
    query: ListQuery,
    accept: Accept,
    style: Style,
    /// The protobuf form of the objects shown, when that is wanted.
    protobuf: Option<protobuf::Kind>,
    across_clusters: bool,
    watch: Watch,
    /// What happened until then the client knows.
    known: Revision,
    /// What is there at the beginning, and is not told yet.
    initial: vec::IntoIter<Arc<Entry>>,
    /// Whether a bookmark tells where that ends.
    marks_end: bool,
    ready: VecDeque<Bytes>,
    headers_sent: bool,
    deadline: Instant,
    /// When it is told how far the watch is; none where nobody wants to know it, and short of the deadline.
    next_bookmark: Option<Instant>,
    closed: CancellationToken,
    /// Cancelled when objects are no longer served as this watch shows them.
    reshaped: Option<CancellationToken>,
    running: RunningWatch,
    /// The seats that it has while it begins.
    seat: Option<Seat>,
    /// Whether the server ends, and the watch with it; the deadline tells when.
    ending: bool,
    over: bool,
}

/// Starts a watch, which ends when the cluster is closed, and has these seats while it tells what there is.
///
/// # Errors
/// 400 for parameters that do not go together, 410 for revisions that are compacted.
pub(crate) fn start(
    scope: &Scope,
    query: &Query,
    accept: Result<Accept, ApiError>,
    (closed, seat): (CancellationToken, Option<Seat>),
) -> Result<impl Stream<Item = Bytes> + Send + use<>, ApiError> {
    // as upstream, which reads the options of the old paths of watches as a list's
    let list_query = ListQuery::read(query, &scope.definition, query.flag("watch"))?;
    let (bookmarks, initial_events) = (list_query.bookmarks, list_query.initial_events);
    let wanted = parse_revision(list_query.resource_version.as_deref())?;
    let listing_wanted = initial_events.unwrap_or_else(|| wanted.unwrap_or(0) == 0);
    let accept = accept?;
    let prefix = scope.cluster.path(&scope.namespace, "");
    let (store, topic) = (scope.cluster.store(), &scope.definition.topic);
    let (initial, start) = if listing_wanted {
        let page = scope.list(&ListQuery {
            limit: None,
            continue_token: None,
            resource_version: None,
            resource_version_match: None,
            ..list_query.clone()
        })?;
        (page.entries, page.revision)
    } else {
        (
            Vec::new(),
            wanted
                .filter(|revision| *revision > 0)
                .unwrap_or_else(|| store.revision_of(topic)),
        )
    };
    // a revision that is not there yet is waited for
    let watch = store
        .watch(topic, &prefix, start.min(store.revision_of(topic)))
        .map_err(read_error)?;
    let timeout = match query
        .number::<i64>("timeoutSeconds")?
        .and_then(|seconds| u64::try_from(seconds).ok())
        .filter(|seconds| *seconds > 0)
    {
        Some(seconds) => Duration::from_secs(seconds),
        None => {
            let least = scope.cluster.config().watch_timeout;
            least + Duration::from_secs(scope.cluster.chance().below(least.as_secs().max(1)))
        }
    };
    let now = Instant::now();
    let reshaped = scope.cluster.shapes().end_of(&scope.definition);
    let mut state = State {
        across_clusters: scope.cluster.name() == crate::server::ALL_CLUSTERS,
        scope: scope.clone(),
        query: list_query,
        accept,
        style: Style {
            include: Include::read(query.get("includeObject"))?,
            meta_version: accept.meta_version(),
        },
        protobuf: scope.protobuf_kind(accept),
        watch,
        known: start,
        initial: Vec::new().into_iter(),
        marks_end: false,
        ready: VecDeque::new(),
        headers_sent: false,
        deadline: now + timeout,
        next_bookmark: bookmark_after(now, now + timeout).filter(|_| bookmarks),
        closed,
        reshaped,
        running: RunningWatch::begin(scope.cluster.watch_end()),
        seat,
        ending: false,
        over: false,
    };
    // all that is there is told at no revision that is not there yet
    let too_new = wanted
        .filter(|_| listing_wanted)
        .map(|revision| scope.not_before(revision));
    match too_new {
        Some(Err(error)) => state.refuse(&error),
        _ => {
            state.initial = initial.into_iter();
            // who names no revision is told where what is there ends, too
            let names_none = initial_events.is_none() && wanted.unwrap_or(0) == 0;
            state.marks_end = bookmarks && (initial_events == Some(true) || names_none);
        }
    }
    Ok(stream::unfold(state, |mut state| async move {
        state.next().await.map(|bytes| (bytes, state))
    }))
}

/// When a watch that told at a time how far it is does so again: after a minute, but once shortly before its deadline, so that who begins anew there
/// begins where it ended.
fn bookmark_after(told: Instant, deadline: Instant) -> Option<Instant> {
    let last = deadline.checked_sub(LAST_BOOKMARK)?;
    Some(last.min(told + BOOKMARK_INTERVAL)).filter(|next| *next > told)
}

/// Waits for ever where there is nothing to cancel.
async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

impl State {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.ready.is_empty() {
                return Some(self.gather());
            }
            if self.over {
                return None;
            }
            if self.begin().await {
                continue;
            }
            match self.watch.try_next() {
                Ok(Some(event)) => {
                    self.take(&event).await;
                    continue;
                }
                Ok(None) => {}
                Err(error) => {
                    self.fail(error);
                    continue;
                }
            }
            // all that happened before has been told
            if let Some(seat) = &mut self.seat {
                seat.has_begun();
            }
            if self.reshaped.as_ref().is_some_and(CancellationToken::is_cancelled) {
                return None;
            }
            let wake = self.next_bookmark.map_or(self.deadline, |next| next.min(self.deadline));
            tokio::select! {
                biased;
                () = self.closed.cancelled(), if self.ending => return None,
                rest = self.running.rest(), if !self.ending => {
                    if self.closed.is_cancelled() {
                        return None;
                    }
                    self.ending = true;
                    self.deadline = self.deadline.min(Instant::now() + rest);
                }
                () = cancelled(self.reshaped.as_ref()), if self.reshaped.is_some() => {}
                event = self.watch.next() => match event {
                    Ok(event) => self.take(&event).await,
                    Err(error) => self.fail(error),
                },
                () = tokio::time::sleep_until(wake) => {
                    let now = Instant::now();
                    if now >= self.deadline {
                        return None;
                    }
                    self.next_bookmark = bookmark_after(now, self.deadline);
                    let revision = self.watch.caught_up();
                    // nobody is told what he knew when he began
                    if revision > self.known {
                        let frame = self.bookmark(revision, false);
                        self.ready.push_back(frame);
                    }
                }
            }
        }
    }

    /// Tells some of what is there at the beginning, then where it ends. Whether there was something to tell.
    async fn begin(&mut self) -> bool {
        while let Some(entry) = self.initial.next() {
            let frame = self.frame("ADDED", &entry).await;
            self.ready.push_back(frame);
            if self.ready.len() == GATHERED {
                return true;
            }
        }
        if std::mem::take(&mut self.marks_end) {
            let frame = self.bookmark(self.known, true);
            self.ready.push_back(frame);
        }
        !self.ready.is_empty()
    }

    /// All frames that are ready, as one piece.
    fn gather(&mut self) -> Bytes {
        if self.ready.len() == 1 {
            return self.ready.pop_front().unwrap_or_default();
        }
        let mut out = BytesMut::with_capacity(self.ready.iter().take(GATHERED).map(Bytes::len).sum());
        for _ in 0..GATHERED {
            match self.ready.pop_front() {
                Some(frame) => out.put(frame),
                None => break,
            }
        }
        out.freeze()
    }

    fn fail(&mut self, error: ReadError) {
        self.refuse(&read_error(error));
    }

    /// Ends the watch with what is wrong.
    fn refuse(&mut self, error: &ApiError) {
        self.over = true;
        let status = respond::status(error);
        let frame = self.framed("ERROR", &status);
        self.ready.push_back(frame);
    }

    /// An event as this watch's selectors show it: objects that begin to match are added, those that cease to are deleted.
    async fn take(&mut self, event: &Event) {
        if event.revision <= self.known {
            return;
        }
        let definition = self.scope.definition.clone();
        let selects = |entry: &Arc<Entry>| self.query.selects(entry, &definition);
        let before = event.previous.as_ref().is_some_and(selects);
        let kind = match event.kind {
            EventKind::Created => selects(&event.entry).then_some("ADDED"),
            EventKind::Deleted => before.then_some("DELETED"),
            EventKind::Updated => match (before, selects(&event.entry)) {
                (true, true) => Some("MODIFIED"),
                (false, true) => Some("ADDED"),
                (true, false) => Some("DELETED"),
                (false, false) => None,
            },
        };
        if let Some(kind) = kind {
            // an object that left the selection is shown as it was, at the revision at which it left
            let frame = match (&event.previous, kind, event.kind) {
                (Some(previous), "DELETED", EventKind::Updated) => {
                    let value = object::stamp(&previous.bytes(), event.revision);
                    self.frame_of(kind, previous, &value).await
                }
                _ => self.frame(kind, &event.entry).await,
            };
            self.ready.push_back(frame);
        }
    }

    async fn frame(&mut self, kind: &str, entry: &Arc<Entry>) -> Bytes {
        self.frame_of(kind, entry, &entry.value()).await
    }

    async fn frame_of(&mut self, kind: &str, entry: &Arc<Entry>, value: &[u8]) -> Bytes {
        if self.scope.is_stored_version() && self.scope.is_current(entry) {
            match (self.accept.shape, &self.protobuf) {
                (Shape::Object, None) => {
                    return line_of(kind, value.len(), |out| match self.across_clusters {
                        true => put_located(out, entry, value),
                        false => out.put_slice(value),
                    });
                }
                (Shape::Metadata | Shape::MetadataList, None) => {
                    let meta_version = self.style.meta_version;
                    return line_of(kind, value.len(), |out| {
                        table::put_metadata(out, &self.scope.definition, object::metadata_of(value), meta_version)
                    });
                }
                (_, Some(protobuf)) => match protobuf.encode(value) {
                    Ok(object) => return protobuf::watch_frame(kind, &object),
                    Err(error) => {
                        tracing::warn!(key = %entry.key.path, %error, "an object in a watch cannot be encoded")
                    }
                },
                (Shape::Table, None) => {}
            }
        }
        let mut object: Value = serde_json::from_slice(value).unwrap_or(Value::Null);
        if let Err(error) = self.scope.all_to_requested(&mut [&mut object]).await {
            tracing::warn!(key = %entry.key.path, %error, "an object in a watch cannot be converted");
            // as upstream, the watch tells what went wrong in the object's place
            return self.framed("ERROR", &respond::status(&error));
        }
        let shown = match self.accept.shape {
            Shape::Object => object,
            Shape::Metadata | Shape::MetadataList => {
                table::metadata_only(&self.scope.definition, &object, self.style.meta_version)
            }
            Shape::Table => self.table(&[object]),
        };
        self.framed(kind, &shown)
    }

    /// An event around an object that is not sent in its stored bytes.
    fn framed(&self, kind: &str, object: &Value) -> Bytes {
        if self.accept.encoding == Encoding::Protobuf {
            let own = protobuf::Kind::of(meta::text(object, "/apiVersion"), meta::text(object, "/kind"));
            match own.map(|own| own.encode_value(object)) {
                Some(Ok(object)) => return protobuf::watch_frame(kind, &object),
                Some(Err(error)) => tracing::warn!(%error, "an object in a watch cannot be encoded"),
                None => tracing::warn!(?object, "an object in a watch has no protobuf form"),
            }
        }
        line_of(kind, 256, |out| out.put_slice(object.to_string().as_bytes()))
    }

    fn table(&mut self, objects: &[Value]) -> Value {
        let headers = !std::mem::replace(&mut self.headers_sent, true);
        let now = self.scope.cluster.clock().now();
        match self.scope.definition.version(&self.scope.version) {
            Some(version) => {
                let revision = objects
                    .first()
                    .map(meta::resource_version)
                    .unwrap_or_default()
                    .to_owned();
                table::table(
                    &self.scope.definition,
                    version,
                    now,
                    objects,
                    self.style,
                    json!({"resourceVersion": revision}),
                    headers,
                )
            }
            None => Value::Null,
        }
    }

    fn bookmark(&mut self, revision: Revision, initial: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let (true, Value::Object(metadata)) = (initial, &mut metadata) {
            metadata.insert("annotations".into(), json!({INITIAL_EVENTS_END: "true"}));
        }
        let meta_version = self.style.meta_version;
        let object = match self.accept.shape {
            Shape::Object => self.nothing_at(metadata),
            Shape::Metadata | Shape::MetadataList => {
                json!({"kind": PARTIAL, "apiVersion": meta_version, "metadata": metadata})
            }
            Shape::Table if initial => {
                let object = self.nothing_at(metadata);
                self.table(&[object])
            }
            Shape::Table => {
                let mut row = json!({"cells": []});
                if let Value::Object(row) = &mut row {
                    row.insert(
                        "object".into(),
                        json!({"kind": PARTIAL, "apiVersion": meta_version, "metadata": metadata}),
                    );
                }
                json!({"kind": "Table", "apiVersion": meta_version, "metadata": {"resourceVersion": revision.to_string()}, "columnDefinitions": null, "rows": [row]})
            }
        };
        self.framed("BOOKMARK", &object)
    }

    /// An object of the kind that has metadata alone; built-in kinds have besides what their types always have.
    fn nothing_at(&self, metadata: Value) -> Value {
        let definition = &self.scope.definition;
        let version = definition.version(&self.scope.version);
        let kind = version.map(|version| version.kind.as_str()).unwrap_or_default();
        let mut object = json!({"kind": kind, "apiVersion": definition.api_version(&self.scope.version)});
        let completed = version.filter(|version| version.completes);
        if let Some(schema) = completed.and_then(|version| version.schema.as_ref()) {
            schema.complete(&mut object);
        }
        object["metadata"] = metadata;
        object
    }
}

/// Writes an object with the name of its cluster in front: `{"logicalCluster":"…",…`.
pub(crate) fn put_located(out: &mut BytesMut, entry: &Entry, value: &[u8]) {
    let cluster = entry.key.path.split('/').next().unwrap_or_default();
    out.put_slice(b"{\"logicalCluster\":\"");
    out.put_slice(cluster.as_bytes());
    out.put_slice(b"\",");
    out.put_slice(value.get(1..).unwrap_or_default());
}

/// One line of a watch in JSON: an event around an object that `put` writes, in about `size` bytes.
fn line_of(kind: &str, size: usize, put: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::with_capacity(size + 64);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"object\":");
    put(&mut out);
    out.put_slice(b"}\n");
    out.freeze()
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use gardener_store::{Change, Expect};

    use super::*;
    use crate::accept::{Offer, Wanted};
    use crate::cluster::LogicalCluster;

    async fn write(scope: &Scope, name: &str) {
        let object = json!({"metadata": {"name": name, "namespace": "default"}});
        let put = Change::Put {
            key: scope.key(name),
            expect: Expect::Any,
            value: object::encode(&object),
        };
        scope.cluster.store().commit(put).await.unwrap();
    }

    /// What a watch of config maps tells and after how many seconds, when one is written after `written` seconds.
    async fn told(query: &str, written: u64) -> Vec<(u64, String)> {
        let scope = Scope::of_kind(LogicalCluster::in_memory(), "", "configmaps");
        write(&scope, "a").await;
        let accept = Wanted::default();
        let accept = Accept::choose(&accept, Offer::ONE_SHAPE);
        let query = Query::parse(query);
        let stream = start(&scope, &query, accept, (CancellationToken::new(), None)).unwrap();
        let begun = Instant::now();
        let writing = async {
            tokio::time::sleep(Duration::from_secs(written)).await;
            write(&scope, "b").await;
        };
        let reading = stream.map(|frames| {
            let frame: Value = serde_json::from_slice(&frames).unwrap();
            (begun.elapsed().as_secs(), meta::text(&frame, "/type").to_owned())
        });
        futures::join!(reading.collect(), writing).0
    }

    #[tokio::test(start_paused = true)]
    async fn watches_tell_how_far_they_are_each_minute_and_before_they_end() {
        let asked = "watch=1&resourceVersion=1&timeoutSeconds=100";
        let told_of_b = (5, "ADDED".to_owned());
        let bookmark = |at| (at, "BOOKMARK".to_owned());
        assert_eq!(told(asked, 5).await, std::slice::from_ref(&told_of_b));
        let asked = format!("{asked}&allowWatchBookmarks=true");
        assert_eq!(told(&asked, 5).await, [told_of_b, bookmark(60), bookmark(98)]);
        // nothing has happened by then
        assert_eq!(told(&asked, 99).await, [(99, "ADDED".to_owned())]);
        let short = asked.replace("=100", "=1");
        assert_eq!(told(&short, 0).await, [(0, "ADDED".to_owned())]);
    }
}
