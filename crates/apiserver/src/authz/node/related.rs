//! Which objects a node has to do with: those that the pods on it refer to, and what stands behind their claims.
//!
//! Upstream keeps this as a graph; here the pods of the node are looked at when somebody asks.

use std::sync::Arc;

use serde_json::Value;

use crate::definition::Lister;
use crate::kubernetes::is_mirror;
use crate::meta;

/// What pods refer to by name in their own namespace, with the places where they do: a star stands for all elements of a list.
const SECRETS: [&str; 18] = [
    "/spec/imagePullSecrets/*/name",
    "/spec/containers/*/envFrom/*/secretRef/name",
    "/spec/containers/*/env/*/valueFrom/secretKeyRef/name",
    "/spec/initContainers/*/envFrom/*/secretRef/name",
    "/spec/initContainers/*/env/*/valueFrom/secretKeyRef/name",
    "/spec/ephemeralContainers/*/envFrom/*/secretRef/name",
    "/spec/ephemeralContainers/*/env/*/valueFrom/secretKeyRef/name",
    "/spec/volumes/*/secret/secretName",
    "/spec/volumes/*/projected/sources/*/secret/name",
    "/spec/volumes/*/azureFile/secretName",
    "/spec/volumes/*/cephfs/secretRef/name",
    "/spec/volumes/*/cinder/secretRef/name",
    "/spec/volumes/*/flexVolume/secretRef/name",
    "/spec/volumes/*/rbd/secretRef/name",
    "/spec/volumes/*/scaleIO/secretRef/name",
    "/spec/volumes/*/iscsi/secretRef/name",
    "/spec/volumes/*/storageos/secretRef/name",
    "/spec/volumes/*/csi/nodePublishSecretRef/name",
];
const CONFIG_MAPS: [&str; 8] = [
    "/spec/containers/*/envFrom/*/configMapRef/name",
    "/spec/containers/*/env/*/valueFrom/configMapKeyRef/name",
    "/spec/initContainers/*/envFrom/*/configMapRef/name",
    "/spec/initContainers/*/env/*/valueFrom/configMapKeyRef/name",
    "/spec/ephemeralContainers/*/envFrom/*/configMapRef/name",
    "/spec/ephemeralContainers/*/env/*/valueFrom/configMapKeyRef/name",
    "/spec/volumes/*/configMap/name",
    "/spec/volumes/*/projected/sources/*/configMap/name",
];
const CLAIMED: &str = "/spec/volumes/*/persistentVolumeClaim/claimName";
const SERVICE_ACCOUNTS: [&str; 1] = ["/spec/serviceAccountName"];
const RESOURCE_CLAIMS: [&str; 3] = [
    "/spec/resourceClaims/*/resourceClaimName",
    "/status/resourceClaimStatuses/*/resourceClaimName",
    "/status/extendedResourceClaimStatus/resourceClaimName",
];
/// Secrets that kubelets need for volumes: where the name stands, and where the namespace, which is the claim's if it is not told.
const VOLUME_SECRETS: [(&str, &str); 11] = [
    ("/spec/azureFile/secretName", "/spec/azureFile/secretNamespace"),
    ("/spec/cephfs/secretRef/name", "/spec/cephfs/secretRef/namespace"),
    ("/spec/cinder/secretRef/name", "/spec/cinder/secretRef/namespace"),
    (
        "/spec/flexVolume/secretRef/name",
        "/spec/flexVolume/secretRef/namespace",
    ),
    ("/spec/rbd/secretRef/name", "/spec/rbd/secretRef/namespace"),
    ("/spec/scaleIO/secretRef/name", "/spec/scaleIO/secretRef/namespace"),
    ("/spec/iscsi/secretRef/name", "/spec/iscsi/secretRef/namespace"),
    ("/spec/storageos/secretRef/name", "/spec/storageos/secretRef/namespace"),
    (
        "/spec/csi/nodePublishSecretRef/name",
        "/spec/csi/nodePublishSecretRef/namespace",
    ),
    (
        "/spec/csi/nodeStageSecretRef/name",
        "/spec/csi/nodeStageSecretRef/namespace",
    ),
    (
        "/spec/csi/nodeExpandSecretRef/name",
        "/spec/csi/nodeExpandSecretRef/namespace",
    ),
];

/// Whether a pod refers to some secret.
pub(crate) fn has_secrets(pod: &Value) -> bool {
    SECRETS.iter().any(|place| any_at(pod, place, &|name| !name.is_empty()))
}

/// Whether a pod refers to the secret of this name in its namespace.
pub fn refers_to_secret(pod: &Value, name: &str) -> bool {
    SECRETS.iter().any(|place| is_at(pod, place, name))
}

/// Whether a pod refers to some ConfigMap.
pub(crate) fn has_config_maps(pod: &Value) -> bool {
    CONFIG_MAPS
        .iter()
        .any(|place| any_at(pod, place, &|name| !name.is_empty()))
}

/// Whether a node has to do with an object.
pub(super) fn is_related(
    lister: &dyn Lister,
    node: &str,
    (group, resource): (&str, &str),
    (namespace, name): (&str, &str),
) -> bool {
    let of_node = |pointer: &str| {
        let object = lister.get(group, resource, namespace, name);
        object.is_some_and(|object| meta::text(&object, pointer) == node)
    };
    match (group, resource) {
        ("", "pods") | (_, "volumeattachments" | "resourceslices" | "podcertificaterequests") => {
            of_node("/spec/nodeName")
        }
        ("", "persistentvolumes") => {
            let volume = lister.get("", "persistentvolumes", "", name);
            volume.is_some_and(|volume| is_claimed(lister, node, &volume))
        }
        ("", "secrets") => {
            refers(lister, node, namespace, name, &SECRETS) || is_secret_of_volumes(lister, node, namespace, name)
        }
        ("", "configmaps") => refers(lister, node, namespace, name, &CONFIG_MAPS),
        ("", "serviceaccounts") => refers(lister, node, namespace, name, &SERVICE_ACCOUNTS),
        ("", "persistentvolumeclaims") => claims(lister, node, namespace, name),
        ("resource.k8s.io", "resourceclaims") => refers(lister, node, namespace, name, &RESOURCE_CLAIMS),
        _ => false,
    }
}

fn pods_of(lister: &dyn Lister, node: &str, namespace: &str) -> impl Iterator<Item = Arc<Value>> {
    let pods = lister.with_field("", "pods", "spec.nodeName", node).into_iter();
    let namespace = namespace.to_owned();
    pods.filter(move |pod| meta::namespace(pod) == namespace && !is_mirror(pod))
}

fn refers(lister: &dyn Lister, node: &str, namespace: &str, name: &str, places: &[&str]) -> bool {
    pods_of(lister, node, namespace).any(|pod| places.iter().any(|place| is_at(&pod, place, name)))
}

/// Whether a pod of the node has the claim, by name or as an ephemeral volume, whose claim bears the names of both.
fn claims(lister: &dyn Lister, node: &str, namespace: &str, name: &str) -> bool {
    let is_ephemeral = |pod: &Value| {
        let volumes = meta::elements(pod, "/spec/volumes").iter();
        let mut ephemeral = volumes.filter(|volume| volume.get("ephemeral").is_some_and(Value::is_object));
        ephemeral.any(|volume| format!("{}-{}", meta::name(pod), meta::text(volume, "/name")) == name)
    };
    pods_of(lister, node, namespace).any(|pod| is_at(&pod, CLAIMED, name) || is_ephemeral(&pod))
}

fn is_claimed(lister: &dyn Lister, node: &str, volume: &Value) -> bool {
    let claim = |pointer: &str| meta::text(volume, pointer);
    let (namespace, name) = (claim("/spec/claimRef/namespace"), claim("/spec/claimRef/name"));
    !name.is_empty() && claims(lister, node, namespace, name)
}

/// Whether a volume that is claimed by a pod of the node needs the secret.
fn is_secret_of_volumes(lister: &dyn Lister, node: &str, namespace: &str, name: &str) -> bool {
    let needs = |volume: &Value| {
        VOLUME_SECRETS.iter().any(|(named, beside)| {
            let beside = match meta::text(volume, beside) {
                "" => meta::text(volume, "/spec/claimRef/namespace"),
                told => told,
            };
            meta::text(volume, named) == name && beside == namespace
        })
    };
    let volumes = lister.list("", "persistentvolumes", None);
    volumes
        .iter()
        .any(|volume| needs(volume) && is_claimed(lister, node, volume))
}

/// Whether a text is at a place of an object.
fn is_at(object: &Value, place: &str, text: &str) -> bool {
    any_at(object, place, &|own| own == text)
}

/// Whether one of the texts at a place fits; where there is none, an empty one is asked for.
fn any_at(object: &Value, place: &str, fits: &dyn Fn(&str) -> bool) -> bool {
    match place.split_once("/*") {
        Some((list, rest)) => meta::elements(object, list)
            .iter()
            .any(|element| any_at(element, rest, fits)),
        None => fits(meta::text(object, place)),
    }
}
