//! What every garden has besides its kinds, and gardener-apiserver makes sure of when it starts: its namespaces, its identity, and what everybody
//! may know of it.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

/// Gardener's own namespaces.
const NAMESPACES: [&str; 3] = [
    "gardener-system-seed-lease",
    "gardener-system-shoot-issuer",
    "gardener-system-public",
];
/// The ConfigMap with the garden's identity, and its key.
pub(crate) const IDENTITY: &str = "cluster-identity";
/// The ConfigMap that everybody may read.
const INFO: &str = "gardener-info";
/// How long until what did not work is tried again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What is told of this server and its garden.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The garden's identity.
    pub(crate) identity: String,
    /// Feature gates that were set.
    pub(crate) features: BTreeMap<String, bool>,
}

/// Makes sure of all of it; tries until it works.
pub(crate) async fn bootstrap(client: Client, facts: Facts) {
    let mut pause = RETRY.0;
    while let Err(error) = once(&client, &facts).await {
        tracing::warn!(%error, "the garden's own objects cannot be made; will be tried again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY.1);
    }
}

async fn once(client: &Client, facts: &Facts) -> Result<(), kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in NAMESPACES {
        if namespaces.get_opt(name).await?.is_none() {
            let namespace = Namespace {
                metadata: named(name),
                ..Namespace::default()
            };
            ignore_existing(namespaces.create(&PostParams::default(), &namespace).await)?;
        }
    }
    identity(client, &facts.identity).await?;
    info(client, facts).await
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

/// Another server may have been faster.
pub(crate) fn ignore_existing<T>(result: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        other => other.map(drop),
    }
}

/// The garden's identity: written once. One that is there stays, and becomes immutable if it is the same and nobody claims it.
async fn identity(client: &Client, identity: &str) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let Some(mut found) = maps.get_opt(IDENTITY).await? else {
        let map = ConfigMap {
            metadata: named(IDENTITY),
            immutable: Some(true),
            data: Some(claimed(identity)),
            ..ConfigMap::default()
        };
        return ignore_existing(maps.create(&PostParams::default(), &map).await);
    };
    let text = |key: &str| {
        found
            .data
            .as_ref()
            .and_then(|data| data.get(key))
            .map_or("", String::as_str)
    };
    if found.immutable == Some(true) || !text("origin").is_empty() || text(IDENTITY) != identity {
        return Ok(());
    }
    found.immutable = Some(true);
    found.data.get_or_insert_default().extend(claimed(identity));
    maps.replace(IDENTITY, &PostParams::default(), &found).await.map(drop)
}

fn claimed(identity: &str) -> BTreeMap<String, String> {
    [(IDENTITY, identity), ("origin", "gardener-apiserver")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// What everybody may know: version and features.
async fn info(client: &Client, facts: &Facts) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "gardener-system-public");
    let features: Vec<String> = facts.features.iter().map(|(name, on)| format!("{name}={on}")).collect();
    let told = serde_json::json!({
        "version": concat!("v", env!("CARGO_PKG_VERSION")), "featureGates": features.join(","),
    });
    let text = serde_saphyr::to_string(&told).unwrap_or_else(|_| told.to_string());
    let entry = [("gardenerAPIServer".to_owned(), text)];
    match maps.get_opt(INFO).await? {
        Some(mut found) => {
            let before = found.data.clone();
            found.data.get_or_insert_default().extend(entry);
            if found.data == before {
                return Ok(());
            }
            maps.replace(INFO, &PostParams::default(), &found).await.map(drop)
        }
        None => {
            let map = ConfigMap {
                metadata: named(INFO),
                data: Some(entry.into()),
                ..ConfigMap::default()
            };
            ignore_existing(maps.create(&PostParams::default(), &map).await)
        }
    }
}
