//! What extensions say about the health of a shoot, and how old it may be [ST-63], [ST-64], [ST-65]. Who they are is found out elsewhere.

use gardener_apimachinery::duration::Duration;
use gardener_apis::core::v1beta1::{Condition, ControllerInstallation, ControllerRegistration};
use k8s_openapi::jiff::tz::TimeZone;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::Finding;

/// The kinds whose objects are asked, in the order in which they count; a workerless shoot has the first only [ST-63].
pub const KINDS: [&str; 7] = [
    "Extension",
    "ContainerRuntime",
    "ControlPlane",
    "Infrastructure",
    "Network",
    "OperatingSystemConfig",
    "Worker",
];
/// Asked last: it is not in the control plane's namespace.
pub const BACKUP_ENTRY: &str = "BackupEntry";

/// The conditions that extensions may say something about [ST-63].
const TYPES: [&str; 4] = [
    "ControlPlaneHealthy",
    "EveryNodeReady",
    "SystemComponentsHealthy",
    "ObservabilityComponentsHealthy",
];

const MINUTE: i64 = 60_000_000_000;
/// How Go writes the time of what never was.
pub(super) const ZERO_TIME: &str = "0001-01-01 00:00:00 +0000 UTC";

/// Whether a condition of an extension object says something about a shoot's.
pub fn counts(condition: &Condition) -> bool {
    TYPES.contains(&condition.r#type.as_str())
}

/// Who looks after the objects of a kind and type in a seed [ST-64]. `installations` are the seed's.
///
/// # Errors
/// Nobody does.
pub fn responsible<'i>(
    (kind, own_type): (&str, &str),
    installations: &'i [ControllerInstallation],
    registrations: &[ControllerRegistration],
) -> Result<&'i ControllerInstallation, String> {
    let brings = |installation: &&ControllerInstallation| {
        let name = installation.spec.registration_ref.name.as_deref();
        let registration = registrations.iter().find(|own| own.metadata.name.as_deref() == name);
        let mut resources = registration.into_iter().flat_map(|own| &own.spec.resources);
        name.is_some() && resources.any(|own| own.kind == kind && own.r#type == own_type)
    };
    installations.iter().find(brings).ok_or_else(|| {
        format!("could not find ControllerRegistration for extension kind {kind} and type {own_type} that is installed")
    })
}

/// What an extension object says, and who says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The object's kind.
    pub kind: String,
    /// Its namespace; a BackupEntry has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When its extension showed last that it lives; none if never.
    pub heartbeat: Option<Timestamp>,
    /// What it says.
    pub condition: Condition,
}

/// What is made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The condition has this status at once, whatever its threshold is.
    Is(&'static str, Finding),
    /// It fails, within its threshold.
    Fails(Finding),
}

/// What the extensions say about a condition of a shoot; the first that has something to say decides. Who is silent for longer than `patience` is not believed.
pub fn report(told: &[Told], kind: &str, patience: Option<SignedDuration>, now: Timestamp) -> Option<Report> {
    let own = told.iter().filter(|one| one.condition.r#type == kind);
    own.filter_map(|one| judge(one, patience, now)).next()
}

fn judge(told: &Told, patience: Option<SignedDuration>, now: Timestamp) -> Option<Report> {
    let Told {
        kind,
        namespace,
        name,
        condition,
        ..
    } = told;
    let is_stale = |patience: SignedDuration| told.heartbeat.is_none_or(|last| now.duration_since(last) > patience);
    if patience.is_some_and(is_stale) {
        let (age, at) = match told.heartbeat {
            Some(last) => (rounded_age(last, now), go_time(rounded_time(last))),
            None => (rounded_down(i64::MAX), ZERO_TIME.to_owned()),
        };
        let text = format!(
            "{kind} extension ({namespace}/{name}) reports an outdated health status (last updated: {age} ago at {at})."
        );
        let finding = Finding::new(format!("{kind}OutdatedHealthCheckReport"), text);
        return Some(Report::Is("Unknown", finding));
    }
    let with_codes = |mut finding: Finding| {
        finding.codes.clone_from(&condition.codes);
        finding
    };
    match condition.status.as_str() {
        "Progressing" => {
            let finding = Finding::new(format!("{kind}{}", condition.reason), &condition.message);
            Some(Report::Is("Progressing", with_codes(finding)))
        }
        "False" | "Unknown" => {
            let text = format!(
                "{kind} extension ({namespace}/{name}) reports failing health check: {}",
                condition.message
            );
            Some(Report::Fails(with_codes(Finding::new(
                format!("{kind}UnhealthyReport"),
                text,
            ))))
        }
        _ => None,
    }
}

fn rounded_down(nanos: i64) -> Duration {
    Duration::from_nanos(nanos / MINUTE * MINUTE)
}

/// How long ago it was, in whole minutes; half of one is one.
fn rounded_age(last: Timestamp, now: Timestamp) -> Duration {
    let nanos = i64::try_from(now.duration_since(last).as_nanos()).unwrap_or(i64::MAX);
    rounded_down(nanos.saturating_add(MINUTE / 2))
}

/// The next whole minute, before or after.
fn rounded_time(time: Timestamp) -> Timestamp {
    let half = SignedDuration::from_secs(30);
    let later = time.checked_add(half).unwrap_or(time).as_second();
    Timestamp::from_second(later - later.rem_euclid(60)).unwrap_or(time)
}

/// A time as Go writes it; fractions of seconds are left out.
pub(super) fn go_time(time: Timestamp) -> String {
    let time = time.to_zoned(TimeZone::UTC);
    time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-03-01T10:00:10Z".parse().unwrap()
    }

    fn ago(seconds: i64) -> Option<Timestamp> {
        Some(now().checked_sub(SignedDuration::from_secs(seconds)).unwrap())
    }

    fn told(kind: &str, about: &str, status: &str, heartbeat: Option<Timestamp>) -> Told {
        Told {
            kind: kind.to_owned(),
            namespace: "n".to_owned(),
            name: "w".to_owned(),
            heartbeat,
            condition: Condition {
                r#type: about.to_owned(),
                status: status.to_owned(),
                reason: "HealthCheckProgressing".to_owned(),
                message: "m".to_owned(),
                codes: vec!["ERR_INFRA_DEPENDENCIES".to_owned()],
                ..Condition::default()
            },
        }
    }

    #[test]
    fn st_65_worked_cases() {
        let nodes = "EveryNodeReady";
        let minutes = |count: i64| Some(SignedDuration::from_mins(count));
        let look = |told: Told, patience| report(&[told], nodes, patience, now());
        let codes = vec!["ERR_INFRA_DEPENDENCIES".to_owned()];

        let message = "Worker extension (n/w) reports failing health check: m";
        let failing = Finding {
            codes: codes.clone(),
            ..Finding::new("WorkerUnhealthyReport", message)
        };
        for status in ["False", "Unknown"] {
            let found = look(told("Worker", nodes, status, ago(60)), minutes(5));
            assert_eq!(found, Some(Report::Fails(failing.clone())), "W-X1");
        }

        let outdated = |heartbeat, patience| match look(told("Worker", nodes, "True", heartbeat), patience) {
            Some(Report::Is("Unknown", finding)) => {
                assert_eq!(finding.reason, "WorkerOutdatedHealthCheckReport");
                assert!(finding.codes.is_empty());
                Some(finding.message)
            }
            None => None,
            other => unreachable!("{other:?}"),
        };
        let words = |age: &str, at: &str| {
            let said = "Worker extension (n/w) reports an outdated health status";
            Some(format!("{said} (last updated: {age} ago at {at})."))
        };
        let told_at = words("6m0s", "2026-03-01 09:54:00 +0000 UTC");
        assert_eq!(outdated(ago(360), minutes(5)), told_at, "W-X2");
        let found = look(told("Worker", nodes, "False", ago(360)), minutes(5));
        assert!(
            matches!(found, Some(Report::Is("Unknown", _))),
            "W-X2: stale before failing"
        );
        let never = words("2562047h47m0s", "0001-01-01 00:00:00 +0000 UTC");
        assert_eq!(outdated(None, minutes(5)), never, "W-X3");
        assert_eq!(outdated(ago(300), minutes(5)), None, "W-X4");
        let rounded = words("5m0s", "2026-03-01 09:55:00 +0000 UTC");
        assert_eq!(outdated(ago(301), minutes(5)), rounded, "strictly greater");
        let half = words("6m0s", "2026-03-01 09:55:00 +0000 UTC");
        assert_eq!(outdated(ago(330), minutes(5)), half, "half a minute counts");

        let about = "ControlPlaneHealthy";
        let progressing = told("ControlPlane", about, "Progressing", ago(60));
        let expected = Finding {
            codes,
            ..Finding::new("ControlPlaneHealthCheckProgressing", "m")
        };
        assert_eq!(
            report(&[progressing], about, minutes(5), now()),
            Some(Report::Is("Progressing", expected)),
            "W-X5"
        );

        assert_eq!(outdated(ago(3 * 3600), None), None, "W-X6");

        let both = [
            told("Extension", about, "False", ago(60)),
            told("Worker", about, "True", ago(360)),
        ];
        match report(&both, about, minutes(5), now()) {
            Some(Report::Fails(finding)) => assert_eq!(finding.reason, "ExtensionUnhealthyReport", "W-X7"),
            other => unreachable!("W-X7 {other:?}"),
        }
        assert_eq!(report(&both, nodes, minutes(5), now()), None, "another condition");
    }

    #[test]
    fn st_64_who_is_responsible() {
        let registration = |name: &str, kind: &str| -> ControllerRegistration {
            let resources = serde_json::json!([{"kind": kind, "type": "local"}]);
            serde_json::from_value(serde_json::json!({"metadata": {"name": name}, "spec": {"resources": resources}}))
                .unwrap()
        };
        let installation = |name: &str, of: &str| -> ControllerInstallation {
            let spec = serde_json::json!({"registrationRef": {"name": of}});
            serde_json::from_value(serde_json::json!({"metadata": {"name": name}, "spec": spec})).unwrap()
        };
        let registrations = [
            registration("elsewhere", "Worker"),
            registration("a", "Network"),
            registration("b", "Worker"),
        ];
        let installations = [
            installation("a-1", "a"),
            installation("b-1", "b"),
            installation("c-1", "c"),
        ];
        let of = |kind: &str| responsible((kind, "local"), &installations, &registrations);
        assert_eq!(of("Worker").unwrap().metadata.name.as_deref(), Some("b-1"));
        assert_eq!(of("Network").unwrap().metadata.name.as_deref(), Some("a-1"));
        assert!(
            of("Infrastructure")
                .unwrap_err()
                .contains("extension kind Infrastructure and type local")
        );
    }

    #[test]
    fn st_63_what_counts() {
        let about = |kind: &str| counts(&told("Worker", kind, "False", None).condition);
        assert!(TYPES.into_iter().all(about));
        assert!(!about("APIServerAvailable") && !about("Other"));
    }
}
