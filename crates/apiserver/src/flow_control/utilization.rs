//! For how long a level was used how much, in relation to what it may be: as a histogram in which each nanosecond counts.

use gardener_apimachinery::metrics::Text;
use tokio::time::Instant;

/// A ratio over time, counted in `N` steps.
#[derive(Debug)]
pub(super) struct Utilization<const N: usize> {
    numerator: f64,
    denominator: f64,
    since: Instant,
    all: u64,
    sum: f64,
    /// Nanoseconds within a step and not within the one before it.
    within: [u64; N],
}

impl<const N: usize> Utilization<N> {
    /// Nothing is used, from now on.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            numerator: 0.0,
            denominator: 1.0,
            since: now,
            all: 0,
            sum: 0.0,
            within: [0; N],
        }
    }

    /// Takes in how much is used from now on.
    pub(super) fn set(&mut self, steps: &[f64; N], numerator: usize, now: Instant) {
        self.pass(steps, now);
        self.numerator = numerator as f64;
    }

    /// Takes in how much there is from now on.
    pub(super) fn of(&mut self, steps: &[f64; N], denominator: usize, now: Instant) {
        self.pass(steps, now);
        self.denominator = denominator.max(1) as f64;
    }

    fn pass(&mut self, steps: &[f64; N], now: Instant) {
        let passed = now.saturating_duration_since(self.since).as_nanos();
        let Some(passed) = u64::try_from(passed).ok().filter(|passed| *passed > 0) else {
            return;
        };
        self.since = now;
        let ratio = self.numerator / self.denominator;
        self.all += passed;
        self.sum += ratio * passed as f64;
        let step = steps.iter().position(|step| ratio <= *step);
        if let Some(within) = step.and_then(|step| self.within.get_mut(step)) {
            *within += passed;
        }
    }

    /// Writes it as a histogram.
    pub(super) fn tell(&mut self, out: &mut Text, name: &str, labels: &str, steps: &[f64; N], now: Instant) {
        self.pass(steps, now);
        let counted = steps.iter().copied().zip(self.within);
        out.histogram(name, labels, counted, self.sum, self.all);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_nanosecond_counts() {
        let (start, steps) = (Instant::now(), [0.0, 0.5, 1.0]);
        let at = |nanos: u64| start + Duration::from_nanos(nanos);
        let mut own = Utilization::new(start);
        own.of(&steps, 4, start);
        own.set(&steps, 1, at(10));
        own.set(&steps, 8, at(15));
        let mut out = Text::default();
        own.tell(&mut out, "u", "", &steps, at(17));
        let expected = [
            "u_bucket{le=\"0\"} 10",
            "u_bucket{le=\"0.5\"} 15",
            "u_bucket{le=\"1\"} 15",
            "u_bucket{le=\"+Inf\"} 17",
            "u_sum 5.25",
            "u_count 17",
        ];
        assert_eq!(out.into_text().lines().collect::<Vec<_>>(), expected);
    }
}
