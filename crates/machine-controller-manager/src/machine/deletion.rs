//! Taking a machine away: drain, machine, node, finalizer; where it stands is in the description of the last operation [MCH-88].

use gardener_apis::machine::v1alpha1::Machine;
use gardener_controller::{Action, Read, apply};
use gardener_rules::machines::deletion::phase_of;
use gardener_rules::machines::{FINALIZER, key, phase};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::{Api, ResourceExt};

use super::{LONG, News, SHORT, request, tell};
use crate::driver::Code;
use crate::{Error, Shared, drain};

/// The description of a machine that is deleted because it failed.
pub(crate) const FAILED_MACHINE: &str = "Deletion of a failed machine";
const VM_STATUS: &str = "Set machine status to termination. Now, getting VM Status";
const DRAIN: &str = "Initiate node drain";
const DELETE_ATTACHMENTS: &str = "Delete Volume Attachments";
const DELETE_VM: &str = "Initiate VM deletion";
const DELETE_NODE: &str = "Initiate node object deletion";
const REMOVE_FINALIZER: &str = "Initiate machine object finalizer removal";

enum Next {
    /// Goes on with what the description says.
    Go(Box<Machine>),
    /// Comes again.
    Later(std::time::Duration),
    /// Is done.
    Gone,
}

pub(super) async fn run(shared: &Shared, mut machine: Machine) -> Result<Action, Error> {
    if !apply::has_finalizer(&machine, FINALIZER) {
        return Ok(Action::Done);
    }
    // every step moves on or comes again; the bound only guards against a description that leads in circles
    for _ in 0..10 {
        match step(shared, machine).await? {
            Next::Go(next) => machine = *next,
            Next::Later(after) => return Ok(Action::RequeueAfter(after)),
            Next::Gone => return Ok(Action::Done),
        }
    }
    Ok(Action::RequeueAfter(SHORT))
}

async fn go(shared: &Shared, machine: &Machine, description: impl Into<String>) -> Result<Next, Error> {
    Ok(Next::Go(Box::new(
        said(shared, machine, "Processing", description.into(), None).await?,
    )))
}

async fn said(
    shared: &Shared,
    machine: &Machine,
    state: &str,
    description: String,
    code: Option<Code>,
) -> Result<Machine, Error> {
    let news = News {
        phase: Some(phase::TERMINATING),
        operation: if description.contains(DRAIN) {
            "DrainNode"
        } else {
            "Delete"
        },
        state,
        description,
        error_code: code.map(|code| format!("{code:?}")),
    };
    tell(shared, machine, news).await
}

async fn step(shared: &Shared, machine: Machine) -> Result<Next, Error> {
    let last = machine.status.last_operation.as_ref();
    let description = last.and_then(|last| last.description.clone()).unwrap_or_default();
    let is = |marker: &str| description.contains(marker);
    if is(REMOVE_FINALIZER) {
        super::creation::delete_bootstrap_token(shared, &machine.name_any()).await?;
        apply::remove_finalizer(&shared.api::<Machine>(), &machine, FINALIZER).await?;
        return Ok(Next::Gone);
    }
    if is(DELETE_NODE) {
        return delete_node(shared, &machine).await;
    }
    if is(DELETE_VM) {
        return delete_vm(shared, &machine).await;
    }
    if is(DELETE_ATTACHMENTS) {
        return delete_attachments(shared, &machine).await;
    }
    if is(DRAIN) {
        return drain_node(shared, &machine).await;
    }
    if is(VM_STATUS) {
        return vm_status(shared, machine).await;
    }
    if phase_of(&machine) == phase::FAILED || is(FAILED_MACHINE) {
        drain::tell(shared, &machine, drain::FAILED).await?;
    }
    go(shared, &machine, VM_STATUS).await
}

async fn vm_status(shared: &Shared, machine: Machine) -> Result<Next, Error> {
    let Ok(asked) = request(shared, &machine).await else {
        // without its class nobody can be asked
        return go(shared, &machine, DRAIN).await;
    };
    let machine = match shared.config.driver.status(&asked).await {
        Ok(made) if !machine.labels().contains_key(key::NODE) => {
            let api: Api<Machine> = shared.api();
            let labelled = apply::patch(&api, &machine, |machine| {
                machine.labels_mut().insert(key::NODE.into(), made.node_name.clone());
            });
            labelled.await?.0
        }
        Ok(_) => machine,
        Err(error) if matches!(error.code, Code::NotFound | Code::Unimplemented | Code::Uninitialized) => machine,
        Err(error) => {
            let description = format!(
                "Error occurred with decoding machine error status while getting VM status, aborting without retry. {error} {VM_STATUS}"
            );
            said(shared, &machine, "Failed", description, Some(error.code)).await?;
            return Ok(Next::Later(SHORT));
        }
    };
    go(shared, &machine, DRAIN).await
}

async fn drain_node(shared: &Shared, machine: &Machine) -> Result<Next, Error> {
    match drain::drain(shared, machine).await? {
        drain::Outcome::Done { forced: false } => go(shared, machine, format!("Drain successful. {DELETE_VM}")).await,
        drain::Outcome::Done { forced: true } => {
            go(shared, machine, format!("Force Drain successful. {DELETE_ATTACHMENTS}")).await
        }
        drain::Outcome::Failed { forced: true, why } => {
            let description = format!(
                "Drain failed due to - {why}. However, since it's a force deletion shall continue deletion of VM. {DELETE_ATTACHMENTS}"
            );
            go(shared, machine, description).await
        }
        drain::Outcome::Failed { forced: false, why } => {
            let description = format!("Drain failed due to - {why}. Will retry in next sync. {DRAIN}");
            said(shared, machine, "Failed", description, None).await?;
            Ok(Next::Later(SHORT))
        }
    }
}

/// [MCH-108].
async fn delete_attachments(shared: &Shared, machine: &Machine) -> Result<Next, Error> {
    let node = machine.labels().get(key::NODE).and_then(|name| shared.node(name));
    let attached = node
        .as_ref()
        .and_then(|node| node.status.as_ref()?.volumes_attached.as_ref());
    if attached.is_none_or(Vec::is_empty) {
        return go(shared, machine, DELETE_VM).await;
    }
    let api: Api<VolumeAttachment> = Api::all(shared.config.target.clone());
    let name = node.map(|node| node.name_any());
    for attachment in api.read_list(&Default::default()).await? {
        if Some(&attachment.spec.node_name) == name.as_ref() {
            apply::delete(&api, &attachment.name_any()).await?;
        }
    }
    Ok(Next::Later(SHORT))
}

async fn delete_vm(shared: &Shared, machine: &Machine) -> Result<Next, Error> {
    let asked = request(shared, machine).await?;
    match shared.config.driver.delete(&asked).await {
        Ok(()) => go(shared, machine, format!("VM deletion was successful. {DELETE_NODE}")).await,
        Err(error) if error.code == Code::NotFound => {
            go(
                shared,
                machine,
                format!("VM not found. Continuing deletion flow. {DELETE_NODE}"),
            )
            .await
        }
        Err(error) => {
            let transient = matches!(
                error.code,
                Code::Unknown | Code::DeadlineExceeded | Code::Aborted | Code::Unavailable
            );
            let description = format!("VM deletion failed due to - {error}. {DELETE_VM}");
            said(shared, machine, "Failed", description, Some(error.code)).await?;
            Ok(Next::Later(if transient { SHORT } else { LONG }))
        }
    }
}

async fn delete_node(shared: &Shared, machine: &Machine) -> Result<Next, Error> {
    if let Some(name) = machine.labels().get(key::NODE) {
        let api: Api<Node> = Api::all(shared.config.target.clone());
        if let Some(node) = api.read_opt(name).await? {
            if !node.finalizers().is_empty() {
                apply::patch(&api, &node, |node| node.finalizers_mut().clear()).await?;
            }
            apply::delete(&api, name).await?;
        }
    }
    go(shared, machine, REMOVE_FINALIZER).await
}
