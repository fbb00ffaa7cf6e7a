//! Subresources of their own kinds: what a call for one does with the object that it hangs below.

use std::sync::Arc;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_schema::Schema;
use serde_json::Value;

use super::Context;

/// What a subresource does with the parent object.
pub enum Effect {
    /// Answer this, with a warning perhaps; nothing is stored.
    Answer(Value, Option<String>),
    /// As [`Effect::Answer`], where that gives somebody credentials: the last text tells audit logs how they are found again.
    Issue(Value, Option<String>, String),
    /// Answer this text; nothing is stored.
    Text(String),
    /// Answer that there is nothing to tell; nothing is stored.
    Nothing,
    /// Store this as the parent's new state, and answer the second value.
    StoreAndAnswer(Value, Value),
    /// Delete the parent.
    Delete(Box<Removal>),
}

/// How a subresource deletes its parent.
pub struct Removal {
    /// Another object of the parent's namespace that takes note of it first: group, resource, and what it is to be. It names the revision that
    /// it changes; when somebody was faster, the subresource is called anew.
    pub noted: Option<(&'static str, &'static str, Value)>,
    /// Whether the parent must still be what it was; when it is not, the subresource is called anew.
    pub guarded: bool,
    /// A condition that the parent has before it goes.
    pub condition: Option<Value>,
    /// `DeleteOptions` as a DELETE would have them.
    pub options: Value,
    /// What is answered.
    pub answer: Value,
}

/// A subresource of its own kind, such as `shoots/adminkubeconfig` or `pods/eviction`.
#[async_trait]
#[allow(unused_variables)]
pub trait Subresource: Send + Sync + 'static {
    /// Group, version and kind of the body, for discovery.
    fn kind(&self) -> (&'static str, &'static str, &'static str);

    /// Verbs: `create`, `get`.
    fn verbs(&self) -> &'static [&'static str] {
        &["create"]
    }

    /// The options (names and types) of what is read as text; none for what is read or posted as objects.
    fn text_options(&self) -> Option<&'static [(&'static str, &'static str)]> {
        None
    }

    /// What is known of the body's kind, unless it is one of Kubernetes'.
    fn schema(&self) -> Option<Arc<Schema>> {
        None
    }

    /// Whether managedFields of what is posted name its author.
    fn notes_author(&self) -> bool {
        false
    }

    /// Brings what is posted into the form in which plugins see it first.
    fn receive(&self, namespace: &str, body: &mut Value) {}

    /// Refuses or completes what is asked or posted for what it is, whether its parent is there or not; what is posted after plugins changed it.
    ///
    /// # Errors
    /// What is wrong with it. `name` is that of the path.
    fn examine(&self, context: &Context<'_>, name: &str, body: &mut Value) -> Result<(), ApiError> {
        Ok(())
    }

    /// Whether plugins judge what is posted before the parent is looked for.
    fn is_judged_first(&self) -> bool {
        true
    }

    /// Completes what is posted, after plugins changed it and before they judge it.
    ///
    /// # Errors
    /// Refuses the call.
    fn prepare(&self, context: &Context<'_>, parent: &Value, body: &mut Value) -> Result<(), ApiError> {
        Ok(())
    }

    /// Whether what is stored is validated as an update of the main resource would be.
    fn validates_as_update(&self) -> bool {
        false
    }

    /// Runs the call. `body` is the request's object (for `get`: its query parameters), `parent` the stored object; `verb` one of [`Subresource::verbs`].
    ///
    /// # Errors
    /// Refuses the call.
    async fn call(&self, context: &Context<'_>, verb: &str, parent: &Value, body: Value) -> Result<Effect, ApiError>;
}
