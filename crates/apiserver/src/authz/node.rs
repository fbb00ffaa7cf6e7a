//! What kubelets may do: the rules of ClusterRole `system:node`, for users of group `system:nodes`.
//!
//! Nodes' own leases and CSINodes are theirs alone. Secrets, config maps and pods are not yet bound to the node that uses them.

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{Attributes, Authorizer, Decision, Unresolved};
use crate::cluster::LogicalCluster;
use crate::rbac;
use crate::user::UserInfo;

/// The group of all nodes.
pub const NODES_GROUP: &str = "system:nodes";
/// What users of nodes begin with; the node's name follows.
pub const NODE_USER_PREFIX: &str = "system:node:";

const ROLE: &str = "system:node";
const LEASE_NAMESPACE: &str = "kube-node-lease";

/// The authorizer. Has no opinion about anybody who is no node, and about what nodes may not do.
pub struct Node;

impl Authorizer for Node {
    fn authorize(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        let no_opinion = |reason: &str| Decision::NoOpinion(reason.to_owned());
        if !attributes.user.is_in(NODES_GROUP) {
            return no_opinion("");
        }
        let Some(node) = attributes.user.name.strip_prefix(NODE_USER_PREFIX) else {
            return no_opinion("");
        };
        if node.is_empty() {
            return no_opinion("unknown node");
        }
        if let Some(reason) = not_its_own(node, attributes) {
            return no_opinion(reason);
        }
        let rules = rbac::role_rules(cluster, "clusterroles", "", ROLE).unwrap_or_default();
        if rules.iter().any(|rule| rbac::rule_allows(rule, attributes)) {
            Decision::Allow
        } else {
            no_opinion("")
        }
    }

    fn rules(&self, _: &LogicalCluster, user: &UserInfo, _: &str, _: &mut dyn FnMut(&PolicyRule)) -> Vec<Unresolved> {
        let is_node = user.is_in(NODES_GROUP) && user.name.starts_with(NODE_USER_PREFIX);
        let silent = || Unresolved::silent("node authorizer does not support user rule resolution");
        is_node.then(silent).into_iter().collect()
    }
}

/// Why a node may not touch what belongs to another one. Creations carry no name yet.
fn not_its_own(node: &str, attributes: &Attributes<'_>) -> Option<&'static str> {
    let foreign = attributes.verb != "create" && attributes.name != node;
    match (attributes.group, attributes.resource) {
        ("coordination.k8s.io", "leases") if attributes.namespace != LEASE_NAMESPACE => {
            Some("can only access leases in the \"kube-node-lease\" system namespace")
        }
        ("coordination.k8s.io", "leases") if foreign => {
            Some("can only access node lease with the same name as the requesting node")
        }
        ("storage.k8s.io", "csinodes") if foreign => {
            Some("can only access CSINode with the same name as the requesting node")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{UserInfo, kubernetes};

    async fn cluster() -> Arc<LogicalCluster> {
        let cluster = LogicalCluster::in_memory();
        kubernetes::bootstrap(&cluster).await.unwrap();
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
        let may = "list - pods - -;watch - pods - -;get - pods n p;create - pods n -;delete - pods n p;update - pods/status n p;\
            patch - pods/status n p;create - pods/eviction n p;create - nodes - -;update - nodes - a;patch - nodes - a;\
            patch - nodes/status - a;update - nodes/status - a;create coordination.k8s.io leases kube-node-lease -;\
            get coordination.k8s.io leases kube-node-lease a;update coordination.k8s.io leases kube-node-lease a;\
            create - events default -;patch - events default e;get - secrets n s;get - configmaps n c;watch - configmaps n -;\
            get - persistentvolumeclaims n c;get - persistentvolumes - v;list - services - -;\
            create certificates.k8s.io certificatesigningrequests - -;get certificates.k8s.io certificatesigningrequests - r;\
            watch certificates.k8s.io certificatesigningrequests - -;create - serviceaccounts/token n s;\
            create storage.k8s.io csinodes - -;get storage.k8s.io csinodes - a;list storage.k8s.io csidrivers - -";
        for question in may.split(';') {
            assert!(ask(&cluster, &node, question), "{question}");
        }
        let may_not = "delete - nodes - a;create - secrets n -;delete - secrets n s;update - configmaps n c;\
            get coordination.k8s.io leases kube-system a;update coordination.k8s.io leases kube-node-lease b;\
            update storage.k8s.io csinodes - b;update certificates.k8s.io certificatesigningrequests/approval - r;\
            create apps deployments n -;get rbac.authorization.k8s.io clusterroles - r";
        for question in may_not.split(';') {
            assert!(!ask(&cluster, &node, question), "{question}");
        }
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
            assert!(!ask(&cluster, &user, "list - pods - -"), "{name} {group}");
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
