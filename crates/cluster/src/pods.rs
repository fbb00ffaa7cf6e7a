//! What controllers ask of pods, and how pods come from templates.

use std::collections::BTreeMap;
use std::time::Duration;

use gardener_apimachinery::selector::LabelSelector as Selector;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use k8s_openapi::jiff::Timestamp;
use kube::Resource;
use sha2::{Digest, Sha256};

/// The label by which a Deployment tells its ReplicaSets apart.
pub(crate) const TEMPLATE_HASH: &str = "pod-template-hash";
/// The label by which revisions of StatefulSets and DaemonSets are told apart.
pub(crate) const REVISION_HASH: &str = "controller-revision-hash";

/// The owner that manages an object.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true))
}

/// The reference that makes `owner` the controller of an object.
pub(crate) fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.meta().name.clone().unwrap_or_default(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whether a label selector selects an object. No selector selects nothing.
pub(crate) fn selects(selector: Option<&LabelSelector>, meta: &ObjectMeta) -> bool {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    selector.is_some_and(|selector| Selector::from(selector).matches(meta.labels.as_ref().unwrap_or(&NONE)))
}

/// The phase of a pod.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Pending")
}

/// Whether a pod ran to its end.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether a pod is being deleted.
pub(crate) fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether a pod counts: it neither ended nor is being deleted.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !has_ended(pod) && !is_deleting(pod)
}

/// A condition of a pod.
pub(crate) fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == type_)
}

/// Since when a pod has been ready; none if it is not.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|condition| condition.status == "True")?;
    Some(
        ready
            .last_transition_time
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
    )
}

/// Whether a pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    ready_since(pod).is_some()
}

/// How long until a pod has been ready for `min_ready` seconds: zero if it is available, none if it is not ready.
pub(crate) fn until_available(pod: &Pod, min_ready: i32, now: Timestamp) -> Option<Duration> {
    let since = ready_since(pod)?;
    let passed = now.duration_since(since).as_millis();
    let wanted = i128::from(min_ready) * 1000;
    Some(Duration::from_millis(u64::try_from(wanted - passed).unwrap_or(0)))
}

/// Whether a pod has been ready for `min_ready` seconds.
pub(crate) fn is_available(pod: &Pod, min_ready: i32, now: Timestamp) -> bool {
    until_available(pod, min_ready, now) == Some(Duration::ZERO)
}

/// The soonest time until one of `pods` becomes available.
pub(crate) fn next_available<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    min_ready: i32,
    now: Timestamp,
) -> Option<Duration> {
    let waits = pods.into_iter().filter_map(|pod| until_available(pod, min_ready, now));
    waits.filter(|wait| !wait.is_zero()).min()
}

/// When an object was created.
pub(crate) fn created_at(meta: &ObjectMeta) -> Timestamp {
    meta.creation_timestamp
        .as_ref()
        .map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

/// A pod made of a template.
pub(crate) fn from_template(
    template: Option<&PodTemplateSpec>,
    namespace: &str,
    name: String,
    owner: OwnerReference,
) -> Pod {
    let meta = template.and_then(|template| template.metadata.as_ref());
    let stem = name.rsplit_once('-').map(|(stem, _)| format!("{stem}-"));
    Pod {
        metadata: ObjectMeta {
            name: Some(name),
            generate_name: stem,
            namespace: Some(namespace.to_owned()),
            labels: meta.and_then(|meta| meta.labels.clone()),
            annotations: meta.and_then(|meta| meta.annotations.clone()),
            finalizers: meta.and_then(|meta| meta.finalizers.clone()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.and_then(|template| template.spec.clone()),
        status: None,
    }
}

/// A short hash of a template: the same template and `salt` give the same.
pub(crate) fn hash(template: &impl serde::Serialize, salt: Option<i32>) -> String {
    const CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hasher = Sha256::new();
    hasher.update(serde_json::to_vec(template).unwrap_or_default());
    if let Some(salt) = salt {
        hasher.update(salt.to_be_bytes());
    }
    let digest = hasher.finalize();
    let characters = digest
        .iter()
        .take(10)
        .filter_map(|byte| CHARACTERS.get(usize::from(*byte) % CHARACTERS.len()));
    characters.map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::PodStatus;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    #[test]
    fn pods_are_available_after_min_ready_seconds() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut pod = Pod::default();
        assert_eq!(until_available(&pod, 0, at(5)), None);
        pod.status = Some(PodStatus {
            conditions: Some(vec![PodCondition {
                type_: "Ready".into(),
                status: "True".into(),
                last_transition_time: Some(Time(at(10))),
                ..PodCondition::default()
            }]),
            ..PodStatus::default()
        });
        assert_eq!(until_available(&pod, 30, at(20)), Some(Duration::from_secs(20)));
        assert!(is_available(&pod, 30, at(40)) && is_available(&pod, 0, at(10)));
        assert_eq!(next_available([&pod], 30, at(39)), Some(Duration::from_secs(1)));
    }

    #[test]
    fn hashes_depend_on_template_and_salt() {
        let template = PodTemplateSpec::default();
        assert_eq!(hash(&template, None), hash(&template, None));
        assert_ne!(hash(&template, None), hash(&template, Some(1)));
        assert_eq!(hash(&template, None).len(), 10);
    }
}
