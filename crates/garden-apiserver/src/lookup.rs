//! Reads typed objects of the same cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apis::core::v1beta1::{CloudProfile, ControllerRegistration};
use gardener_apis::core::v1beta1::{CloudProfileReference, CloudProfileSpec, NamespacedCloudProfile, Project};
use gardener_apiserver::definition::Lister;
use k8s_openapi::Resource;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One object; `namespace` is empty for cluster-scoped kinds.
pub(crate) fn get<K: Resource + DeserializeOwned>(lister: &dyn Lister, namespace: &str, name: &str) -> Option<K> {
    let value = lister.get(K::GROUP, K::URL_PATH_SEGMENT, namespace, name)?;
    K::deserialize(value.as_ref()).ok()
}

/// All objects of a kind, or those of one namespace.
pub(crate) fn list<K: Resource + DeserializeOwned>(lister: &dyn Lister, namespace: Option<&str>) -> Vec<K> {
    list_if(lister, namespace, |_| true)
}

/// Those objects of a kind that are wanted, told by their JSON form: what is not wanted is not decoded.
pub(crate) fn list_if<K: Resource + DeserializeOwned>(
    lister: &dyn Lister,
    namespace: Option<&str>,
    wanted: impl Fn(&Value) -> bool,
) -> Vec<K> {
    let objects = lister.list(K::GROUP, K::URL_PATH_SEGMENT, namespace);
    let wanted = objects.iter().filter(|value| wanted(value));
    wanted.filter_map(|value| K::deserialize(value.as_ref()).ok()).collect()
}

/// The bytes of one key of a Secret.
pub(crate) fn secret_data(secret: &Value, key: &str) -> Option<Vec<u8>> {
    STANDARD.decode(secret.get("data")?.get(key)?.as_str()?).ok()
}

/// The project of a namespace.
pub(crate) fn project_of(lister: &dyn Lister, namespace: &str) -> Option<Project> {
    let found = lister.with_field(Project::GROUP, Project::URL_PATH_SEGMENT, "spec.namespace", namespace);
    found
        .iter()
        .find_map(|project| Project::deserialize(project.as_ref()).ok())
}

/// What a cloud profile reference stands for, or why it stands for nothing, [ADM-20].
pub(crate) fn cloud_profile(
    lister: &dyn Lister,
    namespace: &str,
    reference: Option<&CloudProfileReference>,
) -> Result<CloudProfileSpec, String> {
    let Some(reference) = reference else {
        return Err("could not find referenced cloud profile: cloudprofile.core.gardener.cloud \"\" not found".into());
    };
    let missing = |resource: &str| {
        format!(
            "could not find referenced cloud profile: {resource}.core.gardener.cloud {:?} not found",
            reference.name
        )
    };
    match reference.kind.as_str() {
        "CloudProfile" => get::<CloudProfile>(lister, "", &reference.name)
            .map(|profile| profile.spec)
            .ok_or_else(|| missing("cloudprofile")),
        "NamespacedCloudProfile" => get::<NamespacedCloudProfile>(lister, namespace, &reference.name)
            .map(|profile| profile.status.cloud_profile_spec)
            .ok_or_else(|| missing("namespacedcloudprofile")),
        other => Err(format!("could not find referenced cloud profile with kind {other:?}")),
    }
}

/// All controller registrations.
pub(crate) fn registrations(lister: &dyn Lister) -> Vec<ControllerRegistration> {
    list(lister, None)
}
