//! Annotations of pods that mean something, in pods and templates: what must hold of them.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::containers::each_container;
use super::scheduling;
use crate::kubernetes::checks::{annotation, descending_path, map, text};
use crate::kubernetes::json_text;
use crate::meta;

/// A pod that a kubelet runs by itself.
pub(crate) const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(super) const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// Before the name of a container.
pub(super) const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Whether a pod stands for one that a kubelet runs by itself.
pub(crate) fn is_mirror(pod: &Value) -> bool {
    annotation(pod, MIRROR).is_some()
}

fn annotations(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    map(metadata, "annotations").map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

/// Whether a text is a number as it should be written: no plus, no zeros in front.
fn is_cost(cost: &str) -> bool {
    let begins_well = cost == "0" || cost.starts_with(|first: char| first == '-' || ('1'..='9').contains(&first));
    begins_well && cost.parse::<i32>().is_ok()
}

fn seccomp(profile: &str, path: &Path, errors: &mut ErrorList) {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        other => match other.strip_prefix("localhost/") {
            Some(file) => descending_path(file, path, errors),
            None => errors.push(Error::invalid(path, other, "must be a valid seccomp profile")),
        },
    }
}

/// The profile that an annotation's text names.
fn profile_of(text: &str) -> Option<Value> {
    match text {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        other => {
            let file = other.strip_prefix("localhost/")?;
            let is_whole = !file.is_empty() && file.trim() == file;
            is_whole.then(|| json!({"type": "Localhost", "localhostProfile": file}))
        }
    }
}

/// What does not agree between a profile and an annotation that names one; `defaults` are names of the runtime's own.
fn disagreement(annotation: &str, profile: &Value, defaults: &[&str], what: &str, path: &Path) -> Option<Error> {
    let wrong = |key: &str, word: &str| {
        let why = format!("{what} {word} in annotation and field must match");
        Some(Error::forbidden(&path.child(key), why))
    };
    let agrees = match text(profile, "type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => defaults.contains(&annotation),
        "Localhost" => match annotation.strip_prefix("localhost/") {
            Some(file) if profile.get("localhostProfile").and_then(Value::as_str) != Some(file) => {
                return wrong("localhostProfile", "profile");
            }
            file => file.is_some(),
        },
        _ => true,
    };
    if agrees { None } else { wrong("type", "type") }
}

/// Checks that profiles of a new pod's or template's containers are those that annotations name for them; the path is the spec's. Containers
/// without one `take` what an annotation names for AppArmor, or have the pod's.
pub(in crate::kubernetes) fn validate_profiles(object: &Value, path: &Path, take: bool, errors: &mut ErrorList) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let place = |at: &Path, key: &str| at.child("securityContext").child(key);
    let profile = |own: &Value, key: &str| own.get("securityContext").and_then(|context| context.get(key)).cloned();
    let seccomp = |own: &Value, at: &Path, annotated: &str| {
        let profile = profile(own, "seccompProfile")?;
        let named = annotation(object, annotated)?;
        let defaults = ["runtime/default", "docker/default"];
        disagreement(named, &profile, &defaults, "seccomp", &place(at, "seccompProfile"))
    };
    errors.extend(seccomp(spec, path, SECCOMP_OF_POD));
    for (at, container) in each_container(spec, path) {
        errors.extend(seccomp(
            container,
            &at,
            &format!("{SECCOMP}{}", text(container, "name")),
        ));
    }
    if meta::text(spec, "/os/name") == "windows" {
        return;
    }
    for (at, container) in each_container(spec, path) {
        let Some(named) = annotation(object, &format!("{APP_ARMOR}{}", text(container, "name"))) else {
            continue;
        };
        let taken = profile_of(named).filter(|_| take);
        let own = profile(container, "appArmorProfile")
            .or(taken)
            .or_else(|| profile(spec, "appArmorProfile"));
        let at = place(&at, "appArmorProfile");
        errors.extend(own.and_then(|own| disagreement(named, &own, &["runtime/default"], "apparmor", &at)));
    }
}

/// Gives containers that have no profile of AppArmor the one that an annotation names for them, unless it is the pod's.
pub(super) fn take_app_armor(pod: &mut Value) {
    let named = meta::string_map(pod.at("/metadata/annotations"));
    if !named.keys().any(|key| key.starts_with(APP_ARMOR)) || meta::text(pod, "/spec/os/name") == "windows" {
        return;
    }
    let of_pod = pod.at("/spec/securityContext/appArmorProfile").cloned();
    for key in ["initContainers", "containers"] {
        let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(key));
        for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
            let named = named.get(&format!("{APP_ARMOR}{}", text(container, "name")));
            let profile = named
                .and_then(|named| profile_of(named))
                .filter(|own| Some(own) != of_pod.as_ref());
            let (Some(profile), Some(members)) = (profile, container.as_object_mut()) else {
                continue;
            };
            let context = members.entry("securityContext").or_insert_with(|| json!({}));
            if let Some(context) = context.as_object_mut() {
                context.entry("appArmorProfile").or_insert(profile);
            }
        }
    }
}

fn app_armor(key: &str, profile: &str, spec: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(name) = key.strip_prefix(APP_ARMOR) else {
        return;
    };
    let at = path.key(key);
    let mut containers = each_container(spec, path);
    if !containers.any(|(_, container)| text(container, "name") == name) {
        errors.push(Error::invalid(&at, name, "container not found"));
    }
    let known = ["", "runtime/default", "unconfined"];
    if !known.contains(&profile) && !profile.starts_with("localhost/") {
        let why = format!(
            "invalid AppArmor profile name: {}",
            gardener_apimachinery::field::go_quote(profile)
        );
        errors.push(Error::invalid(&at, profile, why));
    }
}

/// Checks the annotations of a pod or template; the path is theirs.
pub(in crate::kubernetes) fn validate(object: &Value, path: &Path, errors: &mut ErrorList) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    if let Some(mirror) = annotation(object, MIRROR)
        && text(spec, "nodeName").is_empty()
    {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(Error::invalid(&path.key(MIRROR), mirror, why));
    }
    if let Some(told) = annotation(object, TOLERATIONS).filter(|told| !told.is_empty()) {
        match json_text::elements(told, "[]core.Toleration") {
            Ok(tolerations) => {
                let spec = json!({"tolerations": tolerations});
                scheduling::validate_tolerations(&spec, &path.child(TOLERATIONS), errors);
            }
            Err(why) => errors.push(Error::invalid(path, TOLERATIONS, why)),
        }
    }
    if let Some(cost) = annotation(object, DELETION_COST).filter(|cost| !is_cost(cost)) {
        let why = "must be a 32bit integer";
        errors.push(Error::invalid(&path.key(DELETION_COST), cost, why));
    }
    if let Some(profile) = annotation(object, SECCOMP_OF_POD) {
        seccomp(profile, &path.child(SECCOMP_OF_POD), errors);
    }
    for (key, profile) in annotations(object).filter(|(key, _)| key.starts_with(SECCOMP)) {
        seccomp(profile, &path.child(key), errors);
    }
    for (key, profile) in annotations(object) {
        app_armor(key, profile, spec, path, errors);
    }
}

/// Checks what changes of a pod's annotations, and once more what they are.
pub(super) fn validate_changes(pod: &Value, old: &Value, errors: &mut ErrorList) {
    let path = Path::new("metadata").child("annotations");
    let fixed = |key: &str| match key {
        MIRROR => Some("mirror pod annotation"),
        key if key.starts_with(APP_ARMOR) => Some("AppArmor annotations"),
        _ => None,
    };
    for (key, before) in annotations(old) {
        if let Some(what) = fixed(key).filter(|_| annotation(pod, key) != Some(before)) {
            let why = format!("may not remove or update {what}");
            errors.push(Error::forbidden(&path.key(key), why));
        }
    }
    for (key, _) in annotations(pod) {
        if let Some(what) = fixed(key).filter(|_| annotation(old, key).is_none()) {
            errors.push(Error::forbidden(&path.key(key), format!("may not add {what}")));
        }
    }
    validate(pod, &path, errors);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(annotations: Value) -> Value {
        json!({"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "c"}]}})
    }

    #[test]
    fn what_annotations_may_tell() {
        for (annotations, expected) in [
            (
                json!({DELETION_COST: "-5", SECCOMP_OF_POD: "localhost/a", TOLERATIONS: "null"}),
                vec![],
            ),
            (json!({format!("{APP_ARMOR}c"): "localhost/x"}), vec![]),
            (
                json!({DELETION_COST: "+5"}),
                vec![
                    "annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: \"+5\": must be a 32bit integer",
                ],
            ),
            (
                json!({DELETION_COST: "3000000000"}),
                vec![
                    "annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: \"3000000000\": must be a 32bit integer",
                ],
            ),
            (
                json!({MIRROR: "x"}),
                vec![
                    "annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": must set spec.nodeName if mirror pod annotation is set",
                ],
            ),
            (
                json!({TOLERATIONS: "x"}),
                vec![
                    "annotations: Invalid value: \"scheduler.alpha.kubernetes.io/tolerations\": invalid character 'x' looking for beginning of value",
                ],
            ),
            (
                json!({SECCOMP_OF_POD: "x"}),
                vec![
                    "annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: \"x\": must be a valid seccomp profile",
                ],
            ),
            (
                json!({format!("{APP_ARMOR}d"): "x"}),
                vec![
                    "annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: \"d\": container not found",
                    "annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: \"x\": invalid AppArmor profile name: \"x\"",
                ],
            ),
        ] {
            let mut errors = Vec::new();
            validate(&pod(annotations.clone()), &Path::new("annotations"), &mut errors);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{annotations}");
        }
    }

    #[test]
    fn what_of_them_may_change() {
        let key = format!("{APP_ARMOR}c");
        let mut errors = Vec::new();
        let old = pod(json!({key.as_str(): "localhost/x", "free": "1"}));
        validate_changes(
            &pod(json!({key.as_str(): "localhost/y", "free": "2"})),
            &old,
            &mut errors,
        );
        assert_eq!(errors.len(), 1);
        validate_changes(&old, &pod(json!({})), &mut errors);
        let found: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
        assert_eq!(
            found,
            [
                "may not remove or update AppArmor annotations",
                "may not add AppArmor annotations"
            ]
        );
    }
}
