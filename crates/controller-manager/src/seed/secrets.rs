//! The namespace `seed-<name>` with copies of the garden's secrets that the seed's gardenlet may read `[GCM-23]`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gardener_apis::constants::{GARDEN_NAMESPACE, SEED_NAMESPACE_PREFIX, label};
use gardener_apis::core::v1beta1::Seed;
use gardener_controller::{Action, Controller, Informer, Queue, apply};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ListParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::{CONCURRENCY, Config, ReconcileError};

/// Roles of secrets that no gardenlet gets.
const PRIVATE_ROLES: [&str; 4] = [
    "controlplane-cert",
    "helm-pull-secret",
    "oci-ca-bundle",
    "resource-reference",
];

pub(super) async fn run(config: Config, seeds: Informer<Seed>, stop: CancellationToken) {
    let secrets: Informer<Secret> = Informer::start(
        Api::namespaced(config.garden.clone(), GARDEN_NAMESPACE),
        watcher::Config::default().labels(label::ROLE),
        &stop,
    );
    let queue: Queue<String> = Queue::new();
    seeds.feed(&queue, |seed| [seed.name_any()]);
    {
        let (queue, seeds) = (queue.clone(), seeds.clone());
        secrets.on_change(move |_| seeds.list().iter().for_each(|seed| queue.add(seed.name_any())));
    }
    secrets.synced().await;
    let shared = Arc::new((config, secrets));
    Controller::new("seed-secrets", CONCURRENCY, queue)
        .run(stop, move |name| {
            let shared = shared.clone();
            async move { reconcile(&shared.0, &shared.1, &name).await }
        })
        .await;
}

async fn reconcile(config: &Config, secrets: &Informer<Secret>, name: &str) -> Result<Action, ReconcileError> {
    let seeds: Api<Seed> = Api::all(config.garden.clone());
    let Some(seed) = seeds
        .get_opt(name)
        .await?
        .filter(|seed| seed.metadata.deletion_timestamp.is_none())
    else {
        return Ok(Action::Done);
    };
    let namespace = format!("{SEED_NAMESPACE_PREFIX}{name}");
    let owner = OwnerReference {
        api_version: "core.gardener.cloud/v1beta1".into(),
        kind: "Seed".into(),
        name: name.to_owned(),
        uid: seed.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let namespaces: Api<Namespace> = Api::all(config.garden.clone());
    match namespaces.get_opt(&namespace).await? {
        None => {
            let metadata = ObjectMeta {
                name: Some(namespace.clone()),
                labels: Some(BTreeMap::from([(label::ROLE.to_owned(), "seed".to_owned())])),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            };
            namespaces
                .create(
                    &PostParams::default(),
                    &Namespace {
                        metadata,
                        ..Namespace::default()
                    },
                )
                .await?;
        }
        Some(existing) if !existing.owner_references().iter().any(|own| own.uid == owner.uid) => {
            return Err(ReconcileError::Blocked(format!(
                "namespace {namespace:?} is not controlled by seed {name:?}"
            )));
        }
        Some(_) => {}
    }
    let copies: Api<Secret> = Api::namespaced(config.garden.clone(), &namespace);
    let mut names = BTreeSet::new();
    for original in secrets.list() {
        let role = original.labels().get(label::ROLE).cloned().unwrap_or_default();
        if PRIVATE_ROLES.contains(&role.as_str()) || original.metadata.deletion_timestamp.is_some() {
            continue;
        }
        names.insert(original.name_any());
        let metadata = ObjectMeta {
            name: Some(original.name_any()),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        };
        let initial = Secret {
            metadata,
            type_: original.type_.clone(),
            ..Secret::default()
        };
        apply::create_or_patch(&copies, initial, |copy| {
            copy.data.clone_from(&original.data);
            copy.metadata.labels.clone_from(&original.metadata.labels);
            copy.metadata.annotations.clone_from(&original.metadata.annotations);
        })
        .await?;
    }
    for copy in copies.list(&ListParams::default().labels(label::ROLE)).await?.items {
        if !names.contains(&copy.name_any()) {
            apply::delete(&copies, &copy.name_any()).await?;
        }
    }
    Ok(Action::Done)
}
