//! What extension objects and Etcds of a seed have in common when they are judged [EXT-131]: metadata, fields that must not
//! change, and a spec that is left alone once the object is in deletion.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use super::{object_meta, object_meta_update, requested_changes};

/// A kind whose objects are judged in seeds.
pub trait ExtensionObject: Metadata<Ty = ObjectMeta> {
    /// What is wanted.
    type Spec: PartialEq + Serialize;
    /// Whether objects live in namespaces.
    const NAMESPACED: bool;
    /// The kind as findings name it, such as `backup bucket`.
    const WORDS: &'static str;

    /// What is wanted.
    fn spec(&self) -> &Self::Spec;

    /// Findings in everything but metadata.
    fn validate_content(&self) -> ErrorList;

    /// Findings for what changed of a spec although it must not.
    fn validate_changes(new: &Self::Spec, old: &Self::Spec, path: &Path) -> ErrorList;

    /// The finding for a spec that changes while its object is in deletion.
    fn frozen(new: &Self::Spec, old: &Self::Spec, path: &Path) -> Error {
        Error::forbidden(path, requested_changes(Self::WORDS, old, new))
    }
}

/// Under which path webhooks judge objects of a kind.
pub fn webhook_path<K: k8s_openapi::Resource>() -> String {
    let group = K::GROUP.replace('.', "-");
    format!("/validate-{group}-{}-{}", K::VERSION, K::KIND.to_lowercase())
}

/// Under which path a webhook judges whether something may be deleted [EXT-130].
pub const DELETION_PROTECTION_PATH: &str = "/webhooks/validate-crd-deletion";

/// Findings in an object that is to be created.
pub fn validate<K: ExtensionObject>(object: &K) -> ErrorList {
    let mut errors = object_meta(object.metadata(), K::NAMESPACED, names::dns_subdomain);
    errors.extend(object.validate_content());
    errors
}

/// Findings in an object that is to take the place of another.
pub fn validate_update<K: ExtensionObject>(new: &K, old: &K) -> ErrorList {
    let path = Path::new("spec");
    let (after, before) = (new.spec(), old.spec());
    let mut errors = object_meta_update(new.metadata(), old.metadata());
    if new.metadata().deletion_timestamp.is_some() && after != before {
        errors.push(K::frozen(after, before, &path));
    } else {
        errors.extend(K::validate_changes(after, before, &path));
    }
    errors.extend(validate(new));
    errors
}

/// Findings for fields of a spec that must not be empty: their places below it, and whether they are.
pub(crate) fn required(path: &Path, fields: &[(&str, bool)]) -> ErrorList {
    let empty = fields.iter().filter(|(_, is_empty)| *is_empty);
    empty
        .map(|(name, _)| Error::required(&path.child(name), "field is required"))
        .collect()
}

/// The name that a reference to a Secret must have.
pub(crate) fn is_unnamed(reference: &k8s_openapi::api::core::v1::SecretReference) -> bool {
    reference.name.as_deref().is_none_or(str::is_empty)
}
