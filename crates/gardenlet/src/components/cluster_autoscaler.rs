//! cluster-autoscaler: adds and removes nodes within the pools' bounds.

use std::collections::BTreeMap;
use std::fmt::Display;

use gardener_apis::constants::TAINT_CRITICAL_COMPONENTS_NOT_READY;
use gardener_apis::core::v1beta1::Worker;
use gardener_apis::extensions::v1alpha1::WorkerStatusMachineDeployment;
use gardener_apis::versions;
use serde_json::{Value, json};

use super::workload::{Container, KUBECONFIG_VOLUME, Workload, container, deployment, kubeconfig_volume};
use super::{Cluster, SHOOT_KUBECONFIG, access};

/// The Deployment's name.
pub const NAME: &str = "cluster-autoscaler";
/// The expander that follows the pools' priorities.
const PRIORITY: &str = "priority";

/// Whether a pool can grow or shrink.
pub fn is_wanted(cluster: &Cluster<'_>) -> bool {
    cluster
        .shoot
        .spec
        .provider
        .workers
        .iter()
        .any(|pool| pool.maximum > pool.minimum)
}

/// What bounds and guides it beside the shoot's own settings.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// The machine deployments of the pools.
    pub deployments: Vec<WorkerStatusMachineDeployment>,
    /// The most nodes of the shoot; 0 if nothing bounds them [MCH-126].
    pub max_nodes_total: i64,
}

/// Whether the pools are to grow in an order.
fn has_priorities(cluster: &Cluster<'_>) -> bool {
    let mut pools = cluster.shoot.spec.provider.workers.iter();
    pools.any(|pool| pool.priority.is_some())
}

/// What it is told [MCH-125].
fn command(cluster: &Cluster<'_>, bounds: &Bounds) -> Vec<String> {
    let mut settings = cluster
        .shoot
        .spec
        .kubernetes
        .cluster_autoscaler
        .clone()
        .unwrap_or_default();
    settings.complete();
    let told = |value: Option<&dyn Display>| value.map(ToString::to_string).unwrap_or_default();
    let mut expander = settings.expander.clone().unwrap_or_default();
    if has_priorities(cluster) && !expander.contains(PRIORITY) {
        expander = format!("{PRIORITY},{expander}");
    }
    let mut command = vec![
        "./cluster-autoscaler".to_owned(),
        "--address=:8085".to_owned(),
        format!("--kubeconfig={SHOOT_KUBECONFIG}"),
        "--cloud-provider=mcm".to_owned(),
        "--stderrthreshold=info".to_owned(),
        "--skip-nodes-with-system-pods=false".to_owned(),
        "--skip-nodes-with-local-storage=false".to_owned(),
        "--expendable-pods-priority-cutoff=-10".to_owned(),
        "--balance-similar-node-groups=true".to_owned(),
        format!("--ignore-taint={TAINT_CRITICAL_COMPONENTS_NOT_READY}"),
        format!("--expander={expander}"),
    ];
    macro_rules! flags {
        ($($flag:literal: $field:ident),* $(,)?) => {
            $(command.push(format!("--{}={}", $flag, told(settings.$field.as_ref().map(|value| value as &dyn Display))));)*
        };
    }
    flags! {
        "max-graceful-termination-sec": max_graceful_termination_seconds,
        "max-node-provision-time": max_node_provision_time,
        "initial-node-group-backoff-duration": initial_node_group_backoff_duration,
        "max-node-group-backoff-duration": max_node_group_backoff_duration,
        "node-group-backoff-reset-timeout": node_group_backoff_reset_timeout,
    }
    let threshold = settings.scale_down_utilization_threshold.unwrap_or_default();
    command.push(format!("--scale-down-utilization-threshold={threshold:.6}"));
    flags! {
        "scale-down-unneeded-time": scale_down_unneeded_time,
        "scale-down-delay-after-add": scale_down_delay_after_add,
        "scale-down-delay-after-delete": scale_down_delay_after_delete,
        "scale-down-delay-after-failure": scale_down_delay_after_failure,
        "scan-interval": scan_interval,
        "ignore-daemonsets-utilization": ignore_daemonsets_utilization,
        "v": verbosity,
        "max-scale-down-parallelism": max_scale_down_parallelism,
        "max-drain-parallelism": max_drain_parallelism,
        "new-pod-scale-up-delay": new_pod_scale_up_delay,
    }
    command.push(format!("--max-nodes-total={}", bounds.max_nodes_total));
    flags! {
        "emit-per-nodegroup-metrics": emit_per_node_group_metrics,
        "max-binpacking-time": max_binpacking_time,
    }
    let taints = [
        ("startup-taint", &settings.startup_taints),
        ("status-taint", &settings.status_taints),
        ("ignore-taint", &settings.ignore_taints.clone().unwrap_or_default()),
    ];
    for (flag, taints) in taints {
        command.extend(taints.iter().map(|taint| format!("--{flag}={taint}")));
    }
    command.extend(bounds.deployments.iter().map(|one| {
        let (namespace, name) = (cluster.namespace, &one.name);
        format!("--nodes={}:{}:{namespace}.{name}", one.minimum, one.maximum)
    }));
    let preserves = |pool: &Worker| {
        let settings = pool.machine_controller_manager.as_ref();
        settings.and_then(|settings| settings.auto_preserve_failed_machine_max) > Some(0)
    };
    if cluster.shoot.spec.provider.workers.iter().any(preserves) {
        // machines that are kept although they failed must not stop it
        command.push("--max-total-unready-percentage=100".to_owned());
    }
    command
}

/// Its access Secret and its Deployment.
pub fn manifests(cluster: &Cluster<'_>, replicas: i32, bounds: &Bounds) -> Vec<Value> {
    let command = command(cluster, bounds);
    let server = container(Container {
        name: NAME,
        image: format!("cluster-autoscaler:v{}", cluster.version()),
        command,
        mounts: vec![KUBECONFIG_VOLUME],
        ports: &[("metrics", 8085)],
        requests: ("10m", "30Mi"),
        ..Container::default()
    });
    vec![
        access::component(cluster.namespace, NAME),
        deployment(Workload {
            namespace: cluster.namespace,
            name: NAME,
            selector: &[("app", "kubernetes"), ("role", NAME)],
            replicas: Some(replicas),
            priority_class: "gardener-system-300",
            containers: vec![server],
            volumes: vec![kubeconfig_volume(
                &cluster.secret("generic-token-kubeconfig"),
                &access::name(NAME),
            )],
            ..Workload::default()
        }),
    ]
}

/// The ManagedResource of what the shoot holds for it.
pub const RESOURCE: &str = "shoot-core-cluster-autoscaler";
const RIGHTS: &str = "gardener.cloud:target:cluster-autoscaler";

/// What the shoot holds for it: its rights, and the order of the pools if they have one.
pub fn shoot_objects(cluster: &Cluster<'_>, deployments: &[WorkerStatusMachineDeployment]) -> Vec<Value> {
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let named = |group: &str, resource: &str, name: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": verbs});
    let read = ["watch", "list", "get"];
    let mut rules = vec![
        rule(&[""], &["events", "endpoints"], &["create", "patch"]),
        rule(&[""], &["pods/eviction"], &["create"]),
        rule(&[""], &["pods/status"], &["update"]),
        named("", "endpoints", NAME, &["get", "update"]),
        rule(&[""], &["nodes"], &["watch", "list", "get", "update"]),
        rule(
            &[""],
            &[
                "namespaces",
                "pods",
                "services",
                "replicationcontrollers",
                "persistentvolumeclaims",
                "persistentvolumes",
            ],
            &read,
        ),
        rule(
            &["apps", "extensions"],
            &["daemonsets", "replicasets", "statefulsets"],
            &read,
        ),
        rule(&["policy"], &["poddisruptionbudgets"], &["watch", "list"]),
        rule(
            &["storage.k8s.io"],
            &[
                "storageclasses",
                "csinodes",
                "csidrivers",
                "csistoragecapacities",
                "volumeattachments",
            ],
            &read,
        ),
        rule(&["coordination.k8s.io"], &["leases"], &["create"]),
        named("coordination.k8s.io", "leases", NAME, &["get", "update"]),
        rule(&["batch", "extensions"], &["jobs"], &["get", "list", "patch", "watch"]),
        rule(&["batch"], &["jobs", "cronjobs"], &["get", "list", "watch"]),
    ];
    if versions::at_least(cluster.version(), 35) {
        let resources = ["resourceslices", "resourceclaims", "deviceclasses"];
        rules.push(rule(&["resource.k8s.io"], &resources, &read));
    }
    let role = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": RIGHTS});
    let subjects = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": "kube-system"}]);
    let mut objects = vec![
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": RIGHTS}, "rules": rules}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": RIGHTS},
            "roleRef": role("ClusterRole"), "subjects": subjects,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": RIGHTS, "namespace": "kube-system"},
            "rules": [
                rule(&[""], &["configmaps"], &["watch", "list", "get", "create"]),
                named("", "configmaps", "cluster-autoscaler-status", &["delete", "update"]),
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": RIGHTS, "namespace": "kube-system"},
            "roleRef": role("Role"), "subjects": subjects,
        }),
    ];
    if has_priorities(cluster) {
        objects.push(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "cluster-autoscaler-priority-expander", "namespace": "kube-system"},
            "data": {"priorities": priorities(cluster, deployments)},
        }));
    }
    objects
}

/// Which machine deployments have which priority, as YAML.
fn priorities(cluster: &Cluster<'_>, deployments: &[WorkerStatusMachineDeployment]) -> String {
    let pools = &cluster.shoot.spec.provider.workers;
    let prefix = format!("{}-", cluster.namespace);
    // extensions that do not tell a deployment's priority name it after its pool and zone
    let of_pool = |deployment: &str| {
        let name = deployment.strip_prefix(&prefix).unwrap_or(deployment);
        let name = name.rsplit_once("-z").map_or(name, |(pool, _)| pool);
        pools
            .iter()
            .find(|pool| pool.name == name)
            .and_then(|pool| pool.priority)
    };
    let mut by_priority: BTreeMap<i32, Vec<&str>> = BTreeMap::new();
    for one in deployments {
        let priority = one.priority.or_else(|| of_pool(&one.name)).unwrap_or_default();
        by_priority.entry(priority).or_default().push(&one.name);
    }
    let lines = by_priority.iter().flat_map(|(priority, names)| {
        let names = names.iter().map(|name| format!("- {name}\n"));
        std::iter::once(format!("{priority}:\n")).chain(names)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::SecretNames;
    use gardener_apis::core::v1beta1::{Seed, Shoot};

    fn cluster<'a>(shoot: &'a Shoot, seed: &'a Seed, secrets: &'a SecretNames) -> Cluster<'a> {
        Cluster {
            namespace: "shoot--foo--bar",
            shoot,
            seed,
            secrets,
            external_host: None,
            internal_host: String::new(),
            issuers: Vec::new(),
        }
    }

    /// The command for a shoot.
    fn command_of(shoot: &Shoot, bounds: &Bounds) -> Vec<String> {
        command(&cluster(shoot, &Seed::default(), &SecretNames::new()), bounds)
    }

    #[test]
    fn mch_125_what_the_autoscaler_is_told() {
        let shoot = |fields: Value, pool: Value| -> Shoot {
            serde_json::from_value(json!({"spec": {"kubernetes": {"version": "1.36.0", "clusterAutoscaler": fields}, "provider": {"type": "local", "workers": [pool]}}}))
                .expect("a shoot")
        };
        let deployments = vec![WorkerStatusMachineDeployment {
            name: "shoot--foo--bar-a-z1".to_owned(),
            minimum: 1,
            maximum: 3,
            ..WorkerStatusMachineDeployment::default()
        }];
        let bounds = Bounds {
            deployments,
            max_nodes_total: 126,
        };
        let plain = command_of(
            &shoot(json!({}), json!({"name": "a", "minimum": 1, "maximum": 3})),
            &bounds,
        );
        let told: Vec<&str> = plain.iter().map(String::as_str).collect();
        let defaults = [
            "--expendable-pods-priority-cutoff=-10",
            "--balance-similar-node-groups=true",
            "--ignore-taint=node.gardener.cloud/critical-components-not-ready",
            "--expander=least-waste",
            "--max-graceful-termination-sec=600",
            "--max-node-provision-time=20m0s",
            "--initial-node-group-backoff-duration=5m0s",
            "--max-node-group-backoff-duration=30m0s",
            "--node-group-backoff-reset-timeout=3h0m0s",
            "--scale-down-utilization-threshold=0.500000",
            "--scale-down-unneeded-time=30m0s",
            "--scale-down-delay-after-add=1h0m0s",
            "--scale-down-delay-after-delete=0s",
            "--scale-down-delay-after-failure=3m0s",
            "--scan-interval=10s",
            "--ignore-daemonsets-utilization=false",
            "--v=2",
            "--max-scale-down-parallelism=10",
            "--max-drain-parallelism=1",
            "--new-pod-scale-up-delay=0s",
            "--max-nodes-total=126",
            "--emit-per-nodegroup-metrics=false",
            "--max-binpacking-time=5m0s",
            "--nodes=1:3:shoot--foo--bar.shoot--foo--bar-a-z1",
        ];
        assert!(told.ends_with(&defaults), "{told:#?}");

        let settings = json!({"expander": "random", "ignoreTaints": ["a"], "startupTaints": ["b"], "statusTaints": ["c"], "verbosity": 4});
        let pool = json!({"name": "a", "priority": 1, "machineControllerManager": {"autoPreserveFailedMachineMax": 1}});
        let told = command_of(&shoot(settings, pool), &Bounds::default());
        for wanted in [
            "--expander=priority,random",
            "--v=4",
            "--startup-taint=b",
            "--status-taint=c",
            "--ignore-taint=a",
            "--max-nodes-total=0",
            "--max-total-unready-percentage=100",
        ] {
            assert!(told.iter().any(|flag| flag == wanted), "{wanted} is not in {told:#?}");
        }
    }

    #[test]
    fn mch_125_pools_grow_in_the_order_of_their_priorities() {
        let shoot: Shoot = serde_json::from_value(
            json!({"spec": {"kubernetes": {"version": "1.34.0"}, "provider": {"type": "local", "workers": [
                {"name": "a-z", "priority": 10}, {"name": "b"},
            ]}}}),
        )
        .expect("a shoot");
        let (seed, secrets) = (Seed::default(), SecretNames::new());
        let cluster = cluster(&shoot, &seed, &secrets);
        let deployment = |name: &str, priority: Option<i32>| WorkerStatusMachineDeployment {
            name: format!("shoot--foo--bar-{name}"),
            priority,
            ..WorkerStatusMachineDeployment::default()
        };
        let deployments = [
            deployment("a-z-z1", None),
            deployment("a-z-z2", Some(7)),
            deployment("b-z1", None),
            deployment("c-z1", None),
        ];
        let objects = shoot_objects(&cluster, &deployments);
        let map = objects.last().expect("objects");
        assert_eq!(
            map["data"]["priorities"],
            "0:\n- shoot--foo--bar-b-z1\n- shoot--foo--bar-c-z1\n7:\n- shoot--foo--bar-a-z-z2\n10:\n- shoot--foo--bar-a-z-z1\n"
        );
    }
}
