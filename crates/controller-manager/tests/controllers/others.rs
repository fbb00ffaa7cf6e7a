//! Bastions [GCM-51] and events [GCM-50].

use serde_json::json;

use crate::harness::*;

const BASTION: (&str, &str) = ("operations.gardener.cloud/v1alpha1", "Bastion");

#[tokio::test(start_paused = true)]
async fn gcm_51_bastions_end() {
    let garden = Garden::with_project().await;
    let stop = garden.start_manager();
    let bastion = |name: &str, shoot: &str, expires: &str| {
        json!({"apiVersion": BASTION.0, "kind": "Bastion", "metadata": {"name": name, "namespace": NS, "creationTimestamp": START},
            "spec": {"shootRef": {"name": shoot}, "seedName": "a", "sshPublicKey": "k", "ingress": []},
            "status": {"expirationTimestamp": expires, "lastHeartbeatTimestamp": START}})
    };
    garden.put(vec![seed("a"), seed("b")]).await;
    for name in ["goes", "moves", "stays"] {
        garden.shoot_on(name, "a").await;
    }
    garden
        .put(vec![
            bastion("gone", "nobody", "2026-01-09T00:00:00Z"),
            bastion("expires", "stays", "2026-01-01T01:00:00Z"),
            bastion("grows-old", "stays", "2026-01-09T00:00:00Z"),
            bastion("of-moved", "moves", "2026-01-09T00:00:00Z"),
            bastion("of-deleted", "goes", "2026-01-09T00:00:00Z"),
        ])
        .await;
    garden.pass("10s").await;
    assert_eq!(
        garden.names(BASTION, NS).await,
        ["expires", "grows-old", "of-deleted", "of-moved"]
    );
    garden.shoot_on("moves", "b").await;
    garden
        .merge(SHOOT, NS, "goes", json!({"metadata": {"finalizers": ["gardener"]}}))
        .await;
    garden.delete(SHOOT, NS, "goes").await;
    garden.pass("10s").await;
    assert_eq!(garden.names(BASTION, NS).await, ["expires", "grows-old"]);
    garden.until("2026-01-01T00:59:59Z".parse().unwrap()).await;
    assert_eq!(garden.names(BASTION, NS).await, ["expires", "grows-old"]);
    garden.pass("3s").await;
    assert_eq!(garden.names(BASTION, NS).await, ["grows-old"]);
    garden.until("2026-01-02T00:00:02Z".parse().unwrap()).await;
    assert!(garden.names(BASTION, NS).await.is_empty());
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn gcm_50_events_about_shoots_are_left_alone() {
    let garden = Garden::with_project().await;
    let event = |name: &str, api_version: &str, kind: &str, last: &str| {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": NS}, "lastTimestamp": last,
            "involvedObject": {"apiVersion": api_version, "kind": kind, "namespace": NS, "name": "x"}, "reason": "R", "message": "m", "type": "Normal"})
    };
    garden.create(event("shoot", CORE, "Shoot", START)).await.unwrap();
    garden
        .create(event("old", CORE, "Quota", "2025-12-31T00:00:00Z"))
        .await
        .unwrap();
    garden.create(event("young", "v1", "Secret", START)).await.unwrap();
    garden.create(event("again", "v1", "Secret", START)).await.unwrap();
    let stop = garden.start_manager();
    garden.pass("10s").await;
    let own = async || {
        let mut names = garden.names(("v1", "Event"), NS).await;
        names.retain(|name| ["shoot", "old", "young", "again"].contains(&name.as_str()));
        names
    };
    assert_eq!(own().await, ["again", "shoot", "young"]);
    garden.pass("30m").await;
    garden
        .merge(
            ("v1", "Event"),
            NS,
            "again",
            json!({"lastTimestamp": "2026-01-01T00:30:00Z", "count": 2}),
        )
        .await;
    garden.pass("31m").await;
    assert_eq!(own().await, ["again", "shoot"]);
    garden.pass("31m").await;
    assert_eq!(own().await, ["shoot"]);
    stop.cancel();
}
