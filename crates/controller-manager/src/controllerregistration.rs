//! Controller registrations `[GCM-30]`–`[GCM-32]`: which extensions are installed on which seed.

mod extensionclusterrole;
mod finalizers;

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apis::constants::GARDEN_NAMESPACE;
use gardener_apis::core::v1::ControllerDeployment;
use gardener_apis::core::v1beta1::{
    BackupBucket, BackupEntry, ControllerInstallation, ControllerRegistration, Seed, Shoot,
};
use gardener_controller::informer::Watched;
use gardener_controller::{Action, Change, Informer, Queue, apply};
use gardener_rules::registrations::{self, Landscape};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::Manager;
use crate::manager::{ReconcileError, read};

const SEED_HASH: &str = "seed-spec-hash";
const REGISTRATION_HASH: &str = "registration-spec-hash";
const DEPLOYMENT_HASH: &str = "deployment-hash";
const POD_SECURITY: &str = "security.gardener.cloud/pod-security-enforce";
/// The role of Secrets and ConfigMaps that deployments refer to.
const RESOURCE_REFERENCE: &str = "gardener.cloud/role=resource-reference";
/// How many objects are worked on at once by controllers that upstream has no setting for.
const CONCURRENT_SYNCS: usize = 5;

struct Reconciler {
    manager: Manager,
    seeds: Informer<Seed>,
    shoots: Informer<Shoot>,
    buckets: Informer<BackupBucket>,
    entries: Informer<BackupEntry>,
    registrations: Informer<ControllerRegistration>,
    deployments: Informer<ControllerDeployment>,
    installations: Informer<ControllerInstallation>,
}

pub(crate) async fn run(manager: &Manager) {
    tokio::join!(
        install(manager),
        finalizers::run(manager),
        extensionclusterrole::run(manager),
    );
}

async fn install(manager: &Manager) {
    let own = Reconciler {
        manager: manager.clone(),
        seeds: manager.informer(),
        shoots: manager.informer(),
        buckets: manager.informer(),
        entries: manager.informer(),
        registrations: manager.informer(),
        deployments: manager.informer(),
        installations: manager.informer(),
    };
    let queue: Queue<String> = Queue::new();
    own.seeds.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                old.spec != new.spec
                    || old.metadata.labels != new.metadata.labels
                    || old.metadata.annotations != new.metadata.annotations
                    || new.metadata.deletion_timestamp.is_some()
            }
            _ => true,
        },
        |seed| [seed.name_any()],
    );
    own.shoots.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                old.spec != new.spec || old.status.seed_name != new.status.seed_name
            }
            _ => true,
        },
        |shoot| {
            let seeds = shoot.spec.seed_name.iter().chain(&shoot.status.seed_name);
            seeds.cloned().collect::<Vec<_>>()
        },
    );
    own.buckets.feed_if(
        &queue,
        |change| !matches!(change, Change::Applied { old: Some(old), new } if old.spec == new.spec),
        |bucket| bucket.spec.seed_name.clone(),
    );
    own.entries.feed_if(
        &queue,
        |change| !matches!(change, Change::Applied { old: Some(old), new } if old.spec == new.spec),
        |entry| entry.spec.seed_name.clone(),
    );
    own.installations.feed(&queue, |installation| {
        installation.spec.seed_ref.as_ref().and_then(|own| own.name.clone())
    });
    let seeds = own.seeds.clone();
    let wake = {
        let queue = queue.clone();
        Arc::new(move || seeds.list().iter().for_each(|seed| queue.add(seed.name_any())))
    };
    let secrets = manager
        .informers
        .selected(manager.within::<Secret>(GARDEN_NAMESPACE), RESOURCE_REFERENCE);
    let maps = manager
        .informers
        .selected(manager.within::<ConfigMap>(GARDEN_NAMESPACE), RESOURCE_REFERENCE);
    let all = [wake.clone(), wake.clone(), wake.clone(), wake];
    let [for_registrations, for_deployments, for_secrets, for_maps] = all;
    own.registrations.on_change(move |_| for_registrations());
    own.deployments.on_change(move |_| for_deployments());
    secrets.on_change(move |_| for_secrets());
    maps.on_change(move |_| for_maps());
    tokio::join!(
        own.seeds.synced(),
        own.shoots.synced(),
        own.buckets.synced(),
        own.entries.synced(),
        own.registrations.synced(),
        own.deployments.synced(),
        own.installations.synced(),
        secrets.synced(),
        maps.synced()
    );
    let own = Arc::new(own);
    let syncs = manager.config.controllers.controller_registration.concurrent_syncs;
    let controller = manager.controller("controllerinstallation-seed", syncs, queue);
    let reconcile = move |seed: String| {
        let own = own.clone();
        async move { own.reconcile(&seed).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

fn hash(value: &impl Serialize) -> String {
    let json = serde_json::to_vec(value).unwrap_or_default();
    Sha256::digest(json)
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn cloned<K: Watched + kube::Resource<DynamicType = ()>>(informer: &Informer<K>) -> Vec<K> {
    informer.list().iter().map(|object| (**object).clone()).collect()
}

fn reference(metadata: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        name: metadata.name.clone(),
        resource_version: metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

impl Reconciler {
    fn api(&self) -> Api<ControllerInstallation> {
        self.manager.all()
    }

    async fn reconcile(&self, name: &str) -> Result<Action, ReconcileError> {
        let Some(seed) = read(&self.manager.all::<Seed>(), name).await? else {
            return Ok(Action::Done);
        };
        // a read of our own writes: the informer may not have seen the installations of the last run
        let installations: Vec<ControllerInstallation> = self
            .api()
            .list(&kube::api::ListParams::default().fields(&format!("spec.seedRef.name={name}")))
            .await?
            .items;
        let (shoots, buckets, entries) = (cloned(&self.shoots), cloned(&self.buckets), cloned(&self.entries));
        let all = cloned(&self.registrations);
        let landscape = Landscape {
            seed: &seed,
            shoots: &shoots,
            buckets: &buckets,
            entries: &entries,
            registrations: &all,
            installations: &installations,
        };
        let wanted = registrations::wanted(&landscape).map_err(ReconcileError::Blocked)?;
        let of = |registration: &str| {
            installations
                .iter()
                .find(|own| own.spec.registration_ref.name.as_deref() == Some(registration))
        };
        for registration in all
            .iter()
            .filter(|registration| wanted.contains(&registration.name_any()))
        {
            self.install(&seed, registration, of(&registration.name_any())).await?;
        }
        for installation in &installations {
            let registration = installation.spec.registration_ref.name.clone().unwrap_or_default();
            if !wanted.contains(&registration) && installation.metadata.deletion_timestamp.is_none() {
                apply::delete(&self.api(), &installation.name_any()).await?;
            }
        }
        Ok(Action::Done)
    }

    /// `[GCM-31]`.
    async fn install(
        &self,
        seed: &Seed,
        registration: &ControllerRegistration,
        existing: Option<&ControllerInstallation>,
    ) -> Result<(), ReconcileError> {
        if registration.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        if existing.is_some_and(|own| own.metadata.deletion_timestamp.is_some()) {
            return Err(ReconcileError::Blocked(format!(
                "cannot deploy new ControllerInstallation for {:?} because the deletion of the old ControllerInstallation is still pending",
                registration.name_any()
            )));
        }
        let referenced = registration
            .spec
            .deployment
            .as_ref()
            .and_then(|own| own.deployment_refs.first());
        let deployment = match referenced {
            Some(referenced) => Some(self.deployment(&referenced.name).await?),
            None => None,
        };
        let resources = match &deployment {
            Some(deployment) => self.resources(deployment).await?,
            None => Vec::new(),
        };
        let mut labels = BTreeMap::from([
            (SEED_HASH.to_owned(), hash(&seed.spec)),
            (REGISTRATION_HASH.to_owned(), hash(&registration.spec)),
        ]);
        if let Some(deployment) = &deployment {
            labels.insert(
                DEPLOYMENT_HASH.to_owned(),
                hash(&(&deployment.helm, &deployment.inject_garden_kubeconfig)),
            );
        }
        let security = registration.annotations().get(POD_SECURITY).cloned();
        let is_as_wanted = existing.is_some_and(|own| {
            labels.iter().all(|(key, value)| own.labels().get(key) == Some(value))
                && own.annotations().get(POD_SECURITY) == security.as_ref()
                && own.spec.resource_refs == resources
        });
        if is_as_wanted {
            return Ok(());
        }
        let change = |installation: &mut ControllerInstallation| {
            installation.labels_mut().extend(labels.clone());
            match &security {
                Some(security) => drop(
                    installation
                        .annotations_mut()
                        .insert(POD_SECURITY.to_owned(), security.clone()),
                ),
                None => drop(installation.annotations_mut().remove(POD_SECURITY)),
            }
            installation.spec.seed_ref = Some(reference(&seed.metadata));
            installation.spec.registration_ref = reference(&registration.metadata);
            installation.spec.deployment_ref = deployment.as_ref().map(|own| reference(&own.metadata));
            installation.spec.resource_refs.clone_from(&resources);
        };
        match existing {
            Some(existing) => {
                apply::patch(&self.api(), existing, change).await?;
            }
            None => {
                let mut installation = ControllerInstallation::default();
                installation.metadata.generate_name = Some(format!("{}-", registration.name_any()));
                change(&mut installation);
                self.api().create(&PostParams::default(), &installation).await?;
            }
        }
        Ok(())
    }

    async fn deployment(&self, name: &str) -> Result<ControllerDeployment, ReconcileError> {
        let found = self.manager.all::<ControllerDeployment>().get(name).await;
        found.map_err(|error| cannot_deploy("ControllerDeployment", &error))
    }

    /// What a deployment refers to, as it is now.
    async fn resources(&self, deployment: &ControllerDeployment) -> Result<Vec<ObjectReference>, ReconcileError> {
        let mut found = Vec::new();
        for resource in deployment.resources.iter().map(|own| &own.resource_ref) {
            let reference = match resource.kind.as_str() {
                "ConfigMap" => self.resource::<ConfigMap>("ConfigMap", &resource.name).await?,
                "Secret" => self.resource::<Secret>("Secret", &resource.name).await?,
                kind => {
                    let why = format!("unsupported kind {kind:?} in ControllerDeployment resource reference");
                    return Err(ReconcileError::Blocked(why));
                }
            };
            found.push(reference);
        }
        Ok(found)
    }

    async fn resource<K>(&self, kind: &str, name: &str) -> Result<ObjectReference, ReconcileError>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let found = self.manager.within::<K>(GARDEN_NAMESPACE).get_metadata(name).await;
        let found = found.map_err(|error| cannot_deploy(kind, &error))?;
        Ok(ObjectReference {
            kind: Some(kind.to_owned()),
            namespace: Some(GARDEN_NAMESPACE.to_owned()),
            ..reference(&found.metadata)
        })
    }
}

fn cannot_deploy(kind: &str, error: &kube::Error) -> ReconcileError {
    let why = gardener_controller::api_error(error);
    ReconcileError::Blocked(format!(
        "cannot deploy ControllerInstallation because the referenced {kind} cannot be retrieved: {why}"
    ))
}
