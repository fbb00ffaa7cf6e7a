//! The control plane's components, [VAL-K1] – [VAL-K29].

use std::collections::BTreeMap;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use gardener_apimachinery::quantity::Amount;

use super::super::{
    ClusterAutoscaler, ControlPlaneAutoscaling, KubeAPIServerConfig, KubeControllerManagerConfig, ShootSpec,
    VerticalPodAutoscaler,
};
use super::kubernetes_features::{admission_plugins, feature_gates, runtime_config};
use super::{kubelet, workerless};
use crate::Duration;
use crate::constants::TAINT_CRITICAL_COMPONENTS_NOT_READY;
use crate::validation::{NEGATIVE, invalid_each, non_negative, shown};
use crate::versions;

/// `spec.kubernetes`.
pub(super) fn validate_kubernetes(spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let kubernetes = &spec.kubernetes;
    let version = spec.kubernetes_version();
    if version.is_empty() {
        errors.push(Error::required(
            &path.child("version"),
            "kubernetes version must not be empty",
        ));
        return errors;
    }
    if let Some(etcd) = &kubernetes.etcd {
        for (name, config, memory) in [("main", &etcd.main, "300M"), ("events", &etcd.events, "60M")] {
            let autoscaling = config.as_ref().and_then(|config| config.autoscaling.as_ref());
            errors.extend(min_allowed(
                autoscaling,
                &[("memory", memory)],
                &path.child("etcd").child(name).child("autoscaling"),
            ));
        }
    }
    if let Some(config) = &kubernetes.kube_api_server {
        errors.extend(kube_api_server(config, spec, &path.child("kubeAPIServer")));
    }
    if spec.is_workerless() {
        errors.extend(workerless::kubernetes(spec, path));
        return errors;
    }
    if let Some(config) = &kubernetes.kube_controller_manager {
        errors.extend(kube_controller_manager(
            config,
            spec,
            &path.child("kubeControllerManager"),
        ));
    }
    if let Some(config) = &kubernetes.kube_scheduler {
        let path = path.child("kubeScheduler");
        if let Some(volumes) = &config.kube_max_pd_vols {
            let at = path.child("kubeMaxPDVols");
            if versions::at_least(version, 35) {
                errors.push(Error::forbidden(
                    &at,
                    "for Kubernetes versions >= 1.35, kubeMaxPDVols field is no longer supported",
                ));
            } else if volumes.parse::<i64>().is_ok_and(|number| number <= 0) {
                errors.push(Error::invalid(&at, volumes.as_str(), "must be positive"));
            } else if volumes.parse::<i64>().is_err() {
                errors.push(Error::invalid(&at, volumes.as_str(), "must be a number"));
            }
        }
        errors.extend(feature_gates(
            &config.feature_gates,
            version,
            &path.child("featureGates"),
        ));
        if let Some(profile) = &config.profile
            && !matches!(profile.as_str(), "balanced" | "bin-packing")
        {
            errors.push(Error::not_supported(
                &path.child("profile"),
                profile.as_str(),
                &["balanced", "bin-packing"],
            ));
        }
    }
    if let Some(config) = &kubernetes.kube_proxy {
        let path = path.child("kubeProxy");
        let at = path.child("mode");
        match config.mode.as_deref() {
            None => errors.push(Error::required(
                &at,
                "must be set when .spec.kubernetes.kubeProxy is set",
            )),
            Some("NFTables") if config.feature_gates.get("NFTablesProxyMode") == Some(&false) => {
                errors.push(Error::invalid(
                    &at,
                    "NFTables",
                    "kube-proxy mode NFTables requires the feature gate NFTablesProxyMode to be enabled",
                ));
            }
            Some("IPTables" | "IPVS" | "NFTables") => {}
            Some(mode) => errors.push(Error::not_supported(&at, mode, &["IPTables", "IPVS", "NFTables"])),
        }
        errors.extend(feature_gates(
            &config.feature_gates,
            version,
            &path.child("featureGates"),
        ));
    }
    if let Some(config) = &kubernetes.kubelet {
        errors.extend(kubelet::validate_kubelet(config, version, &path.child("kubelet")));
    }
    if let Some(config) = &kubernetes.cluster_autoscaler {
        errors.extend(cluster_autoscaler(config, version, &path.child("clusterAutoscaler")));
    }
    if let Some(config) = &kubernetes.vertical_pod_autoscaler {
        errors.extend(vertical_pod_autoscaler(config, &path.child("verticalPodAutoscaler")));
    }
    errors
}

/// [VAL-K2].
fn min_allowed(config: Option<&ControlPlaneAutoscaling>, least: &[(&str, &str)], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(config) = config else { return errors };
    let path = path.child("minAllowed");
    if config.min_allowed.is_empty() {
        errors.push(Error::required(&path, "must provide minAllowed"));
    }
    for (resource, quantity) in &config.min_allowed {
        let at = path.child(resource);
        if !matches!(resource.as_str(), "cpu" | "memory") {
            errors.push(Error::not_supported(&at, resource.as_str(), &["cpu", "memory"]));
            continue;
        }
        let bound = least
            .iter()
            .find(|(name, _)| name == resource)
            .map_or("0", |(_, bound)| bound);
        let fits = match (quantity.0.parse::<Amount>(), bound.parse::<Amount>()) {
            (Ok(amount), Ok(bound)) => amount >= bound,
            _ => false,
        };
        if !fits {
            errors.push(Error::invalid(
                &at,
                quantity.0.as_str(),
                format!("value must be bigger than >= {bound}"),
            ));
        }
    }
    errors
}

fn kube_api_server(config: &KubeAPIServerConfig, spec: &ShootSpec, path: &Path) -> ErrorList {
    let version = spec.kubernetes_version();
    let mut errors = min_allowed(
        config.autoscaling.as_ref(),
        &[("cpu", "20m"), ("memory", "200M")],
        &path.child("autoscaling"),
    );
    if config.enable_anonymous_authentication.is_some() && versions::at_least(version, 35) {
        errors.push(Error::forbidden(
            &path.child("enableAnonymousAuthentication"),
            "for Kubernetes versions >= 1.35, enableAnonymousAuthentication field is no longer supported",
        ));
    }
    if let Some(requests) = &config.requests {
        for (name, value, most) in [
            ("maxNonMutatingInflight", requests.max_non_mutating_inflight, 5000),
            ("maxMutatingInflight", requests.max_mutating_inflight, 2500),
        ] {
            let Some(value) = value else { continue };
            let at = path.child("requests").child(name);
            errors.extend(non_negative(value, &at));
            if value > most {
                errors.push(Error::invalid(&at, value, format!("cannot set higher than {most}")));
            }
        }
    }
    if let Some(logging) = &config.logging {
        for (name, value) in [
            ("verbosity", logging.verbosity),
            ("httpAccessVerbosity", logging.http_access_verbosity),
        ] {
            if let Some(value) = value {
                errors.extend(non_negative(value, &path.child("logging").child(name)));
            }
        }
    }
    for (name, value) in [
        (
            "defaultNotReadyTolerationSeconds",
            config.default_not_ready_toleration_seconds,
        ),
        (
            "defaultUnreachableTolerationSeconds",
            config.default_unreachable_toleration_seconds,
        ),
    ] {
        if let Some(value) = value {
            errors.extend(non_negative(value, &path.child(name)));
        }
    }
    if let Some(ttl) = config.event_ttl {
        let at = path.child("eventTTL");
        if ttl.as_nanos() < 0 {
            errors.push(Error::invalid(&at, ttl.to_string(), "can not be negative"));
        } else if ttl > Duration::from_secs(24 * 3600) {
            errors.push(Error::invalid(&at, ttl.to_string(), "can not be longer than 24h"));
        }
    }
    if let Some(least) = &config.tls_min_version
        && !matches!(least.as_str(), "VersionTLS12" | "VersionTLS13")
    {
        errors.push(Error::not_supported(
            &path.child("tlsMinVersion"),
            least.as_str(),
            &["VersionTLS12", "VersionTLS13"],
        ));
    }
    errors.extend(service_accounts(config, &path.child("serviceAccountConfig")));
    let at = path.child("apiAudiences");
    for (i, audience) in config.api_audiences.iter().enumerate() {
        if config.api_audiences.iter().take(i).any(|earlier| earlier == audience) {
            errors.push(Error::duplicate(&at.index(i), audience.as_str()));
        }
        if audience.contains(',') {
            errors.push(Error::invalid(
                &at.index(i),
                audience.as_str(),
                "audience must not contain commas",
            ));
        }
    }
    errors.extend(runtime_config(
        &config.runtime_config,
        version,
        spec.is_workerless(),
        &path.child("runtimeConfig"),
    ));
    errors.extend(admission_plugins(
        &config.admission_plugins,
        version,
        &path.child("admissionPlugins"),
    ));
    errors.extend(feature_gates(
        &config.feature_gates,
        version,
        &path.child("featureGates"),
    ));
    errors.extend(structured(config, path));
    if let Some(reference) = config
        .audit_config
        .as_ref()
        .and_then(|audit| audit.audit_policy.as_ref())
        .and_then(|policy| policy.config_map_ref.as_ref())
    {
        let at = path.child("auditConfig.auditPolicy.configMapRef.name");
        match reference.name.as_deref().unwrap_or_default() {
            "" => errors.push(Error::required(&at, "must provide a name")),
            name => errors.extend(invalid_each(&at, name, names::dns_subdomain(name))),
        }
    }
    errors.extend(watch_cache(config, version, &path.child("watchCacheSizes")));
    errors.extend(encryption(config, spec, &path.child("encryptionConfig")));
    errors
}

/// [VAL-K8] – [VAL-K10].
fn service_accounts(config: &KubeAPIServerConfig, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(config) = &config.service_account_config else {
        return errors;
    };
    if let Some(lifetime) = config.max_token_expiration {
        let at = path.child("maxTokenExpiration");
        if lifetime.as_nanos() < 0 {
            errors.push(Error::invalid(&at, lifetime.to_string(), "can not be negative"));
        } else if lifetime < Duration::from_secs(720 * 3600) {
            errors.push(Error::forbidden(&at, "must be at least 720h (30d)"));
        } else if lifetime > Duration::from_secs(2160 * 3600) {
            errors.push(Error::forbidden(&at, "must be at most 2160h (90d)"));
        }
    }
    if let Some(url) = &config.issuer {
        errors.extend(issuer(url, &path.child("issuer")));
    }
    let at = path.child("acceptedIssuers");
    for (i, url) in config.accepted_issuers.iter().enumerate() {
        let at = at.index(i);
        if config.issuer.as_ref() == Some(url) {
            errors.push(Error::invalid(
                &at,
                url.as_str(),
                "acceptedIssuers cannot contains the issuer field value",
            ));
        } else if config.accepted_issuers.iter().take(i).any(|earlier| earlier == url) {
            errors.push(Error::duplicate(&at, url.as_str()));
        }
        errors.extend(issuer(url, &at));
    }
    errors
}

/// [VAL-K9].
fn issuer(url: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let invalid = |detail: &str| Error::invalid(path, url, detail);
    let Some(rest) = url.strip_prefix("https://") else {
        errors.push(invalid("must be a valid URL and have https scheme"));
        return errors;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || url.contains(char::is_whitespace) {
        errors.push(invalid("must be a valid URL and have https scheme"));
        return errors;
    }
    if rest.contains('#') {
        errors.push(invalid("must not contain a fragment"));
    }
    if authority.contains('@') {
        errors.push(invalid("must not contain a username or password"));
    }
    if rest.contains('?') {
        errors.push(invalid("must not contain a query"));
    }
    errors
}

/// [VAL-K15], [VAL-K16].
fn structured(config: &KubeAPIServerConfig, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let check = |errors: &mut ErrorList, name: &str, gate: &str, config_map: &str| {
        let at = path.child(name);
        if config.feature_gates.get(gate) == Some(&false) {
            errors.push(Error::forbidden(
                &at,
                format!("requires feature gate {gate} to be enabled"),
            ));
        }
        if config_map.is_empty() {
            errors.push(Error::forbidden(&at.child("configMapName"), "must provide a name"));
        }
    };
    if let Some(authentication) = &config.structured_authentication {
        check(
            &mut errors,
            "structuredAuthentication",
            "StructuredAuthenticationConfiguration",
            &authentication.config_map_name,
        );
    }
    if let Some(authorization) = &config.structured_authorization {
        check(
            &mut errors,
            "structuredAuthorization",
            "StructuredAuthorizationConfiguration",
            &authorization.config_map_name,
        );
        if authorization.kubeconfigs.is_empty() {
            errors.push(Error::required(
                &path.child("structuredAuthorization.kubeconfigs"),
                "must provide kubeconfig secret references if an authorization config is configured",
            ));
        }
    }
    errors
}

/// [VAL-K18].
fn watch_cache(config: &KubeAPIServerConfig, version: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(sizes) = &config.watch_cache_sizes else {
        return errors;
    };
    if let Some(default) = sizes.default {
        if versions::at_least(version, 35) {
            errors.push(Error::forbidden(
                &path.child("default"),
                "for Kubernetes versions >= 1.35, default field is no longer supported",
            ));
        }
        errors.extend(non_negative(default, &path.child("default")));
    }
    let name = |text: &str, at: &Path| {
        let mut errors = ErrorList::new();
        if text.chars().any(char::is_uppercase) {
            errors.push(Error::invalid(at, text, "must be lower case"));
        }
        if text.contains([',', '#']) {
            errors.push(Error::invalid(
                at,
                text,
                "must not contain any of the following characters: [,#]",
            ));
        }
        errors
    };
    for (i, size) in sizes.resources.iter().enumerate() {
        let at = path.child("resources").index(i);
        if let Some(group) = &size.api_group {
            errors.extend(name(group, &at.child("apiGroup")));
        }
        if size.resource.is_empty() {
            errors.push(Error::required(&at.child("resource"), "must not be empty"));
        } else {
            errors.extend(name(&size.resource, &at.child("resource")));
        }
        errors.extend(non_negative(size.size, &at.child("size")));
    }
    errors
}

/// [VAL-K19], [VAL-K20].
fn encryption(config: &KubeAPIServerConfig, spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(encryption) = &config.encryption_config else {
        return errors;
    };
    let at = path.child("resources");
    let mut seen: Vec<String> = Vec::new();
    for (i, resource) in encryption.resources.iter().enumerate() {
        let at = at.index(i);
        let invalid = |detail: &str| Error::invalid(&at, resource.as_str(), detail);
        if resource.chars().any(char::is_uppercase) {
            errors.push(invalid("resource must be lower case"));
        }
        if matches!(resource.as_str(), "secrets" | "secrets.") {
            errors.push(Error::forbidden(&at, "\"secrets\" are always encrypted"));
            continue;
        }
        if resource.contains('*') {
            errors.push(invalid(if resource.ends_with(".events.k8s.io") {
                "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead"
            } else {
                "wildcards are not supported"
            }));
        }
        if resource.ends_with(".extensions") {
            errors.push(invalid("'extensions' group has been removed"));
        }
        if resource.ends_with(".events.k8s.io") && !resource.contains('*') {
            errors.push(invalid(
                "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead",
            ));
        }
        if resource == "apiserveripinfo"
            || resource == "serviceipallocations"
            || resource == "servicenodeportallocations"
        {
            errors.push(invalid("resources which do not have REST API/s cannot be encrypted"));
        }
        if resource.ends_with('.') {
            errors.push(invalid("resource should not end with '.'"));
        }
        let bare = resource.strip_suffix('.').unwrap_or(resource).to_owned();
        if seen.contains(&bare) {
            errors.push(Error::duplicate(&at, resource.as_str()));
        }
        seen.push(bare);
    }
    if let Some(kind) = &encryption.provider.r#type {
        const PROVIDERS: [&str; 3] = ["aescbc", "aesgcm", "secretbox"];
        let at = path.child("provider.type");
        if !PROVIDERS.contains(&kind.as_str()) {
            errors.push(Error::not_supported(&at, kind.as_str(), &PROVIDERS));
        }
        let rotates = spec
            .maintenance
            .as_ref()
            .and_then(|maintenance| maintenance.auto_rotation.as_ref())
            .and_then(|rotation| rotation.credentials.as_ref())
            .and_then(|credentials| credentials.etcd_encryption_key.as_ref())
            .and_then(|config| config.rotation_period)
            .is_some_and(|period| period.as_nanos() != 0);
        if kind == "aesgcm" && !rotates {
            errors.push(Error::forbidden(
                &at,
                "etcdEncryptionKey auto rotation must be enabled when encryption at rest provider is AES-GCM",
            ));
        }
    }
    errors
}

/// [VAL-K21] – [VAL-K25].
fn kube_controller_manager(config: &KubeControllerManagerConfig, spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let version = spec.kubernetes_version();
    let families = spec.ip_families();
    let (four, six) = (families.contains(&"IPv4"), families.contains(&"IPv6"));
    let mask_path = path.child("nodeCIDRMaskSize");
    let mask6_path = path.child("nodeCIDRMaskSizeIPv6");
    if let Some(mask) = config.node_cidr_mask_size {
        if four && !(16..=28).contains(&mask) {
            errors.push(Error::invalid(
                &mask_path,
                mask,
                "nodeCIDRMaskSize must be between 16 and 28",
            ));
        } else if !four && six && !(64..=124).contains(&mask) {
            errors.push(Error::invalid(
                &mask_path,
                mask,
                "nodeCIDRMaskSize must be between 64 and 124 for IPv6 single-stack clusters",
            ));
        }
    }
    if let Some(mask) = config.node_cidr_mask_size_i_pv6 {
        if four && !six {
            errors.push(Error::forbidden(
                &mask6_path,
                "nodeCIDRMaskSizeIPv6 cannot be set for IPv4 single-stack clusters",
            ));
        } else if !(64..=124).contains(&mask) {
            errors.push(Error::invalid(
                &mask6_path,
                mask,
                "nodeCIDRMaskSizeIPv6 must be between 64 and 124",
            ));
        }
        if !(four && six) && config.node_cidr_mask_size.is_some() {
            errors.push(Error::forbidden(
                &mask_path,
                "only one of nodeCIDRMaskSize or nodeCIDRMaskSizeIPv6 can be set for single-stack clusters",
            ));
        }
    }
    if let Some(mask) = config.node_cidr_mask_size {
        let bits = if four { 32 } else { 128 };
        let free = u32::try_from(bits - mask)
            .ok()
            .and_then(|free| 1i64.checked_shl(free.min(62)))
            .unwrap_or(0);
        if free - 2 < i64::from(spec.max_pods()) {
            errors.push(Error::invalid(
                &mask_path,
                mask,
                "kubelet or kube-controller-manager configuration incorrect. Please adjust the nodeCIDRMaskSize to support the highest maxPod on any worker pool",
            ));
        }
    }
    if let Some(timeout) = config.pod_eviction_timeout {
        let at = path.child("podEvictionTimeout");
        if versions::at_least(version, 33) {
            errors.push(Error::forbidden(
                &at,
                "for Kubernetes versions >= 1.33, podEvictionTimeout field is no longer supported",
            ));
        }
        if timeout.as_nanos() <= 0 {
            errors.push(Error::invalid(&at, timeout.to_string(), "must be larger than 0"));
        }
    }
    if let Some(period) = config.node_monitor_grace_period
        && period.as_nanos() <= 0
    {
        errors.push(Error::invalid(
            &path.child("nodeMonitorGracePeriod"),
            period.to_string(),
            "must be larger than 0",
        ));
    }
    if let Some(autoscaler) = &config.horizontal_pod_autoscaler {
        let path = path.child("horizontalPodAutoscaler");
        for (name, value) in [
            ("syncPeriod", autoscaler.sync_period),
            ("downscaleStabilization", autoscaler.downscale_stabilization),
            ("cpuInitializationPeriod", autoscaler.cpu_initialization_period),
        ] {
            if let Some(value) = value
                && value < Duration::from_secs(1)
            {
                errors.push(Error::invalid(
                    &path.child(name),
                    value.to_string(),
                    "must not be less than a second",
                ));
            }
        }
        if let Some(tolerance) = autoscaler.tolerance
            && tolerance <= 0.0
        {
            errors.push(Error::invalid(
                &path.child("tolerance"),
                tolerance,
                "must be greater than 0",
            ));
        }
        if let Some(delay) = autoscaler.initial_readiness_delay
            && delay.as_nanos() <= 0
        {
            errors.push(Error::invalid(
                &path.child("initialReadinessDelay"),
                delay.to_string(),
                "must be greater than 0",
            ));
        }
    }
    errors.extend(feature_gates(
        &config.feature_gates,
        version,
        &path.child("featureGates"),
    ));
    errors
}

fn duration(value: Option<Duration>, path: &Path) -> ErrorList {
    match value {
        Some(value) if value.as_nanos() < 0 => vec![Error::invalid(path, value.to_string(), "must be non-negative")],
        _ => ErrorList::new(),
    }
}

/// A share of utilization between 0 and 1, [VAL-K28].
pub(super) fn threshold(value: Option<f64>, path: &Path) -> ErrorList {
    match value {
        Some(value) if value < 0.0 => vec![Error::invalid(path, value, "can not be negative")],
        Some(value) if value > 1.0 => vec![Error::invalid(path, value, "can not be greater than 1.0")],
        _ => ErrorList::new(),
    }
}

/// [VAL-K28].
fn cluster_autoscaler(config: &ClusterAutoscaler, version: &str, path: &Path) -> ErrorList {
    let mut errors = threshold(
        config.scale_down_utilization_threshold,
        &path.child("scaleDownUtilizationThreshold"),
    );
    for (name, value) in [
        ("scaleDownDelayAfterAdd", config.scale_down_delay_after_add),
        ("scaleDownDelayAfterDelete", config.scale_down_delay_after_delete),
        ("scaleDownDelayAfterFailure", config.scale_down_delay_after_failure),
        ("scaleDownUnneededTime", config.scale_down_unneeded_time),
        ("scanInterval", config.scan_interval),
        ("maxNodeProvisionTime", config.max_node_provision_time),
        ("newPodScaleUpDelay", config.new_pod_scale_up_delay),
        (
            "initialNodeGroupBackoffDuration",
            config.initial_node_group_backoff_duration,
        ),
        ("maxNodeGroupBackoffDuration", config.max_node_group_backoff_duration),
        ("nodeGroupBackoffResetTimeout", config.node_group_backoff_reset_timeout),
        ("maxBinpackingTime", config.max_binpacking_time),
    ] {
        errors.extend(duration(value, &path.child(name)));
    }
    for (name, value) in [
        ("maxGracefulTerminationSeconds", config.max_graceful_termination_seconds),
        ("maxScaleDownParallelism", config.max_scale_down_parallelism),
        ("maxDrainParallelism", config.max_drain_parallelism),
        ("verbosity", config.verbosity),
    ] {
        if let Some(value) = value {
            errors.extend(non_negative(value, &path.child(name)));
        }
    }
    if let Some(expander) = &config.expander {
        const EXPANDERS: [&str; 5] = ["least-nodes", "least-waste", "most-pods", "priority", "random"];
        for part in expander.split(',') {
            if !EXPANDERS.contains(&part) {
                errors.push(Error::not_supported(&path.child("expander"), part, &EXPANDERS));
            }
        }
    }
    if let Some(bulk) = config.max_empty_bulk_delete {
        let at = path.child("maxEmptyBulkDelete");
        if versions::at_least(version, 33) {
            errors.push(Error::forbidden(
                &at,
                "for Kubernetes versions >= 1.33, maxEmptyBulkDelete field is no longer supported, use maxScaleDownParallelism instead",
            ));
        } else {
            errors.extend(non_negative(bulk, &at));
            if config
                .max_scale_down_parallelism
                .is_some_and(|parallelism| parallelism != bulk)
            {
                errors.push(Error::invalid(&at, bulk, "must be equal to maxScaleDownParallelism"));
            }
        }
    }
    for (name, keys) in [
        ("startupTaints", &config.startup_taints),
        ("statusTaints", &config.status_taints),
    ] {
        let at = path.child(name);
        for (i, key) in keys.iter().enumerate() {
            let at = at.index(i);
            errors.extend(invalid_each(&at, key, names::qualified_name(key)));
            if key == TAINT_CRITICAL_COMPONENTS_NOT_READY {
                errors.push(Error::forbidden(&at, "taint key is reserved by gardener"));
            }
            if keys.iter().take(i).any(|earlier| earlier == key) {
                errors.push(Error::duplicate(&at, key.as_str()));
            }
        }
    }
    if !config.ignore_taints.is_empty() && versions::at_least(version, 32) {
        errors.push(Error::forbidden(
            &path.child("ignoreTaints.IgnoreTaints"),
            format!("not supported in Kubernetes version {version}"),
        ));
    }
    errors.extend(min_allowed(
        config.autoscaling.as_ref(),
        &[("cpu", "10m"), ("memory", "30M")],
        &path.child("autoscaling"),
    ));
    errors
}

/// [VAL-K29].
fn vertical_pod_autoscaler(config: &VerticalPodAutoscaler, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, value) in [
        ("evictAfterOOMThreshold", config.evict_after_oom_threshold),
        ("updaterInterval", config.updater_interval),
        ("recommenderInterval", config.recommender_interval),
        ("cpuHistogramDecayHalfLife", config.cpu_histogram_decay_half_life),
        ("memoryHistogramDecayHalfLife", config.memory_histogram_decay_half_life),
        ("memoryAggregationInterval", config.memory_aggregation_interval),
    ] {
        errors.extend(duration(value, &path.child(name)));
    }
    if let Some(burst) = config.eviction_rate_burst
        && burst < 0
    {
        errors.push(Error::invalid(
            &path.child("evictionRateBurst"),
            burst,
            "must be non-negative",
        ));
    }
    for (name, value) in [
        ("evictionTolerance", config.eviction_tolerance),
        ("recommendationMarginFraction", config.recommendation_margin_fraction),
    ] {
        if let Some(value) = value
            && !(0.0..1.0).contains(&value)
        {
            errors.push(Error::invalid(
                &path.child(name),
                value,
                "fraction value must be in the range [0, 1)",
            ));
        }
    }
    for (name, value) in [
        ("targetCPUPercentile", config.target_cpu_percentile),
        (
            "recommendationLowerBoundCPUPercentile",
            config.recommendation_lower_bound_cpu_percentile,
        ),
        (
            "recommendationUpperBoundCPUPercentile",
            config.recommendation_upper_bound_cpu_percentile,
        ),
        ("targetMemoryPercentile", config.target_memory_percentile),
        (
            "recommendationLowerBoundMemoryPercentile",
            config.recommendation_lower_bound_memory_percentile,
        ),
        (
            "recommendationUpperBoundMemoryPercentile",
            config.recommendation_upper_bound_memory_percentile,
        ),
    ] {
        if let Some(value) = value
            && !(0.0..=1.0).contains(&value)
        {
            errors.push(Error::invalid(
                &path.child(name),
                value,
                "percentile value must be in the range [0, 1]",
            ));
        }
    }
    for (name, value) in [
        (
            "memoryAggregationIntervalCount",
            config.memory_aggregation_interval_count,
        ),
        ("recommenderUpdateWorkerCount", config.recommender_update_worker_count),
    ] {
        if let Some(value) = value
            && value <= 0
        {
            errors.push(Error::invalid(&path.child(name), value, "must be greater than 0"));
        }
    }
    errors.extend(vpa_max_allowed(&config.max_allowed, &path.child("maxAllowed")));
    errors.extend(vpa_feature_gates(&config.feature_gates, &path.child("featureGates")));
    errors
}

/// Upper bounds of recommendations; also for seeds, [VAL-SD12].
pub(crate) fn vpa_max_allowed(
    bounds: &BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (resource, quantity) in bounds {
        let at = path.child(resource);
        if !matches!(resource.as_str(), "cpu" | "memory") {
            errors.push(Error::not_supported(&at, resource.as_str(), &["cpu", "memory"]));
        } else if quantity.0.parse::<Amount>().map_or(true, Amount::is_negative) {
            errors.push(Error::invalid(&at, shown(quantity), NEGATIVE));
        }
    }
    errors
}

/// The gates of the vertical pod autoscaler; also for seeds, [VAL-SD12].
pub(crate) fn vpa_feature_gates(gates: &BTreeMap<String, bool>, path: &Path) -> ErrorList {
    gates
        .keys()
        .filter(|gate| !matches!(gate.as_str(), "CPUStartupBoost" | "InPlace" | "PerVPAConfig"))
        .map(|gate| Error::invalid(&path.child(gate), gate.as_str(), "unknown feature gate"))
        .collect()
}
