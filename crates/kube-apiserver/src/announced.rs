//! What servers behind APIServices are told in the ConfigMap kube-system/extension-apiserver-authentication: whose certificates to believe, and in which
//! headers front proxies tell for whom they ask. All servers of a cluster add what is theirs.

use std::collections::BTreeMap;

use gardener_apimachinery::clock::Clock;
use gardener_controller::apply::{self, ApplyError};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client};

use crate::flags::CallerFlags;
use crate::serving::Bundles;

const NAME: &str = "extension-apiserver-authentication";
const CLIENTS: &str = "client-ca-file";
const FRONT_PROXIES: &str = "requestheader-client-ca-file";

/// Adds what is this server's, if it is not there.
///
/// # Errors
/// What the API says; a conflict if another server adds what is its just now.
pub(crate) async fn provide(client: &Client, flags: &CallerFlags, clock: &Clock) -> Result<(), ApplyError> {
    let bundles = match Bundles::read(flags) {
        Ok(bundles) => bundles,
        Err(error) => {
            tracing::warn!(%error, "what servers behind this one are told stays as it is");
            return Ok(());
        }
    };
    let now = clock.now().as_second();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let initial = ConfigMap {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    let written = apply::create_or_update(&maps, initial, |map| {
        let data = map.data.get_or_insert_default();
        *data = told(data, flags, &bundles, now);
    });
    written.await.map(drop)
}

/// What was told before, with what is this server's.
fn told(before: &BTreeMap<String, String>, flags: &CallerFlags, own: &Bundles, now: i64) -> BTreeMap<String, String> {
    let mut told = BTreeMap::new();
    let bundle = |key: &str, own: &Option<String>| {
        let there = before.get(key).map_or("", String::as_str);
        gardener_pki::combined(&[there, own.as_deref().unwrap_or_default()], now)
    };
    let clients = bundle(CLIENTS, &own.clients);
    if !clients.is_empty() {
        told.insert(CLIENTS.to_owned(), clients);
    }
    let front_proxies = bundle(FRONT_PROXIES, &own.front_proxies);
    if front_proxies.is_empty() {
        return told;
    }
    told.insert(FRONT_PROXIES.to_owned(), front_proxies);
    let lists = [
        ("requestheader-allowed-names", &flags.requestheader_allowed_names),
        (
            "requestheader-extra-headers-prefix",
            &flags.requestheader_extra_headers_prefix,
        ),
        ("requestheader-group-headers", &flags.requestheader_group_headers),
        ("requestheader-uid-headers", &flags.requestheader_uid_headers),
        ("requestheader-username-headers", &flags.requestheader_username_headers),
    ];
    for (key, own) in lists {
        let there = before
            .get(key)
            .and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
        let mut all = there.unwrap_or_default();
        for name in own {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        if !all.is_empty() || key != "requestheader-uid-headers" {
            told.insert(key.to_owned(), serde_json::json!(all).to_string());
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn servers_add_what_is_theirs() {
        let made = |name: &str| {
            gardener_pki::authority(name, 0, Duration::from_secs(1000))
                .unwrap()
                .certificate
        };
        let flags = |line: &str| {
            let needed = "--etcd-servers=x --service-account-issuer=x --service-account-key-file=x --service-account-signing-key-file=x";
            let arguments = format!("{needed} {line}");
            crate::flags::parse(arguments.split(' ').map(str::to_owned))
                .unwrap()
                .callers
        };
        let (clients, proxies, others) = (made("clients"), made("proxies"), made("others"));
        let one = Bundles {
            clients: Some(clients.clone()),
            front_proxies: None,
        };
        let first = told(&BTreeMap::new(), &flags(""), &one, 0);
        assert_eq!(first.keys().collect::<Vec<_>>(), [CLIENTS]);
        let other = Bundles {
            clients: Some(others),
            front_proxies: Some(proxies),
        };
        let line = "--requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group";
        let second = told(&first, &flags(line), &other, 0);
        assert_eq!(second[CLIENTS].matches("BEGIN").count(), 2);
        assert!(second[CLIENTS].starts_with(&clients));
        assert_eq!(second["requestheader-username-headers"], r#"["X-Remote-User"]"#);
        assert_eq!(second["requestheader-allowed-names"], "[]");
        assert!(!second.contains_key("requestheader-uid-headers"));
        assert_eq!(told(&second, &flags(""), &one, 0), second);
        let third = told(&second, &flags("--requestheader-username-headers=X-User"), &one, 0);
        assert_eq!(third["requestheader-username-headers"], r#"["X-Remote-User","X-User"]"#);
    }
}
