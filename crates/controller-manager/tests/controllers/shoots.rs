//! Shoots [GCM-16], [GCM-40]–[GCM-46].

use serde_json::{Value, json};

use crate::harness::*;

const EXPIRATION: &str = "/metadata/annotations/shoot.gardener.cloud~1expiration-timestamp";

#[tokio::test(start_paused = true)]
async fn w50_gcm_40_a_schedule_wakes_a_shoot_up() {
    let garden = Garden::with_project().await;
    let mut one = shoot("one");
    one["spec"]["hibernation"] = json!({"enabled": true, "schedules": [{"start": "0 20 * * *", "end": "0 6 * * *"}]});
    one["status"] = json!({"lastHibernationTriggerTime": "2025-12-31T20:00:00Z", "seedName": "a"});
    garden.put(vec![one]).await;
    garden.until("2026-01-01T06:01:00Z".parse().unwrap()).await;
    let stop = garden.start_manager();
    garden.pass("1s").await;
    assert_eq!(garden.field(SHOOT, NS, "one", "/spec/hibernation/enabled").await, false);
    assert_eq!(
        garden
            .field(SHOOT, NS, "one", "/status/lastHibernationTriggerTime")
            .await,
        "2026-01-01T06:01:00Z"
    );
    assert_eq!(garden.reasons(NS, "one").await, ["WokenUp"]);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn w51_gcm_42_a_quota_ends_a_shoot() {
    let garden = Garden::with_project().await;
    garden
        .create(
            json!({"apiVersion": CORE, "kind": "Quota", "metadata": {"name": "q", "namespace": NS},
        "spec": {"scope": {"apiVersion": CORE, "kind": "Project"}, "clusterLifetimeDays": 7, "metrics": {}}}),
        )
        .await
        .unwrap();
    let binding = json!({"apiVersion": SECURITY, "kind": "CredentialsBinding", "metadata": {"name": "limited", "namespace": NS},
        "provider": {"type": "local"}, "quotas": [{"name": "q", "namespace": NS}],
        "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "key", "namespace": NS}});
    garden.create(binding).await.unwrap();
    let (mut young, mut old, mut free) = (shoot("young"), shoot("old"), shoot("free"));
    young["spec"]["credentialsBindingName"] = json!("limited");
    old["spec"]["credentialsBindingName"] = json!("limited");
    for own in [&mut old, &mut young, &mut free] {
        own["metadata"]["finalizers"] = json!(["gardener"]);
    }
    old["metadata"]["creationTimestamp"] = json!("2025-12-24T00:00:00Z");
    free["metadata"]["annotations"] = json!({"shoot.gardener.cloud/expiration-timestamp": "2025-12-31T00:00:00Z"});
    garden.put(vec![young, old, free]).await;
    let stop = garden.start_manager();
    garden.pass("5s").await;
    assert_eq!(
        garden.field(SHOOT, NS, "young", EXPIRATION).await,
        "2026-01-08T00:00:00Z"
    );
    assert_eq!(
        garden.field(SHOOT, NS, "young", "/metadata/deletionTimestamp").await,
        Value::Null
    );
    let old = garden.get(CORE, "Shoot", NS, "old").await.unwrap();
    assert_eq!(
        old["metadata"]["annotations"]["shoot.gardener.cloud/expiration-timestamp"],
        "2025-12-31T00:00:00Z"
    );
    assert_eq!(
        old["metadata"]["annotations"]["confirmation.gardener.cloud/deletion"],
        "true"
    );
    assert!(old["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(garden.field(SHOOT, NS, "free", EXPIRATION).await, Value::Null);
    // [GCM-42]: an end that was moved is taken as it is, but is looked at every hour only
    garden
        .merge(
            SHOOT,
            NS,
            "young",
            json!({"metadata": {"annotations": {"shoot.gardener.cloud/expiration-timestamp": "2026-01-01T00:00:00Z"}}}),
        )
        .await;
    garden.pass("50m").await;
    assert_eq!(
        garden.field(SHOOT, NS, "young", "/metadata/deletionTimestamp").await,
        Value::Null
    );
    garden.pass("11m").await;
    assert!(
        garden
            .field(SHOOT, NS, "young", "/metadata/deletionTimestamp")
            .await
            .is_string()
    );
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_43_44_rate_limits_are_waited_out_and_the_label_tells() {
    let garden = Garden::with_project().await;
    garden.create(shoot("one")).await.unwrap();
    garden
        .patch_status(
            "one",
            json!({"observedGeneration": 1, "seedName": "a", "lastOperation": operation("Create", "Failed"),
        "lastErrors": [{"description": "no", "codes": ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]}]}),
        )
        .await;
    let stop = garden.start_manager();
    garden.pass("9m").await;
    assert_eq!(
        garden
            .field(SHOOT, NS, "one", "/metadata/labels/shoot.gardener.cloud~1status")
            .await,
        "unhealthy"
    );
    assert_eq!(garden.field(SHOOT, NS, "one", "/metadata/generation").await, 1);
    garden.pass("7m").await;
    // asking for a retry is a new generation [GAPI-34]
    assert_eq!(garden.field(SHOOT, NS, "one", "/metadata/generation").await, 2);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_45_a_shoot_that_is_a_seed_has_its_conditions() {
    let garden = Garden::open().await;
    let mut one = shoot("one");
    one["metadata"]["namespace"] = json!("garden");
    one["status"] = json!({"conditions": [condition("Mine", "True"), condition("APIServerAvailable", "True")]});
    let managed_seed = json!({"apiVersion": SEEDMANAGEMENT, "kind": "ManagedSeed", "metadata": {"name": "one", "namespace": "garden"},
        "spec": {"shoot": {"name": "one"}, "gardenlet": {"config": gardenlet("one.example.com")}}});
    garden
        .put(vec![crate::sets::project_of_garden(), one, managed_seed])
        .await;
    let stop = garden.start_manager();
    let told = async || {
        let conditions = garden.field(SHOOT, "garden", "one", "/status/conditions").await;
        let told = conditions
            .as_array()
            .unwrap()
            .iter()
            .map(|own| own["type"].as_str().unwrap().to_owned());
        told.collect::<Vec<_>>().join(" ")
    };
    garden.pass("1s").await;
    assert_eq!(told().await, "APIServerAvailable");
    let mut seed = seed("one");
    seed["status"]["conditions"] = json!([condition("GardenletReady", "True")]);
    garden.put(vec![seed]).await;
    garden.pass("1s").await;
    assert_eq!(told().await, "APIServerAvailable GardenletReady ExtensionsReady");
    garden
        .api(CORE, "Seed", "")
        .delete("one", &Default::default())
        .await
        .ok();
    garden.pass("10s").await;
    garden.let_go(SEED, "", "one").await;
    garden.pass("1m").await;
    assert_eq!(told().await, "APIServerAvailable");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_16_46_a_shoot_moves_when_its_destination_is_ready() {
    let garden = Garden::with_project().await;
    let mut to = seed("to");
    to["status"]["gardener"]["version"] = json!("v2");
    garden.put(vec![seed("from"), to]).await;
    garden.shoot_on("one", "from").await;
    let state = json!({"apiVersion": CORE, "kind": "ShootState", "metadata": {"name": "one", "namespace": NS}});
    garden.create(state).await.unwrap();
    let stop = garden.start_manager();
    garden.pass("1s").await;
    let told = async || {
        let constraints = garden.field(SHOOT, NS, "one", "/status/constraints").await;
        let own = constraints
            .as_array()
            .and_then(|all| all.iter().find(|own| own["type"] == "ReadyForMigration"));
        own.map(|own| {
            format!(
                "{} {}",
                own["status"].as_str().unwrap(),
                own["reason"].as_str().unwrap()
            )
        })
    };
    assert_eq!(told().await, None);
    let mut moved = garden.get(CORE, "Shoot", NS, "one").await.unwrap();
    moved["spec"]["seedName"] = json!("to");
    garden.put(vec![moved]).await;
    garden.pass("1s").await;
    assert_eq!(told().await.as_deref(), Some("False DestinationSeedUnready"));
    garden
        .merge_status(
            SEED,
            "",
            "to",
            json!({"gardener": {"version": "v1"},
        "conditions": [condition("GardenletReady", "True"), condition("SeedSystemComponentsHealthy", "True")]}),
        )
        .await;
    garden.pass("6s").await;
    assert_eq!(told().await.as_deref(), Some("True DestinationSeedReady"));
    for (kind, state, seed, expected) in [
        ("Migrate", "Processing", "from", &["core.gardener.cloud/shootstate"][..]),
        ("Restore", "Processing", "to", &["core.gardener.cloud/shootstate"][..]),
        ("Restore", "Succeeded", "to", &[]),
    ] {
        garden
            .patch_status(
                "one",
                json!({"seedName": seed, "lastOperation": operation(kind, state)}),
            )
            .await;
        garden.pass("1s").await;
        assert_eq!(
            garden.finalizers((CORE, "ShootState"), NS, "one").await,
            expected,
            "{kind} {state}"
        );
    }
    assert_eq!(told().await, None, "it is there");
    stop.cancel();
}
