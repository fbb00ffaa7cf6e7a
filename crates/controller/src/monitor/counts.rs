//! The counts of controllers, under the names that controller-runtime gives them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::metrics::{Durations, Text};
use parking_lot::Mutex;

/// Upper bounds, in seconds, of the steps in which durations of reconciliations are counted; those of controller-runtime.
const STEPS: [f64; 39] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 60.0,
];

/// How a reconciliation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ended {
    /// There is nothing more to do.
    Success,
    /// It comes again after a time.
    RequeueAfter,
    /// It failed.
    Error,
    /// It panicked.
    Panic,
}

impl Ended {
    /// The label's value. A panic is an error, and counted as panic besides.
    fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Error | Self::Panic => "error",
        }
    }
}

/// How long a queue is.
type Depth = Box<dyn Fn() -> usize + Send + Sync>;

/// The counts of one controller.
#[derive(Default)]
pub(crate) struct Counts {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    depth: Option<Depth>,
    concurrency: usize,
    working: u64,
    results: BTreeMap<&'static str, u64>,
    panics: u64,
    durations: Durations<{ STEPS.len() }>,
}

impl Counts {
    /// A controller starts.
    pub fn start(&self, concurrency: usize, depth: impl Fn() -> usize + Send + Sync + 'static) {
        let mut state = self.state.lock();
        state.concurrency = concurrency;
        state.working = 0;
        state.depth = Some(Box::new(depth));
    }

    /// A controller ends; what was under way is dropped.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.working = 0;
        state.depth = None;
    }

    /// A reconciliation begins.
    pub fn begin(&self) {
        self.state.lock().working += 1;
    }

    /// A reconciliation ended.
    pub fn end(&self, ended: Ended, taken: Duration) {
        let mut state = self.state.lock();
        state.working = state.working.saturating_sub(1);
        *state.results.entry(ended.as_str()).or_default() += 1;
        state.panics += u64::from(ended == Ended::Panic);
        state.durations.add(&STEPS, taken);
    }
}

/// Writes the counts of all controllers.
pub(super) fn write(controllers: &BTreeMap<Arc<str>, Arc<Counts>>, text: &mut Text) {
    let mut gauge = |name: &str, kind: &str, help: &str, value: &dyn Fn(&State) -> u64| {
        text.family(name, kind, help);
        for (controller, counts) in controllers {
            let labels = format!("controller=\"{controller}\"");
            text.sample(name, &labels, value(&counts.state.lock()));
        }
    };
    gauge(
        "controller_runtime_max_concurrent_reconciles",
        "gauge",
        "How many objects a controller works on at once, at most.",
        &|state| state.concurrency as u64,
    );
    gauge(
        "controller_runtime_active_workers",
        "gauge",
        "How many objects a controller works on.",
        &|state| state.working,
    );
    gauge(
        "controller_runtime_reconcile_errors_total",
        "counter",
        "Reconciliations that failed.",
        &|state| state.results.get(Ended::Error.as_str()).copied().unwrap_or_default(),
    );
    gauge(
        "controller_runtime_reconcile_panics_total",
        "counter",
        "Reconciliations that panicked.",
        &|state| state.panics,
    );
    gauge(
        "workqueue_depth",
        "gauge",
        "How many objects wait for a controller.",
        &|state| state.depth.as_ref().map_or(0, |depth| depth() as u64),
    );
    let name = "controller_runtime_reconcile_total";
    text.family(name, "counter", "Reconciliations by how they ended.");
    for (controller, counts) in controllers {
        for ended in [Ended::Error, Ended::RequeueAfter, Ended::Success] {
            let labels = format!("controller=\"{controller}\",result=\"{}\"", ended.as_str());
            let number = counts.state.lock().results.get(ended.as_str()).copied();
            text.sample(name, &labels, number.unwrap_or_default());
        }
    }
    let name = "controller_runtime_reconcile_time_seconds";
    text.family(name, "histogram", "How long reconciliations took, in seconds.");
    for (controller, counts) in controllers {
        let labels = format!("controller=\"{controller}\"");
        text.durations(name, &labels, &STEPS, &counts.state.lock().durations);
    }
}
