//! Something derived from all objects of a kind, made anew when one of them changed. A request costs one look at whether anything did.

use std::sync::Arc;

use gardener_store::{Entry, ListOptions, Watch};

use crate::cluster::LogicalCluster;

/// What was derived from a kind's objects, and the watch that tells of changes.
#[derive(Default)]
pub(crate) struct Followed<T> {
    watch: Option<Watch>,
    value: Arc<T>,
}

impl<T> Followed<T> {
    /// What was derived last.
    pub(crate) fn last(&self) -> Arc<T> {
        Arc::clone(&self.value)
    }

    /// What `derive` makes of the newest objects, in the order of their names.
    pub(crate) fn current(
        &mut self,
        cluster: &LogicalCluster,
        (group, plural): (&str, &str),
        derive: impl FnOnce(&[Arc<Entry>]) -> T,
    ) -> Arc<T> {
        if self.changed()
            && let Some((definition, store)) = cluster.readable(group, plural)
        {
            let prefix = cluster.path("", "");
            if let Ok(listing) = store.list(&definition.topic, &prefix, &ListOptions::default()) {
                if self.watch.is_none() {
                    self.watch = store.watch(&definition.topic, &prefix, listing.revision).ok();
                }
                self.value = Arc::new(derive(&listing.entries));
            }
        }
        Arc::clone(&self.value)
    }

    fn changed(&mut self) -> bool {
        let Some(watch) = &mut self.watch else { return true };
        let mut changed = false;
        loop {
            match watch.try_next() {
                Ok(None) => return changed,
                Ok(Some(_)) => changed = true,
                // events were missed: begins anew
                Err(_) => {
                    self.watch = None;
                    return true;
                }
            }
        }
    }
}
