//! Admission plugins that give claims and ingresses the class which is the cluster's default, where they name none.

use std::cmp::Reverse;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use serde_json::Value;

use super::checks::annotation;
use super::claims::CLASS_ANNOTATION;
use crate::definition::{Admission, Attributes};
use crate::meta;

/// Annotations of a storage class that is the default.
const DEFAULT_STORAGE: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// The annotation of an ingress class that is the default.
const DEFAULT_INGRESS: &str = "ingressclass.kubernetes.io/is-default-class";
/// How ingresses named their class before they had a field for it.
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// The name of the class that is marked as default by one of the annotations: of several the newest, and of those the first by name.
fn default_class(attributes: &Attributes<'_>, (group, resource): (&str, &str), marks: &[&str]) -> Option<String> {
    let classes = attributes.context.lister.list(group, resource, None);
    let is_default = |class: &Value| marks.iter().any(|mark| annotation(class, mark) == Some("true"));
    let age = |class: &Value| {
        let created = meta::text(class, "/metadata/creationTimestamp").to_owned();
        (Reverse(created), meta::name(class).to_owned())
    };
    let marked = classes.into_iter().filter(|class| is_default(class));
    marked
        .min_by_key(|class| age(class))
        .map(|class| meta::name(&class).to_owned())
}

/// Names the default class in a new object whose `spec.<field>` and annotation name none.
fn name_default(
    attributes: &mut Attributes<'_>,
    field: &str,
    named_by: &str,
    default: impl Fn(&Attributes<'_>) -> Option<String>,
) {
    let Some(object) = attributes.object.as_deref() else {
        return;
    };
    let own = object.get("spec").and_then(|spec| spec.get(field));
    if own.is_some_and(|own| !own.is_null()) || annotation(object, named_by).is_some() {
        return;
    }
    let Some(class) = default(attributes) else { return };
    let spec = attributes.object.as_mut().and_then(|object| object.get_mut("spec"));
    if let Some(spec) = spec.and_then(Value::as_object_mut) {
        spec.insert(field.to_owned(), class.into());
    }
}

/// Gives claims the default storage class.
pub struct DefaultStorageClass;

#[async_trait]
impl Admission for DefaultStorageClass {
    fn name(&self) -> &'static str {
        "DefaultStorageClass"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.creates("", "persistentvolumeclaims") {
            let classes = ("storage.k8s.io", "storageclasses");
            name_default(attributes, "storageClassName", CLASS_ANNOTATION, |attributes| {
                default_class(attributes, classes, &DEFAULT_STORAGE)
            });
        }
        Ok(())
    }
}

/// Gives ingresses the default ingress class.
pub struct DefaultIngressClass;

#[async_trait]
impl Admission for DefaultIngressClass {
    fn name(&self) -> &'static str {
        "DefaultIngressClass"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.creates("networking.k8s.io", "ingresses") {
            let classes = ("networking.k8s.io", "ingressclasses");
            name_default(attributes, "ingressClassName", INGRESS_CLASS, |attributes| {
                default_class(attributes, classes, &[DEFAULT_INGRESS])
            });
        }
        Ok(())
    }
}
