//! Names and labels of generated Secrets [CP-70].

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use sha2::{Digest, Sha256};

use super::{Generate, SecretConfig};

/// The configuration's name.
pub const LABEL_NAME: &str = "name";
pub(super) const LABEL_MANAGED_BY: &str = "managed-by";
pub(super) const LABEL_IDENTITY: &str = "manager-identity";
pub(super) const LABEL_CONFIG: &str = "checksum-of-config";
pub(super) const LABEL_CA: &str = "checksum-of-signing-ca";
pub(super) const LABEL_ROTATION: &str = "last-rotation-initiation-time";
/// When it was made, in unix seconds.
pub const LABEL_ISSUED_AT: &str = "issued-at-time";
/// When it expires, in unix seconds.
pub const LABEL_VALID_UNTIL: &str = "valid-until-time";
pub(super) const LABEL_RENEW_AFTER: &str = "renew-after-validity-percentage";
/// Whether it belongs to the state that moves with the cluster: `true`.
pub const LABEL_PERSIST: &str = "persist";
pub(super) const LABEL_BUNDLE_FOR: &str = "bundle-for";
pub(super) const MANAGED_BY: &str = "secrets-manager";

/// The value of a label; empty if it has none.
pub fn label<'a>(secret: &'a Secret, name: &str) -> &'a str {
    let labels = secret.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(name)).map_or("", String::as_str)
}

/// The first `length` hexadecimal digits of the SHA-256 of `text`.
pub(super) fn digest(text: &[u8], length: usize) -> String {
    let mut hex: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    hex.truncate(length);
    hex
}

/// A checksum that fits into a label.
pub(super) fn checksum(bytes: &[u8]) -> String {
    digest(bytes, 16)
}

/// The Secret's name. `rotation` is the time of the last rotation in unix seconds [CP-70].
pub(super) fn secret_name(
    config: &SecretConfig,
    config_checksum: &str,
    ca_checksum: &str,
    rotation: Option<i64>,
) -> String {
    let mut name = config.name.clone();
    // Until their first rotation authorities have the plain names that others rely on.
    let plain = config.kind.is_ca() && config.name != "ca-client" && rotation.is_none();
    if !plain {
        let both = format!("{config_checksum}{ca_checksum}");
        name.push('-');
        name.push_str(&digest(both.as_bytes(), 8));
    }
    if let Some(rotation) = rotation {
        name.push('-');
        name.push_str(&digest(rotation.to_string().as_bytes(), 5));
    }
    name
}

/// The labels that all Secrets of one manager have.
pub(super) fn common_labels(identity: &str) -> BTreeMap<String, String> {
    [(LABEL_MANAGED_BY, MANAGED_BY), (LABEL_IDENTITY, identity)]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// The labels of a Secret, without those that depend on when it was made.
pub(super) fn labels(
    identity: &str,
    config: &SecretConfig,
    config_checksum: &str,
    ca_checksum: &str,
    rotation: Option<i64>,
    how: &Generate,
) -> BTreeMap<String, String> {
    let mut labels = common_labels(identity);
    let mut set = |key: &str, value: String| labels.insert(key.to_owned(), value);
    set(LABEL_NAME, config.name.clone());
    set(LABEL_CONFIG, config_checksum.to_owned());
    let rotation = rotation.map(|time| time.to_string());
    set(LABEL_ROTATION, rotation.unwrap_or_default());
    if !ca_checksum.is_empty() {
        set(LABEL_CA, ca_checksum.to_owned());
    }
    if how.persist {
        set(LABEL_PERSIST, "true".to_owned());
    }
    if let Some(percentage) = how.renew_after_percentage {
        set(LABEL_RENEW_AFTER, percentage.to_string());
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn config(name: &str, ca: bool) -> SecretConfig {
        let kind = if ca {
            Kind::CertificateAuthority {
                common_name: name.into(),
            }
        } else {
            Kind::SshKeyPair
        };
        SecretConfig {
            name: name.into(),
            kind,
        }
    }

    #[test]
    fn cp_70_names() {
        // sha256("ab") = fb8e20fc…, sha256("a") = ca978112…, sha256("1700000000") = b6418ad5…
        let rotated = digest(b"1700000000", 5);
        let table = [
            (config("ca", true), None, "ca".to_owned()),
            (config("ca-client", true), None, "ca-client-ca978112".to_owned()),
            (
                config("ca", true),
                Some(1_700_000_000),
                format!("ca-ca978112-{rotated}"),
            ),
            (config("ssh-keypair", false), None, "ssh-keypair-ca978112".to_owned()),
        ];
        for (config, rotation, expected) in table {
            assert_eq!(secret_name(&config, "a", "", rotation), expected);
        }
        let server = config("server", false);
        assert_eq!(secret_name(&server, "a", "b", None), "server-fb8e20fc");
        assert_eq!(rotated.len(), 5);
    }

    #[test]
    fn cp_70_labels() {
        let how = Generate {
            persist: true,
            renew_after_percentage: Some(50),
            ..Generate::default()
        };
        let labels = labels("gardenlet", &config("ca", true), "c", "", Some(7), &how);
        let told: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            told,
            [
                "checksum-of-config=c",
                "last-rotation-initiation-time=7",
                "managed-by=secrets-manager",
                "manager-identity=gardenlet",
                "name=ca",
                "persist=true",
                "renew-after-validity-percentage=50"
            ]
        );
    }
}
