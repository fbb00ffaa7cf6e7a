//! Upstream's flags that do nothing here: they are accepted where a client cannot tell, and refused where it could.

use super::common;
use super::line::Others;

/// All of them.
pub(super) const OTHERS: Others = Others {
    switches: &[&common::SWITCHES, &SWITCHES],
    values: &[&common::VALUES, &VALUES],
    refused: &REFUSED,
};

/// Accepted without effect: true or false.
const SWITCHES: [&str; 3] = [
    "enable-aggregator-routing",
    "enable-logs-handler",
    "service-account-lookup",
];

/// Accepted without effect: with a value.
const VALUES: [&str; 19] = [
    "apiserver-count",
    "coordinated-leadership-lease-duration",
    "coordinated-leadership-renew-deadline",
    "coordinated-leadership-retry-period",
    "default-watch-cache-size",
    "feature-gates",
    "kubelet-certificate-authority",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "kubelet-port",
    "kubelet-preferred-address-types",
    "kubelet-read-only-port",
    "kubelet-timeout",
    "kubernetes-service-node-port",
    "max-connection-bytes-per-sec",
    "peer-advertise-ip",
    "peer-advertise-port",
    "peer-ca-file",
    "storage-media-type",
];

/// Not supported: what they ask for, clients or administrators would miss.
const REFUSED: [&str; 4] = [
    "authorization-policy-file",
    "emulated-version",
    "service-account-signing-endpoint",
    "admission-control",
];
