//! kube-apiserver: Deployment, Service, autoscaler and configuration [CP-110..117].

use std::collections::{BTreeMap, BTreeSet};

use gardener_apis::core::v1beta1::KubeAPIServerConfig;
use serde_json::{Value, json};

use super::Cluster;
use super::workload::{
    Container, Workload, config_map, config_volume, container, deployment, disruption_budget, secret_volume,
};

/// The Deployment's and the Service's name.
pub const NAME: &str = "kube-apiserver";
const SELECTOR: [(&str, &str); 2] = [("app", "kubernetes"), ("role", "apiserver")];

/// Plugins that users cannot disable [CP-110].
const REQUIRED_PLUGINS: [&str; 7] = [
    "MutatingAdmissionWebhook",
    "NamespaceLifecycle",
    "NodeRestriction",
    "PodSecurity",
    "Priority",
    "StorageObjectInUseProtection",
    "ValidatingAdmissionWebhook",
];

/// The admission plugins that are switched on and off [CP-110].
pub fn admission_plugins(config: &KubeAPIServerConfig) -> (Vec<String>, Vec<String>) {
    let mut enabled: Vec<String> = vec!["NodeRestriction".to_owned()];
    let mut disabled = Vec::new();
    for plugin in &config.admission_plugins {
        let is_off = plugin.disabled == Some(true) && !REQUIRED_PLUGINS.contains(&plugin.name.as_str());
        let list = if is_off { &mut disabled } else { &mut enabled };
        if !list.contains(&plugin.name) {
            list.push(plugin.name.clone());
        }
    }
    enabled.sort();
    disabled.sort();
    (enabled, disabled)
}

/// The audiences of tokens: the user's and always `gardener` [CP-113].
pub fn audiences(config: &KubeAPIServerConfig) -> Vec<String> {
    let mut audiences = config.api_audiences.clone();
    if audiences.is_empty() {
        audiences.push("kubernetes".to_owned());
    }
    if !audiences.iter().any(|one| one == "gardener") {
        audiences.push("gardener".to_owned());
    }
    audiences
}

/// The resources of which the values are encrypted: always Secrets [CP-115].
pub fn encrypted_resources(config: &KubeAPIServerConfig) -> Vec<String> {
    let mut resources = vec!["secrets".to_owned()];
    for resource in config.encryption_config.iter().flat_map(|one| &one.resources) {
        if !resources.contains(resource) {
            resources.push(resource.clone());
        }
    }
    resources
}

/// A key that values are encrypted with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptionKey {
    /// Its name.
    pub name: String,
    /// Base64 of it.
    pub secret: String,
    /// Who encrypts with it, such as `aescbc`.
    pub provider: String,
}

/// The encryption configuration: the first key writes, all read, and what is not encrypted can still be read. Values of resources in `leaving` are no longer
/// encrypted when they are written, but can still be read [CP-115].
pub fn encryption_configuration(
    config: &KubeAPIServerConfig,
    keys: &[EncryptionKey],
    leaving: &BTreeSet<String>,
) -> Value {
    let plain = json!({"identity": {}});
    let mut by_keys: Vec<Value> = Vec::new();
    // keys of one provider that stand side by side are one entry
    for run in keys.chunk_by(|one, other| one.provider == other.provider) {
        let Some(first) = run.first() else { continue };
        let keys: Vec<Value> = run
            .iter()
            .map(|key| json!({"name": key.name, "secret": key.secret}))
            .collect();
        let mut entry = serde_json::Map::new();
        entry.insert(first.provider.clone(), json!({"keys": keys}));
        by_keys.push(entry.into());
    }
    let encrypted = [by_keys.clone(), vec![plain.clone()]].concat();
    let mut resources = vec![json!({"resources": encrypted_resources(config), "providers": encrypted})];
    if !leaving.is_empty() {
        let decrypted = [vec![plain], by_keys].concat();
        resources.push(json!({"resources": leaving, "providers": decrypted}));
    }
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": resources})
}

fn joined(gates: &BTreeMap<String, bool>) -> String {
    let gates: Vec<String> = gates.iter().map(|(name, on)| format!("{name}={on}")).collect();
    gates.join(",")
}

/// The arguments of kube-apiserver [CP-110..116].
pub fn arguments(cluster: &Cluster<'_>) -> Vec<String> {
    let default = KubeAPIServerConfig::default();
    let config = cluster
        .shoot
        .spec
        .kubernetes
        .kube_api_server
        .as_ref()
        .unwrap_or(&default);
    let mut args: Vec<String> = Vec::new();
    let mut flag = |name: &str, value: &str| args.push(format!("--{name}={value}"));
    let (enabled, disabled) = admission_plugins(config);
    flag("enable-admission-plugins", &enabled.join(","));
    if !disabled.is_empty() {
        flag("disable-admission-plugins", &disabled.join(","));
    }
    flag(
        "admission-control-config-file",
        "/etc/kubernetes/admission/admission-configuration.yaml",
    );
    flag("allow-privileged", "true");
    let anonymous = config.enable_anonymous_authentication == Some(true);
    flag("anonymous-auth", if anonymous { "true" } else { "false" });
    flag("audit-policy-file", "/etc/kubernetes/audit/audit-policy.yaml");
    flag("audit-log-path", "/tmp/audit/audit.log");
    flag("audit-log-maxsize", "100");
    flag("audit-log-maxbackup", "5");
    flag(
        "authorization-mode",
        if cluster.is_workerless() { "RBAC" } else { "Node,RBAC" },
    );
    flag("bind-address", "::");
    flag("client-ca-file", "/srv/kubernetes/ca-client/bundle.crt");
    flag("enable-aggregator-routing", "true");
    flag("enable-bootstrap-token-auth", "true");
    flag("etcd-cafile", "/srv/kubernetes/etcd/ca/bundle.crt");
    flag("etcd-certfile", "/srv/kubernetes/etcd/client/tls.crt");
    flag("etcd-keyfile", "/srv/kubernetes/etcd/client/tls.key");
    flag("etcd-servers", "https://etcd-main-client:2379");
    flag(
        "etcd-servers-overrides",
        "/events#https://etcd-events-client:2379,events.k8s.io/events#https://etcd-events-client:2379",
    );
    flag(
        "encryption-provider-config",
        "/etc/kubernetes/etcd-encryption-secret/encryption-configuration.yaml",
    );
    let ttl = config
        .event_ttl
        .map_or_else(|| "1h0m0s".to_owned(), |ttl| ttl.to_string());
    flag("event-ttl", &ttl);
    if !config.feature_gates.is_empty() {
        flag("feature-gates", &joined(&config.feature_gates));
    }
    flag("http2-max-streams-per-connection", "1000");
    if !cluster.is_workerless() {
        flag("kubelet-preferred-address-types", "InternalIP,Hostname,ExternalIP");
        flag("kubelet-certificate-authority", "/srv/kubernetes/ca-kubelet/bundle.crt");
        flag(
            "kubelet-client-certificate",
            "/srv/kubernetes/apiserver-kubelet/tls.crt",
        );
        flag("kubelet-client-key", "/srv/kubernetes/apiserver-kubelet/tls.key");
        flag(
            "egress-selector-config-file",
            "/etc/kubernetes/egress/egress-selector-configuration.yaml",
        );
    }
    flag("livez-grace-period", "1m");
    let requests = config.requests.clone().unwrap_or_default();
    let flow = [
        ("max-requests-inflight", requests.max_non_mutating_inflight),
        ("max-mutating-requests-inflight", requests.max_mutating_inflight),
    ];
    for (name, value) in flow {
        if let Some(value) = value {
            flag(name, &value.to_string());
        }
    }
    flag("profiling", "false");
    flag("proxy-client-cert-file", "/srv/kubernetes/aggregator/tls.crt");
    flag("proxy-client-key-file", "/srv/kubernetes/aggregator/tls.key");
    flag(
        "requestheader-client-ca-file",
        "/srv/kubernetes/ca-front-proxy/bundle.crt",
    );
    flag("requestheader-extra-headers-prefix", "X-Remote-Extra-");
    flag("requestheader-group-headers", "X-Remote-Group");
    flag("requestheader-username-headers", "X-Remote-User");
    if !config.runtime_config.is_empty() {
        flag("runtime-config", &joined(&config.runtime_config));
    }
    flag("secure-port", "443");
    flag("api-audiences", &audiences(config).join(","));
    for issuer in &cluster.issuers {
        flag("service-account-issuer", issuer);
    }
    if let Some(accounts) = &config.service_account_config {
        for issuer in &accounts.accepted_issuers {
            flag("service-account-issuer", issuer);
        }
        if let Some(longest) = accounts.max_token_expiration {
            flag("service-account-max-token-expiration", &longest.to_string());
        }
        if let Some(extend) = accounts.extend_token_expiration {
            flag(
                "service-account-extend-token-expiration",
                if extend { "true" } else { "false" },
            );
        }
    }
    flag(
        "service-account-key-file",
        "/srv/kubernetes/service-account-key-bundle/bundle.key",
    );
    flag(
        "service-account-signing-key-file",
        "/srv/kubernetes/service-account-key/id_rsa",
    );
    flag("service-cluster-ip-range", &cluster.service_cidrs().join(","));
    flag("shutdown-delay-duration", "15s");
    flag("shutdown-send-retry-after", "true");
    for (name, value) in [
        (
            "default-not-ready-toleration-seconds",
            config.default_not_ready_toleration_seconds,
        ),
        (
            "default-unreachable-toleration-seconds",
            config.default_unreachable_toleration_seconds,
        ),
    ] {
        if let Some(value) = value {
            flag(name, &value.to_string());
        }
    }
    flag("token-auth-file", "/srv/kubernetes/token/static_tokens.csv");
    flag("tls-cert-file", "/srv/kubernetes/apiserver/tls.crt");
    flag("tls-private-key-file", "/srv/kubernetes/apiserver/tls.key");
    if let Some(version) = &config.tls_min_version {
        flag("tls-min-version", &format!("Version{}", version.replace("1.", "TLS1")));
    }
    let logging = config.logging.clone().unwrap_or_default();
    flag("v", &logging.verbosity.unwrap_or(2).to_string());
    args
}

/// The Secret with the encryption configuration.
pub fn encryption_secret(cluster: &Cluster<'_>, keys: &[EncryptionKey], leaving: &BTreeSet<String>) -> Value {
    use base64::Engine;
    let default = KubeAPIServerConfig::default();
    let config = cluster
        .shoot
        .spec
        .kubernetes
        .kube_api_server
        .as_ref()
        .unwrap_or(&default);
    let text = encryption_configuration(config, keys, leaving).to_string();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": "kube-apiserver-etcd-encryption-configuration", "namespace": cluster.namespace,
            "labels": {"role": "kube-apiserver-etcd-encryption-configuration"},
        },
        "data": {"encryption-configuration.yaml": base64::engine::general_purpose::STANDARD.encode(text)},
    })
}

/// ConfigMaps that kube-apiserver reads.
pub fn configuration(cluster: &Cluster<'_>, audit_policy: Option<String>) -> Vec<Value> {
    let default = KubeAPIServerConfig::default();
    let config = cluster
        .shoot
        .spec
        .kubernetes
        .kube_api_server
        .as_ref()
        .unwrap_or(&default);
    let mut plugins: Vec<Value> = config
        .admission_plugins
        .iter()
        .filter(|plugin| plugin.disabled != Some(true) && plugin.name != "PodSecurity")
        .filter_map(|plugin| Some(json!({"name": plugin.name, "configuration": plugin.config.clone()?})))
        .collect();
    plugins.push(json!({"name": "PodSecurity", "configuration": pod_security(config)}));
    let admission = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins,
    });
    let audit = audit_policy.unwrap_or_else(|| {
        json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}).to_string()
    });
    let mut maps = vec![
        config_map(
            cluster.namespace,
            "kube-apiserver-admission-config",
            &[("admission-configuration.yaml", admission.to_string())],
        ),
        config_map(
            cluster.namespace,
            "audit-policy-config",
            &[("audit-policy.yaml", audit)],
        ),
    ];
    if !cluster.is_workerless() {
        let http = |path: &str| {
            json!({"url": "https://vpn-seed-server:9443", "tlsConfig": {
                "caBundle": "/srv/kubernetes/ca-vpn/bundle.crt",
                "clientCert": format!("{path}/tls.crt"), "clientKey": format!("{path}/tls.key"),
            }})
        };
        let egress = json!({
            "apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
            "egressSelections": [
                {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": {"tcp": http("/srv/kubernetes/http-proxy")}}},
                {"name": "controlplane", "connection": {"proxyProtocol": "Direct"}},
                {"name": "etcd", "connection": {"proxyProtocol": "Direct"}},
            ],
        });
        maps.push(config_map(
            cluster.namespace,
            "kube-apiserver-egress-selector-config",
            &[("egress-selector-configuration.yaml", egress.to_string())],
        ));
    }
    maps
}

/// The configuration of PodSecurity: the user's, with `kube-system` always exempt [CP-110].
fn pod_security(config: &KubeAPIServerConfig) -> Value {
    let own = config
        .admission_plugins
        .iter()
        .find(|plugin| plugin.name == "PodSecurity");
    let mut configuration = own.and_then(|plugin| plugin.config.clone()).unwrap_or_else(
        || json!({"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration"}),
    );
    let Some(fields) = configuration.as_object_mut() else {
        return configuration;
    };
    let exemptions = fields.entry("exemptions").or_insert_with(|| json!({}));
    if let Some(exemptions) = exemptions.as_object_mut() {
        let namespaces = exemptions.entry("namespaces").or_insert_with(|| json!([]));
        if let Some(namespaces) = namespaces.as_array_mut()
            && !namespaces.iter().any(|one| one == "kube-system")
        {
            namespaces.push("kube-system".into());
        }
    }
    configuration
}

/// The Service.
pub fn service(cluster: &Cluster<'_>) -> Value {
    let mut service = super::workload::service(cluster.namespace, NAME, &SELECTOR, &[(NAME, 443, 443)]);
    if let Some(metadata) = service.get_mut("metadata").and_then(Value::as_object_mut) {
        let hosts = [cluster.external_host.as_deref(), Some(cluster.internal_host.as_str())];
        let hosts: Vec<&str> = hosts.into_iter().flatten().collect();
        // For whoever routes connections by the name the client asks for.
        metadata.insert(
            "annotations".to_owned(),
            json!({"shoot.gardener.cloud/api-hosts": hosts.join(",")}),
        );
    }
    service
}

/// The Deployment, its PodDisruptionBudget and its autoscaler.
pub fn workload(cluster: &Cluster<'_>, replicas: i32, minimum: i32, checksums: Vec<(String, String)>) -> Vec<Value> {
    let mut mounts = vec![
        ("ca", "/srv/kubernetes/ca"),
        ("ca-client", "/srv/kubernetes/ca-client"),
        ("ca-front-proxy", "/srv/kubernetes/ca-front-proxy"),
        ("service-account-key", "/srv/kubernetes/service-account-key"),
        (
            "service-account-key-bundle",
            "/srv/kubernetes/service-account-key-bundle",
        ),
        ("ca-etcd", "/srv/kubernetes/etcd/ca"),
        ("etcd-client", "/srv/kubernetes/etcd/client"),
        ("server", "/srv/kubernetes/apiserver"),
        ("static-token", "/srv/kubernetes/token"),
        ("kube-aggregator", "/srv/kubernetes/aggregator"),
        ("etcd-encryption-secret", "/etc/kubernetes/etcd-encryption-secret"),
        ("admission-config", "/etc/kubernetes/admission"),
        ("audit-policy-config", "/etc/kubernetes/audit"),
    ];
    let secret = |volume: &str, config: &str| secret_volume(volume, &cluster.secret(config));
    let mut volumes = vec![
        secret("ca", "ca-bundle"),
        secret("ca-client", "ca-client-bundle"),
        secret("ca-front-proxy", "ca-front-proxy-bundle"),
        secret("service-account-key", "service-account-key"),
        secret("service-account-key-bundle", "service-account-key-bundle"),
        secret("ca-etcd", "ca-etcd-bundle"),
        secret("etcd-client", "etcd-client"),
        secret("server", "kube-apiserver"),
        secret("static-token", "kube-apiserver-static-token"),
        secret("kube-aggregator", "kube-aggregator"),
        secret_volume("etcd-encryption-secret", "kube-apiserver-etcd-encryption-configuration"),
        config_volume("admission-config", "kube-apiserver-admission-config"),
        config_volume("audit-policy-config", "audit-policy-config"),
    ];
    if !cluster.is_workerless() {
        mounts.extend([
            ("ca-kubelet", "/srv/kubernetes/ca-kubelet"),
            ("kubelet-client", "/srv/kubernetes/apiserver-kubelet"),
            ("ca-vpn", "/srv/kubernetes/ca-vpn"),
            ("http-proxy", "/srv/kubernetes/http-proxy"),
            ("egress-selector-config", "/etc/kubernetes/egress"),
        ]);
        volumes.extend([
            secret("ca-kubelet", "ca-kubelet-bundle"),
            secret("kubelet-client", "kube-apiserver-kubelet"),
            secret("ca-vpn", "ca-vpn-bundle"),
            secret("http-proxy", "kube-apiserver-http-proxy"),
            config_volume("egress-selector-config", "kube-apiserver-egress-selector-config"),
        ]);
    }
    let server = container(Container {
        name: NAME,
        image: format!("kube-apiserver:v{}", cluster.version()),
        command: vec!["/usr/local/bin/kube-apiserver".to_owned()],
        args: arguments(cluster),
        mounts,
        ports: &[("https", 443)],
        requests: ("50m", "100Mi"),
    });
    vec![
        deployment(Workload {
            namespace: cluster.namespace,
            name: NAME,
            selector: &SELECTOR,
            labels: &[("shoot.gardener.cloud/no-cleanup", "true")],
            replicas: Some(replicas),
            priority_class: "gardener-system-500",
            containers: vec![server],
            volumes,
            pod_annotations: checksums,
            ..Workload::default()
        }),
        disruption_budget(cluster.namespace, NAME, &SELECTOR),
    ]
    .into_iter()
    .chain((replicas > 0).then(|| autoscaler(cluster.namespace, minimum)))
    .collect()
}

/// The autoscaler; a cluster without replicas has none.
fn autoscaler(namespace: &str, minimum: i32) -> Value {
    let metric = |name: &str, value: &str| json!({"type": "Resource", "resource": {"name": name, "target": {"type": "AverageValue", "averageValue": value}}});
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {
            "minReplicas": minimum, "maxReplicas": 6,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "metrics": [metric("cpu", "6"), metric("memory", "24G")],
        },
    })
}

#[cfg(test)]
mod tests {
    use gardener_apis::core::v1beta1::{AdmissionPlugin, Seed, Shoot};

    use super::*;

    fn plugin(name: &str, disabled: bool) -> AdmissionPlugin {
        AdmissionPlugin {
            name: name.into(),
            disabled: Some(disabled),
            ..AdmissionPlugin::default()
        }
    }

    #[test]
    fn cp_110_required_plugins_stay_on() {
        let config = KubeAPIServerConfig {
            admission_plugins: vec![
                plugin("Priority", true),
                plugin("ServiceAccount", true),
                plugin("A", false),
            ],
            ..KubeAPIServerConfig::default()
        };
        let (enabled, disabled) = admission_plugins(&config);
        assert_eq!(enabled, ["A", "NodeRestriction", "Priority"]);
        assert_eq!(disabled, ["ServiceAccount"]);
    }

    #[test]
    fn cp_113_audiences() {
        let with = |audiences: &[&str]| {
            audiences_of(&KubeAPIServerConfig {
                api_audiences: audiences.iter().map(|one| (*one).to_owned()).collect(),
                ..KubeAPIServerConfig::default()
            })
        };
        fn audiences_of(config: &KubeAPIServerConfig) -> String {
            audiences(config).join(",")
        }
        assert_eq!(with(&[]), "kubernetes,gardener");
        assert_eq!(with(&["mine"]), "mine,gardener");
        assert_eq!(with(&["gardener", "mine"]), "gardener,mine");
    }

    #[test]
    fn cp_115_the_first_key_writes_and_identity_comes_last() {
        let key = |name: &str, provider: &str| EncryptionKey {
            name: name.into(),
            secret: "s".into(),
            provider: provider.into(),
        };
        let keys = |names: &[&str]| {
            let keys: Vec<Value> = names.iter().map(|name| json!({"name": name, "secret": "s"})).collect();
            json!({"keys": keys})
        };
        let (config, none) = (KubeAPIServerConfig::default(), BTreeSet::new());
        let rotated = [key("new", "aescbc"), key("old", "aescbc")];
        let written = encryption_configuration(&config, &rotated, &none);
        let expected =
            json!([{"resources": ["secrets"], "providers": [{"aescbc": keys(&["new", "old"])}, {"identity": {}}]}]);
        assert_eq!(written["resources"], expected);
        let changed = [key("new", "secretbox"), key("old", "aescbc")];
        let written = encryption_configuration(&config, &changed, &BTreeSet::from(["configmaps".to_owned()]));
        let (new, old) = (json!({"secretbox": keys(&["new"])}), json!({"aescbc": keys(&["old"])}));
        let expected = json!([
            {"resources": ["secrets"], "providers": [new, old, {"identity": {}}]},
            {"resources": ["configmaps"], "providers": [{"identity": {}}, new, old]},
        ]);
        assert_eq!(
            written["resources"], expected,
            "each key with its own provider; what leaves is no longer encrypted"
        );
    }

    #[test]
    fn cp_112_workerless_clusters_have_no_node_authorizer() {
        let (mut shoot, seed, secrets) = (Shoot::default(), Seed::default(), super::super::SecretNames::new());
        for workers in [0, 1] {
            shoot.spec.provider.workers = vec![Default::default(); workers];
            let cluster = Cluster {
                namespace: "shoot--a--b",
                shoot: &shoot,
                seed: &seed,
                secrets: &secrets,
                external_host: None,
                internal_host: "api.b.a.internal".into(),
                issuers: vec!["https://api.b.a.internal".into()],
            };
            let args = arguments(&cluster);
            let has = |flag: &str| args.iter().any(|one| one.starts_with(flag));
            assert_eq!(has("--authorization-mode=Node"), workers == 1);
            assert_eq!(has("--kubelet-client-key"), workers == 1);
            assert!(has("--service-account-issuer=https://api.b.a.internal"));
        }
    }
}
