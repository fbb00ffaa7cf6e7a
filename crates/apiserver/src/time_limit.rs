//! How long a request may take. Who keeps to it is `listen`.

use std::time::Duration;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::duration::Duration as GoDuration;
use http::{Method, Request, Response, StatusCode};

use crate::question;
use crate::request::{self, Query, ResourcePath, Target};
use crate::respond::{self, Body};

/// Refuses a `timeout` that is no duration, but of requests that last: watches end when `timeoutSeconds` says, and others with what they are about.
pub(crate) fn check(method: &Method, target: &Target, query: &Query) -> Result<(), ApiError> {
    let Some(text) = query.get("timeout") else {
        return Ok(());
    };
    let watches = matches!(target, Target::Resource(path) if question::verb(method, path, query) == "watch");
    if watches || is_lasting(target) {
        return Ok(());
    }
    let parsed = text.parse::<GoDuration>();
    parsed
        .map(drop)
        .map_err(|why| ApiError::bad_request(format!("invalid timeout specified in the request URL - {why}")))
}

/// What is said of a request that took too long.
pub(crate) const EXCEEDED: &str = "Timeout: request did not complete within the allotted timeout";

/// The answer to a request that took too long. As upstream's it is a `Status` in plain text, whatever the client would accept.
pub(crate) fn exceeded() -> Response<Body> {
    let status = serde_json::json!({
        "metadata": {}, "status": "Failure", "message": EXCEEDED,
        "reason": "Timeout", "details": {}, "code": 504,
    });
    respond::text(StatusCode::GATEWAY_TIMEOUT, format!("{status}\n"))
}

/// Subresources whose requests last as long as what they are about.
const LASTING: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// Whether a request lasts as long as what it is about, and is no watch.
pub(crate) fn is_lasting(target: &Target) -> bool {
    matches!(target, Target::Resource(path) if lasts(path))
}

/// Whether requests for a resource last as long as what they are about: they connect to it.
pub(crate) fn lasts(path: &ResourcePath) -> bool {
    LASTING.contains(&path.subresource.as_str())
}

/// The longest that a write may take, whatever the client and the server allow.
pub(crate) const OF_WRITES: Duration = Duration::from_secs(34);

/// Whether a request writes what this server stores, or puts it to somebody who judges: such requests are bounded by [`OF_WRITES`]. Not so those that
/// last as long as what they are about.
pub(crate) fn is_write(method: &Method, target: &Target) -> bool {
    let changes = matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    changes && matches!(target, Target::Resource(_)) && !is_lasting(target)
}

/// 504: a write took too long.
pub(crate) fn write_exceeded() -> ApiError {
    let why = "Timeout: request did not complete within requested timeout - context deadline exceeded";
    // with details that tell nothing, as upstream's
    ApiError::new(504, "Timeout", why).with_causes(Vec::new())
}

/// How long a request may take: as long as it says, but no longer than `most`. None for watches and others that last.
pub(crate) fn of<B>(request: &Request<B>, most: Duration) -> Option<Duration> {
    let query = Query::parse(request.uri().query().unwrap_or_default());
    let target = request::target(&request::decode_path(request.uri().path()));
    let watches = |path: &ResourcePath| path.legacy_watch || (path.name.is_empty() && query.flag("watch"));
    if is_lasting(&target) || matches!(&target, Target::Resource(path) if watches(path)) {
        return None;
    }
    let own = query.get("timeout").and_then(|text| text.parse::<GoDuration>().ok());
    let own = own.map(GoDuration::to_std).filter(|own| !own.is_zero());
    Some(own.map_or(most, |own| own.min(most)))
}
