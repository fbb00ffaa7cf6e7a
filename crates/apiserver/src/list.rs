//! Lists: answers put together from the stored bytes of their elements.

use bytes::{BufMut, BytesMut};
use gardener_apimachinery::ApiError;
use gardener_store::Entry;
use http::{Response, StatusCode};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::accept::{Accept, Encoding};
use crate::definition::{Definition, Version};
use crate::object::Head;
use crate::registry::{Page, Scope};
use crate::respond::{self, Body};
use crate::table::{self, PARTIAL, Style};
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
    pub(crate) fn metadata(&self, definition: &Definition, meta_version: &str) -> Response<Body> {
        self.json(&format!("{PARTIAL}List"), meta_version, |out, entry| {
            table::put_metadata(
                out,
                definition,
                Head::of(entry, definition).metadata(entry),
                meta_version,
            );
        })
    }

    /// A table of the objects. Each row is written as it is made: all objects at once, parsed, would take a multiple of their bytes.
    pub(crate) fn table(&self, scope: (&Definition, &Version), now: Timestamp, style: Style) -> Response<Body> {
        let columns = table::column_definitions(scope.1);
        let head = format!(
            "{{\"kind\":\"Table\",\"apiVersion\":\"{}\",\"metadata\":{},\"columnDefinitions\":{columns},\"rows\":",
            style.meta_version, self.list_meta
        );
        if self.page.entries.is_empty() && table::is_plain(scope.1) {
            return respond::raw(StatusCode::OK, format!("{head}null}}"), Accept::JSON);
        }
        self.written(&format!("{head}["), |out, entry| {
            table::put_row(out, entry, scope, now, style);
        })
    }

    fn json(&self, kind: &str, api_version: &str, put: impl Fn(&mut BytesMut, &Entry)) -> Response<Body> {
        let list_meta = self.list_meta;
        let head =
            format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{list_meta},\"items\":[");
        self.written(&head, put)
    }

    /// The elements behind a head that ends where they begin.
    fn written(&self, head: &str, put: impl Fn(&mut BytesMut, &Entry)) -> Response<Body> {
        let page = self.page;
        let mut out = BytesMut::new();
        out.put_slice(head.as_bytes());
        for (index, entry) in page.entries.iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            put(&mut out, entry);
            // the first element tells how large the others will be; doubling again and again would copy all of it each time
            if index == 0 {
                out.reserve(out.len().saturating_mul(page.entries.len()));
            }
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
