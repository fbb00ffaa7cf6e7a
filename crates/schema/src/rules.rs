//! The place of CEL rules (`x-kubernetes-validations`).
//!
//! Only transition rules that say "this value never changes", `self == oldSelf`, are evaluated. All other rules are
//! ignored; an evaluator for them belongs here, behind [`Rule::check`].

use gardener_apimachinery::field;
use serde_json::Value;

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The expression.
    pub rule: String,
    /// What to say when it does not hold; empty: the expression is told.
    pub message: String,
    /// The kind of error: `FieldValueInvalid` (default), `FieldValueForbidden`, `FieldValueRequired`, `FieldValueDuplicate`.
    pub reason: String,
    /// Where to report, relative to the rule's node: `.spec.name`.
    pub field_path: String,
    immutable: bool,
}

impl Rule {
    /// Reads one element of `x-kubernetes-validations`; none without an expression.
    pub fn parse(document: &Value) -> Option<Self> {
        let text = |name: &str| {
            document
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let rule = text("rule");
        let compact: String = rule.split_whitespace().collect();
        (!rule.trim().is_empty()).then(|| Self {
            immutable: compact == "self==oldSelf" || compact == "oldSelf==self",
            message: text("message"),
            reason: text("reason"),
            field_path: text("fieldPath"),
            rule,
        })
    }

    /// Evaluates the rule on a node's value and the value that it had before; a transition rule holds where there was none.
    pub fn check(&self, value: &Value, old: Option<&Value>, path: &field::Path) -> Option<field::Error> {
        let old = old?;
        if !self.immutable || same(value, old) {
            return None;
        }
        let path = if self.field_path.is_empty() {
            path.clone()
        } else {
            field::Path::new(format!("{}{}", path.as_str(), self.field_path).trim_start_matches('.'))
        };
        let message = if self.message.is_empty() {
            format!("failed rule: {}", self.rule.trim())
        } else {
            self.message.trim().to_owned()
        };
        Some(match self.reason.as_str() {
            "FieldValueForbidden" => field::Error::forbidden(&path, message),
            "FieldValueRequired" => field::Error::required(&path, message),
            "FieldValueDuplicate" => field::Error::duplicate(&path, value.clone()),
            _ => field::Error::invalid(&path, shown(value), message),
        })
    }
}

/// Upstream shows composite values by their type only.
fn shown(value: &Value) -> Value {
    match value {
        Value::Object(_) => Value::String("object".into()),
        Value::Array(_) => Value::String("array".into()),
        other => other.clone(),
    }
}

/// Equality of JSON values where `1` and `1.0` are the same.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        _ => a == b,
    }
}
