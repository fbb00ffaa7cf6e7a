//! What an object in the target becomes: the desired one, with those parts of the live one that belong to others `[EXT-151]`–`[EXT-153]`
//! `[GRM-13]`–`[GRM-15]`.

use std::collections::BTreeMap;

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value, json};

/// Annotation that tells which ManagedResource an object belongs to.
pub const ORIGIN: &str = "resources.gardener.cloud/origin";
/// Annotation that warns whoever looks at an object.
pub const DESCRIPTION: &str = "resources.gardener.cloud/description";
/// The warning.
pub const DESCRIPTION_TEXT: &str = "DO NOT EDIT - This resource is managed by gardener-resource-manager.\nAny modifications are discarded and the resource is returned to the original state.";
/// Label on every managed object.
pub const MANAGED_BY: &str = "resources.gardener.cloud/managed-by";
/// Its value.
pub const MANAGED_BY_VALUE: &str = "gardener";
/// Annotations with this prefix keep referenced objects from being collected.
pub(crate) const REFERENCE_PREFIX: &str = "reference.resources.gardener.cloud/";

/// How a ManagedResource wants its objects merged.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `[<cluster id>:]<namespace>/<name>` of the ManagedResource.
    pub origin: String,
    /// Labels for every object and its pod templates.
    pub inject_labels: BTreeMap<String, String>,
    /// Labels become exactly the desired ones.
    pub force_labels: bool,
    /// Annotations become exactly the desired ones.
    pub force_annotations: bool,
    /// Labels that this ManagedResource applied to the object the last time.
    pub applied_labels: BTreeMap<String, String>,
    /// Annotations that this ManagedResource applied to the object the last time.
    pub applied_annotations: BTreeMap<String, String>,
    /// Whether an autoscaler owns the number of replicas.
    pub scaled_by_autoscaler: bool,
}

/// An annotation of an object; empty when absent.
pub fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    object
        .at("/metadata/annotations")
        .and_then(|map| map.get(key))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn texts(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let map = object.at(pointer).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn object_at<'a>(value: &'a mut Value, pointer: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let mut at = value;
    for step in pointer {
        if !at.is_object() {
            *at = json!({});
        }
        at = at.as_object_mut()?.entry(*step).or_insert_with(|| json!({}));
    }
    at.as_object_mut()
}

fn add_labels(value: &mut Value, pointer: &[&str], labels: &BTreeMap<String, String>) {
    if let Some(map) = object_at(value, pointer) {
        map.extend(
            labels
                .iter()
                .map(|(key, value)| (key.clone(), Value::from(value.clone()))),
        );
    }
}

/// The object as it is desired, with the labels that are injected into it and its templates.
pub fn desired(mut object: Value, options: &Options) -> Value {
    let mut labels = options.inject_labels.clone();
    labels.insert(MANAGED_BY.to_owned(), MANAGED_BY_VALUE.to_owned());
    add_labels(&mut object, &["metadata", "labels"], &labels);
    if object.at("/spec/template").is_some_and(Value::is_object) {
        add_labels(&mut object, &["spec", "template", "metadata", "labels"], &labels);
    }
    for claim in object
        .at_mut("/spec/volumeClaimTemplates")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        add_labels(claim, &["metadata", "labels"], &labels);
    }
    object
}

/// The metadata that `desired` writes besides the desired one's own.
fn own_annotations(desired: &Value, options: &Options) -> BTreeMap<String, String> {
    let mut own = texts(desired, "/metadata/annotations");
    own.insert(ORIGIN.to_owned(), options.origin.clone());
    own.insert(DESCRIPTION.to_owned(), DESCRIPTION_TEXT.to_owned());
    own
}

/// A new object.
pub fn create(desired: &Value, options: &Options) -> Value {
    let mut object = desired.clone();
    if let Some(annotations) = object_at(&mut object, &["metadata", "annotations"]) {
        *annotations = own_annotations(desired, options)
            .into_iter()
            .map(|(key, value)| (key, value.into()))
            .collect();
    }
    object
}

/// Live ∪ desired, less what was applied earlier, is no longer desired and still has the applied value `[EXT-152]`.
fn union(
    live: &BTreeMap<String, String>,
    desired: &BTreeMap<String, String>,
    applied: &BTreeMap<String, String>,
    force: bool,
) -> BTreeMap<String, String> {
    if force {
        return desired.clone();
    }
    let mut result: BTreeMap<String, String> = live
        .iter()
        .filter(|(key, value)| desired.contains_key(*key) || applied.get(*key) != Some(*value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    result.extend(desired.iter().map(|(key, value)| (key.clone(), value.clone())));
    result
}

/// The live object as the desired one makes it.
pub fn merge(desired: &Value, live: &Value, options: &Options) -> Value {
    let mut object = desired.clone();
    let mut metadata = live.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let labels = union(
        &texts(live, "/metadata/labels"),
        &texts(desired, "/metadata/labels"),
        &options.applied_labels,
        options.force_labels,
    );
    let wanted = own_annotations(desired, options);
    let mut annotations = union(
        &texts(live, "/metadata/annotations"),
        &wanted,
        &options.applied_annotations,
        options.force_annotations,
    );
    annotations.retain(|key, _| !key.starts_with(REFERENCE_PREFIX) || wanted.contains_key(key));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("labels".into(), json!(labels));
        metadata.insert("annotations".into(), json!(annotations));
        match desired.at("/metadata/ownerReferences") {
            Some(owners) => metadata.insert("ownerReferences".into(), owners.clone()),
            None => metadata.remove("ownerReferences"),
        };
        metadata.remove("managedFields");
    }
    if let Some(members) = object.as_object_mut() {
        members.insert("metadata".into(), metadata);
        match live.get("status") {
            Some(status) => members.insert("status".into(), status.clone()),
            None => members.remove("status"),
        };
    }
    keep_parts(&mut object, live, desired, options);
    object
}

fn copy(object: &mut Value, live: &Value, parent: &[&str], key: &str) {
    let pointer: String = parent.iter().chain([&key]).map(|step| format!("/{step}")).collect();
    let value = live.at(&pointer).cloned();
    if let Some(map) = object_at(object, parent) {
        match value {
            Some(value) => map.insert(key.to_owned(), value),
            None => map.remove(key),
        };
    }
}

/// Parts that belong to others, by kind `[GRM-14]`.
fn keep_parts(object: &mut Value, live: &Value, desired: &Value, options: &Options) {
    let kind = desired
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    match kind.as_str() {
        "Deployment" | "StatefulSet" => {
            let unset = desired.at("/spec/replicas").is_none();
            if unset
                || annotation(desired, "resources.gardener.cloud/preserve-replicas") == "true"
                || options.scaled_by_autoscaler
            {
                copy(object, live, &["spec"], "replicas");
            }
            if kind == "StatefulSet" && live.at("/spec/volumeClaimTemplates").is_some() {
                copy(object, live, &["spec"], "volumeClaimTemplates");
            }
            keep_template(object, live, desired, &["spec", "template"]);
        }
        "DaemonSet" => keep_template(object, live, desired, &["spec", "template"]),
        "Job" => {
            copy(object, live, &["spec"], "selector");
            let mut labels = texts(live, "/spec/template/metadata/labels");
            labels.extend(texts(desired, "/spec/template/metadata/labels"));
            add_labels(object, &["spec", "template", "metadata", "labels"], &labels);
            keep_template(object, live, desired, &["spec", "template"]);
        }
        "CronJob" => keep_template(object, live, desired, &["spec", "jobTemplate", "spec", "template"]),
        "Service" => keep_service(object, live, desired),
        "ServiceAccount" => {
            copy(object, live, &[], "secrets");
            copy(object, live, &[], "imagePullSecrets");
        }
        _ => {}
    }
}

fn keep_template(object: &mut Value, live: &Value, desired: &Value, at: &[&str]) {
    let pointer: String = at.iter().map(|step| format!("/{step}")).collect();
    const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";
    if let Some(restarted) = live
        .at(&format!("{pointer}/metadata/annotations"))
        .and_then(|map| map.get(RESTARTED))
        .cloned()
    {
        let mut path = at.to_vec();
        path.extend(["metadata", "annotations"]);
        if let Some(annotations) = object_at(object, &path) {
            annotations.insert(RESTARTED.to_owned(), restarted);
        }
    }
    if annotation(desired, "resources.gardener.cloud/preserve-resources") != "true" {
        return;
    }
    let containers = format!("{pointer}/spec/containers");
    let running: Vec<Value> = live
        .at(&containers)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for container in object
        .at_mut(&containers)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(own) = running.iter().find(|own| own.get("name") == container.get("name")) else {
            continue;
        };
        for kind in ["requests", "limits"] {
            for resource in ["cpu", "memory"] {
                if let Some(amount) = own.at(&format!("/resources/{kind}/{resource}")).cloned()
                    && let Some(map) = object_at(container, &["resources", kind])
                {
                    map.insert(resource.to_owned(), amount);
                }
            }
        }
    }
}

/// `[GRM-15]`.
fn keep_service(object: &mut Value, live: &Value, desired: &Value) {
    let kind = |service: &Value| match service.at("/spec/type").and_then(Value::as_str) {
        None | Some("") => "ClusterIP".to_owned(),
        Some(kind) => kind.to_owned(),
    };
    let (wanted, current) = (kind(desired), kind(live));
    for (key, value) in texts(live, "/metadata/annotations")
        .into_iter()
        .filter(|(key, _)| key.starts_with("loadbalancer.openstack.org"))
    {
        if let Some(annotations) = object_at(object, &["metadata", "annotations"]) {
            annotations.entry(key).or_insert_with(|| value.into());
        }
    }
    if wanted == "ExternalName" {
        return;
    }
    if current != "ExternalName" && desired.at("/spec/clusterIP").and_then(Value::as_str) != Some("None") {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if live.at(&format!("/spec/{key}")).is_some() {
                copy(object, live, &["spec"], key);
            }
        }
    }
    if !matches!(wanted.as_str(), "LoadBalancer" | "NodePort") {
        return;
    }
    let running: Vec<Value> = live
        .at("/spec/ports")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for port in object
        .at_mut("/spec/ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) != 0 {
            continue;
        }
        let same = |own: &&Value| {
            own.get("port") == port.get("port") || (own.get("name").is_some() && own.get("name") == port.get("name"))
        };
        let node_port = running.iter().find(same).and_then(|own| own.get("nodePort")).cloned();
        if let (Some(node_port), Some(port)) = (node_port, port.as_object_mut()) {
            port.insert("nodePort".into(), node_port);
        }
    }
    let empty = |key: &str| {
        desired
            .at(&format!("/spec/{key}"))
            .is_none_or(|value| value.as_str() == Some("") || value.as_i64() == Some(0))
    };
    if empty("loadBalancerIP") {
        copy(object, live, &["spec"], "loadBalancerIP");
    }
    let local = |service: &Value| {
        kind(service) == "LoadBalancer"
            && service.at("/spec/externalTrafficPolicy").and_then(Value::as_str) == Some("Local")
    };
    if local(desired) && local(live) && empty("healthCheckNodePort") {
        copy(object, live, &["spec"], "healthCheckNodePort");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn w_ext_15_labels_of_others_stay() {
        let options = Options {
            applied_labels: map(&[("a", "1")]),
            ..Options::default()
        };
        let desired = json!({"kind": "ConfigMap", "metadata": {"name": "x", "labels": {"b": "2"}}});
        let live = |value: &str| json!({"kind": "ConfigMap", "metadata": {"name": "x", "finalizers": ["f/x"], "labels": {"a": value, "user": "u"}}});
        assert_eq!(
            merge(&desired, &live("1"), &options)["metadata"]["labels"],
            json!({"b": "2", "user": "u"})
        );
        assert_eq!(
            merge(&desired, &live("2"), &options)["metadata"]["labels"],
            json!({"a": "2", "b": "2", "user": "u"})
        );
        let forced = Options {
            force_labels: true,
            ..options
        };
        let merged = merge(&desired, &live("2"), &forced);
        assert_eq!(merged["metadata"]["labels"], json!({"b": "2"}));
        assert_eq!(merged["metadata"]["finalizers"], json!(["f/x"]));
    }

    #[test]
    fn grm_14_replicas_belong_to_others_when_unset() {
        let live = json!({"kind": "Deployment", "metadata": {}, "spec": {"replicas": 5, "template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "t"}}}}});
        let merged = merge(
            &json!({"kind": "Deployment", "metadata": {}, "spec": {"template": {}}}),
            &live,
            &Options::default(),
        );
        assert_eq!(merged["spec"]["replicas"], 5);
        assert_eq!(
            merged["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"],
            "t"
        );
        let set = json!({"kind": "Deployment", "metadata": {}, "spec": {"replicas": 1}});
        assert_eq!(merge(&set, &live, &Options::default())["spec"]["replicas"], 1);
        let scaled = Options {
            scaled_by_autoscaler: true,
            ..Options::default()
        };
        assert_eq!(merge(&set, &live, &scaled)["spec"]["replicas"], 5);
    }

    #[test]
    fn grm_15_services_keep_what_was_allocated() {
        let live = json!({"kind": "Service", "metadata": {}, "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ports": [{"port": 443, "nodePort": 30001}]}});
        let desired =
            json!({"kind": "Service", "metadata": {}, "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]}});
        let merged = merge(&desired, &live, &Options::default());
        assert_eq!(merged["spec"]["clusterIP"], "10.0.0.7");
        assert_eq!(merged["spec"]["ports"][0]["nodePort"], 30001);
    }

    #[test]
    fn ext_151_labels_are_injected_into_templates() {
        let options = Options {
            inject_labels: map(&[("i", "j")]),
            origin: "ns/mr".into(),
            ..Options::default()
        };
        let object = desired(
            json!({"kind": "StatefulSet", "metadata": {"name": "x"}, "spec": {"template": {}, "volumeClaimTemplates": [{}]}}),
            &options,
        );
        for pointer in [
            "/metadata/labels",
            "/spec/template/metadata/labels",
            "/spec/volumeClaimTemplates/0/metadata/labels",
        ] {
            assert_eq!(
                object.at(pointer).unwrap(),
                &json!({"i": "j", MANAGED_BY: MANAGED_BY_VALUE}),
                "{pointer}"
            );
        }
        assert_eq!(annotation(&create(&object, &options), ORIGIN), "ns/mr");
    }
}
