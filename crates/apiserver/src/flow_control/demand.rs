//! How many seats a level could use, over time: what it lends to others and borrows from them follows from that.

use std::time::Duration;

use tokio::time::Instant;

/// How much of what was counts in each period; half of it is forgotten in five minutes.
const KEPT: f64 = 0.977;

/// The seats that requests take or wait for, since the last period ended.
#[derive(Debug)]
pub(super) struct Demand {
    seats: usize,
    since: Instant,
    /// The largest of the period.
    most: usize,
    /// Seconds of the period, and integrals over them.
    seconds: f64,
    sum: f64,
    squares: f64,
}

/// A period, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Period {
    pub(super) average: f64,
    pub(super) deviation: f64,
    pub(super) most: usize,
}

impl Demand {
    /// None, from now on.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            seats: 0,
            since: now,
            most: 0,
            seconds: 0.0,
            sum: 0.0,
            squares: 0.0,
        }
    }

    /// Takes in how many seats it are from now on.
    pub(super) fn set(&mut self, seats: usize, now: Instant) {
        self.pass(now);
        self.seats = seats;
        self.most = self.most.max(seats);
    }

    /// How many seats it are.
    pub(super) fn seats(&self) -> usize {
        self.seats
    }

    fn pass(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since).as_secs_f64();
        let seats = self.seats as f64;
        self.since = self.since.max(now);
        self.seconds += passed;
        self.sum += seats * passed;
        self.squares += seats * seats * passed;
    }

    /// Ends the period; none, if no time has passed in it.
    pub(super) fn end(&mut self, now: Instant) -> (usize, Option<Period>) {
        self.pass(now);
        let most = self.most;
        let period = (self.seconds > 0.0).then(|| {
            let average = self.sum / self.seconds;
            let variance = self.squares / self.seconds - average * average;
            Period {
                average,
                deviation: variance.max(0.0).sqrt(),
                most,
            }
        });
        *self = Self {
            seats: self.seats,
            ..Self::new(self.since)
        };
        self.most = self.seats;
        (most, period)
    }
}

/// What several periods tell of a level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    /// The last one.
    pub(super) last: Period,
    /// The demand that is reckoned with: it follows what rises at once, and what falls slowly.
    pub(super) smoothed: f64,
}

impl History {
    /// Takes in a period that ended.
    pub(super) fn add(&mut self, (most, period): (usize, Option<Period>)) {
        self.last.most = most;
        if let Some(period) = period {
            self.last = period;
            let envelope = period.average + period.deviation;
            self.smoothed = envelope.max(KEPT * self.smoothed + (1.0 - KEPT) * envelope);
        }
    }

    /// Takes in so many more periods, in which nothing changed.
    pub(super) fn add_still(&mut self, demand: &mut Demand, periods: u64, now: Instant) {
        let (most, period) = demand.end(now);
        self.add((most, period));
        let level = most as f64;
        let others = i32::try_from(periods.saturating_sub(1)).unwrap_or(i32::MAX);
        self.smoothed = level.max(level + KEPT.powi(others) * (self.smoothed - level));
    }
}

/// How long a period is.
pub(super) const PERIOD: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, seconds: f64) -> Instant {
        start + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn periods_are_weighted_by_time() {
        let start = Instant::now();
        let mut demand = Demand::new(start);
        demand.set(4, at(start, 5.0));
        demand.set(0, at(start, 10.0));
        let (most, period) = demand.end(at(start, 10.0));
        let expected = Period {
            average: 2.0,
            deviation: 2.0,
            most: 4,
        };
        assert_eq!((most, period), (4, Some(expected)));
        // the next one begins with what there is
        assert_eq!(demand.end(at(start, 10.0)), (0, None));
        demand.set(3, at(start, 15.0));
        let (most, period) = demand.end(at(start, 20.0));
        assert_eq!((most, period.unwrap().average), (3, 1.5));
    }

    #[test]
    fn demand_rises_at_once_and_falls_slowly() {
        let mut history = History::default();
        let period = |average: f64| Period {
            average,
            deviation: 0.0,
            most: 9,
        };
        history.add((9, Some(period(8.0))));
        assert_eq!(history.smoothed, 8.0);
        for _ in 0..30 {
            history.add((0, Some(period(0.0))));
        }
        assert!((3.9..4.1).contains(&history.smoothed), "{}", history.smoothed);
        // a period without time tells only of its beginning
        history.add((5, None));
        assert_eq!(history.last.most, 5);
    }

    #[test]
    fn still_periods_are_taken_in_at_once() {
        let start = Instant::now();
        let make = || {
            let mut demand = Demand::new(start);
            demand.set(2, start);
            let history = History {
                smoothed: 10.0,
                ..History::default()
            };
            (demand, history)
        };
        let (mut demand, mut one_by_one) = make();
        for period in 1..=7 {
            one_by_one.add(demand.end(start + PERIOD * period));
        }
        let (mut demand, mut at_once) = make();
        at_once.add_still(&mut demand, 7, start + PERIOD * 7);
        assert!((one_by_one.smoothed - at_once.smoothed).abs() < 1e-9);
        assert_eq!(one_by_one.last, at_once.last);
    }
}
