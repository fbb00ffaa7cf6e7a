//! The MachineSet controller: as many machines as the set says [MCH-70]–[MCH-73].

use gardener_apis::machine::v1alpha1::{
    Machine, MachineSet, MachineSetStatusFailedMachine, MachineSetStatusFailedMachineLastOperation,
    MachineStatusCurrentStatus, MachineStatusLastOperation,
};
use gardener_controller::{Action, ObjectRef, Read, apply};
use gardener_rules::machines::deletion::{is_terminating, phase_of, preserved_until, to_delete};
use gardener_rules::machines::{FINALIZER, key, phase};
use kube::api::PostParams;
use kube::{Api, Resource, ResourceExt};

use crate::machine::deletion::FAILED_MACHINE;
use crate::{Error, Shared, owned};

pub(crate) async fn reconcile(shared: &Shared, key: &ObjectRef) -> Result<Action, Error> {
    let api: Api<MachineSet> = shared.api();
    let Some(set) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    let machines: Api<Machine> = shared.api();
    let own = owned::owned(&machines, shared.machines().await?, &set, set.spec.selector.as_ref()).await?;
    if set.metadata.deletion_timestamp.is_some() {
        if own.is_empty() {
            apply::remove_finalizer(&api, &set, FINALIZER).await?;
            return Ok(Action::Done);
        }
        for machine in &own {
            delete(shared, machine).await?;
        }
        write_status(shared, &set).await?;
        return Ok(Action::Done);
    }
    let (set, _) = apply::add_finalizer(&api, &set, FINALIZER).await?;
    for machine in &own {
        sync(shared, &set, machine).await?;
    }
    scale(shared, &set, &own).await?;
    write_status(shared, &set).await?;
    Ok(Action::Done)
}

/// Node template, settings and class kind follow the set without a new machine [MCH-73].
async fn sync(shared: &Shared, set: &MachineSet, machine: &Machine) -> Result<(), Error> {
    let Some(template) = &set.spec.template else {
        return Ok(());
    };
    if is_terminating(machine) {
        return Ok(());
    }
    let wanted = template.spec.clone();
    apply::patch(&shared.api::<Machine>(), machine, |machine| {
        let spec = &mut machine.spec;
        spec.node_template = wanted.node_template.clone();
        spec.creation_timeout = wanted.creation_timeout;
        spec.drain_timeout = wanted.drain_timeout;
        spec.health_timeout = wanted.health_timeout;
        spec.in_place_update_timeout = wanted.in_place_update_timeout;
        spec.machine_preserve_timeout = wanted.machine_preserve_timeout;
        spec.disable_health_timeout = wanted.disable_health_timeout;
        spec.max_evict_retries = wanted.max_evict_retries;
        spec.node_conditions = wanted.node_conditions.clone();
        if let (Some(class), Some(wanted)) = (&mut spec.class, wanted.class.clone()) {
            class.kind = wanted.kind;
        }
    })
    .await?;
    Ok(())
}

/// Creates what is missing, deletes what is too much or has failed [MCH-70].
async fn scale(shared: &Shared, set: &MachineSet, own: &[Machine]) -> Result<(), Error> {
    let wanted = usize::try_from(set.spec.replicas.unwrap_or_default()).unwrap_or_default();
    let alive = own.iter().filter(|machine| !is_terminating(machine)).count();
    let now = shared.config.clock.now();
    let is_held = set.labels().get(key::FREEZE).map(String::as_str) == Some("True")
        || set.labels().contains_key(key::SCALE_UP_DISABLED);
    if alive < wanted && !is_held {
        for _ in alive..wanted.min(alive + 100) {
            create(shared, set).await?;
        }
    }
    let scaled_at = set.annotations().get(key::SCALED_AT).and_then(|text| text.parse().ok());
    let replicas = set.spec.replicas.unwrap_or_default();
    for name in to_delete(own, replicas, scaled_at, now) {
        if let Some(machine) = own.iter().find(|machine| machine.name_any() == name) {
            delete(shared, machine).await?;
        }
    }
    Ok(())
}

async fn create(shared: &Shared, set: &MachineSet) -> Result<(), Error> {
    let template = set.spec.template.clone().unwrap_or_default();
    let mut machine = Machine {
        spec: template.spec,
        ..Machine::default()
    };
    machine.metadata.name = Some(format!("{}-{}", set.name_any(), shared.config.chance.hex(5)));
    machine.metadata.labels = template.metadata.labels;
    machine.metadata.annotations = template.metadata.annotations;
    machine.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    machine.metadata.owner_references = Some(vec![owned::reference(set)]);
    shared.api::<Machine>().create(&PostParams::default(), &machine).await?;
    Ok(())
}

/// Deletes a machine and says so in its phase.
pub(crate) async fn delete(shared: &Shared, machine: &Machine) -> Result<(), Error> {
    if machine.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let api: Api<Machine> = shared.api();
    let name = machine.name_any();
    apply::delete(&api, &name).await?;
    let Some(machine) = api.read_opt(&name).await? else {
        return Ok(());
    };
    let now = shared.config.clock.time();
    let written = apply::patch_status(&api, &machine, |machine| {
        // why it goes decides how its node is told
        let failed = phase_of(machine) == phase::FAILED;
        machine.status.current_status = Some(MachineStatusCurrentStatus {
            phase: Some(phase::TERMINATING.to_owned()),
            timeout_active: Some(false),
            last_update_time: Some(now.clone()),
            preserve_expiry_time: None,
        });
        machine.status.last_operation = Some(MachineStatusLastOperation {
            description: Some(if failed { FAILED_MACHINE } else { "Deletion" }.to_owned()),
            error_code: None,
            last_update_time: Some(now.clone()),
            state: Some("Processing".to_owned()),
            r#type: Some("Delete".to_owned()),
        });
    })
    .await;
    match written {
        Err(error) if error.is_not_found() => Ok(()),
        other => Ok(other.map(|_| ())?),
    }
}

/// [MCH-10], [MCH-11].
async fn write_status(shared: &Shared, set: &MachineSet) -> Result<(), Error> {
    let api: Api<MachineSet> = shared.api();
    let uid = set.uid();
    let own: Vec<Machine> = shared
        .machines()
        .await?
        .into_iter()
        .filter(|machine| {
            machine
                .owner_references()
                .iter()
                .any(|owner| Some(&owner.uid) == uid.as_ref())
        })
        .collect();
    let Some(set) = api.read_opt(&set.name_any()).await? else {
        return Ok(());
    };
    let now = shared.config.clock.now();
    let count = |wanted: &dyn Fn(&Machine) -> bool| {
        Some(i32::try_from(own.iter().filter(|machine| wanted(machine)).count()).unwrap_or(i32::MAX))
    };
    let is_preserved =
        |machine: &Machine| phase_of(machine) == phase::FAILED && preserved_until(machine, now).is_some();
    let labels = set
        .spec
        .template
        .as_ref()
        .and_then(|template| template.metadata.labels.clone());
    let is_labelled = |machine: &Machine| {
        labels
            .iter()
            .flatten()
            .all(|(key, value)| machine.labels().get(key) == Some(value))
    };
    let failed: Vec<MachineSetStatusFailedMachine> = own
        .iter()
        .filter(|machine| !is_preserved(machine))
        .filter_map(|machine| failed_machine(machine, &set))
        .collect();
    apply::patch_status(&api, &set, |set| {
        let generation = set.metadata.generation;
        let status = &mut set.status;
        status.replicas = count(&|_| true);
        status.fully_labeled_replicas = count(&is_labelled);
        status.available_replicas = count(&|machine| matches!(phase_of(machine), phase::RUNNING | phase::AVAILABLE));
        status.ready_replicas = count(&|machine| phase_of(machine) == phase::RUNNING);
        status.preserved_failed_replicas = count(&is_preserved);
        status.auto_preserve_failed_machine_count =
            count(&|machine| machine.annotations().get(key::PRESERVE).map(String::as_str) == Some("auto-preserved"));
        status.failed_machines = failed.clone();
        status.observed_generation = generation;
    })
    .await?;
    Ok(())
}

fn failed_machine(machine: &Machine, set: &MachineSet) -> Option<MachineSetStatusFailedMachine> {
    let last = machine.status.last_operation.as_ref()?;
    (last.state.as_deref() == Some("Failed")).then(|| MachineSetStatusFailedMachine {
        last_operation: Some(MachineSetStatusFailedMachineLastOperation {
            description: last.description.clone(),
            error_code: last.error_code.clone(),
            last_update_time: last.last_update_time.clone(),
            state: last.state.clone(),
            r#type: last.r#type.clone(),
        }),
        name: machine.meta().name.clone(),
        owner_ref: set.meta().name.clone(),
        provider_id: machine.spec.provider_id.clone(),
    })
}
