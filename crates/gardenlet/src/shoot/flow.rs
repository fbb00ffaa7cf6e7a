//! The flows: which steps there are, and which waits for which [CP-F1..71], [CP-35].

pub(crate) mod delete;
pub(crate) mod reconcile;

use std::time::Duration;

/// How often a step that failed is tried again [CP-23].
pub(crate) const INTERVAL: Duration = Duration::from_secs(5);
/// How long a step is tried unless it says otherwise [CP-23].
pub(crate) const DEFAULT: Duration = Duration::from_secs(30);

/// Adds a step of the botanist to a graph: name, what it waits for, when it is left out, how long it is tried; without `retry` it is tried
/// once, for it waits itself.
macro_rules! step {
    ($graph:ident, $botanist:ident, $name:expr, [$($after:expr),* $(,)?], skip: $skip:expr, $method:ident($($argument:expr),*)) => {
        $graph.add(
            gardener_flow::Task::new($name, move || $botanist.$method($($argument),*))
                .after(&[$($after),*])
                .skip_if($skip),
        )
    };
    ($graph:ident, $botanist:ident, $name:expr, [$($after:expr),* $(,)?], skip: $skip:expr, retry: $timeout:expr, $method:ident($($argument:expr),*)) => {
        $graph.add(
            gardener_flow::Task::new($name, move || $botanist.$method($($argument),*))
                .after(&[$($after),*])
                .skip_if($skip)
                .retry($crate::shoot::flow::INTERVAL, $timeout),
        )
    };
}
pub(crate) use step;
