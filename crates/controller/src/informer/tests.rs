use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;

use super::*;
use crate::fake::Fake;

const PATH: &str = "/api/v1/namespaces/n/configmaps/";

fn put(fake: &Fake, name: &str, value: &str) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": value},
        "metadata": {"managedFields": [{"manager": "m"}]}});
    fake.put(&format!("{PATH}{name}"), object);
}

fn value(object: &ConfigMap) -> String {
    object.data.as_ref().unwrap()["key"].clone()
}

/// A log of changes as `+name=value`, `old>new`, `-name`.
fn logged(informer: &Informer<ConfigMap>) -> Arc<Mutex<Vec<String>>> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&log);
    informer.on_change(move |change| {
        let name = change.object().name_any();
        let text = match change {
            Change::Applied { old: None, new } => format!("+{name}={}", value(new)),
            Change::Applied { old: Some(old), new } => format!("{name}:{}>{}", value(old), value(new)),
            Change::Deleted(_) => format!("-{name}"),
        };
        shared.lock().push(text);
    });
    log
}

async fn settle() {
    sleep(Duration::from_millis(100)).await;
}

#[tokio::test(start_paused = true)]
async fn the_copy_follows_and_handlers_are_told_every_change() {
    let fake = Fake::new();
    put(&fake, "a", "1");
    let cancel = CancellationToken::new();
    let api: Api<ConfigMap> = Api::all(fake.client());
    let informer = Informer::start(api, watcher::Config::default(), &cancel);
    informer.add_index("value", |object| vec![value(object)]);
    let early = logged(&informer);
    assert!(!informer.is_synced());
    informer.synced().await;
    let late = logged(&informer);
    put(&fake, "b", "1");
    put(&fake, "a", "2");
    settle().await;
    let names = |found: Vec<Arc<ConfigMap>>| -> Vec<String> { found.iter().map(|object| object.name_any()).collect() };
    assert_eq!(names(informer.list()), ["a", "b"]);
    assert_eq!(names(informer.by_index("value", "1")), ["b"]);
    assert_eq!(names(informer.by_index("value", "2")), ["a"]);
    fake.remove(&format!("{PATH}b"));
    settle().await;
    assert_eq!(*early.lock(), ["+a=1", "+b=1", "a:1>2", "-b"]);
    assert_eq!(*late.lock(), *early.lock());
    let kept = informer.get(&ObjectRef::new("n", "a")).unwrap();
    assert!(kept.managed_fields().is_empty());
    assert!(informer.by_index("value", "1").is_empty());
    assert_eq!(names(informer.list_namespace("other")), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn after_missed_events_the_new_list_tells_only_what_differs() {
    let fake = Fake::new();
    for name in ["gone", "same", "changed"] {
        put(&fake, name, "1");
    }
    let cancel = CancellationToken::new();
    let api: Api<ConfigMap> = Api::namespaced(fake.client(), "n");
    let informer = Informer::start(api, watcher::Config::default(), &cancel);
    informer.synced().await;
    let log = logged(&informer);
    log.lock().clear();
    let mut fresh: BTreeMap<ObjectRef, ConfigMap> = ["same", "changed"]
        .into_iter()
        .filter_map(|name| informer.get(&ObjectRef::new("n", name)))
        .map(|object| (ObjectRef::of(object.as_ref()), object.as_ref().clone()))
        .collect();
    let mut changed = fresh[&ObjectRef::new("n", "changed")].clone();
    changed.data = Some([("key".to_owned(), "2".to_owned())].into());
    changed.metadata.resource_version = Some("77".into());
    fresh.insert(ObjectRef::of(&changed), changed.clone());
    changed.metadata.name = Some("new".into());
    fresh.insert(ObjectRef::of(&changed), changed);
    let raw = |object: &ConfigMap| serde_json::from_str(&serde_json::to_string(object).unwrap()).unwrap();
    let fresh = fresh.iter().map(|(place, object)| (place.clone(), raw(object)));
    informer.shared.replace(fresh.collect());
    assert_eq!(*log.lock(), ["-gone", "changed:1>2", "+new=2"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_hides_nothing_else() {
    let fake = Fake::new();
    fake.put(
        &format!("{PATH}a"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": 7}),
    );
    put(&fake, "b", "1");
    let cancel = CancellationToken::new();
    let api: Api<ConfigMap> = Api::all(fake.client());
    let informer = Informer::start(api, watcher::Config::default(), &cancel);
    let log = logged(&informer);
    informer.synced().await;
    put(&fake, "a", "2");
    settle().await;
    fake.remove(&format!("{PATH}a"));
    settle().await;
    assert_eq!(*log.lock(), ["+b=1", "+a=2", "-a"]);
}

#[tokio::test(start_paused = true)]
async fn a_compacted_watch_lists_anew() {
    let fake = Fake::new();
    put(&fake, "a", "1");
    let cancel = CancellationToken::new();
    let api: Api<ConfigMap> = Api::all(fake.client());
    let informer = Informer::start(api, watcher::Config::default(), &cancel);
    let log = logged(&informer);
    informer.synced().await;
    // All within one turn: the watch sees neither event before both are forgotten.
    put(&fake, "b", "1");
    fake.remove(&format!("{PATH}a"));
    fake.compact();
    sleep(Duration::from_secs(5)).await;
    let places: Vec<String> = informer.list().iter().map(|one| one.name_any()).collect();
    assert!(informer.is_synced());
    assert_eq!(places, ["b"]);
    assert_eq!(*log.lock(), ["+a=1", "-a", "+b=1"]);
}

#[tokio::test(start_paused = true)]
async fn feeding_queues_the_keys_of_old_and_new_objects() {
    let fake = Fake::new();
    put(&fake, "a", "x");
    let cancel = CancellationToken::new();
    let api: Api<ConfigMap> = Api::all(fake.client());
    let informer = Informer::start(api, watcher::Config::default(), &cancel);
    informer.synced().await;
    let queue = Queue::new();
    informer.feed(&queue, |object| [value(object)]);
    assert_eq!(queue.next().await.as_deref(), Some("x"));
    queue.done(&"x".to_owned());
    put(&fake, "a", "y");
    settle().await;
    assert_eq!(queue.next().await.as_deref(), Some("x"));
    assert_eq!(queue.next().await.as_deref(), Some("y"));
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn dynamic_and_clustered_kinds_are_informed_about() {
    let fake = Fake::new();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "1"},
        "logicalCluster": "garden"});
    fake.put(&format!("{PATH}a"), object);
    let cancel = CancellationToken::new();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let api: Api<DynamicObject> = Api::all_with(fake.client(), &kind);
    let informer = Informer::start(api, watcher::Config::default(), &cancel);
    informer.synced().await;
    assert_eq!(informer.list()[0].data["data"]["key"], "1");

    let api: Api<Clustered<ConfigMap>> = Api::all(fake.client());
    let informer = Informer::start_clustered(api, watcher::Config::default(), &cancel, |_| {});
    informer.synced().await;
    let place = ObjectRef::new("n", "a").in_cluster("garden");
    assert_eq!(place.to_string(), "garden:n/a");
    assert_eq!(value(&informer.get(&place).unwrap().object), "1");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_is_asked_less_and_less() {
    let fake = Fake::new();
    put(&fake, "a", "1");
    fake.refuse(true);
    let cancel = CancellationToken::new();
    let api: Api<ConfigMap> = Api::all(fake.client());
    let informer = Informer::start(api, watcher::Config::default(), &cancel);
    sleep(Duration::from_secs(600)).await;
    assert!(!informer.is_synced());
    // 0.05 + 0.1 + … + 25.6 s, then every 30 s.
    let asked = fake.reads();
    assert!((24..=32).contains(&asked), "asked {asked} times");
    fake.refuse(false);
    sleep(Duration::from_secs(31)).await;
    assert_eq!(informer.list().len(), 1);
    // Dropping the last handle ends the watch.
    drop(informer);
    settle().await;
    put(&fake, "b", "1");
    assert_eq!(fake.watchers(), 0);
}
