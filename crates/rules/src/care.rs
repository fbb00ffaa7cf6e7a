//! How the findings of care become conditions [ST-30], [ST-57], [ST-61], [ST-62]. Not what is looked at.

use std::time::Duration;

use gardener_apis::core::v1beta1::{Condition, LastOperation};
use gardener_apis::resources::v1alpha1::ManagedResource;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// What is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// The condition's reason.
    pub reason: String,
    /// The condition's message.
    pub message: String,
    /// Gardener's error codes.
    pub codes: Vec<String>,
}

impl Finding {
    /// A finding without codes.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
            codes: Vec::new(),
        }
    }
}

/// The status of a condition whose check failed: Progressing for a time, then False [ST-30].
pub fn status_of_failure(
    old: &Condition,
    reason: &str,
    threshold: Option<SignedDuration>,
    last: Option<&LastOperation>,
    now: Timestamp,
) -> &'static str {
    const FALSE: &str = "False";
    const PROGRESSING: &str = "Progressing";
    let Some(threshold) = threshold else { return FALSE };
    let within = |time: Option<Timestamp>| time.is_some_and(|time| now.duration_since(time) <= threshold);
    let updated = last.and_then(|last| last.last_update_time.as_ref()).map(|time| time.0);
    let recent = last.is_some_and(|last| last.state == "Succeeded") && within(updated);
    let transition = old.last_transition_time.as_ref().map(|time| time.0);
    let progressing = match old.status.as_str() {
        "True" => true,
        PROGRESSING => recent || within(transition),
        FALSE => recent || old.reason != reason,
        _ => false,
    };
    if progressing { PROGRESSING } else { FALSE }
}

/// How long until a shoot is looked at again: every `period`, but sooner as long as what was just rolled out is coming up, so that
/// nobody waits a minute for good news. What stays bad is looked at ever more rarely, up to the period.
pub fn next_look(is_fine: bool, last: Option<&LastOperation>, now: Timestamp, period: Duration) -> Duration {
    const SOONEST: Duration = Duration::from_millis(250);
    let ended = last
        .filter(|last| last.state == "Succeeded")
        .and_then(|last| last.last_update_time.as_ref());
    match ended {
        Some(ended) if !is_fine => {
            let since = Duration::try_from(now.duration_since(ended.0)).unwrap_or_default();
            (since / 4).max(SOONEST).min(period)
        }
        _ => period,
    }
}

/// Whether a ManagedResource is as a condition wants it [ST-62].
///
/// # Errors
/// What is wrong.
pub fn managed_resource(resource: &ManagedResource) -> Result<(), Finding> {
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
    for (kind, bad) in [
        ("ResourcesApplied", ["False", "Unknown"]),
        ("ResourcesHealthy", ["False", "Unknown"]),
        ("ResourcesProgressing", ["True", "Unknown"]),
    ] {
        match find(kind) {
            None => missing.push(kind),
            Some(one) if bad.contains(&one.status.as_str()) => return Err(Finding::new(&one.reason, &one.message)),
            Some(_) => {}
        }
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

/// Whether a node is healthy [ST-61].
///
/// # Errors
/// What is wrong.
pub fn node(node: &Node) -> Result<(), String> {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.clone())
        .unwrap_or_default();
    for (kind, expected, required) in [
        ("Ready", "True", true),
        ("DiskPressure", "False", false),
        ("MemoryPressure", "False", false),
        ("NetworkUnavailable", "False", false),
        ("PIDPressure", "False", false),
    ] {
        match conditions.iter().find(|one| one.type_ == kind) {
            None if required => return Err(format!("condition {kind:?} is missing")),
            Some(one) if one.status != expected => {
                return Err(format!(
                    "condition {kind:?} has invalid status {} (expected {expected}) due to {}: {}",
                    one.status,
                    one.reason.as_deref().unwrap_or_default(),
                    one.message.as_deref().unwrap_or_default()
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether what ails a node is its user's doing: then the condition has a code [ST-57].
pub fn is_user_error(why: &str) -> bool {
    let why = why.to_ascii_lowercase();
    [
        "kubelethasinsufficientmemory",
        "kubelethasdiskpressure",
        "kubelethasinsufficientpid",
    ]
    .iter()
    .any(|one| why.contains(one))
}

/// Whether a kubelet's version is what its pool wants; a pending minor update and a newer kubelet are fine [ST-57].
pub fn is_version_mismatch(kubelet: &str, desired: &str) -> Result<bool, semver::Error> {
    let kubelet = semver::Version::parse(kubelet.trim_start_matches('v'))?;
    let desired = semver::Version::parse(desired.trim_start_matches('v'))?;
    let same_minor = (kubelet.major, kubelet.minor) == (desired.major, desired.minor);
    Ok(same_minor && desired > kubelet)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn st_40_what_comes_up_is_looked_at_sooner() {
        let at = |text: &str| Time(format!("2026-03-01T{text}Z").parse().unwrap());
        let last = |state: &str| LastOperation {
            state: state.into(),
            last_update_time: Some(at("10:00:00")),
            ..LastOperation::default()
        };
        let period = Duration::from_secs(60);
        let millis = Duration::from_millis;
        let table = [
            (true, Some(last("Succeeded")), "10:00:00", period),
            (false, Some(last("Succeeded")), "10:00:00", millis(250)),
            (false, Some(last("Succeeded")), "10:00:02", millis(500)),
            (false, Some(last("Succeeded")), "10:10:00", period),
            (false, Some(last("Succeeded")), "09:59:00", millis(250)),
            (false, Some(last("Processing")), "10:00:00", period),
            (false, None, "10:00:00", period),
        ];
        for (is_fine, last, now, expected) in table {
            assert_eq!(
                next_look(is_fine, last.as_ref(), at(now).0, period),
                expected,
                "{now} {last:?}"
            );
        }
    }

    #[test]
    fn st_30_thresholds() {
        let at = |text: &str| Some(Time(format!("2026-03-01T{text}Z").parse().unwrap()));
        let now: Timestamp = "2026-03-01T10:10:00Z".parse().unwrap();
        let minute = Some(SignedDuration::from_mins(1));
        let last = |text: &str| LastOperation {
            state: "Succeeded".into(),
            last_update_time: at(text),
            ..LastOperation::default()
        };
        let (long_ago, recently) = (last("09:00:00"), last("10:09:30"));
        let table = [
            ("True", "R", "09:00:00", None, &long_ago, "False"),
            ("True", "R", "09:00:00", minute, &long_ago, "Progressing"),
            ("Progressing", "R", "10:09:00", minute, &long_ago, "Progressing"),
            ("Progressing", "R", "10:08:59", minute, &long_ago, "False"),
            ("Progressing", "R", "10:08:59", minute, &recently, "Progressing"),
            ("False", "R", "10:00:00", minute, &long_ago, "False"),
            ("False", "Other", "10:00:00", minute, &long_ago, "Progressing"),
            ("Unknown", "R", "10:09:59", minute, &recently, "False"),
        ];
        for (status, reason, transition, threshold, last, expected) in table {
            let old = Condition {
                status: status.into(),
                reason: reason.into(),
                last_transition_time: at(transition),
                ..Condition::default()
            };
            let found = status_of_failure(&old, "R", threshold, Some(last), now);
            assert_eq!(found, expected, "{status} {reason} {transition}");
        }
    }

    #[test]
    fn st_57_kubelet_versions() {
        let table = [
            ("v1.35.1", "1.35.2", true),
            ("v1.35.2", "1.35.2", false),
            ("v1.35.3", "1.35.2", false),
            ("v1.34.9", "1.35.2", false),
        ];
        for (kubelet, desired, expected) in table {
            assert_eq!(
                is_version_mismatch(kubelet, desired).unwrap(),
                expected,
                "{kubelet} {desired}"
            );
        }
        assert!(is_version_mismatch("one", "1.35.2").is_err());
    }

    #[test]
    fn st_62_the_cause_speaks() {
        let condition = |kind: &str, status: &str| Condition {
            r#type: kind.into(),
            status: status.into(),
            reason: format!("{kind}Reason"),
            ..Condition::default()
        };
        let with = |conditions: Vec<Condition>| {
            let mut resource = ManagedResource::default();
            resource.status.conditions = conditions;
            managed_resource(&resource)
                .err()
                .map(|finding| finding.reason)
                .unwrap_or_default()
        };
        let (applied, healthy) = (
            condition("ResourcesApplied", "True"),
            condition("ResourcesHealthy", "True"),
        );
        assert_eq!(with(vec![]), "MissingManagedResourceCondition");
        assert_eq!(
            with(vec![applied.clone(), condition("ResourcesHealthy", "Unknown")]),
            "ResourcesHealthyReason"
        );
        assert_eq!(
            with(vec![
                applied.clone(),
                healthy.clone(),
                condition("ResourcesProgressing", "True")
            ]),
            "ResourcesProgressingReason"
        );
        assert_eq!(
            with(vec![applied, healthy, condition("ResourcesProgressing", "False")]),
            ""
        );
    }
}
