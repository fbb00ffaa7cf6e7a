//! The Machine controller: makes the machine, watches its node, takes it away [MCH-80]–[MCH-88].

mod creation;
pub(crate) mod deletion;

use std::time::Duration;

use gardener_apis::machine::v1alpha1::{
    Machine, MachineClass, MachineStatusCondition, MachineStatusCurrentStatus, MachineStatusLastOperation,
};
use gardener_controller::{Action, ObjectRef, Read, apply};
use gardener_rules::machines::deletion::phase_of;
use gardener_rules::machines::health::{
    Deadline, Transition, deadline, default, is_replacement_under_way, seconds, transition,
};
use gardener_rules::machines::{FINALIZER, key, phase};
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::{Api, ResourceExt};

use crate::driver::Request;
use crate::{Error, Shared, node_template};

/// Retry periods [MCH-80].
const SHORT: Duration = Duration::from_secs(5);
const MEDIUM: Duration = Duration::from_secs(3 * 60);
const LONG: Duration = Duration::from_secs(10 * 60);

pub(crate) async fn reconcile(shared: &Shared, key: &ObjectRef) -> Result<Action, Error> {
    let api: Api<Machine> = shared.api();
    let Some(machine) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    if machine.metadata.deletion_timestamp.is_some() {
        return deletion::run(shared, machine).await;
    }
    let (machine, _) = apply::add_finalizer(&api, &machine, FINALIZER).await?;
    let is_made = machine.spec.provider_id.as_deref().is_some_and(|id| !id.is_empty());
    let current = phase_of(&machine).to_owned();
    if !is_made || current.is_empty() || current == phase::CRASH_LOOP_BACK_OFF {
        return creation::run(shared, machine).await;
    }
    if !shared.nodes.is_synced() {
        // as long as the target does not answer nobody can say that a node is ill [MCH-118]
        return Ok(Action::RequeueAfter(SHORT));
    }
    let node_name = machine.labels().get(key::NODE).cloned().unwrap_or_default();
    let node = shared.node(&node_name);
    if let Some(node) = &node {
        node_template::apply(shared, node, &machine).await?;
    }
    let machine = health(shared, machine, node.as_deref()).await?;
    timeouts(shared, machine).await
}

/// The class of a machine and the data of its secrets.
async fn request(shared: &Shared, machine: &Machine) -> Result<Request, Error> {
    let class = machine.spec.class.as_ref();
    let invalid = |why: &str| Error::Invalid(format!("machine {}: {why}", machine.name_any()));
    let class = class.ok_or_else(|| invalid("spec.class is required"))?;
    if class.kind.as_deref() != Some("MachineClass") {
        return Err(invalid("spec.class.kind must be MachineClass"));
    }
    let name = class
        .name
        .as_deref()
        .ok_or_else(|| invalid("spec.class.name is required"))?;
    let class = shared.api::<MachineClass>().read(name).await?;
    let mut secret = std::collections::BTreeMap::new();
    for reference in [&class.credentials_secret_ref, &class.secret_ref].into_iter().flatten() {
        let namespace = reference.namespace.as_deref().unwrap_or(&shared.config.namespace);
        let api: Api<Secret> = Api::namespaced(shared.config.client.clone(), namespace);
        let found = api.read(reference.name.as_deref().unwrap_or_default()).await?;
        secret.extend(found.data.unwrap_or_default());
    }
    Ok(Request {
        machine: machine.clone(),
        class,
        secret,
    })
}

/// What is written about a machine.
struct News<'a> {
    phase: Option<&'a str>,
    operation: &'a str,
    state: &'a str,
    description: String,
    error_code: Option<String>,
}

async fn tell(shared: &Shared, machine: &Machine, news: News<'_>) -> Result<Machine, Error> {
    let now = shared.config.clock.time();
    let (machine, _) = apply::patch_status(&shared.api::<Machine>(), machine, |machine| {
        let status = &mut machine.status;
        if let Some(wanted) = news.phase {
            let before = status.current_status.take().unwrap_or_default();
            let same = before.phase.as_deref() == Some(wanted);
            status.current_status = Some(MachineStatusCurrentStatus {
                phase: Some(wanted.to_owned()),
                timeout_active: Some(matches!(wanted, phase::PENDING | phase::UNKNOWN)),
                last_update_time: if same {
                    before.last_update_time
                } else {
                    Some(now.clone())
                },
                preserve_expiry_time: before.preserve_expiry_time,
            });
        }
        status.last_operation = Some(MachineStatusLastOperation {
            description: Some(news.description.clone()),
            error_code: news.error_code.clone(),
            last_update_time: Some(now.clone()),
            state: Some(news.state.to_owned()),
            r#type: Some(news.operation.to_owned()),
        });
    })
    .await?;
    Ok(machine)
}

fn copied(node: &Node) -> Vec<MachineStatusCondition> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .map(|condition| MachineStatusCondition {
            // the heartbeat alone is no news
            last_heartbeat_time: None,
            last_transition_time: condition.last_transition_time.clone(),
            message: condition.message.clone(),
            reason: condition.reason.clone(),
            status: condition.status.clone(),
            r#type: condition.type_.clone(),
        })
        .collect()
}

/// The phase follows the node [MCH-85].
async fn health(shared: &Shared, machine: Machine, node: Option<&Node>) -> Result<Machine, Error> {
    let knew = !machine.status.conditions.is_empty();
    let bad = machine.spec.node_conditions.as_deref().filter(|list| !list.is_empty());
    let found = transition(phase_of(&machine), knew, node, bad.unwrap_or(default::NODE_CONDITIONS));
    let (machine, _) = match node {
        Some(node) => {
            let conditions = copied(node);
            apply::patch_status(&shared.api::<Machine>(), &machine, |machine| {
                machine.status.conditions = conditions.clone()
            })
            .await?
        }
        None => (machine, apply::Outcome::Unchanged),
    };
    let name = machine.name_any();
    let (to, operation, state, description) = match found {
        Transition::Stay => return Ok(machine),
        Transition::Joined => {
            creation::delete_bootstrap_token(shared, &name).await?;
            let description = format!("Machine {name} successfully joined the cluster");
            (phase::RUNNING, "Create", "Successful", description)
        }
        Transition::Rejoined => {
            let description = format!("Machine {name} successfully re-joined the cluster");
            (phase::RUNNING, "HealthCheck", "Successful", description)
        }
        Transition::Unhealthy => {
            let description = format!("Machine {name} is unhealthy - changing MachineState to Unknown");
            (phase::UNKNOWN, "HealthCheck", "Processing", description)
        }
        Transition::Missing => {
            let description =
                format!("Node object went missing. Machine {name} is unhealthy - changing MachineState to Unknown");
            (phase::UNKNOWN, "HealthCheck", "Processing", description)
        }
    };
    let news = News {
        phase: Some(to),
        operation,
        state,
        description,
        error_code: None,
    };
    tell(shared, &machine, news).await
}

/// What takes too long fails [MCH-86], [MCH-87].
async fn timeouts(shared: &Shared, machine: Machine) -> Result<Action, Error> {
    let now = shared.config.clock.now();
    let name = machine.name_any();
    let (operation, description) = match deadline(&machine, now) {
        Deadline::None => return Ok(Action::Done),
        Deadline::In(left) => {
            let left = Duration::try_from(left).unwrap_or_default();
            return Ok(Action::RequeueAfter(left + Duration::from_secs(1)));
        }
        Deadline::CreationMissed => {
            let minutes = seconds(machine.spec.creation_timeout, default::CREATION_TIMEOUT) / 60;
            (
                "Create",
                format!("Machine {name} failed to join the cluster in {minutes} minutes."),
            )
        }
        Deadline::HealthMissed => {
            let deployment = machine.labels().get(key::NAME);
            let all = shared.machines().await?;
            let others = all
                .iter()
                .filter(|other| other.name_any() != name && other.labels().get(key::NAME) == deployment);
            if is_replacement_under_way(others, now) {
                tracing::info!("machine {name:?} couldn't be marked FAILED, other machines are getting replaced");
                return Ok(Action::RequeueAfter(SHORT));
            }
            let minutes = seconds(machine.spec.health_timeout, default::HEALTH_TIMEOUT) / 60;
            (
                "HealthCheck",
                format!("Machine {name} is not healthy since {minutes} minutes. Changing status to failed."),
            )
        }
    };
    let news = News {
        phase: Some(phase::FAILED),
        operation,
        state: "Failed",
        description,
        error_code: None,
    };
    tell(shared, &machine, news).await?;
    Ok(Action::Done)
}
