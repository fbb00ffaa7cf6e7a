//! The command line, as upstream's: those flags that do something here, those that are accepted because leaving them out changes nothing that a client
//! sees, and those that are refused because ignoring them would.

mod audit;
mod authentication;
mod authorization;
pub mod common;
pub mod etcd_overrides;
pub mod groups;
pub mod line;
mod others;
mod port_range;
mod runtime_config;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Command};
use gardener_apimachinery::duration::Duration;
use ipnet::IpNet;

pub use audit::AuditFlags;
pub use authentication::AuthenticationFlags;
pub use authorization::AuthorizationFlags;
pub use groups::{AdmissionFlags, CallerFlags, EndingFlags, EtcdFlags, InFlightFlags, NamedCertificate, ServingFlags};
pub use line::{FlagError, Line, Program, Switch};
pub use port_range::PortRange;
pub use runtime_config::RuntimeConfig;

/// The flags that do something.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct Flags {
    /// Where and how the server is reached.
    #[command(flatten)]
    pub serving: ServingFlags,
    /// Where objects are kept.
    #[command(flatten)]
    pub etcd: EtcdFlags,
    /// Whose certificates are believed.
    #[command(flatten)]
    pub callers: CallerFlags,
    /// Which admission plugins run.
    #[command(flatten)]
    pub admission: AdmissionFlags,
    /// Whether redirects of servers behind APIServices are refused rather than told to clients.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub aggregator_reject_forwarding_redirect: bool,
    /// Whether pods may have privileged containers.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub allow_privileged: bool,
    /// Audiences of service account tokens [default: the issuers].
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub api_audiences: Vec<String>,
    /// How many seconds pods stay on a node that is not ready, unless they say so themselves.
    #[arg(long, default_value = "300", value_name = "INT")]
    pub default_not_ready_toleration_seconds: i64,
    /// How many seconds pods stay on a node that cannot be reached, unless they say so themselves.
    #[arg(long, default_value = "300", value_name = "INT")]
    pub default_unreachable_toleration_seconds: i64,
    /// What is told of requests, and where.
    #[command(flatten)]
    pub audit: AuditFlags,
    /// Whose tokens are accepted besides the cluster's own, and who comes without any.
    #[command(flatten)]
    pub authentication: AuthenticationFlags,
    /// Who says what is allowed.
    #[command(flatten)]
    pub authorization: AuthorizationFlags,
    /// By which ways this server reaches aggregated servers, webhooks and issuers: straight, or by proxies (EgressSelectorConfiguration of apiserver.k8s.io).
    #[arg(long, value_name = "FILE")]
    pub egress_selector_config_file: Option<PathBuf>,
    /// Whether bootstrap tokens in Secrets of kube-system are accepted.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub enable_bootstrap_token_auth: bool,
    /// Whether this server's address is kept in the endpoints of the service kubernetes: lease or master-count; none does not.
    #[arg(long, default_value = "lease", value_name = "STRING", value_parser = ["lease", "master-count", "none"])]
    pub endpoint_reconciler_type: String,
    /// How long events are kept.
    #[arg(long, default_value = "1h0m0s", value_name = "DURATION")]
    pub event_ttl: Duration,
    /// Certificate (PEM) to show to the servers behind APIServices, which believe its bearer whom it asks for.
    #[arg(long, value_name = "FILE")]
    pub proxy_client_cert_file: Option<PathBuf>,
    /// Key (PEM) of the certificate to show to the servers behind APIServices.
    #[arg(long, value_name = "FILE")]
    pub proxy_client_key_file: Option<PathBuf>,
    /// Which built-in APIs are served: <group>/<version>=false switches one off, api/beta=true and others name many. All that are there are served.
    #[arg(long, value_delimiter = ',', value_name = "KEY=BOOL")]
    pub runtime_config: Vec<String>,
    /// Whether tokens of the volumes that pods get on their own are good for a year.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub service_account_extend_token_expiration: bool,
    /// Issuer of service account tokens. More of them are issuers whose tokens are accepted, too.
    #[arg(long, value_name = "STRING")]
    pub service_account_issuer: Vec<String>,
    /// Where others find the keys of service account tokens, if elsewhere than on this server.
    #[arg(long, default_value = "", value_name = "STRING")]
    pub service_account_jwks_uri: String,
    /// Keys (PEM) of service account tokens that are accepted: public or private ones, or certificates. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub service_account_key_file: Vec<PathBuf>,
    /// How long service account tokens live at most that are asked for; 0 sets no limit.
    #[arg(long, default_value = "0s", value_name = "DURATION")]
    pub service_account_max_token_expiration: Duration,
    /// Key (PEM) that signs service account tokens.
    #[arg(long, value_name = "FILE")]
    pub service_account_signing_key_file: Option<PathBuf>,
    /// Ranges of services' addresses: one, or one of each family.
    #[arg(long, value_delimiter = ',', default_value = "10.0.0.0/24", value_name = "CIDRS")]
    pub service_cluster_ip_range: Vec<IpNet>,
    /// Ports of nodes that services get: MIN-MAX, MIN+OFFSET or one port.
    #[arg(long, default_value = "30000-32767", value_name = "PORTS")]
    pub service_node_port_range: PortRange,
    /// Users by token: lines of token,user,uid,"group,group".
    #[arg(long, value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// How much to log: 0 warnings, 2 what happens, 4 and more everything.
    #[arg(long, short, default_value = "0", value_name = "LEVEL")]
    pub v: u8,
    /// All flags with their values, for people to look at.
    #[arg(skip)]
    pub told: BTreeMap<String, String>,
}

/// What this server is called by, and what it says of itself.
const PROGRAM: Program = Program {
    name: "kube-apiserver",
    about: "Serves the Kubernetes API of one cluster from etcd. Takes the flags of Kubernetes' own kube-apiserver.",
    version: served_version,
    others: &others::OTHERS,
};

fn served_version() -> String {
    format!("Kubernetes v{}", crate::VERSION)
}

/// The command with all its flags.
pub fn command() -> Command {
    PROGRAM.command::<Flags>()
}

/// Reads the arguments behind the program's name. As with upstream `--etcd_servers` is `--etcd-servers`, and empty arguments do not count.
///
/// # Errors
/// [`FlagError`].
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Flags, FlagError> {
    let line = PROGRAM.parse(command(), arguments, Flags::errors)?;
    Ok(Flags {
        told: line.values,
        ..line.flags
    })
}

/// The admission plugins that upstream knows.
const ADMISSION_PLUGINS: [&str; 41] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "JobValidation",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NamespaceLifecycle",
    "NodeDeclaredFeatureValidator",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodGroupProtection",
    "PodGroupWorkloadExists",
    "PodNodeSelector",
    "PodResizeValidator",
    "PodSecurity",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

impl Flags {
    /// What is missing or does not go together, in upstream's words where it has some.
    fn errors(&self) -> Vec<String> {
        let mut errors = self.etcd.errors();
        errors.extend(self.serving.errors());
        let mut require = |holds: bool, message: &str| {
            if !holds {
                errors.push(message.to_owned());
            }
        };
        require(
            self.service_account_issuer.iter().any(|issuer| !issuer.is_empty()),
            "service-account-issuer is a required flag",
        );
        require(
            self.service_account_jwks_uri.is_empty() || self.service_account_jwks_uri.starts_with("https://"),
            "--service-account-jwks-uri requires the https scheme",
        );
        require(
            !self.service_account_key_file.is_empty(),
            "--service-account-key-file must be set",
        );
        require(
            self.service_account_signing_key_file.is_some(),
            "--service-account-signing-key-file is a required flag",
        );
        let ranges = &self.service_cluster_ip_range;
        let families = |v4: bool| ranges.iter().filter(|range| range.addr().is_ipv4() == v4).count();
        require(
            (1..=2).contains(&ranges.len()) && families(true) < 2 && families(false) < 2,
            "--service-cluster-ip-range must contain one range, or one of each family",
        );
        let advertised = self.serving.advertised();
        if let Some(first) = ranges
            .first()
            .filter(|first| first.addr().is_ipv4() != advertised.is_ipv4())
        {
            errors.push(format!(
                "service IP family {:?} must match public address family {:?}: give a range of the other family first, or an --advertise-address of this one",
                first.to_string(),
                advertised.to_string()
            ));
        }
        errors.extend(self.audit.errors());
        errors.extend(self.authentication.errors());
        errors.extend(self.authorization.errors());
        errors.extend(self.admission.errors(&ADMISSION_PLUGINS));
        errors.extend(self.callers.errors());
        errors.extend(self.runtime_config().err().into_iter().flatten());
        errors
    }

    /// Which of the built-in APIs are served.
    ///
    /// # Errors
    /// What is wrong with the flag.
    pub fn runtime_config(&self) -> Result<RuntimeConfig, Vec<String>> {
        RuntimeConfig::read(&self.runtime_config)
    }

    /// What to log, as `tracing` filters it.
    pub fn log_level(&self) -> &'static str {
        line::log_level(self.v)
    }
}

#[cfg(test)]
mod tests;
