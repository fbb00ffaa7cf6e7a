//! Flags that API servers share, with what is wrong with them: as the option structs of k8s.io/apiserver, which upstream's servers are made of.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use gardener_apimachinery::duration::Duration;
use gardener_apiserver::cors::{Origins, PatternError};
use gardener_apiserver::listen::{Protocols, UnknownProtocol};
use gardener_apiserver::{InFlight, Seats};
use http::HeaderValue;

use super::etcd_overrides;
use super::line::Switch;

/// Where and how the server is reached.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct ServingFlags {
    /// The address under which members of the cluster reach this server [default: the bind address, or the host's own].
    #[arg(long, value_name = "IP")]
    pub advertise_address: Option<IpAddr>,
    /// The host name under which this server is told to clients [default: the advertised address].
    #[arg(long, value_name = "HOST")]
    pub external_hostname: Option<String>,
    /// The address to listen on.
    #[arg(long, default_value = "0.0.0.0", value_name = "IP")]
    pub bind_address: IpAddr,
    /// Where the serving certificate is, or is made, if none is given: apiserver.crt and apiserver.key.
    #[arg(long, default_value = "/var/run/kubernetes", value_name = "FOLDER")]
    pub cert_dir: PathBuf,
    /// Regular expressions of the origins whose web pages may read answers (CORS), such as //example\.com(:|$).
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub cors_allowed_origins: Vec<String>,
    /// The port to listen on.
    #[arg(long, default_value = "6443", value_name = "INT")]
    pub secure_port: i64,
    /// How it ends.
    #[command(flatten)]
    pub ending: EndingFlags,
    /// How many requests it serves at once.
    #[command(flatten)]
    pub in_flight: InFlightFlags,
    /// What browsers are told of secure transport (Strict-Transport-Security): max-age=SECONDS, includeSubDomains, preload.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub strict_transport_security_directives: Vec<String>,
    /// Serving certificate with its chain (PEM).
    #[arg(long, value_name = "FILE")]
    pub tls_cert_file: Option<PathBuf>,
    /// Cipher suites of TLS 1.2 that clients may use, by Go's names; all that are safe if none is given.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub tls_cipher_suites: Vec<String>,
    /// The oldest version of TLS that clients may speak: VersionTLS12 or VersionTLS13. Older ones are never spoken.
    #[arg(long, default_value = "", value_name = "STRING")]
    pub tls_min_version: String,
    /// Key (PEM) of the serving certificate.
    #[arg(long, value_name = "FILE")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Certificate and key (PEM) for some host names, `cert,key:name,*.name`, or for those that the certificate names. May be repeated.
    #[arg(long, value_name = "FILE,FILE[:NAMES]")]
    pub tls_sni_cert_key: Vec<NamedCertificate>,
}

/// How connections end, and the server.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct EndingFlags {
    /// Share of requests by HTTP/2, 0 to 0.02, after which the client is told to go on by another connection (GOAWAY): where several servers are behind one address, clients spread over them.
    #[arg(long, default_value = "0", value_name = "FLOAT")]
    pub goaway_chance: f64,
    /// How many seconds a watch lives at least whose client sets no limit; it may be up to twice as long.
    #[arg(long, default_value = "1800", value_name = "INT")]
    pub min_request_timeout: i64,
    /// How long a request may take that is no watch and the like, unless it asks for less; also when this server ends meanwhile.
    #[arg(long, default_value = "1m0s", value_name = "DURATION")]
    pub request_timeout: Duration,
    /// How long this server serves after it was told to end, and says that it is not ready.
    #[arg(long, default_value = "0s", value_name = "DURATION")]
    pub shutdown_delay_duration: Duration,
    /// Whether this server still takes connections after that, and asks clients to come back later (429), until those requests have ended that run.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub shutdown_send_retry_after: bool,
    /// Over which time watches end when this server ends, so that not all clients come back at once.
    #[arg(long, default_value = "0s", value_name = "DURATION")]
    pub shutdown_watch_termination_grace_period: Duration,
}

impl EndingFlags {
    /// What is wrong with them.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        for (value, message) in [
            (self.request_timeout, "--request-timeout can not be negative value"),
            (
                self.shutdown_delay_duration,
                "--shutdown-delay-duration can not be negative value",
            ),
            (
                self.shutdown_watch_termination_grace_period,
                "shutdown-watch-termination-grace-period, if provided, can not be a negative value",
            ),
        ] {
            if value.as_nanos() < 0 {
                errors.push(message.to_owned());
            }
        }
        if self.min_request_timeout < 0 {
            errors.push("--min-request-timeout can not be negative value".to_owned());
        }
        if !(0.0..=0.02).contains(&self.goaway_chance) {
            errors.push("--goaway-chance can not be less than 0 or greater than 0.02".to_owned());
        }
        errors
    }

    /// How long watches live at least.
    pub fn watch_timeout(&self) -> std::time::Duration {
        std::time::Duration::from_secs(self.min_request_timeout.unsigned_abs())
    }
}

/// How many requests are served at once.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct InFlightFlags {
    /// Whether requests that find too many wait for their turn, by the flows that they belong to, instead of being refused.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub enable_priority_and_fairness: bool,
    /// How many requests that read are served at once without priority and fairness; others are refused (429), and 0 sets no limit. With priority and
    /// fairness there are as many seats for all requests as this and --max-mutating-requests-inflight sum up to.
    #[arg(long, default_value = "400", value_name = "INT")]
    pub max_requests_inflight: i64,
    /// How many other requests are served at once without priority and fairness; see --max-requests-inflight.
    #[arg(long, default_value = "200", value_name = "INT")]
    pub max_mutating_requests_inflight: i64,
}

impl InFlightFlags {
    /// What is wrong with them.
    fn errors(&self) -> Vec<String> {
        let (reads, others) = (self.max_requests_inflight, self.max_mutating_requests_inflight);
        let flags = [
            ("max-requests-inflight", reads),
            ("max-mutating-requests-inflight", others),
        ];
        let negative = flags.into_iter().filter(|(_, count)| *count < 0);
        let negative = negative.map(|(flag, _)| format!("--{flag} can not be negative value"));
        let is_none = self.enable_priority_and_fairness && reads.saturating_add(others) <= 0;
        let none = is_none.then(|| {
            format!(
                "invalid configuration: MaxRequestsInFlight={reads} and MaxMutatingRequestsInFlight={others}; they must add up to something positive"
            )
        });
        negative.chain(none).collect()
    }

    /// How many requests that read are served at once, and how many others.
    fn counts(&self) -> (usize, usize) {
        let count = |count: i64| usize::try_from(count).unwrap_or_default();
        (
            count(self.max_requests_inflight),
            count(self.max_mutating_requests_inflight),
        )
    }

    /// Places for requests; none with priority and fairness.
    pub fn places(&self) -> Option<Arc<InFlight>> {
        let (reads, others) = self.counts();
        (!self.enable_priority_and_fairness).then(|| Arc::new(InFlight::new(reads, others)))
    }
}

/// Certificate and key for some host names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCertificate {
    /// The certificate with its chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The host names; those that the certificate names if empty.
    pub names: Vec<String>,
}

impl FromStr for NamedCertificate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (files, names) = text.split_once(':').unwrap_or((text, ""));
        match files.split(',').collect::<Vec<_>>().as_slice() {
            [certificate, key] if !certificate.is_empty() && !key.is_empty() => Ok(Self {
                certificate: certificate.into(),
                key: key.into(),
                names: names
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .filter(|name| !name.is_empty())
                    .collect(),
            }),
            _ => Err("expected comma separated certificate and key file paths"),
        }
    }
}

/// Where objects are kept.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct EtcdFlags {
    /// Which resources are encrypted in etcd, with which keys (EncryptionConfiguration of apiserver.config.k8s.io/v1).
    #[arg(long, value_name = "FILE")]
    pub encryption_provider_config: Option<PathBuf>,
    /// Whether the encryption configuration is read again when it changes: not supported yet.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub encryption_provider_config_automatic_reload: bool,
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
    /// Resources that are kept in an etcd of their own, group/resource#URL;URL such as /events#https://events:2379.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub etcd_servers_overrides: Vec<String>,
    /// Where objects are kept.
    #[arg(long, default_value = "etcd3", value_name = "STRING", value_parser = ["etcd3"])]
    pub storage_backend: String,
    /// How long etcd may take to be there at the start.
    #[arg(long, default_value = "1m0s", value_name = "DURATION")]
    pub storage_initialization_timeout: Duration,
}

/// Whose certificates are believed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct CallerFlags {
    /// Authorities (PEM) of client certificates.
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
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
}

/// Which admission plugins run, and with what.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct AdmissionFlags {
    /// What plugins are configured with: an AdmissionConfiguration of apiserver.config.k8s.io/v1.
    #[arg(long, value_name = "FILE")]
    pub admission_control_config_file: Option<PathBuf>,
    /// Admission plugins to leave out.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub disable_admission_plugins: Vec<String>,
    /// Admission plugins to run besides those that always do.
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub enable_admission_plugins: Vec<String>,
}

/// Tells that two flags go together, if only one of them is given.
fn together(one: bool, other: bool, names: &str) -> Option<String> {
    (one != other).then(|| format!("{names} go together"))
}

/// What is wrong with a directive of Strict-Transport-Security.
fn wrong_directive(directive: &str) -> Option<String> {
    if directive.trim().is_empty() {
        return Some("empty value in strict-transport-security-directives".to_owned());
    }
    let is_age = |directive: &str| directive.strip_prefix("max-age=").is_some_and(|age| !age.contains('='));
    let is_known = matches!(directive, "includeSubDomains" | "preload") || is_age(directive);
    let fits = is_known && HeaderValue::try_from(directive).is_ok();
    (!fits).then(|| {
        "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information".to_owned()
    })
}

impl ServingFlags {
    /// What priority and fairness divides among requests.
    pub fn seats(&self) -> Seats {
        let (reads, others) = self.in_flight.counts();
        Seats {
            number: reads.saturating_add(others),
            time_limit: self.ending.request_timeout.to_std(),
        }
    }

    /// What is wrong with them.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if !(1..=65535).contains(&self.secure_port) {
            errors.push(format!(
                "--secure-port {} must be between 1 and 65535, inclusive. It cannot be turned off with 0",
                self.secure_port
            ));
        }
        errors.extend(together(
            self.tls_cert_file.is_some(),
            self.tls_private_key_file.is_some(),
            "--tls-cert-file and --tls-private-key-file",
        ));
        errors.extend(self.ending.errors());
        errors.extend(self.in_flight.errors());
        let directives = self.strict_transport_security_directives.iter();
        errors.extend(directives.filter_map(|directive| wrong_directive(directive)));
        errors.extend(self.protocols().err().map(|error| error.to_string()));
        errors.extend(self.origins().err().map(|error| error.to_string()));
        errors
    }

    /// The protocols that clients may speak.
    ///
    /// # Errors
    /// What nobody knows.
    pub fn protocols(&self) -> Result<Protocols, UnknownProtocol> {
        Protocols::named(&self.tls_min_version, &self.tls_cipher_suites)
    }

    /// The origins whose web pages may read answers.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn origins(&self) -> Result<Origins, PatternError> {
        Origins::matching(&self.cors_allowed_origins)
    }

    /// What each answer says of secure transport, if anything.
    pub fn transport_security(&self) -> Option<HeaderValue> {
        let directives = &self.strict_transport_security_directives;
        let told = (!directives.is_empty()).then(|| directives.join("; "));
        told.and_then(|told| HeaderValue::try_from(told).ok())
    }

    /// The port to listen on.
    pub fn port(&self) -> u16 {
        // others are refused
        u16::try_from(self.secure_port).unwrap_or_default()
    }

    /// Host and port that clients are told.
    pub fn external_address(&self) -> String {
        let port = self.port();
        match self.external_hostname.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => format!("{name}:{port}"),
            None => SocketAddr::new(self.advertised(), port).to_string(),
        }
    }

    /// The address under which others reach this server.
    pub fn advertised(&self) -> IpAddr {
        self.advertise_address.unwrap_or_else(|| match self.bind_address {
            address if !address.is_unspecified() && !address.is_loopback() => address,
            _ => own_address().unwrap_or(self.bind_address),
        })
    }
}

/// The host's address towards the rest of the world. Nothing is sent: a datagram socket that is connected only looks at routes.
fn own_address() -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

impl EtcdFlags {
    /// What is wrong with them.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if self.etcd_servers.is_empty() {
            errors.push("--etcd-servers must be specified".to_owned());
        }
        if let Err(error) = etcd_overrides::read(&self.etcd_servers_overrides) {
            errors.push(error.to_owned());
        }
        if self.encryption_provider_config_automatic_reload {
            errors.push(
                "--encryption-provider-config-automatic-reload is not supported yet: leave it out, and restart the server when the file changes"
                    .to_owned(),
            );
        }
        errors.extend(together(
            self.etcd_certfile.is_some(),
            self.etcd_keyfile.is_some(),
            "--etcd-certfile and --etcd-keyfile",
        ));
        errors
    }
}

impl CallerFlags {
    /// What is wrong with them.
    pub fn errors(&self) -> Vec<String> {
        let named = self.requestheader_client_ca_file.is_none() || !self.requestheader_username_headers.is_empty();
        let error = "--requestheader-client-ca-file needs --requestheader-username-headers";
        (!named).then(|| error.to_owned()).into_iter().collect()
    }
}

impl AdmissionFlags {
    /// Tells plugins that are none of those that are known.
    pub fn errors(&self, known: &[&str]) -> Vec<String> {
        let flags = [
            ("enable", &self.enable_admission_plugins),
            ("disable", &self.disable_admission_plugins),
        ];
        let unknown = flags.into_iter().flat_map(|(flag, plugins)| {
            let plugins = plugins.iter().filter(|plugin| !known.contains(&plugin.as_str()));
            plugins.map(move |plugin| format!("{flag}-admission-plugins plugin {plugin:?} is unknown"))
        });
        unknown.collect()
    }
}
