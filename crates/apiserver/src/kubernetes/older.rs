//! Versions that are not served any more, in which an etcd may still hold objects: kube-apiserver reads every version that it ever stored, and
//! rewrites an object only when somebody writes it.

/// By group, the versions whose kinds have the form of the stored version's: the same members in JSON, by the same numbers in protobuf.
const SAME: [(&str, &[&str]); 15] = [
    ("admissionregistration.k8s.io", &["v1alpha1", "v1beta1"]),
    ("apps", &["v1beta1", "v1beta2"]),
    ("autoscaling", &["v2beta2"]),
    ("batch", &["v1beta1"]),
    ("certificates.k8s.io", &["v1beta1"]),
    ("coordination.k8s.io", &["v1beta1"]),
    ("flowcontrol.apiserver.k8s.io", &["v1beta1", "v1beta2", "v1beta3"]),
    ("networking.k8s.io", &["v1beta1"]),
    ("node.k8s.io", &["v1beta1"]),
    ("policy", &["v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1beta1"]),
    ("resource.k8s.io", &["v1beta1", "v1beta2"]),
    ("scheduling.k8s.io", &["v1beta1"]),
    ("storage.k8s.io", &["v1alpha1", "v1beta1"]),
    ("apiregistration.k8s.io", &["v1beta1"]),
];

/// Kinds of those versions whose form became another one.
const CHANGED: [(&str, &str, &str); 6] = [
    ("flowcontrol.apiserver.k8s.io", "v1beta1", "PriorityLevelConfiguration"),
    ("flowcontrol.apiserver.k8s.io", "v1beta2", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "v1beta1", "Ingress"),
    ("resource.k8s.io", "v1beta1", "ResourceClaim"),
    ("resource.k8s.io", "v1beta1", "ResourceClaimTemplate"),
    ("resource.k8s.io", "v1beta1", "ResourceSlice"),
];

/// Whether objects of a version that is not served can be read as those of the stored version.
pub(super) fn is_same_form(group: &str, version: &str, kind: &str) -> bool {
    let mut same = SAME.iter();
    same.any(|(own, versions)| *own == group && versions.contains(&version))
        && !CHANGED.contains(&(group, version, kind))
}
