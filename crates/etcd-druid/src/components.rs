//! The objects that run an etcd cluster, as functions of its `Etcd`.

use std::collections::BTreeMap;

use gardener_apis::druid::v1alpha1::Etcd;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Who manages the objects.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY`].
pub const DRUID: &str = "etcd-druid";
/// Which `Etcd` an object is part of.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// What part of it.
const COMPONENT: &str = "app.kubernetes.io/component";
/// The object's own name.
const NAME: &str = "app.kubernetes.io/name";
/// The container that is etcd.
pub const CONTAINER: &str = "etcd";
/// The container that takes and restores backups.
pub const BACKUP_CONTAINER: &str = "backup-restore";
/// Makes pods restart when the configuration changes.
const CONFIG_CHECKSUM: &str = "checksum/etcd-configmap";

const DATA_DIRECTORY: &str = "/var/etcd/data/new.etcd";
const TOKEN: &str = "etcd-cluster";

/// Everything an `Etcd` needs.
pub struct Components {
    /// Who the pods are.
    pub service_account: ServiceAccount,
    /// What they may do.
    pub role: Role,
    /// That they may.
    pub role_binding: RoleBinding,
    /// One lease per member, and two that tell of snapshots when there is a store.
    pub leases: Vec<Lease>,
    /// etcd's configuration.
    pub config_map: ConfigMap,
    /// Where clients go.
    pub client_service: Service,
    /// How members find each other.
    pub peer_service: Service,
    /// Keeps the quorum in voluntary disruptions.
    pub disruption_budget: PodDisruptionBudget,
    /// The pods.
    pub stateful_set: StatefulSet,
}

/// Labels that every object of an `Etcd` has, and that select its pods.
pub fn default_labels(etcd: &Etcd) -> BTreeMap<String, String> {
    BTreeMap::from([
        (MANAGED_BY.to_owned(), DRUID.to_owned()),
        (PART_OF.to_owned(), etcd.name_any()),
    ])
}

/// How many members make a quorum.
pub fn quorum(replicas: i32) -> i32 {
    replicas / 2 + 1
}

/// The names of the members, which are those of the pods and of their leases.
pub fn member_names(etcd: &Etcd) -> Vec<String> {
    (0..etcd.spec.replicas)
        .map(|index| format!("{}-{index}", etcd.name_any()))
        .collect()
}

/// The objects that name an `Etcd` as the one they are there for.
fn owner(etcd: &Etcd) -> OwnerReference {
    OwnerReference {
        api_version: Etcd::api_version(&()).into_owned(),
        kind: Etcd::kind(&()).into_owned(),
        name: etcd.name_any(),
        uid: etcd.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn meta(etcd: &Etcd, name: &str, component: &str) -> ObjectMeta {
    let mut labels = default_labels(etcd);
    labels.insert(COMPONENT.into(), component.into());
    // names of roles have colons, which labels may not have
    labels.insert(NAME.into(), name.replace(':', "-"));
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: etcd.namespace(),
        labels: Some(labels),
        owner_references: Some(vec![owner(etcd)]),
        ..ObjectMeta::default()
    }
}

struct Ports {
    client: i32,
    server: i32,
    wrapper: i32,
    backup: i32,
}

fn ports(etcd: &Etcd) -> Ports {
    Ports {
        client: etcd.spec.etcd.client_port.unwrap_or(2379),
        server: etcd.spec.etcd.server_port.unwrap_or(2380),
        wrapper: etcd.spec.etcd.wrapper_port.unwrap_or(9095),
        backup: etcd.spec.backup.port.unwrap_or(8080),
    }
}

/// Name of the Service for clients.
pub fn client_service_name(etcd: &Etcd) -> String {
    format!("{}-client", etcd.name_any())
}

/// Name of the Service between members.
pub fn peer_service_name(etcd: &Etcd) -> String {
    format!("{}-peer", etcd.name_any())
}

/// Name of the ConfigMap.
pub fn config_map_name(etcd: &Etcd) -> String {
    format!("{}-config", etcd.name_any())
}

/// Name of Role and RoleBinding.
pub fn role_name(etcd: &Etcd) -> String {
    format!("druid.gardener.cloud:etcd:{}", etcd.name_any())
}

/// Names of the leases: those of the members and those that tell of snapshots.
pub fn lease_names(etcd: &Etcd) -> Vec<String> {
    let mut names = member_names(etcd);
    if etcd.spec.backup.store.is_some() {
        names.push(format!("{}-full-snap", etcd.name_any()));
        names.push(format!("{}-delta-snap", etcd.name_any()));
    }
    names
}

/// etcd's configuration file.
fn configuration(etcd: &Etcd) -> Value {
    let ports = ports(etcd);
    let namespace = etcd.namespace().unwrap_or_default();
    let (client_tls, peer_tls) = (
        etcd.spec.etcd.client_url_tls.as_ref(),
        etcd.spec.etcd.peer_url_tls.as_ref(),
    );
    let client_scheme = if client_tls.is_some() { "https" } else { "http" };
    let peer_scheme = if peer_tls.is_some() { "https" } else { "http" };
    let peer_service = peer_service_name(etcd);
    let url =
        |scheme: &str, member: &str, port: i32| format!("{scheme}://{member}.{peer_service}.{namespace}.svc:{port}");
    let members = member_names(etcd);
    let initial: Vec<String> = members
        .iter()
        .map(|member| format!("{member}={}", url(peer_scheme, member, ports.server)))
        .collect();
    let advertised = |scheme: &str, port: i32| -> BTreeMap<String, Vec<String>> {
        members
            .iter()
            .map(|member| (member.clone(), vec![url(scheme, member, port)]))
            .collect()
    };
    let quota = etcd.spec.etcd.quota.as_ref().map_or("8Gi", |quota| quota.0.as_str());
    let quota = quota
        .parse::<gardener_apimachinery::quantity::Amount>()
        .map_or(8 << 30, gardener_apimachinery::quantity::Amount::value);
    let shared = etcd.spec.shared_config.as_ref();
    let mut config = json!({
        "name": "etcd-config",
        "data-dir": DATA_DIRECTORY,
        "metrics": etcd.spec.etcd.metrics.as_deref().unwrap_or("basic"),
        "snapshot-count": etcd.spec.etcd.snapshot_count.unwrap_or(10_000),
        "enable-grpc-gateway": etcd.spec.etcd.enable_grpc_gateway.unwrap_or(false),
        "quota-backend-bytes": quota,
        "initial-cluster-token": TOKEN,
        "initial-cluster-state": "new",
        "initial-cluster": initial.join(","),
        "auto-compaction-mode": shared.and_then(|shared| shared.auto_compaction_mode.as_deref()).unwrap_or("periodic"),
        "auto-compaction-retention": shared.and_then(|shared| shared.auto_compaction_retention.as_deref()).unwrap_or("30m"),
        "listen-client-urls": format!("{client_scheme}://0.0.0.0:{}", ports.client),
        "listen-peer-urls": format!("{peer_scheme}://0.0.0.0:{}", ports.server),
        "advertise-client-urls": advertised(client_scheme, ports.client),
        "initial-advertise-peer-urls": advertised(peer_scheme, ports.server),
    });
    let security = |ca_key: Option<&str>, place: &str| {
        json!({
            "cert-file": format!("/var/etcd/ssl{place}/server/tls.crt"),
            "key-file": format!("/var/etcd/ssl{place}/server/tls.key"),
            "client-cert-auth": true,
            "trusted-ca-file": format!("/var/etcd/ssl{place}/ca/{}", ca_key.unwrap_or("ca.crt")),
            "auto-tls": false,
        })
    };
    if let Some(tls) = client_tls {
        config["client-transport-security"] = security(tls.tls_ca_secret_ref.data_key.as_deref(), "");
    }
    if let Some(tls) = peer_tls {
        config["peer-transport-security"] = security(tls.tls_ca_secret_ref.data_key.as_deref(), "/peer");
    }
    config
}

fn secret_volume(name: &str, secret: Option<&String>) -> Value {
    json!({"name": name, "secret": {"secretName": secret}})
}

struct Mounts {
    volumes: Vec<Value>,
    etcd: Vec<Value>,
    backup: Vec<Value>,
}

fn mounts(etcd: &Etcd, claim: &str) -> Mounts {
    let data = json!({"name": claim, "mountPath": "/var/etcd/data"});
    let config = json!({"name": "etcd-config-file", "mountPath": "/var/etcd/config/"});
    let mut mounts = Mounts {
        volumes: vec![json!({
            "name": "etcd-config-file",
            "configMap": {"name": config_map_name(etcd), "defaultMode": 0o640, "items": [{"key": "etcd.conf.yaml", "path": "etcd.conf.yaml"}]},
        })],
        etcd: vec![data.clone()],
        backup: vec![data, config],
    };
    let mut add = |name: &str, secret: Option<&String>, path: &str| {
        mounts.volumes.push(secret_volume(name, secret));
        let mount = json!({"name": name, "mountPath": path});
        mounts.etcd.push(mount.clone());
        mounts.backup.push(mount);
    };
    if let Some(tls) = &etcd.spec.etcd.client_url_tls {
        add("etcd-ca", tls.tls_ca_secret_ref.name.as_ref(), "/var/etcd/ssl/ca");
        add(
            "etcd-server-tls",
            tls.server_tls_secret_ref.name.as_ref(),
            "/var/etcd/ssl/server",
        );
        if let Some(client) = &tls.client_tls_secret_ref {
            add("etcd-client-tls", client.name.as_ref(), "/var/etcd/ssl/client");
        }
    }
    if let Some(tls) = &etcd.spec.etcd.peer_url_tls {
        add(
            "etcd-peer-ca",
            tls.tls_ca_secret_ref.name.as_ref(),
            "/var/etcd/ssl/peer/ca",
        );
        add(
            "etcd-peer-server-tls",
            tls.server_tls_secret_ref.name.as_ref(),
            "/var/etcd/ssl/peer/server",
        );
    }
    if let Some(tls) = &etcd.spec.backup.tls {
        add(
            "backup-restore-ca",
            tls.tls_ca_secret_ref.name.as_ref(),
            "/var/etcdbr/ssl/ca",
        );
        add(
            "backup-restore-server-tls",
            tls.server_tls_secret_ref.name.as_ref(),
            "/var/etcdbr/ssl/server",
        );
    }
    if let Some(secret) = etcd
        .spec
        .backup
        .store
        .as_ref()
        .and_then(|store| store.secret_ref.as_ref())
    {
        mounts
            .volumes
            .push(secret_volume("provider-backup-secret", secret.name.as_ref()));
        mounts
            .backup
            .push(json!({"name": "provider-backup-secret", "mountPath": "/var/.credentials"}));
    }
    mounts
}

fn backup_arguments(etcd: &Etcd) -> Vec<String> {
    let (backup, ports) = (&etcd.spec.backup, ports(etcd));
    let mut arguments = vec![
        "server".to_owned(),
        format!("--data-dir={DATA_DIRECTORY}"),
        format!("--server-port={}", ports.backup),
        "--enable-member-lease-renewal=true".to_owned(),
        "--k8s-heartbeat-duration=10s".to_owned(),
    ];
    let mut add = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            arguments.push(format!("--{name}={value}"));
        }
    };
    add("schedule", backup.full_snapshot_schedule.as_deref());
    add("delta-snapshot-period", backup.delta_snapshot_period.as_deref());
    add("garbage-collection-policy", backup.garbage_collection_policy.as_deref());
    add("garbage-collection-period", backup.garbage_collection_period.as_deref());
    add(
        "defragmentation-schedule",
        etcd.spec.etcd.defragmentation_schedule.as_deref(),
    );
    if let Some(store) = &backup.store {
        add("storage-provider", store.provider.as_deref());
        add("store-container", store.container.as_deref());
        add("store-prefix", Some(&store.prefix));
        add("enable-snapshot-lease-renewal", Some("true"));
        add(
            "full-snapshot-lease-name",
            Some(&format!("{}-full-snap", etcd.name_any())),
        );
        add(
            "delta-snapshot-lease-name",
            Some(&format!("{}-delta-snap", etcd.name_any())),
        );
    }
    arguments
}

fn pod_template(etcd: &Etcd, claim: &str, config_checksum: &str) -> Value {
    let ports = ports(etcd);
    let mounts = mounts(etcd, claim);
    let tls = etcd.spec.etcd.client_url_tls.is_some();
    let mut labels = etcd.spec.labels.clone();
    labels.extend(default_labels(etcd));
    labels.insert(COMPONENT.into(), "etcd-statefulset".into());
    labels.insert(NAME.into(), etcd.name_any());
    let mut annotations = etcd.spec.annotations.clone();
    annotations.insert(CONFIG_CHECKSUM.into(), config_checksum.into());
    let scheme = if etcd.spec.backup.tls.is_some() {
        "HTTPS"
    } else {
        "HTTP"
    };
    let environment = json!([
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
    ]);
    let constraints = etcd.spec.scheduling_constraints.as_ref();
    json!({
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {
            "serviceAccountName": etcd.name_any(),
            "priorityClassName": etcd.spec.priority_class_name,
            "shareProcessNamespace": true,
            "affinity": constraints.and_then(|constraints| constraints.affinity.as_ref()),
            "tolerations": constraints.map(|constraints| &constraints.tolerations),
            "topologySpreadConstraints": constraints.map(|constraints| &constraints.topology_spread_constraints),
            "containers": [
                {
                    "name": CONTAINER,
                    "image": etcd.spec.etcd.image.as_deref().unwrap_or("etcd-wrapper"),
                    "args": ["start-etcd", format!("--backup-restore-host-port={}-local:{}", etcd.name_any(), ports.backup), format!("--backup-restore-tls-enabled={tls}")],
                    "ports": [
                        {"name": "server", "containerPort": ports.server, "protocol": "TCP"},
                        {"name": "client", "containerPort": ports.client, "protocol": "TCP"},
                    ],
                    "readinessProbe": {
                        "httpGet": {"path": "/readyz", "port": ports.wrapper, "scheme": scheme},
                        "initialDelaySeconds": 15, "periodSeconds": 5, "failureThreshold": 5,
                    },
                    "resources": etcd.spec.etcd.resources,
                    "env": environment,
                    "volumeMounts": mounts.etcd,
                },
                {
                    "name": BACKUP_CONTAINER,
                    "image": etcd.spec.backup.image.as_deref().unwrap_or("etcd-backup-restore"),
                    "args": backup_arguments(etcd),
                    "ports": [{"name": "server", "containerPort": ports.backup, "protocol": "TCP"}],
                    "resources": etcd.spec.backup.resources,
                    "env": environment,
                    "volumeMounts": mounts.backup,
                },
            ],
            "volumes": mounts.volumes,
        },
    })
}

/// Drops nulls and empty members, which server-side apply would otherwise own.
fn pruned(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, pruned(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(pruned).collect(),
        other => other,
    }
}

fn typed<K: serde::de::DeserializeOwned>(value: Value) -> Result<K, serde_json::Error> {
    serde_json::from_value(pruned(value))
}

fn stateful_set(etcd: &Etcd, config_checksum: &str) -> Result<StatefulSet, serde_json::Error> {
    let name = etcd.name_any();
    let claim = etcd.spec.volume_claim_template.clone().unwrap_or_else(|| name.clone());
    let capacity = etcd
        .spec
        .storage_capacity
        .as_ref()
        .map_or("16Gi", |capacity| capacity.0.as_str());
    let mut metadata = meta(etcd, &name, "etcd-statefulset");
    // who selects the pods by the Etcd's labels selects the set as well
    for (key, value) in &etcd.spec.labels {
        metadata
            .labels
            .get_or_insert_default()
            .entry(key.clone())
            .or_insert_with(|| value.clone());
    }
    let mut set: StatefulSet = typed(json!({
        "spec": {
            "replicas": etcd.spec.replicas,
            "serviceName": peer_service_name(etcd),
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate"},
            "selector": {"matchLabels": default_labels(etcd)},
            "template": pod_template(etcd, &claim, config_checksum),
            "volumeClaimTemplates": [{
                "metadata": {"name": claim},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": etcd.spec.storage_class.as_ref().filter(|class| !class.is_empty()),
                    "resources": {"requests": {"storage": capacity}},
                },
            }],
        },
    }))?;
    set.metadata = metadata;
    Ok(set)
}

fn service(etcd: &Etcd, name: &str, component: &str, spec: Value) -> Result<Service, serde_json::Error> {
    let mut service: Service = typed(json!({"spec": spec}))?;
    service.metadata = meta(etcd, name, component);
    Ok(service)
}

/// Everything an `Etcd` needs.
///
/// # Errors
/// When the `Etcd` carries something that has no place in Kubernetes' kinds.
pub fn components(etcd: &Etcd) -> Result<Components, serde_json::Error> {
    let (name, ports) = (etcd.name_any(), ports(etcd));
    let configuration = serde_saphyr::to_string(&configuration(etcd)).map_err(serde::de::Error::custom)?;
    let checksum: String = Sha256::digest(configuration.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let port = |name: &str, port: i32| json!({"name": name, "port": port, "targetPort": port, "protocol": "TCP"});
    let mut client_service = service(
        etcd,
        &client_service_name(etcd),
        "etcd-client-service",
        json!({
            "type": "ClusterIP",
            "selector": default_labels(etcd),
            "ports": [port("client", ports.client), port("server", ports.server), port("backuprestore", ports.backup)],
            "trafficDistribution": etcd.spec.etcd.client_service.as_ref().and_then(|service| service.traffic_distribution.as_ref()),
        }),
    )?;
    if let Some(own) = &etcd.spec.etcd.client_service {
        client_service.labels_mut().extend(own.labels.clone());
        if !own.annotations.is_empty() {
            client_service.annotations_mut().extend(own.annotations.clone());
        }
    }
    let peer_service = service(
        etcd,
        &peer_service_name(etcd),
        "etcd-peer-service",
        json!({
            "type": "ClusterIP",
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": default_labels(etcd),
            "ports": [port("peer", ports.server)],
        }),
    )?;
    let mut disruption_budget: PodDisruptionBudget = typed(json!({"spec": {
        // one member may not go by itself: there is nothing to fail over to, and waiting does not help
        "minAvailable": if etcd.spec.replicas > 1 { quorum(etcd.spec.replicas) } else { 0 },
        "selector": {"matchLabels": default_labels(etcd)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }}))?;
    disruption_budget.metadata = meta(etcd, &name, "poddisruptionbudget");
    let mut role: Role = typed(json!({"rules": [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "patch", "update", "watch"]},
        {"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["get", "list", "patch", "update", "watch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
    ]}))?;
    role.metadata = meta(etcd, &role_name(etcd), "etcd-role");
    let mut role_binding: RoleBinding = typed(json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role_name(etcd)},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": etcd.namespace()}],
    }))?;
    role_binding.metadata = meta(etcd, &role_name(etcd), "etcd-role-binding");
    let leases = lease_names(etcd)
        .iter()
        .map(|lease| {
            let part = if lease.ends_with("-snap") {
                "etcd-snapshot-lease"
            } else {
                "etcd-member-lease"
            };
            Lease {
                metadata: meta(etcd, lease, part),
                spec: None,
            }
        })
        .collect();
    Ok(Components {
        service_account: ServiceAccount {
            metadata: meta(etcd, &name, "etcd-service-account"),
            automount_service_account_token: Some(false),
            ..ServiceAccount::default()
        },
        role,
        role_binding,
        leases,
        config_map: ConfigMap {
            metadata: meta(etcd, &config_map_name(etcd), "etcd-config"),
            data: Some(BTreeMap::from([("etcd.conf.yaml".to_owned(), configuration)])),
            ..ConfigMap::default()
        },
        client_service,
        peer_service,
        disruption_budget,
        stateful_set: stateful_set(etcd, &checksum)?,
    })
}
