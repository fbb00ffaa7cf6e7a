//! Buckets and entries; the test plays their extension.

use std::time::Duration;

use gardener_gardenlet::{BackupEntrySettings, Settings};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::world::dynamic;
use super::{CORE, Landscape};

const EXTENSIONS: &str = "extensions.gardener.cloud";
const HOUR: Duration = Duration::from_secs(3600);
const ENTRY: &str = "shoot--dev--my--123";

impl Landscape {
    fn api(
        &self,
        cluster: &str,
        (group, version): (&str, &str),
        kind: &str,
        namespace: Option<&str>,
    ) -> Api<DynamicObject> {
        dynamic(&self.world.client(cluster), group, version, kind, namespace)
    }

    fn core(&self, kind: &str) -> Api<DynamicObject> {
        self.api(
            "garden",
            (CORE, "v1beta1"),
            kind,
            (kind == "BackupEntry").then_some("garden-dev"),
        )
    }

    fn extension(&self, kind: &str) -> Api<DynamicObject> {
        self.api("seed", (EXTENSIONS, "v1alpha1"), kind, None)
    }

    fn secrets(&self, cluster: &str) -> Api<DynamicObject> {
        self.api(cluster, ("", "v1"), "Secret", Some("garden"))
    }

    async fn bucket(&self) {
        let secret = json!({"metadata": {"name": "credentials", "namespace": "garden"}, "data": {"key": "b25l"}});
        self.world
            .create("garden", "", "v1", "Secret", Some("garden"), secret)
            .await;
        let reference = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "credentials"});
        let bucket = json!({"metadata": {"name": "bucket"}, "spec": {
            "seedName": "local", "provider": {"type": "local", "region": "here"}, "credentialsRef": reference,
        }});
        self.world
            .create("garden", CORE, "v1beta1", "BackupBucket", None, bucket)
            .await;
    }

    async fn entry(&self, purpose: &str) {
        let entry = json!({
            "metadata": {"name": ENTRY, "namespace": "garden-dev", "annotations": {"shoot.gardener.cloud/purpose": purpose}},
            "spec": {"seedName": "local", "bucketName": "bucket"},
        });
        self.world
            .create("garden", CORE, "v1beta1", "BackupEntry", Some("garden-dev"), entry)
            .await;
    }

    /// The extension answers what it is asked, with a status of which this is a part.
    async fn answer(&self, kind: &str, name: &str, state: &str, status: Value) -> DynamicObject {
        let api = self.extension(kind);
        let asked = found(&api, name, |object| {
            object.annotations().contains_key("gardener.cloud/operation")
        })
        .await;
        let (write, merge) = (PatchParams::default(), |patch| Patch::Merge(patch));
        let taken =
            json!({"metadata": {"annotations": {"gardener.cloud/operation": null}, "finalizers": ["extension"]}});
        api.patch(name, &write, &merge(taken)).await.unwrap();
        let last = json!({"type": "Reconcile", "state": state, "progress": 100, "description": "", "lastUpdateTime": self.world.clock.time()});
        let mut status = status;
        status["lastOperation"] = last;
        status["observedGeneration"] = json!(asked.metadata.generation);
        api.patch_status(name, &write, &merge(json!({"status": status})))
            .await
            .unwrap();
        asked
    }

    /// The extension is done with what is deleted.
    async fn let_go(&self, kind: &str, name: &str) {
        let api = self.extension(kind);
        found(&api, name, |object| object.metadata.deletion_timestamp.is_some()).await;
        let patch = json!({"metadata": {"finalizers": null}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }
}

async fn found(api: &Api<DynamicObject>, name: &str, is_so: impl Fn(&DynamicObject) -> bool) -> DynamicObject {
    let mut last = None;
    for _ in 0..400 {
        last = api.get_opt(name).await.unwrap();
        if let Some(object) = last.as_ref().filter(|object| is_so(object)) {
            return object.clone();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{last:#?}");
}

async fn gone(api: &Api<DynamicObject>, name: &str) {
    for _ in 0..400 {
        if api.get_opt(name).await.unwrap().is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:#?}", api.get(name).await.unwrap());
}

fn last<'a>(object: &'a DynamicObject, field: &str) -> &'a str {
    object.data["status"]["lastOperation"][field]
        .as_str()
        .unwrap_or_default()
}

fn is(state: &'static str) -> impl Fn(&DynamicObject) -> bool {
    move |object| last(object, "state") == state
}

#[tokio::test(start_paused = true)]
async fn ext_3_9_a_bucket_has_what_its_extension_made_of_it() {
    let landscape = Landscape::alone(Settings::default()).await;
    landscape.bucket().await;
    let buckets = landscape.core("BackupBucket");
    let processing = found(&buckets, "bucket", is("Processing")).await;
    assert_eq!(
        last(&processing, "description"),
        "Reconciliation of BackupBucket state initialized."
    );
    let in_use = landscape.secrets("garden").get("credentials").await.unwrap();
    assert_eq!(in_use.finalizers(), ["core.gardener.cloud/backupbucket"]);

    let made = json!({"metadata": {"name": "made", "namespace": "garden"}, "data": {"token": "dHdv"}});
    landscape
        .world
        .create("seed", "", "v1", "Secret", Some("garden"), made)
        .await;
    let status = json!({"providerStatus": {"id": 7}, "generatedSecretRef": {"name": "made", "namespace": "garden"}});
    let asked = landscape.answer("BackupBucket", "bucket", "Succeeded", status).await;
    assert_eq!(
        asked.data["spec"],
        json!({"type": "local", "region": "here", "secretRef": {"name": "bucket-bucket", "namespace": "garden"}})
    );
    assert_eq!(
        asked.annotations()["backupbucket.extensions.gardener.cloud/generated-secret-namespace"],
        "garden"
    );
    let succeeded = found(&buckets, "bucket", is("Succeeded")).await;
    assert_eq!(last(&succeeded, "type"), "Create");
    assert_eq!(
        last(&succeeded, "description"),
        "Backup Bucket has been successfully reconciled."
    );
    assert_eq!(succeeded.data["status"]["providerStatus"], json!({"id": 7}));
    let reference = json!({"name": "generated-bucket-bucket", "namespace": "garden"});
    assert_eq!(succeeded.data["status"]["generatedSecretRef"], reference);
    let generated = landscape
        .secrets("garden")
        .get("generated-bucket-bucket")
        .await
        .unwrap();
    assert_eq!(generated.data["data"], json!({"token": "dHdv"}));
    assert_eq!(generated.owner_references()[0].kind, "BackupBucket");

    buckets.delete("bucket", &Default::default()).await.unwrap();
    landscape.let_go("BackupBucket", "bucket").await;
    gone(&buckets, "bucket").await;
    gone(&landscape.secrets("garden"), "generated-bucket-bucket").await;
    gone(&landscape.secrets("seed"), "bucket-bucket").await;
    let unused = landscape.secrets("garden").get("credentials").await.unwrap();
    assert_eq!(unused.finalizers(), [""; 0]);
    landscape.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn ext_55_an_entry_waits_for_its_bucket_and_tells_what_its_extension_says() {
    let landscape = Landscape::alone(Settings::default()).await;
    landscape.bucket().await;
    landscape.entry("evaluation").await;
    let entries = landscape.core("BackupEntry");
    let waits = "associated BackupBucket state is not Succeeded but Processing";
    let waiting = found(&entries, ENTRY, |entry| last(entry, "description") == waits).await;
    assert!(is("Error")(&waiting));
    landscape
        .answer(
            "BackupBucket",
            "bucket",
            "Succeeded",
            json!({"providerStatus": {"id": 7}}),
        )
        .await;

    let error = json!({"lastError": {"description": "no quota", "codes": ["ERR_INFRA_QUOTA_EXCEEDED"]}});
    let asked = landscape.answer("BackupEntry", ENTRY, "Error", error).await;
    assert_eq!(
        asked.data["spec"],
        json!({
            "type": "local", "region": "here", "bucketName": "bucket", "backupBucketProviderStatus": {"id": 7},
            "secretRef": {"name": format!("entry-{ENTRY}"), "namespace": "garden"},
        })
    );
    let told = |object: &DynamicObject| {
        object.data["status"]["lastError"]["description"] == "error during reconciliation: no quota"
    };
    let failed = found(&entries, ENTRY, told).await;
    assert_eq!(
        failed.data["status"]["lastError"]["codes"],
        json!(["ERR_INFRA_QUOTA_EXCEEDED"])
    );
    assert_eq!(last(&failed, "progress"), "");
    assert_eq!(failed.data["status"]["seedName"], "local");

    // other credentials are another chance
    let patch = json!({"data": {"key": "dGhyZWU="}});
    let secrets = landscape.secrets("garden");
    secrets
        .patch("credentials", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    let again = json!({"metadata": {"annotations": {"touched": "x"}}, "spec": {"seedName": "local", "touched": "x"}});
    entries
        .patch(ENTRY, &PatchParams::default(), &Patch::Merge(again))
        .await
        .unwrap();
    landscape
        .answer("BackupEntry", ENTRY, "Succeeded", json!({"lastError": null}))
        .await;
    let succeeded = found(&entries, ENTRY, is("Succeeded")).await;
    assert_eq!(
        last(&succeeded, "description"),
        "Reconciliation of BackupEntry succeeded."
    );
    assert!(succeeded.data["status"]["lastError"].is_null());
    let secret = landscape.secrets("seed").get(&format!("entry-{ENTRY}")).await.unwrap();
    assert_eq!(secret.data["data"], json!({"key": "dGhyZWU="}));
    landscape.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn cp_150_a_deleted_entry_is_kept_for_its_grace_period_unless_it_is_forced() {
    let settings = Settings {
        backup_entry: BackupEntrySettings {
            deletion_grace_period_hours: 1,
            deletion_grace_period_shoot_purposes: vec!["production".to_owned()],
        },
        // nothing of the seed is looked at here: an hour should not be made of its heartbeats
        lease_resync: HOUR,
        seed_sync_period: HOUR,
        seed_care_sync_period: HOUR,
        controller_installation_care_sync_period: HOUR,
        ..Settings::default()
    };
    for (purpose, forced, hours) in [
        ("evaluation", false, 0),
        ("production", false, 1),
        ("production", true, 0),
    ] {
        let landscape = Landscape::alone(settings.clone()).await;
        landscape.bucket().await;
        landscape.answer("BackupBucket", "bucket", "Succeeded", json!({})).await;
        landscape.entry(purpose).await;
        landscape.answer("BackupEntry", ENTRY, "Succeeded", json!({})).await;
        let entries = landscape.core("BackupEntry");
        found(&entries, ENTRY, is("Succeeded")).await;
        let deleted = landscape.world.clock.now();
        if forced {
            // the garden's API counts this as a change of the entry; here its spec has to change with it
            let force = json!({"metadata": {"annotations": {"backupentry.core.gardener.cloud/force-deletion": "true"}}, "spec": {"touched": "x"}});
            entries
                .patch(ENTRY, &PatchParams::default(), &Patch::Merge(force))
                .await
                .unwrap();
        }
        entries.delete(ENTRY, &Default::default()).await.unwrap();
        if hours > 0 {
            let pending = found(&entries, ENTRY, is("Pending")).await;
            assert_eq!(last(&pending, "type"), "Delete");
            let text = last(&pending, "description");
            assert!(
                text.starts_with("Deletion of backup entry is scheduled for 2026-03-01 11:00:"),
                "{text}"
            );
            tokio::time::sleep(Duration::from_secs(hours * 3600 - 60)).await;
            assert!(
                is("Pending")(&entries.get(ENTRY).await.unwrap()),
                "{purpose}: it was kept less than {hours} hours"
            );
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        landscape.let_go("BackupEntry", ENTRY).await;
        gone(&entries, ENTRY).await;
        gone(&landscape.secrets("seed"), &format!("entry-{ENTRY}")).await;
        let taken = landscape.world.clock.now().duration_since(deleted).as_secs();
        assert!(
            (hours * 3600..hours * 3600 + 120).contains(&u64::try_from(taken).unwrap()),
            "{purpose} {forced}: {taken} s"
        );
        landscape.stop.cancel();
    }
}
