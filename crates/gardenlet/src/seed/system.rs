//! What every seed has: definitions, priorities, identity, resource manager, etcd-druid [CP-140].

use std::time::Duration;

use gardener_apis::core::v1beta1::Seed;
use gardener_controller::Read;
use gardener_controller::wait::{Patience, Verdict, wait_for};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use kube::{Api, Client, ResourceExt};
use serde::Deserialize;
use serde_json::Value;

use crate::Config;
use crate::apply;
use crate::components::{resource_manager, seed_system};
use crate::failed::Failed;

/// The Deployments that a seed cannot do without.
pub(super) const DEPLOYMENTS: [&str; 2] = [resource_manager::NAME, "etcd-druid"];

/// The seed's identity: what is there, or its name, told once.
pub(super) async fn identity(config: &Config, seed: &Seed) -> Result<String, Failed> {
    let api: Api<ConfigMap> = Api::namespaced(config.seed.clone(), "kube-system");
    let known = api.read_opt("cluster-identity").await?.and_then(|map| map.data);
    if let Some(identity) = known.and_then(|data| data.get("cluster-identity").cloned()) {
        return Ok(identity);
    }
    let identity = seed.status.cluster_identity.clone().unwrap_or_else(|| seed.name_any());
    apply::apply(&config.seed, &seed_system::cluster_identity(&identity)).await?;
    Ok(identity)
}

/// What is read of a definition that was applied: schemas are large.
#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    status: ToldStatus,
}

#[derive(Default, Deserialize)]
struct ToldStatus {
    #[serde(default)]
    conditions: Vec<CustomResourceDefinitionCondition>,
}

fn is_established(conditions: &[CustomResourceDefinitionCondition]) -> bool {
    let mut conditions = conditions.iter();
    conditions.any(|one| one.type_ == "Established" && one.status == "True")
}

/// How long a definition may take until its kind is served.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(60);

/// Waits until a cluster serves the kind of a definition.
///
/// # Errors
/// It does not within a minute.
async fn until_established(cluster: &Client, name: &str) -> Result<(), Failed> {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.clone());
    let established = |found: Option<&CustomResourceDefinition>| {
        let conditions = found.and_then(|one| one.status.as_ref()?.conditions.as_deref());
        match is_established(conditions.unwrap_or_default()) {
            true => Verdict::Ready(()),
            false => Verdict::Pending(format!("definition {name} is not established")),
        }
    };
    let patience = Patience {
        recheck: ESTABLISHED_WITHIN,
        timeout: ESTABLISHED_WITHIN,
    };
    let waited = wait_for(&api, name, patience, established).await;
    waited.map_err(|error| Failed::Because(error.to_string()))
}

/// Waits until a cluster serves a definition's kind, however long that takes: an informer that finds no such kind looks again only after a while.
pub(crate) async fn until_served(cluster: &Client, definition: &str) {
    while let Err(error) = until_established(cluster, definition).await {
        tracing::debug!(%error, "the cluster does not have the kind yet");
    }
}

async fn install_definitions(config: &Config) -> Result<(), Failed> {
    let mut definitions = Vec::new();
    for (name, text) in gardener_apis::crds::ALL {
        let definition: Value =
            serde_saphyr::from_str(text).map_err(|error| Failed::Because(format!("definition {name}: {error}")))?;
        definitions.push(definition);
    }
    let applied = apply::apply_all(&config.seed, &definitions).await?;
    for ((name, _), applied) in gardener_apis::crds::ALL.iter().zip(&applied) {
        // some servers establish a definition before they answer
        let told = applied.read::<Told>();
        if !told.is_ok_and(|told| is_established(&told.status.conditions)) {
            until_established(&config.seed, name).await?;
        }
    }
    Ok(())
}

/// Installs all of it.
pub(super) async fn install(config: &Config, seed: &Seed, identity: &str) -> Result<(), Failed> {
    install_definitions(config).await?;
    apply::apply_all(&config.seed, &seed_system::namespaces(&seed.spec.provider.zones)).await?;
    apply::apply_all(&config.seed, &seed_system::priority_classes()).await?;
    apply::apply_all(
        &config.seed,
        &resource_manager::seed_manifests(seed_system::NAMESPACE, identity),
    )
    .await?;
    apply::apply_all(&config.seed, &seed_system::etcd_druid()).await?;
    Ok(())
}
