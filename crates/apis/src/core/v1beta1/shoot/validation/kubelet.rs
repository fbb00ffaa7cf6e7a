//! The kubelet's configuration of a shoot or of one pool, [VAL-L1] – [VAL-L11].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::quantity::Amount;

use super::super::{KubeletConfig, KubeletConfigEviction};
use super::image_patterns::wrong_pattern;
use super::kubernetes_features::feature_gates;
use crate::Duration;
use crate::validation::{non_negative, non_negative_quantity, percentage};
use crate::versions;

/// An amount, or whole percents of one.
fn text_quantity(value: &str, path: &Path) -> ErrorList {
    const WRONG: &str = "field must be either a valid resource quantity (e.g 200Mi) or a percentage (e.g '5%')";
    match percentage(value) {
        Some(0..=100) => return ErrorList::new(),
        Some(_) => {
            return vec![Error::invalid(
                path,
                value,
                "must not be greater than 100% and not smaller than 0%",
            )];
        }
        None => {}
    }
    match value.parse::<Amount>() {
        Ok(amount) if !amount.is_negative() => ErrorList::new(),
        _ => vec![Error::invalid(path, value, WRONG)],
    }
}

/// [VAL-L3]; upstream names the file system fields in lower case in its paths. It looks at the inodes of images twice and at those of nodes
/// never; what is written of the latter in a garden stays valid only if we do the same.
fn eviction(config: Option<&KubeletConfigEviction>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(config) = config else { return errors };
    for (name, value) in [
        ("memoryAvailable", &config.memory_available),
        ("imagefsAvailable", &config.image_fs_available),
        ("imagefsInodesFree", &config.image_fs_inodes_free),
        ("nodefsAvailable", &config.node_fs_available),
        ("imagefsInodesFree", &config.image_fs_inodes_free),
    ] {
        if let Some(value) = value {
            errors.extend(text_quantity(value, &path.child(name)));
        }
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

/// Checks a kubelet's configuration for nodes of a Kubernetes version.
pub(super) fn validate_kubelet(config: &KubeletConfig, version: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(policy) = &config.cpu_manager_policy
        && !matches!(policy.as_str(), "none" | "static")
    {
        errors.push(Error::not_supported(
            &path.child("cpuManagerPolicy"),
            policy.as_str(),
            &["none", "static"],
        ));
    }
    if let Some(pods) = config.max_pods {
        errors.extend(non_negative(pods, &path.child("maxPods")));
    }
    if let Some(limit) = config.pod_pids_limit
        && limit < 100
    {
        errors.push(Error::invalid(
            &path.child("podPIDsLimit"),
            limit,
            "podPIDsLimit value must be at least 100",
        ));
    }
    errors.extend(duration(
        config.eviction_pressure_transition_period,
        &path.child("evictionPressureTransitionPeriod"),
    ));
    if let Some(period) = config.eviction_max_pod_grace_period {
        errors.extend(non_negative(period, &path.child("evictionMaxPodGracePeriod")));
    }
    errors.extend(eviction(config.eviction_hard.as_ref(), &path.child("evictionHard")));
    errors.extend(eviction(config.eviction_soft.as_ref(), &path.child("evictionSoft")));
    if let Some(reclaim) = &config.eviction_minimum_reclaim {
        let at = path.child("evictionMinimumReclaim");
        for (name, value) in [
            ("memoryAvailable", &reclaim.memory_available),
            ("imagefsAvailable", &reclaim.image_fs_available),
            ("imagefsInodesFree", &reclaim.image_fs_inodes_free),
            ("nodefsAvailable", &reclaim.node_fs_available),
            ("imagefsInodesFree", &reclaim.image_fs_inodes_free),
        ] {
            if let Some(value) = value {
                errors.extend(non_negative_quantity(value, &at.child(name)));
            }
        }
    }
    if let Some(grace) = &config.eviction_soft_grace_period {
        let at = path.child("evictionSoftGracePeriod");
        for (name, value) in [
            ("memoryAvailable", grace.memory_available),
            ("imagefsAvailable", grace.image_fs_available),
            ("imagefsInodesFree", grace.image_fs_inodes_free),
            ("nodefsAvailable", grace.node_fs_available),
            ("imagefsInodesFree", grace.image_fs_inodes_free),
        ] {
            errors.extend(duration(value, &at.child(name)));
        }
    }
    if let Some(reserved) = &config.kube_reserved {
        let at = path.child("kubeReserved");
        for (name, value) in [
            ("cpu", &reserved.cpu),
            ("memory", &reserved.memory),
            ("ephemeralStorage", &reserved.ephemeral_storage),
            ("pid", &reserved.pid),
        ] {
            if let Some(value) = value {
                errors.extend(non_negative_quantity(value, &at.child(name)));
            }
        }
    }
    for (name, age) in [
        ("imageMinimumGCAge", config.image_minimum_gc_age),
        ("imageMaximumGCAge", config.image_maximum_gc_age),
    ] {
        if let Some(age) = age {
            errors.extend(non_negative(age.as_nanos() / 1_000_000_000, &path.child(name)));
        }
    }
    errors.extend(image_garbage(config, path));
    errors.extend(feature_gates(
        &config.feature_gates,
        version,
        &path.child("featureGates"),
    ));
    for (name, value) in [
        ("registryPullQPS", config.registry_pull_qps),
        ("registryBurst", config.registry_burst),
    ] {
        if let Some(value) = value {
            errors.extend(non_negative(value, &path.child(name)));
        }
    }
    if let Some(files) = config.container_log_max_files
        && files < 2
    {
        errors.push(Error::invalid(
            &path.child("containerLogMaxFiles"),
            files,
            "value must be >= 2.",
        ));
    }
    if let Some(size) = &config.container_log_max_size {
        errors.extend(non_negative_quantity(size, &path.child("containerLogMaxSize")));
    }
    if let Some(timeout) = config.streaming_connection_idle_timeout
        && !(30.0..=4.0 * 3600.0).contains(&timeout.as_secs_f64())
    {
        errors.push(Error::invalid(
            &path.child("streamingConnectionIdleTimeout"),
            timeout.to_string(),
            "value must be between 30s and 4h",
        ));
    }
    errors.extend(swap(config, &path.child("memorySwap")));
    if let Some(pulls) = config.max_parallel_image_pulls {
        let at = path.child("maxParallelImagePulls");
        if pulls < 1 {
            errors.push(Error::invalid(&at, pulls, "value must be >= 1"));
        } else if pulls > 1 && config.serialize_image_pulls == Some(true) {
            errors.push(Error::forbidden(
                &at,
                "maxParallelImagePulls cannot be larger than 1 when serializeImagePulls is set to true",
            ));
        }
    }
    errors.extend(verification(config, version, path));
    errors
}

/// [VAL-L6], [VAL-L7].
fn image_garbage(config: &KubeletConfig, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let low = path.child("imageGCLowThresholdPercent");
    for (at, value) in [
        (
            path.child("imageGCHighThresholdPercent"),
            config.image_gc_high_threshold_percent,
        ),
        (low.clone(), config.image_gc_low_threshold_percent),
    ] {
        if let Some(value) = value
            && !(0..=100).contains(&value)
        {
            errors.push(Error::invalid(&at, value, "value must be in [0,100]"));
        }
    }
    if let (Some(high), Some(value)) = (
        config.image_gc_high_threshold_percent,
        config.image_gc_low_threshold_percent,
    ) && value >= high
    {
        errors.push(Error::forbidden(
            &low,
            "imageGCLowThresholdPercent must be less than imageGCHighThresholdPercent",
        ));
    }
    errors
}

/// [VAL-L9].
fn swap(config: &KubeletConfig, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(swap) = &config.memory_swap else { return errors };
    if config.fail_swap_on == Some(true) {
        errors.push(Error::forbidden(
            path,
            "configuring swap behaviour is not available when the kubelet is configured with 'FailSwapOn=true'",
        ));
    }
    if swap.swap_behavior.is_some() && config.feature_gates.get("NodeSwap") != Some(&true) {
        errors.push(Error::forbidden(
            path,
            "configuring swap behaviour is not available when kubelet's 'NodeSwap' feature gate is not set",
        ));
    }
    if let Some(behavior) = &swap.swap_behavior
        && !matches!(behavior.as_str(), "NoSwap" | "LimitedSwap")
    {
        errors.push(Error::not_supported(
            &path.child("swapBehavior"),
            behavior.as_str(),
            &["NoSwap", "LimitedSwap"],
        ));
    }
    errors
}

/// [VAL-L11].
fn verification(config: &KubeletConfig, version: &str, path: &Path) -> ErrorList {
    const POLICIES: [&str; 4] = [
        "AlwaysVerify",
        "NeverVerify",
        "NeverVerifyAllowlistedImages",
        "NeverVerifyPreloadedImages",
    ];
    let mut errors = ErrorList::new();
    let policy = config.image_pull_credentials_verification_policy.as_deref();
    let at = path.child("imagePullCredentialsVerificationPolicy");
    if let Some(policy) = policy {
        if versions::before(version, 35) {
            errors.push(Error::forbidden(
                &at,
                "imagePullCredentialsVerificationPolicy is only available for Kubernetes versions >= 1.35",
            ));
        }
        if config.feature_gates.get("KubeletEnsureSecretPulledImages") == Some(&false) {
            errors.push(Error::forbidden(
                &at,
                "imagePullCredentialsVerificationPolicy may not be set when the KubeletEnsureSecretPulledImages feature gate is disabled",
            ));
        }
        if !POLICIES.contains(&policy) {
            errors.push(Error::not_supported(&at, policy, &POLICIES));
        }
    }
    let Some(allowed) = &config.preloaded_images_verification_allowlist else {
        return errors;
    };
    let at = path.child("preloadedImagesVerificationAllowlist");
    if policy != Some("NeverVerifyAllowlistedImages") {
        errors.push(Error::forbidden(
            &at,
            "preloadedImagesVerificationAllowlist may only be set when imagePullCredentialsVerificationPolicy is set to NeverVerifyAllowlistedImages",
        ));
        return errors;
    }
    for (i, pattern) in allowed.iter().enumerate() {
        let wrong = wrong_pattern(pattern);
        errors.extend(wrong.map(|why| Error::invalid(&at.index(i), pattern.as_str(), why)));
    }
    errors
}
