//! Kinds that hold data: secrets, config maps, volumes and claims.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::{Value, json};

use super::strategy::Kind;
use crate::meta;

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
        errors.extend(
            required
                .iter()
                .filter(|key| !data(key))
                .map(|key| Error::required(&Path::new("data").key(key), "")),
        );
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
    kind.fields = |secret| vec![("type".into(), meta::text(secret, "/type").into())];
    kind
}

pub(super) fn config_maps(mut kind: Kind) -> Kind {
    kind.validate = |map| {
        let mut errors = validate_keys(map, "data");
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
        let valid = !key.is_empty()
            && key.len() <= 253
            && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
            && key != "."
            && !key.starts_with("..");
        if !valid {
            errors.push(Error::invalid(
                &path.key(key),
                key.as_str(),
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            ));
        }
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

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut finalizers = meta::finalizers(object);
    if !finalizers.iter().any(|own| own == finalizer) {
        finalizers.push(finalizer.to_owned());
        meta::set(object, "finalizers", Some(json!(finalizers)));
    }
}

pub(super) fn claims(mut kind: Kind) -> Kind {
    kind.prepare_create = |_, claim| {
        add_finalizer(claim, "kubernetes.io/pvc-protection");
        if let Some(members) = claim.as_object_mut() {
            members.insert("status".into(), json!({"phase": "Pending"}));
        }
        Ok(())
    };
    kind
}

pub(super) fn volumes(mut kind: Kind) -> Kind {
    kind.prepare_create = |context, volume| {
        add_finalizer(volume, "kubernetes.io/pv-protection");
        if let Some(members) = volume.as_object_mut() {
            members.insert(
                "status".into(),
                json!({"phase": "Pending", "lastPhaseTransitionTime": meta::rfc3339(context.now)}),
            );
        }
        Ok(())
    };
    kind
}
