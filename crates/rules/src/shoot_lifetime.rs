//! How long a shoot lives: the shortest lifetime that the quotas of its credentials allow [GCM-42].

use gardener_apis::constants::annotation;
use gardener_apis::core::v1beta1::{Quota, Shoot};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// What a shoot's quotas say of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// No quota ends it: what was told of an end is over.
    Unlimited,
    /// It ends then.
    Until {
        /// The end.
        end: Timestamp,
        /// Whether the shoot tells it already.
        is_told: bool,
    },
}

/// The shortest lifetime in days that any of the quotas allows; none, if none limits it.
pub fn shortest<'q>(quotas: impl IntoIterator<Item = &'q Quota>) -> Option<i32> {
    quotas
        .into_iter()
        .filter_map(|own| own.spec.cluster_lifetime_days)
        .min()
}

/// When a shoot ends. What its annotation tells holds, also if a quota was changed since; who gives a shoot more time writes there.
///
/// # Errors
/// The annotation is no time.
pub fn lifetime(shoot: &Shoot, days: Option<i32>, now: Timestamp) -> Result<Lifetime, String> {
    let Some(days) = days else {
        return Ok(Lifetime::Unlimited);
    };
    if let Some(told) = shoot.annotation(annotation::SHOOT_EXPIRATION_TIMESTAMP) {
        let end = told.parse().map_err(|error| format!("{error}"))?;
        return Ok(Lifetime::Until { end, is_told: true });
    }
    let created = shoot.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    let end = created.saturating_add(SignedDuration::from_hours(24 * i64::from(days)));
    Ok(Lifetime::Until {
        end: end.unwrap_or(Timestamp::MAX),
        is_told: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn gcm_42_the_shortest_lifetime_counts() {
        let quota = |days: Option<i32>| -> Quota {
            serde_json::from_value(json!({"spec": {"clusterLifetimeDays": days}})).unwrap()
        };
        for (days, expected) in [
            (vec![], None),
            (vec![None], None),
            (vec![Some(7), None, Some(3)], Some(3)),
        ] {
            let quotas: Vec<Quota> = days.iter().map(|days| quota(*days)).collect();
            assert_eq!(shortest(&quotas), expected, "{days:?}");
        }
    }

    #[test]
    fn gcm_42_an_end_that_is_told_holds() {
        let now = "2026-01-05T00:00:00Z".parse().unwrap();
        let shoot = |told: Option<&str>| -> Shoot {
            serde_json::from_value(json!({"metadata": {
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"shoot.gardener.cloud/expiration-timestamp": told},
            }}))
            .unwrap()
        };
        let until = |end: &str, is_told: bool| {
            let end = end.parse().unwrap();
            Ok(Lifetime::Until { end, is_told })
        };
        let plain: Shoot =
            serde_json::from_value(json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}})).unwrap();
        assert_eq!(lifetime(&plain, Some(3), now), until("2026-01-04T00:00:00Z", false));
        assert_eq!(lifetime(&plain, None, now), Ok(Lifetime::Unlimited));
        let longer = shoot(Some("2026-02-01T00:00:00Z"));
        assert_eq!(lifetime(&longer, Some(3), now), until("2026-02-01T00:00:00Z", true));
        assert_eq!(lifetime(&longer, None, now), Ok(Lifetime::Unlimited));
        assert!(lifetime(&shoot(Some("soon")), Some(3), now).is_err());
    }
}
