//! The configuration of the admission plugin PodSecurity, as far as it is looked at before it reaches kube-apiserver, [VAL-AP].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::go_json::type_of;
use gardener_apimachinery::type_meta::unreadable;
use serde_json::Value;

const GROUP: &str = "pod-security.admission.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1alpha1", "v1beta1", "v1"];
const KIND: &str = "PodSecurityConfiguration";

/// Texts of `defaults`.
const DEFAULTS: [&str; 6] = [
    "enforce",
    "enforce-version",
    "audit",
    "audit-version",
    "warn",
    "warn-version",
];
/// Lists of texts of `exemptions`.
const EXEMPTIONS: [&str; 3] = ["usernames", "namespaces", "runtimeClasses"];

/// Whether a configuration can be read as one of a known version. Unknown fields and levels are no matter here.
pub(super) fn configuration(config: &Value, path: &Path) -> ErrorList {
    let refused = |why: String| vec![Error::invalid(path, config.to_string(), why)];
    let Err(why) = read(config) else {
        return ErrorList::new();
    };
    refused(match why {
        Unread::OfAnotherKind => format!("expected {GROUP}/v1.{KIND}"),
        Unread::Malformed(why) => format!("cannot decode the given config: {why}"),
    })
}

enum Unread {
    OfAnotherKind,
    /// In the words of Go's decoder.
    Malformed(String),
}

fn read(config: &Value) -> Result<(), Unread> {
    if let Some(why) = unreadable(config) {
        return Err(Unread::Malformed(why));
    }
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    for (name, shown) in [("kind", "Kind"), ("apiVersion", "apiVersion")] {
        if text(name).is_empty() {
            return Err(Unread::Malformed(format!("Object '{shown}' is missing in '{config}'")));
        }
    }
    let version = text("apiVersion").strip_prefix(GROUP);
    let version = version.and_then(|rest| rest.strip_prefix('/')).unwrap_or_default();
    if text("kind") != KIND || !VERSIONS.contains(&version) {
        return Err(Unread::OfAnotherKind);
    }
    fields(config, version).map_err(Unread::Malformed)
}

/// The first field that does not fit, in the order of the object's members.
fn fields(config: &Value, version: &str) -> Result<(), String> {
    for (name, part) in config.as_object().into_iter().flatten() {
        let (of, texts, lists): (_, &[&str], &[&str]) = match name.as_str() {
            "defaults" => ("PodSecurityDefaults", &DEFAULTS, &[]),
            "exemptions" => ("PodSecurityExemptions", &[], &EXEMPTIONS),
            _ => continue,
        };
        let members = match part {
            Value::Object(members) => members,
            Value::Null => continue,
            other => return Err(misfit(other, &format!("{KIND}.{name}"), &format!("{version}.{of}"))),
        };
        for (member, value) in members {
            let at = format!("{of}.{name}.{member}");
            if texts.contains(&member.as_str()) {
                text(value, &at)?;
            } else if lists.contains(&member.as_str()) {
                match value {
                    Value::Array(elements) => elements.iter().try_for_each(|element| text(element, &at))?,
                    Value::Null => {}
                    other => return Err(misfit(other, &at, "[]string")),
                }
            }
        }
    }
    Ok(())
}

fn text(value: &Value, at: &str) -> Result<(), String> {
    match value {
        Value::String(_) | Value::Null => Ok(()),
        other => Err(misfit(other, at, "string")),
    }
}

fn misfit(found: &Value, at: &str, wanted: &str) -> String {
    format!(
        "json: cannot unmarshal {} into Go struct field {at} of type {wanted}",
        type_of(found)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(config: &Value) -> Option<String> {
        let errors = configuration(config, &Path::new("config"));
        errors.first().map(|error| error.detail.clone())
    }

    /// Answers of gardener-apiserver.
    #[test]
    fn val_ap_pod_security_is_read() {
        let own = |version: &str, more: Value| {
            let mut config = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": KIND});
            for (key, value) in more.as_object().unwrap() {
                config[key] = value.clone();
            }
            config
        };
        for version in VERSIONS {
            assert_eq!(
                told(&own(version, json!({"exemptions": null, "x": 1, "Defaults": []}))),
                None
            );
        }
        let whole = json!({"defaults": {"enforce": "nonsense", "warn": null}, "exemptions": {"namespaces": ["a"]}});
        assert_eq!(told(&own("v1", whole)), None);
        let another = "expected pod-security.admission.config.k8s.io/v1.PodSecurityConfiguration";
        for (config, expected) in [
            (
                json!({}),
                "cannot decode the given config: Object 'Kind' is missing in '{}'",
            ),
            (
                json!({"kind": "X"}),
                "cannot decode the given config: Object 'apiVersion' is missing in '{\"kind\":\"X\"}'",
            ),
            (json!({"apiVersion": "v1", "kind": "Pod"}), another),
            (own("v2", json!({})), another),
            (own("v1", json!({"kind": "Status"})), another),
            (
                own("v1alpha1", json!({"defaults": "x"})),
                "cannot decode the given config: json: cannot unmarshal string into Go struct field PodSecurityConfiguration.defaults of type v1alpha1.PodSecurityDefaults",
            ),
            (
                own("v1", json!({"defaults": {"audit": true, "enforce": 1}})),
                "cannot decode the given config: json: cannot unmarshal bool into Go struct field PodSecurityDefaults.defaults.audit of type string",
            ),
            (
                own("v1", json!({"exemptions": {"usernames": "a"}})),
                "cannot decode the given config: json: cannot unmarshal string into Go struct field PodSecurityExemptions.exemptions.usernames of type []string",
            ),
            (
                own("v1", json!({"exemptions": {"namespaces": ["a", {}]}})),
                "cannot decode the given config: json: cannot unmarshal object into Go struct field PodSecurityExemptions.exemptions.namespaces of type string",
            ),
            (
                json!({"kind": 1}),
                "cannot decode the given config: couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
            ),
        ] {
            assert_eq!(told(&config).as_deref(), Some(expected), "{config}");
        }
    }
}
