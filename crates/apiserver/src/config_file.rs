//! Configuration files, read as kube-apiserver reads them: what they must say of themselves, and no member that nobody knows.

use bytes::Bytes;
use gardener_apimachinery::field::{Path, go_quote};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::decode::{self, Format, Unknown};

/// What a document must say that it is.
pub(crate) struct Kind {
    /// Its group.
    pub(crate) group: &'static str,
    /// The group's versions, in all of which the kind has the same members.
    pub(crate) versions: &'static [&'static str],
    /// Its name.
    pub(crate) name: &'static str,
}

impl Kind {
    /// One of `apiserver.config.k8s.io`, where most are.
    pub(crate) const fn of_config(name: &'static str) -> Self {
        Self {
            group: "apiserver.config.k8s.io",
            versions: &["v1", "v1beta1", "v1alpha1"],
            name,
        }
    }
}

/// The members that objects of a document have.
pub(crate) enum Known {
    /// Nothing that is looked into.
    Value,
    /// An object with these members.
    Object(&'static [(&'static str, Known)]),
    /// A list of such objects.
    List(&'static Known),
}

/// The paths of members that nobody knows.
fn unknown(value: &Value, known: &Known, path: &Path, found: &mut Vec<String>) {
    match (value, known) {
        (Value::Object(members), Known::Object(names)) => {
            for (name, value) in members {
                let path = path.child(name);
                match names.iter().find(|(own, _)| own == name) {
                    Some((_, known)) => unknown(value, known, &path, found),
                    None => found.push(path.as_str().to_owned()),
                }
            }
        }
        (Value::Array(elements), Known::List(known)) => {
            for (number, element) in elements.iter().enumerate() {
                unknown(element, known, &path.index(number), found);
            }
        }
        _ => {}
    }
}

/// Reads a document (YAML or JSON).
///
/// # Errors
/// Why it is no such document.
pub(crate) fn read<T: DeserializeOwned>(text: &str, kind: &Kind, known: &Known) -> Result<T, String> {
    let Kind { group, versions, name } = kind;
    let body = Bytes::copy_from_slice(text.as_bytes());
    let decoded = decode::decode(&body, Format::Yaml).map_err(|error| error.message().to_owned())?;
    let member = |name: &str| decoded.value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (own_version, own_kind) = (member("apiVersion"), member("kind"));
    for (member, name) in [(own_kind, "Kind"), (own_version, "apiVersion")] {
        if member.is_empty() {
            return Err(format!("Object '{name}' is missing in '{}'", decoded.value));
        }
    }
    let is_known = versions
        .iter()
        .any(|version| own_version == format!("{group}/{version}"));
    if !is_known || own_kind != *name {
        return Err(format!(
            "no kind {} is registered for version {}: expected {name} of {group}/{}",
            go_quote(own_kind),
            go_quote(own_version),
            versions.join(", ")
        ));
    }
    let mut found = Vec::new();
    unknown(&decoded.value, known, &Path::root(), &mut found);
    if !found.is_empty() || decoded.source.has_findings() {
        return Err(format!(
            "strict decoding error: {}",
            decoded.source.refusal(Unknown::OnTheWay(found))
        ));
    }
    T::deserialize(&decoded.value).map_err(|error| error.to_string())
}
