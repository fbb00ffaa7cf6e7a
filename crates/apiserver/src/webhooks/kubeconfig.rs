//! Where a webhook is that a kubeconfig leads to, and what is shown to it.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use secrecy::ExposeSecret;

use super::call::{Authorization, Credentials, Endpoint};

/// Why a kubeconfig leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// It cannot be read, or it is none.
    #[error(transparent)]
    Unreadable(#[from] kube::config::KubeconfigError),
    /// It does not say which of its contexts counts.
    #[error("invalid configuration: no configuration has been provided: it needs a current-context")]
    NoContext,
    /// What it refers to is not in it.
    #[error("invalid configuration: {what} {name:?} does not exist")]
    Missing {
        /// `context` or `cluster`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The cluster has no address.
    #[error("invalid configuration: cluster {0:?} has no server")]
    NoServer(String),
    /// It wants what is not there.
    #[error("{0} is not supported: leave it out")]
    Unsupported(&'static str),
    /// A file that it names cannot be read.
    #[error("{what}: {} cannot be read: {source}", path.display())]
    File {
        /// The member that names it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A member is no base64.
    #[error("{0} is no base64")]
    Base64(&'static str),
    /// A certificate comes without its key, or the other way round.
    #[error("client-certificate and client-key go together")]
    HalfIdentity,
}

impl Endpoint {
    /// Where the current context of a kubeconfig leads. Files that it names are read now, but for a token's, which is read whenever it is shown.
    ///
    /// # Errors
    /// [`KubeconfigError`].
    pub fn of_kubeconfig(path: &Path) -> Result<Self, KubeconfigError> {
        let config = Kubeconfig::read_from(path)?;
        let current = config.current_context.filter(|name| !name.is_empty());
        let current = current.ok_or(KubeconfigError::NoContext)?;
        let mut contexts = config.contexts.into_iter();
        let context = contexts.find(|own| own.name == current).and_then(|own| own.context);
        let context = context.ok_or(KubeconfigError::Missing {
            what: "context",
            name: current,
        })?;
        let mut clusters = config.clusters.into_iter();
        let cluster = clusters.find(|own| own.name == context.cluster);
        let cluster = cluster
            .and_then(|own| own.cluster)
            .ok_or_else(|| KubeconfigError::Missing {
                what: "cluster",
                name: context.cluster.clone(),
            })?;
        // as with client-go a user that is not there is nobody
        let mut users = config.auth_infos.into_iter();
        let user = users.find(|own| Some(&own.name) == context.user.as_ref());
        let user = user.and_then(|own| own.auth_info).unwrap_or_default();
        let url = cluster.server.clone().filter(|server| !server.is_empty());
        Ok(Self {
            url: Some(url.ok_or(KubeconfigError::NoServer(context.cluster))?),
            service: None,
            ca_bundle: authorities(&cluster)?,
            credentials: credentials(&cluster, user)?,
        })
    }
}

fn authorities(cluster: &Cluster) -> Result<Vec<u8>, KubeconfigError> {
    let bundle = content(
        "certificate-authority",
        cluster.certificate_authority_data.as_deref(),
        cluster.certificate_authority.as_deref(),
    )?;
    Ok(bundle.unwrap_or_default())
}

/// What a user of a kubeconfig shows, and how closely he looks at a cluster.
pub(super) fn credentials(cluster: &Cluster, user: AuthInfo) -> Result<Credentials, KubeconfigError> {
    let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let impersonates = given(&user.impersonate) || given(&user.impersonate_uid) || user.impersonate_groups.is_some();
    for (given, what) in [
        (given(&cluster.proxy_url), "proxy-url"),
        (user.exec.is_some(), "exec"),
        (user.auth_provider.is_some(), "auth-provider"),
        (impersonates, "impersonation (as)"),
    ] {
        if given {
            return Err(KubeconfigError::Unsupported(what));
        }
    }
    let certificate = content(
        "client-certificate",
        user.client_certificate_data.as_deref(),
        user.client_certificate.as_deref(),
    )?;
    let key = user.client_key_data.as_ref().map(|key| key.expose_secret());
    let key = content("client-key", key, user.client_key.as_deref())?;
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(KubeconfigError::HalfIdentity),
    };
    let token = user.token.as_ref().map(|token| token.expose_secret());
    let password = user.password.as_ref().map(|password| password.expose_secret());
    let authorization = match (user.token_file.filter(|path| !path.is_empty()), token, user.username) {
        (Some(path), _, _) => Authorization::TokenFile(path.into()),
        (None, Some(token), _) if !token.is_empty() => Authorization::Header(format!("Bearer {token}")),
        (None, _, Some(name)) if !name.is_empty() => {
            let pair = format!("{name}:{}", password.unwrap_or_default());
            Authorization::Header(format!("Basic {}", STANDARD.encode(pair)))
        }
        _ => Authorization::None,
    };
    Ok(Credentials {
        identity,
        authorization,
        server_name: cluster.tls_server_name.clone().unwrap_or_default(),
        insecure: cluster.insecure_skip_tls_verify.unwrap_or(false),
    })
}

/// What a member holds in base64, or else the file that another one names.
fn content(what: &'static str, data: Option<&str>, path: Option<&str>) -> Result<Option<Vec<u8>>, KubeconfigError> {
    if let Some(data) = data.filter(|data| !data.is_empty()) {
        let decoded = STANDARD.decode(data.trim());
        return decoded.map(Some).map_err(|_| KubeconfigError::Base64(what));
    }
    let Some(path) = path.filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return Ok(None);
    };
    let read = std::fs::read(&path);
    read.map(Some)
        .map_err(|source| KubeconfigError::File { what, path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_tells_where_and_as_whom() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        std::fs::write(dir.path().join("ca.pem"), "authority").unwrap();
        let read = |cluster: &str, user: &str| {
            let text = format!(
                "{{kind: Config, apiVersion: v1, current-context: x, contexts: [{{name: x, context: {{cluster: c, user: u}}}}], \
                 clusters: [{{name: c, cluster: {{{cluster}}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
            );
            std::fs::write(&path, text).unwrap();
            Endpoint::of_kubeconfig(&path)
        };
        let server = "server: 'https://h:1/a'";
        let found = read(
            &format!("{server}, certificate-authority: ca.pem, tls-server-name: n"),
            "client-certificate-data: Yw==, client-key-data: aw==, token: t",
        )
        .unwrap();
        assert_eq!(found.url.as_deref(), Some("https://h:1/a"));
        assert_eq!(found.ca_bundle, b"authority");
        assert_eq!(found.credentials.identity, Some((b"c".to_vec(), b"k".to_vec())));
        assert!(found.credentials.authorization == Authorization::Header("Bearer t".into()));
        assert_eq!(found.credentials.server_name, "n");
        let found = read(server, "username: a, password: b").unwrap();
        assert!(found.credentials.authorization == Authorization::Header("Basic YTpi".into()));
        for (cluster, user, expected) in [
            ("", "", "has no server"),
            ("server: x, proxy-url: 'http://p'", "", "proxy-url is not supported"),
            (server, "client-certificate-data: Yw==", "go together"),
            (server, "exec: {command: x}", "exec is not supported"),
            ("server: x, certificate-authority: other.pem", "", "cannot be read"),
            ("server: x, certificate-authority-data: '%'", "", "is no base64"),
        ] {
            let error = read(cluster, user).unwrap_err().to_string();
            assert!(error.contains(expected), "{cluster} {user}: {error}");
        }
        std::fs::write(&path, "{kind: Config, apiVersion: v1}").unwrap();
        let error = Endpoint::of_kubeconfig(&path).unwrap_err().to_string();
        assert!(error.contains("needs a current-context"), "{error}");
    }
}
