//! Maintenance and hibernation when something is unusual: two controller-managers, one that was away, clocks that are set, days of 23 and 25 hours,
//! windows over midnight. Nothing runs twice.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

#[path = "maintenance_proofs/admission.rs"]
mod admission;

use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_apis::core::v1beta1::Shoot;
use gardener_controller::leader::Election;
use gardener_testkit::garden::{Garden, NAMESPACE, cloud_profile, pool, shoot};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// A garden with one shoot `one` that gardenlet has been at: each maintenance raises its generation by one.
async fn garden(start: &str, window: (&str, &str), versions: Value, version: &str) -> Garden {
    let garden = Garden::open(1, start).await;
    garden.project().await;
    let images = json!([{"name": "os", "versions": [{"version": "1.0.0"}]}]);
    garden.apply(cloud_profile(versions, images)).await.unwrap();
    let pools = json!([pool("pool", ("os", "1.0.0"), None)]);
    garden
        .create(shoot("one", version, window, (true, true), pools))
        .await
        .unwrap();
    let last = json!({"lastOperation": {"type": "Create", "state": "Succeeded", "progress": 100, "description": "done",
        "lastUpdateTime": start}});
    garden.patch_status("one", last).await;
    garden
}

async fn one(garden: &Garden) -> Shoot {
    garden.shoots().get("one").await.unwrap()
}

async fn generation(garden: &Garden) -> i64 {
    one(garden).await.metadata.generation.unwrap()
}

fn two_expired() -> Value {
    json!([
        {"version": "1.34.0"},
        {"version": "1.33.0", "classification": "deprecated", "expirationDate": "2026-01-02T12:00:00Z"},
        {"version": "1.32.0", "classification": "deprecated", "expirationDate": "2026-01-02T12:00:00Z"},
    ])
}

fn start(garden: &Garden, identity: &str) -> CancellationToken {
    let stop = CancellationToken::new();
    let config = gardener_controller_manager::Config {
        election: Some(Election {
            // seconds of virtual time would be work
            lease_duration: Duration::from_secs(3600),
            renew_deadline: Duration::from_secs(2400),
            retry_period: Duration::from_secs(600),
            ..Election::new(NAMESPACE, "gardener-controller-manager", identity)
        }),
        ..garden.manager()
    };
    tokio::spawn(gardener_controller_manager::run(config, stop.clone()));
    stop
}

#[tokio::test(start_paused = true)]
async fn of_two_managers_one_works_and_the_other_goes_on() {
    let garden = garden(
        "2026-01-02T02:00:00Z",
        ("030000+0000", "040000+0000"),
        two_expired(),
        "1.32.0",
    )
    .await;
    let first = start(&garden, "first");
    garden.pass("10m").await;
    let second = start(&garden, "second");
    let before = generation(&garden).await;
    garden.until(at("2026-01-02T05:00:00Z")).await;
    assert_eq!(
        generation(&garden).await,
        before + 1,
        "one maintenance, of two managers"
    );
    garden.until(at("2026-01-03T05:00:00Z")).await;
    assert_eq!(generation(&garden).await, before + 2);
    assert_eq!(
        one(&garden).await.spec.kubernetes_version(),
        "1.33.0",
        "one step in one window"
    );
    let told = |events: Vec<(String, String, i32)>| -> i32 {
        let own = events
            .iter()
            .filter(|(reason, ..)| reason == "KubernetesVersionMaintenance");
        own.map(|(.., count)| count).sum()
    };
    assert_eq!(told(garden.events("one").await), 1);
    // the first one ends; the second takes over, and the window after that is maintained once again
    first.cancel();
    garden.until(at("2026-01-04T04:00:00Z")).await;
    assert_eq!(generation(&garden).await, before + 3);
    assert_eq!(one(&garden).await.spec.kubernetes_version(), "1.34.0");
    assert_eq!(told(garden.events("one").await), 2);
    let events = garden.events("one").await;
    assert!(
        !events.iter().any(|(reason, ..)| reason == "MaintenanceFailed"),
        "{events:?}"
    );
    second.cancel();
    garden.close().await;
}

#[tokio::test(start_paused = true)]
async fn who_was_away_makes_up_for_nothing() {
    let garden = garden(
        "2026-01-01T12:00:00Z",
        ("030000+0000", "040000+0000"),
        two_expired(),
        "1.32.0",
    )
    .await;
    let first = garden.start_maintenance(false);
    garden.until(at("2026-01-02T05:00:00Z")).await;
    let before = generation(&garden).await;
    first.cancel();
    // away for three windows, in which both versions expired
    garden.until(at("2026-01-05T05:00:00Z")).await;
    assert_eq!(generation(&garden).await, before);
    let second = garden.start_maintenance(false);
    garden.until(at("2026-01-06T02:59:59Z")).await;
    assert_eq!(generation(&garden).await, before, "it waits for the next window");
    garden.until(at("2026-01-06T05:00:00Z")).await;
    assert_eq!(generation(&garden).await, before + 1);
    assert_eq!(one(&garden).await.spec.kubernetes_version(), "1.33.0");
    garden.until(at("2026-01-07T05:00:00Z")).await;
    assert_eq!(generation(&garden).await, before + 2);
    assert_eq!(one(&garden).await.spec.kubernetes_version(), "1.34.0");
    second.cancel();
    garden.close().await;
}

#[tokio::test(start_paused = true)]
async fn who_starts_anew_in_a_window_comes_to_the_same_moment_tomorrow() {
    let garden = garden(
        "2026-01-01T12:00:00Z",
        ("020000+0000", "060000+0000"),
        json!([{"version": "1.34.0"}]),
        "1.34.0",
    )
    .await;
    let first = garden.start_maintenance(false);
    garden.until(at("2026-01-02T05:00:00Z")).await;
    let before = generation(&garden).await;
    first.cancel();
    // [VER-80]: a start in an open window is a maintenance, and then the next window's is the next
    let second = garden.start_maintenance(false);
    garden.pass("1m").await;
    assert_eq!(generation(&garden).await, before + 1);
    for day in 3..6 {
        garden.until(at(&format!("2026-01-0{day}T12:00:00Z"))).await;
        assert_eq!(generation(&garden).await, before + i64::from(day - 1), "day {day}");
    }
    second.cancel();
    garden.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_makes_no_second_maintenance() {
    let garden = garden(
        "2026-01-01T12:00:00Z",
        ("030000+0000", "040000+0000"),
        json!([{"version": "1.34.0"}]),
        "1.34.0",
    )
    .await;
    // the manager's machine is five hours behind, then it is set right: it starts anew with the right time after the true window
    let run = |hours: i64| {
        let stop = CancellationToken::new();
        let config = gardener_controller_manager::Config {
            clock: Clock::starting_at(garden.clock.now() - SignedDuration::from_hours(hours)),
            ..garden.manager()
        };
        tokio::spawn(gardener_controller_manager::run_maintenance(config, stop.clone()));
        stop
    };
    let before = generation(&garden).await;
    let wrong = run(5);
    garden.until(at("2026-01-02T07:00:00Z")).await;
    assert_eq!(generation(&garden).await, before, "for it the window is still to come");
    garden.until(at("2026-01-02T10:00:00Z")).await;
    assert_eq!(generation(&garden).await, before + 1);
    wrong.cancel();
    let right = run(0);
    garden.until(at("2026-01-03T02:59:00Z")).await;
    assert_eq!(generation(&garden).await, before + 1, "this day had its maintenance");
    garden.until(at("2026-01-03T05:00:00Z")).await;
    assert_eq!(generation(&garden).await, before + 2);
    // set back by a day and an hour, its windows are the same hours
    right.cancel();
    let behind = run(25);
    garden.until(at("2026-01-04T03:59:00Z")).await;
    assert_eq!(generation(&garden).await, before + 2);
    garden.until(at("2026-01-04T05:00:00Z")).await;
    assert_eq!(generation(&garden).await, before + 3);
    behind.cancel();
    garden.close().await;
}

#[tokio::test(start_paused = true)]
async fn windows_keep_their_hour_over_midnight_and_when_clocks_change() {
    // two o'clock in the night in which Europe's clocks go forward, and the one in which they go back: a window says its offset, not its place
    for (start, noons) in [
        ("2026-03-27T12:00:00Z", ["2026-03-28", "2026-03-29", "2026-03-30"]),
        ("2026-10-23T12:00:00Z", ["2026-10-24", "2026-10-25", "2026-10-26"]),
    ] {
        for window in [
            ("233000+0000", "003000+0000"),
            ("013000+0100", "033000+0100"),
            ("020000+0200", "040000+0200"),
        ] {
            let garden = garden(start, window, json!([{"version": "1.34.0"}]), "1.34.0").await;
            let stop = garden.start_maintenance(false);
            let before = generation(&garden).await;
            for (night, noon) in (1..).zip(noons) {
                garden.until(at(&format!("{noon}T12:00:00Z"))).await;
                assert_eq!(generation(&garden).await, before + night, "{window:?} before {noon}");
            }
            stop.cancel();
            garden.close().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn schedules_follow_the_clocks_of_their_place() {
    for (start, schedule, expected) in [
        // half past two does not exist on 29 March: that night has no firing, and none is made up for
        (
            "2026-03-27T12:00:00Z",
            json!([{"start": "30 2 * * *", "location": "Europe/Berlin"}]),
            vec!["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"],
        ),
        // and comes twice on 25 October
        (
            "2026-10-23T12:00:00Z",
            json!([{"start": "30 2 * * *", "location": "Europe/Berlin"}]),
            vec![
                "2026-10-24T00:30:00Z",
                "2026-10-25T00:30:00Z",
                "2026-10-25T01:30:00Z",
                "2026-10-26T01:30:00Z",
            ],
        ),
        (
            "2026-10-23T12:00:00Z",
            json!([{"start": "0 20 * * *", "location": "Europe/Berlin"}]),
            vec!["2026-10-23T18:00:00Z", "2026-10-24T18:00:00Z", "2026-10-25T19:00:00Z"],
        ),
    ] {
        let garden = garden(
            start,
            ("100000+0000", "110000+0000"),
            json!([{"version": "1.34.0"}]),
            "1.34.0",
        )
        .await;
        let patch = json!({"spec": {"hibernation": {"enabled": false, "schedules": schedule}}});
        garden.patch("one", patch).await.unwrap();
        let stop = garden.start_manager();
        let mut fired: Vec<String> = Vec::new();
        for _ in 0..(3 * 24 * 4) {
            garden.pass("15m").await;
            let own = one(&garden).await.status.last_hibernation_trigger_time;
            let own = own.map(|time| time.0.to_string());
            if let Some(own) = own.filter(|own| fired.last() != Some(own)) {
                fired.push(own);
            }
        }
        assert_eq!(fired, expected);
        let events = garden.events("one").await;
        let slept = events.iter().filter(|(reason, ..)| reason == "Hibernated");
        let slept: i32 = slept.map(|(.., count)| *count).sum();
        assert_eq!(
            slept,
            i32::try_from(fired.len()).unwrap(),
            "each firing once: {events:?}"
        );
        stop.cancel();
        garden.close().await;
    }
}
