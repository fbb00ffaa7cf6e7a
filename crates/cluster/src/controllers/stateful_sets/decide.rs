//! Which numbered pods are created and deleted next.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use crate::pods::{self, REVISION_HASH};

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The pod of this number, of this revision.
    Create { ordinal: i32, revision: String },
    /// The pod of this name goes.
    Delete(String),
}

/// The number behind the set's name.
pub(super) fn ordinal_of(set: &str, pod: &str) -> Option<i32> {
    pod.strip_prefix(set)?.strip_prefix('-')?.parse().ok()
}

/// A StatefulSet and its pods by number.
pub(super) struct View<'a> {
    set: &'a StatefulSet,
    pods: BTreeMap<i32, &'a Pod>,
    current: &'a str,
    update: &'a str,
    now: Timestamp,
}

/// How many pods there are, by state.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub wanted: i32,
    pub replicas: i32,
    pub ready: i32,
    pub available: i32,
    pub current: i32,
    pub updated: i32,
}

impl<'a> View<'a> {
    pub fn new(set: &'a StatefulSet, all: &[&'a Pod], current: &'a str, update: &'a str, now: Timestamp) -> Self {
        let name = set.name_any();
        let numbered = all
            .iter()
            .filter_map(|pod| Some((ordinal_of(&name, &pod.name_any())?, *pod)));
        Self {
            set,
            pods: numbered.collect(),
            current,
            update,
            now,
        }
    }

    fn start(&self) -> i32 {
        self.set
            .spec
            .ordinals
            .as_ref()
            .and_then(|ordinals| ordinals.start)
            .unwrap_or(0)
    }

    fn end(&self) -> i32 {
        self.start() + self.set.spec.replicas.unwrap_or(1)
    }

    /// Whether each pod waits for the one before it.
    fn in_order(&self) -> bool {
        self.set.spec.pod_management_policy.as_deref() != Some("Parallel")
    }

    /// Whether pods of old revisions are replaced.
    pub fn rolls(&self) -> bool {
        let strategy = self.set.spec.update_strategy.as_ref();
        strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete")
    }

    /// Pods below this number keep their revision.
    pub fn partition(&self) -> i32 {
        let strategy = self.set.spec.update_strategy.as_ref();
        strategy
            .and_then(|strategy| strategy.rolling_update.as_ref()?.partition)
            .unwrap_or(0)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pods::is_available(pod, self.set.spec.min_ready_seconds.unwrap_or(0), self.now)
    }

    /// Whether a pod runs, serves and stays.
    fn is_healthy(&self, pod: &Pod) -> bool {
        !pods::is_deleting(pod) && pods::phase(pod) == "Running" && self.is_available(pod)
    }

    fn revision_for(&self, ordinal: i32) -> String {
        let old = self.rolls() && ordinal < self.partition();
        if old { self.current } else { self.update }.to_owned()
    }
}

fn revision(pod: &Pod) -> &str {
    pod.labels().get(REVISION_HASH).map(String::as_str).unwrap_or_default()
}

/// What is to be written now; the rest when that is seen.
pub(super) fn decide(view: &View<'_>) -> Vec<Step> {
    let mut steps = Vec::new();
    for ordinal in view.start()..view.end() {
        match view.pods.get(&ordinal) {
            None => {
                steps.push(Step::Create {
                    ordinal,
                    revision: view.revision_for(ordinal),
                });
                if view.in_order() {
                    return steps;
                }
            }
            // a pod that ended is replaced by one of its name
            Some(pod) if pods::has_ended(pod) && !pods::is_deleting(pod) => {
                steps.push(Step::Delete(pod.name_any()));
                if view.in_order() {
                    return steps;
                }
            }
            Some(pod) if view.in_order() && !view.is_healthy(pod) => return steps,
            Some(_) => {}
        }
    }
    let condemned = view
        .pods
        .iter()
        .rev()
        .filter(|(ordinal, _)| !(view.start()..view.end()).contains(ordinal));
    for (_, pod) in condemned {
        if pods::is_deleting(pod) {
            if view.in_order() {
                return steps;
            }
            continue;
        }
        steps.push(Step::Delete(pod.name_any()));
        if view.in_order() {
            return steps;
        }
    }
    if !view.rolls() {
        return steps;
    }
    let first = view.start().max(view.partition());
    for (_, pod) in view
        .pods
        .iter()
        .rev()
        .filter(|(ordinal, _)| (first..view.end()).contains(ordinal))
    {
        if revision(pod) != view.update && !pods::is_deleting(pod) {
            steps.push(Step::Delete(pod.name_any()));
            return steps;
        }
        if !view.is_healthy(pod) {
            return steps;
        }
    }
    steps
}

/// How many pods there are.
pub(super) fn counts(view: &View<'_>) -> Counts {
    let mut counts = Counts {
        wanted: view.set.spec.replicas.unwrap_or(1),
        ..Counts::default()
    };
    for pod in view.pods.values().filter(|pod| !pods::has_ended(pod)) {
        counts.replicas += 1;
        counts.ready += i32::from(pods::is_ready(pod));
        counts.available += i32::from(view.is_available(pod));
        if !pods::is_deleting(pod) {
            counts.current += i32::from(revision(pod) == view.current);
            counts.updated += i32::from(revision(pod) == view.update);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(replicas: i32, extra: serde_json::Value) -> StatefulSet {
        let mut spec = json!({"replicas": replicas, "selector": {}, "serviceName": "s", "template": {}});
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        serde_json::from_value(json!({"metadata": {"name": "db"}, "spec": spec})).unwrap()
    }

    fn pod(ordinal: i32, revision: &str, ready: bool) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": format!("db-{ordinal}"), "labels": {REVISION_HASH: revision}},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
        }))
        .unwrap()
    }

    fn steps(set: &StatefulSet, pods: &[Pod]) -> Vec<Step> {
        let all: Vec<&Pod> = pods.iter().collect();
        decide(&View::new(set, &all, "old", "new", Timestamp::UNIX_EPOCH))
    }

    fn create(ordinal: i32, revision: &str) -> Step {
        Step::Create {
            ordinal,
            revision: revision.into(),
        }
    }

    fn delete(ordinal: i32) -> Step {
        Step::Delete(format!("db-{ordinal}"))
    }

    #[test]
    fn pods_come_and_go_one_after_the_other() {
        let three = set(3, json!({}));
        assert_eq!(steps(&three, &[]), [create(0, "new")]);
        assert_eq!(steps(&three, &[pod(0, "new", false)]), []);
        assert_eq!(steps(&three, &[pod(0, "new", true)]), [create(1, "new")]);
        let one = set(1, json!({}));
        let all = [pod(0, "new", true), pod(1, "new", true), pod(2, "new", true)];
        assert_eq!(steps(&one, &all), [delete(2)]);
        let parallel = set(3, json!({"podManagementPolicy": "Parallel"}));
        assert_eq!(
            steps(&parallel, &[]),
            [create(0, "new"), create(1, "new"), create(2, "new")]
        );
    }

    #[test]
    fn updates_go_from_the_highest_number_down_to_the_partition() {
        let old = [pod(0, "old", true), pod(1, "old", true), pod(2, "old", true)];
        assert_eq!(steps(&set(3, json!({})), &old), [delete(2)]);
        let some = [pod(0, "old", true), pod(1, "old", true), pod(2, "new", true)];
        assert_eq!(steps(&set(3, json!({})), &some), [delete(1)]);
        let partition = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}});
        assert_eq!(steps(&set(3, partition.clone()), &some), []);
        assert_eq!(steps(&set(3, partition), &some[1..]), [create(0, "old")]);
        assert_eq!(
            steps(&set(3, json!({"updateStrategy": {"type": "OnDelete"}})), &old),
            []
        );
    }

    #[test]
    fn numbers_are_behind_the_name() {
        assert_eq!(ordinal_of("db", "db-12"), Some(12));
        assert_eq!(ordinal_of("db", "db-x-1"), None);
    }
}
