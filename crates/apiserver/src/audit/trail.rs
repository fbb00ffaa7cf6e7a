//! What is gathered of one request, from its entrance to the end of its answer.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::clock::Clock;
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::skim;
use http::header::{CONTENT_TYPE, HeaderMap, USER_AGENT};
use http::{Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::event::{AuthenticationMetadata, ObjectRef, Received, ResponseStatus};
use super::policy::{Level, Stage, Told};
use super::{Audit, Event};
use crate::authz::{self, Attributes, Decision};
use crate::cluster::LogicalCluster;
use crate::decode::{self, Format};
use crate::impersonation::Impersonated;
use crate::respond::{self, Body};
use crate::{media_type, meta, protobuf};

/// No more of a client's name for itself is told.
const LONGEST_AGENT: usize = 1024;
/// No `Status` is longer.
const LONGEST_STATUS: u64 = 64 * 1024;

/// What is gathered of one request. When it is dropped before the answer ended, the last event tells why.
pub(crate) struct Trail {
    audit: Arc<Audit>,
    told: Told,
    lasts: bool,
    clock: Clock,
    /// None once the last event was told.
    event: Mutex<Option<Event>>,
}

/// A request that has come in.
pub(crate) struct Begun<'r> {
    pub(crate) audit_id: String,
    pub(crate) uri: &'r http::Uri,
    pub(crate) headers: &'r HeaderMap,
    pub(crate) from: Option<IpAddr>,
    /// Whether the answer lasts as long as what it is about.
    pub(crate) lasts: bool,
}

/// Where a request came from, as proxies and the connection tell it.
fn source_ips(headers: &HeaderMap, from: Option<IpAddr>) -> Vec<String> {
    let header = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let forwarded = header("x-forwarded-for").split(',');
    let mut ips: Vec<IpAddr> = forwarded.filter_map(|ip| ip.trim().parse().ok()).collect();
    if let Ok(real) = header("x-real-ip").parse()
        && !ips.contains(&real)
    {
        ips.push(real);
    }
    if let Some(from) = from.map(|from| from.to_canonical())
        && ips.last() != Some(&from)
    {
        ips.push(from);
    }
    ips.iter().map(ToString::to_string).collect()
}

fn agent(headers: &HeaderMap) -> String {
    let agent = headers
        .get(USER_AGENT)
        .map(|agent| String::from_utf8_lossy(agent.as_bytes()));
    let agent = agent.unwrap_or_default();
    match agent.char_indices().map(|(at, _)| at).find(|at| *at >= LONGEST_AGENT) {
        Some(end) => format!("{}...TRUNCATED", agent.get(..end).unwrap_or_default()),
        None => agent.into_owned(),
    }
}

impl Trail {
    /// The trail of a request, whose entrance is told. None, if nothing is told of it.
    ///
    /// # Errors
    /// When it cannot be told, and must be.
    pub(crate) fn begin(
        audit: &Arc<Audit>,
        clock: &Clock,
        request: Begun<'_>,
        attributes: &Attributes<'_>,
    ) -> Result<Option<Arc<Self>>, ApiError> {
        let Some(told) = audit.policy.told(attributes).cloned() else {
            return Ok(None);
        };
        let received = Received {
            audit_id: request.audit_id,
            uri: request
                .uri
                .path_and_query()
                .map(ToString::to_string)
                .unwrap_or_default(),
            source_ips: source_ips(request.headers, request.from),
            user_agent: agent(request.headers),
            at: clock.micro_time(),
        };
        let trail = Self {
            audit: Arc::clone(audit),
            lasts: request.lasts,
            clock: clock.clone(),
            event: Mutex::new(Some(Event::new(told.level, received, attributes))),
            told,
        };
        match trail.tell(Stage::RequestReceived) {
            true => Ok(Some(Arc::new(trail))),
            false => Err(ApiError::internal("failed to store audit event")),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Event)) {
        self.event.lock().as_mut().map(change);
    }

    /// Tells that a stage is reached, unless it is left out.
    fn tell(&self, stage: Stage) -> bool {
        let mut event = self.event.lock();
        let Some(event) = event.as_mut().filter(|_| !self.told.omit_stages.contains(&stage)) else {
            return true;
        };
        event.stage = stage;
        if stage != Stage::RequestReceived {
            event.stage_timestamp = self.clock.micro_time();
        }
        self.audit.tell(event)
    }

    /// Tells the last stage.
    fn end(&self, stage: Stage) {
        self.tell(stage);
        *self.event.lock() = None;
    }

    fn wants(&self, level: Level) -> bool {
        self.told.level >= level
    }

    /// An object as it is told.
    fn shown(&self, mut object: Value) -> Value {
        if self.told.omit_managed_fields {
            without_managed_fields(&mut object);
        }
        object
    }

    /// Takes in an answer, and gives it back. What is told of it is told before it is sent; of one that lasts, when it begins and when it ends.
    pub(crate) async fn answered(self: Arc<Self>, response: Response<Body>) -> Response<Body> {
        let lasts =
            self.lasts && response.status().is_success() || response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if lasts {
            self.answers(response.status(), None);
            self.tell(Stage::ResponseStarted);
            let end = move || self.end(Stage::ResponseComplete);
            return response.map(|body| respond::at_end(body, end));
        }
        let size = response.body().size_hint().exact();
        let tells_object = self.wants(Level::RequestResponse);
        let response = if tells_object || size.is_some_and(|size| size <= LONGEST_STATUS) {
            let (parts, body) = response.into_parts();
            let Ok(collected) = body.collect().await else {
                return Response::from_parts(parts, respond::full(Bytes::new()));
            };
            let bytes = collected.to_bytes();
            let object = (tells_object || may_be_status(&bytes)).then(|| read(&parts.headers, &bytes));
            self.answers(parts.status, object.flatten());
            Response::from_parts(parts, respond::full(bytes))
        } else {
            self.answers(response.status(), None);
            response
        };
        if self.lasts {
            self.tell(Stage::ResponseStarted);
        }
        self.end(Stage::ResponseComplete);
        response
    }

    /// Takes in that nobody believes the caller. Nothing else is told of such a request.
    pub(crate) fn refused(&self, error: &ApiError) {
        let status = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::UNAUTHORIZED);
        self.answers(status, Some(respond::status(error)));
        self.end(Stage::ResponseStarted);
    }

    fn answers(&self, status: StatusCode, object: Option<Value>) {
        self.change(|event| {
            let is_status =
                |object: &&Value| meta::text(object, "/kind") == "Status" && meta::text(object, "/apiVersion") == "v1";
            let told = object.as_ref().filter(is_status);
            event.response_status = Some(told.map_or_else(
                || ResponseStatus {
                    code: status.as_u16(),
                    ..ResponseStatus::default()
                },
                |told| ResponseStatus {
                    status: meta::text(told, "/status").to_owned(),
                    message: meta::text(told, "/message").to_owned(),
                    reason: meta::text(told, "/reason").to_owned(),
                    details: told.at("/details").cloned(),
                    code: status.as_u16(),
                    ..ResponseStatus::default()
                },
            ));
            if self.wants(Level::RequestResponse) && event.object_ref.is_some() {
                event.response_object = object.map(|object| self.shown(object));
            }
        });
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        let panics = std::thread::panicking();
        self.change(|event| {
            // the caller went away
            event.response_status.get_or_insert_with(|| match panics {
                true => ResponseStatus {
                    status: "Failure".to_owned(),
                    message: "APIServer panic'd".to_owned(),
                    reason: "InternalError".to_owned(),
                    code: 500,
                    ..ResponseStatus::default()
                },
                false => ResponseStatus {
                    status: "Success".to_owned(),
                    message: "Connection closed early".to_owned(),
                    code: 200,
                    ..ResponseStatus::default()
                },
            });
        });
        self.end(match panics {
            true => Stage::Panic,
            false => Stage::ResponseComplete,
        });
    }
}

/// Whether bytes are a `Status`, or no JSON that would tell its kind: most answers need not be read.
fn may_be_status(bytes: &[u8]) -> bool {
    !bytes.starts_with(b"{") || skim::member(bytes, "kind") == Some(b"\"Status\"")
}

/// A body as JSON; none if it is nothing of that kind.
fn read(headers: &HeaderMap, bytes: &Bytes) -> Option<Value> {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("application/json");
    let decoded = |format| decode::decode(bytes, format).ok().map(|decoded| decoded.value);
    match media_type::parse(content_type)?.as_ref() {
        protobuf::CONTENT_TYPE => protobuf::decode(bytes).ok(),
        own if own.ends_with("yaml") => decoded(Format::Yaml),
        own if own.ends_with("json") => decoded(Format::Json),
        _ => None,
    }
}

/// Drops the managed fields of an object, of a list's elements and of a table's.
fn without_managed_fields(object: &mut Value) {
    let strip = |object: &mut Value| drop(meta::take_managed_fields(object));
    strip(object);
    if let Some(Value::Array(items)) = object.get_mut("items") {
        items.iter_mut().for_each(strip);
    }
    if let Some(Value::Array(rows)) = object.get_mut("rows") {
        rows.iter_mut().filter_map(|row| row.get_mut("object")).for_each(strip);
    }
}

/// What is told of a request, for those who judge it and carry it out; often nothing.
#[derive(Clone, Default)]
pub struct Audited(Option<Arc<Trail>>);

impl From<Option<Arc<Trail>>> for Audited {
    fn from(trail: Option<Arc<Trail>>) -> Self {
        Self(trail)
    }
}

impl Audited {
    /// Tells a fact, for everybody who looks at the log. What was told under the same key stays.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        let Some(trail) = &self.0 else { return };
        trail.change(|event| {
            event.annotations.entry(key.into()).or_insert_with(|| value.into());
        });
    }

    /// Tells for whom the caller stands.
    pub(crate) fn impersonates(&self, impersonated: &Impersonated) {
        if let Some(trail) = &self.0 {
            trail.change(|event| {
                event.impersonated_user = Some(impersonated.user.clone());
                let constraint = impersonated.constraint.clone();
                event.authentication_metadata = constraint.map(|impersonation_constraint| AuthenticationMetadata {
                    impersonation_constraint,
                });
            });
        }
    }

    /// Tells whether the request is allowed, and why. None: nobody could say.
    pub(crate) fn judged(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>, decision: Option<&Decision>) {
        if self.0.is_none() {
            return;
        }
        let (decision, reason) = match decision {
            None => return self.annotate("authorization.k8s.io/reason", "internal error"),
            Some(Decision::Allow) => ("allow", authz::why_allowed(cluster, attributes).unwrap_or_default()),
            Some(Decision::Deny(reason) | Decision::NoOpinion(reason)) => ("forbid", reason.clone()),
        };
        self.annotate("authorization.k8s.io/decision", decision);
        self.annotate("authorization.k8s.io/reason", reason);
    }

    /// Tells that an API is asked that will go, and in which release, if that is known.
    pub(crate) fn deprecated(&self, removed: Option<&str>) {
        self.annotate("k8s.io/deprecated", "true");
        if let Some(release) = removed {
            self.annotate("k8s.io/removed-release", release);
        }
    }

    /// Takes in the body of a request that is allowed. As JSON, but otherwise as it came: it may be nothing that can be carried out.
    pub(crate) fn asks(&self, verb: &str, headers: &HeaderMap, body: &Bytes) {
        let Some(trail) = self.0.as_ref().filter(|_| !body.is_empty()) else {
            return;
        };
        if matches!(verb, "get" | "list" | "watch") || verb == "patch" && !trail.wants(Level::Request) {
            return;
        }
        let Some(object) = read(headers, body) else { return };
        trail.change(|event| {
            if let Some(object_ref) = event
                .object_ref
                .as_mut()
                .filter(|_| matches!(verb, "create" | "update"))
            {
                object_ref.complete(&object);
            }
            if trail.wants(Level::Request) {
                event.request_object = Some(trail.shown(object));
            }
        });
    }

    /// Tells that a request goes on although a webhook was not asked, or gave no answer. `kind` is what the webhook does: `mutation` or `validating`.
    pub(crate) fn failed_open(&self, kind: &str, at: (usize, usize), webhook: &str) {
        let (round, index) = at;
        self.annotate(
            format!("failed-open.{kind}.webhook.admission.k8s.io/round_{round}_index_{index}"),
            webhook,
        );
    }

    /// Tells what a webhook did to the object, in the round and at the place in it in which it was asked.
    pub(crate) fn mutated(&self, at: (usize, usize), configuration: &str, webhook: &str, patch: Option<&Value>) {
        let Some(trail) = &self.0 else { return };
        let place = format!("webhook.admission.k8s.io/round_{}_index_{}", at.0, at.1);
        let mutation = Mutation {
            configuration,
            webhook,
            mutated: Some(patch.is_some()),
            patch: None,
            patch_type: None,
        };
        self.annotate(format!("mutation.{place}"), mutation.text());
        // only those who may see the request's object may see what was changed of it
        if patch.is_some() && trail.wants(Level::Request) {
            let patched = Mutation {
                mutated: None,
                patch,
                patch_type: Some("JSONPatch"),
                ..mutation
            };
            self.annotate(format!("patch.{place}"), patched.text());
        }
    }
}

/// What a webhook did, in the order of upstream's members: whoever looks at it compares text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Mutation<'a> {
    configuration: &'a str,
    webhook: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mutated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
}

impl Mutation<'_> {
    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl ObjectRef {
    /// Adds what an object says of itself.
    fn complete(&mut self, object: &Value) {
        for (own, pointer) in [
            (&mut self.namespace, "/metadata/namespace"),
            (&mut self.name, "/metadata/name"),
            (&mut self.uid, "/metadata/uid"),
            (&mut self.resource_version, "/metadata/resourceVersion"),
        ] {
            if own.is_empty() {
                meta::text(object, pointer).clone_into(own);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_webhooks_did_is_told_in_upstreams_order() {
        let patch = json!([{"op": "add", "path": "/data", "value": {"a": "b"}}]);
        let mutation = Mutation {
            configuration: "c",
            webhook: "w",
            mutated: Some(true),
            patch: None,
            patch_type: None,
        };
        assert_eq!(mutation.text(), r#"{"configuration":"c","webhook":"w","mutated":true}"#);
        let patched = Mutation {
            mutated: None,
            patch: Some(&patch),
            patch_type: Some("JSONPatch"),
            ..mutation
        };
        let expected = r#"{"configuration":"c","webhook":"w","patch":[{"op":"add","path":"/data","value":{"a":"b"}}],"patchType":"JSONPatch"}"#;
        assert_eq!(patched.text(), expected);
    }

    #[test]
    fn proxies_come_before_the_connection_and_nobody_twice() {
        let from: IpAddr = "::ffff:10.0.0.9".parse().unwrap();
        let headers = |all: &[(&'static str, &str)]| -> HeaderMap {
            let all = all.iter();
            all.map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
                .collect()
        };
        for (given, expected) in [
            (headers(&[]), vec!["10.0.0.9"]),
            (
                headers(&[("x-forwarded-for", "192.0.2.1, nonsense,fd00::1")]),
                vec!["192.0.2.1", "fd00::1", "10.0.0.9"],
            ),
            (
                headers(&[("x-forwarded-for", "192.0.2.1"), ("x-real-ip", "192.0.2.1")]),
                vec!["192.0.2.1", "10.0.0.9"],
            ),
            (headers(&[("x-real-ip", "10.0.0.9")]), vec!["10.0.0.9"]),
        ] {
            assert_eq!(source_ips(&given, Some(from)), expected);
        }
        let long = headers(&[("user-agent", &"ä".repeat(1000))]);
        assert!(agent(&long).ends_with("ää...TRUNCATED"));
    }
}
