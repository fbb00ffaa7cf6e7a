//! `/healthz`, `/livez`, `/readyz` and `/version`.

use http::{Response, StatusCode};
use serde_json::json;

use crate::accept::Accept;
use crate::cluster::LogicalCluster;
use crate::request::Query;
use crate::respond::{self, Body};

/// Whether a path may be read without credentials.
pub fn is_public(path: &str) -> bool {
    let root = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    matches!(root, "healthz" | "livez" | "readyz" | "version")
}

/// Answers a health or version path.
pub fn answer(cluster: &LogicalCluster, path: &str, query: &Query) -> Option<Response<Body>> {
    let mut parts = path.trim_matches('/').split('/');
    match (parts.next()?, parts.next()) {
        (kind @ ("healthz" | "livez" | "readyz"), check) => {
            const CHECKS: [&str; 3] = ["ping", "log", "etcd"];
            match check {
                Some(check) if !CHECKS.contains(&check) => None,
                Some(_) => Some(respond::text(StatusCode::OK, "ok")),
                None if query.has("verbose") => {
                    let lines: String = CHECKS.iter().map(|check| format!("[+]{check} ok\n")).collect();
                    Some(respond::text(StatusCode::OK, format!("{lines}{kind} check passed\n")))
                }
                None => Some(respond::text(StatusCode::OK, "ok")),
            }
        }
        ("version", None) => {
            let git = &cluster.config().git_version;
            let mut numbers = git.trim_start_matches('v').split('.');
            let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
            let body = json!({
                "major": major, "minor": minor, "emulationMajor": major, "emulationMinor": minor, "minCompatibilityMajor": major, "minCompatibilityMinor": minor,
                "gitVersion": git, "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
                "goVersion": "", "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, go_arch()),
            });
            Some(respond::value(
                StatusCode::OK,
                &body,
                Accept {
                    pretty: true,
                    ..Accept::JSON
                },
            ))
        }
        _ => None,
    }
}

fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
