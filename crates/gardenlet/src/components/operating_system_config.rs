//! The operating system configs of a worker pool [OSC-1], [OSC-3..5].

use gardener_apis::core::v1beta1::Worker;
use gardener_rules::worker_pool;
use serde_json::{Map, Value, json};

use super::Cluster;

/// What the configs are made of.
pub struct Nodes<'a> {
    /// The cluster.
    pub cluster: &'a Cluster<'a>,
    /// The pool.
    pub pool: &'a Worker,
    /// The name of the node agent secret.
    pub key: &'a str,
    /// `https://…` of the API server.
    pub server: &'a str,
    /// The authority of the API server, PEM.
    pub cluster_ca: &'a str,
    /// The authority of the kubelets' clients, PEM.
    pub client_ca: &'a str,
}

fn file(path: &str, permissions: u32, text: &str) -> Value {
    use base64::Engine;
    let data = base64::engine::general_purpose::STANDARD.encode(text);
    json!({"path": path, "permissions": permissions, "content": {"inline": {"encoding": "b64", "data": data}}})
}

/// A file with a placeholder that is filled in per machine.
fn placeholder(path: &str, text: &str) -> Value {
    json!({"path": path, "permissions": 0o640, "content": {"inline": {"encoding": "", "data": text}, "transmitUnencoded": true}})
}

fn image_file(path: &str, image: String, in_image: &str) -> Value {
    json!({"path": path, "permissions": 0o755, "content": {"imageRef": {"image": image, "filePathInImage": in_image}}})
}

fn agent_configuration(nodes: &Nodes<'_>) -> Value {
    json!({
        "apiVersion": "nodeagent.config.gardener.cloud/v1alpha1", "kind": "NodeAgentConfiguration",
        "apiServer": {"server": nodes.server, "caBundle": nodes.cluster_ca},
        "controllers": {
            "operatingSystemConfig": {"secretName": nodes.key, "kubernetesVersion": worker_pool::kubernetes_version(nodes.cluster.shoot, nodes.pool)},
            "token": {"syncConfigs": [{"secretName": "gardener-valitail", "path": "/var/lib/valitail/auth-token"}]},
        },
        "server": {"healthProbes": {"port": 2751}, "metrics": {"port": 2752}},
        "logLevel": "info", "logFormat": "json",
    })
}

fn object(nodes: &Nodes<'_>, suffix: &str, purpose: &str, spec: Map<String, Value>) -> Value {
    let image = nodes.pool.machine.image.clone().unwrap_or_default();
    let mut whole = Map::new();
    whole.insert("type".to_owned(), image.name.into());
    whole.insert("purpose".to_owned(), purpose.into());
    if let Some(config) = image.provider_config {
        whole.insert("providerConfig".to_owned(), config);
    }
    whole.extend(spec);
    json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "OperatingSystemConfig",
        "metadata": {
            "name": format!("{}-{suffix}", nodes.key), "namespace": nodes.cluster.namespace,
            "labels": {
                "worker.gardener.cloud/pool": nodes.pool.name,
                "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook": "true",
            },
        },
        "spec": whole,
    })
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// What a machine starts with: enough to fetch and start the node agent [OSC-3].
pub fn provision(nodes: &Nodes<'_>) -> Value {
    let script = "#!/usr/bin/env bash\nset -o errexit -o nounset -o pipefail\nexec /opt/bin/gardener-node-agent bootstrap --config-dir=/var/lib/gardener-node-agent\n";
    let unit = "[Unit]\nDescription=Installs gardener-node-agent\nAfter=network-online.target containerd.service\nWants=network-online.target\n[Service]\nType=oneshot\nRestart=on-failure\nRestartSec=5\nExecStart=/var/lib/gardener-node-agent/init.sh\n[Install]\nWantedBy=multi-user.target\n";
    let directory = "/var/lib/gardener-node-agent";
    object(
        nodes,
        "init",
        "provision",
        fields(json!({
            "criConfig": {"name": "containerd", "cgroupDriver": "systemd"},
            "units": [{
                "name": "gardener-node-init.service", "command": "start", "enable": true, "content": unit,
                "filePaths": [format!("{directory}/init.sh"), format!("{directory}/credentials/bootstrap-token")],
            }],
            "files": [
                file(&format!("{directory}/cluster-ca.crt"), 0o640, nodes.cluster_ca),
                file(&format!("{directory}/init.sh"), 0o755, script),
                placeholder(&format!("{directory}/machine-name"), "<<MACHINE_NAME>>"),
                placeholder(&format!("{directory}/credentials/bootstrap-token"), "<<BOOTSTRAP_TOKEN>>"),
                file(&format!("{directory}/config.yaml"), 0o600, &agent_configuration(nodes).to_string()),
            ],
        })),
    )
}

fn kubelet_configuration(nodes: &Nodes<'_>) -> Value {
    let own = worker_pool::kubelet_config(nodes.cluster.shoot, nodes.pool)
        .cloned()
        .unwrap_or_default();
    let hard = own.eviction_hard.unwrap_or_default();
    let or = |value: Option<String>, default: &str| value.unwrap_or_else(|| default.to_owned());
    let mut taints: Vec<Value> = nodes
        .pool
        .taints
        .iter()
        .filter_map(|taint| serde_json::to_value(taint).ok())
        .collect();
    taints.push(json!({"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}));
    let dns = nodes.cluster.service_address(10).map(|address| address.to_string());
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": false}, "webhook": {"enabled": true}, "x509": {"clientCAFile": "/var/lib/kubelet/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        "clusterDNS": dns.into_iter().collect::<Vec<_>>(),
        "clusterDomain": "cluster.local",
        "evictionHard": {
            "memory.available": or(hard.memory_available, "100Mi"),
            "nodefs.available": or(hard.node_fs_available, "5%"),
            "nodefs.inodesFree": or(hard.node_fs_inodes_free, "5%"),
            "imagefs.available": or(hard.image_fs_available, "5%"),
            "imagefs.inodesFree": or(hard.image_fs_inodes_free, "5%"),
        },
        "kubeAPIQPS": 50, "kubeAPIBurst": 50,
        "maxPods": own.max_pods.unwrap_or(110),
        "readOnlyPort": 0,
        "registerWithTaints": taints,
        "rotateCertificates": true, "serverTLSBootstrap": true,
    })
}

/// What the node agent brings a machine to [OSC-4].
pub fn reconcile(nodes: &Nodes<'_>) -> Value {
    let version = worker_pool::kubernetes_version(nodes.cluster.shoot, nodes.pool);
    let kubelet = format!(
        "[Unit]\nDescription=kubelet\nAfter=containerd.service\n[Service]\nRestart=always\nRestartSec=5\nExecStart=/opt/bin/kubelet --bootstrap-kubeconfig=/var/lib/kubelet/kubeconfig-bootstrap --config=/var/lib/kubelet/config/kubelet --kubeconfig=/var/lib/kubelet/kubeconfig-real --node-labels=worker.gardener.cloud/kubernetes-version={version} --container-runtime-endpoint=unix:///run/containerd/containerd.sock --v=2\n[Install]\nWantedBy=multi-user.target\n"
    );
    let agent = "[Unit]\nDescription=gardener-node-agent\nAfter=network-online.target\n[Service]\nRestart=always\nRestartSec=5\nExecStart=/opt/bin/gardener-node-agent --config-dir=/var/lib/gardener-node-agent\n[Install]\nWantedBy=multi-user.target\n";
    let mut sysctls = String::from(
        "fs.inotify.max_user_watches=65536\nkernel.keys.root_maxkeys=1000000\nnet.ipv4.ip_forward=1\nvm.max_map_count=135217728\n",
    );
    for (key, value) in &nodes.pool.sysctls {
        sysctls.push_str(&format!("{key}={value}\n"));
    }
    let mut spec = fields(json!({
        "criConfig": {"name": "containerd", "cgroupDriver": "systemd", "containerd": {"sandboxImage": "pause:3.10"}},
        "units": [
            {"name": "containerd.service", "enable": true, "command": "start"},
            {"name": "systemd-sysctl.service", "enable": true, "command": "restart", "filePaths": ["/etc/sysctl.d/99-k8s-general.conf"]},
            {"name": "kubelet.service", "enable": true, "command": "start", "content": kubelet,
             "filePaths": ["/var/lib/kubelet/ca.crt", "/var/lib/kubelet/config/kubelet", "/opt/bin/kubelet"]},
            {"name": "gardener-node-agent.service", "enable": true, "content": agent,
             "filePaths": ["/opt/bin/gardener-node-agent", "/var/lib/gardener-node-agent/config.yaml"]},
        ],
        "files": [
            file("/etc/sysctl.d/99-k8s-general.conf", 0o644, &sysctls),
            file("/etc/systemd/journald.conf", 0o644, "[Journal]\nMaxRetentionSec=1209600\n"),
            file("/var/lib/kubelet/ca.crt", 0o640, nodes.client_ca),
            file("/var/lib/kubelet/config/kubelet", 0o644, &kubelet_configuration(nodes).to_string()),
            image_file("/opt/bin/kubelet", format!("hyperkube:v{version}"), "/kubelet"),
            image_file("/opt/bin/gardener-node-agent", "gardener-node-agent:v1.130.0".to_owned(), "/gardener-node-agent"),
            file("/var/lib/gardener-node-agent/cluster-ca.crt", 0o640, nodes.cluster_ca),
            file("/var/lib/gardener-node-agent/config.yaml", 0o600, &agent_configuration(nodes).to_string()),
        ],
    }));
    if worker_pool::is_in_place(nodes.pool) {
        let rotation = nodes
            .cluster
            .shoot
            .status
            .credentials
            .as_ref()
            .and_then(|one| one.rotation.as_ref());
        let authorities = rotation
            .and_then(|one| one.certificate_authorities.as_ref())
            .and_then(|one| one.last_initiation_time.clone());
        let key = rotation
            .and_then(|one| one.service_account_key.as_ref())
            .and_then(|one| one.last_initiation_time.clone());
        let mut credentials = Map::new();
        if let Some(time) = authorities {
            credentials.insert("certificateAuthorities".to_owned(), json!({"lastInitiationTime": time}));
        }
        if let Some(time) = key {
            credentials.insert("serviceAccountKey".to_owned(), json!({"lastInitiationTime": time}));
        }
        let image = nodes
            .pool
            .machine
            .image
            .as_ref()
            .and_then(|image| image.version.clone());
        spec.insert("inPlaceUpdates".to_owned(), json!({
            "operatingSystemVersion": image.unwrap_or_default(), "kubelet": version, "credentialsRotation": credentials,
        }));
    }
    object(nodes, "original", "reconcile", spec)
}
