use gardener_controller::operation;
use gardener_testkit::seed::{Seed, eventually, pass};
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, Service, Volume};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::*;

const NAMESPACE: &str = "shoot--local--a";

async fn start() -> (Seed, CancellationToken) {
    let seed = Seed::with_groups(&["druid.gardener.cloud"]).await;
    seed.namespace(NAMESPACE).await;
    let stop = CancellationToken::new();
    let config = Config {
        client: seed.client.clone(),
        namespace: None,
        clock: seed.clock.clone(),
        chance: seed.chance.clone(),
    };
    tokio::spawn(crate::run(config, stop.clone()));
    (seed, stop)
}

fn etcd(replicas: i32) -> Etcd {
    serde_json::from_value(json!({
        "metadata": {"name": "etcd-main", "namespace": NAMESPACE, "annotations": {"gardener.cloud/operation": "reconcile"}},
        "spec": {
            "replicas": replicas,
            "labels": {"gardener.cloud/role": "controlplane", "role": "main"},
            "selector": {"matchLabels": {"role": "main"}},
            "storageCapacity": "25Gi",
            "volumeClaimTemplate": "main-etcd",
            "backup": {},
            "etcd": {"clientUrlTls": {
                "serverTLSSecretRef": {"name": "etcd-server"},
                "tlsCASecretRef": {"name": "ca-etcd", "dataKey": "bundle.crt"},
            }},
        },
    }))
    .unwrap()
}

/// What the StatefulSet controller and the kubelet would do.
async fn run_pods(seed: &Seed, replicas: i32) {
    let sets: Api<StatefulSet> = seed.api(NAMESPACE);
    let set = sets.get("etcd-main").await.unwrap();
    let pods: Api<Pod> = seed.api(NAMESPACE);
    for index in 0..replicas {
        let name = format!("etcd-main-{index}");
        let template = set.spec.template.clone();
        let mut pod = Pod {
            metadata: template.metadata.unwrap(),
            spec: template.spec,
            status: None,
        };
        pod.metadata.name = Some(name.clone());
        // as the StatefulSet's controller does
        for claim in set.spec.volume_claim_templates.iter().flatten() {
            let volume = Volume {
                name: claim.name_any(),
                persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                    claim_name: format!("{}-{name}", claim.name_any()),
                    ..PersistentVolumeClaimVolumeSource::default()
                }),
                ..Volume::default()
            };
            let spec = pod.spec.get_or_insert_default();
            spec.volumes.get_or_insert_default().push(volume);
        }
        if pods.get_opt(&name).await.unwrap().is_none() {
            pods.create(&PostParams::default(), &pod).await.unwrap();
        }
        let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(ready))
            .await
            .unwrap();
    }
    let status = json!({"status": {
        "observedGeneration": set.metadata.generation, "replicas": replicas, "readyReplicas": replicas,
        "updatedReplicas": replicas, "currentRevision": "1", "updateRevision": "1",
    }});
    sets.patch_status("etcd-main", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

fn condition<'a>(etcd: &'a Etcd, kind: &str) -> &'a str {
    let found = etcd.status.conditions.iter().find(|condition| condition.r#type == kind);
    found.map_or("", |condition| &condition.status)
}

#[tokio::test(start_paused = true)]
async fn an_etcd_becomes_ready_with_its_pods() {
    let (seed, _stop) = start().await;
    let etcds: Api<Etcd> = seed.api(NAMESPACE);
    etcds.create(&PostParams::default(), &etcd(3)).await.unwrap();
    let applied = eventually(&etcds, "etcd-main", |etcd| {
        etcd.is_some_and(|etcd| {
            operation::operation(etcd).is_none() && etcd.status.observed_generation == etcd.metadata.generation
        })
    })
    .await
    .unwrap();
    assert_eq!(applied.status.last_operation.as_ref().unwrap().state, "Succeeded");
    assert_eq!(applied.status.ready, Some(false));
    assert_eq!(condition(&applied, status::READY), "False");

    let set = seed.api::<StatefulSet>(NAMESPACE).get("etcd-main").await.unwrap();
    let spec = set.spec;
    assert_eq!(spec.replicas, Some(3));
    assert_eq!(spec.template.metadata.unwrap().labels.unwrap()["role"], "main");
    let claim = &spec.volume_claim_templates.unwrap()[0];
    assert_eq!(claim.metadata.name.as_deref(), Some("main-etcd"));
    let services: Api<Service> = seed.api(NAMESPACE);
    for name in ["etcd-main-client", "etcd-main-peer"] {
        assert!(services.get_opt(name).await.unwrap().is_some(), "{name}");
    }
    let config = seed.api::<ConfigMap>(NAMESPACE).get("etcd-main-config").await.unwrap();
    let text = &config.data.unwrap()["etcd.conf.yaml"];
    assert!(
        text.contains("etcd-main-2=http://etcd-main-2.etcd-main-peer.shoot--local--a.svc:2380"),
        "{text}"
    );

    run_pods(&seed, 1).await;
    pass(5).await;
    let one = etcds.get("etcd-main").await.unwrap();
    assert_eq!(
        (one.status.ready_replicas, condition(&one, status::READY)),
        (Some(1), "False")
    );

    run_pods(&seed, 3).await;
    let ready = eventually(&etcds, "etcd-main", |etcd| {
        etcd.is_some_and(|etcd| etcd.status.ready == Some(true))
    })
    .await
    .unwrap();
    assert_eq!(ready.status.members.len(), 3);
    for kind in [status::READY, status::ALL_MEMBERS_READY, status::ALL_MEMBERS_UPDATED] {
        assert_eq!(condition(&ready, kind), "True", "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_spec_waits_for_the_operation() {
    let (seed, _stop) = start().await;
    let etcds: Api<Etcd> = seed.api(NAMESPACE);
    let sets: Api<StatefulSet> = seed.api(NAMESPACE);
    etcds.create(&PostParams::default(), &etcd(1)).await.unwrap();
    eventually(&sets, "etcd-main", |set| set.is_some()).await;
    pass(1).await;
    let scale =
        |annotations: serde_json::Value| json!({"metadata": {"annotations": annotations}, "spec": {"replicas": 0}});
    let patch = Patch::Merge(scale(json!({})));
    etcds.patch("etcd-main", &PatchParams::default(), &patch).await.unwrap();
    pass(30).await;
    let replicas = |set: &StatefulSet| set.spec.replicas;
    assert_eq!(replicas(&sets.get("etcd-main").await.unwrap()), Some(1));
    let patch = Patch::Merge(scale(json!({"gardener.cloud/operation": "reconcile"})));
    etcds.patch("etcd-main", &PatchParams::default(), &patch).await.unwrap();
    eventually(&sets, "etcd-main", |set| {
        set.is_some_and(|set| replicas(set) == Some(0))
    })
    .await;
    eventually(&etcds, "etcd-main", |etcd| {
        etcd.is_some_and(|etcd| etcd.status.observed_generation == etcd.metadata.generation)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_etcd_takes_its_objects_along() {
    let (seed, _stop) = start().await;
    let etcds: Api<Etcd> = seed.api(NAMESPACE);
    let sets: Api<StatefulSet> = seed.api(NAMESPACE);
    etcds.create(&PostParams::default(), &etcd(1)).await.unwrap();
    eventually(&sets, "etcd-main", |set| set.is_some()).await;
    pass(1).await;
    etcds.delete("etcd-main", &DeleteParams::default()).await.unwrap();
    eventually(&etcds, "etcd-main", |etcd| etcd.is_none()).await;
    assert!(sets.get_opt("etcd-main").await.unwrap().is_none());
    let services = seed.api::<Service>(NAMESPACE).list(&Default::default()).await.unwrap();
    assert!(services.items.is_empty());
    let leases = seed.api::<Lease>(NAMESPACE).list(&Default::default()).await.unwrap();
    assert!(leases.items.is_empty());
}
