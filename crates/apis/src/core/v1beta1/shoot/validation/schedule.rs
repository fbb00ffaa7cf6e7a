//! Maintenance and hibernation, [VAL-M1] – [VAL-M3], [VAL-H1], [VAL-H2].

use gardener_apimachinery::cron::{ZonedSchedule, location};
use gardener_apimachinery::field::{Error, ErrorList, Path, go_time_quote};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::tz::TimeZone;

use super::super::{MaintenanceTimeWindow, ShootSpec, split_operations};
use super::{MAINTENANCE_OPERATION, operations, workerless};
use crate::Duration;
use crate::validation::{go_json, go_members};

const DAY: i64 = 24 * 3600;
const NANOSECONDS: i64 = 1_000_000_000;

/// The second of the day in UTC that a text of the form `HHMMSS±hhmm` names [UPD-40].
///
/// # Errors
/// Why the text is no time of day with offset, as Go's `time.Parse` says it for the layout `150405-0700`.
pub fn maintenance_time(text: &str) -> Result<i64, String> {
    let fail = |rest: &str, part: &str| {
        format!(
            "parsing time {} as \"150405-0700\": cannot parse {} as {}",
            go_time_quote(text),
            go_time_quote(rest),
            go_time_quote(part)
        )
    };
    let range = |what: &str| format!("parsing time {}: {what} out of range", go_time_quote(text));
    let digit = |text: &str, at: usize| {
        text.as_bytes()
            .get(at)
            .filter(|b| b.is_ascii_digit())
            .map(|b| i64::from(b - b'0'))
    };
    let two = |text: &str| Some(digit(text, 0)? * 10 + digit(text, 1)?);
    let (hour, rest) = match (digit(text, 0), digit(text, 1)) {
        (Some(tens), Some(ones)) => (tens * 10 + ones, text.get(2..).unwrap_or_default()),
        (Some(one), None) => (one, text.get(1..).unwrap_or_default()),
        _ => return Err(fail(text, "15")),
    };
    if hour > 23 {
        return Err(range("hour"));
    }
    let minute = two(rest).ok_or_else(|| fail(rest, "04"))?;
    if minute > 59 {
        return Err(range("minute"));
    }
    let rest = rest.get(2..).unwrap_or_default();
    let second = two(rest).ok_or_else(|| fail(rest, "05"))?;
    if second > 59 {
        return Err(range("second"));
    }
    let rest = rest.get(2..).unwrap_or_default();
    let sign = match rest.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Err(fail(rest, "-0700")),
    };
    let digits = rest.get(1..).unwrap_or_default();
    let offset = two(digits)
        .zip(digits.get(2..).and_then(two))
        .ok_or_else(|| fail(rest, "-0700"))?;
    if offset.0 > 24 {
        return Err(range("time zone offset hour"));
    }
    if offset.1 > 59 {
        return Err(range("time zone offset minute"));
    }
    let extra = rest.get(5..).unwrap_or_default();
    if !extra.is_empty() {
        return Err(format!(
            "parsing time {}: extra text: {}",
            go_time_quote(text),
            go_time_quote(extra)
        ));
    }
    let local = (hour * 60 + minute) * 60 + second;
    Ok((local - sign * (offset.0 * 60 + offset.1) * 60).rem_euclid(DAY))
}

/// [VAL-M1], [VAL-M2]: the window parses and is between half an hour and six hours long.
fn time_window(window: &MaintenanceTimeWindow, path: &Path) -> Option<Error> {
    let value = || go_members(&[("Begin", go_json(&window.begin)), ("End", go_json(&window.end))]);
    let parsed = |which: &str, text: &str| {
        maintenance_time(text).map_err(|why| {
            Error::literal(
                &path.child("begin/end"),
                value(),
                format!(
                    "could not parse {which} time: could not parse the value into the maintenanceTime format: {why}"
                ),
            )
        })
    };
    let (begin, end) = match parsed("begin", &window.begin).and_then(|begin| Ok((begin, parsed("end", &window.end)?))) {
        Ok(both) => both,
        Err(error) => return Some(error),
    };
    let length = match (end - begin).rem_euclid(DAY) {
        0 => DAY,
        length => length,
    };
    if length > 6 * 3600 {
        return Some(Error::invalid(
            path,
            length * NANOSECONDS,
            "time window must not be greater than 6h0m0s",
        ));
    }
    if length < 1800 {
        return Some(Error::invalid(
            path,
            length * NANOSECONDS,
            "time window must not be smaller than 30m0s",
        ));
    }
    None
}

/// `spec.maintenance`.
pub(super) fn maintenance(spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(maintenance) = &spec.maintenance else {
        return errors;
    };
    if spec.is_workerless() {
        errors.extend(workerless::maintenance(spec, path));
    }
    let rotation = maintenance.auto_rotation.as_ref();
    if let Some(credentials) = rotation.and_then(|rotation| rotation.credentials.as_ref()) {
        let path = path.child("autoRotation.credentials");
        for (name, config) in [
            ("observability", &credentials.observability),
            ("sshKeypair", &credentials.ssh_keypair),
            ("etcdEncryptionKey", &credentials.etcd_encryption_key),
        ] {
            let Some(config) = config else { continue };
            let at = path.child(name);
            if name == "sshKeypair" && spec.is_workerless() {
                errors.push(Error::forbidden(&at, workerless::NOT_SUPPORTED));
            } else if let Some(period) = config.rotation_period {
                errors.extend(rotation_period(period, &at.child("rotationPeriod")));
            }
        }
    }
    if let Some(window) = &maintenance.time_window {
        errors.extend(time_window(window, &path.child("timeWindow")));
    }
    errors
}

fn rotation_period(period: Duration, path: &Path) -> Option<Error> {
    let seconds = period.as_secs_f64();
    let fits = seconds == 0.0 || (1800.0..=90.0 * 86400.0).contains(&seconds);
    let why = "value must be either 0 to disable rotation or between 30m and 90d";
    (!fits).then(|| Error::invalid(path, period.to_string(), why))
}

/// `spec.hibernation`.
pub(super) fn hibernation(meta: &ObjectMeta, spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(hibernation) = &spec.hibernation else {
        return errors;
    };
    if spec.is_self_hosted() {
        errors.push(Error::forbidden(
            path,
            "hibernation is not supported for self-hosted shoots",
        ));
        return errors;
    }
    if hibernation.enabled == Some(true) {
        let pending = meta.annotations.as_ref().and_then(|all| all.get(MAINTENANCE_OPERATION));
        for operation in split_operations(pending.map_or("", String::as_str)) {
            if operations::forbidden_in_hibernation(operation) && !operations::is_rollout(operation) {
                errors.push(Error::forbidden(
                    &path.child("enabled"),
                    format!(
                        "shoot cannot be hibernated when {MAINTENANCE_OPERATION} annotation contains {operation} operation"
                    ),
                ));
            }
        }
    }
    let mut seen: Vec<&str> = Vec::new();
    for (i, schedule) in hibernation.schedules.iter().enumerate() {
        let path = path.child("schedules").index(i);
        if schedule.start.is_none() && schedule.end.is_none() {
            errors.push(Error::required(
                &path.child("start/end"),
                "either start or end has to be provided",
            ));
        }
        for (name, text) in [("start", &schedule.start), ("end", &schedule.end)] {
            let Some(text) = text.as_deref() else { continue };
            match ZonedSchedule::parse(text, &TimeZone::UTC) {
                Err(why) => errors.push(Error::invalid(
                    &path.child(name),
                    text,
                    format!("not a valid cron spec: {why}"),
                )),
                Ok(_) if seen.contains(&text) => errors.push(Error::duplicate(&path.child(name), text)),
                Ok(_) => seen.push(text),
            }
        }
        if let Some(name) = schedule.location.as_deref()
            && let Err(why) = location(name)
        {
            errors.push(Error::invalid(
                &path.child("location"),
                name,
                format!("not a valid location: {why}"),
            ));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_m1_times_parse_as_in_go() {
        assert_eq!(maintenance_time("220000+0100"), Ok(21 * 3600));
        assert_eq!(maintenance_time("003000+0100"), Ok(23 * 3600 + 1800));
        for (text, expected) in [
            (
                "1 pm",
                "parsing time \"1 pm\" as \"150405-0700\": cannot parse \" pm\" as \"04\"",
            ),
            ("", "parsing time \"\" as \"150405-0700\": cannot parse \"\" as \"15\""),
            ("250000+0000", "parsing time \"250000+0000\": hour out of range"),
            ("226000+0000", "parsing time \"226000+0000\": minute out of range"),
            (
                "220000",
                "parsing time \"220000\" as \"150405-0700\": cannot parse \"\" as \"-0700\"",
            ),
            (
                "220000+00",
                "parsing time \"220000+00\" as \"150405-0700\": cannot parse \"+00\" as \"-0700\"",
            ),
            ("220000+0000x", "parsing time \"220000+0000x\": extra text: \"x\""),
        ] {
            assert_eq!(maintenance_time(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn val_m2_window_length() {
        let check = |begin: &str, end: &str| {
            time_window(
                &MaintenanceTimeWindow {
                    begin: begin.into(),
                    end: end.into(),
                },
                &Path::new("w"),
            )
            .map(|error| error.to_string())
        };
        assert_eq!(check("220000+0100", "230000+0100"), None);
        assert_eq!(check("233000+0000", "010000+0000"), None);
        assert!(
            check("220000+0000", "220000+0000")
                .unwrap()
                .contains("greater than 6h0m0s")
        );
        assert!(
            check("220000+0000", "221000+0000")
                .unwrap()
                .contains("smaller than 30m0s")
        );
    }
}
