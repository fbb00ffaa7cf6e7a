//! When an object counts as healthy, and when as still rolling out `[EXT-172]` `[EXT-173]` `[GRM-27]` `[GRM-28]`.

use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.at(pointer).and_then(Value::as_i64)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.at(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object
        .at("/status/conditions")?
        .as_array()?
        .iter()
        .find(|condition| text(condition, "/type") == kind)
}

fn observed(object: &Value) -> Result<(), String> {
    let (observed, generation) = (
        number(object, "/status/observedGeneration").unwrap_or(0),
        number(object, "/metadata/generation").unwrap_or(0),
    );
    if observed >= generation {
        return Ok(());
    }
    Err(format!("observed generation outdated ({observed}/{generation})"))
}

/// The condition must be there with this status; an absent one is an error only when `required`.
fn expect(object: &Value, kind: &str, status: &str, required: bool) -> Result<(), String> {
    match condition(object, kind) {
        None if required => Err(format!("condition {kind:?} is missing")),
        None => Ok(()),
        Some(condition) if text(condition, "/status") == status => Ok(()),
        Some(condition) => Err(format!(
            "condition {kind:?} has invalid status {} (expected {status}) due to {}: {}",
            text(condition, "/status"),
            text(condition, "/reason"),
            text(condition, "/message")
        )),
    }
}

/// A count that may be a percentage of `total`, percentages rounded down.
fn amount(value: Option<&Value>, total: i64) -> i64 {
    match value {
        Some(Value::Number(number)) => number.as_i64().unwrap_or(0),
        Some(Value::String(text)) => text
            .strip_suffix('%')
            .and_then(|percent| percent.parse::<i64>().ok())
            .map_or(0, |percent| total * percent / 100),
        _ => 0,
    }
}

/// Whether an object is healthy; otherwise why not. Kinds without a rule are healthy when they exist.
///
/// # Errors
/// The reason in words.
pub fn check(group: &str, kind: &str, object: &Value) -> Result<(), String> {
    match (group, kind) {
        ("apps", "Deployment") => {
            observed(object)?;
            expect(object, "Available", "True", true)?;
            expect(object, "Progressing", "True", false)?;
            expect(object, "ReplicaFailure", "False", false)
        }
        ("apps", "StatefulSet") => {
            observed(object)?;
            let (ready, wanted) = (
                number(object, "/status/readyReplicas").unwrap_or(0),
                number(object, "/spec/replicas").unwrap_or(1),
            );
            if ready < wanted {
                Err(format!("not enough ready replicas ({ready}/{wanted})"))
            } else {
                Ok(())
            }
        }
        ("apps", "DaemonSet") => daemon_set(object),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            observed(object)?;
            let (ready, wanted) = (
                number(object, "/status/readyReplicas").unwrap_or(0),
                number(object, "/spec/replicas").unwrap_or(1),
            );
            if ready < wanted {
                Err(format!("not enough ready replicas ({ready}/{wanted})"))
            } else {
                Ok(())
            }
        }
        ("", "Pod") => match text(object, "/status/phase") {
            "Running" | "Succeeded" => Ok(()),
            phase => Err(format!(
                "pod is in invalid phase {phase:?} (expected one of [\"Running\" \"Succeeded\"])"
            )),
        },
        ("batch", "Job") => expect(object, "Failed", "False", false),
        ("", "Service") => {
            let waiting = text(object, "/spec/type") == "LoadBalancer"
                && object
                    .at("/status/loadBalancer/ingress")
                    .and_then(Value::as_array)
                    .is_none_or(Vec::is_empty);
            if waiting {
                Err("service is missing ingress status".into())
            } else {
                Ok(())
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            expect(object, "NamesAccepted", "True", true)?;
            expect(object, "Established", "True", true)?;
            expect(object, "Terminating", "False", false)
        }
        ("autoscaling.k8s.io", "VerticalPodAutoscaler") => expect(object, "ConfigUnsupported", "False", false),
        ("druid.gardener.cloud", "Etcd") => {
            observed(object)?;
            if object.at("/status/ready").and_then(Value::as_bool) == Some(true) {
                Ok(())
            } else {
                Err(format!("etcd {:?} is not ready yet", text(object, "/metadata/name")))
            }
        }
        _ => Ok(()),
    }
}

fn daemon_set(object: &Value) -> Result<(), String> {
    observed(object)?;
    let status = |key: &str| number(object, &format!("/status/{key}")).unwrap_or(0);
    let desired = status("desiredNumberScheduled");
    let current = status("currentNumberScheduled");
    if current < desired {
        return Err(format!("not enough current scheduled pods ({current}/{desired})"));
    }
    let misscheduled = status("numberMisscheduled");
    if misscheduled > 0 {
        return Err(format!("misscheduled pods found ({misscheduled})"));
    }
    let rolling = status("updatedNumberScheduled") < desired;
    let allowed = if rolling && text(object, "/spec/updateStrategy/type") != "OnDelete" {
        amount(object.at("/spec/updateStrategy/rollingUpdate/maxUnavailable"), desired)
    } else {
        0
    };
    let unavailable = status("numberUnavailable");
    if unavailable > allowed {
        return Err(format!(
            "too many unavailable pods found ({unavailable}/{desired}, only max. {allowed} unavailable pods allowed)"
        ));
    }
    Ok(())
}

/// Why an object is still rolling out; `None` when it is not.
pub fn progressing(group: &str, kind: &str, object: &Value) -> Option<String> {
    if !matches!((group, kind), ("apps", "Deployment" | "StatefulSet" | "DaemonSet")) {
        return None;
    }
    if let Err(why) = observed(object) {
        return Some(why);
    }
    let status = |key: &str| number(object, &format!("/status/{key}")).unwrap_or(0);
    match kind {
        "Deployment" => match condition(object, "Progressing") {
            None => Some("condition \"Progressing\" is missing".into()),
            Some(condition)
                if text(condition, "/status") != "True" || text(condition, "/reason") != "NewReplicaSetAvailable" =>
            {
                Some(text(condition, "/message").to_owned())
            }
            Some(_) if status("replicas") != number(object, "/spec/replicas").unwrap_or(1) => {
                Some("there are still non-terminated old pods".into())
            }
            Some(_) => None,
        },
        "StatefulSet" => {
            let wanted = number(object, "/spec/replicas").unwrap_or(1);
            let updated = status("updatedReplicas");
            (updated < wanted).then(|| format!("{updated} of {wanted} replica(s) have been updated"))
        }
        _ => {
            let wanted = status("desiredNumberScheduled");
            let updated = status("updatedNumberScheduled");
            (updated < wanted).then(|| format!("{updated} of {wanted} replica(s) have been updated"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn w_ext_20_services_and_daemon_sets() {
        let service = json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {}}});
        assert_eq!(
            check("", "Service", &service),
            Err("service is missing ingress status".into())
        );
        let set = |unavailable: i64| {
            json!({
                "spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}}},
                "status": {"desiredNumberScheduled": 10, "currentNumberScheduled": 10, "updatedNumberScheduled": 5, "numberUnavailable": unavailable}
            })
        };
        assert!(check("apps", "DaemonSet", &set(2)).is_ok());
        assert!(check("apps", "DaemonSet", &set(3)).is_err());
    }

    #[test]
    fn deployments_need_their_generation_observed_and_availability() {
        let deployment = |observed: i64, available: &str| {
            json!({"metadata": {"generation": 2}, "spec": {"replicas": 1}, "status": {"observedGeneration": observed, "replicas": 1, "conditions": [
                {"type": "Available", "status": available}, {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]}})
        };
        assert!(check("apps", "Deployment", &deployment(2, "True")).is_ok());
        assert_eq!(
            check("apps", "Deployment", &deployment(1, "True")),
            Err("observed generation outdated (1/2)".into())
        );
        assert!(check("apps", "Deployment", &deployment(2, "False")).is_err());
        assert!(check("apps", "Deployment", &json!({})).is_err());
        assert_eq!(progressing("apps", "Deployment", &deployment(2, "True")), None);
        assert!(progressing("apps", "Deployment", &deployment(1, "True")).is_some());
    }

    #[test]
    fn other_kinds_are_healthy_when_they_exist() {
        assert!(check("", "ConfigMap", &json!({})).is_ok());
        assert_eq!(progressing("", "ConfigMap", &json!({})), None);
    }
}
