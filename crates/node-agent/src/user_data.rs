//! What a machine is given: cloud-init's configuration with the files of the agent [OSC-3].

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

/// Where the agent's files are.
const DIRECTORY: &str = "/var/lib/gardener-node-agent/";

/// User data that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserDataError {
    /// It cannot be read at all.
    #[error("the user data is no cloud-config: {0}")]
    NoCloudConfig(String),
    /// Something is not there.
    #[error("the user data has no file {0}")]
    MissingFile(String),
    /// Something is there but makes no sense.
    #[error("file {path} of the user data: {why}")]
    Malformed {
        /// Which file.
        path: String,
        /// What is wrong.
        why: String,
    },
}

/// What a machine needs to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// The machine's name.
    pub machine_name: String,
    /// The bootstrap token.
    pub token: String,
    /// Where the API is.
    pub server: String,
    /// The API's certificate authority, PEM.
    pub certificate_authority: String,
    /// The secret with the OperatingSystemConfig, in kube-system.
    pub secret_name: String,
}

#[derive(Deserialize)]
struct CloudConfig {
    #[serde(default)]
    write_files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    path: String,
    #[serde(default)]
    encoding: String,
    #[serde(default)]
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentConfig {
    api_server: ApiServer,
    controllers: Controllers,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiServer {
    server: String,
    #[serde(default)]
    ca_bundle: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Controllers {
    operating_system_config: OperatingSystemConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OperatingSystemConfig {
    secret_name: String,
}

impl File {
    fn text(&self) -> Result<String, UserDataError> {
        let malformed = |why: String| UserDataError::Malformed {
            path: self.path.clone(),
            why,
        };
        match self.encoding.as_str() {
            "" | "text/plain" => Ok(self.content.clone()),
            "b64" | "base64" => {
                let bytes = BASE64_STANDARD
                    .decode(&self.content)
                    .map_err(|error| malformed(error.to_string()))?;
                String::from_utf8(bytes).map_err(|error| malformed(error.to_string()))
            }
            other => Err(malformed(format!("encoding {other:?} is not known"))),
        }
    }
}

/// Reads user data.
///
/// # Errors
/// [`UserDataError`].
pub fn read(text: &str) -> Result<Bootstrap, UserDataError> {
    let config: CloudConfig =
        serde_saphyr::from_str(text).map_err(|error| UserDataError::NoCloudConfig(error.to_string()))?;
    let find = |name: &str| {
        config
            .write_files
            .iter()
            .find(|file| file.path == format!("{DIRECTORY}{name}"))
    };
    let text = |name: &str| match find(name) {
        Some(file) => Ok(file.text()?.trim().to_owned()),
        None => Err(UserDataError::MissingFile(format!("{DIRECTORY}{name}"))),
    };
    let is_config = |file: &&File| file.path.starts_with(&format!("{DIRECTORY}config")) && file.path.ends_with(".yaml");
    let file = config.write_files.iter().find(is_config);
    let file = file.ok_or_else(|| UserDataError::MissingFile(format!("{DIRECTORY}config-<version>.yaml")))?;
    let agent: AgentConfig = serde_saphyr::from_str(&file.text()?).map_err(|error| UserDataError::Malformed {
        path: file.path.clone(),
        why: error.to_string(),
    })?;
    let bundle = BASE64_STANDARD.decode(&agent.api_server.ca_bundle).ok();
    let bundle = bundle
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|text| !text.is_empty());
    Ok(Bootstrap {
        machine_name: text("machine-name")?,
        token: text("credentials/bootstrap-token")?,
        server: agent.api_server.server,
        certificate_authority: match bundle {
            Some(bundle) => bundle,
            None => text("cluster-ca.crt")?,
        },
        secret_name: agent.controllers.operating_system_config.secret_name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn osc_3_user_data_is_read() {
        let config = "apiServer:\n  server: https://api.a\ncontrollers:\n  operatingSystemConfig:\n    secretName: gardener-node-agent-a-1\n";
        let files = [
            ("machine-name", "m-1".to_owned(), ""),
            ("credentials/bootstrap-token", "id.secret\n".to_owned(), ""),
            ("cluster-ca.crt", BASE64_STANDARD.encode("CA"), "b64"),
            ("config-1.0.yaml", BASE64_STANDARD.encode(config), "b64"),
        ];
        let files: Vec<_> = files
            .iter()
            .map(|(name, content, encoding)| {
                serde_json::json!({"path": format!("{DIRECTORY}{name}"), "content": content, "encoding": encoding})
            })
            .collect();
        let text =
            |files: &[serde_json::Value]| format!("#cloud-config\n{}", serde_json::json!({"write_files": files}));
        let found = read(&text(&files)).unwrap();
        assert_eq!(
            (&*found.machine_name, &*found.token, &*found.certificate_authority),
            ("m-1", "id.secret", "CA")
        );
        assert_eq!(
            (&*found.server, &*found.secret_name),
            ("https://api.a", "gardener-node-agent-a-1")
        );
        let missing = UserDataError::MissingFile(format!("{DIRECTORY}machine-name"));
        assert_eq!(read(&text(&files[1..])), Err(missing));
        assert!(matches!(read("- a"), Err(UserDataError::NoCloudConfig(_))));
    }
}
