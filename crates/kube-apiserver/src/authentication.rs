//! Whose tokens are accepted besides the cluster's own, and who comes without any: from flags, or from a file that is read again when it changes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_apiserver::authn::Settings;
use gardener_apiserver::authn::configuration::{Anonymous, Configuration, ConfigurationError};
use gardener_apiserver::authn::jwt::{Algorithm, ExchangeError, Issuers};
use gardener_apiserver::authn::webhook::{TokenWebhook, TokenWebhookError};
use gardener_apiserver::authz::configuration::ReviewVersion;
use gardener_apiserver::egress::Egress;

use crate::access::{FileError, read, read_optional};
use crate::flags::{AuthenticationFlags, Flags};

const FLAG: &str = "authentication-config";
/// How often the file is looked at for changes.
const REFRESH: Duration = Duration::from_secs(5);

/// Why nobody can say whose a token is.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticationError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The configuration file is none.
    #[error("failed to load authentication configuration from file {path:?}: {source}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ConfigurationError,
    },
    /// What it says, or what flags say, cannot be done.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// Issuers do not answer.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A flag and the file say who may come without credentials.
    #[error(
        "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file"
    )]
    AnonymousTwice,
    /// The file says something else than at the start of who may come without credentials.
    #[error("anonymous: Forbidden: changed from initial configuration file")]
    AnonymousChanged,
    /// An algorithm that nobody knows.
    #[error("--oidc-signing-algs: oidc: unsupported signing alg: {0:?}")]
    UnknownAlgorithm(String),
    /// A version of TokenReview that nobody knows.
    #[error("unsupported authentication webhook version {0:?}, supported versions are \"v1\", \"v1beta1\"")]
    UnknownVersion(String),
    /// There is no way to the webhook.
    #[error("--authentication-token-webhook-config-file: {0}")]
    Webhook(#[from] TokenWebhookError),
}

/// Whose tokens are accepted besides the cluster's own.
pub struct Authentication {
    issuers: Arc<Issuers>,
    clock: Clock,
    file: Option<File>,
}

/// A configuration file, as it was when it was last taken in, or found to be good for nothing.
struct File {
    path: PathBuf,
    text: String,
    /// What it said at the start of who may come without credentials.
    anonymous: Option<Anonymous>,
}

impl Authentication {
    /// What flags say, and the file that they name: it goes into `settings`. `server` is who this server is to others, `egress` the ways out, if a file
    /// tells them.
    ///
    /// # Errors
    /// [`AuthenticationError`].
    pub fn open(
        flags: &Flags,
        settings: &mut Settings,
        server: &str,
        egress: Option<Arc<Egress>>,
        clock: &Clock,
    ) -> Result<Self, AuthenticationError> {
        let own = &flags.authentication;
        let (configuration, algorithms, file) = match &own.authentication_config {
            Some(path) => {
                let text = read(FLAG, path)?;
                let configuration = parse(path, &text)?;
                let file = File {
                    path: path.clone(),
                    text,
                    anonymous: configuration.anonymous.clone(),
                };
                (configuration, Algorithm::ALL.to_vec(), Some(file))
            }
            None => {
                let authorities = read_optional("oidc-ca-file", own.oidc_ca_file.as_ref())?;
                let configuration = Configuration {
                    issuers: own.issuer(authorities).into_iter().collect(),
                    anonymous: None,
                };
                (configuration, algorithms(own)?, None)
            }
        };
        let issuers = Issuers::new(
            &configuration,
            &algorithms,
            &flags.service_account_issuer,
            server,
            egress,
        )?;
        if let Some(file) = &file {
            issuers.note_used(&file.text);
        }
        let issuers = Arc::new(issuers);
        settings.issuers = Some(Arc::clone(&issuers));
        settings.webhook = webhook(own)?;
        settings.authorizes_all = true;
        match (configuration.anonymous, own.anonymous_auth) {
            (Some(_), Some(_)) => return Err(AuthenticationError::AnonymousTwice),
            (Some(anonymous), None) => {
                settings.anonymous = anonymous.enabled;
                settings.anonymous_paths = anonymous.conditions.into_iter().map(|own| own.path).collect();
            }
            // who may do everything should not be nobody
            (None, flag) => settings.anonymous = flag.unwrap_or(true) && !flags.authorization.always_allow(),
        }
        Ok(Self {
            issuers,
            clock: clock.clone(),
            file,
        })
    }

    /// Takes in the file whenever it has changed. Does not end.
    pub async fn follow(mut self) {
        if self.file.is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(REFRESH).await;
            match self.renew().await {
                Ok(false) => {}
                Ok(true) => tracing::info!("the authentication configuration has changed and is used from now on"),
                Err(error) => {
                    tracing::error!(%error, "the authentication configuration cannot be used; that of before still is");
                }
            }
        }
    }

    /// Takes in the file if it has changed. One that is wrong is told once; one whose issuers do not answer is tried again.
    async fn renew(&mut self) -> Result<bool, AuthenticationError> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let renewed = renewed(file, &self.issuers).await;
        match &renewed {
            Ok(false) => {}
            Ok(true) => {
                self.issuers.note_used(&file.text);
                self.issuers.note_reload(true, self.clock.now());
            }
            Err(_) => self.issuers.note_reload(false, self.clock.now()),
        }
        renewed
    }
}

async fn renewed(file: &mut File, issuers: &Issuers) -> Result<bool, AuthenticationError> {
    let text = read(FLAG, &file.path)?;
    if text == file.text {
        return Ok(false);
    }
    let taken = async {
        let configuration = parse(&file.path, &text)?;
        if configuration.anonymous != file.anonymous {
            return Err(AuthenticationError::AnonymousChanged);
        }
        Ok(issuers.exchange(&configuration).await?)
    };
    let taken = taken.await;
    let may_get_well = matches!(
        taken,
        Err(AuthenticationError::Exchange(ExchangeError::Unhealthy { .. }))
    );
    if !may_get_well {
        file.text = text;
    }
    taken.map(|()| true)
}

fn parse(path: &std::path::Path, text: &str) -> Result<Configuration, AuthenticationError> {
    Configuration::parse(text).map_err(|source| AuthenticationError::Malformed {
        path: path.to_owned(),
        source,
    })
}

/// The algorithms that flags allow.
fn algorithms(flags: &AuthenticationFlags) -> Result<Vec<Algorithm>, AuthenticationError> {
    let names = flags.algorithms().into_iter();
    let known =
        names.map(|name| Algorithm::of(name).ok_or_else(|| AuthenticationError::UnknownAlgorithm(name.to_owned())));
    known.collect()
}

/// The webhook that flags lead to.
fn webhook(flags: &AuthenticationFlags) -> Result<Option<Arc<TokenWebhook>>, AuthenticationError> {
    let Some(kubeconfig) = &flags.authentication_token_webhook_config_file else {
        return Ok(None);
    };
    let version = flags.authentication_token_webhook_version.as_str();
    let version = ReviewVersion::of(version).ok_or_else(|| AuthenticationError::UnknownVersion(version.to_owned()))?;
    let keep = flags.authentication_token_webhook_cache_ttl.to_std();
    Ok(Some(Arc::new(TokenWebhook::new(kubeconfig, version, keep)?)))
}

#[cfg(test)]
mod tests;
