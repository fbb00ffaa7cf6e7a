//! The plugin that has policies change objects.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use gardener_schema::Schema;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusCause;
use serde_json::Value;

use super::admission::namespace_of;
use super::mutations::{Mutation, Mutations};
use super::params::{Parameters, occasions};
use super::registered::{Binding, Policy};
use crate::cluster::LogicalCluster;
use crate::definition::{Admission, Attributes, Operation};
use crate::intercept::expressions::Subject;
use crate::intercept::form::{Form, Forms, is_main_kind, known, shape};
use crate::intercept::matching::{self, Invocation};
use crate::intercept::reinvocation::Who;
use crate::intercept::request;
use crate::meta;

/// Changes objects as policies say.
pub struct MutatingAdmissionPolicy;

#[async_trait]
impl Admission for MutatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "MutatingAdmissionPolicy"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let Some(cluster) = attributes.context.lister.cluster() else {
            return Ok(());
        };
        // without bindings no policy acts, and what is deleted is not changed
        let bindings = cluster.policies().mutating_bindings(cluster);
        if bindings.is_empty() || attributes.operation == Operation::Delete || matching::is_beyond_policies(attributes)
        {
            return Ok(());
        }
        let policies = cluster.policies().mutating(cluster);
        let mut round = Round {
            cluster,
            attributes,
            forms: Forms::default(),
            failures: Vec::new(),
        };
        let mut acts = Vec::new();
        for policy in policies.iter() {
            if let Some(bindings) = bindings.get(&policy.name) {
                round.find(policy, bindings, &mut acts).await;
            }
        }
        round.act(&acts).await?;
        let failures = round.failures;
        match failures.is_empty() {
            true => Ok(()),
            false => Err(refusal(attributes, failures)),
        }
    }
}

/// A policy that changes the object, with what.
struct Act<'p> {
    policy: &'p Policy<Mutations>,
    binding: &'p Binding,
    invocation: Invocation,
    params: Option<Value>,
}

impl Act<'_> {
    /// Tells it apart from others.
    fn uid(&self) -> String {
        let params = self
            .params
            .as_ref()
            .map(|params| (meta::namespace(params), meta::name(params)));
        let (namespace, name) = params.unwrap_or_default();
        format!("{}/{}/{namespace}/{name}", self.policy.name, self.binding.name)
    }
}

/// Why a policy did not act.
struct Failure {
    /// Names of the policy and its binding.
    of: (String, Option<String>),
    why: String,
    /// Whether it is the object that does not fit the policy, and not the policy that cannot be followed.
    invalid: bool,
}

impl Failure {
    fn message(&self) -> String {
        match &self.of {
            (policy, Some(binding)) => {
                format!(
                    "policy '{policy}' with binding '{binding}' denied request: {}",
                    self.why
                )
            }
            (policy, None) => format!("policy \"{policy}\" denied request: {}", self.why),
        }
    }
}

/// The first failure is the message, and all are causes.
fn refusal(attributes: &Attributes<'_>, failures: Vec<Failure>) -> ApiError {
    let invalid = failures.first().is_some_and(|failure| failure.invalid);
    let causes: Vec<StatusCause> = failures
        .iter()
        .map(|failure| StatusCause {
            message: Some(failure.message()),
            ..StatusCause::default()
        })
        .collect();
    let message = failures.first().map(Failure::message).unwrap_or_default();
    let reason = if invalid { "Invalid" } else { "Forbidden" };
    attributes
        .forbidden("")
        .with_message(message)
        .with_causes(causes)
        .with_reason(403, reason)
}

/// Why upstream does not take in what a policy made of an object in another group's form, which it does for webhooks.
fn unsuitable(attributes: &Attributes<'_>, invocation: &Invocation) -> Option<String> {
    let (definition, own) = (invocation.definition(attributes), attributes.definition);
    let kind = known(definition, &invocation.version).map_or("", |version| version.kind.as_str());
    (definition.group != own.group).then(|| {
        format!(
            "{}.{kind} is not suitable for converting to {} in scheme \"pkg/runtime/scheme.go:111\"",
            invocation.version,
            go_quote(&own.api_version(attributes.version)),
        )
    })
}

/// One request on its way through all policies.
struct Round<'r, 'a> {
    cluster: &'r LogicalCluster,
    attributes: &'r mut Attributes<'a>,
    forms: Forms,
    failures: Vec<Failure>,
}

impl Round<'_, '_> {
    /// Finds out with what a policy acts.
    async fn find<'p>(&mut self, policy: &'p Policy<Mutations>, bindings: &'p [Binding], acts: &mut Vec<Act<'p>>) {
        let invocation = match matching::invocation(self.cluster, &policy.constraints, self.attributes) {
            Ok(None) => return,
            Ok(Some(invocation)) => invocation,
            Err(error) => return self.unconfigured(policy, None, error.message()),
        };
        let parameters = match &policy.param_kind {
            Some(kind) => match Parameters::of(self.cluster, kind).await {
                Ok(parameters) => Some(parameters),
                Err(why) => return self.unconfigured(policy, None, &why),
            },
            None => None,
        };
        for binding in bindings {
            let params = match occasions(self.cluster, binding, parameters.as_ref(), self.attributes).await {
                Ok(params) => params,
                Err(why) => {
                    self.unconfigured(policy, Some(binding), &why);
                    continue;
                }
            };
            if params.is_empty() {
                continue;
            }
            if let Err(error) = self.forms.get(self.cluster, self.attributes, &invocation).await {
                self.unconfigured(policy, None, error.message());
                continue;
            }
            acts.extend(params.into_iter().map(|params| Act {
                policy,
                binding,
                invocation: invocation.clone(),
                params,
            }));
        }
    }

    /// Makes all changes, one after the other.
    async fn act(&mut self, acts: &[Act<'_>]) -> Result<(), ApiError> {
        if acts.is_empty() {
            return Ok(());
        }
        self.attributes
            .reinvocation
            .turn(Who::Policies, self.attributes.object.as_deref());
        let namespace = namespace_of(self.cluster, self.attributes)?;
        let mut last = None;
        for act in acts {
            if self.one(act, namespace.as_ref())? {
                last = Some(act);
            }
        }
        if let Some(act) = last
            && let Some(object) = self.forms.object_mut(&act.invocation).and_then(Option::take)
        {
            self.attributes.reinvocation.changed(Who::Policies);
            let unsuitable = unsuitable(self.attributes, &act.invocation);
            let stored = match unsuitable {
                Some(why) => Err(why),
                None => Form::to_stored(self.cluster, self.attributes, &act.invocation, object)
                    .await
                    .map_err(|error| error.message().to_owned()),
            };
            match stored {
                Ok(stored) => self.attributes.object = Some(stored.into()),
                Err(why) => self.failed(act, why),
            }
        }
        self.attributes
            .reinvocation
            .leave(Who::Policies, self.attributes.object.as_deref());
        Ok(())
    }

    /// Has one policy act. Answers whether it did.
    fn one(&mut self, act: &Act<'_>, namespace: Option<&Value>) -> Result<bool, ApiError> {
        let asked = request::of(self.attributes, &act.invocation);
        let request = Value::Object(asked.clone());
        let subject = |form| Subject {
            cluster: self.cluster,
            attributes: self.attributes,
            form,
            request: &request,
            namespace,
            params: act.params.as_ref(),
        };
        let Some(form) = self.forms.made(&act.invocation) else {
            return Ok(false);
        };
        match act.policy.rules.concern(&subject(form), &asked) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(why) => {
                self.failed(act, why);
                return Ok(false);
            }
        }
        let uid = act.uid();
        if self.attributes.reinvocation.leaves_out(Who::Policies, &uid) {
            return Ok(false);
        }
        let before = form.object.clone();
        let mut acted = false;
        let mut failures = Vec::new();
        for mutation in &act.policy.rules.mutations {
            let Some(form) = self.forms.made(&act.invocation) else {
                break;
            };
            let subject = Subject {
                cluster: self.cluster,
                attributes: self.attributes,
                form,
                request: &request,
                namespace,
                params: act.params.as_ref(),
            };
            let Some(object) = &form.object else { continue };
            match self.mutated(act, mutation, &subject, object) {
                Ok(object) => {
                    acted = true;
                    if let Some(own) = self.forms.object_mut(&act.invocation) {
                        *own = Some(object);
                    }
                }
                Err(Failed::Refused(error)) => return Err(error),
                Err(Failed::Policy(why)) => failures.push(why),
            }
        }
        for why in failures {
            self.failed(act, why);
        }
        if self
            .forms
            .made(&act.invocation)
            .is_some_and(|form| form.object != before)
        {
            self.attributes.reinvocation.changed(Who::Policies);
        }
        if act.policy.rules.reinvocable {
            self.attributes.reinvocation.acted(Who::Policies, &uid);
        }
        Ok(acted)
    }

    /// What a mutation makes of the object.
    fn mutated(
        &self,
        act: &Act<'_>,
        mutation: &Mutation,
        subject: &Subject<'_>,
        object: &Value,
    ) -> Result<Value, Failed> {
        let definition = act.invocation.definition(self.attributes);
        let is_main = is_main_kind(self.attributes);
        let version = known(definition, &act.invocation.version).filter(|_| is_main);
        let (group, api_version, kind) = self.attributes.kind();
        let slash = if group.is_empty() { "" } else { "/" };
        let kind = format!("{group}{slash}{api_version}, Kind={kind}");
        let schema: Option<&Schema> = match version.and_then(|version| version.schema.as_deref()) {
            Some(schema) => Some(schema),
            None if !is_main => None,
            None => {
                return Err(Failed::Refused(ApiError::unavailable(format!(
                    "Resource kind {kind} not found. There can be a delay between when CustomResourceDefinitions are created and when they are available."
                ))));
            }
        };
        let schema_or_kind = schema.ok_or(kind.as_str());
        let made = act.policy.rules.make(mutation, subject, object, schema_or_kind);
        let Some(mut made) = made.map_err(Failed::Policy)? else {
            return Ok(object.clone());
        };
        if !is_main {
            return Ok(made);
        }
        let is_go_type = definition.is_go_type();
        let patched = matches!(mutation, Mutation::Patch(_));
        // a patched object is read as strictly as it can be
        if let (true, true, Some(schema)) = (patched, is_go_type, schema) {
            let unknown = schema.unknown_fields(&made);
            if !unknown.is_empty() {
                let unknown = unknown.iter().map(|path| format!("unknown field {}", go_quote(path)));
                let why = unknown.collect::<Vec<_>>().join(", ");
                return Err(Failed::Refused(ApiError::internal(format!(
                    "strict decoding error: {why}"
                ))));
            }
        }
        shape(definition, &act.invocation, self.attributes, &mut made).map_err(|why| match patched {
            true => Failed::Refused(why.into()),
            false => Failed::Policy(why.to_string()),
        })?;
        if let Some(version) = version.filter(|version| version.completes)
            && let Some(schema) = &version.schema
        {
            schema.complete(&mut made);
        }
        Ok(made)
    }

    /// A policy or its binding cannot be followed.
    fn unconfigured(&mut self, policy: &Policy<Mutations>, binding: Option<&Binding>, why: &str) {
        if !policy.rules.fails_closed {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.failures.push(Failure {
            of: (policy.name.clone(), binding.map(|binding| binding.name.clone())),
            why: format!("failed to configure {what}: {why}"),
            invalid: false,
        });
    }

    /// A policy did not act as it should.
    fn failed(&mut self, act: &Act<'_>, why: String) {
        if act.policy.rules.fails_closed {
            self.failures.push(Failure {
                of: (act.policy.name.clone(), Some(act.binding.name.clone())),
                why,
                invalid: true,
            });
        }
    }
}

/// Why a mutation made nothing.
enum Failed {
    /// The policy says what that means.
    Policy(String),
    /// The request is refused.
    Refused(ApiError),
}
