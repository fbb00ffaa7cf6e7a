//! Objects as Go's encoder writes them: their members in the order of the structs' fields. Refusals show them so.

use serde_json::{Map, Value};

use crate::protobuf::GoOrder;

/// The JSON of an object of a built-in kind; `order` is its kind's. Members that are not known come last.
pub(crate) fn text(object: &Value, order: GoOrder) -> String {
    let mut out = String::new();
    write(object, Some(order), &mut out);
    out
}

/// The JSON of an object's metadata.
pub(crate) fn of_metadata(metadata: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_members(metadata, GoOrder::of_metadata(), &mut out);
    out
}

fn write(value: &Value, order: Option<GoOrder>, out: &mut String) {
    match (value, order) {
        (Value::Object(members), Some(order)) => write_members(members, Some(order), out),
        (Value::Array(elements), Some(order)) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(element, Some(order), out);
            }
            out.push(']');
        }
        (other, _) => out.push_str(&other.to_string()),
    }
}

fn write_members(members: &Map<String, Value>, order: Option<GoOrder>, out: &mut String) {
    let mut sorted: Vec<(usize, &String, &Value)> = members
        .iter()
        .map(|(name, value)| (order.map_or(0, |order| order.place(name)), name, value))
        .collect();
    sorted.sort_by_key(|(place, ..)| *place);
    out.push('{');
    for (at, (_, name, value)) in sorted.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        write(value, order.and_then(|order| order.below(name)), out);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_in_the_order_of_fields() {
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"uid": "u", "name": "n", "labels": {"z": "1", "b": "2"}, "managedFields": [{"fieldsV1": {"f:spec": {}}, "manager": "m"}]},
            "spec": {"template": {"spec": {
                "containers": [{"image": "i", "name": "c", "ports": [{"protocol": "TCP", "containerPort": 1}]}],
                "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1", "medium": ""}, "configMap": {"optional": true, "name": "c"}}],
            }}, "replicas": 1, "odd": {"b": 1, "a": 2}},
        });
        let order = GoOrder::of_kind("apps", "v1", "Deployment").unwrap();
        assert_eq!(
            text(&deployment, order),
            concat!(
                r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"n","uid":"u","labels":{"b":"2","z":"1"},"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}}]},"#,
                r#""spec":{"replicas":1,"template":{"spec":{"volumes":[{"name":"v","emptyDir":{"medium":"","sizeLimit":"1"},"configMap":{"name":"c","optional":true}}],"#,
                r#""containers":[{"name":"c","image":"i","ports":[{"containerPort":1,"protocol":"TCP"}]}]}},"odd":{"a":2,"b":1}}}"#,
            )
        );
    }

    #[test]
    fn schemas_are_in_the_order_of_fields_at_any_depth() {
        let definition = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {
            "properties": {"b": {"type": "array", "items": {"type": "string", "format": "f"}}, "a": {"additionalProperties": {"type": "x", "format": "f"}, "type": "object"}},
            "type": "object",
        }}}]}});
        let order = GoOrder::of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
        assert_eq!(
            text(&definition, order),
            r#"{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"x","format":"f"}},"b":{"type":"array","items":{"type":"string","format":"f"}}}}}}]}}"#
        );
    }
}
