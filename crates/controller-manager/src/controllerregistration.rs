//! Controller registrations `[GCM-30]`–`[GCM-32]`: which extensions are installed on which seed, and in which self-hosted shoot.

mod extensionclusterrole;
mod finalizers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gardener_apis::constants::{GARDEN_NAMESPACE, annotation, label};
use gardener_apis::core::v1::ControllerDeployment;
use gardener_apis::core::v1beta1::{
    BackupBucket, BackupEntry, ControllerInstallation, ControllerRegistration, Seed, Shoot,
};
use gardener_controller::informer::Watched;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::registrations::self_hosted::{Keeper, SEED_REF_NAME, Step, refers_to, step};
use gardener_rules::registrations::{self, Landscape, SelfHosted};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::Manager;
use crate::manager::ReconcileError;

const SEED_HASH: &str = "seed-spec-hash";
const SHOOT_HASH: &str = "shoot-spec-hash";
const REGISTRATION_HASH: &str = "registration-spec-hash";
const DEPLOYMENT_HASH: &str = "deployment-hash";
const POD_SECURITY: &str = "security.gardener.cloud/pod-security-enforce";
/// The role of Secrets and ConfigMaps that deployments refer to.
const RESOURCE_REFERENCE: &str = "gardener.cloud/role=resource-reference";
/// How many objects are worked on at once by controllers that upstream has no setting for.
const CONCURRENT_SYNCS: usize = 5;

/// For whom registrations are chosen: a seed by its name, or a self-hosted shoot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Seed(String),
    Shoot(ObjectRef),
}

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Seed(name) => write!(formatter, "seed {name}"),
            Self::Shoot(shoot) => write!(formatter, "shoot {shoot}"),
        }
    }
}

/// Whom a bucket, an entry or an installation belongs to. The seed of a self-hosted shoot is named as that.
fn owners(seed: Option<&String>, shoot: Option<&ObjectReference>) -> Vec<Target> {
    let mut owners: Vec<Target> = seed.cloned().map(Target::Seed).into_iter().collect();
    if let Some(shoot) = shoot {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let (namespace, name) = (text(&shoot.namespace), text(&shoot.name));
        if namespace == GARDEN_NAMESPACE {
            owners.push(Target::Seed(name.clone()));
        }
        owners.push(Target::Shoot(ObjectRef::new(namespace, name)));
    }
    owners
}

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
    let queue: Queue<Target> = Queue::new();
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
        |seed| [Target::Seed(seed.name_any())],
    );
    own.shoots.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                old.spec != new.spec
                    || old.status.seed_name != new.status.seed_name
                    || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
            }
            _ => true,
        },
        |shoot| {
            let seeds = shoot.spec.seed_name.iter().chain(&shoot.status.seed_name);
            let mut targets: Vec<Target> = seeds.cloned().map(Target::Seed).collect();
            if shoot.is_self_hosted() {
                let own = ObjectRef::of(shoot);
                if own.namespace == GARDEN_NAMESPACE {
                    targets.push(Target::Seed(own.name.clone()));
                }
                targets.push(Target::Shoot(own));
            }
            targets
        },
    );
    own.buckets.feed_if(
        &queue,
        |change| !matches!(change, Change::Applied { old: Some(old), new } if old.spec == new.spec),
        |bucket| owners(bucket.spec.seed_name.as_ref(), bucket.spec.shoot_ref.as_ref()),
    );
    own.entries.feed_if(
        &queue,
        |change| !matches!(change, Change::Applied { old: Some(old), new } if old.spec == new.spec),
        |entry| owners(entry.spec.seed_name.as_ref(), entry.spec.shoot_ref.as_ref()),
    );
    own.installations.feed(&queue, |installation| {
        let seed = installation.spec.seed_ref.as_ref().and_then(|own| own.name.as_ref());
        owners(seed, installation.spec.shoot_ref.as_ref())
    });
    let (seeds, shoots) = (own.seeds.clone(), own.shoots.clone());
    let wake = {
        let queue = queue.clone();
        Arc::new(move || {
            for seed in seeds.list() {
                queue.add(Target::Seed(seed.name_any()));
            }
            for shoot in shoots.list().iter().filter(|shoot| shoot.is_self_hosted()) {
                queue.add(Target::Shoot(ObjectRef::of(shoot.as_ref())));
            }
        })
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
    let reconcile = move |target: Target| {
        let own = own.clone();
        async move {
            match &target {
                Target::Seed(name) => own.reconcile_seed(name).await,
                Target::Shoot(shoot) => own.reconcile_shoot(shoot).await,
            }
        }
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

fn borrowed<K>(objects: &[Arc<K>]) -> Vec<&K> {
    objects.iter().map(Arc::as_ref).collect()
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

/// For whom installations are: a seed, a self-hosted shoot, or a seed that is one.
struct Owner<'a> {
    seed: Option<&'a Seed>,
    shoot: Option<&'a Shoot>,
}

impl Owner<'_> {
    fn keeper(&self) -> Keeper {
        match (self.seed, self.shoot) {
            (Some(_), Some(_)) => Keeper::SelfHostedSeed,
            (None, _) => Keeper::Shoot,
            (Some(_), None) => Keeper::Seed,
        }
    }

    /// The labels by which changes are seen, and by which a seed knows its own installations in a self-hosted shoot.
    fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::new();
        match (self.seed, self.shoot) {
            (seed, Some(shoot)) => {
                labels.insert(SHOOT_HASH.to_owned(), hash(&shoot.spec));
                labels.extend(seed.map(|seed| (SEED_REF_NAME.to_owned(), seed.name_any())));
            }
            (Some(seed), None) => drop(labels.insert(SEED_HASH.to_owned(), hash(&seed.spec))),
            (None, None) => {}
        }
        labels
    }
}

/// What was chosen for an owner.
struct Chosen<'a> {
    /// Names of the registrations that are wanted.
    wanted: BTreeSet<String>,
    /// Names of those that the self-hosted shoot needs for itself.
    needed_by_shoot: BTreeSet<String>,
    /// All registrations.
    registrations: &'a [ControllerRegistration],
    /// The owner's installations.
    installations: &'a [ControllerInstallation],
}

impl Reconciler {
    fn api(&self) -> Api<ControllerInstallation> {
        self.manager.all()
    }

    async fn installations(&self, parameters: &ListParams) -> Result<Vec<ControllerInstallation>, ReconcileError> {
        // a read of our own writes: the informer may not have seen the installations of the last run
        Ok(self.api().read_list(parameters).await?)
    }

    /// The installations that refer to a self-hosted shoot.
    async fn installations_of(&self, shoot: &Shoot) -> Result<Vec<ControllerInstallation>, ReconcileError> {
        let mut all = self.installations(&ListParams::default()).await?;
        all.retain(|own| refers_to(own.spec.shoot_ref.as_ref(), shoot));
        Ok(all)
    }

    async fn reconcile_seed(&self, name: &str) -> Result<Action, ReconcileError> {
        let Some(seed) = self.manager.all::<Seed>().read_opt(name).await? else {
            return Ok(Action::Done);
        };
        let shoot = match seed.labels().contains_key(label::SEED_SELF_HOSTED) {
            true => Some(self.manager.within::<Shoot>(GARDEN_NAMESPACE).read(name).await?),
            false => None,
        };
        let installations = match &shoot {
            Some(shoot) => self.installations_of(shoot).await?,
            None => {
                let own = format!("spec.seedRef.name={name}");
                self.installations(&ListParams::default().fields(&own)).await?
            }
        };
        let (shoots, buckets, entries) = (self.shoots.list(), self.buckets.list(), self.entries.list());
        let (shoots, buckets, entries) = (borrowed(&shoots), borrowed(&buckets), borrowed(&entries));
        let registrations = cloned(&self.registrations);
        let self_hosted = shoot.as_ref().map(|shoot| SelfHosted {
            shoot,
            buckets: &buckets,
            entries: &entries,
            registrations: &registrations,
            installations: &installations,
        });
        let landscape = Landscape {
            seed: &seed,
            shoots: &shoots,
            buckets: &buckets,
            entries: &entries,
            registrations: &registrations,
            installations: &installations,
            self_hosted: self_hosted.as_ref(),
        };
        let chosen = Chosen {
            wanted: registrations::wanted(&landscape).map_err(ReconcileError::Blocked)?,
            needed_by_shoot: self_hosted.as_ref().map(SelfHosted::needed).unwrap_or_default(),
            registrations: &registrations,
            installations: &installations,
        };
        let owner = Owner {
            seed: Some(&seed),
            shoot: shoot.as_ref(),
        };
        self.apply(&owner, &chosen).await
    }

    async fn reconcile_shoot(&self, key: &ObjectRef) -> Result<Action, ReconcileError> {
        let shoots = self.manager.within::<Shoot>(&key.namespace);
        let Some(shoot) = shoots.read_opt(&key.name).await?.filter(Shoot::is_self_hosted) else {
            return Ok(Action::Done);
        };
        let installations = self.installations_of(&shoot).await?;
        let (buckets, entries) = (self.buckets.list(), self.entries.list());
        let (buckets, entries) = (borrowed(&buckets), borrowed(&entries));
        let registrations = cloned(&self.registrations);
        let own = SelfHosted {
            shoot: &shoot,
            buckets: &buckets,
            entries: &entries,
            registrations: &registrations,
            installations: &installations,
        };
        let chosen = Chosen {
            wanted: own.wanted().map_err(ReconcileError::Blocked)?,
            needed_by_shoot: own.needed(),
            registrations: &registrations,
            installations: &installations,
        };
        let owner = Owner {
            seed: None,
            shoot: Some(&shoot),
        };
        self.apply(&owner, &chosen).await
    }

    /// Has the installations be as they were chosen.
    async fn apply(&self, owner: &Owner<'_>, chosen: &Chosen<'_>) -> Result<Action, ReconcileError> {
        let existing: BTreeMap<&str, &ControllerInstallation> = chosen
            .installations
            .iter()
            .map(|own| (own.spec.registration_ref.name.as_deref().unwrap_or_default(), own))
            .collect();
        let step_of = |registration: &str| {
            step(
                owner.keeper(),
                chosen.wanted.contains(registration),
                chosen.needed_by_shoot.contains(registration),
                existing.get(registration).copied(),
            )
        };
        for registration in chosen
            .registrations
            .iter()
            .filter(|registration| chosen.wanted.contains(&registration.name_any()))
        {
            let name = registration.name_any();
            let own = existing.get(name.as_str()).copied();
            if registration.metadata.deletion_timestamp.is_some() {
                continue;
            }
            if own.is_some_and(|own| own.metadata.deletion_timestamp.is_some()) {
                return Err(ReconcileError::Blocked(format!(
                    "cannot deploy new ControllerInstallation for {name:?} because the deletion of the old ControllerInstallation is still pending",
                )));
            }
            match (step_of(&name), own) {
                (Step::Install, own) => self.install(owner, registration, own).await?,
                (step, Some(own)) => self.change(owner, step, own).await?,
                (_, None) => {}
            }
        }
        for installation in chosen.installations {
            let registration = installation.spec.registration_ref.name.as_deref().unwrap_or_default();
            if !chosen.wanted.contains(registration) && installation.metadata.deletion_timestamp.is_none() {
                self.change(owner, step_of(registration), installation).await?;
            }
        }
        Ok(Action::Done)
    }

    /// Does what is to be done about an installation besides bringing it up to date.
    async fn change(
        &self,
        owner: &Owner<'_>,
        step: Step,
        installation: &ControllerInstallation,
    ) -> Result<(), ReconcileError> {
        let api = self.api();
        match step {
            Step::Install | Step::Leave => {}
            Step::HandOver => {
                apply::patch(&api, installation, |own| drop(own.labels_mut().remove(SEED_REF_NAME))).await?;
            }
            Step::ShowToSeed => {
                let seed = owner.seed.map(|seed| ObjectReference {
                    name: seed.metadata.name.clone(),
                    ..ObjectReference::default()
                });
                apply::patch(&api, installation, |own| own.spec.seed_ref.clone_from(&seed)).await?;
            }
            Step::HideFromSeed => {
                apply::patch(&api, installation, |own| own.spec.seed_ref = None).await?;
            }
            Step::Remove => {
                apply::delete(&api, &installation.name_any()).await?;
            }
        }
        Ok(())
    }

    /// `[GCM-31]`.
    async fn install(
        &self,
        owner: &Owner<'_>,
        registration: &ControllerRegistration,
        existing: Option<&ControllerInstallation>,
    ) -> Result<(), ReconcileError> {
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
        let mut labels = owner.labels();
        labels.insert(REGISTRATION_HASH.to_owned(), hash(&registration.spec));
        if let Some(deployment) = &deployment {
            // what a deployment of the old version says that the new one has no fields for stands in annotations
            let old_fields = [
                annotation::CONTROLLER_DEPLOYMENT_TYPE,
                annotation::CONTROLLER_DEPLOYMENT_PROVIDER_CONFIG,
            ]
            .map(|key| deployment.annotations().get(key));
            labels.insert(
                DEPLOYMENT_HASH.to_owned(),
                hash(&(&deployment.helm, &deployment.inject_garden_kubeconfig, old_fields)),
            );
        }
        let security = registration.annotations().get(POD_SECURITY).cloned();
        // what a seed made for a self-hosted shoot becomes the shoot's
        let adopts = owner.keeper() == Keeper::Shoot;
        let is_as_wanted = existing.is_some_and(|own| {
            labels.iter().all(|(key, value)| own.labels().get(key) == Some(value))
                && !(adopts && own.labels().contains_key(SEED_REF_NAME))
                && own.annotations().get(POD_SECURITY) == security.as_ref()
                && own.spec.resource_refs == resources
        });
        if is_as_wanted {
            return Ok(());
        }
        let change = |installation: &mut ControllerInstallation| {
            if adopts {
                installation.labels_mut().remove(SEED_REF_NAME);
            }
            installation.labels_mut().extend(labels.clone());
            match &security {
                Some(security) => drop(
                    installation
                        .annotations_mut()
                        .insert(POD_SECURITY.to_owned(), security.clone()),
                ),
                None => drop(installation.annotations_mut().remove(POD_SECURITY)),
            }
            if let Some(seed) = owner.seed {
                installation.spec.seed_ref = Some(reference(&seed.metadata));
            }
            installation.spec.shoot_ref = owner.shoot.map(|shoot| ObjectReference {
                namespace: shoot.metadata.namespace.clone(),
                ..reference(&shoot.metadata)
            });
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
        let found = self.manager.all::<ControllerDeployment>().read(name).await;
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
