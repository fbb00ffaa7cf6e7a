//! What a control plane must consist of, and whether its etcds do [ST-54], [ST-55].

use std::collections::BTreeSet;

use gardener_apis::core::v1beta1::{Seed, Shoot};
use gardener_apis::druid::v1alpha1::Etcd;
use k8s_openapi::api::apps::v1::Deployment;

use super::Finding;

/// The etcds that every control plane has.
pub const ETCDS: [&str; 2] = ["etcd-events", "etcd-main"];
/// By this annotation the dependency-watchdog tells that it scaled something down.
const MELTDOWN: &str = "dependency-watchdog.gardener.cloud/meltdown-protection-active";
/// What the dependency-watchdog scales, in the order in which it is told.
const SCALED_BY_WATCHDOG: [&str; 3] = [
    "kube-controller-manager",
    "machine-controller-manager",
    "cluster-autoscaler",
];

/// The Deployments that a control plane must have [ST-54].
pub fn deployments(shoot: &Shoot) -> BTreeSet<&'static str> {
    let mut required = BTreeSet::from(["gardener-resource-manager", "kube-apiserver", "kube-controller-manager"]);
    if shoot.is_workerless() {
        return required;
    }
    required.extend(["kube-scheduler", "machine-controller-manager"]);
    let workers = &shoot.spec.provider.workers;
    if workers.iter().any(|pool| pool.maximum > pool.minimum) {
        required.insert("cluster-autoscaler");
    }
    let scaling = shoot.spec.kubernetes.vertical_pod_autoscaler.as_ref();
    if scaling.is_some_and(|own| own.enabled) {
        required.extend(["vpa-admission-controller", "vpa-recommender", "vpa-updater"]);
    }
    required
}

/// The Deployments that monitoring must have [ST-55].
pub fn monitoring_deployments(shoot: &Shoot) -> BTreeSet<&'static str> {
    match shoot.is_workerless() {
        true => BTreeSet::new(),
        false => BTreeSet::from(["kube-state-metrics"]),
    }
}

fn missing<'a>(required: &BTreeSet<&'static str>, found: impl Iterator<Item = Option<&'a str>>) -> Option<String> {
    let found: BTreeSet<&str> = found.flatten().collect();
    let missing: Vec<&str> = required.iter().copied().filter(|own| !found.contains(own)).collect();
    (!missing.is_empty()).then(|| format!("[{}]", missing.join(" ")))
}

/// Whether all required Deployments are there; how they do is asked afterwards.
///
/// # Errors
/// Some are missing.
pub fn none_missing(required: &BTreeSet<&'static str>, found: &[Deployment]) -> Result<(), Finding> {
    match missing(required, found.iter().map(|own| own.metadata.name.as_deref())) {
        None => Ok(()),
        Some(names) => Err(Finding::new(
            "DeploymentMissing",
            format!("Missing required deployments: {names}"),
        )),
    }
}

/// Whether the etcds are there, and each of them is healthy [ST-54].
///
/// # Errors
/// What is wrong.
pub fn etcds(found: &[Etcd]) -> Result<(), Finding> {
    let required = BTreeSet::from(ETCDS);
    if let Some(names) = missing(&required, found.iter().map(|own| own.metadata.name.as_deref())) {
        return Err(Finding::new("EtcdMissing", format!("Missing required etcds: {names}")));
    }
    found.iter().try_for_each(|own| {
        etcd(own).map_err(|why| {
            let name = own.metadata.name.as_deref().unwrap_or_default();
            let text = format!(
                "Etcd extension resource {name:?} is unhealthy: {why}{}",
                last_errors(own)
            );
            Finding::new("EtcdUnhealthy", text)
        })
    })
}

/// Whether an etcd is healthy [ST-61].
fn etcd(etcd: &Etcd) -> Result<(), String> {
    let name = etcd.metadata.name.as_deref().unwrap_or_default();
    if etcd.status.ready != Some(true) {
        return Err(format!("etcd {name:?} is not ready yet"));
    }
    let backup = etcd.status.conditions.iter().find(|own| own.r#type == "BackupReady");
    match backup {
        Some(own) if own.status != "True" => Err(format!(
            "backup for etcd {name:?} is reported as unready: {}",
            own.message
        )),
        _ => Ok(()),
    }
}

/// What etcd-druid could not do, as Go writes a list of structures.
fn last_errors(etcd: &Etcd) -> String {
    let errors = etcd.status.last_errors.iter().map(|own| {
        let at = match &own.observed_at {
            Some(at) => super::extensions::go_time(at.0),
            None => super::extensions::ZERO_TIME.to_owned(),
        };
        format!("{{Code:{} Description:{} ObservedAt:{at}}}", own.code, own.description)
    });
    let errors: Vec<String> = errors.collect();
    match errors.is_empty() {
        true => String::new(),
        false => format!(" ([{}])", errors.join(" ")),
    }
}

/// Whether the dependency-watchdog's prober watches shoots of a seed; it does unless somebody says otherwise.
pub fn has_prober(seed: &Seed) -> bool {
    let settings = seed.spec.settings.as_ref();
    let watchdog = settings.and_then(|own| own.dependency_watchdog.as_ref());
    watchdog
        .and_then(|own| own.prober.as_ref())
        .is_none_or(|prober| prober.enabled)
}

/// Whether the dependency-watchdog has left the controllers alone [ST-54].
///
/// # Errors
/// It has scaled some down.
pub fn none_scaled_down(found: &[Deployment]) -> Result<(), Finding> {
    let is_scaled = |name: &&str| {
        let own = found.iter().find(|own| own.metadata.name.as_deref() == Some(*name));
        let annotations = own.and_then(|own| own.metadata.annotations.as_ref());
        annotations.is_some_and(|all| all.contains_key(MELTDOWN))
    };
    let scaled: Vec<&str> = SCALED_BY_WATCHDOG.into_iter().filter(is_scaled).collect();
    if scaled.is_empty() {
        return Ok(());
    }
    let text = format!(
        "The following deployments have been scaled down to 0 replicas by dependency-watchdog-prober: {}",
        scaled.join(", ")
    );
    Err(Finding::new("ControllersScaledDown", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn shoot(workers: Value, scaling: bool) -> Shoot {
        serde_json::from_value(json!({
            "spec": {
                "provider": {"workers": workers},
                "kubernetes": {"verticalPodAutoscaler": {"enabled": scaling}},
            },
        }))
        .unwrap()
    }

    fn named<K: k8s_openapi::serde::de::DeserializeOwned>(name: &str, rest: Value) -> K {
        let mut object = rest;
        object["metadata"]["name"] = json!(name);
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn st_54_required_deployments() {
        let pool = |minimum: i32, maximum: i32| json!([{"name": "p", "minimum": minimum, "maximum": maximum}]);
        let common = ["gardener-resource-manager", "kube-apiserver", "kube-controller-manager"];
        let with_nodes = ["kube-scheduler", "machine-controller-manager"];
        let scaling = ["vpa-admission-controller", "vpa-recommender", "vpa-updater"];
        let table: [(&str, Value, bool, Vec<&str>); 3] = [
            ("W-D1", json!([]), true, vec![]),
            (
                "W-D2",
                pool(1, 2),
                false,
                [&with_nodes[..], &["cluster-autoscaler"]].concat(),
            ),
            ("W-D3", pool(2, 2), true, [&with_nodes[..], &scaling].concat()),
        ];
        for (id, workers, own, more) in table {
            let expected: BTreeSet<&str> = common.into_iter().chain(more).collect();
            assert_eq!(deployments(&shoot(workers, own)), expected, "{id}");
        }
        let required = deployments(&shoot(pool(1, 2), false));
        let absent = ["kube-scheduler", "cluster-autoscaler"];
        let found = required.iter().filter(|name| !absent.contains(name));
        let found: Vec<Deployment> = found.map(|name| named(name, json!({}))).collect();
        let told = none_missing(&required, &found).unwrap_err();
        let message = "Missing required deployments: [cluster-autoscaler kube-scheduler]";
        assert_eq!(told, Finding::new("DeploymentMissing", message), "W-D4");
    }

    #[test]
    fn st_54_61_etcds() {
        let etcd = |name: &str, status: Value| -> Etcd { named(name, json!({"status": status})) };
        let well = || json!({"ready": true, "conditions": [{"type": "BackupReady", "status": "True"}]});
        let error = json!([{"code": "E", "description": "no", "observedAt": "2026-03-01T10:00:00Z"}]);
        let table = [
            (well(), None),
            (json!({"ready": true}), None),
            (json!({}), Some("etcd \"etcd-main\" is not ready yet")),
            (
                json!({"ready": true, "conditions": [{"type": "BackupReady", "status": "Unknown", "message": "m"}]}),
                Some("backup for etcd \"etcd-main\" is reported as unready: m"),
            ),
            (
                json!({"ready": false, "lastErrors": error}),
                Some(
                    "etcd \"etcd-main\" is not ready yet ([{Code:E Description:no ObservedAt:2026-03-01 10:00:00 +0000 UTC}])",
                ),
            ),
        ];
        for (status, expected) in table {
            let told = etcds(&[etcd("etcd-events", well()), etcd("etcd-main", status)]);
            let expected = expected.map(|why| {
                let text = format!("Etcd extension resource \"etcd-main\" is unhealthy: {why}");
                Finding::new("EtcdUnhealthy", text)
            });
            assert_eq!(told.err(), expected);
        }
        let told = etcds(&[etcd("etcd-events", json!({}))]).unwrap_err();
        assert_eq!(
            told,
            Finding::new("EtcdMissing", "Missing required etcds: [etcd-main]"),
            "missing before unhealthy"
        );
    }

    #[test]
    fn st_54_what_the_watchdog_scaled_down() {
        let own = |name: &str| named(name, json!({"metadata": {"annotations": {MELTDOWN: ""}}}));
        let others: [Deployment; 2] = [named("kube-controller-manager", json!({})), own("kube-scheduler")];
        assert!(none_scaled_down(&others).is_ok());
        let scaled: [Deployment; 2] = [own("machine-controller-manager"), own("kube-controller-manager")];
        let told = none_scaled_down(&scaled).unwrap_err();
        assert_eq!(told.reason, "ControllersScaledDown");
        assert!(
            told.message
                .ends_with(": kube-controller-manager, machine-controller-manager"),
            "{told:?}"
        );
        let seed = |settings: Value| -> Seed {
            serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": {"settings": settings}})).unwrap()
        };
        assert!(has_prober(&seed(json!(null))));
        assert!(has_prober(&seed(
            json!({"dependencyWatchdog": {"prober": {"enabled": true}}})
        )));
        assert!(!has_prober(&seed(
            json!({"dependencyWatchdog": {"prober": {"enabled": false}}})
        )));
    }
}
