//! A forecast is what then happens: random gardens are foretold, and then live through the same days with the controller at work in every window.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

use gardener_apimachinery::chance::Chance;
use gardener_apis::core::v1beta1::{CloudProfile, NamespacedCloudProfile, NamespacedCloudProfileSpec};
use gardener_forecast::{Entry, Inventory, Options, Outcome, Story, forecast};
use gardener_rules::cloud_profiles::merged;
use gardener_rules::maintenance::Settings;
use gardener_testkit::garden::{Garden, NAMESPACE, cloud_profile, pool, shoot};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

/// Noon: no window is open.
const START: &str = "2026-01-01T12:00:00Z";
const DAYS: u32 = 14;

fn start() -> Timestamp {
    START.parse().unwrap()
}

/// A random garden's objects.
struct Dice(Chance);

impl Dice {
    fn one_of<'a, T: ?Sized>(&self, of: &[&'a T]) -> &'a T {
        of[usize::try_from(self.0.below(of.len() as u64)).unwrap()]
    }

    fn once_in(&self, times: u64) -> bool {
        self.0.below(times) == 0
    }

    /// Versions with classes; some expire in the days to come, at any time of the day.
    fn listed(&self, versions: &[&str]) -> Value {
        let versions = versions.iter().map(|version| {
            let mut listed = json!({"version": version});
            // one supported version a minor version is allowed: most go without a class
            match self.0.below(6) {
                0 => listed["classification"] = "preview".into(),
                1 | 2 => listed["classification"] = "deprecated".into(),
                _ => {}
            }
            if !self.once_in(3) {
                let minutes = self.0.below(u64::from(DAYS) * 24 * 60);
                let expires = start() + SignedDuration::from_mins(1 + i64::try_from(minutes).unwrap());
                listed["expirationDate"] = expires.to_string().into();
            }
            listed
        });
        versions.collect()
    }

    fn kubernetes(&self) -> Value {
        let mut listed = self.listed(&[
            "1.35.0", "1.34.2", "1.34.1", "1.33.7", "1.33.6", "1.33.5", "1.32.9", "1.32.8",
        ]);
        // the latest version has no end
        listed[0].as_object_mut().unwrap().remove("expirationDate");
        if self.once_in(3) {
            // a gap that nobody can cross
            let gap = |own: &Value| own["version"].as_str().unwrap().starts_with("1.34");
            listed.as_array_mut().unwrap().retain(|own| !gap(own));
        }
        listed
    }

    fn images(&self) -> Value {
        let images = ["patch", "minor", "major"].iter().map(|strategy| {
            let versions = self.listed(&["3.0.0", "2.1.0", "2.0.1", "2.0.0", "1.2.0", "1.1.1", "1.1.0"]);
            json!({"name": format!("os-{strategy}"), "updateStrategy": strategy, "versions": versions})
        });
        images.collect()
    }

    fn shoot(&self, name: &str) -> Value {
        let version = self.one_of(&["1.32.8", "1.32.9", "1.33.5", "1.33.6", "1.33.7"]);
        let window = *self.one_of(&[
            &("220000+0000", "230000+0000"),
            &("233000+0000", "013000+0000"),
            &("040000+0200", "060000+0200"),
        ]);
        let pools: Vec<Value> = (0..=self.0.below(2))
            .map(|i| {
                let image = self.one_of(&["os-patch", "os-minor", "os-major"]);
                let image = (image, self.one_of(&["1.1.0", "1.2.0", "2.0.0"]));
                pool(&format!("pool{i}"), image, self.once_in(3).then_some(version))
            })
            .collect();
        let automatic = (self.once_in(2), self.once_in(2));
        let mut shoot = shoot(name, version, window, automatic, pools.into());
        if self.once_in(4) {
            shoot["spec"]["cloudProfile"] = json!({"kind": "NamespacedCloudProfile", "name": "own"});
        }
        if self.once_in(5) {
            let operation = json!({"maintenance.gardener.cloud/operation": "rotate-ssh-keypair"});
            shoot["metadata"]["annotations"] = operation;
        }
        if self.once_in(3) {
            let schedules = [
                json!([{"start": "0 20 * * *", "end": "0 6 * * *", "location": "Europe/Berlin"}]),
                json!([{"start": "30 22 * * 5", "end": "0 23 * * 0"}]),
                json!([{"end": "15 4 * * 1-5"}]),
            ];
            let which = usize::try_from(self.0.below(3)).unwrap();
            shoot["spec"]["hibernation"] = json!({"enabled": self.once_in(2), "schedules": schedules[which]});
        }
        let periods = [json!("0s"), json!("72h"), json!("168h"), json!("30m")];
        let period = || periods[usize::try_from(self.0.below(4)).unwrap()].clone();
        shoot["spec"]["maintenance"]["autoRotation"] = json!({"credentials": {
            "sshKeypair": {"rotationPeriod": period()}, "etcdEncryptionKey": {"rotationPeriod": period()},
        }});
        if self.once_in(5) {
            shoot["spec"]["credentialsBindingName"] = "trial".into();
            return shoot;
        }
        // a binding that 1.34 takes away
        if self.once_in(2) {
            let spec = shoot["spec"].as_object_mut().unwrap();
            let name = spec.remove("credentialsBindingName").unwrap();
            spec.insert("secretBindingName".into(), name);
        }
        shoot
    }
}

/// Makes a random garden; what it is like follows from the number.
async fn garden(number: u64) -> Garden {
    let dice = Dice(Chance::seeded(number));
    let garden = Garden::open(number, START).await;
    garden.project().await;
    let profile = cloud_profile(dice.kubernetes(), dice.images());
    garden.apply(profile).await.unwrap();
    let longer = start() + SignedDuration::from_hours(24 * 6);
    let child = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "NamespacedCloudProfile",
        "metadata": {"name": "own", "namespace": NAMESPACE},
        "spec": {"parent": {"kind": "CloudProfile", "name": "local"},
            "kubernetes": {"versions": [{"version": "1.33.5", "expirationDate": longer.to_string()}]}},
    });
    garden.create(child.clone()).await.unwrap();
    let parents: Api<CloudProfile> = Api::all(garden.client.clone());
    let parent = parents.get("local").await.unwrap().spec;
    let own: NamespacedCloudProfileSpec = serde_json::from_value(child["spec"].clone()).unwrap();
    let status = json!({"status": {"cloudProfileSpec": merged(&parent, &own)}});
    let api: Api<NamespacedCloudProfile> = Api::namespaced(garden.client.clone(), NAMESPACE);
    api.patch_status("own", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    let quota = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Quota", "metadata": {"name": "trial", "namespace": NAMESPACE},
        "spec": {"clusterLifetimeDays": 5 + i64::from(dice.once_in(2)), "metrics": {},
            "scope": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"}},
    });
    let binding = json!({
        "apiVersion": "security.gardener.cloud/v1alpha1", "kind": "CredentialsBinding",
        "metadata": {"name": "trial", "namespace": NAMESPACE}, "provider": {"type": "local"},
        "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "key", "namespace": NAMESPACE},
        "quotas": [{"name": "trial", "namespace": NAMESPACE}],
    });
    for object in [quota, binding] {
        garden.create(object).await.unwrap();
    }
    for i in 0..6 {
        let name = format!("s{i}");
        let shoot = dice.shoot(&name);
        garden
            .create(shoot.clone())
            .await
            .unwrap_or_else(|error| panic!("{error}: {shoot}"));
        if !dice.once_in(4) {
            let state = dice.one_of(&["Succeeded", "Succeeded", "Failed"]);
            let last = json!({"lastOperation": {"type": "Reconcile", "state": state, "progress": 100,
                "description": "done", "lastUpdateTime": START}});
            garden.patch_status(&name, last).await;
        }
    }
    garden
}

/// What happens in a random garden, and what was foretold of it.
fn both(number: u64) -> (Vec<Entry>, Vec<Entry>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let (inventory, happened) = runtime.block_on(async {
        let garden = garden(number).await;
        let inventory = Inventory::of_garden(&garden.client, None).await.unwrap();
        let stop = garden.start_time();
        let story = Story::begin(&garden.client, &garden.clock, &stop).await;
        garden
            .until(start() + SignedDuration::from_hours(24 * i64::from(DAYS)))
            .await;
        stop.cancel();
        (inventory, story.entries())
    });
    let options = Options {
        from: start(),
        days: DAYS,
        seed_number: number,
        settings: Settings::default(),
    };
    (happened, forecast(&inventory, &options).unwrap().entries)
}

/// `GARDENER_TEST_FORECASTS=<number>` foretells so many gardens.
#[test]
fn forecasts_equal_what_then_happens() {
    let gardens = std::env::var("GARDENER_TEST_FORECASTS").map_or(3, |text| text.parse().unwrap());
    let (mut updated, mut failed, mut forced, mut rotated, mut turned, mut ended) = (0, 0, 0, 0, 0, 0);
    for number in 0..gardens {
        let (happened, foretold) = both(number);
        for (one, other) in happened.iter().zip(&foretold) {
            assert_eq!(one, other, "garden {number}");
        }
        assert_eq!(happened.len(), foretold.len(), "garden {number}");
        let count = |of: &dyn Fn(&Entry) -> bool| happened.iter().filter(|own| of(own)).count();
        updated += count(&|own| !own.changes.is_empty());
        failed += count(&|own| own.outcome == Outcome::Failed);
        forced += count(&|own| own.outcome.is_of_maintenance() && own.forced);
        rotated += count(&|own| own.description.contains("rotation started"));
        turned += count(&|own| matches!(own.outcome, Outcome::Hibernated | Outcome::WokenUp));
        ended += count(&|own| own.outcome == Outcome::Deleted);
    }
    assert!(
        updated > 10 && failed > 3 && forced > 5 && rotated > 10 && turned > 10 && ended > 0,
        "the gardens are too quiet to show anything: {updated} {failed} {forced} {rotated} {turned} {ended}"
    );
}
