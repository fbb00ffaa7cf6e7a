//! What a shoot takes of its quotas, and who shares one with it [ADM-35].

use std::collections::BTreeMap;

use gardener_apimachinery::quantity::Amount;
use gardener_apis::core::v1beta1::{CloudProfileSpec, MachineType, QUOTA_METRICS, Quota, Shoot, Worker};
use k8s_openapi::api::core::v1::ObjectReference;

/// Amounts by metric.
pub type Amounts = BTreeMap<&'static str, Amount>;

/// What a shoot may take at most: its pools at their largest, and its load balancers.
///
/// # Errors
/// The cloud profile does not say what a machine or a volume is.
pub fn taken(shoot: &Shoot, profile: &CloudProfileSpec) -> Result<Amounts, String> {
    let mut taken = Amounts::new();
    for worker in &shoot.spec.provider.workers {
        let mut types = profile.machine_types.iter();
        let machine = types
            .find(|machine| machine.name == worker.machine.r#type)
            .ok_or_else(|| format!("machineType {} not found in CloudProfile", worker.machine.r#type))?;
        let (metric, size) = storage(worker, machine, profile)?;
        for (metric, each) in [
            ("cpu", amount(&machine.cpu.0)?),
            ("gpu", amount(&machine.gpu.0)?),
            ("memory", amount(&machine.memory.0)?),
            (metric, size),
        ] {
            add(&mut taken, metric, each * i64::from(worker.maximum));
        }
    }
    let load_balancers = if shoot.nginx_ingress_enabled() { 2 } else { 1 };
    taken.insert("loadbalancer", Amount::units(load_balancers));
    Ok(taken)
}

fn amount(text: &str) -> Result<Amount, String> {
    if text.is_empty() {
        return Ok(Amount::units(0));
    }
    text.parse().map_err(|error| format!("{error}"))
}

/// Adds to one metric.
pub fn add(amounts: &mut Amounts, metric: &'static str, more: Amount) {
    let sum = amounts.get(metric).map_or(more, |sum| *sum + more);
    amounts.insert(metric, sum);
}

/// The metric of a pool's volumes, and the size of one. The machine's own storage tells both, where the pool has no volume.
fn storage(
    worker: &Worker,
    machine: &MachineType,
    profile: &CloudProfileSpec,
) -> Result<(&'static str, Amount), String> {
    let own = machine.storage.as_ref();
    let size = match &worker.volume {
        Some(volume) => Some(volume.size.as_str()),
        None => own.and_then(|own| own.size.as_ref()).map(|size| size.0.as_str()),
    };
    let kind = worker.volume.as_ref().and_then(|volume| volume.r#type.as_deref());
    let listed = || {
        profile
            .volume_types
            .iter()
            .find(|volume| Some(volume.name.as_str()) == kind)
    };
    let class = match (own, size) {
        (_, None) => None,
        (Some(own), _) => Some(own.class.as_str()),
        (None, _) => listed().map(|volume| volume.class.as_str()),
    };
    // so does upstream: it names the machine's type
    let class = class.ok_or_else(|| format!("VolumeType {} not found in CloudProfile", worker.machine.r#type))?;
    let size = amount(size.unwrap_or_default())?;
    match class {
        "standard" => Ok(("storage.standard", size)),
        "premium" => Ok(("storage.premium", size)),
        other => Err(format!("unknown volumeType class {other}")),
    }
}

/// Whether a change of a shoot may take more.
pub fn may_take_more(new: &Shoot, old: &Shoot) -> bool {
    let before = |worker: &Worker| old.spec.provider.workers.iter().find(|own| own.name == worker.name);
    let grows = |worker: &Worker| {
        before(worker).is_none_or(|own| {
            own.machine.r#type != worker.machine.r#type || own.maximum != worker.maximum || own.volume != worker.volume
        })
    };
    (new.nginx_ingress_enabled() && !old.nginx_ingress_enabled()) || new.spec.provider.workers.iter().any(grows)
}

/// Whether the quota is for a project each, and not for the credentials wherever they are used.
///
/// # Errors
/// It is for neither.
pub fn is_for_project(quota: &Quota) -> Result<bool, String> {
    let scope = &quota.spec.scope;
    match (scope.api_version.as_deref(), scope.kind.as_deref()) {
        (Some("core.gardener.cloud/v1beta1"), Some("Project")) => Ok(true),
        (Some("v1"), Some("Secret")) => Ok(false),
        (Some("security.gardener.cloud/v1alpha1"), Some("WorkloadIdentity")) => Ok(false),
        _ => Err("unknown quota scope".to_owned()),
    }
}

/// Whether one of a binding's references means the quota.
pub fn refers(references: &[ObjectReference], quota: &Quota) -> bool {
    references
        .iter()
        .any(|own| own.name == quota.metadata.name && own.namespace == quota.metadata.namespace)
}

/// The metrics of a quota of which more is wanted than it has.
pub fn exceeded(quota: &Quota, wanted: &Amounts) -> Vec<&'static str> {
    let over = |metric: &&'static str| {
        let limit = quota
            .spec
            .metrics
            .as_ref()
            .and_then(|own| own.get(*metric))
            .and_then(|limit| amount(&limit.0).ok());
        limit.is_some_and(|limit| wanted.get(*metric).is_some_and(|wanted| *wanted > limit))
    };
    QUOTA_METRICS.into_iter().filter(over).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn profile() -> CloudProfileSpec {
        serde_json::from_value(json!({
            "machineTypes": [
                {"name": "m1", "cpu": "4", "gpu": "1", "memory": "8Gi"},
                {"name": "local", "cpu": "2", "gpu": "0", "memory": "4Gi", "storage": {"class": "premium", "type": "ssd", "size": "50Gi"}},
            ],
            "volumeTypes": [{"name": "std", "class": "standard"}, {"name": "odd", "class": "other"}],
        }))
        .unwrap()
    }

    fn shoot(workers: serde_json::Value, nginx: bool) -> Shoot {
        serde_json::from_value(json!({"spec": {
            "addons": {"nginxIngress": {"enabled": nginx}},
            "provider": {"type": "x", "workers": workers},
        }}))
        .unwrap()
    }

    #[test]
    fn adm_35_pools_count_at_their_largest() {
        let pools = json!([
            {"name": "a", "machine": {"type": "m1"}, "maximum": 3, "minimum": 1, "volume": {"type": "std", "size": "30Gi"}},
            {"name": "b", "machine": {"type": "local"}, "maximum": 2, "minimum": 1},
        ]);
        let taken = taken(&shoot(pools, true), &profile()).unwrap();
        let shown: Vec<String> = taken
            .iter()
            .map(|(metric, amount)| format!("{metric}={amount}"))
            .collect();
        let expected = [
            "cpu=16",
            "gpu=3",
            "loadbalancer=2",
            "memory=32Gi",
            "storage.premium=100Gi",
            "storage.standard=90Gi",
        ];
        assert_eq!(shown, expected);
        let quota: Quota = serde_json::from_value(json!({"spec": {
            "metrics": {"memory": "31Gi", "cpu": "16", "loadbalancer": "1"},
            "scope": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"},
        }}))
        .unwrap();
        assert_eq!(exceeded(&quota, &taken), ["memory", "loadbalancer"]);
        assert_eq!(is_for_project(&quota), Ok(true));
    }

    #[test]
    fn adm_35_what_a_volume_is_must_be_known() {
        for (pool, why) in [
            (
                json!({"machine": {"type": "m1"}}),
                "VolumeType m1 not found in CloudProfile",
            ),
            (
                json!({"machine": {"type": "gone"}}),
                "machineType gone not found in CloudProfile",
            ),
            (
                json!({"machine": {"type": "m1"}, "volume": {"type": "odd", "size": "1Gi"}}),
                "unknown volumeType class other",
            ),
        ] {
            assert_eq!(taken(&shoot(json!([pool]), false), &profile()).unwrap_err(), why);
        }
    }

    #[test]
    fn adm_35_only_growing_is_looked_at() {
        let pool = |maximum: i32| json!([{"name": "a", "machine": {"type": "m1"}, "maximum": maximum}]);
        let old = shoot(pool(3), false);
        assert!(!may_take_more(&old, &old));
        assert!(!may_take_more(&shoot(json!([]), false), &old));
        assert!(may_take_more(&shoot(pool(2), false), &old));
        assert!(may_take_more(&shoot(pool(3), true), &old));
    }
}
