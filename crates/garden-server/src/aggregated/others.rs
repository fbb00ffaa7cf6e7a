//! gardener-apiserver's flags that do nothing here: accepted, and told in the log, where an operator's manifests may go on carrying them; refused where
//! ignoring them would lead to other data or another network.

use gardener_kube_apiserver::flags::common;
use gardener_kube_apiserver::flags::line::Others;

/// All of them.
pub(super) const OTHERS: Others = Others {
    switches: &[&common::SWITCHES, &SWITCHES],
    values: &[&common::VALUES, &VALUES],
    refused: &[],
};

const SWITCHES: [&str; 2] = ["alsologtostderr", "logtostderr"];

const VALUES: [&str; 3] = [
    "audit-webhook-batch-initial-backoff",
    "default-watch-cache-size",
    "emulated-version",
];
