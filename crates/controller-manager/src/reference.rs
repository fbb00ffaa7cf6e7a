//! What shoots, seeds and ControllerDeployments refer to by name stays while they do `[GCM-17]`: Secrets, ConfigMaps and WorkloadIdentities in a
//! shoot's own namespace, or in `garden`.
//!
//! Upstream runs one controller for each kind; they share one finalizer, so that what is released here is what none of the three needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use gardener_apis::constants::{GARDEN_NAMESPACE, finalizer};
use gardener_apis::core::v1::ControllerDeployment;
use gardener_apis::core::v1beta1::{Seed, Shoot};
use gardener_apis::security::v1alpha1::WorkloadIdentity;
use gardener_controller::apply::Writable;
use gardener_controller::informer::Watched;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::{Api, Resource, ResourceExt};

use crate::Manager;
use crate::manager::ReconcileError;

/// A kind that is referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Secret,
    ConfigMap,
    WorkloadIdentity,
}

/// What an object refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct References(BTreeSet<(Kind, String)>);

impl References {
    fn add(&mut self, kind: Kind, name: &str) {
        if !name.is_empty() {
            self.0.insert((kind, name.to_owned()));
        }
    }

    /// Takes a reference, if it is to one of the kinds.
    fn add_any(&mut self, api_version: Option<&str>, kind: &str, name: &str) {
        let kind = match (api_version, kind) {
            (Some("v1"), "Secret") => Kind::Secret,
            (Some("v1"), "ConfigMap") => Kind::ConfigMap,
            (Some("security.gardener.cloud/v1alpha1"), "WorkloadIdentity") => Kind::WorkloadIdentity,
            _ => return,
        };
        self.add(kind, name);
    }

    fn of_kind(&self, kind: Kind) -> BTreeSet<&str> {
        let own = self.0.iter().filter(|(own, _)| *own == kind);
        own.map(|(_, name)| name.as_str()).collect()
    }
}

/// A kind that refers.
pub(crate) trait Refers: Watched + Writable + Resource<DynamicType = ()> {
    /// The controller's name.
    const CONTROLLER: &'static str;

    /// What it refers to.
    fn references(&self) -> References;

    /// Where that is.
    fn namespace_of_references(&self) -> String {
        GARDEN_NAMESPACE.to_owned()
    }

    /// The object at a place.
    fn api(manager: &Manager, key: &ObjectRef) -> Api<Self>;
}

impl Refers for Shoot {
    const CONTROLLER: &'static str = "shoot-reference";

    fn references(&self) -> References {
        let mut found = References::default();
        for provider in self.spec.dns.iter().flat_map(|dns| &dns.providers) {
            found.add(Kind::Secret, provider.secret_name.as_deref().unwrap_or_default());
            if let Some(own) = &provider.credentials_ref {
                found.add_any(own.api_version.as_deref(), &own.kind, &own.name);
            }
        }
        for own in self.spec.resources.iter().map(|own| &own.resource_ref) {
            found.add_any(own.api_version.as_deref(), &own.kind, &own.name);
        }
        let Some(server) = &self.spec.kubernetes.kube_api_server else {
            return found;
        };
        let policy = server.audit_config.as_ref().and_then(|own| own.audit_policy.as_ref());
        let policy = policy.and_then(|own| own.config_map_ref.as_ref()?.name.as_deref());
        found.add(Kind::ConfigMap, policy.unwrap_or_default());
        for plugin in &server.admission_plugins {
            found.add(
                Kind::Secret,
                plugin.kubeconfig_secret_name.as_deref().unwrap_or_default(),
            );
        }
        if let Some(authentication) = &server.structured_authentication {
            found.add(Kind::ConfigMap, &authentication.config_map_name);
        }
        if let Some(authorization) = &server.structured_authorization {
            found.add(Kind::ConfigMap, &authorization.config_map_name);
            for kubeconfig in &authorization.kubeconfigs {
                found.add(Kind::Secret, &kubeconfig.secret_name);
            }
        }
        found
    }

    fn namespace_of_references(&self) -> String {
        self.project_namespace().to_owned()
    }

    fn api(manager: &Manager, key: &ObjectRef) -> Api<Self> {
        manager.within(&key.namespace)
    }
}

impl Refers for Seed {
    const CONTROLLER: &'static str = "seed-reference";

    fn references(&self) -> References {
        let mut found = References::default();
        for own in self.spec.resources.iter().map(|own| &own.resource_ref) {
            found.add_any(own.api_version.as_deref(), &own.kind, &own.name);
        }
        found
    }

    fn api(manager: &Manager, _: &ObjectRef) -> Api<Self> {
        manager.all()
    }
}

impl Refers for ControllerDeployment {
    const CONTROLLER: &'static str = "controllerdeployment-reference";

    fn references(&self) -> References {
        let mut found = References::default();
        for own in self.resources.iter().map(|own| &own.resource_ref) {
            found.add_any(own.api_version.as_deref(), &own.kind, &own.name);
        }
        if let Some(repository) = self.helm.as_ref().and_then(|helm| helm.oci_repository.as_ref()) {
            for secret in [&repository.ca_bundle_secret_ref, &repository.pull_secret_ref] {
                found.add(Kind::Secret, secret.as_ref().map_or("", |own| &own.name));
            }
        }
        found
    }

    fn api(manager: &Manager, _: &ObjectRef) -> Api<Self> {
        manager.all()
    }
}

/// Whether an object needs nothing any more.
fn is_gone<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some() && !apply::has_finalizer(object, finalizer::GARDENER)
}

/// A kind that is referred to.
trait Referenced: Writable + Resource<Scope = NamespaceResourceScope, DynamicType = ()> {}

impl<K: Writable + Resource<Scope = NamespaceResourceScope, DynamicType = ()>> Referenced for K {}

/// All that refer.
struct Everyone {
    manager: Manager,
    shoots: Informer<Shoot>,
    seeds: Informer<Seed>,
    deployments: Informer<ControllerDeployment>,
}

pub(crate) async fn run(manager: &Manager) {
    let everyone = Arc::new(Everyone {
        manager: manager.clone(),
        shoots: manager.informer(),
        seeds: manager.informer(),
        deployments: manager.informer(),
    });
    let controllers = &manager.config.controllers;
    tokio::join!(
        everyone.shoots.synced(),
        everyone.seeds.synced(),
        everyone.deployments.synced()
    );
    tokio::join!(
        follow(
            &everyone,
            &everyone.shoots,
            controllers.shoot_reference.concurrent_syncs
        ),
        follow(&everyone, &everyone.seeds, controllers.seed_reference.concurrent_syncs),
        follow(
            &everyone,
            &everyone.deployments,
            controllers.controller_deployment_reference.concurrent_syncs
        ),
    );
}

async fn follow<K: Refers>(everyone: &Arc<Everyone>, objects: &Informer<K>, concurrent_syncs: usize) {
    let queue: Queue<ObjectRef> = Queue::new();
    objects.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => old.references() != new.references() || is_gone(new.as_ref()),
            Change::Applied { old: None, .. } => true,
            Change::Deleted(_) => false,
        },
        |object| [ObjectRef::of(object)],
    );
    let (own, manager) = (Arc::clone(everyone), &everyone.manager);
    let controller = manager.controller(K::CONTROLLER, concurrent_syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { own.reconcile::<K>(&key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

impl Everyone {
    async fn reconcile<K: Refers>(&self, key: &ObjectRef) -> Result<Action, ReconcileError> {
        let api = K::api(&self.manager, key);
        let Some(object) = api.read_opt(&key.name).await? else {
            return Ok(Action::Done);
        };
        let own = if is_gone(&object) {
            References::default()
        } else {
            object.references()
        };
        let namespace = object.namespace_of_references();
        let mut wanted = own.clone();
        self.add_wanted(&mut wanted, &namespace, (K::CONTROLLER, key));
        self.release::<Secret>(&namespace, &wanted.of_kind(Kind::Secret))
            .await?;
        self.release::<ConfigMap>(&namespace, &wanted.of_kind(Kind::ConfigMap))
            .await?;
        self.release::<WorkloadIdentity>(&namespace, &wanted.of_kind(Kind::WorkloadIdentity))
            .await?;
        for (kind, name) in &own.0 {
            match kind {
                Kind::Secret => self.protect::<Secret>(&namespace, name).await?,
                Kind::ConfigMap => self.protect::<ConfigMap>(&namespace, name).await?,
                Kind::WorkloadIdentity => self.protect::<WorkloadIdentity>(&namespace, name).await?,
            }
        }
        match own.0.is_empty() {
            true => drop(apply::remove_finalizer(&api, &object, finalizer::REFERENCE_PROTECTION).await?),
            false => drop(apply::add_finalizer(&api, &object, finalizer::REFERENCE_PROTECTION).await?),
        }
        Ok(Action::Done)
    }

    /// What all others refer to in a namespace.
    fn add_wanted(&self, wanted: &mut References, namespace: &str, except: (&str, &ObjectRef)) {
        fn add<K: Refers>(wanted: &mut References, objects: &[Arc<K>], except: (&str, &ObjectRef)) {
            let others = objects
                .iter()
                .filter(|own| (K::CONTROLLER, &ObjectRef::of(own.as_ref())) != except);
            others.for_each(|own| wanted.0.extend(own.references().0));
        }
        add(wanted, &self.shoots.list_namespace(namespace), except);
        if namespace == GARDEN_NAMESPACE {
            add(wanted, &self.seeds.list(), except);
            add(wanted, &self.deployments.list(), except);
        }
    }

    /// Reads and writes no more of objects than their metadata.
    fn metadata<K>(&self, namespace: &str) -> Api<PartialObjectMeta<K>>
    where
        K: Referenced,
    {
        Api::namespaced(self.manager.config.garden.clone(), namespace)
    }

    async fn protect<K: Referenced>(&self, namespace: &str, name: &str) -> Result<(), ReconcileError> {
        let object = self.manager.within::<K>(namespace).get_metadata(name).await?;
        apply::add_finalizer(&self.metadata::<K>(namespace), &object, finalizer::REFERENCE_PROTECTION).await?;
        Ok(())
    }

    async fn release<K: Referenced>(&self, namespace: &str, wanted: &BTreeSet<&str>) -> Result<(), ReconcileError> {
        let api = self.metadata::<K>(namespace);
        let all = self
            .manager
            .within::<K>(namespace)
            .list_metadata(&ListParams::default())
            .await?;
        for object in all.items.iter().filter(|own| !wanted.contains(own.name_any().as_str())) {
            apply::remove_finalizer(&api, object, finalizer::REFERENCE_PROTECTION).await?;
        }
        Ok(())
    }
}
