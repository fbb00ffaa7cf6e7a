//! Our API server answers every sequence as kube-apiserver did when it was recorded, but for steps that say why not.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use gardener_apiserver::handle::Caller;
use gardener_apiserver::user::MASTERS;
use gardener_apiserver::webhooks::{Answer, Endpoint, Transport};
use gardener_apiserver::{LogicalCluster, UserInfo, object};
use gardener_conformance::sequence::{Recording, Sequence, Step};
use gardener_conformance::webhook::Webhook;
use gardener_conformance::{compare, player, sequence};
use gardener_store::{Change, Expect, Key, Topic};
use gardener_testkit::cluster::MemoryClusters;
use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// How many sequences run at a time.
const AT_ONCE: usize = 16;

/// Calls of webhooks that stay in the process. Whoever is not the scripted one is not there.
struct InProcess(Webhook);

#[async_trait]
impl Transport for InProcess {
    async fn post(&self, _: &LogicalCluster, endpoint: &Endpoint, _: Duration, body: Bytes) -> Result<Answer, String> {
        let url = endpoint.url.as_deref().unwrap_or_default();
        let Some(path) = url.strip_prefix(&self.0.url) else {
            return Err(match &endpoint.service {
                Some(service) => format!("service {:?} not found", service.name),
                None => {
                    let host = url.trim_start_matches("https://").split('/').next().unwrap_or_default();
                    format!("dial tcp {host}: connect: connection refused")
                }
            });
        };
        let (status, body) = self.0.answer(path, &body).await;
        Ok(Answer {
            status,
            content_type: "application/json".to_owned(),
            body: body.into(),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn our_answers_are_kube_apiservers() -> anyhow::Result<()> {
    let clusters = MemoryClusters::new();
    clusters.open("conformance").await;
    // who asks the reference server has a uid
    let administrator = UserInfo {
        uid: "admin".to_owned(),
        ..UserInfo::new("admin", &[MASTERS])
    };
    // from outside, as who asks the reference server
    let server = clusters.server.clone();
    let client = Client::new(
        tower::service_fn(move |request: Request<Body>| {
            let (server, user) = (server.clone(), Some(administrator.clone()));
            let caller = Caller {
                cluster: "conformance".to_owned(),
                user,
                outside: true,
                ..Caller::default()
            };
            async move { Ok::<_, Infallible>(server.serve(caller, request, None).await) }
        }),
        "default",
    );
    let range = json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/12"]}});
    let refused = refusal(&client, "/apis/networking.k8s.io/v1/servicecidrs", range).await?;
    anyhow::ensure!(refused.is_empty(), "the reference server's range: {refused}");
    let webhook = Webhook::in_process();
    let (cluster, _) = clusters
        .server
        .cluster("conformance")
        .ok_or_else(|| anyhow::anyhow!("the cluster is open"))?;
    cluster.webhooks().use_transport(Arc::new(InProcess(webhook.clone())));
    let mut cases: Vec<(String, Sequence, Recording)> = Vec::new();
    for topic in sequence::topics()? {
        let recorded = topic.recorded()?;
        for sequence in topic.sequences {
            let name = format!("{}: {}", topic.name, sequence.name);
            let found = recorded.iter().find(|own| own.name == sequence.name).cloned();
            let found = found.ok_or_else(|| anyhow::anyhow!("{name} was never recorded"))?;
            cases.push((name, sequence, found));
        }
    }
    // where nobody judges writes, some of them take a shorter way
    cases.sort_by_key(|(_, sequence, _)| brings_judges(sequence));
    let tells_excused = std::env::var_os("GARDENER_TEST_EXCUSED").is_some();
    let mut wrong = futures::stream::iter(cases.iter().enumerate())
        .map(|(number, (name, sequence, recorded))| {
            let (client, webhook) = (client.clone(), &webhook);
            async move {
                let ours = player::play(&client, webhook, sequence, &format!("sequence-{number}")).await;
                if let (true, Ok(ours)) = (tells_excused, &ours) {
                    for line in compare::excused(sequence, recorded, ours) {
                        println!("{name} {line}");
                    }
                }
                let wrong = match ours {
                    Ok(ours) => compare::differences(sequence, recorded, &ours),
                    Err(error) => vec![format!("{error:#}")],
                };
                (!wrong.is_empty()).then(|| format!("{name}\n  {}", wrong.join("\n  ")))
            }
        })
        .buffered(AT_ONCE);
    let mut report = Vec::new();
    while let Some(found) = wrong.next().await {
        report.extend(found);
    }
    let steps: Vec<&Step> = cases.iter().flat_map(|(_, sequence, _)| &sequence.steps).collect();
    let excused = steps.iter().filter(|step| step.differs.is_some()).count();
    println!("{} sequences, {} steps, {excused} differ", cases.len(), steps.len());
    anyhow::ensure!(
        report.is_empty(),
        "{} of {} sequences:\n{}",
        report.len(),
        cases.len(),
        report.join("\n")
    );
    Ok(())
}

/// Whether webhooks or policies are set up on the way.
fn brings_judges(sequence: &Sequence) -> bool {
    let mut steps = sequence.steps.iter();
    steps.any(|step| step.request.contains("admissionregistration.k8s.io"))
}

/// Writes an object and answers the refusal's message; empty when it was not refused.
async fn refusal(client: &kube::Client, path: &str, object: Value) -> anyhow::Result<String> {
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(object.to_string().into_bytes())?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(String::new()),
        Err(kube::Error::Api(status)) => Ok(status.message),
        Err(error) => Err(error.into()),
    }
}

#[tokio::test]
async fn webhooks_are_asked_by_https() -> anyhow::Result<()> {
    let clusters = MemoryClusters::new();
    let client = clusters.open("tls").await;
    let (cluster, _) = clusters
        .server
        .cluster("tls")
        .ok_or_else(|| anyhow::anyhow!("the cluster is open"))?;
    let (webhook, other) = (Webhook::serve().await?, Webhook::serve().await?);
    let script = serde_json::from_value(json!({"response": {"allowed": false, "status": {"message": "seen"}}}))?;
    webhook.script("ns", &BTreeMap::from([("deny".to_owned(), script)]));
    let port: u16 = webhook.url.rsplit(':').next().unwrap_or_default().parse()?;
    refusal(
        &client,
        "/api/v1/namespaces/default/services",
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "webhook"}, "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]}}),
    )
    .await?;
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "webhook-1", "labels": {"kubernetes.io/service-name": "webhook"}},
        "ports": [{"name": "https", "port": port}],
        "endpoints": [{"addresses": ["127.0.0.2"], "conditions": {"ready": false}}, {"addresses": ["127.0.0.1"], "conditions": {"ready": true}}],
    });
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let by_service = json!({"service": {"namespace": "default", "name": "webhook", "path": "/ns/deny"}});
    let failing = "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: Post";
    let denied = "admission webhook \"a.example.com\" denied the request: seen".to_owned();
    for (at, (config, ca, expected)) in [
        (json!({"url": format!("{}/ns/deny", webhook.url)}), &webhook, denied.clone()),
        (
            json!({"url": format!("{}/ns/deny", webhook.url)}),
            &other,
            format!(
                "{failing} \"{}/ns/deny?timeout=10s\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
                webhook.url
            ),
        ),
        (
            by_service.clone(),
            &webhook,
            format!(
                "{failing} \"https://webhook.default.svc:443/ns/deny?timeout=10s\": no endpoints available for service \"webhook\""
            ),
        ),
        (by_service, &webhook, denied),
    ]
    .into_iter()
    .enumerate()
    {
        if at == 3 {
            // an API server takes no addresses of its own machine, and others are not there
            let topic = Topic::new("discovery.k8s.io", "endpointslices");
            let put = Change::Put {
                key: Key::new(topic, cluster.path("default", "webhook-1")),
                expect: Expect::Absent,
                value: object::encode(&slice),
            };
            cluster.store().commit(put).await?;
        }
        let mut config = config;
        config["caBundle"] = ca.ca_bundle.clone().into();
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "a"},
            "webhooks": [{
                "name": "a.example.com", "clientConfig": config, "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
            }],
        });
        assert_eq!(refusal(&client, configurations, configuration).await?, "");
        // twice: the second call takes the first one's connection
        for _ in 0..2 {
            let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
            let refused = refusal(&client, "/api/v1/namespaces/default/configmaps", config_map).await?;
            assert_eq!(refused, expected, "case {at}");
        }
        let deletion = http::Request::delete(format!("{configurations}/a")).body(Vec::new())?;
        client.request::<Value>(deletion).await?;
    }
    Ok(())
}
