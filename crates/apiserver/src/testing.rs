//! An API of Kubernetes' kinds with upstream's admission plugins, in memory, for tests of what acts on requests.

use std::sync::Arc;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_store::MemoryStore;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::authn::{Authenticator, Settings};
use crate::authz::{Node, Union};
use crate::rbac::Rbac;
use crate::user::MASTERS;
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
        let (resources, documents) = kubernetes::resources().unwrap();
        let server = Server::new(Shared {
            store: Arc::new(MemoryStore::new(object::FORM, gardener_store::Options::default())),
            clock: Clock::starting_at(Timestamp::UNIX_EPOCH),
            chance: Chance::seeded(1),
        });
        let config = ClusterConfig {
            resources: Arc::new(resources),
            custom_resources: true,
            admission: kubernetes::admission_plugins(
                kubernetes::ServiceAccountPlugin { mounts_tokens: true },
                kubernetes::DefaultTolerationSeconds::default(),
            ),
            authenticator: Arc::new(Authenticator::new(Settings::default())),
            authorizer: Arc::new(Union(vec![Arc::new(Node), Arc::new(Rbac)])),
            git_version: "v1.36.0".into(),
            openapi: Arc::new(documents),
            elsewhere: None,
            watch_timeout: crate::cluster::WATCH_TIMEOUT,
            node_ports: crate::cluster::NODE_PORTS,
            audit: None,
        };
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
