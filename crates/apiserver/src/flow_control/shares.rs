//! How a server's seats are divided among its levels of priority: by their shares, and anew by what they could use of what others lend.

/// What the configuration of a level says of its seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Its part, in relation to those of others.
    pub(super) shares: u32,
    /// How much of that others may have, in percent.
    pub(super) lendable: u32,
    /// How much of others' it may have, in percent of its own; none, for as much as there is.
    pub(super) borrowing: Option<u32>,
}

/// The seats of a level, as its configuration bounds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    /// What its shares give.
    pub(super) nominal: usize,
    /// What others cannot have of that.
    pub(super) lower: usize,
    /// That with all it may borrow.
    pub(super) upper: usize,
}

impl Share {
    /// The seats of a level, of a server's `total`, where all shares sum up to `of`. They are rounded up, so that levels may have some more together.
    pub(super) fn bounds(&self, total: usize, of: u64) -> Bounds {
        let parts = total as u64 * u64::from(self.shares);
        let nominal = usize::try_from(parts.checked_div(of).map_or(0, |_| parts.div_ceil(of))).unwrap_or(total);
        let percent = |percent: u32| (nominal as f64 * f64::from(percent) / 100.0).round() as usize;
        Bounds {
            nominal,
            lower: nominal.saturating_sub(percent(self.lendable)),
            upper: nominal.saturating_add(self.borrowing.map_or(total, percent)),
        }
    }
}

/// A level that is given seats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// At least so many.
    pub(super) lower: f64,
    /// At most so many.
    pub(super) upper: f64,
    /// So many it could use.
    pub(super) target: f64,
}

/// The least that counts as a target.
const LEAST_TARGET: f64 = 0.001;

impl Claim {
    fn target(&self) -> f64 {
        self.target.max(LEAST_TARGET)
    }

    /// What it gets when all get so much of their targets.
    fn at(&self, fraction: f64) -> f64 {
        (fraction * self.target()).clamp(self.lower, self.upper)
    }
}

/// Divides `total` seats, so that all get the same fraction of what they could use, within their bounds; tells the fraction, too. None, where bounds
/// do not admit it.
pub(super) fn divide(total: usize, claims: &[Claim]) -> Option<(Vec<f64>, f64)> {
    let wanted = total as f64;
    if claims.iter().any(|claim| claim.lower > claim.upper) {
        return None;
    }
    let given = |fraction: f64| -> f64 { claims.iter().map(|claim| claim.at(fraction)).sum() };
    // between two places where a bound begins or ceases to count, what is given grows evenly
    let bounds = claims
        .iter()
        .flat_map(|claim| [claim.lower / claim.target(), claim.upper / claim.target()]);
    let mut places: Vec<f64> = bounds.collect();
    places.sort_by(f64::total_cmp);
    let (first, last) = (*places.first()?, *places.last()?);
    let (least, most) = (given(first), given(last));
    const ROUNDING: f64 = 1e-7;
    if least - wanted > ROUNDING || wanted - most > ROUNDING {
        return None;
    }
    let mut before = (first, least);
    for place in places {
        let here = (place, given(place));
        if here.1 >= wanted {
            let grown = here.1 - before.1;
            let part = if grown > 0.0 { (wanted - before.1) / grown } else { 0.0 };
            before.0 += part * (here.0 - before.0);
            break;
        }
        before = here;
    }
    let fraction = before.0;
    Some((claims.iter().map(|claim| claim.at(fraction)).collect(), fraction))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_give_seats() {
        let share = |shares, lendable, borrowing| Share {
            shares,
            lendable,
            borrowing,
        };
        let bounds = |nominal, lower, upper| Bounds { nominal, lower, upper };
        // the levels of a fresh cluster
        for (own, expected) in [
            (share(100, 90, None), bounds(245, 24, 845)),
            (share(30, 33, None), bounds(74, 50, 674)),
            (share(40, 25, Some(50)), bounds(98, 73, 147)),
            (share(5, 0, Some(0)), bounds(13, 13, 13)),
            (share(0, 0, None), bounds(0, 0, 600)),
        ] {
            assert_eq!(own.bounds(600, 245), expected, "{own:?}");
        }
        assert_eq!(share(0, 0, Some(0)).bounds(600, 0), bounds(0, 0, 0));
    }

    fn claim(lower: f64, upper: f64, target: f64) -> Claim {
        Claim { lower, upper, target }
    }

    #[test]
    fn all_get_the_same_fraction_within_their_bounds() {
        for (total, claims, expected, fraction) in [
            (
                30,
                vec![claim(0.0, 99.0, 10.0), claim(0.0, 99.0, 5.0)],
                vec![20.0, 10.0],
                2.0,
            ),
            (
                30,
                vec![claim(0.0, 12.0, 10.0), claim(0.0, 99.0, 5.0)],
                vec![12.0, 18.0],
                3.6,
            ),
            (
                10,
                vec![claim(8.0, 12.0, 10.0), claim(0.0, 99.0, 10.0)],
                vec![8.0, 2.0],
                0.2,
            ),
            (8, vec![claim(3.0, 9.0, 6.0), claim(5.0, 9.0, 5.0)], vec![3.0, 5.0], 0.5),
            (0, vec![claim(0.0, 9.0, 6.0)], vec![0.0], 0.0),
        ] {
            let (given, found) = divide(total, &claims).unwrap();
            for (given, expected) in given.iter().zip(&expected) {
                assert!((given - expected).abs() < 1e-6, "{given} for {expected}");
            }
            assert!((found - fraction).abs() < 1e-6, "{found} for {fraction}");
        }
        assert!(divide(10, &[claim(11.0, 12.0, 11.0)]).is_none());
        assert!(divide(10, &[claim(1.0, 9.0, 5.0)]).is_none());
        assert!(divide(10, &[claim(5.0, 4.0, 5.0)]).is_none());
        assert!(divide(1, &[]).is_none());
    }

    proptest! {
        #[test]
        fn what_is_divided_is_all(raw in prop::collection::vec((0u32..50, 0u32..50, 0u32..50), 1..8), part in 0.0f64..1.0) {
            let claims: Vec<Claim> = raw
                .into_iter()
                .map(|(lower, more, target)| {
                    let lower = f64::from(lower);
                    claim(lower, lower + f64::from(more), lower.max(f64::from(target)))
                })
                .collect();
            let least: f64 = claims.iter().map(|claim| claim.lower).sum();
            let most: f64 = claims.iter().map(|claim| claim.upper).sum();
            let total = (least + part * (most - least)).floor() as usize;
            let (given, _) = divide(total, &claims).unwrap();
            prop_assert!((given.iter().sum::<f64>() - total as f64).abs() < 1e-6);
            for (given, claim) in given.iter().zip(&claims) {
                prop_assert!(claim.lower <= *given && *given <= claim.upper);
            }
        }
    }
}
