//! What a fresh cluster has before anybody writes to it: namespaces, roles and bindings, priority classes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use gardener_apimachinery::pointer::Pointed;
use gardener_store::{Change, CommitError, Expect};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use super::{RecordedError, recorded};
use crate::cluster::LogicalCluster;
use crate::definition::Lister;
use crate::{flow_schemas, meta, object, registry};

/// Namespaces that every cluster has.
pub const BOOTSTRAP_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Why a cluster cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The recorded documents are damaged.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// The store refused.
    #[error("the objects of a fresh cluster cannot be stored: {0}")]
    Store(#[from] CommitError),
}

/// How many objects are made at once: what a transaction of etcd takes.
const AT_ONCE: usize = 100;
/// How often the missing objects are looked for anew when another server makes them at the same time.
const ATTEMPTS: usize = 5;

/// Creates what is missing of a fresh cluster's objects, if it is fresh. Objects that exist are left as they are.
///
/// # Errors
/// When the store refuses.
pub async fn bootstrap(cluster: &LogicalCluster) -> Result<(), BootstrapError> {
    // made last
    if cluster
        .get("rbac.authorization.k8s.io", "clusterrolebindings", "", LAST)
        .is_some()
    {
        return Ok(());
    }
    complete(cluster).await
}

/// Creates what is missing of a cluster's objects, also of a cluster that others have set up. Objects that exist are left as they are.
///
/// # Errors
/// When the store refuses.
pub async fn complete(cluster: &LogicalCluster) -> Result<(), BootstrapError> {
    for _ in 0..ATTEMPTS {
        let mut missing = missing(cluster)?;
        let mut raced = false;
        while !missing.is_empty() && !raced {
            let rest = missing.split_off(missing.len().min(AT_ONCE));
            match cluster.store().commit_all(std::mem::replace(&mut missing, rest)).await {
                Ok(_) => {}
                // another server sets up the cluster, too: what it has written is as good
                Err(CommitError::Conflict { .. }) => raced = true,
                Err(error) => return Err(error.into()),
            }
        }
        if !raced {
            return Ok(());
        }
    }
    Ok(())
}

/// The binding that tells that a cluster is set up.
const LAST: &str = "cluster-admin";

/// The objects of a fresh cluster that are not there.
fn missing(cluster: &LogicalCluster) -> Result<Vec<Change>, BootstrapError> {
    let mut changes = Vec::new();
    let mut add = |group: &str, resource: &str, mut value: Value| {
        let Some(definition) = cluster.find(group, resource) else {
            return;
        };
        let Some(version) = definition.stored_version() else {
            return;
        };
        if let Some(members) = value.as_object_mut() {
            members.insert("apiVersion".into(), definition.api_version(&version.name).into());
            members.insert("kind".into(), version.kind.clone().into());
            for list in ["rules", "subjects"] {
                if members.get(list) == Some(&Value::Null) {
                    members.remove(list);
                }
            }
        }
        let (namespace, name) = (meta::namespace(&value).to_owned(), meta::name(&value).to_owned());
        if cluster.get(group, resource, &namespace, &name).is_some() {
            return;
        }
        meta::set(&mut value, "uid", Some(cluster.chance().uid().into()));
        meta::set(
            &mut value,
            "creationTimestamp",
            Some(meta::rfc3339(cluster.clock().now()).into()),
        );
        for key in ["resourceVersion", "managedFields"] {
            meta::set(&mut value, key, None);
        }
        // the many others cost every logical cluster memory, and nobody asks who owns their fields
        if resource == "namespaces" {
            let time = meta::rfc3339(cluster.clock().now());
            // the rest is the server's own, like upstream's
            let owned = json!({"metadata": value["metadata"]});
            let managed = registry::owned_by_server(&definition, version, owned, &time);
            meta::set(&mut value, "managedFields", managed);
        }
        let key = cluster.key(&definition, &namespace, &name);
        changes.push(Change::Put {
            key,
            expect: Expect::Absent,
            value: object::encode(&value),
        });
    };
    for Fresh {
        group,
        resource,
        object,
    } in fresh()?
    {
        let mut object = object.clone();
        // the levels come with them
        let condition =
            (*resource == "flowschemas").then(|| flow_schemas::condition(&object, true, cluster.clock().now()));
        if let (Some(condition), Some(members)) = (condition, object.as_object_mut()) {
            members.insert("status".to_owned(), json!({"conditions": [condition]}));
        }
        add(group, resource, object);
    }
    let is_last = |change: &Change| matches!(change, Change::Put { key, .. } if key.path.rsplit('/').next() == Some(LAST) && key.topic.as_str().ends_with("/clusterrolebindings"));
    let (last, mut changes): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_last);
    changes.extend(last);
    Ok(changes)
}

/// An object of a fresh cluster.
struct Fresh {
    group: &'static str,
    resource: &'static str,
    object: Value,
}

/// The objects of every fresh cluster, read once.
fn fresh() -> Result<&'static [Fresh], RecordedError> {
    static ALL: OnceLock<Vec<Fresh>> = OnceLock::new();
    match ALL.get() {
        Some(all) => Ok(all),
        None => {
            let all = read_fresh()?;
            Ok(ALL.get_or_init(|| all))
        }
    }
}

fn read_fresh() -> Result<Vec<Fresh>, RecordedError> {
    let mut all = Vec::new();
    let mut add = |group, resource, object| {
        all.push(Fresh {
            group,
            resource,
            object,
        });
    };
    for name in BOOTSTRAP_NAMESPACES {
        add(
            "",
            "namespaces",
            json!({"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}),
        );
    }
    let mut rbac: BTreeMap<&'static str, Vec<Value>> = serde_json::from_str(recorded::BOOTSTRAP_RBAC)?;
    for role in aggregate(rbac.remove("clusterroles").unwrap_or_default()) {
        add("rbac.authorization.k8s.io", "clusterroles", role);
    }
    for resource in ["clusterrolebindings", "roles", "rolebindings"] {
        for value in rbac.remove(resource).unwrap_or_default() {
            add("rbac.authorization.k8s.io", resource, value);
        }
    }
    let others: BTreeMap<&'static str, Value> = serde_json::from_str(recorded::BOOTSTRAP_OBJECTS)?;
    for (path, list) in others {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, resource) = match parts.as_slice() {
            ["api", _, resource] => ("", *resource),
            ["apis", group, _, resource] => (*group, *resource),
            _ => continue,
        };
        let items = match list {
            Value::Array(items) => items,
            list => list.at("/items").and_then(Value::as_array).cloned().unwrap_or_default(),
        };
        for object in items.into_iter().filter(|_| resource != "namespaces") {
            add(group, resource, object);
        }
    }
    Ok(all)
}

/// What nodes may do by what they are, whatever becomes of the ClusterRole that a fresh cluster has with these rules.
pub(crate) fn node_rules() -> &'static [PolicyRule] {
    static RULES: OnceLock<Vec<PolicyRule>> = OnceLock::new();
    RULES.get_or_init(|| {
        let mut all = fresh().unwrap_or_default().iter();
        let role = all.find(|one| one.resource == "clusterroles" && meta::name(&one.object) == "system:node");
        let rules = role.and_then(|role| role.object.get("rules"));
        rules
            .and_then(|rules| serde_json::from_value(rules.clone()).ok())
            .unwrap_or_default()
    })
}

/// Those of a fresh cluster's objects that are what they are, such as the FlowSchema `exempt`: what is wanted of one.
pub(crate) fn recorded_spec(group: &str, resource: &str, name: &str) -> Option<&'static Value> {
    let mut all = fresh().ok()?.iter();
    let fresh = all.find(|one| one.group == group && one.resource == resource && meta::name(&one.object) == name)?;
    fresh.object.get("spec")
}

/// Fills the rules of roles that are put together from others by label.
fn aggregate(mut roles: Vec<Value>) -> Vec<Value> {
    // admin takes from edit and edit from view: three rounds settle it
    for _ in 0..3 {
        let before = roles.clone();
        for role in &mut roles {
            let Some(selectors) = role
                .at("/aggregationRule/clusterRoleSelectors")
                .and_then(Value::as_array)
                .cloned()
            else {
                continue;
            };
            let own_name = meta::name(role).to_owned();
            let mut rules: Vec<Value> = Vec::new();
            for other in &before {
                let labels = meta::string_map(other.at("/metadata/labels"));
                let selected = selectors.iter().any(|selector| {
                    let wanted = meta::string_map(selector.get("matchLabels"));
                    !wanted.is_empty() && wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
                });
                if selected && meta::name(other) != own_name {
                    for rule in other.get("rules").and_then(Value::as_array).into_iter().flatten() {
                        if !rules.contains(rule) {
                            rules.push(rule.clone());
                        }
                    }
                }
            }
            if let Some(members) = role.as_object_mut() {
                members.insert("rules".into(), Value::Array(rules));
            }
        }
    }
    roles
}
