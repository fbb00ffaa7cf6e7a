//! gardener-apiserver's flags that do nothing here: accepted, and told in the log, so that an operator's manifests may go on carrying them.

use gardener_kube_apiserver::flags::common;
use gardener_kube_apiserver::flags::line::Others;

/// All of them.
pub(super) const OTHERS: Others = Others {
    switches: &[&common::SWITCHES, &SWITCHES],
    values: &[&common::VALUES, &VALUES],
    refused: &[],
};

const SWITCHES: [&str; 2] = ["alsologtostderr", "logtostderr"];

const VALUES: [&str; 2] = ["default-watch-cache-size", "emulated-version"];
