//! `/healthz`, `/livez`, `/readyz` and `/version`.

use std::collections::BTreeSet;
use std::iter;
use std::time::Duration;

use gardener_apimachinery::field::go_quote;
use http::{Response, StatusCode};
use serde::Serialize;
use tokio::time::timeout;

use crate::accept::Accept;
use crate::cluster::LogicalCluster;
use crate::request::Query;
use crate::respond::{self, Body};

/// How long the store may take to answer a check.
const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// What is checked, under kube-apiserver's names and in its order. What it does after its start (roles, namespaces, informers, controllers) is done
/// here before a cluster is served; what needs no work here (requests do not queue), or none before others are served (addresses are repaired), always is well.
const CHECKS: [&str; 34] = [
    "ping",
    "log",
    "loopback-serving-certificate",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];
/// Those of them that a server has that follows an aggregator.
const OF_FOLLOWERS: [&str; 3] = ["ping", "log", "etcd"];

/// The paths that tell health.
const PATHS: [&str; 3] = ["healthz", "livez", "readyz"];

/// The checks of one of [`PATHS`].
fn checks(cluster: &LogicalCluster, kind: &str) -> Vec<&'static str> {
    let follows = cluster.config().elsewhere.is_some();
    let mut checks = if follows {
        OF_FOLLOWERS.to_vec()
    } else {
        CHECKS.to_vec()
    };
    if kind == "readyz" {
        checks.retain(|check| *check != "loopback-serving-certificate");
        let store = checks
            .iter()
            .position(|check| *check == "etcd")
            .map_or(0, |place| place + 1);
        checks.splice(store..store, ["etcd-readiness", "informer-sync"]);
        checks.push("shutdown");
    }
    checks
}

/// All paths that tell the health of a cluster: of the whole, and of each check.
pub fn paths(cluster: &LogicalCluster) -> Vec<String> {
    let of_checks = |kind: &'static str| {
        let checks = checks(cluster, kind).into_iter();
        checks.map(move |check| format!("/{kind}/{check}"))
    };
    let all = PATHS.into_iter();
    all.flat_map(|kind| iter::once(format!("/{kind}")).chain(of_checks(kind)))
        .collect()
}

/// Whether a path may be read without credentials.
pub fn is_public(path: &str) -> bool {
    let path = path.trim_matches('/');
    path == "version" || PATHS.contains(&path)
}

async fn check(cluster: &LogicalCluster, name: &str) -> Result<(), String> {
    match name {
        "etcd" | "etcd-readiness" => match timeout(STORE_PATIENCE, cluster.store().catch_up()).await {
            Ok(caught_up) => caught_up.map_err(|behind| behind.to_string()),
            Err(_) => Err("etcd did not answer in time".to_owned()),
        },
        "informer-sync" => match cluster.config().elsewhere.as_ref().map(|elsewhere| elsewhere.waiting()) {
            Some(waiting) if !waiting.is_empty() => Err(format!("not read yet: {}", waiting.join(", "))),
            _ => Ok(()),
        },
        "shutdown" if cluster.is_ending() => Err("process is shutting down".to_owned()),
        _ => Ok(()),
    }
}

/// What all checks of a path find.
async fn all_checks(cluster: &LogicalCluster, kind: &'static str, query: &Query) -> Response<Body> {
    let mut unknown: BTreeSet<&str> = query.all("exclude").collect();
    let excluded = unknown.clone();
    let (mut found, mut failed) = (String::new(), false);
    for name in checks(cluster, kind) {
        found += &if excluded.contains(name) {
            unknown.remove(name);
            format!("[+]{name} excluded: ok\n")
        } else {
            let found = check(cluster, name).await;
            cluster.metrics().checked(name, kind, found.is_ok());
            match found {
                Ok(()) => format!("[+]{name} ok\n"),
                Err(reason) => {
                    tracing::warn!(check = name, reason, "a health check failed");
                    failed = true;
                    format!("[-]{name} failed: reason withheld\n")
                }
            }
        };
    }
    if !unknown.is_empty() {
        let unknown: Vec<String> = unknown.into_iter().map(go_quote).collect();
        let unknown = unknown.join(",");
        found += &format!("warn: some health checks cannot be excluded: no matches for {unknown}\n");
    }
    if failed {
        return respond::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{found}{kind} check failed\n"),
        );
    }
    match query.has("verbose") {
        true => respond::text(StatusCode::OK, format!("{found}{kind} check passed\n")),
        false => respond::text(StatusCode::OK, "ok"),
    }
}

/// Answers a health or version path.
pub async fn answer(cluster: &LogicalCluster, path: &str, query: &Query) -> Option<Response<Body>> {
    let path = path.trim_start_matches('/');
    // the version alone is told with a slash behind it, too
    if matches!(path, "version" | "version/") {
        return Some(version(cluster));
    }
    let (kind, name) = match path.split_once('/') {
        Some((kind, name)) => (kind, Some(name)),
        None => (path, None),
    };
    let kind = PATHS.into_iter().find(|own| *own == kind)?;
    let Some(name) = name else {
        return Some(all_checks(cluster, kind, query).await);
    };
    if !checks(cluster, kind).contains(&name) {
        return None;
    }
    Some(match check(cluster, name).await {
        Ok(()) => respond::with_type(StatusCode::OK, respond::full("ok"), respond::PLAIN_TEXT),
        Err(reason) => respond::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("internal server error: {reason}\n"),
        ),
    })
}

/// What `/version` tells, in upstream's order: people read it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version<'a> {
    major: &'a str,
    minor: &'a str,
    emulation_major: &'a str,
    emulation_minor: &'a str,
    min_compatibility_major: &'a str,
    min_compatibility_minor: String,
    git_version: &'a str,
    git_commit: &'a str,
    git_tree_state: &'a str,
    build_date: &'a str,
    go_version: &'a str,
    compiler: &'a str,
    platform: String,
}

fn version(cluster: &LogicalCluster) -> Response<Body> {
    let (major, minor) = cluster.config().release();
    let version = Version {
        major,
        minor,
        emulation_major: major,
        emulation_minor: minor,
        min_compatibility_major: major,
        // what the release before knows is kept
        min_compatibility_minor: minor.parse::<u32>().unwrap_or_default().saturating_sub(1).to_string(),
        git_version: &cluster.config().git_version,
        git_commit: "",
        git_tree_state: "clean",
        build_date: "1970-01-01T00:00:00Z",
        go_version: "",
        compiler: "rustc",
        platform: format!("{}/{}", std::env::consts::OS, go_arch()),
    };
    let text = serde_json::to_vec_pretty(&version).unwrap_or_default();
    respond::raw(StatusCode::OK, text, Accept::JSON)
}

fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
