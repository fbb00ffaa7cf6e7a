//! The provider section and the worker pools, [VAL-P1] – [VAL-P27].

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::{meta, names};
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::{MachineControllerManagerSettings, ShootSpec, Worker};
use super::{control_planes, kubelet, workerless};
use crate::Duration;
use crate::constants::TAINT_CRITICAL_COMPONENTS_NOT_READY;
use crate::validation::{ca_bundle, go_json, go_struct, invalid_each, is_volume_size, non_negative, percentage, shown};
use crate::versions;

/// The longest name of a pool and of a data volume, in bytes.
const NAME_MAX: usize = 15;

/// The longest key of a sysctl, in bytes: what a path may have beside `/proc/sys/`.
const SYSCTL_MAX: usize = 4096 - 10;

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
    } else {
        let workers = &spec.provider.workers;
        let at = path.child("workers");
        for (i, worker) in workers.iter().enumerate() {
            errors.extend(validate_worker(worker, spec, meta, in_template, &at.index(i)));
        }
        let mut found = false;
        let mut seen = BTreeSet::new();
        for (i, worker) in workers.iter().enumerate() {
            let at = at.index(i);
            if !seen.insert(&worker.name) {
                errors.push(Error::duplicate(&at.child("name"), worker.name.as_str()));
            }
            if let Some(control_plane) = &worker.control_plane {
                if found {
                    errors.push(Error::literal(
                        &at.child("controlPlane"),
                        control_planes::shown(control_plane),
                        "cannot have more than one worker pool marked for control plane components",
                    ));
                }
                found = true;
            }
        }
        errors.extend(system_components(workers, &at));
    }
    errors.extend(super::kubernetes::mask_fits_pods(spec));
    errors
}

/// One pool.
fn validate_worker(worker: &Worker, spec: &ShootSpec, meta: &ObjectMeta, in_template: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = path.child("name");
    errors.extend(invalid_each(&name, &worker.name, names::dns_label(&worker.name)));
    if worker.name.len() > NAME_MAX {
        errors.push(Error::too_long(&name, NAME_MAX));
    }
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
            if !in_template && image.version.as_deref().unwrap_or_default().is_empty() {
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
        let mut seen = BTreeSet::new();
        for (i, runtime) in cri.container_runtimes.iter().enumerate() {
            let at = at.index(i).child("type");
            if runtime.r#type.is_empty() {
                errors.push(Error::required(&at, "must specify a container runtime type"));
            }
            if !seen.insert(&runtime.r#type) {
                let why = format!("must specify different type, {} already exist", runtime.r#type);
                errors.push(Error::duplicate(&at, why));
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
            if let Some(value) = value.filter(|value| value.as_nanos() < 0) {
                errors.push(Error::invalid(
                    &at.child(name),
                    value.to_string(),
                    "can not be negative",
                ));
            }
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
    if let Some(control_plane) = &worker.control_plane {
        errors.extend(control_planes::validate_pool(
            control_plane,
            spec,
            meta,
            &path.child("controlPlane"),
        ));
    }
    errors.extend(sysctls(&worker.sysctls, &path.child("sysctls")));
    errors
}

fn volume_name(name: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if name.is_empty() {
        errors.push(Error::required(path, "must specify a name"));
    } else {
        errors.extend(invalid_each(path, name, names::dns_label(name)));
    }
    if name.len() > NAME_MAX {
        errors.push(Error::too_long(path, NAME_MAX));
    }
    errors
}

/// A percentage as its number, or what a number or text says else; 0 for what is neither.
fn share(value: &IntOrString) -> i64 {
    match value {
        IntOrString::Int(number) => i64::from(*number),
        IntOrString::String(text) => percentage(text).unwrap_or_else(|| text.parse().unwrap_or_default()),
    }
}

/// [VAL-P6].
fn rollout(worker: &Worker, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (surge, unavailable) = (path.child("maxSurge"), path.child("maxUnavailable"));
    let given = [(&surge, &worker.max_surge), (&unavailable, &worker.max_unavailable)];
    let given = || given.into_iter().filter_map(|(at, value)| Some((at, value.as_ref()?)));
    for (at, value) in given() {
        match value {
            IntOrString::Int(number) => errors.extend(non_negative(*number, at)),
            IntOrString::String(text) if percentage(text).is_none() => errors.push(Error::invalid(
                at,
                shown(value),
                "must be an integer or percentage (e.g '5%')",
            )),
            IntOrString::String(_) => {}
        }
    }
    if let Some(IntOrString::String(text)) = &worker.max_unavailable
        && percentage(text).is_some_and(|percent| percent > 100)
    {
        errors.push(Error::invalid(
            &unavailable,
            text.as_str(),
            "must not be greater than 100%",
        ));
    }
    if worker.strategy() == "ManualInPlaceUpdate" {
        for (at, value) in given() {
            errors.push(Error::invalid(
                at,
                shown(value),
                "should not be set when `updateStrategy` is `ManualInPlaceUpdate`",
            ));
        }
    } else if given().all(|(_, value)| share(value) == 0) {
        let value = worker.max_unavailable.as_ref().map(shown).unwrap_or_default();
        errors.push(Error::invalid(&unavailable, value, "may not be 0 when `maxSurge` is 0"));
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
        let wrong = names::label_value(value);
        if !wrong.is_empty() {
            errors.push(Error::invalid(&at.child("value"), value, wrong.join(";")));
        }
        let effect = taint.effect.as_str();
        if effect.is_empty() {
            errors.push(Error::required(&at.child("effect"), ""));
        } else if !EFFECTS.contains(&effect) {
            errors.push(Error::not_supported(&at.child("effect"), effect, &EFFECTS));
        }
        if !seen.insert((taint.key.as_str(), effect)) {
            let mut error = Error::duplicate(&at, crate::validation::shown(taint));
            error.show_as(taint_as_go(taint));
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
    if let Some(config) = kubernetes.kubelet.as_ref().or(spec.kubernetes.kubelet.as_ref()) {
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
    if let Some(volume) = &worker.volume {
        if let Some(name) = &volume.name {
            errors.extend(volume_name(name, &path.child("volume.name")));
        }
        if !is_volume_size(&volume.size) {
            errors.push(Error::invalid(
                &path.child("volume.size"),
                volume.size.as_str(),
                "volume size must match the regex ^(\\d)+Gi$",
            ));
        }
    }
    if worker.volume.is_none() && !worker.data_volumes.is_empty() {
        errors.push(Error::required(
            &path.child("volume"),
            "a worker volume must be defined if data volumes are defined",
        ));
    }
    let mut seen = BTreeSet::new();
    for (i, volume) in worker.data_volumes.iter().enumerate() {
        let at = path.child("dataVolumes").index(i);
        errors.extend(volume_name(&volume.name, &at.child("name")));
        if !seen.insert(&volume.name) {
            errors.push(Error::duplicate(&at.child("name"), volume.name.as_str()));
        }
        if !is_volume_size(&volume.size) {
            errors.push(Error::invalid(
                &at.child("size"),
                volume.size.as_str(),
                "data volume size must match the regex ^(\\d)+Gi$",
            ));
        }
    }
    if let Some(name) = &worker.kubelet_data_volume_name
        && !worker.data_volumes.iter().any(|volume| volume.name == *name)
    {
        errors.push(Error::literal(
            &path.child("kubeletDataVolumeName"),
            go_json(name),
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
    ] {
        errors.extend(duration(value, &path.child(name)));
    }
    if let Some(retries) = settings.max_evict_retries {
        errors.extend(non_negative(retries, &path.child("maxEvictRetries")));
    }
    let in_place = path.child("inPlaceUpdateTimeout");
    if worker.is_in_place() {
        errors.extend(duration(settings.in_place_update_timeout, &in_place));
    } else {
        if settings.in_place_update_timeout.is_some() {
            errors.push(Error::forbidden(
                &in_place,
                "can only be set when the update strategy is `AutoInPlaceUpdate` or `ManualInPlaceUpdate`",
            ));
        }
        if settings.disable_health_timeout == Some(true) {
            errors.push(Error::forbidden(
                &path.child("disableHealthTimeout"),
                "can only be set to true when the update strategy is `AutoInPlaceUpdate` or `ManualInPlaceUpdate`",
            ));
        }
    }
    errors.extend(duration(
        settings.machine_preserve_timeout,
        &path.child("machinePreserveTimeout"),
    ));
    if let Some(preserved) = settings.auto_preserve_failed_machine_max {
        let why = if preserved < 0 {
            "must not be negative"
        } else if worker.allows_system_components() && worker.maximum > 0 && preserved > worker.maximum - 1 {
            "must not be greater than maximum-1 value when system components are allowed, need at least one machine to run system components"
        } else if preserved > worker.maximum {
            "must not be greater than maximum value"
        } else {
            return errors;
        };
        errors.push(Error::invalid(
            &path.child("autoPreserveFailedMachineMax"),
            preserved,
            why,
        ));
    }
    errors
}

/// A taint as Go prints it.
fn taint_as_go(taint: &Taint) -> String {
    let text = |value: &str| crate::validation::shown(&value);
    let mut members = vec![("key", text(&taint.key))];
    if let Some(value) = taint.value.as_deref().filter(|value| !value.is_empty()) {
        members.push(("value", text(value)));
    }
    members.push(("effect", text(&taint.effect)));
    if let Some(added) = &taint.time_added {
        members.push(("timeAdded", crate::validation::shown(added)));
    }
    go_struct(&members)
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
                // the expression stands there as Go quotes it
                "sysctl key must must match regex \"^(?:(?:[a-zA-Z0-9-][a-zA-Z0-9_/-]*|\\\\*)\\\\.)*[a-zA-Z0-9_/-]*[a-zA-Z0-9]$\"",
            ));
        }
        if key.len() > SYSCTL_MAX {
            errors.push(Error::too_long(&at, SYSCTL_MAX));
        }
        for part in key.split('.').filter(|part| part.len() > 255) {
            errors.push(Error::invalid(&at, part, "sub key of sysctl must not exceed 255 bytes"));
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
    let active = || {
        let workers = workers.iter().enumerate();
        workers.filter(|(_, worker)| worker.maximum != 0 && worker.allows_system_components())
    };
    let zones = |worker: &Worker| worker.zones.iter().cloned().collect::<BTreeSet<String>>();
    let enough = |worker: &Worker| usize::try_from(worker.maximum).is_ok_and(|maximum| maximum >= worker.zones.len());
    // of pools with the same zones one has to be large enough; the last of them is told
    let mut sets: Vec<BTreeSet<String>> = Vec::new();
    for (_, worker) in active() {
        let set = zones(worker);
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    for set in sets {
        let pools = || active().filter(|(_, worker)| zones(worker) == set);
        if !pools().any(|(_, worker)| enough(worker))
            && let Some((i, _)) = pools().next_back()
        {
            errors.push(Error::forbidden(
                &path.index(i).child("maximum"),
                "maximum node count should be greater than or equal to the number of zones specified for this pool",
            ));
        }
    }
    if active().next().is_none() {
        errors.push(Error::forbidden(
            path,
            "at least one active (workers[i].maximum > 0) worker pool with systemComponents.allow=true needed",
        ));
    }
    let with_control_plane = || workers.iter().filter(|worker| worker.control_plane.is_some());
    if with_control_plane().next().is_some() {
        let own: BTreeSet<&String> = with_control_plane().flat_map(|worker| &worker.zones).collect();
        for (i, worker) in workers.iter().enumerate() {
            if worker.control_plane.is_none()
                && worker.allows_system_components()
                && worker.zones.iter().any(|zone| !own.contains(zone))
            {
                errors.push(Error::literal(
                    &path.index(i).child("systemComponents"),
                    "{\"Allow\":true}",
                    "workers that enable systemComponents must use a subset of the zones of control plane worker",
                ));
            }
        }
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
