//! Brings one pod further: mounts, starts and ends containers, tells the status, and lets the pod go.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use gardener_controller::events::Severity;
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, apply};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use super::containers::{Ended, State, Tracked, program_of, simulated_run, spawn};
use super::status::{Facts, status};
use super::{Engine, NodeState, PodKey, mounts};
use crate::error::Error;
use crate::pods;

/// The first wait for what volumes refer to; it doubles up to [`MAX_MOUNT`].
const MOUNT: Duration = Duration::from_millis(500);
const MAX_MOUNT: Duration = Duration::from_secs(122);
/// How soon to try again when the API cannot be reached.
const AGAIN: Duration = Duration::from_secs(2);

/// What a kubelet knows of a pod that is not in the API.
#[derive(Default)]
pub(super) struct PodWork {
    uid: String,
    containers: BTreeMap<String, Tracked>,
    mounted: bool,
    mount_failures: u32,
    mount_at: Option<Instant>,
    address: Option<IpAddr>,
    initialized: bool,
}

/// Brings a pod as far as it can come now.
pub(super) async fn sync(engine: Arc<Engine>, key: PodKey) -> Result<Action, Error> {
    let Some(node) = engine.node(&key.node) else {
        return Ok(Action::Done);
    };
    let work = Arc::clone(node.work.lock().entry(key.pod.clone()).or_default());
    let mut work = work.lock().await;
    let Some(pod) = node.pods.get(&key.pod) else {
        forget(&node, &mut work);
        node.work.lock().remove(&key.pod);
        return Ok(Action::Done);
    };
    match advance(&engine, &node, &key, &pod, &mut work).await {
        Err(error) if error.is_outdated() => Ok(Action::RequeueAfter(crate::environment::OUTDATED)),
        Err(error) => {
            tracing::debug!(pod = %key.pod, %error, "a pod cannot be brought further");
            Ok(Action::RequeueAfter(AGAIN))
        }
        other => other,
    }
}

/// Ends everything of a pod that is gone.
fn forget(node: &NodeState, work: &mut PodWork) {
    if let (Some(address), Some(addresses)) = (work.address, node.addresses.lock().as_mut()) {
        addresses.release(address);
    }
    // dropping a run stops its program
    *work = PodWork::default();
}

fn main_containers(pod: &Pod) -> &[Container] {
    pod.spec.as_ref().map_or(&[], |spec| &spec.containers)
}

fn init_containers(pod: &Pod) -> &[Container] {
    pod.spec
        .as_ref()
        .and_then(|spec| spec.init_containers.as_deref())
        .unwrap_or(&[])
}

/// The policy by which a container is started again; init containers that end are done.
fn policy<'a>(pod: &'a Pod, container: &'a Container, init: bool) -> &'a str {
    if let Some(own) = container.restart_policy.as_deref() {
        return own;
    }
    let policy = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.restart_policy.as_deref())
        .unwrap_or("Always");
    if init && policy == "Always" {
        "OnFailure"
    } else {
        policy
    }
}

async fn advance(
    engine: &Arc<Engine>,
    node: &Arc<NodeState>,
    key: &PodKey,
    pod: &Arc<Pod>,
    work: &mut PodWork,
) -> Result<Action, Error> {
    let uid = pod.uid().unwrap_or_default();
    if work.uid != uid {
        forget(node, work);
        work.uid = uid;
        take_over(engine, node, key, pod, work);
    }
    let deleting = pods::is_deleting(pod);
    if pods::has_ended(pod) && !deleting {
        return Ok(Action::Done);
    }
    let host_network = pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or(false);
    if !host_network && work.address.is_none() && !deleting {
        let wanted = pod
            .status
            .as_ref()
            .and_then(|status| status.pod_ip.as_ref())
            .and_then(|ip| ip.parse().ok());
        // the heartbeat brings the pods again when the node has a range
        work.address = match node.addresses.lock().as_mut() {
            Some(addresses) => addresses.take(wanted),
            None => return Ok(Action::Done),
        };
    }
    let (now, time) = (Instant::now(), engine.config.clock.time());
    if deleting {
        stop_all(engine, pod, work, now, &time);
    } else if !work.mounted {
        mount(node, pod, work, now).await?;
    }
    let addressed = with_address(pod, work.address);
    run_containers(engine, node, key, &addressed, work, now, &time, deleting);
    tell(node, pod, work, now, &time, host_network).await?;
    if deleting && work.containers.values().all(Tracked::is_over) {
        let api: Api<Pod> = Api::namespaced(node.config.client.clone(), &key.pod.namespace);
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: pod.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        apply::delete_with(&api, &key.pod.name, &parameters).await?;
        return Ok(Action::Done);
    }
    let deadline = deleting.then(|| now + until_deadline(pod, &time));
    let next = work.containers.values().filter_map(|own| own.next(now));
    let mount = work.mount_at.filter(|_| !work.mounted && !deleting);
    let next = next.chain(deadline).chain(mount).min();
    Ok(next.map_or(Action::Done, |at| {
        Action::RequeueAfter(at.saturating_duration_since(now).max(Duration::from_millis(1)))
    }))
}

/// How long a pod that is being deleted may still take.
fn until_deadline(pod: &Pod, time: &Time) -> Duration {
    let deadline = pod
        .metadata
        .deletion_timestamp
        .as_ref()
        .map_or(time.0, |deadline| deadline.0);
    let left = deadline.duration_since(time.0);
    Duration::try_from(left).unwrap_or(Duration::ZERO)
}

fn stop_all(engine: &Engine, pod: &Pod, work: &mut PodWork, now: Instant, time: &Time) {
    let over = until_deadline(pod, time).is_zero();
    for container in init_containers(pod).iter().chain(main_containers(pod)) {
        if let Some(tracked) = work.containers.get_mut(&container.name) {
            tracked.stop(container, &engine.config, now);
            tracked.advance(now, time, "Never", true);
            if over {
                tracked.kill(time, now);
            }
        }
    }
}

async fn mount(node: &NodeState, pod: &Pod, work: &mut PodWork, now: Instant) -> Result<(), Error> {
    if work.mount_at.is_some_and(|at| at > now) {
        return Ok(());
    }
    let Some(why) = mounts::missing(&node.config.client, pod).await? else {
        work.mounted = true;
        return Ok(());
    };
    let factor = 1u32.checked_shl(work.mount_failures).unwrap_or(u32::MAX);
    work.mount_failures = work.mount_failures.saturating_add(1);
    work.mount_at = Some(now + MOUNT.saturating_mul(factor).min(MAX_MOUNT));
    let about = object_reference(pod, &());
    node.recorder
        .publish(&about, Severity::Warning, "FailedMount", &why)
        .await;
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn run_containers(
    engine: &Arc<Engine>,
    node: &NodeState,
    key: &PodKey,
    pod: &Arc<Pod>,
    work: &mut PodWork,
    now: Instant,
    time: &Time,
    deleting: bool,
) {
    if !work.mounted {
        return;
    }
    let mut may_start = true;
    for container in init_containers(pod) {
        let sidecar = container.restart_policy.as_deref() == Some("Always");
        step(
            engine, node, key, pod, work, container, true, may_start, now, time, deleting,
        );
        let tracked = work.containers.get(&container.name);
        may_start &= tracked.is_some_and(|own| if sidecar { own.is_running() } else { own.succeeded() });
    }
    // an init container never runs again once all have succeeded
    work.initialized |= may_start;
    for container in main_containers(pod) {
        let may_start = work.initialized;
        step(
            engine, node, key, pod, work, container, false, may_start, now, time, deleting,
        );
    }
}

#[allow(clippy::too_many_arguments)]
fn step(
    engine: &Arc<Engine>,
    node: &NodeState,
    key: &PodKey,
    pod: &Arc<Pod>,
    work: &mut PodWork,
    container: &Container,
    init: bool,
    may_start: bool,
    now: Instant,
    time: &Time,
    deleting: bool,
) {
    let policy = policy(pod, container, init);
    let program = program_of(&engine.config, pod, container);
    let tracked = work
        .containers
        .entry(container.name.clone())
        .or_insert_with(Tracked::new);
    if may_start && !deleting && matches!(tracked.state, State::Waiting) {
        let wait = if program.is_some() {
            Duration::ZERO
        } else {
            engine.config.start
        };
        tracked.state = State::Starting(now + wait);
    }
    if !tracked.advance(now, time, policy, deleting) || deleting {
        // a container that just ended may start again at once
        if deleting || !tracked.advance(now, time, policy, deleting) {
            return;
        }
    }
    if let State::Ended(ended, _) = &tracked.state {
        tracked.last = Some(ended.clone());
        tracked.restarts += 1;
    }
    tracked.id = format!(
        "simulated://{}-{}-{}",
        pod.uid().unwrap_or_default(),
        container.name,
        tracked.restarts
    );
    let run = program.map(|program| spawn(engine, node, key, pod, container, program));
    let ends = (run.is_none() && policy != "Always").then(|| {
        let (duration, exit) = simulated_run(container, &engine.config);
        (now + duration, exit)
    });
    let delay = container
        .readiness_probe
        .as_ref()
        .and_then(|probe| probe.initial_delay_seconds)
        .unwrap_or(0);
    tracked.state = State::Running {
        since: time.clone(),
        ready_at: now + Duration::from_secs(u64::try_from(delay).unwrap_or(0)),
        ends,
        run,
        stopping: false,
    };
}

/// The pod with the address that it was just given: the status tells it only after the containers have started.
fn with_address(pod: &Arc<Pod>, address: Option<IpAddr>) -> Arc<Pod> {
    let known = pod.status.as_ref().is_some_and(|status| status.pod_ip.is_some());
    match address {
        Some(address) if !known => {
            let mut addressed = Pod::clone(pod);
            addressed.status.get_or_insert_default().pod_ip = Some(address.to_string());
            Arc::new(addressed)
        }
        _ => Arc::clone(pod),
    }
}

/// Goes on with containers that ran before this process started.
fn take_over(engine: &Arc<Engine>, node: &NodeState, key: &PodKey, pod: &Arc<Pod>, work: &mut PodWork) {
    let Some(told) = pod.status.as_ref() else { return };
    if pods::phase(pod) == "Pending" && told.container_statuses.is_none() {
        return;
    }
    let now = Instant::now();
    let statuses = told
        .init_container_statuses
        .iter()
        .flatten()
        .chain(told.container_statuses.iter().flatten());
    for status in statuses {
        let found = init_containers(pod)
            .iter()
            .map(|own| (own, true))
            .chain(main_containers(pod).iter().map(|own| (own, false)))
            .find(|(own, _)| own.name == status.name);
        let Some((container, init)) = found else { continue };
        let mut tracked = Tracked::new();
        tracked.restarts = status.restart_count;
        tracked.id = status.container_id.clone().unwrap_or_default();
        tracked.last = ended(status.last_state.as_ref(), status);
        let state = status.state.as_ref();
        if let Some(running) = state.and_then(|state| state.running.as_ref()) {
            let program = program_of(&engine.config, pod, container);
            let run = program
                .filter(|_| !pods::is_deleting(pod))
                .map(|program| spawn(engine, node, key, pod, container, program));
            let ends = (run.is_none() && policy(pod, container, init) != "Always").then(|| {
                let (duration, exit) = simulated_run(container, &engine.config);
                (now + duration, exit)
            });
            let since = running.started_at.clone().unwrap_or_else(|| engine.config.clock.time());
            tracked.state = State::Running {
                since,
                ready_at: now,
                ends,
                run,
                stopping: false,
            };
        } else if let Some(ended) = ended(state, status) {
            let again = match policy(pod, container, init) {
                "Always" => true,
                "OnFailure" => ended.exit != 0,
                _ => false,
            };
            tracked.state = State::Ended(ended, again.then_some(now));
        } else if let (Some(last), true) = (&tracked.last, state.is_some()) {
            tracked.state = State::Ended(last.clone(), Some(now));
        }
        work.containers.insert(status.name.clone(), tracked);
    }
    let initialized = pods::condition(pod, "Initialized").is_some_and(|own| own.status == "True");
    let any = work.containers.values().any(|own| !matches!(own.state, State::Waiting));
    work.initialized = initialized && (any || init_containers(pod).is_empty());
    work.mounted = any;
}

fn ended(state: Option<&k8s_openapi::api::core::v1::ContainerState>, status: &ContainerStatus) -> Option<Ended> {
    let terminated = state?.terminated.as_ref()?;
    Some(Ended {
        exit: terminated.exit_code,
        started: terminated.started_at.clone()?,
        finished: terminated.finished_at.clone()?,
        id: terminated
            .container_id
            .clone()
            .or_else(|| status.container_id.clone())
            .unwrap_or_default(),
    })
}

async fn tell(
    node: &NodeState,
    pod: &Pod,
    work: &PodWork,
    now: Instant,
    time: &Time,
    host_network: bool,
) -> Result<(), Error> {
    let host_ip = node
        .config
        .addresses
        .iter()
        .find(|(type_, _)| type_ == "InternalIP")
        .map(|(_, ip)| ip.clone());
    let known = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    let pod_ip = if host_network {
        host_ip.clone()
    } else {
        work.address.map(|ip| ip.to_string()).or(known)
    };
    let facts = Facts {
        containers: &work.containers,
        mounted: work.mounted,
        initialized: work.initialized || (work.mounted && init_containers(pod).is_empty()),
        host_ip,
        pod_ip,
        started: time.clone(),
        now,
        time: time.clone(),
    };
    let api: Api<Pod> = Api::namespaced(
        node.config.client.clone(),
        pod.metadata.namespace.as_deref().unwrap_or_default(),
    );
    apply::patch_status(&api, pod, |pod| pod.status = Some(status(&facts, pod))).await?;
    Ok(())
}
