//! Versions that are not served any more, in which an etcd may still hold objects: kube-apiserver reads every version that it ever stored, and
//! rewrites an object only when somebody writes it. CustomResourceDefinitions it stores in such a version to this day, as that one is shorter.

use serde_json::{Map, Value, json};

/// By group, the versions whose kinds have the form of the stored version's: the same members in JSON, by the same numbers in protobuf.
const SAME: [(&str, &[&str]); 15] = [
    ("admissionregistration.k8s.io", &["v1alpha1", "v1beta1"]),
    ("apps", &["v1beta1", "v1beta2"]),
    ("autoscaling", &["v2beta2"]),
    ("batch", &["v1beta1"]),
    ("certificates.k8s.io", &["v1beta1"]),
    ("coordination.k8s.io", &["v1beta1"]),
    ("flowcontrol.apiserver.k8s.io", &["v1beta1", "v1beta2", "v1beta3"]),
    ("networking.k8s.io", &["v1beta1"]),
    ("node.k8s.io", &["v1beta1"]),
    ("policy", &["v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1beta1"]),
    ("resource.k8s.io", &["v1beta1", "v1beta2"]),
    ("scheduling.k8s.io", &["v1beta1"]),
    ("storage.k8s.io", &["v1alpha1", "v1beta1"]),
    ("apiregistration.k8s.io", &["v1beta1"]),
];

/// Kinds of those versions whose form became another one.
const CHANGED: [(&str, &str, &str); 6] = [
    ("flowcontrol.apiserver.k8s.io", "v1beta1", "PriorityLevelConfiguration"),
    ("flowcontrol.apiserver.k8s.io", "v1beta2", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "v1beta1", "Ingress"),
    ("resource.k8s.io", "v1beta1", "ResourceClaim"),
    ("resource.k8s.io", "v1beta1", "ResourceClaimTemplate"),
    ("resource.k8s.io", "v1beta1", "ResourceSlice"),
];

/// Whether objects of a version that is not served can be read as those of the stored version.
pub(super) fn is_same_form(group: &str, version: &str, kind: &str) -> bool {
    let mut same = SAME.iter();
    same.any(|(own, versions)| *own == group && versions.contains(&version))
        && !CHANGED.contains(&(group, version, kind))
}

/// Makes a CustomResourceDefinition of v1beta1 one of v1: what all its versions share is told once there, and of each version here.
pub(super) fn definition_of_v1beta1(definition: &mut Value) {
    let Some(Value::Object(spec)) = definition.get_mut("spec") else {
        return;
    };
    let first = spec.remove("version").filter(|version| version != "");
    let known = spec.entry("versions").or_insert_with(|| json!([]));
    let Value::Array(versions) = known else { return };
    if let Some(first) = first.filter(|_| versions.is_empty()) {
        versions.push(json!({"name": first, "served": true, "storage": true}));
    }
    let mut versions = std::mem::take(versions);
    for (shared, own) in [
        ("validation", "schema"),
        ("subresources", "subresources"),
        ("additionalPrinterColumns", "additionalPrinterColumns"),
        ("selectableFields", "selectableFields"),
    ] {
        let Some(shared) = spec.remove(shared) else { continue };
        for version in versions.iter_mut().filter_map(Value::as_object_mut) {
            version.insert(own.to_owned(), shared.clone());
        }
    }
    for version in &mut versions {
        let columns = version
            .get_mut("additionalPrinterColumns")
            .and_then(Value::as_array_mut);
        for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
            let path = column.remove("JSONPath");
            column.extend(path.map(|path| ("jsonPath".to_owned(), path)));
        }
    }
    spec.insert("versions".to_owned(), versions.into());
    if let Some(Value::Object(conversion)) = spec.get_mut("conversion") {
        let webhook: Map<String, Value> = [
            ("webhookClientConfig", "clientConfig"),
            ("conversionReviewVersions", "conversionReviewVersions"),
        ]
        .into_iter()
        .filter_map(|(was, is)| Some((is.to_owned(), conversion.remove(was)?)))
        .collect();
        if !webhook.is_empty() {
            conversion.insert("webhook".to_owned(), webhook.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_v1beta1_tell_of_each_version_what_all_share() {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let column = |path: &str| json!({"name": "a", "type": "string", path: ".spec.a"});
        let names = json!({"plural": "things", "kind": "Thing"});
        for (old, new) in [
            (
                json!({
                    "group": "g", "names": names, "version": "v1", "validation": schema, "subresources": {"status": {}},
                    "additionalPrinterColumns": [column("JSONPath")],
                    "versions": [{"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": false, "storage": false}],
                    "conversion": {"strategy": "Webhook", "webhookClientConfig": {"url": "u"}, "conversionReviewVersions": ["v1"]},
                }),
                json!({
                    "group": "g", "names": names,
                    "versions": [
                        {
                            "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}},
                            "additionalPrinterColumns": [column("jsonPath")],
                        },
                        {
                            "name": "v2", "served": false, "storage": false, "schema": schema, "subresources": {"status": {}},
                            "additionalPrinterColumns": [column("jsonPath")],
                        },
                    ],
                    "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "u"}, "conversionReviewVersions": ["v1"]}},
                }),
            ),
            (
                json!({"version": "v1", "conversion": {"strategy": "None"}}),
                json!({"versions": [{"name": "v1", "served": true, "storage": true}], "conversion": {"strategy": "None"}}),
            ),
            (
                json!({"version": "v2", "versions": [{"name": "v2", "schema": schema, "additionalPrinterColumns": [column("JSONPath")]}]}),
                json!({"versions": [{"name": "v2", "schema": schema, "additionalPrinterColumns": [column("jsonPath")]}]}),
            ),
        ] {
            let mut definition = json!({"spec": old});
            definition_of_v1beta1(&mut definition);
            assert_eq!(definition["spec"], new);
        }
    }
}
