//! What a shoot's control plane waits for before it sleeps [CP-120].

use kube::api::Patch;

use super::*;

#[tokio::test(start_paused = true)]
async fn cp_120_a_control_plane_sleeps_after_all_that_runs_on_nodes() {
    let landscape = Landscape::start().await;
    let world = &landscape.world;
    world
        .create("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), shoot(true))
        .await;
    landscape.wait("Create", "Succeeded").await;
    let node = json!({"metadata": {"name": "node"}});
    world.create("shoot", "", "v1", "Node", None, node).await;
    let pod = json!({
        "metadata": {"name": "pod", "namespace": "default"},
        "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i"}]},
    });
    world.create("shoot", "", "v1", "Pod", Some("default"), pod).await;
    let shoot_client = world.client("shoot");
    let pods = dynamic(&shoot_client, "", "v1", "Pod", Some("default"));
    let running = Patch::Merge(json!({"status": {"phase": "Running"}}));
    pods.patch_status("pod", &Default::default(), &running).await.unwrap();
    let service = json!({
        "metadata": {"name": "own", "namespace": "default"},
        "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]},
    });
    world
        .create("shoot", "", "v1", "Service", Some("default"), service)
        .await;
    let endpoints = json!({
        "metadata": {"name": "own", "namespace": "default"},
        "subsets": [{"addresses": [{"ip": "10.3.0.7"}], "ports": [{"port": 80}]}],
    });
    world
        .create("shoot", "", "v1", "Endpoints", Some("default"), endpoints)
        .await;
    let attachment = json!({
        "metadata": {"name": "volume"},
        "spec": {"attacher": "local", "nodeName": "node", "source": {"persistentVolumeName": "v"}},
    });
    let storage = "storage.k8s.io";
    world
        .create("shoot", storage, "v1", "VolumeAttachment", None, attachment)
        .await;
    let attachments = dynamic(&shoot_client, storage, "v1", "VolumeAttachment", None);

    let shoots = dynamic(&world.client("garden"), CORE, "v1beta1", "Shoot", Some("garden-dev"));
    let patch = Patch::Merge(json!({"spec": {"hibernation": {"enabled": true}}}));
    shoots.patch("my", &Default::default(), &patch).await.unwrap();
    let nodes = dynamic(&shoot_client, "", "v1", "Node", None);
    let all_endpoints = dynamic(&shoot_client, "", "v1", "Endpoints", Some("default"));
    for what in ["node", "pod", "endpoints"] {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let last = landscape.shoot().await["status"]["lastOperation"].clone();
        assert_eq!(last["state"], "Processing", "{what}: {last}");
        assert_eq!(last["description"], "Hibernating control plane", "{what}");
        let server = world
            .get(
                "seed",
                "apps",
                "v1",
                "Deployment",
                Some("shoot--dev--my"),
                "kube-apiserver",
            )
            .await;
        assert_ne!(server["spec"]["replicas"], 0, "{what}");
        assert!(attachments.get_opt("volume").await.unwrap().is_some(), "{what}");
        let gone = match what {
            "node" => nodes.delete("node", &Default::default()).await.map(drop),
            "pod" => pods
                .delete("pod", &kube::api::DeleteParams::default().grace_period(0))
                .await
                .map(drop),
            _ => all_endpoints.delete("own", &Default::default()).await.map(drop),
        };
        gone.unwrap();
    }
    landscape.wait("Reconcile", "Succeeded").await;
    assert!(attachments.get_opt("volume").await.unwrap().is_none());
    assert_eq!(landscape.shoot().await["status"]["hibernated"], true);
    landscape.stop.cancel();
}
