//! Worked cases of [CP-10..17].

use gardener_apis::core::v1beta1::{Gardener, Maintenance, MaintenanceTimeWindow};

use super::*;

const POLICY: Policy<'static> = Policy {
    sync_period: SignedDuration::from_hours(1),
    respect_sync_period_overwrite: true,
    reconcile_in_maintenance_only: false,
    version: "v1",
};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn shoot(last: Option<(&str, &str)>) -> Shoot {
    let mut shoot = Shoot::default();
    shoot.metadata.name = Some("bar".into());
    shoot.metadata.generation = Some(3);
    shoot.status.observed_generation = Some(3);
    shoot.status.gardener.version = "v1".into();
    shoot.status.last_operation = last.map(|(kind, state)| LastOperation {
        r#type: kind.into(),
        state: state.into(),
        last_update_time: Some(Time(at("2026-03-01T10:00:00Z"))),
        ..LastOperation::default()
    });
    shoot
}

#[test]
fn cp_c1_technical_id() {
    let mut shoot = shoot(None);
    assert_eq!(technical_id(&shoot, "foo"), "shoot--foo--bar");
    shoot.status.technical_id = "shoot-foo-bar".into();
    assert_eq!(technical_id(&shoot, "foo"), "shoot-foo-bar");
}

#[test]
fn cp_c4_operation_type() {
    use OperationType::{Create, Delete, Migrate, Reconcile, Restore};
    let table = [
        (None, Create),
        (Some(("Create", "Error")), Create),
        (Some(("Create", "Succeeded")), Reconcile),
        (Some(("Migrate", "Succeeded")), Restore),
        (Some(("Migrate", "Aborted")), Restore),
        (Some(("Migrate", "Error")), Migrate),
        (Some(("Restore", "Error")), Restore),
        (Some(("Restore", "Succeeded")), Reconcile),
        (Some(("Reconcile", "Failed")), Reconcile),
        (Some(("", "Pending")), Reconcile),
    ];
    for (last, expected) in table {
        assert_eq!(operation_type(&shoot(last)), expected, "{last:?}");
    }
    let mut deleted = shoot(Some(("Create", "Error")));
    deleted.metadata.deletion_timestamp = Some(Time(at("2026-03-01T10:00:00Z")));
    assert_eq!(operation_type(&deleted), Delete);
    deleted.spec.seed_name = Some("b".into());
    deleted.status.seed_name = Some("a".into());
    assert_eq!(operation_type(&deleted), Migrate);
    assert!(is_responsible(&deleted, "a") && !is_responsible(&deleted, "b"));
}

#[test]
fn cp_12_first_match_decides() {
    let now = at("2026-03-01T12:00:00Z");
    let seed = Seed::default();
    let confined = |mut shoot: Shoot, begin: &str, end: &str| {
        shoot.spec.maintenance = Some(Maintenance {
            confine_spec_update_rollout: Some(true),
            time_window: Some(MaintenanceTimeWindow {
                begin: begin.into(),
                end: end.into(),
            }),
            ..Maintenance::default()
        });
        shoot
    };
    let done = || shoot(Some(("Reconcile", "Succeeded")));
    let mut ignored = done();
    ignored.metadata.annotations = Some([(IGNORE.to_owned(), "True".to_owned())].into());
    let mut changed = confined(done(), "220000+0000", "230000+0000");
    changed.metadata.generation = Some(4);
    let mut other_version = shoot(Some(("Reconcile", "Failed")));
    other_version.status.gardener.version = "v0".into();
    let table = [
        ("unconfined", done(), "Reconcile"),
        ("ignored", ignored, "OnlySyncCluster"),
        ("failed", shoot(Some(("Reconcile", "Failed"))), "OnlySyncCluster"),
        ("failed before", other_version, "Reconcile"),
        // CP-C17
        ("outside", confined(done(), "220000+0000", "230000+0000"), "NotNow"),
        ("changed", changed, "Reconcile"),
        ("inside", confined(done(), "110000+0000", "150000+0000"), "Reconcile"),
        ("inside, done", confined(done(), "090000+0000", "150000+0000"), "NotNow"),
        (
            "creating",
            confined(shoot(Some(("Create", "Error"))), "220000+0000", "230000+0000"),
            "Reconcile",
        ),
    ];
    for (case, shoot, expected) in table {
        let decision = format!("{:?}", decide(&shoot, &seed, &POLICY, now));
        assert!(decision.starts_with(expected), "{case}: {decision}");
    }
    let mut stopped = Seed::default();
    stopped.metadata.annotations = Some([(EMERGENCY_STOP.to_owned(), "true".to_owned())].into());
    let decision = decide(&shoot(None), &stopped, &POLICY, now);
    assert_eq!(
        decision,
        Decision::NotNow("Shoot reconciliation blocked by Seed emergency switch")
    );
}

#[test]
fn cp_13_next_sync() {
    let now = at("2026-03-01T12:00:00Z");
    let done = shoot(Some(("Reconcile", "Succeeded")));
    assert_eq!(next_sync(&done, &POLICY, now, 0.5), Some(SignedDuration::from_hours(1)));
    let failed = shoot(Some(("Reconcile", "Failed")));
    assert_eq!(next_sync(&failed, &POLICY, now, 0.5), None);
    let mut longer = done.clone();
    for (text, hours) in [("5h", 5), ("10m", 1), ("soon", 1)] {
        longer.metadata.annotations = Some([("shoot.gardener.cloud/sync-period".to_owned(), text.to_owned())].into());
        assert_eq!(
            next_sync(&longer, &POLICY, now, 0.0),
            Some(SignedDuration::from_hours(hours)),
            "{text}"
        );
    }
}

#[test]
fn cp_14_seed_gate() {
    let gardenlet = Gardener {
        id: "x".into(),
        ..Gardener::default()
    };
    let condition = |kind: &str, status: &str| Condition {
        r#type: kind.into(),
        status: status.into(),
        ..Condition::default()
    };
    let mut seed = Seed::default();
    let told = |seed: &Seed| seed_gate(seed, &gardenlet).err().unwrap_or_default();
    assert!(told(&seed).starts_with("seed is not up to date: "));
    seed.status.gardener = Some(gardenlet.clone());
    assert!(told(&seed).starts_with("error in seed conditions: "));
    seed.status.conditions = vec![
        condition("GardenletReady", "True"),
        condition("SeedSystemComponentsHealthy", "False"),
    ];
    assert_eq!(
        told(&seed),
        "seed has failing conditions: [SeedSystemComponentsHealthy]"
    );
    seed.status.conditions = vec![
        condition("GardenletReady", "True"),
        condition("SeedSystemComponentsHealthy", "True"),
    ];
    assert_eq!(told(&seed), "");
    seed.metadata.generation = Some(2);
    assert_eq!(
        told(&seed),
        "seed is not up to date: observed generation outdated (0/2)"
    );
}

#[test]
fn cp_c3_error_or_failed() {
    let now = Time(at("2026-03-01T12:00:00Z"));
    let retry = SignedDuration::from_hours(12);
    let since = |text: &str| Some(at(text));
    let table = [
        (true, since("2026-03-01T11:59:00Z"), "Failed", "x"),
        (
            false,
            since("2026-03-01T01:00:00Z"),
            "Error",
            "x Operation will be retried.",
        ),
        (false, since("2026-02-28T23:59:00Z"), "Failed", "x"),
    ];
    for (non_retryable, since, state, description) in table {
        let last = failed("x", OperationType::Create, 7, non_retryable, since, retry, &now);
        assert_eq!(
            (last.state.as_str(), last.description.as_str(), last.progress),
            (state, description, 7)
        );
    }
}

#[test]
fn cp_c15_handled_operations_go() {
    let handled = ["rotate-ca-start", "rotate-ssh-keypair"];
    assert_eq!(
        remaining_operations("rotate-ca-start;rotate-ssh-keypair", &handled),
        None
    );
    assert_eq!(
        remaining_operations("rotate-ca-start;other", &handled).as_deref(),
        Some("other")
    );
}

#[test]
fn cp_22_errors_by_task() {
    let error = |task: &str, text: &str| LastError {
        task_id: Some(task.into()),
        description: text.into(),
        ..LastError::default()
    };
    let old = vec![error("a", "1"), error("b", "2")];
    assert_eq!(without_task(&old, "a"), [error("b", "2")]);
    assert_eq!(
        with_errors(&old, vec![error("a", "3")]),
        [error("b", "2"), error("a", "3")]
    );
}
