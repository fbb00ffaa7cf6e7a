//! Validation of internal secrets, [VAL-IS1], and the form in which they are stored, [GAPI-42].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::{go_json, names};

use super::*;
use crate::validation::{go_json as in_json, immutable_as, invalid_each, object_meta, object_meta_update};

const SIZE_MAX: usize = 1024 * 1024;
/// Annotation of a service account's token: whose it is.
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

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
    errors.extend(content(secret, &path));
    errors
}

/// What a secret's type asks for.
fn content(secret: &InternalSecret, path: &Path) -> ErrorList {
    let missing = |key: &str| Error::required(&path.key(key), "");
    let data = |key: &str| secret.data.get(key);
    let json = |key: &str| match data(key) {
        None => vec![missing(key)],
        Some(value) => {
            let why = go_json::object_error(&value.0);
            why.map(|why| Error::invalid(&path.key(key), "<secret contents redacted>", why))
                .into_iter()
                .collect()
        }
    };
    match secret.r#type.as_deref().unwrap_or_default() {
        "kubernetes.io/service-account-token" => {
            let annotations = secret.metadata.annotations.as_ref();
            let named = annotations.and_then(|all| all.get(ACCOUNT_NAME));
            match named.is_none_or(String::is_empty) {
                true => vec![Error::required(
                    &Path::new("metadata.annotations").key(ACCOUNT_NAME),
                    "",
                )],
                false => ErrorList::new(),
            }
        }
        "kubernetes.io/dockercfg" => json(".dockercfg"),
        "kubernetes.io/dockerconfigjson" => json(".dockerconfigjson"),
        // one of the two is enough
        "kubernetes.io/basic-auth" if data("username").is_none() && data("password").is_none() => {
            ["username", "password"].map(missing).into()
        }
        "kubernetes.io/ssh-auth" if data("ssh-privatekey").is_none_or(|key| key.0.is_empty()) => {
            vec![missing("ssh-privatekey")]
        }
        "kubernetes.io/tls" => {
            let keys = ["tls.crt", "tls.key"].into_iter();
            keys.filter(|key| data(key).is_none()).map(missing).collect()
        }
        _ => ErrorList::new(),
    }
}

/// Checks a change of an internal secret.
pub fn validate_internal_secret_update(new: &InternalSecret, old: &InternalSecret) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let kind = |secret: &InternalSecret| secret.r#type.clone().unwrap_or_default();
    errors.extend(immutable_as(&kind(new), &kind(old), &Path::new("type"), in_json));
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
    fn val_is1_what_types_ask_for() {
        let refusals = |kind: &str, data: serde_json::Value| -> Vec<String> {
            let secret: InternalSecret = serde_json::from_value(
                serde_json::json!({"metadata": {"name": "a", "namespace": "b"}, "type": format!("kubernetes.io/{kind}"), "stringData": data}),
            )
            .unwrap();
            let mut secret = secret;
            merge_string_data(&mut secret);
            let found = validate_internal_secret(&secret);
            found.iter().map(ToString::to_string).collect()
        };
        for (kind, data, wanted) in [
            (
                "service-account-token",
                serde_json::json!({}),
                vec!["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
            ),
            (
                "dockercfg",
                serde_json::json!({}),
                vec!["data[.dockercfg]: Required value"],
            ),
            (
                "dockerconfigjson",
                serde_json::json!({".dockerconfigjson": "x"}),
                vec![
                    "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'x' looking for beginning of value",
                ],
            ),
            (
                "dockercfg",
                serde_json::json!({".dockercfg": "[]"}),
                vec![
                    "data[.dockercfg]: Invalid value: \"<secret contents redacted>\": json: cannot unmarshal array into Go value of type map[string]interface {}",
                ],
            ),
            (
                "basic-auth",
                serde_json::json!({}),
                vec!["data[username]: Required value", "data[password]: Required value"],
            ),
            ("basic-auth", serde_json::json!({"password": "x"}), vec![]),
            (
                "ssh-auth",
                serde_json::json!({"ssh-privatekey": ""}),
                vec!["data[ssh-privatekey]: Required value"],
            ),
            (
                "tls",
                serde_json::json!({"tls.crt": "x"}),
                vec!["data[tls.key]: Required value"],
            ),
        ] {
            assert_eq!(refusals(kind, data), wanted, "{kind}");
        }
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
