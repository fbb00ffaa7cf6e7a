//! Discovery: which groups, versions and resources there are, in the aggregated form and in the older one.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::ApiError;
use gardener_schema::openapi::{Access, Subresource};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, VARY};
use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::accept::{Accept, ENCODINGS, Offer, Wanted};
use crate::aggregation::{self, Backend};
use crate::bindings;
use crate::cluster::LogicalCluster;
use crate::component_status;
use crate::connect;
use crate::definition::{Definition, Version};
use crate::health;
use crate::oidc;
use crate::respond::{self, Body, tags};
use crate::reviews;
use crate::user::{AUTHENTICATED, UserInfo};
use crate::zpages;

/// Whether everybody with credentials may read a path.
pub fn is_public(path: &str, user: &UserInfo) -> bool {
    let root = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    matches!(root, "api" | "apis" | "openapi" | "") && user.is_in(AUTHENTICATED)
}

/// Answers `/api`, `/apis`, `/api/v1`, `/apis/<group>` and `/apis/<group>/<version>`.
///
/// # Errors
/// 406 when no form is accepted, 404 for groups that are not served.
pub fn answer(
    cluster: &LogicalCluster,
    path: &str,
    headers: &HeaderMap,
    wanted: &Wanted,
) -> Result<Option<Response<Body>>, ApiError> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let found = match parts.as_slice() {
        ["api" | "apis"] => {
            let is_core = parts == ["api"];
            if !is_told_by_any_method(cluster, path) {
                wanted.check_route(false)?;
            }
            if let Some(accept) = aggregated(wanted) {
                return aggregated_list(cluster, is_core, headers, accept).map(Some);
            }
            Found::Document(match is_core {
                true => api_versions(cluster),
                false => api_groups(cluster),
            })
        }
        ["api", version] => Found::Resources(resource_list(cluster, "", version)?),
        ["apis", group] => {
            let groups = groups(cluster);
            match groups.get(*group).filter(|_| !group.is_empty()) {
                Some(versions) => Found::Document(api_group(group, versions, true)),
                None => return Ok(Some(respond::page_not_found())),
            }
        }
        ["apis", group, version] => match resource_list(cluster, group, version) {
            Err(_) if !cluster.is_built_in(group) => return Ok(Some(respond::page_not_found())),
            list => Found::Resources(list?),
        },
        [""] | ["index.html"] => {
            let paths = root_paths(cluster);
            // for people to read, whoever asks
            let told = Accept {
                pretty: true,
                ..Accept::JSON
            };
            return Ok(Some(respond::value(StatusCode::OK, &json!({"paths": paths}), told)));
        }
        _ => return Ok(None),
    };
    if !is_told_by_any_method(cluster, path) {
        wanted.check_route(false)?;
    }
    let accept = Accept::choose(wanted, Offer::ONE_SHAPE)?;
    let document = match found {
        Found::Document(document) => document,
        Found::Resources(list) if accept.is_plain_json() => {
            let text = serde_json::to_vec(&list).map_err(ApiError::internal)?;
            return Ok(Some(respond::stored(StatusCode::OK, &text)));
        }
        Found::Resources(list) => serde_json::to_value(list).map_err(ApiError::internal)?,
    };
    Ok(Some(respond::value(StatusCode::OK, &document, accept)))
}

/// The versions of the core group.
fn api_versions(cluster: &LogicalCluster) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": cluster.address()}],
    })
}

/// All groups but the core.
fn api_groups(cluster: &LogicalCluster) -> Value {
    let groups: Vec<Value> = groups_in_order(cluster)
        .into_iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| api_group(&group, &versions, false))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// What there is at a path.
enum Found {
    Document(Value),
    Resources(ResourceList),
}

/// What `/` lists: all paths that are served, but for those of resources. As upstream, sorted.
pub(crate) fn root_paths(cluster: &LogicalCluster) -> Vec<String> {
    let always = [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/",
        "/metrics",
        "/metrics/slis",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/version",
    ];
    let mut paths: Vec<String> = always.map(str::to_owned).into();
    for (group, versions) in groups(cluster).into_iter().filter(|(group, _)| !group.is_empty()) {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    if oidc::is_served(&cluster.config().authenticator.settings()) {
        paths.extend(oidc::PATHS.map(str::to_owned));
    }
    paths.extend(health::paths(cluster));
    paths.extend(zpages::paths(cluster));
    paths.sort();
    paths
}

/// Whether a document is told whatever the method: groups are, and versions of groups that are custom resources'.
pub(crate) fn is_told_by_any_method(cluster: &LogicalCluster, path: &str) -> bool {
    match path.trim_matches('/').split('/').collect::<Vec<_>>().as_slice() {
        [""] | ["index.html"] | ["apis"] | ["apis", _] => true,
        ["apis", group, _] => !cluster.is_built_in(group),
        _ => false,
    }
}

/// A version's resources. The members are in upstream's order: some clients look for pieces of the text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<Resource>,
}

/// A resource or a subresource of it; group and version are told if they are not those of the list.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    name: String,
    singular_name: String,
    namespaced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    kind: String,
    verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
}

/// Group, version and kind of the document that tells all groups at once. The version before it is not served any more.
const AGGREGATED: (&str, &str, &str) = ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList");

/// The form in which the client wants all groups at once, if it takes that at all: clauses that want anything else do not count.
fn aggregated(wanted: &Wanted) -> Option<Accept> {
    wanted.find(&ENCODINGS, |encoding, asked| {
        let (group, version, kind) = AGGREGATED;
        let is_it = (asked.group, asked.version, asked.kind) == (group, version, Some(kind));
        let is_told = is_it && asked.server_version.is_empty() && asked.may_stream(encoding);
        is_told.then(|| asked.of_one_shape(encoding))
    })
}

/// All groups at once.
fn aggregated_list(
    cluster: &LogicalCluster,
    core: bool,
    headers: &HeaderMap,
    accept: Accept,
) -> Result<Response<Body>, ApiError> {
    let (group, version, kind) = AGGREGATED;
    let mut list = json!({"kind": kind, "apiVersion": format!("{group}/{version}"), "metadata": {}});
    if let Value::Object(list) = &mut list {
        list.insert("items".into(), aggregated_groups(cluster, core).into());
    }
    // the same for all forms: who has one of them knows that nothing changed
    let json = serde_json::to_vec(&list).map_err(ApiError::internal)?;
    let content_type = accept.content_type_of(AGGREGATED)?;
    let mut response = tags::tagged(headers, &tags::digest(&json), || {
        let mut shown = match accept.is_plain_json() {
            true => respond::stored(StatusCode::OK, &json),
            false => respond::value(StatusCode::OK, &list, accept),
        };
        shown.headers_mut().insert(CONTENT_TYPE, content_type);
        shown
    });
    let told = response.headers_mut();
    told.insert(VARY, HeaderValue::from_static("Accept"));
    told.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    Ok(response)
}

/// Groups with their versions, preferred first.
fn groups(cluster: &LogicalCluster) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for definition in cluster.definitions() {
        let versions = groups.entry(definition.group.clone()).or_default();
        for version in definition.versions.iter().filter(|version| version.served) {
            if !versions.contains(&version.name) {
                versions.push(version.name.clone());
            }
        }
    }
    for review in reviews::of(cluster) {
        let versions = groups.entry(review.group.to_owned()).or_default();
        if !versions.iter().any(|own| own == review.version) {
            versions.push(review.version.to_owned());
        }
    }
    for versions in groups.values_mut() {
        versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
    }
    // other servers' versions are in the order of their priorities
    for backend in cluster.aggregation().backends(cluster).iter() {
        let versions = groups.entry(backend.group.clone()).or_default();
        if !versions.contains(&backend.version) {
            versions.push(backend.version.clone());
        }
    }
    groups.retain(|_, versions| !versions.is_empty());
    groups
}

/// Order of versions: stable before beta before alpha, higher numbers first.
pub(crate) fn version_rank(version: &str) -> (u8, u32, u32) {
    let rest = version.trim_start_matches('v');
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let major = digits.parse().unwrap_or(0);
    let tail = rest.get(digits.len()..).unwrap_or_default();
    let number = |stem: &str| tail.strip_prefix(stem).and_then(|text| text.parse().ok());
    match (tail.is_empty(), number("beta"), number("alpha")) {
        (true, _, _) => (3, major, 0),
        (_, Some(beta), _) => (2, major, beta),
        (_, _, Some(alpha)) => (1, major, alpha),
        _ => (0, major, 0),
    }
}

fn api_group(group: &str, versions: &[String], with_kind: bool) -> Value {
    let all: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let mut value =
        json!({"name": group, "versions": all, "preferredVersion": all.first().cloned().unwrap_or(Value::Null)});
    if let (Value::Object(value), true) = (&mut value, with_kind) {
        value.insert("kind".into(), "APIGroup".into());
        value.insert("apiVersion".into(), "v1".into());
    }
    value
}

/// The subresources of a resource, as discovery and documents tell of them.
pub(crate) fn subresources(definition: &Definition, version: &Version) -> Vec<Subresource> {
    let own = |verbs: &[&str]| verbs.iter().map(|verb| (*verb).to_owned()).collect();
    let mut found = Vec::new();
    for (name, subresource) in &definition.subresources {
        let (group, group_version, kind) = subresource.kind();
        found.push(Subresource {
            name: (*name).to_owned(),
            group: group.to_owned(),
            version: group_version.to_owned(),
            kind: kind.to_owned(),
            verbs: own(subresource.verbs()),
            access: subresource.text_options().map_or(Access::Object, Access::Text),
        });
    }
    for connect in connect::of(&definition.group, &definition.plural) {
        found.push(Subresource {
            name: connect.name.to_owned(),
            group: definition.group.clone(),
            version: version.name.clone(),
            kind: connect.kind.to_owned(),
            verbs: own(connect.verbs()),
            access: connect.access(),
        });
    }
    if version.scale.is_some() {
        found.push(Subresource {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs: own(&["get", "patch", "update"]),
            access: Access::Object,
        });
    }
    let of_views = definition.strategy.view_verbs();
    let views = definition.strategy.views().iter().map(|name| (*name, of_views));
    let of_status: &[&str] = &["get", "patch", "update"];
    for (name, verbs) in views.chain(version.status.then_some(("status", of_status))) {
        found.push(Subresource {
            name: name.to_owned(),
            group: definition.group.clone(),
            version: version.name.clone(),
            kind: version.kind.clone(),
            verbs: own(verbs),
            access: Access::Object,
        });
    }
    // of custom resources the status stands first
    if definition.is_go_type() {
        found.sort_by(|a, b| a.name.cmp(&b.name));
    } else {
        found.sort_by(|a, b| b.name.cmp(&a.name));
    }
    found
}

fn served<'a>(
    definitions: &'a [Arc<Definition>],
    group: &str,
    version: &str,
) -> Vec<(&'a Arc<Definition>, &'a Version)> {
    let mut found: Vec<_> = definitions
        .iter()
        .filter(|definition| definition.group == group)
        .filter_map(|definition| Some((definition, definition.version(version)?)))
        .collect();
    found.sort_by(|a, b| a.0.plural.cmp(&b.0.plural));
    found
}

fn aggregated_groups(cluster: &LogicalCluster, core: bool) -> Vec<Value> {
    let definitions = cluster.definitions();
    let mut items: Vec<Value> = Vec::new();
    let groups = groups_in_order(cluster).into_iter();
    for (group, versions) in groups.filter(|(group, _)| group.is_empty() == core) {
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| {
                if let Some(backend) = cluster.aggregation().backend(cluster, &group, version) {
                    return version_elsewhere(cluster, &backend);
                }
                let mut resources: Vec<Value> = served(&definitions, &group, version)
                    .into_iter()
                    .map(|(definition, served)| {
                        let is_go_type = definition.is_go_type();
                        let kind = |of: (&str, &str), kind: &str| response_kind(is_go_type && of == (&group, version), of, kind);
                        let subresources: Vec<Value> = subresources(definition, served)
                            .into_iter()
                            .map(|sub| json!({"subresource": sub.name, "responseKind": kind((&sub.group, &sub.version), &sub.kind), "verbs": sub.verbs}))
                            .collect();
                        let mut resource = json!({
                            "resource": definition.plural, "responseKind": kind((&group, version), &served.kind),
                            "scope": if definition.namespaced { "Namespaced" } else { "Cluster" }, "singularResource": definition.singular, "verbs": definition.verbs,
                        });
                        if let Value::Object(resource) = &mut resource {
                            for (key, list) in [("shortNames", &definition.short_names), ("categories", &definition.categories)] {
                                if !list.is_empty() {
                                    resource.insert(key.into(), json!(list));
                                }
                            }
                            if !subresources.is_empty() {
                                resource.insert("subresources".into(), json!(subresources));
                            }
                        }
                        resource
                    })
                    .collect();
                for review in reviews::of(cluster).iter().filter(|own| own.group == group && own.version == version) {
                    resources.push(json!({
                        "resource": review.plural, "responseKind": response_kind(true, (&group, version), review.kind),
                        "scope": if review.namespaced { "Namespaced" } else { "Cluster" }, "singularResource": review.kind.to_lowercase(), "verbs": ["create"],
                    }));
                }
                if group.is_empty() && bindings::are_served(cluster) {
                    resources.push(json!({
                        "resource": "bindings", "responseKind": response_kind(true, (&group, version), "Binding"),
                        "scope": "Namespaced", "singularResource": "binding", "verbs": ["create"],
                    }));
                }
                resources.sort_by_cached_key(|resource| resource.get("resource").and_then(Value::as_str).unwrap_or_default().to_owned());
                json!({"version": version, "resources": resources, "freshness": "Current"})
            })
            .collect();
        let metadata = if group.is_empty() {
            json!({})
        } else {
            json!({"name": group})
        };
        items.push(json!({"metadata": metadata, "versions": versions}));
    }
    items
}

/// The kind of an answer. Built-in kinds leave out the group and version under which they stand; custom resources do not.
fn response_kind(is_understood: bool, (group, version): (&str, &str), kind: &str) -> Value {
    let (group, version) = if is_understood { ("", "") } else { (group, version) };
    json!({"group": group, "version": version, "kind": kind})
}

/// A version that another server serves, as it told last. It is stale where the server did not tell it when it was asked.
fn version_elsewhere(cluster: &LogicalCluster, backend: &Backend) -> Value {
    let told = cluster.aggregation().told(&backend.group, &backend.version);
    let is_current = told.as_ref().is_some_and(|told| told.is_current);
    let discovery = told.and_then(|told| told.discovery.clone());
    let mut version = discovery.unwrap_or_else(|| json!({"version": backend.version}));
    if let Value::Object(version) = &mut version {
        let freshness = if is_current { "Current" } else { "Stale" };
        version.insert("freshness".into(), freshness.into());
    }
    version
}

/// Groups in the order of their priorities: clients that look a short name up take the first hit.
fn groups_in_order(cluster: &LogicalCluster) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = groups(cluster).into_iter().collect();
    let backends = cluster.aggregation().backends(cluster);
    let priority = |group: &str| {
        let elsewhere = backends.iter().filter(|backend| backend.group == group);
        let elsewhere = elsewhere.map(|backend| backend.priority.0).max();
        elsewhere.unwrap_or_else(|| aggregation::group_priority(group))
    };
    groups.sort_by_cached_key(|(group, _)| (std::cmp::Reverse(priority(group)), group.clone()));
    groups
}

fn resource_list(cluster: &LogicalCluster, group: &str, version: &str) -> Result<ResourceList, ApiError> {
    let definitions = cluster.definitions();
    let mut resources = Vec::new();
    for (definition, served) in served(&definitions, group, version) {
        resources.push(Resource {
            name: definition.plural.clone(),
            singular_name: definition.singular.clone(),
            namespaced: definition.namespaced,
            kind: served.kind.clone(),
            verbs: definition.verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            short_names: definition.short_names.clone(),
            categories: definition.categories.clone(),
            storage_version_hash: storage_version_hash(definition),
            ..Resource::default()
        });
        for sub in subresources(definition, served) {
            let elsewhere = (sub.group != group || sub.version != version).then_some((sub.group, sub.version));
            let (own_group, own_version) = elsewhere.unzip();
            resources.push(Resource {
                name: format!("{}/{}", definition.plural, sub.name),
                namespaced: definition.namespaced,
                group: own_group,
                version: own_version,
                kind: sub.kind,
                verbs: sub.verbs,
                ..Resource::default()
            });
        }
    }
    let created = |plural: &str, kind: &str, namespaced: bool| Resource {
        name: plural.to_owned(),
        singular_name: kind.to_lowercase(),
        namespaced,
        kind: kind.to_owned(),
        verbs: vec!["create".to_owned()],
        ..Resource::default()
    };
    let reviews = reviews::of(cluster).iter();
    let of_version = reviews.filter(|own| own.group == group && own.version == version);
    resources.extend(of_version.map(|review| created(review.plural, review.kind, review.namespaced)));
    if group.is_empty() && !resources.is_empty() && bindings::are_served(cluster) {
        resources.push(created("bindings", "Binding", true));
    }
    resources.sort_by_cached_key(|entry| entry.name.split('/').next().unwrap_or_default().to_owned());
    if resources.is_empty() {
        return Err(ApiError::no_such_path());
    }
    Ok(ResourceList {
        kind: "APIResourceList",
        // the list of the core group does not say of which version it is
        api_version: (!group.is_empty()).then_some("v1"),
        group_version: match group {
            "" => version.to_owned(),
            _ => format!("{group}/{version}"),
        },
        resources,
    })
}

/// Kinds that kube-apiserver stores in an older version than the one it serves, so that releases before it can read them.
const STORED_AS: [(&str, &str, &str); 3] = [
    ("apiextensions.k8s.io", "CustomResourceDefinition", "v1beta1"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy", "v1beta1"),
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding",
        "v1beta1",
    ),
];

/// What tells clients whether objects are stored as before: made of group, version and kind of the stored form.
fn storage_version_hash(definition: &Definition) -> Option<String> {
    // what is made when it is asked for is stored nowhere
    let stored = definition
        .stored_version()
        .filter(|_| !component_status::is_found_out(definition))?;
    let kept_in = if definition.plural == "events" {
        ""
    } else {
        definition.group.as_str()
    };
    let mut older = STORED_AS.iter();
    let older = older.find(|(group, kind, _)| *group == definition.group && *kind == stored.kind);
    let version = older.map_or(stored.name.as_str(), |(_, _, version)| version);
    let text = format!("{kept_in}/{version}/{}", stored.kind);
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    Some(STANDARD.encode(digest.as_ref().get(..8)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ranked() {
        let mut versions = vec!["v1alpha1", "v2beta1", "v1", "v10", "v1beta2", "foo"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        assert_eq!(versions, ["v10", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]);
    }

    /// Of another server's version its name is told before the server has told anything; what it told stays when it stops.
    #[tokio::test]
    async fn versions_of_servers_that_do_not_tell_are_stale() {
        let cluster = LogicalCluster::in_memory();
        let service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.example.com"},
            "spec": {
                "group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
                "service": {"namespace": "default", "name": "a", "port": 443},
            },
        });
        let definition = cluster.find("apiregistration.k8s.io", "apiservices").unwrap();
        let change = gardener_store::Change::Put {
            key: cluster.key(&definition, "", "v1.example.com"),
            expect: gardener_store::Expect::Absent,
            value: crate::object::encode(&service),
        };
        cluster.store().commit(change).await.unwrap();
        let backend = cluster.aggregation().backend(&cluster, "example.com", "v1").unwrap();
        let told = |is_current| aggregation::Told {
            discovery: Some(json!({"version": "v1", "resources": [{"resource": "jobs"}]})),
            is_current,
            ..aggregation::Told::default()
        };
        assert_eq!(
            version_elsewhere(&cluster, &backend),
            json!({"version": "v1", "freshness": "Stale"})
        );
        for (is_current, freshness) in [(true, "Current"), (false, "Stale")] {
            cluster.aggregation().tell(&backend, told(is_current));
            let expected = json!({"version": "v1", "resources": [{"resource": "jobs"}], "freshness": freshness});
            assert_eq!(version_elsewhere(&cluster, &backend), expected);
        }
    }
}
