//! `StorageObjectInUseProtection`: what pods may use is not gone before nobody uses it any more. Who finds that out is a controller.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use serde_json::{Value, json};

use crate::definition::{Admission, Attributes};
use crate::meta;

/// Group and resource of what is protected, and the finalizer that protects it.
const PROTECTED: [(&str, &str, &str); 3] = [
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        "kubernetes.io/vac-protection",
    ),
];

/// Gives new claims, volumes and classes of volumes' attributes their finalizer.
pub struct StorageObjectInUseProtection;

#[async_trait]
impl Admission for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let mut protected = PROTECTED.iter();
        let finalizer = protected.find(|(group, resource, _)| attributes.creates(group, resource));
        if let Some((_, _, finalizer)) = finalizer
            && let Some(object) = attributes.object.as_deref_mut()
        {
            add_finalizer(object, finalizer);
        }
        Ok(())
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut finalizers = meta::finalizers(object);
    if !finalizers.iter().any(|own| own == finalizer) {
        finalizers.push(finalizer.to_owned());
        meta::set(object, "finalizers", Some(json!(finalizers)));
    }
}
