//! What the garden does about control plane migrations: whether the destination is ready [GCM-46], and how long a ShootState is kept [GCM-16].

use gardener_apis::core::v1beta1::{Seed, Shoot};

/// The constraint of shoots that are to move.
pub const READY_FOR_MIGRATION: &str = "ReadyForMigration";

/// Conditions of a seed that must be true before shoots move there.
const REQUIRED: [&str; 2] = ["GardenletReady", "SeedSystemComponentsHealthy"];

/// Whether a shoot is to move to another seed, and has not begun to.
pub fn is_to_be_prepared(shoot: &Shoot) -> bool {
    let (wanted, current) = (&shoot.spec.seed_name, &shoot.status.seed_name);
    wanted.is_some() && current.is_some() && wanted != current
}

/// Whether a seed can take a shoot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// It is going itself.
    InDeletion,
    /// Not yet, for this reason.
    Unready(String),
    /// It can.
    Ready,
}

impl Destination {
    /// Status, reason and message of the constraint.
    pub fn told(&self) -> (&'static str, &'static str, &str) {
        match self {
            Self::InDeletion => ("False", "DestinationSeedInDeletion", "Seed is being deleted"),
            Self::Unready(why) => ("False", "DestinationSeedUnready", why),
            Self::Ready => (
                "True",
                "DestinationSeedReady",
                "Destination seed cluster is ready for the shoot migration",
            ),
        }
    }
}

/// Whether `destination` can take a shoot of `source`.
pub fn destination(source: &Seed, destination: &Seed) -> Destination {
    if destination.metadata.deletion_timestamp.is_some() {
        return Destination::InDeletion;
    }
    why_not(source, destination).map_or(Destination::Ready, Destination::Unready)
}

fn why_not(source: &Seed, destination: &Seed) -> Option<String> {
    let (Some(own), Some(other)) = (&destination.status.gardener, &source.status.gardener) else {
        return Some("missing Gardener version information on source or destination seed".to_owned());
    };
    if own.version != other.version {
        let (own, other) = (&own.version, &other.version);
        return Some(format!("observing Gardener version not up to date ({own}/{other})"));
    }
    let observed = destination.status.observed_generation.unwrap_or_default();
    let generation = destination.metadata.generation.unwrap_or_default();
    if observed < generation {
        return Some(format!("observed generation outdated ({observed}/{generation})"));
    }
    let find = |kind: &str| destination.status.conditions.iter().find(|own| own.r#type == kind);
    if let Some(missing) = REQUIRED.into_iter().find(|kind| find(kind).is_none()) {
        return Some(format!("condition {missing:?} is missing"));
    }
    let mut conditions = REQUIRED.into_iter().filter_map(find);
    let wrong = conditions.find(|own| own.status != "True")?;
    Some(format!(
        "condition {:?} has invalid status {} (expected True) due to {}: {}",
        wrong.r#type, wrong.status, wrong.reason, wrong.message
    ))
}

/// Whether the finalizer of a shoot's ShootState is put there (true), taken off (false), or left as it is.
///
/// # Errors
/// The shoot has not done anything yet.
pub fn keeps_state(shoot: &Shoot) -> Result<Option<bool>, String> {
    let Some(last) = &shoot.status.last_operation else {
        let place = format!("{}/{}", shoot.project_namespace(), shoot.own_name());
        return Err(format!("last operation of Shoot '{place}' is not set"));
    };
    Ok(match (last.r#type.as_str(), last.state == "Succeeded") {
        ("Migrate", _) | ("Restore", false) => Some(true),
        ("Restore", true) | ("Reconcile", _) => Some(false),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn gcm_16_a_state_is_kept_until_it_is_restored() {
        for (kind, state, expected) in [
            ("Create", "Succeeded", None),
            ("Delete", "Processing", None),
            ("Migrate", "Processing", Some(true)),
            ("Migrate", "Succeeded", Some(true)),
            ("Restore", "Processing", Some(true)),
            ("Restore", "Failed", Some(true)),
            ("Restore", "Succeeded", Some(false)),
            ("Reconcile", "Processing", Some(false)),
            ("Reconcile", "Succeeded", Some(false)),
        ] {
            let shoot = json!({"status": {"lastOperation": {"type": kind, "state": state}}});
            assert_eq!(
                keeps_state(&serde_json::from_value(shoot).unwrap()),
                Ok(expected),
                "{kind} {state}"
            );
        }
        let shoot = json!({"metadata": {"name": "one", "namespace": "garden-dev"}});
        let error = keeps_state(&serde_json::from_value(shoot).unwrap()).unwrap_err();
        assert_eq!(error, "last operation of Shoot 'garden-dev/one' is not set");
    }

    #[test]
    fn gcm_46_whether_a_seed_takes_a_shoot() {
        let conditions = |components: &str| {
            json!([{"type": "GardenletReady", "status": "True"},
                {"type": "SeedSystemComponentsHealthy", "status": components, "reason": "Why", "message": "so"}])
        };
        let seed = |metadata: Value, version: Option<&str>, conditions: Value| -> Seed {
            let gardener = version.map(|version| json!({"id": "", "name": "", "version": version}));
            let mut status = json!({"observedGeneration": 2, "conditions": conditions});
            if let Some(gardener) = gardener {
                status["gardener"] = gardener;
            }
            serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
        };
        let source = seed(json!({}), Some("v1"), json!([]));
        let unready = |why: &str| Destination::Unready(why.to_owned());
        for (destination, expected) in [
            (
                seed(
                    json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
                    Some("v1"),
                    conditions("True"),
                ),
                Destination::InDeletion,
            ),
            (
                seed(json!({}), None, conditions("True")),
                unready("missing Gardener version information on source or destination seed"),
            ),
            (
                seed(json!({}), Some("v2"), conditions("True")),
                unready("observing Gardener version not up to date (v2/v1)"),
            ),
            (
                seed(json!({"generation": 3}), Some("v1"), conditions("True")),
                unready("observed generation outdated (2/3)"),
            ),
            (
                seed(json!({}), Some("v1"), json!([])),
                unready("condition \"GardenletReady\" is missing"),
            ),
            (
                seed(json!({}), Some("v1"), conditions("False")),
                unready(
                    "condition \"SeedSystemComponentsHealthy\" has invalid status False (expected True) due to Why: so",
                ),
            ),
            (
                seed(json!({"generation": 2}), Some("v1"), conditions("True")),
                Destination::Ready,
            ),
        ] {
            assert_eq!(super::destination(&source, &destination), expected);
        }
        for (wanted, current, expected) in [
            (Some("b"), Some("a"), true),
            (Some("a"), Some("a"), false),
            (Some("a"), None, false),
            (None, Some("a"), false),
        ] {
            let shoot = json!({"spec": {"seedName": wanted}, "status": {"seedName": current}});
            assert_eq!(is_to_be_prepared(&serde_json::from_value(shoot).unwrap()), expected);
        }
    }
}
