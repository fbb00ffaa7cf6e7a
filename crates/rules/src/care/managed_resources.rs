//! Whether ManagedResources are as a condition wants them [ST-62].

use gardener_apimachinery::duration::Duration;
use gardener_apis::core::v1beta1::Condition;
use gardener_apis::resources::v1alpha1::ManagedResource;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::Finding;

/// The label by which a ManagedResource belongs to another condition than by its class.
pub const CONDITION_TYPE: &str = "care.gardener.cloud/condition-type";

/// Whether a ManagedResource is as a condition wants it. One may roll out for less than `patience` before that counts; without one it counts at once.
///
/// # Errors
/// What is wrong, in the words of its cause.
pub fn check(resource: &ManagedResource, patience: Option<SignedDuration>, now: Timestamp) -> Result<(), Finding> {
    let part = |one: &Option<String>| one.clone().unwrap_or_default();
    let (namespace, name) = (part(&resource.metadata.namespace), part(&resource.metadata.name));
    let conditions = &resource.status.conditions;
    let find = |kind: &str| conditions.iter().find(|one| one.r#type == kind);
    let (observed, generation) = (
        resource.status.observed_generation.unwrap_or_default(),
        resource.metadata.generation.unwrap_or_default(),
    );
    if observed != generation {
        if let Some(applied) = find("ResourcesApplied")
            && applied.status == "False"
            && applied.reason == "ApplyFailed"
        {
            return Err(Finding::new(&applied.reason, &applied.message));
        }
        let text =
            format!("observed generation of managed resource '{namespace}/{name}' outdated ({observed}/{generation})");
        return Err(Finding::new("OutdatedStatus", text));
    }
    let mut missing = Vec::new();
    for kind in ["ResourcesApplied", "ResourcesHealthy"] {
        match find(kind) {
            None => missing.push(kind),
            Some(one) if matches!(one.status.as_str(), "False" | "Unknown") => {
                return Err(Finding::new(&one.reason, &one.message));
            }
            Some(_) => {}
        }
    }
    match find("ResourcesProgressing") {
        None => missing.push("ResourcesProgressing"),
        Some(one) if matches!(one.status.as_str(), "True" | "Unknown") => rolls_out(&name, one, patience, now)?,
        Some(_) => {}
    }
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!(
        "ManagedResource {name} is missing the following condition(s), [{}]",
        missing.join(" ")
    );
    Err(Finding::new("MissingManagedResourceCondition", text))
}

fn rolls_out(
    name: &str,
    progressing: &Condition,
    patience: Option<SignedDuration>,
    now: Timestamp,
) -> Result<(), Finding> {
    let Some(patience) = patience else {
        return Err(Finding::new(&progressing.reason, &progressing.message));
    };
    let since = progressing.last_transition_time.as_ref();
    if since.is_some_and(|since| now.duration_since(since.0) < patience) {
        return Ok(());
    }
    let patience = Duration::from_nanos(i64::try_from(patience.as_nanos()).unwrap_or(i64::MAX));
    let text = format!("ManagedResource {name} is progressing for more than {patience}");
    Err(Finding::new("ProgressingRolloutStuck", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn st_62_worked_cases() {
        let now: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
        let of = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": "x", "lastTransitionTime": "2026-03-01T09:59:59Z"});
        let applied = |status: &str, reason: &str| of("ResourcesApplied", status, reason);
        let healthy = |status: &str, reason: &str| of("ResourcesHealthy", status, reason);
        let progressing = |status: &str, since: &str| {
            let mut own = of("ResourcesProgressing", status, "DeploymentProgressing");
            own["lastTransitionTime"] = json!(format!("2026-03-01T{since}Z"));
            own
        };
        let well = || [applied("True", "a"), healthy("True", "b")];
        let with = |last: Value| json!([applied("True", "a"), healthy("True", "b"), last]);
        let hour = Some(SignedDuration::from_hours(1));
        let at_rest = || progressing("False", "09:00:00");
        type Case = (
            &'static str,
            Value,
            i64,
            Option<SignedDuration>,
            Option<(&'static str, &'static str)>,
        );
        let table: [Case; 13] = [
            (
                "W-M1",
                json!([]),
                1,
                None,
                Some((
                    "MissingManagedResourceCondition",
                    "ManagedResource mr is missing the following condition(s), [ResourcesApplied ResourcesHealthy ResourcesProgressing]",
                )),
            ),
            ("W-M2", with(at_rest()), 1, None, None),
            (
                "W-M3",
                json!([applied("False", "ApplyFailed"), healthy("False", "b"), at_rest()]),
                1,
                None,
                Some(("ApplyFailed", "x")),
            ),
            (
                "W-M4",
                json!([applied("True", "a")]),
                2,
                None,
                Some((
                    "OutdatedStatus",
                    "observed generation of managed resource 'ns/mr' outdated (1/2)",
                )),
            ),
            (
                "W-M5",
                json!([applied("False", "ApplyFailed")]),
                2,
                None,
                Some(("ApplyFailed", "x")),
            ),
            ("W-M6", with(progressing("True", "09:30:00")), 1, hour, None),
            (
                "W-M7",
                with(progressing("True", "08:59:00")),
                1,
                hour,
                Some((
                    "ProgressingRolloutStuck",
                    "ManagedResource mr is progressing for more than 1h0m0s",
                )),
            ),
            (
                "ST-62.2, exactly at the threshold",
                with(progressing("Unknown", "09:00:00")),
                1,
                hour,
                Some((
                    "ProgressingRolloutStuck",
                    "ManagedResource mr is progressing for more than 1h0m0s",
                )),
            ),
            (
                "W-M8",
                with(progressing("True", "09:59:59")),
                1,
                None,
                Some(("DeploymentProgressing", "x")),
            ),
            (
                "W-M9",
                json!([applied("True", "a"), healthy("Unknown", "ChecksPending"), at_rest()]),
                1,
                None,
                Some(("ChecksPending", "x")),
            ),
            (
                "W-M10",
                json!([
                    applied("Progressing", "ApplyProgressing"),
                    healthy("True", "b"),
                    at_rest()
                ]),
                1,
                None,
                None,
            ),
            (
                "ST-62.3",
                json!(well()),
                1,
                None,
                Some((
                    "MissingManagedResourceCondition",
                    "ManagedResource mr is missing the following condition(s), [ResourcesProgressing]",
                )),
            ),
            (
                "ST-62.2 before ST-62.3",
                json!([progressing("True", "09:59:59")]),
                1,
                None,
                Some(("DeploymentProgressing", "x")),
            ),
        ];
        for (id, conditions, generation, patience, expected) in table {
            let resource: ManagedResource = serde_json::from_value(json!({
                "metadata": {"namespace": "ns", "name": "mr", "generation": generation},
                "status": {"observedGeneration": 1, "conditions": conditions},
            }))
            .unwrap();
            let expected = expected.map(|(reason, message)| Finding::new(reason, message));
            assert_eq!(check(&resource, patience, now).err(), expected, "{id}");
        }
    }
}
