//! A request's objects in the version in which a webhook or a policy wants them.

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::type_meta::unreadable;
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

impl Form {
    /// The object in the form in which it is stored.
    ///
    /// # Errors
    /// It cannot be converted.
    pub(crate) async fn to_stored(
        cluster: &LogicalCluster,
        attributes: &Attributes<'_>,
        invocation: &Invocation,
        mut object: Value,
    ) -> Result<Value, ApiError> {
        if is_main_kind(attributes) {
            let own = attributes.definition;
            regroup(invocation.definition(attributes), own, &mut object)?;
            conversion::convert(cluster, own, &mut [&mut object], &invocation.version, stored(own)).await?;
        }
        Ok(object)
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

    /// The object in a form that was made, to change it.
    pub(crate) fn object_mut(&mut self, invocation: &Invocation) -> Option<&mut Option<Value>> {
        let form = self.0.iter_mut().find(|(known, _)| known.is_same_form(invocation));
        form.map(|(_, form)| &mut form.object)
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

/// Brings an object that two groups show, each in a form of its own, from the form of one group into that of the other.
///
/// # Errors
/// It cannot be converted.
fn regroup(from: &Definition, to: &Definition, object: &mut Value) -> Result<(), ApiError> {
    if from.group == to.group {
        return Ok(());
    }
    let showing = if from.shows_anothers() { from } else { to };
    let version = stored(showing);
    showing.strategy.convert(object, version, version)
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
    regroup(attributes.definition, definition, &mut object)?;
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

/// Why what a patch made is none of its kind.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Misshapen {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It is an object of another kind, into which none is converted.
    #[error("{0}")]
    OtherKind(String),
}

impl From<Misshapen> for ApiError {
    fn from(misshapen: Misshapen) -> Self {
        match misshapen {
            Misshapen::Unreadable(why) => Self::internal(why),
            Misshapen::OtherKind(why) => Self::unclassified(why),
        }
    }
}

/// Brings what a patch made into the form of its version: types, known fields, defaults.
///
/// # Errors
/// It is none of its kind.
pub(crate) fn shape(
    definition: &Definition,
    invocation: &Invocation,
    attributes: &Attributes<'_>,
    object: &mut Value,
) -> Result<(), Misshapen> {
    let Some(version) = known(definition, &invocation.version) else {
        return Ok(());
    };
    if definition.is_go_type() {
        keeps_kind(definition, version, object)?;
    }
    if let Some(schema) = &version.schema {
        schema.canonicalize(object);
        schema
            .decode(object, &version.kind)
            .map_err(|error| Misshapen::Unreadable(error.to_string()))?;
        // what is unknown of custom resources stays until they are stored
        if version.prunes && !definition.strategy.validates_schema() {
            schema.prune(object);
        }
        if version.completes {
            schema.drop_empty(object);
        }
        if definition.strategy.validates_schema() {
            schema.apply_defaults(object);
        }
    }
    definition.strategy.default(attributes.context, object);
    Ok(())
}

/// Refuses an object that a patch made one of another kind. One that does not tell its kind is of the one that it was.
fn keeps_kind(definition: &Definition, version: &Version, object: &mut Value) -> Result<(), Misshapen> {
    if let Some(why) = unreadable(object) {
        return Err(Misshapen::Unreadable(why));
    }
    let expected = definition.api_version(&version.name);
    if let Value::Object(members) = object {
        for (name, own) in [("apiVersion", &expected), ("kind", &version.kind)] {
            let told = members.get(name).and_then(Value::as_str).unwrap_or_default();
            if told.is_empty() {
                members.insert(name.to_owned(), own.as_str().into());
            }
        }
    }
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, own) = (text("apiVersion"), text("kind"));
    if (api_version, own) == (&expected, &version.kind) {
        return Ok(());
    }
    if own == version.kind
        && definition
            .versions
            .iter()
            .all(|known| definition.api_version(&known.name) != api_version)
    {
        return Err(Misshapen::Unreadable(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            go_quote(own),
            go_quote(api_version)
        )));
    }
    let own_version = api_version.rsplit('/').next().unwrap_or_default();
    Err(Misshapen::OtherKind(format!(
        "converting ({own_version}.{own}) to ({}.{}): unknown conversion",
        definition.go_package(),
        version.kind
    )))
}
