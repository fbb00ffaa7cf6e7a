//! Lists: answers put together from the stored bytes of their elements. A large one is sent piece by piece: all of it at once would take as much
//! memory as its objects, and its client and the server would wait for each other.

use std::sync::Arc;
use std::vec;

use bytes::{BufMut, Bytes, BytesMut};
use gardener_apimachinery::ApiError;
use gardener_store::Entry;
use http::{Response, StatusCode};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::accept::{Accept, Encoding};
use crate::object::Head;
use crate::registry::{Page, Scope};
use crate::respond::{self, Body};
use crate::table::{self, PARTIAL, Style};
use crate::{protobuf, watch};

/// About how many bytes a piece has.
const PIECE: usize = 128 * 1024;

/// A list in JSON, but for its elements.
pub(crate) struct ListOf {
    /// What stands in front of the elements.
    head: String,
    /// What stands there if there are none.
    empty: &'static str,
    put: Put,
}

/// Writes an element.
type Put = Box<dyn Fn(&mut BytesMut, &Entry) + Send>;

impl ListOf {
    /// Objects; with the clusters that they come from, if it is a list `across` all. Elements of Go types do not say again what they are.
    pub(crate) fn objects(scope: &Scope, list_meta: &Value, across: bool) -> Result<Self, ApiError> {
        let version = scope.spec()?;
        let api_version = scope.definition.api_version(&scope.version);
        let type_meta = match scope.definition.is_go_type() {
            true => format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{}\",", version.kind),
            false => "{".to_owned(),
        };
        let put: Put = match across {
            true => Box::new(|out, entry| watch::put_located(out, entry, &entry.value())),
            false => Box::new(move |out, entry| {
                let value = entry.value();
                match value.strip_prefix(type_meta.as_bytes()) {
                    Some(rest) => {
                        out.put_u8(b'{');
                        out.put_slice(rest);
                    }
                    None => out.put_slice(&value),
                }
            }),
        };
        Ok(Self::items(&version.list_kind, &api_version, list_meta, put))
    }

    /// Objects' metadata.
    pub(crate) fn metadata(scope: &Scope, list_meta: &Value, meta_version: &'static str) -> Self {
        let definition = Arc::clone(&scope.definition);
        let put = Box::new(move |out: &mut BytesMut, entry: &Entry| {
            let head = Head::of(entry, &definition);
            table::put_metadata(out, &definition, head.metadata(&entry.head()), meta_version);
        });
        Self {
            empty: "null",
            ..Self::items(&format!("{PARTIAL}List"), meta_version, list_meta, put)
        }
    }

    /// A table of objects. Each row is written as it is made: all objects at once, parsed, would take a multiple of their bytes.
    pub(crate) fn table(scope: &Scope, list_meta: &Value, now: Timestamp, style: Style) -> Result<Self, ApiError> {
        let version = scope.spec()?;
        let columns = table::column_definitions(version);
        let head = format!(
            "{{\"kind\":\"Table\",\"apiVersion\":\"{}\",\"metadata\":{list_meta},\"columnDefinitions\":{columns},\"rows\":",
            style.meta_version
        );
        let empty = match table::is_plain(version) {
            true => "null",
            false => "[]",
        };
        let (definition, name) = (Arc::clone(&scope.definition), scope.version.clone());
        let put = Box::new(move |out: &mut BytesMut, entry: &Entry| {
            // it was there above
            if let Some(version) = definition.version(&name) {
                table::put_row(out, entry, (&definition, version), now, style);
            }
        });
        Ok(Self { head, empty, put })
    }

    fn items(kind: &str, api_version: &str, list_meta: &Value, put: Put) -> Self {
        Self {
            head: format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{list_meta},\"items\":"),
            empty: "[]",
            put,
        }
    }

    /// The list with these elements.
    pub(crate) fn of(self, entries: Vec<Arc<Entry>>) -> Response<Body> {
        if entries.is_empty() {
            let bytes = format!("{}{}}}\n", self.head, self.empty);
            return respond::raw(StatusCode::OK, bytes, Accept::JSON);
        }
        let mut pieces = Pieces {
            between: self.head + "[",
            put: self.put,
            entries: entries.into_iter(),
        };
        match (pieces.next(), pieces.next()) {
            (Some(first), Some(second)) => {
                let stream = futures::stream::iter([first, second].into_iter().chain(pieces));
                respond::in_pieces(StatusCode::OK, stream, Accept::JSON)
            }
            (first, _) => respond::raw(StatusCode::OK, first.unwrap_or_default(), Accept::JSON),
        }
    }
}

/// The pieces of a list that has elements.
struct Pieces {
    /// What stands in front of the next element; nothing, when all is written.
    between: String,
    put: Put,
    entries: vec::IntoIter<Arc<Entry>>,
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.between.is_empty() {
            return None;
        }
        let mut piece = BytesMut::new();
        while piece.len() < PIECE {
            let Some(entry) = self.entries.next() else {
                piece.put_slice(b"]}\n");
                self.between.clear();
                break;
            };
            piece.put_slice(self.between.as_bytes());
            let head = piece.len();
            (self.put)(&mut piece, &entry);
            // the first element tells how large the others will be; doubling again and again would copy all of it each time
            if piece.capacity() < PIECE {
                let element = piece.len() - head + 1;
                let elements = (PIECE / element + 1).min(self.entries.len());
                piece.reserve(element.saturating_mul(elements));
            }
            if self.between != "," {
                ",".clone_into(&mut self.between);
            }
        }
        Some(piece.freeze())
    }
}

/// The list as protobuf; `list` and `element` are version and kind.
pub(crate) fn in_protobuf(
    page: &Page,
    list_meta: &Value,
    list: (&str, &str),
    element: (&str, &str),
) -> Result<Response<Body>, ApiError> {
    let kind = |(api_version, kind): (&str, &str)| {
        protobuf::Kind::of(api_version, kind).ok_or_else(|| ApiError::internal(format!("{kind} has no protobuf form")))
    };
    let items = page.entries.iter().map(|entry| entry.value());
    let bytes = kind(list)?.encode_list(list_meta, &kind(element)?, items)?;
    let accept = Accept {
        encoding: Encoding::Protobuf,
        ..Accept::JSON
    };
    Ok(respond::raw(StatusCode::OK, bytes, accept))
}

/// The metadata of a list. Lists of custom resources also say when nothing is left to continue.
pub(crate) fn list_meta(page: &Page, is_go_type: bool) -> Value {
    let mut meta = json!({"resourceVersion": page.revision.to_string()});
    if !is_go_type {
        meta["continue"] = "".into();
    }
    if let Some(token) = &page.continue_token {
        meta["continue"] = token.clone().into();
    }
    if let Some(remaining) = page.remaining {
        meta["remainingItemCount"] = remaining.into();
    }
    meta
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use gardener_store::{Change, Expect, Key, ListOptions, MemoryStore, Options, Store, Topic};
    use http::HeaderMap;
    use http::header::ACCEPT_ENCODING;
    use http_body_util::BodyExt;

    use super::*;
    use crate::accept::Wanted;
    use crate::object;

    async fn entries(sizes: &[usize]) -> Vec<Arc<Entry>> {
        let store = MemoryStore::new(object::FORM, Options::default());
        let topic = Topic::new("", "configmaps");
        for (number, size) in sizes.iter().enumerate() {
            let value = json!({"metadata": {"name": number.to_string()}, "data": "x".repeat(*size)});
            let put = Change::Put {
                key: Key::new(topic.clone(), format!("{number:05}")),
                expect: Expect::Absent,
                value: object::encode(&value),
            };
            store.commit(put).await.unwrap();
        }
        store.list(&topic, "", &ListOptions::default()).unwrap().entries
    }

    fn list() -> ListOf {
        let put = Box::new(|out: &mut BytesMut, entry: &Entry| out.put_slice(&entry.value()));
        ListOf::items("ConfigMapList", "v1", &json!({}), put)
    }

    #[tokio::test]
    async fn lists_of_any_size_are_whole() {
        let near = PIECE - list().head.len() - 60;
        let sizes = [
            vec![],
            vec![0],
            vec![10; 3],
            vec![near - 30; 2],
            vec![5; 20_000],
            vec![PIECE * 2, 0, 0],
            vec![0, PIECE * 3],
        ];
        // elements that end just before, at, and just behind the end of a piece
        let sizes = sizes
            .into_iter()
            .chain((near..near + 60).step_by(7).map(|size| vec![size]));
        for sizes in sizes {
            let entries = entries(&sizes).await;
            let elements: Vec<Value> = entries.iter().map(|entry| object::value_of(entry)).collect();
            let whole = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": elements});
            let response = list().of(entries.clone());
            let size = http_body::Body::size_hint(response.body()).exact();
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            assert!(size.is_none_or(|size| size == bytes.len() as u64));
            // the end belongs to the last piece, however full that is
            let before_end = bytes.len() - "]}\n".len();
            assert_eq!(size.is_none(), before_end >= PIECE, "{}", bytes.len());
            assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), whole);

            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, http::HeaderValue::from_static("gzip"));
            let response = respond::compressed(list().of(entries), &Wanted::of(&headers, ""));
            let is_packed = response.headers().contains_key(http::header::CONTENT_ENCODING);
            let sent = response.into_body().collect().await.unwrap().to_bytes();
            let mut unpacked = Vec::new();
            match is_packed {
                true => GzDecoder::new(&*sent).read_to_end(&mut unpacked).unwrap(),
                false => (&*sent).read_to_end(&mut unpacked).unwrap(),
            };
            assert!(unpacked == bytes, "{} bytes, {is_packed}", bytes.len());
        }
    }
}
