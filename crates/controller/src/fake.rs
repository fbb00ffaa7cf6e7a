//! A small API for tests of this crate: stores JSON objects, lists, watches, patches, and remembers what was asked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch as signal;

type Place = (String, String, String);
type Answer = UnsyncBoxBody<Bytes, Infallible>;

#[derive(Default)]
struct State {
    version: u64,
    /// Events up to this version are forgotten.
    compacted: u64,
    objects: BTreeMap<Place, Value>,
    history: Vec<(u64, &'static str, Place, Value)>,
    writes: Vec<String>,
    reads: usize,
    refuse: bool,
}

/// The API; clones share their objects.
#[derive(Clone)]
pub(crate) struct Fake {
    state: Arc<Mutex<State>>,
    changed: signal::Sender<()>,
}

/// What a path means: collection, namespace, name and subresource (empty where absent).
fn parse(path: &str) -> (String, String, String, String) {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let head = if parts[0] == "api" { 2 } else { 3 };
    let (group, mut rest) = (parts[..head].join("/"), &parts[head..]);
    let mut namespace = "";
    if rest[0] == "namespaces" && rest.len() > 2 {
        namespace = rest[1];
        rest = &rest[2..];
    }
    let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
    (format!("{group}/{}", rest[0]), namespace.to_owned(), part(1), part(2))
}

fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.as_object_mut().unwrap().remove(&key);
            }
            value => merge(&mut target[key], value),
        }
    }
}

fn refusal(code: u16, reason: &str) -> (StatusCode, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code});
    (StatusCode::from_u16(code).unwrap(), status)
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            changed: signal::Sender::new(()),
        }
    }

    pub(crate) fn client(&self) -> Client {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let fake = fake.clone();
            async move { Ok::<_, Infallible>(fake.answer(request).await) }
        });
        Client::new(service, "default")
    }

    /// The writes since the last call, as `<method> <path>`.
    pub(crate) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().writes)
    }

    /// Whether every request is answered with an error from now on.
    pub(crate) fn refuse(&self, refuse: bool) {
        self.state.lock().refuse = refuse;
    }

    /// How many reads there were.
    pub(crate) fn reads(&self) -> usize {
        self.state.lock().reads
    }

    /// How many watches are open.
    pub(crate) fn watchers(&self) -> usize {
        self.changed.receiver_count()
    }

    /// Puts an object at a path, as another client would.
    pub(crate) fn put(&self, path: &str, object: Value) {
        let (collection, namespace, name, _) = parse(path);
        self.store((collection, namespace, name), object);
    }

    pub(crate) fn remove(&self, path: &str) {
        let (collection, namespace, name, _) = parse(path);
        self.erase(&(collection, namespace, name));
    }

    /// Forgets all events: watches from before are told to list anew.
    pub(crate) fn compact(&self) {
        let mut state = self.state.lock();
        state.history.clear();
        state.compacted = state.version;
    }

    fn store(&self, place: Place, mut object: Value) -> Value {
        let mut state = self.state.lock();
        state.version += 1;
        let version = state.version;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        object["metadata"]["name"] = json!(place.2);
        if !place.1.is_empty() {
            object["metadata"]["namespace"] = json!(place.1);
        }
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{version}"));
        }
        let known = state.objects.insert(place.clone(), object.clone());
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        state.history.push((version, kind, place, object.clone()));
        drop(state);
        self.changed.send_replace(());
        object
    }

    fn erase(&self, place: &Place) -> Option<Value> {
        let mut state = self.state.lock();
        let mut object = state.objects.remove(place)?;
        state.version += 1;
        let version = state.version;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        state.history.push((version, "DELETED", place.clone(), object.clone()));
        drop(state);
        self.changed.send_replace(());
        Some(object)
    }

    async fn answer(&self, request: Request<Body>) -> Response<Answer> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let (collection, namespace, name, subresource) = parse(head.uri.path());
        let query: BTreeMap<String, String> = head
            .uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.replace("%3D", "=")))
            .collect();
        if head.method != Method::GET {
            let write = format!("{} {}", head.method, head.uri.path());
            self.state.lock().writes.push(write);
        }
        let place = (collection, namespace, name);
        self.state.lock().reads += usize::from(head.method == Method::GET);
        let refuse = self.state.lock().refuse;
        let sent = || serde_json::from_slice::<Value>(&body).unwrap();
        let (code, answer) = match head.method {
            _ if refuse => refusal(500, "InternalError"),
            Method::GET if place.2.is_empty() => {
                let only = query
                    .get("fieldSelector")
                    .and_then(|selector| selector.strip_prefix("metadata.name="))
                    .map(str::to_owned);
                if query.contains_key("watch") {
                    let after = query["resourceVersion"].parse().unwrap();
                    return self.watch(place, only, after);
                }
                (StatusCode::OK, self.list(&place, only.as_deref()))
            }
            Method::GET => match self.state.lock().objects.get(&place) {
                Some(object) => (StatusCode::OK, object.clone()),
                None => refusal(404, "NotFound"),
            },
            Method::POST => {
                let object = sent();
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                let place = (place.0, place.1, name);
                let exists = self.state.lock().objects.contains_key(&place);
                if exists {
                    refusal(409, "AlreadyExists")
                } else {
                    (StatusCode::CREATED, self.store(place, object))
                }
            }
            Method::PUT | Method::PATCH => {
                let current = self.state.lock().objects.get(&place).cloned();
                let sent = sent();
                match current {
                    None => refusal(404, "NotFound"),
                    Some(current) => {
                        let asked = &sent["metadata"]["resourceVersion"];
                        let mut object = current.clone();
                        if head.method == Method::PUT {
                            object = sent.clone();
                        } else if subresource == "status" {
                            merge(&mut object["status"], sent["status"].clone());
                        } else {
                            merge(&mut object, sent.clone());
                        }
                        if !asked.is_null() && *asked != current["metadata"]["resourceVersion"] {
                            refusal(409, "Conflict")
                        } else {
                            (StatusCode::OK, self.store(place, object))
                        }
                    }
                }
            }
            Method::DELETE => match self.erase(&place) {
                Some(object) => (StatusCode::OK, object),
                None => refusal(404, "NotFound"),
            },
            _ => refusal(405, "MethodNotAllowed"),
        };
        let bytes = serde_json::to_vec(&answer).unwrap();
        Response::builder()
            .status(code)
            .body(Full::new(Bytes::from(bytes)).boxed_unsync())
            .unwrap()
    }

    fn list(&self, place: &Place, only: Option<&str>) -> Value {
        let state = self.state.lock();
        let items: Vec<&Value> = state
            .objects
            .iter()
            .filter(|(at, _)| matches(at, place, only))
            .map(|(_, object)| object)
            .collect();
        json!({"kind": "List", "apiVersion": "v1", "items": items,
            "metadata": {"resourceVersion": state.version.to_string()}})
    }

    fn watch(&self, place: Place, only: Option<String>, after: u64) -> Response<Answer> {
        let state = Arc::clone(&self.state);
        let changed = self.changed.subscribe();
        let events = futures::stream::unfold(after, move |after| {
            let (state, place, only) = (Arc::clone(&state), place.clone(), only.clone());
            let mut changed = changed.clone();
            async move {
                // After an error nothing follows.
                if after == u64::MAX {
                    return None;
                }
                loop {
                    changed.borrow_and_update();
                    {
                        let state = state.lock();
                        if after < state.compacted {
                            let (_, status) = refusal(410, "Expired");
                            return Some((frame("ERROR", &status), u64::MAX));
                        }
                        let next = state
                            .history
                            .iter()
                            .find(|(version, _, at, _)| *version > after && matches(at, &place, only.as_deref()));
                        if let Some((version, kind, _, object)) = next {
                            return Some((frame(kind, object), *version));
                        }
                    }
                    changed.changed().await.ok()?;
                }
            }
        });
        let frames = events.map(|line| Ok::<_, Infallible>(http_body::Frame::data(Bytes::from(line))));
        Response::new(StreamBody::new(frames).boxed_unsync())
    }
}

/// A line of a watch: first what happened, then the object, as API servers write it.
fn frame(kind: &str, object: &Value) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn matches(at: &Place, place: &Place, only: Option<&str>) -> bool {
    at.0 == place.0 && (place.1.is_empty() || at.1 == place.1) && only.is_none_or(|only| at.2 == only)
}
