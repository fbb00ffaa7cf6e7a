//! Lists: answers put together from the stored bytes of their elements.

use bytes::{BufMut, BytesMut};
use gardener_apimachinery::ApiError;
use gardener_store::Entry;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::accept::{Accept, Encoding};
use crate::definition::Version;
use crate::registry::{Page, Scope};
use crate::respond::{self, Body};
use crate::table::{self, PARTIAL};
use crate::{protobuf, watch};

/// A list that is put together from the stored bytes of its elements.
pub(crate) struct ListOf<'p> {
    pub(crate) page: &'p Page,
    pub(crate) list_meta: &'p Value,
    /// Whether the elements come from all logical clusters.
    pub(crate) across: bool,
}

impl ListOf<'_> {
    /// The objects. Elements of Go types do not say again what they are.
    pub(crate) fn objects(&self, version: &Version, api_version: &str, scope: &Scope) -> Response<Body> {
        let type_meta = match scope.definition.is_go_type() {
            true => format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{}\",", version.kind),
            false => "{".to_owned(),
        };
        self.json(&version.list_kind, api_version, |out, entry| {
            if self.across {
                return watch::put_located(out, entry, &entry.value);
            }
            match entry.value.strip_prefix(type_meta.as_bytes()) {
                Some(rest) => {
                    out.put_u8(b'{');
                    out.put_slice(rest);
                }
                None => out.put_slice(&entry.value),
            }
        })
    }

    /// The objects' metadata.
    pub(crate) fn metadata(&self, meta_version: &str) -> Response<Body> {
        self.json(&format!("{PARTIAL}List"), meta_version, |out, entry| {
            table::put_metadata(out, &entry.value, meta_version);
        })
    }

    fn json(&self, kind: &str, api_version: &str, put: impl Fn(&mut BytesMut, &Entry)) -> Response<Body> {
        let Self { page, list_meta, .. } = self;
        let size: usize = page.entries.iter().map(|entry| entry.value.len() + 64).sum();
        let mut out = BytesMut::with_capacity(size + 256);
        out.put_slice(
            format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{list_meta},\"items\":[")
                .as_bytes(),
        );
        for (index, entry) in page.entries.iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            put(&mut out, entry);
        }
        out.put_slice(b"]}");
        respond::raw(StatusCode::OK, out.freeze(), Accept::JSON)
    }

    /// The list as protobuf; `list` and `element` are version and kind.
    pub(crate) fn protobuf(&self, list: (&str, &str), element: (&str, &str)) -> Result<Response<Body>, ApiError> {
        let kind = |(api_version, kind): (&str, &str)| {
            protobuf::Kind::of(api_version, kind)
                .ok_or_else(|| ApiError::internal(format!("{kind} has no protobuf form")))
        };
        let items = self.page.entries.iter().map(|entry| entry.value.as_ref());
        let bytes = kind(list)?.encode_list(self.list_meta, &kind(element)?, items)?;
        let accept = Accept {
            encoding: Encoding::Protobuf,
            ..Accept::JSON
        };
        Ok(respond::raw(StatusCode::OK, bytes, accept))
    }
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
