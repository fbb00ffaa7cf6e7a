//! Claims that a token does not have itself: it tells where another token is that has them (OpenID Connect Core 1.0, 5.6.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::field::go_quote;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use super::claims::Claims;
use super::provider::Provider;
use super::signed::{self, Algorithm, Signed};
use super::verification::{self, CLAIM_NAMES, CLAIM_SOURCES};
use crate::webhooks::Fetcher;

/// Of how many issuers keys are kept; who has more of them has them fetched again.
const MOST_ISSUERS: usize = 64;

/// Where a claim is.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Source {
    endpoint: Option<String>,
    access_token: Option<String>,
}

/// Finds one claim of tokens that do not have it themselves.
pub(super) struct Resolver {
    claim: String,
    audiences: Vec<String>,
    algorithms: Arc<[Algorithm]>,
    fetcher: Arc<Fetcher>,
    providers: Mutex<BTreeMap<String, Arc<Provider>>>,
}

impl Resolver {
    /// Finds this claim in tokens for these audiences.
    pub(super) fn new(claim: &str, audiences: &[String], algorithms: Arc<[Algorithm]>, fetcher: Arc<Fetcher>) -> Self {
        Self {
            claim: claim.to_owned(),
            audiences: audiences.to_vec(),
            algorithms,
            fetcher,
            providers: Mutex::default(),
        }
    }

    /// Puts the claim among the others, if it is elsewhere.
    ///
    /// # Errors
    /// It is said to be elsewhere and cannot be found.
    pub(super) async fn expand(&self, claims: &mut Claims, now: Timestamp) -> Result<(), String> {
        if claims.contains_key(&self.claim) {
            return Ok(());
        }
        let Some(source) = self.source(claims)? else {
            return Ok(());
        };
        let endpoint = source.endpoint.unwrap_or_default();
        if endpoint.is_empty() {
            // claims that come with the token (JWT) are not read, as with upstream
            return Ok(());
        }
        let value = self.resolve(&endpoint, source.access_token.as_deref(), now).await?;
        claims.insert(self.claim.clone(), value);
        Ok(())
    }

    fn source(&self, claims: &Claims) -> Result<Option<Source>, String> {
        let Some(names) = claims.get(CLAIM_NAMES) else {
            return Ok(None);
        };
        let sources = claims.get(CLAIM_SOURCES).ok_or("oidc: no claim sources")?;
        let read = Option::<BTreeMap<String, Source>>::deserialize(sources);
        let read = read.map_err(|error| format!("oidc: could not parse claim sources: {error}"))?;
        let mut sources = read.unwrap_or_default();
        let Some(name) = names.get(&self.claim).and_then(Value::as_str) else {
            return Ok(None);
        };
        let source = sources.remove(name);
        source
            .map(Some)
            .ok_or_else(|| format!("id token _claim_names contained a source {name} missing in _claims_sources"))
    }

    async fn resolve(&self, endpoint: &str, bearer: Option<&str>, now: Timestamp) -> Result<Value, String> {
        let claim = &self.claim;
        let failed = |why: String| format!("while getting distributed claim {}: {why}", go_quote(claim));
        let bearer = bearer.filter(|bearer| !bearer.is_empty());
        let fetched = self.fetcher.get(endpoint, bearer).await.map_err(failed)?;
        if !(200..=226).contains(&fetched.status.as_u16()) {
            return Err(failed(format!(
                "error while getting distributed claim JWT: {}",
                fetched.status
            )));
        }
        let token = std::str::from_utf8(&fetched.body)
            .map_err(|_| failed("could not decode distributed claim response".to_owned()))?;
        let issuer = signed::issuer(token).ok_or_else(|| {
            format!(
                "getting untrusted issuer from endpoint {endpoint} failed for claim {}: malformed token",
                go_quote(claim)
            )
        })?;
        let unverified = |why: String| format!("verify distributed claim token: {why}");
        let signed = Signed::read(token, &self.algorithms).map_err(unverified)?;
        let verified = self.provider(&issuer).verify(&signed, now).await;
        verified.map_err(|why| format!("verifying untrusted issuer {issuer} failed: {why}"))?;
        verification::check(&signed.claims, &issuer, &self.audiences, now).map_err(unverified)?;
        let mut claims = signed.claims;
        claims.remove(claim).ok_or_else(|| {
            let endpoint = go_quote(endpoint);
            format!("jwt returned by distributed claim endpoint {endpoint} did not contain claim: {claim}")
        })
    }

    fn provider(&self, issuer: &str) -> Arc<Provider> {
        let mut providers = self.providers.lock();
        if providers.len() >= MOST_ISSUERS && !providers.contains_key(issuer) {
            providers.clear();
        }
        let provider = providers.entry(issuer.to_owned());
        Arc::clone(provider.or_insert_with(|| Arc::new(Provider::new(issuer, "", Arc::clone(&self.fetcher), None))))
    }
}
