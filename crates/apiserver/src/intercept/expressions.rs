//! Expressions of webhooks and policies: what they know of a request, what their values must be, and what they may cost.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use gardener_apimachinery::field::{self, Path};
use gardener_cel::{
    Authorizer, CALL_LIMIT, Check, Compiled, Declared, Environment, EvalError, Lazy, Program, Shape, Value as CelValue,
};
use serde_json::Value;

use super::form::Form;
use super::matching;
use crate::authz::{Attributes as AuthzAttributes, Decision};
use crate::cluster::LogicalCluster;
use crate::definition::Attributes;
use crate::user::UserInfo;

/// Which variables expressions know besides those that all do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) params: bool,
    pub(crate) authorizer: bool,
}

/// The variable of a policy's own variables.
const VARIABLES: &str = "variables";

/// What all expressions know: the objects as they are, the request as a review tells it, and its namespace.
static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let text = || Declared::new(Shape::Text);
    let triple = |name: &'static str, last: &'static str| {
        Declared::object(name, vec![("group", text()), ("version", text()), (last, text())])
    };
    let kind = || triple("kubernetes.GroupVersionKind", "kind");
    let resource = || triple("kubernetes.GroupVersionResource", "resource");
    let extra = Declared::new(Shape::Map(Arc::new(Declared::list_of(text()))));
    let user = Declared::object(
        "kubernetes.UserInfo",
        vec![
            ("username", text()),
            ("uid", text()),
            ("groups", Declared::list_of(text())),
            ("extra", extra),
        ],
    );
    let request = Declared::object(
        "kubernetes.AdmissionRequest",
        vec![
            ("kind", kind()),
            ("resource", resource()),
            ("subResource", text()),
            ("requestKind", kind()),
            ("requestResource", resource()),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", Declared::new(Shape::Bool)),
            ("options", Declared::new(Shape::Dyn)),
        ],
    );
    Environment::default()
        .with("namespaceObject", Arc::new(namespace()))
        .with("object", Arc::new(Declared::new(Shape::Dyn)))
        .with("oldObject", Arc::new(Declared::new(Shape::Dyn)))
        .with("request", Arc::new(request))
});

fn namespace() -> Declared {
    let text = || Declared::new(Shape::Text);
    let time = || Declared::new(Shape::Timestamp);
    let texts = || Declared::new(Shape::Map(Arc::new(text())));
    let metadata = Declared::object(
        "kubernetes.NamespaceMetadata",
        vec![
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", texts()),
            ("annotations", texts()),
            ("UID", text()),
            ("creationTimestamp", time()),
            ("deletionGracePeriodSeconds", Declared::new(Shape::Int)),
            ("deletionTimestamp", time()),
            ("generation", Declared::new(Shape::Int)),
            ("resourceVersion", text()),
            ("finalizers", Declared::list_of(text())),
        ],
    );
    let spec = Declared::object(
        "kubernetes.NamespaceSpec",
        vec![("finalizers", Declared::list_of(text()))],
    );
    let condition = Declared::object(
        "kubernetes.NamespaceCondition",
        vec![
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", time()),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let status = Declared::object(
        "kubernetes.NamespaceStatus",
        vec![("conditions", Declared::list_of(condition)), ("phase", text())],
    );
    Declared::object(
        "kubernetes.Namespace",
        vec![("metadata", metadata), ("spec", spec), ("status", status)],
    )
}

/// The variables that expressions know.
pub(crate) fn environment(known: Known) -> Environment {
    let mut environment = ENVIRONMENT.clone();
    if known.params {
        environment = environment.with("params", Arc::new(Declared::new(Shape::Dyn)));
    }
    if known.authorizer {
        environment = environment
            .with("authorizer", Arc::new(Declared::authorizer()))
            .with("authorizer.requestResource", Arc::new(Declared::resource_check()));
    }
    environment
}

/// The type of what says what an object shall have.
const CONFIGURATION: &str = gardener_cel::OBJECT;
/// The type of a JSON patch.
const JSON_PATCH: &str = "list(JSONPatch)";

/// What an expression's value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returns {
    /// `true` or `false`.
    Bool,
    /// A text.
    Text,
    /// A text, or nothing.
    TextOrNull,
    /// What an object shall have.
    Configuration,
    /// Operations of a JSON patch.
    Patch,
    /// Anything.
    Any,
}

impl Returns {
    fn judge(self, program: &Program) -> Result<(), String> {
        let (fits, wanted) = match self {
            Self::Bool => (program.result == Compiled::Bool, "bool"),
            Self::Text => (program.result == Compiled::Text, "string"),
            Self::TextOrNull => (
                matches!(program.result, Compiled::Text | Compiled::Null),
                "one of [string null_type]",
            ),
            Self::Configuration => (program.output == CONFIGURATION, CONFIGURATION),
            Self::Patch => (program.output == JSON_PATCH, JSON_PATCH),
            Self::Any => (true, ""),
        };
        match fits {
            true => Ok(()),
            false => Err(format!("must evaluate to {wanted} but got {}", program.output)),
        }
    }
}

/// What is wrong with an expression, as its author is told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// It is none, or its value is of another type.
    #[error("{0}")]
    Invalid(String),
    /// A constant in it always fails.
    #[error("program instantiation failed: {0}")]
    Unusable(String),
}

impl Fault {
    /// The error of a field that holds the expression, which is told as `told`.
    pub(crate) fn at(&self, path: &Path, told: &str) -> field::Error {
        match self {
            Self::Invalid(why) => field::Error::invalid(path, told, why.as_str()),
            Self::Unusable(_) => field::Error::internal(path, self.to_string()),
        }
    }
}

/// Compiles an expression whose value must be of some kind.
///
/// # Errors
/// What is wrong with it, as its author is told.
pub(crate) fn compile(environment: &Environment, source: &str, returns: Returns) -> Result<Program, Fault> {
    let program = environment.compile(source);
    let program = program.map_err(|why| Fault::Invalid(format!("compilation failed: {why}")))?;
    returns.judge(&program).map_err(Fault::Invalid)?;
    match &program.unusable {
        Some(why) => Err(Fault::Unusable(why.clone())),
        None => Ok(program),
    }
}

/// An expression, compiled once.
pub(crate) struct Expression {
    source: String,
    program: Result<Program, Fault>,
}

impl Expression {
    /// Compiles it.
    pub(crate) fn compile(environment: &Environment, source: &str, returns: Returns) -> Self {
        Self {
            source: source.to_owned(),
            program: compile(environment, source, returns),
        }
    }

    /// What is wrong with it, as its author is told.
    pub(crate) fn error(&self) -> Option<&Fault> {
        self.program.as_ref().err()
    }

    fn declared(&self) -> Arc<Declared> {
        match &self.program {
            Ok(program) => Arc::clone(&program.declared),
            Err(_) => Arc::new(Declared::new(Shape::Dyn)),
        }
    }
}

/// A policy's own variables, by name. Each knows those before it; of two with one name the later one counts.
pub(crate) struct Variables {
    compiled: BTreeMap<String, Expression>,
    /// What the next one knows.
    environment: Environment,
}

impl Variables {
    /// No variables yet; those that come know this besides each other.
    pub(crate) fn new(environment: Environment) -> Self {
        Self {
            compiled: BTreeMap::new(),
            environment: environment.with(VARIABLES, no_variables()),
        }
    }

    /// Compiles one more. Answers what is wrong with it.
    pub(crate) fn add(&mut self, name: &str, source: &str) -> Option<&Fault> {
        let compiled = Expression::compile(&self.environment, source, Returns::Any);
        self.environment.add_field(VARIABLES, name, compiled.declared());
        self.compiled.insert(name.to_owned(), compiled);
        self.compiled.get(name).and_then(Expression::error)
    }

    /// The environment in which the variables are known, too.
    pub(crate) fn extend(&self, environment: Environment) -> Environment {
        let mut environment = environment.with(VARIABLES, no_variables());
        for (name, compiled) in &self.compiled {
            environment.add_field(VARIABLES, name, compiled.declared());
        }
        environment
    }
}

fn no_variables() -> Arc<Declared> {
    Arc::new(Declared::object("kubernetes.variables", Vec::new()))
}

/// The request that expressions are about.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) cluster: &'a LogicalCluster,
    pub(crate) attributes: &'a Attributes<'a>,
    pub(crate) form: &'a Form,
    /// What [`super::request`] tells.
    pub(crate) request: &'a Value,
    pub(crate) namespace: Option<&'a Value>,
    pub(crate) params: Option<&'a Value>,
}

static NULL: Value = Value::Null;

impl<'a> Subject<'a> {
    fn variables(&self, authorizer: bool) -> Vec<(&'static str, CelValue<'a>)> {
        let value = |value: Option<&'a Value>| CelValue::of_json(value.unwrap_or(&NULL), None);
        let mut variables = vec![
            ("object", value(self.form.object.as_ref())),
            ("oldObject", value(self.form.old.as_ref())),
            ("namespaceObject", value(self.namespace)),
            ("request", value(Some(self.request))),
            ("params", value(self.params)),
        ];
        if authorizer {
            let attributes = self.attributes;
            let own = Check {
                group: attributes.definition.group.clone(),
                resource: attributes.definition.plural.clone(),
                subresource: attributes.subresource.to_owned(),
                namespace: matching::namespace(attributes).to_owned(),
                name: matching::name(attributes).to_owned(),
                ..Check::default()
            };
            variables.push(("authorizer", CelValue::authorizer()));
            variables.push(("authorizer.requestResource", CelValue::check(own)));
        }
        variables
    }
}

/// How deep variables and the expressions in which they stand may be together, as each is evaluated inside of the other.
const MAX_DEPTH: usize = 200;

/// What all expressions of one kind (validations, messages, …) of a policy may cost, and the values of its variables, which are found once.
pub(crate) struct Activation<'a> {
    known: Vec<(&'static str, CelValue<'a>)>,
    asked: Asked<'a>,
    composition: Option<&'a Variables>,
    values: RefCell<BTreeMap<&'a str, Composed<'a>>>,
    /// What is left to spend.
    budget: u64,
    /// What variables cost since the last expression.
    composed: Cell<u64>,
    depth: Cell<usize>,
}

enum Composed<'a> {
    /// It is being found.
    Open,
    Found(Result<CelValue<'a>, EvalError>),
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

impl<'a> Activation<'a> {
    /// Begins to evaluate expressions about a request.
    pub(crate) fn new(
        subject: &Subject<'a>,
        authorizer: bool,
        composition: Option<&'a Variables>,
        budget: u64,
    ) -> Self {
        Self {
            known: subject.variables(authorizer),
            asked: Asked {
                cluster: subject.cluster,
                user: subject.attributes.context.user,
            },
            composition,
            values: RefCell::default(),
            budget,
            composed: Cell::new(0),
            depth: Cell::new(0),
        }
    }

    /// What is left to spend.
    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    /// The value of an expression, or why it has none.
    ///
    /// # Errors
    /// All that may be spent is spent; nothing more is evaluated.
    pub(crate) fn evaluate(&mut self, expression: &Expression) -> Result<Result<CelValue<'a>, String>, String> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(why) => return Ok(Err(format!("compilation error: {why}"))),
        };
        let evaluated = self.run(program, self.budget);
        let spent = evaluated.cost.saturating_add(self.composed.take());
        self.budget = self.budget.checked_sub(spent).ok_or(OUT_OF_BUDGET)?;
        let failed = |why: EvalError| format!("expression '{}' resulted in error: {why}", expression.source);
        Ok(evaluated.value.map_err(failed))
    }

    /// Runs a program, at most as far as one may go.
    fn run(&self, program: &Program, budget: u64) -> gardener_cel::Evaluated<'a> {
        self.depth.set(self.depth.get() + program.depth());
        let lazy = self.composition.map(|_| self as &dyn Lazy<'a>);
        let limit = CALL_LIMIT.min(budget);
        let evaluated = program.run_with(self.known.clone(), lazy, Some(&self.asked), limit);
        self.depth.set(self.depth.get() - program.depth());
        evaluated
    }

    fn compose(&self, name: &str, variable: &Expression) -> Result<CelValue<'a>, EvalError> {
        let failed = |why: String| EvalError::Failed(format!("composited variable {name:?} {why}"));
        let program = match &variable.program {
            Ok(program) => program,
            Err(why) => return Err(failed(format!("fails to compile: {why}"))),
        };
        let nested = |why: &str| failed(format!("fails to evaluate: {why}"));
        if self.depth.get() + program.depth() > MAX_DEPTH {
            return Err(nested("variables stand in each other too deeply"));
        }
        let left = self.budget.saturating_sub(self.composed.get());
        let evaluated = self.run(program, left);
        self.composed.set(self.composed.get().saturating_add(evaluated.cost));
        // nothing more can be paid for: whoever asked ends, too
        if self.composed.get() > self.budget {
            return Err(EvalError::CostLimit);
        }
        evaluated.value.map_err(|why| nested(&why.to_string()))
    }
}

impl<'a> Lazy<'a> for Activation<'a> {
    fn value(&self, name: &str) -> Option<Result<CelValue<'a>, EvalError>> {
        let name = name.strip_prefix(VARIABLES)?.strip_prefix('.')?;
        let (name, variable) = self.composition?.compiled.get_key_value(name)?;
        match self.values.borrow().get(name.as_str()) {
            Some(Composed::Found(found)) => return Some(found.clone()),
            Some(Composed::Open) => {
                let why = format!("composited variable {name:?} fails to evaluate: it stands in itself");
                return Some(Err(EvalError::Failed(why)));
            }
            None => {}
        }
        self.values.borrow_mut().insert(name, Composed::Open);
        let found = self.compose(name, variable);
        self.values.borrow_mut().insert(name, Composed::Found(found.clone()));
        Some(found)
    }
}

/// The cluster's authorizer as expressions ask it, about the caller.
struct Asked<'a> {
    cluster: &'a LogicalCluster,
    user: &'a UserInfo,
}

impl Authorizer for Asked<'_> {
    fn decide(&self, check: &Check, verb: &str) -> (bool, String) {
        let account = check
            .service_account
            .as_ref()
            .map(|(namespace, name)| UserInfo::service_account(namespace, name, ""));
        let user = account.as_ref().unwrap_or(self.user);
        let attributes = AuthzAttributes {
            subresource: &check.subresource,
            path: check.path.as_deref().unwrap_or_default(),
            is_resource: check.path.is_none(),
            field_selector: &check.field_selector,
            label_selector: &check.label_selector,
            ..AuthzAttributes::of_resource(user, verb, &check.group, &check.resource, &check.namespace, &check.name)
        };
        match self.cluster.config().authorizer.authorize(self.cluster, &attributes) {
            Decision::Allow => (true, String::new()),
            Decision::Deny(reason) | Decision::NoOpinion(reason) => (false, reason),
        }
    }
}
