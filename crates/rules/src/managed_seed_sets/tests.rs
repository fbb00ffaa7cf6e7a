//! Tests of [`super`].

use gardener_apis::core::v1beta1::{Seed, Shoot};
use gardener_apis::seedmanagement::v1alpha1::{ManagedSeed, ManagedSeedSet};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn set(replicas: i32, status: Value) -> ManagedSeedSet {
    serde_json::from_value(json!({
        "metadata": {"name": "set", "namespace": "garden", "generation": 3},
        "spec": {"replicas": replicas}, "status": status,
    }))
    .unwrap()
}

/// The objects of a replica.
#[derive(Clone)]
struct Objects {
    shoot: Shoot,
    managed_seed: Option<ManagedSeed>,
    seed: Option<Seed>,
    has_shoots: bool,
}

/// A replica in a state: `failed`, `delete-failed`, `reconciling`, `deleting`, `reconciled`, `preparing`, `seed-deleting`, `registered`, `unready`
/// (its seed is not), `ill` (its shoot is), `ready`.
fn replica(ordinal: i32, state: &str) -> Objects {
    let name = format!("set-{ordinal}");
    let going = matches!(state, "delete-failed" | "deleting");
    let last = match state {
        "failed" => json!({"type": "Reconcile", "state": "Failed"}),
        "delete-failed" => json!({"type": "Delete", "state": "Failed"}),
        "reconciling" => json!({"type": "Create", "state": "Processing"}),
        "deleting" => json!({"type": "Delete", "state": "Processing"}),
        _ => json!({"type": "Create", "state": "Succeeded"}),
    };
    let deletion = "2026-01-01T00:00:00Z";
    let health = if state == "ill" { "unhealthy" } else { "healthy" };
    let mut metadata = json!({"name": name, "namespace": "garden", "generation": 1, "labels": {"shoot.gardener.cloud/status": health}});
    if going {
        metadata["deletionTimestamp"] = json!(deletion);
    }
    let shoot = json!({"metadata": metadata, "status": {"observedGeneration": 1, "lastOperation": last}});
    let has_seed = !matches!(
        state,
        "failed" | "delete-failed" | "reconciling" | "deleting" | "reconciled"
    );
    let registered = matches!(state, "registered" | "unready" | "ill" | "ready");
    let managed_seed = has_seed.then(|| {
        let mut metadata = json!({"name": name, "namespace": "garden", "generation": 1});
        if state == "seed-deleting" {
            metadata["deletionTimestamp"] = json!(deletion);
        }
        let status = json!([{"type": "SeedRegistered", "status": if registered { "True" } else { "False" }}]);
        let own = json!({"metadata": metadata, "status": {"observedGeneration": 1, "conditions": status}});
        serde_json::from_value(own).unwrap()
    });
    let seed = registered.then(|| {
        let conditions = json!([
            {"type": "GardenletReady", "status": if state == "unready" { "Unknown" } else { "True" }},
            {"type": "SeedSystemComponentsHealthy", "status": "True"},
        ]);
        let status = json!({"observedGeneration": 1, "conditions": conditions});
        serde_json::from_value(json!({"metadata": {"name": name, "generation": 1}, "status": status})).unwrap()
    });
    Objects {
        shoot: serde_json::from_value(shoot).unwrap(),
        managed_seed,
        seed,
        has_shoots: false,
    }
}

fn of(all: &[Objects]) -> Vec<Replica<'_>> {
    let replicas = all.iter().map(|own| Replica {
        shoot: &own.shoot,
        managed_seed: own.managed_seed.as_ref(),
        seed: own.seed.as_ref(),
        has_shoots: own.has_shoots,
    });
    replicas.collect()
}

/// What is done, the event's reason, and the pending replica: name, reason, retries.
fn told(set: &ManagedSeedSet, all: &[Objects]) -> (Act, String, String) {
    let decision = decide(set, &of(all), 3, now()).unwrap();
    let pending = decision.status.pending_replica.as_ref().map(|own| {
        let retries = own.retries.map(|own| format!(" {own}")).unwrap_or_default();
        format!("{} {}{retries}", own.name, own.reason)
    });
    let event = decision.event.map(|(reason, _)| reason.to_owned()).unwrap_or_default();
    (decision.act, event, pending.unwrap_or_default())
}

fn pending(name: &str, reason: &str, retries: Option<i32>) -> Value {
    let since = "2025-12-31T00:00:00Z";
    json!({"nextReplicaNumber": 2, "pendingReplica": {"name": name, "reason": reason, "since": since, "retries": retries}})
}

#[test]
fn gcm_25_a_replica_comes_to_be_step_by_step() {
    for (state, act, event, expected) in [
        (
            "reconciling",
            Act::Wait,
            "WaitingForShootReconciled",
            "set-0 ShootReconciling",
        ),
        (
            "failed",
            Act::RetryShoot("set-0".into()),
            "RetryingShootReconciliation",
            "set-0 ShootReconciling 1",
        ),
        (
            "reconciled",
            Act::CreateManagedSeed(0),
            "CreatingManagedSeed",
            "set-0 ManagedSeedPreparing",
        ),
        (
            "preparing",
            Act::Wait,
            "WaitingForManagedSeedRegistered",
            "set-0 ManagedSeedPreparing",
        ),
        ("unready", Act::Wait, "WaitingForSeedReady", "set-0 SeedNotReady"),
        ("ill", Act::Wait, "WaitingForShootHealthy", "set-0 ShootNotHealthy"),
        ("ready", Act::Nothing, "", ""),
    ] {
        let own = set(1, json!({"nextReplicaNumber": 1}));
        let found = told(&own, &[replica(0, state)]);
        assert_eq!(found, (act, event.into(), expected.into()), "{state}");
    }
    let own = set(2, json!({}));
    let found = told(&own, &[]);
    assert_eq!(
        found,
        (
            Act::CreateShoot(0),
            "CreatingShoot".into(),
            "set-0 ShootReconciling".into()
        )
    );
    let decision = decide(&own, &[], 3, now()).unwrap();
    assert_eq!(
        (decision.status.replicas, decision.status.next_replica_number),
        (1, Some(1))
    );
    assert_eq!(decision.status.observed_generation, Some(3));
    assert_eq!(decision.event.unwrap().1, "Creating Shoot garden/set-0");
}

#[test]
fn gcm_25_one_replica_at_a_time() {
    let own = set(3, pending("set-0", "ShootReconciling", None));
    let found = told(&own, &[replica(0, "reconciling")]);
    assert_eq!(
        found.0,
        Act::Wait,
        "the next one is not created before this one is ready"
    );
    let found = told(&own, &[replica(0, "ready")]);
    assert_eq!(
        (found.0, found.2),
        (Act::CreateShoot(2), "set-2 ShootReconciling".into()),
        "numbers are not used twice"
    );
    // a run that died before it told what it had created
    let own = set(3, json!({"nextReplicaNumber": 1}));
    let found = told(&own, &[replica(0, "ready"), replica(1, "reconciling")]);
    assert_eq!((found.0, found.2), (Act::Wait, "set-1 ShootReconciling".into()));
    // those that are not well are looked after when their number is right
    let own = set(2, json!({"nextReplicaNumber": 2}));
    let found = told(&own, &[replica(1, "ready"), replica(0, "ill")]);
    assert_eq!(found.2, "set-0 ShootNotHealthy");
}

#[test]
fn gcm_25_failed_shoots_are_tried_again_three_times() {
    for (state, reason, failed) in [
        ("failed", "ShootReconciling", "ShootReconcileFailed"),
        ("delete-failed", "ShootDeleting", "ShootDeleteFailed"),
    ] {
        for (reason, retries, expected) in [
            (reason, None, format!("set-0 {reason} 1")),
            (reason, Some(2), format!("set-0 {reason} 3")),
            (reason, Some(3), format!("set-0 {failed} 3")),
            (failed, Some(3), format!("set-0 {failed} 3")),
            ("SeedNotReady", Some(3), format!("set-0 {reason} 1")),
        ] {
            let own = set(1, pending("set-0", reason, retries));
            let (act, _, found) = told(&own, &[replica(0, state)]);
            assert_eq!(found, expected, "{state} {reason} {retries:?}");
            assert_eq!(act == Act::Wait, expected.contains("Failed"));
        }
    }
    let own = set(1, pending("set-0", "ShootReconciling", Some(2)));
    assert_eq!(
        told(&own, &[replica(0, "reconciling")]).2,
        "set-0 ShootReconciling 2",
        "waiting forgets nothing"
    );
    let decision = decide(&own, &of(&[replica(0, "reconciling")]), 3, now()).unwrap();
    assert_eq!(
        decision.status.pending_replica, own.status.pending_replica,
        "nor does it move the time"
    );
}

#[test]
fn gcm_25_who_goes_first() {
    let own = set(2, json!({"nextReplicaNumber": 9}));
    let delete = |name: &str| Act::DeleteManagedSeed(name.into());
    let mut used = replica(4, "ready");
    used.has_shoots = true;
    let mut protected = replica(5, "ready");
    let annotation = (
        "seedmanagement.gardener.cloud/protect-from-deletion".to_owned(),
        "true".to_owned(),
    );
    protected.shoot.metadata.annotations = Some([annotation].into());
    for (all, expected) in [
        (
            vec![replica(0, "ready"), replica(1, "ready"), replica(2, "ready")],
            delete("set-2"),
        ),
        (
            vec![replica(0, "ready"), replica(1, "preparing"), replica(2, "ready")],
            delete("set-1"),
        ),
        (
            vec![replica(0, "unready"), replica(1, "ready"), replica(2, "ready")],
            delete("set-0"),
        ),
        (
            vec![replica(0, "ready"), replica(1, "ill"), replica(2, "ready")],
            delete("set-1"),
        ),
        (
            vec![replica(0, "reconciled"), replica(1, "preparing"), replica(2, "ready")],
            Act::DeleteShoot("set-0".into()),
        ),
        (
            vec![replica(0, "ready"), used.clone(), protected.clone()],
            delete("set-0"),
        ),
        (
            vec![replica(0, "seed-deleting"), replica(1, "failed"), replica(2, "ready")],
            Act::Wait,
        ),
    ] {
        let names: Vec<&str> = all.iter().map(|own| own.shoot.own_name()).collect();
        assert_eq!(told(&own, &all).0, expected, "{names:?}");
    }
    let kept = [used, protected, replica(6, "ready")];
    let error = decide(&set(0, json!({})), &of(&kept[..2]), 3, now()).unwrap_err();
    assert_eq!((error.status.replicas, error.why), (2, "no deletable replicas found"));
    let mut own = set(3, json!({}));
    own.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    let decision = decide(&own, &of(&kept[2..]), 3, now()).unwrap();
    assert_eq!((decision.act, decision.status.ready_replicas), (delete("set-6"), None));
    assert_eq!(decide(&own, &[], 3, now()).unwrap().act, Act::Nothing, "the set can go");
}

#[test]
fn gcm_25_what_replicas_are_made_of() {
    let own: ManagedSeedSet = serde_json::from_value(json!({
        "metadata": {"name": "set", "namespace": "garden"},
        "spec": {
            "shootTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"dns": {"domain": "replica-name.example.com"}, "region": "eu"}},
            "template": {"metadata": {"annotations": {"c": "d"}}, "spec": {"gardenlet": {"config": {
                "seedConfig": {"spec": {"ingress": {"domain": "ingress.replica-name.example.com"}}}}}}},
        },
    }))
    .unwrap();
    let (shoot, seed) = (
        shoot(&own, 7, Owner::default()),
        managed_seed(&own, 7, Owner::default()),
    );
    assert_eq!(shoot.spec.dns.unwrap().domain.as_deref(), Some("set-7.example.com"));
    assert_eq!(
        (shoot.metadata.name.as_deref(), shoot.metadata.labels.unwrap().len()),
        (Some("set-7"), 1)
    );
    let domain = seed.spec.gardenlet.config.unwrap();
    assert_eq!(
        domain["seedConfig"]["spec"]["ingress"]["domain"],
        "ingress.set-7.example.com"
    );
    assert_eq!(seed.spec.shoot.unwrap().name, "set-7");
    assert_eq!(seed.metadata.annotations.unwrap()["c"], "d");
    let ordinal = |name: &str| {
        let mut objects = replica(0, "ready");
        objects.shoot.metadata.name = Some(name.to_owned());
        of(&[objects]).first().unwrap().ordinal()
    };
    for (name, expected) in [
        ("a-12", 12),
        ("a", -1),
        ("a-", -1),
        ("a-+1", -1),
        ("a-99999999999", -1),
        ("a-b-0", 0),
    ] {
        assert_eq!(ordinal(name), expected, "{name}");
    }
}
