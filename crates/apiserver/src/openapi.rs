//! `/openapi/v3` and `/openapi/v2`: the schemas of what is served, from recorded documents for built-in kinds and from definitions
//! for custom ones.

mod information;

use std::collections::BTreeMap;

use bytes::Bytes;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::pointer::Pointed;
use gardener_schema::openapi::{self, About, Custom, Resource};
use http::header::{CACHE_CONTROL, EXPIRES, HeaderMap, HeaderValue, LOCATION, VARY};
use http::{Response, StatusCode};
use k8s_openapi::jiff::ToSpan;
use k8s_openapi::jiff::tz::TimeZone;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::accept;
use crate::bindings;
use crate::cluster::LogicalCluster;
use crate::definition::{Definition, Version};
use crate::discovery;
use crate::object;
use crate::request::Query;
use crate::respond::{self, Body, tags};
use crate::reviews;

/// Recorded documents by path (`api/v1`, `apis/apps/v1`), and what was built from them.
#[derive(Default)]
pub struct Documents {
    recorded: BTreeMap<String, Recorded>,
    /// By the version of the server that they tell of, and path.
    built: Mutex<BTreeMap<(String, String), Bytes>>,
    /// The newest hash of a document by its path, and what the document was made of.
    hashes: Mutex<BTreeMap<String, (String, String)>>,
    /// The newest answer to `/openapi/v2` by encoding, and the hash of what it was built from.
    swagger: Mutex<BTreeMap<Encoding, (String, Bytes)>>,
}

#[derive(Clone, Copy)]
struct Recorded {
    text: &'static str,
    publisher: Option<Publisher>,
}

/// Who serves kinds besides Kubernetes' own, as their documents tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publisher {
    /// Its name.
    pub title: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// The encodings of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Encoding {
    Json,
    Protobuf,
}

/// Media types of one version. The last is the old form of the name before, which clients still send.
type Offered = [(&'static str, Encoding); 3];

const V2: Offered = [
    (JSON, Encoding::Json),
    (
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        Encoding::Protobuf,
    ),
    (
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        Encoding::Protobuf,
    ),
];
const V3: Offered = [
    (JSON, Encoding::Json),
    (
        "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        Encoding::Protobuf,
    ),
    (
        "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        Encoding::Protobuf,
    ),
];
const JSON: &str = "application/json";
/// Of what has its hash in its address.
const NEVER_CHANGES: HeaderValue = HeaderValue::from_static("public, immutable");
const BY_ACCEPT: HeaderValue = HeaderValue::from_static("Accept");

/// The header of an answer in an encoding.
fn content_type(offered: &Offered, encoding: Encoding) -> HeaderValue {
    let found = offered.iter().find(|(_, own)| *own == encoding);
    HeaderValue::from_static(found.map_or(JSON, |(media_type, _)| media_type))
}

impl Documents {
    /// Documents of Kubernetes' groups, whose `components.schemas` are published for the resources of their path.
    pub fn new(recorded: impl IntoIterator<Item = (String, &'static str)>) -> Self {
        Self::default().with(None, recorded)
    }

    /// These and those of another publisher.
    #[must_use]
    pub fn published_by(
        self,
        publisher: Publisher,
        recorded: impl IntoIterator<Item = (String, &'static str)>,
    ) -> Self {
        self.with(Some(publisher), recorded)
    }

    fn with(
        mut self,
        publisher: Option<Publisher>,
        recorded: impl IntoIterator<Item = (String, &'static str)>,
    ) -> Self {
        let recorded = recorded.into_iter();
        self.recorded
            .extend(recorded.map(|(path, text)| (path, Recorded { text, publisher })));
        self
    }

    /// What the document of a built-in path says of its server: that of the kinds beneath the path.
    fn about(&self, cluster: &LogicalCluster, path: &str) -> About {
        let beneath = format!("{path}/");
        let found = self
            .recorded
            .iter()
            .find(|(own, _)| *own == path || own.starts_with(&beneath))
            .or_else(|| self.recorded.first_key_value());
        match found.and_then(|(_, recorded)| recorded.publisher) {
            Some(Publisher { title, version }) => About {
                title: title.to_owned(),
                version: version.to_owned(),
                ..About::default()
            },
            None => {
                let (major, minor) = cluster.config().release();
                About {
                    title: "Kubernetes".to_owned(),
                    version: format!("{major}.{minor}"),
                    refuses: true,
                    credentials: true,
                }
            }
        }
    }

    fn document(&self, cluster: &LogicalCluster, path: &str) -> Option<Bytes> {
        let recorded = self.recorded.get(path)?;
        let about = self.about(cluster, path);
        let key = (about.version.clone(), path.to_owned());
        if let Some(built) = self.built.lock().get(&key) {
            return Some(built.clone());
        }
        let listed = format!("/{path}/");
        let listed = Some((listed.as_str(), information::OF_RESOURCES));
        let document = openapi::document(&about, components(recorded.text)?, &resources(cluster, path), listed);
        let bytes = Bytes::from(serde_json::to_vec(&document).ok()?);
        self.built.lock().insert(key, bytes.clone());
        Some(bytes)
    }
}

/// The component schemas of a recorded document.
fn components(recorded: &str) -> Option<Map<String, Value>> {
    let mut document: Value = serde_json::from_str(recorded).ok()?;
    match document.at_mut("/components/schemas").map(Value::take) {
        Some(Value::Object(components)) => Some(components),
        _ => Some(Map::new()),
    }
}

/// Answers `/openapi/v2`, `/openapi/v3` and `/openapi/v3/<path>`.
///
/// # Errors
/// A document cannot be written.
pub(crate) fn answer(
    cluster: &LogicalCluster,
    path: &str,
    headers: &HeaderMap,
    query: &Query,
) -> Result<Option<Response<Body>>, ApiError> {
    match path.strip_prefix("/openapi/v3") {
        Some("") => Ok(Some(root(cluster, headers))),
        Some(rest) => rest
            .strip_prefix('/')
            .map(|path| group_version(cluster, path, headers, query.get("hash")))
            .transpose(),
        None if path == "/openapi/v2" => swagger(cluster, headers).map(Some),
        None => Ok(None),
    }
}

/// Where the documents of version 3 are.
fn root(cluster: &LogicalCluster, headers: &HeaderMap) -> Response<Body> {
    let mut paths = Map::new();
    for path in served_paths(cluster) {
        let url = address(&path, &hash(cluster, &path));
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    for backend in cluster.aggregation().backends(cluster).iter() {
        let told = cluster.aggregation().told(&backend.group, &backend.version);
        if let Some(hash) = told.and_then(|told| told.openapi.clone()) {
            let path = group_path(&backend.group, &backend.version);
            let url = address(&path, &hash);
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    let index = json!({"paths": paths}).to_string();
    if cluster.config().elsewhere.is_some() {
        return tags::tagged(headers, &tags::digest(&index), || {
            respond::with_type(
                StatusCode::OK,
                respond::full(index.clone()),
                HeaderValue::from_static(JSON),
            )
        });
    }
    // an aggregator does not say that it is JSON, and has no hash of it
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    respond::with_type(StatusCode::OK, respond::full(index), text)
}

fn address(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}

/// The document of one path. Who asks for it by its hash may keep it; who asks by another hash is led to the one that counts.
fn group_version(
    cluster: &LogicalCluster,
    path: &str,
    headers: &HeaderMap,
    asked: Option<&str>,
) -> Result<Response<Body>, ApiError> {
    let served = served_paths(cluster).iter().any(|served| served == path);
    let Some(bytes) = served.then(|| document(cluster, path)).flatten() else {
        return Ok(respond::empty(StatusCode::NOT_FOUND));
    };
    let Some(encoding) = accept::preferred(headers, &V3) else {
        let mut response = respond::empty(StatusCode::NOT_ACCEPTABLE);
        response.headers_mut().insert(VARY, BY_ACCEPT);
        return Ok(response);
    };
    let hash = hash(cluster, path);
    let content_type = content_type(&V3, encoding);
    let asked = asked.filter(|asked| !asked.is_empty());
    let mut response = if asked.is_some_and(|asked| asked != hash) {
        let mut response = respond::with_type(StatusCode::MOVED_PERMANENTLY, respond::full(Bytes::new()), content_type);
        let there = HeaderValue::try_from(address(path, &hash)).map_err(ApiError::internal)?;
        response.headers_mut().insert(LOCATION, there);
        tags::tag(&mut response, &hash);
        response
    } else {
        let mut response = tags::tagged(headers, &hash, || {
            let bytes = match encoding {
                Encoding::Json => bytes,
                Encoding::Protobuf => {
                    let document = serde_json::from_slice(&bytes).unwrap_or_default();
                    Bytes::from(openapi::protobuf::v3::encode(&document))
                }
            };
            respond::with_type(StatusCode::OK, respond::full(bytes), content_type)
        });
        if asked.is_some() {
            response.headers_mut().insert(CACHE_CONTROL, NEVER_CHANGES);
            let now = cluster.clock().now().to_zoned(TimeZone::UTC);
            let next_year = now.checked_add(1.year()).unwrap_or(now);
            let expires = next_year.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
            if let Ok(expires) = HeaderValue::try_from(expires) {
                response.headers_mut().insert(EXPIRES, expires);
            }
        }
        response
    };
    response.headers_mut().insert(VARY, BY_ACCEPT);
    Ok(response)
}

/// The version 3 document of a path.
fn document(cluster: &LogicalCluster, path: &str) -> Option<Bytes> {
    let built_in = cluster.config().openapi.document(cluster, path);
    built_in
        .or_else(|| information_document(cluster, path))
        .or_else(|| custom_document(cluster, path))
}

fn information_document(cluster: &LogicalCluster, path: &str) -> Option<Bytes> {
    let about = cluster.config().openapi.about(cluster, path);
    let document = information::document(&about, path)?;
    serde_json::to_vec(&document).ok().map(Bytes::from)
}

/// Everything that is served, by other servers, too, as one document of version 2.
fn swagger(cluster: &LogicalCluster, headers: &HeaderMap) -> Result<Response<Body>, ApiError> {
    let Some(encoding) = accept::preferred(headers, &V2) else {
        return Ok(varied(respond::empty(StatusCode::NOT_ACCEPTABLE)));
    };
    let paths = served_paths(cluster);
    let told: Vec<_> = cluster
        .aggregation()
        .backends(cluster)
        .iter()
        .filter_map(|backend| cluster.aggregation().told(&backend.group, &backend.version))
        .filter(|told| told.document.is_some())
        .collect();
    let own = paths.iter().map(|path| hash(cluster, path));
    let hashes: String = own.chain(told.iter().filter_map(|told| told.openapi.clone())).collect();
    let hash = tags::digest(&hashes);
    let cache = &cluster.config().openapi.swagger;
    let known = cache.lock().get(&encoding).filter(|(of, _)| *of == hash).cloned();
    let bytes = match known {
        Some((_, bytes)) => bytes,
        None => {
            let own = paths.iter().filter_map(|path| document(cluster, path));
            let documents = own
                .chain(told.iter().filter_map(|told| told.document.clone()))
                .filter_map(|document| serde_json::from_slice(&document).ok());
            let whole = openapi::v2::document(documents);
            let bytes = Bytes::from(match encoding {
                Encoding::Json => serde_json::to_vec(&whole).map_err(ApiError::internal)?,
                Encoding::Protobuf => openapi::protobuf::v2::encode(&whole),
            });
            cache.lock().insert(encoding, (hash.clone(), bytes.clone()));
            bytes
        }
    };
    Ok(varied(tags::tagged(headers, &hash, || {
        respond::with_type(StatusCode::OK, respond::full(bytes), content_type(&V2, encoding))
    })))
}

/// An answer to `/openapi/v2`, which has another form for those who can read compressed ones.
fn varied(mut response: Response<Body>) -> Response<Body> {
    response
        .headers_mut()
        .insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response.headers_mut().append(VARY, BY_ACCEPT);
    response
}

fn group_path(group: &str, version: &str) -> String {
    openapi::base_path(group, version).split_off(1)
}

fn served_paths(cluster: &LogicalCluster) -> Vec<String> {
    let mut paths: Vec<String> = cluster
        .definitions()
        .iter()
        .flat_map(|definition| {
            definition
                .versions
                .iter()
                .filter(|version| version.served)
                .map(|version| group_path(&definition.group, &version.name))
                .collect::<Vec<_>>()
        })
        .collect();
    let documents = &cluster.config().openapi.recorded;
    let reviews = reviews::of(cluster).iter();
    let reviews = reviews.map(|review| group_path(review.group, review.version));
    paths.extend(reviews.filter(|path| documents.contains_key(path)));
    let built_in: Vec<String> = paths
        .iter()
        .filter(|path| documents.contains_key(*path))
        .cloned()
        .collect();
    paths.extend(information::paths(cluster, &built_in));
    paths.sort();
    paths.dedup();
    paths
}

/// The hash of the document of a path: of all that is in it, as who asks by it may keep the document whatever program comes to serve it.
fn hash(cluster: &LogicalCluster, path: &str) -> String {
    let documents = &cluster.config().openapi;
    let of = made_of(cluster, path);
    if let Some((known, hash)) = documents.hashes.lock().get(path)
        && *known == of
    {
        return hash.clone();
    }
    let hash = document(cluster, path).map(tags::digest).unwrap_or_default();
    documents.hashes.lock().insert(path.to_owned(), (of, hash.clone()));
    hash
}

/// What the document of a path follows from besides the program: it is the same as long as this is.
fn made_of(cluster: &LogicalCluster, path: &str) -> String {
    let documents = &cluster.config().openapi;
    if documents.recorded.contains_key(path) || information::is_told(path) {
        return documents.about(cluster, path).version;
    }
    let mut text = String::new();
    for (definition, version) in at_path(cluster, path) {
        text.push_str(&definition.plural);
        text.push_str(&version.kind);
    }
    for crd in custom_at(cluster, path) {
        text.push_str(crate::meta::text(&crd, "/metadata/uid"));
        text.push_str(&crd.at("/metadata/generation").map(Value::to_string).unwrap_or_default());
    }
    text
}

fn at_path(cluster: &LogicalCluster, path: &str) -> Vec<(std::sync::Arc<Definition>, VersionName)> {
    let mut found = Vec::new();
    for definition in cluster.definitions() {
        for version in definition
            .versions
            .iter()
            .filter(|version| version.served && group_path(&definition.group, &version.name) == path)
        {
            found.push((
                definition.clone(),
                VersionName {
                    kind: version.kind.clone(),
                    name: version.name.clone(),
                },
            ));
        }
    }
    found
}

struct VersionName {
    kind: String,
    name: String,
}

fn resources(cluster: &LogicalCluster, path: &str) -> Vec<Resource> {
    let stored = at_path(cluster, path);
    let stored = stored
        .iter()
        .filter_map(|(definition, version)| Some(resource(definition, definition.version(&version.name)?)));
    let reviews = reviews::of(cluster).iter();
    let reviews = reviews.filter(|review| group_path(review.group, review.version) == path);
    let reviews = reviews.map(|own| posted(own.group, own.version, own.kind, own.plural, own.namespaced));
    let has_bindings = path == "api/v1" && bindings::are_served(cluster);
    let bindings = has_bindings.then(|| posted("", "v1", "Binding", "bindings", true));
    stored.chain(reviews).chain(bindings).collect()
}

/// What is only created, and answered at once.
fn posted(group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced,
        verbs: vec!["create".to_owned()],
        ..Resource::default()
    }
}

fn resource(definition: &Definition, version: &Version) -> Resource {
    Resource {
        group: definition.group.clone(),
        version: version.name.clone(),
        kind: version.kind.clone(),
        list_kind: version.list_kind.clone(),
        plural: definition.plural.clone(),
        namespaced: definition.namespaced,
        custom: !definition.is_go_type(),
        // of namespaces documents say what was answered once
        answers_deleted_object: definition.strategy.answers_deleted_object()
            && (definition.group.as_str(), definition.plural.as_str()) != ("", "namespaces"),
        verbs: definition.verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        subresources: discovery::subresources(definition, version),
    }
}

fn custom_at(cluster: &LogicalCluster, path: &str) -> Vec<Value> {
    let Some((group, version)) = path.strip_prefix("apis/").and_then(|rest| rest.split_once('/')) else {
        return Vec::new();
    };
    let serves = |crd: &Value| {
        crd.at("/spec/versions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .any(|own| own.get("name").and_then(Value::as_str) == Some(version))
    };
    cluster
        .custom_resource_definitions(group)
        .iter()
        .map(|entry| object::value_of(entry))
        .filter(serves)
        .collect()
}

fn custom_document(cluster: &LogicalCluster, path: &str) -> Option<Bytes> {
    let (group, version) = path.strip_prefix("apis/")?.split_once('/')?;
    let mut components = Map::new();
    let crds = custom_at(cluster, path);
    if crds.is_empty() {
        return None;
    }
    for crd in &crds {
        let served = crate::meta::elements(crd, "/spec/versions");
        let served = served
            .iter()
            .find(|own| own.get("name").and_then(Value::as_str) == Some(version))?;
        let kind = crate::meta::text(crd, "/spec/names/kind");
        let list_kind = crate::meta::text(crd, "/spec/names/listKind");
        let list_kind = if list_kind.is_empty() {
            format!("{kind}List")
        } else {
            list_kind.to_owned()
        };
        let fields = crate::meta::elements(served, "/selectableFields").iter();
        let fields: Vec<&str> = fields
            .map(|field| crate::meta::text(field, "/jsonPath").trim_start_matches('.'))
            .collect();
        components.extend(openapi::crd_components(Custom {
            group,
            version,
            kind,
            list_kind: &list_kind,
            schema: served.at("/schema/openAPIV3Schema"),
            has_scale: served.at("/subresources/scale").is_some(),
            selectable_fields: &fields,
        }));
    }
    let about = About {
        title: "Kubernetes CRD Swagger".to_owned(),
        version: "v0.1.0".to_owned(),
        refuses: true,
        credentials: false,
    };
    let document = openapi::document(&about, components, &resources(cluster, path), None);
    serde_json::to_vec(&document).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hashes_are_of_all_that_is_in_a_document() {
        let cluster = LogicalCluster::in_memory();
        let crd = |generation: i64, kind: &str| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "things.example.com", "uid": "u", "generation": generation},
                "spec": {
                    "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": kind}}}],
                },
                "status": {
                    "acceptedNames": {"plural": "things", "kind": "Thing"},
                    "conditions": [{"type": "NamesAccepted", "status": "True"}],
                },
            })
        };
        let path = "apis/example.com/v1";
        cluster.copy_in(vec![crd(1, "object")]).await.unwrap();
        let paths = served_paths(&cluster);
        assert!(paths.iter().any(|own| own == path) && paths.len() > 10, "{paths:?}");
        for path in &paths {
            let document = document(&cluster, path).unwrap();
            assert_eq!(hash(&cluster, path), tags::digest(&document), "{path}");
        }
        let before = hash(&cluster, path);
        cluster.copy_in(vec![crd(2, "string")]).await.unwrap();
        assert_ne!(hash(&cluster, path), before);
        assert_eq!(hash(&cluster, path), tags::digest(document(&cluster, path).unwrap()));
    }

    /// What was recorded of the operations of a document: by path and method their identifiers, actions and kinds.
    fn operations(document: &Value) -> BTreeMap<(String, String), [Value; 3]> {
        let paths = document["paths"].as_object().unwrap();
        let each = |(path, item): (&String, &Value)| -> Vec<_> {
            let methods = item
                .as_object()
                .unwrap()
                .iter()
                .filter(|(name, _)| *name != "parameters");
            let of = ["operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind"];
            methods
                .map(|(method, own)| ((path.clone(), method.clone()), of.map(|name| own[name].clone())))
                .collect()
        };
        paths.iter().flat_map(each).collect()
    }

    #[tokio::test]
    async fn documents_have_the_operations_that_were_recorded() {
        let cluster = LogicalCluster::in_memory();
        let recorded = crate::kubernetes::recorded_documents();
        for (path, recorded) in recorded.chain(information::recorded()) {
            let wanted = operations(&serde_json::from_str(recorded).unwrap());
            let document: Value = serde_json::from_slice(&document(&cluster, &path).unwrap()).unwrap();
            let found = operations(&document);
            for (of, operation) in &wanted {
                assert_eq!(found.get(of), Some(operation), "{path}: {of:?}");
            }
            let more: Vec<_> = found.keys().filter(|of| !wanted.contains_key(*of)).collect();
            assert!(more.is_empty(), "{path}: {more:?}");
        }
    }
}
