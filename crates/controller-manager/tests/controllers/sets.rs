//! Sets of managed seeds [GCM-25].

use serde_json::{Value, json};

use crate::harness::*;

pub const SET: (&str, &str) = (SEEDMANAGEMENT, "ManagedSeedSet");
pub const MANAGED_SEED: (&str, &str) = (SEEDMANAGEMENT, "ManagedSeed");

const INSTALLATION: (&str, &str) = (CORE, "ControllerInstallation");

/// A set of so many replicas.
pub fn set(replicas: i32) -> Value {
    let labels = json!({"set": "own"});
    let mut spec = shoot("x")["spec"].clone();
    spec["credentialsBindingName"] = json!("key");
    spec["dns"] = json!({"domain": "replica-name.example.com"});
    // nothing is filled in in a template
    spec["provider"]["workers"][0]["maxSurge"] = json!(1);
    json!({"apiVersion": SEEDMANAGEMENT, "kind": "ManagedSeedSet",
        "metadata": {"name": "set", "namespace": "garden", "generation": 1, "uid": "uid-set"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
            "shootTemplate": {"metadata": {"labels": labels}, "spec": spec},
            "template": {"metadata": {"labels": labels}, "spec": {"gardenlet": {"config": gardenlet("ingress.replica-name.example.com")}}}}})
}

/// Does what a gardenlet would: shoots become, managed seeds register, what goes is let go.
pub async fn gardenlet_works(garden: &Garden) {
    let going = |own: &Value| own["metadata"]["deletionTimestamp"].is_string();
    for name in garden.names(SHOOT, "garden").await {
        let shoot = garden.get(CORE, "Shoot", "garden", &name).await.unwrap();
        if going(&shoot) {
            garden.let_go(SHOOT, "garden", &name).await;
            continue;
        }
        let status = json!({"observedGeneration": shoot["metadata"]["generation"], "lastOperation": operation("Create", "Succeeded")});
        garden.merge_status(SHOOT, "garden", &name, status).await;
    }
    for name in garden.names(MANAGED_SEED, "garden").await {
        let own = garden
            .get(SEEDMANAGEMENT, "ManagedSeed", "garden", &name)
            .await
            .unwrap();
        if going(&own) {
            garden.let_go(MANAGED_SEED, "garden", &name).await;
            continue;
        }
        if garden.get(CORE, "Seed", "", &name).await.is_none() {
            let mut seed = seed(&name);
            seed["metadata"]["labels"] = json!({"set": "own"});
            garden.put(vec![seed]).await;
        }
        let status = json!({"observedGeneration": own["metadata"]["generation"], "conditions": [condition("SeedRegistered", "True")]});
        garden.merge_status(MANAGED_SEED, "garden", &name, status).await;
    }
    for name in garden.names(INSTALLATION, "").await {
        let mut told: Vec<Value> = ["Valid", "Installed", "Healthy"]
            .map(|kind| condition(kind, "True"))
            .to_vec();
        told.push(condition("Progressing", "False"));
        garden
            .merge_status(INSTALLATION, "", &name, json!({"conditions": told}))
            .await;
    }
    for name in garden.names(SEED, "").await {
        garden.put(vec![lease(&name, "2027-01-01T00:00:00Z")]).await;
        let seed = garden.get(CORE, "Seed", "", &name).await.unwrap();
        let conditions = seed["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let mut told: Vec<Value> = conditions
            .into_iter()
            .filter(|own| own["type"] != "GardenletReady")
            .collect();
        told.push(condition("GardenletReady", "True"));
        let status = json!({"observedGeneration": seed["metadata"]["generation"], "conditions": told});
        garden.merge_status(SEED, "", &name, status).await;
    }
}

#[tokio::test(start_paused = true)]
async fn gcm_25_replicas_come_and_go_one_after_the_other() {
    let garden = Garden::with_project().await;
    let stop = garden.start_manager();
    // admission of shoots in the garden's own namespace is told elsewhere
    garden.put(vec![project_of_garden()]).await;
    for object in credentials_in_garden() {
        garden.create(object).await.unwrap();
    }
    garden.create(set(2)).await.unwrap();
    garden.pass("1s").await;
    let pending = async || {
        let told = garden.field(SET, "garden", "set", "/status/pendingReplica").await;
        format!(
            "{} {}",
            told["name"].as_str().unwrap_or_default(),
            told["reason"].as_str().unwrap_or_default()
        )
    };
    assert_eq!(
        garden.names(SHOOT, "garden").await,
        ["set-0"],
        "{:?}",
        garden.reasons("garden", "set").await
    );
    assert_eq!(pending().await, "set-0 ShootReconciling");
    assert_eq!(
        garden.field(SHOOT, "garden", "set-0", "/spec/dns/domain").await,
        "set-0.example.com"
    );
    for _ in 0..12 {
        gardenlet_works(&garden).await;
        garden.pass("5s").await;
    }
    assert_eq!(garden.names(SHOOT, "garden").await, ["set-0", "set-1"]);
    let domain = "/spec/gardenlet/config/seedConfig/spec/ingress/domain";
    assert_eq!(
        garden.field(MANAGED_SEED, "garden", "set-1", domain).await,
        "ingress.set-1.example.com"
    );
    let status = garden.field(SET, "garden", "set", "/status").await;
    assert_eq!(
        (
            &status["replicas"],
            &status["readyReplicas"],
            &status["nextReplicaNumber"]
        ),
        (&json!(2), &json!(2), &json!(2))
    );
    assert_eq!(status["pendingReplica"], Value::Null);

    garden
        .merge(SET, "garden", "set", json!({"spec": {"replicas": 1}}))
        .await;
    for _ in 0..6 {
        garden.pass("5s").await;
        gardenlet_works(&garden).await;
    }
    assert_eq!(garden.names(SHOOT, "garden").await, ["set-0"]);
    assert_eq!(garden.names(MANAGED_SEED, "garden").await, ["set-0"]);
    garden
        .api(SET.0, SET.1, "garden")
        .delete("set", &Default::default())
        .await
        .unwrap();
    for _ in 0..6 {
        garden.pass("5s").await;
        gardenlet_works(&garden).await;
    }
    assert!(garden.names(SHOOT, "garden").await.is_empty());
    assert!(garden.get(SET.0, SET.1, "garden", "set").await.is_none());
    stop.cancel();
}

pub fn project_of_garden() -> Value {
    json!({"apiVersion": CORE, "kind": "Project", "metadata": {"name": "garden", "uid": "uid-garden"}, "spec": {"namespace": "garden"},
        "status": {"phase": "Ready"}})
}

pub fn credentials_in_garden() -> Vec<Value> {
    let mut all = gardener_testkit::garden::credentials();
    for own in &mut all {
        own["metadata"]["namespace"] = json!("garden");
        for reference in ["secretRef", "credentialsRef"] {
            if own[reference].is_object() {
                own[reference]["namespace"] = json!("garden");
            }
        }
    }
    all
}
