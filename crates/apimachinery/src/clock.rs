//! The one source of wall-clock time. It follows tokio's time, so that a paused runtime moves it too.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Wall-clock time that advances with tokio's clock. Cheap to clone; clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    origin: Arc<(Timestamp, Instant)>,
}

impl Clock {
    /// A clock that shows the machine's time now and runs with tokio's time from here on.
    #[allow(clippy::disallowed_methods)] // the one place where the machine's time enters
    pub fn system() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// A clock that shows `start` now. Must be called inside a tokio runtime when time is paused.
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            origin: Arc::new((start, Instant::now())),
        }
    }

    /// The time now, with nanoseconds.
    pub fn now(&self) -> Timestamp {
        let (start, instant) = *self.origin;
        let elapsed = SignedDuration::try_from(instant.elapsed()).unwrap_or(SignedDuration::MAX);
        start.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// The time now as `metav1.Time`, whole seconds.
    pub fn time(&self) -> Time {
        Time(truncate(self.now(), 1_000_000_000))
    }

    /// The time now as `metav1.MicroTime`, whole microseconds.
    pub fn micro_time(&self) -> MicroTime {
        MicroTime(truncate(self.now(), 1_000))
    }
}

fn truncate(time: Timestamp, unit: i128) -> Timestamp {
    let nanos = time.as_nanosecond();
    Timestamp::from_nanosecond(nanos - nanos.rem_euclid(unit)).unwrap_or(time)
}
