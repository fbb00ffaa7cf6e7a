//! Defaults of shoots, [DEF-1] – [DEF-33]; and the canonical forms of [GAPI-38], [GAPI-40], [GAPI-41].

use std::cmp::max;

use k8s_openapi::api::autoscaling::v1::CrossVersionObjectReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::*;
use crate::constants::{DEFAULT_SCHEDULER_NAME, GARDEN_NAMESPACE, label, seed_taint};
use crate::versions;

/// Sets a field that is not set.
fn default<T>(field: &mut Option<T>, value: T) {
    field.get_or_insert(value);
}

const fn seconds(n: i64) -> Duration {
    Duration::from_secs(n)
}

const fn minutes(n: i64) -> Duration {
    seconds(n * 60)
}

const fn hours(n: i64) -> Duration {
    minutes(n * 60)
}

/// Fills in what the user left out. `chance` decides the hour of a missing maintenance time window.
pub fn default_shoot(shoot: &mut Shoot, chance: u64) {
    let in_garden = shoot.project_namespace() == GARDEN_NAMESPACE;
    let spec = &mut shoot.spec;
    let has_workers = !spec.is_workerless();
    default(&mut spec.purpose, "evaluation".to_owned());
    let protected = Toleration {
        key: seed_taint::PROTECTED.into(),
        value: None,
    };
    if in_garden && !spec.tolerations.contains(&protected) {
        spec.tolerations.push(protected);
    }
    default(&mut spec.scheduler_name, DEFAULT_SCHEDULER_NAME.to_owned());
    let networking = spec.networking.get_or_insert_default();
    if networking.ip_families.is_empty() {
        networking.ip_families.push("IPv4".into());
    }
    default_kube_api_server(spec.kubernetes.kube_api_server.get_or_insert_default(), has_workers);

    if has_workers {
        default_node_components(spec);
    }
    if let Some(autoscaler) = &mut spec.kubernetes.cluster_autoscaler {
        autoscaler.complete();
    }
    if let Some(autoscaler) = &mut spec.kubernetes.vertical_pod_autoscaler {
        default_vertical_pod_autoscaler(autoscaler);
    }
    default_maintenance(spec.maintenance.get_or_insert_default(), has_workers, chance);
    if has_workers {
        let autoscaling = spec
            .system_components
            .get_or_insert_default()
            .core_dns
            .get_or_insert_default()
            .autoscaling
            .get_or_insert_default();
        if !matches!(autoscaling.mode.as_str(), "horizontal" | "cluster-proportional") {
            autoscaling.mode = "horizontal".into();
        }
        default(
            &mut spec.provider.workers_settings.get_or_insert_default().ssh_access,
            SSHAccess { enabled: true },
        );
    }
    if let Some(addons) = &mut spec.addons {
        if let Some(dashboard) = addons
            .kubernetes_dashboard
            .as_mut()
            .filter(|dashboard| dashboard.enabled)
        {
            default(&mut dashboard.authentication_mode, "token".to_owned());
        }
        if let Some(ingress) = &mut addons.nginx_ingress {
            default(&mut ingress.external_traffic_policy, "Cluster".to_owned());
        }
    }
    let provider_type = spec.provider.r#type.clone();
    for worker in &mut spec.provider.workers {
        default_worker(worker, &provider_type);
    }
    // a version that is still to be found may be a later one
    if !spec.kubernetes_version().is_empty() {
        sync_dns_secrets(spec);
    }
}

/// [GAPI-40]: the reference is the leading form of the cloud profile's name. `old`: what the shoot was before an update.
pub fn sync_cloud_profile(shoot: &mut Shoot, old: Option<&Shoot>) {
    if shoot.metadata.deletion_timestamp.is_some() {
        return;
    }
    let version = shoot.spec.kubernetes_version().to_owned();
    let spec = &mut shoot.spec;
    let is_at_least = |minor| versions::at_least(&version, minor);
    let given = spec.cloud_profile_name.clone();
    if spec.cloud_profile.is_none() && !is_at_least(34) {
        spec.cloud_profile = given.clone().map(|name| CloudProfileReference {
            kind: String::new(),
            name,
        });
    }
    let Some(reference) = &mut spec.cloud_profile else {
        return;
    };
    if reference.kind.is_empty() {
        reference.kind = "CloudProfile".into();
    }
    let is_profile = reference.kind == "CloudProfile";
    let is_same = given.as_ref() == Some(&reference.name);
    if is_at_least(34) {
        let was = old.and_then(|old| old.spec.cloud_profile_name.clone());
        let is_kept = old.is_some() && is_profile && is_same && was.unwrap_or_default() == reference.name;
        spec.cloud_profile_name = given.filter(|_| !is_kept);
    } else if !is_profile {
        spec.cloud_profile_name = None;
    } else if !is_at_least(33) || given.is_some_and(|name| !name.is_empty()) {
        spec.cloud_profile_name = Some(reference.name.clone());
    }
}

/// [GAPI-41]: the two ways to name a DNS provider's Secret mirror each other below 1.35.
pub fn sync_dns_secrets(spec: &mut ShootSpec) {
    if versions::at_least(spec.kubernetes_version(), 35) {
        return;
    }
    for provider in spec.dns.iter_mut().flat_map(|dns| dns.providers.iter_mut()) {
        match (&provider.secret_name, &provider.credentials_ref) {
            (Some(name), None) => {
                provider.credentials_ref = Some(CrossVersionObjectReference {
                    api_version: Some("v1".into()),
                    kind: "Secret".into(),
                    name: name.clone(),
                });
            }
            (None, Some(reference)) if reference.kind == "Secret" && reference.api_version.as_deref() == Some("v1") => {
                provider.secret_name = Some(reference.name.clone());
            }
            _ => {}
        }
    }
}

fn default_kube_api_server(config: &mut KubeAPIServerConfig, has_workers: bool) {
    let requests = config.requests.get_or_insert_default();
    default(&mut requests.max_non_mutating_inflight, 400);
    default(&mut requests.max_mutating_inflight, 200);
    default(&mut config.event_ttl, hours(1));
    default(&mut config.logging.get_or_insert_default().verbosity, 2);
    if has_workers {
        default(&mut config.default_not_ready_toleration_seconds, 300);
        default(&mut config.default_unreachable_toleration_seconds, 300);
    }
    default(
        &mut config.encryption_config.get_or_insert_default().provider.r#type,
        "aescbc".to_owned(),
    );
}

/// The defaults of what only shoots with nodes have, [DEF-10] – [DEF-17].
fn default_node_components(spec: &mut ShootSpec) {
    let max_pods = spec.max_pods();
    let families = spec.ip_families();
    let is_single = |family: &str| matches!(families.as_slice(), [only] if *only == family);
    let is_dual = families.contains(&"IPv4") && families.contains(&"IPv6");
    let (is_four, is_six) = (is_single("IPv4"), is_single("IPv6"));
    let controller_manager = spec.kubernetes.kube_controller_manager.get_or_insert_default();
    if is_four || is_dual {
        default(&mut controller_manager.node_cidr_mask_size, mask_for(max_pods));
        if is_dual {
            default(&mut controller_manager.node_cidr_mask_size_i_pv6, 64);
        }
    } else if is_six && controller_manager.node_cidr_mask_size_i_pv6.is_none() {
        default(&mut controller_manager.node_cidr_mask_size, 64);
    }
    default(&mut controller_manager.node_monitor_grace_period, seconds(40));
    default(
        &mut spec.kubernetes.kube_scheduler.get_or_insert_default().profile,
        "balanced".to_owned(),
    );
    let proxy = spec.kubernetes.kube_proxy.get_or_insert_default();
    default(&mut proxy.mode, "IPTables".to_owned());
    default(&mut proxy.enabled, true);
    let kubelet = spec.kubernetes.kubelet.get_or_insert_default();
    default_kubelet_swap(kubelet);
    default(&mut kubelet.image_minimum_gc_age, minutes(2));
    default(&mut kubelet.image_maximum_gc_age, seconds(0));
    default(&mut kubelet.image_gc_high_threshold_percent, 50);
    default(&mut kubelet.image_gc_low_threshold_percent, 40);
    let parallel = kubelet.max_parallel_image_pulls.unwrap_or_default() >= 2;
    default(&mut kubelet.serialize_image_pulls, !parallel);
}

/// [DEF-16], [DEF-17]: `failSwapOn` and, where swap is on, how it is used.
fn default_kubelet_swap(kubelet: &mut KubeletConfig) {
    default(&mut kubelet.fail_swap_on, true);
    if kubelet.feature_gates.get("NodeSwap") == Some(&true) && kubelet.fail_swap_on == Some(false) {
        default(
            &mut kubelet.memory_swap.get_or_insert_default().swap_behavior,
            "LimitedSwap".to_owned(),
        );
    }
}

/// The mask that leaves each node twice its pods in addresses, [DEF-10].
fn mask_for(max_pods: i32) -> i32 {
    let addresses = match u64::try_from(max_pods) {
        Ok(pods) if pods > 0 => pods.saturating_mul(2),
        // what Go makes of the logarithm of such a number; it is refused
        _ => return 32i32.wrapping_sub(i32::MIN),
    };
    let bits = i32::try_from(addresses.next_power_of_two().trailing_zeros()).unwrap_or(32);
    32 - bits
}

impl ShootSpec {
    /// The most pods that a node of any pool may run, [DEF-10].
    pub fn max_pods(&self) -> i32 {
        let general = self
            .kubernetes
            .kubelet
            .as_ref()
            .and_then(|kubelet| kubelet.max_pods)
            .unwrap_or(110);
        self.provider
            .workers
            .iter()
            .filter_map(|worker| worker.kubernetes.as_ref()?.kubelet.as_ref()?.max_pods)
            .fold(general, max)
    }
}

impl ClusterAutoscaler {
    /// Completes what is not told, [DEF-32].
    pub fn complete(&mut self) {
        let config = self;
        default(&mut config.scale_down_delay_after_add, hours(1));
        default(&mut config.scale_down_delay_after_delete, seconds(0));
        default(&mut config.scale_down_delay_after_failure, minutes(3));
        default(&mut config.scale_down_unneeded_time, minutes(30));
        default(&mut config.scale_down_utilization_threshold, 0.5);
        default(&mut config.scan_interval, seconds(10));
        default(&mut config.expander, "least-waste".to_owned());
        default(&mut config.max_node_provision_time, minutes(20));
        default(&mut config.max_graceful_termination_seconds, 600);
        default(&mut config.ignore_daemonsets_utilization, false);
        default(&mut config.emit_per_node_group_metrics, false);
        default(&mut config.verbosity, 2);
        default(&mut config.new_pod_scale_up_delay, seconds(0));
        default(
            &mut config.max_scale_down_parallelism,
            config.max_empty_bulk_delete.unwrap_or(10),
        );
        default(&mut config.max_drain_parallelism, 1);
        default(&mut config.initial_node_group_backoff_duration, minutes(5));
        default(&mut config.max_node_group_backoff_duration, minutes(30));
        default(&mut config.node_group_backoff_reset_timeout, hours(3));
        default(&mut config.max_binpacking_time, minutes(5));
    }
}

/// [DEF-33].
fn default_vertical_pod_autoscaler(config: &mut VerticalPodAutoscaler) {
    default(&mut config.evict_after_oom_threshold, minutes(10));
    default(&mut config.eviction_rate_burst, 1);
    default(&mut config.eviction_rate_limit, -1.0);
    default(&mut config.eviction_tolerance, 0.5);
    default(&mut config.recommendation_margin_fraction, 0.15);
    default(&mut config.updater_interval, minutes(1));
    default(&mut config.recommender_interval, minutes(1));
    default(&mut config.target_cpu_percentile, 0.9);
    default(&mut config.recommendation_lower_bound_cpu_percentile, 0.5);
    default(&mut config.recommendation_upper_bound_cpu_percentile, 0.95);
    default(&mut config.target_memory_percentile, 0.9);
    default(&mut config.recommendation_lower_bound_memory_percentile, 0.5);
    default(&mut config.recommendation_upper_bound_memory_percentile, 0.95);
    default(&mut config.cpu_histogram_decay_half_life, hours(24));
    default(&mut config.memory_histogram_decay_half_life, hours(24));
    default(&mut config.memory_aggregation_interval, hours(24));
    default(&mut config.memory_aggregation_interval_count, 8);
    default(&mut config.recommender_update_worker_count, 10);
}

/// [DEF-18] – [DEF-20].
fn default_maintenance(maintenance: &mut Maintenance, has_workers: bool, chance: u64) {
    let update = maintenance.auto_update.get_or_insert(MaintenanceAutoUpdate {
        kubernetes_version: true,
        machine_image_version: None,
    });
    if has_workers {
        default(&mut update.machine_image_version, true);
    }
    maintenance.time_window.get_or_insert_with(|| {
        let hour = chance % 23;
        MaintenanceTimeWindow {
            begin: format!("{hour:02}0000+0000"),
            end: format!("{:02}0000+0000", hour + 1),
        }
    });
    if let Some(credentials) = maintenance
        .auto_rotation
        .as_mut()
        .and_then(|rotation| rotation.credentials.as_mut())
    {
        for config in [
            &mut credentials.etcd_encryption_key,
            &mut credentials.observability,
            &mut credentials.ssh_keypair,
        ]
        .into_iter()
        .flatten()
        {
            default(&mut config.rotation_period, hours(168));
        }
    }
}

/// [DEF-25] – [DEF-31].
fn default_worker(worker: &mut Worker, provider_type: &str) {
    let cri = || CRI {
        name: "containerd".into(),
        ..CRI::default()
    };
    worker.cri.get_or_insert_with(cri);
    // upstream's own form of a shoot has no difference between an image without a version and one with an empty one
    if let Some(image) = &mut worker.machine.image {
        image.version.get_or_insert_default();
    }
    default(&mut worker.update_strategy, "AutoRollingUpdate".to_owned());
    match worker.strategy() {
        "AutoInPlaceUpdate" => {
            default(&mut worker.max_surge, IntOrString::Int(0));
            default(&mut worker.max_unavailable, IntOrString::Int(1));
        }
        "ManualInPlaceUpdate" => {}
        _ => {
            default(&mut worker.max_surge, IntOrString::Int(1));
            default(&mut worker.max_unavailable, IntOrString::Int(0));
        }
    }
    default(&mut worker.system_components, WorkerSystemComponents { allow: true });
    if worker.is_in_place() {
        default(
            &mut worker
                .machine_controller_manager
                .get_or_insert_default()
                .disable_health_timeout,
            true,
        );
    }
    if let Some(kubelet) = worker
        .kubernetes
        .as_mut()
        .and_then(|kubernetes| kubernetes.kubelet.as_mut())
    {
        default_kubelet_swap(kubelet);
    }
    if let Some(exposure) = worker
        .control_plane
        .as_mut()
        .and_then(|control_plane| control_plane.exposure.as_mut())
        .and_then(|exposure| exposure.extension.as_mut())
    {
        default(&mut exposure.r#type, provider_type.to_owned());
    }
}

/// The form in which a shoot is stored, [GAPI-38]: after validation.
pub fn canonicalize_shoot(shoot: &mut Shoot) {
    let workers = shoot.spec.provider.workers.iter_mut();
    let of_pools = workers.filter_map(|worker| worker.kubernetes.as_mut()?.kubelet.as_mut());
    for kubelet in of_pools.chain(&mut shoot.spec.kubernetes.kubelet) {
        kubelet
            .preloaded_images_verification_allowlist
            .take_if(|list| list.is_empty());
    }
    if let Some(autoscaler) = &mut shoot.spec.kubernetes.cluster_autoscaler {
        autoscaler.max_empty_bulk_delete = None;
    }
    if let Some(config) = &mut shoot.spec.kubernetes.kube_api_server
        && config.enable_anonymous_authentication == Some(false)
    {
        config.enable_anonymous_authentication = None;
    }
    let empty_addons = shoot.spec.addons.as_ref().is_some_and(|addons| {
        addons.nginx_ingress.is_none()
            && addons
                .kubernetes_dashboard
                .as_ref()
                .is_some_and(|dashboard| !dashboard.enabled)
    });
    if empty_addons {
        shoot.spec.addons = None;
    }
    let seeds = [shoot.spec.seed_name.as_deref(), shoot.status.seed_name.as_deref()];
    maintain_seed_labels(&mut shoot.metadata, &seeds);
    let self_hosted = shoot.spec.is_self_hosted();
    let labels = shoot.metadata.labels.get_or_insert_default();
    if self_hosted {
        labels.insert(label::SHOOT_SELF_HOSTED.into(), "true".into());
    }
    if labels.is_empty() {
        shoot.metadata.labels = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shoot(value: serde_json::Value) -> Shoot {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn def_10_masks_are_for_stacks_that_are_known() {
        let masks = |families: serde_json::Value, max_pods: i32| {
            let spec = serde_json::json!({"provider": {"workers": [{"name": "w"}]}, "networking": {"ipFamilies": families},
                "kubernetes": {"kubelet": {"maxPods": max_pods}}});
            let mut shoot: Shoot =
                serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}, "spec": spec})).unwrap();
            default_shoot(&mut shoot, 0);
            let manager = shoot.spec.kubernetes.kube_controller_manager.unwrap();
            (manager.node_cidr_mask_size, manager.node_cidr_mask_size_i_pv6)
        };
        let json = |families: &[&str]| serde_json::json!(families);
        assert_eq!(masks(json(&["IPv4"]), 110), (Some(24), None));
        assert_eq!(masks(json(&["IPv6"]), 110), (Some(64), None));
        assert_eq!(masks(json(&["IPv6", "IPv4"]), 110), (Some(24), Some(64)));
        assert_eq!(masks(json(&["IPv6", "IPv6"]), 110), (None, None));
        assert_eq!(masks(json(&["IPv4", "other"]), 110), (None, None));
        // as Go computes it
        assert_eq!(masks(json(&["IPv4"]), 0), (Some(-2_147_483_616), None));
    }

    #[test]
    fn def_10_mask_follows_the_most_pods() {
        for (pods, mask) in [(110, 24), (60, 25), (64, 25), (65, 24), (250, 23), (1, 31)] {
            assert_eq!(mask_for(pods), mask, "{pods}");
        }
    }

    /// DEF-19, UPD-42: no window spans midnight.
    #[test]
    fn def_19_window_is_a_full_hour_by_chance() {
        for (chance, begin, end) in [
            (0, "000000+0000", "010000+0000"),
            (22, "220000+0000", "230000+0000"),
            (23, "000000+0000", "010000+0000"),
        ] {
            let mut one = shoot(serde_json::json!({"metadata": {"name": "a"}, "spec": {}}));
            default_shoot(&mut one, chance);
            let window = one.spec.maintenance.unwrap().time_window.unwrap();
            assert_eq!((window.begin.as_str(), window.end.as_str()), (begin, end), "{chance}");
        }
    }

    #[test]
    fn gapi_40_reference_and_name() {
        let name = |version: &str, name: Option<&str>, reference: Option<(&str, &str)>| {
            let mut one = Shoot::default();
            one.spec.kubernetes.version = Some(version.into());
            one.spec.cloud_profile_name = name.map(Into::into);
            one.spec.cloud_profile = reference.map(|(kind, name)| CloudProfileReference {
                kind: kind.into(),
                name: name.into(),
            });
            sync_cloud_profile(&mut one, None);
            (
                one.spec.cloud_profile_name,
                one.spec.cloud_profile.map(|r| format!("{}/{}", r.kind, r.name)),
            )
        };
        assert_eq!(
            name("1.32.0", Some("a"), None),
            (Some("a".into()), Some("CloudProfile/a".into()))
        );
        assert_eq!(
            name("1.32.0", None, Some(("", "b"))),
            (Some("b".into()), Some("CloudProfile/b".into()))
        );
        assert_eq!(
            name("1.33.0", None, Some(("", "b"))),
            (None, Some("CloudProfile/b".into()))
        );
        assert_eq!(
            name("1.33.0", Some("a"), Some(("NamespacedCloudProfile", "b"))),
            (None, Some("NamespacedCloudProfile/b".into()))
        );
        assert_eq!(name("1.34.0", Some("a"), None), (Some("a".into()), None));
    }

    #[test]
    fn def_27_surge_by_strategy() {
        for (strategy, surge, unavailable) in [
            ("AutoRollingUpdate", Some(1), Some(0)),
            ("AutoInPlaceUpdate", Some(0), Some(1)),
            ("ManualInPlaceUpdate", None, None),
        ] {
            let mut worker = Worker {
                update_strategy: Some(strategy.into()),
                ..Worker::default()
            };
            default_worker(&mut worker, "local");
            assert_eq!(worker.max_surge, surge.map(IntOrString::Int), "{strategy}");
            assert_eq!(worker.max_unavailable, unavailable.map(IntOrString::Int), "{strategy}");
        }
    }

    #[test]
    fn gapi_38_seed_labels() {
        let mut one = shoot(
            serde_json::json!({"metadata": {"name": "a", "labels": {"name.seed.gardener.cloud/old": "true", "x": "y"}}, "spec": {"seedName": "s"}}),
        );
        canonicalize_shoot(&mut one);
        let labels: Vec<(String, String)> = one.metadata.labels.unwrap().into_iter().collect();
        assert_eq!(
            labels,
            [
                ("name.seed.gardener.cloud/s".to_owned(), "true".to_owned()),
                ("x".to_owned(), "y".to_owned())
            ]
        );
    }
}
