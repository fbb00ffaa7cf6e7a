//! Jobs: pods that run to their end, so many times.

use std::sync::Arc;
use std::time::Duration;

use gardener_controller::{Action, ObjectRef, Queue, apply};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, ResourceExt};

use super::replicas::{self, Owned};
use crate::Role;
use crate::environment::{BY_OWNER, Environment, key_of, owner_key};
use crate::error::Error;
use crate::expectations::EXPIRY;
use crate::pods;

const KIND: &str = "Job";
const COMPONENT: &str = "job-controller";
/// The first wait after a pod failed; it doubles up to [`MAX_BACKOFF`].
const BACKOFF: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_secs(600);

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informers = &environment.informers;
    let role = Role::ControllerManager;
    environment.feed(&informers.jobs, &queue, role, |job| vec![key_of(job)]);
    environment.feed(&informers.pods, &queue, role, |pod| owner_key(pod, KIND));
    environment.reconcile("job", role, 8, queue, reconcile);
}

/// How a Job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Complete,
    Failed(&'static str, &'static str),
}

/// What a Job's pods and its specification make necessary.
#[derive(Debug, PartialEq, Eq)]
struct Decision {
    end: Option<End>,
    /// How many pods there are to be now.
    active: i32,
}

fn decide(spec: &JobSpec, succeeded: i32, failed: i32, retries: i32, running_for: Option<i64>) -> Decision {
    let ended = |end| Decision {
        end: Some(end),
        active: 0,
    };
    let parallelism = spec.parallelism.unwrap_or(1);
    if failed.max(retries) > spec.backoff_limit.unwrap_or(6) {
        return ended(End::Failed(
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit",
        ));
    }
    if let (Some(deadline), Some(seconds)) = (spec.active_deadline_seconds, running_for)
        && seconds >= deadline
    {
        return ended(End::Failed(
            "DeadlineExceeded",
            "Job was active longer than specified deadline",
        ));
    }
    if spec.suspend == Some(true) {
        return Decision { end: None, active: 0 };
    }
    match spec.completions {
        Some(completions) if succeeded >= completions => ended(End::Complete),
        Some(completions) => Decision {
            end: None,
            active: parallelism.min(completions - succeeded),
        },
        // a work queue: after one success no new pods
        None if succeeded > 0 => Decision { end: None, active: 0 },
        None => Decision {
            end: None,
            active: parallelism,
        },
    }
}

fn has_finished(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|own| matches!(own.type_.as_str(), "Complete" | "Failed") && own.status == "True")
}

fn finished_at(pod: &Pod) -> Option<Timestamp> {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    let ends = statuses
        .into_iter()
        .flatten()
        .filter_map(|own| own.state.as_ref()?.terminated.as_ref()?.finished_at.clone());
    ends.map(|time| time.0).max()
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.jobs.get(&key) else {
        return Ok(Action::Done);
    };
    let job = &found.object;
    let spec = job.spec.clone().unwrap_or_default();
    let api: Api<Job> = environment.api(&key);
    let now = environment.clock().now();
    if job.metadata.deletion_timestamp.is_some() {
        return Ok(Action::Done);
    }
    if has_finished(job) {
        return expire(&api, job, &spec, now).await;
    }
    let asking = replicas::asking(KIND, &key);
    if !environment.expectations.are_met(&asking) {
        return Ok(Action::RequeueAfter(EXPIRY));
    }
    let owned = environment
        .informers
        .pods
        .by_index(BY_OWNER, &job.uid().unwrap_or_default());
    let phase = |wanted: &str| -> Vec<&Pod> {
        owned
            .iter()
            .map(|pod| &pod.object)
            .filter(|pod| pods::phase(pod) == wanted)
            .collect()
    };
    let (done, bad) = (phase("Succeeded"), phase("Failed"));
    let active: Vec<&Pod> = owned
        .iter()
        .map(|pod| &pod.object)
        .filter(|pod| pods::is_active(pod))
        .collect();
    let number = |list: &[&Pod]| i32::try_from(list.len()).unwrap_or(i32::MAX);
    // pods that are gone were counted
    let before = job.status.clone().unwrap_or_default();
    let succeeded = number(&done).max(before.succeeded.unwrap_or(0));
    let failed = number(&bad).max(before.failed.unwrap_or(0));
    let retries = active
        .iter()
        .flat_map(|pod| {
            pod.status
                .iter()
                .flat_map(|status| status.container_statuses.iter().flatten())
        })
        .map(|own| own.restart_count)
        .sum();
    let started = before
        .start_time
        .clone()
        .or_else(|| (spec.suspend != Some(true)).then(|| environment.clock().time()));
    let running_for = started.as_ref().map(|time| now.duration_since(time.0).as_secs());
    let mut decision = decide(&spec, succeeded, failed, retries, running_for);
    if decision.end.is_none() && spec.completions.is_none() && succeeded > 0 && active.is_empty() {
        decision.end = Some(End::Complete);
    }
    let mut wait = None;
    let hands = Owned {
        environment: &environment,
        component: COMPONENT,
        key: &key,
        asking: &asking,
    };
    let missing = decision.active - number(&active);
    let keeps = decision.end.is_none() && spec.completions.is_none() && succeeded > 0;
    if missing > 0 {
        wait = back_off(&bad, now);
        if wait.is_none() {
            for _ in 0..missing {
                let name = replicas::generated_name(&environment, &key.name);
                let reference = pods::controller_reference(job);
                let pod = pods::from_template(Some(&spec.template), &key.namespace, name, reference);
                hands.create(job, pod).await?;
            }
        }
    } else if missing < 0 && !keeps {
        for pod in replicas::first_to_go(&active, now)
            .into_iter()
            .take(usize::try_from(-missing).unwrap_or(0))
        {
            hands.delete(job, pod).await?;
        }
    }
    let time = environment.clock().time();
    let some = |number: i32| (number > 0).then_some(number);
    let ready = active.iter().filter(|pod| pods::is_ready(pod)).count();
    let ends = decision.end;
    apply::patch_status_locked(&api, job, |job| {
        let mut conditions = before.conditions.clone().unwrap_or_default();
        let mut add = |type_: &str, reason: &str, message: &str| {
            conditions.push(JobCondition {
                type_: type_.to_owned(),
                status: "True".to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
                last_probe_time: Some(time.clone()),
                last_transition_time: Some(time.clone()),
            });
        };
        match ends {
            Some(End::Complete) => {
                let message = "Reached expected number of succeeded pods";
                add("SuccessCriteriaMet", "CompletionsReached", message);
                add("Complete", "CompletionsReached", message);
            }
            Some(End::Failed(reason, message)) => {
                add("FailureTarget", reason, message);
                add("Failed", reason, message);
            }
            None => {}
        }
        job.status = Some(JobStatus {
            active: some(if ends.is_some() { 0 } else { number(&active) }),
            ready: Some(if ends.is_some() {
                0
            } else {
                i32::try_from(ready).unwrap_or(i32::MAX)
            }),
            succeeded: some(succeeded),
            failed: some(failed),
            start_time: started.clone(),
            completion_time: (ends == Some(End::Complete)).then(|| time.clone()),
            conditions: (!conditions.is_empty()).then_some(conditions),
            ..before
        });
    })
    .await?;
    let deadline = spec
        .active_deadline_seconds
        .zip(running_for)
        .map(|(deadline, seconds)| {
            Duration::from_secs(u64::try_from(deadline - seconds).unwrap_or(0)).max(Duration::from_secs(1))
        });
    let next = wait.into_iter().chain(deadline.filter(|_| ends.is_none())).min();
    Ok(next.map_or(Action::Done, Action::RequeueAfter))
}

/// How long until the next pod may follow the failed ones.
fn back_off(failed: &[&Pod], now: Timestamp) -> Option<Duration> {
    let last = failed.iter().filter_map(|pod| finished_at(pod)).max()?;
    let doublings = u32::try_from(failed.len()).unwrap_or(u32::MAX).saturating_sub(1);
    let wait = BACKOFF
        .saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX))
        .min(MAX_BACKOFF);
    let passed = Duration::try_from(now.duration_since(last)).unwrap_or(Duration::ZERO);
    Some(wait.saturating_sub(passed)).filter(|left| !left.is_zero())
}

/// Deletes a finished Job when its time is over.
async fn expire(api: &Api<Job>, job: &Job, spec: &JobSpec, now: Timestamp) -> Result<Action, Error> {
    let Some(seconds) = spec.ttl_seconds_after_finished else {
        return Ok(Action::Done);
    };
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    let finished = conditions
        .into_iter()
        .flatten()
        .filter_map(|own| own.last_transition_time.as_ref())
        .map(|time| time.0)
        .max();
    let passed = finished.map_or(0, |time| now.duration_since(time).as_secs());
    let left = i64::from(seconds) - passed;
    if left > 0 {
        return Ok(Action::RequeueAfter(Duration::from_secs(
            u64::try_from(left).unwrap_or(0),
        )));
    }
    let parameters = kube::api::DeleteParams::background();
    apply::delete_with(api, &job.name_any(), &parameters).await?;
    Ok(Action::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_end_by_completions_failures_and_deadline() {
        let spec = JobSpec {
            completions: Some(3),
            parallelism: Some(2),
            ..JobSpec::default()
        };
        assert_eq!(decide(&spec, 0, 0, 0, None), Decision { end: None, active: 2 });
        assert_eq!(decide(&spec, 2, 6, 0, None), Decision { end: None, active: 1 });
        assert_eq!(decide(&spec, 3, 0, 0, None).end, Some(End::Complete));
        assert!(matches!(
            decide(&spec, 0, 7, 0, None).end,
            Some(End::Failed("BackoffLimitExceeded", _))
        ));
        assert!(matches!(
            decide(&spec, 0, 0, 7, None).end,
            Some(End::Failed("BackoffLimitExceeded", _))
        ));
        let late = JobSpec {
            active_deadline_seconds: Some(5),
            ..spec.clone()
        };
        assert!(matches!(
            decide(&late, 0, 0, 0, Some(5)).end,
            Some(End::Failed("DeadlineExceeded", _))
        ));
        let suspended = JobSpec {
            suspend: Some(true),
            ..spec
        };
        assert_eq!(decide(&suspended, 0, 0, 0, None), Decision { end: None, active: 0 });
    }
}
