//! The documents of what is no resource: the lists of discovery, the version, how tokens are checked.

use gardener_schema::openapi::{self, About, Information};
use serde_json::Value;

use crate::cluster::LogicalCluster;
use crate::oidc;

/// What the lists of the core group, of groups, and of a group's versions are made of, and the version.
const VERSIONS: &str = include_str!("../../recorded/openapi-v3/api.json");
const GROUPS: &str = include_str!("../../recorded/openapi-v3/apis.json");
const GROUP: &str = include_str!("../../recorded/openapi-v3/apis_apps.json");
const PROGRAM: &str = include_str!("../../recorded/openapi-v3/version.json");

const OF_VERSIONS: Information =
    Information::discovery("APIVersions", "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions");
const OF_GROUPS: Information =
    Information::discovery("APIVersions", "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList");
const OF_GROUP: Information = Information::discovery("APIGroup", "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup");
/// The list of a version's resources, which stands in the version's own document.
pub(super) const OF_RESOURCES: Information =
    Information::discovery("APIResources", "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList");
const OF_PROGRAM: Information = Information {
    subject: "CodeVersion",
    component: Some("io.k8s.apimachinery.pkg.version.Info"),
    produces: &["application/json"],
};
const OF_ISSUER: Information = Information {
    subject: "ServiceAccountIssuerOpenIDConfiguration",
    component: None,
    produces: &["application/json"],
};
const OF_KEYS: Information = Information {
    subject: "ServiceAccountIssuerOpenIDKeyset",
    component: None,
    produces: &["application/jwk-set+json"],
};

/// Where these documents of a cluster are, that serves these versions of built-in kinds (`api/v1`, `apis/apps/v1`).
pub(super) fn paths(cluster: &LogicalCluster, versions: &[String]) -> Vec<String> {
    let mut paths: Vec<String> = versions
        .iter()
        .filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned()))
        .collect();
    paths.extend(["apis", "version"].map(str::to_owned));
    if oidc::is_served(&cluster.config().authenticator.settings()) {
        paths.extend(oidc::PATHS.map(|path| path.trim_start_matches('/').to_owned()));
    }
    paths
}

/// What is answered at a path, if it is one of these, and a recorded document that has the components.
fn told(path: &str) -> Option<(Information, &'static str)> {
    Some(match path {
        "api" => (OF_VERSIONS, VERSIONS),
        "apis" => (OF_GROUPS, GROUPS),
        "version" => (OF_PROGRAM, PROGRAM),
        _ if oidc::CONFIGURATION.strip_prefix('/') == Some(path) => (OF_ISSUER, "{}"),
        _ if oidc::KEYS.strip_prefix('/') == Some(path) => (OF_KEYS, "{}"),
        _ if path.strip_prefix("apis/").is_some_and(|group| !group.contains('/')) => (OF_GROUP, GROUP),
        _ => return None,
    })
}

/// Whether the document at a path is one of these.
pub(super) fn is_told(path: &str) -> bool {
    told(path).is_some()
}

/// The document at a path, if it is one of these.
pub(super) fn document(about: &About, path: &str) -> Option<Value> {
    let (information, recorded) = told(path)?;
    let components = super::components(recorded)?;
    let listed = (&*format!("/{path}/"), information);
    Some(openapi::document(about, components, &[], Some(listed)))
}

/// What was recorded of these documents, by path.
#[cfg(test)]
pub(super) fn recorded() -> impl Iterator<Item = (String, &'static str)> {
    let documents = [
        ("api", VERSIONS),
        ("apis", GROUPS),
        ("apis/apps", GROUP),
        ("version", PROGRAM),
    ];
    documents.into_iter().map(|(path, text)| (path.to_owned(), text))
}
