//! When a secret is renewed, and which of an authority's certificates signs [CP-73], [CP-74].

use k8s_openapi::api::core::v1::Secret;

use super::naming::{LABEL_RENEW_AFTER, LABEL_ROTATION};
use super::{LABEL_ISSUED_AT, LABEL_VALID_UNTIL, Usage, data, label};

/// Which generation of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The newest one.
    Current,
    /// The one before, while it is kept.
    Old,
    /// All that are kept together.
    Bundle,
}

const TEN_DAYS: i64 = 10 * 24 * 3600;

/// Whether a certificate has to be renewed: after a part of its validity (80 % if not given), or in its last ten days. Times in
/// unix seconds [CP-74].
pub fn is_renewal_due(issued: i64, valid_until: i64, percentage: Option<u8>, now: i64) -> bool {
    let validity = valid_until.saturating_sub(issued);
    let part = validity
        .saturating_mul(i64::from(percentage.unwrap_or(80)))
        .div_euclid(100);
    now > issued.saturating_add(part) || now > valid_until.saturating_sub(TEN_DAYS)
}

/// Which of an authority's certificates signs: clients prove themselves with the new one at once, for servers trust it by the bundle;
/// servers change only when all clients have the bundle [CP-73].
pub(super) fn signing_class(usage: Usage, old_is_kept: bool) -> Class {
    match usage {
        Usage::Server | Usage::ServerAndClient if old_is_kept => Class::Old,
        _ => Class::Current,
    }
}

fn number(secret: &Secret, name: &str) -> Option<i64> {
    label(secret, name).parse().ok()
}

pub(super) fn has_data(secret: &Secret, key: &str) -> bool {
    let data = secret.data.as_ref();
    data.is_some_and(|data| data.contains_key(key))
}

/// Whether a Secret is an authority's.
pub(super) fn is_ca(secret: &Secret) -> bool {
    has_data(secret, data::CA_CERTIFICATE) && has_data(secret, data::CA_KEY)
}

/// Whether a Secret is to be renewed when a manager starts. Authorities are rotated by their owners only [CP-74].
pub(super) fn needs_renewal(secret: &Secret, now: i64) -> bool {
    let (Some(issued), Some(until)) = (number(secret, LABEL_ISSUED_AT), number(secret, LABEL_VALID_UNTIL)) else {
        return false;
    };
    let percentage = label(secret, LABEL_RENEW_AFTER).parse().ok();
    !is_ca(secret) && is_renewal_due(issued, until, percentage, now)
}

/// Whether a Secret is still good: one without an end always is.
pub(super) fn is_valid(secret: &Secret, now: i64) -> bool {
    number(secret, LABEL_VALID_UNTIL).is_none_or(|until| until > now)
}

/// The time of the rotation that made a Secret.
pub(super) fn rotation_of(secret: &Secret) -> Option<i64> {
    number(secret, LABEL_ROTATION)
}

/// What orders the generations of one configuration: rotation, then time of making, then name.
pub(super) fn generation(secret: &Secret) -> (Option<i64>, Option<i64>, Option<String>) {
    let created = secret.metadata.creation_timestamp.as_ref();
    let made = number(secret, LABEL_ISSUED_AT).or(created.map(|time| time.0.as_second()));
    (rotation_of(secret), made, secret.metadata.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600;

    #[test]
    fn cp_c9_renewal() {
        let table = [
            // Valid 365 days: 80 % is day 292.
            (365, None, 292 * DAY, false),
            (365, None, 292 * DAY + 1, true),
            // Valid 30 days: the last ten days begin on day 20, 80 % would be day 24.
            (30, None, 20 * DAY, false),
            (30, None, 20 * DAY + 1, true),
            (100, Some(50), 50 * DAY, false),
            (100, Some(50), 50 * DAY + 1, true),
        ];
        for (days, percentage, now, expected) in table {
            let due = is_renewal_due(0, days * DAY, percentage, now);
            assert_eq!(due, expected, "{days} days, {percentage:?} %, at {now}");
        }
    }

    #[test]
    fn cp_c10_servers_change_last() {
        let table = [
            (Usage::Server, true, Class::Old),
            (Usage::ServerAndClient, true, Class::Old),
            (Usage::Client, true, Class::Current),
            (Usage::Server, false, Class::Current),
            (Usage::Client, false, Class::Current),
        ];
        for (usage, old_is_kept, expected) in table {
            assert_eq!(signing_class(usage, old_is_kept), expected);
        }
    }
}
