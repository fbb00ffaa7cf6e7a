//! The provider section and the worker pools, [VAL-P1] – [VAL-P27].

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::{meta, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::{MachineControllerManagerSettings, ShootSpec, Worker};
use super::{kubelet, workerless};
use crate::Duration;
use crate::constants::{GARDEN_NAMESPACE, TAINT_CRITICAL_COMPONENTS_NOT_READY};
use crate::validation::{ca_bundle, invalid_each, is_volume_size, non_negative, repeats};
use crate::versions;

/// The longest name of a pool and of a data volume, in bytes.
const NAME_MAX: usize = 15;

/// `spec.provider`.
pub(super) fn validate_provider(spec: &ShootSpec, meta: &ObjectMeta, in_template: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = spec.provider.r#type.as_str();
    if kind.is_empty() {
        errors.push(Error::required(&path.child("type"), "must specify a provider type"));
    } else {
        errors.extend(invalid_each(&path.child("type"), kind, names::dns_label(kind)));
    }
    if spec.is_workerless() {
        errors.extend(workerless::provider(spec, path));
        return errors;
    }
    let workers = &spec.provider.workers;
    let at = path.child("workers");
    let repeated = repeats(workers.iter().map(|worker| &worker.name));
    for ((i, worker), repeated) in workers.iter().enumerate().zip(repeated) {
        errors.extend(validate_worker(worker, spec, in_template, &at.index(i)));
        if repeated {
            errors.push(Error::duplicate(&at.index(i).child("name"), worker.name.as_str()));
        }
    }
    errors.extend(system_components(workers, &at));
    errors.extend(control_plane_pools(spec, meta, &at));
    errors
}

/// One pool.
fn validate_worker(worker: &Worker, spec: &ShootSpec, in_template: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(pool_name(&worker.name, &path.child("name")));
    let machine = path.child("machine");
    if worker.machine.r#type.is_empty() {
        errors.push(Error::required(&machine.child("type"), "must specify a machine type"));
    }
    match &worker.machine.image {
        // A template is completed from the cloud profile when shoots are made of it.
        None if in_template => {}
        None => errors.push(Error::required(&machine.child("image"), "must specify a machine image")),
        Some(image) => {
            if image.name.is_empty() {
                errors.push(Error::required(
                    &machine.child("image.name"),
                    "must specify a machine image name",
                ));
            }
            if image.version.as_deref().unwrap_or_default().is_empty() {
                errors.push(Error::required(
                    &machine.child("image.version"),
                    "must specify a machine image version",
                ));
            }
        }
    }
    if worker.minimum < 0 {
        errors.push(Error::invalid(
            &path.child("minimum"),
            worker.minimum,
            "minimum value must not be negative",
        ));
    }
    if worker.maximum < 0 {
        errors.push(Error::invalid(
            &path.child("maximum"),
            worker.maximum,
            "maximum value must not be negative",
        ));
    }
    if worker.maximum < worker.minimum {
        errors.push(Error::forbidden(
            &path.child("maximum"),
            "maximum value must not be less than minimum value",
        ));
    }
    errors.extend(rollout(worker, path));
    errors.extend(meta::validate_labels(&worker.labels, &path.child("labels")));
    errors.extend(meta::validate_annotations(
        &worker.annotations,
        &path.child("annotations"),
    ));
    errors.extend(taints(worker, &path.child("taints")));
    errors.extend(kubernetes(worker, spec, &path.child("kubernetes")));
    if let Some(bundle) = &worker.ca_bundle {
        errors.extend(ca_bundle(bundle, &path.child("caBundle")));
    }
    errors.extend(volumes(worker, path));
    if let Some(cri) = &worker.cri {
        if cri.name != "containerd" {
            errors.push(Error::not_supported(
                &path.child("cri.name"),
                cri.name.as_str(),
                &["containerd"],
            ));
        }
        let at = path.child("cri.containerruntimes");
        for (i, runtime) in cri.container_runtimes.iter().enumerate() {
            let at = at.index(i).child("type");
            if runtime.r#type.is_empty() {
                errors.push(Error::required(&at, "must specify a container runtime type"));
            }
            if cri
                .container_runtimes
                .iter()
                .take(i)
                .any(|earlier| earlier.r#type == runtime.r#type)
            {
                errors.push(Error::duplicate(&at, runtime.r#type.as_str()));
            }
        }
    }
    if let Some(architecture) = &worker.machine.architecture
        && !matches!(architecture.as_str(), "amd64" | "arm64")
    {
        errors.push(Error::not_supported(
            &machine.child("architecture"),
            architecture.as_str(),
            &["amd64", "arm64"],
        ));
    }
    if let Some(options) = &worker.cluster_autoscaler {
        let at = path.child("autoscaler");
        for (name, value) in [
            (
                "scaleDownUtilizationThreshold",
                options.scale_down_utilization_threshold,
            ),
            (
                "scaleDownGpuUtilizationThreshold",
                options.scale_down_gpu_utilization_threshold,
            ),
        ] {
            errors.extend(super::kubernetes::threshold(value, &at.child(name)));
        }
        for (name, value) in [
            ("scaleDownUnneededTime", options.scale_down_unneeded_time),
            ("scaleDownUnreadyTime", options.scale_down_unready_time),
            ("maxNodeProvisionTime", options.max_node_provision_time),
        ] {
            errors.extend(duration(value, &at.child(name)));
        }
    }
    if let Some(settings) = &worker.machine_controller_manager {
        errors.extend(machine_settings(
            settings,
            worker,
            &path.child("machineControllerManagerSettings"),
        ));
    }
    const STRATEGIES: [&str; 3] = ["AutoInPlaceUpdate", "AutoRollingUpdate", "ManualInPlaceUpdate"];
    if !STRATEGIES.contains(&worker.strategy()) {
        errors.push(Error::not_supported(
            &path.child("updateStrategy"),
            worker.strategy(),
            &STRATEGIES,
        ));
    }
    if let Some(priority) = worker.priority
        && priority < -1
    {
        errors.push(Error::invalid(
            &path.child("priority"),
            priority,
            "can not be less than -1",
        ));
    }
    errors.extend(sysctls(&worker.sysctls, &path.child("sysctls")));
    errors
}

fn pool_name(name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if name.is_empty() {
        errors.push(Error::required(path, "must specify a name"));
        return errors;
    }
    errors.extend(invalid_each(path, name, names::dns_label(name)));
    if name.len() > NAME_MAX {
        errors.push(Error::too_long(path, NAME_MAX));
    }
    errors
}

/// A number or percentage as a share of something; none when it is neither.
fn share(value: &IntOrString) -> Option<(i64, bool)> {
    match value {
        IntOrString::Int(number) => Some((i64::from(*number), false)),
        IntOrString::String(text) => text.strip_suffix('%')?.parse().ok().map(|percent| (percent, true)),
    }
}

fn shown_share(value: &IntOrString) -> serde_json::Value {
    crate::validation::shown(value)
}

/// [VAL-P6].
fn rollout(worker: &Worker, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut zero = Vec::new();
    for (name, value) in [
        ("maxSurge", &worker.max_surge),
        ("maxUnavailable", &worker.max_unavailable),
    ] {
        let Some(value) = value else {
            zero.push(false);
            continue;
        };
        let at = path.child(name);
        match share(value) {
            None => {
                errors.push(Error::invalid(
                    &at,
                    shown_share(value),
                    "must be an integer or percentage (e.g '5%')",
                ));
                zero.push(false);
                continue;
            }
            Some((number, percent)) => {
                if number < 0 {
                    errors.push(Error::invalid(&at, shown_share(value), crate::validation::NEGATIVE));
                }
                if name == "maxUnavailable" && percent && number > 100 {
                    errors.push(Error::invalid(&at, shown_share(value), "must not be greater than 100%"));
                }
                if worker.strategy() == "ManualInPlaceUpdate" && number != 0 {
                    errors.push(Error::invalid(
                        &at,
                        shown_share(value),
                        "should not be set when `updateStrategy` is `ManualInPlaceUpdate`",
                    ));
                }
                zero.push(number == 0);
            }
        }
    }
    if zero == [true, true] && worker.strategy() != "ManualInPlaceUpdate" {
        errors.push(Error::invalid(
            &path.child("maxUnavailable"),
            worker.max_unavailable.as_ref().map(shown_share).unwrap_or_default(),
            "may not be 0 when `maxSurge` is 0",
        ));
    }
    errors
}

/// [VAL-P8].
fn taints(worker: &Worker, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    for (i, taint) in worker.taints.iter().enumerate() {
        let at = path.index(i);
        errors.extend(invalid_each(
            &at.child("key"),
            &taint.key,
            names::qualified_name(&taint.key),
        ));
        if taint.key == TAINT_CRITICAL_COMPONENTS_NOT_READY {
            errors.push(Error::forbidden(&at.child("key"), "taint key is reserved by gardener"));
        }
        let value = taint.value.as_deref().unwrap_or_default();
        errors.extend(invalid_each(&at.child("value"), value, names::label_value(value)));
        let effect = taint.effect.as_str();
        if effect.is_empty() {
            errors.push(Error::required(&at.child("effect"), ""));
        } else if !EFFECTS.contains(&effect) {
            errors.push(Error::not_supported(&at.child("effect"), effect, &EFFECTS));
        }
        if !seen.insert((taint.key.as_str(), effect)) {
            let mut error = Error::duplicate(&at, crate::validation::shown(taint));
            error.detail = "taints must be unique by key and effect pair".into();
            errors.push(error);
        }
    }
    errors
}

/// [VAL-P9] and the pool's kubelet.
fn kubernetes(worker: &Worker, spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(kubernetes) = &worker.kubernetes else {
        return errors;
    };
    if let Some(text) = kubernetes.version.as_deref()
        && let (Some(own), Some(control_plane)) = (versions::parse(text), versions::parse(spec.kubernetes_version()))
    {
        let at = path.child("version");
        if own > control_plane {
            errors.push(Error::forbidden(
                &at,
                "worker group kubernetes version must not be higher than control plane version",
            ));
        } else if own.major < control_plane.major || control_plane.minor.saturating_sub(own.minor) > 3 {
            errors.push(Error::forbidden(
                &at,
                "worker group kubernetes version must be at most three minor versions behind control plane version",
            ));
        }
    }
    if let Some(config) = &kubernetes.kubelet {
        errors.extend(kubelet::validate_kubelet(
            config,
            spec.worker_version(worker),
            &path.child("kubelet"),
        ));
    }
    errors
}

/// [VAL-P11] – [VAL-P14].
fn volumes(worker: &Worker, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(volume) = &worker.volume
        && !is_volume_size(&volume.size)
    {
        errors.push(Error::invalid(
            &path.child("volume.size"),
            volume.size.as_str(),
            "volume size must match the regex ^(\\d)+Gi$",
        ));
    }
    if worker.volume.is_none() && !worker.data_volumes.is_empty() {
        errors.push(Error::required(
            &path.child("volume"),
            "a worker volume must be defined if data volumes are defined",
        ));
    }
    for (i, volume) in worker.data_volumes.iter().enumerate() {
        let at = path.child("dataVolumes").index(i);
        errors.extend(pool_name(&volume.name, &at.child("name")));
        if !is_volume_size(&volume.size) {
            errors.push(Error::invalid(
                &at.child("size"),
                volume.size.as_str(),
                "data volume size must match the regex ^(\\d)+Gi$",
            ));
        }
        if worker
            .data_volumes
            .iter()
            .take(i)
            .any(|earlier| earlier.name == volume.name)
        {
            errors.push(Error::duplicate(&at.child("name"), volume.name.as_str()));
        }
    }
    if let Some(name) = &worker.kubelet_data_volume_name
        && !worker.data_volumes.iter().any(|volume| volume.name == *name)
    {
        errors.push(Error::invalid(
            &path.child("kubeletDataVolumeName"),
            name.as_str(),
            format!("KubeletDataVolumeName refers to unrecognized data volume {name}"),
        ));
    }
    errors
}

fn duration(value: Option<Duration>, path: &Path) -> ErrorList {
    match value {
        Some(value) if value.as_nanos() < 0 => {
            vec![Error::invalid(path, value.to_string(), "must be non-negative")]
        }
        _ => ErrorList::new(),
    }
}

/// [VAL-P19].
fn machine_settings(settings: &MachineControllerManagerSettings, worker: &Worker, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, value) in [
        ("machineDrainTimeout", settings.machine_drain_timeout),
        ("machineHealthTimeout", settings.machine_health_timeout),
        ("machineCreationTimeout", settings.machine_creation_timeout),
        ("machinePreserveTimeout", settings.machine_preserve_timeout),
        ("inPlaceUpdateTimeout", settings.in_place_update_timeout),
    ] {
        errors.extend(duration(value, &path.child(name)));
    }
    if let Some(retries) = settings.max_evict_retries {
        errors.extend(non_negative(retries, &path.child("maxEvictRetries")));
    }
    if !worker.is_in_place() {
        if settings.in_place_update_timeout.is_some() {
            errors.push(Error::forbidden(
                &path.child("inPlaceUpdateTimeout"),
                "can only be set when update strategy is `AutoInPlaceUpdate` or `ManualInPlaceUpdate`",
            ));
        }
        if settings.disable_health_timeout == Some(true) {
            errors.push(Error::forbidden(
                &path.child("disableHealthTimeout"),
                "can only be set to true when update strategy is `AutoInPlaceUpdate` or `ManualInPlaceUpdate`",
            ));
        }
    }
    if let Some(preserved) = settings.auto_preserve_failed_machine_max {
        let at = path.child("autoPreserveFailedMachineMax");
        errors.extend(non_negative(preserved, &at));
        if preserved > worker.maximum {
            errors.push(Error::invalid(&at, preserved, "must not be greater than maximum value"));
        } else if worker.allows_system_components() && preserved > worker.maximum - 1 {
            errors.push(Error::invalid(
                &at,
                preserved,
                "must not be greater than maximum value - 1 if system components are allowed on the pool",
            ));
        }
    }
    errors
}

/// [VAL-P22].
fn sysctls(settings: &BTreeMap<String, String>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in settings {
        let at = path.child(key);
        if !is_sysctl(key) {
            errors.push(Error::invalid(
                &at,
                key.as_str(),
                "sysctl key must must match regex ^(?:(?:[a-zA-Z0-9-][a-zA-Z0-9_/-]*|\\*)\\.)*[a-zA-Z0-9_/-]*[a-zA-Z0-9]$",
            ));
        }
        if key.len() > 255 {
            errors.push(Error::too_long(&at, 255));
        }
        if value.is_empty() {
            errors.push(Error::required(&at, "sysctl requires a non-empty value"));
        }
    }
    errors
}

fn is_sysctl(key: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'/' | b'-');
    let mut parts: Vec<&str> = key.split('.').collect();
    let Some(last) = parts.pop() else { return false };
    last.bytes().all(inner)
        && last.bytes().last().is_some_and(|b| b.is_ascii_alphanumeric())
        && parts.iter().all(|part| {
            *part == "*"
                || (part
                    .bytes()
                    .next()
                    .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'-')
                    && part.bytes().all(inner))
        })
}

/// [VAL-P23], [VAL-P24].
fn system_components(workers: &[Worker], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let active: Vec<(usize, &Worker)> = workers
        .iter()
        .enumerate()
        .filter(|(_, worker)| worker.maximum > 0 && worker.allows_system_components())
        .collect();
    if active.is_empty() {
        errors.push(Error::forbidden(
            path,
            "at least one active (workers[i].maximum > 0) worker pool with systemComponents.allow=true needed",
        ));
        return errors;
    }
    let zones = |worker: &Worker| worker.zones.iter().cloned().collect::<BTreeSet<String>>();
    let mut sets: Vec<BTreeSet<String>> = Vec::new();
    for (_, worker) in &active {
        let set = zones(worker);
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    for set in sets {
        let pools: Vec<&(usize, &Worker)> = active.iter().filter(|(_, worker)| zones(worker) == set).collect();
        let enough = |worker: &Worker| usize::try_from(worker.maximum).is_ok_and(|maximum| maximum >= set.len());
        if !pools.iter().any(|(_, worker)| enough(worker)) {
            for (i, _) in pools {
                errors.push(Error::forbidden(
                    &path.index(*i).child("maximum"),
                    "maximum node count should be greater than or equal to the number of zones specified for this pool",
                ));
            }
        }
    }
    errors
}

/// [VAL-P25], [VAL-P27].
fn control_plane_pools(spec: &ShootSpec, meta: &ObjectMeta, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let pools: Vec<(usize, &Worker)> = spec
        .provider
        .workers
        .iter()
        .enumerate()
        .filter(|(_, worker)| worker.control_plane.is_some())
        .collect();
    let Some((first, pool)) = pools.first() else {
        return errors;
    };
    for (i, _) in pools.iter().skip(1) {
        errors.push(Error::invalid(
            &path.index(*i).child("controlPlane"),
            serde_json::Value::Null,
            "cannot have more than one worker pool marked for control plane components",
        ));
    }
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    if namespace != GARDEN_NAMESPACE {
        errors.push(Error::invalid(
            &Path::new("metadata.namespace"),
            namespace,
            "self-hosted shoots must be in the garden namespace",
        ));
    }
    if let Some(seed) = &spec.seed_name {
        errors.push(Error::invalid(
            &Path::new("spec.seedName"),
            seed.as_str(),
            "seedName must not be set for self-hosted shoots",
        ));
    }
    let (want, text) = if spec.failure_tolerance().is_some() {
        (3, "three")
    } else {
        (1, "one")
    };
    let at = path.index(*first);
    if pool.maximum != want {
        errors.push(Error::invalid(
            &at.child("maximum"),
            pool.maximum,
            format!("control plane worker pool must have exactly {text} as maximum"),
        ));
    }
    if want == 1 && pool.minimum != 1 {
        errors.push(Error::invalid(
            &at.child("minimum"),
            pool.minimum,
            "control plane worker pool must have exactly one as minimum",
        ));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_p22_sysctl_keys() {
        for good in [
            "net.ipv4.ip_forward",
            "kernel/pid_max",
            "net.ipv4.conf.*.arp_ignore",
            "a",
        ] {
            assert!(is_sysctl(good), "{good}");
        }
        for bad in ["", "net..x", "net.", "_a.b", "a b", "net.x_"] {
            assert!(!is_sysctl(bad), "{bad}");
        }
    }
}
