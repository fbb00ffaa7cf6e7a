//! What kubelets may do, users of group `system:nodes`: of some kinds what belongs to the node or to the pods on it
//! ([`related`]), of the others what upstream's policy for nodes says. That is what ClusterRole `system:node` says of a fresh cluster, but nobody
//! takes anything from nodes by changing it.

pub(crate) mod related;

use gardener_apimachinery::selector::FieldSelector;
use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{Attributes, Authorizer, Decision, Unresolved};
use crate::cluster::LogicalCluster;
use crate::user::UserInfo;
use crate::{kubernetes, rbac};

/// The group of all nodes.
pub const NODES_GROUP: &str = "system:nodes";
/// What users of nodes begin with; the node's name follows.
pub const NODE_USER_PREFIX: &str = "system:node:";

/// The namespace of nodes' leases.
pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";

/// The node whose kubelet a user is, if it is one; empty for one that does not tell.
pub(crate) fn node_of(user: &UserInfo) -> Option<&str> {
    let named = user.name.strip_prefix(NODE_USER_PREFIX);
    named.filter(|_| user.is_in(NODES_GROUP))
}

/// The authorizer. Has no opinion about anybody who is no node, and about what nodes may not do.
pub struct Node;

impl Authorizer for Node {
    fn authorize(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        let no_opinion = |reason: &str| Decision::NoOpinion(reason.to_owned());
        let Some(node) = node_of(attributes.user) else {
            return no_opinion("");
        };
        if node.is_empty() {
            return Decision::NoOpinion(format!("unknown node for user {:?}", attributes.user.name));
        }
        match of_some(cluster, node, attributes).filter(|_| attributes.is_resource) {
            Some(Ok(())) => return Decision::Allow,
            Some(Err(reason)) => return Decision::NoOpinion(reason),
            None => {}
        }
        if kubernetes::node_rules()
            .iter()
            .any(|rule| rbac::rule_allows(rule, attributes))
        {
            Decision::Allow
        } else {
            no_opinion("")
        }
    }

    fn rules(&self, _: &LogicalCluster, user: &UserInfo, _: &str, _: &mut dyn FnMut(&PolicyRule)) -> Vec<Unresolved> {
        let silent = || Unresolved::silent("node authorizer does not support user rule resolution");
        node_of(user).map(|_| silent()).into_iter().collect()
    }
}

/// What is decided of the kinds of which a node may have some objects only: those that it has to do with, or what it makes. Upstream's
/// admission looks at what is created. None: the role's rules tell.
fn of_some(cluster: &LogicalCluster, node: &str, attributes: &Attributes<'_>) -> Option<Result<(), String>> {
    let Attributes { verb, name, .. } = *attributes;
    let no = |why: &str| Err(why.to_owned());
    let is_whole = attributes.subresource.is_empty();
    let related = || {
        let kind = (attributes.group, attributes.resource);
        if name.is_empty() {
            return no("No Object name found");
        }
        match related::is_related(cluster, node, kind, (attributes.namespace, name)) {
            true => Ok(()),
            false => Err(format!("no relationship found between node '{node}' and this object")),
        }
    };
    let read_one = || match verb {
        "get" if is_whole => related(),
        "get" => no("cannot get subresource"),
        _ => no("can only get individual resources of this type"),
    };
    let selects = || {
        let selector = FieldSelector::parse(attributes.field_selector).ok();
        let is_own =
            |(field, equal, value): &(String, bool, String)| field == "spec.nodeName" && *equal && value == node;
        selector.is_some_and(|selector| selector.terms().iter().any(is_own))
    };
    let read = || match verb {
        "get" | "list" | "watch" if !is_whole => no("cannot read subresource"),
        "get" | "list" | "watch" if attributes.namespace.is_empty() => {
            no("can only read namespaced object of this type")
        }
        "get" | "list" | "watch" => related(),
        _ => no("can only read resources of this type"),
    };
    let is_of_one = matches!(verb, "get" | "create" | "update" | "patch" | "delete");
    let is_foreign = verb != "create" && name != node;
    Some(match (attributes.group, attributes.resource, attributes.subresource) {
        ("", "secrets" | "configmaps", _) => read(),
        ("", "persistentvolumeclaims", "status") => match verb {
            "update" | "patch" => related(),
            _ => no("can only get/update/patch this type"),
        },
        ("", "persistentvolumeclaims" | "persistentvolumes", _)
        | ("resource.k8s.io", "resourceclaims", _)
        | ("storage.k8s.io", "volumeattachments", _) => read_one(),
        ("", "serviceaccounts", "") if verb == "get" => read(),
        ("", "serviceaccounts", _) if verb != "create" || name.is_empty() => {
            no("can only create tokens for individual service accounts")
        }
        ("", "serviceaccounts", "token") => related(),
        ("", "serviceaccounts", _) => no("can only create token subresource of serviceaccount"),
        ("coordination.k8s.io", "leases", _) if !is_of_one => {
            no("can only get, create, update, patch, or delete a node lease")
        }
        ("coordination.k8s.io", "leases", _) if attributes.namespace != LEASE_NAMESPACE => {
            no("can only access leases in the \"kube-node-lease\" system namespace")
        }
        ("coordination.k8s.io", "leases", _) if is_foreign => {
            no("can only access node lease with the same name as the requesting node")
        }
        ("coordination.k8s.io", "leases", _) => Ok(()),
        ("storage.k8s.io", "csinodes", _) if !is_of_one => {
            no("can only get, create, update, patch, or delete a CSINode")
        }
        ("storage.k8s.io", "csinodes", _) if !is_whole => no("cannot authorize CSINode subresources"),
        ("storage.k8s.io", "csinodes", _) if is_foreign => {
            no("can only access CSINode with the same name as the requesting node")
        }
        ("storage.k8s.io", "csinodes", _) => Ok(()),
        ("resource.k8s.io", "resourceslices", "") => match verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => related(),
            "watch" | "list" | "deletecollection" if selects() => Ok(()),
            "watch" | "list" | "deletecollection" => {
                no("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => no(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
            ),
        },
        ("resource.k8s.io", "resourceslices", _) => no("cannot authorize ResourceSlice subresources"),
        ("", "nodes", "") => match verb {
            "create" | "update" | "patch" => Ok(()),
            "get" | "list" | "watch" if name == node => Ok(()),
            "get" | "list" | "watch" if name.is_empty() => {
                Err(format!("node '{node}' cannot read all nodes, only its own Node object"))
            }
            "get" | "list" | "watch" => Err(format!("node '{node}' cannot read '{name}', only its own Node object")),
            _ => no(""),
        },
        ("", "nodes", "status") if matches!(verb, "update" | "patch") => Ok(()),
        ("", "nodes", _) => no(""),
        ("", "pods", "") => match verb {
            "get" => read_one(),
            "list" | "watch" if selects() => Ok(()),
            "list" | "watch" if !name.is_empty() => related(),
            "list" | "watch" => no("can only list/watch pods with spec.nodeName field selector"),
            "create" | "delete" => Ok(()),
            _ => no(""),
        },
        ("", "pods", "status") if matches!(verb, "update" | "patch") => Ok(()),
        ("", "pods", "eviction") if verb == "create" => Ok(()),
        ("", "pods", _) => no(""),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use gardener_store::{Change, Expect};

    use super::*;

    async fn cluster() -> Arc<LogicalCluster> {
        let cluster = LogicalCluster::in_memory();
        kubernetes::bootstrap(&cluster).await.unwrap();
        let pod = |name: &str, node: &str, volumes: Value| {
            json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "n"},
                "spec": {"nodeName": node, "serviceAccountName": "account", "containers": [], "volumes": volumes},
            })
        };
        let of_a = json!([
            {"name": "s", "secret": {"secretName": "s"}}, {"name": "c", "configMap": {"name": "c"}},
            {"name": "v", "persistentVolumeClaim": {"claimName": "claim"}},
        ]);
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
            "spec": {"claimRef": {"namespace": "n", "name": "claim"}, "azureFile": {"secretName": "of-volume", "shareName": "s"}},
        });
        let of_b = json!([{"name": "s", "secret": {"secretName": "other"}}]);
        let objects = vec![pod("p", "a", of_a), pod("q", "b", of_b), volume];
        cluster.copy_in(objects).await.unwrap();
        cluster
    }

    fn ask(cluster: &LogicalCluster, user: &UserInfo, question: &str) -> bool {
        // verb group resource[/subresource] namespace name; a dash is nothing
        let words: Vec<&str> = question
            .split(' ')
            .map(|word| if word == "-" { "" } else { word })
            .collect();
        let [verb, group, resource, namespace, name] = words.as_slice() else {
            panic!("{question}")
        };
        let attributes = Attributes::of_resource(user, verb, group, resource, namespace, name);
        Node.authorize(cluster, &attributes) == Decision::Allow
    }

    #[tokio::test]
    async fn nodes_may_what_kubelets_do() {
        let cluster = cluster().await;
        let node = UserInfo::new("system:node:a", &[NODES_GROUP]);
        let may = "get - pods n p;create - pods n -;delete - pods n p;update - pods/status n p;\
            patch - pods/status n p;create - pods/eviction n p;create - nodes - -;update - nodes - a;patch - nodes - a;\
            patch - nodes/status - a;update - nodes/status - a;create coordination.k8s.io leases kube-node-lease -;\
            get coordination.k8s.io leases kube-node-lease a;update coordination.k8s.io leases kube-node-lease a;\
            create - events default -;patch - events default e;get - secrets n s;get - configmaps n c;watch - configmaps n c;\
            get - persistentvolumeclaims n claim;get - persistentvolumes - v;get - secrets n of-volume;list - services - -;\
            create certificates.k8s.io certificatesigningrequests - -;get certificates.k8s.io certificatesigningrequests - r;\
            watch certificates.k8s.io certificatesigningrequests - -;create - serviceaccounts/token n account;\
            create storage.k8s.io csinodes - -;get storage.k8s.io csinodes - a;list storage.k8s.io csidrivers - -";
        for question in may.split(';') {
            assert!(ask(&cluster, &node, question), "{question}");
        }
        let may_not = "list - pods - -;get - pods n q;list - nodes - -;get - nodes - b;get - secrets n other;list - secrets n -;\
            get - persistentvolumeclaims n other;create - serviceaccounts/token n other;list - persistentvolumes - -;delete - nodes - a;create - secrets n -;delete - secrets n s;update - configmaps n c;\
            get coordination.k8s.io leases kube-system a;update coordination.k8s.io leases kube-node-lease b;\
            update storage.k8s.io csinodes - b;update certificates.k8s.io certificatesigningrequests/approval - r;\
            create apps deployments n -;get rbac.authorization.k8s.io clusterroles - r";
        for question in may_not.split(';') {
            assert!(!ask(&cluster, &node, question), "{question}");
        }
    }

    #[tokio::test]
    async fn nodes_do_not_depend_on_the_role() {
        let cluster = cluster().await;
        let definition = cluster.find("rbac.authorization.k8s.io", "clusterroles").unwrap();
        let gone = Change::Delete {
            key: cluster.key(&definition, "", "system:node"),
            expect: Expect::Any,
        };
        cluster.store().commit(gone).await.unwrap();
        let node = UserInfo::new("system:node:a", &[NODES_GROUP]);
        assert!(ask(&cluster, &node, "list - services - -"));
        assert!(!ask(&cluster, &node, "create apps deployments n -"));
    }

    #[tokio::test]
    async fn only_nodes_may() {
        let cluster = cluster().await;
        for (name, group) in [
            ("system:node:a", "system:authenticated"),
            ("jane", NODES_GROUP),
            ("system:node:", NODES_GROUP),
        ] {
            let user = UserInfo::new(name, &[group]);
            assert!(!ask(&cluster, &user, "list - services - -"), "{name} {group}");
        }
    }

    #[tokio::test]
    async fn clusters_have_the_roles_of_joining_nodes() {
        let cluster = cluster().await;
        for name in [
            "system:node",
            "system:node-bootstrapper",
            "system:node-proxier",
            "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
            "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
            "system:certificates.k8s.io:kubelet-serving-approver",
        ] {
            let rules = rbac::role_rules(&cluster, "clusterroles", "", name);
            assert!(rules.is_some_and(|rules| !rules.is_empty()), "{name}");
        }
    }
}
