use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::time::sleep;

use super::*;
use crate::fake::Fake;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Patience = Patience {
    recheck: Duration::from_secs(5),
    timeout: Duration::from_secs(60),
};

fn put(fake: &Fake, name: &str, value: &str) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": value}});
    fake.put(&format!("/api/v1/namespaces/n/configmaps/{name}"), object);
}

fn ready(object: Option<&ConfigMap>) -> Verdict<u32, String> {
    let data = object.and_then(|object| object.data.as_ref());
    match data.map(|data| data["key"].as_str()) {
        None => Verdict::Pending("not there".into()),
        Some("ready") => Verdict::Ready(7),
        Some("broken") => Verdict::Hopeless("it is broken".into()),
        Some(other) => Verdict::Pending(format!("it is {other}")),
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_once_when_the_object_is_ready() {
    let fake = Fake::new();
    put(&fake, "other", "ready");
    let api: Api<ConfigMap> = Api::namespaced(fake.client(), "n");
    let start = Instant::now();
    let writing = async {
        sleep(SECOND).await;
        put(&fake, "a", "starting");
        sleep(SECOND).await;
        put(&fake, "a", "ready");
    };
    let (found, ()) = tokio::join!(wait_for(&api, "a", PATIENCE, ready), writing);
    assert_eq!(found, Ok(7));
    assert!(start.elapsed() < SECOND * 2 + Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_tells_the_last_reason() {
    let fake = Fake::new();
    put(&fake, "a", "slow");
    let api: Api<ConfigMap> = Api::namespaced(fake.client(), "n");
    let start = Instant::now();
    let mut asked = 0;
    let waited = wait_for(&api, "a", PATIENCE, |object| {
        asked += 1;
        ready(object)
    })
    .await;
    assert_eq!(waited.unwrap_err().to_string(), "it is slow");
    assert_eq!(start.elapsed(), SECOND * 60);
    assert!((11..=13).contains(&asked), "asked {asked} times");
}

#[tokio::test(start_paused = true)]
async fn a_hopeless_object_ends_the_wait() {
    let fake = Fake::new();
    put(&fake, "a", "broken");
    let api: Api<ConfigMap> = Api::namespaced(fake.client(), "n");
    let waited = wait_for(&api, "a", PATIENCE, ready).await;
    assert_eq!(waited, Err(WaitError::Hopeless("it is broken".into())));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_deletion() {
    let fake = Fake::new();
    put(&fake, "a", "x");
    let api: Api<ConfigMap> = Api::namespaced(fake.client(), "n");
    let removing = async {
        sleep(SECOND * 3).await;
        fake.remove("/api/v1/namespaces/n/configmaps/a");
    };
    let (waited, ()) = tokio::join!(wait_deleted(&api, "a", PATIENCE), removing);
    waited.unwrap();
    wait_deleted(&api, "never", PATIENCE).await.unwrap();
}
