//! From an HTTP request to an answer: who asks, whether they may, and which verb runs. What each verb does stands in [`act`], in what form objects
//! are answered in [`shown`].

mod act;
mod logged;
mod shown;

pub(crate) use shown::no_list;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gardener_apimachinery::ApiError;
use http::header::{AUTHORIZATION, CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::logged::Logged;
use crate::accept::Wanted;
use crate::aggregation::{self, Backend, Forwarded, Origin};
use crate::audit::{Audited, Begun, Trail};
use crate::authn::Remarks;
use crate::authz::{self, Attributes, Decision};
use crate::cluster::LogicalCluster;
use crate::definition::Definition;
use crate::flow_control::{Entered, Flow, Incoming, Seat, waits_until};
use crate::impersonation::impersonated;
use crate::in_flight::Full;
use crate::metrics::access::Authentication;
use crate::metrics::{self, Asked, waits};
use crate::question::{self, Question};
use crate::registry::{PatchKind, Scope};
use crate::request::{self, Query, ResourcePath, Target};
use crate::respond::{self, Body};
use crate::server::{ALL_CLUSTERS, Server};
use crate::user::UserInfo;
use crate::{bindings, connect, discovery, health, oidc, openapi, reviews, route, time_limit, watch_end, zpages};

/// By what a request is found again in audit logs.
pub(crate) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Largest body that is read.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// How long a write waits for copies of what admission reads; as upstream's plugins wait for their caches.
const COPIES_PATIENCE: Duration = Duration::from_secs(10);

/// Where a request came in, and what is known of its sender.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The logical cluster asked.
    pub cluster: String,
    /// The user, when the request comes from inside the process.
    pub user: Option<UserInfo>,
    /// Whom the client certificate names that TLS verified against the cluster's client CAs.
    pub certificate: Option<UserInfo>,
    /// The client certificate (DER) that TLS verified against the CAs of front proxies.
    pub front_proxy: Option<Vec<u8>>,
    /// Whether the client showed a certificate that nobody answers for.
    pub refused_certificate: bool,
    /// Whether it comes from outside the process: only there somebody looks at a request's id and flow.
    pub outside: bool,
    /// The other end of the connection.
    pub from: Option<IpAddr>,
    /// Until when the caller waits for an answer; none: however long it takes.
    pub until: Option<Instant>,
    /// Until when it may wait to be served; none: as long as requests may that do not say how long they may take.
    pub waits_until: Option<Instant>,
    /// Cancelled when nobody waits for an answer any more.
    pub gone: Option<CancellationToken>,
}

/// What becomes known of a request while it is served.
#[derive(Default)]
struct Known {
    /// By what it is found again, if somebody outside asks.
    audit_id: Option<HeaderValue>,
    /// Its flow, if it has one: refusals tell it, too.
    flow: Option<Flow>,
    /// The seats that it has.
    seat: Option<Seat>,
    /// What is told of it, if anything.
    trail: Option<Arc<Trail>>,
    /// What is said of the caller's credentials.
    warnings: Vec<String>,
}

/// One request with all that was found out about it.
pub(crate) struct Call {
    pub(crate) cluster: Arc<LogicalCluster>,
    pub(crate) closed: CancellationToken,
    pub(crate) user: Arc<UserInfo>,
    pub(crate) method: Method,
    /// Path and query as they came.
    pub(crate) uri: String,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) wanted: Wanted,
    /// Empty where another server is to read it.
    pub(crate) body: Bytes,
    /// The body as it comes, where another server is to read it.
    unread: Mutex<Option<Body>>,
    /// The other end of the connection.
    from: Option<IpAddr>,
    /// By what it is found again, if somebody outside asks.
    audit_id: Option<HeaderValue>,
    pub(crate) audited: Audited,
    /// Until when the caller waits for the answer.
    pub(crate) until: Option<Instant>,
    /// The seats that it has, if it needs some.
    seat: Mutex<Option<Seat>>,
}

pub(crate) async fn handle<B>(server: &Server, caller: Caller, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let logged = Logged::of(&caller, &request);
    let wanted = Wanted::of(request.headers(), request.uri().query().unwrap_or_default());
    let without_body = request.method() == Method::HEAD;
    let until = caller.until;
    let mut known = Known {
        audit_id: caller.outside.then(|| audit_id(server, request.headers())),
        ..Known::default()
    };
    let mut response = match serve(server, caller, request, wanted.clone(), &mut known).await {
        Ok(response) => response,
        Err(error) => respond::error(&error, &wanted),
    };
    for warning in known.warnings.into_iter().rev() {
        respond::warn_first(&mut response, warning);
    }
    if let Some(trail) = known.trail {
        response = trail.answered(response).await;
    }
    if let Some(flow) = known.flow {
        flow.tell(response.headers_mut());
    }
    if let Some(audit_id) = known.audit_id {
        response.headers_mut().entry(AUDIT_ID).or_insert(audit_id);
    }
    let mut response = respond::compressed(response, &wanted);
    if let Some(seat) = known.seat {
        response = seat.hold(response, until);
    }
    if without_body {
        *response.body_mut() = respond::full(Bytes::new());
    }
    if let Some(logged) = logged {
        logged.log(response.status());
    }
    response
}

/// By what a request from outside is found again: the caller's word for it, or one of our own.
fn audit_id(server: &Server, headers: &HeaderMap) -> HeaderValue {
    let told = headers.get(AUDIT_ID).filter(|told| !told.is_empty());
    told.cloned()
        .unwrap_or_else(|| HeaderValue::try_from(server.shared().chance.uid()).unwrap_or(HeaderValue::from_static("")))
}

async fn serve<B>(
    server: &Server,
    caller: Caller,
    request: Request<B>,
    wanted: Wanted,
    known: &mut Known,
) -> Result<Response<Body>, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let path = request::decode_path(parts.uri.path()).into_owned();
    let Some((cluster, closed)) = server.cluster(&caller.cluster) else {
        return Err(ApiError::unavailable(format!(
            "the API of cluster {:?} is not running",
            caller.cluster
        )));
    };
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let target = request::target(&path);
    if request::is_verb_alone(&path) {
        let uri = parts.uri.to_string();
        let why = format!("failed to create RequestInfo: unable to determine kind and namespace from url, {uri}");
        let mut response = respond::failed(&uri, &why);
        // it is told before anything else is looked at
        response.headers_mut().remove(CACHE_CONTROL);
        return Ok(response);
    }
    time_limit::check(&parts.method, &target, &query)?;
    let needs_seat = caller.outside && !time_limit::is_lasting(&target);
    let question = || Question::of(&parts.method, &target, &query);
    let begin = |user: &UserInfo| {
        let Some(audit) = &cluster.config().audit else {
            return Ok(None);
        };
        let question = question();
        let told = known.audit_id.as_ref().and_then(|told| told.to_str().ok());
        let begun = Begun {
            audit_id: told.map_or_else(|| server.shared().chance.uid(), str::to_owned),
            uri: &parts.uri,
            headers: &parts.headers,
            from: caller.from,
            lasts: time_limit::is_lasting(&target) || question.verb == "watch",
        };
        Trail::begin(audit, cluster.clock(), begun, &question.by(user))
    };
    let mut remarks = Remarks::default();
    let user = match caller.user {
        Some(user) => user,
        None => {
            let (begun, shows_nothing) = (Instant::now(), !parts.headers.contains_key(AUTHORIZATION));
            let authenticated = cluster
                .config()
                .authenticator
                .authenticate(&cluster, &caller, &path, &parts.headers, &mut remarks)
                .await;
            let came = match &authenticated {
                Ok(user) => Authentication::User(&user.name),
                Err(_) if shows_nothing => Authentication::Nobody,
                Err(_) => Authentication::Wrong,
            };
            cluster.metrics().access.authenticated(&came, begun.elapsed());
            match authenticated {
                // probes come without credentials
                Err(_)
                    if shows_nothing && health::is_public(&path) && cluster.config().authenticator.tells_itself() =>
                {
                    UserInfo::anonymous()
                }
                Err(error) => {
                    if let Some(trail) = begin(&UserInfo::default())? {
                        remarks.tell(&Audited::from(Some(Arc::clone(&trail))));
                        trail.refused(&error);
                    }
                    return Err(error);
                }
                Ok(user) => user,
            }
        }
    };
    let trail = begin(&user)?;
    known.trail.clone_from(&trail);
    let audited = Audited::from(trail);
    remarks.tell(&audited);
    known.warnings = remarks.warnings;
    let user = match impersonated(&cluster, &user, &parts.headers, question).await? {
        Some(impersonated) => {
            audited.impersonates(&impersonated);
            impersonated.user
        }
        None => user,
    };
    let user = Arc::new(user);
    let refused = |after: u64| {
        cluster.metrics().refused(&cluster, &parts.method, &target, &query);
        respond::busy(after)
    };
    let mut place = None;
    if let Some(in_flight) = &cluster.config().in_flight {
        let verb = question().verb;
        if verb != "watch" && !time_limit::is_lasting(&target) {
            match in_flight.place(&verb, &user) {
                Ok(own) => place = own,
                Err(Full) => return Ok(refused(1)),
            }
        }
    } else if let Some(flow_control) = cluster.flow_control().filter(|_| needs_seat) {
        let question = question();
        let incoming = Incoming {
            asks: &question.by(&user),
            query: &query,
            method: &parts.method,
            uri: &parts.uri,
            user: &user,
        };
        let (flow, entered) = flow_control.enter(&cluster, &incoming).unzip();
        known.flow = flow;
        let seat = match entered {
            None => Ok(None),
            Some(Entered::Served(seat)) => Ok(Some(seat)),
            Some(Entered::Refused(after)) => Err(after),
            Some(Entered::Waits(waiting)) => {
                let most = || waits_until(cluster.config().seats.time_limit);
                let until = caller.waits_until.unwrap_or_else(most);
                // apart from the rest of the task, for hardly any request waits
                Box::pin(waiting.seat(until, caller.gone.as_ref())).await.map(Some)
            }
        };
        match seat {
            Ok(seat) => known.seat = seat,
            Err(after) => return Ok(refused(after)),
        }
    }
    let backend = match &target {
        Target::Resource(path) => cluster.aggregation().backend(&cluster, &path.group, &path.version),
        Target::Other(path) => backend_of(&cluster, path),
    };
    let (body, unread) = match backend {
        // it is for the other server to say how large a body may be
        Some(_) => (Bytes::new(), Some(body.map_err(std::io::Error::other).boxed_unsync())),
        None => match read(body, caller.gone.as_ref()).await {
            Ok(body) => (body, None),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                return Err(ApiError::too_large(BODY_LIMIT));
            }
            Err(error) => return Err(ApiError::bad_request(format!("the body could not be read: {error}"))),
        },
    };
    let call = Call {
        cluster,
        closed,
        user,
        method: parts.method,
        query,
        uri: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: parts.headers,
        wanted,
        body,
        unread: Mutex::new(unread),
        from: caller.from,
        audit_id: known.audit_id.clone(),
        audited,
        until: caller.until,
        seat: Mutex::new(known.seat.take()),
    };
    let answered = match target {
        Target::Other(path) => call.other(&path).await,
        Target::Resource(resource) => call.counted(resource).await,
    };
    drop(place);
    known.seat = call.seat.into_inner();
    answered
}

/// Reads a body, as long as somebody waits for the answer: who went away may never send the rest of it.
async fn read<B>(body: B, gone: Option<&CancellationToken>) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let whole = Limited::new(body, BODY_LIMIT).collect();
    let whole = match gone {
        Some(gone) => gone
            .run_until_cancelled(whole)
            .await
            .ok_or("nobody waits for the answer")?,
        None => whole.await,
    };
    whole.map(http_body_util::Collected::to_bytes)
}

/// The other server that a document about a version comes from.
fn backend_of(cluster: &LogicalCluster, path: &str) -> Option<Arc<Backend>> {
    let path = path.strip_prefix("/openapi/v3").unwrap_or(path);
    let (group, version) = path.strip_prefix("/apis/")?.trim_end_matches('/').split_once('/')?;
    cluster.aggregation().backend(cluster, group, version)
}

impl Call {
    /// Refuses what the user may not do. Gives an answer where it cannot be found out: as upstream's that is no `Status`.
    async fn authorize(&self, attributes: &Attributes<'_>) -> Result<Option<Response<Body>>, ApiError> {
        let begun = Instant::now();
        let asked = self.cluster.config().authorizer.ask(&self.cluster, attributes).await;
        let access = &self.cluster.metrics().access;
        access.authorized(asked.as_ref().ok(), begun.elapsed());
        self.audited.judged(&self.cluster, attributes, asked.as_ref().ok());
        match asked {
            Err(undecided) => Ok(Some(self.undecided(&undecided.why))),
            Ok(Decision::Allow) => Ok(None),
            Ok(Decision::Deny(reason) | Decision::NoOpinion(reason)) => {
                let message = authz::forbidden_message(attributes, &reason);
                let (group, resource, name) = match attributes.is_resource {
                    true => (attributes.group, attributes.resource, attributes.name),
                    false => ("", "", ""),
                };
                let error = ApiError::forbidden(group, resource, name, &message);
                let mut refused = respond::error(&error, &self.wanted);
                let headers = refused.headers_mut();
                headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
                Ok(Some(refused))
            }
        }
    }

    fn undecided(&self, why: &str) -> Response<Body> {
        tracing::error!(
            uri = self.uri,
            why,
            "it cannot be found out whether a request is allowed"
        );
        respond::failed(&self.uri, why)
    }

    /// Everything that is no resource: discovery, OpenAPI, health, version.
    async fn other(&self, path: &str) -> Result<Response<Body>, ApiError> {
        let question = Question::of_path(&self.method, path);
        let attributes = question.by(&self.user);
        let is_public = health::is_public(path) || discovery::is_public(path, &self.user);
        if is_public && self.cluster.config().authenticator.tells_itself() {
            self.audited.judged(&self.cluster, &attributes, Some(&Decision::Allow));
        } else if let Some(undecided) = self.authorize(&attributes).await? {
            return Ok(undecided);
        }
        if path.starts_with("//") {
            // who is served by path begins with one slash
            return Ok(respond::page_not_found());
        }
        if let Some(backend) = backend_of(&self.cluster, path) {
            return Ok(self.forward(&backend).await);
        }
        if path == "/version" {
            if self.method != Method::GET {
                return Err(ApiError::method_not_allowed());
            }
            self.wanted.check_types(&["application/json"], &[])?;
        }
        if matches!(path, "/metrics" | "/metrics/slis") {
            let metrics = self.cluster.metrics();
            let text = match path {
                "/metrics" => metrics.text(&self.cluster),
                _ => metrics.checks_text(),
            };
            let content_type = HeaderValue::from_static(metrics::CONTENT_TYPE);
            let mut response = respond::with_type(StatusCode::OK, respond::full(text), content_type);
            let started = self.cluster.opened().as_second();
            response.headers_mut().insert(metrics::STARTED, started.into());
            return Ok(response);
        }
        if let Some(answer) = oidc::answer(path, self.cluster.address(), || {
            self.cluster.config().authenticator.settings()
        }) {
            return match self.method == Method::GET {
                true => Ok(answer),
                false => Err(ApiError::method_not_allowed()),
            };
        }
        let flow_control = self.cluster.flow_control();
        if let Some(page) = flow_control.and_then(|own| own.page(&self.cluster, path, &self.query)) {
            let page = respond::full(page);
            return Ok(respond::with_type(StatusCode::OK, page, respond::PLAIN_TEXT));
        }
        if let Some(answer) = zpages::answer(&self.cluster, path, &self.wanted)? {
            return Ok(answer);
        }
        if let Some(answer) = health::answer(&self.cluster, path, &self.query).await {
            return Ok(answer);
        }
        if let Some(answer) = openapi::answer(&self.cluster, path, &self.headers, &self.query)? {
            return Ok(answer);
        }
        let found = discovery::answer(&self.cluster, path, &self.headers, &self.wanted);
        let is_document = found.as_ref().map_or_else(|error| error.code() == 406, Option::is_some);
        if is_document && self.method != Method::GET && !discovery::is_told_by_any_method(&self.cluster, path) {
            return Err(ApiError::method_not_allowed());
        }
        if let Some(found) = found? {
            return Ok(found);
        }
        // what is beneath these documents is looked for by who serves them
        match path.starts_with("/version/") || oidc::is_beneath(path, || self.cluster.config().authenticator.settings())
        {
            true => Err(ApiError::no_such_path()),
            false => Ok(respond::page_not_found()),
        }
    }

    /// Serves a request for a resource to who may ask it, and counts it.
    async fn counted(&self, path: ResourcePath) -> Result<Response<Body>, ApiError> {
        let verb = question::verb(&self.method, &path, &self.query);
        let question = Question::of_resource(verb, &path, &self.query);
        if let Some(undecided) = self.authorize(&question.by(&self.user)).await? {
            return Ok(undecided);
        }
        let definition = self.cluster.find(&path.group, &path.resource);
        // on the heap: what is moved from here on is a pointer, and what serves a resource is large
        if definition.is_none() && reviews::find(&self.cluster, &path).is_none() {
            return Box::pin(self.resource(path, verb, None)).await;
        }
        let is_custom = definition.as_ref().is_some_and(|definition| !definition.is_go_type());
        let asked = Asked::of(&self.method, &path, &self.query, &self.content_type());
        let metrics = self.cluster.metrics();
        let started = Instant::now();
        let running = metrics.begin(&asked);
        let (outcome, waited) = waits::during(Box::pin(self.resource(path, verb, definition))).await;
        drop(running);
        let code = match &outcome {
            Ok(response) => response.status().as_u16(),
            Err(error) => error.code(),
        };
        // upstream's router refuses methods and types of patches before anybody counts
        let is_routed = code != 405 && (code != 415 || self.method != Method::PATCH);
        if is_custom || is_routed {
            metrics.count(asked, code, started.elapsed(), waited);
        }
        outcome
    }

    /// Sends the request on to the server that serves it.
    async fn forward(&self, backend: &Backend) -> Response<Body> {
        let watches = self.query.flag("watch");
        if let Some(seat) = &mut *self.seat.lock() {
            match watches {
                true => seat.has_begun(),
                false => seat.expires(self.until),
            }
        }
        let request = Forwarded {
            method: &self.method,
            path: &self.uri,
            headers: &self.headers,
            body: self
                .unread
                .lock()
                .take()
                .unwrap_or_else(|| respond::full(self.body.clone())),
            user: &self.user,
            origin: Some(Origin {
                from: self.from,
                audit_id: self.audit_id.as_ref(),
            }),
        };
        let response = aggregation::forward(&self.cluster, backend, request).await;
        match watches {
            true => response.map(|body| watch_end::ending(body, self.cluster.watch_end())),
            false => response,
        }
    }

    /// Serves a request for the resource that `definition` describes, or for one that other servers may have.
    async fn resource(
        &self,
        path: ResourcePath,
        verb: &'static str,
        definition: Option<Arc<Definition>>,
    ) -> Result<Response<Body>, ApiError> {
        self.audited.asks(verb, &self.headers, &self.body);
        if let Some(answer) = reviews::answer(self, &path).await? {
            return Ok(answer);
        }
        if let Some(backend) = self
            .cluster
            .aggregation()
            .backend(&self.cluster, &path.group, &path.version)
        {
            return Ok(self.forward(&backend).await);
        }
        let is_custom = definition.as_ref().is_some_and(|definition| !definition.is_go_type());
        // who serves custom resources does not look there
        if !path.beyond.is_empty() && path.subresource != "proxy" && self.cluster.is_built_in(&path.group) {
            return Err(ApiError::no_such_path());
        }
        let definition = definition.filter(|definition| definition.version(&path.version).is_some());
        let (path, definition, posted_to) = match bindings::asked(self, &path)? {
            Some(asked) => (asked.path, Some(asked.pods), Some(asked.bindings)),
            None => (path, definition, None),
        };
        let Some(definition) = definition else {
            return match self.cluster.is_built_in(&path.group) {
                true => Err(ApiError::no_such_path()),
                false => Ok(respond::page_not_found()),
            };
        };
        if self.cluster.name() == ALL_CLUSTERS && !matches!(verb, "list" | "watch") {
            return Err(ApiError::method_not_supported(&path.group, &path.resource, verb));
        }
        let mut old = OLD.iter();
        let old = old.find(|(resource, _)| path.group.is_empty() && *resource == path.resource);
        let deprecation = definition.strategy.deprecation(&path.version);
        let deprecation = deprecation.or(old.map(|(_, told)| *told)).map(str::to_owned);
        if let Some(warning) = &deprecation {
            let removed = warning
                .split_once("unavailable in v")
                .and_then(|(_, rest)| rest.split_once('+'))
                .map(|(release, _)| release);
            self.audited.deprecated(removed);
            self.cluster.metrics().deprecated(&path, removed);
        }
        if !is_custom && !route::is_there(&definition, &path) {
            return Err(ApiError::no_such_path());
        }
        let is_unheard = match path.subresource.as_str() {
            // a watch is asked for where lists are
            "" if verb == "watch" => !definition.verbs.contains(&"list"),
            "" => !definition.verbs.contains(&verb) || route::is_misplaced(verb, &path.name),
            // without a name it looks like a list
            "status" => !matches!(verb, "get" | "list" | "update" | "patch"),
            _ => false,
        };
        let connect = connect::find(&definition, &path.subresource);
        let is_head = self.method == Method::HEAD && connect.is_none_or(connect::Connect::does_one_thing);
        let is_options = connect.is_some_and(|connect| connect.is_asked_options(&self.method));
        if !is_custom && (verb.is_empty() && !is_options || is_unheard || is_head) {
            return Err(ApiError::method_not_allowed());
        }
        // a binding may be posted without saying in the path what is bound
        if !is_custom && path.name.is_empty() && !matches!(path.subresource.as_str(), "" | "binding") {
            return Err(ApiError::bad_request("name must be provided"));
        }
        let is_across = path.namespace.is_empty();
        if is_custom && (definition.namespaced == is_across) && !(is_across && matches!(verb, "list" | "watch")) {
            return Ok(respond::page_not_found());
        }
        // upstream serves custom resources by another handler, which names what it does not do
        if is_custom {
            let version = definition.version(&path.version);
            let verbs: &[&str] = match path.subresource.as_str() {
                "" => &definition.verbs,
                "status" if version.is_some_and(|own| own.status) => &["get", "update", "patch"],
                "scale" if version.is_some_and(|own| own.scale.is_some()) => &["get", "update", "patch"],
                _ => return Err(ApiError::not_found(&path.group, &path.resource, &path.name)),
            };
            if !verbs.contains(&verb) {
                return Err(ApiError::method_not_supported(&path.group, &path.resource, verb));
            }
            if verb == "patch" {
                // who serves custom resources looks at this first, as others do
                let kind = self.patch_kind().ok().filter(|kind| *kind != PatchKind::Strategic);
                kind.ok_or_else(|| ApiError::unsupported_media_type(&PatchKind::OF_CUSTOM_RESOURCES))?;
            }
            if path.name.is_empty() && (matches!(verb, "update" | "patch") || !path.subresource.is_empty()) {
                return Err(ApiError::bad_request("name must be provided"));
            }
        }
        let is_namespace = path.group.is_empty() && path.resource == "namespaces";
        if definition.namespaced && path.namespace.is_empty() && !matches!(verb, "list" | "watch") {
            // across namespaces there are but lists
            return Err(match path.name.is_empty() {
                true => ApiError::method_not_allowed(),
                false => ApiError::no_such_path(),
            });
        }
        if !definition.namespaced && !path.namespace.is_empty() && !is_namespace {
            return Err(ApiError::no_such_path());
        }
        let namespace = match definition.namespaced {
            true => path.namespace.clone(),
            false => String::new(),
        };
        let scope = Scope {
            namespace,
            name: path.name.clone(),
            subresource: path.subresource.clone(),
            verb,
            user: self.user.clone(),
            audited: self.audited.clone(),
            until: self.until,
            posted_to,
            ..Scope::of_all(&self.cluster, definition, &path.version)
        };
        let scope = match verb {
            "get" | "list" | "watch" => scope,
            _ => scope.in_requested(),
        };
        if !is_custom && verb == "patch" && route::can_be_patched(&scope.definition, &scope.subresource) {
            // upstream's router looks at what comes before it looks at what is wanted
            self.patch_kind()?;
        }
        // a write must not happen when its answer cannot be given
        let acceptable = match matches!(path.subresource.as_str(), "" | "status") || scope.is_view() {
            true => self.accept(&scope).map(drop),
            false => Ok(()),
        };
        // what upstream's router refuses does not come to who warns
        let is_told = |_: &String| is_custom || !path.subresource.is_empty() || self.check_route(&scope).is_ok();
        let told: Vec<String> = deprecation.into_iter().filter(is_told).collect();
        let refused_with = Arc::clone(&scope.refused_with);
        let defines =
            !matches!(verb, "get" | "list" | "watch") && self.cluster.defines_custom_resources(&scope.definition);
        let answered = async {
            acceptable?;
            self.catch_up(verb).await?;
            self.wait_for_copies(verb, &path).await?;
            self.act(scope, verb, &path).await
        };
        let answered = answered.await;
        if defines && !path.name.is_empty() {
            crate::crd::names::settle(&self.cluster, &path.name).await?;
        } else if defines {
            crate::crd::names::settle_all(&self.cluster).await?;
        }
        let answered = answered.or_else(|error| {
            let mut response = respond::error(&error, &self.wanted);
            respond::warn(&mut response, &refused_with.take());
            Ok(response)
        });
        answered.map(|mut response| {
            told.into_iter()
                .for_each(|told| respond::warn_first(&mut response, told));
            response
        })
    }

    /// Makes sure that what follows sees everything written before this request, by other servers on the same store, too. Readers who are content
    /// with any state (`resourceVersion=0`) do not wait for it.
    async fn catch_up(&self, verb: &str) -> Result<(), ApiError> {
        if matches!(verb, "get" | "list" | "watch") && self.query.get("resourceVersion") == Some("0") {
            return Ok(());
        }
        let caught_up = self.cluster.store().catch_up().await;
        caught_up.map_err(|behind| ApiError::new(504, "Timeout", behind.to_string()))
    }

    /// Lets no write begin before what admission asks another server for was read once.
    async fn wait_for_copies(&self, verb: &str, path: &ResourcePath) -> Result<(), ApiError> {
        let Some(elsewhere) = &self.cluster.config().elsewhere else {
            return Ok(());
        };
        if matches!(verb, "get" | "list" | "watch") || elsewhere.waiting().is_empty() {
            return Ok(());
        }
        let complete = tokio::time::timeout(COPIES_PATIENCE, elsewhere.complete()).await;
        complete.map_err(|_| {
            ApiError::forbidden(
                &path.group,
                &path.resource,
                &path.name,
                "not yet ready to handle request",
            )
        })
    }
}

/// What clients of the core's resources are told that are to go.
const OLD: [(&str, &str); 2] = [
    ("componentstatuses", "v1 ComponentStatus is deprecated in v1.19+"),
    (
        "endpoints",
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
];
