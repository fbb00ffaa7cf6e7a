//! Answers about objects in the form that the client accepts: itself, its metadata, a row of a table; alone or in a list.

use bytes::BytesMut;
use gardener_apimachinery::ApiError;
use gardener_store::Entry;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::Call;
use crate::accept::{Accept, Encoding, Offer, Shape};
use crate::definition::Definition;
use crate::list::{self, ListOf, list_meta};
use crate::registry::{Page, Scope, Written};
use crate::respond::{self, Body};
use crate::server::ALL_CLUSTERS;
use crate::table::{self, Include, PARTIAL};
use crate::{object, protobuf};

impl Call {
    /// The form of answers about a resource's objects.
    pub(crate) fn accept(&self, scope: &Scope) -> Result<Accept, ApiError> {
        if scope.definition.is_go_type() {
            self.check_route(scope)?;
        }
        Accept::choose(&self.wanted, self.offer(scope)?)
    }

    pub(super) fn check_route(&self, scope: &Scope) -> Result<(), ApiError> {
        let lists = self.method == Method::GET && scope.name.is_empty();
        self.wanted.check_route(lists)
    }

    pub(super) fn offer(&self, scope: &Scope) -> Result<Offer, ApiError> {
        Ok(Offer {
            protobuf: scope.definition.is_go_type()
                && self.cluster.name() != ALL_CLUSTERS
                && protobuf::knows(&scope.definition.group, &scope.version, &scope.spec()?.kind),
            shapes: true,
            tables: scope.subresource.is_empty() || scope.definition.strategy.has_tables_of(&scope.subresource),
        })
    }

    /// The form of answers that may be tables or metadata, too, and are the same for all kinds.
    pub(crate) fn accept_shapes(&self, scope: &Scope) -> Result<Accept, ApiError> {
        self.wanted.check_route(false)?;
        let offer = Offer {
            shapes: true,
            tables: scope.definition.strategy.has_tables_of(&scope.subresource),
            ..Offer::ONE_SHAPE
        };
        Accept::choose(&self.wanted, offer)
    }

    /// The form of answers to what is only posted: upstream makes no tables of that.
    pub(crate) fn accept_posted(&self) -> Result<Accept, ApiError> {
        self.wanted.check_route(false)?;
        let offer = Offer {
            shapes: true,
            ..Offer::ONE_SHAPE
        };
        Accept::choose(&self.wanted, offer)
    }

    /// An object in the form the client accepts.
    pub(crate) fn object(&self, code: StatusCode, object: Value, scope: &Scope) -> Result<Response<Body>, ApiError> {
        self.shown(code, object, scope, self.accept(scope)?)
    }

    pub(super) fn shown(
        &self,
        code: StatusCode,
        object: Value,
        scope: &Scope,
        accept: Accept,
    ) -> Result<Response<Body>, ApiError> {
        let shown = match accept.shape {
            Shape::Object => object,
            Shape::Metadata => table::metadata_only(&scope.definition, &object, accept.meta_version()),
            Shape::MetadataList => return Err(misshaped(scope, false)),
            Shape::Table => {
                let revision = crate::meta::resource_version(&object).to_owned();
                table::table(
                    &scope.definition,
                    scope.spec()?,
                    self.cluster.clock().now(),
                    &[object],
                    self.table_style(accept)?,
                    match revision.is_empty() {
                        true => json!({}),
                        false => json!({"resourceVersion": revision}),
                    },
                    true,
                )
            }
        };
        Ok(respond::value(code, &shown, accept))
    }

    pub(crate) fn table_style(&self, accept: Accept) -> Result<table::Style, ApiError> {
        Ok(table::Style {
            include: Include::read(self.query.get("includeObject"))?,
            meta_version: accept.meta_version(),
        })
    }

    /// A page of objects in the form the client accepts.
    pub(super) async fn page(&self, scope: &Scope, page: Page, accept: Accept) -> Result<Response<Body>, ApiError> {
        let version = scope.spec()?;
        let api_version = scope.definition.api_version(&scope.version);
        let list_meta = list_meta(&page, scope.definition.is_go_type() || accept.shape != Shape::Object);
        let current = || page.entries.iter().all(|entry| scope.is_current(entry));
        if scope.is_stored_version() && !accept.pretty && current() {
            let across = self.cluster.name() == ALL_CLUSTERS;
            let meta_version = accept.meta_version();
            let list = match (accept.shape, accept.encoding) {
                (Shape::Object, Encoding::Json) => Some(ListOf::objects(scope, &list_meta, across)?),
                (Shape::MetadataList, Encoding::Json) => Some(ListOf::metadata(scope, &list_meta, meta_version)),
                (Shape::Table, Encoding::Json) if !across => {
                    let now = self.cluster.clock().now();
                    Some(ListOf::table(scope, &list_meta, now, self.table_style(accept)?)?)
                }
                (Shape::Object, Encoding::Protobuf) => {
                    let list = (&*api_version, &*version.list_kind);
                    return list::in_protobuf(&page, &list_meta, list, (&api_version, &version.kind));
                }
                (Shape::MetadataList, Encoding::Protobuf) => {
                    let list = (meta_version, &*format!("{PARTIAL}List"));
                    return list::in_protobuf(&page, &list_meta, list, (meta_version, PARTIAL));
                }
                _ => None,
            };
            if let Some(list) = list {
                return Ok(list.of(page.entries));
            }
        }
        let mut objects: Vec<Value> = page.entries.iter().map(|entry| object::value_of(entry)).collect();
        scope
            .all_to_requested(&mut objects.iter_mut().collect::<Vec<_>>())
            .await?;
        self.listed(scope, objects, list_meta, accept)
    }

    /// A list of objects, which are of the request's version, in the form the client accepts.
    pub(crate) fn listed(
        &self,
        scope: &Scope,
        mut objects: Vec<Value>,
        list_meta: Value,
        accept: Accept,
    ) -> Result<Response<Body>, ApiError> {
        let version = scope.spec()?;
        if accept.shape == Shape::Object && scope.definition.is_go_type() {
            objects.iter_mut().for_each(object::drop_type);
        }
        let shown = match accept.shape {
            Shape::Object => {
                let api_version = scope.definition.api_version(&scope.version);
                json!({"kind": version.list_kind, "apiVersion": api_version, "metadata": list_meta, "items": objects})
            }
            Shape::Metadata => return Err(misshaped(scope, true)),
            Shape::MetadataList => json!({
                "kind": format!("{PARTIAL}List"), "apiVersion": accept.meta_version(), "metadata": list_meta,
                // as Go writes a list to which nothing was added
                "items": (!objects.is_empty()).then(|| objects.iter().map(|object| table::metadata_only(&scope.definition, object, accept.meta_version())).collect::<Vec<_>>()),
            }),
            Shape::Table => table::table(
                &scope.definition,
                version,
                self.cluster.clock().now(),
                &objects,
                self.table_style(accept)?,
                list_meta,
                true,
            ),
        };
        Ok(respond::value(StatusCode::OK, &shown, accept))
    }

    pub(crate) fn written(&self, written: Written, scope: &Scope) -> Result<Response<Body>, ApiError> {
        let code = if written.created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        let accept = self.accept(scope)?;
        let stored = written.entry.as_deref().and_then(|entry| scope.plain(entry, accept));
        let mut response = match stored {
            Some(bytes) => respond::stored(code, &bytes),
            None => {
                let shown = self.shown(code, written.object.into_json(), scope, accept);
                shown.inspect_err(|_| scope.refused_with.extend(written.warnings.iter().cloned()))?
            }
        };
        respond::warn(&mut response, &written.warnings);
        Ok(response)
    }
}

/// The answer about an object that its stored bytes make; none, where the object has to be read for it.
pub(super) fn stored(entry: &Entry, scope: &Scope, accept: Accept) -> Result<Option<Response<Body>>, ApiError> {
    if let Some(bytes) = scope.plain(entry, accept) {
        return Ok(Some(respond::stored(StatusCode::OK, &bytes)));
    }
    if !scope.is_stored_version() {
        return Ok(None);
    }
    if let Some(kind) = scope.protobuf_kind(accept) {
        let encoded = kind.encode(&entry.value())?;
        return Ok(Some(respond::raw(StatusCode::OK, encoded, accept)));
    }
    let is_metadata = (accept.shape, accept.encoding, accept.pretty) == (Shape::Metadata, Encoding::Json, false);
    if !is_metadata || !scope.is_current(entry) {
        return Ok(None);
    }
    let (mut shown, head) = (BytesMut::new(), entry.head());
    let metadata = object::metadata_of(&head);
    table::put_metadata(&mut shown, &scope.definition, metadata, accept.meta_version());
    Ok(Some(respond::stored(StatusCode::OK, &shown)))
}

/// The `Status` of a completed deletion.
pub(super) fn success(definition: &Definition, object: &Value) -> Value {
    let mut details = json!({"name": crate::meta::name(object), "kind": definition.plural, "uid": crate::meta::text(object, "/metadata/uid")});
    if let (Value::Object(details), false) = (&mut details, definition.group.is_empty()) {
        details.insert("group".into(), definition.group.clone().into());
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// 406: a list was asked for in the form of one object, or one object in that of a list. (Custom resources are of a type of upstream's that could
/// be a list, so that it fails only when it looks into them.)
fn misshaped(scope: &Scope, is_list: bool) -> ApiError {
    let definition = &scope.definition;
    let kind = match definition.is_go_type() {
        true => format!(
            "{}.{}",
            definition.go_package(),
            scope.spec().map_or("", |version| &version.kind)
        ),
        false => "unstructured.Unstructured".to_owned(),
    };
    match is_list {
        true => ApiError::new(
            406,
            "NotAcceptable",
            format!("you requested {PARTIAL}, but the requested object is a list (*{kind}List)"),
        ),
        false if definition.is_go_type() => no_list(&kind),
        false => ApiError::unclassified("content is not a list"),
    }
}

/// Refuses to make a list of one object of this Go type.
pub(crate) fn no_list(go_type: &str) -> ApiError {
    let why = format!("you requested {PARTIAL}List, but the requested object is not a list (*{go_type})");
    ApiError::new(406, "NotAcceptable", why)
}
