//! The command line of `gardener run apiserver`; flags that upstream has are named as there.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Command};
use gardener_apimachinery::duration::Duration;
use gardener_kube_apiserver::flags::line::{Others, log_level};
use gardener_kube_apiserver::flags::{AdmissionFlags, CallerFlags, EndingFlags, EtcdFlags, FlagError, Program};
use gardener_landscape::garden;

use crate::admission::KNOWN;
use crate::garden::GardenFlags;

/// The flags.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct Flags {
    /// The address and port to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:6443", value_name = "ADDR:PORT")]
    pub listen: SocketAddr,
    /// Keep everything in memory: it is gone with the process.
    #[arg(long)]
    pub memory: bool,
    /// The folder to keep everything in.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where to keep everything, if it is in etcd.
    #[command(flatten)]
    pub etcd: EtcdFlags,
    /// How long events are kept in etcd.
    #[arg(long, default_value = "1h0m0s", value_name = "DURATION")]
    pub event_ttl: Duration,
    /// Where to write an administrator's kubeconfig.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Serving certificate with its chain (PEM) [default: one by the garden's own authority].
    #[arg(long, value_name = "FILE")]
    pub tls_cert_file: Option<PathBuf>,
    /// Key (PEM) of the serving certificate.
    #[arg(long, value_name = "FILE")]
    pub tls_private_key_file: Option<PathBuf>,
    /// The name of the host by which clients come, for the kubeconfig and the serving certificate [default: the address listened on].
    #[arg(long, value_name = "STRING")]
    pub external_hostname: Option<String>,
    /// Whose certificates are believed, besides those by the garden's own authority.
    #[command(flatten)]
    pub callers: CallerFlags,
    /// Which admission plugins run.
    #[command(flatten)]
    pub admission: AdmissionFlags,
    /// The identity of the garden; written to kube-system/cluster-identity unless there is one.
    #[arg(long, default_value = garden::IDENTITY, value_name = "STRING")]
    pub cluster_identity: String,
    /// How the garden's kinds behave.
    #[command(flatten)]
    pub garden: GardenFlags,
    /// How it ends.
    #[command(flatten)]
    pub ending: EndingFlags,
    /// How much to log: 0 warnings, 2 what happens, 4 and more everything.
    #[arg(long, short, default_value = "2", value_name = "LEVEL")]
    pub v: u8,
}

/// What this server is called by, and what it says of itself.
const PROGRAM: Program = Program {
    name: "gardener run apiserver",
    about: "Serves a whole garden API: Gardener's kinds and those of Kubernetes that a garden needs. No controllers run.",
    version: || format!("Gardener v{}", env!("CARGO_PKG_VERSION")),
    others: &Others {
        switches: &[],
        values: &[],
        refused: &[],
    },
};

/// The command with all its flags.
pub fn command() -> Command {
    PROGRAM.command::<Flags>()
}

/// Reads the arguments behind `run apiserver`.
///
/// # Errors
/// [`FlagError`].
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Flags, FlagError> {
    let line = PROGRAM.parse(command(), arguments, Flags::errors)?;
    Ok(line.flags)
}

impl Flags {
    /// What is missing or does not go together.
    fn errors(&self) -> Vec<String> {
        let in_etcd = !self.etcd.etcd_servers.is_empty();
        let places = [self.memory, self.data_dir.is_some(), in_etcd];
        let mut errors = Vec::new();
        if places.iter().filter(|given| **given).count() != 1 {
            errors.push("one of --memory, --data-dir and --etcd-servers must be given".to_owned());
        }
        if in_etcd {
            errors.extend(self.etcd.errors());
        } else if self.etcd.encryption_provider_config.is_some() {
            errors.push(
                "--encryption-provider-config is for --etcd-servers: a data directory has its own, encryption.yaml"
                    .to_owned(),
            );
        }
        if self.tls_cert_file.is_some() != self.tls_private_key_file.is_some() {
            errors.push("--tls-cert-file and --tls-private-key-file go together".to_owned());
        }
        errors.extend(self.ending.errors());
        errors.extend(self.callers.errors());
        errors.extend(self.admission.errors(&KNOWN));
        errors.extend(self.garden.errors());
        errors
    }

    /// What to log, as `tracing` filters it.
    pub fn log_filter(&self) -> &'static str {
        log_level(self.v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_garden_has_one_place() {
        let read = |text: &str| parse(text.split(' ').map(str::to_owned));
        for good in [
            "--memory",
            "--data-dir=/x --kubeconfig=k --listen=[::1]:0 -v=4",
            "--etcd-servers=http://a,http://b --encryption-provider-config=x --disable_admission_plugins=ShootDNS",
        ] {
            assert!(read(good).is_ok(), "{good}");
        }
        for (wrong, expected) in [
            ("", "one of --memory, --data-dir and --etcd-servers"),
            ("--memory --data-dir=/x", "one of --memory"),
            ("--memory --encryption-provider-config=x", "encryption.yaml"),
            ("--memory --tls-cert-file=x", "go together"),
            ("--memory --listen=nowhere", "nowhere"),
            ("--memory --enable-admission-plugins=x", "\"x\" is unknown"),
            (
                "--memory --shoot-admin-kubeconfig-max-expiration=30m",
                "between 1 hour and 2^32 seconds",
            ),
            ("--memory --bind-address=::", "'--bind-address'"),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }
}
