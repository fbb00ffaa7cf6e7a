//! Several replicas work on one garden: one leads, and the next follows when it is lost.

use std::time::Duration;

use gardener_controller::leader::Election;
use gardener_controller_manager::Config;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::harness::*;

fn replica(garden: &Garden, identity: &str) -> Config {
    Config {
        election: Some(Election::new(
            "kube-system",
            "gardener-controller-manager-leader-election",
            identity,
        )),
        ..garden.manager()
    }
}

async fn is_ready(garden: &Garden, name: &str) -> bool {
    garden.field(PROJECT, "", name, "/status/phase").await == "Ready"
}

#[tokio::test(start_paused = true)]
async fn one_of_two_replicas_works_and_the_other_follows() {
    let garden = Garden::open().await;
    let project = |name: &str| json!({"apiVersion": CORE, "kind": "Project", "metadata": {"name": name}});
    let (first, second) = (replica(&garden, "first"), replica(&garden, "second"));
    let told = [first.monitor.clone(), second.monitor.clone()];
    let leading = || told.clone().map(|monitor| monitor.metrics().contains("election\"} 1"));
    let stop = CancellationToken::new();
    let killed = tokio::spawn(gardener_controller_manager::run(first, CancellationToken::new()));
    garden.pass("1s").await;
    let running = tokio::spawn(gardener_controller_manager::run(second, stop.clone()));
    garden.create(project("a")).await.unwrap();
    garden.pass("5s").await;
    assert!(is_ready(&garden, "a").await);
    assert_eq!(leading(), [true, false]);
    assert!(
        told.iter().all(|monitor| monitor.is_ready().is_ok()),
        "who waits is ready to follow"
    );

    // as `kill -9`: the lease is not given back
    killed.abort();
    garden.create(project("b")).await.unwrap();
    garden.pass("10s").await;
    assert!(!is_ready(&garden, "b").await);
    garden.pass("12s").await;
    assert!(is_ready(&garden, "b").await);
    assert!(leading()[1]);

    stop.cancel();
    tokio::time::timeout(Duration::from_secs(5), running)
        .await
        .unwrap()
        .unwrap();
    let holder = garden
        .field(
            ("coordination.k8s.io/v1", "Lease"),
            "kube-system",
            "gardener-controller-manager-leader-election",
            "/spec/holderIdentity",
        )
        .await;
    assert!(holder == "" || holder.is_null(), "{holder}");
}
