//! ComponentStatuses, which are stored nowhere: how the parts of a control plane beside its API server are, found out when somebody asks. Clients
//! are told not to ask any more, and many still do (`kubectl get componentstatuses`).

use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::ApiError;
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::cluster::LogicalCluster;
use crate::definition::Definition;
use crate::egress::Network;
use crate::handle::Call;
use crate::meta;
use crate::registry::{ListQuery, Scope};
use crate::respond::Body;
use crate::webhooks::Fetcher;

/// How long a part may take to answer, as with upstream.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where kube-controller-manager and kube-scheduler of a cluster run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Components {
    /// In processes of their own. Upstream looks for them on the ports of this machine that they have where nobody gives them others.
    #[default]
    Beside,
    /// In this process: they are healthy while it answers.
    Within,
}

/// A part of a control plane, as clients name it.
#[derive(Clone, Copy, Debug)]
enum Component {
    ControllerManager,
    Scheduler,
    /// The store, whatever it is: clients know it by this name.
    Etcd,
}

impl Component {
    const ALL: [Self; 3] = [Self::ControllerManager, Self::Etcd, Self::Scheduler];

    fn name(self) -> &'static str {
        match self {
            Self::ControllerManager => "controller-manager",
            Self::Scheduler => "scheduler",
            Self::Etcd => "etcd-0",
        }
    }

    /// What it says when it is healthy, or what it is told of it when it is not.
    async fn probe(self, cluster: &LogicalCluster) -> Result<String, Unhealthy> {
        let port = match (self, cluster.config().components) {
            (Self::Etcd, _) => {
                return match timeout(PATIENCE, cluster.store().catch_up()).await {
                    Ok(Ok(())) => Ok("ok".to_owned()),
                    Ok(Err(behind)) => Err(Unhealthy::Error(behind.to_string())),
                    Err(_) => Err(Unhealthy::Error("context deadline exceeded".to_owned())),
                };
            }
            (_, Components::Within) => return Ok("ok".to_owned()),
            (Self::ControllerManager, Components::Beside) => 10_257,
            (Self::Scheduler, Components::Beside) => 10_259,
        };
        let url = format!("https://127.0.0.1:{port}/healthz");
        let way = (Arc::clone(&cluster.config().egress), Network::ControlPlane);
        let answered = Fetcher::of_anyone(way, PATIENCE).get(&url, None).await;
        let answered = answered.map_err(Unhealthy::Message)?;
        match answered.status.is_success() {
            true => Ok(String::from_utf8_lossy(&answered.body).into_owned()),
            // what it answered may be meant for others
            false => {
                let code = answered.status.as_u16();
                Err(Unhealthy::Message(format!("HTTP probe failed with statuscode: {code}")))
            }
        }
    }

    async fn status(self, cluster: &LogicalCluster) -> Value {
        let found = self.probe(cluster).await;
        let mut condition = Map::new();
        condition.insert("type".into(), "Healthy".into());
        condition.insert("status".into(), if found.is_ok() { "True" } else { "False" }.into());
        let (member, told) = match found {
            Ok(message) | Err(Unhealthy::Message(message)) => ("message", message),
            Err(Unhealthy::Error(error)) => ("error", error),
        };
        condition.insert(member.into(), told.into());
        json!({
            "kind": "ComponentStatus",
            "apiVersion": "v1",
            "metadata": {"name": self.name()},
            "conditions": [condition],
        })
    }
}

/// How it is told that a part is not healthy.
enum Unhealthy {
    /// By the condition's message.
    Message(String),
    /// By the condition's error.
    Error(String),
}

/// Whether a kind's objects are found out when they are asked for.
pub(crate) fn is_found_out(definition: &Definition) -> bool {
    definition.group.is_empty() && definition.plural == "componentstatuses"
}

/// Answers who asks for one of them, or for all.
pub(crate) async fn answer(call: &Call, scope: &Scope, verb: &str) -> Result<Response<Body>, ApiError> {
    // upstream calls them so where it answers by itself
    let resource = "componentstatus";
    let accept = call.accept(scope)?;
    if verb == "get" {
        let mut all = Component::ALL.into_iter();
        let component = all.find(|component| component.name() == scope.name);
        let component = component.ok_or_else(|| ApiError::not_found("", resource, &scope.name))?;
        let status = component.status(&call.cluster).await;
        return call.object(StatusCode::OK, status, scope);
    }
    let query = ListQuery::read(&call.query, &scope.definition, verb == "watch")?;
    if verb == "watch" {
        return Err(ApiError::method_not_supported("", &scope.definition.plural, verb));
    }
    let all = Component::ALL.map(|component| component.status(&call.cluster));
    let mut all: Vec<Value> = futures::future::join_all(all).await;
    all.retain(|status| {
        let field = |path: &str| match path {
            "metadata.name" => Some(meta::name(status)),
            "metadata.namespace" => Some(""),
            _ => None,
        };
        query.labels.matches_by(|_| None) && query.fields.matches(field)
    });
    call.listed(scope, all, json!({}), accept)
}
