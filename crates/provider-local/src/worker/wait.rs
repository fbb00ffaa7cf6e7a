//! Waiting for machines, by watches [MCH-37], [MCH-38].

use std::collections::BTreeSet;

use gardener_apis::machine::v1alpha1::MachineDeployment;
use gardener_controller::wait::{Patience, wait_for_all};
use gardener_extension::ActuatorError;
use kube::{Api, ResourceExt};

use super::Machines;
use super::plan::Wanted;

/// What is known of the wanted deployments: done, or what is waited for, or why waiting is in vain.
enum Judgement {
    Done,
    Waiting(String),
    Failed(String),
}

fn judge(all: &[MachineDeployment], wanted: &[Wanted], hibernated: bool) -> Judgement {
    let ours: Vec<&MachineDeployment> = all
        .iter()
        .filter(|deployment| wanted.iter().any(|one| one.name == deployment.name_any()))
        .collect();
    let sum =
        |count: &dyn Fn(&MachineDeployment) -> Option<i32>| -> i32 { ours.iter().filter_map(|one| count(one)).sum() };
    let there = sum(&|one| one.status.replicas);
    if hibernated {
        // whether they are observed does not matter: who sleeps has nobody who would do it
        return if there == 0 {
            Judgement::Done
        } else {
            Judgement::Waiting(format!(
                "Waiting until all machines have been hibernated ({there} still awake)..."
            ))
        };
    }
    let is_observed = |one: &&MachineDeployment| one.status.observed_generation >= one.metadata.generation;
    let observed = ours.len() == wanted.len() && ours.iter().all(is_observed);
    let failed: Vec<String> = ours
        .iter()
        .flat_map(|one| &one.status.failed_machines)
        .map(|machine| {
            let why = machine
                .last_operation
                .as_ref()
                .and_then(|last| last.description.clone());
            format!(
                "{:?}: {}",
                machine.name.as_deref().unwrap_or_default(),
                why.unwrap_or_default()
            )
        })
        .collect();
    if !failed.is_empty() {
        return Judgement::Failed(format!("machine(s) failed: {}", failed.join(", ")));
    }
    let desired = sum(&|one| one.spec.replicas);
    let available = sum(&|one| one.status.available_replicas);
    let updated = sum(&|one| one.status.updated_replicas);
    let unavailable = sum(&|one| one.status.unavailable_replicas);
    let preserved = sum(&|one| one.status.preserved_failed_replicas);
    let healthy = ours
        .iter()
        .filter(|one| {
            one.status
                .conditions
                .iter()
                .any(|condition| condition.r#type == "Available" && condition.status == "True")
        })
        .count();
    let none_missing = unavailable == 0 || (preserved > 0 && unavailable <= preserved);
    if observed && healthy == wanted.len() && updated == there && updated >= desired && none_missing {
        return Judgement::Done;
    }
    if observed && updated >= desired && available >= desired && there > updated {
        return Judgement::Waiting(format!(
            "Waiting until all old machines are drained and terminated. Waiting for {} machine(s)...",
            there - updated
        ));
    }
    Judgement::Waiting(format!(
        "Waiting until machines are available ({available}/{desired} desired machine(s) available, {updated}/{desired} machine(s) updated, {} machine(s) pending, {preserved} preserved failed machine(s), {healthy}/{} machinedeployments available)...",
        (there - available).max(0),
        wanted.len()
    ))
}

/// Asks again after every change of a machine deployment. A failed machine may be replaced yet: it only counts when the time is over.
async fn until(
    api: &Api<MachineDeployment>,
    patience: Patience,
    judge: impl Fn(&[MachineDeployment]) -> Judgement,
) -> Result<(), ActuatorError> {
    let check = |all: &[MachineDeployment]| match judge(all) {
        Judgement::Done => Ok(()),
        Judgement::Waiting(why) | Judgement::Failed(why) => Err(why),
    };
    wait_for_all(api, patience, check).await.map_err(ActuatorError::new)
}

/// Waits until all machines are there, or all are gone when the shoot sleeps.
pub(super) async fn until_available(
    machines: &Machines,
    wanted: &[Wanted],
    hibernated: bool,
    patience: Patience,
) -> Result<(), ActuatorError> {
    until(&machines.deployments, patience, |all| judge(all, wanted, hibernated)).await
}

/// Waits until no machine deployments but these are left. A deployment only goes after its sets and machines.
pub(super) async fn until_only(
    machines: &Machines,
    kept: &BTreeSet<String>,
    patience: Patience,
) -> Result<(), ActuatorError> {
    until(&machines.deployments, patience, |all| {
        let left: Vec<String> = all
            .iter()
            .map(ResourceExt::name_any)
            .filter(|name| !kept.contains(name))
            .collect();
        if left.is_empty() {
            Judgement::Done
        } else {
            Judgement::Waiting(format!(
                "Waiting until machine deployments are gone: {}",
                left.join(", ")
            ))
        }
    })
    .await
}
