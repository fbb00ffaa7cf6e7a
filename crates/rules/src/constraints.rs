//! What restricts operations on a shoot: the constraints that care tells in its status [ST-80]–[ST-89]. What is read is brought; webhooks are judged in
//! [`crate::webhooks`].

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::meta::is_true;
use gardener_apis::core::v1beta1::{Condition, LastError, LastOperation, Shoot};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::tz::TimeZone;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::credentials_rotation::{Credentials, is_overdue, period_ends};
use crate::hibernation::sleeps_in_next_window;
use crate::webhooks::Problem;

/// The shoot can be put to sleep, and woken up again.
pub const HIBERNATION_POSSIBLE: &str = "HibernationPossible";
/// Nothing stands in the way of new nodes.
pub const MAINTENANCE_PRECONDITIONS_SATISFIED: &str = "MaintenancePreconditionsSatisfied";
/// No authority ends within a year.
pub const CA_CERTIFICATE_VALIDITIES_ACCEPTABLE: &str = "CACertificateValiditiesAcceptable";
/// Stored objects may need a webhook to be read.
pub const CRDS_WITH_PROBLEMATIC_CONVERSION_WEBHOOKS: &str = "CRDsWithProblematicConversionWebhooks";
/// No pool waits to be updated by hand.
pub const MANUAL_IN_PLACE_WORKERS_UPDATED: &str = "ManualInPlaceWorkersUpdated";
/// Credentials can be rotated by themselves.
pub const AUTOMATIC_CREDENTIALS_ROTATION_POSSIBLE: &str = "AutomaticCredentialsRotationPossible";
/// All that is deployed is kept up to date.
pub const HAS_IGNORED_MANAGED_RESOURCES: &str = "HasIgnoredManagedResources";
/// No failed machine is kept.
pub const PRESERVED_FAILED_MACHINES_ABSENT: &str = "PreservedFailedMachinesAbsent";

/// All of them, in the order in which they stand [ST-41].
pub const ALL: [&str; 8] = [
    HIBERNATION_POSSIBLE,
    MAINTENANCE_PRECONDITIONS_SATISFIED,
    CA_CERTIFICATE_VALIDITIES_ACCEPTABLE,
    CRDS_WITH_PROBLEMATIC_CONVERSION_WEBHOOKS,
    MANUAL_IN_PLACE_WORKERS_UPDATED,
    AUTOMATIC_CREDENTIALS_ROTATION_POSSIBLE,
    HAS_IGNORED_MANAGED_RESOURCES,
    PRESERVED_FAILED_MACHINES_ABSENT,
];
/// Those that always stand there [ST-80].
pub const REQUIRED: [&str; 2] = [HIBERNATION_POSSIBLE, MAINTENANCE_PRECONDITIONS_SATISFIED];
/// Those that nobody looks at while a shoot sleeps, and that stand there all the same [ST-81].
pub const NOT_CHECKED_ASLEEP: [&str; 4] = [
    HIBERNATION_POSSIBLE,
    MAINTENANCE_PRECONDITIONS_SATISFIED,
    CA_CERTIFICATE_VALIDITIES_ACCEPTABLE,
    CRDS_WITH_PROBLEMATIC_CONVERSION_WEBHOOKS,
];

/// The reason of what nobody looked at.
pub const NOT_CHECKED: &str = "ConstraintNotChecked";
/// Its words while a shoot sleeps.
pub const ASLEEP: &str = "Shoot cluster has been hibernated.";
/// Its words while the API server does not run.
pub const NOT_RUNNING: &str = "Shoot control plane is not running at the moment.";

const PROBLEMATIC_WEBHOOK: &str = "ERR_PROBLEMATIC_WEBHOOK";
/// A year: what authorities, which live for ten, are to have left.
const VALIDITY: SignedDuration = SignedDuration::from_hours(365 * 24);

/// What is found of a constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Whether nothing restricts.
    pub holds: bool,
    /// Why.
    pub reason: &'static str,
    /// In words.
    pub message: String,
    /// Error codes.
    pub codes: Vec<&'static str>,
}

impl Judgement {
    fn new(holds: bool, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            holds,
            reason,
            message: message.into(),
            codes: Vec::new(),
        }
    }

    /// Nobody looked, with these words.
    pub fn not_checked(holds: bool, message: &str) -> Self {
        Self::new(holds, NOT_CHECKED, message)
    }
}

fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: BTreeSet<&str> = names.into_iter().collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Whether webhooks let nodes come up: both of the required constraints [ST-82].
pub fn webhooks(problem: Option<Problem>) -> Judgement {
    let (reason, message) = match problem {
        None => return Judgement::new(true, "NoProblematicWebhooks", "All webhooks are properly configured."),
        Some(Problem::Problematic(message)) => ("ProblematicWebhooks", message),
        Some(Problem::Remediated(message)) => ("RemediatedWebhooks", message),
    };
    Judgement {
        codes: vec![PROBLEMATIC_WEBHOOK],
        ..Judgement::new(false, reason, message)
    }
}

/// Whether authorities are valid for long enough. `secrets` are those of the secrets manager that are kept; which are authorities their data tells [ST-84].
///
/// # Errors
/// An authority does not tell until when it is valid.
pub fn authorities(secrets: &[Secret], now: Timestamp) -> Result<Judgement, String> {
    let mut expiring: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for secret in secrets {
        let has = |key: &str| secret.data.as_ref().is_some_and(|data| data.contains_key(key));
        if !has("ca.crt") || !has("ca.key") {
            continue;
        }
        let label = |key: &str| {
            secret
                .metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get(key))
                .map_or("", String::as_str)
        };
        let seconds: Result<i64, _> = label("valid-until-time").parse();
        let until = seconds
            .map_err(|error| error.to_string())
            .and_then(|seconds| Timestamp::from_second(seconds).map_err(|error| error.to_string()));
        let name = secret.metadata.name.as_deref().unwrap_or_default();
        let until =
            until.map_err(|error| format!("could not parse valid-until-time label from secret {name:?}: {error}"))?;
        if until.duration_since(now) < VALIDITY {
            expiring.insert(label("name"), until);
        }
    }
    if expiring.is_empty() {
        let fine = "All CA certificates are still valid for at least 8760h0m0s.";
        return Ok(Judgement::new(true, "NoExpiringCACertificates", fine));
    }
    let told = expiring.iter().map(|(name, until)| {
        let until = until
            .to_zoned(TimeZone::UTC)
            .strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
            .to_string();
        format!("{name:?} (expiring at {until})")
    });
    let told: Vec<String> = told.collect();
    let message = format!(
        "Some CA certificates are expiring in less than 8760h0m0s, you should rotate them: {}",
        told.join(", ")
    );
    Ok(Judgement::new(false, "ExpiringCACertificates", message))
}

/// Whether stored objects can be read without a webhook [ST-85].
pub fn conversion_webhooks(definitions: &[CustomResourceDefinition]) -> Judgement {
    let problematic = definitions.iter().filter(|own| {
        let stored = own.status.as_ref().and_then(|status| status.stored_versions.as_ref());
        let converts = own
            .spec
            .conversion
            .as_ref()
            .is_some_and(|conversion| conversion.strategy == "Webhook");
        converts && stored.is_some_and(|versions| versions.len() > 1)
    });
    let names = listed(problematic.filter_map(|own| own.metadata.name.as_deref()));
    if names.is_empty() {
        let fine = "No CRDs have multiple stored versions present and a conversion webhook configured";
        return Judgement::new(true, "NoCRDsWithProblematicConversionWebhooks", fine);
    }
    let message = format!(
        "Some CRDs in your cluster have multiple stored versions present and have a conversion webhook configured: {names}. Please see https://github.com/gardener/gardener/blob/master/docs/usage/shoot/shoot_status.md#constraints for more details."
    );
    Judgement::new(false, "CRDsWithProblematicConversionWebhooks", message)
}

/// Whether no pool waits to be updated by hand [ST-86].
pub fn manual_in_place(shoot: &Shoot) -> Judgement {
    let fine = |message: &str| Judgement::new(true, "NoWorkerPoolsWithManualInPlaceUpdateStrategyPending", message);
    if shoot.is_workerless() {
        return fine("Shoot is workerless");
    }
    let pending = shoot
        .status
        .in_place_updates
        .as_ref()
        .and_then(|own| own.pending_worker_updates.as_ref());
    let pending = pending.map_or(&[][..], |own| own.manual_in_place_update.as_slice());
    if pending.is_empty() {
        return fine("No worker pools with manual in-place update strategy are pending");
    }
    let message = format!(
        "Some worker pools in your Shoot with update strategy ManualInPlaceUpdate are pending update: {}",
        pending.join(", ")
    );
    Judgement::new(false, "WorkerPoolsWithManualInPlaceUpdateStrategyPending", message)
}

/// Whether all ManagedResources of a control plane are kept up to date [ST-87].
pub fn managed_resources<'m>(all: impl IntoIterator<Item = &'m ObjectMeta>) -> Judgement {
    let is_ignored = |own: &&ObjectMeta| {
        let value = own
            .annotations
            .as_ref()
            .and_then(|all| all.get("resources.gardener.cloud/ignore"));
        value.is_some_and(|value| is_true(value))
    };
    let names = listed(all.into_iter().filter(is_ignored).filter_map(|own| own.name.as_deref()));
    if names.is_empty() {
        return Judgement::new(
            true,
            "NoManagedResourcesIgnored",
            "No ManagedResources are being ignored.",
        );
    }
    let message = format!(
        "Some ManagedResources have been annotated with resources.gardener.cloud/ignore=true, meaning their reconciliation is disabled: {names}"
    );
    Judgement::new(false, "ManagedResourcesIgnored", message)
}

/// Whether no failed machines are kept; `preserved` counts those of a shoot that has machines of ours [ST-88].
pub fn preserved_machines(preserved: Option<i32>) -> Judgement {
    match preserved {
        None => Judgement::new(
            true,
            "NoPreservationApplicable",
            "No machine preservation applies to this shoot.",
        ),
        Some(count) if count > 0 => {
            let message = format!("Cluster has {count} preserved failed machine(s).");
            Judgement::new(false, "FailedMachinesPreserved", message)
        }
        Some(_) => Judgement::new(
            true,
            "NoFailedMachinesPreserved",
            "No failed machines are being preserved.",
        ),
    }
}

/// Whether the etcd encryption key is rotated by itself when its time has come: not if the shoot sleeps through its maintenance [ST-89].
pub fn automatic_rotation(shoot: &Shoot, now: Timestamp) -> Judgement {
    let key = Credentials::EtcdEncryptionKey;
    let not_required = |message: &str| Judgement::new(true, "AutomaticCredentialsRotationNotRequired", message);
    if period_ends(shoot, key).is_none() {
        return not_required("Automatic ETCD encryption key rotation is not enabled.");
    }
    if !is_overdue(shoot, key, now) {
        return not_required("The ETCD encryption key rotation period has not yet passed.");
    }
    if sleeps_in_next_window(shoot, now) {
        return Judgement::new(
            false,
            "MaintenanceWindowDuringHibernation",
            "The ETCD encryption key rotation is overdue, but the next maintenance window falls within a hibernation interval. \
             The ETCD encryption key auto-rotation cannot be triggered automatically. Please adjust the maintenance window or the hibernation \
             schedule so that maintenance can run while the cluster is awake.",
        );
    }
    Judgement::new(
        true,
        AUTOMATIC_CREDENTIALS_ROTATION_POSSIBLE,
        "The ETCD encryption key rotation is overdue but the next maintenance window is not within a hibernation interval.",
    )
}

/// Those of what was looked at that are to stand in the status: the required ones, and what restricts [ST-80].
pub fn shown(checked: Vec<Condition>) -> Vec<Condition> {
    let stands = |own: &Condition| REQUIRED.contains(&own.r#type.as_str()) || own.status != "True";
    checked.into_iter().filter(stands).collect()
}

/// Whether what fails is still coming to be, and therefore only progresses [ST-70].
pub fn is_pardoned(last: Option<&LastOperation>, errors: &[LastError]) -> bool {
    last.is_none_or(|last| {
        let comes_or_goes = matches!(last.r#type.as_str(), "Create" | "Delete");
        (comes_or_goes && last.state != "Succeeded") || (last.state == "Processing" && errors.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn secret(name: &str, until: &str, keys: &[&str]) -> Secret {
        let data: BTreeMap<&str, &str> = keys.iter().map(|key| (*key, "")).collect();
        serde_json::from_value(json!({
            "metadata": {"name": format!("{name}-1"), "labels": {"name": name, "valid-until-time": until}}, "data": data,
        }))
        .unwrap()
    }

    #[test]
    fn st_84_authorities_that_end_within_a_year() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let both: &[&str] = &["ca.crt", "ca.key"];
        let after = |days: i64| (now.as_second() + days * 24 * 3600).to_string();
        let fine = authorities(
            &[secret("ca", &after(365), both), secret("x", "never", &["ca.crt"])],
            now,
        )
        .unwrap();
        assert_eq!((fine.holds, fine.reason), (true, "NoExpiringCACertificates"));
        assert_eq!(
            fine.message,
            "All CA certificates are still valid for at least 8760h0m0s."
        );
        let secrets = [
            secret("ca-vpn", &after(364), both),
            secret("ca", &after(10), both),
            secret("ca-etcd", &after(400), both),
        ];
        let ending = authorities(&secrets, now).unwrap();
        assert_eq!((ending.holds, ending.reason), (false, "ExpiringCACertificates"));
        assert_eq!(
            ending.message,
            "Some CA certificates are expiring in less than 8760h0m0s, you should rotate them: \"ca\" (expiring at 2026-01-11 00:00:00 +0000 UTC), \"ca-vpn\" (expiring at 2026-12-31 00:00:00 +0000 UTC)"
        );
        let unreadable = authorities(&[secret("ca", "soon", both)], now).unwrap_err();
        assert!(
            unreadable.starts_with("could not parse valid-until-time label from secret \"ca-1\": "),
            "{unreadable}"
        );
    }

    #[test]
    fn st_85_definitions_that_need_a_webhook() {
        let definition = |name: &str, versions: &[&str], strategy: &str| -> CustomResourceDefinition {
            serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {"group": "g", "names": {"kind": "K", "plural": "ks"}, "scope": "Namespaced", "versions": [], "conversion": {"strategy": strategy}},
                "status": {"storedVersions": versions},
            }))
            .unwrap()
        };
        let (one, two): (&[&str], &[&str]) = (&["v1"], &["v1", "v2"]);
        // W-C5
        let fine = [definition("a", two, "None"), definition("b", one, "Webhook")];
        assert!(conversion_webhooks(&fine).holds);
        let found = conversion_webhooks(&[definition("z", two, "Webhook"), definition("b", two, "Webhook")]);
        assert!(
            !found.holds && found.message.contains("configured: b, z. Please see"),
            "{found:?}"
        );
    }

    #[test]
    fn st_86_87_88_what_is_kept_back() {
        let pool = |pending: Value| -> Shoot {
            serde_json::from_value(json!({
                "spec": {"provider": {"workers": [{"name": "a"}]}},
                "status": {"inPlaceUpdates": {"pendingWorkerUpdates": {"manualInPlaceUpdate": pending}}},
            }))
            .unwrap()
        };
        assert!(manual_in_place(&Shoot::default()).holds && manual_in_place(&pool(json!([]))).holds);
        let waiting = manual_in_place(&pool(json!(["b", "a"])));
        assert!(
            !waiting.holds && waiting.message.ends_with("are pending update: b, a"),
            "{waiting:?}"
        );
        let resource = |name: &str, ignore: &str| -> ObjectMeta {
            serde_json::from_value(json!({"name": name, "annotations": {"resources.gardener.cloud/ignore": ignore}}))
                .unwrap()
        };
        assert!(managed_resources(&[resource("a", "false"), resource("b", "yes")]).holds);
        let ignored = managed_resources(&[resource("z", "T"), resource("a", "1")]);
        assert!(
            !ignored.holds && ignored.message.ends_with("is disabled: a, z"),
            "{ignored:?}"
        );
        let kept = |count| {
            let found = preserved_machines(count);
            (found.holds, found.reason)
        };
        assert_eq!(kept(None), (true, "NoPreservationApplicable"));
        assert_eq!(kept(Some(0)), (true, "NoFailedMachinesPreserved"));
        assert_eq!(kept(Some(2)), (false, "FailedMachinesPreserved"));
    }

    #[test]
    fn st_89_a_rotation_that_is_overdue() {
        let shoot = |period: &str, schedules: Value| -> Shoot {
            serde_json::from_value(json!({
                "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {
                    "hibernation": {"schedules": schedules},
                    "maintenance": {
                        "timeWindow": {"begin": "220000+0000", "end": "230000+0000"},
                        "autoRotation": {"credentials": {"etcdEncryptionKey": {"rotationPeriod": period}}},
                    },
                },
            }))
            .unwrap()
        };
        let nights = || json!([{"start": "0 20 * * *", "end": "0 6 * * *"}]);
        for (period, schedules, expected) in [
            ("0s", nights(), (true, "AutomaticCredentialsRotationNotRequired")),
            ("672h", nights(), (true, "AutomaticCredentialsRotationNotRequired")),
            ("168h", nights(), (false, "MaintenanceWindowDuringHibernation")),
            ("168h", json!([]), (true, "AutomaticCredentialsRotationPossible")),
        ] {
            let found = automatic_rotation(&shoot(period, schedules), "2026-01-10T12:00:00Z".parse().unwrap());
            assert_eq!((found.holds, found.reason), expected, "{period}");
        }
    }

    #[test]
    fn st_70_80_what_stands_there() {
        let condition = |kind: &str, status: &str| Condition {
            r#type: kind.to_owned(),
            status: status.to_owned(),
            ..Condition::default()
        };
        let checked = ALL.iter().map(|kind| condition(kind, "True")).collect();
        let kinds: Vec<String> = shown(checked).into_iter().map(|own| own.r#type).collect();
        assert_eq!(kinds, REQUIRED, "W-C1");
        for status in ["False", "Unknown", "Progressing"] {
            assert_eq!(
                shown(vec![condition(HAS_IGNORED_MANAGED_RESOURCES, status)]).len(),
                1,
                "{status}"
            );
        }
        let last = |kind: &str, state: &str| LastOperation {
            r#type: kind.to_owned(),
            state: state.to_owned(),
            ..LastOperation::default()
        };
        let error = [LastError::default()];
        for (last, errors, expected) in [
            (None, &[][..], true),
            (Some(last("Create", "Error")), &error[..], true),
            (Some(last("Delete", "Processing")), &error, true),
            (Some(last("Create", "Succeeded")), &[], false),
            (Some(last("Reconcile", "Processing")), &[], true),
            (Some(last("Reconcile", "Processing")), &error, false),
            (Some(last("Reconcile", "Error")), &[], false),
        ] {
            assert_eq!(is_pardoned(last.as_ref(), errors), expected, "{last:?} {errors:?}");
        }
    }
}
