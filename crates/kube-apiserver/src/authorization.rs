//! Who says what is allowed: from flags, or from a file that is read again when it changes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gardener_apiserver::authz::{Authorizer, Chain, ChainError, configuration};

use crate::access::{FileError, read};
use crate::flags::AuthorizationFlags;

const FLAG: &str = "authorization-config";
/// How often the file is looked at for changes.
const REFRESH: Duration = Duration::from_secs(5);

/// Why nobody can say what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizationError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// What it says cannot be done.
    #[error("--{FLAG}: {0}")]
    Configuration(ChainError),
    /// What flags say cannot be done.
    #[error("--authorization-webhook-config-file: {0}")]
    Flags(ChainError),
}

/// Who says what is allowed.
pub struct Authorization {
    chain: Arc<Chain>,
    file: Option<File>,
}

/// A configuration file, as it was when it was last looked at.
struct File {
    path: PathBuf,
    text: String,
}

impl Authorization {
    /// What flags say.
    ///
    /// # Errors
    /// [`AuthorizationError`].
    pub fn open(flags: &AuthorizationFlags) -> Result<Self, AuthorizationError> {
        let Some(path) = flags.authorization_config.clone() else {
            let chain = Chain::new(flags.configuration()).map_err(AuthorizationError::Flags)?;
            return Ok(Self {
                chain: Arc::new(chain),
                file: None,
            });
        };
        let text = read(FLAG, &path)?;
        let configuration = configuration::parse(&text).map_err(ChainError::from);
        let chain = configuration.and_then(Chain::new);
        Ok(Self {
            chain: Arc::new(chain.map_err(AuthorizationError::Configuration)?),
            file: Some(File { path, text }),
        })
    }

    /// Says what is allowed, by the newest configuration that was good.
    pub fn authorizer(&self) -> Arc<dyn Authorizer> {
        Arc::clone(&self.chain) as Arc<dyn Authorizer>
    }

    /// Takes in the file whenever it has changed. Does not end.
    pub async fn follow(mut self) {
        if self.file.is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(REFRESH).await;
            match self.renew() {
                Ok(false) => {}
                Ok(true) => tracing::info!("the authorization configuration has changed and is used from now on"),
                Err(error) => {
                    tracing::error!(%error, "the authorization configuration cannot be used; that of before still is");
                }
            }
        }
    }

    /// Takes in the file if it has changed. One that is wrong is told once.
    fn renew(&mut self) -> Result<bool, AuthorizationError> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let text = read(FLAG, &file.path)?;
        if text == file.text {
            return Ok(false);
        }
        let configuration = configuration::parse(&text).map_err(ChainError::from);
        file.text = text;
        let exchanged = configuration.and_then(|configuration| self.chain.exchange(configuration));
        exchanged.map_err(AuthorizationError::Configuration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(path: &std::path::Path) -> AuthorizationFlags {
        AuthorizationFlags {
            authorization_config: Some(path.to_owned()),
            authorization_mode: Vec::new(),
            authorization_webhook_cache_authorized_ttl: None,
            authorization_webhook_cache_unauthorized_ttl: None,
            authorization_webhook_config_file: None,
            authorization_webhook_version: None,
        }
    }

    #[test]
    fn a_file_is_read_again_and_keeps_its_types() {
        let dir = tempfile::tempdir().unwrap();
        let (path, kubeconfig) = (dir.path().join("config.yaml"), dir.path().join("kubeconfig"));
        std::fs::write(
            &kubeconfig,
            "{kind: Config, apiVersion: v1, current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'https://h'}}]}",
        )
        .unwrap();
        let write = |authorizers: &str| {
            let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n";
            std::fs::write(&path, format!("{head}authorizers: [{authorizers}]\n")).unwrap();
        };
        let webhook = format!(
            "{{type: Webhook, name: a, webhook: {{timeout: 1s, subjectAccessReviewVersion: v1, failurePolicy: Deny, \
             connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {}}}}}}}",
            kubeconfig.display()
        );
        assert!(matches!(
            Authorization::open(&flags(&path)),
            Err(AuthorizationError::File(_))
        ));
        write("{type: RBAC, name: rbac}");
        let mut own = Authorization::open(&flags(&path)).unwrap();
        assert!(!own.renew().unwrap());
        write(&format!("{webhook}, {{type: RBAC, name: rbac}}"));
        assert!(own.renew().unwrap());
        // another text with the same meaning
        write(&format!("{webhook}, {{name: rbac, type: RBAC}}"));
        assert!(!own.renew().unwrap());
        for (authorizers, expected) in [
            (webhook.as_str(), "missing required types: [RBAC]"),
            (
                "{type: RBAC, name: rbac}, {type: Node, name: node}",
                "Node is not allowed if it was not enabled at initial server startup",
            ),
            ("{type: RBAC}", "authorizers[0].name: Required value"),
        ] {
            write(authorizers);
            let error = own.renew().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!own.renew().unwrap(), "it is told once");
        }
        std::fs::remove_file(&kubeconfig).unwrap();
        write(&format!("{{type: RBAC, name: rbac}}, {webhook}"));
        assert!(own.renew().unwrap_err().to_string().contains("error loading file"));
    }
}
