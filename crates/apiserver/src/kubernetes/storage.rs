//! Kinds that hold data, and storage classes; volumes and claims have files of their own.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::go_json;
use gardener_apimachinery::names::config_key;
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::certificates::key_pairs;
use super::checks::{list, map, one_of, syntax, text};
use super::pods::warnings;
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
    kind.warnings = |secret, _| {
        let part = |key: &str| decoded(secret.get("data").and_then(|data| data.get(key)));
        let is_pair = meta::text(secret, "/type") == "kubernetes.io/tls";
        let wrong = is_pair.then(|| key_pairs::wrong(&part("tls.crt"), &part("tls.key")));
        wrong.flatten().into_iter().collect()
    };
    kind.validate = |secret| {
        let (mut errors, total) = validate_keys(secret, "data", decoded_length);
        if total > MAX_DATA {
            errors.push(Error::too_long(&Path::new("data"), MAX_DATA));
        }
        let data = |key: &str| secret.get("data").and_then(|data| data.get(key)).is_some();
        let required: &[&str] = match meta::text(secret, "/type") {
            "kubernetes.io/tls" => &["tls.crt", "tls.key"],
            "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
            "kubernetes.io/dockercfg" => &[".dockercfg"],
            _ => &[],
        };
        let missing = |key: &str| Error::required(&Path::new("data").key(key), "");
        match meta::text(secret, "/type") {
            "kubernetes.io/dockerconfigjson" => errors.extend(no_json(secret, ".dockerconfigjson")),
            "kubernetes.io/dockercfg" => errors.extend(no_json(secret, ".dockercfg")),
            // an empty one is none
            "kubernetes.io/ssh-auth" if meta::text(secret, "/data/ssh-privatekey").is_empty() => {
                errors.push(missing("ssh-privatekey"));
            }
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
        let mut errors = Vec::new();
        if secret.get("type") != old.get("type") {
            errors.push(Error::invalid(
                &Path::new("type"),
                meta::text(secret, "/type"),
                "field is immutable",
            ));
        }
        errors.extend(immutable(secret, old, &["data"]));
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
        let (mut errors, of_texts) = validate_keys(map, "data", str::len);
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
        let (wrong, of_bytes) = validate_keys(map, "binaryData", decoded_length);
        errors.extend(wrong);
        if of_texts + of_bytes > MAX_DATA {
            // upstream names the whole object by an empty name
            errors.push(Error::too_long(&Path::root().child(""), MAX_DATA));
        }
        errors
    };
    kind.validate_update = |map, old| immutable(map, old, &["data", "binaryData"]);
    kind
}

/// Most bytes that a secret or config map holds.
const MAX_DATA: usize = 1024 * 1024;

/// What is wrong with the keys of a member, and how many bytes its values have, by the length of each.
fn validate_keys(object: &Value, member: &str, length: fn(&str) -> usize) -> (ErrorList, usize) {
    let mut errors = Vec::new();
    let path = Path::new(member);
    let mut total = 0_usize;
    for (key, value) in map(object, member) {
        let wrong = config_key(key).into_iter();
        errors.extend(wrong.map(|why| Error::invalid(&path.key(key), key.as_str(), why)));
        total = total.saturating_add(value.as_str().map_or(0, length));
    }
    (errors, total)
}

/// The bytes that base64 stands for; none where it is none.
fn decoded(value: Option<&Value>) -> Vec<u8> {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    STANDARD.decode(text).unwrap_or_default()
}

/// How many bytes base64 stands for.
fn decoded_length(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
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

/// Most parameters of a class, and most bytes of all of their names and values.
const MAX_PARAMETERS: usize = 512;
pub(super) const MAX_PARAMETERS_SIZE: usize = 256 * 1024;

/// How many bytes the names and values of a map have.
pub(super) fn size_of_texts(object: &Value, key: &str) -> usize {
    map(object, key)
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum()
}

/// What must hold of the parameters of a class, whether or not it needs some. Tells whether they are so many that nothing else of them is judged.
pub(super) fn parameters(class: &Value, errors: &mut ErrorList) -> bool {
    let at = Path::new("parameters");
    if map(class, "parameters").count() > MAX_PARAMETERS {
        errors.push(Error::too_long(&at, MAX_PARAMETERS));
        return true;
    }
    if map(class, "parameters").any(|(key, _)| key.is_empty()) {
        errors.push(Error::invalid(&at, "", "field can not be empty."));
    }
    if size_of_texts(class, "parameters") > MAX_PARAMETERS_SIZE {
        errors.push(Error::too_long(&at, MAX_PARAMETERS_SIZE));
    }
    false
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
        parameters(class, &mut errors);
        // no policy is as good as one
        if !text(class, "reclaimPolicy").is_empty() {
            one_of(class, "reclaimPolicy", &["Delete", "Retain"], &root, &mut errors);
        }
        let modes = ["Immediate", "WaitForFirstConsumer"];
        one_of(class, "volumeBindingMode", &modes, &root, &mut errors);
        validate_topologies(class, &mut errors);
        errors
    };
    kind.warnings = |class, _| {
        let mut found = Vec::new();
        for (index, term) in list(class, "allowedTopologies").iter().enumerate() {
            let at = Path::new("allowedTopologies")
                .index(index)
                .child("matchLabelExpressions");
            for (index, requirement) in list(term, "matchLabelExpressions").iter().enumerate() {
                let why = warnings::of_label(text(requirement, "key"));
                found.extend(why.map(|why| format!("{}: {why}", at.index(index).child("key"))));
            }
        }
        found
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::strategy::kind_of;

    #[test]
    fn sizes_are_those_of_the_bytes() {
        let told = |resource: &str, object: Value| {
            let errors = (kind_of("", resource).validate)(&object);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let (fits, more) = (
            STANDARD.encode(vec![0; MAX_DATA]),
            STANDARD.encode(vec![0; MAX_DATA + 1]),
        );
        let text = "a".repeat(MAX_DATA);
        for (resource, object, expected) in [
            ("secrets", json!({"data": {"a": fits}}), None),
            (
                "secrets",
                json!({"data": {"a": more}}),
                Some("data: Too long: may not be more than 1048576 bytes"),
            ),
            ("configmaps", json!({"data": {"a": text}}), None),
            ("configmaps", json!({"binaryData": {"a": fits}}), None),
            (
                "configmaps",
                json!({"data": {"a": text}, "binaryData": {"b": "AA=="}}),
                Some("[]: Too long: may not be more than 1048576 bytes"),
            ),
            (
                "secrets",
                json!({"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}}),
                Some("data[ssh-privatekey]: Required value"),
            ),
        ] {
            let expected: Vec<&str> = expected.into_iter().collect();
            assert_eq!(told(resource, object), expected);
        }
    }

    #[test]
    fn classes_have_few_parameters() {
        let many: serde_json::Map<String, Value> = (0..=MAX_PARAMETERS).map(|at| (at.to_string(), "".into())).collect();
        for (told, expected) in [
            (json!({"a": "a".repeat(MAX_PARAMETERS_SIZE - 1)}), None),
            (
                json!({"a": "a".repeat(MAX_PARAMETERS_SIZE)}),
                Some("parameters: Too long: may not be more than 262144 bytes"),
            ),
            (
                many.into(),
                Some("parameters: Too long: may not be more than 512 bytes"),
            ),
        ] {
            let mut errors = ErrorList::new();
            parameters(&json!({"parameters": told}), &mut errors);
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let expected: Vec<&str> = expected.into_iter().collect();
            assert_eq!(errors, expected);
        }
    }

    #[test]
    fn of_a_secret_the_type_is_judged_first() {
        let secret = |kind: &str, value: &str| json!({"type": kind, "immutable": kind == "a", "data": {"k": value}});
        let errors = (kind_of("", "secrets").validate_update)(&secret("b", "Yg=="), &secret("a", "YQ=="));
        let fields: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(fields, ["type", "immutable", "data"]);
    }
}
