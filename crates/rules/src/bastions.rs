//! When a Bastion is deleted by itself [GCM-51].

use std::time::Duration;

use gardener_apis::core::v1beta1::Shoot;
use gardener_apis::operations::v1alpha1::Bastion;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// What becomes of a bastion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes now, for this reason.
    Goes(&'static str),
    /// It stays, and is looked at again at this time.
    StaysUntil(Timestamp),
}

/// What becomes of a bastion that is not in deletion, whose shoot is this; none if it is gone.
pub fn fate(bastion: &Bastion, shoot: Option<&Shoot>, max_lifetime: Duration, now: Timestamp) -> Fate {
    let Some(shoot) = shoot else {
        return Fate::Goes("its shoot is gone");
    };
    if shoot.in_deletion() {
        return Fate::Goes("its shoot is in deletion");
    }
    if shoot.spec.seed_name != bastion.spec.seed_name {
        return Fate::Goes("its shoot has moved to another seed");
    }
    let expires = bastion.status.expiration_timestamp.as_ref().map(|time| time.0);
    if expires.is_some_and(|expires| now > expires) {
        return Fate::Goes("it has expired");
    }
    let created = bastion.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    let lifetime = SignedDuration::try_from(max_lifetime).unwrap_or(SignedDuration::MAX);
    let oldest = created.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
    if now > oldest {
        return Fate::Goes("it has reached its maximum lifetime");
    }
    Fate::StaysUntil(expires.map_or(oldest, |expires| expires.min(oldest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn gcm_51_who_goes() {
        let shoot = |metadata: Value, seed: &str| -> Option<Shoot> {
            serde_json::from_value(json!({"metadata": metadata, "spec": {"seedName": seed}})).unwrap()
        };
        let bastion = |expires: Option<&str>| -> Bastion {
            serde_json::from_value(json!({
                "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"seedName": "a"}, "status": {"expirationTimestamp": expires},
            }))
            .unwrap()
        };
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        let day = Duration::from_secs(24 * 3600);
        for (expires, shoot, now, expected) in [
            (None, None, "00:10:00", Fate::Goes("its shoot is gone")),
            (
                None,
                shoot(going, "a"),
                "00:10:00",
                Fate::Goes("its shoot is in deletion"),
            ),
            (
                None,
                shoot(json!({}), "b"),
                "00:10:00",
                Fate::Goes("its shoot has moved to another seed"),
            ),
            (
                None,
                shoot(json!({}), "a"),
                "00:10:00",
                Fate::StaysUntil(at("2026-01-02T00:00:00Z")),
            ),
            (
                Some("2026-01-01T01:00:00Z"),
                shoot(json!({}), "a"),
                "01:00:00",
                Fate::StaysUntil(at("2026-01-01T01:00:00Z")),
            ),
            (
                Some("2026-01-01T01:00:00Z"),
                shoot(json!({}), "a"),
                "01:00:01",
                Fate::Goes("it has expired"),
            ),
            (
                Some("2026-01-09T01:00:00Z"),
                shoot(json!({}), "a"),
                "10:00:00",
                Fate::StaysUntil(at("2026-01-02T00:00:00Z")),
            ),
        ] {
            let now = at(&format!("2026-01-01T{now}Z"));
            assert_eq!(
                fate(&bastion(expires), shoot.as_ref(), day, now),
                expected,
                "{expires:?} {now}"
            );
        }
        let old = at("2026-01-02T00:00:01Z");
        let expected = Fate::Goes("it has reached its maximum lifetime");
        assert_eq!(fate(&bastion(None), shoot(json!({}), "a").as_ref(), day, old), expected);
    }
}
