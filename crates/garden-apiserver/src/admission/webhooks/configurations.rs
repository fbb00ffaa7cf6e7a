//! The ConfigMaps that a shoot's kube-apiserver is configured with hold what they should, [ADM-73]: when a shoot names them, and when they change
//! while one does. What the configurations say is checked in [`PolicyDocument`], [`AuthenticationDocument`] and [`authorization`].

mod authentication;
mod authorization;

use std::collections::BTreeSet;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{self, ErrorList};
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::core::v1beta1::{KubeAPIServerConfig, Shoot};
use gardener_apiserver::audit::PolicyDocument;
use gardener_apiserver::authn::configuration::Configuration as AuthenticationDocument;
use gardener_apiserver::authz::configuration::Document;
use gardener_apiserver::definition::{Admission, Attributes, Lister, Operation};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::{typed, typed_old};
use super::{denied, is_project};
use crate::lookup;

/// A configuration in a ConfigMap.
trait Configuration: Send + Sync + 'static {
    /// The webhook's name.
    const NAME: &'static str;
    /// What it is called in messages.
    const PURPOSE: &'static str;
    /// The key of the ConfigMap.
    const KEY: &'static str;

    /// Where a shoot names the ConfigMap.
    const NAMED: &'static str;

    /// Whether a change of a shoot that names the same ConfigMap needs another look.
    fn concerns(new: &Shoot, old: &Shoot) -> bool;

    /// What is wrong with the configuration for the shoots that name it.
    fn check(text: &str, shoots: &[Shoot], lister: &dyn Lister) -> Result<(), String>;
}

fn server(shoot: &Shoot) -> Option<&KubeAPIServerConfig> {
    shoot.spec.kubernetes.kube_api_server.as_ref()
}

/// The ConfigMap that a shoot names. It is asked of all shoots of a namespace, which are not decoded for that.
fn named<C: Configuration>(shoot: &Value) -> Option<&str> {
    shoot.at(C::NAMED)?.as_str().filter(|name| !name.is_empty())
}

/// A configuration as its type, or why it is none.
fn decoded<T: DeserializeOwned>(
    text: &str,
    purpose: &str,
    group: &str,
    versions: &[&str],
    kind: &str,
) -> Result<T, String> {
    let wrong = |why: String| format!("failed to decode the provided {purpose}: {why}");
    let value: Value = serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let member = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, own) = (member("apiVersion"), member("kind"));
    let known = versions
        .iter()
        .any(|version| api_version == format!("{group}/{version}"));
    if !known || own != kind {
        return Err(wrong(format!(
            "expected kind {kind:?} of {group}/{}, but it is kind {own:?} of {api_version:?}",
            versions.join("|")
        )));
    }
    T::deserialize(&value).map_err(|error| wrong(error.to_string()))
}

/// The findings as upstream lists them.
fn invalid(purpose: &str, errors: ErrorList) -> Result<(), String> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(format!("provided invalid {purpose}: {}", field::listed(&errors)))
}

/// The configuration in a ConfigMap.
fn content<C: Configuration>(map: &Value, namespace: &str, name: &str) -> Result<String, String> {
    let problem = |why: String| format!("error getting {} from ConfigMap {namespace}/{name}: {why}", C::PURPOSE);
    let data = map
        .get("data")
        .and_then(|data| data.get(C::KEY))
        .and_then(Value::as_str);
    match data {
        None => Err(problem(format!(
            "missing {} key in {} ConfigMap data",
            C::PURPOSE,
            C::KEY
        ))),
        Some("") => Err(problem(format!("{} in {} key is empty", C::PURPOSE, C::KEY))),
        Some(text) => Ok(text.to_owned()),
    }
}

fn unprocessable(name: &str, why: impl Into<String>) -> ApiError {
    denied(name, ApiError::new(422, "", why))
}

fn shoot<C: Configuration>(attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let Some(shoot) = typed::<Shoot>(attributes).filter(|shoot| !shoot.in_deletion()) else {
        return Ok(());
    };
    let Some(name) = attributes.object.as_deref().and_then(named::<C>) else {
        return Ok(());
    };
    if let Some(old) = typed_old::<Shoot>(attributes) {
        let same = attributes.old_json().and_then(named::<C>) == Some(name)
            && old.spec.kubernetes_version() == shoot.spec.kubernetes_version()
            && !C::concerns(&shoot, &old);
        if same || old.spec == shoot.spec {
            return Ok(());
        }
    }
    let namespace = attributes.namespace;
    let Some(map) = attributes.context.lister.get("", "configmaps", namespace, name) else {
        return Err(unprocessable(
            C::NAME,
            format!(
                "referenced {} ConfigMap {namespace}/{name} does not exist: configmaps {name:?} not found",
                C::PURPOSE
            ),
        ));
    };
    content::<C>(&map, namespace, name)
        .and_then(|text| C::check(&text, std::slice::from_ref(&shoot), attributes.context.lister))
        .map_err(|why| unprocessable(C::NAME, why))
}

fn config_map<C: Configuration>(attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let (namespace, name) = (attributes.namespace, attributes.name);
    let shoots: Vec<Shoot> = lookup::list_if(attributes.context.lister, Some(namespace), |shoot| {
        named::<C>(shoot) == Some(name)
    });
    let Some(map) = attributes.object.as_deref().filter(|_| !shoots.is_empty()) else {
        return Ok(());
    };
    let text = content::<C>(map, namespace, name).map_err(|why| unprocessable(C::NAME, why))?;
    let before = attributes
        .old_json()
        .and_then(|old| content::<C>(old, namespace, name).ok());
    if before.as_ref() == Some(&text) {
        return Ok(());
    }
    C::check(&text, &shoots, attributes.context.lister).map_err(|why| unprocessable(C::NAME, why))
}

fn validate<C: Configuration>(attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
    let check = if attributes.is("core.gardener.cloud", "shoots") {
        shoot::<C>
    } else if attributes.is("", "configmaps") && attributes.operation == Operation::Update {
        config_map::<C>
    } else {
        return Ok(());
    };
    if !writes || !attributes.subresource.is_empty() || !is_project(attributes, attributes.namespace) {
        return Ok(());
    }
    check(attributes)
}

macro_rules! plugin {
    ($name:ident) => {
        #[async_trait]
        impl Admission for $name {
            fn name(&self) -> &'static str {
                Self::NAME
            }

            async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
                validate::<Self>(attributes)
            }
        }
    };
}

/// Audit policies.
pub(super) struct AuditPolicies;

impl Configuration for AuditPolicies {
    const NAME: &'static str = "audit-policies.gardener.cloud";
    const PURPOSE: &'static str = "audit policy";
    const KEY: &'static str = "policy";
    const NAMED: &'static str = "/spec/kubernetes/kubeAPIServer/auditConfig/auditPolicy/configMapRef/name";

    fn concerns(_: &Shoot, _: &Shoot) -> bool {
        false
    }

    fn check(text: &str, _: &[Shoot], _: &dyn Lister) -> Result<(), String> {
        let policy: PolicyDocument = decoded(text, Self::PURPOSE, "audit.k8s.io", &["v1"], "Policy")?;
        invalid(Self::PURPOSE, policy.validate())
    }
}

plugin!(AuditPolicies);

/// Structured authentication.
pub(super) struct Authentication;

impl Configuration for Authentication {
    const NAME: &'static str = "authentication-configuration.gardener.cloud";
    const PURPOSE: &'static str = "authentication configuration";
    const KEY: &'static str = "config.yaml";
    const NAMED: &'static str = "/spec/kubernetes/kubeAPIServer/structuredAuthentication/configMapName";

    fn concerns(new: &Shoot, old: &Shoot) -> bool {
        new.has_managed_issuer() != old.has_managed_issuer()
            || authentication::issuers(new) != authentication::issuers(old)
            || (authentication::sets_anonymous(new) && !authentication::sets_anonymous(old))
    }

    fn check(text: &str, shoots: &[Shoot], lister: &dyn Lister) -> Result<(), String> {
        let versions = ["v1", "v1beta1", "v1alpha1"];
        let kind = "AuthenticationConfiguration";
        let configuration: AuthenticationDocument =
            decoded(text, Self::PURPOSE, "apiserver.config.k8s.io", &versions, kind)?;
        let mut issuers: BTreeSet<String> = shoots.iter().flat_map(authentication::issuers).collect();
        issuers.extend(authentication::managed_issuers(shoots, lister));
        let issuers: Vec<String> = issuers.into_iter().collect();
        invalid(Self::PURPOSE, configuration.errors(&issuers))?;
        let conflicting = shoots.iter().filter(|shoot| authentication::sets_anonymous(shoot));
        let conflicting: Vec<&str> = conflicting.map(Shoot::own_name).collect();
        match configuration.anonymous.is_some() && !conflicting.is_empty() {
            true => Err(format!(
                "cannot use anonymous authentication configuration when the following shoots have the legacy configuration enabled: {}",
                conflicting.join(", ")
            )),
            false => Ok(()),
        }
    }
}

plugin!(Authentication);

/// Structured authorization.
pub(super) struct Authorization;

impl Configuration for Authorization {
    const NAME: &'static str = "authorization-configuration.gardener.cloud";
    const PURPOSE: &'static str = "authorization configuration";
    const KEY: &'static str = "config.yaml";
    const NAMED: &'static str = "/spec/kubernetes/kubeAPIServer/structuredAuthorization/configMapName";

    fn concerns(new: &Shoot, old: &Shoot) -> bool {
        authorization::with_kubeconfig(new) != authorization::with_kubeconfig(old)
    }

    fn check(text: &str, shoots: &[Shoot], _: &dyn Lister) -> Result<(), String> {
        let versions = ["v1", "v1beta1", "v1alpha1"];
        let kind = "AuthorizationConfiguration";
        let configuration: Document = decoded(text, Self::PURPOSE, "apiserver.config.k8s.io", &versions, kind)?;
        invalid(Self::PURPOSE, authorization::connections(&configuration))?;
        for shoot in shoots {
            let known = authorization::with_kubeconfig(shoot);
            if let Some(name) = authorization::webhooks(&configuration).find(|name| !known.contains(*name)) {
                return Err(format!(
                    "provided invalid authorization configuration: must provide kubeconfig secret name reference for webhook authorizer {name:?} in shoot {}/{}",
                    shoot.project_namespace(),
                    shoot.own_name()
                ));
            }
        }
        invalid(Self::PURPOSE, authorization::validate(configuration))
    }
}

plugin!(Authorization);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adm_73_what_a_policy_may_say() {
        let check = |text: &str| -> Vec<String> {
            let policy: PolicyDocument = serde_saphyr::from_str(text).unwrap();
            policy.validate().iter().map(ToString::to_string).collect()
        };
        let good = "omitStages: [RequestReceived]\nrules:\n- level: None\n  nonResourceURLs: ['*', /healthz*]\n- level: Metadata\n  resources: [{group: '', resources: [secrets], resourceNames: [a]}, {group: '*'}]\n";
        assert!(check(good).is_empty(), "{:?}", check(good));
        for (text, why) in [
            (
                "omitStages: [x]",
                "omitStages[0]: Invalid value: \"x\": allowed stages are RequestReceived,",
            ),
            ("rules: [{}]", "rules[0].level: Required value"),
            ("rules: [{level: Most}]", "rules[0].level: Unsupported value: \"Most\""),
            ("rules: [{level: None, nonResourceURLs: [x]}]", "must begin with a '/'"),
            (
                "rules: [{level: None, nonResourceURLs: [/a*b]}]",
                "must be the final character",
            ),
            (
                "rules: [{level: None, resources: [{group: a/v1}]}]",
                "rules[0].resources.group: Invalid value",
            ),
            (
                "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
                "requires at least one resource",
            ),
            (
                "rules: [{level: None, namespaces: [a], nonResourceURLs: [/a]}]",
                "rules cannot apply to both regular resources and non-resource URLs",
            ),
        ] {
            let found = check(text);
            assert!(found.len() == 1 && found[0].contains(why), "{text}: {found:?}");
        }
    }
}
