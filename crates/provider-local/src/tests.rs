use gardener_apis::extensions::v1alpha1::{BackupEntry, DNSRecord, Infrastructure, Network, OperatingSystemConfig};
use gardener_extension::ExtensionKind;
use gardener_testkit::seed::{Seed, eventually};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::*;

const NAMESPACE: &str = "shoot--local--a";

async fn start() -> Seed {
    let seed = Seed::with_groups(&["extensions.gardener.cloud", "resources.gardener.cloud"]).await;
    seed.namespace(NAMESPACE).await;
    seed.namespace("garden").await;
    let config = Config {
        client: seed.client.clone(),
        namespace: None,
        clock: seed.clock.clone(),
        chance: seed.chance.clone(),
    };
    tokio::spawn(run(config, CancellationToken::new()));
    seed
}

/// Creates an object and waits until the extension is done with it.
async fn succeed<K: ExtensionKind>(seed: &Seed, name: &str, spec: Value) -> K {
    let object: K = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
    let api = K::api(seed.client.clone(), NAMESPACE);
    api.create(&PostParams::default(), &object).await.unwrap();
    let done = eventually(&api, name, |object: Option<&K>| {
        object.is_some_and(|object| object.last_operation().is_some_and(|last| last.state == "Succeeded"))
    });
    done.await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn ext_30_infrastructure_tells_the_networks() {
    let seed = start().await;
    let spec = json!({"type": "local", "region": "local", "secretRef": {"name": "cloudprovider"}});
    let infrastructure: Infrastructure = succeed(&seed, "a", spec).await;
    assert_eq!(infrastructure.status.nodes_cidr.as_deref(), Some("10.0.0.0/16"));
    assert_eq!(infrastructure.status.networking.unwrap().nodes, ["10.0.0.0/16"]);
    assert!(infrastructure.status.provider_status.is_some());
}

#[tokio::test(start_paused = true)]
async fn networks_and_records_tell_what_they_are() {
    let seed = start().await;
    let spec = json!({"type": "calico", "podCIDR": "10.3.0.0/16", "serviceCIDR": "10.4.0.0/16"});
    let network: Network = succeed(&seed, "a", spec).await;
    assert_eq!(network.status.ip_families, ["IPv4"]);
    let spec = json!({
        "type": "local", "name": "api.a.local.internal.local.gardener.cloud", "recordType": "A", "values": ["10.2.0.7"],
        "secretRef": {"name": "dnsrecord-a-internal"},
    });
    let record: DNSRecord = succeed(&seed, "a-internal", spec).await;
    assert_eq!(
        record.status.zone.as_deref(),
        Some("a.local.internal.local.gardener.cloud")
    );
    assert_eq!(record.status.conditions[0].r#type, "Created");
    assert_eq!(record.status.provider_status.unwrap()["values"], json!(["10.2.0.7"]));
}

#[tokio::test(start_paused = true)]
async fn ext_40_provisioning_makes_user_data() {
    let seed = start().await;
    let spec = json!({
        "type": "local", "purpose": "provision",
        "files": [{"path": "/token", "content": {"inline": {"encoding": "", "data": "<<BOOTSTRAP_TOKEN>>"}, "transmitUnencoded": true}}],
    });
    let osc: OperatingSystemConfig = succeed(&seed, "key-init", spec).await;
    let reference = osc.status.cloud_config.unwrap().secret_ref;
    let secrets: kube::Api<Secret> = seed.api(NAMESPACE);
    let secret = secrets.get(reference.name.as_deref().unwrap()).await.unwrap();
    let text = String::from_utf8(secret.data.unwrap()["cloud_config"].0.clone()).unwrap();
    assert!(text.contains("<<BOOTSTRAP_TOKEN>>"));
    let spec = json!({"type": "local", "purpose": "reconcile"});
    let osc: OperatingSystemConfig = succeed(&seed, "key-original", spec).await;
    assert_eq!(osc.status.cloud_config, None);
}

#[tokio::test(start_paused = true)]
async fn ext_55_an_entry_makes_the_secret_of_etcd() {
    let seed = start().await;
    let credentials: Secret =
        serde_json::from_value(json!({"metadata": {"name": "entry-a"}, "stringData": {"hostPath": "/backups"}}))
            .unwrap();
    let garden: kube::Api<Secret> = seed.api("garden");
    garden.create(&PostParams::default(), &credentials).await.unwrap();
    let spec = json!({
        "type": "local", "region": "local", "bucketName": "bucket",
        "secretRef": {"name": "entry-a", "namespace": "garden"},
    });
    let name = format!("{NAMESPACE}--uid");
    let entry: BackupEntry = succeed(&seed, &name, spec).await;
    let secrets: kube::Api<Secret> = seed.api(NAMESPACE);
    let secret = secrets.get("etcd-backup").await.unwrap();
    let data = secret.data.as_ref().unwrap();
    assert_eq!(
        (data["bucketName"].0.as_slice(), data["hostPath"].0.as_slice()),
        (&b"bucket"[..], &b"/backups"[..])
    );
    assert_eq!(secret.annotations()["backup.gardener.cloud/created-by"], name);
    let entries = BackupEntry::api(seed.client.clone(), "");
    entries.delete(&entry.name_any(), &Default::default()).await.unwrap();
    eventually(&entries, &name, |entry| entry.is_none()).await;
    assert!(secrets.get_opt("etcd-backup").await.unwrap().is_none());
}
