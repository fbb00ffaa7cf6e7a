//! What several tests need: an API of Kubernetes' kinds with upstream's admission plugins, in memory, and a webhook that answers from a list.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_store::MemoryStore;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

use crate::authn::{Authenticator, Settings};
use crate::authz::{Node, Union};
use crate::rbac::Rbac;
use crate::user::MASTERS;
use crate::webhooks::{Answer, Endpoint, Transport};
use crate::{ClusterConfig, LogicalCluster, Server, Shared, UserInfo, kubernetes, object};

/// The API, and an administrator's client of it.
pub(crate) struct Api {
    pub(crate) server: Server,
    pub(crate) cluster: Arc<LogicalCluster>,
    client: kube::Client,
}

impl Api {
    /// A cluster with what every cluster has.
    pub(crate) async fn open() -> Self {
        Self::open_with(|_| {}).await
    }

    /// As [`Self::open`], with another setup.
    pub(crate) async fn open_with(change: impl FnOnce(&mut ClusterConfig)) -> Self {
        let (resources, documents) = kubernetes::resources().unwrap();
        let server = Server::new(Shared {
            store: Arc::new(MemoryStore::new(object::FORM, gardener_store::Options::all_old())),
            clock: Clock::starting_at(Timestamp::UNIX_EPOCH),
            chance: Chance::seeded(1),
        });
        let mut config = ClusterConfig {
            admission: kubernetes::admission_plugins(
                kubernetes::ServiceAccountPlugin { mounts_tokens: true },
                kubernetes::DefaultTolerationSeconds::default(),
            ),
            ..ClusterConfig::new(
                (Arc::new(resources), Arc::new(documents)),
                Arc::new(Authenticator::new(Settings::default())),
                Arc::new(Union(vec![Arc::new(Node), Arc::new(Rbac)])),
                "v1.36.0",
            )
        };
        change(&mut config);
        let cluster = server.open("c", config);
        kubernetes::bootstrap(&cluster).await.unwrap();
        Self {
            client: server.client("c", UserInfo::new("admin", &[MASTERS])),
            server,
            cluster,
        }
    }

    /// What is answered, or the refusal's Status.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", content_type);
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        match self.client.request::<Value>(request.body(body).unwrap()).await {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => Err(serde_json::to_value(status).unwrap()),
            Err(error) => panic!("{error}"),
        }
    }

    /// What was created, or why nothing was.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<Value, String> {
        let answer = self.ask("POST", path, object).await;
        answer.map_err(|status| status["message"].as_str().unwrap_or_default().to_owned())
    }
}

/// A webhook that answers from a list, the last one for ever, and keeps what it was asked and where.
pub(crate) struct Answering {
    answers: Mutex<Vec<Result<(u16, Value), String>>>,
    asked: Mutex<Vec<(String, Value)>>,
}

impl Answering {
    /// The webhook of a cluster, with a kubeconfig that leads to it.
    pub(crate) fn of(
        cluster: &LogicalCluster,
        answers: Vec<Result<(u16, Value), String>>,
    ) -> (Arc<Self>, tempfile::NamedTempFile) {
        let own = Arc::new(Self {
            answers: Mutex::new(answers),
            asked: Mutex::default(),
        });
        cluster.webhooks().use_transport(own.clone());
        let file = tempfile::NamedTempFile::new().unwrap();
        let kubeconfig = "{kind: Config, apiVersion: v1, current-context: x, contexts: [{name: x, context: {cluster: c}}], \
            clusters: [{name: c, cluster: {server: 'https://h/asked'}}]}";
        std::fs::write(file.path(), kubeconfig).unwrap();
        (own, file)
    }

    /// What it was asked, by which URL.
    pub(crate) fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().clone()
    }
}

#[async_trait]
impl Transport for Answering {
    async fn post(&self, _: &LogicalCluster, endpoint: &Endpoint, _: Duration, body: Bytes) -> Result<Answer, String> {
        let asked = serde_json::from_slice(&body).unwrap();
        self.asked.lock().push((endpoint.url.clone().unwrap(), asked));
        let mut answers = self.answers.lock();
        let answer = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.remove(0),
        };
        answer.map(|(status, body)| Answer {
            status,
            content_type: "application/json".into(),
            body: body.to_string().into(),
        })
    }
}
