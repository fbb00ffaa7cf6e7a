//! Jobs, CronJobs and disruption budgets.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value, json};

use super::checks::{
    is_true, keep, keep_node_affinity, label_selector, list, nonnegative, number, one_of_if_set, spec_of, text,
};
use super::pods::warnings;
use super::strategy::Kind;
use super::workloads::{amount_or_share, at_most_all, counts, selector_text, selects, set_status, validate_template};
use super::{internal, networking};
use crate::meta;
use crate::selectable::Selectable;

mod cron;
mod indexes;
mod policies;
mod status;

const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
/// The longest name of a CronJob: its jobs' names have eleven characters more.
const CRON_NAME_MAX: usize = 52;

/// What to warn of in the spec of a job.
fn warn(spec: &Value, path: &Path, found: &mut Vec<String>) {
    const MANY_COMPLETIONS: i64 = 100_000;
    const MANY_AT_ONCE: i64 = 10_000;
    let count = |key: &str| number(spec, key).unwrap_or(0);
    let is_large = count("completions") > MANY_COMPLETIONS && count("parallelism") > MANY_AT_ONCE;
    if text(spec, "completionMode") == "Indexed" && is_large {
        found.push(format!("{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"));
    }
    warnings::of_template(spec.get("template"), &path.child("template"), found);
}

pub(super) fn jobs(mut kind: Kind) -> Kind {
    kind.warnings = |job, old| {
        let mut found = Vec::new();
        if old.is_none() {
            warnings::of_name(job, "Pod names and hostnames", &mut found);
        }
        if old.is_none_or(|old| spec_of(old) != spec_of(job)) {
            warn(spec_of(job), &Path::new("spec"), &mut found);
        }
        found
    };
    kind.prepare_create = |_, job| {
        set_status(job, json!({}));
        if !is_true(job.get("spec").unwrap_or(&Value::Null), "manualSelector") {
            select_by_uid(job);
        }
        Ok(())
    };
    kind.validate = |job| {
        let mut errors = Vec::new();
        let spec = job.get("spec").unwrap_or(&Value::Null);
        validate_generated(job, spec, &mut errors);
        validate_job(spec, &Path::new("spec"), &mut errors);
        validate_selector(spec, &mut errors);
        validate_host_names(job, &mut errors);
        errors
    };
    kind.validate_update = validate_update;
    kind.whole_first = true;
    kind.validate_status = status::validate;
    kind.canonicalize = take_labels;
    kind.prepare_status = |_, job, _| take_labels(job);
    kind.fields = const { &[Selectable::number("status.successful", "/status/succeeded")] };
    kind
}

/// The labels that a job's pods get, in the order in which they are judged.
fn generated_labels<'v>(uid: &'v str, name: &'v str) -> [(&'static str, &'v str); 4] {
    [
        ("controller-uid", uid),
        ("job-name", name),
        (UID_LABEL, uid),
        ("batch.kubernetes.io/job-name", name),
    ]
}

/// Gives a job's pods labels of their own, and selects by them. What who wrote the job says of them stays, and is refused if it is something else.
fn select_by_uid(job: &mut Value) {
    let (uid, name) = (meta::text(job, "/metadata/uid").to_owned(), meta::name(job).to_owned());
    let labels = generated_labels(&uid, &name);
    // labels that a job took from its template are the template's: what it gets, the job gets, too
    let own = job.at("/metadata/labels").and_then(Value::as_object);
    let of_template = job.at("/spec/template/metadata/labels").and_then(Value::as_object);
    let shares_labels = own.is_some_and(|own| !own.is_empty()) && own == of_template;
    if let Some(spec) = job.get_mut("spec").and_then(Value::as_object_mut) {
        let selector = spec.entry("selector").or_insert_with(|| json!({}));
        if let Some(selector) = selector.as_object_mut() {
            let own = selector.entry("matchLabels").or_insert_with(|| json!({}));
            if let Some(own) = own.as_object_mut() {
                own.entry(UID_LABEL).or_insert_with(|| uid.as_str().into());
            }
        }
        let template = spec.entry("template").or_insert_with(|| json!({}));
        if template.is_object() {
            let own = meta::metadata_mut(template)
                .entry("labels")
                .or_insert_with(|| json!({}));
            if let Some(own) = own.as_object_mut() {
                for (key, value) in labels {
                    own.entry(key).or_insert_with(|| value.into());
                }
            }
        }
    }
    if shares_labels {
        let of_template = job.at("/spec/template/metadata/labels").cloned();
        meta::set(job, "labels", of_template);
    }
}

/// A job without labels takes its template's, also those that the template got here. As upstream, that comes last: as the job's they are not judged.
fn take_labels(job: &mut Value) {
    let own = job.at("/metadata/labels").and_then(Value::as_object);
    if own.is_none_or(Map::is_empty) {
        let of_template = job.at("/spec/template/metadata/labels").cloned();
        meta::set(job, "labels", of_template);
    }
}

/// Most pods at a time, and most failed indexes, of an indexed job.
const MAX_INDEXED: i64 = 100_000;
/// From how many completions on fewer may run and fail.
const MANY_COMPLETIONS: i64 = 100_000;
/// Most pods and failed indexes of a job with that many.
const MAX_OF_MANY: i64 = 10_000;

/// Longest name of who manages a job instead of Kubernetes' controller.
const MAX_MANAGER: usize = 63;

/// What a job must have, also one that a CronJob makes.
fn validate_job(spec: &Value, path: &Path, errors: &mut ErrorList) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        nonnegative(spec, key, path, errors);
    }
    if let Some(by) = spec.get("managedBy").and_then(Value::as_str) {
        networking::domain_prefixed(by, &path.child("managedBy"), errors);
        if by.len() > MAX_MANAGER {
            errors.push(Error::too_long(&path.child("managedBy"), MAX_MANAGER));
        }
    }
    validate_indexes(spec, path, errors);
    policies::validate(spec, path, errors);
    let place = path.child("template");
    let template = spec.get("template").unwrap_or(&Value::Null);
    validate_template(template, &place, errors);
    let at = place.child("spec").child("restartPolicy");
    match template
        .at("/spec/restartPolicy")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "OnFailure" if spec.get("podFailurePolicy").is_some() => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(Error::invalid(&at, "OnFailure", why));
        }
        "OnFailure" | "Never" => {}
        "" | "Always" => errors.push(Error::required(&at, "valid values: \"OnFailure\", \"Never\"")),
        other => errors.push(Error::not_supported(&at, other, &["OnFailure", "Never"])),
    }
}

/// Pods of an indexed job have the job's name and their index as the names of their hosts.
fn validate_host_names(job: &Value, errors: &mut ErrorList) {
    let spec = spec_of(job);
    let count = number(spec, "completions").filter(|count| *count > 0 && text(spec, "completionMode") == "Indexed");
    let Some(count) = count else { return };
    let (name, longest) = (meta::name(job), format!("{}-{}", meta::name(job), count - 1));
    if !meta::dns1123_label(&longest).is_empty() {
        let why = format!("will not able to create pod with invalid DNS label: {longest}");
        errors.push(Error::invalid(&Path::new("metadata").child("name"), name, why));
    }
}

/// What completion modes allow, and how many indexes may be.
fn validate_indexes(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let count = |key: &str| number(spec, key);
    let (failed, per_index) = (count("maxFailedIndexes"), count("backoffLimitPerIndex"));
    if failed.is_some() && per_index.is_none() {
        let why = "when maxFailedIndexes is specified";
        errors.push(Error::required(&path.child("backoffLimitPerIndex"), why));
    }
    one_of_if_set(spec, "completionMode", &["NonIndexed", "Indexed"], path, errors);
    let at_most = |key: &str, limit: i64, why: String, errors: &mut ErrorList| {
        if let Some(own) = count(key).filter(|own| *own > limit) {
            errors.push(Error::invalid(&path.child(key), own, why));
        }
    };
    // an empty mode, which is refused, is neither
    match spec
        .get("completionMode")
        .and_then(Value::as_str)
        .unwrap_or("NonIndexed")
    {
        "Indexed" => {
            let completions = count("completions");
            if completions.is_none() {
                let why = "when completion mode is Indexed";
                errors.push(Error::required(&path.child("completions"), why));
            }
            let why = format!("must be less than or equal to {MAX_INDEXED} when completion mode is Indexed");
            at_most("parallelism", MAX_INDEXED, why, errors);
            if let Some(completions) = completions {
                let why = "must be less than or equal to completions".to_owned();
                at_most("maxFailedIndexes", completions, why, errors);
            }
            let why = format!("must be less than or equal to {MAX_INDEXED}");
            at_most("maxFailedIndexes", MAX_INDEXED, why, errors);
            if completions.is_some_and(|own| own > MANY_COMPLETIONS) && per_index.is_some() {
                if failed.is_none() {
                    let why = format!("must be specified when completions is above {MANY_COMPLETIONS}");
                    errors.push(Error::required(&path.child("maxFailedIndexes"), why));
                }
                for key in ["parallelism", "maxFailedIndexes"] {
                    let why = format!(
                        "must be less than or equal to {MAX_OF_MANY} when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
                    );
                    at_most(key, MAX_OF_MANY, why, errors);
                }
            }
        }
        "NonIndexed" => {
            for (key, own) in [("backoffLimitPerIndex", per_index), ("maxFailedIndexes", failed)] {
                if let Some(own) = own {
                    errors.push(Error::invalid(
                        &path.child(key),
                        own,
                        "requires indexed completion mode",
                    ));
                }
            }
        }
        _ => {}
    }
}

/// A selector must select the pods that are made from the template.
fn validate_selector(spec: &Value, errors: &mut ErrorList) {
    let path = Path::new("spec");
    let selector = spec.get("selector").unwrap_or(&Value::Null);
    if selector.is_null() {
        errors.push(Error::required(&path.child("selector"), ""));
    } else {
        label_selector(selector, &path.child("selector"), errors);
    }
    let labels = spec.at("/template/metadata/labels").unwrap_or(&Value::Null);
    if selector.is_null() || selects(selector, labels) == Some(false) {
        let at = path.child("template").child("metadata").child("labels");
        let why = "`selector` does not match template `labels`";
        errors.push(Error::invalid(&at, labels.clone(), why));
    }
}

/// A selector that the server makes must be the one that it made.
fn validate_generated(job: &Value, spec: &Value, errors: &mut ErrorList) {
    let Some(selector) = spec.get("selector").filter(|_| !is_true(spec, "manualSelector")) else {
        return;
    };
    let labels = spec.at("/template/metadata/labels").unwrap_or(&Value::Null);
    let at = Path::new("spec").child("template").child("metadata").child("labels");
    let expected = generated_labels(meta::text(job, "/metadata/uid"), meta::name(job));
    for (key, value) in expected {
        let why = format!("must be '{value}'");
        match labels.get(key) {
            None => errors.push(Error::required(&at.key(key), why)),
            Some(own) if own != value => errors.push(Error::invalid(&at.key(key), labels.clone(), why)),
            Some(_) => {}
        }
    }
    let expected: Map<String, Value> = expected
        .map(|(key, value)| (key.to_owned(), value.into()))
        .into_iter()
        .collect();
    if selects(selector, &expected.into()) == Some(false) {
        let why = "`selector` not auto-generated";
        errors.push(Error::literal(
            &Path::new("spec").child("selector"),
            selector_text(selector),
            why,
        ));
    }
}

fn validate_update(job: &Value, old: &Value) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = Vec::new();
    // upstream judges the spec once for the job, and once more for the change
    validate_job(spec_of(job), &path, &mut errors);
    validate_selector(spec_of(job), &mut errors);
    let member = |job: &Value, key: &str| job.get("spec").and_then(|spec| spec.get(key)).cloned();
    let immutable = |key: &str, errors: &mut ErrorList| {
        if member(job, key) != member(old, key) {
            let value = member(job, key).unwrap_or(Value::Null);
            let why = "field is immutable";
            let of = match key {
                "podFailurePolicy" => "*batch.PodFailurePolicy",
                "successPolicy" => "*batch.SuccessPolicy",
                _ => "",
            };
            errors.push(match of {
                "" => Error::invalid(&path.child(key), value, why),
                of => Error::literal(&path.child(key), internal::text(of, &value), why),
            });
        }
    };
    if member(job, "completionMode") == Some("Indexed".into()) {
        let new = member(job, "completions");
        if new != member(old, "completions") && new != member(job, "parallelism") {
            let why = "can only be modified in tandem with spec.parallelism";
            let value = new.unwrap_or(Value::Null);
            errors.push(Error::invalid(&path.child("completions"), value, why));
        }
    } else {
        immutable("completions", &mut errors);
    }
    if member(job, "selector") != member(old, "selector") {
        let shown = selector_text(&member(job, "selector").unwrap_or(Value::Null));
        errors.push(Error::literal(&path.child("selector"), shown, "field is immutable"));
    }
    errors.extend(template_changed(spec_of(job), old, &path));
    for key in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        immutable(key, &mut errors);
    }
    errors
}

/// What of a template may not change: all, but while a job waits it may still be decided where its pods run, and with which resources.
fn template_changed(spec: &Value, old: &Value, path: &Path) -> Option<Error> {
    let none = Value::Null;
    let new = spec.get("template").unwrap_or(&none);
    let mut fixed = spec_of(old).get("template").cloned().unwrap_or(Value::Null);
    let status = old.get("status").unwrap_or(&none);
    let is_suspended = |own: &Value| text(own, "type") == "Suspended" && text(own, "status") == "True";
    let is_waiting = is_true(spec_of(old), "suspend")
        && (status.get("startTime").is_none() || list(status, "conditions").iter().any(is_suspended))
        && number(status, "active").unwrap_or(0) == 0;
    if !is_waiting {
        let shown = || internal::text("core.PodTemplateSpec", new);
        return (fixed != *new).then(|| Error::literal(&path.child("template"), shown(), "field is immutable"));
    }
    let (new, fixed) = (new.get("spec").unwrap_or(&none), fixed.get_mut("spec")?);
    let affinity = new.get("affinity").unwrap_or(&none);
    if let Some(members) = fixed.as_object_mut() {
        for key in ["nodeSelector", "tolerations", "schedulingGates"] {
            keep(Some(&mut *members), new, key);
        }
        keep_node_affinity(members, affinity);
    }
    for key in ["containers", "initContainers"] {
        let containers = fixed.get_mut(key).and_then(Value::as_array_mut);
        for (own, new) in containers.into_iter().flatten().zip(list(new, key)) {
            if own.get("name") == new.get("name") {
                keep(own.as_object_mut(), new, "resources");
            }
        }
    }
    let at = path.child("template").child("spec");
    (fixed != new).then(|| Error::literal(&at, internal::text("core.PodSpec", new), "field is immutable"))
}

/// Jobs by the clock.
pub(super) fn cron_jobs(mut kind: Kind) -> Kind {
    kind.warnings = |job, old| {
        let mut found = Vec::new();
        if old.is_none() {
            warnings::of_name(job, "Pod names and hostnames", &mut found);
        }
        if old.is_none_or(|old| spec_of(old) != spec_of(job)) {
            let spec = job.at("/spec/jobTemplate/spec").unwrap_or(&Value::Null);
            let path = Path::new("spec").child("jobTemplate").child("spec");
            warn(spec, &path, &mut found);
        }
        if old.is_some() && text(spec_of(job), "schedule").contains("TZ") {
            found.push("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details".to_owned());
        }
        found
    };
    kind.validate_create = |object| {
        let mut errors = cron::validate(object, None);
        let name = meta::name(object);
        if name.len() > CRON_NAME_MAX {
            let why = format!("must be no more than {CRON_NAME_MAX} characters");
            errors.push(Error::invalid(&Path::new("metadata").child("name"), name, why));
        }
        errors
    };
    kind.validate_update = |object, old| cron::validate(object, Some(old));
    kind
}

pub(super) fn budgets(mut kind: Kind) -> Kind {
    // upstream does not look at their names
    kind.name = meta::path_segment;
    kind.metadata_last = true;
    kind.prepare_create = |_, budget| {
        set_status(
            budget,
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
        );
        Ok(())
    };
    kind.validate = |budget| {
        let mut errors = Vec::new();
        let none = Value::Null;
        let (spec, path) = (budget.get("spec").unwrap_or(&none), Path::new("spec"));
        let part = |key: &str| spec.get(key).unwrap_or(&none);
        if !part("minAvailable").is_null() && !part("maxUnavailable").is_null() {
            let selector = selector_text(part("selector"));
            let shown = format!(
                "{{\"MinAvailable\":{},\"Selector\":{selector},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
                part("minAvailable"),
                part("maxUnavailable"),
                part("unhealthyPodEvictionPolicy")
            );
            let why = "minAvailable and maxUnavailable cannot be both set";
            errors.push(Error::literal(&path, shown, why));
        }
        for key in ["minAvailable", "maxUnavailable"] {
            amount_or_share(spec, key, &path, &mut errors);
            at_most_all(spec, key, &path, &mut errors);
        }
        label_selector(part("selector"), &path.child("selector"), &mut errors);
        let policies = ["AlwaysAllow", "IfHealthyBudget"];
        one_of_if_set(spec, "unhealthyPodEvictionPolicy", &policies, &path, &mut errors);
        errors
    };
    kind.status_alone = true;
    kind.validate_status = |budget, _| {
        let mut errors = Vec::new();
        conditions(budget, &mut errors);
        let keys = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
        counts(budget, &keys, &mut errors);
        errors
    };
    kind
}

/// The longest reason and the longest message of a condition, in bytes.
const REASON_MAX: usize = 1024;
const MESSAGE_MAX: usize = 32 * 1024;

/// Conditions in the form that newer kinds share: each with its time and a reason in one word.
fn conditions(object: &Value, errors: &mut ErrorList) {
    let status = object.get("status").unwrap_or(&Value::Null);
    conditions_in(status, &Path::new("status"), errors);
}

/// Those of a part of an object.
pub(super) fn conditions_in(part: &Value, path: &Path, errors: &mut ErrorList) {
    let (all, path) = (super::checks::list(part, "conditions"), path.child("conditions"));
    let mut seen = BTreeSet::new();
    for (index, condition) in all.iter().enumerate() {
        let (own, at) = (text(condition, "type"), path.index(index));
        if !seen.insert(own) {
            errors.push(Error::duplicate(&at.child("type"), own));
        }
        super::checks::syntax(meta::qualified_name(own), own, &at.child("type"), errors);
        let (status, known) = (text(condition, "status"), ["False", "True", "Unknown"]);
        if !known.contains(&status) {
            errors.push(Error::not_supported(&at.child("status"), status, &known));
        }
        if let Some(generation) = number(condition, "observedGeneration").filter(|generation| *generation < 0) {
            let why = "must be greater than or equal to zero";
            errors.push(Error::invalid(&at.child("observedGeneration"), generation, why));
        }
        if text(condition, "lastTransitionTime").is_empty() {
            errors.push(Error::required(&at.child("lastTransitionTime"), ""));
        }
        let reason = text(condition, "reason");
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte);
        let is_word = reason.starts_with(|first: char| first.is_ascii_alphabetic())
            && reason.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_')
            && reason.bytes().all(fits);
        if reason.is_empty() {
            errors.push(Error::required(&at.child("reason"), ""));
        } else if !is_word {
            let why = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
            errors.push(Error::invalid(&at.child("reason"), reason, why));
        }
        for (key, most) in [("reason", REASON_MAX), ("message", MESSAGE_MAX)] {
            if text(condition, key).len() > most {
                errors.push(Error::too_long(&at.child(key), most));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_and_messages_of_conditions_are_short() {
        let condition = |reason: usize, message: usize| {
            json!({"conditions": [{
                "type": "Ready",
                "status": "True",
                "lastTransitionTime": "2024-01-01T00:00:00Z",
                "reason": "a".repeat(reason),
                "message": "a".repeat(message),
            }]})
        };
        let mut errors = Vec::new();
        conditions_in(&condition(REASON_MAX, MESSAGE_MAX), &Path::root(), &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        conditions_in(&condition(REASON_MAX + 1, MESSAGE_MAX + 1), &Path::root(), &mut errors);
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "conditions[0].reason: Too long: may not be more than 1024 bytes",
                "conditions[0].message: Too long: may not be more than 32768 bytes",
            ]
        );
    }

    #[test]
    fn labels_that_a_job_brings_stay_and_are_judged() {
        let job = |selector: Value, labels: Value| {
            let mut job = json!({
                "metadata": {"name": "j", "uid": "u"},
                "spec": {"selector": selector, "template": {"metadata": {"labels": labels}}},
            });
            select_by_uid(&mut job);
            let mut errors = Vec::new();
            validate_generated(&job, spec_of(&job), &mut errors);
            validate_selector(spec_of(&job), &mut errors);
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            (job, errors)
        };
        let (made, errors) = job(json!({}), json!({"a": "b"}));
        assert_eq!(errors, [""; 0]);
        assert_eq!(made.at("/spec/selector/matchLabels"), Some(&json!({UID_LABEL: "u"})));
        let (kept, errors) = job(json!({}), json!({"controller-uid": "other"}));
        assert_eq!(
            kept.at("/spec/template/metadata/labels/controller-uid"),
            Some(&json!("other"))
        );
        assert_eq!(errors.len(), 1, "{errors:?}");
        let (kept, errors) = job(json!({"matchLabels": {UID_LABEL: "other"}}), json!({}));
        assert_eq!(
            kept.at("/spec/selector/matchLabels"),
            Some(&json!({UID_LABEL: "other"}))
        );
        assert_eq!(errors.len(), 2, "{errors:?}");
    }
}
