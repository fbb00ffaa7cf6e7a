//! Fields of pods that the server does not keep, because the features that they belong to are off. What an object had before it keeps.

use gardener_apimachinery::field::{Error, ErrorList, ErrorType};
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use crate::kubernetes::checks::list;

const LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
/// Sources of projected volumes that are not kept.
const PROJECTED: [&str; 2] = ["clusterTrustBundle", "podCertificate"];

/// Takes away what of a spec is not kept. `old` is the spec that it changes.
pub(in crate::kubernetes) fn strip(spec: Option<&mut Value>, old: Option<&Value>) {
    let Some(spec) = spec else { return };
    let had = |has: fn(&Value) -> bool| old.is_some_and(has);
    if !had(has_group)
        && let Some(members) = spec.as_object_mut()
    {
        members.remove("schedulingGroup");
    }
    if !had(has_stop_signal) {
        strip_stop_signals(spec);
    }
    for key in PROJECTED {
        if !old.is_some_and(|old| has_projected(old, key)) {
            strip_projected(spec, key);
        }
    }
}

/// Takes away what is refused of a spec because a feature is off, where the spec before uses that. `old` is the spec that it changes.
pub(in crate::kubernetes) fn forgive(errors: &mut ErrorList, old: Option<&Value>) {
    const POLICY: &str = "securityContext.seLinuxChangePolicy";
    if old.is_some_and(|old| old.at("/securityContext/seLinuxChangePolicy").is_some()) {
        let is_of_feature = |error: &Error| error.path.as_str().ends_with(POLICY) && error.value == "MountOption";
        errors.retain(|error| error.kind != ErrorType::NotSupported || !is_of_feature(error));
    }
}

fn has_group(spec: &Value) -> bool {
    spec.get("schedulingGroup").is_some()
}

fn has_stop_signal(spec: &Value) -> bool {
    let mut containers = LISTS.iter().flat_map(|key| list(spec, key));
    containers.any(|container| container.at("/lifecycle/stopSignal").is_some())
}

fn strip_stop_signals(spec: &mut Value) {
    for key in LISTS {
        let containers = spec.get_mut(key).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) else {
                continue;
            };
            if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
                container.remove("lifecycle");
            }
        }
    }
}

fn has_projected(spec: &Value, key: &str) -> bool {
    let volumes = list(spec, "volumes")
        .iter()
        .filter_map(|volume| volume.get("projected"));
    let mut sources = volumes.flat_map(|volume| list(volume, "sources"));
    sources.any(|source| source.get(key).is_some())
}

fn strip_projected(spec: &mut Value, key: &str) {
    let volumes = spec.get_mut("volumes").and_then(Value::as_array_mut);
    for volume in volumes.into_iter().flatten() {
        let sources = volume.at_mut("/projected/sources").and_then(Value::as_array_mut);
        for source in sources.into_iter().flatten().filter_map(Value::as_object_mut) {
            source.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn full() -> Value {
        json!({
            "schedulingGroup": {"podGroupName": "g"},
            "containers": [{"name": "a", "lifecycle": {"stopSignal": "SIGTERM"}}, {"name": "b", "lifecycle": {"stopSignal": "SIGTERM", "preStop": {}}}],
            "volumes": [{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"path": "x"}}, {"secret": {"name": "s"}}]}}],
        })
    }

    #[test]
    fn what_is_off_is_not_kept() {
        let mut spec = full();
        strip(Some(&mut spec), None);
        assert_eq!(
            spec,
            json!({
                "containers": [{"name": "a"}, {"name": "b", "lifecycle": {"preStop": {}}}],
                "volumes": [{"name": "v", "projected": {"sources": [{}, {"secret": {"name": "s"}}]}}],
            })
        );
    }

    #[test]
    fn who_has_a_policy_may_have_another_one() {
        let path = gardener_apimachinery::field::Path::new("spec.securityContext.seLinuxChangePolicy");
        let forgiven = |policy: &str, old: Value| {
            let mut errors = vec![Error::not_supported(&path, policy, &["Recursive"])];
            forgive(&mut errors, Some(&old));
            errors.is_empty()
        };
        let old = json!({"securityContext": {"seLinuxChangePolicy": "Recursive"}});
        assert!(forgiven("MountOption", old.clone()));
        assert!(!forgiven("Other", old));
        assert!(!forgiven("MountOption", json!({"securityContext": {}})));
    }

    #[test]
    fn what_was_there_stays() {
        let mut spec = full();
        strip(Some(&mut spec), Some(&full()));
        assert_eq!(spec, full());
    }
}
