//! What controllers share that create and delete pods: names, expectations, events, adoption, and which pods go first.

use std::cmp::Reverse;

use gardener_controller::{ObjectRef, apply};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Resource, ResourceExt};

use super::replica_sets::severity;
use crate::environment::Environment;
use crate::error::Error;
use crate::pods;

/// Longest stem of a generated name.
const MAX_STEM: usize = 57;

/// The key under which a controller's expectations are kept.
pub(super) fn asking(kind: &str, key: &ObjectRef) -> ObjectRef {
    ObjectRef {
        name: format!("{kind}/{}", key.name),
        ..key.clone()
    }
}

/// A name for one of `owner`'s pods.
pub(super) fn generated_name(environment: &Environment, owner: &str) -> String {
    let stem: String = owner.chars().take(MAX_STEM).collect();
    format!("{stem}-{}", environment.config.chance.name_suffix(5))
}

/// What an error says to people.
pub(super) fn message_of(error: &Error) -> String {
    match error {
        Error::Api(kube::Error::Api(status)) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Creates and deletes pods for an owner.
pub(super) struct Owned<'a> {
    pub environment: &'a Environment,
    pub component: &'static str,
    /// The owner's place.
    pub key: &'a ObjectRef,
    pub asking: &'a ObjectRef,
}

impl Owned<'_> {
    /// Creates a pod, expecting to see it, and tells so. In a namespace that is being deleted nothing is tried.
    pub async fn create<K: Resource<DynamicType = ()>>(&self, owner: &K, pod: Pod) -> Result<(), Error> {
        if self.environment.is_ending(self.key) {
            return Ok(());
        }
        let place = ObjectRef {
            name: pod.name_any(),
            ..self.key.clone()
        };
        self.environment.expectations.creation(self.asking, &place);
        let api: Api<Pod> = self.environment.api(self.key);
        let created = api.create(&PostParams::default(), &pod).await.map_err(Error::from);
        let failed = created.is_err();
        let (reason, message) = match &created {
            Ok(_) => ("SuccessfulCreate", format!("Created pod: {}", place.name)),
            Err(error) => {
                self.environment.expectations.failed(&place);
                ("FailedCreate", format!("Error creating: {}", message_of(error)))
            }
        };
        self.environment
            .event(
                self.component,
                &self.key.cluster,
                owner,
                severity(failed),
                reason,
                &message,
            )
            .await;
        created.map(|_| ())
    }

    /// Deletes a pod, expecting to see it go, and tells so.
    pub async fn delete<K: Resource<DynamicType = ()>>(&self, owner: &K, pod: &Pod) -> Result<(), Error> {
        let place = ObjectRef {
            name: pod.name_any(),
            ..self.key.clone()
        };
        self.environment.expectations.deletion(self.asking, &place);
        let api: Api<Pod> = self.environment.api(self.key);
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: pod.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match api.delete(&place.name, &parameters).await {
            Ok(_) => {
                let message = format!("Deleted pod: {}", place.name);
                self.environment
                    .event(
                        self.component,
                        &self.key.cluster,
                        owner,
                        severity(false),
                        "SuccessfulDelete",
                        &message,
                    )
                    .await;
                Ok(())
            }
            Err(error) => {
                self.environment.expectations.failed(&place);
                let error = Error::from(error);
                if error.is_outdated() { Ok(()) } else { Err(error) }
            }
        }
    }
}

/// Makes `owner` the controller of pods that it selects and that have none, and lets go of pods that it no longer selects.
/// Answers whether there were any: then the informer does not show yet what is.
pub(super) async fn adopt_pods<K: Resource<DynamicType = ()>>(
    environment: &Environment,
    key: &ObjectRef,
    owner: &K,
    selector: Option<&LabelSelector>,
) -> Result<bool, Error> {
    let mut changed = false;
    let uid = owner.meta().uid.as_deref();
    for pod in environment
        .informers
        .pods
        .list_cluster_namespace(&key.cluster, &key.namespace)
    {
        let pod = &pod.object;
        let selected = pods::selects(selector, &pod.metadata);
        let controller = pods::controller_of(&pod.metadata);
        if pods::is_deleting(pod) {
            continue;
        }
        let api: Api<Pod> = environment.api(key);
        if controller.is_none() && selected && !pods::has_ended(pod) {
            let reference = pods::controller_reference(owner);
            apply::patch_locked(&api, pod, |pod| {
                pod.owner_references_mut().push(reference);
            })
            .await?;
            changed = true;
        } else if !selected && controller.is_some_and(|controller| Some(controller.uid.as_str()) == uid) {
            apply::patch_locked(&api, pod, |pod| {
                pod.owner_references_mut().retain(|own| Some(own.uid.as_str()) != uid);
            })
            .await?;
            changed = true;
        }
    }
    Ok(changed)
}

/// Pods in the order in which they are deleted: those without a node, not running, not ready, cheap, young, often restarted first.
pub(super) fn first_to_go<'a>(active: &[&'a Pod], now: Timestamp) -> Vec<&'a Pod> {
    let mut sorted: Vec<&Pod> = active.to_vec();
    sorted.sort_by_cached_key(|pod| {
        let assigned = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let running = match pods::phase(pod) {
            "Pending" => 0,
            "Running" => 2,
            _ => 1,
        };
        let cost: i64 = pod
            .annotations()
            .get("controller.kubernetes.io/pod-deletion-cost")
            .and_then(|cost| cost.parse().ok())
            .unwrap_or(0);
        let ready = pods::ready_since(pod);
        let statuses = pod
            .status
            .as_ref()
            .and_then(|status| status.container_statuses.as_ref());
        let restarts: i32 = statuses.into_iter().flatten().map(|status| status.restart_count).sum();
        let ready_for = ready.map(|since| now.duration_since(since).as_secs());
        let age = now.duration_since(pods::created_at(&pod.metadata)).as_secs();
        (
            assigned,
            running,
            ready.is_some(),
            cost,
            ready_for,
            Reverse(restarts),
            age,
            pod.name_any(),
        )
    });
    sorted
}
