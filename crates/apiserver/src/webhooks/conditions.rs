//! Match conditions: expressions that tell whether a webhook is asked about a request.

use std::sync::{Arc, LazyLock};

use gardener_apimachinery::ApiError;
use gardener_cel::{
    Authorizer, Check, Compiled, Declared, Environment, OBJECT_BUDGET, Program, Shape, Value as CelValue,
};
use serde_json::Value;

use crate::authz::{Attributes as AuthzAttributes, Decision};
use crate::cluster::LogicalCluster;
use crate::definition::Attributes;
use crate::user::UserInfo;

/// What all conditions of one webhook may cost for one request.
const BUDGET: u64 = OBJECT_BUDGET / 4;

/// What conditions know: the objects as they are, the request as a review tells it, and the authorizer.
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
    let texts = || Declared::new(Shape::Map(Arc::new(text())));
    let metadata = Declared::object(
        "kubernetes.NamespaceMetadata",
        vec![
            ("name", text()),
            ("generateName", text()),
            ("labels", texts()),
            ("annotations", texts()),
            ("UID", text()),
            ("creationTimestamp", Declared::new(Shape::Timestamp)),
            ("deletionGracePeriodSeconds", Declared::new(Shape::Int)),
            ("deletionTimestamp", Declared::new(Shape::Timestamp)),
            ("generation", Declared::new(Shape::Int)),
            ("resourceVersion", text()),
            ("finalizers", Declared::list_of(text())),
        ],
    );
    let spec = Declared::object(
        "kubernetes.NamespaceSpec",
        vec![("finalizers", Declared::list_of(text()))],
    );
    let status = Declared::object("kubernetes.NamespaceStatus", vec![("phase", text())]);
    let namespace = Declared::object(
        "kubernetes.Namespace",
        vec![("metadata", metadata), ("spec", spec), ("status", status)],
    );
    Environment::new([
        // known to all admission expressions, but null for webhooks
        ("namespaceObject", Arc::new(namespace)),
        ("object", Arc::new(Declared::new(Shape::Dyn))),
        ("oldObject", Arc::new(Declared::new(Shape::Dyn))),
        ("request", Arc::new(request)),
        ("authorizer", Arc::new(Declared::authorizer())),
    ])
});

/// Compiles a condition.
///
/// # Errors
/// What is wrong with it, as configurations are told.
pub(crate) fn compile(expression: &str) -> Result<Program, String> {
    let program = ENVIRONMENT
        .compile(expression)
        .map_err(|why| format!("compilation failed: {why}"))?;
    match program.result {
        Compiled::Bool => Ok(program),
        _ => Err(format!("must evaluate to bool but got {}", program.output)),
    }
}

/// A condition of a webhook.
pub(super) struct Condition {
    /// As it is written.
    pub(super) expression: String,
    pub(super) program: Result<Program, String>,
}

impl Condition {
    pub(super) fn new(expression: &str) -> Self {
        Self {
            expression: expression.to_owned(),
            program: compile(expression),
        }
    }
}

/// Whether all conditions hold. One that does not hold decides; one that fails refuses the request, or where failures are ignored leaves the
/// webhook out. `request` is what the review says of the request.
///
/// # Errors
/// 403 with what failed.
pub(super) fn hold(
    cluster: &LogicalCluster,
    conditions: &[Condition],
    fails_closed: bool,
    attributes: &Attributes<'_>,
    objects: (Option<&Value>, Option<&Value>),
    request: &Value,
) -> Result<bool, ApiError> {
    let null = Value::Null;
    let asked = Asked {
        cluster,
        user: attributes.context.user,
    };
    let mut budget = BUDGET;
    let mut failed = Vec::new();
    for condition in conditions {
        let program = match &condition.program {
            Ok(program) => program,
            Err(why) => {
                failed.push(format!("compilation error: {why}"));
                continue;
            }
        };
        let variables = vec![
            ("object", CelValue::of_json(objects.0.unwrap_or(&null), None)),
            ("oldObject", CelValue::of_json(objects.1.unwrap_or(&null), None)),
            ("namespaceObject", CelValue::Null),
            ("request", CelValue::of_json(request, None)),
            ("authorizer", CelValue::authorizer()),
        ];
        let evaluated = program.run(variables, Some(&asked), budget);
        budget = budget.saturating_sub(evaluated.cost);
        match evaluated.value {
            Ok(CelValue::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(gardener_cel::EvalError::CostLimit) => {
                let why =
                    "validation failed due to running out of cost budget, no further validation rules will be run";
                failed.push(why.to_owned());
                break;
            }
            Err(error) => failed.push(format!(
                "expression '{}' resulted in error: {error}",
                condition.expression
            )),
        }
    }
    if failed.is_empty() {
        return Ok(true);
    }
    if !fails_closed {
        return Ok(false);
    }
    Err(attributes.forbidden(&match failed.as_slice() {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    }))
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
            ..AuthzAttributes::of_resource(user, verb, &check.group, &check.resource, &check.namespace, &check.name)
        };
        match self.cluster.config().authorizer.authorize(self.cluster, &attributes) {
            Decision::Allow => (true, String::new()),
            Decision::Deny(reason) | Decision::NoOpinion(reason) => (false, reason),
        }
    }
}
