//! What a shoot without nodes must not set, [VAL-W1], [VAL-W2].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::super::{KubeControllerManagerConfig, ShootSpec};

/// What is said about each field.
pub(super) const NOT_SUPPORTED: &str = "this field should not be set for workerless Shoot clusters";

fn forbid(errors: &mut ErrorList, set: bool, path: &Path, name: &str) {
    if set {
        errors.push(Error::forbidden(&path.child(name), NOT_SUPPORTED));
    }
}

/// The bindings.
pub(super) fn bindings(spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    forbid(
        &mut errors,
        spec.secret_binding_name.is_some(),
        path,
        "secretBindingName",
    );
    forbid(
        &mut errors,
        spec.credentials_binding_name.is_some(),
        path,
        "credentialsBindingName",
    );
    errors
}

/// Below `spec.provider`.
pub(super) fn provider(spec: &ShootSpec, path: &Path) -> ErrorList {
    let provider = &spec.provider;
    let mut errors = ErrorList::new();
    forbid(
        &mut errors,
        provider.infrastructure_config.is_some(),
        path,
        "infrastructureConfig",
    );
    forbid(
        &mut errors,
        provider.control_plane_config.is_some(),
        path,
        "controlPlaneConfig",
    );
    forbid(
        &mut errors,
        provider.workers_settings.is_some(),
        path,
        "workersSettings",
    );
    errors
}

/// Below `spec.kubernetes`.
pub(super) fn kubernetes(spec: &ShootSpec, path: &Path) -> ErrorList {
    let kubernetes = &spec.kubernetes;
    let mut errors = ErrorList::new();
    forbid(&mut errors, kubernetes.kube_scheduler.is_some(), path, "kubeScheduler");
    forbid(&mut errors, kubernetes.kube_proxy.is_some(), path, "kubeProxy");
    forbid(&mut errors, kubernetes.kubelet.is_some(), path, "kubelet");
    forbid(
        &mut errors,
        kubernetes.cluster_autoscaler.is_some(),
        path,
        "clusterAutoScaler",
    );
    forbid(
        &mut errors,
        kubernetes.vertical_pod_autoscaler.is_some(),
        path,
        "verticalPodAutoScaler",
    );
    errors
}

/// Below `spec.kubernetes.kubeControllerManager`.
pub(super) fn kube_controller_manager(config: &KubeControllerManagerConfig, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, set) in [
        ("nodeCIDRMaskSize", config.node_cidr_mask_size.is_some()),
        ("nodeCIDRMaskSizeIPv6", config.node_cidr_mask_size_i_pv6.is_some()),
        ("horizontalPodAutoscaler", config.horizontal_pod_autoscaler.is_some()),
        ("podEvictionTimeout", config.pod_eviction_timeout.is_some()),
        ("nodeMonitorGracePeriod", config.node_monitor_grace_period.is_some()),
    ] {
        forbid(&mut errors, set, path, name);
    }
    errors
}

/// Below `spec.networking`.
pub(super) fn networking(spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(networking) = &spec.networking {
        forbid(&mut errors, networking.r#type.is_some(), path, "type");
        forbid(
            &mut errors,
            networking.provider_config.is_some(),
            path,
            "providerConfig",
        );
        forbid(&mut errors, networking.pods.is_some(), path, "pods");
        forbid(&mut errors, networking.nodes.is_some(), path, "nodes");
    }
    errors
}

/// Below `spec.maintenance.autoUpdate`.
pub(super) fn maintenance(spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(maintenance) = &spec.maintenance {
        let image = maintenance
            .auto_update
            .as_ref()
            .is_some_and(|update| update.machine_image_version.is_some());
        forbid(&mut errors, image, path, "autoUpdate.machineImageVersion");
    }
    errors
}

/// `spec.systemComponents`.
pub(super) fn system_components(spec: &ShootSpec, path: &Path) -> ErrorList {
    if spec.system_components.is_some() {
        vec![Error::forbidden(path, NOT_SUPPORTED)]
    } else {
        ErrorList::new()
    }
}

/// `spec.addons`.
pub(super) fn addons(spec: &ShootSpec, path: &Path) -> ErrorList {
    if spec.addons.is_some() {
        vec![Error::forbidden(
            path,
            "addons cannot be enabled for Workerless Shoot clusters",
        )]
    } else {
        ErrorList::new()
    }
}
