//! The status of a pod, from what its containers do.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

use super::containers::{Ended, State, Tracked};
use crate::pods;

/// What the status of a pod is made of besides the pod itself.
pub(super) struct Facts<'a> {
    pub containers: &'a BTreeMap<String, Tracked>,
    pub mounted: bool,
    pub initialized: bool,
    pub host_ip: Option<String>,
    pub pod_ip: Option<String>,
    pub started: Time,
    pub now: Instant,
    pub time: Time,
}

fn terminated(ended: &Ended) -> ContainerStateTerminated {
    ContainerStateTerminated {
        exit_code: ended.exit,
        reason: Some(if ended.exit == 0 { "Completed" } else { "Error" }.to_owned()),
        started_at: Some(ended.started.clone()),
        finished_at: Some(ended.finished.clone()),
        container_id: Some(ended.id.clone()),
        ..ContainerStateTerminated::default()
    }
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message,
        }),
        ..ContainerState::default()
    }
}

fn container_status(facts: &Facts<'_>, pod: &Pod, container: &Container, init: bool) -> ContainerStatus {
    let fresh = Tracked::new();
    let tracked = facts.containers.get(&container.name).unwrap_or(&fresh);
    let initializing =
        if facts.initialized || init || pod.spec.as_ref().is_none_or(|spec| spec.init_containers.is_none()) {
            "ContainerCreating"
        } else {
            "PodInitializing"
        };
    let mut last = tracked.last.clone();
    let state = match &tracked.state {
        State::Waiting | State::Starting(_) => waiting(initializing, None),
        State::Running { since, .. } => ContainerState {
            running: Some(ContainerStateRunning {
                started_at: Some(since.clone()),
            }),
            ..ContainerState::default()
        },
        State::Ended(ended, Some(at)) if *at > facts.now => {
            last = Some(ended.clone());
            let message = format!("back-off restarting failed container={}", container.name);
            waiting("CrashLoopBackOff", Some(message))
        }
        State::Ended(ended, _) => ContainerState {
            terminated: Some(terminated(ended)),
            ..ContainerState::default()
        },
    };
    let ready = if init && container.restart_policy.is_none() {
        tracked.succeeded()
    } else {
        tracked.is_ready(facts.now)
    };
    let image = container.image.clone().unwrap_or_default();
    let known = !tracked.id.is_empty();
    ContainerStatus {
        name: container.name.clone(),
        image_id: if known {
            format!("simulated://{image}")
        } else {
            String::new()
        },
        image,
        container_id: known.then(|| tracked.id.clone()),
        ready,
        started: Some(tracked.is_running()),
        restart_count: tracked.restarts,
        state: Some(state),
        // it is always told, so that what is there is what is wanted
        last_state: Some(ContainerState {
            terminated: last.as_ref().map(terminated),
            ..ContainerState::default()
        }),
        ..ContainerStatus::default()
    }
}

/// The phase that containers make: pending until all started, then running until all ended for good.
fn phase(pod: &Pod, containers: &BTreeMap<String, Tracked>, initialized: bool) -> &'static str {
    let spec = pod.spec.as_ref();
    let main: Vec<Option<&Tracked>> = spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .map(|own| containers.get(&own.name))
        .collect();
    let init_failed = spec
        .iter()
        .flat_map(|spec| spec.init_containers.iter().flatten())
        .any(|own| {
            containers
                .get(&own.name)
                .is_some_and(|own| matches!(&own.state, State::Ended(ended, None) if ended.exit != 0))
        });
    if init_failed && !pods::is_deleting(pod) {
        return "Failed";
    }
    let over = |own: &Option<&Tracked>| own.is_some_and(|own| matches!(own.state, State::Ended(_, None)));
    if !main.is_empty() && main.iter().all(over) {
        return if main.iter().all(|own| own.is_some_and(Tracked::succeeded)) {
            "Succeeded"
        } else {
            "Failed"
        };
    }
    let started =
        |own: &Option<&Tracked>| own.is_some_and(|own| matches!(own.state, State::Running { .. } | State::Ended(..)));
    if initialized && main.iter().all(started) {
        "Running"
    } else {
        "Pending"
    }
}

fn condition(
    list: &mut Vec<PodCondition>,
    type_: &str,
    holds: bool,
    reason: Option<&str>,
    message: Option<String>,
    time: &Time,
) {
    let status = if holds { "True" } else { "False" };
    let before = list.iter().find(|own| own.type_ == type_);
    let since = before
        .filter(|own| own.status == status)
        .and_then(|own| own.last_transition_time.clone());
    let condition = PodCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.map(str::to_owned),
        message,
        last_transition_time: Some(since.unwrap_or_else(|| time.clone())),
        ..PodCondition::default()
    };
    match list.iter_mut().find(|own| own.type_ == type_) {
        Some(own) => *own = condition,
        None => list.push(condition),
    }
}

/// The status of a pod; what others wrote into it stays.
pub(super) fn status(facts: &Facts<'_>, pod: &Pod) -> PodStatus {
    let before = pod.status.clone().unwrap_or_default();
    let spec = pod.spec.as_ref();
    let main: Vec<ContainerStatus> = spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .map(|own| container_status(facts, pod, own, false))
        .collect();
    let init: Vec<ContainerStatus> = spec
        .iter()
        .flat_map(|spec| spec.init_containers.iter().flatten())
        .map(|own| container_status(facts, pod, own, true))
        .collect();
    let phase = phase(pod, facts.containers, facts.initialized);
    let unready: Vec<&str> = main
        .iter()
        .filter(|own| !own.ready)
        .map(|own| own.name.as_str())
        .collect();
    let (reason, message) = match phase {
        "Succeeded" => (Some("PodCompleted"), None),
        "Failed" => (Some("PodFailed"), None),
        _ if unready.is_empty() => (None, None),
        _ => (
            Some("ContainersNotReady"),
            Some(format!("containers with unready status: [{}]", unready.join(" "))),
        ),
    };
    let ready = unready.is_empty() && facts.initialized && matches!(phase, "Running");
    let mut conditions = before.conditions.clone().unwrap_or_default();
    let over = matches!(phase, "Succeeded" | "Failed");
    condition(
        &mut conditions,
        "PodReadyToStartContainers",
        facts.mounted && !over,
        None,
        None,
        &facts.time,
    );
    let incomplete: Vec<&str> = init
        .iter()
        .filter(|own| !own.ready)
        .map(|own| own.name.as_str())
        .collect();
    let initializing =
        (!facts.initialized).then(|| format!("containers with incomplete status: [{}]", incomplete.join(" ")));
    let not_initialized = (!facts.initialized).then_some("ContainersNotInitialized");
    condition(
        &mut conditions,
        "Initialized",
        facts.initialized,
        not_initialized,
        initializing,
        &facts.time,
    );
    let gates = spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    let gate = gates
        .filter(|gate| {
            !conditions
                .iter()
                .any(|own| own.type_ == gate.condition_type && own.status == "True")
        })
        .map(|gate| {
            format!(
                "corresponding condition of pod readiness gate \"{}\" does not exist.",
                gate.condition_type
            )
        })
        .next();
    let (pod_reason, pod_message) = match (&gate, ready) {
        (Some(gate), true) => (Some("ReadinessGatesNotReady"), Some(gate.clone())),
        _ => (reason, message.clone()),
    };
    condition(
        &mut conditions,
        "Ready",
        ready && gate.is_none(),
        pod_reason,
        pod_message,
        &facts.time,
    );
    condition(&mut conditions, "ContainersReady", ready, reason, message, &facts.time);
    if !conditions.iter().any(|own| own.type_ == "PodScheduled") {
        condition(&mut conditions, "PodScheduled", true, None, None, &facts.time);
    }
    PodStatus {
        phase: Some(phase.to_owned()),
        conditions: Some(conditions),
        container_statuses: Some(main),
        init_container_statuses: (!init.is_empty()).then_some(init),
        host_ips: facts.host_ip.clone().map(|ip| vec![HostIP { ip }]),
        host_ip: facts.host_ip.clone(),
        pod_ips: facts.pod_ip.clone().map(|ip| vec![PodIP { ip }]),
        pod_ip: facts.pod_ip.clone(),
        start_time: before.start_time.clone().or_else(|| Some(facts.started.clone())),
        observed_generation: pod.metadata.generation,
        ..before
    }
}
