//! The serving certificate: the one that flags name, or one that is made in the folder for certificates; looked at for changes.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_apiserver::cors::Origins;
use gardener_apiserver::listen::{Believed, Entrance, EntranceError, Entrances, Protocols};
use gardener_landscape::kubeconfig::write_private;
use gardener_pki::{CertificateError, Subject};
use http::HeaderValue;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::access::{FileError, read, read_optional};
use crate::flags::{CallerFlags, NamedCertificate, ServingFlags};

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
    /// The port cannot be had.
    #[error("--secure-port: {address} cannot be listened on: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Takes the port.
///
/// # Errors
/// It cannot be had.
pub async fn bind(flags: &ServingFlags) -> Result<(TcpListener, SocketAddr), ServingError> {
    let address = SocketAddr::new(flags.bind_address, flags.port());
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|source| ServingError::Listen { address, source })?;
    Ok((listener, address))
}

/// Certificate and key.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

fn files(flags: &ServingFlags) -> Files {
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

/// Makes a certificate where none is named and none lies in the folder: for these host names, and for these addresses besides the server's own. Its
/// authority is behind it in the chain, and nowhere else.
///
/// # Errors
/// [`ServingError`].
pub fn provide(
    flags: &ServingFlags,
    names: &[&str],
    others: impl IntoIterator<Item = IpAddr>,
    clock: &Clock,
) -> Result<(), ServingError> {
    let files = files(flags);
    if flags.tls_cert_file.is_some() || (files.certificate.exists() && files.key.exists()) {
        return Ok(());
    }
    let (now, host) = (clock.now().as_second(), flags.advertised());
    let authority = gardener_pki::authority(&format!("{host}-ca@{now}"), now, VALIDITY)?;
    let loopback = [IpAddr::from([127, 0, 0, 1])];
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in [host].into_iter().chain(others).chain(loopback) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let subject = Subject::server(&format!("{host}@{now}"), names, &addresses);
    let issued = gardener_pki::issue(&subject, &authority, now, VALIDITY)?;
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |source| ServingError::Unwritable { path, source }
    };
    std::fs::create_dir_all(&flags.cert_dir).map_err(unwritable(&flags.cert_dir))?;
    // the key first: a certificate without its key would be taken for one that is whole
    write_private(&files.key, &issued.key).map_err(|error| unwritable(&error.path)(error.source))?;
    let chain = format!("{}{}", issued.certificate, authority.certificate);
    std::fs::write(&files.certificate, chain).map_err(unwritable(&files.certificate))?;
    tracing::info!(certificate = %files.certificate.display(), "made a serving certificate");
    Ok(())
}

/// The authorities (PEM) whose certificates are believed; nobody's without any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundles {
    /// Those of clients.
    pub clients: Option<String>,
    /// Those of front proxies.
    pub front_proxies: Option<String>,
}

impl Bundles {
    /// Those that flags name.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(flags: &CallerFlags) -> Result<Self, FileError> {
        let proxies = flags.requestheader_client_ca_file.as_ref();
        Ok(Self {
            clients: read_optional("client-ca-file", flags.client_ca_file.as_ref())?,
            front_proxies: read_optional("requestheader-client-ca-file", proxies)?,
        })
    }
}

/// Gives what is in use now: a certificate and its key (PEM), or whose certificates are believed.
type Source<T> = Box<dyn Fn() -> Result<T, FileError> + Send + Sync>;

/// A certificate and its key (PEM), with the host names that it is for.
#[derive(Clone, PartialEq, Eq)]
struct Certificate {
    names: Vec<String>,
    certificate: String,
    key: String,
}

/// What is in use: the certificate for all hosts that no other one is for, and the others.
#[derive(Clone, PartialEq, Eq)]
struct Loaded {
    common: Certificate,
    named: Vec<Certificate>,
    bundles: Bundles,
}

/// The way in, which follows changes of what it is made of.
pub struct Serving {
    cluster: String,
    certificate: Source<(String, String)>,
    named: Vec<NamedCertificate>,
    bundles: Source<Bundles>,
    loaded: Loaded,
    changed: Arc<Notify>,
    /// Where clients come in.
    pub entrances: Entrances,
    /// What each answer says of secure transport, if anything.
    pub transport_security: Option<HeaderValue>,
    /// The origins whose web pages may read answers.
    pub origins: Origins,
    protocols: Protocols,
}

impl Serving {
    /// Opens the way into a logical cluster, with the certificate that flags name.
    ///
    /// # Errors
    /// [`ServingError`].
    pub fn open(
        cluster: &str,
        flags: &ServingFlags,
        bundles: impl Fn() -> Result<Bundles, FileError> + Send + Sync + 'static,
    ) -> Result<Self, ServingError> {
        let files = files(flags);
        let certificate = move || {
            Ok((
                read("tls-cert-file", &files.certificate)?,
                read("tls-private-key-file", &files.key)?,
            ))
        };
        let opened = Self::of(
            cluster,
            Box::new(certificate),
            flags.tls_sni_cert_key.clone(),
            Box::new(bundles),
            // what is wrong with flags was told when they were read
            flags.protocols().unwrap_or_default(),
        )?;
        Ok(Self {
            transport_security: flags.transport_security(),
            origins: flags.origins().unwrap_or_default(),
            ..opened
        })
    }

    /// Opens the way into a logical cluster, with the certificate and key (PEM) that `certificate` gives.
    ///
    /// # Errors
    /// [`ServingError`].
    pub fn with(
        cluster: &str,
        certificate: impl Fn() -> Result<(String, String), FileError> + Send + Sync + 'static,
        bundles: impl Fn() -> Result<Bundles, FileError> + Send + Sync + 'static,
    ) -> Result<Self, ServingError> {
        Self::of(
            cluster,
            Box::new(certificate),
            Vec::new(),
            Box::new(bundles),
            Protocols::default(),
        )
    }

    fn of(
        cluster: &str,
        certificate: Source<(String, String)>,
        named: Vec<NamedCertificate>,
        bundles: Source<Bundles>,
        protocols: Protocols,
    ) -> Result<Self, ServingError> {
        let own = Self {
            cluster: cluster.to_owned(),
            loaded: load(&certificate, &named, &bundles)?,
            certificate,
            named,
            bundles,
            changed: Arc::default(),
            entrances: Entrances::default(),
            transport_security: None,
            origins: Origins::default(),
            protocols,
        };
        own.admit(&own.loaded)?;
        Ok(own)
    }

    /// Tells that there may be something new. Without it changes are seen after a minute.
    pub fn changes(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    fn entrance(&self, certificate: &Certificate, bundles: &Bundles) -> Result<Entrance, EntranceError> {
        let believed = Believed {
            clients: bundles.clients.as_deref(),
            front_proxies: bundles.front_proxies.as_deref(),
        };
        let (own, key) = (&certificate.certificate, &certificate.key);
        Entrance::open(&self.cluster, own, key, believed, &self.protocols)
    }

    /// Lets clients in by these certificates from now on; by all or none.
    fn admit(&self, loaded: &Loaded) -> Result<(), EntranceError> {
        let common = self.entrance(&loaded.common, &loaded.bundles)?;
        let mut named = Vec::new();
        for certificate in &loaded.named {
            let entrance = self.entrance(certificate, &loaded.bundles)?;
            named.extend(certificate.names.iter().map(|name| (name, entrance.clone())));
        }
        self.entrances.set_for_all(common);
        for (name, entrance) in named {
            self.entrances.set(name, entrance);
        }
        Ok(())
    }

    /// Takes in new certificates from time to time. Does not end.
    pub async fn follow(mut self) {
        loop {
            // told or not, it is looked
            let _ = tokio::time::timeout(REFRESH, self.changed.notified()).await;
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
        let now = load(&self.certificate, &self.named, &self.bundles)?;
        if now == self.loaded {
            return Ok(false);
        }
        self.admit(&now)?;
        self.loaded = now;
        Ok(true)
    }
}

fn load(
    certificate: &Source<(String, String)>,
    named: &[NamedCertificate],
    bundles: &Source<Bundles>,
) -> Result<Loaded, FileError> {
    let (certificate, key) = certificate()?;
    // the last one for a name counts: names that were given before those that certificates tell, and the first ones given before others
    let (given, told): (Vec<_>, Vec<_>) = named.iter().rev().partition(|own| !own.names.is_empty());
    let named = told.into_iter().chain(given).map(|own| {
        let certificate = read("tls-sni-cert-key", &own.certificate)?;
        let names = match own.names.is_empty() {
            true => gardener_pki::hosts(&certificate),
            false => own.names.clone(),
        };
        Ok(Certificate {
            names,
            certificate,
            key: read("tls-sni-cert-key", &own.key)?,
        })
    });
    Ok(Loaded {
        common: Certificate {
            names: Vec::new(),
            certificate,
            key,
        },
        named: named.collect::<Result<_, _>>()?,
        bundles: bundles()?,
    })
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
        let provide = || provide(&flags.serving, &["localhost"], [], &clock);
        provide().unwrap();
        let certificate = || std::fs::read_to_string(dir.path().join("certs/apiserver.crt")).unwrap();
        let first = certificate();
        assert_eq!(first.matches("BEGIN CERTIFICATE").count(), 2);
        provide().unwrap();
        assert_eq!(certificate(), first);
        let mut serving = Serving::open("c", &flags.serving, move || Ok(Bundles::default())).unwrap();
        assert!(!serving.renew().unwrap());
        std::fs::remove_file(dir.path().join("certs/apiserver.key")).unwrap();
        assert!(serving.renew().is_err());
        provide().unwrap();
        assert!(serving.renew().unwrap());
        assert_ne!(certificate(), first);
    }
}
