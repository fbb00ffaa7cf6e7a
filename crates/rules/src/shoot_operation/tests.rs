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
        // W-E1 to W-E3; and nobody knows when it began [ST-134]
        (
            false,
            since("2026-03-01T01:00:00Z"),
            "Error",
            "x Operation will be retried.",
        ),
        (false, since("2026-03-01T00:00:00Z"), "Failed", "x"),
        (true, since("2026-03-01T12:00:00Z"), "Failed", "x"),
        (
            false,
            since("2026-03-01T12:00:00Z"),
            "Error",
            "x Operation will be retried.",
        ),
        (false, None, "Failed", "x"),
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
}

#[test]
fn st_126_what_keeps_an_operation_from_beginning() {
    let error = |task: Option<&str>, code: &str| LastError {
        task_id: task.map(str::to_owned),
        description: "x".into(),
        codes: vec![code.to_owned()],
        ..LastError::default()
    };
    let known = [error(Some("a"), ""), error(Some(INITIALIZATION), "old")];
    let of_owner = error(None, "ERR_CONFIGURATION_PROBLEM");
    assert_eq!(
        with_initialization_error(&known, of_owner),
        [
            error(Some("a"), ""),
            error(Some(INITIALIZATION), "ERR_CONFIGURATION_PROBLEM")
        ]
    );
    assert_eq!(
        with_initialization_error(&known, error(None, "")),
        [error(Some("a"), "")]
    );
}

#[test]
fn st_95_what_is_looked_at_again_has_not_turned() {
    let (before, now) = (Time(at("2026-03-01T10:00:00Z")), Time(at("2026-03-01T11:00:00Z")));
    let condition = |status: &str, updated: &Time| Condition {
        r#type: "A".into(),
        status: status.into(),
        last_transition_time: Some(before.clone()),
        last_update_time: Some(updated.clone()),
        ..Condition::default()
    };
    for (status, expected, updated) in [("True", "Progressing", &now), ("False", "False", &before)] {
        assert_eq!(
            progressing_after_success(&[condition(status, &before)], &["A"], &now),
            [condition(expected, updated)]
        );
    }
}

/// [ST-130], [UPD-29]: which starts give a shoot new time for retries.
#[test]
fn st_130_retry_cycles() {
    use OperationType::{Create, Delete, Migrate, Reconcile, Restore};
    let running = |last: (&str, &str)| {
        let mut shoot = shoot(Some(last));
        shoot.status.retry_cycle_start_time = Some(Time(at("2026-03-01T10:00:00Z")));
        shoot
    };
    for (last, operation, begins) in [
        (("Create", "Error"), Create, false),
        (("Create", "Succeeded"), Reconcile, false),
        (("Reconcile", "Error"), Reconcile, false),
        (("Migrate", "Succeeded"), Restore, false),
        (("Reconcile", "Error"), Migrate, false),
        (("Create", "Error"), Delete, true),
        (("Reconcile", "Error"), Delete, true),
        (("Delete", "Error"), Delete, false),
    ] {
        assert_eq!(
            starts_retry_cycle(&running(last), operation, "v1"),
            begins,
            "{last:?} {operation:?}"
        );
    }
    let mut fresh = running(("Reconcile", "Error"));
    fresh.status.retry_cycle_start_time = None;
    let mut changed = running(("Reconcile", "Error"));
    changed.metadata.generation = Some(4);
    for (case, shoot, version) in [
        ("none yet", fresh, "v1"),
        ("another spec", changed, "v1"),
        ("another gardenlet", running(("Reconcile", "Error")), "v2"),
    ] {
        assert!(starts_retry_cycle(&shoot, Reconcile, version), "{case}");
    }
}

/// A shoot that is maintained from ten to four, and was done last at this time.
fn in_the_night(done: &str) -> Shoot {
    let mut shoot = shoot(Some(("Reconcile", "Succeeded")));
    shoot.spec.maintenance = Some(Maintenance {
        time_window: Some(MaintenanceTimeWindow {
            begin: "220000+0000".into(),
            end: "040000+0000".into(),
        }),
        ..Maintenance::default()
    });
    if let Some(last) = &mut shoot.status.last_operation {
        last.last_update_time = Some(Time(at(done)));
    }
    shoot
}

/// UC-16, UC-17 [UPD-22], [UPD-23], also over midnight.
#[test]
fn uc_16_17_once_in_a_window() {
    let policy = Policy {
        reconcile_in_maintenance_only: true,
        ..POLICY
    };
    for (case, done, now, is_done_now) in [
        ("UC-16", "2026-03-01T22:10:00Z", "2026-03-01T22:30:00Z", false),
        ("UC-17", "2026-02-28T22:30:00Z", "2026-03-01T22:30:00Z", true),
        ("before midnight", "2026-03-01T23:50:00Z", "2026-03-02T00:10:00Z", false),
        (
            "before the window",
            "2026-03-01T21:59:59Z",
            "2026-03-01T22:00:00Z",
            true,
        ),
        ("last night", "2026-03-01T03:45:00Z", "2026-03-01T22:00:00Z", true),
        ("at its end", "2026-03-01T21:00:00Z", "2026-03-02T03:45:00Z", true),
        ("after its end", "2026-03-01T21:00:00Z", "2026-03-02T03:45:01Z", false),
        ("out of it", "2026-02-28T12:00:00Z", "2026-03-01T12:00:00Z", false),
    ] {
        let decision = decide(&in_the_night(done), &Seed::default(), &policy, at(now));
        assert_eq!(decision == Decision::Reconcile, is_done_now, "{case}: {decision:?}");
    }
    let decision = decide(
        &in_the_night("2026-03-01T12:00:00Z"),
        &Seed::default(),
        &policy,
        at("2026-03-01T13:00:00Z"),
    );
    let reason =
        "Shoot is not in its effective maintenance time window or was already reconciled during this time window.";
    assert_eq!(decision, Decision::NotNow(reason));
}

/// UC-18 to UC-20 [UPD-20], [UPD-21], [UPD-26].
#[test]
fn uc_18_to_20_sync_periods() {
    let now = at("2026-03-01T12:00:00Z");
    let annotated = |namespace: &str, period: &str, ignore: &str| {
        let mut shoot = shoot(Some(("Reconcile", "Succeeded")));
        shoot.metadata.namespace = Some(namespace.into());
        let annotations = [("shoot.gardener.cloud/sync-period", period), (IGNORE, ignore)];
        let annotations = annotations.into_iter().filter(|(_, value)| !value.is_empty());
        shoot.metadata.annotations = Some(annotations.map(|(key, value)| (key.into(), value.into())).collect());
        shoot
    };
    for (case, respect, namespace, period, expected) in [
        ("UC-18", true, "garden-dev", "30m", "1h"),
        ("UC-19", true, "garden-dev", "2h", "2h"),
        ("UC-20", false, "garden", "2h", "2h"),
        ("nobody looks", false, "garden-dev", "2h", "1h"),
        ("in Go's form only", true, "garden-dev", "PT2H", "1h"),
        ("with parts", true, "garden-dev", "1h30m", "1h30m"),
    ] {
        let policy = Policy {
            respect_sync_period_overwrite: respect,
            ..POLICY
        };
        let next = next_sync(&annotated(namespace, period, ""), &policy, now, 0.0);
        assert_eq!(next, expected.parse().ok(), "{case}");
    }
    for (respect, namespace, ignore, is_left_alone) in [
        (true, "garden-dev", "true", true),
        (true, "garden-dev", "1", true),
        (true, "garden-dev", "t", true),
        (true, "garden-dev", "yes", false),
        (true, "garden-dev", "false", false),
        (false, "garden-dev", "true", false),
        (false, "garden", "TRUE", true),
    ] {
        let policy = Policy {
            respect_sync_period_overwrite: respect,
            ..POLICY
        };
        let shoot = annotated(namespace, "", ignore);
        assert_eq!(
            is_ignored(&shoot, &policy),
            is_left_alone,
            "{respect} {namespace} {ignore}"
        );
        assert_eq!(
            next_sync(&shoot, &policy, now, 0.0).is_none(),
            is_left_alone,
            "never again"
        );
    }
}

/// [UPD-25], [UPD-26]: when a confined shoot comes, at gardenlet's start and after its work. The window is open until a quarter to four.
#[test]
fn upd_25_26_confined_shoots_come_in_their_windows() {
    let policy = Policy {
        reconcile_in_maintenance_only: true,
        ..POLICY
    };
    let hours = |text: &str| text.parse::<SignedDuration>().unwrap();
    let long_ago = "2026-02-27T12:00:00Z";
    for (case, done, now, least, most) in [
        ("outside", long_ago, "2026-03-01T12:00:00Z", "10h", "15h45m"),
        (
            "inside, what is left of it",
            long_ago,
            "2026-03-01T23:45:00Z",
            "0s",
            "4h",
        ),
        ("inside, after midnight", long_ago, "2026-03-02T00:45:00Z", "0s", "3h"),
        (
            "inside, done",
            "2026-03-01T23:00:00Z",
            "2026-03-01T23:45:00Z",
            "22h15m",
            "28h",
        ),
    ] {
        let shoot = in_the_night(done);
        let delay = |share: f64| delay_at_start(&shoot, &policy, at(now), share);
        assert_eq!((delay(0.0), delay(1.0)), (hours(least), hours(most)), "{case}");
    }
    let shoot = in_the_night(long_ago);
    let next = |share: f64| next_sync(&shoot, &policy, at("2026-03-01T23:45:00Z"), share);
    assert_eq!(
        (next(0.0), next(1.0)),
        (Some(hours("22h15m")), Some(hours("28h"))),
        "the next window, also from within one"
    );
    let mut changed = shoot.clone();
    changed.metadata.generation = Some(4);
    assert_eq!(
        delay_at_start(&changed, &policy, at("2026-03-01T12:00:00Z"), 0.5),
        SignedDuration::ZERO
    );
}
