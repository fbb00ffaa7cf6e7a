//! Where the keys of an issuer come from: its discovery document, which tells where the key set is, and the key set. Both are fetched when the first
//! token needs them; the key set again when a token is signed by no key of it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use gardener_apimachinery::field::go_quote;
use http::header::{CACHE_CONTROL, DATE, EXPIRES};
use http::{HeaderMap, HeaderName, StatusCode};
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::fmt::rfc2822;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::keys::{self, Key};
use super::metrics::Fetches;
use super::signed::Signed;
use crate::meta;
use crate::webhooks::{Fetched, Fetcher};

const WELL_KNOWN: &str = "/.well-known/openid-configuration";
/// How long an issuer is left alone whose discovery document could not be used; as upstream.
const PAUSE: Duration = Duration::from_secs(10);
/// How many seconds before their end keys are fetched anew; as upstream.
const EARLY: i64 = 30;
/// Longest part of an answer that messages show.
const SHOWN: usize = 1024;

/// What of a discovery document counts.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    issuer: String,
    #[serde(default)]
    jwks_uri: String,
}

/// The last fetch of the key set.
#[derive(Default)]
struct Fetch {
    /// Which one it is, from 1.
    number: u64,
    /// The keys, also those of before where it failed.
    keys: Arc<Vec<Key>>,
    /// How long they are good by themselves.
    until: Timestamp,
    /// Why there are no newer ones.
    failure: Option<String>,
}

/// The keys of one issuer.
pub(super) struct Provider {
    issuer: String,
    /// Where the discovery document is.
    document: String,
    fetcher: Arc<Fetcher>,
    /// Where the key set is, once that is known.
    key_set: ArcSwapOption<String>,
    /// Held by who asks for the discovery document: when that failed last, and why.
    discovery: Mutex<Option<(Instant, String)>>,
    last: ArcSwap<Fetch>,
    /// Held by who fetches the key set, for all that wait for it.
    fetching: Mutex<()>,
    fetches: Option<Arc<Fetches>>,
}

impl Provider {
    /// An issuer whose discovery document is at `document`, or at its own place if that is empty; fetches are told to `fetches`.
    pub(super) fn new(issuer: &str, document: &str, fetcher: Arc<Fetcher>, fetches: Option<Arc<Fetches>>) -> Self {
        let document = match document {
            "" => format!("{}{WELL_KNOWN}", issuer.strip_suffix('/').unwrap_or(issuer)),
            elsewhere => elsewhere.to_owned(),
        };
        Self {
            issuer: issuer.to_owned(),
            document,
            fetcher,
            key_set: ArcSwapOption::empty(),
            discovery: Mutex::default(),
            last: ArcSwap::default(),
            fetching: Mutex::default(),
            fetches,
        }
    }

    /// Where the key set is. Asks for the discovery document, unless it is known or was asked for in vain just now.
    ///
    /// # Errors
    /// What is wrong with the discovery document.
    pub(super) async fn ready(&self) -> Result<Arc<String>, String> {
        if let Some(known) = self.key_set.load_full() {
            return Ok(known);
        }
        let mut failed = self.discovery.lock().await;
        if let Some(known) = self.key_set.load_full() {
            return Ok(known);
        }
        if let Some((when, why)) = &*failed
            && when.elapsed() < PAUSE
        {
            return Err(why.clone());
        }
        match self.discover().await {
            Ok(found) => {
                let found = Arc::new(found);
                self.key_set.store(Some(Arc::clone(&found)));
                Ok(found)
            }
            Err(why) => {
                tracing::error!(
                    issuer = self.issuer,
                    error = why,
                    "an issuer's discovery document cannot be used"
                );
                *failed = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }

    async fn discover(&self) -> Result<String, String> {
        let fetched = self.fetcher.get(&self.document, None).await?;
        if fetched.status != StatusCode::OK {
            return Err(format!("{}: {}", fetched.status, shown(&fetched)));
        }
        let document: Document = serde_json::from_slice(&fetched.body)
            .map_err(|error| format!("oidc: failed to decode provider discovery object: {error}"))?;
        if document.issuer != self.issuer {
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected {} got {}",
                go_quote(&self.issuer),
                go_quote(&document.issuer)
            ));
        }
        match document.jwks_uri.is_empty() {
            true => Err("provider did not return JWKS URL".to_owned()),
            false => Ok(document.jwks_uri),
        }
    }

    /// Whether one of the issuer's keys signed a token.
    ///
    /// # Errors
    /// None did, or keys cannot be fetched.
    pub(super) async fn verify(&self, token: &Signed<'_>, now: Timestamp) -> Result<(), String> {
        let key_set = self.ready().await?;
        let last = self.last.load_full();
        if keys::any_signed(&last.keys, token) {
            return Ok(());
        }
        let unsigned = || "failed to verify signature: failed to verify id token signature".to_owned();
        if meta::later(now, EARLY) < last.until {
            return Err(unsigned());
        }
        let next = self.after(last.number, &key_set, now).await;
        if let Some(why) = &next.failure {
            return Err(format!("failed to verify signature: fetching keys {why}"));
        }
        match keys::any_signed(&next.keys, token) {
            true => Ok(()),
            false => Err(unsigned()),
        }
    }

    /// The first fetch after this one: all who want it share it.
    async fn after(&self, number: u64, key_set: &str, now: Timestamp) -> Arc<Fetch> {
        let _fetching = self.fetching.lock().await;
        let last = self.last.load_full();
        if last.number > number {
            return last;
        }
        let fetched = self.fetch(key_set, now).await;
        let mut next = Fetch {
            number: last.number + 1,
            keys: Arc::clone(&last.keys),
            until: last.until,
            failure: None,
        };
        match fetched {
            Ok((keys, until)) => (next.keys, next.until) = (Arc::new(keys), until),
            Err(why) => {
                tracing::warn!(issuer = self.issuer, error = why, "an issuer's keys cannot be fetched");
                next.failure = Some(why);
            }
        }
        let next = Arc::new(next);
        self.last.store(Arc::clone(&next));
        next
    }

    async fn fetch(&self, key_set: &str, now: Timestamp) -> Result<(Vec<Key>, Timestamp), String> {
        let fetched = self.fetcher.get(key_set, None).await;
        let read = fetched.as_ref().map_err(Clone::clone).and_then(|fetched| {
            if fetched.status != StatusCode::OK {
                return Err(format!("{} {}", fetched.status, shown(fetched)));
            }
            let keys = keys::read(&fetched.body);
            keys.map_err(|why| format!("oidc: failed to decode keys: {why} {}", shown(fetched)))
        });
        if let Some(fetches) = &self.fetches {
            let set = fetched.as_ref().ok().filter(|_| read.is_ok());
            fetches.note(&self.issuer, set.map(|own| &*own.body), now);
        }
        let keys = read.map_err(|why| format!("oidc: get keys failed {why}"))?;
        let headers = fetched.map(|own| own.headers).unwrap_or_default();
        Ok((keys, good_until(&headers, now)))
    }
}

/// The beginning of an answer.
fn shown(fetched: &Fetched) -> String {
    let shown = fetched.body.get(..SHOWN).unwrap_or(&fetched.body);
    String::from_utf8_lossy(shown).into_owned()
}

/// How long an answer is good by itself: not at all, if it does not tell.
fn good_until(headers: &HeaderMap, now: Timestamp) -> Timestamp {
    let directives = headers
        .get_all(CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let directives: Vec<&str> = directives.flat_map(|value| value.split(',')).map(str::trim).collect();
    let has = |name: &str| directives.iter().any(|own| own.eq_ignore_ascii_case(name));
    if has("no-store") || has("no-cache") || has("private") {
        return now;
    }
    let seconds = |name: &str| {
        directives.iter().find_map(|own| {
            let (key, value) = own.split_once('=')?;
            let value = value.trim().trim_matches('"');
            key.trim()
                .eq_ignore_ascii_case(name)
                .then(|| value.parse::<i64>().ok())?
        })
    };
    if let Some(seconds) = seconds("s-maxage").or_else(|| seconds("max-age")) {
        return meta::later(now, seconds.clamp(0, i64::from(i32::MAX)));
    }
    let time = |name: HeaderName| {
        let text = headers.get(name)?.to_str().ok()?;
        rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
    };
    match time(EXPIRES) {
        Some(end) => {
            let length = end.as_second().saturating_sub(time(DATE).unwrap_or(now).as_second());
            meta::later(now, length.clamp(0, i64::from(i32::MAX)))
        }
        None => now,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn key_sets_are_good_as_long_as_they_say() {
        let now = Timestamp::from_second(1_000).unwrap();
        for (headers, seconds) in [
            (vec![], 0),
            (vec![("cache-control", "public, max-age=600")], 600),
            (
                vec![("cache-control", "max-age=600"), ("cache-control", "S-MaxAge=\"60\"")],
                60,
            ),
            (vec![("cache-control", "no-store, max-age=600")], 0),
            (vec![("cache-control", "max-age=-5")], 0),
            (vec![("cache-control", "max-age=99999999999999999999")], 0),
            (
                vec![
                    ("date", "Thu, 01 Jan 1970 01:00:00 GMT"),
                    ("expires", "Thu, 01 Jan 1970 01:01:40 GMT"),
                ],
                100,
            ),
            (vec![("expires", "0")], 0),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in &headers {
                map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            let until = good_until(&map, now);
            assert_eq!(until.as_second(), 1_000 + seconds, "{headers:?}");
        }
    }
}
