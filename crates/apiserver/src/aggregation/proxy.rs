//! Sends requests on to the server that serves them. Who asks is told in headers; the server believes them because of the certificate that this
//! one shows.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use http::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, LOCATION};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;

use super::backend::Backend;
use crate::cluster::LogicalCluster;
use crate::handle::AUDIT_ID;
use crate::respond::{self, Body};
use crate::user::UserInfo;
use crate::webhooks::{EndpointResolver, ServiceResolver};

/// Headers that are about one connection, not about the request.
const OF_THE_CONNECTION: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// How headers begin that tell who asks; nobody but this server may say that.
const WHO: [&str; 2] = ["x-remote-", "impersonate-"];

/// A request on its way.
pub(crate) struct Forwarded<'r> {
    pub(crate) method: &'r Method,
    /// Path and query, as they came.
    pub(crate) path: &'r str,
    pub(crate) headers: &'r HeaderMap,
    pub(crate) body: Body,
    pub(crate) user: &'r UserInfo,
    /// Where it comes from, if somebody else made it.
    pub(crate) origin: Option<Origin<'r>>,
}

/// Where a request comes from.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'r> {
    /// The other end of its connection; none inside the process.
    pub(crate) from: Option<IpAddr>,
    /// By what it is found again in audit logs.
    pub(crate) audit_id: Option<&'r HeaderValue>,
}

/// How long a server may take that is asked for what it has of a version: clients ask all servers for that.
const DISCOVERY_PATIENCE: Duration = Duration::from_secs(5);

/// What is said of a server that sends clients elsewhere.
const REDIRECTED: &str = "the backend attempted to redirect this request, which is not permitted";

/// Whether a path, with its query, is a version's: what is told there is what there is of it.
fn is_discovery(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.starts_with("/apis/") && path.trim_matches('/').split('/').count() == 3
}

/// Sends a request on, and the answer back as it comes.
pub(crate) async fn forward(cluster: &LogicalCluster, backend: &Backend, request: Forwarded<'_>) -> Response<Body> {
    let unavailable = |why: &str| respond::text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"));
    if !backend.available {
        return unavailable("service unavailable");
    }
    let patience = is_discovery(request.path).then_some(DISCOVERY_PATIENCE);
    let sent = send(cluster, backend, request);
    let answered = match patience {
        Some(patience) => tokio::time::timeout(patience, sent)
            .await
            .unwrap_or_else(|_| Err(Failed::Call("context deadline exceeded".to_owned()))),
        None => sent.await,
    };
    match answered {
        Ok(response) if cluster.config().rejects_redirects && is_redirect(&response) => {
            respond::with_type(StatusCode::BAD_GATEWAY, respond::full(REDIRECTED), respond::PLAIN_TEXT)
        }
        Ok(response) => response,
        Err(Failed::Unresolved(why)) => {
            tracing::warn!(api_service = %backend.name, %why, "the service cannot be resolved");
            unavailable("service unavailable")
        }
        Err(Failed::Setup(why)) => respond::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")),
        Err(Failed::Call(why)) => unavailable(&format!("error trying to reach service: {why}")),
    }
}

/// Whether an answer sends the client elsewhere.
fn is_redirect(response: &Response<Body>) -> bool {
    let leads = response.headers().get(LOCATION);
    response.status().is_redirection() && leads.is_some_and(|place| !place.is_empty())
}

/// Why there is no answer.
pub(super) enum Failed {
    /// The Service leads nowhere.
    Unresolved(String),
    /// The APIService, or this server's own certificate, is of no use.
    Setup(String),
    /// The server does not answer.
    Call(String),
}

/// Sends a request, whether the server is known to be there or not.
pub(super) async fn send(
    cluster: &LogicalCluster,
    backend: &Backend,
    request: Forwarded<'_>,
) -> Result<Response<Body>, Failed> {
    let address = EndpointResolver
        .resolve(cluster, &backend.service)
        .map_err(Failed::Unresolved)?;
    let identity = cluster.aggregation().identity.load_full();
    let egress = &cluster.config().egress;
    let client = backend.client(identity.as_deref(), egress).await;
    let client = client.map_err(Failed::Setup)?;
    let uri: Uri = format!("https://{address}{}", request.path)
        .parse()
        .map_err(|error: http::uri::InvalidUri| Failed::Setup(error.to_string()))?;
    let mut sent = Request::builder()
        .method(request.method)
        .uri(uri)
        .body(request.body)
        .map_err(|error| Failed::Setup(error.to_string()))?;
    *sent.headers_mut() = headers(request.headers, request.user);
    if let Some(origin) = request.origin {
        let path = sent.uri().path().to_owned();
        tell_origin(sent.headers_mut(), origin, &address, &path);
    }
    let answer = client.request(sent).await.map_err(|error| Failed::Call(told(&error)))?;
    let (mut parts, body) = answer.into_parts();
    for name in OF_THE_CONNECTION {
        parts.headers.remove(name);
    }
    Ok(Response::from_parts(
        parts,
        body.map_err(std::io::Error::other).boxed_unsync(),
    ))
}

/// An error with what caused it.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

/// The headers of a request as the server gets them.
fn headers(came: &HeaderMap, user: &UserInfo) -> HeaderMap {
    let mut headers: HeaderMap = came
        .iter()
        .filter(|(name, _)| {
            let name = name.as_str();
            !OF_THE_CONNECTION.contains(&name)
                && !WHO.iter().any(|prefix| name.starts_with(prefix))
                && name != AUTHORIZATION.as_str()
                && name != HOST.as_str()
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut tell = |name: &str, value: &str| {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    };
    tell("x-remote-user", &user.name);
    if !user.uid.is_empty() {
        tell("x-remote-uid", &user.uid);
    }
    for group in &user.groups {
        tell("x-remote-group", group);
    }
    for (key, values) in &user.extra {
        for value in values {
            tell(&format!("x-remote-extra-{}", escaped(key)), value);
        }
    }
    headers
}

/// Tells where a request comes from and where it goes, in the headers of proxies.
fn tell_origin(headers: &mut HeaderMap, origin: Origin<'_>, address: &str, path: &str) {
    let mut tell = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    tell("x-forwarded-uri", path);
    tell("x-forwarded-host", address);
    tell("x-forwarded-proto", "https");
    if let Some(from) = origin.from {
        let before = headers.get_all(FORWARDED_FOR).iter();
        let mut all: Vec<String> = before
            .filter_map(|told| told.to_str().ok().map(str::to_owned))
            .collect();
        all.push(from.to_string());
        if let Ok(all) = HeaderValue::try_from(all.join(", ")) {
            headers.insert(FORWARDED_FOR, all);
        }
    }
    if let Some(audit_id) = origin.audit_id {
        headers.insert(AUDIT_ID, audit_id.clone());
    }
}

/// By which proxies a request came.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A key of extra information as part of a header's name: what a name cannot have is percent-encoded.
fn escaped(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        match plain {
            true => out.push(char::from(byte)),
            // writing into a text cannot fail
            false => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_where_a_request_comes_from() {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", HeaderValue::from_static("1.1.1.1"));
        headers.insert("x-forwarded-uri", HeaderValue::from_static("/forged"));
        headers.insert(AUDIT_ID, HeaderValue::from_static("its"));
        let own = HeaderValue::from_static("ours");
        let origin = Origin {
            from: Some("2.2.2.2".parse().unwrap()),
            audit_id: Some(&own),
        };
        tell_origin(&mut headers, origin, "10.0.0.1:443", "/apis/e.com/v1/ones");
        for (name, value) in [
            ("x-forwarded-for", "1.1.1.1, 2.2.2.2"),
            ("x-forwarded-uri", "/apis/e.com/v1/ones"),
            ("x-forwarded-host", "10.0.0.1:443"),
            ("x-forwarded-proto", "https"),
            ("audit-id", "ours"),
        ] {
            assert_eq!(headers[name], value, "{name}");
        }
        assert_eq!(headers.len(), 5);
    }

    #[test]
    fn versions_are_told_from_what_is_in_them() {
        for (path, is) in [
            ("/apis/e.com/v1", true),
            ("/apis/e.com/v1/?timeout=32s", true),
            ("/apis/e.com", false),
            ("/apis/e.com/v1/ones", false),
            ("/openapi/v3/apis/e.com/v1", false),
        ] {
            assert_eq!(is_discovery(path), is, "{path}");
        }
    }

    #[test]
    fn only_this_server_says_who_asks() {
        let mut came = HeaderMap::new();
        for (name, value) in [
            ("accept", "application/json"),
            ("authorization", "Bearer secret"),
            ("connection", "keep-alive"),
            ("x-remote-user", "root"),
            ("x-remote-extra-a", "b"),
            ("impersonate-user", "root"),
            ("host", "here"),
        ] {
            came.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let mut user = UserInfo::new("alice", &["staff", "admins"]);
        user.extra
            .insert("example.com/level".into(), vec!["1".into(), "2".into()]);
        let sent = headers(&came, &user);
        let mut found: Vec<(&str, &str)> = sent
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [
                ("accept", "application/json"),
                ("x-remote-extra-example.com%2flevel", "1"),
                ("x-remote-extra-example.com%2flevel", "2"),
                ("x-remote-group", "admins"),
                ("x-remote-group", "staff"),
                ("x-remote-group", "system:authenticated"),
                ("x-remote-user", "alice"),
            ]
        );
    }
}
