//! What must hold of CronJobs: their schedules, time zones, and the jobs that they make.

use gardener_apimachinery::cron::Schedule;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::jiff::tz::TimeZone;
use serde_json::Value;

use super::validate_job;
use crate::kubernetes::checks::{is_true, nonnegative, one_of, spec_of, text};
use crate::kubernetes::workloads::selector_text;

/// Most characters of a part of a time zone's name.
const ZONE_PART_MAX: usize = 14;

/// What is wrong with a CronJob, new or changed.
pub(super) fn validate(object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = Vec::new();
    let none = Value::Null;
    let (spec, path) = (spec_of(object), Path::new("spec"));
    let old = old.map(spec_of);
    validate_schedule(spec, old, &path.child("schedule"), &mut errors);
    nonnegative(spec, "startingDeadlineSeconds", &path, &mut errors);
    let zone = spec.get("timeZone").and_then(Value::as_str);
    if let Some(zone) = zone.filter(|_| old.is_none_or(|old| old.get("timeZone") != spec.get("timeZone"))) {
        validate_zone(zone, &path.child("timeZone"), &mut errors);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    one_of(spec, "concurrencyPolicy", &policies, &path, &mut errors);
    let template = spec.at("/jobTemplate/spec").unwrap_or(&none);
    let at = path.child("jobTemplate").child("spec");
    validate_job(template, &at, &mut errors);
    if let Some(selector) = template.get("selector") {
        let why = "`selector` will be auto-generated";
        errors.push(Error::literal(&at.child("selector"), selector_text(selector), why));
    }
    if is_true(template, "manualSelector") {
        let at = at.child("manualSelector");
        errors.push(Error::not_supported(&at, true, &["nil", "false"]));
    }
    nonnegative(spec, "successfulJobsHistoryLimit", &path, &mut errors);
    nonnegative(spec, "failedJobsHistoryLimit", &path, &mut errors);
    errors
}

/// A zone in the schedule itself stays where it was before there was a field for it.
fn validate_schedule(spec: &Value, old: Option<&Value>, at: &Path, errors: &mut ErrorList) {
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        errors.push(Error::required(at, ""));
        return;
    }
    if let Err(why) = parse(schedule) {
        errors.push(Error::invalid(at, schedule, why));
    }
    let had_zone = old.is_some_and(|old| text(old, "schedule").contains("TZ"));
    if schedule.contains("TZ") {
        let has_field = spec.get("timeZone").is_some_and(|zone| !zone.is_null());
        let why = match (had_zone, has_field) {
            (true, false) => return,
            (true, true) => "cannot use both timeZone field and TZ or CRON_TZ in schedule",
            (false, _) => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        };
        errors.push(Error::invalid(at, schedule, why));
    }
}

/// Reads a schedule; what is wrong with it is told in the words of the library that Kubernetes uses.
fn parse(schedule: &str) -> Result<(), String> {
    let zoned = ["TZ=", "CRON_TZ="]
        .iter()
        .find_map(|prefix| schedule.strip_prefix(prefix));
    let plain = match zoned {
        None => schedule,
        Some(zoned) => {
            let Some((zone, rest)) = zoned.split_once(' ') else {
                return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned());
            };
            is_zone(zone).map_err(|why| format!("provided bad location {zone}: {why}"))?;
            rest.trim()
        }
    };
    match plain.strip_prefix("@every ") {
        Some(duration) => gardener_schema::formats::duration(duration)
            .map_err(|why| format!("failed to parse duration {plain}: {why}")),
        None => Schedule::parse(plain)
            .map(drop)
            .map_err(|error| newer_words(&error.to_string())),
    }
}

/// What the newer release of the library that Kubernetes uses says, for what the older one says that Gardener uses.
fn newer_words(text: &str) -> String {
    let mut words: String = text.chars().take(1).flat_map(char::to_lowercase).collect();
    words.extend(text.chars().skip(1));
    match words.split_once(": ") {
        Some((head, fields)) if head.starts_with("expected exactly") => {
            let fields: Vec<&str> = fields.split_whitespace().collect();
            format!("{head}: [{}]", fields.join(" "))
        }
        _ => words,
    }
}

/// Whether Go finds a zone.
fn is_zone(zone: &str) -> Result<(), String> {
    let is_path = zone.contains("..") || zone.starts_with('/') || zone.starts_with('\\');
    match zone {
        "" | "UTC" | "Local" => Ok(()),
        _ if is_path => Err("time: invalid location name".to_owned()),
        // names of files, of which case matters
        zone => match TimeZone::get(zone) {
            Ok(found) if found.iana_name() == Some(zone) => Ok(()),
            _ => Err(format!("unknown time zone {zone}")),
        },
    }
}

fn validate_zone(zone: &str, at: &Path, errors: &mut ErrorList) {
    if zone.is_empty() {
        errors.push(Error::invalid(at, zone, "timeZone must be nil or non-empty string"));
        return;
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    let is_part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= ZONE_PART_MAX
            && part.bytes().all(fits)
    };
    if !zone.split('/').all(is_part) {
        errors.push(Error::invalid(at, zone, format!("unknown time zone {zone}")));
        return;
    }
    if zone.eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(Error::invalid(at, zone, why));
    }
    if let Err(why) = is_zone(zone) {
        errors.push(Error::invalid(at, zone, why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schedules_and_zones() {
        for (old, schedule, zone, expected) in [
            (None, "*/5 * * * *", None, vec![]),
            (None, "@every 1h", Some("Europe/Berlin"), vec![]),
            (
                None,
                "TZ=UTC * * * * *",
                None,
                vec!["cannot use TZ or CRON_TZ in schedule, use timeZone field instead"],
            ),
            (Some("TZ=UTC 1 * * * *"), "TZ=UTC * * * * *", None, vec![]),
            (
                Some("TZ=UTC 1 * * * *"),
                "CRON_TZ=UTC * * * * *",
                Some("UTC"),
                vec!["cannot use both timeZone field and TZ or CRON_TZ in schedule"],
            ),
            (
                None,
                "TZ=Odd x",
                None,
                vec![
                    "provided bad location Odd: unknown time zone Odd",
                    "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
                ],
            ),
            (
                None,
                "@every 1x",
                None,
                vec!["failed to parse duration @every 1x: time: unknown unit \"x\" in duration \"1x\""],
            ),
            (None, "* * * * *", Some("a b"), vec!["unknown time zone a b"]),
            (
                None,
                "* * * * *",
                Some("europe/berlin"),
                vec!["unknown time zone europe/berlin"],
            ),
            (
                None,
                "* * * * *",
                Some("Europe/Nowhere"),
                vec!["unknown time zone Europe/Nowhere"],
            ),
        ] {
            let (spec, mut errors) = (json!({"schedule": schedule, "timeZone": zone}), Vec::new());
            let old = old.map(|schedule| json!({"schedule": schedule}));
            let at = Path::new("at");
            validate_schedule(&spec, old.as_ref(), &at, &mut errors);
            if let Some(zone) = zone {
                validate_zone(zone, &at, &mut errors);
            }
            let found: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
            assert_eq!(found, expected, "{schedule} {zone:?}");
        }
    }
}
