//! Cases in which plugins act that nobody names: who confirmed a deletion, what comes with registrations, what credentials are bound.

use gardener_apiserver::UserInfo;
use serde_json::{Value, json};

use super::cases::{ONE, change, core, garden, refused, set, shoot};
use super::garden::text;
use crate::admission::webhooks::ResourceSize;

const CORE: &str = "core.gardener.cloud";
const CONFIRMED_BY: &str = "/metadata/annotations/deletion.gardener.cloud~1confirmed-by";

#[tokio::test]
async fn adm_58_who_confirmed_is_not_told_by_others() {
    let mut garden = garden().await;
    let annotate = |confirmation: &str, by: Value| {
        change(json!({"metadata": {"annotations": {
            "confirmation.gardener.cloud/deletion": confirmation, "deletion.gardener.cloud/confirmed-by": by,
        }}}))
    };
    // nobody has confirmed anything
    let unconfirmed = garden.update(ONE, "", annotate("false", "bob".into())).await.unwrap();
    assert_eq!(text(&unconfirmed, CONFIRMED_BY), "");
    garden.user = UserInfo::new("alice", &[]);
    let confirmed = garden.update(ONE, "", annotate("true", "bob".into())).await.unwrap();
    assert_eq!(text(&confirmed, CONFIRMED_BY), "alice");
    garden.put(CORE, "shoots", confirmed);
    for (by, name) in [(json!("bob"), "somebody else"), (Value::Null, "nobody")] {
        let told = garden.update(ONE, "", annotate("true", by)).await.unwrap();
        assert_eq!(text(&told, CONFIRMED_BY), "alice", "{name}");
    }
    set(
        &mut garden,
        "projects",
        ("", "dev"),
        json!({"spec": {"dualApprovalForDeletion": [{"resource": "shoots", "selector": {}}]}}),
    );
    let own = garden.delete("Shoot", "garden-dev", "one").await;
    refused(own, 403, "you are not allowed to both confirm the deletion");
    garden.user = UserInfo::new("bob", &[]);
    assert!(garden.delete("Shoot", "garden-dev", "one").await.is_ok());
}

#[tokio::test]
async fn adm_34_backup_entries_need_what_keeps_them() {
    let mut garden = garden().await;
    let bucket = core(
        "BackupBucket",
        ("", "b"),
        json!({"spec": {"provider": {"type": "other", "region": "eu"}, "seedName": "s1"}}),
    );
    garden.put(CORE, "backupbuckets", bucket);
    let entry = core(
        "BackupEntry",
        ("garden-dev", "shoot--dev--one--u"),
        json!({"spec": {"bucketName": "b", "seedName": "s1"}}),
    );
    let why = "given BackupEntry references bucket using non-registered provider type: spec.bucketName (\"other\")";
    refused(garden.create(entry.clone()).await, 403, why);
    set(
        &mut garden,
        "backupbuckets",
        ("", "b"),
        json!({"spec": {"provider": {"type": "local"}}}),
    );
    assert!(garden.create(entry).await.is_ok());
}

#[tokio::test]
async fn adm_40_default_domains_that_are_none() {
    let mut garden = garden().await;
    set(
        &mut garden,
        "seeds",
        ("", "s1"),
        json!({"spec": {"dns": {"defaults": []}}}),
    );
    let on_seed = || shoot(json!({"metadata": {"name": "two"}, "spec": {"seedName": "s1"}}));
    let secret = |annotations: Value| {
        json!({"metadata": {
            "name": "domain", "namespace": "garden", "labels": {"gardener.cloud/role": "default-domain"}, "annotations": annotations,
        }})
    };
    for (annotations, why) in [
        (Value::Null, "domain secret has no annotations"),
        (
            json!({"dns.gardener.cloud/provider": "local"}),
            "missing dns domain annotation on domain secret",
        ),
        (
            json!({"dns.gardener.cloud/domain": "x.y"}),
            "missing dns provider annotation on domain secret",
        ),
    ] {
        garden.put("", "secrets", secret(annotations));
        refused(
            garden.create(on_seed()).await,
            500,
            &format!("error retrieving default domains: {why}"),
        );
    }
}

#[tokio::test]
async fn adm_79_bound_credentials_get_their_labels_back() {
    let mut garden = garden().await.with_webhooks(ResourceSize::default());
    let secret = core("InternalSecret", ("garden-dev", "key"), json!({"type": "Opaque"}));
    let label = "/metadata/labels/provider.shoot.gardener.cloud~1local";
    let unbound = garden.create(secret.clone()).await.unwrap();
    assert_eq!(text(&unbound, label), "");
    let binding = json!({"metadata": {"name": "more", "namespace": "garden-dev"}, "provider": {"type": "local"}, "credentialsRef": {
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "InternalSecret", "namespace": "garden-dev", "name": "key",
    }});
    garden.put("security.gardener.cloud", "credentialsbindings", binding);
    let place = ("InternalSecret", "garden-dev", "key");
    let bound = garden.update(place, "", change(json!({}))).await.unwrap();
    assert_eq!(text(&bound, label), "true");
}
