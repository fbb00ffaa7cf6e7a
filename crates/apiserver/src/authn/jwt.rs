//! Tokens of other issuers (OpenID Connect): whom they stand for, by what a configuration says of their issuers.
//!
//! An issuer's token goes through [`signed`] (what it is), [`provider`] (whether the issuer's keys signed it), [`verification`] (whether it is for
//! this cluster, now), [`distributed`] (claims that are elsewhere) and [`claims`] (the user).

mod claims;
mod distributed;
mod expressions;
mod keys;
mod metrics;
mod provider;
mod signed;
mod verification;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::metrics::Text;
use k8s_openapi::jiff::Timestamp;
use tokio::time::{Instant, sleep};

pub(crate) use claims::Expressions;
pub(crate) use expressions::{Expression, Subject};
pub use signed::Algorithm;

use super::configuration::validation::validate;
use super::configuration::{Configuration, ConfigurationError, JwtAuthenticator};
use crate::delegation::cache::{Cache, digest};
use crate::egress::{Egress, Network};
use crate::user::UserInfo;
use crate::webhooks::Fetcher;
use distributed::Resolver;
use metrics::Metrics;
use provider::Provider;
use signed::Signed;

/// How long a token is remembered that stood for somebody; as upstream.
const KEPT: Duration = Duration::from_secs(10);
/// How long new issuers may take to be there before they take the place of others; as upstream.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether they are.
const PAUSE: Duration = Duration::from_secs(10);

/// Why other issuers do not take the place of those that are there.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// An issuer does not answer as it should.
    #[error("oidc: authenticator for issuer {} is not healthy: {why}", go_quote(.issuer))]
    Unhealthy {
        /// The issuer.
        issuer: String,
        /// What is wrong.
        why: String,
    },
}

/// Why an issuer's token stands for nobody while the issuer cannot be used.
const NOT_INITIALIZED: &str = "oidc: authenticator not initialized";

/// One issuer.
struct Issuer {
    own: JwtAuthenticator,
    compiled: Expressions,
    algorithms: Arc<[Algorithm]>,
    provider: Provider,
    resolver: Option<Resolver>,
}

impl Issuer {
    fn of(
        own: JwtAuthenticator,
        compiled: Expressions,
        algorithms: &Arc<[Algorithm]>,
        metrics: &Metrics,
        egress: &Arc<Egress>,
    ) -> Self {
        let way = match own.issuer.egress_selector_type.as_str() {
            "cluster" => (Arc::clone(egress), Network::Cluster),
            "controlplane" => (Arc::clone(egress), Network::ControlPlane),
            // straight, whatever the ways out are
            _ => (Arc::default(), Network::ControlPlane),
        };
        let fetcher = Arc::new(Fetcher::new(&own.issuer.certificate_authority, way));
        let groups = own.claim_mappings.groups.claim.as_str();
        let resolver = (!groups.is_empty()).then(|| {
            let (algorithms, fetcher) = (Arc::clone(algorithms), Arc::clone(&fetcher));
            Resolver::new(groups, &own.issuer.audiences, algorithms, fetcher)
        });
        let (url, document) = (&own.issuer.url, &own.issuer.discovery_url);
        let fetches = Some(Arc::clone(&metrics.fetches));
        Self {
            provider: Provider::new(url, document, fetcher, fetches),
            algorithms: Arc::clone(algorithms),
            own,
            compiled,
            resolver,
        }
    }

    async fn user(&self, token: &str, now: Timestamp) -> Result<UserInfo, String> {
        // upstream's issuers are asked beforehand; here the first token asks, and waits
        let ready = self.provider.ready().await;
        ready.map_err(|_| NOT_INITIALIZED.to_owned())?;
        let unverified = |why: String| format!("oidc: verify token: {why}");
        let signed = Signed::read(token, &self.algorithms).map_err(unverified)?;
        self.provider.verify(&signed, now).await.map_err(unverified)?;
        let (url, audiences) = (&self.own.issuer.url, &self.own.issuer.audiences);
        verification::check(&signed.claims, url, audiences, now).map_err(unverified)?;
        let mut claims = signed.claims;
        if let Some(resolver) = &self.resolver {
            let expanded = resolver.expand(&mut claims, now).await;
            expanded.map_err(|why| format!("oidc: could not expand distributed claims: {why}"))?;
        }
        claims::user(&self.own, &self.compiled, &claims)
    }
}

/// The issuers of one configuration.
struct Current {
    issuers: Vec<Issuer>,
    /// Who some tokens stood for just now, by their digests.
    known: Cache<[u8; 32], UserInfo>,
}

/// Issuers whose tokens are accepted; they may be exchanged.
pub struct Issuers {
    disallowed: Vec<String>,
    algorithms: Arc<[Algorithm]>,
    current: ArcSwap<Current>,
    metrics: Metrics,
    egress: Option<Arc<Egress>>,
}

impl Issuers {
    /// The issuers of a configuration, whose tokens these algorithms may sign. `disallowed` are issuers whose tokens are accepted already; `server` is
    /// who this server is to others, and `egress` the ways out, if somebody tells them.
    ///
    /// # Errors
    /// [`ConfigurationError::Invalid`].
    pub fn new(
        configuration: &Configuration,
        algorithms: &[Algorithm],
        disallowed: &[String],
        server: &str,
        egress: Option<Arc<Egress>>,
    ) -> Result<Self, ConfigurationError> {
        let metrics = Metrics::of(server);
        let algorithms: Arc<[Algorithm]> = Arc::from(algorithms);
        let current = made(configuration, &algorithms, disallowed, &metrics, egress.as_ref())?;
        Ok(Self {
            disallowed: disallowed.to_vec(),
            algorithms,
            current: ArcSwap::from_pointee(current),
            metrics,
            egress,
        })
    }

    /// Puts the issuers of a configuration in the place of those that are there, once each of them has been found to answer. That may take a minute.
    ///
    /// # Errors
    /// [`ExchangeError`]; all stays as it was then.
    pub async fn exchange(&self, configuration: &Configuration) -> Result<(), ExchangeError> {
        let next = made(
            configuration,
            &self.algorithms,
            &self.disallowed,
            &self.metrics,
            self.egress.as_ref(),
        )?;
        let begun = Instant::now();
        for issuer in &next.issuers {
            while let Err(why) = issuer.provider.ready().await {
                if begun.elapsed() + PAUSE > PATIENCE {
                    let issuer = issuer.own.issuer.url.clone();
                    return Err(ExchangeError::Unhealthy { issuer, why });
                }
                sleep(PAUSE).await;
            }
        }
        let urls: BTreeSet<String> = next.issuers.iter().map(|own| own.own.issuer.url.clone()).collect();
        self.current.store(Arc::new(next));
        self.metrics.keep(&urls);
        Ok(())
    }

    /// Notes, for whoever counts, which configuration is used.
    pub fn note_used(&self, text: &str) {
        self.metrics.uses(text);
    }

    /// Notes, for whoever counts, that a configuration was read again, with or without success.
    pub fn note_reload(&self, is_well: bool, now: Timestamp) {
        self.metrics.reloaded(is_well, now);
    }

    /// Whom a token stands for; nothing if it is of no issuer that is known here.
    pub(crate) async fn user(&self, token: &str, now: Timestamp) -> Option<Result<UserInfo, String>> {
        let claimed = signed::issuer(token)?;
        let current = self.current.load_full();
        let issuer = current.issuers.iter().find(|own| own.own.issuer.url == claimed)?;
        let key = digest([token]);
        if let Some(known) = current.known.get(&key) {
            return Some(Ok(known));
        }
        let begun = Instant::now();
        let found = issuer.user(token, now).await;
        self.metrics.count(&claimed, found.is_ok(), begun.elapsed());
        match &found {
            Ok(user) => current.known.put(key, user.clone(), KEPT),
            Err(why) => tracing::debug!(issuer = claimed, why, "a token stands for nobody"),
        }
        Some(found)
    }

    /// Tells what was counted.
    pub(crate) fn tell(&self, out: &mut Text) {
        self.metrics.tell(out);
    }
}

fn made(
    configuration: &Configuration,
    algorithms: &Arc<[Algorithm]>,
    disallowed: &[String],
    metrics: &Metrics,
    egress: Option<&Arc<Egress>>,
) -> Result<Current, ConfigurationError> {
    let compiled = validate(configuration, disallowed).map_err(ConfigurationError::Invalid)?;
    let issuers = &configuration.issuers;
    if egress.is_none()
        && let Some(own) = issuers.iter().find(|own| !own.issuer.egress_selector_type.is_empty())
    {
        return Err(ConfigurationError::Egress(own.issuer.egress_selector_type.clone()));
    }
    let (issuers, egress) = (
        issuers.iter().cloned().zip(compiled),
        egress.cloned().unwrap_or_default(),
    );
    Ok(Current {
        issuers: issuers
            .map(|(own, compiled)| Issuer::of(own, compiled, algorithms, metrics, &egress))
            .collect(),
        known: Cache::default(),
    })
}
