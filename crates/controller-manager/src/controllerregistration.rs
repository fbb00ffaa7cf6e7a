//! Controller registrations `[GCM-30]`–`[GCM-32]`: which extensions are installed on which seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_apis::constants::finalizer;
use gardener_apis::core::v1::ControllerDeployment;
use gardener_apis::core::v1beta1::{
    BackupBucket, BackupEntry, ControllerInstallation, ControllerRegistration, Seed, Shoot,
};
use gardener_controller::informer::Watched;
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, apply};
use gardener_rules::registrations::{self, Landscape};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::{CONCURRENCY, Config, ReconcileError};

const SEED_HASH: &str = "seed.gardener.cloud/spec-hash";
const REGISTRATION_HASH: &str = "registration.core.gardener.cloud/spec-hash";
const DEPLOYMENT_HASH: &str = "deployment.core.gardener.cloud/spec-hash";
const POD_SECURITY: &str = "security.gardener.cloud/pod-security-enforce";
/// How soon an installation that is going is looked at again.
const GOING_INTERVAL: Duration = Duration::from_secs(2);

struct Reconciler {
    config: Config,
    seeds: Informer<Seed>,
    shoots: Informer<Shoot>,
    buckets: Informer<BackupBucket>,
    entries: Informer<BackupEntry>,
    registrations: Informer<ControllerRegistration>,
    deployments: Informer<ControllerDeployment>,
    installations: Informer<ControllerInstallation>,
}

fn informer<K: Watched + kube::Resource<DynamicType = ()>>(config: &Config, stop: &CancellationToken) -> Informer<K> {
    Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), stop)
}

pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let own = Reconciler {
        seeds: informer(&config, &stop),
        shoots: informer(&config, &stop),
        buckets: informer(&config, &stop),
        entries: informer(&config, &stop),
        registrations: informer(&config, &stop),
        deployments: informer(&config, &stop),
        installations: informer(&config, &stop),
        config,
    };
    let queue: Queue<String> = Queue::new();
    let guarded: Queue<ObjectRef> = Queue::new();
    own.seeds.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                old.spec != new.spec
                    || old.metadata.labels != new.metadata.labels
                    || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
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
            shoot
                .spec
                .seed_name
                .iter()
                .chain(&shoot.status.seed_name)
                .cloned()
                .collect::<Vec<_>>()
        },
    );
    own.buckets.feed(&queue, |bucket| bucket.spec.seed_name.clone());
    own.entries.feed(&queue, |entry| entry.spec.seed_name.clone());
    own.installations.feed(&queue, |installation| {
        installation.spec.seed_ref.as_ref().and_then(|own| own.name.clone())
    });
    for change_of_all in [true, false] {
        let (queue, seeds) = (queue.clone(), own.seeds.clone());
        let wake = move || seeds.list().iter().for_each(|seed| queue.add(seed.name_any()));
        if change_of_all {
            own.registrations.on_change(move |_| wake());
        } else {
            own.deployments.on_change(move |_| wake());
        }
    }
    own.registrations
        .feed(&guarded, |registration| [ObjectRef::of(registration)]);
    {
        let guarded = guarded.clone();
        own.installations.on_change(move |change| {
            if let Some(name) = &change.object().spec.registration_ref.name {
                guarded.add(ObjectRef::cluster_scoped(name));
            }
        });
    }
    tokio::join!(
        own.seeds.synced(),
        own.shoots.synced(),
        own.buckets.synced(),
        own.entries.synced(),
        own.registrations.synced(),
        own.deployments.synced(),
        own.installations.synced()
    );
    let own = Arc::new(own);
    let (for_seeds, for_finalizers) = (own.clone(), own);
    let seeds = Controller::new("controllerregistration-seed", CONCURRENCY, queue).run(stop.clone(), move |seed| {
        let own = for_seeds.clone();
        async move { own.reconcile(&seed).await }
    });
    let finalizers = Controller::new("controllerregistration-finalizer", CONCURRENCY, guarded).run(stop, move |key| {
        let own = for_finalizers.clone();
        async move { own.guard(&key.name).await }
    });
    tokio::join!(seeds, finalizers);
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

fn reference(api_version: &str, kind: &str, metadata: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        name: metadata.name.clone(),
        resource_version: metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

impl Reconciler {
    fn api(&self) -> Api<ControllerInstallation> {
        Api::all(self.config.garden.clone())
    }

    async fn reconcile(&self, name: &str) -> Result<Action, ReconcileError> {
        let seeds: Api<Seed> = Api::all(self.config.garden.clone());
        let Some(seed) = seeds.get_opt(name).await? else {
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
        let has_shoots = shoots.iter().any(|shoot| {
            shoot.spec.seed_name.as_deref() == Some(name) || shoot.status.seed_name.as_deref() == Some(name)
        });
        let going = seed.metadata.deletion_timestamp.is_some();
        let wanted = if going && !has_shoots {
            Default::default()
        } else {
            registrations::wanted(&landscape).map_err(ReconcileError::Blocked)?
        };
        if !going {
            apply::add_finalizer(&seeds, &seed, finalizer::CONTROLLER_REGISTRATION).await?;
        }
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
        if going {
            let left = self
                .api()
                .list(&kube::api::ListParams::default().fields(&format!("spec.seedRef.name={name}")))
                .await?;
            if left.items.is_empty() {
                apply::remove_finalizer(&seeds, &seed, finalizer::CONTROLLER_REGISTRATION).await?;
            } else {
                return Ok(Action::RequeueAfter(GOING_INTERVAL));
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
            .and_then(|own| own.deployment_refs.first())
            .map(|own| own.name.clone());
        let deployment = referenced.and_then(|name| self.deployments.get(&ObjectRef::cluster_scoped(name)));
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
        if existing.is_some_and(|own| labels.iter().all(|(key, value)| own.labels().get(key) == Some(value))) {
            return Ok(());
        }
        let security = registration.annotations().get(POD_SECURITY).cloned();
        let change = |installation: &mut ControllerInstallation| {
            installation
                .metadata
                .labels
                .get_or_insert_with(BTreeMap::new)
                .extend(labels.clone());
            if let Some(security) = security.clone() {
                installation
                    .metadata
                    .annotations
                    .get_or_insert_with(BTreeMap::new)
                    .insert(POD_SECURITY.to_owned(), security);
            }
            installation.spec.seed_ref = Some(reference("core.gardener.cloud/v1beta1", "Seed", &seed.metadata));
            installation.spec.registration_ref = reference(
                "core.gardener.cloud/v1beta1",
                "ControllerRegistration",
                &registration.metadata,
            );
            installation.spec.deployment_ref = deployment
                .as_ref()
                .map(|own| reference("core.gardener.cloud/v1", "ControllerDeployment", &own.metadata));
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

    /// Keeps a registration while installations refer to it `[GCM-32]` `[EXT-92]`.
    async fn guard(&self, name: &str) -> Result<Action, ReconcileError> {
        let api: Api<ControllerRegistration> = Api::all(self.config.garden.clone());
        let Some(registration) = api.get_opt(name).await? else {
            return Ok(Action::Done);
        };
        if registration.metadata.deletion_timestamp.is_none() {
            apply::add_finalizer(&api, &registration, finalizer::CONTROLLER_REGISTRATION).await?;
            return Ok(Action::Done);
        }
        let used = self
            .api()
            .list(&kube::api::ListParams::default().fields(&format!("spec.registrationRef.name={name}")))
            .await?;
        if !used.items.is_empty() {
            return Ok(Action::RequeueAfter(GOING_INTERVAL));
        }
        apply::remove_finalizer(&api, &registration, finalizer::CONTROLLER_REGISTRATION).await?;
        Ok(Action::Done)
    }
}
