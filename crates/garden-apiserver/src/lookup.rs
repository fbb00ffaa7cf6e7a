//! Reads typed objects of the same cluster.

use std::ops::Deref;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::{ApiError, names};
use gardener_apis::constants::{GARDEN_NAMESPACE, label, role};
use gardener_apis::core::v1beta1::{
    CloudProfile, CloudProfileReference, CloudProfileSpec, ControllerRegistration, NamespacedCloudProfile, Project,
    SecretBinding, Shoot,
};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_apiserver::definition::{Kept, Lister, Which};
use gardener_apiserver::meta;
use k8s_openapi::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One object; `namespace` is empty for cluster-scoped kinds.
pub(crate) fn get<K: Resource + DeserializeOwned>(lister: &dyn Lister, namespace: &str, name: &str) -> Option<K> {
    let value = lister.get(K::GROUP, K::URL_PATH_SEGMENT, namespace, name)?;
    K::deserialize(value.as_ref()).ok()
}

/// What a client says of a name that no request can have in its path; such an object is not asked for.
pub(crate) fn unaskable(name: &str) -> Option<String> {
    let wrong = names::path_segment(name);
    (!wrong.is_empty()).then(|| format!("invalid resource name {}: [{}]", go_quote(name), wrong.join(" ")))
}

/// A shoot that an object of its namespace names; none if there is no such shoot.
///
/// # Errors
/// The name can be none of a shoot.
pub(crate) fn named_shoot(lister: &dyn Lister, namespace: &str, name: &str) -> Result<Option<Shoot>, ApiError> {
    match unaskable(name) {
        Some(why) => Err(ApiError::internal(format!(
            "could not get shoot {namespace}/{name}: {why}"
        ))),
        None => Ok(get(lister, namespace, name)),
    }
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

/// Objects of a kind that is asked for with nearly every write, as their type: each is decoded once until it changes.
fn kept<K>(lister: &dyn Lister, which: Which<'_>) -> Vec<Arc<K>>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
{
    let make = |object: &Value| -> Option<Kept> { Some(Arc::new(K::deserialize(object).ok()?)) };
    let kept = lister.kept(K::GROUP, K::URL_PATH_SEGMENT, which, make).into_iter();
    kept.filter_map(|kept| kept.downcast().ok()).collect()
}

/// The first of such objects.
fn kept_one<K>(lister: &dyn Lister, which: Which<'_>) -> Option<Arc<K>>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
{
    kept(lister, which).into_iter().next()
}

/// The project of a namespace.
pub(crate) fn project_of(lister: &dyn Lister, namespace: &str) -> Option<Arc<Project>> {
    kept_one(lister, Which::With("spec.namespace", namespace))
}

/// What a cloud profile tells, wherever it stands.
pub(crate) enum Profile {
    /// A profile for all projects.
    Cluster(Arc<CloudProfile>),
    /// One of a project, with what it has of its parent.
    Namespaced(Arc<NamespacedCloudProfile>),
}

impl Deref for Profile {
    type Target = CloudProfileSpec;

    fn deref(&self) -> &CloudProfileSpec {
        match self {
            Self::Cluster(profile) => &profile.spec,
            Self::Namespaced(profile) => &profile.status.cloud_profile_spec,
        }
    }
}

/// What a cloud profile reference stands for, or why it stands for nothing, [ADM-20].
pub(crate) fn cloud_profile(
    lister: &dyn Lister,
    namespace: &str,
    reference: Option<&CloudProfileReference>,
) -> Result<Profile, String> {
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
        "CloudProfile" => {
            let found = kept_one(lister, Which::Named("", &reference.name));
            found.map(Profile::Cluster).ok_or_else(|| missing("cloudprofile"))
        }
        "NamespacedCloudProfile" => {
            let found = kept_one(lister, Which::Named(namespace, &reference.name));
            found
                .map(Profile::Namespaced)
                .ok_or_else(|| missing("namespacedcloudprofile"))
        }
        other => Err(format!(
            "could not find referenced cloud profile: could not find referenced cloud profile with kind {other:?}"
        )),
    }
}

/// All bindings of credentials.
pub(crate) fn credentials_bindings(lister: &dyn Lister) -> Vec<Arc<CredentialsBinding>> {
    kept(lister, Which::All)
}

/// All bindings of Secrets.
pub(crate) fn secret_bindings(lister: &dyn Lister) -> Vec<Arc<SecretBinding>> {
    kept(lister, Which::All)
}

/// The Secret that tells how the garden is called as the issuer of shoots' tokens.
pub(crate) fn issuer_secret(lister: &dyn Lister) -> Option<Arc<Value>> {
    let secrets = lister.list("", "secrets", Some(GARDEN_NAMESPACE));
    secrets.into_iter().find(|secret| {
        let labels = meta::string_map(secret.at("/metadata/labels"));
        labels.get(label::ROLE).map(String::as_str) == Some(role::SHOOT_SERVICE_ACCOUNT_ISSUER)
    })
}

/// All controller registrations.
pub(crate) fn registrations(lister: &dyn Lister) -> Vec<Arc<ControllerRegistration>> {
    kept(lister, Which::All)
}
