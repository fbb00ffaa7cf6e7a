//! After how many seconds who is refused is to come again: the more are refused, the later.

use std::collections::VecDeque;

/// The longest that anybody is sent away for, in seconds.
const LONGEST: i64 = 32;
/// How many refusals in each second are too many.
const TOO_MANY: u64 = 3;

/// Refusals of a level.
#[derive(Debug)]
pub(super) struct Refusals {
    /// How many there were in each of the last seconds, but for the newest one.
    before: VecDeque<(i64, u64)>,
    /// How many there are in the second of the newest one.
    newest: (i64, u64),
    /// What was answered last.
    after: i64,
    /// When that was made longer.
    lengthened: i64,
}

impl Default for Refusals {
    fn default() -> Self {
        Self {
            before: VecDeque::new(),
            newest: (0, 0),
            after: 1,
            lengthened: 0,
        }
    }
}

impl Refusals {
    /// Counts a refusal in this second of Unix's time, and tells after how many more it may be tried again.
    pub(super) fn add(&mut self, second: i64) -> u64 {
        if self.newest.0 == second {
            self.newest.1 += 1;
        } else {
            let ended = std::mem::replace(&mut self.newest, (second, 1));
            self.before.push_back(ended);
            let oldest = ended.0 - LONGEST.min(2 * self.after);
            self.before.retain(|(at, _)| *at >= oldest);
            self.adapt(second);
        }
        u64::try_from(self.after).unwrap_or(1)
    }

    /// Looks at as many seconds as refused requests were sent away for: doubles these where too many came, and takes one off where hardly any did.
    fn adapt(&mut self, second: i64) {
        let recent = second - self.after..second;
        let refused = self.before.iter().filter(|(at, _)| recent.contains(at));
        let refused: u64 = refused.map(|(_, number)| number).sum();
        let after = u64::try_from(self.after).unwrap_or(1);
        if second - self.lengthened >= self.after && refused >= TOO_MANY * after {
            self.after = LONGEST.min(self.after * 2);
            self.lengthened = second;
        } else if refused < after && self.after > 1 {
            self.after -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_too_often_is_sent_away_for_longer() {
        let mut refusals = Refusals::default();
        let mut last = |second: i64, number: usize| (0..number).map(|_| refusals.add(second)).last();
        // a second is judged when it is over
        assert_eq!(last(100, 8), Some(1));
        assert_eq!(last(101, 1), Some(2));
        // not again before those have passed
        assert_eq!(last(102, 9), Some(2));
        assert_eq!(last(103, 9), Some(4));
        assert_eq!(last(110, 1), Some(3));
        assert_eq!(last(120, 1), Some(2));
        assert_eq!(last(130, 1), Some(1));
        assert_eq!(last(140, 1), Some(1));
    }

    #[test]
    fn nobody_is_sent_away_for_ever() {
        let mut refusals = Refusals::default();
        let last = (0..500).map(|tick| (0..200).map(|_| refusals.add(tick)).last()).last();
        assert_eq!(last, Some(Some(32)));
        assert!(refusals.before.len() <= 34);
    }
}
