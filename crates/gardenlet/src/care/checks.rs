//! The checks behind the conditions: which there are, and what they share [ST-50..53]. What each looks at is beside it, what is found is judged in
//! `rules::care`.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use gardener_apis::core::v1beta1::{Seed, Shoot};
use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::{Read, api_error};
use gardener_rules::care::api_server::{Answer, is_available};
use gardener_rules::care::extensions::{Report, Told, report};
use gardener_rules::care::managed_resources::{self, CONDITION_TYPE};
use gardener_rules::care::{Finding, control_plane};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::jiff::SignedDuration;
use kube::api::ListParams;
use kube::client::Body;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::timeout_at;

use super::api_server::ApiServer;
use super::{API_SERVER, CONTROL_PLANE, Known, LATE, NODES, OBSERVABILITY, SYSTEM, Verdict, is_hibernated, namespace};
use crate::Config;
use crate::health;

/// What the checks look at.
pub(super) struct Sight<'a> {
    pub(super) config: &'a Config,
    pub(super) shoot: &'a Shoot,
    pub(super) seed: &'a Seed,
    /// The control plane's.
    pub(super) namespace: String,
    /// The ManagedResources in it.
    pub(super) resources: Vec<ManagedResource>,
    /// What extensions say.
    told: Vec<Told>,
}

/// A check's end before its last step.
pub(super) enum Stop {
    Finding(Finding),
    Is(&'static str, Finding),
    Unreadable(String),
}

impl From<Finding> for Stop {
    fn from(finding: Finding) -> Self {
        Self::Finding(finding)
    }
}

impl From<kube::Error> for Stop {
    fn from(error: kube::Error) -> Self {
        Self::Unreadable(api_error(&error))
    }
}

fn verdict(checked: Result<(), Stop>, reason: &'static str, message: &'static str) -> Verdict {
    match checked {
        Ok(()) => Verdict::Holds(reason, message),
        Err(Stop::Finding(finding)) => Verdict::Fails(finding),
        Err(Stop::Is(value, finding)) => Verdict::Is(value, finding),
        Err(Stop::Unreadable(why)) => Verdict::Unknown(why),
    }
}

/// All checks of a shoot.
pub(super) async fn all<'k>(
    config: &Config,
    known: &Known,
    wanted: &[&'k str],
    server: &ApiServer,
) -> Vec<(&'k str, Verdict)> {
    let shoot = &known.shoot;
    let every = |verdict: Verdict| wanted.iter().map(|kind| (*kind, verdict.clone())).collect();
    if is_hibernated(shoot) {
        return every(Verdict::Holds(
            "ConditionNotChecked",
            "Shoot cluster has been hibernated.",
        ));
    }
    let namespace = namespace(shoot);
    let api: Api<ManagedResource> = Api::namespaced(config.seed.clone(), &namespace);
    let listed = async {
        api.read_list(&ListParams::default())
            .await
            .map_err(|error| api_error(&error))
    };
    let resources = match known.in_time(listed).await {
        Ok(listed) => listed,
        Err(error) => {
            let text = format!("Failed listing ManagedResources: {error}");
            let finding = Finding::new("ManagedResourceListingFailed", text);
            return every(Verdict::Is("False", finding));
        }
    };
    let told = known.in_time(super::extensions::told(config, shoot, &namespace)).await;
    let told = told.unwrap_or_else(|error| {
        // what they say is of no worth if nobody knows whether they live
        tracing::warn!(shoot = namespace, error, "what extensions say is not known");
        Vec::new()
    });
    let sight = Sight {
        config,
        shoot,
        seed: &known.seed,
        namespace,
        resources,
        told,
    };
    let client = sight.shoot_client(server);
    let checks = wanted.iter().map(|kind| {
        let (sight, client) = (&sight, &client);
        async move {
            let checked = timeout_at(known.deadline, sight.check(kind, client)).await;
            let verdict = checked.unwrap_or_else(|_| sight.late(kind));
            (*kind, verdict)
        }
        .boxed()
    });
    join_all(checks).await
}

impl Sight<'_> {
    async fn check(&self, kind: &str, client: &Result<Client, String>) -> Verdict {
        match (kind, client) {
            (API_SERVER, Ok(client)) => api_server(answer(client).await),
            (API_SERVER, Err(_)) => Verdict::Fails(Finding::new(
                "APIServerDown",
                "Could not reach API server during client initialization.",
            )),
            (CONTROL_PLANE, _) => verdict(
                self.control_plane().await,
                "ControlPlaneRunning",
                "All control plane components are healthy.",
            ),
            (OBSERVABILITY, _) => verdict(
                self.observability().await,
                "ObservabilityComponentsRunning",
                "All observability components are healthy.",
            ),
            (NODES, Ok(client)) => verdict(self.nodes(client).await, "EveryNodeReady", "All nodes are ready."),
            (SYSTEM, Ok(client)) => verdict(
                self.system(client).await,
                "SystemComponentsRunning",
                "All system components are healthy.",
            ),
            (_, Err(why)) => Verdict::Unknown(why.clone()),
            (other, Ok(_)) => Verdict::Unknown(format!("nobody knows how to check {other}")),
        }
    }

    /// What is told of a condition whose check did not end in time.
    fn late(&self, kind: &str) -> Verdict {
        match kind {
            API_SERVER => api_server(Answer::Error(LATE.to_owned())),
            _ => Verdict::Unknown(LATE.to_owned()),
        }
    }

    /// The shoot's API, if its server runs [ST-43], [ST-52].
    fn shoot_client(&self, server: &ApiServer) -> Result<Client, String> {
        match server {
            ApiServer::Runs(Ok(client)) => return Ok(client.clone()),
            ApiServer::Runs(Err(why)) | ApiServer::Unknown(why) => {
                return Err(format!("Could not initialize Shoot client for health check: {why}"));
            }
            ApiServer::Rests => {}
        }
        let last = self
            .shoot
            .status
            .last_operation
            .as_ref()
            .map(|last| last.r#type.as_str());
        Err(match last {
            None | Some("Create") => "Shoot control plane has not been fully created yet.",
            Some("Delete") => "Shoot control plane has already been or is about to be deleted.",
            Some(_) => "Shoot control plane is not running at the moment.",
        }
        .to_owned())
    }

    /// All objects of a kind in the control plane's namespace.
    pub(super) async fn in_control_plane<K>(&self, selected: &ListParams) -> Result<Vec<K>, Stop>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.config.seed.clone(), &self.namespace);
        Ok(api.read_list(selected).await?)
    }

    /// The Deployments with a role, if all that are required are there and all are healthy.
    pub(super) async fn check_deployments(
        &self,
        role: &str,
        required: &BTreeSet<&'static str>,
    ) -> Result<Vec<Deployment>, Stop> {
        let selected = ListParams::default().labels(&format!("gardener.cloud/role={role}"));
        let found: Vec<Deployment> = self.in_control_plane(&selected).await?;
        control_plane::none_missing(required, &found)?;
        for one in &found {
            health::deployment(one).map_err(|why| {
                let text = format!("Deployment {:?} is unhealthy: {why}", one.name_any());
                Finding::new("DeploymentUnhealthy", text)
            })?;
        }
        Ok(found)
    }

    /// Whether a ManagedResource is as a condition wants it [ST-62].
    pub(super) fn check_resource(&self, resource: &ManagedResource) -> Result<(), Finding> {
        let patience = signed(self.config.settings.shoot_care.managed_resource_progressing_threshold);
        managed_resources::check(resource, patience, self.config.clock.now())
    }

    /// The ManagedResources that count for a condition, by themselves and the condition that their label names.
    pub(super) fn resources(
        &self,
        counts: impl Fn(&ManagedResource, &str) -> bool,
    ) -> impl Iterator<Item = &ManagedResource> {
        self.resources.iter().filter(move |resource| {
            let label = resource.labels().get(CONDITION_TYPE);
            counts(resource, label.map_or("", String::as_str))
        })
    }

    /// What extensions say about a condition [ST-65].
    pub(super) fn check_extensions(&self, wanted: &str) -> Result<(), Stop> {
        let patience = signed(self.config.settings.shoot_care.stale_extension_health_checks);
        match report(&self.told, wanted, patience, self.config.clock.now()) {
            None => Ok(()),
            Some(Report::Fails(finding)) => Err(finding.into()),
            Some(Report::Is(value, finding)) => Err(Stop::Is(value, finding)),
        }
    }
}

/// A time to wait as rules take it; one that is too long for them never ends.
fn signed(patience: Option<Duration>) -> Option<SignedDuration> {
    patience.map(|patience| SignedDuration::try_from(patience).unwrap_or(SignedDuration::MAX))
}

/// [ST-53]
fn api_server(answer: Answer) -> Verdict {
    match is_available(&answer) {
        Ok(()) => Verdict::Holds(
            "HealthzRequestSucceeded",
            "API server /healthz endpoint responded with success status code.",
        ),
        Err(finding) => Verdict::Fails(finding),
    }
}

async fn answer(client: &Client) -> Answer {
    let request = http::Request::get("/healthz").body(Body::empty());
    let request = match request {
        Ok(request) => request,
        Err(error) => return Answer::Error(error.to_string()),
    };
    match client.send(request).await {
        Err(error) => Answer::Error(api_error(&error)),
        Ok(response) => {
            let code = response.status().as_u16();
            match response.into_body().collect_bytes().await {
                Ok(body) => Answer::Told(code, String::from_utf8_lossy(&body).into_owned()),
                Err(error) => Answer::Error(error.to_string()),
            }
        }
    }
}
