//! Volumes: binds claims to volumes, makes volumes for claims of a storage class, lets both go.
//!
//! Every provisioner of a storage class is served here: a volume of an embedded cluster is an object only. What keeps data for it is told by
//! the configuration's `on_volume_deleted`.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::quantity::Amount;
use gardener_controller::events::Severity;
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, Clustered, ObjectRef, Queue, Read, apply};
use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec,
    PersistentVolumeSpec, Pod,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, ResourceExt};

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;
use crate::pods;

const COMPONENT: &str = "persistentvolume-controller";
const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

pub(super) fn start(environment: &Arc<Environment>) {
    let informers = &environment.informers;
    let role = Role::ControllerManager;
    let claims: Queue<ObjectRef> = Queue::new();
    environment.feed(&informers.claims, &claims, role, |claim| vec![key_of(claim)]);
    environment.feed_if(&informers.pods, &claims, role, pod_matters, claims_of);
    environment.feed(&informers.volumes, &claims, role, |volume| {
        claim_of(volume).into_iter().collect()
    });
    let all = informers.claims.clone();
    environment.feed(&informers.storage_classes, &claims, role, move |class| {
        let pending = all.list_cluster(&class.cluster);
        pending
            .iter()
            .filter(|claim| !is_bound(&claim.object))
            .map(|claim| key_of(claim.as_ref()))
            .collect()
    });
    environment.reconcile("persistentvolume-binder", role, 8, claims, reconcile_claim);
    let volumes: Queue<ObjectRef> = Queue::new();
    environment.feed(&informers.volumes, &volumes, role, |volume| vec![key_of(volume)]);
    environment.feed(&informers.claims, &volumes, role, |claim| {
        let name = claim
            .object
            .spec
            .as_ref()
            .and_then(|spec| spec.volume_name.clone())
            .filter(|name| !name.is_empty());
        name.map(|name| ObjectRef::cluster_scoped(name).in_cluster(&claim.cluster))
            .into_iter()
            .collect()
    });
    environment.reconcile("persistentvolume", role, 8, volumes, reconcile_volume);
}

/// A change of a pod that claims notice: it comes, is placed, ends or goes.
fn pod_matters(change: &Change<Clustered<Pod>>) -> bool {
    let Change::Applied { old: Some(old), new } = change else {
        return true;
    };
    let view = |pod: &Pod| {
        (
            pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            pods::has_ended(pod),
        )
    };
    view(&old.object) != view(&new.object)
}

fn claim_names(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    volumes
        .into_iter()
        .flatten()
        .filter_map(|volume| volume.persistent_volume_claim.as_ref())
        .map(|claim| claim.claim_name.clone())
        .collect()
}

fn claims_of(pod: &Clustered<Pod>) -> Vec<ObjectRef> {
    let namespace = pod.object.namespace().unwrap_or_default();
    let names = claim_names(&pod.object).into_iter();
    names
        .map(|name| ObjectRef::new(namespace.clone(), name).in_cluster(&pod.cluster))
        .collect()
}

fn claim_of(volume: &Clustered<PersistentVolume>) -> Option<ObjectRef> {
    let claim = volume.object.spec.as_ref()?.claim_ref.as_ref()?;
    let (namespace, name) = (claim.namespace.clone()?, claim.name.clone()?);
    Some(ObjectRef::new(namespace, name).in_cluster(&volume.cluster))
}

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
}

fn storage(list: Option<&BTreeMap<String, Quantity>>) -> Option<Amount> {
    list?.get("storage")?.0.parse().ok()
}

fn wanted_storage(spec: &PersistentVolumeClaimSpec) -> Option<Amount> {
    storage(spec.resources.as_ref().and_then(|own| own.requests.as_ref()))
}

/// Whether a volume of nobody, or kept for this claim, serves the claim.
fn fits(volume: &PersistentVolume, claim: &PersistentVolumeClaim, class: &str) -> bool {
    let (Some(spec), Some(wanted)) = (&volume.spec, &claim.spec) else {
        return false;
    };
    let kept = spec.claim_ref.as_ref().is_none_or(|own| {
        own.name == claim.metadata.name
            && own.namespace == claim.metadata.namespace
            && (own.uid.is_none() || own.uid == claim.metadata.uid)
    });
    let modes = wanted.access_modes.iter().flatten();
    let offered = spec.access_modes.clone().unwrap_or_default();
    kept && volume.metadata.deletion_timestamp.is_none()
        && spec.storage_class_name.as_deref().unwrap_or_default() == class
        && wanted.volume_mode.as_deref().unwrap_or("Filesystem") == spec.volume_mode.as_deref().unwrap_or("Filesystem")
        && modes.into_iter().all(|mode| offered.contains(mode))
        && storage(spec.capacity.as_ref()) >= wanted_storage(wanted)
        && wanted
            .selector
            .as_ref()
            .is_none_or(|own| pods::selects(Some(own), &volume.metadata))
}

async fn reconcile_claim(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.claims.get(&key) else {
        return Ok(Action::Done);
    };
    let claim = &found.object;
    let api: Api<PersistentVolumeClaim> = environment.api(&key);
    let users = users(&environment, &key);
    if claim.metadata.deletion_timestamp.is_some() {
        if users.iter().all(|pod| pods::has_ended(&pod.object)) {
            apply::remove_finalizer(&api, claim, CLAIM_FINALIZER).await?;
        }
        return Ok(Action::Done);
    }
    let spec = claim.spec.clone().unwrap_or_default();
    if let Some(name) = spec.volume_name.clone().filter(|name| !name.is_empty()) {
        return follow_volume(&environment, &key, claim, &name).await;
    }
    let classes = environment.informers.storage_classes.list_cluster(&key.cluster);
    let class_name = match &spec.storage_class_name {
        Some(name) => name.clone(),
        None => match default_class(&classes) {
            Some(name) => {
                apply::patch_locked(&api, claim, |claim| {
                    claim.spec.get_or_insert_default().storage_class_name = Some(name);
                })
                .await?;
                return Ok(Action::Done);
            }
            None => String::new(),
        },
    };
    let volumes = environment.informers.volumes.list_cluster(&key.cluster);
    let mut fitting: Vec<&PersistentVolume> = volumes
        .iter()
        .map(|volume| &volume.object)
        .filter(|volume| fits(volume, claim, &class_name))
        .collect();
    // what is kept for the claim first, then the smallest
    fitting.sort_by_key(|volume| {
        let spec = volume.spec.as_ref();
        let kept = spec.is_some_and(|spec| spec.claim_ref.is_some());
        (
            !kept,
            storage(spec.and_then(|spec| spec.capacity.as_ref())).map(Amount::value),
            volume.name_any(),
        )
    });
    if let Some(volume) = fitting.first() {
        return bind(&environment, &key, claim, volume).await;
    }
    let tell = async |severity: Severity, reason: &str, message: &str| {
        environment
            .event(COMPONENT, &key.cluster, claim, severity, reason, message)
            .await;
    };
    if class_name.is_empty() {
        let message = "no persistent volumes available for this claim and no storage class is set";
        tell(Severity::Normal, "FailedBinding", message).await;
        return Ok(Action::Done);
    }
    let Some(class) = classes
        .iter()
        .map(|class| &class.object)
        .find(|class| class.name_any() == class_name)
    else {
        let message = format!("storageclass.storage.k8s.io \"{class_name}\" not found");
        tell(Severity::Warning, "ProvisioningFailed", &message).await;
        return Ok(Action::Done);
    };
    let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    let placed = users.iter().any(|pod| {
        pod.object
            .spec
            .as_ref()
            .is_some_and(|spec| spec.node_name.as_ref().is_some_and(|name| !name.is_empty()))
    });
    if waits && !placed {
        let message = "waiting for first consumer to be created before binding";
        tell(Severity::Normal, "WaitForFirstConsumer", message).await;
        return Ok(Action::Done);
    }
    if class.provisioner == NO_PROVISIONER {
        return Ok(Action::Done);
    }
    provision(&environment, &key, claim, class).await
}

fn users(environment: &Environment, key: &ObjectRef) -> Vec<Arc<Clustered<Pod>>> {
    let around = environment
        .informers
        .pods
        .list_cluster_namespace(&key.cluster, &key.namespace);
    around
        .into_iter()
        .filter(|pod| claim_names(&pod.object).contains(&key.name))
        .collect()
}

/// The newest class that says it is the default one.
fn default_class(classes: &[Arc<Clustered<StorageClass>>]) -> Option<String> {
    let defaults = classes
        .iter()
        .filter(|class| class.object.annotations().get(DEFAULT_CLASS).map(String::as_str) == Some("true"));
    let newest = defaults.max_by_key(|class| (pods::created_at(&class.object.metadata), class.object.name_any()));
    newest.map(|class| class.object.name_any())
}

async fn provision(
    environment: &Environment,
    key: &ObjectRef,
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
) -> Result<Action, Error> {
    let name = format!("pvc-{}", claim.uid().unwrap_or_default());
    let spec = claim.spec.clone().unwrap_or_default();
    let size = spec
        .resources
        .as_ref()
        .and_then(|own| own.requests.as_ref()?.get("storage").cloned());
    let volume = PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some([(PROVISIONED_BY.to_owned(), class.provisioner.clone())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes.clone(),
            capacity: size.map(|size| [("storage".to_owned(), size)].into()),
            claim_ref: Some(claim_reference(claim)),
            csi: Some(CSIPersistentVolumeSource {
                // provisioners may have names in which there is a slash, drivers may not
                driver: class.provisioner.replace('/', "."),
                volume_handle: name.clone(),
                ..CSIPersistentVolumeSource::default()
            }),
            mount_options: class.mount_options.clone(),
            persistent_volume_reclaim_policy: Some(class.reclaim_policy.clone().unwrap_or_else(|| "Delete".to_owned())),
            storage_class_name: Some(class.name_any()),
            volume_mode: spec.volume_mode.clone(),
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    };
    let api: Api<PersistentVolume> = environment.cluster_api(&key.cluster);
    let volume = match api.create(&PostParams::default(), &volume).await {
        Ok(volume) => volume,
        Err(kube::Error::Api(status)) if status.is_already_exists() => api.read(&name).await?,
        Err(error) => return Err(error.into()),
    };
    let message = format!("Successfully provisioned volume {name}");
    environment
        .event(
            COMPONENT,
            &key.cluster,
            claim,
            Severity::Normal,
            "ProvisioningSucceeded",
            &message,
        )
        .await;
    bind(environment, key, claim, &volume).await
}

fn claim_reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    object_reference(claim, &())
}

async fn bind(
    environment: &Environment,
    key: &ObjectRef,
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
) -> Result<Action, Error> {
    let volumes: Api<PersistentVolume> = environment.cluster_api(&key.cluster);
    let bound = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.claim_ref.as_ref())
        .is_some_and(|own| own.uid.is_some());
    if !bound {
        let reference = claim_reference(claim);
        apply::patch_locked(&volumes, volume, |volume| {
            volume
                .annotations_mut()
                .insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
            volume.spec.get_or_insert_default().claim_ref = Some(reference);
        })
        .await?;
    }
    let claims: Api<PersistentVolumeClaim> = environment.api(key);
    apply::patch_locked(&claims, claim, |claim| {
        let annotations = claim.annotations_mut();
        annotations.insert(BIND_COMPLETED.to_owned(), "yes".to_owned());
        annotations.insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
        claim.spec.get_or_insert_default().volume_name = Some(volume.name_any());
    })
    .await?;
    Ok(Action::Done)
}

/// The status of a claim that has a volume; a volume grows with what the claim asks for.
async fn follow_volume(
    environment: &Environment,
    key: &ObjectRef,
    claim: &PersistentVolumeClaim,
    name: &str,
) -> Result<Action, Error> {
    let api: Api<PersistentVolumeClaim> = environment.api(key);
    let place = ObjectRef::cluster_scoped(name).in_cluster(&key.cluster);
    let found = environment.informers.volumes.get(&place);
    let volume = found.as_ref().map(|volume| &volume.object).filter(|volume| {
        let own = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        own.is_some_and(|own| own.uid == claim.metadata.uid)
    });
    let Some(volume) = volume else {
        if is_bound(claim) && found.is_none() {
            let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
            environment
                .event(COMPONENT, &key.cluster, claim, Severity::Warning, "ClaimLost", message)
                .await;
            apply::patch_status_locked(&api, claim, |claim| {
                claim.status.get_or_insert_default().phase = Some("Lost".to_owned());
            })
            .await?;
        } else if let Some(found) = found
            && fits(
                &found.object,
                claim,
                claim
                    .spec
                    .as_ref()
                    .and_then(|spec| spec.storage_class_name.as_deref())
                    .unwrap_or_default(),
            )
        {
            // the claim was made for this volume
            return bind(environment, key, claim, &found.object).await;
        }
        return Ok(Action::Done);
    };
    let asked = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.resources.as_ref()?.requests.as_ref()?.get("storage").cloned());
    let mut spec = volume.spec.clone().unwrap_or_default();
    if is_bound(claim)
        && claim.spec.as_ref().and_then(wanted_storage) > storage(spec.capacity.as_ref())
        && let Some(asked) = asked
    {
        let volumes: Api<PersistentVolume> = environment.cluster_api(&key.cluster);
        let grown = apply::patch_locked(&volumes, volume, |volume| {
            let capacity = volume.spec.get_or_insert_default().capacity.get_or_insert_default();
            capacity.insert("storage".to_owned(), asked);
        })
        .await?;
        spec = grown.0.spec.unwrap_or_default();
    }
    apply::patch_status_locked(&api, claim, |claim| {
        let status = claim.status.get_or_insert_default();
        status.phase = Some("Bound".to_owned());
        status.access_modes = spec.access_modes;
        status.capacity = spec.capacity;
    })
    .await?;
    Ok(Action::Done)
}

async fn reconcile_volume(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.volumes.get(&key) else {
        return Ok(Action::Done);
    };
    let volume = &found.object;
    let api: Api<PersistentVolume> = environment.cluster_api(&key.cluster);
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let claims_place = claim_of(&found);
    let claim = match &claims_place {
        // the informer of claims may be behind: what decides over data is read anew
        Some(place) => {
            environment
                .api::<PersistentVolumeClaim>(place)
                .read_opt(&place.name)
                .await?
        }
        None => None,
    };
    let owned = claim
        .as_ref()
        .is_some_and(|claim| reference.is_some_and(|own| own.uid == claim.metadata.uid));
    let phase = match (reference.and_then(|own| own.uid.as_ref()), owned) {
        (None, _) => "Available",
        (Some(_), true) => "Bound",
        (Some(_), false) => "Released",
    };
    if volume.metadata.deletion_timestamp.is_some() {
        if phase != "Bound" {
            apply::remove_finalizer(&api, volume, VOLUME_FINALIZER).await?;
        }
        return Ok(Action::Done);
    }
    let now = environment.clock().time();
    let (volume, _) = apply::patch_status_locked(&api, volume, |volume| {
        let status = volume.status.get_or_insert_default();
        if status.phase.as_deref() != Some(phase) {
            status.phase = Some(phase.to_owned());
            status.last_phase_transition_time = Some(now);
        }
    })
    .await?;
    let policy = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    if phase == "Released" && policy == Some("Delete") {
        if let Some(claim) = &claims_place {
            (environment.config.on_volume_deleted)(&key.cluster, &claim.namespace, &claim.name);
        }
        apply::delete(&api, &key.name).await?;
    }
    Ok(Action::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim(mode: &str, size: &str) -> PersistentVolumeClaim {
        serde_json::from_value(
            json!({"metadata": {"name": "c", "namespace": "n", "uid": "u"}, "spec": {
            "accessModes": [mode], "resources": {"requests": {"storage": size}}}}),
        )
        .unwrap()
    }

    #[test]
    fn volumes_fit_by_class_size_mode_and_claim() {
        let volume = |extra: serde_json::Value| -> PersistentVolume {
            let mut spec = json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}});
            spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            serde_json::from_value(json!({"metadata": {"name": "v"}, "spec": spec})).unwrap()
        };
        let free = volume(json!({}));
        assert!(fits(&free, &claim("ReadWriteOnce", "10Gi"), ""));
        assert!(!fits(&free, &claim("ReadWriteOnce", "11Gi"), ""));
        assert!(!fits(&free, &claim("ReadWriteMany", "1Gi"), ""));
        assert!(!fits(&free, &claim("ReadWriteOnce", "1Gi"), "fast"));
        let kept = |uid: &str| volume(json!({"claimRef": {"name": "c", "namespace": "n", "uid": uid}}));
        assert!(fits(&kept("u"), &claim("ReadWriteOnce", "1Gi"), ""));
        assert!(!fits(&kept("other"), &claim("ReadWriteOnce", "1Gi"), ""));
    }
}
