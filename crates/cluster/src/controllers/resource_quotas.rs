//! What ResourceQuotas say is used: how many objects of the kinds that they limit there are. What pods and claims use is not counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::quantity::Amount;
use gardener_apiserver::LogicalCluster;
use gardener_apiserver::definition::Lister;
use gardener_apiserver::kubernetes::resource_quota::counted;
use gardener_controller::{Action, ObjectRef, Queue, Read, apply};
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Api;

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;
use crate::topics::Told;

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    environment.feed(
        &environment.informers.quotas,
        &queue,
        Role::ControllerManager,
        |quota| vec![key_of(quota)],
    );
    let (quotas, added) = (environment.informers.quotas.clone(), queue.clone());
    environment.topics.on_change(move |told| {
        let (Told::Applied(place, _) | Told::Deleted(place, _)) = told else {
            return;
        };
        if place.namespace.is_empty() {
            return;
        }
        for quota in quotas.list_cluster_namespace(&place.cluster, &place.namespace) {
            if entries(&quota.object).any(|(_, kind)| kind == place.resource()) {
                added.add(key_of(&quota));
            }
        }
    });
    environment.reconcile("resource-quota", Role::ControllerManager, 2, queue, reconcile);
}

/// A quota's limits to numbers of objects, with the kinds.
fn entries(quota: &ResourceQuota) -> impl Iterator<Item = (&str, (&str, &str))> {
    let hard = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    let entries = hard.into_iter().flatten();
    entries.filter_map(|(entry, _)| Some((entry.as_str(), counted(entry)?)))
}

/// How many objects there are of each kind that a quota limits.
fn used(quota: &ResourceQuota, cluster: &LogicalCluster, namespace: &str) -> BTreeMap<String, Quantity> {
    entries(quota)
        .map(|(entry, (group, resource))| {
            let count = i64::try_from(cluster.count(group, resource, namespace)).unwrap_or(i64::MAX);
            // as the server writes it: otherwise each look would find a difference
            (entry.to_owned(), Quantity(Amount::units(count).to_string()))
        })
        .collect()
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some((cluster, _)) = environment.config.server.cluster(&key.cluster) else {
        return Ok(Action::Done);
    };
    let api: Api<ResourceQuota> = environment.api(&key);
    let Some(quota) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    let used = used(&quota, &cluster, &key.namespace);
    apply::patch_status(&api, &quota, |quota| {
        let status = quota.status.get_or_insert_default();
        status.hard = quota.spec.as_ref().and_then(|spec| spec.hard.clone());
        status.used = Some(used.clone());
    })
    .await?;
    Ok(Action::Done)
}
