//! What gardenlet puts into a shoot: system components as ManagedResources [CP-43].

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::Cluster;

fn labels(name: &str) -> Value {
    json!({"app": name, "gardener.cloud/role": "system-component", "origin": "gardener", "k8s-app": name})
}

/// The annotation of pods that were restarted on demand: when.
pub const RESTARTED_AT: &str = "gardener.cloud/restarted-at";

fn pod(name: &str, image: &str, environment: Value, critical: bool, host: bool) -> Value {
    let mut labels = labels(name);
    if let (true, Some(fields)) = (critical, labels.as_object_mut()) {
        fields.insert("node.gardener.cloud/critical-component".to_owned(), "true".into());
    }
    json!({
        "metadata": {"labels": labels},
        "spec": {
            "priorityClassName": if critical { "system-node-critical" } else { "system-cluster-critical" },
            "hostNetwork": host,
            "nodeSelector": if host { json!({}) } else { json!({"worker.gardener.cloud/system-components": "true"}) },
            "tolerations": if critical {
                json!([{"effect": "NoSchedule", "operator": "Exists"}, {"effect": "NoExecute", "operator": "Exists"}])
            } else {
                json!([{"key": "CriticalAddonsOnly", "operator": "Exists"}])
            },
            "containers": [{
                "name": name, "image": image, "imagePullPolicy": "IfNotPresent", "env": environment,
                "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}},
            }],
        },
    })
}

/// A Deployment in kube-system.
pub fn deployment(name: &str, image: &str, replicas: i32, environment: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels(name)},
        "spec": {
            "replicas": replicas, "revisionHistoryLimit": 2,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": {"app": name}},
            "template": pod(name, image, environment, false, false),
        },
    })
}

/// A DaemonSet in kube-system.
pub fn daemon_set(name: &str, app: &str, image: &str, selector: Value) -> Value {
    let mut template = pod(app, image, json!([]), true, true);
    if let (Some(spec), true) = (
        template.get_mut("spec").and_then(Value::as_object_mut),
        selector.is_object(),
    ) {
        spec.insert("nodeSelector".to_owned(), selector);
    }
    let mut matching = json!({"app": app});
    if let (Some(fields), true) = (matching.as_object_mut(), name != app) {
        fields.insert("daemonset".to_owned(), name.into());
        if let Some(labels) = template.at_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.insert("daemonset".to_owned(), name.into());
        }
    }
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels(app)},
        "spec": {
            "revisionHistoryLimit": 2, "updateStrategy": {"type": "RollingUpdate"},
            "selector": {"matchLabels": matching}, "template": template,
        },
    })
}

/// Notes on a workload's pods when they were restarted on demand: a later time rolls them.
fn restarted(mut workload: Value, at: Option<&str>) -> Value {
    if let (Some(at), Some(template)) = (at, workload.at_mut("/spec/template/metadata")) {
        template["annotations"] = json!({RESTARTED_AT: at});
    }
    workload
}

fn account(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "kube-system"}, "automountServiceAccountToken": false})
}

fn service(name: &str, app: &str, address: Option<String>, ports: Value) -> Value {
    let mut spec = json!({"type": "ClusterIP", "selector": {"app": app}, "ports": ports});
    if let (Some(address), Some(fields)) = (address, spec.as_object_mut()) {
        fields.insert("clusterIP".to_owned(), address.into());
    }
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels(app)}, "spec": spec,
    })
}

/// `shoot-core-namespaces`.
pub fn namespaces() -> Vec<Value> {
    vec![
        // no API server lets it be deleted
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": "kube-system",
            "annotations": {"resources.gardener.cloud/keep-object": "true"},
            "labels": {"gardener.cloud/purpose": "kube-system", "role": "kube-system"},
        }}),
    ]
}

/// `shoot-core-cluster-identity`.
pub fn cluster_identity(identity: &str) -> Vec<Value> {
    vec![json!({
        "apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
        "metadata": {"name": "cluster-identity", "namespace": "kube-system"},
        "data": {"cluster-identity": identity, "origin": "shoot"},
    })]
}

/// `shoot-core-system`: facts about the cluster and PriorityClasses [CP-41], [CP-44].
pub fn core(cluster: &Cluster<'_>, project: &str) -> Vec<Value> {
    let shoot = cluster.shoot;
    let mut info = json!({
        "projectName": project,
        "shootName": shoot.metadata.name,
        "provider": shoot.spec.provider.r#type,
        "region": shoot.spec.region,
        "kubernetesVersion": cluster.version(),
        "podNetwork": cluster.pod_cidrs().join(","),
        "serviceNetwork": cluster.service_cidrs().join(","),
        "maintenanceBegin": "", "maintenanceEnd": "",
    });
    if let Some(fields) = info.as_object_mut() {
        let mut set = |key: &str, value: &str| drop(fields.insert(key.to_owned(), value.into()));
        if let Some(window) = shoot.spec.maintenance.as_ref().and_then(|one| one.time_window.as_ref()) {
            set("maintenanceBegin", &window.begin);
            set("maintenanceEnd", &window.end);
        }
        if let Some(domain) = shoot.spec.dns.as_ref().and_then(|dns| dns.domain.as_deref()) {
            set("domain", domain);
        }
        if let Some(nodes) = shoot.spec.networking.as_ref().and_then(|one| one.nodes.as_deref()) {
            set("nodeNetwork", nodes);
        }
        let extensions: Vec<&str> = shoot.spec.extensions.iter().map(|one| one.r#type.as_str()).collect();
        set("extensions", &extensions.join(","));
    }
    let mut objects = vec![json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "shoot-info", "namespace": "kube-system"}, "data": info,
    })];
    for (name, value) in [
        (900, 999_999_900),
        (800, 999_999_800),
        (700, 999_999_700),
        (600, 999_999_600),
    ] {
        objects.push(json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": format!("gardener-shoot-system-{name}")},
            "value": value, "globalDefault": false,
            "description": "PriorityClass for Shoot system components",
        }));
    }
    objects
}

/// `shoot-core-coredns`.
///
/// `restarted_at`: when its pods were restarted the last time on demand.
pub fn coredns(cluster: &Cluster<'_>, restarted_at: Option<&str>) -> Vec<Value> {
    let corefile = ".:8053 {\n  errors\n  log . {\n    class error\n  }\n  health {\n    lameduck 15s\n  }\n  ready\n  kubernetes cluster.local in-addr.arpa ip6.arpa {\n    pods insecure\n    ttl 30\n  }\n  prometheus :9153\n  forward . /etc/resolv.conf\n  cache 30\n  loop\n  reload\n  loadbalance round_robin\n  import custom/*.override\n}\nimport custom/*.server\n";
    let subject = json!([{"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"}]);
    let address = cluster.service_address(10).map(|address| address.to_string());
    vec![
        account("coredns"),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:coredns"},
            "rules": [
                {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces", "nodes"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "system:coredns"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"}, "subjects": subject,
        }),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": "kube-system"}, "data": {"Corefile": corefile}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns-custom", "namespace": "kube-system", "annotations": {"resources.gardener.cloud/ignore": "true"}}, "data": {"changeme.server": "# checkout the docs on how to use", "changeme.override": "# checkout the docs on how to use"}}),
        service(
            "kube-dns",
            "coredns",
            address,
            json!([
                {"name": "dns", "port": 53, "targetPort": 8053, "protocol": "UDP"},
                {"name": "dns-tcp", "port": 53, "targetPort": 8053, "protocol": "TCP"},
                {"name": "metrics", "port": 9153, "targetPort": 9153, "protocol": "TCP"},
            ]),
        ),
        restarted(deployment("coredns", "coredns:v1.12.4", 2, json!([])), restarted_at),
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "coredns", "namespace": "kube-system"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "coredns"}}},
        }),
    ]
}

/// `shoot-core-kube-proxy`: what all pools share.
pub fn kube_proxy(cluster: &Cluster<'_>) -> Vec<Value> {
    let settings = cluster.shoot.spec.kubernetes.kube_proxy.clone().unwrap_or_default();
    let mode = settings
        .mode
        .unwrap_or_else(|| "IPTables".to_owned())
        .to_ascii_lowercase();
    let config = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": mode, "clusterCIDR": cluster.pod_cidrs().join(","), "featureGates": settings.feature_gates,
        "clientConnection": {"kubeconfig": "/var/lib/kube-proxy-kubeconfig/kubeconfig"},
    });
    vec![
        account("kube-proxy"),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "gardener.cloud:target:node-proxier"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-proxier"},
            "subjects": [{"kind": "ServiceAccount", "name": "kube-proxy", "namespace": "kube-system"}],
        }),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-proxy-config", "namespace": "kube-system"}, "data": {"config.yaml": config.to_string()}}),
    ]
}

/// The name and content of `shoot-core-kube-proxy-<pool>-v<version>`.
///
/// `restarted_at`: when its pods were restarted the last time on demand.
pub fn kube_proxy_of_pool(pool: &str, version: &str, restarted_at: Option<&str>) -> (String, Vec<Value>) {
    let name = kube_proxy_name(pool, version);
    let selector = json!({"worker.gardener.cloud/pool": pool, "worker.gardener.cloud/kubernetes-version": version});
    let set = daemon_set(&name, "kube-proxy", &format!("kube-proxy:v{version}"), selector);
    (format!("shoot-core-{name}"), vec![restarted(set, restarted_at)])
}

/// The DaemonSet of kube-proxy for a pool.
pub fn kube_proxy_name(pool: &str, version: &str) -> String {
    format!("kube-proxy-{pool}-v{version}")
}

/// Whether kube-proxy is wanted.
pub fn has_kube_proxy(cluster: &Cluster<'_>) -> bool {
    let settings = cluster.shoot.spec.kubernetes.kube_proxy.as_ref();
    settings.and_then(|one| one.enabled) != Some(false)
}

/// `shoot-core-metrics-server`.
pub fn metrics_server() -> Vec<Value> {
    let subject = json!([{"kind": "ServiceAccount", "name": "metrics-server", "namespace": "kube-system"}]);
    vec![
        account("metrics-server"),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:metrics-server"},
            "rules": [{"apiGroups": [""], "resources": ["pods", "nodes", "nodes/stats", "nodes/metrics", "namespaces", "configmaps"], "verbs": ["get", "list", "watch"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "system:metrics-server"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:metrics-server"}, "subjects": subject,
        }),
        service(
            "metrics-server",
            "metrics-server",
            None,
            json!([{"name": "https", "port": 443, "targetPort": 8443, "protocol": "TCP"}]),
        ),
        deployment("metrics-server", "metrics-server:v0.8.0", 1, json!([])),
    ]
}

/// The ManagedResources with one DaemonSet each: name of the resource and content.
pub fn daemons() -> Vec<(&'static str, Vec<Value>)> {
    let one = |name: &str, image: &str| vec![account(name), daemon_set(name, name, image, Value::Null)];
    vec![
        (
            "shoot-core-apiserver-proxy",
            one("apiserver-proxy", "apiserver-proxy:v0.19.0"),
        ),
        ("shoot-core-node-exporter", one("node-exporter", "node-exporter:v1.9.1")),
        (
            "shoot-core-node-problem-detector",
            one("node-problem-detector", "node-problem-detector:v0.8.21"),
        ),
    ]
}

/// `shoot-core-blackbox-exporter`.
pub fn blackbox_exporter() -> Vec<Value> {
    vec![
        account("blackbox-exporter"),
        deployment("blackbox-exporter", "blackbox-exporter:v0.27.0", 1, json!([])),
    ]
}
