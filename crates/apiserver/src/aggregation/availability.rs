//! Looks whether the servers behind a cluster answer: writes the `Available` condition of APIServices, and keeps what the servers tell of their
//! resources, for discovery.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all, select_all, select_ok};
use gardener_apimachinery::pointer::Pointed;
use gardener_store::{Event, Watch};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::{APIService, APIServiceCondition};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Told;
use super::backend::Backend;
use super::local::{self, LOCAL};
use super::proxy::{self, Failed, Forwarded};
use crate::cluster::LogicalCluster;
use crate::definition::Lister;
use crate::user::{MASTERS, UserInfo};
use crate::webhooks::service;
use crate::{meta, object, respond};

/// How often servers that answer are asked again.
const INTERVAL: Duration = Duration::from_secs(30);
/// How soon a server that does not answer is asked again at first; the time doubles up to [`INTERVAL`].
const FIRST_RETRY: Duration = Duration::from_millis(200);
/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest document that is read.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;
/// How many requests at a time look whether a server is there, one of which must be answered: each may go to another endpoint of its Service.
const ATTEMPTS: usize = 5;
/// What a change of means another look at all APIServices.
const SEEN: [(&str, &str); 2] = [
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
];
/// What a change of means another look at those of one Service.
const SEEN_OF_SERVICES: [(&str, &str); 2] = [("", "services"), ("discovery.k8s.io", "endpointslices")];
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// Whether a server is there, as its condition tells it.
struct Verdict {
    available: bool,
    reason: &'static str,
    message: String,
}

impl Verdict {
    fn not(reason: &'static str, message: String) -> Self {
        Self {
            available: false,
            reason,
            message,
        }
    }
}

/// Looks after the APIServices of a cluster until stopped. `client` writes their conditions.
pub async fn run(cluster: Arc<LogicalCluster>, client: kube::Client, stop: CancellationToken) {
    let services: Api<APIService> = Api::all(client);
    let mut retry = FIRST_RETRY;
    let mut changes = Changes::of(&cluster);
    let mut concerned = Concerned::All;
    let mut due = Instant::now();
    loop {
        let all_there = look(&cluster, &services, &concerned).await;
        let now = Instant::now();
        due = match (&concerned, all_there) {
            (Concerned::All, true) => now + INTERVAL,
            (Concerned::All, false) => now + retry,
            (Concerned::OfServices(_), true) => due,
            (Concerned::OfServices(_), false) => due.min(now + FIRST_RETRY),
        };
        let changed = tokio::select! {
            () = stop.cancelled() => return,
            changed = changes.next(&cluster) => Some(changed),
            () = tokio::time::sleep_until(due) => None,
        };
        retry = match changed.is_some() || all_there {
            true => FIRST_RETRY,
            false => (retry * 2).min(INTERVAL),
        };
        concerned = changed.unwrap_or(Concerned::All);
    }
}

/// Which APIServices are to be looked at.
#[derive(Debug, PartialEq, Eq)]
enum Concerned {
    /// All of them.
    All,
    /// Those that lead to one of these Services: namespaces and names.
    OfServices(BTreeSet<(String, String)>),
}

impl Concerned {
    fn has(&self, backend: &Backend) -> bool {
        match self {
            Self::All => true,
            Self::OfServices(services) => {
                let service = &backend.service;
                services.contains(&(service.namespace.clone(), service.name.clone()))
            }
        }
    }
}

/// Changes of what decides where requests go.
struct Changes {
    /// Of what concerns all APIServices.
    of_all: Vec<Watch>,
    /// Of Services and what they lead to.
    of_services: Vec<Watch>,
}

impl Changes {
    /// From now on.
    fn of(cluster: &LogicalCluster) -> Self {
        let prefix = cluster.path("", "");
        let watches = |kinds: &[(&str, &str)]| {
            let watches = kinds.iter().filter_map(|(group, plural)| {
                let definition = cluster.find(group, plural)?;
                let revision = cluster.store().revision_of(&definition.topic);
                cluster.store().watch(&definition.topic, &prefix, revision).ok()
            });
            watches.collect()
        };
        Self {
            of_all: watches(&SEEN),
            of_services: watches(&SEEN_OF_SERVICES),
        }
    }

    /// Waits until something changes that concerns an APIService.
    async fn next(&mut self, cluster: &LogicalCluster) -> Concerned {
        loop {
            let mut services = BTreeSet::new();
            let all = self.of_all.iter_mut().chain(&mut self.of_services);
            let (happened, at) = match all.map(|watch| watch.next().boxed()).collect::<Vec<_>>() {
                none if none.is_empty() => return std::future::pending().await,
                watches => {
                    let (happened, at, _) = select_all(watches).await;
                    (happened, at)
                }
            };
            let concerns_all = at < self.of_all.len();
            let Some(event) = happened.ok().filter(|_| !concerns_all) else {
                // events that were missed are changes too
                *self = Self::of(cluster);
                return Concerned::All;
            };
            services.extend(services_of(&event));
            for watch in &mut self.of_services {
                loop {
                    match watch.try_next() {
                        Ok(Some(event)) => services.extend(services_of(&event)),
                        Ok(None) => break,
                        Err(_) => {
                            *self = Self::of(cluster);
                            return Concerned::All;
                        }
                    }
                }
            }
            let concerned = Concerned::OfServices(services);
            let backends = cluster.aggregation().backends(cluster);
            if backends.iter().any(|backend| concerned.has(backend)) {
                return concerned;
            }
        }
    }
}

/// Namespaces and names of the Services that changed, or whose endpoints did: an EndpointSlice may have been another one's before.
fn services_of(event: &Event) -> impl Iterator<Item = (String, String)> {
    let entries = event.previous.iter().chain([&event.entry]);
    entries.filter_map(|entry| {
        let mut path = entry.key.path.rsplit('/');
        let (name, namespace) = (path.next()?, path.next()?);
        let service = match entry.key.topic.as_str() {
            "/services" => name.to_owned(),
            _ => meta::text(&object::value_of(entry), service::OF_SLICE).to_owned(),
        };
        Some((namespace.to_owned(), service))
    })
}

/// Looks at those APIServices. Answers whether their servers are all there.
async fn look(cluster: &LogicalCluster, services: &Api<APIService>, concerned: &Concerned) -> bool {
    let backends = cluster.aggregation().backends(cluster);
    let backends = backends.iter().filter(|backend| concerned.has(backend));
    let looks = backends.map(async |backend| {
        // what a server tells of its resources counts even where it does not answer as it should
        let (verdict, told) = tokio::join!(verdict(cluster, backend), ask_all(cluster, backend));
        let is_current = told.is_current;
        cluster.aggregation().tell(backend, told);
        note(cluster, services, &backend.name, &verdict).await;
        verdict.available && is_current
    });
    let there = join_all(looks).await.into_iter().all(|available| available);
    if *concerned != Concerned::All {
        return there;
    }
    let local = Verdict {
        available: true,
        reason: LOCAL.0,
        message: LOCAL.1.into(),
    };
    local::register(cluster, services).await;
    for service in listed(cluster) {
        if service.spec.is_some_and(|spec| spec.service.is_none()) {
            note(cluster, services, &service.metadata.name.unwrap_or_default(), &local).await;
        }
    }
    there
}

/// All APIServices of a cluster.
pub(super) fn listed(cluster: &LogicalCluster) -> Vec<APIService> {
    let (group, plural) = ("apiregistration.k8s.io", "apiservices");
    let entries = cluster
        .find(group, plural)
        .map(|definition| cluster.entries(&definition, ""));
    entries
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| object::parse(entry))
        .collect()
}

/// Whether the Service leads somewhere, and somebody answers there.
async fn verdict(cluster: &LogicalCluster, backend: &Backend) -> Verdict {
    if let Err(verdict) = leads_somewhere(cluster, backend) {
        return verdict;
    }
    let path = backend.path();
    let attempt = async || match ask(cluster, backend, &path, None).await {
        Ok((status, ..)) if status.is_success() => Ok(()),
        Ok((status, ..)) => Err(Unwell::Status(status)),
        Err(why) => Err(Unwell::Silent(why)),
    };
    judged(any_of_some(|| attempt().boxed()).await, backend)
}

/// Makes all attempts at once, and is content with the first that succeeds; else it is told how the last of them failed.
async fn any_of_some<'f, E>(attempt: impl Fn() -> BoxFuture<'f, Result<(), E>>) -> Result<(), E> {
    select_ok((0..ATTEMPTS).map(|_| attempt())).await.map(drop)
}

/// Why an attempt does not show that a server is there.
enum Unwell {
    /// It answers with this code.
    Status(StatusCode),
    /// It does not answer.
    Silent(String),
}

/// What is told of a server after all attempts: how the last one ended, unless one was answered.
fn judged(found: Result<(), Unwell>, backend: &Backend) -> Verdict {
    let (host, port) = (backend.service.host(), backend.service.port);
    let shown = format!("https://{host}:{port}{}", backend.path());
    let why = match found {
        Ok(()) => {
            return Verdict {
                available: true,
                reason: "Passed",
                message: "all checks passed".into(),
            };
        }
        Err(Unwell::Status(status)) => format!("bad status from {shown}: {}", status.as_u16()),
        Err(Unwell::Silent(why)) => why,
    };
    let message = format!("failing or missing response from {shown}: {why}");
    Verdict::not("FailedDiscoveryCheck", message)
}

fn leads_somewhere(cluster: &LogicalCluster, backend: &Backend) -> Result<(), Verdict> {
    let (name, namespace, port) = (&backend.service.name, &backend.service.namespace, backend.service.port);
    let Some(service) = cluster.get("", "services", namespace, name) else {
        let message = format!("service/{name} in {namespace:?} is not present");
        return Err(Verdict::not("ServiceNotFound", message));
    };
    if !matches!(meta::text(&service, "/spec/type"), "ClusterIP" | "") {
        return Ok(());
    }
    let Some(found) = service::port(&service, port) else {
        let message = format!("service/{name} in {namespace:?} is not listening on port {port}");
        return Err(Verdict::not("ServicePortError", message));
    };
    let port_name = meta::text(found, "/name");
    let slices = service::slices(cluster, &backend.service);
    if slices.is_empty() {
        let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
        return Err(Verdict::not("EndpointsNotFound", message));
    }
    match slices.iter().any(|slice| service::has_address(slice, port_name)) {
        true => Ok(()),
        false => {
            let message = format!(
                "endpointslices for service/{name} in {namespace:?} have no addresses with port name {port_name:?}"
            );
            Err(Verdict::not("MissingEndpoints", message))
        }
    }
}

/// Asks a server as this server itself; it chooses the form if none is told.
async fn ask(
    cluster: &LogicalCluster,
    backend: &Backend,
    path: &str,
    accept: Option<&'static str>,
) -> Result<(StatusCode, HeaderMap, Bytes), String> {
    let mut headers = HeaderMap::new();
    headers.extend(accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept))));
    let request = Forwarded {
        method: &Method::GET,
        path,
        headers: &headers,
        body: respond::full(Bytes::new()),
        user: &UserInfo::new("system:kube-aggregator", &[MASTERS]),
        origin: None,
    };
    let answered = async {
        let response = proxy::send(cluster, backend, request)
            .await
            .map_err(|failed| match failed {
                Failed::Unresolved(why) | Failed::Setup(why) | Failed::Call(why) => why,
            })?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_LIMIT).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok((parts.status, parts.headers, body))
    };
    let timely = tokio::time::timeout(PATIENCE, answered).await;
    timely.unwrap_or_else(|_| Err(format!("no answer within {} seconds", PATIENCE.as_secs())))
}

/// What a server tells of its resources; if it does not tell, what it told before.
async fn ask_all(cluster: &LogicalCluster, backend: &Backend) -> Told {
    let told = tokio::time::timeout(PATIENCE, tell(cluster, backend)).await.ok();
    told.filter(|told| told.is_current).unwrap_or_else(|| {
        let before = cluster.aggregation().told(&backend.group, &backend.version);
        Told {
            is_current: false,
            ..before.as_deref().cloned().unwrap_or_default()
        }
    })
}

/// What a server tells of its resources now.
async fn tell(cluster: &LogicalCluster, backend: &Backend) -> Told {
    let json = async |path: &str, accept: &'static str| {
        let (status, _, body) = ask(cluster, backend, path, Some(accept)).await.ok()?;
        let found: Value = serde_json::from_slice(&body).ok()?;
        status.is_success().then_some(found)
    };
    let aggregated = json("/apis", AGGREGATED)
        .await
        .and_then(|list| version_of(&list, backend));
    let discovery = match aggregated {
        Some(version) => Some(version),
        None => json(&backend.path(), "application/json")
            .await
            .map(|list| as_discovery(&list, &backend.group, &backend.version)),
    };
    let key = backend.path().trim_start_matches('/').to_owned();
    let url = json("/openapi/v3", "application/json").await.and_then(|index| {
        let url = index.get("paths")?.get(&key)?.get("serverRelativeURL")?.as_str()?;
        Some(url.to_owned())
    });
    let openapi = url.as_ref().and_then(|url| Some(url.split_once("hash=")?.1.to_owned()));
    let before = cluster.aggregation().told(&backend.group, &backend.version);
    let known = before.filter(|before| before.openapi == openapi && before.document.is_some());
    let document = match (known, url) {
        (Some(before), _) => before.document.clone(),
        (None, Some(url)) => match ask(cluster, backend, &url, Some("application/json")).await {
            Ok((status, _, body)) if status.is_success() => Some(body),
            _ => None,
        },
        (None, None) => None,
    };
    Told {
        is_current: discovery.is_some(),
        discovery,
        openapi,
        document,
    }
}

/// The server's version in aggregated discovery.
fn version_of(list: &Value, backend: &Backend) -> Option<Value> {
    let group = meta::elements(list, "/items")
        .iter()
        .find(|group| meta::text(group, "/metadata/name") == backend.group)?;
    let mut versions = meta::elements(group, "/versions").iter();
    let found = versions.find(|version| meta::text(version, "/version") == backend.version);
    let mut version = found?.clone();
    name_kinds(&mut version);
    Some(version)
}

/// Gives resources that say nothing of their kind an empty one: clients do not expect that it is missing.
fn name_kinds(version: &mut Value) {
    let name = |resource: &mut Value| {
        if let Value::Object(resource) = resource {
            let kind = resource.entry("responseKind").or_insert(Value::Null);
            if kind.is_null() {
                *kind = json!({"group": "", "version": "", "kind": ""});
            }
        }
    };
    let resources = version.get_mut("resources").and_then(Value::as_array_mut);
    for resource in resources.into_iter().flatten() {
        name(resource);
        let subresources = resource.get_mut("subresources").and_then(Value::as_array_mut);
        subresources.into_iter().flatten().for_each(name);
    }
}

/// An `APIResourceList` as an element of aggregated discovery.
fn as_discovery(list: &Value, group: &str, version: &str) -> Value {
    let kind = |resource: &Value| {
        let or = |own: &str, other: &str| match meta::text(resource, own) {
            "" => other.to_owned(),
            own => own.to_owned(),
        };
        json!({"group": or("/group", group), "version": or("/version", version), "kind": meta::text(resource, "/kind")})
    };
    let mut resources: Vec<Value> = Vec::new();
    let mut subresources: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for resource in meta::elements(list, "/resources") {
        match meta::text(resource, "/name").split_once('/') {
            Some((parent, name)) => subresources.entry(parent).or_default().push(json!({
                "subresource": name, "responseKind": kind(resource), "verbs": meta::elements(resource, "/verbs"),
            })),
            None => {
                let namespaced = resource.get("namespaced") == Some(&Value::Bool(true));
                let mut found = json!({
                    "resource": meta::text(resource, "/name"), "responseKind": kind(resource),
                    "scope": if namespaced { "Namespaced" } else { "Cluster" },
                    "singularResource": meta::text(resource, "/singularName"), "verbs": meta::elements(resource, "/verbs"),
                });
                for list in ["shortNames", "categories"] {
                    if let (Some(names), Value::Object(found)) = (resource.get(list), &mut found) {
                        found.insert(list.to_owned(), names.clone());
                    }
                }
                resources.push(found);
            }
        }
    }
    for resource in &mut resources {
        let own = subresources.remove(meta::text(resource, "/resource"));
        if let (Some(own), Value::Object(resource)) = (own, resource) {
            resource.insert("subresources".into(), own.into());
        }
    }
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

/// Writes a condition, if it says something new.
async fn note(cluster: &LogicalCluster, services: &Api<APIService>, name: &str, verdict: &Verdict) {
    let Some(service) = cluster.get("apiregistration.k8s.io", "apiservices", "", name) else {
        return;
    };
    let conditions: Vec<APIServiceCondition> = service
        .at("/status/conditions")
        .and_then(|conditions| serde_json::from_value(conditions.clone()).ok())
        .unwrap_or_default();
    let status = if verdict.available { "True" } else { "False" };
    let before = conditions.iter().find(|condition| condition.type_ == "Available");
    let same = before.is_some_and(|before| {
        before.status == status
            && before.reason.as_deref() == Some(verdict.reason)
            && before.message.as_deref() == Some(&verdict.message)
    });
    if same {
        return;
    }
    let since = before
        .filter(|before| before.status == status)
        .and_then(|before| before.last_transition_time.clone())
        .unwrap_or_else(|| cluster.clock().time());
    let condition = APIServiceCondition {
        type_: "Available".into(),
        status: status.into(),
        reason: Some(verdict.reason.into()),
        message: Some(verdict.message.clone()),
        last_transition_time: Some(since),
    };
    let mut all: Vec<APIServiceCondition> = conditions
        .into_iter()
        .filter(|condition| condition.type_ != "Available")
        .collect();
    all.push(condition);
    // guarded by the version that the decision was made on; a conflict is looked at again with the next change
    let patch = json!({
        "metadata": {"resourceVersion": meta::resource_version(&service)},
        "status": {"conditions": all},
    });
    let written = services
        .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    if let Err(error) = written {
        tracing::debug!(api_service = name, %error, "the condition is not written");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use gardener_store::{Change, Expect, Key};

    use super::*;

    async fn write(cluster: &LogicalCluster, (group, plural): (&str, &str), object: &Value) {
        let definition = cluster.find(group, plural).unwrap();
        let put = Change::Put {
            key: Key {
                topic: definition.topic.clone(),
                path: cluster.path(meta::namespace(object), meta::name(object)).into(),
            },
            expect: Expect::Any,
            value: object::encode(object),
        };
        cluster.store().commit(put).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_leads_elsewhere_is_not_looked_at_again() {
        let cluster = LogicalCluster::in_memory();
        let api_service = json!({"metadata": {"name": "v1.e.com"}, "spec": {
            "group": "e.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
            "service": {"namespace": "n", "name": "s"},
        }});
        let mut changes = Changes::of(&cluster);
        write(&cluster, ("apiregistration.k8s.io", "apiservices"), &api_service).await;
        assert_eq!(changes.next(&cluster).await, Concerned::All);

        let slice = |name: &str, service: &str| {
            let labels = json!({"kubernetes.io/service-name": service});
            json!({"metadata": {"name": name, "namespace": "n", "labels": labels}})
        };
        let slices = ("discovery.k8s.io", "endpointslices");
        for other in [
            (
                ("", "services"),
                json!({"metadata": {"name": "s", "namespace": "other"}}),
            ),
            (("", "services"), json!({"metadata": {"name": "t", "namespace": "n"}})),
            (slices, slice("a", "t")),
        ] {
            write(&cluster, other.0, &other.1).await;
        }
        let nothing = tokio::time::timeout(Duration::from_secs(60), changes.next(&cluster));
        assert!(nothing.await.is_err());

        let own = Concerned::OfServices([("n".to_owned(), "s".to_owned())].into());
        for (kind, object) in [
            (slices, slice("b", "s")),
            (("", "services"), json!({"metadata": {"name": "s", "namespace": "n"}})),
        ] {
            write(&cluster, kind, &object).await;
            assert_eq!(changes.next(&cluster).await, own);
        }
        // it is another one's now
        write(&cluster, slices, &slice("b", "t")).await;
        let backends = cluster.aggregation().backends(&cluster);
        let concerned = changes.next(&cluster).await;
        assert!(backends.iter().all(|backend| concerned.has(backend)));
    }

    #[tokio::test]
    async fn one_of_some_attempts_must_succeed() {
        for (succeeds, expected) in [(4, Ok(())), (ATTEMPTS, Err(ATTEMPTS - 1))] {
            let made = AtomicUsize::new(0);
            let attempt = || {
                let number = made.fetch_add(1, Ordering::Relaxed);
                async move { if number == succeeds { Ok(()) } else { Err(number) } }.boxed()
            };
            assert_eq!(any_of_some(attempt).await, expected);
        }
    }

    #[test]
    fn old_servers_are_discovered_too() {
        let list = json!({"resources": [
            {"name": "shoots", "singularName": "shoot", "namespaced": true, "kind": "Shoot", "verbs": ["get"], "shortNames": ["sh"]},
            {"name": "shoots/status", "singularName": "", "namespaced": true, "kind": "Shoot", "verbs": ["patch"]},
            {"name": "shoots/scale", "singularName": "", "namespaced": true, "kind": "Scale", "group": "autoscaling", "version": "v1", "verbs": ["get"]},
            {"name": "seeds", "singularName": "seed", "namespaced": false, "kind": "Seed", "verbs": ["list"]},
        ]});
        assert_eq!(
            as_discovery(&list, "g", "v1"),
            json!({"version": "v1", "freshness": "Current", "resources": [
                {"resource": "shoots", "responseKind": {"group": "g", "version": "v1", "kind": "Shoot"}, "scope": "Namespaced", "singularResource": "shoot",
                    "verbs": ["get"], "shortNames": ["sh"], "subresources": [
                    {"subresource": "status", "responseKind": {"group": "g", "version": "v1", "kind": "Shoot"}, "verbs": ["patch"]},
                    {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}, "verbs": ["get"]},
                ]},
                {"resource": "seeds", "responseKind": {"group": "g", "version": "v1", "kind": "Seed"}, "scope": "Cluster", "singularResource": "seed", "verbs": ["list"]},
            ]})
        );
    }

    #[test]
    fn resources_always_have_a_kind() {
        let none = json!({"group": "", "version": "", "kind": ""});
        let own = json!({"group": "g", "version": "v1", "kind": "Seed"});
        let mut version = json!({"version": "v1", "resources": [
            {"resource": "jobs", "subresources": [{"subresource": "status"}]}, {"resource": "seeds", "responseKind": own},
        ]});
        name_kinds(&mut version);
        let expected = json!({"version": "v1", "resources": [
            {"resource": "jobs", "responseKind": none, "subresources": [{"subresource": "status", "responseKind": none}]},
            {"resource": "seeds", "responseKind": own},
        ]});
        assert_eq!(version, expected);
    }
}
