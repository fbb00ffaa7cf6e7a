//! Answers: content negotiation, bodies, `Status` objects and headers.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use gardener_apimachinery::ApiError;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;

/// An answer's body.
pub type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// The form in which a client wants objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The objects themselves.
    Object,
    /// A table.
    Table,
    /// Only metadata.
    Metadata,
}

/// The encoding in which a client wants an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
}

/// What a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// Form.
    pub shape: Shape,
    /// Encoding.
    pub encoding: Encoding,
    /// Whether JSON is to be indented.
    pub pretty: bool,
}

impl Accept {
    /// Plain JSON.
    pub const JSON: Self = Self {
        shape: Shape::Object,
        encoding: Encoding::Json,
        pretty: false,
    };

    /// Reads the `Accept` header: the first clause that can be served counts.
    ///
    /// # Errors
    /// 406 when none can.
    pub fn read(headers: &HeaderMap, pretty: bool) -> Result<Self, ApiError> {
        let Some(text) = headers
            .get(ACCEPT)
            .and_then(|value| value.to_str().ok())
            .filter(|text| !text.trim().is_empty())
        else {
            return Ok(Self { pretty, ..Self::JSON });
        };
        for clause in text.split(',') {
            let mut parts = clause.split(';').map(str::trim);
            let encoding = match parts.next().unwrap_or_default() {
                "application/json" | "*/*" | "application/*" => Encoding::Json,
                "application/yaml" => Encoding::Yaml,
                _ => continue,
            };
            let (mut shape, mut group_fits) = (Shape::Object, true);
            for part in parts {
                match part.split_once('=') {
                    Some(("as", "Table")) => shape = Shape::Table,
                    Some(("as", "PartialObjectMetadata" | "PartialObjectMetadataList")) => shape = Shape::Metadata,
                    Some(("as", _)) => group_fits = false,
                    Some(("g", group)) if group != "meta.k8s.io" => group_fits = false,
                    Some(("v", version)) if version != "v1" => group_fits = false,
                    Some(("stream", _)) => {}
                    _ => {}
                }
            }
            if group_fits {
                return Ok(Self {
                    shape,
                    encoding,
                    pretty,
                });
            }
        }
        Err(ApiError::not_acceptable(&["application/json", "application/yaml"]))
    }

    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self.encoding {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
        })
    }
}

/// A body of bytes.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body that comes piece by piece.
pub fn streamed(stream: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    StreamBody::new(stream.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync()
}

/// An answer with a JSON value, in the encoding asked for.
pub fn value(code: StatusCode, body: &Value, accept: Accept) -> Response<Body> {
    let bytes = match accept.encoding {
        Encoding::Json if accept.pretty => serde_json::to_vec_pretty(body).unwrap_or_default(),
        Encoding::Json => serde_json::to_vec(body).unwrap_or_default(),
        Encoding::Yaml => serde_saphyr::to_string(body).unwrap_or_default().into_bytes(),
    };
    raw(code, bytes, accept)
}

/// An answer of bytes that are already encoded.
pub fn raw(code: StatusCode, bytes: impl Into<Bytes>, accept: Accept) -> Response<Body> {
    with_type(code, full(bytes), accept.content_type())
}

/// An answer of plain text.
pub fn text(code: StatusCode, text: impl Into<String>) -> Response<Body> {
    with_type(
        code,
        full(text.into()),
        HeaderValue::from_static("text/plain; charset=utf-8"),
    )
}

/// An answer with a given content type.
pub fn with_type(code: StatusCode, body: Body, content_type: HeaderValue) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response.headers_mut().insert(
        http::header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    response
}

/// What lies outside of all APIs that are served.
pub fn page_not_found() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// A refusal.
pub fn error(error: &ApiError) -> Response<Body> {
    let mut status = serde_json::to_value(error.status()).unwrap_or(Value::Null);
    if let Some(status) = status.as_object_mut() {
        status.insert("kind".into(), "Status".into());
        status.insert("apiVersion".into(), "v1".into());
    }
    let code = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    value(code, &status, Accept::JSON)
}

/// Adds `Warning` headers; control characters in the sentences are dropped.
pub fn warn(response: &mut Response<Body>, warnings: &[String]) {
    let mut seen: Vec<&String> = Vec::new();
    for warning in warnings {
        if seen.contains(&warning) {
            continue;
        }
        seen.push(warning);
        let quoted: String = warning
            .chars()
            .filter(|c| !c.is_control())
            .flat_map(|c| {
                if matches!(c, '"' | '\\') {
                    vec!['\\', c]
                } else {
                    vec![c]
                }
            })
            .collect();
        if let Ok(header) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            response.headers_mut().append(http::header::WARNING, header);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(text: &'static str) -> Result<Accept, ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(text));
        Accept::read(&headers, false)
    }

    #[test]
    fn the_first_servable_clause_counts() {
        assert_eq!(accept("application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json").unwrap().shape, Shape::Table);
        assert_eq!(
            accept("application/vnd.kubernetes.protobuf,application/json").unwrap(),
            Accept::JSON
        );
        assert_eq!(
            accept("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
                .unwrap()
                .shape,
            Shape::Metadata
        );
        assert_eq!(accept("application/yaml").unwrap().encoding, Encoding::Yaml);
        assert_eq!(accept("*/*").unwrap(), Accept::JSON);
        assert_eq!(accept("application/cbor").unwrap_err().code(), 406);
    }
}
