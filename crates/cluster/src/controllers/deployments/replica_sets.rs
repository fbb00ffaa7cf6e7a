//! The ReplicaSets of a Deployment: which is the new one, their revisions and annotations.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use crate::pods::{self, TEMPLATE_HASH};

/// The number of a revision, on Deployments and their ReplicaSets.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The numbers that a ReplicaSet had before.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// How many replicas the Deployment wanted when it last scaled the set.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// How many replicas there may be during an update.
const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// Not copied from a Deployment to its sets.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// The template without the label that tells sets apart.
fn plain(template: Option<&PodTemplateSpec>) -> PodTemplateSpec {
    let mut template = template.cloned().unwrap_or_default();
    let meta = template.metadata.get_or_insert_default();
    meta.creation_timestamp = None;
    if let Some(labels) = meta.labels.as_mut() {
        labels.remove(TEMPLATE_HASH);
    }
    if meta.labels.as_ref().is_some_and(BTreeMap::is_empty) {
        meta.labels = None;
    }
    template
}

/// Whether a set has the Deployment's template.
pub(super) fn has_template_of(set: &ReplicaSet, deployment: &Deployment) -> bool {
    let own = plain(set.spec.template.as_ref());
    own == plain(Some(&deployment.spec.template))
}

/// How many replicas a set is to have.
pub(super) fn wanted(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

/// How many replicas a set has.
pub(super) fn current(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas)
}

/// How many replicas of a set are available.
pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status
        .as_ref()
        .and_then(|status| status.available_replicas)
        .unwrap_or(0)
}

/// A set's revision; 0 without one.
pub(super) fn revision(set: &ReplicaSet) -> i64 {
    set.annotations()
        .get(REVISION)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// How many replicas the Deployment wanted when it last scaled the set.
pub(super) fn desired(set: &ReplicaSet) -> Option<i32> {
    set.annotations().get(DESIRED).and_then(|text| text.parse().ok())
}

/// The annotations of a set that the Deployment scales.
pub(super) fn scale_annotations(replicas: i32, surge: i32) -> BTreeMap<String, String> {
    [
        (DESIRED.to_owned(), replicas.to_string()),
        (MAX.to_owned(), (replicas + surge).to_string()),
    ]
    .into()
}

/// The annotations of the new set: the Deployment's, and its revision.
pub(super) fn new_annotations(
    deployment: &Deployment,
    set: Option<&ReplicaSet>,
    new_revision: i64,
    surge: i32,
) -> BTreeMap<String, String> {
    let mut annotations: BTreeMap<String, String> = deployment
        .annotations()
        .iter()
        .filter(|(key, _)| !OWN.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    annotations.extend(scale_annotations(super::decide::replicas(deployment), surge));
    let old = set.map_or(0, revision);
    if old < new_revision {
        annotations.insert(REVISION.to_owned(), new_revision.to_string());
        if old > 0 {
            let history = set.and_then(|set| set.annotations().get(REVISION_HISTORY));
            let history = history.map_or_else(|| old.to_string(), |before| format!("{before},{old}"));
            annotations.insert(REVISION_HISTORY.to_owned(), history);
        }
    }
    annotations
}

/// The set for the Deployment's template.
pub(super) fn create(deployment: &Deployment, replicas: i32, annotations: BTreeMap<String, String>) -> ReplicaSet {
    let spec = deployment.spec.clone();
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let hash = pods::hash(&spec.template, collisions);
    let mut template = spec.template;
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(TEMPLATE_HASH.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector = spec.selector;
    selector
        .match_labels
        .get_or_insert_default()
        .insert(TEMPLATE_HASH.to_owned(), hash.clone());
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", deployment.name_any())),
            namespace: deployment.namespace(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![pods::controller_reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            replicas: Some(replicas),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        },
        status: None,
    }
}
