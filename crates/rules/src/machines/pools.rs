//! Worker pools as machine deployments per zone [MCH-20]–[MCH-35].

use std::collections::BTreeMap;

use gardener_apis::extensions::v1alpha1::WorkerPool;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::worker_pool::hash_of_hashes;

fn as_i32(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}

/// The share of zone `index` of `size` over `zones` zones: the surplus goes to the first ones [MCH-21].
pub fn distribute(size: i32, zones: usize, index: usize) -> i32 {
    let zones = i64::try_from(zones.max(1)).unwrap_or(i64::MAX);
    let index = i64::try_from(index).unwrap_or(i64::MAX);
    let size = i64::from(size);
    as_i32(size / zones + i64::from(index < size % zones))
}

/// The percentage of zone `index`, of `percent` of `total` over `zones` zones; rounded up [MCH-22].
pub fn distribute_percent(percent: i32, total: i32, zones: usize, index: usize) -> i32 {
    let count = i64::try_from(zones.max(1)).unwrap_or(i64::MAX);
    let (whole, percent_wide) = (i64::from(total), i64::from(percent));
    if total <= 0 || whole % count == 0 {
        return percent;
    }
    let weighted = i64::from(distribute(total, zones, index)) * count * percent_wide;
    as_i32(weighted.div_ceil_to(whole))
}

/// Division that rounds up, for values that are not negative.
trait DivCeil {
    fn div_ceil_to(self, divisor: Self) -> Self;
}

impl DivCeil for i64 {
    fn div_ceil_to(self, divisor: Self) -> Self {
        (self + divisor - 1) / divisor
    }
}

/// The share of a zone of a number or a percentage [MCH-21], [MCH-22].
pub fn distribute_either(value: &IntOrString, total: i32, zones: usize, index: usize) -> IntOrString {
    match value {
        IntOrString::Int(number) => IntOrString::Int(distribute(*number, zones, index)),
        IntOrString::String(text) => match text.strip_suffix('%').and_then(|number| number.parse().ok()) {
            Some(percent) => IntOrString::String(format!("{}%", distribute_percent(percent, total, zones, index))),
            None => value.clone(),
        },
    }
}

/// Whether a cluster autoscaler is needed: some pool may grow [MCH-34].
pub fn needs_autoscaler<'a>(pools: impl IntoIterator<Item = &'a WorkerPool>) -> bool {
    pools.into_iter().any(|pool| pool.maximum > pool.minimum)
}

/// What decides on the replicas of a machine deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaQuestion {
    /// Whether the shoot is to be hibernated.
    pub hibernated: bool,
    /// Whether some pool may grow.
    pub autoscaled: bool,
    /// What the deployment has; none if there is none yet.
    pub existing: Option<i32>,
    /// What it had on another seed.
    pub restored: Option<i32>,
    /// Whether all deployments there are have no replicas.
    pub all_at_zero: bool,
    /// The zone's minimum.
    pub minimum: i32,
    /// The zone's maximum.
    pub maximum: i32,
}

/// The replicas of a machine deployment [MCH-34].
pub fn replicas(question: &ReplicaQuestion) -> i32 {
    if question.hibernated {
        return 0;
    }
    if !question.autoscaled {
        return question.minimum;
    }
    match question.existing {
        None => question.restored.unwrap_or(question.minimum),
        Some(_) if question.all_at_zero => question.minimum,
        Some(current) if current < question.minimum => question.minimum,
        Some(current) if current > question.maximum => question.maximum,
        Some(current) => current,
    }
}

/// The hash that decides whether a pool needs a new machine class [MCH-24]. `in_place` is the in-place hash of pools that are updated so.
pub fn class_hash(node_agent_secret: &str, in_place: Option<&str>, additional: &[String]) -> String {
    let mut data = vec![node_agent_secret.to_owned()];
    data.extend(in_place.map(str::to_owned));
    data.extend(additional.iter().cloned());
    hash_of_hashes(&data, 5)
}

/// The annotations that carry the autoscaler's options; none takes one away [MCH-33].
pub fn autoscaler_annotations(pool: &WorkerPool) -> BTreeMap<String, Option<String>> {
    let options = pool.cluster_autoscaler.clone().unwrap_or_default();
    [
        (
            "scale-down-utilization-threshold",
            options.scale_down_utilization_threshold,
        ),
        (
            "scale-down-gpu-utilization-threshold",
            options.scale_down_gpu_utilization_threshold,
        ),
        ("scale-down-unneeded-time", options.scale_down_unneeded_time),
        ("scale-down-unready-time", options.scale_down_unready_time),
        ("max-node-provision-time", options.max_node_provision_time),
    ]
    .into_iter()
    .map(|(name, value)| (format!("autoscaler.gardener.cloud/{name}"), value))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mch_c1_c2_the_first_zones_get_the_surplus() {
        let spread = |size, zones| -> Vec<i32> { (0..zones).map(|index| distribute(size, zones, index)).collect() };
        assert_eq!((spread(5, 3), spread(10, 3)), (vec![2, 2, 1], vec![4, 3, 3]));
        assert_eq!((spread(1, 3), spread(2, 3)), (vec![1, 0, 0], vec![1, 1, 0]));
    }

    #[test]
    fn mch_c3_percentages_are_weighted() {
        let spread = |total| -> Vec<i32> { (0..3).map(|index| distribute_percent(40, total, 3, index)).collect() };
        assert_eq!(spread(10), [48, 36, 36]);
        assert_eq!(spread(9), [40, 40, 40]);
        let text = distribute_either(&IntOrString::String("40%".into()), 10, 3, 0);
        assert_eq!(text, IntOrString::String("48%".into()));
    }

    #[test]
    fn mch_34_replicas() {
        let base = ReplicaQuestion {
            hibernated: false,
            autoscaled: true,
            existing: Some(2),
            restored: None,
            all_at_zero: false,
            minimum: 1,
            maximum: 3,
        };
        let table = [
            (
                ReplicaQuestion {
                    hibernated: true,
                    ..base
                },
                0,
            ),
            (
                ReplicaQuestion {
                    autoscaled: false,
                    ..base
                },
                1,
            ),
            (
                ReplicaQuestion {
                    existing: None,
                    restored: Some(3),
                    ..base
                },
                3,
            ),
            (ReplicaQuestion { existing: None, ..base }, 1),
            (
                ReplicaQuestion {
                    existing: Some(0),
                    all_at_zero: true,
                    minimum: 2,
                    ..base
                },
                2,
            ),
            // MCH-C22
            (
                ReplicaQuestion {
                    existing: Some(0),
                    maximum: 1,
                    ..base
                },
                1,
            ),
            (
                ReplicaQuestion {
                    existing: Some(5),
                    maximum: 1,
                    ..base
                },
                1,
            ),
            (base, 2),
        ];
        for (question, expected) in table {
            assert_eq!(replicas(&question), expected, "{question:?}");
        }
    }

    #[test]
    fn mch_24_the_hash_follows_its_inputs() {
        let plain = class_hash("gardener-node-agent-a-1", None, &[]);
        assert_eq!(plain.len(), 5);
        assert_ne!(plain, class_hash("gardener-node-agent-a-2", None, &[]));
        assert_ne!(plain, class_hash("gardener-node-agent-a-1", Some("x"), &[]));
    }
}
