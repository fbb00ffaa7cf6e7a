//! The control plane's components, [VAL-K1] – [VAL-K29].

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::link::Link;
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
use crate::validation::{NEGATIVE, invalid_each, non_negative, non_negative_quantity, shown};
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
    if let Some(config) = &kubernetes.kube_controller_manager {
        let path = path.child("kubeControllerManager");
        if spec.is_workerless() {
            errors.extend(workerless::kube_controller_manager(config, &path));
        } else {
            errors.extend(kube_controller_manager(config, spec, &path));
        }
        errors.extend(feature_gates(
            &config.feature_gates,
            version,
            &path.child("featureGates"),
        ));
    }
    if spec.is_workerless() {
        errors.extend(workerless::kubernetes(spec, path));
        return errors;
    }
    if let Some(config) = &kubernetes.kube_scheduler {
        let path = path.child("kubeScheduler");
        if let Some(profile) = &config.profile
            && !matches!(profile.as_str(), "balanced" | "bin-packing")
        {
            errors.push(Error::not_supported(
                &path.child("profile"),
                profile.as_str(),
                &["balanced", "bin-packing"],
            ));
        }
        if let Some(volumes) = &config.kube_max_pd_vols {
            errors.extend(max_volumes(volumes, version, &path.child("kubeMaxPDVols")));
        }
        errors.extend(feature_gates(
            &config.feature_gates,
            version,
            &path.child("featureGates"),
        ));
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
                    "NFTables mode cannot be used when feature gate NFTablesProxyMode is explicitly set to false",
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

/// The number of volumes that kube-scheduler counts with.
fn max_volumes(text: &str, version: &str, path: &Path) -> Option<Error> {
    use std::num::IntErrorKind;
    if versions::at_least(version, 35) {
        let why = "for Kubernetes version >= 1.35, kubeMaxPDVols field is no longer supported";
        return Some(Error::forbidden(path, why));
    }
    let why = match text.parse::<i64>() {
        Ok(number) if number < 1 => "must be positive".to_owned(),
        Ok(_) => return None,
        Err(error) => {
            let why = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            format!("conversion error: strconv.Atoi: parsing {}: {why}", go_quote(text))
        }
    };
    Some(Error::invalid(path, text, why))
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
        }
        if let Some((_, bound)) = least.iter().find(|(name, _)| name == resource)
            && let (Ok(amount), Ok(least)) = (quantity.0.parse::<Amount>(), bound.parse::<Amount>())
            && amount < least
        {
            errors.push(Error::invalid(
                &at,
                quantity.0.as_str(),
                format!("value must be bigger than >= {bound}"),
            ));
        }
        errors.extend(non_negative_quantity(quantity, &at));
    }
    errors
}

fn kube_api_server(config: &KubeAPIServerConfig, spec: &ShootSpec, path: &Path) -> ErrorList {
    let version = spec.kubernetes_version();
    let mut errors = ErrorList::new();
    if config.enable_anonymous_authentication.is_some() && versions::at_least(version, 35) {
        errors.push(Error::forbidden(
            &path.child("enableAnonymousAuthentication"),
            "for Kubernetes versions >= 1.35, enableAnonymousAuthentication field is no longer supported",
        ));
    }
    errors.extend(admission_plugins(
        &config.admission_plugins,
        version,
        &path.child("admissionPlugins"),
    ));
    errors.extend(runtime_config(
        &config.runtime_config,
        version,
        spec.is_workerless(),
        &path.child("runtimeConfig"),
    ));
    let policy = config
        .audit_config
        .as_ref()
        .and_then(|audit| audit.audit_policy.as_ref());
    if let Some(reference) = policy.and_then(|policy| policy.config_map_ref.as_ref()) {
        let at = path.child("auditConfig.auditPolicy.configMapRef");
        match reference.name.as_deref().unwrap_or_default() {
            "" => errors.push(Error::required(&at.child("name"), "must provide a name")),
            name => errors.extend(invalid_each(&at.child("name"), name, names::dns_subdomain(name))),
        }
        if let Some(namespace) = reference.namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
            errors.extend(invalid_each(
                &at.child("namespace"),
                namespace,
                names::dns_label(namespace),
            ));
        }
    }
    errors.extend(structured(config, path));
    errors.extend(watch_cache(config, version, &path.child("watchCacheSizes")));
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
    errors.extend(encryption(config, spec, &path.child("encryptionConfig")));
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
    errors.extend(service_accounts(config, &path.child("serviceAccountConfig")));
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
    errors.extend(min_allowed(
        config.autoscaling.as_ref(),
        &[("cpu", "20m"), ("memory", "200M")],
        &path.child("autoscaling"),
    ));
    errors.extend(feature_gates(
        &config.feature_gates,
        version,
        &path.child("featureGates"),
    ));
    let at = path.child("apiAudiences");
    let mut seen = BTreeSet::new();
    for (i, audience) in config.api_audiences.iter().enumerate() {
        if !seen.insert(audience) {
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
        } else if lifetime.as_nanos() > 0 && lifetime < Duration::from_secs(720 * 3600) {
            errors.push(Error::forbidden(&at, "must be at least 720h (30d)"));
        } else if lifetime > Duration::from_secs(2160 * 3600) {
            errors.push(Error::forbidden(&at, "must be at most 2160h (90d)"));
        }
    }
    if let Some(url) = &config.issuer {
        errors.extend(issuer(url, &path.child("issuer")));
    }
    let at = path.child("acceptedIssuers");
    let mut seen = BTreeSet::new();
    for (i, url) in config.accepted_issuers.iter().enumerate() {
        let at = at.index(i);
        errors.extend(issuer(url, &at));
        if config.issuer.as_ref() == Some(url) {
            errors.push(Error::invalid(
                &at,
                url.as_str(),
                format!("acceptedIssuers cannot contains the issuer field value: {url}"),
            ));
        } else if !seen.insert(url) {
            errors.push(Error::duplicate(&at, url.as_str()));
        }
    }
    errors
}

/// [VAL-K9].
fn issuer(url: &str, path: &Path) -> ErrorList {
    let link = Link::parse(url).ok();
    let is = |which: fn(&Link) -> bool| link.as_ref().is_some_and(which);
    let found = [
        (
            !is(|link| !link.host().is_empty()),
            "must be a valid URL and have https scheme",
        ),
        (is(|link| !link.fragment().is_empty()), "must not contain a fragment"),
        (
            is(|link| link.user().is_some()),
            "must not contain a username or password",
        ),
        (is(|link| !link.query().is_empty()), "must not contain a query"),
        (is(|link| link.scheme() != "https"), "must have https scheme"),
    ];
    let found = found.into_iter().filter(|(is_wrong, _)| *is_wrong);
    found.map(|(_, why)| Error::invalid(path, url, why)).collect()
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
        if authorization.kubeconfigs.is_empty() && !authorization.config_map_name.is_empty() {
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
        let at = path.child("default");
        if versions::at_least(version, 35) {
            errors.push(Error::forbidden(
                &at,
                "for Kubernetes versions >= 1.35, configuring the default watch cache size is no longer supported",
            ));
        } else {
            errors.extend(non_negative(default, &at));
        }
    }
    let name = |text: &str, refused: &str, at: &Path| {
        let mut errors = ErrorList::new();
        if text.to_lowercase() != text {
            errors.push(Error::invalid(at, text, "must be lower case"));
        }
        if text.contains(|c| refused.contains(c)) {
            errors.push(Error::invalid(
                at,
                text,
                format!("must not contain any of the following characters: {refused:?}"),
            ));
        }
        errors
    };
    for (i, size) in sizes.resources.iter().enumerate() {
        let at = path.child("resources").index(i);
        if size.resource.is_empty() {
            errors.push(Error::required(&at.child("resource"), "must not be empty"));
        } else {
            errors.extend(name(&size.resource, ",. #", &at.child("resource")));
        }
        if let Some(group) = &size.api_group {
            errors.extend(name(group, ", #", &at.child("apiGroup")));
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
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (i, resource) in encryption.resources.iter().enumerate() {
        let at = at.index(i);
        let invalid = |detail: &str| Error::invalid(&at, resource.as_str(), detail);
        let (name, group) = resource.split_once('.').unwrap_or((resource, ""));
        if resource.to_lowercase() != *resource {
            errors.push(invalid("resource must be lower case"));
        }
        if matches!(
            resource.as_str(),
            "apiserveripinfo" | "serviceipallocations" | "servicenodeportallocations"
        ) {
            errors.push(invalid("resources which do not have REST API/s cannot be encrypted"));
        }
        if resource.ends_with('.') {
            errors.push(invalid("resource should not end with '.'"));
        }
        if resource.contains('*') {
            errors.push(invalid("wildcards are not supported"));
        }
        if group == "events.k8s.io" {
            errors.push(invalid(
                "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead",
            ));
        }
        if group == "extensions" {
            errors.push(invalid(
                "'extensions' group has been removed and cannot be used for encryption",
            ));
        }
        if seen.contains(&(name, group)) {
            errors.push(Error::duplicate(&at, resource.as_str()));
        }
        if (name, group) == ("secrets", "") {
            errors.push(Error::forbidden(
                &at,
                format!("{} are always encrypted", go_quote(resource)),
            ));
        }
        seen.push((name, group));
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

/// Whether a shoot has addresses of one family only, and which.
fn single_stack(spec: &ShootSpec) -> Option<&str> {
    let networking = spec.networking.as_ref()?;
    match networking.ip_families.as_slice() {
        [] => Some("IPv4"),
        [only] => Some(only.as_str()),
        _ => None,
    }
}

/// [VAL-K21] – [VAL-K25].
fn kube_controller_manager(config: &KubeControllerManagerConfig, spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let version = spec.kubernetes_version();
    if spec.networking.is_some() {
        errors.extend(masks(config, single_stack(spec), path));
    }
    if let Some(timeout) = config.pod_eviction_timeout {
        let at = path.child("podEvictionTimeout");
        if versions::at_least(version, 33) {
            errors.push(Error::forbidden(
                &at,
                "for Kubernetes versions >= 1.33, podEvictionTimeout field is no longer supported",
            ));
        } else if timeout.as_nanos() <= 0 {
            errors.push(Error::literal(
                &at,
                timeout.as_nanos().to_string(),
                "podEvictionTimeout must be larger than 0",
            ));
        }
    }
    if let Some(period) = config.node_monitor_grace_period
        && period.as_nanos() <= 0
    {
        errors.push(Error::literal(
            &path.child("nodeMonitorGracePeriod"),
            period.as_nanos().to_string(),
            "nodeMonitorGracePeriod must be larger than 0",
        ));
    }
    if let Some(autoscaler) = &config.horizontal_pod_autoscaler {
        let path = path.child("horizontalPodAutoscaler");
        let short = |name: &str, value: Option<Duration>, what: &str| {
            let value = value.filter(|value| *value < Duration::from_secs(1))?;
            let why = format!("{what} must not be less than a second");
            Some(Error::invalid(&path.child(name), value.to_string(), why))
        };
        errors.extend(short("syncPeriod", autoscaler.sync_period, "syncPeriod"));
        if let Some(tolerance) = autoscaler.tolerance
            && tolerance <= 0.0
        {
            errors.push(Error::invalid(
                &path.child("tolerance"),
                tolerance,
                "tolerance of must be greater than 0",
            ));
        }
        errors.extend(short(
            "downscaleStabilization",
            autoscaler.downscale_stabilization,
            "downScale stabilization",
        ));
        if let Some(delay) = autoscaler.initial_readiness_delay
            && delay.as_nanos() <= 0
        {
            errors.push(Error::invalid(
                &path.child("initialReadinessDelay"),
                delay.to_string(),
                "initial readiness delay must be greater than 0",
            ));
        }
        errors.extend(short(
            "cpuInitializationPeriod",
            autoscaler.cpu_initialization_period,
            "cpu initialization period",
        ));
    }
    errors
}

/// The sizes of the nodes' ranges, [VAL-K21], [VAL-K22].
fn masks(config: &KubeControllerManagerConfig, only: Option<&str>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("nodeCIDRMaskSize");
    let at_six = path.child("nodeCIDRMaskSizeIPv6");
    let (mask, mask_six) = (config.node_cidr_mask_size, config.node_cidr_mask_size_i_pv6);
    if mask.is_some() && mask_six.is_some() && only == Some("IPv6") {
        errors.push(Error::forbidden(
            &at,
            "only one of nodeCIDRMaskSize or nodeCIDRMaskSizeIPv6 can be set for single-stack clusters",
        ));
    }
    if let Some(mask) = mask {
        let why = match only {
            Some("IPv6") if !(64..=124).contains(&mask) => {
                Some("nodeCIDRMaskSize must be between 64 and 124 for IPv6 single-stack clusters")
            }
            Some("IPv4") if !(16..=28).contains(&mask) => Some("nodeCIDRMaskSize must be between 16 and 28"),
            _ => None,
        };
        errors.extend(why.map(|why| Error::invalid(&at, mask, why)));
    }
    if let Some(mask) = mask_six {
        if only == Some("IPv4") {
            errors.push(Error::forbidden(
                &at_six,
                "nodeCIDRMaskSizeIPv6 cannot be set for IPv4 single-stack clusters",
            ));
        } else if !(64..=124).contains(&mask) {
            errors.push(Error::invalid(
                &at_six,
                mask,
                "nodeCIDRMaskSizeIPv6 must be between 64 and 124",
            ));
        }
    }
    errors
}

/// Every node's range has an address for each pod that the kubelets take, [VAL-K23].
pub(super) fn mask_fits_pods(spec: &ShootSpec) -> Option<Error> {
    let mask = spec.kubernetes.kube_controller_manager.as_ref()?.node_cidr_mask_size?;
    spec.networking.as_ref()?;
    let (bits, default) = match single_stack(spec) {
        Some("IPv6") => (128, 64),
        _ => (32, 24),
    };
    let own = spec.kubernetes.kubelet.iter();
    let pools = spec.provider.workers.iter();
    let pools = pools.filter_map(|worker| worker.kubernetes.as_ref()?.kubelet.as_ref());
    let kubelets = own.chain(pools).filter(|_| !spec.is_workerless());
    let most = kubelets
        .filter_map(|kubelet| kubelet.max_pods)
        .max()
        .unwrap_or(0)
        .max(0);
    let most = if most == 0 { 110 } else { most };
    // as with upstream, whose numbers run over here
    let free: i64 = match i32::wrapping_sub(bits, mask) {
        // more than any number of pods
        62.. => return None,
        free => 1i64.checked_shl(u32::try_from(free).unwrap_or(0)).unwrap_or(1) - 2,
    };
    (free < i64::from(most)).then(|| {
        Error::invalid(
            &Path::new("spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize"),
            mask,
            format!(
                "kubelet or kube-controller-manager configuration incorrect. Please adjust the nodeCIDRMaskSize to support the highest maxPod on any worker pool. The nodeCIDRMaskSize of {mask} (default: {default}) only supports {free} IP addresses. The highest maxPod setting is {most} (default: 110). Please choose a nodeCIDRMaskSize that at least supports {most} IP addresses"
            ),
        )
    })
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
    let lasts = |name: &str, value| duration(value, &path.child(name));
    let counts = |name: &str, value: Option<i32>| {
        let found = value.map(|value| non_negative(value, &path.child(name)));
        found.into_iter().flatten()
    };
    let mut errors = lasts("scaleDownDelayAfterAdd", config.scale_down_delay_after_add);
    errors.extend(lasts("scaleDownDelayAfterDelete", config.scale_down_delay_after_delete));
    errors.extend(lasts(
        "scaleDownDelayAfterFailure",
        config.scale_down_delay_after_failure,
    ));
    errors.extend(lasts("scaleDownUnneededTime", config.scale_down_unneeded_time));
    errors.extend(threshold(
        config.scale_down_utilization_threshold,
        &path.child("scaleDownUtilizationThreshold"),
    ));
    errors.extend(lasts("scanInterval", config.scan_interval));
    errors.extend(expanders(config, &path.child("expander")));
    errors.extend(lasts("maxNodeProvisionTime", config.max_node_provision_time));
    errors.extend(counts(
        "maxGracefulTerminationSeconds",
        config.max_graceful_termination_seconds,
    ));
    errors.extend(autoscaler_taints(&config.startup_taints, &path.child("startupTaints")));
    errors.extend(autoscaler_taints(&config.status_taints, &path.child("statusTaints")));
    if config.ignore_taints.is_some() && versions::at_least(version, 32) {
        errors.push(Error::forbidden(
            &path.child("ignoreTaints.IgnoreTaints"),
            format!("not supported in Kubernetes version {version}"),
        ));
    }
    let ignored = config.ignore_taints.as_deref().unwrap_or_default();
    errors.extend(autoscaler_taints(ignored, &path.child("ignoreTaints")));
    errors.extend(lasts("newPodScaleUpDelay", config.new_pod_scale_up_delay));
    errors.extend(bulk_delete(config, version, path));
    errors.extend(counts("maxDrainParallelism", config.max_drain_parallelism));
    errors.extend(counts("verbosity", config.verbosity));
    errors.extend(lasts(
        "initialNodeGroupBackoffDuration",
        config.initial_node_group_backoff_duration,
    ));
    errors.extend(lasts(
        "maxNodeGroupBackoffDuration",
        config.max_node_group_backoff_duration,
    ));
    errors.extend(lasts(
        "nodeGroupBackoffResetTimeout",
        config.node_group_backoff_reset_timeout,
    ));
    errors.extend(lasts("maxBinpackingTime", config.max_binpacking_time));
    errors.extend(min_allowed(
        config.autoscaling.as_ref(),
        &[("cpu", "10m"), ("memory", "30M")],
        &path.child("autoscaling"),
    ));
    errors
}

/// The cluster autoscaler's expanders, a list with commas; each that it does not have makes a finding of the whole.
fn expanders(config: &ClusterAutoscaler, path: &Path) -> ErrorList {
    const EXPANDERS: [&str; 5] = ["least-nodes", "least-waste", "most-pods", "priority", "random"];
    let Some(whole) = config.expander.as_deref() else {
        return ErrorList::new();
    };
    let unknown = whole.split(',').filter(|part| !EXPANDERS.contains(part));
    unknown.map(|_| Error::not_supported(path, whole, &EXPANDERS)).collect()
}

/// How many empty nodes the cluster autoscaler removes at once: by its old name and its new one.
fn bulk_delete(config: &ClusterAutoscaler, version: &str, path: &Path) -> ErrorList {
    let (old, new) = (path.child("maxEmptyBulkDelete"), path.child("maxScaleDownParallelism"));
    let mut errors = ErrorList::new();
    if let Some(bulk) = config.max_empty_bulk_delete {
        if versions::at_least(version, 33) {
            errors.push(Error::forbidden(
                &old,
                "for Kubernetes versions >= 1.33, maxEmptyBulkDelete field is no longer supported, use maxScaleDownParallelism instead",
            ));
        }
        if bulk < 0 {
            errors.push(Error::invalid(&old, bulk, "can not be negative"));
        }
    }
    if let Some(parallelism) = config.max_scale_down_parallelism {
        errors.extend(non_negative(parallelism, &new));
        if let Some(bulk) = config.max_empty_bulk_delete.filter(|bulk| *bulk != parallelism) {
            let why = format!("must equal maxScaleDownParallelism {parallelism}");
            errors.push(Error::invalid(&old, bulk, why));
        }
    }
    errors
}

/// Keys of taints that the cluster autoscaler treats in its own way.
fn autoscaler_taints(keys: &[String], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, key) in keys.iter().enumerate() {
        let at = path.index(i);
        errors.extend(invalid_each(&at, key, names::qualified_name(key)));
        if key == TAINT_CRITICAL_COMPONENTS_NOT_READY {
            errors.push(Error::forbidden(&at, "taint key is reserved by gardener"));
        }
        if !seen.insert(key) {
            errors.push(Error::duplicate(&at, key.as_str()));
        }
    }
    errors
}

/// [VAL-K29].
fn vertical_pod_autoscaler(config: &VerticalPodAutoscaler, path: &Path) -> ErrorList {
    let durations = |list: &[(&str, Option<Duration>)]| -> ErrorList {
        let found = list.iter().map(|(name, value)| duration(*value, &path.child(name)));
        found.flatten().collect()
    };
    let shares = |list: &[(&str, Option<f64>)], is_one: fn(&f64) -> bool, why: &str| -> ErrorList {
        let wrong = list
            .iter()
            .filter_map(|(name, value)| Some((name, value.filter(|value| !is_one(value))?)));
        wrong
            .map(|(name, value)| Error::invalid(&path.child(name), value, why))
            .collect()
    };
    let mut errors = durations(&[("evictAfterOOMThreshold", config.evict_after_oom_threshold)]);
    if let Some(burst) = config.eviction_rate_burst
        && burst < 0
    {
        errors.push(Error::invalid(
            &path.child("evictionRateBurst"),
            burst,
            "must be non-negative",
        ));
    }
    errors.extend(shares(
        &[
            ("evictionTolerance", config.eviction_tolerance),
            ("recommendationMarginFraction", config.recommendation_margin_fraction),
        ],
        |value| (0.0..1.0).contains(value),
        "fraction value must be in the range [0, 1)",
    ));
    errors.extend(durations(&[
        ("updaterInterval", config.updater_interval),
        ("recommenderInterval", config.recommender_interval),
    ]));
    errors.extend(shares(
        &[
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
        ],
        |value| (0.0..=1.0).contains(value),
        "percentile value must be in the range [0, 1]",
    ));
    errors.extend(durations(&[
        ("cpuHistogramDecayHalfLife", config.cpu_histogram_decay_half_life),
        ("memoryHistogramDecayHalfLife", config.memory_histogram_decay_half_life),
        ("memoryAggregationInterval", config.memory_aggregation_interval),
    ]));
    if let Some(count) = config.memory_aggregation_interval_count {
        errors.extend(non_negative(count, &path.child("memoryAggregationIntervalCount")));
    }
    errors.extend(vpa_feature_gates(&config.feature_gates, &path.child("featureGates")));
    errors.extend(vpa_max_allowed(&config.max_allowed, &path.child("maxAllowed")));
    if let Some(count) = config.recommender_update_worker_count.filter(|count| *count <= 0) {
        let at = path.child("recommenderUpdateWorkerCount");
        errors.push(Error::invalid(&at, count, "must be greater than 0"));
    }
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
        }
        if quantity.0.parse::<Amount>().map_or(true, Amount::is_negative) {
            errors.push(Error::invalid(&at, shown(quantity), NEGATIVE));
        }
    }
    errors
}

/// The gates of the vertical pod autoscaler; also for seeds, [VAL-SD12].
pub(crate) fn vpa_feature_gates(gates: &BTreeMap<String, bool>, path: &Path) -> ErrorList {
    let is_unknown = |gate: &&String| !matches!(gate.as_str(), "CPUStartupBoost" | "InPlace" | "PerVPAConfig");
    // upstream tells one of them
    let unknown = gates.keys().find(is_unknown).into_iter();
    unknown
        .map(|gate| Error::invalid(&path.child(gate), gate.as_str(), "unknown feature gate"))
        .collect()
}
