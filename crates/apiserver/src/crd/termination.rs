//! The end of a CustomResourceDefinition: its objects go first, then the definition. The server itself does that, as upstream's does, where the
//! deletion was asked for or when the cluster is opened anew.

use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::ApiError;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::{GROUP, PLURAL, names, server_scope};
use crate::cluster::LogicalCluster;
use crate::registry::{DeleteOptions, WriteOptions};
use crate::{meta, object};

/// Holds a definition while it has objects.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
/// How long objects may take to go until the condition says that they do not.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long until a failed attempt is repeated.
const RETRY: Duration = Duration::from_secs(1);

/// What the condition `Terminating` tells.
struct Told {
    status: &'static str,
    reason: &'static str,
    message: String,
}

fn told(status: &'static str, reason: &'static str, message: impl Into<String>) -> Told {
    Told {
        status,
        reason,
        message: message.into(),
    }
}

/// What a first deletion makes of a definition.
pub(crate) fn mark(crd: &mut Value, now: Timestamp) {
    meta::set(crd, "deletionTimestamp", Some(meta::rfc3339(now).into()));
    let mut finalizers = meta::finalizers(crd);
    if !finalizers.iter().any(|own| own == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
        meta::set(crd, "finalizers", Some(finalizers.into()));
    }
    let why = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    tell(crd, &told("True", "InstanceDeletionPending", why), now);
}

/// Whether objects of a definition may no longer be created.
pub(super) fn is_terminating(crd: &Value) -> bool {
    names::is_true(crd, "Terminating")
}

/// Sets the condition; its time changes with its status only.
fn tell(crd: &mut Value, told: &Told, now: Timestamp) {
    let Some(members) = crd.as_object_mut() else { return };
    let status = members.entry("status").or_insert_with(|| json!({}));
    names::set_condition(status, "Terminating", (told.status, told.reason, &told.message), now);
}

fn is_pending(crd: &Value) -> bool {
    meta::is_deleting(crd) && meta::finalizers(crd).iter().any(|own| own == FINALIZER)
}

/// Goes on with what others began with definitions, or this server before the cluster was opened: names to settle, deletions.
pub(crate) fn resume(cluster: &Arc<LogicalCluster>) {
    use crate::definition::Lister;
    if !cluster.config().custom_resources || tokio::runtime::Handle::try_current().is_err() {
        return;
    }
    let definitions = cluster.list(GROUP, PLURAL, None);
    for crd in definitions.iter().filter(|crd| is_pending(crd)) {
        begin(cluster, meta::name(crd));
    }
    if definitions.iter().any(|crd| !names::is_true(crd, "Established")) {
        let cluster = Arc::clone(cluster);
        tokio::spawn(async move {
            if let Err(error) = names::settle_all(&cluster).await {
                tracing::warn!(cluster = cluster.name(), %error, "names of CustomResourceDefinitions cannot be settled yet");
            }
        });
    }
}

/// Begins to delete a definition's objects; what is under way already goes on.
pub(crate) fn begin(cluster: &Arc<LogicalCluster>, name: &str) {
    if !cluster.config().custom_resources || !cluster.terminating().lock().insert(name.to_owned()) {
        return;
    }
    let (cluster, name) = (Arc::clone(cluster), name.to_owned());
    tokio::spawn(async move {
        let closed = cluster.closed().clone();
        loop {
            let ended = closed.run_until_cancelled(terminate(&cluster, &name)).await;
            let mut terminating = cluster.terminating().lock();
            // one of the same name may have come, and its deletion been asked for
            if ended.is_none() || pending(&cluster, &name).is_none() {
                terminating.remove(&name);
                return;
            }
        }
    });
}

/// The definition, if it waits for its objects to go.
fn pending(cluster: &Arc<LogicalCluster>, name: &str) -> Option<Value> {
    let scope = server_scope(cluster, cluster.find(GROUP, PLURAL)?, "status")?.at("", name);
    let entry = scope.entry().ok()?;
    let crd = object::value_of(&entry);
    is_pending(&crd).then_some(crd)
}

async fn terminate(cluster: &Arc<LogicalCluster>, name: &str) {
    while let Some(crd) = pending(cluster, name) {
        if let Err(error) = attempt(cluster, name, &crd).await {
            tracing::warn!(cluster = cluster.name(), name, %error, "a CustomResourceDefinition cannot be ended yet");
            sleep(RETRY).await;
        }
    }
}

async fn attempt(cluster: &Arc<LogicalCluster>, name: &str, crd: &Value) -> Result<(), ApiError> {
    let beginning = told(
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    );
    change(cluster, name, &beginning, false).await?;
    let ended = match names::is_true(crd, "Established") {
        true => delete_objects(cluster, crd).await,
        false => Ok(told("False", "NeverEstablished", "resource was never established")),
    };
    match ended {
        Ok(ended) => {
            change(cluster, name, &ended, true).await?;
            // others may have waited for its names
            names::settle(cluster, name).await
        }
        Err((failed, error)) => {
            change(cluster, name, &failed, false).await?;
            Err(error)
        }
    }
}

/// Tells how far the deletion is, and lets the definition go.
async fn change(cluster: &Arc<LogicalCluster>, name: &str, told: &Told, gone: bool) -> Result<(), ApiError> {
    let definition = cluster.find(GROUP, PLURAL).ok_or_else(ApiError::no_such_path)?;
    let scope = server_scope(cluster, definition, "status").ok_or_else(ApiError::no_such_path)?;
    let scope = scope.at("", name);
    let options = WriteOptions {
        field_manager: crate::user::KUBE_APISERVER.to_owned(),
        ..WriteOptions::default()
    };
    loop {
        let Ok(entry) = scope.entry() else { return Ok(()) };
        let mut crd = object::value_of(&entry);
        if !is_pending(&crd) {
            return Ok(());
        }
        let now = cluster.clock().now();
        tell(&mut crd, told, now);
        if gone {
            let mut left = meta::finalizers(&crd);
            left.retain(|own| own != FINALIZER);
            meta::set(&mut crd, "finalizers", (!left.is_empty()).then(|| left.into()));
        }
        let context = scope.context(now, false);
        let stored = scope.store_by_subresource(&entry, crd, &context, &options, false);
        if stored.await?.is_some() {
            return Ok(());
        }
    }
}

/// Deletes a definition's objects and waits until they are gone.
async fn delete_objects(cluster: &Arc<LogicalCluster>, crd: &Value) -> Result<Told, (Told, ApiError)> {
    let completed = || told("False", "InstanceDeletionCompleted", "removed all instances");
    let (group, plural) = (meta::text(crd, "/spec/group"), meta::text(crd, "/spec/names/plural"));
    let Some(definition) = cluster.find(group, plural) else {
        return Ok(completed());
    };
    let Some(scope) = server_scope(cluster, Arc::clone(&definition), "") else {
        return Ok(completed());
    };
    let deadline = Instant::now() + PATIENCE;
    let prefix = cluster.path("", "");
    let store = cluster.store();
    loop {
        let start = store.revision_of(&definition.topic);
        for entry in cluster.entries(&definition, "") {
            let object = object::value_of(&entry);
            if meta::is_deleting(&object) {
                continue;
            }
            let scope = scope.at(meta::namespace(&object), meta::name(&object));
            match scope.delete(&DeleteOptions::default(), &mut Vec::new()).await {
                Err(error) if error.code() != 404 => {
                    let why = format!("could not issue all deletes: {}", error.message());
                    return Err((told("True", "InstanceDeletionFailed", why), error));
                }
                _ => {}
            }
        }
        if store.count(&definition.topic, &prefix) == 0 {
            return Ok(completed());
        }
        // a revision of just now is always there to watch from; where it is not, all is looked at again
        let Ok(mut watch) = store.watch(&definition.topic, &prefix, start) else {
            continue;
        };
        while store.count(&definition.topic, &prefix) > 0 {
            tokio::select! {
                event = watch.next() => if event.is_err() {
                    break;
                },
                () = sleep_until(deadline) => {
                    let why = "could not confirm zero CustomResources remaining: context deadline exceeded";
                    return Err((told("True", "InstanceDeletionCheck", why), ApiError::internal(why)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_keeps_its_time_while_its_status_stays() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let mut crd = json!({"metadata": {"finalizers": ["a/b"]}, "status": {"conditions": [{"type": "Established"}]}});
        assert!(!is_terminating(&crd));
        mark(&mut crd, at(0));
        assert!(is_terminating(&crd) && is_pending(&crd));
        assert_eq!(crd["metadata"]["finalizers"], json!(["a/b", FINALIZER]));
        let first = crd["status"]["conditions"][1].clone();
        assert_eq!(first["lastTransitionTime"], "1970-01-01T00:00:00Z");
        tell(&mut crd, &told("True", "InstanceDeletionInProgress", ""), at(5));
        let second = crd["status"]["conditions"][1].clone();
        assert_eq!(second["lastTransitionTime"], first["lastTransitionTime"]);
        tell(&mut crd, &told("False", "InstanceDeletionCompleted", ""), at(9));
        assert_eq!(
            crd["status"]["conditions"][1]["lastTransitionTime"],
            "1970-01-01T00:00:09Z"
        );
        assert_eq!(crd["status"]["conditions"].as_array().unwrap().len(), 2);
    }
}
