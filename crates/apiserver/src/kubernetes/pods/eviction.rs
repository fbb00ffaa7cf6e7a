//! `pods/eviction`: deletes a pod unless a disruption budget is against it.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::selector::LabelSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector as SelectorObject, StatusCause};
use serde_json::{Value, json};

use super::check_name;
use crate::definition::{Context, Effect, Removal, Subresource};
use crate::kubernetes::checks::{list, number, spec_of, text};
use crate::meta;

const GROUP: &str = "policy";
const BUDGETS: &str = "poddisruptionbudgets";
const ALLOWED: &str = "DisruptionAllowed";
/// Most evicted pods that a budget takes note of before its controller has seen them go.
const MAX_NOTED: usize = 2000;
/// Seconds until it may be asked again while the controller has not seen a budget's change.
const UNTIL_SEEN: i32 = 10;
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// The subresource.
pub(in crate::kubernetes) struct Eviction;

/// What a budget says of the eviction of a pod.
enum Verdict {
    /// The budget does not guard it as it is now.
    Unguarded,
    /// It may go when the budget takes note of it: the budget as it is to be.
    Noted(Value),
}

fn status_of(object: &Value) -> &Value {
    object.get("status").unwrap_or(&Value::Null)
}

fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    let mut conditions = list(status_of(object), "conditions").iter();
    conditions.find(|condition| text(condition, "type") == kind)
}

fn too_many(retry: i32, why: String) -> ApiError {
    let cause = StatusCause {
        reason: Some("DisruptionBudget".into()),
        message: Some(why),
        field: None,
    };
    let error = ApiError::new(429, "TooManyRequests", REFUSED);
    let error = if retry > 0 { error.with_retry(retry) } else { error };
    error.with_causes(vec![cause])
}

/// Why a budget that allows nothing does not.
fn why_not(budget: &Value) -> String {
    let name = meta::name(budget);
    let count = |key: &str| number(status_of(budget), key).unwrap_or(0);
    let told =
        condition(budget, ALLOWED).filter(|own| text(own, "status") == "False" && !text(own, "message").is_empty());
    let (reason, message) = told.map_or(("", ""), |own| (text(own, "reason"), text(own, "message")));
    let (healthy, desired) = (count("currentHealthy"), count("desiredHealthy"));
    let begin = format!("The disruption budget {name}");
    match reason {
        "SyncFailed" => format!("{begin} does not allow evicting pods currently because it failed sync: {message}"),
        _ if healthy <= desired => format!("{begin} needs {desired} healthy pods and has {healthy} currently"),
        "" if message.is_empty() => format!("{begin} does not allow evicting pods currently"),
        reason => format!("{begin} does not allow evicting pods currently ({reason}): {message}"),
    }
}

/// What a budget says of the eviction of a pod that it selects.
fn judge(budget: &Value, pod: &Value, now: &str) -> Result<Verdict, ApiError> {
    let status = status_of(budget);
    let count = |key: &str| number(status, key).unwrap_or(0);
    let is_ready = condition(pod, "Ready").is_some_and(|own| text(own, "status") == "True");
    if !is_ready {
        let (healthy, desired) = (count("currentHealthy"), count("desiredHealthy"));
        let always = text(spec_of(budget), "unhealthyPodEvictionPolicy") == "AlwaysAllow";
        if always || healthy >= desired && desired > 0 {
            return Ok(Verdict::Unguarded);
        }
    }
    let name = meta::name(budget);
    let generation = budget.at("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    if count("observedGeneration") < generation {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(UNTIL_SEEN, why));
    }
    let refuse = |why: &str| ApiError::forbidden(GROUP, "poddisruptionbudget", name, why);
    let allowed = count("disruptionsAllowed");
    if allowed < 0 {
        return Err(refuse("pdb disruptions allowed is negative"));
    }
    let noted = status.get("disruptedPods").and_then(Value::as_object);
    if noted.is_some_and(|noted| noted.len() > MAX_NOTED) {
        return Err(refuse(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if allowed == 0 {
        return Err(too_many(0, why_not(budget)));
    }
    let mut budget = budget.clone();
    let last = allowed == 1 && condition(&budget, ALLOWED).is_none_or(|own| text(own, "status") != "False");
    if let Some(status) = budget.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("disruptionsAllowed".to_owned(), json!(allowed - 1));
        let noted = status.entry("disruptedPods").or_insert_with(|| json!({}));
        if let Some(noted) = noted.as_object_mut() {
            noted.insert(meta::name(pod).to_owned(), now.into());
        }
    }
    if last {
        let seen = number(status_of(&budget), "observedGeneration").unwrap_or(0);
        meta::set_condition(
            &mut budget,
            &json!({"type": ALLOWED, "status": "False", "reason": "InsufficientPods", "message": "", "observedGeneration": seen, "lastTransitionTime": now}),
        );
    }
    Ok(Verdict::Noted(budget))
}

fn selects(budget: &Value, pod: &Value) -> bool {
    let selector = spec_of(budget).get("selector").cloned();
    let selector: Option<SelectorObject> = selector.and_then(|selector| serde_json::from_value(selector).ok());
    let labels = meta::string_map(pod.at("/metadata/labels"));
    selector.is_some_and(|selector| LabelSelector::from(&selector).matches(&labels))
}

#[async_trait]
impl Subresource for Eviction {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        (GROUP, "v1", "Eviction")
    }

    fn notes_author(&self) -> bool {
        true
    }

    fn receive(&self, namespace: &str, body: &mut Value) {
        meta::set(body, "namespace", Some(namespace.into()));
    }

    fn examine(&self, context: &Context<'_>, name: &str, body: &mut Value) -> Result<(), ApiError> {
        check_name(body, name, "Eviction")?;
        const LEFT_OUT: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
        if body.at("/deleteOptions").and_then(|own| own.get(LEFT_OUT)) == Some(&Value::Bool(true)) {
            let path = Path::new("deleteOptions").child(LEFT_OUT);
            let why = "can not be set for pod eviction, try after removing the option";
            let errors = [Error::invalid(&path, true, why)];
            return Err(ApiError::invalid(GROUP, "Eviction", name, &errors));
        }
        let asked = if context.dry_run { vec!["All"] } else { Vec::new() };
        let options = match context.dry_run {
            true => body
                .as_object_mut()
                .map(|body| body.entry("deleteOptions").or_insert_with(|| json!({}))),
            false => body.get_mut("deleteOptions"),
        };
        let Some(options) = options.filter(|options| options.is_object()) else {
            return Ok(());
        };
        let own: Vec<&str> = meta::elements(options, "/dryRun")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        match (own.is_empty(), asked.is_empty()) {
            (true, false) => options["dryRun"] = json!(asked),
            (false, false) if own != asked => {
                return Err(ApiError::unclassified(format!(
                    "Non-matching dry-run options in request and content: [{}] and [{}]",
                    asked.join(" "),
                    own.join(" ")
                )));
            }
            _ => {}
        }
        Ok(())
    }

    async fn call(&self, context: &Context<'_>, _: &str, pod: &Value, body: Value) -> Result<Effect, ApiError> {
        let now = meta::rfc3339(context.now);
        let remove = |guarded: bool, noted: Option<Value>| {
            let condition = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
                "lastProbeTime": null, "lastTransitionTime": now,
            });
            Effect::Delete(Box::new(Removal {
                noted: noted.map(|budget| (GROUP, BUDGETS, budget)),
                guarded,
                condition: Some(condition),
                options: body.get("deleteOptions").cloned().unwrap_or_else(|| json!({})),
                answer: json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
            }))
        };
        let phase = text(status_of(pod), "phase");
        if matches!(phase, "Succeeded" | "Failed") || meta::is_deleting(pod) {
            return Ok(remove(false, None));
        }
        if phase == "Pending" {
            return Ok(remove(true, None));
        }
        let all = context.lister.list(GROUP, BUDGETS, Some(meta::namespace(pod)));
        let budgets: Vec<_> = all.into_iter().filter(|budget| selects(budget, pod)).collect();
        match budgets.as_slice() {
            [] => Ok(remove(false, None)),
            [budget] => Ok(match judge(budget, pod, &now)? {
                Verdict::Unguarded => remove(true, None),
                Verdict::Noted(budget) => remove(false, Some(budget)),
            }),
            _ => Err(ApiError::unclassified(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn budget(status: Value) -> Value {
        json!({"metadata": {"name": "b", "generation": 2}, "spec": {}, "status": status})
    }

    fn pod(ready: &str) -> Value {
        json!({"metadata": {"name": "p"}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}})
    }

    #[test]
    fn a_budget_takes_note_of_what_it_allows() {
        let own =
            budget(json!({"observedGeneration": 2, "disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2}));
        let Ok(Verdict::Noted(noted)) = judge(&own, &pod("True"), NOW) else {
            panic!("it is allowed")
        };
        assert_eq!(noted["status"]["disruptionsAllowed"], json!(0));
        assert_eq!(noted["status"]["disruptedPods"], json!({"p": NOW}));
        assert_eq!(noted["status"]["conditions"][0]["status"], json!("False"));
        assert!(matches!(judge(&noted, &pod("True"), NOW), Err(error) if error.code() == 429));
    }

    #[test]
    fn what_is_not_healthy_is_not_guarded_while_enough_others_are() {
        for (status, policy, unguarded) in [
            (
                json!({"observedGeneration": 2, "currentHealthy": 2, "desiredHealthy": 2}),
                "",
                true,
            ),
            (
                json!({"observedGeneration": 2, "currentHealthy": 1, "desiredHealthy": 2}),
                "",
                false,
            ),
            (
                json!({"observedGeneration": 2, "currentHealthy": 1, "desiredHealthy": 2}),
                "AlwaysAllow",
                true,
            ),
            (
                json!({"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 2}),
                "IfHealthyBudget",
                true,
            ),
        ] {
            let mut own = budget(status);
            own["spec"]["unhealthyPodEvictionPolicy"] = policy.into();
            let verdict = judge(&own, &pod("False"), NOW);
            assert_eq!(matches!(verdict, Ok(Verdict::Unguarded)), unguarded, "{own}");
        }
    }

    #[test]
    fn why_nothing_is_allowed() {
        for (status, expected) in [
            (
                json!({"currentHealthy": 1, "desiredHealthy": 2}),
                "The disruption budget b needs 2 healthy pods and has 1 currently",
            ),
            (
                json!({"currentHealthy": 3, "desiredHealthy": 2}),
                "The disruption budget b does not allow evicting pods currently",
            ),
            (
                json!({"currentHealthy": 3, "desiredHealthy": 2, "conditions": [{"type": ALLOWED, "status": "False", "reason": "R", "message": "m"}]}),
                "The disruption budget b does not allow evicting pods currently (R): m",
            ),
            (
                json!({"conditions": [{"type": ALLOWED, "status": "False", "reason": "SyncFailed", "message": "m"}]}),
                "The disruption budget b does not allow evicting pods currently because it failed sync: m",
            ),
        ] {
            assert_eq!(why_not(&budget(status)), expected);
        }
    }
}
