use gardener_pki::Subject;
use gardener_testkit::cluster::MemoryClusters;
use gardener_testkit::seed::{Seed, eventually, pass};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{NAMESPACE, world};

struct World {
    seed: Seed,
    clusters: MemoryClusters,
    config: Config,
    stop: CancellationToken,
}

impl World {
    async fn new() -> Self {
        let (seed, clusters, config) = world().await;
        let stop = CancellationToken::new();
        tokio::spawn(run(config.clone(), stop.clone()));
        Self {
            seed,
            clusters,
            config,
            stop,
        }
    }

    async fn machine(&self, name: &str, node: Option<&str>) {
        let machines: Api<Machine> = self.seed.api(NAMESPACE);
        let labels = node.map(|node| json!({"node": node}));
        let machine = json!({"metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}, "spec": {}});
        let machine: Machine = serde_json::from_value(machine).unwrap();
        machines.create(&PostParams::default(), &machine).await.unwrap();
    }

    async fn node(&self, name: &str, address: &str) {
        let nodes: Api<Node> = Api::all(self.config.target.clone());
        let node: Node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let status = json!({"status": {"addresses": [
            {"type": "Hostname", "address": name},
            {"type": "InternalIP", "address": address},
        ]}});
        nodes
            .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
    }

    /// Makes a request as a user, and answers its name.
    async fn request(&self, (user, group): (&str, &str), name: &str, signer: &str, subject: &Subject) {
        let groups = [group, "system:masters"];
        // nodes ask with their own rights, others with an administrator's
        let groups = if group == "system:nodes" {
            &groups[..1]
        } else {
            &groups[..]
        };
        let client = self.clusters.client("shoot", user, groups);
        let pem = gardener_pki::request(subject).unwrap().certificate;
        let usage = if subject.server { "server auth" } else { "client auth" };
        let request = json!({"metadata": {"name": name}, "spec": {
            "signerName": signer, "usages": ["digital signature", usage],
        }});
        let mut request: Value = request;
        request["spec"]["request"] = serde_json::to_value(k8s_openapi::ByteString(pem.into_bytes())).unwrap();
        let request: CertificateSigningRequest = serde_json::from_value(request).unwrap();
        let api: Api<CertificateSigningRequest> = Api::all(client);
        api.create(&PostParams::default(), &request).await.unwrap();
    }

    /// What was decided: type, reason and message.
    async fn decided(&self, name: &str) -> (String, String, String) {
        let api: Api<CertificateSigningRequest> = Api::all(self.config.target.clone());
        let found = eventually(&api, name, |found| found.is_some_and(|found| !is_open(found))).await;
        let conditions = found.unwrap().status.unwrap().conditions.unwrap();
        assert_eq!(conditions.len(), 1, "{conditions:?}");
        let own = conditions.into_iter().next().unwrap();
        (own.type_, own.reason.unwrap(), own.message.unwrap())
    }
}

fn serving(node: &str, address: &str) -> Subject {
    let mut subject = Subject::server(&format!("system:node:{node}"), &[node], &[address.parse().unwrap()]);
    subject.organizations = vec!["system:nodes".to_owned()];
    subject
}

const AGENT: &str = "gardener.cloud:node-agent:machine:m";

#[tokio::test(start_paused = true)]
async fn grm_40_kubelets_get_serving_certificates() {
    let world = World::new().await;
    world.node("a", "10.0.0.1").await;
    world.node("b", "10.0.0.2").await;
    world.machine("m", Some("a")).await;
    let (a, b) = (("system:node:a", "system:nodes"), ("system:node:b", "system:nodes"));
    let signer = csr_approval::KUBELET_SERVING;
    world.request(a, "good", signer, &serving("a", "10.0.0.1")).await;
    world.request(a, "wrong", signer, &serving("a", "10.0.0.2")).await;
    world.request(b, "stray", signer, &serving("b", "10.0.0.2")).await;
    let (type_, reason, message) = world.decided("good").await;
    assert_eq!((type_.as_str(), reason.as_str()), ("Approved", "RequestApproved"));
    assert_eq!(message, "Approving kubelet server certificate CSR (all checks passed)");
    let (type_, reason, message) = world.decided("wrong").await;
    assert_eq!((type_.as_str(), reason.as_str()), ("Denied", "RequestDenied"));
    assert!(message.contains("IP addresses in CSR do not match"), "{message}");
    let (type_, _, message) = world.decided("stray").await;
    assert_eq!(type_, "Denied");
    assert!(
        message.contains(r#"Expected exactly one machine in namespace "shoot--local--a" for node "b" but found 0"#),
        "{message}"
    );
    world.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn grm_41_node_agents_get_client_certificates() {
    let world = World::new().await;
    world.machine("m", None).await;
    let signer = csr_approval::API_CLIENT;
    let bootstrap = ("system:bootstrap:abcdef", "system:bootstrappers");
    let subject = Subject::client(AGENT, &["gardener.cloud:node-agents"]);
    world.request(bootstrap, "first", signer, &subject).await;
    assert_eq!(world.decided("first").await.0, "Approved");

    world.node("a", "10.0.0.1").await;
    let machines: Api<Machine> = world.seed.api(NAMESPACE);
    let label = json!({"metadata": {"labels": {"node": "a"}}});
    machines
        .patch("m", &PatchParams::default(), &Patch::Merge(label))
        .await
        .unwrap();
    world.request(bootstrap, "again", signer, &subject).await;
    let (type_, _, message) = world.decided("again").await;
    assert_eq!(type_, "Denied");
    assert!(message.contains("is already bootstrapped"), "{message}");
    world
        .request((AGENT, "gardener.cloud:node-agents"), "renewal", signer, &subject)
        .await;
    assert_eq!(world.decided("renewal").await.0, "Approved");

    let person = Subject::client("jane", &["dev"]);
    world.request(("jane", "dev"), "person", signer, &person).await;
    pass(60).await;
    let api: Api<CertificateSigningRequest> = Api::all(world.config.target.clone());
    assert!(is_open(&api.get("person").await.unwrap()), "left alone");
    world.stop.cancel();
}
