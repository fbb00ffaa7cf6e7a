//! What a cluster tells of the tokens that it makes for service accounts, so that others can check them: the OpenID configuration of its issuer
//! and the public keys.

use std::collections::BTreeSet;

use http::{HeaderValue, Response, StatusCode, header::CACHE_CONTROL};
use serde_json::{Value, json};

use crate::authn::Settings;
use crate::respond::{self, Body};

/// Where the configuration is.
pub(crate) const CONFIGURATION: &str = "/.well-known/openid-configuration";
/// Where the keys are.
pub(crate) const KEYS: &str = "/openid/v1/jwks";
/// What is answered here.
pub(crate) const PATHS: [&str; 2] = [CONFIGURATION, KEYS];
/// How long others may keep what they read.
const KEPT: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// Answers both paths, if the cluster makes tokens. Where the keys are is told with the server's host and port, if they are known, and otherwise with the
/// issuer. `settings` is called for these paths only.
pub fn answer(path: &str, address: &str, settings: impl FnOnce() -> Settings) -> Option<Response<Body>> {
    if !PATHS.contains(&path) {
        return None;
    }
    let settings = settings();
    if !is_served(&settings) {
        return None;
    }
    let (body, content_type) = match path {
        CONFIGURATION => (configuration(&settings, address), "application/json"),
        _ => (json!({"keys": keys(&settings)}), "application/jwk-set+json"),
    };
    let content_type = HeaderValue::from_static(content_type);
    let mut response = respond::with_type(StatusCode::OK, respond::full(body.to_string()), content_type);
    response.headers_mut().insert(CACHE_CONTROL, KEPT);
    Some(response)
}

/// Whether a path is beneath one of these documents.
pub(crate) fn is_beneath(path: &str, settings: impl FnOnce() -> Settings) -> bool {
    let mut above = PATHS.into_iter();
    above.any(|document| path.strip_prefix(document).is_some_and(|rest| rest.starts_with('/')))
        && is_served(&settings())
}

/// Whether a cluster with these settings makes tokens, of which it tells.
pub(crate) fn is_served(settings: &Settings) -> bool {
    !settings.issuer.is_empty()
}

fn configuration(settings: &Settings, address: &str) -> Value {
    let keys_uri = match (settings.keys_uri.as_str(), address) {
        ("", "") => format!("{}{KEYS}", settings.issuer.trim_end_matches('/')),
        ("", address) => format!("https://{address}{KEYS}"),
        (told, _) => told.to_owned(),
    };
    let keys = keys(settings);
    let algorithms: BTreeSet<&str> = keys.iter().filter_map(|key| key.get("alg")?.as_str()).collect();
    json!({
        "issuer": settings.issuer,
        "jwks_uri": keys_uri,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": algorithms,
    })
}

/// The keys of all tokens that are accepted, each once: the signer's may stand among those of old ones too.
fn keys(settings: &Settings) -> Vec<Value> {
    let signer = settings.signer.iter().map(|signer| &signer.public);
    let mut seen = BTreeSet::new();
    let all = signer.chain(&settings.accepted_keys);
    all.filter(|key| seen.insert(key.id.clone()))
        .map(|key| key.jwk())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt;

    use super::*;
    use crate::tokens::SigningKey;

    async fn read(settings: &Settings, path: &str, address: &str) -> Value {
        let body = answer(path, address, || settings.clone()).unwrap().into_body();
        serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap()
    }

    #[tokio::test]
    async fn others_find_issuer_and_keys() {
        let key = || SigningKey::from_pem(&SigningKey::generate_pem().unwrap()).unwrap();
        let (signer, old) = (key(), key());
        let settings = Settings {
            accepted_keys: vec![signer.public.clone(), old.public.clone()],
            signer: Some(Arc::new(signer)),
            issuer: "https://issuer.example.com".into(),
            ..Settings::default()
        };
        let found = read(&settings, CONFIGURATION, "10.0.0.1:6443").await;
        assert_eq!(found["jwks_uri"], "https://10.0.0.1:6443/openid/v1/jwks");
        let found = read(&settings, CONFIGURATION, "").await;
        assert_eq!(found["jwks_uri"], "https://issuer.example.com/openid/v1/jwks");
        let elsewhere = Settings {
            keys_uri: "https://keys.example.com/all".into(),
            ..settings.clone()
        };
        let found = read(&elsewhere, CONFIGURATION, "10.0.0.1:6443").await;
        assert_eq!(found["jwks_uri"], "https://keys.example.com/all");
        assert_eq!(found["id_token_signing_alg_values_supported"], json!(["ES256"]));
        let keys = read(&settings, KEYS, "").await;
        assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
        assert_eq!(keys["keys"][1]["kid"], old.public.id.as_str());
        assert!(answer(KEYS, "", Settings::default).is_none());
    }
}
