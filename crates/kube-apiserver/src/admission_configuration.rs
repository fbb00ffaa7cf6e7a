//! `--admission-control-config-file`: what admission plugins are configured with. Each plugin has a document of its own, in the file or in
//! another one.

use std::path::{Path, PathBuf};

use gardener_apimachinery::field::{Error, Path as Field};
use gardener_apiserver::LogicalCluster;
use gardener_apiserver::webhooks::{Identities, KubeconfigError};
use serde::Deserialize;
use serde_json::Value;

use crate::access::{FileError, read};

const FLAG: &str = "admission-control-config-file";
const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];
/// The document of webhooks' plugins under each of its names.
const OF_WEBHOOKS: [(&str, &str); 2] = [
    ("WebhookAdmissionConfiguration", "apiserver.config.k8s.io/v1"),
    ("WebhookAdmission", "apiserver.config.k8s.io/v1alpha1"),
];

/// Why plugins cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionConfigurationError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is no YAML, or has another shape.
    #[error("--admission-control-config-file: {}: {why}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// What a plugin shows webhooks of this server cannot be used.
    #[error("--admission-control-config-file: {}: plugin {plugin:?}: kubeConfigFile: {source}", path.display())]
    Identities {
        /// The file.
        path: PathBuf,
        /// The plugin.
        plugin: String,
        /// What is wrong.
        source: KubeconfigError,
    },
}

/// `AdmissionConfiguration`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    plugins: Vec<Plugin>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Plugin {
    name: String,
    /// Where the document is; from the file's own folder on.
    #[serde(default)]
    path: String,
    /// The document itself.
    configuration: Option<Value>,
}

/// The document of one plugin.
#[derive(Clone, Debug)]
pub struct PluginDocument {
    /// The plugin.
    pub plugin: String,
    /// Its document.
    pub document: Value,
    /// Where that was found.
    pub path: PathBuf,
}

/// The documents of plugins that a file tells, or names.
///
/// # Errors
/// A file cannot be read, or is none of that kind.
pub fn documents(path: &Path) -> Result<Vec<PluginDocument>, AdmissionConfigurationError> {
    let shape = |path: &Path, why: String| AdmissionConfigurationError::Shape {
        path: path.to_owned(),
        why,
    };
    let file: File = serde_saphyr::from_str(&read(FLAG, path)?).map_err(|error| shape(path, error.to_string()))?;
    if !VERSIONS.contains(&file.api_version.as_str()) || file.kind != "AdmissionConfiguration" {
        let why = format!(
            "expected kind \"AdmissionConfiguration\" of {:?}, but it is kind {:?} of {:?}",
            VERSIONS[0], file.kind, file.api_version
        );
        return Err(shape(path, why));
    }
    let mut documents = Vec::new();
    for Plugin {
        name: plugin,
        path: own,
        configuration,
    } in file.plugins
    {
        let (document, path) = match (configuration, own.as_str()) {
            (Some(document), _) => (document, path.to_owned()),
            (None, "") => continue,
            (None, own) => {
                let own = path.parent().unwrap_or(Path::new("")).join(own);
                let document = serde_saphyr::from_str(&read(FLAG, &own)?);
                (document.map_err(|error| shape(&own, error.to_string()))?, own)
            }
        };
        documents.push(PluginDocument { plugin, document, path });
    }
    Ok(documents)
}

/// `WebhookAdmissionConfiguration`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WebhookAdmission {
    api_version: String,
    kind: String,
    #[serde(default)]
    kube_config_file: String,
}

/// What the two plugins that ask webhooks show them of this server.
#[derive(Clone, Debug, Default)]
pub struct WebhookIdentities {
    mutating: Identities,
    validating: Identities,
}

impl WebhookIdentities {
    /// Takes the document of one of the two plugins. False: it is another one's.
    ///
    /// # Errors
    /// It is none of that kind, or names no file that can be used.
    pub fn take(&mut self, own: &PluginDocument) -> Result<bool, AdmissionConfigurationError> {
        let place = match own.plugin.as_str() {
            "MutatingAdmissionWebhook" => &mut self.mutating,
            "ValidatingAdmissionWebhook" => &mut self.validating,
            _ => return Ok(false),
        };
        let wrong = |why: String| AdmissionConfigurationError::Shape {
            path: own.path.clone(),
            why: format!("plugin {:?}: {why}", own.plugin),
        };
        let read = WebhookAdmission::deserialize(&own.document).map_err(|error| wrong(error.to_string()))?;
        if !OF_WEBHOOKS.contains(&(&read.kind, &read.api_version)) {
            let (kind, version) = OF_WEBHOOKS[0];
            return Err(wrong(format!(
                "expected kind {kind:?} of {version:?}, but it is kind {:?} of {:?}",
                read.kind, read.api_version
            )));
        }
        let file = Path::new(&read.kube_config_file);
        if read.kube_config_file.is_empty() {
            return Ok(true);
        }
        if !file.is_absolute() {
            let at = Field::new("kubeConfigFile");
            let error = Error::invalid(&at, read.kube_config_file.as_str(), "must be an absolute file path");
            return Err(wrong(error.to_string()));
        }
        *place = Identities::of_kubeconfig(file).map_err(|source| AdmissionConfigurationError::Identities {
            path: own.path.clone(),
            plugin: own.plugin.clone(),
            source,
        })?;
        Ok(true)
    }

    /// The identities that a file tells kube-apiserver's plugins; no other plugin of its takes anything from there.
    ///
    /// # Errors
    /// [`AdmissionConfigurationError`].
    pub fn of_file(path: Option<&Path>) -> Result<Self, AdmissionConfigurationError> {
        let mut identities = Self::default();
        for own in path.map(documents).transpose()?.unwrap_or_default() {
            if !identities.take(&own)? {
                let plugin = own.plugin;
                tracing::warn!(plugin, "--{FLAG}: the configuration of this plugin has no effect");
            }
        }
        Ok(identities)
    }

    /// Has a cluster show them.
    pub fn show(self, cluster: &LogicalCluster) {
        cluster.webhooks().use_identities(self.mutating, self.validating);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_that_ask_webhooks_are_told_who_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(
            &kubeconfig,
            "{kind: Config, apiVersion: v1, users: [{name: '*', user: {token: t}}]}",
        )
        .unwrap();
        let path = folder.path().join("admission.yaml");
        let read = |plugins: &str| {
            let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n";
            std::fs::write(&path, format!("{head}{plugins}")).unwrap();
            WebhookIdentities::of_file(Some(&path)).map_err(|error| error.to_string())
        };
        let webhooks = |plugin: &str, kind: &str, version: &str, file: &str| {
            format!(
                "- {{name: {plugin}, configuration: {{apiVersion: {version}, kind: {kind}, kubeConfigFile: '{file}'}}}}\n"
            )
        };
        let file = kubeconfig.to_str().unwrap();
        for (kind, version) in OF_WEBHOOKS {
            for plugin in ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"] {
                assert!(read(&webhooks(plugin, kind, version, file)).is_ok());
                assert!(read(&webhooks(plugin, kind, version, "")).is_ok());
            }
        }
        assert!(read("- {name: PodSecurity, configuration: {}}").is_ok());
        let (kind, version) = OF_WEBHOOKS[0];
        let plugin = "MutatingAdmissionWebhook";
        for (plugins, why) in [
            (
                webhooks(plugin, "Other", version, file),
                "expected kind \"WebhookAdmissionConfiguration\"",
            ),
            (webhooks(plugin, kind, version, "a/b"), "must be an absolute file path"),
            (webhooks(plugin, kind, version, "/absent/file"), "kubeConfigFile: "),
            (
                "- {name: MutatingAdmissionWebhook, path: absent.yaml}".to_owned(),
                "absent.yaml",
            ),
        ] {
            let error = read(&plugins).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
