//! The namespace `seed-<name>` with copies of the garden's secrets that the seed's gardenlet may read `[GCM-23]`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gardener_apis::constants::{GARDEN_NAMESPACE, SEED_NAMESPACE_PREFIX, label};
use gardener_apis::core::v1beta1::Seed;
use gardener_controller::{Action, Change, Informer, Queue, Read, apply};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};

use crate::Manager;
use crate::manager::ReconcileError;

/// How many seeds are worked on at once; upstream has no setting for it.
const CONCURRENT_SYNCS: usize = 5;

/// Roles of secrets that no gardenlet gets.
const PRIVATE_ROLES: [&str; 4] = [
    "controlplane-cert",
    "helm-pull-secret",
    "oci-ca-bundle",
    "resource-reference",
];

fn is_private(secret: &Secret) -> bool {
    let role = secret.labels().get(label::ROLE);
    role.is_some_and(|role| PRIVATE_ROLES.contains(&role.as_str()))
}

pub(super) async fn run(manager: &Manager) {
    let seeds = manager.informer::<Seed>();
    let secrets = manager
        .informers
        .selected(manager.within::<Secret>(GARDEN_NAMESPACE), label::ROLE);
    let queue: Queue<String> = Queue::new();
    let is_new = |change: &Change<Seed>| matches!(change, Change::Applied { old: None, .. });
    seeds.feed_if(&queue, is_new, |seed| [seed.name_any()]);
    let known = seeds.clone();
    secrets.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => !(is_private(old) && is_private(new)),
            other => !is_private(other.object()),
        },
        move |_| known.list().iter().map(|seed| seed.name_any()).collect::<Vec<_>>(),
    );
    tokio::join!(seeds.synced(), secrets.synced());
    let shared = Arc::new((manager.clone(), secrets));
    let controller = manager.controller("seed-secrets", CONCURRENT_SYNCS, queue);
    let reconcile = move |name: String| {
        let shared = shared.clone();
        async move { reconcile(&shared.0, &shared.1, &name).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

async fn reconcile(manager: &Manager, secrets: &Informer<Secret>, name: &str) -> Result<Action, ReconcileError> {
    let seed = manager.all::<Seed>().read_opt(name).await?;
    let Some(seed) = seed.filter(|seed| seed.metadata.deletion_timestamp.is_none()) else {
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
    let namespaces: Api<Namespace> = manager.all();
    match namespaces.read_opt(&namespace).await? {
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
        Some(existing)
            if !existing
                .owner_references()
                .iter()
                .any(|own| own.controller == Some(true) && own.uid == owner.uid) =>
        {
            return Err(ReconcileError::Blocked(format!(
                "namespace {namespace:?} is not controlled by seed {name:?}"
            )));
        }
        Some(existing) => {
            let labelled = apply::patch(&namespaces, &existing, |namespace| {
                namespace.labels_mut().insert(label::ROLE.to_owned(), "seed".to_owned());
            });
            labelled.await?;
        }
    }
    let copies: Api<Secret> = manager.within(&namespace);
    let mut names = BTreeSet::new();
    for original in secrets.list() {
        if is_private(&original) {
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
    for copy in copies.read_list(&ListParams::default().labels(label::ROLE)).await? {
        if !names.contains(&copy.name_any()) && !is_private(&copy) {
            apply::delete(&copies, &copy.name_any()).await?;
        }
    }
    Ok(Action::Done)
}
