//! Gardener's error codes and what they mean for retries [EXT-5], [ST-144]. Not how a text leads to a code.

/// The provider does not know who asks.
pub const INFRA_UNAUTHENTICATED: &str = "ERR_INFRA_UNAUTHENTICATED";
/// The provider does not allow it.
pub const INFRA_UNAUTHORIZED: &str = "ERR_INFRA_UNAUTHORIZED";
/// A quota is used up.
pub const INFRA_QUOTA_EXCEEDED: &str = "ERR_INFRA_QUOTA_EXCEEDED";
/// The provider was asked too often.
pub const INFRA_RATE_LIMITS_EXCEEDED: &str = "ERR_INFRA_RATE_LIMITS_EXCEEDED";
/// Something at the provider that others own is in the way.
pub const INFRA_DEPENDENCIES: &str = "ERR_INFRA_DEPENDENCIES";
/// As [`INFRA_DEPENDENCIES`], but it may pass.
pub const RETRYABLE_INFRA_DEPENDENCIES: &str = "ERR_RETRYABLE_INFRA_DEPENDENCIES";
/// The provider has no capacity left.
pub const INFRA_RESOURCES_DEPLETED: &str = "ERR_INFRA_RESOURCES_DEPLETED";
/// Objects in the cluster do not go away.
pub const CLEANUP_CLUSTER_RESOURCES: &str = "ERR_CLEANUP_CLUSTER_RESOURCES";
/// The user's configuration is wrong.
pub const CONFIGURATION_PROBLEM: &str = "ERR_CONFIGURATION_PROBLEM";
/// As [`CONFIGURATION_PROBLEM`], but it may pass.
pub const RETRYABLE_CONFIGURATION_PROBLEM: &str = "ERR_RETRYABLE_CONFIGURATION_PROBLEM";
/// A webhook of the user is in the way.
pub const PROBLEMATIC_WEBHOOK: &str = "ERR_PROBLEMATIC_WEBHOOK";

/// What a code means [ST-144].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The wire value.
    pub code: &'static str,
    /// Whether a retry can help; if not, the operation is `Failed` at once.
    pub retryable: bool,
    /// Whether the user has to act.
    pub user_error: bool,
    /// Whether a cluster with this error may be deleted by force.
    pub allows_force_deletion: bool,
}

const fn meaning(code: &'static str, retryable: bool, user_error: bool, allows_force_deletion: bool) -> Meaning {
    Meaning {
        code,
        retryable,
        user_error,
        allows_force_deletion,
    }
}

/// All known codes [ST-5], [ST-144].
pub const ALL: [Meaning; 11] = [
    meaning(INFRA_UNAUTHENTICATED, false, true, true),
    meaning(INFRA_UNAUTHORIZED, false, true, true),
    meaning(INFRA_QUOTA_EXCEEDED, false, true, false),
    meaning(INFRA_RATE_LIMITS_EXCEEDED, false, false, false),
    meaning(INFRA_DEPENDENCIES, false, true, true),
    meaning(RETRYABLE_INFRA_DEPENDENCIES, true, false, false),
    meaning(INFRA_RESOURCES_DEPLETED, true, true, false),
    meaning(CLEANUP_CLUSTER_RESOURCES, true, true, true),
    meaning(CONFIGURATION_PROBLEM, false, true, true),
    meaning(RETRYABLE_CONFIGURATION_PROBLEM, true, true, false),
    meaning(PROBLEMATIC_WEBHOOK, false, true, false),
];

/// What a code means; none for codes nobody defined.
pub fn meaning_of(code: &str) -> Option<&'static Meaning> {
    ALL.iter().find(|meaning| meaning.code == code)
}

/// Whether one of the codes forbids a retry: then the operation is `Failed` [CP-17], [ST-134]. Unknown codes do not.
pub fn has_non_retryable<'a>(codes: impl IntoIterator<Item = &'a str>) -> bool {
    codes
        .into_iter()
        .filter_map(meaning_of)
        .any(|meaning| !meaning.retryable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ext_5_one_code_that_is_not_retryable_is_enough() {
        let table: [(&[&str], bool); 6] = [
            (&[], false),
            (&[CLEANUP_CLUSTER_RESOURCES, INFRA_RESOURCES_DEPLETED], false),
            (&[RETRYABLE_CONFIGURATION_PROBLEM, CONFIGURATION_PROBLEM], true),
            (&[RETRYABLE_INFRA_DEPENDENCIES], false),
            (&["ERR_SOMETHING_NEW"], false),
            (&[INFRA_RATE_LIMITS_EXCEEDED], true),
        ];
        for (codes, expected) in table {
            assert_eq!(has_non_retryable(codes.iter().copied()), expected, "{codes:?}");
        }
    }
}
