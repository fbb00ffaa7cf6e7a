//! The user data of local machines: cloud-init's `#cloud-config` with the files and units of an OperatingSystemConfig of purpose `provision`
//! [EXT-40].

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gardener_apis::extensions::v1alpha1::{OperatingSystemConfig, OperatingSystemConfigFile};
use serde_json::json;

/// The first line of cloud-init's configuration.
pub const HEADER: &str = "#cloud-config";
/// Permissions of files that say nothing.
const DEFAULT_PERMISSIONS: i32 = 0o644;

/// An OperatingSystemConfig that cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// A file without content.
    #[error("file {0} has neither inline content nor a secret")]
    NoContent(String),
    /// A secret that was not handed in, or lacks the key.
    #[error("file {path} refers to secret {secret} key {key}, which is not there")]
    MissingSecret {
        /// The file.
        path: String,
        /// The secret.
        secret: String,
        /// The key in it.
        key: String,
    },
    /// An encoding nobody knows.
    #[error("file {path} has encoding {encoding:?}, expected none or b64")]
    UnknownEncoding {
        /// The file.
        path: String,
        /// What it says.
        encoding: String,
    },
    /// Content that is not in the encoding it says.
    #[error("file {path} is not base64: {why}")]
    NotBase64 {
        /// The file.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// A file that must be sent as it is, but is no text.
    #[error("file {0} must be sent unencoded, but is no UTF-8 text")]
    NotText(String),
}

/// Contents of the secrets that files refer to, by secret name and key.
pub type Secrets = BTreeMap<(String, String), Vec<u8>>;

/// The secrets and keys that files refer to.
pub fn referenced_secrets(osc: &OperatingSystemConfig) -> Vec<(String, String)> {
    let reference = |file: &OperatingSystemConfigFile| {
        let reference = file.content.secret_ref.as_ref()?;
        Some((reference.name.clone(), reference.data_key.clone()))
    };
    osc.spec.files.iter().filter_map(reference).collect()
}

fn content(file: &OperatingSystemConfigFile, secrets: &Secrets) -> Result<Vec<u8>, TranslateError> {
    if let Some(inline) = &file.content.inline {
        return match inline.encoding.as_str() {
            "" => Ok(inline.data.clone().into_bytes()),
            "b64" => BASE64_STANDARD
                .decode(&inline.data)
                .map_err(|error| TranslateError::NotBase64 {
                    path: file.path.clone(),
                    why: error.to_string(),
                }),
            other => Err(TranslateError::UnknownEncoding {
                path: file.path.clone(),
                encoding: other.to_owned(),
            }),
        };
    }
    let Some(reference) = &file.content.secret_ref else {
        return Err(TranslateError::NoContent(file.path.clone()));
    };
    let place = (reference.name.clone(), reference.data_key.clone());
    secrets.get(&place).cloned().ok_or(TranslateError::MissingSecret {
        path: file.path.clone(),
        secret: place.0,
        key: place.1,
    })
}

fn permissions(value: i32) -> String {
    format!("0{value:o}")
}

/// The user data.
///
/// # Errors
/// When a file has no content that can be sent.
pub fn cloud_config(osc: &OperatingSystemConfig, secrets: &Secrets) -> Result<String, TranslateError> {
    let mut files = Vec::new();
    let encoded = |path: &str, mode: i32, bytes: &[u8]| json!({"path": path, "permissions": permissions(mode), "encoding": "b64", "content": BASE64_STANDARD.encode(bytes)});
    for file in &osc.spec.files {
        let bytes = content(file, secrets)?;
        let mode = file.permissions.unwrap_or(DEFAULT_PERMISSIONS);
        // what is replaced per machine must be found as text
        files.push(if file.content.transmit_unencoded == Some(true) {
            let text = String::from_utf8(bytes).map_err(|_| TranslateError::NotText(file.path.clone()))?;
            json!({"path": file.path, "permissions": permissions(mode), "content": text})
        } else {
            encoded(&file.path, mode, &bytes)
        });
    }
    let mut commands = vec![json!(["systemctl", "daemon-reload"])];
    for unit in &osc.spec.units {
        let path = format!("/etc/systemd/system/{}", unit.name);
        if let Some(text) = &unit.content {
            files.push(encoded(&path, DEFAULT_PERMISSIONS, text.as_bytes()));
        }
        for drop_in in &unit.drop_ins {
            files.push(encoded(
                &format!("{path}.d/{}", drop_in.name),
                DEFAULT_PERMISSIONS,
                drop_in.content.as_bytes(),
            ));
        }
        if unit.enable != Some(false) {
            commands.push(json!(["systemctl", "enable", unit.name]));
        }
        match unit.command.as_deref() {
            Some("stop") => commands.push(json!(["systemctl", "stop", unit.name])),
            _ => commands.push(json!(["systemctl", "restart", unit.name])),
        }
    }
    // JSON is YAML, and leaves no doubt about quoting
    let body = json!({"write_files": files, "runcmd": commands});
    Ok(format!("{HEADER}\n{body:#}\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn osc(files: Value) -> OperatingSystemConfig {
        serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {
            "purpose": "provision", "type": "local", "files": files,
            "units": [{"name": "gardener-node-init.service", "enable": true, "command": "start", "content": "[Service]\n"}],
        }}))
        .unwrap()
    }

    #[test]
    fn ext_40_placeholders_stay_in_clear_text() {
        let osc = osc(json!([
            {"path": "/token", "permissions": 0o640, "content": {"inline": {"encoding": "", "data": "<<BOOTSTRAP_TOKEN>>"}, "transmitUnencoded": true}},
            {"path": "/ca.crt", "content": {"inline": {"encoding": "b64", "data": "Y2E="}}},
        ]));
        let text = cloud_config(&osc, &Secrets::new()).unwrap();
        assert!(text.starts_with("#cloud-config\n") && text.contains("<<BOOTSTRAP_TOKEN>>"));
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(
            read["write_files"][0],
            json!({"path": "/token", "permissions": "0640", "content": "<<BOOTSTRAP_TOKEN>>"})
        );
        assert_eq!(read["write_files"][1]["content"], "Y2E=");
        assert_eq!(
            read["write_files"][2]["path"],
            "/etc/systemd/system/gardener-node-init.service"
        );
        assert_eq!(
            read["runcmd"][2],
            json!(["systemctl", "restart", "gardener-node-init.service"])
        );
    }

    #[test]
    fn contents_that_cannot_be_sent() {
        let table = [
            (
                json!([{"path": "/a", "content": {}}]),
                TranslateError::NoContent("/a".into()),
            ),
            (
                json!([{"path": "/a", "content": {"secretRef": {"name": "s", "dataKey": "k"}}}]),
                TranslateError::MissingSecret {
                    path: "/a".into(),
                    secret: "s".into(),
                    key: "k".into(),
                },
            ),
            (
                json!([{"path": "/a", "content": {"inline": {"encoding": "gzip", "data": ""}}}]),
                TranslateError::UnknownEncoding {
                    path: "/a".into(),
                    encoding: "gzip".into(),
                },
            ),
        ];
        for (files, expected) in table {
            assert_eq!(cloud_config(&osc(files), &Secrets::new()), Err(expected));
        }
    }
}
