//! Kinds that hold data, and storage classes; volumes and claims have files of their own.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::go_json;
use gardener_apimachinery::names::config_key;
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::checks::{list, map, one_of, syntax, text};
use super::strategy::Kind;
use crate::legacy_tokens;
use crate::meta;
use crate::selectable::Selectable;

pub(super) fn secrets(mut kind: Kind) -> Kind {
    kind.default = |secret| {
        let Some(members) = secret.as_object_mut() else { return };
        if let Some(Value::Object(texts)) = members.remove("stringData") {
            let data = members.entry("data").or_insert_with(|| json!({}));
            if let Some(data) = data.as_object_mut() {
                for (key, text) in texts {
                    data.insert(key, STANDARD.encode(text.as_str().unwrap_or_default()).into());
                }
            }
        }
        if members
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .is_empty()
        {
            members.insert("type".into(), "Opaque".into());
        }
    };
    kind.validate = |secret| {
        let mut errors = validate_keys(secret, "data");
        let data = |key: &str| secret.get("data").and_then(|data| data.get(key)).is_some();
        let required: &[&str] = match meta::text(secret, "/type") {
            "kubernetes.io/tls" => &["tls.crt", "tls.key"],
            "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
            "kubernetes.io/dockercfg" => &[".dockercfg"],
            "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
            _ => &[],
        };
        let missing = |key: &str| Error::required(&Path::new("data").key(key), "");
        match meta::text(secret, "/type") {
            "kubernetes.io/dockerconfigjson" => errors.extend(no_json(secret, ".dockerconfigjson")),
            "kubernetes.io/dockercfg" => errors.extend(no_json(secret, ".dockercfg")),
            // one of the two is enough
            "kubernetes.io/basic-auth" if !data("username") && !data("password") => {
                errors.extend(["username", "password"].map(missing));
            }
            legacy_tokens::SECRET_TYPE => {
                let key = legacy_tokens::ACCOUNT;
                let named = secret.at("/metadata/annotations").and_then(|all| all.get(key));
                if named.and_then(Value::as_str).unwrap_or_default().is_empty() {
                    errors.push(Error::required(
                        &Path::new("metadata").child("annotations").key(key),
                        "",
                    ));
                }
            }
            _ => {}
        }
        errors.extend(required.iter().filter(|key| !data(key)).map(|key| missing(key)));
        errors
    };
    kind.validate_update = |secret, old| {
        let mut errors = immutable(secret, old, &["data"]);
        if secret.get("type") != old.get("type") {
            errors.push(Error::invalid(
                &Path::new("type"),
                meta::text(secret, "/type"),
                "field is immutable",
            ));
        }
        errors
    };
    kind.fields = const { &[Selectable::text("type", "/type")] };
    kind
}

/// What is wrong with a value that has to be JSON, in Go's words; none where there is no value.
fn no_json(secret: &Value, key: &str) -> Option<Error> {
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    let bytes = STANDARD.decode(encoded).ok()?;
    let why = go_json::object_error(&bytes)?;
    let path = Path::new("data").key(key);
    Some(Error::invalid(&path, "<secret contents redacted>", why))
}

pub(super) fn config_maps(mut kind: Kind) -> Kind {
    kind.validate = |map| {
        let mut errors = validate_keys(map, "data");
        let binary = map.get("binaryData").and_then(Value::as_object);
        let texts = map.get("data").and_then(Value::as_object).into_iter().flatten();
        for (key, _) in texts.filter(|(key, _)| binary.is_some_and(|binary| binary.contains_key(*key))) {
            let at = Path::new("data").key(key);
            errors.push(Error::invalid(
                &at,
                key.as_str(),
                "duplicate of key present in binaryData",
            ));
        }
        errors.extend(validate_keys(map, "binaryData"));
        errors
    };
    kind.validate_update = |map, old| immutable(map, old, &["data", "binaryData"]);
    kind
}

/// Most bytes that a secret or config map holds.
const MAX_DATA: usize = 1024 * 1024;

fn validate_keys(object: &Value, member: &str) -> ErrorList {
    let mut errors = Vec::new();
    let path = Path::new(member);
    let mut total = 0;
    for (key, value) in object.get(member).and_then(Value::as_object).into_iter().flatten() {
        let wrong = config_key(key).into_iter();
        errors.extend(wrong.map(|why| Error::invalid(&path.key(key), key.as_str(), why)));
        total += value.as_str().map_or(0, str::len);
    }
    if total > MAX_DATA {
        errors.push(Error::too_long(&path, MAX_DATA));
    }
    errors
}

fn immutable(object: &Value, old: &Value, members: &[&str]) -> ErrorList {
    if old.get("immutable").and_then(Value::as_bool) != Some(true) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    if object.get("immutable").and_then(Value::as_bool) != Some(true) {
        errors.push(Error::forbidden(
            &Path::new("immutable"),
            "field is immutable when `immutable` is set",
        ));
    }
    errors.extend(
        members
            .iter()
            .filter(|member| object.get(**member) != old.get(**member))
            .map(|member| Error::forbidden(&Path::new(member), "field is immutable when `immutable` is set")),
    );
    errors
}

/// The name of who makes volumes: upstream shows it in small letters.
pub(super) fn provisioner(class: &Value, key: &str, errors: &mut ErrorList) {
    let at = Path::new(key);
    match text(class, key).to_lowercase().as_str() {
        "" => errors.push(Error::required(&at, "")),
        name => syntax(meta::qualified_name(name), name, &at, errors),
    }
}

/// Where volumes of a class may be: no term twice, and no key twice in a term.
fn validate_topologies(class: &Value, errors: &mut ErrorList) {
    let path = Path::new("allowedTopologies");
    // upstream compares with as many empty terms as there are terms
    let mut seen: Vec<BTreeMap<&str, BTreeSet<&str>>> = vec![BTreeMap::new()];
    for (index, term) in list(class, "allowedTopologies").iter().enumerate() {
        let at = path.index(index).child("matchLabelExpressions");
        let mut terms = BTreeMap::new();
        for (index, requirement) in list(term, "matchLabelExpressions").iter().enumerate() {
            let at = at.index(index);
            let (key, values) = (text(requirement, "key"), list(requirement, "values"));
            if values.is_empty() {
                errors.push(Error::required(&at.child("values"), ""));
            }
            let mut known = BTreeSet::new();
            for (index, value) in values.iter().enumerate() {
                let value = value.as_str().unwrap_or_default();
                if !known.insert(value) {
                    errors.push(Error::duplicate(&at.child("values").index(index), value));
                }
            }
            syntax(meta::qualified_name(key), key, &at.child("key"), errors);
            if terms.insert(key, known).is_some() {
                errors.push(Error::duplicate(&at.child("key"), key));
            }
        }
        let times = match terms.is_empty() {
            true => list(class, "allowedTopologies").len(),
            false => 1,
        };
        let same = seen.iter().filter(|own| **own == terms).count();
        for _ in 0..same.saturating_mul(times) {
            errors.push(Error::duplicate(&at, ""));
        }
        seen.push(terms);
    }
}

/// Storage classes: all but what they allow is decided once.
pub(super) fn classes(mut kind: Kind) -> Kind {
    kind.whole_first = true;
    kind.validate = |class| {
        let mut errors = Vec::new();
        let root = Path::root();
        provisioner(class, "provisioner", &mut errors);
        if map(class, "parameters").any(|(key, _)| key.is_empty()) {
            let at = Path::new("parameters");
            errors.push(Error::invalid(&at, "", "field can not be empty."));
        }
        // no policy is as good as one
        if !text(class, "reclaimPolicy").is_empty() {
            one_of(class, "reclaimPolicy", &["Delete", "Retain"], &root, &mut errors);
        }
        let modes = ["Immediate", "WaitForFirstConsumer"];
        one_of(class, "volumeBindingMode", &modes, &root, &mut errors);
        validate_topologies(class, &mut errors);
        errors
    };
    kind.validate_update = |class, old| {
        let mut errors = Vec::new();
        for key in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            if class.get(key) != old.get(key) {
                let value = match key {
                    "provisioner" => text(class, key).into(),
                    _ => class.get(key).cloned().unwrap_or(Value::Null),
                };
                errors.push(Error::invalid(&Path::new(key), value, "field is immutable"));
            }
        }
        errors
    };
    kind
}
