//! Values as kube-apiserver's messages show them: as its internal types, whose members stand in another order and under other names
//! than the API's, each of them written whether it is set or not.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use gardener_apimachinery::field::go_escaped;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::difference;

/// The recorded table: name of a type to its fields. `crates/conformance/reference/internal-types` tells what stands in it, and makes it.
const RECORDED: &str = include_str!("../../recorded/internal-types.json");

#[derive(Deserialize)]
#[serde(untagged)]
enum Field {
    Always(String, String, String),
    Set(String, String, String, IgnoredAny),
}

impl Field {
    /// The written name, the place in the API's JSON, and the type.
    fn parts(&self) -> (&str, &str, &str) {
        match self {
            Self::Always(name, place, of) | Self::Set(name, place, of, _) => (name, place, of),
        }
    }
}

#[allow(clippy::expect_used)] // part of the program
static TYPES: LazyLock<HashMap<String, Vec<Field>>> =
    LazyLock::new(|| serde_json::from_str(RECORDED).expect("the recorded table"));

/// A value in the order in which it is written.
enum Shown {
    Plain(String),
    List(Vec<Shown>),
    Object(Vec<(String, Shown)>),
}

/// A text as Go's encoder writes it.
fn quoted(text: &str) -> String {
    go_escaped(Value::from(text).to_string()).into_owned()
}

/// A value that is written as it stands.
fn plain(value: &Value) -> Shown {
    match value {
        Value::String(text) => Shown::Plain(quoted(text)),
        Value::Array(elements) => Shown::List(elements.iter().map(plain).collect()),
        Value::Object(members) => Shown::Object(members.iter().map(|(key, own)| (key.clone(), plain(own))).collect()),
        other => Shown::Plain(other.to_string()),
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(elements)) => elements.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Bool(set)) => !set,
        Some(Value::Number(number)) => number.as_i64() == Some(0),
    }
}

/// A value of a type. `beside` is the object that it is a member of.
fn of_type(of: &str, value: Option<&Value>, beside: Option<&Value>) -> Shown {
    let null = || Shown::Plain("null".to_owned());
    let value = value.filter(|value| !value.is_null());
    if let Some(of) = of.strip_prefix('*') {
        return value.map_or_else(null, |value| of_type(of, Some(value), beside));
    }
    if let Some(of) = of.strip_prefix("[]") {
        return match value.and_then(Value::as_array) {
            Some(elements) => Shown::List(elements.iter().map(|own| of_type(of, Some(own), None)).collect()),
            None => null(),
        };
    }
    if let Some(of) = of.strip_prefix("{}") {
        let member = |(key, own): (&String, &Value)| (key.clone(), of_type(of, Some(own), None));
        return match value.and_then(Value::as_object) {
            Some(members) => Shown::Object(members.iter().map(member).collect()),
            None => null(),
        };
    }
    let zero = match of {
        "string" => "\"\"",
        "bool" => "false",
        "number" | "=intstr.IntOrString" => "0",
        "=resource.Quantity" => "\"0\"",
        _ => "null",
    };
    match (TYPES.get(of), value) {
        (Some(fields), value) => Shown::Object(members(of, fields, value, beside)),
        (None, Some(value)) => plain(value),
        (None, None) => Shown::Plain(zero.to_owned()),
    }
}

fn members(of: &str, fields: &[Field], value: Option<&Value>, beside: Option<&Value>) -> Vec<(String, Shown)> {
    // which of the forms a schema may take it has, is not told by a member
    match (of, value) {
        ("apiextensions.JSONSchemaPropsOrBool", Some(allows @ Value::Bool(_))) => {
            return vec![
                ("Allows".into(), plain(allows)),
                ("Schema".into(), Shown::Plain("null".into())),
            ];
        }
        ("apiextensions.JSONSchemaPropsOrBool", Some(schema)) => {
            let schema = of_type("apiextensions.JSONSchemaProps", Some(schema), None);
            return vec![
                ("Allows".into(), Shown::Plain("true".into())),
                ("Schema".into(), schema),
            ];
        }
        ("apiextensions.JSONSchemaPropsOrArray" | "apiextensions.JSONSchemaPropsOrStringArray", Some(schema)) => {
            let schema = of_type("apiextensions.JSONSchemaProps", Some(schema), None);
            let other = fields.last().map_or("", |field| field.parts().0);
            return vec![("Schema".into(), schema), (other.into(), Shown::Plain("null".into()))];
        }
        _ => {}
    }
    let shown = fields.iter().filter_map(|field| {
        let (name, place, of) = field.parts();
        let own = match place.strip_prefix("../") {
            Some(place) => beside.and_then(|beside| beside.get(place)),
            None => value.and_then(|value| place.split('/').try_fold(value, |value, key| value.get(key))),
        };
        let is_left_out = matches!(field, Field::Set(..)) && is_empty(own);
        (!is_left_out).then(|| (name.to_owned(), of_type(of, own, value)))
    });
    shown.collect()
}

impl Shown {
    /// In one line.
    fn write(&self, out: &mut String) {
        match self {
            Self::Plain(text) => out.push_str(text),
            Self::List(elements) => {
                out.push('[');
                for (at, own) in elements.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    own.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (key, own)) in members.iter().enumerate() {
                    let _ = write!(out, "{}{}:", if at == 0 { "" } else { "," }, quoted(key));
                    own.write(out);
                }
                out.push('}');
            }
        }
    }

    /// A line for each member and element, with a space before it for each that it is in.
    fn write_lines(&self, depth: usize, out: &mut String) {
        let begin = |at: usize| format!("{}\n{}", if at == 0 { "" } else { "," }, " ".repeat(depth + 1));
        let end = format!("\n{}", " ".repeat(depth));
        match self {
            Self::List(elements) if !elements.is_empty() => {
                out.push('[');
                for (at, own) in elements.iter().enumerate() {
                    out.push_str(&begin(at));
                    own.write_lines(depth + 1, out);
                }
                let _ = write!(out, "{end}]");
            }
            Self::Object(members) if !members.is_empty() => {
                out.push('{');
                for (at, (key, own)) in members.iter().enumerate() {
                    let _ = write!(out, "{}{}: ", begin(at), quoted(key));
                    own.write_lines(depth + 1, out);
                }
                let _ = write!(out, "{end}}}");
            }
            other => other.write(out),
        }
    }
}

/// A value as an internal type, in one line. `of` is a type of the table, also a pointer to one, a list or a map.
pub(super) fn text(of: &str, value: &Value) -> String {
    let mut out = String::new();
    of_type(of, Some(value), None).write(&mut out);
    out
}

/// How two values of a type differ, line by line.
pub(super) fn changes(of: &str, old: &Value, new: &Value) -> String {
    let lines = |value: &Value| {
        let mut out = String::new();
        of_type(of, Some(value), None).write_lines(0, &mut out);
        out
    };
    difference::unified(&lines(old), &lines(new))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_stand_in_the_order_of_the_type() {
        let template = json!({"metadata": {"labels": {"a": "<b>"}}, "spec": {
            "hostNetwork": true, "securityContext": {"runAsUser": 0},
            "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}],
        }});
        let shown = text("core.PodTemplateSpec", &template);
        assert!(
            shown.starts_with(
                r#"{"labels":{"a":"\u003cb\u003e"},"Spec":{"Volumes":null,"InitContainers":null,"Containers":[{"Name":"c","Image":"","Command":null,"#
            ),
            "{shown}"
        );
        for part in [
            r#""Resources":{"Limits":{"cpu":"1"},"Requests":null,"Claims":null}"#,
            r#""SecurityContext":{"HostNetwork":true,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":0,"#,
        ] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
        let versions = json!([{"name": "v1", "served": true, "storage": false}]);
        assert_eq!(
            text("[]apiextensions.CustomResourceDefinitionVersion", &versions),
            r#"[{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]"#
        );
    }

    #[test]
    fn changes_are_shown_with_what_is_around_them() {
        let (old, new) = (
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}),
        );
        assert_eq!(
            changes("core.PersistentVolumeClaimSpec", &old, &new),
            "@@ -6,7 +6,7 @@\n  \"Resources\": {\n   \"Limits\": null,\n   \"Requests\": {\n-   \"storage\": \"1Gi\"\n+   \"storage\": \"2Gi\"\n   }\n  },\n  \"VolumeName\": \"\",\n"
        );
    }
}
