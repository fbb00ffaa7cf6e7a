//! Takes out of answers what differs from run to run: times, uids, revisions, generated names. What was equal stays equal: the second uid
//! that a sequence meets is `uid-2` wherever it stands.

use std::sync::LazyLock;

use gardener_apimachinery::pointer::Pointed;
use regex::{Captures, Regex};
use serde_json::{Map, Value};

fn pattern(text: &str) -> Regex {
    #[allow(clippy::expect_used)] // constants of this file
    Regex::new(text).expect("a valid pattern")
}

static TIME: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"));
static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static REVISION_IN_TEXT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"(ResourceVersion in \w+ ?\w*:? ?\(?|resource version: |resourceVersion\\?":\\?")(\d+)"#)
});
static REVISION_REACHED: LazyLock<Regex> = LazyLock::new(|| pattern(r"(resource version: <revision>, current: )\d+"));
static TOKEN_VOLUME: LazyLock<Regex> = LazyLock::new(|| pattern(r"kube-api-access-[a-z0-9]{5}"));
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\ds$"));
static TOKEN: LazyLock<Regex> = LazyLock::new(|| pattern(r"^eyJ[\w-]+\.[\w-]+\.[\w-]+$"));

static HASH: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b([0-9A-F]{32}|[0-9A-F]{128})\b"));

/// A header without the hash of what it is about: each server hashes in its own way.
pub fn without_hash(text: &str) -> String {
    HASH.replace_all(text, "<hash>").into_owned()
}

/// What one sequence has met so far.
#[derive(Default)]
pub struct Normalizer {
    namespace: String,
    /// Texts and what stands for them.
    hidden: Vec<(String, &'static str)>,
    uids: Vec<String>,
    revisions: Vec<String>,
    addresses: Vec<String>,
    ports: Vec<String>,
}

fn nth(known: &mut Vec<String>, value: &str) -> usize {
    match known.iter().position(|own| own == value) {
        Some(at) => at + 1,
        None => {
            known.push(value.to_owned());
            known.len()
        }
    }
}

impl Normalizer {
    /// For a sequence whose namespace has this name.
    pub fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            ..Self::default()
        }
    }

    /// Has something that is another in every run stand as `shown`.
    pub fn hide(&mut self, text: &str, shown: &'static str) {
        self.hidden.push((text.to_owned(), shown));
    }

    /// A text without times, uids and the namespace's name.
    pub fn text(&mut self, text: &str) -> String {
        let hidden = self.hidden.iter();
        let text = hidden.fold(text.to_owned(), |text, (hidden, shown)| text.replace(hidden, shown));
        let text = text.replace(&self.namespace, "${ns}");
        let text = TIME.replace_all(&text, "<time>");
        let text = TOKEN_VOLUME.replace_all(&text, "kube-api-access-xxxxx");
        let text = TOKEN.replace_all(&text, "<token>");
        let text = REVISION_IN_TEXT.replace_all(&text, "$1<revision>");
        let text = REVISION_REACHED.replace_all(&text, "$1<revision>");
        let uids = &mut self.uids;
        UID.replace_all(&text, |found: &Captures<'_>| format!("uid-{}", nth(uids, &found[0])))
            .into_owned()
    }

    /// A JSON value in the same manner; revisions too.
    pub fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(elements) => elements.iter().map(|element| self.value(element)).collect(),
            Value::Object(members) => Value::Object(self.object(members)),
            other => other.clone(),
        }
    }

    fn address(&mut self, address: &str) -> String {
        match address.starts_with("10.") {
            true => format!("ip-{}", nth(&mut self.addresses, address)),
            false => address.to_owned(),
        }
    }

    fn object(&mut self, members: &Map<String, Value>) -> Map<String, Value> {
        let of_object = || members.get("object")?.at("/metadata/generateName");
        let generated = members
            .get("generateName")
            .or_else(of_object)
            .and_then(Value::as_str)
            .filter(|prefix| !prefix.is_empty());
        // the revision of a list or bookmark is the store's, which others move too
        let is_list = members
            .get("kind")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind.ends_with("List") || kind == "Table");
        let is_bookmark = members.get("type").and_then(Value::as_str) == Some("BOOKMARK");
        let mut found = Map::new();
        for (key, value) in members {
            let normalized = match (key.as_str(), value) {
                ("object", bookmark) if is_bookmark => {
                    self.value(&without_revision(bookmark, "/metadata/resourceVersion"))
                }
                ("metadata", metadata) if is_list => self.value(&without_revision(metadata, "/resourceVersion")),
                ("resourceVersion", Value::String(revision)) if revision.len() > 1 && is_number(revision) => {
                    format!("revision-{}", nth(&mut self.revisions, revision)).into()
                }
                // what servers choose at random
                ("clusterIP", Value::String(address)) => self.address(address).into(),
                ("clusterIPs", Value::Array(addresses)) => addresses
                    .iter()
                    .map(|address| self.address(address.as_str().unwrap_or_default()))
                    .collect(),
                ("nodePort" | "healthCheckNodePort", Value::Number(port)) => {
                    format!("port-{}", nth(&mut self.ports, &port.to_string())).into()
                }
                // of prose only whether there is any
                ("description", Value::String(prose)) if members.contains_key("priority") && !prose.is_empty() => {
                    "<prose>".into()
                }
                // how long ago something was is a matter of how fast servers are
                ("cells", Value::Array(cells)) => cells
                    .iter()
                    .map(|cell| match cell.as_str() {
                        Some(age) if AGE.is_match(age) => "0s".into(),
                        _ => self.value(cell),
                    })
                    .collect(),
                ("continue", Value::String(token)) if !token.is_empty() => "<token>".into(),
                ("name", Value::String(name)) => match generated {
                    Some(prefix) if name.strip_prefix(prefix).is_some_and(|rest| rest.len() == 5) => {
                        format!("{}xxxxx", self.text(prefix)).into()
                    }
                    _ => self.value(value),
                },
                _ => self.value(value),
            };
            found.insert(self.text(key), normalized);
        }
        found
    }
}

fn without_revision(value: &Value, pointer: &str) -> Value {
    let mut value = value.clone();
    if let Some(revision) = value.at_mut(pointer) {
        *revision = "<revision>".into();
    }
    value
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_equal_stays_equal() {
        let mut normalizer = Normalizer::new("seq-7");
        let (one, two) = (
            "0a1b2c3d-0000-4000-8000-000000000001",
            "0a1b2c3d-0000-4000-8000-000000000002",
        );
        let object = json!({
            "metadata": {"generateName": "a-", "name": "a-x7zzq", "namespace": "seq-7", "uid": two, "resourceVersion": "1234", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "owner": one, "text": format!("uid {two} in seq-7"), format!("k:{{\"uid\":\"{one}\"}}"): {},
        });
        assert_eq!(
            normalizer.value(&object),
            json!({
                "metadata": {"generateName": "a-", "name": "a-xxxxx", "namespace": "${ns}", "uid": "uid-2", "resourceVersion": "revision-1", "creationTimestamp": "<time>"},
                "owner": "uid-1", "text": "uid uid-2 in ${ns}", "k:{\"uid\":\"uid-1\"}": {},
            })
        );
        assert_eq!(
            normalizer.value(&json!({"resourceVersion": "0"})),
            json!({"resourceVersion": "0"})
        );
    }
}
