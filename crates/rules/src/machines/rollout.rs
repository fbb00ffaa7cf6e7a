//! Rolling a machine deployment from old sets to a new one, and scaling it [MCH-46]–[MCH-56].

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;

/// What is known of a machine set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created: Timestamp,
    /// `spec.replicas`.
    pub spec: i32,
    /// `status.replicas`: machines there are, also those that go.
    pub actual: i32,
    /// `status.availableReplicas`.
    pub available: i32,
    /// The deployment's replicas when it was last visited.
    pub desired_mark: Option<i32>,
    /// The deployment's replicas with surge when it was last visited.
    pub max_mark: Option<i32>,
}

/// A new size for a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resize {
    /// Which set.
    pub name: String,
    /// Its size from here on.
    pub replicas: i32,
}

/// A bound that is neither number nor percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a number nor a percentage")]
pub struct BoundError(String);

fn bound(value: &IntOrString, replicas: i32, up: bool) -> Result<i32, BoundError> {
    match value {
        IntOrString::Int(number) => Ok(*number),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse::<i64>().ok());
            let percent = percent.ok_or_else(|| BoundError(text.clone()))?;
            let product = percent.saturating_mul(i64::from(replicas));
            let rounded = if up {
                product.saturating_add(99) / 100
            } else {
                product / 100
            };
            i32::try_from(rounded).map_err(|_| BoundError(text.clone()))
        }
    }
}

/// How many machines may be too many and how many may be missing during a rollout [MCH-48].
///
/// # Errors
/// [`BoundError`].
pub fn bounds(replicas: i32, surge: &IntOrString, unavailable: &IntOrString) -> Result<(i32, i32), BoundError> {
    let surge = bound(surge, replicas, true)?;
    let unavailable = bound(unavailable, replicas, false)?;
    let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
    Ok((surge, unavailable.min(replicas)))
}

/// The size of the new set: as many as surge leaves room for, counting machines there are, also those that go [MCH-52]. A set whose
/// machines are not made yet counts with what it is to have.
pub fn new_size(desired: i32, surge: i32, new: &Set, old: &[Set]) -> i32 {
    if new.spec >= desired {
        return desired;
    }
    let there: i32 = old.iter().chain([new]).map(|set| set.actual.max(set.spec)).sum();
    new.spec + (desired + surge - there).max(0).min(desired - new.spec)
}

/// Old sets that shrink: first by what is not available, then by what is not needed [MCH-53].
pub fn shrink_old(desired: i32, max_unavailable: i32, new: &Set, old: &[Set]) -> Vec<Resize> {
    let mut order: Vec<&Set> = old.iter().filter(|set| set.spec > 0).collect();
    order.sort_by_key(|set| (set.created, set.name.clone()));
    let minimum = desired - max_unavailable;
    let all: i32 = new.spec + old.iter().map(|set| set.spec).sum::<i32>();
    let mut budget = all - minimum - (new.spec - new.available);
    if budget <= 0 {
        return Vec::new();
    }
    let mut sizes: Vec<i32> = order.iter().map(|set| set.spec).collect();
    for (set, size) in order.iter().zip(&mut sizes) {
        let removed = (set.spec - set.available).max(0).min(budget);
        *size -= removed;
        budget -= removed;
    }
    let available: i32 = new.available + old.iter().map(|set| set.available).sum::<i32>();
    let mut spare = available - minimum;
    for size in &mut sizes {
        let removed = (*size).min(spare).max(0);
        *size -= removed;
        spare -= removed;
    }
    order
        .iter()
        .zip(sizes)
        .filter(|(set, size)| set.spec != *size)
        .map(|(set, replicas)| Resize {
            name: set.name.clone(),
            replicas,
        })
        .collect()
}

/// Whether the deployment was scaled since its sets were last visited [MCH-46].
pub fn is_scaling(desired: i32, new: Option<&Set>, old: &[Set]) -> bool {
    let mut active = new.into_iter().chain(old).filter(|set| set.spec > 0).peekable();
    if active.peek().is_none() {
        return desired > 0 && new.is_some();
    }
    active.any(|set| set.desired_mark.is_some_and(|mark| mark != desired))
}

/// New sizes when a deployment is scaled [MCH-56]. `rolling`: the strategy is a rolling update.
pub fn scale(desired: i32, surge: i32, new: Option<&Set>, old: &[Set], rolling: bool) -> Vec<Resize> {
    let resize = |set: &Set, replicas: i32| Resize {
        name: set.name.clone(),
        replicas,
    };
    let all: Vec<&Set> = old.iter().chain(new).collect();
    let active: Vec<&Set> = all.iter().copied().filter(|set| set.spec > 0).collect();
    if active.len() <= 1 {
        let newest = || new.or_else(|| all.iter().copied().max_by_key(|set| (set.created, set.name.clone())));
        let only = active.first().copied().or_else(newest);
        return only
            .filter(|set| set.spec != desired)
            .map(|set| resize(set, desired))
            .into_iter()
            .collect();
    }
    if let Some(new) = new
        && new.spec == desired
        && new.available == desired
        && new.desired_mark == Some(desired)
    {
        return active
            .iter()
            .filter(|set| set.name != new.name)
            .map(|set| resize(set, 0))
            .collect();
    }
    if !rolling {
        return Vec::new();
    }
    let allowed = if desired > 0 { desired + surge } else { 0 };
    let total: i32 = active.iter().map(|set| set.spec).sum();
    let delta = allowed - total;
    if delta >= 0 {
        return match new {
            Some(new) if delta > 0 => vec![resize(new, new.spec + delta)],
            _ => Vec::new(),
        };
    }
    let mut order = active;
    order.sort_by_key(|set| (std::cmp::Reverse(set.spec), set.created, set.name.clone()));
    let mut left = delta;
    let mut sizes: Vec<i32> = Vec::new();
    for set in &order {
        let base = i64::from(set.max_mark.filter(|mark| *mark > 0).unwrap_or(total));
        // half rounds up; sizes are not negative
        let share = (2 * i64::from(set.spec) * i64::from(allowed) + base) / (2 * base.max(1));
        let change = (i32::try_from(share).unwrap_or(i32::MAX) - set.spec).clamp(left, 0);
        left -= change;
        sizes.push(set.spec + change);
    }
    if let Some(first) = sizes.first_mut() {
        *first = (*first + left).max(0);
    }
    order
        .iter()
        .zip(sizes)
        .filter(|(set, size)| set.spec != *size)
        .map(|(set, size)| resize(set, size))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, spec: i32, actual: i32, available: i32) -> Set {
        Set {
            name: name.into(),
            spec,
            actual,
            available,
            created: Timestamp::from_second(i64::from(name.as_bytes()[0])).unwrap(),
            ..Set::default()
        }
    }

    fn sizes(resizes: &[Resize]) -> Vec<(&str, i32)> {
        resizes.iter().map(|one| (one.name.as_str(), one.replicas)).collect()
    }

    #[test]
    fn mch_c6_c7_bounds() {
        let percent = |text: &str| IntOrString::String(text.into());
        assert_eq!(bounds(3, &percent("0%"), &percent("10%")), Ok((0, 1)));
        assert_eq!(bounds(10, &percent("25%"), &percent("25%")), Ok((3, 2)));
        assert_eq!(bounds(0, &IntOrString::Int(1), &IntOrString::Int(1)), Ok((1, 0)));
        assert_eq!(bounds(3, &IntOrString::Int(1), &IntOrString::Int(7)), Ok((1, 3)));
        assert!(bounds(3, &percent("many"), &IntOrString::Int(0)).is_err());
    }

    /// One machine at a time comes and goes, as the controllers would make it.
    #[test]
    fn mch_c4_rolling_with_surge() {
        let (desired, surge, unavailable) = (3, 1, 0);
        let (mut new, mut old) = (set("n", 0, 0, 0), set("a", 3, 3, 3));
        let mut steps = Vec::new();
        for _ in 0..50 {
            let size = new_size(desired, surge, &new, std::slice::from_ref(&old));
            if size != new.spec {
                new.spec = size;
            } else if let Some(one) = shrink_old(desired, unavailable, &new, std::slice::from_ref(&old)).first() {
                old.spec = one.replicas;
            } else if new.actual < new.spec {
                new.actual += 1;
            } else if new.available < new.actual {
                new.available += 1;
            } else if old.actual > old.spec {
                old.actual -= 1;
            }
            old.available = old.available.min(old.spec);
            if steps.last() != Some(&(new.spec, old.spec)) {
                steps.push((new.spec, old.spec));
            }
            assert!(new.available + old.available >= 3, "{steps:?}");
            assert!(new.actual + old.actual <= 4, "{steps:?}");
        }
        assert_eq!(steps, [(1, 3), (1, 2), (2, 2), (2, 1), (3, 1), (3, 0)]);
    }

    #[test]
    fn mch_c5_without_surge_the_old_go_first() {
        assert_eq!(new_size(4, 0, &set("n", 0, 0, 0), &[set("a", 2, 4, 2)]), 0);
        assert_eq!(
            sizes(&shrink_old(4, 2, &set("n", 0, 0, 0), &[set("a", 4, 4, 4)])),
            [("a", 2)]
        );
        assert_eq!(new_size(4, 0, &set("n", 0, 0, 0), &[set("a", 2, 2, 2)]), 2);
        assert_eq!(sizes(&shrink_old(4, 2, &set("n", 2, 2, 0), &[set("a", 2, 2, 2)])), []);
        assert_eq!(
            sizes(&shrink_old(4, 2, &set("n", 2, 2, 2), &[set("a", 2, 2, 2)])),
            [("a", 0)]
        );
    }

    #[test]
    fn mch_c8_what_is_unhealthy_goes_first() {
        assert_eq!(
            sizes(&shrink_old(5, 1, &set("n", 1, 0, 0), &[set("a", 5, 5, 3)])),
            [("a", 4)]
        );
    }

    #[test]
    fn mch_c9_c10_scaling_in_the_middle_of_a_rollout() {
        let marked = |name: &str, spec: i32, max: i32| Set {
            max_mark: Some(max),
            desired_mark: Some(max - 1),
            ..set(name, spec, spec, spec)
        };
        let (old, new) = (marked("a", 3, 6), marked("n", 3, 6));
        assert!(is_scaling(2, Some(&new), std::slice::from_ref(&old)));
        assert_eq!(sizes(&scale(2, 1, Some(&new), &[old], true)), [("a", 1), ("n", 2)]);
        let (old, new) = (marked("a", 2, 4), marked("n", 2, 4));
        assert_eq!(sizes(&scale(6, 1, Some(&new), &[old], true)), [("n", 5)]);
    }

    #[test]
    fn mch_56_one_set_follows_the_deployment() {
        let new = set("n", 2, 2, 2);
        assert_eq!(sizes(&scale(5, 1, Some(&new), &[], true)), [("n", 5)]);
        assert_eq!(sizes(&scale(0, 1, Some(&new), &[set("a", 0, 0, 0)], true)), [("n", 0)]);
        let saturated = Set {
            desired_mark: Some(2),
            ..new
        };
        assert_eq!(
            sizes(&scale(2, 1, Some(&saturated), &[set("a", 1, 1, 1)], true)),
            [("a", 0)]
        );
    }
}
