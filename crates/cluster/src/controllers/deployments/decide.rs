//! Which ReplicaSets a Deployment creates, scales and deletes next.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::replica_sets::{
    self as sets_of, available, create, current, desired, has_template_of, new_annotations, revision,
    scale_annotations, wanted,
};
use crate::pods;

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// A new set.
    Create(Box<ReplicaSet>),
    /// A set gets this many replicas and these annotations besides its own.
    Update {
        name: String,
        replicas: i32,
        annotations: BTreeMap<String, String>,
    },
    /// The Deployment gets this revision.
    SetRevision(i64),
    /// A set of an old revision goes.
    Delete(String),
}

/// How many replicas a Deployment wants.
pub(super) fn replicas(deployment: &Deployment) -> i32 {
    deployment.spec.replicas.unwrap_or(1)
}

fn is_recreate(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.strategy.as_ref();
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}

/// A count or a percentage of `total`.
pub(crate) fn scaled(value: Option<&IntOrString>, total: i32, up: bool, default: i32) -> i32 {
    match value {
        Some(IntOrString::Int(count)) => *count,
        Some(IntOrString::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let product = i64::from(total) * percent;
            let result = if up {
                (product + 99).div_euclid(100)
            } else {
                product.div_euclid(100)
            };
            i32::try_from(result).unwrap_or(i32::MAX)
        }
        None => default,
    }
}

/// How many replicas may be there beyond the wanted ones, and how many may be missing.
pub(super) fn bounds(deployment: &Deployment) -> (i32, i32) {
    if is_recreate(deployment) {
        return (0, 0);
    }
    let strategy = deployment.spec.strategy.as_ref();
    let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let total = replicas(deployment);
    let surge = scaled(rolling.and_then(|rolling| rolling.max_surge.as_ref()), total, true, 1);
    let unavailable = scaled(
        rolling.and_then(|rolling| rolling.max_unavailable.as_ref()),
        total,
        false,
        0,
    );
    // both rounded to nothing would stop the update
    if surge == 0 && unavailable == 0 {
        (0, 1)
    } else {
        (surge, unavailable.min(total))
    }
}

/// The sets by age; the one with the Deployment's template apart.
pub(super) fn split<'a>(
    deployment: &Deployment,
    sets: &'a [ReplicaSet],
) -> (Option<&'a ReplicaSet>, Vec<&'a ReplicaSet>) {
    let mut sorted: Vec<&ReplicaSet> = sets.iter().collect();
    sorted.sort_by_key(|set| (pods::created_at(&set.metadata), set.name_any()));
    let new = sorted.iter().copied().find(|set| has_template_of(set, deployment));
    sorted.retain(|set| new.is_none_or(|new| new.name_any() != set.name_any()));
    (new, sorted)
}

struct Plan<'a> {
    deployment: &'a Deployment,
    surge: i32,
    unavailable: i32,
    steps: Vec<Step>,
}

impl Plan<'_> {
    fn scale(&mut self, set: &ReplicaSet, to: i32) {
        let annotations = scale_annotations(replicas(self.deployment), self.surge);
        let told = annotations
            .iter()
            .all(|(key, value)| set.annotations().get(key) == Some(value));
        if wanted(set) != to || (!told && to > 0) {
            self.steps.push(Step::Update {
                name: set.name_any(),
                replicas: to,
                annotations,
            });
        }
    }
}

/// What is to be written, in order. `pods_left` tells whether sets still have pods that have not ended.
pub(super) fn decide(
    deployment: &Deployment,
    sets: &[ReplicaSet],
    pods_left: &dyn Fn(&[&ReplicaSet]) -> bool,
) -> Vec<Step> {
    let (surge, unavailable) = bounds(deployment);
    let mut plan = Plan {
        deployment,
        surge,
        unavailable,
        steps: Vec::new(),
    };
    let (new, old) = split(deployment, sets);
    let spec = &deployment.spec;
    let paused = spec.paused.unwrap_or(false);
    let total = replicas(deployment);
    let scaling = sets
        .iter()
        .any(|set| wanted(set) > 0 && desired(set).is_some_and(|desired| desired != total));
    if paused || scaling {
        scale(&mut plan, new, &old);
    } else if is_recreate(deployment) {
        recreate(&mut plan, new, &old, pods_left);
    } else {
        roll(&mut plan, new, &old);
    }
    if !paused {
        plan.steps
            .extend(clean_up(deployment, new, &old, spec.revision_history_limit));
    }
    plan.steps
}

/// Makes sure that there is a new set, with its revision. Answers the set if it was there.
fn ensure_new<'a>(
    plan: &mut Plan<'_>,
    new: Option<&'a ReplicaSet>,
    old: &[&ReplicaSet],
    count: i32,
) -> Option<&'a ReplicaSet> {
    let last = old.iter().map(|set| revision(set)).max().unwrap_or(0);
    let next = last + 1;
    let annotations = new_annotations(plan.deployment, new, next, plan.surge);
    let told = plan
        .deployment
        .annotations()
        .get(sets_of::REVISION)
        .and_then(|text| text.parse().ok());
    let own = new.map_or(next, |set| revision(set).max(next));
    match new {
        Some(set) => {
            let same = annotations
                .iter()
                .all(|(key, value)| set.annotations().get(key) == Some(value));
            if !same {
                plan.steps.push(Step::Update {
                    name: set.name_any(),
                    replicas: wanted(set),
                    annotations,
                });
            }
        }
        None => plan
            .steps
            .push(Step::Create(Box::new(create(plan.deployment, count, annotations)))),
    }
    if told != Some(own) {
        plan.steps.push(Step::SetRevision(own));
    }
    new
}

fn sum(sets: &[&ReplicaSet], of: impl Fn(&ReplicaSet) -> i32) -> i32 {
    sets.iter().map(|set| of(set)).sum()
}

/// How many replicas the new set may have now.
fn new_count(plan: &Plan<'_>, new: i32, all: i32) -> i32 {
    let total = replicas(plan.deployment);
    let room = total + plan.surge - all;
    if room <= 0 {
        new
    } else {
        (new + room.min(total - new)).max(0)
    }
}

fn roll(plan: &mut Plan<'_>, new: Option<&ReplicaSet>, old: &[&ReplicaSet]) {
    let total = replicas(plan.deployment);
    let old_wanted = sum(old, wanted);
    let first = new_count(plan, 0, old_wanted);
    let before = plan.steps.len();
    let Some(new) = ensure_new(plan, new, old, first) else {
        return;
    };
    if plan.steps[before..]
        .iter()
        .any(|step| matches!(step, Step::Update { .. }))
    {
        return;
    }
    let to = match wanted(new) {
        own if own > total => total,
        own if own == total => own,
        own => new_count(plan, own, old_wanted + own),
    };
    if to != wanted(new) {
        return plan.scale(new, to);
    }
    scale_down_old(plan, new, old, old_wanted, total);
}

fn scale_down_old(plan: &mut Plan<'_>, new: &ReplicaSet, old: &[&ReplicaSet], old_wanted: i32, total: i32) {
    if old_wanted == 0 {
        return;
    }
    let minimum = total - plan.unavailable;
    let new_unavailable = wanted(new) - available(new);
    let mut room = old_wanted + wanted(new) - minimum - new_unavailable;
    if room <= 0 {
        return;
    }
    let mut counts: BTreeMap<String, i32> = old.iter().map(|set| (set.name_any(), wanted(set))).collect();
    // what is not available anyway goes first
    for set in old {
        let unhealthy = (wanted(set) - available(set)).max(0).min(room);
        if let Some(count) = counts.get_mut(&set.name_any()) {
            *count -= unhealthy;
            room -= unhealthy;
        }
    }
    let mut healthy_room = sum(old, available) + available(new) - minimum;
    for set in old {
        if healthy_room <= 0 {
            break;
        }
        if let Some(count) = counts.get_mut(&set.name_any()) {
            let down = (*count).min(healthy_room);
            *count -= down;
            healthy_room -= down;
        }
    }
    for set in old {
        let to = counts.get(&set.name_any()).copied().unwrap_or(0);
        if to != wanted(set) {
            plan.scale(set, to);
        }
    }
}

fn recreate(
    plan: &mut Plan<'_>,
    new: Option<&ReplicaSet>,
    old: &[&ReplicaSet],
    pods_left: &dyn Fn(&[&ReplicaSet]) -> bool,
) {
    let total = replicas(plan.deployment);
    let running: Vec<&ReplicaSet> = old.iter().copied().filter(|set| wanted(set) > 0).collect();
    if !running.is_empty() {
        for set in running {
            plan.scale(set, 0);
        }
        return;
    }
    if sum(old, current) > 0 || pods_left(old) {
        return;
    }
    let before = plan.steps.len();
    let Some(new) = ensure_new(plan, new, old, total) else {
        return;
    };
    if !plan.steps[before..]
        .iter()
        .any(|step| matches!(step, Step::Update { .. }))
    {
        plan.scale(new, total);
    }
}

/// Scales what is there, in proportion, without going on with an update.
fn scale(plan: &mut Plan<'_>, new: Option<&ReplicaSet>, old: &[&ReplicaSet]) {
    let total = replicas(plan.deployment);
    let mut active: Vec<&ReplicaSet> = old.iter().copied().chain(new).filter(|set| wanted(set) > 0).collect();
    match active.as_slice() {
        [] => {
            if let Some(latest) = new.or(old.last().copied()) {
                plan.scale(latest, total);
            }
            return;
        }
        [only] => return plan.scale(only, total),
        _ => {}
    }
    // the new set is complete: the old ones only stand in its way
    if let Some(new) = new
        && wanted(new) == total
        && available(new) == total
    {
        for set in old {
            plan.scale(set, 0);
        }
        return;
    }
    if is_recreate(plan.deployment) {
        return;
    }
    let all = sum(&active, wanted);
    let allowed = if total > 0 { total + plan.surge } else { 0 };
    let mut left = allowed - all;
    // the larger sets take their share first; when growing, newer before older of one size
    active.sort_by_key(|set| (wanted(set), pods::created_at(&set.metadata)));
    active.reverse();
    let mut counts: Vec<i32> = Vec::new();
    for set in &active {
        let own = wanted(set);
        let max = set
            .annotations()
            .get("deployment.kubernetes.io/max-replicas")
            .and_then(|text| text.parse::<i32>().ok())
            .filter(|max| *max > 0)
            .unwrap_or_else(|| current(set).max(1));
        let share = (f64::from(own) * f64::from(allowed) / f64::from(max)).round();
        #[allow(clippy::cast_possible_truncation)] // replicas are small
        let share = share as i32 - own;
        let share = if left > 0 {
            share.clamp(0, left)
        } else {
            share.clamp(left, 0)
        };
        left -= share;
        counts.push(own + share);
    }
    if let Some(first) = counts.first_mut() {
        *first = (*first + left).max(0);
    }
    for (set, count) in active.iter().zip(counts) {
        plan.scale(set, count);
    }
}

/// Old sets beyond the history limit, when the update is complete.
fn clean_up(deployment: &Deployment, new: Option<&ReplicaSet>, old: &[&ReplicaSet], limit: Option<i32>) -> Vec<Step> {
    let total = replicas(deployment);
    let complete = new.is_some_and(|new| wanted(new) == total && available(new) == total) && sum(old, wanted) == 0;
    let Ok(limit) = usize::try_from(limit.unwrap_or(10)) else {
        return Vec::new();
    };
    if !complete || old.len() <= limit {
        return Vec::new();
    }
    let mut removable: Vec<&&ReplicaSet> = old.iter().collect();
    removable.sort_by_key(|set| revision(set));
    removable
        .into_iter()
        .take(old.len() - limit)
        .filter(|set| {
            let observed = set
                .status
                .as_ref()
                .and_then(|status| status.observed_generation)
                .unwrap_or(0);
            current(set) == 0
                && set.metadata.deletion_timestamp.is_none()
                && observed >= set.metadata.generation.unwrap_or(0)
        })
        .map(|set| Step::Delete(set.name_any()))
        .collect()
}

#[cfg(test)]
mod tests;
