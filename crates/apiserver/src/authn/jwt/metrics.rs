//! What is counted of other issuers' tokens, under kube-apiserver's names: how long they took, what was fetched, and how often the configuration
//! was read again. Names of issuers and of this server are told as their digests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::metrics::{Durations, Text};
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;

use crate::authn::sha256_in_hex;

/// Upper bounds, in seconds, of the steps in which durations are counted.
const STEPS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// A text as labels tell it.
pub(crate) fn hashed(text: &[u8]) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("sha256:{}", sha256_in_hex(text))
}

fn word(is_well: bool) -> &'static str {
    match is_well {
        true => "success",
        false => "failure",
    }
}

/// A moment in seconds, as gauges tell it.
fn seconds(moment: Timestamp) -> f64 {
    moment.as_duration().as_secs_f64()
}

/// The last fetches of one issuer's key set.
#[derive(Default)]
struct Fetched {
    /// When it failed and when it did not.
    last: BTreeMap<bool, Timestamp>,
    /// The last set, as its digest.
    set: String,
}

/// Fetches of key sets, by issuer.
#[derive(Default)]
pub(crate) struct Fetches(Mutex<BTreeMap<String, Fetched>>);

impl Fetches {
    /// Notes a fetch, and the set that it gave.
    pub(super) fn note(&self, issuer: &str, set: Option<&[u8]>, now: Timestamp) {
        let mut fetches = self.0.lock();
        let own = fetches.entry(issuer.to_owned()).or_default();
        own.last.insert(set.is_some(), now);
        if let Some(set) = set {
            own.set = hashed(set);
        }
    }
}

/// How often the configuration was read again, and which one is used.
#[derive(Default)]
struct Reloads {
    counted: BTreeMap<bool, (u64, Timestamp)>,
    used: String,
}

/// All that is counted.
#[derive(Default)]
pub(crate) struct Metrics {
    /// This server, as its digest.
    server: String,
    durations: Mutex<BTreeMap<(bool, String), Durations<{ STEPS.len() }>>>,
    /// Fetches of key sets.
    pub(super) fetches: Arc<Fetches>,
    reloads: Mutex<Reloads>,
}

impl Metrics {
    /// Counts of a server with this identity.
    pub(super) fn of(server: &str) -> Self {
        Self {
            server: hashed(server.as_bytes()),
            ..Self::default()
        }
    }

    /// Counts a token that stood for somebody, or did not.
    pub(super) fn count(&self, issuer: &str, is_well: bool, taken: Duration) {
        let mut durations = self.durations.lock();
        let own = durations.entry((is_well, hashed(issuer.as_bytes()))).or_default();
        own.add(&STEPS, taken);
    }

    /// Notes that the configuration was read again, with or without success.
    pub(super) fn reloaded(&self, is_well: bool, now: Timestamp) {
        let mut reloads = self.reloads.lock();
        let own = reloads.counted.entry(is_well).or_default();
        *own = (own.0 + 1, now);
    }

    /// Notes which configuration is used.
    pub(super) fn uses(&self, text: &str) {
        self.reloads.lock().used = hashed(text.as_bytes());
    }

    /// Forgets what was fetched from other issuers than these.
    pub(super) fn keep(&self, issuers: &BTreeSet<String>) {
        self.fetches.0.lock().retain(|issuer, _| issuers.contains(issuer));
    }

    /// Tells all of it.
    pub(super) fn tell(&self, out: &mut Text) {
        let server = format!("apiserver_id_hash=\"{}\"", self.server);
        let durations = self.durations.lock();
        if !durations.is_empty() {
            let name = "apiserver_authentication_jwt_authenticator_latency_seconds";
            out.family(
                name,
                "histogram",
                "How long tokens of other issuers took that were not known, in seconds.",
            );
            for ((is_well, issuer), own) in durations.iter() {
                let labels = format!("result=\"{}\",jwt_issuer_hash=\"{issuer}\"", word(*is_well));
                out.durations(name, &labels, &STEPS, own);
            }
        }
        drop(durations);
        let fetches = self.fetches.0.lock();
        let issuer = |issuer: &str| format!("jwt_issuer_hash=\"{}\"", hashed(issuer.as_bytes()));
        if !fetches.is_empty() {
            let name = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds";
            out.family(
                name,
                "gauge",
                "When an issuer's key set was fetched last, with and without success.",
            );
            for (url, own) in fetches.iter() {
                for (is_well, when) in &own.last {
                    let labels = format!("result=\"{}\",{},{server}", word(*is_well), issuer(url));
                    out.sample(name, &labels, seconds(*when));
                }
            }
            let name = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info";
            out.family(name, "gauge", "The key set that was fetched last from an issuer.");
            for (url, own) in fetches.iter().filter(|(_, own)| !own.set.is_empty()) {
                let labels = format!("{},{server},hash=\"{}\"", issuer(url), own.set);
                out.sample(name, &labels, 1);
            }
        }
        drop(fetches);
        let reloads = self.reloads.lock();
        let controller = "apiserver_authentication_config_controller";
        if !reloads.counted.is_empty() {
            let name = format!("{controller}_automatic_reloads_total");
            out.family(
                &name,
                "counter",
                "How often the authentication configuration was read again.",
            );
            for (is_well, (number, _)) in &reloads.counted {
                out.sample(&name, &format!("status=\"{}\",{server}", word(*is_well)), number);
            }
            let name = format!("{controller}_automatic_reload_last_timestamp_seconds");
            out.family(
                &name,
                "gauge",
                "When the authentication configuration was read again last.",
            );
            for (is_well, (_, when)) in &reloads.counted {
                let labels = format!("status=\"{}\",{server}", word(*is_well));
                out.sample(&name, &labels, seconds(*when));
            }
        }
        if !reloads.used.is_empty() {
            let name = format!("{controller}_last_config_info");
            out.family(&name, "gauge", "The authentication configuration that is used.");
            out.sample(&name, &format!("{server},hash=\"{}\"", reloads.used), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_told_under_upstreams_names() {
        let metrics = Metrics::of("apiserver-a");
        let told = || {
            let mut out = Text::default();
            metrics.tell(&mut out);
            out.into_text()
        };
        assert_eq!(told(), "");
        let now = Timestamp::from_second(100).unwrap();
        metrics.count("https://a", true, Duration::from_millis(7));
        metrics.fetches.note("https://a", None, now);
        metrics.fetches.note("https://a", Some(b"{}"), now);
        metrics.reloaded(false, now);
        metrics.uses("x");
        let text = told();
        let (issuer, server) = (hashed(b"https://a"), hashed(b"apiserver-a"));
        assert_eq!(hashed(b""), "");
        assert!(issuer.starts_with("sha256:") && issuer.len() == 71);
        for line in [
            format!(
                "apiserver_authentication_jwt_authenticator_latency_seconds_bucket{{result=\"success\",jwt_issuer_hash=\"{issuer}\",le=\"0.01\"}} 1"
            ),
            format!(
                "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds{{result=\"failure\",jwt_issuer_hash=\"{issuer}\",apiserver_id_hash=\"{server}\"}} 100"
            ),
            format!(
                "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info{{jwt_issuer_hash=\"{issuer}\",apiserver_id_hash=\"{server}\",hash=\"{}\"}} 1",
                hashed(b"{}")
            ),
            format!(
                "apiserver_authentication_config_controller_automatic_reloads_total{{status=\"failure\",apiserver_id_hash=\"{server}\"}} 1"
            ),
            format!(
                "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds{{status=\"failure\",apiserver_id_hash=\"{server}\"}} 100"
            ),
            format!(
                "apiserver_authentication_config_controller_last_config_info{{apiserver_id_hash=\"{server}\",hash=\"{}\"}} 1",
                hashed(b"x")
            ),
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
        metrics.keep(&BTreeSet::new());
        assert!(!told().contains("jwks_fetch"));
    }
}
