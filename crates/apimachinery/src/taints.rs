//! Taints of nodes that Kubernetes itself sets, and who bears them.

/// Key and effect of the taints that pods of DaemonSets tolerate though their template does not say so; one more with the host's network.
/// <https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations>
pub fn tolerated_by_daemons(host_network: bool) -> &'static [(&'static str, &'static str)] {
    static WITH_HOST_NETWORK: [(&str, &str); 7] = [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
        ("node.kubernetes.io/network-unavailable", "NoSchedule"),
    ];
    match (host_network, WITH_HOST_NETWORK.split_last()) {
        (false, Some((_, others))) => others,
        _ => &WITH_HOST_NETWORK,
    }
}
