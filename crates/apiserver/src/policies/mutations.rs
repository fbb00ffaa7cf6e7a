//! The expressions of a policy that changes objects, and what they make of one.

use gardener_cel::OBJECT_BUDGET;
use gardener_merge::{JsonPatch, PatchError, overlay};
use gardener_schema::Schema;
use k8s_openapi::api::admissionregistration::v1::{MutatingAdmissionPolicySpec, Mutation as Written};
use serde_json::{Map, Value};

use super::rules::Compiler;
use crate::intercept::conditions;
use crate::intercept::expressions::{Activation, Expression, Returns, Subject, Variables};

/// A policy's expressions, compiled.
pub(super) struct Mutations {
    /// Whether what fails refuses the request.
    pub(super) fails_closed: bool,
    /// Whether it acts again after others have changed the object.
    pub(super) reinvocable: bool,
    conditions: Vec<Expression>,
    variables: Option<Variables>,
    /// In the order in which they are made.
    pub(super) mutations: Vec<Mutation>,
}

/// One change.
pub(super) enum Mutation {
    /// The object is given what the expression says.
    Configuration(Expression),
    /// The object is patched.
    Patch(Expression),
}

impl Mutations {
    /// Compiles a policy's expressions. Those that do not compile fail when they are evaluated.
    pub(super) fn compile(spec: &MutatingAdmissionPolicySpec) -> Self {
        let params = spec.param_kind.is_some();
        let own = spec.variables.as_deref().unwrap_or_default();
        let mut compiler = Compiler::new(params, true);
        for variable in own {
            compiler.variable(&variable.name, &variable.expression);
        }
        let environment = compiler.patches();
        let mutation = |written: &Written| {
            let compile = |source: &Option<String>, returns| {
                let source = source.as_deref().unwrap_or_default();
                Expression::compile(&environment, source, returns)
            };
            match written.patch_type.as_str() {
                "JSONPatch" => {
                    let patch = written.json_patch.as_ref()?;
                    Some(Mutation::Patch(compile(&patch.expression, Returns::Patch)))
                }
                _ => {
                    let configuration = written.apply_configuration.as_ref()?;
                    let expression = compile(&configuration.expression, Returns::Configuration);
                    Some(Mutation::Configuration(expression))
                }
            }
        };
        let written = spec.mutations.iter().flatten();
        let conditions = spec.match_conditions.iter().flatten();
        Self {
            fails_closed: spec.failure_policy.as_deref() != Some("Ignore"),
            reinvocable: spec.reinvocation_policy.as_deref() == Some("IfNeeded"),
            conditions: conditions
                .map(|condition| conditions::compile(&condition.expression, params))
                .collect(),
            mutations: written.filter_map(mutation).collect(),
            variables: compiler.into_variables(),
        }
    }

    /// Whether a policy's conditions hold of a request. `request` is what the subject's request is made of.
    ///
    /// # Errors
    /// What failed.
    pub(super) fn concern(&self, subject: &Subject<'_>, request: &Map<String, Value>) -> Result<bool, String> {
        conditions::hold(
            subject.cluster,
            &self.conditions,
            self.fails_closed,
            subject.attributes,
            subject.form,
            request,
            subject.params,
        )
    }

    /// What a mutation makes of an object, of which the schema is known or only the kind. Nothing where its patch does not want to be applied.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub(super) fn make(
        &self,
        mutation: &Mutation,
        subject: &Subject<'_>,
        object: &Value,
        schema: Result<&Schema, &str>,
    ) -> Result<Option<Value>, String> {
        let mut activation = Activation::new(subject, true, self.variables.as_ref(), OBJECT_BUDGET);
        match mutation {
            Mutation::Configuration(expression) => {
                let value = activation.evaluate(expression)??;
                let mut configuration = value.configuration()?;
                for name in ["apiVersion", "kind"] {
                    if let (Some(members), Some(own)) = (configuration.as_object_mut(), object.get(name)) {
                        members.insert(name.to_owned(), own.clone());
                    }
                }
                let merged = match schema {
                    Ok(schema) => overlay(object, &configuration, schema),
                    Err(kind) => Err(format!(
                        "failed to convert patch object to typed object: no corresponding type for {kind}"
                    )),
                };
                merged.map(Some).map_err(|why| format!("error applying patch: {why}"))
            }
            Mutation::Patch(expression) => {
                let value = activation.evaluate(expression)??;
                let patch = value.json_patch()?;
                let patched = JsonPatch::of(&patch).and_then(|patch| patch.apply(object));
                match patched {
                    Ok(patched) => Ok(Some(patched)),
                    Err(PatchError::TestFailed(_)) => Ok(None),
                    Err(why) => Err(format!("JSON Patch: {why}")),
                }
            }
        }
    }
}
