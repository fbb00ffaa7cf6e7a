use async_trait::async_trait;
use futures::StreamExt;
use gardener_apis::extensions::v1alpha1::Infrastructure;
use gardener_testkit::seed::{Seed, eventually, pass};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use parking_lot::Mutex;
use serde_json::json;

use super::*;

const NAMESPACE: &str = "shoot--local--a";

/// Writes down what it is called for; fails as often as told.
#[derive(Clone, Default)]
struct Recording(Arc<Mutex<(Vec<&'static str>, usize)>>);

impl Recording {
    fn called(&self, name: &'static str) -> Result<(), ActuatorError> {
        let mut state = self.0.lock();
        state.0.push(name);
        if state.1 > 0 {
            state.1 -= 1;
            return Err(ActuatorError::with_code("quota exceeded", "ERR_INFRA_QUOTA_EXCEEDED"));
        }
        Ok(())
    }

    fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().0)
    }
}

#[async_trait]
impl Actuator<Infrastructure> for Recording {
    async fn reconcile(&self, _: &Context, _: &Infrastructure, _: Option<&Cluster>) -> Result<Outcome, ActuatorError> {
        self.called("reconcile")?;
        Ok(Outcome::with_status(json!({"providerStatus": {"a": 1}})))
    }
    async fn delete(&self, _: &Context, _: &Infrastructure, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        self.called("delete")
    }
    async fn migrate(&self, _: &Context, _: &Infrastructure, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        self.called("migrate")
    }
    async fn restore(&self, _: &Context, _: &Infrastructure, _: Option<&Cluster>) -> Result<Outcome, ActuatorError> {
        self.called("restore")?;
        Ok(Outcome::default())
    }
}

async fn start() -> (Seed, Recording, Api<Infrastructure>) {
    let seed = Seed::with_groups(&["extensions.gardener.cloud"]).await;
    seed.namespace(NAMESPACE).await;
    let context = Context {
        client: seed.client.clone(),
        clock: seed.clock.clone(),
        chance: seed.chance.clone(),
    };
    let recording = Recording::default();
    let running = run::<Infrastructure, _>(
        context,
        Options::for_types(&["local"]),
        recording.clone(),
        CancellationToken::new(),
    );
    tokio::spawn(running);
    let api = seed.api(NAMESPACE);
    (seed, recording, api)
}

fn infrastructure(name: &str, of_type: &str) -> Infrastructure {
    serde_json::from_value(json!({
        "metadata": {"name": name, "annotations": {"gardener.cloud/operation": "reconcile"}},
        "spec": {"type": of_type, "region": "local", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE}},
    }))
    .unwrap()
}

fn state(object: &Infrastructure) -> (&str, &str) {
    object
        .last_operation()
        .map_or(("", ""), |last| (&last.r#type, &last.state))
}

/// The object once it is made.
async fn created(api: &Api<Infrastructure>) -> Infrastructure {
    eventually(api, "a", |object| {
        object.is_some_and(|object| state(object) == ("Create", "Succeeded"))
    })
    .await
    .unwrap()
}

async fn annotate(api: &Api<Infrastructure>, operation: &str) {
    let patch = json!({"metadata": {"annotations": {"gardener.cloud/operation": operation}}});
    api.patch("a", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn ext_18_the_life_of_an_object() {
    let (_seed, recording, api) = start().await;
    api.create(&PostParams::default(), &infrastructure("a", "local"))
        .await
        .unwrap();
    api.create(&PostParams::default(), &infrastructure("b", "other"))
        .await
        .unwrap();
    let done = created(&api).await;
    assert_eq!(annotation::operation(&done), None);
    assert_eq!(done.finalizers(), ["extensions.gardener.cloud/infrastructure"]);
    assert_eq!(done.status.provider_status, Some(json!({"a": 1})));
    assert_eq!(done.status.observed_generation, done.metadata.generation);
    pass(3600).await;
    assert_eq!(recording.calls(), ["reconcile"]);
    assert_eq!(state(&api.get("b").await.unwrap()), ("", ""));

    annotate(&api, "reconcile").await;
    eventually(&api, "a", |object| {
        object.is_some_and(|object| state(object) == ("Reconcile", "Succeeded"))
    })
    .await;

    api.delete("a", &DeleteParams::default()).await.unwrap();
    eventually(&api, "a", |object| object.is_none()).await;
    assert_eq!(recording.calls(), ["reconcile", "delete"]);
}

/// An answer is good for a request of the same second, so the one to the request before must not be seen beside a request that was taken.
#[tokio::test(start_paused = true)]
async fn ext_20_the_answer_before_is_gone_when_a_request_is_taken() {
    let (_seed, _recording, api) = start().await;
    api.create(&PostParams::default(), &infrastructure("a", "local"))
        .await
        .unwrap();
    let done = created(&api).await;
    let version = done.resource_version().unwrap();
    let changes = api.watch(&WatchParams::default(), &version).await.unwrap();
    let mut changes = std::pin::pin!(changes);
    annotate(&api, "reconcile").await;
    let mut was_taken = false;
    loop {
        let Some(Ok(WatchEvent::Modified(object))) = changes.next().await else {
            panic!("the watch goes on until the answer");
        };
        match state(&object) {
            ("Create", "Succeeded") => assert_eq!(annotation::operation(&object), Some("reconcile")),
            ("Reconcile", "Succeeded") => break,
            _ => was_taken |= annotation::operation(&object).is_none(),
        }
    }
    assert!(was_taken);
}

#[tokio::test(start_paused = true)]
async fn ext_3_a_failure_is_told_and_tried_again_later() {
    let (_seed, recording, api) = start().await;
    recording.0.lock().1 = 2;
    api.create(&PostParams::default(), &infrastructure("a", "local"))
        .await
        .unwrap();
    let failed = eventually(&api, "a", |object| {
        object.is_some_and(|object| state(object) == ("Create", "Error"))
    })
    .await;
    let error = failed.unwrap().status.last_error.unwrap();
    assert_eq!(error.codes, ["ERR_INFRA_QUOTA_EXCEEDED"]);
    assert!(error.description.contains("quota exceeded"));
    let done = created(&api).await;
    assert_eq!(done.status.last_error, None);
    assert_eq!(recording.calls().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn ext_10_migrate_and_restore_stay_until_success() {
    let (_seed, recording, api) = start().await;
    api.create(&PostParams::default(), &infrastructure("a", "local"))
        .await
        .unwrap();
    created(&api).await;
    recording.0.lock().1 = 1;
    annotate(&api, "migrate").await;
    let failed = eventually(&api, "a", |object| {
        object.is_some_and(|object| state(object) == ("Migrate", "Error"))
    })
    .await;
    assert_eq!(annotation::operation(&failed.unwrap()), Some("migrate"));
    let migrated = eventually(&api, "a", |object| {
        object.is_some_and(|object| annotation::operation(object).is_none())
    })
    .await
    .unwrap();
    assert_eq!(state(&migrated), ("Migrate", "Succeeded"));
    assert!(migrated.finalizers().is_empty());
    recording.calls();
    // what was let go is not reconciled
    annotate(&api, "reconcile").await;
    pass(60).await;
    assert!(recording.calls().is_empty());
    annotate(&api, "wait-for-state").await;
    pass(60).await;
    assert!(recording.calls().is_empty());
    annotate(&api, "restore").await;
    let restored = eventually(&api, "a", |object| {
        object.is_some_and(|object| state(object) == ("Restore", "Succeeded"))
    })
    .await;
    assert_eq!(annotation::operation(&restored.unwrap()), None);
    assert_eq!(recording.calls(), ["restore"]);
}

#[tokio::test(start_paused = true)]
async fn ext_19_nothing_is_done_for_a_failed_shoot() {
    let (seed, recording, api) = start().await;
    let clusters: Api<Cluster> = Api::all(seed.client.clone());
    let cluster: Cluster = serde_json::from_value(json!({
        "metadata": {"name": NAMESPACE},
        "spec": {"cloudProfile": {}, "seed": {}, "shoot": {
            "metadata": {"generation": 2}, "status": {"observedGeneration": 2, "lastOperation": {"state": "Failed"}},
        }},
    }))
    .unwrap();
    clusters.create(&PostParams::default(), &cluster).await.unwrap();
    api.create(&PostParams::default(), &infrastructure("a", "local"))
        .await
        .unwrap();
    pass(60).await;
    assert!(recording.calls().is_empty());
}
