//! What every garden has besides its kinds, and gardener-apiserver makes sure of when it starts: its namespaces and its identity. What everybody may
//! know of it (`gardener-system-public/gardener-info`) is its operator's.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

/// Gardener's own namespaces.
const NAMESPACES: [&str; 2] = ["gardener-system-seed-lease", "gardener-system-shoot-issuer"];
/// The ConfigMap with the garden's identity, and its key.
pub(crate) const IDENTITY: &str = "cluster-identity";
/// How long until what did not work is tried again, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Makes sure of all of it; tries until it works.
pub(crate) async fn bootstrap(client: Client, identity: String) {
    let mut pause = RETRY.0;
    while let Err(error) = once(&client, &identity).await {
        tracing::warn!(%error, "the garden's own objects cannot be made; will be tried again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY.1);
    }
}

async fn once(client: &Client, own: &str) -> Result<(), kube::Error> {
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
    identity(client, own).await
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
