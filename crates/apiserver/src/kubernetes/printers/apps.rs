//! Rows of workloads: apps, batch, autoscaling, policy.

use gardener_apimachinery::duration::{Duration, human};
use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, containers, items, labels, name, number, or, selector, since};
use crate::meta;

const TEMPLATE: &str = "/spec/template/spec/containers";

pub(in crate::kubernetes) fn deployment(now: Timestamp, deployment: &Value) -> Vec<Value> {
    let [names, images] = containers(deployment, TEMPLATE);
    vec![
        name(deployment),
        format!(
            "{}/{}",
            number(deployment, "/status/readyReplicas"),
            number(deployment, "/spec/replicas")
        )
        .into(),
        json!(number(deployment, "/status/updatedReplicas")),
        json!(number(deployment, "/status/availableReplicas")),
        age(now, deployment).into(),
        names,
        images,
        selector(deployment.at("/spec/selector")).into(),
    ]
}

fn set(now: Timestamp, set: &Value, selector: String) -> Vec<Value> {
    let [names, images] = containers(set, TEMPLATE);
    vec![
        name(set),
        json!(number(set, "/spec/replicas")),
        json!(number(set, "/status/replicas")),
        json!(number(set, "/status/readyReplicas")),
        age(now, set).into(),
        names,
        images,
        selector.into(),
    ]
}

pub(in crate::kubernetes) fn replica_set(now: Timestamp, object: &Value) -> Vec<Value> {
    set(now, object, selector(object.at("/spec/selector")))
}

pub(in crate::kubernetes) fn replication_controller(now: Timestamp, object: &Value) -> Vec<Value> {
    set(now, object, labels(object.at("/spec/selector")))
}

pub(in crate::kubernetes) fn stateful_set(now: Timestamp, set: &Value) -> Vec<Value> {
    let [names, images] = containers(set, TEMPLATE);
    let ready = format!(
        "{}/{}",
        number(set, "/status/readyReplicas"),
        number(set, "/spec/replicas")
    );
    vec![name(set), ready.into(), age(now, set).into(), names, images]
}

pub(in crate::kubernetes) fn daemon_set(now: Timestamp, set: &Value) -> Vec<Value> {
    let [names, images] = containers(set, TEMPLATE);
    let status = |key: &str| json!(number(set, &format!("/status/{key}")));
    vec![
        name(set),
        status("desiredNumberScheduled"),
        status("currentNumberScheduled"),
        status("numberReady"),
        status("updatedNumberScheduled"),
        status("numberAvailable"),
        labels(set.at("/spec/template/spec/nodeSelector")).into(),
        age(now, set).into(),
        names,
        images,
        selector(set.at("/spec/selector")).into(),
    ]
}

pub(in crate::kubernetes) fn controller_revision(now: Timestamp, revision: &Value) -> Vec<Value> {
    let owner = items(revision, "/metadata/ownerReferences")
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
    let controller = owner.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let group = meta::text(owner, "/apiVersion")
                .split_once('/')
                .map_or("", |(group, _)| group);
            let kind = meta::text(owner, "/kind").to_lowercase();
            if group.is_empty() {
                format!("{kind}/{}", meta::text(owner, "/name"))
            } else {
                format!("{kind}.{group}/{}", meta::text(owner, "/name"))
            }
        },
    );
    vec![
        name(revision),
        controller.into(),
        json!(number(revision, "/revision")),
        age(now, revision).into(),
    ]
}

pub(in crate::kubernetes) fn job(now: Timestamp, job: &Value) -> Vec<Value> {
    let succeeded = number(job, "/status/succeeded");
    let completions = match job.at("/spec/completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None => match number(job, "/spec/parallelism") {
            parallel if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
            _ => format!("{succeeded}/1"),
        },
    };
    let start = meta::parse_time(meta::text(job, "/status/startTime"));
    let end = meta::parse_time(meta::text(job, "/status/completionTime"));
    let duration = start
        .map(|start| human(Duration::from_secs(end.unwrap_or(now).as_second() - start.as_second())))
        .unwrap_or_default();
    let is = |kind: &str| {
        items(job, "/status/conditions")
            .any(|condition| meta::text(condition, "/type") == kind && meta::text(condition, "/status") == "True")
    };
    let status = if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if meta::is_deleting(job) {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    let [names, images] = containers(job, TEMPLATE);
    vec![
        name(job),
        status.into(),
        completions.into(),
        duration.into(),
        age(now, job).into(),
        names,
        images,
        selector(job.at("/spec/selector")).into(),
    ]
}

pub(in crate::kubernetes) fn cron_job(now: Timestamp, job: &Value) -> Vec<Value> {
    let last = meta::text(job, "/status/lastScheduleTime");
    let [names, images] = containers(job, "/spec/jobTemplate/spec/template/spec/containers");
    vec![
        name(job),
        meta::text(job, "/spec/schedule").into(),
        or(meta::text(job, "/spec/timeZone"), "<none>").into(),
        job.at("/spec/suspend")
            .and_then(Value::as_bool)
            .map_or("<unset>", |suspend| if suspend { "True" } else { "False" })
            .into(),
        json!(items(job, "/status/active").count()),
        if last.is_empty() {
            "<none>".into()
        } else {
            since(now, last).into()
        },
        age(now, job).into(),
        names,
        images,
        selector(job.at("/spec/jobTemplate/spec/selector")).into(),
    ]
}

pub(in crate::kubernetes) fn pod_disruption_budget(now: Timestamp, budget: &Value) -> Vec<Value> {
    let amount = |key: &str| match budget.at(&format!("/spec/{key}")) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "N/A".to_owned(),
    };
    vec![
        name(budget),
        amount("minAvailable").into(),
        amount("maxUnavailable").into(),
        json!(number(budget, "/status/disruptionsAllowed")),
        age(now, budget).into(),
    ]
}
