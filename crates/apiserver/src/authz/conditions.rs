//! Match conditions of authorization webhooks: expressions about a question that tell whether the webhook is asked it.

use std::sync::{Arc, LazyLock};

use gardener_apimachinery::field;
use gardener_cel::{CALL_LIMIT, Declared, Environment, Program, Shape, Value as CelValue};
use k8s_openapi::api::authorization::v1::SubjectAccessReviewSpec;
use serde_json::{Map, Value, json};

use crate::intercept::expressions::{self, Returns};

/// What conditions know: the question, as a SubjectAccessReview of version v1 puts it.
static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let text = || Declared::new(Shape::Text);
    let texts = || Declared::list_of(text());
    let selector = |name: &str| {
        let requirement = Declared::object(
            "kubernetes.SelectorRequirement",
            vec![("key", text()), ("operator", text()), ("values", texts())],
        );
        Declared::object(
            name,
            vec![
                ("rawSelector", text()),
                ("requirements", Declared::list_of(requirement)),
            ],
        )
    };
    let resource = Declared::object(
        "kubernetes.ResourceAttributes",
        vec![
            ("namespace", text()),
            ("verb", text()),
            ("group", text()),
            ("version", text()),
            ("resource", text()),
            ("subresource", text()),
            ("name", text()),
            ("fieldSelector", selector("kubernetes.FieldSelectorAttributes")),
            ("labelSelector", selector("kubernetes.LabelSelectorAttributes")),
        ],
    );
    let path = Declared::object(
        "kubernetes.NonResourceAttributes",
        vec![("path", text()), ("verb", text())],
    );
    let request = Declared::object(
        "kubernetes.SubjectAccessReviewSpec",
        vec![
            ("resourceAttributes", resource),
            ("nonResourceAttributes", path),
            ("user", text()),
            ("groups", texts()),
            ("extra", Declared::new(Shape::Map(Arc::new(texts())))),
            ("uid", text()),
        ],
    );
    Environment::new([("request", Arc::new(request))])
});

/// A condition that can be evaluated.
#[derive(Debug)]
pub struct Condition(Program);

impl Condition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// What is wrong with it, as configurations are told.
    pub fn new(expression: &str) -> Result<Self, String> {
        let program = expressions::compile(&ENVIRONMENT, expression, Returns::Bool);
        program.map(Self).map_err(|fault| fault.to_string())
    }
}

/// Whether all conditions hold. One that does not hold decides, whatever fails before it.
///
/// # Errors
/// What failed, if all others hold.
pub(super) fn hold(conditions: &[Condition], spec: &SubjectAccessReviewSpec) -> Result<bool, String> {
    if conditions.is_empty() {
        return Ok(true);
    }
    let request = request(spec);
    let mut failed = Vec::new();
    for Condition(program) in conditions {
        let variables = vec![("request", CelValue::of_json(&request, None))];
        match program.run(variables, None, CALL_LIMIT).value {
            Ok(CelValue::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(error) => failed.push(format!(
                "cel evaluation error: expression '{}' resulted in error: {error}",
                program.source()
            )),
        }
    }
    match failed.is_empty() {
        true => Ok(true),
        false => Err(field::aggregate(&failed)),
    }
}

/// The question as conditions see it: every text is there, also an empty one.
fn request(spec: &SubjectAccessReviewSpec) -> Value {
    let mut request = json!({
        "user": spec.user.as_deref().unwrap_or_default(),
        "uid": spec.uid.as_deref().unwrap_or_default(),
        "groups": spec.groups.as_deref().unwrap_or_default(),
        "extra": spec.extra.clone().unwrap_or_default(),
    });
    if let Some(own) = &spec.resource_attributes {
        let mut resource = Map::new();
        for (name, value) in [
            ("namespace", &own.namespace),
            ("verb", &own.verb),
            ("group", &own.group),
            ("version", &own.version),
            ("resource", &own.resource),
            ("subresource", &own.subresource),
            ("name", &own.name),
        ] {
            resource.insert(name.to_owned(), value.as_deref().unwrap_or_default().into());
        }
        let fields = own.field_selector.as_ref().and_then(|own| own.requirements.as_ref());
        let fields = fields.map(|own| {
            let own = own.iter();
            own.map(|own| requirement(&own.key, &own.operator, &own.values))
                .collect::<Vec<_>>()
        });
        let labels = own.label_selector.as_ref().and_then(|own| own.requirements.as_ref());
        let labels = labels.map(|own| {
            let own = own.iter();
            own.map(|own| requirement(&own.key, &own.operator, &own.values))
                .collect::<Vec<_>>()
        });
        for (name, requirements) in [("fieldSelector", fields), ("labelSelector", labels)] {
            if let Some(requirements) = requirements {
                resource.insert(name.to_owned(), json!({"requirements": requirements}));
            }
        }
        request["resourceAttributes"] = resource.into();
    }
    if let Some(own) = &spec.non_resource_attributes {
        request["nonResourceAttributes"] = json!({
            "path": own.path.as_deref().unwrap_or_default(),
            "verb": own.verb.as_deref().unwrap_or_default(),
        });
    }
    request
}

fn requirement(key: &str, operator: &str, values: &Option<Vec<String>>) -> Value {
    json!({"key": key, "operator": operator, "values": values.as_deref().unwrap_or_default()})
}

#[cfg(test)]
mod tests {
    use super::super::{Attributes, review};
    use super::*;
    use crate::user::UserInfo;

    #[test]
    fn conditions_see_the_question() {
        let mut user = UserInfo::new("alice", &["dev"]);
        user.extra.insert("example.com/team".into(), vec!["a".into()]);
        let mut of_pods = Attributes::of_resource(&user, "list", "", "pods", "kube-system", "");
        of_pods.field_selector = "spec.nodeName=n1";
        of_pods.label_selector = "a in (b)";
        let of_path = Attributes {
            path: "/metrics",
            is_resource: false,
            ..Attributes::of_resource(&user, "get", "", "", "", "")
        };
        for (expression, resource, path) in [
            ("request.user == 'alice' && 'dev' in request.groups", Ok(true), Ok(true)),
            ("has(request.resourceAttributes)", Ok(true), Ok(false)),
            (
                "has(request.nonResourceAttributes) && request.nonResourceAttributes.path == '/metrics'",
                Ok(false),
                Ok(true),
            ),
            (
                "request.resourceAttributes.namespace == 'kube-system'",
                Ok(true),
                Err("no such key: resourceAttributes"),
            ),
            (
                "request.uid == '' && request.extra['example.com/team'] == ['a']",
                Ok(true),
                Ok(true),
            ),
            (
                "has(request.resourceAttributes) && request.resourceAttributes.fieldSelector.requirements.exists(r, r.key == 'spec.nodeName' && r.operator == 'In' && r.values == ['n1'])",
                Ok(true),
                Ok(false),
            ),
            (
                "request.?resourceAttributes.labelSelector.requirements.orValue([]).all(r, r.key == 'a')",
                Ok(true),
                Ok(true),
            ),
            (
                "has(request.resourceAttributes) && has(request.resourceAttributes.labelSelector.rawSelector)",
                Ok(false),
                Ok(false),
            ),
        ] {
            let conditions = [Condition::new(expression).unwrap()];
            for (attributes, expected) in [(&of_pods, resource), (&of_path, path)] {
                let found = hold(&conditions, &review::spec(attributes));
                match expected {
                    Ok(expected) => assert_eq!(found, Ok(expected), "{expression}"),
                    Err(expected) => assert!(found.unwrap_err().contains(expected), "{expression}"),
                }
            }
        }
        for (expression, expected) in [
            ("request.name == 'x'", "undefined field 'name'"),
            ("'a'", "must evaluate to bool but got string"),
            ("request.", "compilation failed"),
            ("object.x", "undeclared reference"),
        ] {
            let error = Condition::new(expression).unwrap_err();
            assert!(error.contains(expected), "{expression}: {error}");
        }
    }

    #[test]
    fn a_condition_that_does_not_hold_decides() {
        let user = UserInfo::new("a", &[]);
        let question = review::spec(&Attributes::of_resource(&user, "get", "", "pods", "", ""));
        let conditions = |expressions: &[&str]| -> Vec<Condition> {
            expressions.iter().map(|own| Condition::new(own).unwrap()).collect()
        };
        let fails = "request.nonResourceAttributes.path == ''";
        assert_eq!(hold(&conditions(&[fails, "false"]), &question), Ok(false));
        let error = hold(&conditions(&["true", fails]), &question).unwrap_err();
        assert!(
            error.starts_with(&format!(
                "cel evaluation error: expression '{fails}' resulted in error: "
            )),
            "{error}"
        );
        let error = hold(
            &conditions(&[fails, "request.nonResourceAttributes.verb == ''"]),
            &question,
        )
        .unwrap_err();
        assert!(
            error.starts_with('[') && error.contains(", cel evaluation error"),
            "{error}"
        );
    }
}
