//! Prometheus' text form of metrics. What is counted is known to who counts.

pub mod process;

use std::fmt::{Display, Write as _};
use std::time::Duration;

/// The content type of what [`Text`] makes.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Durations as they are counted in `N` steps.
#[derive(Clone, Debug)]
pub struct Durations<const N: usize> {
    all: u64,
    /// In seconds.
    sum: f64,
    /// How many ended within a step and not within the one before it.
    within: [u64; N],
}

impl<const N: usize> Default for Durations<N> {
    fn default() -> Self {
        Self {
            all: 0,
            sum: 0.0,
            within: [0; N],
        }
    }
}

impl<const N: usize> Durations<N> {
    /// How many there were.
    pub fn number(&self) -> u64 {
        self.all
    }

    /// Counts one more, by the upper bounds of the steps in seconds.
    pub fn add(&mut self, steps: &[f64; N], taken: Duration) {
        self.add_value(steps, taken.as_secs_f64());
    }

    /// As [`Durations::add`], for what is no duration but counted in the same way.
    pub fn add_value(&mut self, steps: &[f64; N], value: f64) {
        self.all += 1;
        self.sum += value;
        let step = steps.iter().position(|step| value <= *step);
        if let Some(number) = step.and_then(|step| self.within.get_mut(step)) {
            *number += 1;
        }
    }
}

/// Families of metrics, one after the other. Writing into a text cannot fail.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// Begins a family; `kind` is `counter`, `gauge` or `histogram`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// One value of the family; labels are `a="b",c="d"`.
    pub fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = match labels.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    /// A histogram: the upper bound of each step with how many lie within it and not within the one before, and the sum and number of all.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: &str,
        steps: impl IntoIterator<Item = (f64, u64)>,
        sum: f64,
        all: u64,
    ) {
        let within = match labels.is_empty() {
            true => String::new(),
            false => format!("{labels},"),
        };
        let mut so_far = 0u64;
        for (step, number) in steps {
            so_far += number;
            self.sample(&format!("{name}_bucket"), &format!("{within}le=\"{step}\""), so_far);
        }
        self.sample(&format!("{name}_bucket"), &format!("{within}le=\"+Inf\""), all);
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, all);
    }

    /// Durations as a histogram with these steps.
    pub fn durations<const N: usize>(&mut self, name: &str, labels: &str, steps: &[f64; N], own: &Durations<N>) {
        let counted = steps.iter().copied().zip(own.within);
        self.histogram(name, labels, counted, own.sum, own.all);
    }

    /// What was written into another one.
    pub fn append(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    /// What was written.
    pub fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_with_all_before_them() {
        let mut text = Text::default();
        text.family("a", "histogram", "Help.");
        text.histogram("a", "b=\"c\"", [(0.5, 2), (1.0, 1)], 2.5, 4);
        let expected = [
            "# HELP a Help.",
            "# TYPE a histogram",
            "a_bucket{b=\"c\",le=\"0.5\"} 2",
            "a_bucket{b=\"c\",le=\"1\"} 3",
            "a_bucket{b=\"c\",le=\"+Inf\"} 4",
            "a_sum{b=\"c\"} 2.5",
            "a_count{b=\"c\"} 4",
        ];
        assert_eq!(text.into_text().lines().collect::<Vec<_>>(), expected);
    }
}
