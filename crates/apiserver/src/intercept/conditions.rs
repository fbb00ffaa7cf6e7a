//! Match conditions: expressions that tell whether a webhook is asked, or a policy judges.

use gardener_apimachinery::field;
use gardener_cel::{OBJECT_BUDGET, Value as CelValue};
use serde_json::{Map, Value};

use super::expressions::{self, Activation, Expression, Known, Returns};
use super::form::Form;
use crate::cluster::LogicalCluster;
use crate::definition::Attributes;

/// What all conditions of one webhook or policy may cost for one request.
const BUDGET: u64 = OBJECT_BUDGET / 4;

/// Compiles a condition. `params` tells whether it knows a policy's parameters.
pub(crate) fn compile(expression: &str, params: bool) -> Expression {
    let known = Known {
        params,
        authorizer: true,
    };
    Expression::compile(&expressions::environment(known), expression, Returns::Bool)
}

/// Whether all conditions hold. One that does not hold decides; one that fails is an error, or where failures are ignored leaves the webhook or
/// policy out. `request` is what [`super::request`] tells.
///
/// # Errors
/// What failed.
pub(crate) fn hold(
    cluster: &LogicalCluster,
    conditions: &[Expression],
    fails_closed: bool,
    attributes: &Attributes<'_>,
    form: &Form,
    request: &Map<String, Value>,
    params: Option<&Value>,
) -> Result<bool, String> {
    if conditions.is_empty() {
        return Ok(true);
    }
    // conditions are told the resource that was requested, also where the kind is an equal one
    let mut told = request.clone();
    if let Some(requested) = request.get("requestResource") {
        told.insert("resource".to_owned(), requested.clone());
    }
    let told = Value::Object(told);
    let known = expressions::Subject {
        cluster,
        attributes,
        form,
        request: &told,
        namespace: None,
        params,
    };
    let mut activation = Activation::new(&known, true, None, BUDGET);
    let mut failed = Vec::new();
    let mut holds = true;
    for condition in conditions {
        match activation.evaluate(condition) {
            // it ran out of what all may cost
            Err(why) => {
                failed = vec![why];
                holds = true;
                break;
            }
            Ok(Ok(CelValue::Bool(false))) => holds = false,
            Ok(Ok(_)) => {}
            Ok(Err(why)) => failed.push(why),
        }
    }
    if !holds {
        return Ok(false);
    }
    if failed.is_empty() {
        return Ok(true);
    }
    if !fails_closed {
        return Ok(false);
    }
    Err(field::aggregate(&failed))
}
