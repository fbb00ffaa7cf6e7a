//! A policy's expressions, and what they decide about a request.

use gardener_cel::{Environment, OBJECT_BUDGET, Value as CelValue};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicySpec;
use serde_json::{Map, Value};

use crate::intercept::conditions;
use crate::intercept::expressions::{self, Activation, Expression, Fault, Known, Returns, Subject, Variables};

/// How many bytes an evaluated message may have; a longer one is not told.
const MAX_MESSAGE: usize = 5 * 1024;

/// A policy's expressions, compiled.
pub(super) struct Rules {
    /// Whether what fails refuses the request.
    pub(super) fails_closed: bool,
    conditions: Vec<Expression>,
    variables: Option<Variables>,
    validations: Vec<Validation>,
    annotations: Vec<Annotation>,
}

struct Validation {
    expression: Expression,
    source: String,
    message: String,
    message_expression: Option<Expression>,
    reason: String,
}

/// For the audit log.
struct Annotation {
    key: String,
    source: String,
    expression: Expression,
}

/// Why a validation does not hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Denial {
    /// Which validation, of those that the policy has.
    pub(super) index: usize,
    pub(super) message: String,
    /// The reason of the refusal's Status; empty where an expression failed.
    pub(super) reason: String,
}

impl Denial {
    pub(super) fn failed(message: String) -> Self {
        Self {
            index: 0,
            message,
            reason: String::new(),
        }
    }
}

/// What a policy says of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judgement {
    /// What does not hold.
    pub(super) denials: Vec<Denial>,
    /// What the audit log is to be told, by key.
    pub(super) annotations: Vec<(String, String)>,
    /// Why there is no value for the audit log; that refuses the request, whatever bindings want.
    pub(super) unannotated: Vec<String>,
}

/// Compiles the expressions of a policy, for those that validate them and those that evaluate them.
pub(crate) struct Compiler {
    /// What all know but messages.
    full: Environment,
    /// What messages know: all but the authorizer.
    messages: Environment,
    variables: Option<Variables>,
}

impl Compiler {
    /// For a policy that has parameters, and variables of its own.
    pub(crate) fn new(params: bool, variables: bool) -> Self {
        let known = |authorizer: bool| expressions::environment(Known { params, authorizer });
        let full = known(true);
        Self {
            variables: variables.then(|| Variables::new(full.clone())),
            messages: known(false),
            full,
        }
    }

    /// Compiles the next variable. Answers what is wrong with it.
    pub(crate) fn variable(&mut self, name: &str, source: &str) -> Option<&Fault> {
        self.variables.as_mut()?.add(name, source)
    }

    fn extended(&self, environment: &Environment) -> Environment {
        match &self.variables {
            Some(variables) => variables.extend(environment.clone()),
            None => environment.clone(),
        }
    }

    /// What validations and values for the audit log know.
    pub(crate) fn full(&self) -> Environment {
        self.extended(&self.full)
    }

    /// What patches know.
    pub(crate) fn patches(&self) -> Environment {
        self.full().with_patches()
    }

    /// The variables of the policy.
    pub(super) fn into_variables(self) -> Option<Variables> {
        self.variables
    }

    /// What messages know.
    pub(crate) fn messages(&self) -> Environment {
        self.extended(&self.messages)
    }
}

impl Rules {
    /// Compiles a policy's expressions. Those that do not compile fail when they are evaluated.
    pub(super) fn compile(spec: &ValidatingAdmissionPolicySpec) -> Self {
        let params = spec.param_kind.is_some();
        let own = spec.variables.as_deref().unwrap_or_default();
        let mut compiler = Compiler::new(params, !own.is_empty());
        for variable in own {
            compiler.variable(&variable.name, &variable.expression);
        }
        let (full, messages) = (compiler.full(), compiler.messages());
        let validations = spec.validations.iter().flatten().map(|validation| Validation {
            expression: Expression::compile(&full, &validation.expression, Returns::Bool),
            source: validation.expression.clone(),
            message: validation.message.clone().unwrap_or_default(),
            message_expression: validation
                .message_expression
                .as_ref()
                .filter(|source| !source.is_empty())
                .map(|source| Expression::compile(&messages, source, Returns::Text)),
            reason: validation.reason.clone().unwrap_or_else(|| "Invalid".to_owned()),
        });
        let annotations = spec.audit_annotations.iter().flatten().map(|annotation| Annotation {
            key: annotation.key.clone(),
            source: annotation.value_expression.clone(),
            expression: Expression::compile(&full, &annotation.value_expression, Returns::TextOrNull),
        });
        let conditions = spec.match_conditions.iter().flatten();
        Self {
            fails_closed: spec.failure_policy.as_deref() != Some("Ignore"),
            conditions: conditions
                .map(|condition| conditions::compile(&condition.expression, params))
                .collect(),
            validations: validations.collect(),
            annotations: annotations.collect(),
            variables: compiler.variables,
        }
    }

    /// Judges a request. `request` is what the subject's request is made of.
    pub(super) fn judge(&self, subject: &Subject<'_>, request: &Map<String, Value>) -> Judgement {
        let held = conditions::hold(
            subject.cluster,
            &self.conditions,
            self.fails_closed,
            subject.attributes,
            subject.form,
            request,
            subject.params,
        );
        match held {
            Ok(true) => {}
            Ok(false) => return Judgement::default(),
            Err(why) => return self.failed(why),
        }
        let mut judgement = Judgement::default();
        if let Err(why) = self.validate(subject, &mut judgement) {
            return self.failed(why);
        }
        if let Err(why) = self.annotate(subject, &mut judgement) {
            return self.failed(why);
        }
        judgement
    }

    /// What it means that the policy cannot be evaluated.
    fn failed(&self, why: String) -> Judgement {
        let denials = self.fails_closed.then(|| Denial::failed(why));
        Judgement {
            denials: denials.into_iter().collect(),
            ..Judgement::default()
        }
    }

    fn activation<'a>(&'a self, subject: &Subject<'a>, authorizer: bool, budget: u64) -> Activation<'a> {
        Activation::new(subject, authorizer, self.variables.as_ref(), budget)
    }

    fn validate<'a>(&'a self, subject: &Subject<'a>, judgement: &mut Judgement) -> Result<(), String> {
        let mut activation = self.activation(subject, true, OBJECT_BUDGET);
        let mut results = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            results.push(activation.evaluate(&validation.expression)?);
        }
        let messages = self.messages(subject, activation.budget());
        for (index, (validation, result)) in self.validations.iter().zip(results).enumerate() {
            let failure = match (&messages, result) {
                (_, Err(why)) => why,
                (Err(why), Ok(_)) => format!("failed messageExpression: {why}"),
                (Ok(_), Ok(CelValue::Bool(true))) => continue,
                (Ok(messages), Ok(_)) => {
                    let message = messages.get(index).cloned().flatten();
                    judgement.denials.push(Denial {
                        index,
                        message: message.unwrap_or_else(|| validation.fixed_message()),
                        reason: validation.reason.clone(),
                    });
                    continue;
                }
            };
            if self.fails_closed {
                judgement.denials.push(Denial {
                    index,
                    ..Denial::failed(failure)
                });
            }
        }
        Ok(())
    }

    /// The evaluated message of each validation that has a usable one.
    fn messages<'a>(&'a self, subject: &Subject<'a>, budget: u64) -> Result<Vec<Option<String>>, String> {
        if self
            .validations
            .iter()
            .all(|validation| validation.message_expression.is_none())
        {
            return Ok(Vec::new());
        }
        let mut activation = self.activation(subject, false, budget);
        let mut messages = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            messages.push(match &validation.message_expression {
                None => None,
                Some(expression) => match activation.evaluate(expression)? {
                    Ok(CelValue::Text(text)) => usable(&text),
                    _ => None,
                },
            });
        }
        Ok(messages)
    }

    fn annotate<'a>(&'a self, subject: &Subject<'a>, judgement: &mut Judgement) -> Result<(), String> {
        let mut activation = self.activation(subject, true, OBJECT_BUDGET);
        for annotation in &self.annotations {
            let failure = match activation.evaluate(&annotation.expression)? {
                Ok(CelValue::Text(text)) => {
                    let value = text.trim();
                    if !value.is_empty() {
                        judgement.annotations.push((annotation.key.clone(), value.to_owned()));
                    }
                    continue;
                }
                Ok(CelValue::Null) => continue,
                Ok(_) => {
                    // whatever the failure policy
                    judgement.unannotated.push(format!(
                        "valueExpression '{}' resulted in unsupported return type. Return type must be either string or null.",
                        annotation.source
                    ));
                    continue;
                }
                Err(why) => why,
            };
            if self.fails_closed {
                judgement.unannotated.push(failure);
            }
        }
        Ok(())
    }
}

/// An evaluated message as it is told: in one line that is not too long.
fn usable(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n')).then(|| text.to_owned())
}

impl Validation {
    fn fixed_message(&self) -> String {
        match self.message.trim() {
            "" => format!("failed expression: {}", self.source.trim()),
            message => message.to_owned(),
        }
    }
}
