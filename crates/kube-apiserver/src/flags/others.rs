//! Upstream's flags that do nothing here: they are accepted where a client cannot tell, and refused where it could.

use clap::{Arg, ArgAction, ArgMatches, Command};

/// Accepted without effect: true or false.
const SWITCHES: [&str; 24] = [
    "emulation-forward-compatible",
    "runtime-config-emulation-forward-compatible",
    "shutdown-send-retry-after",
    "enable-garbage-collector",
    "watch-cache",
    "disable-http2-serving",
    "permit-address-sharing",
    "permit-port-sharing",
    "audit-log-batch-throttle-enable",
    "audit-log-compress",
    "audit-log-truncate-enabled",
    "audit-webhook-batch-throttle-enable",
    "audit-webhook-truncate-enabled",
    "contention-profiling",
    "enable-priority-and-fairness",
    "profiling",
    "service-account-extend-token-expiration",
    "service-account-lookup",
    "log-json-split-stream",
    "log-text-split-stream",
    "aggregator-reject-forwarding-redirect",
    "allow-privileged",
    "enable-aggregator-routing",
    "enable-logs-handler",
];

/// Accepted without effect: with a value.
const VALUES: [&str; 87] = [
    "cors-allowed-origins",
    "external-hostname",
    "feature-gates",
    "goaway-chance",
    "livez-grace-period",
    "max-mutating-requests-inflight",
    "max-requests-inflight",
    "min-compatibility-version",
    "min-request-timeout",
    "request-timeout",
    "shutdown-watch-termination-grace-period",
    "strict-transport-security-directives",
    "delete-collection-workers",
    "etcd-count-metric-poll-period",
    "etcd-db-metric-poll-interval",
    "etcd-healthcheck-timeout",
    "etcd-readycheck-timeout",
    "lease-reuse-duration-seconds",
    "storage-media-type",
    "watch-cache-sizes",
    "http2-max-streams-per-connection",
    "tls-cipher-suites",
    "tls-curve-preferences",
    "tls-min-version",
    "audit-log-batch-buffer-size",
    "audit-log-batch-max-size",
    "audit-log-batch-max-wait",
    "audit-log-batch-throttle-burst",
    "audit-log-batch-throttle-qps",
    "audit-log-format",
    "audit-log-maxage",
    "audit-log-maxbackup",
    "audit-log-maxsize",
    "audit-log-mode",
    "audit-log-truncate-max-batch-size",
    "audit-log-truncate-max-event-size",
    "audit-log-version",
    "audit-webhook-batch-buffer-size",
    "audit-webhook-batch-max-size",
    "audit-webhook-batch-max-wait",
    "audit-webhook-batch-throttle-burst",
    "audit-webhook-batch-throttle-qps",
    "audit-webhook-initial-backoff",
    "audit-webhook-mode",
    "audit-webhook-truncate-max-batch-size",
    "audit-webhook-truncate-max-event-size",
    "audit-webhook-version",
    "debug-socket-path",
    "authentication-token-webhook-cache-ttl",
    "authentication-token-webhook-version",
    "oidc-ca-file",
    "oidc-groups-claim",
    "oidc-groups-prefix",
    "oidc-required-claim",
    "oidc-signing-algs",
    "oidc-username-claim",
    "oidc-username-prefix",
    "service-account-max-token-expiration",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "authorization-webhook-version",
    "default-not-ready-toleration-seconds",
    "default-unreachable-toleration-seconds",
    "allow-metric-labels",
    "allow-metric-labels-manifest",
    "disabled-metrics",
    "show-hidden-metrics-for-version",
    "log-flush-frequency",
    "log-json-info-buffer-size",
    "log-text-info-buffer-size",
    "logging-format",
    "vmodule",
    "tracing-config-file",
    "coordinated-leadership-lease-duration",
    "coordinated-leadership-renew-deadline",
    "coordinated-leadership-retry-period",
    "kubelet-certificate-authority",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "kubelet-preferred-address-types",
    "kubelet-timeout",
    "kubernetes-service-node-port",
    "max-connection-bytes-per-sec",
    "peer-advertise-ip",
    "peer-advertise-port",
    "peer-ca-file",
    "service-node-port-range",
];

/// Not supported: what they ask for, clients or administrators would miss.
const REFUSED: [&str; 19] = [
    "admission-control-config-file",
    "audit-log-path",
    "audit-policy-file",
    "audit-webhook-config-file",
    "authentication-config",
    "authentication-token-webhook-config-file",
    "authorization-config",
    "authorization-policy-file",
    "authorization-webhook-config-file",
    "egress-selector-config-file",
    "emulated-version",
    "etcd-servers-overrides",
    "oidc-issuer-url",
    "oidc-client-id",
    "runtime-config",
    "service-account-signing-endpoint",
    "service-account-jwks-uri",
    "tls-sni-cert-key",
    "admission-control",
];

/// Adds them all to the command.
pub(super) fn add(command: Command) -> Command {
    let accepted = "Accepted without effect, for there is nothing here that they would change";
    let refused = "Known, but refused: what they ask for is not supported yet";
    let value = |name: &'static str| Arg::new(name).long(name).value_name("VALUE").action(ArgAction::Append);
    let switches = SWITCHES.map(|name| {
        let switch = value(name).num_args(0..=1).require_equals(true);
        switch.default_missing_value("true").help_heading(accepted)
    });
    let values = VALUES.map(|name| value(name).help_heading(accepted));
    let others = REFUSED.map(|name| value(name).help_heading(refused));
    command.args(switches).args(values).args(others)
}

/// What to say of flags that were given, but are not supported. An empty value asks for nothing.
pub(super) fn refused(matches: &ArgMatches) -> Vec<String> {
    let given = |name: &str| {
        let values = matches.get_many::<String>(name);
        values.into_iter().flatten().any(|value| !value.is_empty())
    };
    let names = REFUSED.iter().filter(|name| given(name));
    names
        .map(|name| format!("--{name} is not supported yet: leave it out"))
        .collect()
}
