//! Which logical clusters the shared controllers and the shared scheduler act in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

/// What is done for a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// What kube-controller-manager does.
    ControllerManager,
    /// What kube-scheduler does.
    Scheduler,
}

type Listener = Box<dyn Fn(&str, Role) + Send + Sync>;

/// The clusters that take part, by role. Clones are handles on the same set.
#[derive(Clone, Default)]
pub struct Participants {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    roles: RwLock<BTreeMap<String, BTreeSet<Role>>>,
    listeners: Mutex<Vec<Listener>>,
}

impl Participants {
    /// From now on `role` is done for `cluster`; everything in it is reconsidered.
    pub fn join(&self, cluster: &str, role: Role) {
        if self
            .inner
            .roles
            .write()
            .entry(cluster.to_owned())
            .or_default()
            .insert(role)
        {
            for listener in self.inner.listeners.lock().iter() {
                listener(cluster, role);
            }
        }
    }

    /// Everything in a cluster that takes part is reconsidered, for instance because its root CA changed.
    pub fn reconsider(&self, cluster: &str, role: Role) {
        if self.has(cluster, role) {
            for listener in self.inner.listeners.lock().iter() {
                listener(cluster, role);
            }
        }
    }

    /// From now on `role` is no longer done for `cluster`; what is under way ends.
    pub fn leave(&self, cluster: &str, role: Role) {
        let mut roles = self.inner.roles.write();
        if let Some(own) = roles.get_mut(cluster) {
            own.remove(&role);
            if own.is_empty() {
                roles.remove(cluster);
            }
        }
    }

    /// Whether `role` is done for `cluster`.
    pub fn has(&self, cluster: &str, role: Role) -> bool {
        self.inner
            .roles
            .read()
            .get(cluster)
            .is_some_and(|own| own.contains(&role))
    }

    /// The clusters for which `role` is done.
    pub fn names(&self, role: Role) -> Vec<String> {
        let roles = self.inner.roles.read();
        roles
            .iter()
            .filter(|(_, own)| own.contains(&role))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Calls `listener` whenever a cluster joins.
    pub(crate) fn on_join(&self, listener: impl Fn(&str, Role) + Send + Sync + 'static) {
        self.inner.listeners.lock().push(Box::new(listener));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_is_told_once_until_left() {
        let participants = Participants::default();
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&told);
        participants.on_join(move |cluster, role| log.lock().push(format!("{cluster} {role:?}")));
        participants.join("a", Role::Scheduler);
        participants.join("a", Role::Scheduler);
        participants.leave("a", Role::Scheduler);
        assert!(!participants.has("a", Role::Scheduler));
        participants.join("a", Role::Scheduler);
        participants.join("b", Role::ControllerManager);
        assert_eq!(*told.lock(), ["a Scheduler", "a Scheduler", "b ControllerManager"]);
        assert_eq!(participants.names(Role::Scheduler), ["a"]);
    }
}
