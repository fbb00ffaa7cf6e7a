//! StatefulSets: numbered pods with their own volumes, in order.

use std::sync::Arc;

use gardener_controller::{Action, Change, ObjectRef, Queue, apply};
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use kube::api::PostParams;
use kube::{Api, ResourceExt};

use super::replicas::{self, Owned};
use super::revisions;
use crate::Role;
use crate::environment::{BY_OWNER, Environment, OUTDATED, key_of, owner_key};
use crate::error::Error;
use crate::expectations::EXPIRY;
use crate::pods::{self, REVISION_HASH};

mod decide;

use decide::{Step, View, decide};

const KIND: &str = "StatefulSet";
const COMPONENT: &str = "statefulset-controller";

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informers = &environment.informers;
    let role = Role::ControllerManager;
    environment.feed(&informers.stateful_sets, &queue, role, |set| vec![key_of(set)]);
    environment.feed(&informers.pods, &queue, role, |pod| owner_key(pod, KIND));
    environment.feed_if(
        &informers.revisions,
        &queue,
        role,
        |change| matches!(change, Change::Deleted(_)),
        |revision| owner_key(revision, KIND),
    );
    environment.reconcile("statefulset", role, 16, queue, reconcile);
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.stateful_sets.get(&key) else {
        return Ok(Action::Done);
    };
    let set = &found.object;
    let asking = replicas::asking(KIND, &key);
    if set.metadata.deletion_timestamp.is_some() {
        return Ok(Action::Done);
    }
    if !environment.expectations.are_met(&asking) {
        return Ok(Action::RequeueAfter(EXPIRY));
    }
    if replicas::adopt_pods(&environment, &key, set, Some(&set.spec.selector)).await? {
        return Ok(Action::RequeueAfter(OUTDATED));
    }
    let name = key.name.clone();
    let label = move |hash: &str| format!("{name}-{hash}");
    let history = revisions::ensure(&environment, &key, set, &set.spec.template, label).await?;
    let update = revisions::hash_of(&history.update);
    let told = set.status.as_ref().and_then(|status| status.current_revision.clone());
    let current = told.filter(|own| !own.is_empty()).unwrap_or_else(|| update.clone());
    let owned = environment
        .informers
        .pods
        .by_index(BY_OWNER, &set.uid().unwrap_or_default());
    let pods_of: Vec<&Pod> = owned.iter().map(|pod| &pod.object).collect();
    let now = environment.clock().now();
    let view = View::new(set, &pods_of, &current, &update, now);
    let hands = Owned {
        environment: &environment,
        component: COMPONENT,
        key: &key,
        asking: &asking,
    };
    for step in decide(&view) {
        match step {
            Step::Create { ordinal, revision } => {
                let template = if revision == update {
                    Some(set.spec.template.clone())
                } else {
                    let known = history
                        .all
                        .iter()
                        .find(|own| revisions::hash_of(&own.object) == revision);
                    known.and_then(|own| revisions::template_of(&own.object))
                };
                let pod = new_pod(
                    set,
                    &key,
                    ordinal,
                    &revision,
                    template.unwrap_or_else(|| set.spec.template.clone()),
                );
                ensure_claims(&environment, set, &key, ordinal).await?;
                hands.create(set, pod).await?;
            }
            Step::Delete(name) => {
                if let Some(pod) = pods_of.iter().find(|pod| pod.name_any() == name) {
                    hands.delete(set, pod).await?;
                }
            }
        }
    }
    let counts = decide::counts(&view);
    let complete = counts.updated == counts.wanted
        && counts.replicas == counts.wanted
        && counts.ready == counts.wanted
        && view.rolls()
        && view.partition() == 0;
    let api: Api<StatefulSet> = environment.api(&key);
    let wanted = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas: counts.replicas,
        ready_replicas: some(counts.ready),
        available_replicas: Some(counts.available),
        current_replicas: some(if complete { counts.updated } else { counts.current }),
        updated_replicas: some(counts.updated),
        current_revision: Some(if complete { update.clone() } else { current.clone() }),
        update_revision: Some(update.clone()),
        collision_count: Some(0),
        conditions: set.status.as_ref().and_then(|status| status.conditions.clone()),
    };
    apply::patch_status_locked(&api, set, |set| set.status = Some(wanted)).await?;
    let keep: Vec<String> = pods_of
        .iter()
        .filter_map(|pod| pod.labels().get(REVISION_HASH).cloned())
        .chain([current])
        .collect();
    let keep: Vec<&str> = keep.iter().map(String::as_str).collect();
    revisions::clean_up(&environment, &key, &history, &keep, set.spec.revision_history_limit).await?;
    let next = pods::next_available(pods_of, set.spec.min_ready_seconds.unwrap_or(0), now);
    Ok(next.map_or(Action::Done, Action::RequeueAfter))
}

fn some(number: i32) -> Option<i32> {
    (number > 0).then_some(number)
}

/// The name of the claim that a template makes for a pod.
fn claim_name(template: &PersistentVolumeClaim, set: &str, ordinal: i32) -> String {
    format!("{}-{set}-{ordinal}", template.name_any())
}

fn new_pod(
    set: &StatefulSet,
    key: &ObjectRef,
    ordinal: i32,
    revision: &str,
    template: k8s_openapi::api::core::v1::PodTemplateSpec,
) -> Pod {
    let name = format!("{}-{ordinal}", key.name);
    let mut pod = pods::from_template(
        Some(&template),
        &key.namespace,
        name.clone(),
        pods::controller_reference(set),
    );
    let labels = pod.labels_mut();
    labels.insert("statefulset.kubernetes.io/pod-name".into(), name.clone());
    labels.insert("apps.kubernetes.io/pod-index".into(), ordinal.to_string());
    labels.insert(REVISION_HASH.into(), revision.to_owned());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name);
    spec.subdomain = set.spec.service_name.clone().filter(|service| !service.is_empty());
    for claim in set.spec.volume_claim_templates.iter().flatten() {
        let volumes = spec.volumes.get_or_insert_default();
        volumes.retain(|volume| volume.name != claim.name_any());
        volumes.push(Volume {
            name: claim.name_any(),
            persistent_volume_claim: Some(k8s_openapi::api::core::v1::PersistentVolumeClaimVolumeSource {
                claim_name: claim_name(claim, &key.name, ordinal),
                read_only: None,
            }),
            ..Volume::default()
        });
    }
    pod
}

/// Creates the claims of a pod that are not there.
async fn ensure_claims(
    environment: &Environment,
    set: &StatefulSet,
    key: &ObjectRef,
    ordinal: i32,
) -> Result<(), Error> {
    let policy = set.spec.persistent_volume_claim_retention_policy.as_ref();
    let goes = policy.and_then(|policy| policy.when_deleted.as_deref()) == Some("Delete");
    let api: Api<PersistentVolumeClaim> = environment.api(key);
    for template in set.spec.volume_claim_templates.iter().flatten() {
        let mut claim = template.clone();
        let name = claim_name(template, &key.name, ordinal);
        if api.get_metadata_opt(&name).await?.is_some() {
            continue;
        }
        claim.metadata.name = Some(name.clone());
        claim.metadata.namespace = Some(key.namespace.clone());
        claim
            .labels_mut()
            .extend(set.spec.selector.match_labels.clone().unwrap_or_default());
        claim.status = None;
        if goes {
            claim.metadata.owner_references = Some(vec![pods::controller_reference(set)]);
        }
        api.create(&PostParams::default(), &claim).await?;
        let message = format!(
            "create Claim {name} Pod {}-{ordinal} in StatefulSet {} success",
            key.name, key.name
        );
        environment
            .event(
                COMPONENT,
                &key.cluster,
                set,
                super::replica_sets::severity(false),
                "SuccessfulCreate",
                &message,
            )
            .await;
    }
    Ok(())
}
