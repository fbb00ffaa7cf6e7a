//! The serving certificate: the one that flags name, or one that is made in the folder for certificates; looked at for changes.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_apiserver::listen::{Entrance, EntranceError, Entrances};
use gardener_landscape::kubernetes_service;
use gardener_pki::{CertificateError, Subject};

use crate::CLUSTER;
use crate::access::{FileError, read, read_optional};
use crate::flags::Flags;

/// How long a certificate that we make is valid; as upstream's.
const VALIDITY: Duration = Duration::from_secs(365 * 24 * 3600);
/// How often certificates are looked at for changes.
const REFRESH: Duration = Duration::from_secs(60);

/// Why there is no serving certificate.
#[derive(Debug, thiserror::Error)]
pub enum ServingError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// What the files hold cannot be used.
    #[error(transparent)]
    Entrance(#[from] EntranceError),
    /// None can be made.
    #[error("no serving certificate can be made: {0}")]
    Certificate(#[from] CertificateError),
    /// The one that was made cannot be kept.
    #[error("--cert-dir: {} cannot be written: {source}; name another folder or give a certificate by --tls-cert-file", path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Certificate and key.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

fn files(flags: &Flags) -> Files {
    match (&flags.tls_cert_file, &flags.tls_private_key_file) {
        (Some(certificate), Some(key)) => Files {
            certificate: certificate.clone(),
            key: key.clone(),
        },
        _ => Files {
            certificate: flags.cert_dir.join("apiserver.crt"),
            key: flags.cert_dir.join("apiserver.key"),
        },
    }
}

/// Makes a certificate where none is named and none lies in the folder. Its authority is behind it in the chain, and nowhere else.
///
/// # Errors
/// [`ServingError`].
pub fn provide(flags: &Flags, clock: &Clock) -> Result<(), ServingError> {
    let files = files(flags);
    if flags.tls_cert_file.is_some() || (files.certificate.exists() && files.key.exists()) {
        return Ok(());
    }
    let (now, host) = (clock.now().as_second(), flags.advertised());
    let authority = gardener_pki::authority(&format!("{host}-ca@{now}"), now, VALIDITY)?;
    let loopback = [IpAddr::from([127, 0, 0, 1])];
    let mut addresses: Vec<IpAddr> = Vec::new();
    let range = flags.service_cluster_ip_range.first().map(ToString::to_string);
    let service = range.and_then(|range| kubernetes_service::first_address(&range)?.parse().ok());
    for address in [host].into_iter().chain(service).chain(loopback) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let names = [
        "kubernetes.default.svc",
        "kubernetes.default",
        "kubernetes",
        "localhost",
    ];
    let subject = Subject::server(&format!("{host}@{now}"), &names, &addresses);
    let issued = gardener_pki::issue(&subject, &authority, now, VALIDITY)?;
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |source| ServingError::Unwritable { path, source }
    };
    std::fs::create_dir_all(&flags.cert_dir).map_err(unwritable(&flags.cert_dir))?;
    // the key first: a certificate without its key would be taken for one that is whole
    write_private(&files.key, &issued.key).map_err(unwritable(&files.key))?;
    let chain = format!("{}{}", issued.certificate, authority.certificate);
    std::fs::write(&files.certificate, chain).map_err(unwritable(&files.certificate))?;
    tracing::info!(certificate = %files.certificate.display(), "made a serving certificate");
    Ok(())
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// What the files hold now.
#[derive(Clone, PartialEq, Eq)]
struct Loaded {
    certificate: String,
    key: String,
    client_ca: Option<String>,
    front_proxy_ca: Option<String>,
}

impl Loaded {
    fn read(flags: &Flags) -> Result<Self, FileError> {
        let files = files(flags);
        Ok(Self {
            certificate: read("tls-cert-file", &files.certificate)?,
            key: read("tls-private-key-file", &files.key)?,
            client_ca: read_optional("client-ca-file", flags.client_ca_file.as_ref())?,
            front_proxy_ca: read_optional(
                "requestheader-client-ca-file",
                flags.requestheader_client_ca_file.as_ref(),
            )?,
        })
    }

    fn entrance(&self) -> Result<Entrance, EntranceError> {
        Entrance::with_front_proxies(
            CLUSTER,
            &self.certificate,
            &self.key,
            self.client_ca.as_deref(),
            self.front_proxy_ca.as_deref(),
        )
    }
}

/// The way in, which follows changes of its files.
pub struct Serving {
    flags: Flags,
    loaded: Loaded,
    /// Where clients come in.
    pub entrances: Entrances,
}

impl Serving {
    /// Opens the way in.
    ///
    /// # Errors
    /// [`ServingError`].
    pub fn open(flags: &Flags) -> Result<Self, ServingError> {
        let loaded = Loaded::read(flags)?;
        let entrances = Entrances::default();
        entrances.set_for_all(loaded.entrance()?);
        Ok(Self {
            flags: flags.clone(),
            loaded,
            entrances,
        })
    }

    /// Takes in new certificates from time to time. Does not end.
    pub async fn follow(mut self) {
        loop {
            tokio::time::sleep(REFRESH).await;
            match self.renew() {
                Ok(false) => {}
                Ok(true) => tracing::info!("certificates have changed and are used from now on"),
                // a file may be half written
                Err(error) => tracing::warn!(%error, "certificates cannot be renewed; those of before are still used"),
            }
        }
    }

    /// Takes in new certificates, if there are any.
    fn renew(&mut self) -> Result<bool, ServingError> {
        let now = Loaded::read(&self.flags)?;
        if now == self.loaded {
            return Ok(false);
        }
        self.entrances.set_for_all(now.entrance()?);
        self.loaded = now;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_made_once_and_renewed_when_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let arguments = [
            "--etcd-servers=http://x".to_owned(),
            "--service-account-issuer=https://x".to_owned(),
            "--service-account-key-file=x".to_owned(),
            "--service-account-signing-key-file=x".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", dir.path().join("certs").display()),
        ];
        let flags = crate::flags::parse(arguments).unwrap();
        let clock = Clock::system();
        provide(&flags, &clock).unwrap();
        let certificate = || std::fs::read_to_string(dir.path().join("certs/apiserver.crt")).unwrap();
        let first = certificate();
        assert_eq!(first.matches("BEGIN CERTIFICATE").count(), 2);
        provide(&flags, &clock).unwrap();
        assert_eq!(certificate(), first);
        let mut serving = Serving::open(&flags).unwrap();
        assert!(!serving.renew().unwrap());
        std::fs::remove_file(dir.path().join("certs/apiserver.key")).unwrap();
        assert!(serving.renew().is_err());
        provide(&flags, &clock).unwrap();
        assert!(serving.renew().unwrap());
        assert_ne!(certificate(), first);
    }
}
