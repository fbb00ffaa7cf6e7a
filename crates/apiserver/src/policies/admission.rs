//! The plugin that has policies judge requests.

use std::collections::BTreeMap;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusCause;
use serde::Serialize;
use serde_json::{Value, json};

use super::params::{Parameters, occasions};
use super::registered::{Action, Binding, Policy};
use super::rules::{Denial, Rules};
use crate::cluster::LogicalCluster;
use crate::definition::{Admission, Attributes, Lister};
use crate::intercept::expressions::Subject;
use crate::intercept::form::Forms;
use crate::intercept::matching::{self, Invocation};
use crate::intercept::request;

/// Refuses what policies do not allow, or warns of it.
pub struct ValidatingAdmissionPolicy;

/// Under what the audit log tells that a policy did not hold.
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// What the audit log tells of a policy that did not hold, in the order of upstream's members.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'a> {
    message: &'a str,
    policy: &'a str,
    binding: &'a str,
    expression_index: usize,
    validation_actions: &'a [Action],
}

#[async_trait]
impl Admission for ValidatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let Some(cluster) = attributes.context.lister.cluster() else {
            return Ok(());
        };
        // without bindings no policy acts
        let bindings = cluster.policies().bindings(cluster);
        if bindings.is_empty() || matching::is_beyond_policies(attributes) {
            return Ok(());
        }
        let policies = cluster.policies().policies(cluster);
        let mut round = Round {
            cluster,
            attributes,
            forms: Forms::default(),
            namespace: None,
            refusals: Vec::new(),
        };
        for policy in policies.iter() {
            if let Some(bindings) = bindings.get(&policy.name) {
                round.policy(policy, bindings).await?;
            }
        }
        // all are judged, and the first one is told
        round.refusals.into_iter().next().map_or(Ok(()), Err)
    }
}

/// One request on its way through all policies.
struct Round<'a> {
    cluster: &'a LogicalCluster,
    attributes: &'a Attributes<'a>,
    forms: Forms,
    /// The namespace of the request as expressions see it, once it was read.
    namespace: Option<Value>,
    refusals: Vec<ApiError>,
}

impl Round<'_> {
    async fn policy(&mut self, policy: &Policy<Rules>, bindings: &[Binding]) -> Result<(), ApiError> {
        let invocation = match matching::invocation(self.cluster, &policy.constraints, self.attributes) {
            Ok(None) => return Ok(()),
            Ok(Some(invocation)) => invocation,
            Err(error) => {
                self.unconfigured(policy, None, error.message());
                return Ok(());
            }
        };
        let parameters = match &policy.param_kind {
            Some(kind) => match Parameters::of(self.cluster, kind).await {
                Ok(parameters) => Some(parameters),
                Err(why) => {
                    self.unconfigured(policy, None, &why);
                    return Ok(());
                }
            },
            None => None,
        };
        let mut annotations: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for binding in bindings {
            self.binding(policy, binding, &invocation, parameters.as_ref(), &mut annotations)
                .await?;
        }
        for (key, values) in annotations {
            let value = values.join(", ");
            self.attributes
                .audited
                .annotate(format!("{}/{key}", policy.name), value);
        }
        Ok(())
    }

    async fn binding(
        &mut self,
        policy: &Policy<Rules>,
        binding: &Binding,
        invocation: &Invocation,
        parameters: Option<&Parameters>,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) -> Result<(), ApiError> {
        let params = match occasions(self.cluster, binding, parameters, self.attributes).await {
            Ok(params) => params,
            Err(why) => {
                self.unconfigured(policy, Some(binding), &why);
                return Ok(());
            }
        };
        if params.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.forms.get(self.cluster, self.attributes, invocation).await {
            let why = format!("failed to convert object version: {}", error.message());
            self.unconfigured(policy, Some(binding), &why);
            return Ok(());
        }
        if self.namespace.is_none() {
            self.namespace = namespace_of(self.cluster, self.attributes)?;
        }
        for params in &params {
            self.judge(policy, binding, invocation, params.as_ref(), annotations);
        }
        Ok(())
    }

    /// Has a policy judge with one set of parameters, and does what the binding wants.
    fn judge(
        &mut self,
        policy: &Policy<Rules>,
        binding: &Binding,
        invocation: &Invocation,
        params: Option<&Value>,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) {
        let Some(form) = self.forms.made(invocation) else {
            return;
        };
        let asked = request::of(self.attributes, invocation);
        let request = Value::Object(asked.clone());
        let subject = Subject {
            cluster: self.cluster,
            attributes: self.attributes,
            form,
            request: &request,
            namespace: self.namespace.as_ref(),
            params,
        };
        let judgement = policy.rules.judge(&subject, &asked);
        for denial in &judgement.denials {
            for action in &binding.actions {
                match action {
                    Action::Deny => self.refuse(policy, Some(binding), denial),
                    Action::Warn => self.attributes.warnings.extend([format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, denial.message
                    )]),
                    Action::Audit => {
                        let failure = Failure {
                            message: &denial.message,
                            policy: &policy.name,
                            binding: &binding.name,
                            expression_index: denial.index,
                            validation_actions: &binding.actions,
                        };
                        let told = serde_json::to_string(&[failure]).unwrap_or_default();
                        self.attributes.audited.annotate(FAILURE, told);
                    }
                }
            }
        }
        for (key, value) in judgement.annotations {
            let values = annotations.entry(key).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        for why in judgement.unannotated {
            self.refuse(policy, Some(binding), &Denial::failed(why));
        }
    }

    /// A policy or its binding cannot be followed.
    fn unconfigured(&mut self, policy: &Policy<Rules>, binding: Option<&Binding>, why: &str) {
        if !policy.rules.fails_closed {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.refuse(
            policy,
            binding,
            &Denial::failed(format!("failed to configure {what}: {why}")),
        );
    }

    fn refuse(&mut self, policy: &Policy<Rules>, binding: Option<&Binding>, denial: &Denial) {
        let bound = binding.map_or_else(String::new, |binding| format!(" with binding '{}'", binding.name));
        let message = format!(
            "ValidatingAdmissionPolicy '{}'{bound} denied request: {}",
            policy.name, denial.message
        );
        let reason = match denial.reason.as_str() {
            "" => "Invalid",
            reason => reason,
        };
        let code = match reason {
            "Forbidden" => 403,
            // older servers took this one, too
            "Unauthorized" => 401,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        let cause = StatusCause {
            message: Some(message.clone()),
            ..StatusCause::default()
        };
        let refusal = match self.attributes.with_collection {
            // the request named no object
            true => {
                let definition = self.attributes.definition;
                ApiError::forbidden(&definition.group, &definition.plural, "Unknown", &message)
            }
            false => self.attributes.forbidden(&message),
        };
        let refusal = refusal.with_causes(vec![cause]);
        self.refusals.push(refusal.with_reason(code, reason));
    }
}

/// The namespace of a request as expressions see it; none where there is none.
///
/// # Errors
/// 404 when it does not exist.
pub(super) fn namespace_of(cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Result<Option<Value>, ApiError> {
    // a namespace is in none
    if attributes.is("", "namespaces") || attributes.namespace.is_empty() {
        return Ok(None);
    }
    let name = attributes.namespace;
    let found = cluster.namespace(name);
    let found = found.ok_or_else(|| ApiError::not_found("", "namespaces", name))?;
    Ok(Some(shown(&found)))
}

/// What expressions see of a namespace.
fn shown(namespace: &Value) -> Value {
    const METADATA: [&str; 11] = [
        "name",
        "generateName",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    ];
    let mut metadata = namespace.get("metadata").cloned().unwrap_or_default();
    if let Some(members) = metadata.as_object_mut() {
        members.retain(|key, _| METADATA.contains(&key.as_str()));
    }
    let part = |key: &str| namespace.get(key).cloned().unwrap_or_else(|| json!({}));
    json!({"metadata": metadata, "spec": part("spec"), "status": part("status")})
}
