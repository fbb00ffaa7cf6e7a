//! What the verbs do with a resource: reads, watches, writes and deletions. Whether the caller may was found out before.

use futures::StreamExt;
use gardener_apimachinery::ApiError;
use http::{HeaderValue, Response, StatusCode};

use super::{Call, shown};
use crate::accept::{Accept, Shape};
use crate::metrics::{Asked, Watching};
use crate::registry::{Deleted, ListQuery, Scope, parse_revision};
use crate::request::ResourcePath;
use crate::respond::{self, Body};
use crate::{component_status, object, scale, subresource, watch};

impl Call {
    /// Does what a request for a resource asks for.
    pub(super) async fn act(&self, scope: Scope, verb: &str, path: &ResourcePath) -> Result<Response<Body>, ApiError> {
        match verb {
            "get" | "list" | "watch" if component_status::is_found_out(&scope.definition) => {
                component_status::answer(self, &scope, verb).await
            }
            "watch" => self.watch(scope, path).await,
            "list" => self.list(&scope).await,
            _ if !scope.subresource.is_empty() && scope.subresource != "status" && !scope.is_view() => {
                self.subresource(&scope, verb, &path.beyond).await
            }
            _ if scope.is_view() && !scope.definition.strategy.view_verbs().contains(&verb) => {
                Err(ApiError::method_not_allowed())
            }
            "get" => self.get(&scope).await,
            // a name in the path is not looked at where there is a handler for it
            "create" if scope.name.is_empty() || !scope.definition.is_go_type() => {
                let name = String::new();
                let scope = Scope { name, ..scope };
                let (decoded, options) = self.decoded_object(&scope)?;
                let written = scope.create(decoded.value, &decoded.source, &options).await?;
                self.written(written, &scope)
            }
            "update" if !scope.name.is_empty() => {
                let (beside, (decoded, options)) = match self.decoded_beside(&scope) {
                    Some((beside, decoded)) => (Some(beside), (decoded, self.write_options()?)),
                    None => (None, self.decoded_object(&scope)?),
                };
                let written = scope.update(decoded.value, &decoded.source, &options, beside).await?;
                self.written(written, &scope)
            }
            "patch" if !scope.name.is_empty() => {
                let (kind, options) = (self.patch_kind()?, self.write_options()?);
                self.written(scope.patch(kind, &self.body, &options).await?, &scope)
            }
            "delete" if scope.subresource.is_empty() => self.delete(&scope).await,
            "deletecollection" => self.delete_collection(&scope).await,
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    async fn get(&self, scope: &Scope) -> Result<Response<Body>, ApiError> {
        let accept = self.accept(scope)?;
        if self.query.flag("export") {
            let why = "the export parameter, deprecated since v1.14, is no longer supported";
            return Err(ApiError::bad_request(why));
        }
        let asked = parse_revision(self.query.get("resourceVersion"));
        let asked = asked.map_err(|error| match scope.is_cached() {
            true => error,
            false => ApiError::bad_request(format!("invalid resource version: {}", error.message())),
        });
        if let Some(revision) = asked? {
            scope.wait_for_revision(revision).await;
            scope.not_before(revision)?;
        }
        let entry = scope.entry()?;
        if let Some(response) = shown::stored(&entry, scope, accept)? {
            return Ok(response);
        }
        let mut object = object::value_of(&entry);
        scope.to_requested(&mut object).await?;
        self.shown(StatusCode::OK, object, scope, accept)
    }

    async fn list(&self, scope: &Scope) -> Result<Response<Body>, ApiError> {
        let accept = self.accept(scope)?;
        let query = ListQuery::read(&self.query, &scope.definition, false)?;
        scope.wait_for(&query).await;
        let mut page = scope.list(&query)?;
        if let (Shape::Table, Some(order)) = (accept.shape, scope.definition.strategy.row_order()) {
            page.entries.sort_by_cached_key(|entry| order(&object::value_of(entry)));
        }
        self.page(scope, page, accept).await
    }

    async fn watch(&self, mut scope: Scope, path: &ResourcePath) -> Result<Response<Body>, ApiError> {
        self.accept(&scope)?;
        // how the watch is asked for is looked at before it is looked at how it shall be told
        let accept = Accept::choose_stream(&self.wanted, self.offer(&scope)?);
        scope.spec()?;
        // the legacy watch of one object
        let name = std::mem::take(&mut scope.name);
        let is_asked = self.query.get("fieldSelector").is_some_and(|asked| !asked.is_empty());
        let one = match name.is_empty() {
            false if is_asked => {
                let asked = ListQuery::read(&self.query, &scope.definition, self.query.flag("watch"))?;
                if asked.fields.exact("metadata.name") != Some(&name) {
                    return Err(ApiError::bad_request(
                        "fieldSelector metadata.name doesn't match requested name",
                    ));
                }
                None
            }
            false => Some(self.query.with("fieldSelector", &format!("metadata.name={name}"))),
            true => None,
        };
        let query = one.as_ref().unwrap_or(&self.query);
        if query.optional_flag("sendInitialEvents") == Some(true)
            && let Ok(Some(revision)) = parse_revision(query.get("resourceVersion"))
        {
            scope.wait_for_revision(revision).await;
        }
        let watching = Watching::begin(self.cluster.clone(), &Asked::of(&self.method, path, query, ""));
        let mut seat = self.seat.lock().take();
        if let Some(seat) = &mut seat {
            seat.expires(None);
        }
        let stream = watch::start(&scope, query, accept.clone(), (self.closed.clone(), seat))?.inspect(move |_| {
            // counted for as long as the stream is there
            let _ = &watching;
        });
        let accept = accept?;
        let body = match accept.shape {
            // no event has this form: upstream ends at the first
            Shape::MetadataList => respond::streamed(futures::stream::empty()),
            Shape::Object | Shape::Metadata | Shape::Table => respond::streamed(stream),
        };
        Ok(respond::with_type(
            StatusCode::OK,
            body,
            HeaderValue::from_static(accept.stream_type()),
        ))
    }

    async fn delete(&self, scope: &Scope) -> Result<Response<Body>, ApiError> {
        let options = self.delete_options()?;
        let mut warnings = Vec::new();
        let deleted = scope.delete(&options, &mut warnings).await;
        let deleted = deleted.inspect_err(|_| scope.refused_with.extend(warnings.drain(..)))?;
        let mut response = match deleted {
            // what old clients of cascading deletions rely on
            Deleted::Pending(object) if options.orphan_dependents == Some(false) => {
                self.object(StatusCode::ACCEPTED, object, scope)?
            }
            Deleted::Pending(object) => self.object(StatusCode::OK, object, scope)?,
            Deleted::Gone(object) if scope.definition.strategy.answers_deleted_object() => {
                self.object(StatusCode::OK, object, scope)?
            }
            Deleted::Gone(object) => {
                let accept = self.accept(scope)?;
                // how a table shall be is looked at before it is seen that there is none to show
                if accept.shape == Shape::Table {
                    self.table_style(accept)?;
                }
                respond::value(StatusCode::OK, &shown::success(&scope.definition, &object), accept)
            }
        };
        respond::warn(&mut response, &warnings);
        Ok(response)
    }

    async fn delete_collection(&self, scope: &Scope) -> Result<Response<Body>, ApiError> {
        let accept = self.accept(scope)?;
        // what is watched is not deleted, but upstream reads these options as of any list
        let query = ListQuery::read(&self.query, &scope.definition, self.query.flag("watch"))?;
        let mut warnings = Vec::new();
        let page = scope
            .delete_collection(&query, &self.delete_options()?, &mut warnings)
            .await;
        let page = page.inspect_err(|_| scope.refused_with.extend(warnings.drain(..)))?;
        let mut response = self.page(scope, page, accept).await?;
        respond::warn(&mut response, &warnings);
        Ok(response)
    }

    async fn subresource(&self, scope: &Scope, verb: &str, beyond: &str) -> Result<Response<Body>, ApiError> {
        if scope.subresource == "scale" && scope.spec()?.scale.is_some() {
            return scale::call(self, scope, verb).await;
        }
        subresource::call(self, scope, verb, beyond).await
    }
}
