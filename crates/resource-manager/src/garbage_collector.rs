//! Removes ConfigMaps and Secrets that nothing names any more: whoever changes an immutable one writes another beside it [GRM-30].

use std::collections::BTreeSet;
use std::time::Duration;

use gardener_controller::api_error;
use gardener_controller::apply::is_not_found;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Preconditions};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kube::{Api, Client, ResourceExt};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::Config;
use crate::merge::REFERENCE_PREFIX;
use crate::target::GARBAGE_COLLECTABLE;

/// How often is looked.
const INTERVAL: Duration = Duration::from_secs(3600);
/// How long an object stays in any case: who will name it may not have been written yet.
const LIFETIME: SignedDuration = SignedDuration::from_mins(10);

type Found = PartialObjectMeta<DynamicObject>;

/// A kind, as its group, version, name and name in paths.
type Kind = (&'static str, &'static str, &'static str, &'static str);

/// What is removed, each with the word by which it is named in annotations.
const COLLECTED: [(Kind, &str); 2] = [
    (("", "v1", "ConfigMap", "configmaps"), "configmap"),
    (("", "v1", "Secret", "secrets"), "secret"),
];
/// What names it.
const NAMING: [Kind; 8] = [
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("apps", "v1", "DaemonSet", "daemonsets"),
    ("batch", "v1", "Job", "jobs"),
    ("batch", "v1", "CronJob", "cronjobs"),
    ("", "v1", "Pod", "pods"),
    (
        "resources.gardener.cloud",
        "v1alpha1",
        "ManagedResource",
        "managedresources",
    ),
    ("monitoring.coreos.com", "v1", "Prometheus", "prometheuses"),
];

/// Namespace, word of the kind, and name.
type Named = (String, String, String);

/// What an object names by its annotations.
fn named_by(object: &Found) -> impl Iterator<Item = Named> {
    let namespace = object.namespace().unwrap_or_default();
    let annotations = object.annotations().iter();
    annotations.filter_map(move |(key, name)| {
        let (word, _) = key.strip_prefix(REFERENCE_PREFIX)?.split_once('-')?;
        Some((namespace.clone(), word.to_owned(), name.clone()))
    })
}

/// Whether an object is old enough to be missed by nobody.
fn is_old(object: &Found, now: Timestamp) -> bool {
    let created = object.metadata.creation_timestamp.as_ref();
    created.is_some_and(|created| now.duration_since(created.0) > LIFETIME)
}

fn api(client: &Client, (group, version, kind, plural): Kind, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// All of a kind; none where the kind is not served.
async fn list(client: &Client, kind: Kind, params: &ListParams) -> Result<Vec<Found>, kube::Error> {
    match api(client, kind, None).list_metadata(params).await {
        Ok(list) => Ok(list.items),
        Err(error) if is_not_found(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

async fn collect(config: &Config) -> Result<(), kube::Error> {
    let client = &config.target;
    let labelled = ListParams::default().labels(&format!("{GARBAGE_COLLECTABLE}=true"));
    let now = config.clock.now();
    let mut old = Vec::new();
    for (kind, word) in COLLECTED {
        let found = list(client, kind, &labelled).await?.into_iter();
        old.extend(
            found
                .filter(|object| is_old(object, now))
                .map(|object| (kind, word, object)),
        );
    }
    if old.is_empty() {
        return Ok(());
    }
    let mut named = BTreeSet::new();
    for kind in NAMING {
        let all = list(client, kind, &ListParams::default()).await?;
        named.extend(all.iter().flat_map(named_by));
    }
    for (kind, word, object) in old {
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        if named.contains(&(namespace.clone(), word.to_owned(), name.clone())) {
            continue;
        }
        tracing::info!(kind = kind.2, %namespace, %name, "nothing names it any more");
        // not one that was made anew meanwhile
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: object.uid(),
            resource_version: object.resource_version(),
        });
        match api(client, kind, Some(&namespace)).delete(&name, &params).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// Runs the collector until `stop`.
pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let mut tick = interval(INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let collecting = async {
        loop {
            tick.tick().await;
            if let Err(error) = collect(&config).await {
                let error = api_error(&error);
                tracing::warn!(error, "cannot collect ConfigMaps and Secrets that nothing names");
            }
        }
    };
    stop.run_until_cancelled(collecting).await;
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
    use kube::api::PostParams;
    use serde_json::json;

    use super::*;
    use crate::fixtures::world;

    #[tokio::test(start_paused = true)]
    async fn grm_30_what_nothing_names_goes() {
        let (_seed, _clusters, config) = world().await;
        let secrets: Api<Secret> = Api::namespaced(config.target.clone(), "kube-system");
        let make = async |name: &str, label: &str| {
            let secret = json!({"metadata": {"name": name, "labels": {GARBAGE_COLLECTABLE: label}}});
            let secret: Secret = serde_json::from_value(secret).unwrap();
            secrets.create(&PostParams::default(), &secret).await.unwrap();
        };
        for (name, label) in [("used", "true"), ("unused", "true"), ("foreign", "false")] {
            make(name, label).await;
        }
        let pods: Api<Pod> = Api::namespaced(config.target.clone(), "kube-system");
        let pod = json!({
            "metadata": {"name": "p", "annotations": {"reference.resources.gardener.cloud/secret-1": "used"}},
            "spec": {"serviceAccountName": "a", "containers": [{"name": "c", "image": "c:1"}]},
        });
        let accounts: Api<ServiceAccount> = Api::namespaced(config.target.clone(), "kube-system");
        let account = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
        accounts.create(&PostParams::default(), &account).await.unwrap();
        let pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
        let stop = CancellationToken::new();
        let running = tokio::spawn(run(config.clone(), stop.clone()));
        let left = async || -> Vec<String> {
            let list = secrets.list(&ListParams::default()).await.unwrap();
            let names = list.iter().map(ResourceExt::name_any);
            names
                .filter(|name| ["used", "unused", "foreign", "new"].contains(&name.as_str()))
                .collect()
        };
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(left().await, ["foreign", "unused", "used"], "they are young");
        tokio::time::sleep(Duration::from_secs(3500)).await;
        make("new", "true").await;
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(left().await, ["foreign", "new", "used"]);
        stop.cancel();
        running.await.unwrap();
    }
}
