//! Tells how healthy and how far rolled out managed objects are `[EXT-171]`–`[EXT-173]` `[GRM-25]`–`[GRM-28]`.

use gardener_apis::resources::v1alpha1::ManagedResourceStatusResource as Reference;
use gardener_controller::informer::Watched;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, conditions};
use gardener_rules::health;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::Config;
use crate::managed_resource::{APPLIED, HEALTHY, IGNORE, PROGRESSING, ReconcileError, Reconciler};
use crate::merge::{MANAGED_BY, MANAGED_BY_VALUE, ORIGIN, annotation};
use gardener_apimachinery::meta::is_true;

/// Keeps the watches on managed workloads alive. Who manages them stands in their metadata; that they changed is all else that counts.
pub(crate) struct Watches {
    _deployments: Informer<PartialObjectMeta<Deployment>>,
    _stateful_sets: Informer<PartialObjectMeta<StatefulSet>>,
    _daemon_sets: Informer<PartialObjectMeta<DaemonSet>>,
}

/// Looks at a ManagedResource again as soon as one of its workloads changes.
pub(crate) fn watch_target(config: &Config, queue: &Queue<ObjectRef>, stop: &CancellationToken) -> Watches {
    Watches {
        _deployments: watch(config, queue, stop),
        _stateful_sets: watch(config, queue, stop),
        _daemon_sets: watch(config, queue, stop),
    }
}

fn watch<K>(config: &Config, queue: &Queue<ObjectRef>, stop: &CancellationToken) -> Informer<PartialObjectMeta<K>>
where
    K: Watched + kube::Resource<DynamicType = ()>,
{
    let api: Api<PartialObjectMeta<K>> = Api::all(config.target.clone());
    let selector = watcher::Config::default().labels(&format!("{MANAGED_BY}={MANAGED_BY_VALUE}"));
    let informer = Informer::start(api, selector, stop);
    let queue = queue.clone();
    let namespace = config.namespace.clone();
    informer.on_change(move |change: &Change<PartialObjectMeta<K>>| {
        let origin = change.object().annotations().get(ORIGIN).cloned().unwrap_or_default();
        let place = origin.rsplit(':').next().unwrap_or_default();
        if let Some((own_namespace, name)) = place.split_once('/')
            && namespace.as_deref().is_none_or(|namespace| namespace == own_namespace)
        {
            queue.add(ObjectRef::new(own_namespace, name));
        }
    });
    informer
}

/// One health run. What the informer has is enough: when it gets something newer that counts, there is another run.
pub(crate) async fn reconcile(reconciler: &Reconciler, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let Some(resource) = reconciler.resources.get(key) else {
        return Ok(Action::Done);
    };
    let applied =
        conditions::get(&resource.status.conditions, APPLIED).map_or("", |condition| condition.status.as_str());
    let skipped = resource.metadata.deletion_timestamp.is_some()
        || !reconciler.config.is_responsible(resource.spec.class.as_deref())
        || resource.annotations().get(IGNORE).is_some_and(|text| is_true(text))
        || !matches!(applied, "True" | "Unknown");
    if skipped {
        return Ok(Action::Done);
    }
    let mut unhealthy = None;
    let mut progressing = None;
    for reference in &resource.status.resources {
        let (kind, name) = (
            reference.kind.as_deref().unwrap_or_default(),
            reference.name.as_deref().unwrap_or_default(),
        );
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        let group = group(reference);
        let place = if namespace.is_empty() {
            name.to_owned()
        } else {
            format!("{namespace}/{name}")
        };
        match reconciler.target.read(reference).await {
            Err(error) => {
                unhealthy.get_or_insert((
                    "HealthCheckError".to_owned(),
                    format!("Error checking {kind} {place:?}: {error}"),
                ));
            }
            Ok(None) => {
                let message = format!("Required {kind} {name:?} in namespace {namespace:?} is missing");
                unhealthy.get_or_insert((format!("{kind}Missing"), message));
            }
            Ok(Some(object)) => {
                if annotation(&object, "resources.gardener.cloud/skip-health-check") == "true" {
                    continue;
                }
                if let Err(why) = health::check(group, kind, &object) {
                    unhealthy.get_or_insert((
                        format!("{kind}Unhealthy"),
                        format!("{kind} {place:?} is unhealthy: {why}"),
                    ));
                }
                if let Some(why) = health::progressing(group, kind, &object) {
                    progressing.get_or_insert((
                        format!("{kind}Progressing"),
                        format!("{kind} {place:?} is progressing: {why}"),
                    ));
                }
            }
        }
    }
    let healthy = match &unhealthy {
        Some((reason, message)) => (HEALTHY, "False", reason.as_str(), message.as_str()),
        None => (HEALTHY, "True", "ResourcesHealthy", "All resources are healthy."),
    };
    let rolled_out = match &progressing {
        Some((reason, message)) => (PROGRESSING, "True", reason.as_str(), message.as_str()),
        None => (
            PROGRESSING,
            "False",
            "ResourcesRolledOut",
            "All resources have been fully rolled out.",
        ),
    };
    reconciler.tell(&resource, &[healthy, rolled_out]).await?;
    Ok(Action::RequeueAfter(reconciler.config.sync_period))
}

fn group(reference: &Reference) -> &str {
    reference
        .api_version
        .as_deref()
        .and_then(|version| version.split_once('/'))
        .map_or("", |(group, _)| group)
}
