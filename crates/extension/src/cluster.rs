//! The Cluster object, as extensions read it [EXT-70]–[EXT-74].

use gardener_apimachinery::meta::is_true;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::core::v1beta1::{CloudProfile, Seed, Shoot};
use gardener_apis::extensions::v1alpha1::Cluster;
use gardener_controller::Read;
use kube::{Api, Client};

/// A Cluster object that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{part} in the Cluster object cannot be read: {source}")]
pub struct UnreadableError {
    /// Which part.
    part: &'static str,
    /// What is wrong.
    source: serde_json::Error,
}

/// The Cluster of a namespace; none where there is no shoot.
///
/// # Errors
/// What the API says.
pub async fn get(client: &Client, namespace: &str) -> Result<Option<Cluster>, kube::Error> {
    if namespace.is_empty() || namespace == gardener_apis::constants::GARDEN_NAMESPACE {
        return Ok(None);
    }
    Api::<Cluster>::all(client.clone()).read_opt(namespace).await
}

fn read<T: serde::de::DeserializeOwned>(part: &'static str, value: &serde_json::Value) -> Result<T, UnreadableError> {
    serde_json::from_value(value.clone()).map_err(|source| UnreadableError { part, source })
}

/// The shoot.
///
/// # Errors
/// When the Cluster carries something else.
pub fn shoot(cluster: &Cluster) -> Result<Shoot, UnreadableError> {
    read("spec.shoot", &cluster.spec.shoot)
}

/// The cloud profile.
///
/// # Errors
/// When the Cluster carries something else.
pub fn cloud_profile(cluster: &Cluster) -> Result<CloudProfile, UnreadableError> {
    read("spec.cloudProfile", &cluster.spec.cloud_profile)
}

/// The seed; none where there is none.
///
/// # Errors
/// When the Cluster carries something else.
pub fn seed(cluster: &Cluster) -> Result<Option<Seed>, UnreadableError> {
    cluster
        .spec
        .seed
        .as_ref()
        .map(|value| read("spec.seed", value))
        .transpose()
}

/// Whether the shoot has failed at its latest generation: then extensions do nothing [EXT-19].
pub fn is_failed(cluster: &Cluster) -> bool {
    let shoot = &cluster.spec.shoot;
    let text = |pointer: &str| shoot.at(pointer).and_then(serde_json::Value::as_str);
    let number = |pointer: &str| shoot.at(pointer).and_then(serde_json::Value::as_i64);
    text("/status/lastOperation/state") == Some("Failed")
        && number("/status/observedGeneration") == number("/metadata/generation")
}

/// Whether hibernation is switched on.
pub fn is_hibernation_enabled(cluster: &Cluster) -> bool {
    let enabled = cluster.spec.shoot.at("/spec/hibernation/enabled");
    enabled.and_then(serde_json::Value::as_bool).unwrap_or(false)
}

/// Whether what cannot be deleted is to be given up.
pub fn is_force_deleted(cluster: &Cluster) -> bool {
    let annotations = cluster.spec.shoot.at("/metadata/annotations");
    annotations
        .and_then(|annotations| annotations.get(gardener_apis::constants::annotation::CONFIRMATION_FORCE_DELETION))
        .and_then(serde_json::Value::as_str)
        .is_some_and(is_true)
}
