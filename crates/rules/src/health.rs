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
                Err(format!("{kind} does not have minimum availability"))
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
        ("monitoring.coreos.com", "Prometheus" | "Alertmanager") => monitoring(object),
        ("cert.gardener.cloud", "Certificate") => {
            expect(object, "Ready", "True", false)?;
            in_state_ready("certificate", object)
        }
        ("cert.gardener.cloud", "Issuer") => in_state_ready("issuer", object),
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

/// A Prometheus or an Alertmanager.
fn monitoring(object: &Value) -> Result<(), String> {
    if let Some(available) = condition(object, "Available") {
        let (observed, generation) = (
            number(available, "/observedGeneration").unwrap_or(0),
            number(object, "/metadata/generation").unwrap_or(0),
        );
        if observed < generation {
            return Err(format!("observed generation outdated ({observed}/{generation})"));
        }
    }
    expect(object, "Available", "True", true)?;
    let (available, wanted) = (
        number(object, "/status/availableReplicas").unwrap_or(0),
        number(object, "/spec/replicas").unwrap_or(1),
    );
    if available < wanted {
        return Err(format!("not enough available replicas ({available}/{wanted})"));
    }
    Ok(())
}

fn in_state_ready(what: &str, object: &Value) -> Result<(), String> {
    match text(object, "/status/state") {
        "Ready" => Ok(()),
        state => Err(format!("{what} state is {state:?} (\"Ready\" expected)")),
    }
}

/// A count in the status of a DaemonSet.
fn counted(object: &Value, key: &str) -> i64 {
    number(object, &format!("/status/{key}")).unwrap_or(0)
}

/// How many pods of a DaemonSet may be unavailable while it rolls out; none if it does not [ST-61].
fn rolling_allowance(object: &Value) -> Option<i64> {
    let desired = counted(object, "desiredNumberScheduled");
    (counted(object, "updatedNumberScheduled") < desired).then(|| match text(object, "/spec/updateStrategy/type") {
        "RollingUpdate" => amount(object.at("/spec/updateStrategy/rollingUpdate/maxUnavailable"), desired),
        _ => 0,
    })
}

/// Whether enough pods of a DaemonSet are available if `excused` of those that are not do not count [ST-60].
pub fn is_available_without(daemon_set: &Value, excused: i64) -> bool {
    counted(daemon_set, "numberUnavailable") - excused <= rolling_allowance(daemon_set).unwrap_or(0)
}

fn daemon_set(object: &Value) -> Result<(), String> {
    observed(object)?;
    let desired = counted(object, "desiredNumberScheduled");
    let current = counted(object, "currentNumberScheduled");
    if current < desired {
        return Err(format!("not enough scheduled pods ({current}/{desired})"));
    }
    let misscheduled = counted(object, "numberMisscheduled");
    if misscheduled > 0 {
        return Err(format!("misscheduled pods found ({misscheduled})"));
    }
    let unavailable = counted(object, "numberUnavailable");
    match rolling_allowance(object) {
        Some(allowed) if unavailable > allowed => Err(format!(
            "too many unavailable pods found ({unavailable}/{current}, only max. {allowed} unavailable pods allowed)"
        )),
        None if unavailable > 0 => Err(format!("too many unavailable pods found ({unavailable}/{current})")),
        _ => Ok(()),
    }
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
    fn st_61_daemon_sets() {
        let set = |changes: Value| {
            let mut object = json!({
                "metadata": {"generation": 1},
                "spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}}},
                "status": {
                    "observedGeneration": 1, "desiredNumberScheduled": 7, "currentNumberScheduled": 7, "updatedNumberScheduled": 7,
                },
            });
            for (key, value) in changes.as_object().unwrap() {
                match key.as_str() {
                    "type" => object["spec"]["updateStrategy"]["type"] = value.clone(),
                    _ => object["status"][key] = value.clone(),
                }
            }
            object
        };
        for (changes, expected) in [
            (json!({}), ""),
            (json!({"observedGeneration": 0}), "observed generation outdated (0/1)"),
            (json!({"currentNumberScheduled": 6}), "not enough scheduled pods (6/7)"),
            (json!({"numberMisscheduled": 2}), "misscheduled pods found (2)"),
            (json!({"numberUnavailable": 1}), "too many unavailable pods found (1/7)"),
            // a quarter of seven is one
            (json!({"numberUnavailable": 1, "updatedNumberScheduled": 5}), ""),
            (
                json!({"numberUnavailable": 2, "updatedNumberScheduled": 5}),
                "too many unavailable pods found (2/7, only max. 1 unavailable pods allowed)",
            ),
            (
                json!({"numberUnavailable": 1, "updatedNumberScheduled": 5, "type": "OnDelete"}),
                "too many unavailable pods found (1/7, only max. 0 unavailable pods allowed)",
            ),
        ] {
            let found = check("apps", "DaemonSet", &set(changes.clone()));
            assert_eq!(found.err().unwrap_or_default(), expected, "{changes}");
        }
    }

    #[test]
    fn st_61_objects_of_operators() {
        let available = |observed: i64, status: &str| json!([{"type": "Available", "status": status, "observedGeneration": observed, "reason": "r", "message": "m"}]);
        let prometheus = |conditions: Value, replicas: i64| json!({"metadata": {"generation": 2}, "status": {"conditions": conditions, "availableReplicas": replicas}});
        let certificate = |ready: &str, state: &str| json!({"status": {"state": state, "conditions": [{"type": "Ready", "status": ready, "reason": "r", "message": "m"}]}});
        let (monitoring, cert) = ("monitoring.coreos.com", "cert.gardener.cloud");
        for (group, kind, object, expected) in [
            (monitoring, "Prometheus", prometheus(available(2, "True"), 1), ""),
            (
                monitoring,
                "Alertmanager",
                prometheus(json!([]), 1),
                "condition \"Available\" is missing",
            ),
            (
                monitoring,
                "Prometheus",
                prometheus(available(1, "False"), 1),
                "observed generation outdated (1/2)",
            ),
            (
                monitoring,
                "Prometheus",
                prometheus(available(2, "False"), 1),
                "condition \"Available\" has invalid status False (expected True) due to r: m",
            ),
            (
                monitoring,
                "Prometheus",
                prometheus(available(2, "True"), 0),
                "not enough available replicas (0/1)",
            ),
            (cert, "Certificate", certificate("True", "Ready"), ""),
            (
                cert,
                "Certificate",
                certificate("False", "Ready"),
                "condition \"Ready\" has invalid status False (expected True) due to r: m",
            ),
            (
                cert,
                "Certificate",
                json!({"status": {"state": "Pending"}}),
                "certificate state is \"Pending\" (\"Ready\" expected)",
            ),
            (cert, "Issuer", json!({}), "issuer state is \"\" (\"Ready\" expected)"),
            (
                "apps",
                "ReplicaSet",
                json!({"status": {"readyReplicas": 0}}),
                "ReplicaSet does not have minimum availability",
            ),
        ] {
            let found = check(group, kind, &object);
            assert_eq!(found.err().unwrap_or_default(), expected, "{kind} {object}");
        }
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
