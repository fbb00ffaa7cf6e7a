//! A cluster, a signer that signs everything, and a machine whose kubelet only registers its node.

use std::sync::Arc;

use gardener_testkit::seed::{Seed, eventually, pass};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;

use super::*;

#[derive(Clone)]
struct Host {
    client: Client,
    joined: Arc<Mutex<Vec<NodeSpec>>>,
    left: Arc<Mutex<bool>>,
}

#[async_trait]
impl NodeHost for Host {
    fn client(&self, bootstrap: &Bootstrap, _: &Credentials) -> Result<Client, HostError> {
        assert_eq!(bootstrap.server, "https://api.a");
        Ok(self.client.clone())
    }
    async fn join(&self, spec: NodeSpec) -> Result<(), HostError> {
        let node: Node =
            serde_json::from_value(json!({"metadata": {"name": spec.name, "labels": spec.labels}})).unwrap();
        let nodes: Api<Node> = Api::all(self.client.clone());
        if nodes.get_opt(&spec.name).await.unwrap().is_none() {
            nodes.create(&PostParams::default(), &node).await.unwrap();
        }
        self.joined.lock().push(spec);
        Ok(())
    }
    async fn leave(&self) {
        *self.left.lock() = true;
    }
}

/// Approves and signs whatever is asked.
async fn sign(client: Client) {
    let api: Api<CertificateSigningRequest> = Api::all(client);
    loop {
        for request in api.list(&Default::default()).await.unwrap().items {
            let name = request.name_any();
            if request
                .status
                .as_ref()
                .is_none_or(|status| status.certificate.is_none())
            {
                let certificate =
                    ByteString(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec());
                let status = json!({"status": {"certificate": certificate}});
                api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
                    .await
                    .unwrap();
            }
        }
        pass(1).await;
    }
}

fn secret(version: &str, checksum: &str, other: &str) -> Secret {
    let osc = json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "OperatingSystemConfig", "metadata": {"name": "a"}, "spec": {
        "type": "local", "purpose": "reconcile",
        "units": [{"name": "kubelet.service", "content": format!("ExecStart=/opt/bin/kubelet --node-labels={}={version}", osc::VERSION_LABEL)}],
        "files": [{"path": "/etc/other", "content": {"inline": {"encoding": "", "data": other}}}],
    }});
    serde_json::from_value(json!({
        "metadata": {"name": "gardener-node-agent-a-1", "annotations": {"checksum/data-script": checksum}},
        "stringData": {"osc.yaml": osc.to_string()},
    }))
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_machine_joins_and_follows_its_secret() {
    let seed = Seed::with_groups(&[]).await;
    tokio::spawn(sign(seed.client.clone()));
    let host = Host {
        client: seed.client.clone(),
        joined: Arc::default(),
        left: Arc::default(),
    };
    let config = json!({
        "apiServer": {"server": "https://api.a"}, "controllers": {"operatingSystemConfig": {"secretName": "gardener-node-agent-a-1"}},
    });
    let file =
        |name: &str, content: &str| json!({"path": format!("/var/lib/gardener-node-agent/{name}"), "content": content});
    let files = [
        file("machine-name", "m-1"),
        file("credentials/bootstrap-token", "id.secret"),
        file("cluster-ca.crt", "CA"),
        file("config.yaml", &config.to_string()),
    ];
    let machine = Machine {
        user_data: format!("#cloud-config\n{}", json!({"write_files": files})),
        node_name: "machine-m-1".into(),
        host: host.clone(),
        clock: seed.clock.clone(),
    };
    let stop = CancellationToken::new();
    let running = tokio::spawn(run_machine(machine, stop.clone()));
    pass(60).await;
    // without the secret there is nothing to run
    assert!(host.joined.lock().is_empty());
    let secrets: Api<Secret> = seed.api("kube-system");
    secrets
        .create(&PostParams::default(), &secret("1.36.0", "one", ""))
        .await
        .unwrap();
    let nodes: Api<Node> = Api::all(seed.client.clone());
    let applied = |checksum: &'static str| {
        move |node: Option<&Node>| {
            node.is_some_and(|node| {
                node.annotations().get("checksum/cloud-config-data").map(String::as_str) == Some(checksum)
            })
        }
    };
    let node = eventually(&nodes, "machine-m-1", applied("one")).await.unwrap();
    assert_eq!(node.labels()[osc::VERSION_LABEL], "1.36.0");
    assert!(node.labels().contains_key("node-role.kubernetes.io/worker"));
    let requests: Api<CertificateSigningRequest> = Api::all(seed.client.clone());
    let requests = requests.list(&Default::default()).await.unwrap().items;
    assert_eq!(
        (requests.len(), &*requests[0].spec.signer_name),
        (1, "kubernetes.io/kube-apiserver-client-kubelet")
    );
    let leases: Api<Lease> = seed.api("kube-system");
    assert!(
        eventually(&leases, "gardener-node-agent-machine-m-1", |lease| lease.is_some())
            .await
            .is_some()
    );

    // GNA-C2: what does not concern the kubelet does not restart it
    let update = |version: &str, checksum: &str, other: &str| {
        Patch::Merge(serde_json::to_value(secret(version, checksum, other)).unwrap())
    };
    let name = "gardener-node-agent-a-1";
    secrets
        .patch(name, &PatchParams::default(), &update("1.36.0", "two", "x"))
        .await
        .unwrap();
    eventually(&nodes, "machine-m-1", applied("two")).await;
    assert_eq!(host.joined.lock().len(), 1);
    // GNA-15
    secrets
        .patch(name, &PatchParams::default(), &update("1.36.1", "three", "x"))
        .await
        .unwrap();
    eventually(&nodes, "machine-m-1", applied("three")).await;
    let versions: Vec<String> = host
        .joined
        .lock()
        .iter()
        .map(|spec| spec.kubernetes_version.clone())
        .collect();
    assert_eq!(versions, ["1.36.0", "1.36.1"]);
    stop.cancel();
    running.await.unwrap().unwrap();
    assert!(*host.left.lock());
}
