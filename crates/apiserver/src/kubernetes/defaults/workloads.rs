//! Defaults of what keeps pods.

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value, json};

use super::pods::{pod_spec, template};
use super::{CLAIMED, Object, amounts, claim_spec, each, member, object, set};
use crate::meta;

pub(in crate::kubernetes) fn deployment(value: &mut Value) {
    template(value, "/spec/template/spec");
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "progressDeadlineSeconds", json!(600));
    set(spec, "strategy", json!({}));
    if let Some(strategy) = member(spec, "strategy") {
        set(strategy, "type", json!("RollingUpdate"));
        if strategy.get("type") == Some(&json!("RollingUpdate")) {
            set(strategy, "rollingUpdate", json!({}));
            if let Some(rolling) = member(strategy, "rollingUpdate") {
                set(rolling, "maxUnavailable", json!("25%"));
                set(rolling, "maxSurge", json!("25%"));
            }
        }
    }
}

pub(in crate::kubernetes) fn replica_set(value: &mut Value) {
    template(value, "/spec/template/spec");
    if let Some(spec) = object(value, "/spec") {
        set(spec, "replicas", json!(1));
    }
}

pub(in crate::kubernetes) fn replication_controller(value: &mut Value) {
    template(value, "/spec/template/spec");
    labels_from_template(value);
    if let Some(spec) = object(value, "/spec") {
        set(spec, "replicas", json!(1));
    }
}

/// A set without labels or selector takes its template's labels.
fn labels_from_template(value: &mut Value) {
    let Some(labels) = value
        .at("/spec/template/metadata/labels")
        .filter(|labels| labels.as_object().is_some_and(|map| !map.is_empty()))
        .cloned()
    else {
        return;
    };
    if let Some(spec) = object(value, "/spec") {
        set(spec, "selector", labels.clone());
    }
    if value
        .at("/metadata/labels")
        .and_then(Value::as_object)
        .is_none_or(Map::is_empty)
    {
        meta::set(value, "labels", Some(labels));
    }
}

pub(in crate::kubernetes) fn stateful_set(value: &mut Value) {
    template(value, "/spec/template/spec");
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "replicas", json!(1));
    set(spec, "podManagementPolicy", json!("OrderedReady"));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "updateStrategy", json!({}));
    if let Some(strategy) = member(spec, "updateStrategy") {
        let kind = strategy.get("type").and_then(Value::as_str).unwrap_or_default();
        // who names the kind of update gets no more of it
        if kind.is_empty() {
            set(strategy, "type", json!("RollingUpdate"));
            set(strategy, "rollingUpdate", json!({}));
        }
        if strategy.get("type") == Some(&json!("RollingUpdate"))
            && let Some(rolling) = member(strategy, "rollingUpdate")
        {
            set(rolling, "partition", json!(0));
        }
    }
    set(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    if let Some(policy) = member(spec, "persistentVolumeClaimRetentionPolicy") {
        set(policy, "whenDeleted", json!("Retain"));
        set(policy, "whenScaled", json!("Retain"));
    }
    for claim in each(spec, "volumeClaimTemplates") {
        claim.insert("apiVersion".into(), json!("v1"));
        claim.insert("kind".into(), json!("PersistentVolumeClaim"));
        set(claim, "status", json!({}));
        if let Some(status) = member(claim, "status") {
            set(status, "phase", json!("Pending"));
            amounts(status, &CLAIMED);
        }
        if let Some(spec) = member(claim, "spec") {
            claim_spec(spec);
        }
    }
}

pub(in crate::kubernetes) fn daemon_set(value: &mut Value) {
    template(value, "/spec/template/spec");
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "updateStrategy", json!({}));
    if let Some(strategy) = member(spec, "updateStrategy") {
        set(strategy, "type", json!("RollingUpdate"));
        let is_rolling = strategy.get("type") == Some(&json!("RollingUpdate"));
        if is_rolling {
            set(strategy, "rollingUpdate", json!({}));
        }
        if let Some(rolling) = member(strategy, "rollingUpdate") {
            // the internal type always has both
            set(rolling, "maxUnavailable", json!(i32::from(is_rolling)));
            set(rolling, "maxSurge", json!(0));
        }
    }
}

fn job_spec(spec: &mut Object) {
    // a struct that Go always has, so that it gets its defaults where nobody tells it
    set(spec, "template", json!({}));
    if let Some(template) = member(spec, "template") {
        set(template, "spec", json!({}));
    }
    if let Some(template) = member(spec, "template").and_then(|own| member(own, "spec")) {
        let policy = template.contains_key("restartPolicy");
        pod_spec(template);
        if !policy {
            template.insert("restartPolicy".into(), json!("Always"));
        }
    }
    if let Some(policy) = member(spec, "podFailurePolicy") {
        for rule in each(policy, "rules") {
            for pattern in each(rule, "onPodConditions") {
                set(pattern, "status", json!("True"));
            }
        }
    }
}

pub(in crate::kubernetes) fn job(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        set(members, "spec", json!({}));
    }
    let of_template = value.at("/spec/template/metadata/labels").cloned();
    let own = value.at("/metadata/labels").and_then(Value::as_object);
    if of_template.is_some() && own.is_none_or(Map::is_empty) {
        meta::set(value, "labels", of_template);
    }
    let Some(spec) = object(value, "/spec") else { return };
    job_spec(spec);
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".into(), json!(1));
        spec.insert("parallelism".into(), json!(1));
    }
    set(spec, "parallelism", json!(1));
    // where each index has a limit of its own, the job has none
    let is_per_index = spec.get("backoffLimitPerIndex").is_some_and(|limit| !limit.is_null());
    set(spec, "backoffLimit", json!(if is_per_index { i32::MAX } else { 6 }));
    set(spec, "completionMode", json!("NonIndexed"));
    set(spec, "suspend", json!(false));
    set(spec, "manualSelector", json!(false));
    set(
        spec,
        "podReplacementPolicy",
        json!(if spec.contains_key("podFailurePolicy") {
            "Failed"
        } else {
            "TerminatingOrFailed"
        }),
    );
}

pub(in crate::kubernetes) fn cron_job(value: &mut Value) {
    let Some(spec) = object(value, "/spec") else { return };
    set(spec, "concurrencyPolicy", json!("Allow"));
    set(spec, "suspend", json!(false));
    set(spec, "successfulJobsHistoryLimit", json!(3));
    set(spec, "failedJobsHistoryLimit", json!(1));
    if let Some(template) = member(spec, "jobTemplate") {
        set(template, "metadata", json!({}));
        if let Some(spec) = member(template, "spec") {
            if let Some(template) = member(spec, "template") {
                set(template, "metadata", json!({}));
            }
            job_spec(spec);
        }
    }
}
