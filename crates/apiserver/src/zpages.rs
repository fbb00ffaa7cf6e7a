//! `/statusz` and `/flagz`: what a server tells people of itself, as text, or as objects of `config.k8s.io` for who asks for these. From
//! pkg/server/statusz and pkg/server/flagz of Kubernetes' API server library.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use gardener_apimachinery::ApiError;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::accept::{Accept, Encoding, Wanted};
use crate::cluster::LogicalCluster;
use crate::discovery;
use crate::meta;
use crate::respond::{self, Body};

/// What these servers are called there, whatever they serve.
const COMPONENT: &str = "apiserver";
/// The media types in which they answer.
const MEDIA_TYPES: [&str; 3] = ["application/json", "application/yaml", "text/plain"];
/// What stands between a name and its value is not told beforehand: this is for people.
const DELIMITERS: [&str; 4] = [":", ": ", "=", " "];
/// The paths that are no help in looking for a mistake.
const NO_HELP: [&str; 5] = ["/.well-known", "/api", "/apis", "/openapi", "/openid"];

/// The pages, by the kinds of their objects.
const STATUS: &str = "Statusz";
const FLAGS: &str = "Flagz";

/// The paths that a cluster has of these.
pub(crate) fn paths(cluster: &LogicalCluster) -> impl Iterator<Item = String> {
    let flags = cluster.config().flags.as_ref().map(|_| "/flagz".to_owned());
    flags.into_iter().chain(["/statusz".to_owned()])
}

/// Answers one of these paths.
///
/// # Errors
/// 406 for a client that accepts none of the forms.
pub(crate) fn answer(
    cluster: &LogicalCluster,
    path: &str,
    wanted: &Wanted,
) -> Result<Option<Response<Body>>, ApiError> {
    let (kind, flags) = match (path, &cluster.config().flags) {
        ("/statusz", _) => (STATUS, None),
        ("/flagz", Some(flags)) => (FLAGS, Some(flags.as_ref())),
        _ => return Ok(None),
    };
    let Form::Object { accept, version } = Form::choose(wanted, kind)? else {
        let chosen = cluster.chance().below(DELIMITERS.len() as u64);
        let delimiter = DELIMITERS.into_iter().zip(0..).find(|(_, place)| *place == chosen);
        let delimiter = delimiter.map_or(":", |(delimiter, _)| delimiter);
        let told = match flags {
            Some(flags) => flags_as_text(flags, delimiter),
            None => Status::of(cluster).text(delimiter),
        };
        let text = format!(
            "\n{COMPONENT} {}\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n{told}",
            kind.to_lowercase()
        );
        return Ok(Some(respond::with_type(
            StatusCode::OK,
            respond::full(text),
            respond::PLAIN_TEXT,
        )));
    };
    let mut object = match flags {
        Some(flags) => json!({"flags": flags}),
        None => Status::of(cluster).object(),
    };
    if let Value::Object(members) = &mut object {
        members.insert("kind".into(), kind.into());
        members.insert("apiVersion".into(), format!("config.k8s.io/{version}").into());
        members.insert("metadata".into(), json!({"name": COMPONENT}));
    }
    let content_type = accept.content_type_of(("config.k8s.io", version, kind))?;
    let mut response = respond::value(StatusCode::OK, &object, accept);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    if version == "v1alpha1" {
        let page = kind.to_lowercase();
        let sentence = format!("This version of the {page} endpoint is deprecated. Please use a newer version.");
        respond::warn(&mut response, &[sentence]);
    }
    Ok(Some(response))
}

fn flags_as_text(flags: &BTreeMap<String, String>, delimiter: &str) -> String {
    let mut text = String::new();
    for (flag, value) in flags {
        // a string takes whatever is written
        let _ = writeln!(text, "{flag}{delimiter}{value}");
    }
    text
}

/// The form of an answer.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    Text,
    Object { accept: Accept, version: &'static str },
}

impl Form {
    fn choose(wanted: &Wanted, kind: &str) -> Result<Self, ApiError> {
        let [json, yaml, text] = MEDIA_TYPES;
        let offered = [(json, Some(Encoding::Json)), (yaml, Some(Encoding::Yaml)), (text, None)];
        let found = wanted.find(&offered, |encoding, asked| {
            if !asked.stream.is_empty() || !asked.server_version.is_empty() {
                return None;
            }
            let Some(encoding) = encoding else {
                return (!asked.transforms()).then_some(Self::Text);
            };
            let is_of_kind = asked.group == "config.k8s.io" && asked.kind == Some(kind);
            let mut versions = ["v1beta1", "v1alpha1"].into_iter().filter(|_| is_of_kind);
            Some(Self::Object {
                accept: asked.of_one_shape(encoding),
                version: versions.find(|own| *own == asked.version)?,
            })
        });
        found.ok_or_else(|| ApiError::not_acceptable(&MEDIA_TYPES))
    }
}

/// What `/statusz` tells.
struct Status {
    started: Timestamp,
    now: Timestamp,
    binary: String,
    emulated: String,
    paths: BTreeSet<String>,
}

impl Status {
    fn of(cluster: &LogicalCluster) -> Self {
        let binary = cluster.config().git_version.trim_start_matches('v').to_owned();
        let (major, minor) = cluster.config().release();
        let paths = discovery::root_paths(cluster).into_iter().filter_map(|path| {
            let first = path.trim_start_matches('/').split('/').next()?;
            let folder = format!("/{first}");
            (!first.is_empty() && !NO_HELP.contains(&folder.as_str())).then_some(folder)
        });
        Self {
            started: cluster.opened(),
            now: cluster.clock().now(),
            emulated: format!("{major}.{minor}"),
            binary,
            paths: paths.collect(),
        }
    }

    fn seconds_up(&self) -> i64 {
        self.now.duration_since(self.started).as_secs().max(0)
    }

    fn object(&self) -> Value {
        json!({
            "startTime": meta::rfc3339(self.started), "uptimeSeconds": self.seconds_up(), "goVersion": "",
            "binaryVersion": self.binary, "emulationVersion": self.emulated, "paths": self.paths,
        })
    }

    fn text(&self, delimiter: &str) -> String {
        let up = self.seconds_up();
        let up = format!("{} hr {:02} min {:02} sec", up / 3600, up / 60 % 60, up % 60);
        let paths: Vec<&str> = self.paths.iter().map(String::as_str).collect();
        let lines = [
            ("Started", self.started.strftime("%a %b %e %H:%M:%S UTC %Y").to_string()),
            ("Up", up),
            ("Go version", String::new()),
            ("Binary version", self.binary.clone()),
            ("Emulation version", self.emulated.clone()),
            ("Paths", paths.join(" ")),
        ];
        let lines = lines.map(|(name, value)| format!("{name}{delimiter} {value}\n"));
        format!("\n{}", lines.concat())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::{ACCEPT, HeaderValue};

    use super::*;

    #[test]
    fn who_names_kind_and_version_gets_an_object() {
        let object = |encoding, version| {
            Ok(Form::Object {
                accept: Accept {
                    encoding,
                    ..Accept::JSON
                },
                version,
            })
        };
        let (json, yaml) = (Encoding::Json, Encoding::Yaml);
        for (text, expected) in [
            ("", Ok(Form::Text)),
            ("*/*", Ok(Form::Text)),
            ("text/plain", Ok(Form::Text)),
            ("text/plain;as=Statusz;g=config.k8s.io;v=v1beta1", Err(406)),
            ("application/json", Err(406)),
            ("application/xml", Err(406)),
            ("application/json;v=v1beta1;g=config.k8s.io", Err(406)),
            ("application/json;v=v1;g=config.k8s.io;as=Statusz", Err(406)),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Flagz", Err(406)),
            ("application/json;v=foo;g=config.k8s.io;as=Statusz,*/*", Ok(Form::Text)),
            (
                "application/json;v=v1beta1;g=config.k8s.io;as=Statusz",
                object(json, "v1beta1"),
            ),
            (
                "application/yaml;v=v1alpha1;g=config.k8s.io;as=Statusz",
                object(yaml, "v1alpha1"),
            ),
            (
                "application/json;g=config.k8s.io;v=v1beta1;as=Statusz,application/json;g=config.k8s.io;v=v1alpha1;as=Statusz",
                object(json, "v1beta1"),
            ),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(text));
            let chosen = Form::choose(&Wanted::of(&headers, ""), STATUS);
            assert_eq!(chosen.map_err(|error| error.code()), expected, "{text}");
        }
    }

    #[test]
    fn what_is_told_as_text() {
        let status = Status {
            started: "2026-11-05T08:09:10Z".parse().unwrap(),
            now: "2026-11-06T09:10:13Z".parse().unwrap(),
            binary: "1.36.3".to_owned(),
            emulated: "1.36".to_owned(),
            paths: ["/healthz".to_owned(), "/version".to_owned()].into(),
        };
        assert_eq!(
            status.text(":"),
            "\nStarted: Thu Nov  5 08:09:10 UTC 2026\nUp: 25 hr 01 min 03 sec\nGo version: \nBinary version: 1.36.3\n\
             Emulation version: 1.36\nPaths: /healthz /version\n"
        );
        assert_eq!(status.object()["uptimeSeconds"], 90063);
        let flags = [("a".to_owned(), "1".to_owned()), ("b".to_owned(), String::new())];
        assert_eq!(flags_as_text(&flags.into(), "="), "a=1\nb=\n");
    }
}
