//! The MachineDeployment controller: sets by template, rolled and scaled as `rules::machines::rollout` says [MCH-45]–[MCH-56], [MCH-75].

use std::collections::BTreeMap;

use gardener_apis::machine::v1alpha1::{
    Machine, MachineDeployment, MachineDeploymentStatusCondition, MachineDeploymentStatusFailedMachine,
    MachineDeploymentStatusFailedMachineLastOperation, MachineSet, MachineTemplateSpec,
};
use gardener_controller::{Action, ObjectRef, Read, apply};
use gardener_rules::machines::deletion::{is_terminating, phase_of};
use gardener_rules::machines::rollout::{Resize, Set, bounds, is_scaling, new_size, scale, shrink_old};
use gardener_rules::machines::{FINALIZER, key, phase};
use gardener_rules::worker_pool::hash_of_hashes;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, ResourceExt};

use crate::{Error, Shared, node_template, owned};

pub(crate) async fn reconcile(shared: &Shared, key: &ObjectRef) -> Result<Action, Error> {
    let api: Api<MachineDeployment> = shared.api();
    let Some(deployment) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    let set_api: Api<MachineSet> = shared.api();
    let all = set_api.read_list(&Default::default()).await?;
    let sets = owned::owned(&set_api, all, &deployment, deployment.spec.selector.as_ref()).await?;
    if deployment.metadata.deletion_timestamp.is_some() {
        if sets.is_empty() {
            apply::remove_finalizer(&api, &deployment, FINALIZER).await?;
            return Ok(Action::Done);
        }
        for set in &sets {
            apply::delete(&set_api, &set.name_any()).await?;
        }
        return Ok(Action::Done);
    }
    let strategy = Strategy::of(&deployment)?;
    let (deployment, _) = apply::add_finalizer(&api, &deployment, FINALIZER).await?;
    let deployment = mark_for_deletion(shared, &deployment).await?;
    let (new, old) = split(&deployment, sets);
    let new = match new {
        Some(new) => Some(sync(shared, &deployment, &new).await?),
        None => None,
    };
    roll(shared, &deployment, &strategy, new, &old).await?;
    write_status(shared, &deployment, &strategy).await?;
    Ok(Action::Done)
}

enum Kind {
    Rolling,
    Recreate,
}

struct Strategy {
    kind: Kind,
    surge: i32,
    unavailable: i32,
}

impl Strategy {
    /// [MCH-8], [MCH-48].
    fn of(deployment: &MachineDeployment) -> Result<Self, Error> {
        let invalid = |why: String| Error::Invalid(format!("machine deployment {}: {why}", deployment.name_any()));
        let strategy = deployment.spec.strategy.as_ref();
        let replicas = deployment.spec.replicas.unwrap_or_default();
        match strategy.and_then(|strategy| strategy.r#type.as_deref()) {
            Some("RollingUpdate") | None => {
                let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
                let rolling = rolling.ok_or_else(|| invalid("strategy.rollingUpdate is required".into()))?;
                let or = |value: &Option<IntOrString>, default| value.clone().unwrap_or(IntOrString::Int(default));
                let (surge, unavailable) =
                    bounds(replicas, &or(&rolling.max_surge, 1), &or(&rolling.max_unavailable, 1))
                        .map_err(|error| invalid(error.to_string()))?;
                Ok(Self {
                    kind: Kind::Rolling,
                    surge,
                    unavailable,
                })
            }
            Some("Recreate") => Ok(Self {
                kind: Kind::Recreate,
                surge: 0,
                unavailable: replicas,
            }),
            Some(other) => Err(invalid(format!("strategy {other} is not supported"))),
        }
    }
}

/// The part of a template by which sets are told apart [MCH-47].
fn identity(template: &MachineTemplateSpec) -> (BTreeMap<String, String>, BTreeMap<String, String>, String) {
    let mut labels = template.metadata.labels.clone().unwrap_or_default();
    labels.remove(key::TEMPLATE_HASH);
    let class = template.spec.class.as_ref().and_then(|class| class.name.clone());
    (
        labels,
        template.metadata.annotations.clone().unwrap_or_default(),
        class.unwrap_or_default(),
    )
}

/// The set of the deployment's template (the oldest if there are several), and the others.
fn split(deployment: &MachineDeployment, mut sets: Vec<MachineSet>) -> (Option<MachineSet>, Vec<MachineSet>) {
    sets.sort_by_key(|set| {
        (
            set.metadata.creation_timestamp.as_ref().map(|time| time.0),
            set.name_any(),
        )
    });
    let wanted = identity(&deployment.spec.template);
    let is_new = |set: &MachineSet| {
        set.metadata.deletion_timestamp.is_none()
            && set
                .spec
                .template
                .as_ref()
                .is_some_and(|template| identity(template) == wanted)
    };
    match sets.iter().position(is_new) {
        Some(index) => {
            let new = sets.remove(index);
            (Some(new), sets)
        }
        None => (None, sets),
    }
}

/// What changes without a new set [MCH-47].
async fn sync(shared: &Shared, deployment: &MachineDeployment, set: &MachineSet) -> Result<MachineSet, Error> {
    let wanted = deployment.spec.template.spec.clone();
    let scaled = deployment.annotations().get(key::SCALED_AT).cloned();
    let (set, _) = apply::patch(&shared.api(), set, |set| {
        set.spec.min_ready_seconds = deployment.spec.min_ready_seconds;
        set.spec.auto_preserve_failed_machine_max = deployment.spec.auto_preserve_failed_machine_max;
        if let Some(template) = &mut set.spec.template {
            template.spec = wanted.clone();
        }
        if let Some(scaled) = scaled.clone() {
            set.annotations_mut().insert(key::SCALED_AT.into(), scaled);
        }
    })
    .await?;
    Ok(set)
}

fn view(set: &MachineSet) -> Set {
    let mark = |key: &str| set.annotations().get(key).and_then(|text| text.parse().ok());
    Set {
        name: set.name_any(),
        created: set
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        spec: set.spec.replicas.unwrap_or_default(),
        actual: set.status.replicas.unwrap_or_default(),
        available: set.status.available_replicas.unwrap_or_default(),
        desired_mark: mark(key::DESIRED_REPLICAS),
        max_mark: mark(key::MAX_REPLICAS),
    }
}

async fn roll(
    shared: &Shared,
    deployment: &MachineDeployment,
    strategy: &Strategy,
    new: Option<MachineSet>,
    old: &[MachineSet],
) -> Result<(), Error> {
    let desired = deployment.spec.replicas.unwrap_or_default();
    let old_views: Vec<Set> = old.iter().map(view).collect();
    let new_view = new.as_ref().map(view);
    let mark = |set: &mut MachineSet| {
        let annotations = set.annotations_mut();
        annotations.insert(key::DESIRED_REPLICAS.into(), desired.to_string());
        annotations.insert(key::MAX_REPLICAS.into(), (desired + strategy.surge).to_string());
    };
    let paused = deployment.spec.paused == Some(true);
    if paused || is_scaling(desired, new_view.as_ref(), &old_views) {
        let resizes = scale(
            desired,
            strategy.surge,
            new_view.as_ref(),
            &old_views,
            matches!(strategy.kind, Kind::Rolling),
        );
        for set in old.iter().chain(&new) {
            resize(shared, set, &resizes, &mark).await?;
        }
        return Ok(());
    }
    let old_machines: i32 = old_views.iter().map(|set| set.actual.max(set.spec)).sum();
    let Some(new) = new else {
        let size = match strategy.kind {
            Kind::Rolling => new_size(desired, strategy.surge, &Set::default(), &old_views),
            Kind::Recreate if old_machines > 0 => 0,
            Kind::Recreate => desired,
        };
        return create(shared, deployment, old, size, &mark).await;
    };
    let current = new_view.unwrap_or_default();
    let mut resizes = Vec::new();
    match strategy.kind {
        Kind::Rolling => {
            node_template::prefer_new(shared, &new, old).await?;
            let size = new_size(desired, strategy.surge, &current, &old_views);
            if size == current.spec {
                resizes = shrink_old(desired, strategy.unavailable, &current, &old_views);
            } else {
                resizes.push(Resize {
                    name: current.name.clone(),
                    replicas: size,
                });
            }
        }
        Kind::Recreate if old_machines > 0 => {
            resizes.extend(old_views.iter().map(|set| Resize {
                name: set.name.clone(),
                replicas: 0,
            }));
        }
        Kind::Recreate => resizes.push(Resize {
            name: current.name.clone(),
            replicas: desired,
        }),
    }
    for set in old.iter().chain([&new]) {
        resize(shared, set, &resizes, &mark).await?;
    }
    if current.spec == desired && current.available == desired && current.actual == desired {
        clean_up(shared, deployment, old).await?;
    }
    Ok(())
}

async fn resize(
    shared: &Shared,
    set: &MachineSet,
    resizes: &[Resize],
    mark: &impl Fn(&mut MachineSet),
) -> Result<(), Error> {
    let wanted = resizes
        .iter()
        .find(|one| one.name == set.name_any())
        .map(|one| one.replicas);
    let is_active = set.spec.replicas.unwrap_or_default() > 0 || wanted.is_some();
    apply::patch(&shared.api::<MachineSet>(), set, |set| {
        if is_active {
            mark(set);
        }
        if let Some(wanted) = wanted {
            set.spec.replicas = Some(wanted);
        }
    })
    .await?;
    Ok(())
}

async fn create(
    shared: &Shared,
    deployment: &MachineDeployment,
    old: &[MachineSet],
    size: i32,
    mark: &impl Fn(&mut MachineSet),
) -> Result<(), Error> {
    let (labels, annotations, class) = identity(&deployment.spec.template);
    let parts = [format!("{labels:?}"), format!("{annotations:?}"), class];
    let collisions = deployment.status.collision_count.unwrap_or_default();
    let hash = hash_of_hashes(&[parts.as_slice(), &[collisions.to_string()]].concat(), 5);
    let mut template = deployment.spec.template.clone();
    template
        .metadata
        .labels
        .get_or_insert_default()
        .insert(key::TEMPLATE_HASH.into(), hash.clone());
    let mut selector = deployment.spec.selector.clone().unwrap_or_default();
    selector
        .match_labels
        .get_or_insert_default()
        .insert(key::TEMPLATE_HASH.into(), hash.clone());
    let mut set = MachineSet::default();
    set.metadata.name = Some(format!("{}-{hash}", deployment.name_any()));
    set.metadata.labels = template.metadata.labels.clone();
    set.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    set.metadata.owner_references = Some(vec![owned::reference(deployment)]);
    set.spec.replicas = Some(size);
    set.spec.min_ready_seconds = deployment.spec.min_ready_seconds;
    set.spec.auto_preserve_failed_machine_max = deployment.spec.auto_preserve_failed_machine_max;
    set.spec.selector = Some(selector);
    set.spec.template = Some(template);
    let revision = |set: &MachineSet| {
        set.annotations()
            .get(key::REVISION)
            .and_then(|text| text.parse::<i64>().ok())
    };
    let next = old.iter().filter_map(revision).max().unwrap_or_default() + 1;
    set.annotations_mut().insert(key::REVISION.into(), next.to_string());
    mark(&mut set);
    shared.api::<MachineSet>().create(&PostParams::default(), &set).await?;
    Ok(())
}

/// Deletes old sets that have nothing left, but for the newest that the history keeps [MCH-54].
async fn clean_up(shared: &Shared, deployment: &MachineDeployment, old: &[MachineSet]) -> Result<(), Error> {
    let kept = usize::try_from(deployment.spec.revision_history_limit.unwrap_or_default()).unwrap_or_default();
    let surplus = old.len().saturating_sub(kept);
    for set in old.iter().take(surplus) {
        let observed = set.status.observed_generation >= set.metadata.generation;
        let empty = set.spec.replicas.unwrap_or_default() == 0 && set.status.replicas.unwrap_or_default() == 0;
        if observed && empty && set.metadata.deletion_timestamp.is_none() {
            apply::delete(&shared.api::<MachineSet>(), &set.name_any()).await?;
        }
    }
    Ok(())
}

/// Takes over which machines the autoscaler wants gone [MCH-75].
async fn mark_for_deletion(shared: &Shared, deployment: &MachineDeployment) -> Result<MachineDeployment, Error> {
    let Some(asked) = deployment.annotations().get(key::TRIGGER_DELETION).cloned() else {
        return Ok(deployment.clone());
    };
    let now = shared.config.clock.time().0.to_string();
    let scaled = deployment.annotations().get(key::SCALED_AT).cloned().unwrap_or(now);
    let api: Api<Machine> = shared.api();
    let mut kept = Vec::new();
    for entry in asked.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (name, time) = match entry.split('~').collect::<Vec<_>>().as_slice() {
            [name] => ((*name).to_owned(), scaled.clone()),
            [name, time] if time.parse::<Timestamp>().is_ok() => ((*name).to_owned(), (*time).to_owned()),
            _ => continue,
        };
        let Some(machine) = api.read_opt(&name).await? else {
            continue;
        };
        if is_terminating(&machine) || phase_of(&machine) == phase::FAILED {
            continue;
        }
        kept.push(format!("{name}~{time}"));
        apply::patch(&api, &machine, |machine| {
            let annotations = machine.annotations_mut();
            annotations.insert(key::PRIORITY.into(), "1".into());
            annotations
                .entry(key::MARKED_FOR_DELETION.into())
                .or_insert(time.clone());
        })
        .await?;
    }
    let (deployment, _) = apply::patch(&shared.api(), deployment, |deployment| {
        let annotations = deployment.annotations_mut();
        annotations.entry(key::SCALED_AT.into()).or_insert(scaled.clone());
        if kept.is_empty() {
            annotations.remove(key::TRIGGER_DELETION);
        } else {
            annotations.insert(key::TRIGGER_DELETION.into(), kept.join(","));
        }
    })
    .await?;
    Ok(deployment)
}

/// [MCH-12].
async fn write_status(shared: &Shared, deployment: &MachineDeployment, strategy: &Strategy) -> Result<(), Error> {
    let api: Api<MachineDeployment> = shared.api();
    let all = shared.api::<MachineSet>().read_list(&Default::default()).await?;
    let uid = deployment.uid();
    let sets: Vec<MachineSet> = all
        .into_iter()
        .filter(|set| {
            set.owner_references()
                .iter()
                .any(|owner| Some(&owner.uid) == uid.as_ref())
        })
        .collect();
    let Some(current) = api.read_opt(&deployment.name_any()).await? else {
        return Ok(());
    };
    let (new, _) = split(deployment, sets.clone());
    let sum = |count: &dyn Fn(&MachineSet) -> Option<i32>| -> i32 { sets.iter().filter_map(count).sum() };
    let available = sum(&|set| set.status.available_replicas);
    let preserved = sum(&|set| set.status.preserved_failed_replicas);
    let wanted = deployment.spec.replicas.unwrap_or_default();
    let is_available = available >= (wanted - strategy.unavailable - preserved).max(0);
    let now = shared.config.clock.time();
    let (status, reason, message) = if is_available {
        (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    } else {
        (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    let failed: Vec<MachineDeploymentStatusFailedMachine> = sets
        .iter()
        .flat_map(|set| &set.status.failed_machines)
        .map(|machine| MachineDeploymentStatusFailedMachine {
            last_operation: machine.last_operation.as_ref().map(|last| {
                MachineDeploymentStatusFailedMachineLastOperation {
                    description: last.description.clone(),
                    error_code: last.error_code.clone(),
                    last_update_time: last.last_update_time.clone(),
                    state: last.state.clone(),
                    r#type: last.r#type.clone(),
                }
            }),
            name: machine.name.clone(),
            owner_ref: machine.owner_ref.clone(),
            provider_id: machine.provider_id.clone(),
        })
        .collect();
    apply::patch_status(&api, &current, |current| {
        let own = &mut current.status;
        own.observed_generation = deployment.metadata.generation;
        own.replicas = Some(sum(&|set| set.status.replicas));
        own.updated_replicas = Some(new.clone().and_then(|set| set.status.replicas).unwrap_or_default());
        own.ready_replicas = Some(sum(&|set| set.status.ready_replicas));
        own.available_replicas = Some(available);
        own.preserved_failed_replicas = Some(preserved);
        own.unavailable_replicas = Some((sum(&|set| set.spec.replicas) - available).max(0));
        own.failed_machines = failed.clone();
        let before = own
            .conditions
            .iter()
            .find(|condition| condition.r#type == "Available")
            .cloned();
        let same = before.filter(|before| before.status == status);
        let condition = MachineDeploymentStatusCondition {
            last_transition_time: same
                .as_ref()
                .map_or(Some(now.clone()), |same| same.last_transition_time.clone()),
            last_update_time: same.map_or(Some(now.clone()), |same| same.last_update_time),
            message: Some(message.to_owned()),
            reason: Some(reason.to_owned()),
            status: status.to_owned(),
            r#type: "Available".to_owned(),
        };
        match own
            .conditions
            .iter_mut()
            .find(|condition| condition.r#type == "Available")
        {
            Some(old) => *old = condition,
            None => own.conditions.push(condition),
        }
    })
    .await?;
    Ok(())
}
