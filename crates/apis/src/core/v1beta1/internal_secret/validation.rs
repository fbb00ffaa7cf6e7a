//! Validation of internal secrets, [VAL-IS1], and the form in which they are stored, [GAPI-42].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;

use super::*;
use crate::validation::{IMMUTABLE, invalid_each, object_meta, object_meta_update};

const SIZE_MAX: usize = 1024 * 1024;

/// Keys that a type asks for.
fn required_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    }
}

/// Moves `stringData` over to `data`.
pub fn merge_string_data(secret: &mut InternalSecret) {
    for (key, value) in std::mem::take(&mut secret.string_data) {
        secret.data.insert(key, ByteString(value.into_bytes()));
    }
}

/// Checks an internal secret that is to be created or stored again.
pub fn validate_internal_secret(secret: &InternalSecret) -> ErrorList {
    let mut errors = object_meta(&secret.metadata, true, gardener_apimachinery::names::dns_subdomain);
    let path = Path::new("data");
    let mut size = 0;
    for (key, value) in &secret.data {
        errors.extend(invalid_each(&path.key(key), key, names::config_key(key)));
        size += value.0.len();
    }
    if size > SIZE_MAX {
        errors.push(Error::too_long(&path, SIZE_MAX));
    }
    for key in required_keys(secret.r#type.as_deref().unwrap_or_default()) {
        if !secret.data.contains_key(*key) {
            errors.push(Error::required(&path.key(key), ""));
        }
    }
    errors
}

/// Checks a change of an internal secret.
pub fn validate_internal_secret_update(new: &InternalSecret, old: &InternalSecret) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let kind = |secret: &InternalSecret| secret.r#type.clone().unwrap_or_default();
    if kind(new) != kind(old) {
        errors.push(Error::invalid(&Path::new("type"), kind(new), IMMUTABLE));
    }
    if old.immutable == Some(true) {
        if new.immutable != Some(true) {
            errors.push(Error::forbidden(
                &Path::new("immutable"),
                "field is immutable when `immutable` is set",
            ));
        }
        if new.data != old.data {
            errors.push(Error::forbidden(
                &Path::new("data"),
                "field is immutable when `immutable` is set",
            ));
        }
    }
    errors.extend(validate_internal_secret(new));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gapi_42_string_data_wins() {
        let mut secret: InternalSecret = serde_json::from_value(
            serde_json::json!({"stringData": {"a": "hello"}, "data": {"a": "eA==", "b": "d29ybGQ="}}),
        )
        .unwrap();
        merge_string_data(&mut secret);
        assert_eq!(secret.data["a"].0, b"hello");
        assert!(secret.string_data.is_empty());
    }

    #[test]
    fn val_is1_type_and_immutable() {
        let old: InternalSecret = serde_json::from_value(
            serde_json::json!({"metadata": {"name": "a", "namespace": "b"}, "immutable": true, "type": "t"}),
        )
        .unwrap();
        let new: InternalSecret = serde_json::from_value(
            serde_json::json!({"metadata": {"name": "a", "namespace": "b"}, "data": {"bad/key": "AA=="}}),
        )
        .unwrap();
        let paths: Vec<String> = validate_internal_secret_update(&new, &old)
            .iter()
            .map(|error| error.path.to_string())
            .collect();
        assert_eq!(paths, ["type", "immutable", "data", "data[bad/key]"]);
    }
}
