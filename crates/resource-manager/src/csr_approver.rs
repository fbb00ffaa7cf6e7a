//! Approves or denies certificate signing requests of a shoot's kubelets and gardener-node-agents `[GRM-40]` `[GRM-41]`. What is approved is decided
//! in `rules::csr_approval`.

use std::sync::Arc;

use gardener_apimachinery::clock::Clock;
use gardener_apis::machine::v1alpha1::Machine;
use gardener_controller::certificate_requests::{self, Verdict};
use gardener_controller::{Action, Controller, Informer, ObjectRef, Queue, Read};
use gardener_rules::csr_approval::{self, AgentMachine, Decision, Machines, Purpose, Request};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::Config;

const CONCURRENCY: usize = 1;
/// The label of Machines with the name of their node.
const NODE_LABEL: &str = "node";

/// Why a request could not be decided.
#[derive(Debug, thiserror::Error)]
#[error("{}", gardener_controller::api_error(.0))]
struct ApproveError(#[from] kube::Error);

struct Approver {
    requests: Api<CertificateSigningRequest>,
    nodes: Api<Node>,
    machines: Api<Machine>,
    namespace: String,
    clock: Clock,
}

/// Runs the controller, when this manager is a shoot's: then its namespace has the machines.
pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let Some(namespace) = config.namespace.clone() else {
        stop.cancelled().await;
        return;
    };
    let approver = Arc::new(Approver {
        requests: cluster_api(&config.target),
        nodes: cluster_api(&config.target),
        machines: Api::namespaced(config.source.clone(), &namespace),
        namespace,
        clock: config.clock.clone(),
    });
    let requests = Informer::start(approver.requests.clone(), watcher::Config::default(), &stop);
    let queue: Queue<ObjectRef> = Queue::new();
    requests.feed_if(
        &queue,
        |change| is_open(change.object()),
        |request| [ObjectRef::of(request)],
    );
    requests.synced().await;
    Controller::new("csr-approver", CONCURRENCY, queue)
        .run(stop, move |key| {
            let approver = approver.clone();
            async move { approver.reconcile(&key).await }
        })
        .await;
}

fn cluster_api<K>(client: &Client) -> Api<K>
where
    K: kube::Resource<DynamicType = ()>,
{
    Api::all(client.clone())
}

/// Whether a request is of a signer that is served here and nothing is decided about it yet.
fn is_open(request: &CertificateSigningRequest) -> bool {
    let signer = request.spec.signer_name.as_str();
    matches!(signer, csr_approval::KUBELET_SERVING | csr_approval::API_CLIENT) && certificate_requests::is_open(request)
}

/// What a request asks; none when it is no request that can be read.
fn parse(request: &CertificateSigningRequest) -> Option<Request> {
    let username = request.spec.username.as_deref().unwrap_or_default();
    let usages = request.spec.usages.as_deref().unwrap_or_default();
    Request::read(&request.spec.request.0, username, usages)
}

impl Approver {
    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, ApproveError> {
        let Some(request) = self.requests.read_opt(&key.name).await?.filter(is_open) else {
            return Ok(Action::Done);
        };
        let Some(asked) = parse(&request) else {
            // it will not become better: nobody may change it
            tracing::warn!(request = key.name, "the certificate signing request cannot be read");
            return Ok(Action::Done);
        };
        let (decision, what) = match csr_approval::purpose(&request.spec.signer_name, &asked) {
            Some(Purpose::KubeletServing { node }) => {
                (self.kubelet_serving(&asked, &node).await?, "kubelet server certificate")
            }
            Some(Purpose::NodeAgent { machine }) => (
                self.node_agent(&asked, &machine).await?,
                "gardener-node-agent client certificate",
            ),
            None => return Ok(Action::Done),
        };
        self.decide(request, &decision, what).await?;
        Ok(Action::Done)
    }

    async fn node(&self, name: &str) -> Result<Option<Node>, kube::Error> {
        // without a name the path would be that of all nodes
        if name.is_empty() {
            return Ok(None);
        }
        self.nodes.read_opt(name).await
    }

    async fn kubelet_serving(&self, asked: &Request, name: &str) -> Result<Decision, kube::Error> {
        let node = self.node(name).await?;
        let count = if node.is_some() {
            let selector = ListParams::default().labels(&format!("{NODE_LABEL}={name}"));
            self.machines.read_list(&selector).await?.len()
        } else {
            0
        };
        let machines = Machines {
            namespace: &self.namespace,
            count,
        };
        Ok(csr_approval::kubelet_serving(asked, node.as_ref(), Some(machines)))
    }

    async fn node_agent(&self, asked: &Request, name: &str) -> Result<Decision, kube::Error> {
        let machine = match name {
            "" => None,
            name => self.machines.read_opt(name).await?,
        };
        let known = match machine {
            None => AgentMachine::Missing,
            Some(machine) => {
                let node = machine.labels().get(NODE_LABEL).cloned().unwrap_or_default();
                match self.node(&node).await? {
                    Some(_) => AgentMachine::WithNode,
                    None => AgentMachine::WithoutNode,
                }
            }
        };
        Ok(csr_approval::node_agent(asked, name, known))
    }

    async fn decide(
        &self,
        request: CertificateSigningRequest,
        decision: &Decision,
        what: &str,
    ) -> Result<(), kube::Error> {
        let (verdict, reason, doing, why) = match decision {
            Decision::Approve(why) => (Verdict::Approved, "RequestApproved", "Approving", why),
            Decision::Deny(why) => (Verdict::Denied, "RequestDenied", "Denying", why),
        };
        let told = (reason, format!("{doing} {what} CSR ({why})"));
        certificate_requests::decide(&self.requests, request, verdict, told, self.clock.time()).await
    }
}

#[cfg(test)]
mod tests;
