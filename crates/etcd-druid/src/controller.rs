//! Gathers, asks [`components`] and [`status`], applies.

use std::sync::Arc;

use gardener_apis::druid::v1alpha1::{Etcd, EtcdStatusLastError, EtcdStatusLastOperation};
use gardener_controller::apply::{self, ApplyError};
use gardener_controller::operation;
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, Read};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::components::{self, DRUID, MANAGED_BY, PART_OF};
use crate::{Config, FINALIZER, status};

/// How many `Etcd`s are worked on at once.
const CONCURRENCY: usize = 5;
/// Leaves the objects of an `Etcd` alone while it is there.
const SUSPEND: &str = "druid.gardener.cloud/suspend-etcd-spec-reconcile";

/// Why an `Etcd` could not be reconciled.
#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    /// The API refused.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The API refused.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The spec cannot be turned into objects.
    #[error("the spec has no form in Kubernetes' kinds: {0}")]
    Spec(#[from] serde_json::Error),
}

struct Reconciler {
    config: Config,
    sets: Informer<StatefulSet>,
    pods: Informer<Pod>,
    leases: Informer<Lease>,
}

fn api<K>(config: &Config) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    match &config.namespace {
        Some(namespace) => Api::namespaced(config.client.clone(), namespace),
        None => Api::all(config.client.clone()),
    }
}

/// The `Etcd` an object is part of.
fn part_of<K: Resource>(object: &K) -> Option<ObjectRef> {
    let name = object.labels().get(PART_OF)?;
    Some(ObjectRef::new(object.namespace().unwrap_or_default(), name.clone()))
}

pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let queue: Queue<ObjectRef> = Queue::new();
    let managed = watcher::Config::default().labels(&format!("{MANAGED_BY}={DRUID}"));
    let sets: Informer<StatefulSet> = Informer::start(api(&config), managed.clone(), &stop);
    let pods: Informer<Pod> = Informer::start(api(&config), managed.clone(), &stop);
    let leases: Informer<Lease> = Informer::start(api(&config), managed, &stop);
    tokio::join!(sets.synced(), pods.synced(), leases.synced());
    let etcds: Informer<Etcd> = Informer::start(api(&config), watcher::Config::default(), &stop);
    etcds.feed_gathered(&queue, is_news, |etcd| [ObjectRef::of(etcd)]);
    sets.feed_gathered(&queue, |_| true, part_of);
    pods.feed_gathered(&queue, |_| true, part_of);
    leases.feed_gathered(&queue, |_| true, part_of);
    let reconciler = Arc::new(Reconciler {
        config,
        sets,
        pods,
        leases,
    });
    Controller::new("etcd", CONCURRENCY, queue)
        .run(stop, move |key| {
            let reconciler = Arc::clone(&reconciler);
            async move { reconciler.reconcile(&key).await }
        })
        .await;
}

/// Whether somebody else changed an `Etcd`: its status is ours, and what we write must not wake us.
fn is_news(change: &Change<Etcd>) -> bool {
    match change {
        Change::Applied { old: Some(old), new } => {
            let told = |etcd: &Etcd| {
                let meta = &etcd.metadata;
                (
                    meta.uid.clone(),
                    meta.generation,
                    meta.annotations.clone(),
                    meta.deletion_timestamp.clone(),
                )
            };
            told(old) != told(new)
        }
        Change::Applied { old: None, .. } => true,
        Change::Deleted(_) => false,
    }
}

/// Whether the spec is to be applied: for the first time, or because it is asked for.
fn wants_spec(etcd: &Etcd) -> bool {
    let asked = operation::operation(etcd) == Some(operation::value::RECONCILE);
    let never = etcd.status.observed_generation.is_none();
    (asked || never) && !etcd.annotations().contains_key(SUSPEND)
}

impl Reconciler {
    fn namespaced<K>(&self, key: &ObjectRef) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.config.client.clone(), &key.namespace)
    }

    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, ReconcileError> {
        let etcds: Api<Etcd> = self.namespaced(key);
        let Some(mut etcd) = etcds.read_opt(&key.name).await? else {
            return Ok(Action::Done);
        };
        if etcd.metadata.deletion_timestamp.is_some() {
            return self.delete(key, &etcd).await;
        }
        if wants_spec(&etcd) {
            etcd = self.apply_spec(key, etcd).await?;
        }
        let now = self.config.clock.time();
        let pods = self.members(&self.pods, key);
        let leases = self.members(&self.leases, key);
        let set = self.sets.get(key);
        let observed = status::Observed {
            stateful_set: set.as_deref(),
            pods: &pods,
            leases: &leases,
        };
        apply::patch_status(&etcds, &etcd, |etcd| {
            etcd.status = status::status(etcd, &observed, &now)
        })
        .await?;
        Ok(Action::Done)
    }

    fn members<K: gardener_controller::informer::Watched>(&self, all: &Informer<K>, key: &ObjectRef) -> Vec<Arc<K>>
    where
        K::DynamicType: Clone,
    {
        let mut found = all.list_namespace(&key.namespace);
        found.retain(|one| part_of(one.as_ref()).as_ref() == Some(key));
        found
    }

    async fn apply_spec(&self, key: &ObjectRef, etcd: Etcd) -> Result<Etcd, ReconcileError> {
        let etcds: Api<Etcd> = self.namespaced(key);
        let kind = if etcd.status.observed_generation.is_none() {
            "Create"
        } else {
            "Reconcile"
        };
        let (etcd, _) = apply::add_finalizer(&etcds, &etcd, FINALIZER).await?;
        let run = self.config.chance.uid();
        let etcd = self
            .tell(
                &etcds,
                &etcd,
                kind,
                "Processing",
                "Etcd cluster reconciliation is in progress",
                &run,
            )
            .await?;
        if let Err(error) = self.apply_components(key, &etcd).await {
            let now = self.config.clock.time();
            let failed = EtcdStatusLastError {
                code: "ERR_RECONCILE".to_owned(),
                description: error.to_string(),
                observed_at: Some(now),
            };
            let (etcd, _) =
                apply::patch_status(&etcds, &etcd, |etcd| etcd.status.last_errors = vec![failed.clone()]).await?;
            self.tell(
                &etcds,
                &etcd,
                kind,
                "Error",
                &format!("Etcd cluster reconciliation failed: {error}"),
                &run,
            )
            .await?;
            return Err(error);
        }
        let generation = etcd.metadata.generation;
        let (etcd, _) = apply::patch_status(&etcds, &etcd, |etcd| {
            etcd.status.observed_generation = generation;
            etcd.status.last_errors.clear();
        })
        .await?;
        let etcd = self
            .tell(
                &etcds,
                &etcd,
                kind,
                "Succeeded",
                "Etcd cluster reconciliation succeeded",
                &run,
            )
            .await?;
        let (etcd, _) = apply::patch(&etcds, &etcd, |etcd| operation::clear(etcd.annotations_mut())).await?;
        Ok(etcd)
    }

    async fn tell(
        &self,
        etcds: &Api<Etcd>,
        etcd: &Etcd,
        kind: &str,
        state: &str,
        description: &str,
        run: &str,
    ) -> Result<Etcd, ReconcileError> {
        let last_operation = EtcdStatusLastOperation {
            description: description.to_owned(),
            last_update_time: Some(self.config.clock.time()),
            run_id: run.to_owned(),
            state: state.to_owned(),
            r#type: kind.to_owned(),
        };
        let (etcd, _) = apply::patch_status(etcds, etcd, |etcd| {
            etcd.status.last_operation = Some(last_operation.clone())
        })
        .await?;
        Ok(etcd)
    }

    async fn apply_components(&self, key: &ObjectRef, etcd: &Etcd) -> Result<(), ReconcileError> {
        let wanted = components::components(etcd)?;
        apply::apply(&self.namespaced(key), DRUID, &wanted.service_account).await?;
        apply::apply(&self.namespaced(key), DRUID, &wanted.role).await?;
        apply::apply(&self.namespaced(key), DRUID, &wanted.role_binding).await?;
        for lease in &wanted.leases {
            apply::apply(&self.namespaced(key), DRUID, lease).await?;
        }
        let kept = components::lease_names(etcd);
        for lease in self.members(&self.leases, key) {
            if !kept.contains(&lease.name_any()) {
                apply::delete::<Lease>(&self.namespaced(key), &lease.name_any()).await?;
            }
        }
        apply::apply(&self.namespaced(key), DRUID, &wanted.config_map).await?;
        apply::apply(&self.namespaced(key), DRUID, &wanted.client_service).await?;
        apply::apply(&self.namespaced(key), DRUID, &wanted.peer_service).await?;
        apply::apply(&self.namespaced(key), DRUID, &wanted.disruption_budget).await?;
        apply::apply(&self.namespaced(key), DRUID, &wanted.stateful_set).await?;
        Ok(())
    }

    /// Deletes what the `Etcd` had, and lets it go when its pods' set is gone. The volumes stay: they are the owner's to delete.
    async fn delete(&self, key: &ObjectRef, etcd: &Etcd) -> Result<Action, ReconcileError> {
        if !apply::has_finalizer(etcd, FINALIZER) {
            return Ok(Action::Done);
        }
        let etcds: Api<Etcd> = self.namespaced(key);
        let is_deleting = etcd
            .status
            .last_operation
            .as_ref()
            .is_some_and(|last| last.r#type == "Delete");
        if !is_deleting {
            let run = self.config.chance.uid();
            self.tell(
                &etcds,
                etcd,
                "Delete",
                "Processing",
                "Etcd cluster deletion is in progress",
                &run,
            )
            .await?;
        }
        let name = &key.name;
        let set_was_there = apply::delete::<StatefulSet>(&self.namespaced(key), name).await?;
        apply::delete::<PodDisruptionBudget>(&self.namespaced(key), name).await?;
        apply::delete::<Service>(&self.namespaced(key), &components::client_service_name(etcd)).await?;
        apply::delete::<Service>(&self.namespaced(key), &components::peer_service_name(etcd)).await?;
        apply::delete::<ConfigMap>(&self.namespaced(key), &components::config_map_name(etcd)).await?;
        for lease in self.members(&self.leases, key) {
            apply::delete::<Lease>(&self.namespaced(key), &lease.name_any()).await?;
        }
        apply::delete::<RoleBinding>(&self.namespaced(key), &components::role_name(etcd)).await?;
        apply::delete::<Role>(&self.namespaced(key), &components::role_name(etcd)).await?;
        apply::delete::<ServiceAccount>(&self.namespaced(key), name).await?;
        if set_was_there && self.namespaced::<StatefulSet>(key).read_opt(name).await?.is_some() {
            // its deletion is told by the watch
            return Ok(Action::Done);
        }
        if let Some(latest) = etcds.read_opt(name).await? {
            apply::remove_finalizer(&etcds, &latest, FINALIZER).await?;
        }
        Ok(Action::Done)
    }
}

#[cfg(test)]
mod tests;
