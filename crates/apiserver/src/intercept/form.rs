//! A request's objects in the version in which a webhook or a policy wants them.

use gardener_apimachinery::ApiError;
use serde_json::Value;

use super::matching::Invocation;
use crate::cluster::LogicalCluster;
use crate::definition::{Attributes, Definition, Version};
use crate::webhooks::conversion;

/// A request's objects in the form of an invocation.
pub(crate) struct Form {
    pub(crate) object: Option<Value>,
    pub(crate) old: Option<Value>,
}

impl Form {
    /// Converts them.
    ///
    /// # Errors
    /// They cannot be converted.
    pub(crate) async fn of(
        cluster: &LogicalCluster,
        attributes: &Attributes<'_>,
        invocation: &Invocation,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            object: match &attributes.object {
                Some(object) => Some(in_form(cluster, attributes, invocation, object).await?),
                None => None,
            },
            old: match attributes.old {
                Some(old) => Some(in_form(cluster, attributes, invocation, old).await?),
                None => None,
            },
        })
    }
}

/// A request's objects in every form that somebody asked for, each made once.
#[derive(Default)]
pub(crate) struct Forms(Vec<(Invocation, Form)>);

impl Forms {
    /// The objects in the form of an invocation.
    ///
    /// # Errors
    /// They cannot be converted.
    pub(crate) async fn get(
        &mut self,
        cluster: &LogicalCluster,
        attributes: &Attributes<'_>,
        invocation: &Invocation,
    ) -> Result<&Form, ApiError> {
        let known = self.0.iter().position(|(known, _)| known.is_same_form(invocation));
        let at = match known {
            Some(at) => at,
            None => {
                let form = Form::of(cluster, attributes, invocation).await?;
                self.0.push((invocation.clone(), form));
                self.0.len() - 1
            }
        };
        let form = self.0.get(at).map(|(_, form)| form);
        form.ok_or_else(|| ApiError::internal("a form that was just made is gone"))
    }

    /// The objects in a form that was made.
    pub(crate) fn made(&self, invocation: &Invocation) -> Option<&Form> {
        let form = self.0.iter().find(|(known, _)| known.is_same_form(invocation));
        form.map(|(_, form)| form)
    }
}

/// Whether the objects of a request are of the resource's own kind, not of a subresource's.
pub(crate) fn is_main_kind(attributes: &Attributes<'_>) -> bool {
    let (group, _, kind) = attributes.kind();
    let own = attributes.definition.version(attributes.version);
    own.is_some_and(|version| version.kind == kind) && group == attributes.definition.group
}

async fn in_form(
    cluster: &LogicalCluster,
    attributes: &Attributes<'_>,
    invocation: &Invocation,
    object: &Value,
) -> Result<Value, ApiError> {
    let mut object = object.clone();
    if !is_main_kind(attributes) {
        return Ok(object);
    }
    let definition = invocation.definition(attributes);
    let from = stored(attributes.definition);
    conversion::convert(cluster, definition, &mut [&mut object], from, &invocation.version).await?;
    // Go's encoder writes members that are always there
    if let Some(version) = known(definition, &invocation.version).filter(|version| version.completes)
        && let Some(schema) = &version.schema
    {
        schema.complete(&mut object);
    }
    Ok(object)
}

/// The version in which objects are stored.
pub(crate) fn stored(definition: &Definition) -> &str {
    definition.stored_version().map_or("", |version| version.name.as_str())
}

/// A version, whether it is served or not.
pub(crate) fn known<'a>(definition: &'a Definition, version: &str) -> Option<&'a Version> {
    definition.versions.iter().find(|own| own.name == version)
}
