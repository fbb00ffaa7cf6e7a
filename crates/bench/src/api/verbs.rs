//! Requests on ConfigMaps of 1.5 kB.

use anyhow::Context;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use kube::Client;
use kube::client::Body;
use serde_json::json;

use crate::load::{post, send};

/// Where the ConfigMaps are.
pub const PATH: &str = "/api/v1/namespaces/bench/configmaps";
/// Bytes of data in an object.
const SIZE: usize = 1500;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Create,
    Get,
    Update,
    Patch,
    Apply,
}

impl Verb {
    /// In the order in which they are measured.
    pub const ALL: [Self; 5] = [Self::Create, Self::Get, Self::Update, Self::Patch, Self::Apply];

    /// For the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::Update => "update",
            Self::Patch => "merge patch",
            Self::Apply => "apply",
        }
    }

    /// The request of a number, where there are as many objects: each object once for creations, else all over the place but each worker another.
    pub fn request(self, turn: u32, objects: u32) -> anyhow::Result<Request<Body>> {
        let object = match self {
            Self::Create => turn,
            _ => turn.wrapping_mul(7919) % objects,
        };
        let path = format!("{PATH}/object-{object}");
        let text = text(turn);
        let whole = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("object-{object}"), "namespace": "bench", "labels": {"app": "bench", "part": (object % 10).to_string()}},
            "data": {"turn": turn.to_string(), "text": text},
        });
        let (method, path, content_type, body) = match self {
            Self::Create => ("POST", PATH.to_owned(), "application/json", Some(whole)),
            Self::Get => ("GET", path, "application/json", None),
            Self::Update => ("PUT", path, "application/json", Some(whole)),
            Self::Patch => (
                "PATCH",
                path,
                "application/merge-patch+json",
                // another value than the update before it: a patch that changes nothing writes nothing
                Some(json!({"data": {"turn": format!("patched-{turn}")}})),
            ),
            Self::Apply => (
                "PATCH",
                format!("{path}?fieldManager=bench&force=true"),
                "application/apply-patch+yaml",
                Some(whole),
            ),
        };
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        Ok(Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, content_type)
            .header(ACCEPT, "application/json")
            .body(Body::from(body))?)
    }
}

/// Settings as programs have them: names repeat, numbers and words do not.
fn text(turn: u32) -> String {
    const WORDS: [&str; 12] = [
        "timeout",
        "endpoint",
        "replicas",
        "interval",
        "certificate",
        "region",
        "zone",
        "level",
        "prefix",
        "limit",
        "cache",
        "token",
    ];
    let mut text = String::with_capacity(SIZE + 64);
    let mut number = turn.wrapping_mul(2_654_435_761) | 1;
    while text.len() < SIZE {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let word = WORDS
            .get((number >> 16) as usize % WORDS.len())
            .copied()
            .unwrap_or_default();
        text.push_str(&format!("service.{word}.{}: \"{number:x}\"\n", number >> 27));
    }
    text.truncate(SIZE);
    text
}

/// Makes the namespace.
pub async fn namespace(client: &Client) -> anyhow::Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}});
    send(client, post("/api/v1/namespaces", &namespace)?)
        .await
        .context("the namespace cannot be made")
}
