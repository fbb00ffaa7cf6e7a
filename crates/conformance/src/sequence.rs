//! Sequences of requests, as the files in `sequences/` tell them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Requests that belong together. They have a namespace of their own, `${ns}`, which is there with a service account `default`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// What it is about; unique in its file.
    pub name: String,
    /// Webhooks that the server may call at `${webhook}/${ns}/<name>`, whose authority is `${ca}`.
    #[serde(default)]
    pub webhooks: BTreeMap<String, crate::webhook::Script>,
    /// The requests in order.
    pub steps: Vec<Step>,
}

/// One request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Method and path with query, `GET /api/v1/namespaces/${ns}/pods`. `${name}` stands for a variable here, in headers and in bodies.
    pub request: String,
    /// Why our answer differs from the recorded one. A step that has this and does not differ fails, so that nothing is excused for longer
    /// than it must be.
    #[serde(default)]
    pub differs: Option<String>,
    /// The body as JSON; sent as protobuf if that is the content type.
    #[serde(default)]
    pub body: Option<Value>,
    /// The body as it is.
    #[serde(default)]
    pub text: Option<String>,
    /// The body's content type; JSON without one.
    #[serde(default)]
    pub content_type: Option<String>,
    /// Headers besides.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Asks again until this is the status, for what kube-apiserver does a moment later.
    #[serde(default)]
    pub until: Option<u16>,
    /// Headers that are compared instead of the body.
    #[serde(default)]
    pub tells: Vec<String>,
    /// Variables to set from the answer, as JSON pointers.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
}

/// What a server answered, without what differs from run to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: String,
    /// `Warning` headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Headers, of steps that compare them instead of the body.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub told: BTreeMap<String, String>,
    /// The body: JSON, a list of the events of a watch, or text.
    pub body: Value,
    /// What the server asked webhooks meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Value>,
}

/// The answers to one sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The sequence's name.
    pub name: String,
    /// One per step.
    pub answers: Vec<Answer>,
}

/// Sequences of one topic and where their recordings are.
pub struct Topic {
    /// The file's name without its ending.
    pub name: String,
    /// What is asked.
    pub sequences: Vec<Sequence>,
    /// The file of the recordings.
    pub recordings: PathBuf,
}

/// Where this crate's data is.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All topics in order of their names.
///
/// # Errors
/// A file cannot be read or is no list of sequences.
pub fn topics() -> anyhow::Result<Vec<Topic>> {
    let folder = root().join("sequences");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .with_context(|| format!("{} cannot be read", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    files.sort();
    files.iter().map(|file| topic(file)).collect()
}

fn topic(file: &Path) -> anyhow::Result<Topic> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let sequences: Vec<Sequence> =
        serde_saphyr::from_str(&text).with_context(|| format!("{} is no list of sequences", file.display()))?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let recordings = root().join("recordings").join(format!("{name}.json"));
    Ok(Topic {
        name,
        sequences,
        recordings,
    })
}

impl Topic {
    /// What kube-apiserver answered.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn recorded(&self) -> anyhow::Result<Vec<Recording>> {
        let file = self.recordings.display();
        let text = std::fs::read_to_string(&self.recordings).with_context(|| {
            format!("{file} cannot be read; `cargo run -p gardener-conformance -- record` makes it")
        })?;
        serde_json::from_str(&text).with_context(|| format!("{file} is damaged"))
    }

    /// Writes what kube-apiserver answered.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record(&self, recordings: &[Recording]) -> anyhow::Result<()> {
        // a line per answer: differences are seen, and the file stays small
        let mut text = String::from("[");
        for (at, recording) in recordings.iter().enumerate() {
            let name = Value::from(recording.name.as_str());
            text.push_str(if at == 0 { "\n" } else { ",\n" });
            text.push_str(&format!("{{\"name\": {name}, \"answers\": ["));
            for (at, answer) in recording.answers.iter().enumerate() {
                text.push_str(if at == 0 { "\n  " } else { ",\n  " });
                text.push_str(&serde_json::to_string(answer)?);
            }
            text.push_str("\n]}");
        }
        text.push_str("\n]\n");
        std::fs::write(&self.recordings, text)
            .with_context(|| format!("{} cannot be written", self.recordings.display()))
    }
}
