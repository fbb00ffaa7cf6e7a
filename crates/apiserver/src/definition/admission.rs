//! What may refuse or change a write: a write on its way, and a plugin on that way.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field;
use serde_json::Value;
use tokio::time::Instant;

use super::{Context, Definition, Draft, Operation};
use crate::audit::Audited;
use crate::connect;
use crate::registry::Empties;
use crate::time_limit;
use crate::webhooks::Reinvocation;

/// One write on its way through admission.
pub struct Attributes<'a> {
    /// What happens.
    pub operation: Operation,
    /// The resource written to.
    pub definition: &'a Definition,
    /// The version in which the request came.
    pub version: &'a str,
    /// Empty for the main resource.
    pub subresource: &'a str,
    /// Empty for cluster-scoped resources.
    pub namespace: &'a str,
    /// Name; empty while a name is still to be generated.
    pub name: &'a str,
    /// The object as it would be stored, or the body of a subresource with a kind of its own; `None` for deletions.
    pub object: Option<Draft>,
    /// The object as it is stored; `None` for creations.
    pub old: Option<&'a Draft>,
    /// Who, when, where.
    pub context: &'a Context<'a>,
    /// What the request's query or body says besides the object: `CreateOptions`, `UpdateOptions` or `DeleteOptions`.
    pub options: &'a Value,
    /// What the body tells empty.
    pub empties: Arc<Empties>,
    /// What is told of the request.
    pub audited: Audited,
    /// Until when the caller waits for the answer.
    pub until: Option<Instant>,
    /// Whether the object is deleted with its collection: then the request names none.
    pub with_collection: bool,
    /// Sentences for `Warning` headers.
    pub warnings: Warnings,
    /// Which plugins must run again because a later one changed the object.
    pub reinvocation: Reinvocation,
}

/// Sentences that plugins collect, also while they only look.
#[derive(Default)]
pub struct Warnings(parking_lot::Mutex<Vec<String>>);

impl Warnings {
    /// Adds sentences.
    pub fn extend(&self, sentences: impl IntoIterator<Item = String>) {
        self.0.lock().extend(sentences);
    }

    /// Adds what is to be said of a refused body, unless something was said already: it may be among that.
    pub fn extend_if_none(&self, of_body: impl IntoIterator<Item = String>) {
        let mut sentences = self.0.lock();
        if sentences.is_empty() {
            sentences.extend(of_body);
        }
    }

    /// All sentences, in order; they are taken out.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }

    /// All sentences, in order.
    pub fn into_vec(self) -> Vec<String> {
        self.0.into_inner()
    }
}

impl Attributes<'_> {
    /// Whether the write goes to this group and resource (any subresource).
    pub fn is(&self, group: &str, resource: &str) -> bool {
        self.definition.group == group && self.definition.plural == resource
    }

    /// How long somebody who is asked may take, who may take `most` by himself: in whole seconds, the last of them begun, as he is told it.
    ///
    /// # Errors
    /// 504 when the caller does not wait any more.
    pub fn patience(&self, most: Duration) -> Result<Duration, ApiError> {
        let Some(until) = self.until else { return Ok(most) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ApiError::new(504, "Timeout", time_limit::EXCEEDED));
        }
        let left = Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0));
        Ok(left.min(most))
    }

    /// Whether the write creates an object of this group and resource, and nothing below one.
    pub fn creates(&self, group: &str, resource: &str) -> bool {
        self.operation == Operation::Create && self.is(group, resource) && self.subresource.is_empty()
    }

    /// Group, version and kind of [`Attributes::object`] as the request has it.
    pub fn kind(&self) -> (String, String, String) {
        let owned =
            |(group, version, kind): (&str, &str, &str)| (group.to_owned(), version.to_owned(), kind.to_owned());
        if self.subresource == "scale" {
            return owned(("autoscaling", "v1", "Scale"));
        }
        if let Some(subresource) = self.definition.subresources.get(self.subresource) {
            return owned(subresource.kind());
        }
        if let Some(connect) = connect::find(self.definition, self.subresource) {
            return owned((&self.definition.group, self.version, connect.kind));
        }
        let kind = self.definition.version(self.version);
        let kind = kind.map_or("", |version| version.kind.as_str());
        owned((&self.definition.group, self.version, kind))
    }

    /// The stored object as JSON.
    pub fn old_json(&self) -> Option<&Value> {
        self.old.map(|old| &**old)
    }

    /// A 403 with upstream's wording for admission plugins.
    pub fn forbidden(&self, why: &str) -> ApiError {
        ApiError::forbidden(
            &self.definition.group,
            &self.definition.plural,
            self.name_in_refusals(),
            why,
        )
    }

    /// The name by which refusals call the object: a new one may have none yet.
    fn name_in_refusals(&self) -> &str {
        let told = |pointer: &str| match &self.object {
            Some(object) => crate::meta::text(object, pointer),
            None => "",
        };
        let names = [self.name, told("/metadata/name"), told("/metadata/generateName")];
        names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown")
    }

    /// A 403 that tells all errors of fields in one sentence, as upstream's admission plugins do.
    ///
    /// # Errors
    /// There are errors.
    pub fn forbid_all(&self, errors: &[field::Error]) -> Result<(), ApiError> {
        if errors.is_empty() {
            return Ok(());
        }
        let errors = self.empties.shown_in(errors.to_vec());
        Err(self.forbidden(&field::aggregate(&errors)))
    }

    /// A 422 for the object of this request.
    pub fn invalid(&self, errors: &[field::Error]) -> ApiError {
        let kind = self
            .definition
            .version(self.version)
            .map_or("", |version| version.kind.as_str());
        let errors = self.empties.shown_in(errors.to_vec());
        ApiError::invalid(&self.definition.group, kind, self.name, &errors)
    }
}

/// An admission plugin. All plugins' `admit` run first, in order, then all plugins' `validate`.
#[async_trait]
#[allow(unused_variables)]
pub trait Admission: Send + Sync + 'static {
    /// Upstream's name of the plugin.
    fn name(&self) -> &'static str;

    /// May change the object.
    ///
    /// # Errors
    /// Refuses the write.
    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        Ok(())
    }

    /// Looks at the final object.
    ///
    /// # Errors
    /// Refuses the write.
    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        Ok(())
    }
}
