//! The parameters with which a binding has a policy judge.

use std::sync::Arc;

use gardener_apimachinery::selector::LabelSelector;
use k8s_openapi::api::admissionregistration::v1::{ParamKind, ParamRef};
use serde_json::Value;

use crate::cluster::LogicalCluster;
use crate::definition::{Definition, Lister};
use crate::intercept::form::stored;
use crate::meta;
use crate::webhooks::conversion;

/// The kind of a policy's parameters, as the cluster has it.
pub(super) struct Parameters {
    definition: Arc<Definition>,
    version: String,
}

impl Parameters {
    /// Finds the kind.
    ///
    /// # Errors
    /// There is no such kind.
    pub(super) fn of(cluster: &LogicalCluster, kind: &ParamKind) -> Result<Self, String> {
        let api_version = kind.api_version.as_deref().unwrap_or_default();
        let own = kind.kind.as_deref().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let definition = cluster.of_kind(group, version, own).ok_or_else(|| {
            format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={own}'")
        })?;
        Ok(Self {
            definition,
            version: version.to_owned(),
        })
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
        let namespace = match (self.definition.namespaced, wanted) {
            (true, "") if namespace.is_empty() => {
                let why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
                return Err(why.to_owned());
            }
            (true, "") => namespace,
            (_, wanted) => wanted,
        };
        if !self.definition.namespaced && !wanted.is_empty() {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
        let mut found = Vec::new();
        for object in self.objects(cluster, reference, namespace)? {
            let mut object = Value::clone(&object);
            let from = stored(&self.definition);
            conversion::convert(cluster, &self.definition, &mut [&mut object], from, &self.version)
                .await
                .map_err(|error| error.message().to_owned())?;
            found.push(object);
        }
        if found.is_empty() && reference.parameter_not_found_action.as_deref() == Some("Deny") {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
        }
        Ok(found)
    }

    fn objects(
        &self,
        cluster: &LogicalCluster,
        reference: &ParamRef,
        namespace: &str,
    ) -> Result<Vec<Arc<Value>>, String> {
        let (group, plural) = (&self.definition.group, &self.definition.plural);
        let name = reference.name.as_deref().unwrap_or_default();
        match (&reference.selector, name) {
            (None, "") => Err("one of name or selector must be provided".to_owned()),
            (Some(_), name) if !name.is_empty() => {
                Err("paramRef.name and paramRef.selector are mutually exclusive".to_owned())
            }
            (None, name) => Ok(cluster.get(group, plural, namespace, name).into_iter().collect()),
            (Some(selector), _) => {
                let selector = LabelSelector::from(selector);
                let mut all = cluster.list(group, plural, Some(namespace));
                all.retain(|object| selector.matches(&meta::string_map(object.pointer("/metadata/labels"))));
                Ok(all)
            }
        }
    }
}
