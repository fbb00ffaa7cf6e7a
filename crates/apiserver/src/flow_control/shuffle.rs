//! Shuffle sharding: which few of a level's many queues a flow may use. Two flows that share one queue hardly ever share them all, so that one that
//! fills its queues leaves others some.

use ring::digest::{SHA256, digest};

/// The largest hand that there is.
pub(super) const LARGEST_HAND: usize = 15;
/// How many bits of a flow's number may decide.
const BITS: f64 = 60.0;

/// Queues of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hand {
    queues: [usize; LARGEST_HAND],
    size: usize,
}

impl Hand {
    /// The queues of the flow with a number, of so many queues. The cards of a deck are dealt, each one to be had once.
    pub(super) fn deal(mut flow: u64, queues: usize, size: usize) -> Self {
        let size = size.min(queues).min(LARGEST_HAND);
        let mut hand = Self::default();
        for dealt in 0..size {
            let left = (queues - dealt) as u64;
            // the place among those that are left
            let mut card = (flow % left) as usize;
            flow /= left;
            // those that are gone, the lowest first, push it on
            let mut gone = hand.queues;
            let gone = gone.get_mut(..dealt).unwrap_or_default();
            gone.sort_unstable();
            for other in gone {
                card += usize::from(card >= *other);
            }
            if let Some(place) = hand.queues.get_mut(dealt) {
                *place = card;
            }
            hand.size += 1;
        }
        hand
    }

    /// The queues, beginning with another one each `turn`.
    pub(super) fn from(&self, turn: usize) -> impl Iterator<Item = usize> {
        let size = self.size;
        (0..size).filter_map(move |step| self.queues.get((turn % size + step) % size).copied())
    }
}

/// Whether hands of this size can be dealt of so many queues.
pub(super) fn can_deal(queues: usize, size: usize) -> bool {
    size > 0 && size <= queues && queues <= 1 << 26 && ((queues as f64).log2() * size as f64).ceil() <= BITS
}

/// The number of a flow: of what distinguishes it within its FlowSchema.
pub(super) fn number(schema: &str, distinguisher: &str) -> u64 {
    let mut text = Vec::with_capacity(schema.len() + 1 + distinguisher.len());
    text.extend_from_slice(schema.as_bytes());
    text.push(0);
    text.extend_from_slice(distinguisher.as_bytes());
    let hash = digest(&SHA256, &text);
    let first = hash.as_ref().first_chunk::<8>();
    first.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hands_hold_different_queues(flow: u64, queues in 1usize..200, size in 1usize..9) {
            let hand = Hand::deal(flow, queues, size);
            let held: BTreeSet<usize> = hand.from(0).collect();
            prop_assert_eq!(held.len(), size.min(queues));
            prop_assert!(held.iter().all(|queue| *queue < queues));
            let turned: BTreeSet<usize> = hand.from(5).collect();
            prop_assert_eq!(held, turned);
        }
    }

    #[test]
    fn cards_are_dealt_as_upstream_deals_them() {
        // 5 of 8: place 5; 21 of 7: place 0; 3 of 6: place 3
        let flow = 5 + 8 * (7 * 3);
        assert_eq!(Hand::deal(flow, 8, 3).from(0).collect::<Vec<_>>(), [5, 0, 4]);
        assert_eq!(Hand::deal(u64::MAX, 1, 1).from(7).collect::<Vec<_>>(), [0]);
        assert_eq!(Hand::deal(3, 0, 0).from(7).count(), 0);
    }

    #[test]
    fn only_so_much_of_a_number_decides() {
        assert!(can_deal(64, 8) && can_deal(1, 1) && can_deal(128, 8));
        assert!(!can_deal(64, 11) && !can_deal(2, 3) && !can_deal(0, 0) && !can_deal(4, 0));
    }
}
