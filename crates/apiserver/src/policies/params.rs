//! The parameters with which a binding has a policy judge.

use std::sync::Arc;

use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::selector::LabelSelector;
use k8s_openapi::api::admissionregistration::v1::{ParamKind, ParamRef};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as SelectorObject;
use kube::api::ApiResource;
use kube::core::Selector;
use serde_json::Value;

use super::registered::Binding;
use crate::cluster::LogicalCluster;
use crate::definition::{Attributes, Definition, Lister};
use crate::elsewhere::Elsewhere;
use crate::intercept::form::stored;
use crate::intercept::matching;
use crate::meta;
use crate::webhooks::conversion;

/// The kind of a policy's parameters.
pub(super) enum Parameters {
    /// One that the cluster has, or follows where it is served; and the version that the policy wants.
    Own(Arc<Definition>, String),
    /// One that only another server has, which is asked each time; and whether its objects live in namespaces.
    Elsewhere(Arc<Elsewhere>, (ApiResource, bool)),
}

impl Parameters {
    /// Finds the kind.
    ///
    /// # Errors
    /// There is no such kind.
    pub(super) async fn of(cluster: &LogicalCluster, kind: &ParamKind) -> Result<Self, String> {
        let api_version = kind.api_version.as_deref().unwrap_or_default();
        let own = kind.kind.as_deref().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if let Some(definition) = cluster.of_kind(group, version, own) {
            return Ok(Self::Own(definition, version.to_owned()));
        }
        if let Some(elsewhere) = &cluster.config().elsewhere
            && let Some(found) = elsewhere.discover(group, version, own).await
        {
            return Ok(Self::Elsewhere(Arc::clone(elsewhere), found));
        }
        Err(format!(
            "failed to find resource referenced by paramKind: '{group}/{version}, Kind={own}'"
        ))
    }

    fn is_namespaced(&self) -> bool {
        match self {
            Self::Own(definition, _) => definition.namespaced,
            Self::Elsewhere(_, (_, namespaced)) => *namespaced,
        }
    }

    /// What a binding refers to, for a request in this namespace (empty: in none).
    ///
    /// # Errors
    /// The reference cannot be followed, or leads nowhere although it should.
    pub(super) async fn referred(
        &self,
        cluster: &LogicalCluster,
        reference: &ParamRef,
        namespace: &str,
    ) -> Result<Vec<Value>, String> {
        let wanted = reference.namespace.as_deref().unwrap_or_default();
        let namespace = match (self.is_namespaced(), wanted) {
            (true, "") if namespace.is_empty() => {
                let why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
                return Err(why.to_owned());
            }
            (true, "") => namespace,
            (true, wanted) => wanted,
            (false, "") => "",
            (false, _) => {
                return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
            }
        };
        let which = which(reference)?;
        let found = match self {
            Self::Own(definition, version) => own(cluster, definition, version, namespace, which).await?,
            Self::Elsewhere(elsewhere, resource) => {
                let which = match which {
                    Ok(name) => Ok(name),
                    Err(selector) => Err(Selector::try_from(selector.clone()).map_err(|error| error.to_string())?),
                };
                elsewhere.read(resource, namespace, which).await?
            }
        };
        if found.is_empty() && reference.parameter_not_found_action.as_deref() == Some("Deny") {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
        }
        Ok(found)
    }
}

/// The name or the selector of a reference.
fn which(reference: &ParamRef) -> Result<Result<&str, &SelectorObject>, String> {
    match (&reference.selector, reference.name.as_deref().unwrap_or_default()) {
        (None, "") => Err("one of name or selector must be provided".to_owned()),
        (None, name) => Ok(Ok(name)),
        (Some(selector), "") => Ok(Err(selector)),
        (Some(_), _) => Err("paramRef.name and paramRef.selector are mutually exclusive".to_owned()),
    }
}

/// Objects of the cluster in the version that a policy wants.
async fn own(
    cluster: &LogicalCluster,
    definition: &Definition,
    version: &str,
    namespace: &str,
    which: Result<&str, &SelectorObject>,
) -> Result<Vec<Value>, String> {
    let (group, plural) = (&definition.group, &definition.plural);
    let objects: Vec<Arc<Value>> = match which {
        Ok(name) => cluster.get(group, plural, namespace, name).into_iter().collect(),
        Err(selector) => {
            let selector = LabelSelector::from(selector);
            let mut all = cluster.list(group, plural, Some(namespace));
            all.retain(|object| selector.matches(&meta::string_map(object.at("/metadata/labels"))));
            all
        }
    };
    let mut found = Vec::with_capacity(objects.len());
    for object in objects {
        let mut object = Value::clone(&object);
        let from = stored(definition);
        conversion::convert(cluster, definition, &mut [&mut object], from, version)
            .await
            .map_err(|error| error.message().to_owned())?;
        found.push(object);
    }
    Ok(found)
}

/// The parameters with which a binding has a policy act on a request, each of which may be none; nothing where it does not act.
///
/// # Errors
/// The binding cannot be followed.
pub(super) async fn occasions(
    cluster: &LogicalCluster,
    binding: &Binding,
    parameters: Option<&Parameters>,
    attributes: &Attributes<'_>,
) -> Result<Vec<Option<Value>>, String> {
    if let Some(constraints) = &binding.constraints {
        match matching::invocation(cluster, constraints, attributes) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Vec::new()),
            Err(error) => return Err(error.message().to_owned()),
        }
    }
    match (parameters, &binding.params) {
        (Some(parameters), Some(reference)) => {
            let namespace = matching::namespace(attributes);
            let found = parameters.referred(cluster, reference, namespace).await?;
            Ok(found.into_iter().map(Some).collect())
        }
        // a policy without parameters, or a binding that gives none
        _ => Ok(vec![None]),
    }
}
