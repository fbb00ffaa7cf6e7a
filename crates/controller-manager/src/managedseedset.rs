//! Sets of managed seeds [GCM-25]: shoots that become seeds, one after the other. What is next is decided in `rules::managed_seed_sets`.

use std::collections::BTreeMap;

use gardener_apis::constants::{GARDEN_NAMESPACE, annotation, finalizer, operation};
use gardener_apis::core::v1beta1::{Seed, Shoot};
use gardener_apis::seedmanagement::v1alpha1::{ManagedSeed, ManagedSeedSet, ManagedSeedSetStatus};
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::managed_seed_sets::{Act, Owner, Replica, decide, is_seed_ready, managed_seed, shoot};
use kube::api::{ListParams, PostParams};
use kube::core::Selector;
use kube::{Api, Resource, ResourceExt};

use crate::Manager;
use crate::manager::{ReconcileError, or_gone};

const KIND: &str = "ManagedSeedSet";

struct Reconciler {
    manager: Manager,
    recorder: Recorder,
}

/// The set that an object is of.
fn set_of<K: Resource>(object: &K) -> Option<ObjectRef> {
    let mut owners = object.owner_references().iter();
    let owner = owners.find(|own| own.controller == Some(true) && own.kind == KIND)?;
    Some(ObjectRef::new(object.namespace().unwrap_or_default(), &owner.name))
}

pub(crate) async fn run(manager: &Manager) {
    let (sets, shoots) = (manager.informer::<ManagedSeedSet>(), manager.informer::<Shoot>());
    let (managed_seeds, seeds) = (manager.informer::<ManagedSeed>(), manager.informer::<Seed>());
    let queue: Queue<ObjectRef> = Queue::new();
    sets.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                let of = |own: &ManagedSeedSet| (own.metadata.generation, own.metadata.deletion_timestamp.clone());
                of(old) != of(new)
            }
            Change::Applied { old: None, .. } => true,
            Change::Deleted(_) => false,
        },
        |set| [ObjectRef::of(set)],
    );
    shoots.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                old.metadata.labels != new.metadata.labels
                    || old.metadata.generation != new.metadata.generation
                    || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
                    || old.status.observed_generation != new.status.observed_generation
                    || state(old) != state(new)
            }
            _ => true,
        },
        set_of,
    );
    managed_seeds.feed(&queue, set_of);
    let of_seed: Informer<ManagedSeed> = managed_seeds.clone();
    seeds.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => is_seed_ready(old) != is_seed_ready(new),
            _ => true,
        },
        move |seed| {
            let own = of_seed.get(&ObjectRef::new(GARDEN_NAMESPACE, seed.name_any()));
            own.and_then(|own| set_of(own.as_ref()))
        },
    );
    tokio::join!(sets.synced(), shoots.synced(), managed_seeds.synced(), seeds.synced());
    let own = std::sync::Arc::new(Reconciler {
        manager: manager.clone(),
        recorder: manager.recorder("managedseedset"),
    });
    let syncs = manager.config.controllers.managed_seed_set.concurrent_syncs;
    let controller = manager.controller("managedseedset", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { own.reconcile(&key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

fn state(shoot: &Shoot) -> Option<(&str, &str)> {
    let last = shoot.status.last_operation.as_ref()?;
    Some((&last.r#type, &last.state))
}

impl Reconciler {
    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, ReconcileError> {
        let api: Api<ManagedSeedSet> = self.manager.within(&key.namespace);
        let Some(set) = api.read_opt(&key.name).await? else {
            return Ok(Action::Done);
        };
        let going = set.metadata.deletion_timestamp.is_some();
        if going && !apply::has_finalizer(&set, finalizer::GARDENER) {
            return Ok(Action::Done);
        }
        let set = match going {
            true => set,
            false => apply::add_finalizer(&api, &set, finalizer::GARDENER).await?.0,
        };
        let act = match self.advance(&api, &set).await {
            Ok(act) => act,
            Err(error) => {
                self.tell(&set, Severity::Warning, "ReconcileError", &error.to_string())
                    .await;
                return Err(error);
            }
        };
        if going && act == Act::Nothing {
            apply::remove_finalizer(&api, &set, finalizer::GARDENER).await?;
            return Ok(Action::Done);
        }
        Ok(Action::RequeueAfter(self.settings().sync_period.to_std()))
    }

    fn settings(&self) -> &crate::configuration::ManagedSeedSet {
        &self.manager.config.controllers.managed_seed_set
    }

    async fn tell(&self, set: &ManagedSeedSet, severity: Severity, reason: &str, message: &str) {
        let about = object_reference(set, &());
        self.recorder.publish(&about, severity, reason, message).await;
    }

    /// Does what is next, and tells.
    async fn advance(&self, api: &Api<ManagedSeedSet>, set: &ManagedSeedSet) -> Result<Act, ReconcileError> {
        // as they are now: a replica that an informer has not seen would be created a second time
        let selector = Selector::try_from(set.spec.selector.clone());
        let selector = selector.map_err(|error| ReconcileError::Blocked(error.to_string()))?;
        let matching = ListParams::default().labels_from(&selector);
        let namespace = set.namespace().unwrap_or_default();
        let shoots = self.manager.within::<Shoot>(&namespace).read_list(&matching).await?;
        let managed_seeds = self
            .manager
            .within::<ManagedSeed>(&namespace)
            .read_list(&matching)
            .await?;
        let seeds = self.manager.all::<Seed>().read_list(&matching).await?;
        let mut used = BTreeMap::new();
        for shoot in &shoots {
            let is_seed = seeds.iter().any(|seed| seed.name_any() == shoot.own_name());
            used.insert(shoot.own_name(), is_seed && self.has_shoots(shoot.own_name()).await?);
        }
        let replica = |shoot| {
            let name = Shoot::own_name(shoot);
            Replica {
                shoot,
                managed_seed: managed_seeds.iter().find(|own| own.name_any() == name),
                seed: seeds.iter().find(|own| own.name_any() == name),
                has_shoots: used.get(name).copied().unwrap_or_default(),
            }
        };
        let replicas: Vec<Replica<'_>> = shoots.iter().map(replica).collect();
        let decision = decide(
            set,
            &replicas,
            self.settings().max_shoot_retries,
            self.manager.config.clock.now(),
        );
        let decision = match decision {
            Ok(decision) => decision,
            Err(stuck) => {
                self.write(api, set, &stuck.status).await?;
                return Err(ReconcileError::Blocked(stuck.why.to_owned()));
            }
        };
        if let Some((reason, message)) = &decision.event {
            self.tell(set, Severity::Normal, reason, message).await;
        }
        self.act(set, &decision.act).await?;
        // in deletion the set may go with the last of its replicas
        if !(decision.act == Act::Nothing && set.metadata.deletion_timestamp.is_some()) {
            self.write(api, set, &decision.status).await?;
        }
        Ok(decision.act)
    }

    async fn write(
        &self,
        api: &Api<ManagedSeedSet>,
        set: &ManagedSeedSet,
        status: &ManagedSeedSetStatus,
    ) -> Result<(), ReconcileError> {
        let written = apply::patch_status(api, set, |set| set.status.clone_from(status));
        or_gone(written.await)?;
        Ok(())
    }

    async fn has_shoots(&self, seed: &str) -> Result<bool, ReconcileError> {
        let scheduled = ListParams::default().fields(&format!("spec.seedName={seed}")).limit(1);
        let shoots = self.manager.all::<Shoot>().list_metadata(&scheduled).await?;
        Ok(!shoots.items.is_empty())
    }

    async fn act(&self, set: &ManagedSeedSet, act: &Act) -> Result<(), ReconcileError> {
        let namespace = set.namespace().unwrap_or_default();
        let shoots: Api<Shoot> = self.manager.within(&namespace);
        let managed_seeds: Api<ManagedSeed> = self.manager.within(&namespace);
        match act {
            Act::Nothing | Act::Wait => {}
            Act::CreateShoot(ordinal) => create(&shoots, &shoot(set, *ordinal, owner(set))).await?,
            Act::CreateManagedSeed(ordinal) => create(&managed_seeds, &managed_seed(set, *ordinal, owner(set))).await?,
            Act::DeleteManagedSeed(name) => drop(apply::delete(&managed_seeds, name).await?),
            Act::DeleteShoot(name) => {
                annotate(&shoots, name, annotation::CONFIRMATION_DELETION, "true").await?;
                apply::delete(&shoots, name).await?;
            }
            Act::RetryShoot(name) => annotate(&shoots, name, annotation::OPERATION, operation::RETRY).await?,
        }
        Ok(())
    }
}

fn owner(set: &ManagedSeedSet) -> Owner {
    Owner {
        api_version: ManagedSeedSet::api_version(&()).into_owned(),
        kind: KIND.to_owned(),
        name: set.name_any(),
        uid: set.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Creates an object; one that is there already is fine.
async fn create<K: apply::Writable>(api: &Api<K>, object: &K) -> Result<(), ReconcileError> {
    match api.create(&PostParams::default(), object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        created => Ok(created.map(drop)?),
    }
}

async fn annotate(shoots: &Api<Shoot>, name: &str, key: &str, value: &str) -> Result<(), ReconcileError> {
    let Some(shoot) = shoots.read_opt(name).await? else {
        return Ok(());
    };
    let written = apply::patch(shoots, &shoot, |shoot| {
        shoot.annotations_mut().insert(key.to_owned(), value.to_owned());
    });
    or_gone(written.await)?;
    Ok(())
}
