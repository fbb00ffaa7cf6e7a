//! Versions reach the nodes: maintenance brings a shoot from patch to patch and, when its version has expired, to the next minor; its nodes follow, one
//! after the other.

use gardener_apis::core::v1beta1::CloudProfile;

use super::*;

/// What is offered: Kubernetes versions with their ends, and versions of the machine image.
async fn offer(landscape: &Landscape, kubernetes: &[(&str, Option<&str>)], images: &[&str]) -> Result<(), kube::Error> {
    let kubernetes: Vec<Value> = kubernetes
        .iter()
        .map(|(version, expires)| json!({"version": version, "expirationDate": expires}))
        .collect();
    let images: Vec<Value> = images
        .iter()
        .map(|version| json!({"version": version, "cri": [{"name": "containerd"}]}))
        .collect();
    let patch = json!({"spec": {
        "kubernetes": {"versions": kubernetes},
        "machineImages": [{"name": "local", "updateStrategy": "minor", "versions": images}],
    }});
    let profiles: Api<CloudProfile> = Api::all(landscape.garden());
    let params = PatchParams::default();
    profiles.patch("local", &params, &Patch::Merge(patch)).await.map(|_| ())
}

/// Kubelet's version and operating system of each node, and whether it is ready.
async fn node_versions(story: &Story) -> Result<Vec<(String, String, bool)>, String> {
    let nodes: Api<Node> = Api::all(story.landscape.shoot(CONTROL_PLANE));
    let nodes = nodes
        .list(&ListParams::default())
        .await
        .map_err(|error| error.to_string())?;
    let versions = nodes.items.into_iter().map(|node| {
        let status = node.status.unwrap_or_default();
        let mut conditions = status.conditions.iter().flatten();
        let is_ready = conditions.any(|own| own.type_ == "Ready" && own.status == "True");
        let info = status.node_info.unwrap_or_default();
        (info.kubelet_version, info.os_image, is_ready)
    });
    Ok(versions.collect())
}

/// Waits until all nodes run these versions, of which two are always there to work on.
async fn nodes_come_to(story: &Story, kubelet: &str, os: &str) {
    let (kubelet, os) = (format!("v{kubelet}"), format!("local {os} (simulated)"));
    let (wanted_kubelet, wanted_os) = (&kubelet, &os);
    let look = || async move {
        let nodes = node_versions(story).await?;
        let ready = nodes.iter().filter(|(.., is_ready)| *is_ready).count();
        assert!(ready >= 2 && nodes.len() <= 4, "one at a time: {nodes:?}");
        let all = nodes
            .iter()
            .all(|(kubelet, os, is_ready)| kubelet == wanted_kubelet && os == wanted_os && *is_ready);
        match all && nodes.len() == 2 {
            true => Ok(()),
            false => Err(format!("{nodes:?}")),
        }
    };
    story
        .landscape
        .until(&format!("nodes with {kubelet} and {os}"), look)
        .await;
}

async fn maintain(story: &Story) {
    let annotation = "gardener.cloud/operation";
    story
        .patch(json!({"metadata": {"annotations": {annotation: "maintain"}}}))
        .await;
    let taken = || async {
        match story.shoot().await.operations(annotation).is_empty() {
            true => Ok(()),
            false => Err("maintenance has not come yet".to_owned()),
        }
    };
    story.landscape.until("maintained", taken).await;
}

async fn versions(story: &Story) -> (String, String) {
    let spec = story.shoot().await.spec;
    let image = spec.provider.workers[0].machine.image.clone().unwrap();
    (spec.kubernetes_version().to_owned(), image.version.unwrap())
}

fn pair(kubernetes: &str, image: &str) -> (String, String) {
    (kubernetes.to_owned(), image.to_owned())
}

#[tokio::test(start_paused = true)]
async fn maintenance_brings_versions_to_the_nodes() {
    let landscape = Landscape::start(1).await;
    let two_minors = [("1.36.0", None), ("1.35.4", None), ("1.34.1", None)];
    offer(&landscape, &two_minors, &["1.0.0"]).await.unwrap();
    let mut manifest = manifests::shoot();
    manifest.text = manifest
        .text
        .replace("  kubernetes:\n", "  kubernetes:\n    version: 1.34.1\n");
    manifest.text = manifest.text.replace("      minimum: 1\n", "      minimum: 2\n");
    let story = Story::create(landscape, &manifest).await;
    nodes_come_to(&story, "1.34.1", "1.0.0").await;

    // a patch: nothing but the kubelets changes
    let with_patch = [("1.36.0", None), ("1.35.4", None), ("1.34.3", None), ("1.34.1", None)];
    offer(&story.landscape, &with_patch, &["1.0.0"]).await.unwrap();
    maintain(&story).await;
    assert_eq!(versions(&story).await, pair("1.34.3", "1.0.0"));
    story.settled("with the patch", "Reconcile").await;
    nodes_come_to(&story, "1.34.3", "1.0.0").await;

    // the end of a minor, and an image: the nodes are other ones
    let ended = "2026-01-01T00:00:00Z";
    let at_its_end = [
        ("1.36.0", None),
        ("1.35.4", None),
        ("1.34.3", Some(ended)),
        ("1.34.1", Some(ended)),
    ];
    let clock = story.landscape.clock().now();
    assert!(clock > ended.parse().unwrap(), "{clock}");
    offer(&story.landscape, &at_its_end, &["1.1.0", "1.0.0"]).await.unwrap();
    let jump = json!({"spec": {"kubernetes": {"version": "1.36.0"}}});
    let refusal = story
        .shoots
        .patch("local", &PatchParams::default(), &Patch::Merge(jump))
        .await;
    let refusal = refusal.unwrap_err().to_string();
    assert!(
        refusal.contains("kubernetes version upgrade cannot skip a minor version"),
        "{refusal}"
    );
    maintain(&story).await;
    assert_eq!(versions(&story).await, pair("1.35.4", "1.1.0"));
    let last = story.shoot().await.status.last_maintenance.unwrap();
    assert!(
        last.description
            .contains("Reason: Kubernetes version expired - force update required"),
        "{last:?}"
    );
    story.settled("with the next minor", "Reconcile").await;
    nodes_come_to(&story, "1.35.4", "1.1.0").await;
    story.nodes(&[("local", 2)]).await;

    // what is used stays, what is not may go
    let without = |kept: &'static str| [("1.36.0", None), (kept, None)];
    let refusal = offer(&story.landscape, &without("1.34.3"), &["1.1.0"])
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refusal.contains("unable to delete Kubernetes version \"1.35.4\" from CloudProfile \"local\" - version is still in use by shoot 'garden-local/local'"),
        "{refusal}"
    );
    let refusal = offer(&story.landscape, &without("1.35.4"), &["1.0.0"])
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refusal.contains("unable to delete Machine image version 'local/1.1.0'"),
        "{refusal}"
    );
    offer(&story.landscape, &without("1.35.4"), &["1.1.0"]).await.unwrap();
    story.landscape.stop().await;
}
