//! Hashes of answers, by which clients ask whether what they have is still what there is.

use http::header::{ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};
use http::{Response, StatusCode};

use super::{Body, empty};

/// A hash as addresses and `ETag`s tell it.
pub(crate) fn digest(bytes: impl AsRef<[u8]>) -> String {
    ring::digest::digest(&ring::digest::SHA256, bytes.as_ref())
        .as_ref()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

/// An answer with its hash as `ETag`: 304 for who has it already.
pub(crate) fn tagged(headers: &HeaderMap, hash: &str, answer: impl FnOnce() -> Response<Body>) -> Response<Body> {
    let quoted = format!("\"{hash}\"");
    let known = headers
        .get(IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|tags| {
            tags.split(',')
                .map(|known| known.trim().trim_start_matches("W/"))
                .any(|known| known == quoted || known == "*")
        });
    let mut response = if known {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        answer()
    };
    tag(&mut response, hash);
    response
}

/// Has an answer tell its hash.
pub(crate) fn tag(response: &mut Response<Body>, hash: &str) {
    if let Ok(tag) = HeaderValue::try_from(format!("\"{hash}\"")) {
        response.headers_mut().insert(ETAG, tag);
    }
}
