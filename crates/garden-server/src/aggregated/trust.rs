//! Whose certificates are believed: those that flags name, and for what flags do not name those that the kube-apiserver tells in a ConfigMap, as long
//! as it tells them.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::TryStreamExt;
use gardener_apiserver::authn::{Authenticator, FrontProxies};
use gardener_kube_apiserver::access::{self, FileError};
use gardener_kube_apiserver::flags::CallerFlags;
use gardener_kube_apiserver::serving::Bundles;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// Where the kube-apiserver tells whom to believe.
const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// How long until it is asked for again at the start.
const RETRY: Duration = Duration::from_millis(500);

/// What the ConfigMap tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told {
    bundles: Bundles,
    front_proxies: Option<FrontProxies>,
}

/// Why it is not known whom to believe.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The ConfigMap cannot be read.
    #[error(
        "ConfigMap {NAMESPACE}/{NAME} cannot be read: {0}. It tells which front proxies to believe; usually a RoleBinding to Role \
         extension-apiserver-authentication-reader in {NAMESPACE} is missing. --authentication-tolerate-lookup-failure starts without"
    )]
    Unreadable(#[from] kube::Error),
    /// The ConfigMap holds something else.
    #[error("ConfigMap {NAMESPACE}/{NAME}: {key} is no list of texts in JSON: {source}")]
    Wrong {
        /// The key.
        key: &'static str,
        /// What the reader said.
        source: serde_json::Error,
    },
}

impl Told {
    fn read(map: &ConfigMap) -> Result<Self, TrustError> {
        let text = |key: &str| map.data.as_ref()?.get(key).filter(|text| !text.trim().is_empty());
        let list = |key: &'static str| match text(key) {
            Some(text) => serde_json::from_str::<Vec<String>>(text).map_err(|source| TrustError::Wrong { key, source }),
            None => Ok(Vec::new()),
        };
        let front_proxy = text("requestheader-client-ca-file").cloned();
        let front_proxies = match &front_proxy {
            Some(_) => Some(FrontProxies {
                names: list("requestheader-allowed-names")?,
                user: list("requestheader-username-headers")?,
                uid: list("requestheader-uid-headers")?,
                groups: list("requestheader-group-headers")?,
                extra_prefixes: list("requestheader-extra-headers-prefix")?,
            }),
            None => None,
        };
        Ok(Self {
            bundles: Bundles {
                clients: text("client-ca-file").cloned(),
                front_proxies: front_proxy,
            },
            front_proxies,
        })
    }
}

/// Whom to believe. Cheap to clone.
#[derive(Clone)]
pub(super) struct Trust {
    flags: CallerFlags,
    told: Arc<ArcSwap<Told>>,
}

impl Trust {
    /// What flags name.
    pub(super) fn of(flags: &CallerFlags) -> Self {
        Self {
            flags: flags.clone(),
            told: Arc::default(),
        }
    }

    /// Whether flags leave something to the ConfigMap.
    pub(super) fn is_asked_for(&self) -> bool {
        self.flags.client_ca_file.is_none() || self.flags.requestheader_client_ca_file.is_none()
    }

    /// Asks for the ConfigMap; again for so long when it cannot be read, as its server may just be starting.
    ///
    /// # Errors
    /// [`TrustError`].
    pub(super) async fn look(&self, client: &Client, patience: Duration) -> Result<(), TrustError> {
        let deadline = Instant::now() + patience;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        loop {
            match maps.get(NAME).await {
                Ok(map) => {
                    self.told.store(Arc::new(Told::read(&map)?));
                    return Ok(());
                }
                Err(error) if Instant::now() < deadline => {
                    tracing::warn!(%error, "waiting for ConfigMap {NAMESPACE}/{NAME}");
                    sleep(RETRY).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Follows the ConfigMap. Does not end.
    pub(super) async fn follow(self, client: Client, authenticator: Arc<Authenticator>, changes: Arc<Notify>) {
        let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
        let only = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
        let mut events = Box::pin(watcher(maps, only).default_backoff());
        loop {
            // a map that is gone tells nothing new: who was believed still is
            let map = match events.try_next().await {
                Ok(Some(watcher::Event::Apply(map) | watcher::Event::InitApply(map))) => map,
                Ok(Some(_)) => continue,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "ConfigMap {NAMESPACE}/{NAME} cannot be followed; will be tried again");
                    continue;
                }
            };
            match Told::read(&map) {
                Ok(told) if told == **self.told.load() => {}
                Ok(told) => {
                    self.told.store(Arc::new(told));
                    let mut settings = authenticator.settings();
                    settings.front_proxies = self.front_proxies();
                    authenticator.set(settings);
                    changes.notify_one();
                }
                Err(error) => tracing::warn!(%error, "who was believed before still is"),
            }
        }
    }

    /// The authorities of clients and front proxies.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn bundles(&self) -> Result<Bundles, FileError> {
        let (own, told) = (Bundles::read(&self.flags)?, self.told.load());
        Ok(Bundles {
            clients: own.clients.or_else(|| told.bundles.clients.clone()),
            front_proxies: own.front_proxies.or_else(|| told.bundles.front_proxies.clone()),
        })
    }

    /// Which front proxies are believed.
    pub(super) fn front_proxies(&self) -> Option<FrontProxies> {
        access::front_proxies(&self.flags).or_else(|| self.told.load().front_proxies.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(data: &[(&str, &str)]) -> ConfigMap {
        ConfigMap {
            data: Some(
                data.iter()
                    .map(|(key, value)| ((*key).into(), (*value).into()))
                    .collect(),
            ),
            ..ConfigMap::default()
        }
    }

    #[test]
    fn the_map_tells_whom_to_believe() {
        let told = Told::read(&map(&[
            ("client-ca-file", "a"),
            ("requestheader-client-ca-file", "b"),
            ("requestheader-allowed-names", "[]"),
            ("requestheader-username-headers", "[\"X-Remote-User\"]"),
            ("requestheader-group-headers", "[\"X-Remote-Group\"]"),
            ("requestheader-extra-headers-prefix", "[\"X-Remote-Extra-\"]"),
        ]))
        .unwrap();
        assert_eq!(told.bundles.clients.as_deref(), Some("a"));
        assert_eq!(told.bundles.front_proxies.as_deref(), Some("b"));
        let proxies = told.front_proxies.unwrap();
        assert_eq!(
            (proxies.user, proxies.uid),
            (vec!["X-Remote-User".to_owned()], Vec::<String>::new())
        );
        // without authorities nobody is a front proxy
        assert_eq!(
            Told::read(&map(&[("requestheader-client-ca-file", " ")])).unwrap(),
            Told::default()
        );
        assert_eq!(Told::read(&ConfigMap::default()).unwrap(), Told::default());
        let wrong = Told::read(&map(&[
            ("requestheader-client-ca-file", "b"),
            ("requestheader-allowed-names", "x"),
        ]));
        assert!(wrong.unwrap_err().to_string().contains("requestheader-allowed-names"));
    }
}
