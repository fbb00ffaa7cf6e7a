//! Tells how healthy and how far rolled out managed objects are `[EXT-171]`–`[EXT-173]` `[GRM-25]`–`[GRM-28]`.

use gardener_controller::{Action, ObjectRef, conditions};
use kube::ResourceExt;

use crate::managed_resource::{APPLIED, HEALTHY, IGNORE, PROGRESSING, ReconcileError, Reconciler};
use gardener_apimachinery::meta::is_true;

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
        let place = if namespace.is_empty() {
            name.to_owned()
        } else {
            format!("{namespace}/{name}")
        };
        match reconciler.target.health(reference).await {
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
            Ok(Some(health)) => {
                if let Some(why) = health.unhealthy {
                    unhealthy.get_or_insert((
                        format!("{kind}Unhealthy"),
                        format!("{kind} {place:?} is unhealthy: {why}"),
                    ));
                }
                if let Some(why) = health.progressing {
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
