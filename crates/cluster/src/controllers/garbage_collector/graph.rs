//! Who depends on whom: only objects that have owners, and owners that wait for their dependents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gardener_store::Topic;

use super::decide::{FOREGROUND, ORPHAN};
use crate::topics::{Ownership, Place};

/// An object that has an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dependent {
    pub place: Place,
    /// Whether it keeps the owner asked for from being deleted in the foreground.
    pub blocks: bool,
}

type Uid = (Arc<str>, String);

/// The dependents of all clusters.
#[derive(Default)]
pub(super) struct Graph {
    /// By owner: places of dependents, and whether they block.
    dependents: BTreeMap<Uid, BTreeMap<Place, bool>>,
    /// By dependent: its owners' uids and whether it blocks them.
    owners: BTreeMap<Place, BTreeMap<String, bool>>,
    /// Owners that are deleted in the foreground or orphan their dependents.
    waiting: BTreeMap<Uid, Place>,
}

impl Graph {
    /// An object changed; answers what is to be looked at.
    pub fn apply(&mut self, place: &Place, ownership: &Ownership) -> Vec<Place> {
        let mut affected = Vec::new();
        let owners: BTreeMap<String, bool> = ownership
            .owner_references
            .iter()
            .map(|owner| (owner.uid.clone(), owner.block_owner_deletion.unwrap_or(false)))
            .collect();
        let before = self.owners.get(place).cloned().unwrap_or_default();
        if before != owners {
            self.unlink(place);
            affected.extend(self.waiting_owners(place, &before));
            if !owners.is_empty() {
                for (uid, blocks) in &owners {
                    let key = (Arc::clone(&place.cluster), uid.clone());
                    self.dependents.entry(key).or_default().insert(place.clone(), *blocks);
                }
                self.owners.insert(place.clone(), owners);
                affected.push(place.clone());
            }
        }
        let waits = ownership
            .finalizers
            .iter()
            .any(|own| own == FOREGROUND || own == ORPHAN);
        if ownership.deletion_timestamp.is_some() && waits {
            self.waiting
                .insert((Arc::clone(&place.cluster), ownership.uid.clone()), place.clone());
            affected.push(place.clone());
        }
        affected
    }

    /// An object is gone; answers what is to be looked at: its dependents, and its owners that wait for it.
    pub fn delete(&mut self, place: &Place, ownership: &Ownership) -> Vec<Place> {
        let key = (Arc::clone(&place.cluster), ownership.uid.clone());
        self.waiting.remove(&key);
        let owners = self.owners.get(place).cloned().unwrap_or_default();
        self.unlink(place);
        let mut affected = self.waiting_owners(place, &owners);
        affected.extend(self.dependents.get(&key).into_iter().flat_map(BTreeMap::keys).cloned());
        affected
    }

    /// What a topic holds now, after events may have been missed. Everything with owners is to be looked at.
    pub fn replace(&mut self, topic: &Topic, listed: &[(Place, Ownership)]) -> Vec<Place> {
        let known: BTreeSet<&Place> = listed.iter().map(|(place, _)| place).collect();
        let gone: Vec<Place> = self
            .owners
            .keys()
            .filter(|place| place.topic == *topic && !known.contains(place))
            .cloned()
            .collect();
        let mut affected = Vec::new();
        for place in gone {
            let owners = self.owners.get(&place).cloned().unwrap_or_default();
            self.unlink(&place);
            affected.extend(self.waiting_owners(&place, &owners));
        }
        self.waiting
            .retain(|_, place| place.topic != *topic || known.contains(place));
        for (place, ownership) in listed {
            affected.extend(self.apply(place, ownership));
        }
        // owners of this topic may have gone unseen
        affected.extend(self.owners.keys().cloned());
        affected
    }

    /// Everything of a cluster that may have to be looked at.
    pub fn of_cluster(&self, cluster: &str) -> Vec<Place> {
        let waiting = self.waiting.values().filter(|place| *place.cluster == *cluster);
        self.owners
            .keys()
            .filter(|place| *place.cluster == *cluster)
            .chain(waiting)
            .cloned()
            .collect()
    }

    /// The dependents of an owner.
    pub fn dependents(&self, cluster: &Arc<str>, uid: &str) -> Vec<Dependent> {
        let found = self.dependents.get(&(Arc::clone(cluster), uid.to_owned()));
        found
            .into_iter()
            .flatten()
            .map(|(place, blocks)| Dependent {
                place: place.clone(),
                blocks: *blocks,
            })
            .collect()
    }

    fn waiting_owners(&self, place: &Place, owners: &BTreeMap<String, bool>) -> Vec<Place> {
        owners
            .keys()
            .filter_map(|uid| self.waiting.get(&(Arc::clone(&place.cluster), uid.clone())).cloned())
            .collect()
    }

    fn unlink(&mut self, place: &Place) {
        for uid in self.owners.remove(place).into_iter().flatten().map(|(uid, _)| uid) {
            let key = (Arc::clone(&place.cluster), uid);
            if let Some(dependents) = self.dependents.get_mut(&key) {
                dependents.remove(place);
                if dependents.is_empty() {
                    self.dependents.remove(&key);
                }
            }
        }
    }
}
