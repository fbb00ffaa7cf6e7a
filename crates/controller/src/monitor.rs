//! What a component tells those who watch over it: how its controllers work, whether it leads, and whether it is well.

mod counts;
mod serve;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::metrics::{Text, process};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Informers;

pub(crate) use counts::{Counts, Ended};
pub use serve::{Answer, serve};

/// How long informers may take until their component is no longer well [upstream's `DefaultCacheSyncDeadline`].
const SYNC_DEADLINE: Duration = Duration::from_secs(180);

/// What a component counts and knows of itself. Clones are handles on the same.
#[derive(Clone, Default)]
pub struct Monitor {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    controllers: Mutex<BTreeMap<Arc<str>, Arc<Counts>>>,
    /// By lease, whether it is held.
    leases: Mutex<BTreeMap<String, bool>>,
    informers: Mutex<Option<Following>>,
}

struct Following {
    informers: Informers,
    since: Instant,
}

impl Monitor {
    /// The counts of a controller; a controller that starts anew goes on where it was.
    pub(crate) fn counts(&self, controller: &Arc<str>) -> Arc<Counts> {
        let mut controllers = self.shared.controllers.lock();
        Arc::clone(controllers.entry(Arc::clone(controller)).or_default())
    }

    /// Tells whether this process holds a lease. One that is never told is none that counts.
    pub fn leads(&self, lease: &str, leading: bool) {
        self.shared.leases.lock().insert(lease.to_owned(), leading);
    }

    /// Tells what the component follows from now on, or that it follows nothing.
    pub fn follows(&self, informers: Option<Informers>) {
        let following = informers.map(|informers| Following {
            informers,
            since: Instant::now(),
        });
        *self.shared.informers.lock() = following;
    }

    /// Whether the component is well.
    ///
    /// # Errors
    /// What it waits for in vain.
    pub fn is_well(&self) -> Result<(), String> {
        match self.unsynced() {
            Some((waited, names)) if waited > SYNC_DEADLINE => Err(unsynced(&names)),
            _ => Ok(()),
        }
    }

    /// Whether the component is ready to work. One that waits for its lease is ready to take over.
    ///
    /// # Errors
    /// What it waits for.
    pub fn is_ready(&self) -> Result<(), String> {
        self.unsynced().map_or(Ok(()), |(_, names)| Err(unsynced(&names)))
    }

    fn unsynced(&self) -> Option<(Duration, Vec<String>)> {
        let following = self.shared.informers.lock();
        let following = following.as_ref()?;
        let names = following.informers.unsynced();
        (!names.is_empty()).then(|| (following.since.elapsed(), names))
    }

    /// Everything that is counted, in Prometheus' text form, under controller-runtime's names.
    pub fn metrics(&self) -> String {
        let mut text = Text::default();
        counts::write(&self.shared.controllers.lock(), &mut text);
        text.family(
            "leader_election_master_status",
            "gauge",
            "Whether this process holds the lease: 1, else 0.",
        );
        for (lease, leading) in self.shared.leases.lock().iter() {
            let labels = format!("name=\"{lease}\"");
            text.sample("leader_election_master_status", &labels, u8::from(*leading));
        }
        process::tell(&mut text);
        text.into_text()
    }
}

fn unsynced(names: &[String]) -> String {
    format!("informers not synced: {}", names.join(", "))
}

#[cfg(test)]
mod tests;
