//! Condition lists of Gardener's objects [ST-20..24]. Not the semantics of one condition.

use gardener_apis::core::v1beta1::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// The reason of a condition that was never checked [ST-20].
pub const INITIALIZED: &str = "ConditionInitialized";
const INITIALIZED_MESSAGE: &str =
    "The condition has been initialized but its semantic check has not been performed yet.";
/// The reason of a condition whose check failed [ST-22].
pub const CHECK_ERROR: &str = "ConditionCheckError";

/// `status` values of a condition [ST-2].
pub mod status {
    /// It holds.
    pub const TRUE: &str = "True";
    /// It does not hold.
    pub const FALSE: &str = "False";
    /// It is not known whether it holds.
    pub const UNKNOWN: &str = "Unknown";
    /// It does not hold, but may do so soon.
    pub const PROGRESSING: &str = "Progressing";
}

/// The condition of a type.
pub fn get<'a>(conditions: &'a [Condition], r#type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.r#type == r#type)
}

/// A condition that was never checked [ST-20].
pub fn init(r#type: &str, now: &Time) -> Condition {
    Condition {
        r#type: r#type.to_owned(),
        status: status::UNKNOWN.to_owned(),
        reason: INITIALIZED.to_owned(),
        message: INITIALIZED_MESSAGE.to_owned(),
        last_transition_time: Some(now.clone()),
        last_update_time: Some(now.clone()),
        codes: Vec::new(),
    }
}

/// The condition of a type, or a fresh one [ST-20].
pub fn get_or_init(conditions: &[Condition], r#type: &str, now: &Time) -> Condition {
    get(conditions, r#type).cloned().unwrap_or_else(|| init(r#type, now))
}

/// What a check says about a condition. What is not given stays, except codes [ST-21].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update<'a> {
    /// The status; none keeps the old one.
    pub status: Option<&'a str>,
    /// The reason; none keeps the old one, the empty one becomes `Unspecified`.
    pub reason: Option<&'a str>,
    /// The message; none keeps the old one, the empty one becomes `No message given.`.
    pub message: Option<&'a str>,
    /// The error codes; they replace the old ones.
    pub codes: &'a [&'a str],
}

fn chosen(given: Option<&str>, when_empty: &str, old: &str, when_none: &str) -> String {
    match given {
        Some("") => when_empty,
        Some(given) => given,
        None if old.is_empty() => when_none,
        None => old,
    }
    .to_owned()
}

fn is_zero(time: &Option<Time>) -> bool {
    time.as_ref().is_none_or(|time| time.0 == Timestamp::UNIX_EPOCH)
}

/// The condition after an update [ST-21]: the transition time moves with the status, the update time with anything else.
pub fn updated(old: &Condition, update: &Update<'_>, now: &Time) -> Condition {
    let mut new = old.clone();
    new.status = chosen(update.status, status::UNKNOWN, &old.status, status::UNKNOWN);
    new.reason = chosen(update.reason, "Unspecified", &old.reason, INITIALIZED);
    new.message = chosen(update.message, "No message given.", &old.message, INITIALIZED_MESSAGE);
    new.codes = update.codes.iter().map(|code| (*code).to_owned()).collect();
    if new.status != old.status || is_zero(&old.last_transition_time) {
        new.last_transition_time = Some(now.clone());
    }
    let told = (&new.reason, &new.message, &new.codes) != (&old.reason, &old.message, &old.codes);
    if told || is_zero(&old.last_update_time) {
        new.last_update_time = Some(now.clone());
    }
    new
}

/// The condition after a check: status, reason and message, no codes [ST-21].
pub fn with(old: &Condition, status: &str, reason: &str, message: &str, now: &Time) -> Condition {
    let update = Update {
        status: Some(status),
        reason: Some(reason),
        message: Some(message),
        codes: &[],
    };
    updated(old, &update, now)
}

/// The condition after a check that failed [ST-22].
pub fn unknown_error(old: &Condition, error: &str, now: &Time) -> Condition {
    let message = if error.is_empty() { "unknown" } else { error };
    with(old, status::UNKNOWN, CHECK_ERROR, message, now)
}

/// `list` with the conditions in `news` replaced in place, and unknown types at the end in the given order [ST-23].
pub fn merge(mut list: Vec<Condition>, news: impl IntoIterator<Item = Condition>) -> Vec<Condition> {
    for new in news {
        match list.iter_mut().find(|old| old.r#type == new.r#type) {
            Some(old) => *old = new,
            None => list.push(new),
        }
    }
    list
}

/// `list` without all of `types`, then `news` merged: the foreign conditions come first [ST-23].
pub fn build(mut list: Vec<Condition>, news: impl IntoIterator<Item = Condition>, types: &[&str]) -> Vec<Condition> {
    list.retain(|condition| !types.contains(&condition.r#type.as_str()));
    merge(list, news)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn seconds(condition: &Condition) -> (i64, i64) {
        let second = |time: &Option<Time>| time.as_ref().unwrap().0.as_second();
        (
            second(&condition.last_transition_time),
            second(&condition.last_update_time),
        )
    }

    #[test]
    fn st_20_init() {
        let fresh = get_or_init(&[], "APIServerAvailable", &at(5));
        assert_eq!(
            (fresh.status.as_str(), fresh.reason.as_str()),
            ("Unknown", "ConditionInitialized")
        );
        assert_eq!(seconds(&fresh), (5, 5));
        let known = vec![with(&fresh, "True", "R", "m", &at(6))];
        assert_eq!(get_or_init(&known, "APIServerAvailable", &at(9)), known[0]);
    }

    #[test]
    fn st_21_times_move_with_status_or_with_the_rest() {
        let old = with(&init("T", &at(1)), "True", "R", "m", &at(2));
        assert_eq!(seconds(&old), (2, 2));
        let update = |status, reason, message, codes| Update {
            status: Some(status),
            reason: Some(reason),
            message: Some(message),
            codes,
        };
        let table: [(Update<'_>, (i64, i64)); 6] = [
            (update("True", "R", "m", &[]), (2, 2)),
            (update("False", "R", "m", &[]), (9, 2)),
            (update("True", "S", "m", &[]), (2, 9)),
            (update("True", "R", "n", &[]), (2, 9)),
            (update("True", "R", "m", &["ERR_X"]), (2, 9)),
            (update("False", "S", "m", &[]), (9, 9)),
        ];
        for (update, expected) in table {
            assert_eq!(seconds(&updated(&old, &update, &at(9))), expected, "{update:?}");
        }
    }

    #[test]
    fn st_21_what_is_not_given_stays_and_codes_are_replaced() {
        let mut old = with(&init("T", &at(1)), "False", "R", "m", &at(1));
        old.codes = vec!["ERR_X".into()];
        let kept = updated(&old, &Update::default(), &at(2));
        assert_eq!((&*kept.status, &*kept.reason, &*kept.message), ("False", "R", "m"));
        assert!(kept.codes.is_empty());
        let empty = with(&old, "True", "", "", &at(2));
        assert_eq!((&*empty.reason, &*empty.message), ("Unspecified", "No message given."));
        let blank = updated(&Condition::default(), &Update::default(), &at(3));
        assert_eq!((&*blank.status, &*blank.reason), ("Unknown", INITIALIZED));
        assert_eq!(seconds(&blank), (3, 3));
    }

    #[test]
    fn st_22_unknown_error() {
        let old = init("T", &at(1));
        let failed = unknown_error(&old, "no connection", &at(2));
        assert_eq!(
            (&*failed.status, &*failed.reason, &*failed.message),
            ("Unknown", CHECK_ERROR, "no connection")
        );
        assert_eq!(unknown_error(&old, "", &at(2)).message, "unknown");
    }

    #[test]
    fn st_23_merge_and_build_keep_the_order() {
        let list = |types: &[&str]| -> Vec<Condition> { types.iter().map(|one| init(one, &at(1))).collect() };
        let types = |list: Vec<Condition>| -> Vec<String> { list.into_iter().map(|one| one.r#type).collect() };
        let merged = merge(list(&["a", "foreign", "b"]), list(&["b", "c", "a"]));
        assert_eq!(types(merged), ["a", "foreign", "b", "c"]);
        let built = build(list(&["a", "foreign", "b"]), list(&["b", "a"]), &["a", "b"]);
        assert_eq!(types(built), ["foreign", "b", "a"]);
    }
}
