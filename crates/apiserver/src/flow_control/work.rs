//! Work: seats that are taken for some time.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// How long a request is taken to last before it is known how long it did.
pub(super) const GUESS: Duration = Duration::from_millis(3);

/// Seats times seconds, in hundred millionths. Wide enough that no server lives to see it overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeatSeconds(i128);

/// How many nanoseconds of one seat are one unit.
const UNIT: i128 = 10;
const UNITS_IN_SECOND: i128 = 100_000_000;

impl SeatSeconds {
    /// More than any other.
    pub(super) const MOST: Self = Self(i128::MAX);

    /// So many seats for so long.
    pub(super) fn of(seats: usize, time: Duration) -> Self {
        Self((seats as i128 * time.as_nanos() as i128 + UNIT / 2) / UNIT)
    }

    /// A number of seats that need not be whole, for so long.
    pub(super) fn at_rate(seats: f64, time: Duration) -> Self {
        Self((seats * time.as_nanos() as f64 / UNIT as f64).round() as i128)
    }

    /// How long so many seats are taken for this work.
    pub(super) fn time_of(self, seats: usize) -> Duration {
        let nanos = self.0.saturating_mul(UNIT) / seats.max(1) as i128;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
    }

    /// In seconds of one seat.
    pub(super) fn as_f64(self) -> f64 {
        self.0 as f64 / UNITS_IN_SECOND as f64
    }
}

impl Add for SeatSeconds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for SeatSeconds {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for SeatSeconds {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for SeatSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, rest) = (self.0 / UNITS_IN_SECOND, self.0 % UNITS_IN_SECOND);
        write!(f, "{seconds}.{:08}ss", rest.abs())
    }
}

/// How much work a request is taken to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Estimate {
    /// Seats that it takes while it is served.
    pub(super) initial: usize,
    /// Seats that are taken for what it causes after that.
    pub(super) last: usize,
    /// For how long.
    pub(super) lingers: Duration,
}

impl Estimate {
    /// A request that takes so many seats, and causes nothing.
    pub(super) fn of(initial: usize) -> Self {
        Self {
            initial,
            last: 0,
            lingers: Duration::ZERO,
        }
    }

    /// How many seats are kept for it from the beginning to the end.
    pub(super) fn seats(&self) -> usize {
        self.initial.max(self.last)
    }

    /// The work that comes after it is served.
    fn last_work(&self) -> SeatSeconds {
        SeatSeconds::of(self.last, self.lingers)
    }

    /// All of its work.
    pub(super) fn work(&self) -> SeatSeconds {
        SeatSeconds::of(self.initial, GUESS) + self.last_work()
    }

    /// The same work, with no more than `most` seats at its end.
    pub(super) fn within(mut self, most: usize) -> Self {
        if self.last > most && most > 0 {
            self.lingers = self.last_work().time_of(most);
            self.last = most;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_told_with_eight_digits() {
        assert_eq!(SeatSeconds::of(1, GUESS).to_string(), "0.00300000ss");
        assert_eq!(
            SeatSeconds::of(3, Duration::from_millis(4500)).to_string(),
            "13.50000000ss"
        );
        assert_eq!(SeatSeconds::default().to_string(), "0.00000000ss");
        assert_eq!(SeatSeconds::at_rate(2.5, Duration::from_secs(2)).as_f64(), 5.0);
    }

    #[test]
    fn fewer_seats_are_taken_for_longer() {
        let wide = Estimate {
            initial: 1,
            last: 8,
            lingers: Duration::from_millis(5),
        };
        let narrow = wide.within(2);
        assert_eq!((narrow.seats(), narrow.lingers), (2, Duration::from_millis(20)));
        assert_eq!(narrow.work(), wide.work());
        assert_eq!(wide.within(8), wide);
    }
}
