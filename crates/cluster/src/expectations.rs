//! What a controller asked for and its informer does not show yet: until it does, decisions would count twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gardener_controller::informer::Watched;
use gardener_controller::{Change, Clustered, Informer, ObjectRef};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::time::Instant;

use crate::environment::key_of;

/// After this time an expectation is given up, as if it were met.
pub(crate) const EXPIRY: Duration = Duration::from_secs(300);

#[derive(Default)]
struct State {
    /// By who asked: what is to come to be and what is to go, with the time of asking.
    pending: BTreeMap<ObjectRef, BTreeMap<(ObjectRef, bool), Instant>>,
    /// Who asked, by what was asked for.
    asked: BTreeMap<(ObjectRef, bool), BTreeSet<ObjectRef>>,
}

impl State {
    fn met(&mut self, what: &(ObjectRef, bool)) {
        for owner in self.asked.remove(what).into_iter().flatten() {
            if let Some(pending) = self.pending.get_mut(&owner) {
                pending.remove(what);
                if pending.is_empty() {
                    self.pending.remove(&owner);
                }
            }
        }
    }
}

/// Creations and deletions that are not seen yet, by the key of who asked. Owners' keys begin with their kind.
#[derive(Clone, Default)]
pub(crate) struct Expectations {
    state: Arc<Mutex<State>>,
}

impl Expectations {
    /// Meets expectations by what an informer tells.
    pub fn follow<K: Watched<DynamicType = ()>>(&self, informer: &Informer<Clustered<K>>) {
        let state = Arc::clone(&self.state);
        informer.on_change(move |change| {
            let place = key_of(change.object().as_ref());
            let mut state = state.lock();
            match change {
                Change::Applied { new, .. } => {
                    state.met(&(place.clone(), true));
                    if new.object.meta().deletion_timestamp.is_some() {
                        state.met(&(place, false));
                    }
                }
                Change::Deleted(_) => {
                    state.met(&(place.clone(), true));
                    state.met(&(place, false));
                }
            }
        });
    }

    fn expect(&self, owner: &ObjectRef, what: (ObjectRef, bool)) {
        let mut state = self.state.lock();
        state.asked.entry(what.clone()).or_default().insert(owner.clone());
        state
            .pending
            .entry(owner.clone())
            .or_default()
            .insert(what, Instant::now());
    }

    /// `owner` is about to create what will be at `place`.
    pub fn creation(&self, owner: &ObjectRef, place: &ObjectRef) {
        self.expect(owner, (place.clone(), true));
    }

    /// `owner` is about to delete what is at `place`.
    pub fn deletion(&self, owner: &ObjectRef, place: &ObjectRef) {
        self.expect(owner, (place.clone(), false));
    }

    /// The request failed: nothing is expected at `place`.
    pub fn failed(&self, place: &ObjectRef) {
        let mut state = self.state.lock();
        state.met(&(place.clone(), true));
        state.met(&(place.clone(), false));
    }

    /// Whether the informer shows everything that `owner` asked for.
    pub fn are_met(&self, owner: &ObjectRef) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        let expired: Vec<(ObjectRef, bool)> = state
            .pending
            .get(owner)
            .into_iter()
            .flatten()
            .filter(|(_, since)| now.duration_since(**since) >= EXPIRY)
            .map(|(what, _)| what.clone())
            .collect();
        for what in expired {
            state.met(&what);
        }
        !state.pending.contains_key(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn expectations_hold_until_met_failed_or_expired() {
        let (owner, a, b) = (
            ObjectRef::new("n", "rs"),
            ObjectRef::new("n", "a"),
            ObjectRef::new("n", "b"),
        );
        let expectations = Expectations::default();
        assert!(expectations.are_met(&owner));
        expectations.creation(&owner, &a);
        expectations.deletion(&owner, &b);
        assert!(!expectations.are_met(&owner));
        expectations.failed(&a);
        assert!(!expectations.are_met(&owner));
        tokio::time::advance(EXPIRY).await;
        assert!(expectations.are_met(&owner));
    }
}
