//! The command line, as upstream's: those flags that do something here, those that are accepted because leaving them out changes nothing that a client
//! sees, and those that are refused because ignoring them would.

mod others;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, Command, FromArgMatches};
use gardener_apimachinery::duration::Duration;
use gardener_apimachinery::meta::is_true;
use ipnet::IpNet;

/// The flags that do something.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct Flags {
    /// The address under which members of the cluster reach this server [default: the bind address, or the host's own].
    #[arg(long, value_name = "IP")]
    pub advertise_address: Option<IpAddr>,
    /// Whether requests without credentials are those of system:anonymous.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub anonymous_auth: bool,
    /// Audiences of service account tokens [default: the issuers].
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub api_audiences: Vec<String>,
    /// Who says what is allowed, in order: AlwaysAllow, AlwaysDeny, Node, RBAC.
    #[arg(long, value_delimiter = ',', default_value = "AlwaysAllow", value_name = "STRINGS")]
    pub authorization_mode: Vec<String>,
    /// The address to listen on.
    #[arg(long, default_value = "0.0.0.0", value_name = "IP")]
    pub bind_address: IpAddr,
    /// Where the serving certificate is, or is made, if none is given: apiserver.crt and apiserver.key.
    #[arg(long, default_value = "/var/run/kubernetes", value_name = "FOLDER")]
    pub cert_dir: PathBuf,
    /// Authorities (PEM) of client certificates.
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// Admission plugins to leave out.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub disable_admission_plugins: Vec<String>,
    /// Admission plugins to run besides those that always do.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub enable_admission_plugins: Vec<String>,
    /// Whether bootstrap tokens in Secrets of kube-system are accepted.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub enable_bootstrap_token_auth: bool,
    /// Which resources are encrypted in etcd, with which keys (EncryptionConfiguration of apiserver.config.k8s.io/v1).
    #[arg(long, value_name = "FILE")]
    pub encryption_provider_config: Option<PathBuf>,
    /// Whether the encryption configuration is read again when it changes: not supported yet.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub encryption_provider_config_automatic_reload: bool,
    /// Whether this server's address is kept in the endpoints of the service kubernetes: lease or master-count; none does not.
    #[arg(long, default_value = "lease", value_name = "STRING", value_parser = ["lease", "master-count", "none"])]
    pub endpoint_reconciler_type: String,
    /// Authorities (PEM) of etcd's certificates.
    #[arg(long, value_name = "FILE")]
    pub etcd_cafile: Option<PathBuf>,
    /// Certificate (PEM) to show to etcd.
    #[arg(long, value_name = "FILE")]
    pub etcd_certfile: Option<PathBuf>,
    /// How often etcd's history is cut; 0 leaves it to others.
    #[arg(long, default_value = "5m0s", value_name = "DURATION")]
    pub etcd_compaction_interval: Duration,
    /// Key (PEM) of the certificate to show to etcd.
    #[arg(long, value_name = "FILE")]
    pub etcd_keyfile: Option<PathBuf>,
    /// What keys in etcd begin with.
    #[arg(long, default_value = "/registry", value_name = "STRING")]
    pub etcd_prefix: String,
    /// Client URLs of etcd.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub etcd_servers: Vec<String>,
    /// How long events are kept.
    #[arg(long, default_value = "1h0m0s", value_name = "DURATION")]
    pub event_ttl: Duration,
    /// Certificate (PEM) to show to the servers behind APIServices, which believe its bearer whom it asks for.
    #[arg(long, value_name = "FILE")]
    pub proxy_client_cert_file: Option<PathBuf>,
    /// Key (PEM) of the certificate to show to the servers behind APIServices.
    #[arg(long, value_name = "FILE")]
    pub proxy_client_key_file: Option<PathBuf>,
    /// Common names of front proxies' certificates; all if empty.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub requestheader_allowed_names: Vec<String>,
    /// Authorities (PEM) of front proxies, who tell in headers for whom they ask.
    #[arg(long, value_name = "FILE")]
    pub requestheader_client_ca_file: Option<PathBuf>,
    /// What headers with more facts of a user begin with.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub requestheader_extra_headers_prefix: Vec<String>,
    /// Headers with a user's groups.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub requestheader_group_headers: Vec<String>,
    /// Headers with a user's uid.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub requestheader_uid_headers: Vec<String>,
    /// Headers with a user's name.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub requestheader_username_headers: Vec<String>,
    /// The port to listen on.
    #[arg(long, default_value = "6443", value_name = "INT")]
    pub secure_port: i64,
    /// Issuer of service account tokens. More of them are issuers whose tokens are accepted, too.
    #[arg(long, value_name = "STRING")]
    pub service_account_issuer: Vec<String>,
    /// Keys (PEM) of service account tokens that are accepted: public or private ones, or certificates. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub service_account_key_file: Vec<PathBuf>,
    /// Key (PEM) that signs service account tokens.
    #[arg(long, value_name = "FILE")]
    pub service_account_signing_key_file: Option<PathBuf>,
    /// Ranges of services' addresses: one, or one of each family.
    #[arg(long, value_delimiter = ',', default_value = "10.0.0.0/24", value_name = "CIDRS")]
    pub service_cluster_ip_range: Vec<IpNet>,
    /// How long this server serves after it was told to end, and says that it is not ready.
    #[arg(long, default_value = "0s", value_name = "DURATION")]
    pub shutdown_delay_duration: Duration,
    /// Where objects are kept.
    #[arg(long, default_value = "etcd3", value_name = "STRING", value_parser = ["etcd3"])]
    pub storage_backend: String,
    /// How long etcd may take to be there at the start.
    #[arg(long, default_value = "1m0s", value_name = "DURATION")]
    pub storage_initialization_timeout: Duration,
    /// Serving certificate with its chain (PEM).
    #[arg(long, value_name = "FILE")]
    pub tls_cert_file: Option<PathBuf>,
    /// Key (PEM) of the serving certificate.
    #[arg(long, value_name = "FILE")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Users by token: lines of token,user,uid,"group,group".
    #[arg(long, value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// How much to log: 0 warnings, 2 what happens, 4 and more everything.
    #[arg(long, short, default_value = "0", value_name = "LEVEL")]
    pub v: u8,
}

/// `true` and `false` in Go's spellings.
#[derive(Clone)]
struct Switch;

impl TypedValueParser for Switch {
    type Value = bool;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<bool, clap::Error> {
        match value.to_str() {
            Some(text) if is_true(text) => Ok(true),
            Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
            _ => clap::builder::BoolValueParser::new().parse_ref(command, argument, value),
        }
    }
}

/// Why the command line cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FlagError {
    /// It asks for the version.
    #[error("Kubernetes v{}", crate::VERSION)]
    Version,
    /// It cannot be read, or it asks for help: the text says so, or is that.
    #[error(transparent)]
    Command(#[from] clap::Error),
    /// Flags that are missing or do not go together.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
}

/// The command with all its flags.
pub fn command() -> Command {
    let command = Command::new("kube-apiserver")
        .arg(
            clap::Arg::new("version")
                .long("version")
                .action(clap::ArgAction::SetTrue)
                .help("Print the version of Kubernetes that is served"),
        )
        .args_override_self(true)
        .help_template("{about}\n\nUsage: {usage}\n\n{all-args}\n");
    let command = Flags::augment_args(command);
    let about =
        "Serves the Kubernetes API of one cluster from etcd. Takes the flags of Kubernetes' own kube-apiserver.";
    others::add(command).about(about).long_about(about)
}

/// Reads the arguments behind the program's name. As with upstream `--etcd_servers` is `--etcd-servers`, and empty arguments do not count.
///
/// # Errors
/// [`FlagError`].
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Flags, FlagError> {
    let arguments = arguments
        .into_iter()
        .filter(|argument| !argument.is_empty())
        .map(normalized);
    let matches = command().try_get_matches_from(std::iter::once("kube-apiserver".to_owned()).chain(arguments))?;
    if matches.get_flag("version") {
        return Err(FlagError::Version);
    }
    let flags = Flags::from_arg_matches(&matches)?;
    let mut errors = others::refused(&matches);
    errors.extend(flags.errors());
    match errors.is_empty() {
        true => Ok(flags),
        false => Err(FlagError::Invalid(errors)),
    }
}

fn normalized(argument: String) -> String {
    match argument.strip_prefix("--") {
        Some(flag) => {
            let (name, value) = flag.split_at(flag.find('=').unwrap_or(flag.len()));
            format!("--{}{value}", name.replace('_', "-"))
        }
        None => argument,
    }
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
        let mut errors = Vec::new();
        let mut require = |holds: bool, message: &str| {
            if !holds {
                errors.push(message.to_owned());
            }
        };
        require(!self.etcd_servers.is_empty(), "--etcd-servers must be specified");
        require(
            (1..=65535).contains(&self.secure_port),
            &format!(
                "--secure-port {} must be between 1 and 65535, inclusive. It cannot be turned off with 0",
                self.secure_port
            ),
        );
        require(
            self.service_account_issuer.iter().any(|issuer| !issuer.is_empty()),
            "service-account-issuer is a required flag",
        );
        require(
            !self.service_account_key_file.is_empty(),
            "--service-account-key-file must be set",
        );
        require(
            self.service_account_signing_key_file.is_some(),
            "--service-account-signing-key-file is a required flag",
        );
        require(
            !self.encryption_provider_config_automatic_reload,
            "--encryption-provider-config-automatic-reload is not supported yet: leave it out, and restart the server when the file changes",
        );
        for (one, other, names) in [
            (
                &self.tls_cert_file,
                &self.tls_private_key_file,
                "--tls-cert-file and --tls-private-key-file",
            ),
            (
                &self.etcd_certfile,
                &self.etcd_keyfile,
                "--etcd-certfile and --etcd-keyfile",
            ),
        ] {
            require(one.is_some() == other.is_some(), &format!("{names} go together"));
        }
        for mode in &self.authorization_mode {
            require(
                ["AlwaysAllow", "AlwaysDeny", "Node", "RBAC"].contains(&mode.as_str()),
                &format!(
                    "authorization-mode {mode:?} is not a valid mode: it must be AlwaysAllow, AlwaysDeny, Node or RBAC"
                ),
            );
        }
        for (flag, plugins) in [
            ("enable", &self.enable_admission_plugins),
            ("disable", &self.disable_admission_plugins),
        ] {
            for plugin in plugins
                .iter()
                .filter(|plugin| !ADMISSION_PLUGINS.contains(&plugin.as_str()))
            {
                require(false, &format!("{flag}-admission-plugins plugin {plugin:?} is unknown"));
            }
        }
        let ranges = &self.service_cluster_ip_range;
        let families = |v4: bool| ranges.iter().filter(|range| range.addr().is_ipv4() == v4).count();
        require(
            (1..=2).contains(&ranges.len()) && families(true) < 2 && families(false) < 2,
            "--service-cluster-ip-range must contain one range, or one of each family",
        );
        require(
            self.requestheader_client_ca_file.is_none() || !self.requestheader_username_headers.is_empty(),
            "--requestheader-client-ca-file needs --requestheader-username-headers",
        );
        errors
    }

    /// The address under which others reach this server.
    pub fn advertised(&self) -> IpAddr {
        self.advertise_address.unwrap_or_else(|| match self.bind_address {
            address if !address.is_unspecified() && !address.is_loopback() => address,
            _ => own_address().unwrap_or(self.bind_address),
        })
    }

    /// What to log, as `tracing` filters it.
    pub fn log_level(&self) -> &'static str {
        match self.v {
            0 => "warn",
            1..=3 => "info",
            4..=7 => "debug",
            _ => "trace",
        }
    }
}

/// The host's address towards the rest of the world. Nothing is sent: a datagram socket that is connected only looks at routes.
fn own_address() -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests;
