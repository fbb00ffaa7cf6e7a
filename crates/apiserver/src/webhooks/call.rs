//! Asking a webhook: where it is, how long it may take, and what its answer is when it is none.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use gardener_apimachinery::duration::Duration as GoDuration;
use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::type_meta::unreadable;
use serde_json::Value;

use crate::cluster::LogicalCluster;
use crate::decode::{self, Format};

/// Longest part of an answer that messages show.
const SHOWN: usize = 2048;

/// Where a webhook is, as a `clientConfig` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// `https://host[:port]/path`.
    pub url: Option<String>,
    /// A Service of the cluster; counts before the URL.
    pub service: Option<ServiceReference>,
    /// PEM certificates of the authorities that may have signed its certificate; empty: those of the system.
    pub ca_bundle: Vec<u8>,
    /// What this server shows of itself, and how closely it looks at the other one.
    pub credentials: Credentials,
}

/// What only a kubeconfig tells of a webhook; admission webhooks have none of it.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Credentials {
    /// Certificate (chain, PEM) and its key to show.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// How the requests say who asks.
    pub authorization: Authorization,
    /// The name that the webhook's certificate must have; empty: the host of the URL.
    pub server_name: String,
    /// Whether any certificate is believed.
    pub insecure: bool,
}

/// How requests say who asks.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Authorization {
    /// They do not.
    #[default]
    None,
    /// By this value of the header.
    Header(String),
    /// By the bearer token that a file holds when the request is sent.
    TokenFile(PathBuf),
}

impl fmt::Debug for Credentials {
    // keys and tokens stay out of logs
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials")
    }
}

/// A port and path of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceReference {
    /// Namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// Path, may be empty.
    pub path: String,
    /// Port of the Service.
    pub port: u16,
}

impl ServiceReference {
    /// The name that the certificate of the webhook must have.
    pub fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl Endpoint {
    /// The URL that is called, as messages show it.
    fn shown(&self, timeout: Duration) -> String {
        let base = match (&self.service, &self.url) {
            (Some(service), _) => {
                format!("https://{}:{}{}", service.host(), service.port, cleaned(&service.path))
            }
            (None, Some(url)) => match url.split_once("://") {
                Some((scheme, rest)) => {
                    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                    format!("{scheme}://{host}{}", cleaned(path))
                }
                None => url.clone(),
            },
            (None, None) => String::new(),
        };
        format!("{base}?timeout={}", GoDuration::from(timeout))
    }

    /// Whether it is reached without TLS, as only a kubeconfig can say.
    pub(super) fn is_plain(&self) -> bool {
        self.service.is_none() && self.url.as_ref().is_some_and(|url| url.starts_with("http://"))
    }

    /// Host, port (0: not told), and path with query of a call.
    ///
    /// # Errors
    /// There is no URL, or it has no host.
    pub(super) fn parts(&self, timeout: Duration) -> Result<(String, u16, String), String> {
        let shown = self.shown(timeout);
        let url = url::Url::parse(&shown).map_err(|error| format!("parse {}: {error}", go_quote(&shown)))?;
        let host = url.host_str().unwrap_or_default();
        if host.is_empty() {
            return Err("no Host in request URL".to_owned());
        }
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok((host, url.port().unwrap_or(0), path))
    }
}

/// A path as Go's clients for Kubernetes ask for it: without empty parts, `.`, `..` and a slash at the end.
fn cleaned(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// What came back from a webhook.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// `Content-Type`; may be empty.
    pub content_type: String,
    /// The body.
    pub body: Bytes,
}

/// A way to post JSON to webhooks.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Posts a body and waits for the whole answer. The caller limits the time.
    ///
    /// # Errors
    /// Why there is no answer, in the words of Go's HTTP client.
    async fn post(
        &self,
        cluster: &LogicalCluster,
        endpoint: &Endpoint,
        timeout: Duration,
        body: Bytes,
    ) -> Result<Answer, String>;
}

/// The code of failures that are nobody's answer.
pub(super) const UNAVAILABLE: u16 = 503;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unanswered {
    /// What is wrong, worded as upstream's client does.
    pub(crate) why: String,
    /// Whether it may be otherwise in a moment: the webhook has trouble of its own, or the connection was cut.
    pub(crate) passing: bool,
    /// The status code that the webhook answered instead, or 503.
    pub(crate) code: u16,
}

impl Unanswered {
    /// A failure that stays one.
    pub(crate) fn lasting(why: impl Into<String>) -> Self {
        let why = why.into();
        Self {
            why,
            passing: false,
            code: UNAVAILABLE,
        }
    }
}

/// Posts a review and reads the answer, which is an object of `api_version` and `kind`, or tells neither.
///
/// # Errors
/// [`Unanswered`].
pub(crate) async fn ask(
    cluster: &LogicalCluster,
    endpoint: &Endpoint,
    timeout: Duration,
    review: &Value,
) -> Result<Value, Unanswered> {
    read(&post(cluster, endpoint, timeout, Bytes::from(review.to_string())).await?)
}

/// Posts JSON, and waits no longer than `timeout` for whatever is answered.
///
/// # Errors
/// [`Unanswered`].
pub(crate) async fn post(
    cluster: &LogicalCluster,
    endpoint: &Endpoint,
    timeout: Duration,
    body: Bytes,
) -> Result<Answer, Unanswered> {
    let transport = cluster.webhooks().transport();
    let posted = transport.post(cluster, endpoint, timeout, body);
    let answered = match tokio::time::timeout(timeout, posted).await {
        Ok(answered) => answered,
        Err(_) => Err("context deadline exceeded".to_owned()),
    };
    answered.map_err(|why| Unanswered {
        passing: why.contains("connection reset"),
        why: format!("Post {}: {why}", go_quote(&endpoint.shown(timeout))),
        code: UNAVAILABLE,
    })
}

fn read(answer: &Answer) -> Result<Value, Unanswered> {
    let decoded = decoded(&answer.body);
    let refusal = decoded.as_ref().ok().and_then(refused);
    if !(200..=206).contains(&answer.status) {
        return Err(refusal.unwrap_or_else(|| Unanswered {
            why: unstructured(answer),
            passing: matches!(answer.status, 429 | 500 | 504),
            code: answer.status,
        }));
    }
    if answer.body.is_empty() {
        return Err(Unanswered::lasting(format!(
            "0-length response with status code: {} and content type: {}",
            answer.status, answer.content_type
        )));
    }
    match (decoded, refusal) {
        (_, Some(refusal)) => Err(refusal),
        (Ok(decoded), None) => Ok(decoded),
        (Err(why), None) => Err(Unanswered::lasting(why)),
    }
}

/// An answer as JSON. What does not begin as JSON is YAML, whatever its content type.
fn decoded(body: &Bytes) -> Result<Value, String> {
    let is_json = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let value = match is_json {
        true => decode::decode(body, Format::Json)
            .map_err(|error| format!("couldn't get version/kind; json parse error: {}", error.message()))?,
        false => decode::decode(body, Format::Yaml).map_err(|error| error.message().to_owned())?,
    };
    match unreadable(&value.value) {
        Some(why) => Err(why),
        None => Ok(value.value),
    }
}

/// What an answer says that is a `Status` of a failure.
fn refused(value: &Value) -> Option<Unanswered> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let passing = ["InternalError", "Timeout", "ServerTimeout", "TooManyRequests"].contains(&text("reason"));
    let code = value.get("code").and_then(Value::as_u64);
    (text("kind") == "Status" && text("status") != "Success").then(|| Unanswered {
        why: text("message").to_owned(),
        passing,
        code: code.and_then(|code| u16::try_from(code).ok()).unwrap_or(UNAVAILABLE),
    })
}

/// What upstream's client makes of a status code without a `Status`.
fn unstructured(answer: &Answer) -> String {
    let is_text = answer.content_type.is_empty() || answer.content_type.trim_start().starts_with("text/");
    let shown = answer.body.get(..SHOWN).unwrap_or(&answer.body);
    let body = match is_text {
        true => String::from_utf8_lossy(shown).trim().to_owned(),
        false => "unknown".to_owned(),
    };
    let fixed = match answer.status {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => return body,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if body.is_empty() || body == "unknown" => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => return body,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        code if code >= 500 => {
            return format!(
                "an error on the server ({}) has prevented the request from succeeding",
                go_quote(&body)
            );
        }
        code => {
            return format!("the server responded with the status code {code} but did not return more information");
        }
    };
    fixed.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_none() {
        let answer = |status: u16, content_type: &str, body: &str| Answer {
            status,
            content_type: content_type.to_owned(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        };
        for (answer, expected) in [
            (
                answer(404, "text/plain", "404 page not found\n"),
                "the server could not find the requested resource",
            ),
            (
                answer(500, "text/plain; charset=utf-8", "it \"broke\"\n"),
                "an error on the server (\"it \\\"broke\\\"\") has prevented the request from succeeding",
            ),
            (
                answer(500, "application/json", "{}"),
                "an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (
                answer(
                    403,
                    "application/json",
                    r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no"}"#,
                ),
                "no",
            ),
            (
                answer(200, "application/json", ""),
                "0-length response with status code: 200 and content type: application/json",
            ),
            (
                answer(302, "", ""),
                "the server responded with the status code 302 but did not return more information",
            ),
        ] {
            assert_eq!(read(&answer).unwrap_err().why, expected);
        }
        assert_eq!(
            read(&answer(200, "", "{\"a\":1}")).unwrap(),
            serde_json::json!({"a": 1})
        );
    }

    #[test]
    fn urls_as_messages_show_them() {
        let service = |path: &str| Endpoint {
            service: Some(ServiceReference {
                namespace: "ns".into(),
                name: "svc".into(),
                path: path.into(),
                port: 443,
            }),
            ..Endpoint::default()
        };
        let ten = Duration::from_secs(10);
        assert_eq!(service("/a/b").shown(ten), "https://svc.ns.svc:443/a/b?timeout=10s");
        assert_eq!(service("").shown(ten), "https://svc.ns.svc:443/?timeout=10s");
        assert_eq!(
            service("/a").parts(ten),
            Ok(("svc.ns.svc".into(), 0, "/a?timeout=10s".into())),
            "443 is the scheme's own port"
        );
        assert_eq!(
            service("//a/./b/../c/").shown(ten),
            "https://svc.ns.svc:443/a/c?timeout=10s"
        );
        for (given, wanted) in [
            ("https://h:1//mutate-v1-pod", "https://h:1/mutate-v1-pod?timeout=10s"),
            ("https://h/a/", "https://h/a?timeout=10s"),
            ("https://h", "https://h/?timeout=10s"),
        ] {
            let url = Some(given.to_owned());
            assert_eq!(
                Endpoint {
                    url,
                    ..Endpoint::default()
                }
                .shown(ten),
                wanted
            );
        }
        let url = Endpoint {
            url: Some("https://[::1]:8443/x".into()),
            ..Endpoint::default()
        };
        assert_eq!(
            url.parts(Duration::from_secs(1)),
            Ok(("::1".into(), 8443, "/x?timeout=1s".into()))
        );
    }
}
