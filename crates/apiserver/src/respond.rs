//! Answers: bodies, `Status` objects and headers. Which form a client accepts is found out in [`crate::accept`].

use bytes::Bytes;
use futures::{Stream, StreamExt};
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;

use crate::accept::{Accept, Encoding, Offer, Wanted};
use crate::{authz, meta, protobuf};

mod at_end;
mod gzip;
pub(crate) mod tags;
mod warnings;
mod yaml;

pub(crate) use at_end::at_end;
pub use warnings::{warn, warn_first};

/// Above this many bytes answers are worth compressing.
const COMPRESSED_FROM: u64 = 128 * 1024;

/// What Go's encoder writes behind each document that is not indented: clients that read lines read the last one, too.
pub const JSON_END: u8 = b'\n';

/// The type of plain text.
pub(crate) const PLAIN_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// What caches may do with most answers: nothing.
const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-cache, private");

/// An answer's body.
pub type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A body of bytes.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body that comes piece by piece.
pub fn streamed(stream: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    StreamBody::new(stream.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync()
}

/// An answer with an object as JSON value, in the encoding asked for. What has no protobuf form is sent as JSON.
pub fn value(code: StatusCode, body: &Value, accept: Accept) -> Response<Body> {
    let kind = match accept.encoding {
        Encoding::Protobuf => protobuf::Kind::of(meta::text(body, "/apiVersion"), meta::text(body, "/kind")),
        Encoding::Json | Encoding::Yaml => None,
    };
    let bytes = match (accept.encoding, kind) {
        (Encoding::Protobuf, Some(kind)) => match kind.encode_value(body) {
            Ok(bytes) => return raw(code, bytes, accept),
            Err(failed) => return error(&failed, &Wanted::default()),
        },
        (Encoding::Json, _) if accept.pretty => serde_json::to_vec_pretty(body).unwrap_or_default(),
        (Encoding::Json | Encoding::Protobuf, _) => {
            let mut bytes = serde_json::to_vec(body).unwrap_or_default();
            bytes.push(JSON_END);
            return raw(code, bytes, Accept::JSON);
        }
        (Encoding::Yaml, _) => yaml::text(body),
    };
    raw(code, bytes, accept)
}

/// An answer with an object as its JSON is stored.
pub fn stored(code: StatusCode, json: &[u8]) -> Response<Body> {
    let mut bytes = Vec::with_capacity(json.len() + 1);
    bytes.extend_from_slice(json);
    bytes.push(JSON_END);
    raw(code, bytes, Accept::JSON)
}

/// An answer of bytes that are already encoded.
pub fn raw(code: StatusCode, bytes: impl Into<Bytes>, accept: Accept) -> Response<Body> {
    with_type(code, full(bytes), HeaderValue::from_static(accept.content_type()))
}

/// An answer that is encoded piece by piece, of more bytes than are worth compressing.
pub fn in_pieces(
    code: StatusCode,
    pieces: impl Stream<Item = Bytes> + Send + 'static,
    accept: Accept,
) -> Response<Body> {
    let mut response = with_type(code, streamed(pieces), HeaderValue::from_static(accept.content_type()));
    response.extensions_mut().insert(InPieces);
    response
}

/// Marks an answer that comes piece by piece, and ends by itself.
#[derive(Clone, Copy)]
struct InPieces;

/// An answer of plain text, which no browser is to take for anything else.
pub fn text(code: StatusCode, text: impl Into<String>) -> Response<Body> {
    let mut response = with_type(code, full(text.into()), PLAIN_TEXT);
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// 500 without a `Status`, as upstream answers where it does not get as far as to know what is asked for, or by whom.
pub(crate) fn failed(uri: &str, why: &str) -> Response<Body> {
    let told = format!("Internal Server Error: {}: {why}\n", go_quote(uri));
    text(StatusCode::INTERNAL_SERVER_ERROR, authz::without_markup(&told))
}

/// An answer without a body.
pub fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = code;
    response.headers_mut().insert(CACHE_CONTROL, NOT_KEPT);
    response
}

/// An answer with a given content type.
pub fn with_type(code: StatusCode, body: Body, content_type: HeaderValue) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response.headers_mut().insert(CACHE_CONTROL, NOT_KEPT);
    response
}

/// What lies outside of all APIs that are served.
pub fn page_not_found() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// The answer of a server that ends and takes no more requests.
pub fn ending() -> Response<Body> {
    let why = "The apiserver is shutting down, please try again later.\n";
    let mut response = text(StatusCode::TOO_MANY_REQUESTS, why);
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// The answer of a server that serves as many requests as it may; after so many seconds it may be asked again.
pub(crate) fn busy(after: u64) -> Response<Body> {
    let why = "Too many requests, please try again later.\n";
    let mut response = text(StatusCode::TOO_MANY_REQUESTS, why);
    response.headers_mut().insert(RETRY_AFTER, after.into());
    response
}

/// A refusal, in a form that the client reads if there is one.
pub fn error(error: &ApiError, wanted: &Wanted) -> Response<Body> {
    let code = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let readable = Accept {
        pretty: true,
        ..Accept::JSON
    };
    let accept = Accept::choose(wanted, Offer::ONE_SHAPE).unwrap_or(readable);
    let mut response = value(code, &status(error), accept);
    let seconds = error
        .status()
        .details
        .as_ref()
        .map_or(0, |details| details.retry_after_seconds.unwrap_or(0));
    if seconds > 0 {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// The `Status` of a refusal.
pub fn status(error: &ApiError) -> Value {
    let mut status = serde_json::to_value(error.status()).unwrap_or(Value::Null);
    if let Some(status) = status.as_object_mut() {
        status.insert("kind".into(), "Status".into());
        status.insert("apiVersion".into(), "v1".into());
    }
    status
}

/// The answer, compressed where that is worth it and the client can read it. Of what comes piece by piece, that is what ends by itself.
pub fn compressed(response: Response<Body>, wanted: &Wanted) -> Response<Body> {
    let size = http_body::Body::size_hint(response.body()).exact();
    let is_large = size.is_some_and(|size| size > COMPRESSED_FROM) || response.extensions().get::<InPieces>().is_some();
    if !wanted.gzip || !is_large || response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, gzip::packed(body))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use http::HeaderMap;
    use http::header::ACCEPT_ENCODING;

    use super::*;

    async fn answered(size: usize, encodings: &'static str) -> (bool, Vec<u8>) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encodings));
        let plain = raw(StatusCode::OK, vec![b'x'; size], Accept::JSON);
        let (parts, body) = compressed(plain, &Wanted::of(&headers, "")).into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        (parts.headers.contains_key(CONTENT_ENCODING), bytes)
    }

    #[tokio::test]
    async fn large_answers_are_compressed_for_those_who_can_read_them() {
        const LARGE: usize = 200 * 1024;
        let (packed, bytes) = answered(LARGE, "deflate, gzip").await;
        let mut text = Vec::new();
        GzDecoder::new(bytes.as_slice()).read_to_end(&mut text).unwrap();
        assert!(packed && bytes.len() < LARGE / 10 && text == vec![b'x'; LARGE]);
        assert_eq!(answered(LARGE, "identity").await, (false, vec![b'x'; LARGE]));
        assert_eq!(answered(1000, "gzip").await, (false, vec![b'x'; 1000]));
    }
}
