//! Versions come and go, and maintenance follows them: the versions chapter of the seeds, told in a garden without seeds in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

use gardener_apis::core::v1beta1::{Project, Shoot};
use gardener_testkit::garden::{self, NAMESPACE};
use kube::Api;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A garden with its controller-manager and nothing else.
struct Garden {
    own: garden::Garden,
    stop: CancellationToken,
}

impl Garden {
    async fn begin(number: u64) -> Self {
        let own = garden::Garden::open(number, "2026-01-01T00:00:00Z").await;
        let stop = own.start_manager();
        let garden = Self { own, stop };
        garden.prepare().await;
        garden
    }

    async fn prepare(&self) {
        let project = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": "local"},
            "spec": {"namespace": NAMESPACE},
        });
        self.own.create(project).await.unwrap();
        self.pass("10s").await;
        let projects: Api<Project> = Api::all(self.own.client.clone());
        assert_eq!(
            projects.get("local").await.unwrap().status.phase.as_deref(),
            Some("Ready")
        );
        for object in garden::credentials() {
            self.own.create(object).await.unwrap();
        }
    }

    /// Offers these Kubernetes versions.
    async fn profile(&self, versions: Value) -> Result<(), kube::Error> {
        let images = json!([{"name": "os", "updateStrategy": "minor", "versions": [
            {"version": "2.0.0"}, {"version": "1.1.0"}, {"version": "1.0.0"},
        ]}]);
        self.own.apply(garden::cloud_profile(versions, images)).await
    }

    async fn shoot(&self, name: &str, version: &str, automatic: bool, window: &str) -> Result<(), kube::Error> {
        let end = format!("{:02}0000+0000", window.parse::<u32>().unwrap() + 1);
        let window = (&*format!("{window}0000+0000"), &*end);
        let pools = json!([garden::pool("pool", ("os", "1.0.0"), None)]);
        let mut shoot = garden::shoot(name, version, window, (automatic, automatic), pools);
        // what older versions may still have
        if version.starts_with("1.33") {
            let spec = shoot["spec"].as_object_mut().unwrap();
            let binding = spec.remove("credentialsBindingName").unwrap();
            spec.insert("secretBindingName".to_owned(), binding);
        }
        self.own.create(shoot).await.map(|_| ())
    }

    fn shoots(&self) -> Api<Shoot> {
        self.own.shoots()
    }

    /// The versions of Kubernetes and image.
    async fn versions(&self, name: &str) -> (String, String) {
        let shoot = self.shoots().get(name).await.unwrap();
        let image = shoot.spec.provider.workers[0].machine.image.clone().unwrap();
        (shoot.spec.kubernetes_version().to_owned(), image.version.unwrap())
    }

    async fn told(&self, name: &str) -> String {
        let last = self.shoots().get(name).await.unwrap().status.last_maintenance;
        last.map_or_else(String::new, |last| format!("{}: {}", last.state, last.description))
    }

    async fn patch(&self, name: &str, patch: Value) -> Result<Shoot, kube::Error> {
        self.own.patch(name, patch).await
    }

    async fn pass(&self, time: &str) {
        self.own.pass(time).await;
    }

    async fn until(&self, time: &str) {
        self.own.until(time.parse().unwrap()).await;
    }

    async fn events(&self, name: &str) -> Vec<(String, String)> {
        let events = self.own.events(name).await.into_iter();
        events.map(|(reason, message, _)| (reason, message)).collect()
    }
}

fn pair(kubernetes: &str, image: &str) -> (String, String) {
    (kubernetes.to_owned(), image.to_owned())
}

#[tokio::test(start_paused = true)]
async fn versions_come_and_go_and_maintenance_follows() {
    let garden = Garden::begin(1).await;
    let versions = json!([
        {"version": "1.35.1", "classification": "preview"},
        {"version": "1.34.3", "classification": "supported"},
        {"version": "1.33.2", "classification": "deprecated", "expirationDate": "2026-01-02T12:00:00Z"},
        {"version": "1.33.1", "classification": "deprecated", "expirationDate": "2026-01-02T12:00:00Z"},
    ]);
    garden.profile(versions.clone()).await.unwrap();
    garden.shoot("automatic", "1.33.1", true, "03").await.unwrap();
    garden.shoot("manual", "1.33.1", false, "03").await.unwrap();
    garden.shoot("newest", "1.34", true, "03").await.unwrap();
    assert_eq!(
        garden.versions("newest").await,
        pair("1.34.3", "1.0.0"),
        "previews are not given"
    );

    garden.until("2026-01-01T02:59:59Z").await;
    assert_eq!(
        garden.versions("automatic").await,
        pair("1.33.1", "1.0.0"),
        "nothing before the window"
    );
    garden.until("2026-01-01T04:00:00Z").await;
    assert_eq!(
        garden.versions("automatic").await,
        pair("1.33.2", "1.1.0"),
        "the latest patch, the latest minor of the image"
    );
    assert_eq!(garden.versions("manual").await, pair("1.33.1", "1.0.0"));
    assert_eq!(garden.versions("newest").await, pair("1.34.3", "1.1.0"));
    assert_eq!(
        garden.told("automatic").await,
        "Succeeded: All maintenance operations successful. Control Plane: Updated Kubernetes version from \"1.33.1\" to \"1.33.2\". Reason: Automatic update of Kubernetes version configured, Worker pool \"pool\": Updated machine image \"os\" from \"1.0.0\" to \"1.1.0\". Reason: Automatic update of the machine image version is configured (image update strategy: minor)"
    );
    assert_eq!(garden.told("manual").await, "");
    let events = garden.events("automatic").await;
    assert!(
        events
            .iter()
            .any(|(reason, _)| reason == "KubernetesVersionMaintenance"),
        "{events:?}"
    );
    assert!(
        events
            .iter()
            .any(|(reason, _)| reason == "MachineImageVersionMaintenance"),
        "{events:?}"
    );

    // on the second day both minor versions' patches expire after the window
    garden.until("2026-01-02T13:00:00Z").await;
    assert_eq!(garden.versions("manual").await, pair("1.33.1", "1.0.0"));
    let refused = garden
        .shoot("late", "1.33.2", true, "03")
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("Unsupported value: \"1.33.2\""), "{refused}");
    let jump = garden
        .patch("manual", json!({"spec": {"kubernetes": {"version": "1.35.1"}}}))
        .await;
    let jump = jump.unwrap_err().to_string();
    assert!(
        jump.contains("kubernetes version upgrade cannot skip a minor version"),
        "{jump}"
    );
    garden.until("2026-01-03T04:00:00Z").await;
    for name in ["automatic", "manual"] {
        assert_eq!(
            garden.versions(name).await.0,
            "1.34.3",
            "{name} is brought to the next minor by force"
        );
    }
    let told = garden.told("manual").await;
    assert!(
        told.contains("Reason: Kubernetes version expired - force update required"),
        "{told}"
    );
    assert_eq!(garden.versions("manual").await.1, "1.0.0", "the image has not expired");
    let spec = garden.shoots().get("manual").await.unwrap().spec;
    assert_eq!(
        (
            spec.secret_binding_name.as_deref(),
            spec.credentials_binding_name.as_deref()
        ),
        (None, Some("key"))
    );
    assert!(
        told.contains(".spec.secretBindingName was migrated to .spec.credentialsBindingName"),
        "{told}"
    );

    // asked for, it does not wait for the window
    let mut newer = versions.as_array().unwrap().clone();
    newer.push(json!({"version": "1.34.5", "classification": "deprecated"}));
    newer.push(json!({"version": "1.34.4"}));
    garden.profile(newer.clone().into()).await.unwrap();
    let maintain = json!({"metadata": {"annotations": {"gardener.cloud/operation": "maintain"}}});
    garden.patch("newest", maintain).await.unwrap();
    garden.pass("5s").await;
    assert_eq!(garden.versions("newest").await.0, "1.34.4", "not the deprecated one");
    let shoot = garden.shoots().get("newest").await.unwrap();
    assert_eq!(shoot.annotation("gardener.cloud/operation"), None);

    // what is used cannot be taken away
    newer.pop();
    let refused = garden.profile(newer.into()).await.unwrap_err().to_string();
    assert!(
        refused.contains("unable to delete Kubernetes version \"1.34.4\" from CloudProfile \"local\" - version is still in use by shoot 'garden-local/newest'"),
        "{refused}"
    );
    garden.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn shoots_sleep_and_wake_by_their_schedules() {
    let garden = Garden::begin(1).await;
    garden.profile(json!([{"version": "1.34.3"}])).await.unwrap();
    garden.shoot("one", "1.34.3", true, "03").await.unwrap();
    let schedules = json!([{"start": "0 20 * * *", "end": "30 6 * * *", "location": "Europe/Berlin"}]);
    garden
        .patch("one", json!({"spec": {"hibernation": {"schedules": schedules}}}))
        .await
        .unwrap();
    let enabled = || async {
        let shoot = garden.shoots().get("one").await.unwrap();
        shoot.spec.hibernation.clone().and_then(|own| own.enabled)
    };
    garden.until("2026-01-01T18:59:59Z").await;
    assert_ne!(enabled().await, Some(true));
    garden.until("2026-01-01T19:00:01Z").await;
    assert_eq!(enabled().await, Some(true), "eight in the evening of Berlin");
    // by hand it is awake until the next evening
    garden
        .patch("one", json!({"spec": {"hibernation": {"enabled": false}}}))
        .await
        .unwrap();
    garden.until("2026-01-02T18:59:00Z").await;
    assert_eq!(enabled().await, Some(false));
    garden.until("2026-01-02T19:00:01Z").await;
    assert_eq!(enabled().await, Some(true));
    garden.until("2026-01-03T05:30:01Z").await;
    assert_eq!(enabled().await, Some(false));
    let shoot = garden.shoots().get("one").await.unwrap();
    assert_eq!(
        shoot.status.last_hibernation_trigger_time.unwrap().0.to_string(),
        "2026-01-03T05:30:00Z"
    );
    let events = garden.events("one").await;
    for reason in ["Hibernated", "WokenUp"] {
        assert!(events.iter().any(|(own, _)| own == reason), "{events:?}");
    }
    garden.stop.cancel();
}
