//! The command line, as gardener-apiserver's.

use std::path::PathBuf;

use clap::{Args, Command};
use gardener_apimachinery::duration::Duration;
use gardener_kube_apiserver::flags::line::log_level;
use gardener_kube_apiserver::flags::{
    AdmissionFlags, AuditFlags, CallerFlags, EtcdFlags, FlagError, Program, ServingFlags, Switch,
};

use super::others::OTHERS;
use crate::admission::KNOWN;
use crate::garden::GardenFlags;

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
    /// What is told of requests, and where.
    #[command(flatten)]
    pub audit: AuditFlags,
    /// By which ways this server reaches webhooks: straight, or by proxies (EgressSelectorConfiguration of apiserver.k8s.io).
    #[arg(long, value_name = "FILE")]
    pub egress_selector_config_file: Option<PathBuf>,
    /// The kube-apiserver that tells whose bearer tokens are, and whose certificates are believed [default: the one of the cluster in which this runs].
    #[arg(long, value_name = "FILE")]
    pub authentication_kubeconfig: Option<PathBuf>,
    /// Whether certificates that flags do not name are left out, instead of taken from kube-system/extension-apiserver-authentication.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub authentication_skip_lookup: bool,
    /// How long it is remembered whose a bearer token is.
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    pub authentication_token_webhook_cache_ttl: Duration,
    /// Whether the server starts without kube-system/extension-apiserver-authentication; then no front proxy is believed.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub authentication_tolerate_lookup_failure: bool,
    /// Paths that everybody may read.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "/healthz,/readyz,/livez",
        value_name = "STRINGS"
    )]
    pub authorization_always_allow_paths: Vec<String>,
    /// The kube-apiserver that says what is allowed [default: the one of the cluster in which this runs].
    #[arg(long, value_name = "FILE")]
    pub authorization_kubeconfig: Option<PathBuf>,
    /// How long it is remembered that something is allowed.
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    pub authorization_webhook_cache_authorized_ttl: Duration,
    /// How long it is remembered that something is not allowed.
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    pub authorization_webhook_cache_unauthorized_ttl: Duration,
    /// The identity of the garden; written to kube-system/cluster-identity unless there is one.
    #[arg(long, default_value = "", value_name = "STRING")]
    pub cluster_identity: String,
    /// The kube-apiserver whose objects admission reads [default: the one of the cluster in which this runs].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// How the log is written: json or text.
    #[arg(long, default_value = "json", value_name = "STRING", value_parser = ["json", "text"])]
    pub log_format: String,
    /// What to log: error, info or debug.
    #[arg(long, default_value = "info", value_name = "STRING", value_parser = ["info", "debug", "error"])]
    pub log_level: String,
    /// How the garden's kinds behave.
    #[command(flatten)]
    pub garden: GardenFlags,
    /// The form in which objects are kept.
    #[arg(long, default_value = "application/json", value_name = "STRING", value_parser = ["application/json"])]
    pub storage_media_type: String,
    /// How much to log, beyond the level: 4 and more everything.
    #[arg(long, short, default_value = "0", value_name = "LEVEL")]
    pub v: u8,
}

/// What this server is called by, and what it says of itself.
const PROGRAM: Program = Program {
    name: "gardener-apiserver",
    about: "Serves Gardener's API groups behind a kube-apiserver, from etcd. Takes the flags of Gardener's own gardener-apiserver.",
    version: || format!("Gardener v{}", env!("CARGO_PKG_VERSION")),
    others: &OTHERS,
};

/// The command with all its flags.
pub fn command() -> Command {
    let defaults = [
        ("cert-dir", "apiserver.local.config/certificates"),
        ("etcd-prefix", "/registry-gardener"),
        ("requestheader-extra-headers-prefix", "x-remote-extra-"),
        ("requestheader-group-headers", "x-remote-group"),
        ("requestheader-username-headers", "x-remote-user"),
        ("secure-port", "443"),
    ];
    let ids = defaults.map(|(flag, value)| (flag.replace('-', "_"), value));
    let command = PROGRAM.command::<Flags>();
    ids.into_iter().fold(command, |command, (id, value)| {
        command.mut_arg(id, |flag| flag.default_value(value))
    })
}

/// Reads the arguments behind the program's name; tells which flags were given that do nothing, too.
///
/// # Errors
/// [`FlagError`].
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<(Flags, Vec<String>), FlagError> {
    let line = PROGRAM.parse(command(), arguments, Flags::errors)?;
    Ok((line.flags, line.idle))
}

impl Flags {
    /// What is missing or does not go together, in upstream's words where it has some.
    fn errors(&self) -> Vec<String> {
        let mut errors = self.etcd.errors();
        errors.extend(self.serving.errors());
        errors.extend(self.callers.errors());
        errors.extend(self.audit.errors());
        errors.extend(self.admission.errors(&KNOWN));
        errors.extend(self.garden.errors());
        let mut require = |holds: bool, message: &str| {
            if !holds {
                errors.push(message.to_owned());
            }
        };
        require(
            !self.cluster_identity.is_empty(),
            "--cluster-identity must be specified",
        );
        require(
            self.serving.tls_cert_file.is_some() && self.serving.tls_private_key_file.is_some(),
            "must specify both --tls-cert-file and --tls-private-key-file",
        );
        errors
    }

    /// What to log, as `tracing` filters it.
    pub fn log_filter(&self) -> &'static str {
        match (self.log_level.as_str(), self.v) {
            ("debug", _) => "debug",
            (_, verbosity @ 4..) => log_level(verbosity),
            ("error", _) => "error",
            _ => "info",
        }
    }
}

#[cfg(test)]
mod tests;
