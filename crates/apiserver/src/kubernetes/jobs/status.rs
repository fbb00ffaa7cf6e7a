//! What a job's status may become. Whoever manages a job, its clients rely on what is finished staying finished: each rule holds for what a
//! change touches, so that other changes of a status that is wrong already go on.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::indexes;
use crate::kubernetes::checks::{is_true, list, number, spec_of, text};
use crate::kubernetes::workloads::counts;
use crate::meta;

/// A job's status, as its rules ask for it.
#[derive(Clone, Copy)]
struct Status<'v>(&'v Value);

impl<'v> Status<'v> {
    fn of(job: &'v Value) -> Self {
        Self(job.get("status").unwrap_or(&Value::Null))
    }

    fn count(self, key: &str) -> i64 {
        number(self.0, key).unwrap_or(0)
    }

    fn member(self, key: &str) -> Option<&'v Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(self, key: &str) -> Option<&'v str> {
        self.member(key)?.as_str()
    }

    fn time(self, key: &str) -> Option<Timestamp> {
        meta::parse_time(self.text(key)?)
    }

    fn has(self, kind: &str, status: &str) -> bool {
        let conditions = list(self.0, "conditions").iter();
        let mut own = conditions.filter(|condition| text(condition, "type") == kind);
        own.any(|condition| text(condition, "status") == status)
    }

    fn is(self, kind: &str) -> bool {
        self.has(kind, "True")
    }

    fn is_finished(self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    /// Pods that have ended and are not counted yet, of both ends.
    fn uncounted(self) -> [&'v [Value]; 2] {
        let pods = self.member("uncountedTerminatedPods").unwrap_or(&Value::Null);
        ["succeeded", "failed"].map(|key| list(pods, key))
    }
}

/// A change of a job's status.
struct Change<'v> {
    spec: &'v Value,
    old: Status<'v>,
    new: Status<'v>,
    errors: ErrorList,
}

fn at(key: &str) -> Path {
    Path::new("status").child(key)
}

impl Change<'_> {
    fn turned(&self, kind: &str) -> bool {
        self.old.is(kind) != self.new.is(kind)
    }

    fn finishes(&self) -> bool {
        self.old.is_finished() != self.new.is_finished()
    }

    fn changed(&self, key: &str) -> bool {
        self.old.member(key) != self.new.member(key)
    }

    fn counted(&self, key: &str) -> bool {
        self.old.count(key) != self.new.count(key)
    }

    fn conditions(&mut self, why: &str) {
        self.errors.push(Error::literal(&at("conditions"), "", why));
    }

    fn invalid(&mut self, key: &str, why: impl Into<String>) {
        let shown = self.new.member(key).cloned().unwrap_or(Value::Null);
        self.errors.push(Error::invalid(&at(key), shown, why));
    }

    fn is_indexed(&self) -> bool {
        text(self.spec, "completionMode") == "Indexed"
    }

    fn judge(&mut self) {
        self.uncounted_pods();
        self.ends();
        self.finished();
        self.indexes();
        self.pods();
        self.success();
        self.what_stays();
    }

    fn uncounted_pods(&mut self) {
        let mut seen: Vec<&Value> = Vec::new();
        for (key, pods) in ["succeeded", "failed"].into_iter().zip(self.new.uncounted()) {
            for (index, pod) in pods.iter().enumerate() {
                let place = at("uncountedTerminatedPods").child(key).index(index);
                if pod.as_str() == Some("") {
                    self.errors.push(Error::invalid(&place, "", "must not be empty"));
                } else if seen.contains(&pod) {
                    self.errors.push(Error::duplicate(&place, pod.clone()));
                } else {
                    seen.push(pod);
                }
            }
        }
    }

    /// Which conditions exclude and need each other, and when a job that is complete was so.
    fn ends(&mut self) {
        let new = self.new;
        let (completes, fails) = (self.turned("Complete"), self.turned("Failed"));
        let is_complete = new.is("Complete");
        if (completes || fails) && is_complete && new.is("Failed") {
            self.conditions("cannot set Complete=True and Failed=true conditions");
        }
        if (completes || self.turned("FailureTarget")) && is_complete && new.is("FailureTarget") {
            self.conditions("cannot set Complete=True and FailureTarget=true conditions");
        }
        let end = new.text("completionTime");
        if completes || self.changed("completionTime") {
            if end.is_some() && !is_complete {
                let why = "cannot set completionTime when there is no Complete=True condition";
                self.invalid("completionTime", why);
            }
            if end.is_none() && is_complete {
                let why = "completionTime is required for Complete jobs";
                self.errors.push(Error::required(&at("completionTime"), why));
            }
        }
        if (self.changed("startTime") || self.changed("completionTime"))
            && let (Some(start), Some(end)) = (new.time("startTime"), new.time("completionTime"))
            && end < start
        {
            self.invalid("completionTime", "must be equal to or after `startTime`");
        }
        if (fails || self.changed("failedIndexes")) && new.is("Failed") && !new.is("FailureTarget") {
            self.conditions("cannot set Failed=True condition without the FailureTarget=true condition");
        }
        if (completes || self.turned("SuccessCriteriaMet")) && is_complete && !new.is("SuccessCriteriaMet") {
            self.conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
        }
    }

    /// What a finished job has no more.
    fn finished(&mut self) {
        let new = self.new;
        if !new.is_finished() {
            return;
        }
        if (self.finishes() || self.counted("active")) && new.count("active") > 0 {
            self.invalid("active", "active>0 is invalid for finished job");
        }
        let is_nothing_to_do = is_true(self.spec, "suspend") && number(self.spec, "completions") == Some(0);
        if (self.finishes() || self.changed("startTime")) && !is_nothing_to_do && new.member("startTime").is_none() {
            let why = "startTime is required for finished job";
            self.errors.push(Error::required(&at("startTime"), why));
        }
        let uncounted = new.uncounted();
        if (self.finishes() || self.changed("uncountedTerminatedPods")) && uncounted.iter().any(|own| !own.is_empty()) {
            let [succeeded, failed] = uncounted.map(|own| match own {
                [] => Value::Null,
                own => json!(own),
            });
            let shown = format!("{{\"Succeeded\":{succeeded},\"Failed\":{failed}}}");
            let place = at("uncountedTerminatedPods");
            self.errors
                .push(Error::literal(&place, shown, "must be empty for finished job"));
        }
    }

    fn indexes(&mut self) {
        let completions = number(self.spec, "completions");
        let has_limit = number(self.spec, "backoffLimitPerIndex").is_some();
        let (completes, fails) = (self.changed("completedIndexes"), self.changed("failedIndexes"));
        let completed = self.new.text("completedIndexes").unwrap_or_default();
        let failed = self.new.text("failedIndexes");
        let wrong = |named: &str| completions.and_then(|completions| indexes::count(named, completions).err());
        if let Some(why) = wrong(completed).filter(|_| completes) {
            self.invalid("completedIndexes", format!("error parsing completedIndexes: {why}"));
        }
        if let Some(why) = failed.and_then(wrong).filter(|_| fails && has_limit) {
            self.invalid("failedIndexes", format!("error parsing failedIndexes: {why}"));
        }
        if completes && !completed.is_empty() && !self.is_indexed() {
            let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
            self.invalid("completedIndexes", why);
        }
        if fails && failed.is_some() && !has_limit {
            let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            self.invalid("failedIndexes", why);
        }
        if (completes || fails)
            && let (Some(completions), Some(failed)) = (completions, failed)
            && let Some(index) = indexes::overlap(completed, failed, completions)
        {
            let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
            self.invalid("failedIndexes", why);
        }
    }

    fn pods(&mut self) {
        let new = self.new;
        if (self.finishes() || self.changed("terminating")) && new.is_finished() && new.count("terminating") > 0 {
            self.invalid("terminating", "terminating>0 is invalid for finished job");
        }
        let changed = self.changed("ready") || self.counted("active");
        if changed && new.member("ready").is_some() && new.count("ready") > new.count("active") {
            self.invalid("ready", "cannot set more ready pods than active");
        }
    }

    /// What the success of a part of the pods excludes.
    fn success(&mut self) {
        let new = self.new;
        let is_met = new.is("SuccessCriteriaMet");
        if is_met && new.is("Failed") {
            self.conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions");
        }
        if is_met && new.is("FailureTarget") {
            self.conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
        }
        let has_policy = self.spec.get("successPolicy").is_some_and(|policy| !policy.is_null());
        if has_policy && !is_met && new.is("Complete") {
            self.conditions("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
        }
    }

    /// What does not go back.
    fn what_stays(&mut self) {
        let (old, new) = (self.old, self.new);
        for kind in ["Failed", "Complete", "FailureTarget"] {
            if old.is(kind) && !new.is(kind) {
                self.conditions(&format!("cannot disable the terminal {kind}=True condition"));
            }
        }
        // a job whose completions follow its parallelism may be scaled down
        let is_elastic = self.is_indexed() && self.spec.get("completions") == self.spec.get("parallelism");
        for (key, may_decrease) in [("failed", false), ("succeeded", is_elastic)] {
            let count = new.count(key);
            if count < old.count(key) && !may_decrease {
                let why = format!("cannot decrease the {key} counter");
                self.errors.push(Error::invalid(&at(key), count, why));
            }
        }
        let times = |key: &str| (old.text(key), new.text(key));
        if let (Some(before), Some(after)) = times("completionTime")
            && before != after
        {
            self.invalid("completionTime", "field is immutable");
        }
        let resumes = old.is("Suspended") && new.has("Suspended", "False");
        let (before, after) = times("startTime");
        if before.is_some() && before != after && !resumes && !is_true(self.spec, "suspend") {
            self.invalid("startTime", "field is immutable for unsuspended job once set");
        }
        let (was_met, is_met) = (old.is("SuccessCriteriaMet"), new.is("SuccessCriteriaMet"));
        if was_met && !is_met {
            self.conditions("cannot disable the SuccessCriteriaMet=True condition");
        }
        if old.is("Complete") && !was_met && is_met {
            self.conditions("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
        }
    }
}

/// What is wrong with a change of a job's status.
pub(super) fn validate(job: &Value, old: &Value) -> ErrorList {
    let mut errors = Vec::new();
    let keys = ["active", "succeeded", "failed", "ready", "terminating"];
    counts(job, &keys, &mut errors);
    let mut change = Change {
        spec: spec_of(job),
        old: Status::of(old),
        new: Status::of(job),
        errors,
    };
    change.judge();
    change.errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(kinds: &[&str]) -> Value {
        kinds
            .iter()
            .map(|kind| json!({"type": kind, "status": "True"}))
            .collect()
    }

    /// What is told of a change from one status to another.
    fn told(spec: &Value, old: Value, new: Value) -> Vec<String> {
        let [old, new] = [old, new].map(|status| json!({"spec": spec, "status": status}));
        validate(&new, &old).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_job_that_ends_as_it_should() {
        let spec = json!({"completions": 1, "parallelism": 1});
        let (start, end) = ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z");
        let running = json!({"startTime": start, "active": 1, "ready": 1});
        let met = json!({"startTime": start, "succeeded": 1, "conditions": conditions(&["SuccessCriteriaMet"])});
        let done = json!({
            "startTime": start, "completionTime": end, "succeeded": 1,
            "conditions": conditions(&["SuccessCriteriaMet", "Complete"]),
        });
        for (old, new) in [
            (json!({}), &running),
            (running.clone(), &met),
            (met.clone(), &done),
            (done.clone(), &done),
        ] {
            assert_eq!(told(&spec, old, new.clone()), [""; 0]);
        }
        let failed = json!({"startTime": start, "failed": 1, "conditions": conditions(&["FailureTarget", "Failed"])});
        assert_eq!(told(&spec, running.clone(), failed), [""; 0]);
        // a job that is wrong already is not judged for what stays
        let wrong = json!({"conditions": conditions(&["Complete"]), "active": 1});
        let mut noted = wrong.clone();
        noted["observed"] = json!(1);
        assert_eq!(told(&spec, wrong, noted), [""; 0]);
    }

    #[test]
    fn what_may_not_be() {
        let (start, end) = ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z");
        let plain = json!({"completions": 3, "parallelism": 1, "completionMode": "NonIndexed"});
        let indexed =
            json!({"completions": 3, "parallelism": 1, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
        let elastic = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
        let with_policy =
            json!({"completions": 3, "completionMode": "Indexed", "successPolicy": {"rules": [{"succeededCount": 1}]}});
        let cases: Vec<(&Value, Value, Value, &[&str])> = vec![
            (
                &plain,
                json!({}),
                json!({"startTime": start, "conditions": conditions(&["Failed", "FailureTarget", "SuccessCriteriaMet"])}),
                &[
                    "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true conditions",
                    "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
                ],
            ),
            (
                &plain,
                json!({}),
                json!({"completionTime": end}),
                &[
                    "status.completionTime: Invalid value: \"2026-01-01T00:01:00Z\": cannot set completionTime when there is no Complete=True condition",
                ],
            ),
            (
                &plain,
                json!({}),
                json!({
                    "completionTime": end, "terminating": 1, "uncountedTerminatedPods": {"failed": ["a", "", "a"]},
                    "conditions": conditions(&["Complete", "SuccessCriteriaMet"]),
                }),
                &[
                    "status.uncountedTerminatedPods.failed[1]: Invalid value: \"\": must not be empty",
                    "status.uncountedTerminatedPods.failed[2]: Duplicate value: \"a\"",
                    "status.startTime: Required value: startTime is required for finished job",
                    "status.uncountedTerminatedPods: Invalid value: {\"Succeeded\":null,\"Failed\":[\"a\",\"\",\"a\"]}: must be empty for finished job",
                    "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job",
                ],
            ),
            (
                &plain,
                json!({}),
                json!({"active": 1, "ready": 2, "completedIndexes": "0-1", "failedIndexes": "1"}),
                &[
                    "status.completedIndexes: Invalid value: \"0-1\": cannot set non-empty completedIndexes when non-indexed completion mode",
                    "status.failedIndexes: Invalid value: \"1\": cannot set non-null failedIndexes when backoffLimitPerIndex is null",
                    "status.failedIndexes: Invalid value: \"1\": failedIndexes and completedIndexes overlap at index: 1",
                    "status.ready: Invalid value: 2: cannot set more ready pods than active",
                ],
            ),
            (
                &indexed,
                json!({}),
                json!({"completedIndexes": "5", "failedIndexes": "x"}),
                &[
                    "status.completedIndexes: Invalid value: \"5\": error parsing completedIndexes: too large index: \"5\"",
                    "status.failedIndexes: Invalid value: \"x\": error parsing failedIndexes: cannot convert string to integer for index: \"x\"",
                ],
            ),
            (
                &with_policy,
                json!({}),
                json!({"startTime": start, "completionTime": end, "conditions": conditions(&["Complete"])}),
                &[
                    "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
                    "status.conditions: Invalid value: cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
                ],
            ),
            (
                &plain,
                json!({"startTime": start, "completionTime": end, "succeeded": 3, "failed": 1, "conditions": conditions(&["Complete", "SuccessCriteriaMet"])}),
                json!({"startTime": end, "completionTime": "2026-01-01T00:02:00Z", "succeeded": 2}),
                &[
                    "status.completionTime: Invalid value: \"2026-01-01T00:02:00Z\": cannot set completionTime when there is no Complete=True condition",
                    "status.conditions: Invalid value: cannot disable the terminal Complete=True condition",
                    "status.failed: Invalid value: 0: cannot decrease the failed counter",
                    "status.succeeded: Invalid value: 2: cannot decrease the succeeded counter",
                    "status.completionTime: Invalid value: \"2026-01-01T00:02:00Z\": field is immutable",
                    "status.startTime: Invalid value: \"2026-01-01T00:01:00Z\": field is immutable for unsuspended job once set",
                    "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
                ],
            ),
            (&elastic, json!({"succeeded": 3}), json!({"succeeded": 2}), &[]),
            (
                &plain,
                json!({}),
                json!({
                    "startTime": "2026-01-01T02:00:00+02:00", "completionTime": "2026-01-01T00:00:00.5Z",
                    "conditions": conditions(&["Complete", "SuccessCriteriaMet"]),
                }),
                &[],
            ),
            (
                &plain,
                json!({"startTime": start, "conditions": conditions(&["Suspended"])}),
                json!({"startTime": end, "conditions": [{"type": "Suspended", "status": "False"}]}),
                &[],
            ),
        ];
        for (spec, old, new, expected) in cases {
            assert_eq!(told(spec, old, new.clone()), expected, "{new}");
        }
    }
}
