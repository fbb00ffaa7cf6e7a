//! Worker: pools become machine classes and machine deployments, one per zone [MCH-20]–[MCH-40].

mod plan;
mod wait;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use gardener_apis::extensions::v1alpha1::{Cluster, Worker};
use gardener_apis::machine::v1alpha1::{Machine, MachineClass, MachineDeployment, MachineSet};
use gardener_controller::Read;
use gardener_controller::apply::{self, Writable};
use gardener_controller::wait::Patience;
use gardener_extension::{Actuator, ActuatorError, Context, Outcome, cluster};
use gardener_rules::machines::pools::{ReplicaQuestion, needs_autoscaler, replicas};
use gardener_rules::machines::{CLASS_FINALIZER, FINALIZER, key};
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use plan::Wanted;

/// Marks the secrets of machine classes.
const PURPOSE: (&str, &str) = ("gardener.cloud/purpose", "machineclass");
/// How long machines may take, per attempt [MCH-36].
const PATIENCE: Patience = Patience {
    recheck: Duration::from_secs(60),
    timeout: Duration::from_secs(5 * 60),
};

pub(crate) struct Local;

/// The machine objects of a namespace.
struct Machines {
    classes: Api<MachineClass>,
    deployments: Api<MachineDeployment>,
    sets: Api<MachineSet>,
    machines: Api<Machine>,
    secrets: Api<Secret>,
}

impl Machines {
    fn of(context: &Context, namespace: &str) -> Self {
        let client = || context.client.clone();
        Self {
            classes: Api::namespaced(client(), namespace),
            deployments: Api::namespaced(client(), namespace),
            sets: Api::namespaced(client(), namespace),
            machines: Api::namespaced(client(), namespace),
            secrets: Api::namespaced(client(), namespace),
        }
    }

    async fn class_secrets(&self) -> Result<Vec<Secret>, kube::Error> {
        let selector = format!("{}={}", PURPOSE.0, PURPOSE.1);
        self.secrets.read_list(&ListParams::default().labels(&selector)).await
    }

    /// Machines go without a drain.
    async fn force_deletion(&self) -> Result<(), ActuatorError> {
        for machine in self.machines.read_list(&Default::default()).await? {
            let labelled = apply::patch(&self.machines, &machine, |machine| {
                machine.labels_mut().insert(key::FORCE_DELETION.into(), "True".into());
            });
            match labelled.await {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Deletes classes and their secrets, but for those that are kept.
    async fn delete_classes(&self, kept: &BTreeSet<String>) -> Result<(), ActuatorError> {
        for class in self.classes.read_list(&Default::default()).await? {
            if !kept.contains(&class.name_any()) {
                apply::delete(&self.classes, &class.name_any()).await?;
                if let Some(class) = self.classes.read_opt(&class.name_any()).await? {
                    apply::remove_finalizer(&self.classes, &class, CLASS_FINALIZER).await?;
                }
            }
        }
        for secret in self.class_secrets().await? {
            if !kept.contains(&secret.name_any()) {
                apply::delete(&self.secrets, &secret.name_any()).await?;
            }
        }
        Ok(())
    }

    async fn delete_deployments(&self, kept: &BTreeSet<String>) -> Result<bool, ActuatorError> {
        let mut deleted = false;
        for deployment in self.deployments.read_list(&Default::default()).await? {
            if !kept.contains(&deployment.name_any()) {
                deleted = true;
                apply::delete(&self.deployments, &deployment.name_any()).await?;
            }
        }
        Ok(deleted)
    }
}

async fn deploy_classes(machines: &Machines, worker: &Worker, wanted: &[Wanted]) -> Result<(), ActuatorError> {
    for one in wanted {
        let reference = &one.pool.user_data_secret_ref;
        let name = reference.name.as_deref().unwrap_or_default();
        let data = machines.secrets.read(name).await?.data.unwrap_or_default();
        let user_data = data.get(&reference.key).cloned().ok_or_else(|| {
            ActuatorError::new(format!(
                "secret {name} has no key {} with the user data of pool {}",
                reference.key, one.pool.name
            ))
        })?;
        let mut secret = Secret::default();
        secret.metadata.name = Some(one.class.clone());
        apply::create_or_patch(&machines.secrets, secret, |secret| {
            secret.labels_mut().insert(PURPOSE.0.into(), PURPOSE.1.into());
            secret.data = Some(BTreeMap::from([(
                "userData".to_owned(),
                ByteString(user_data.0.clone()),
            )]));
        })
        .await?;
        let mut class = MachineClass::default();
        class.metadata.name = Some(one.class.clone());
        let wanted = plan::machine_class(worker, one);
        apply::create_or_patch(&machines.classes, class, |class| {
            class.credentials_secret_ref = wanted.credentials_secret_ref.clone();
            class.secret_ref = wanted.secret_ref.clone();
            class.provider = wanted.provider.clone();
            class.provider_spec = wanted.provider_spec.clone();
            class.node_template = wanted.node_template.clone();
        })
        .await?;
    }
    Ok(())
}

/// Replicas that deployments had on another seed [MCH-131].
fn restored(worker: &Worker, deployment: &str) -> Option<i32> {
    let state = worker.status.state.as_ref()?.get(deployment)?;
    state
        .get("replicas")?
        .as_i64()
        .and_then(|replicas| i32::try_from(replicas).ok())
}

async fn deploy_machines(
    machines: &Machines,
    worker: &Worker,
    wanted: &[Wanted],
    hibernated: bool,
) -> Result<(), ActuatorError> {
    let existing = machines.deployments.read_list(&Default::default()).await?;
    let size = |deployment: &MachineDeployment| deployment.spec.replicas.unwrap_or_default();
    let all_at_zero = !existing.is_empty() && existing.iter().all(|one| size(one) == 0);
    for one in wanted {
        let before = existing.iter().find(|deployment| deployment.name_any() == one.name);
        let question = ReplicaQuestion {
            hibernated,
            autoscaled: needs_autoscaler(&worker.spec.pools),
            existing: before.map(size),
            restored: restored(worker, &one.name),
            all_at_zero,
            minimum: one.minimum,
            maximum: one.maximum,
        };
        let replicas = replicas(&question);
        let mut deployment = MachineDeployment::default();
        deployment.metadata.name = Some(one.name.clone());
        apply::create_or_patch(&machines.deployments, deployment, |deployment| {
            plan::write_deployment(deployment, one, replicas);
        })
        .await?;
    }
    Ok(())
}

/// What comes from another seed is made before anything else, so that no machine is made twice [MCH-132].
async fn restore_machines(machines: &Machines, worker: &Worker) -> Result<(), ActuatorError> {
    let Some(Value::Object(state)) = &worker.status.state else {
        return Ok(());
    };
    for saved in state.values() {
        for (list, is_set) in [("machineSets", true), ("machines", false)] {
            for object in saved.get(list).and_then(Value::as_array).into_iter().flatten() {
                let created = if is_set {
                    let mut set: MachineSet = serde_json::from_value(object.clone())?;
                    set.finalizers_mut().push(FINALIZER.to_owned());
                    machines.sets.create(&Default::default(), &set).await.map(|_| ())
                } else {
                    let mut machine: Machine = serde_json::from_value(object.clone())?;
                    machine.finalizers_mut().push(FINALIZER.to_owned());
                    machines
                        .machines
                        .create(&Default::default(), &machine)
                        .await
                        .map(|_| ())
                };
                match created {
                    Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                    other => other?,
                }
            }
        }
    }
    Ok(())
}

/// gardenlet waits for this before it goes on to the autoscaler [MCH-36].
async fn publish(context: &Context, worker: &Worker, wanted: &[Wanted]) -> Result<(), ActuatorError> {
    let list: Vec<Value> = wanted
        .iter()
        .map(|one| {
            let mut entry = json!({"name": one.name, "minimum": one.minimum, "maximum": one.maximum});
            if let Some(priority) = one.pool.priority {
                entry["priority"] = priority.into();
            }
            if let Some(most) = one.auto_preserve {
                entry["autoPreserveFailedMachineMax"] = most.into();
            }
            entry
        })
        .collect();
    let status = json!({"status": {
        "machineDeployments": list,
        "machineDeploymentsLastUpdateTime": context.clock.time(),
    }});
    let api: Api<Worker> = Api::namespaced(context.client.clone(), &worker.namespace().unwrap_or_default());
    api.patch_status(&worker.name_any(), &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

/// A shoot that sleeps has no machines to manage [MCH-36].
async fn stop_manager(context: &Context, namespace: &str) -> Result<(), ActuatorError> {
    let api: Api<Deployment> = Api::namespaced(context.client.clone(), namespace);
    if let Some(manager) = api.read_opt("machine-controller-manager").await? {
        apply::patch(&api, &manager, |manager| manager.spec.replicas = Some(0)).await?;
    }
    Ok(())
}

/// What the machine controllers are to be told.
fn wanted(object: &Worker, cluster: Option<&Cluster>) -> Result<Vec<Wanted>, ActuatorError> {
    let profile = cluster.map(|cluster| &cluster.spec.cloud_profile);
    plan::wanted(object, &object.namespace().unwrap_or_default(), profile)
}

/// Deletes all objects of a kind, and takes what holds them.
async fn forget<K: Writable + Resource<DynamicType = ()>>(api: &Api<K>) -> Result<(), ActuatorError> {
    for object in api.read_list(&Default::default()).await? {
        apply::delete(api, &object.name_any()).await?;
        if let Some(object) = api.read_opt(&object.name_any()).await? {
            apply::remove_finalizer(api, &object, FINALIZER).await?;
        }
    }
    Ok(())
}

#[async_trait]
impl Actuator<Worker> for Local {
    async fn reconcile(
        &self,
        context: &Context,
        object: &Worker,
        cluster: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError> {
        let namespace = object.namespace().unwrap_or_default();
        let machines = Machines::of(context, &namespace);
        let wanted = wanted(object, cluster)?;
        let hibernated = cluster.is_some_and(cluster::is_hibernation_enabled);
        deploy_classes(&machines, object, &wanted).await?;
        if hibernated {
            machines.force_deletion().await?;
        }
        deploy_machines(&machines, object, &wanted, hibernated).await?;
        publish(context, object, &wanted).await?;
        wait::until_available(&machines, &wanted, hibernated, PATIENCE).await?;
        let names: BTreeSet<String> = wanted.iter().map(|one| one.name.clone()).collect();
        let classes: BTreeSet<String> = wanted.iter().map(|one| one.class.clone()).collect();
        if machines.delete_deployments(&names).await? {
            wait::until_only(&machines, &names, PATIENCE).await?;
        }
        machines.delete_classes(&classes).await?;
        if hibernated {
            stop_manager(context, &namespace).await?;
        }
        Ok(Outcome::default())
    }

    async fn delete(&self, context: &Context, object: &Worker, cluster: Option<&Cluster>) -> Result<(), ActuatorError> {
        let machines = Machines::of(context, &object.namespace().unwrap_or_default());
        // without their classes machines cannot be taken away; if they cannot be made there may be nothing to take away
        if !machines.machines.read_list(&Default::default()).await?.is_empty() {
            deploy_classes(&machines, object, &wanted(object, cluster)?).await?;
        }
        machines.force_deletion().await?;
        machines.delete_deployments(&BTreeSet::new()).await?;
        wait::until_only(&machines, &BTreeSet::new(), PATIENCE).await?;
        machines.delete_classes(&BTreeSet::new()).await
    }

    /// The machines stay where they are; only the objects go [MCH-132].
    async fn migrate(&self, context: &Context, object: &Worker, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        let machines = Machines::of(context, &object.namespace().unwrap_or_default());
        forget(&machines.machines).await?;
        forget(&machines.sets).await?;
        forget(&machines.deployments).await?;
        machines.delete_classes(&BTreeSet::new()).await
    }

    async fn restore(
        &self,
        context: &Context,
        object: &Worker,
        cluster: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError> {
        let machines = Machines::of(context, &object.namespace().unwrap_or_default());
        deploy_classes(&machines, object, &wanted(object, cluster)?).await?;
        restore_machines(&machines, object).await?;
        self.reconcile(context, object, cluster).await
    }
}

#[cfg(test)]
mod tests;
