//! The order in which objects are applied `[EXT-150]` `[GRM-12]`: what others need comes first.

use std::cmp::Ordering;

/// Kinds in the order in which Helm installs them.
const ORDER: [&str; 34] = [
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
];

/// Compares two objects by kind and name. Kinds that Helm does not know come last, in alphabetical order.
pub fn compare(a: (&str, &str), b: (&str, &str)) -> Ordering {
    let place = |kind: &str| match ORDER.iter().position(|own| *own == kind) {
        Some(place) => place,
        None if kind == "APIService" => ORDER.len(),
        None => ORDER.len() + 1,
    };
    place(a.0)
        .cmp(&place(b.0))
        .then_with(|| a.0.cmp(b.0))
        .then_with(|| a.1.cmp(b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grm_12_namespaces_first_unknown_kinds_last() {
        let mut list = [
            ("Zebra", "a"),
            ("Deployment", "b"),
            ("APIService", "x"),
            ("Deployment", "a"),
            ("Namespace", "z"),
            ("Apple", "a"),
            ("CustomResourceDefinition", "c"),
        ];
        list.sort_by(|a, b| compare(*a, *b));
        let kinds: Vec<&str> = list.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            kinds,
            [
                "Namespace",
                "CustomResourceDefinition",
                "Deployment",
                "Deployment",
                "APIService",
                "Apple",
                "Zebra"
            ]
        );
        assert_eq!(list[2].1, "a");
    }
}
