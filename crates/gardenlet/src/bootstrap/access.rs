//! A way into the garden as a kubeconfig tells it: address, authority, and a token or a client certificate.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::kubeconfig::{self, Authority, Cluster, User};
use gardener_apimachinery::pointer::Pointed;
use gardener_pki::{ClientCertificate, Issued};
use k8s_openapi::ByteString;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// What cluster, context and user are called.
const NAME: &str = "gardenlet";

/// A way into the garden.
#[derive(Clone, PartialEq, Eq)]
pub struct GardenAccess {
    /// URL of the API server.
    pub server: String,
    /// The authority of the API server, PEM; without one it is not checked who answers.
    pub authority: Option<String>,
    /// The host name to ask for in TLS, if it is not the URL's.
    pub tls_server_name: Option<String>,
    /// Who asks.
    pub credentials: Credentials,
}

/// What tells who asks.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A bootstrap token, or one of a service account.
    Token(String),
    /// A client certificate and its key.
    Certificate(Issued),
}

/// Why a kubeconfig tells no way into the garden.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// It is no YAML.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// What its current context needs is not there.
    #[error("invalid kubeconfig: {0} is missing")]
    Missing(&'static str),
    /// A member that should be base64 is not.
    #[error("invalid kubeconfig: {0} is no text in base64")]
    NoText(&'static str),
}

impl GardenAccess {
    /// Reads a kubeconfig: the cluster and the user of its current context. Credentials in files and from programs are none.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn read(kubeconfig: &[u8]) -> Result<Self, AccessError> {
        let text = String::from_utf8_lossy(kubeconfig);
        let value: Value = serde_saphyr::from_str(&text).map_err(|error| AccessError::Unreadable(error.to_string()))?;
        let current = text_of(&value, "/current-context").ok_or(AccessError::Missing("current-context"))?;
        let context =
            entry(&value, "contexts", "context", &current).ok_or(AccessError::Missing("the current context"))?;
        let named = |list, member| entry(&value, list, member, &text_of(context, &format!("/{member}"))?);
        let cluster = named("clusters", "cluster").ok_or(AccessError::Missing("the current context's cluster"))?;
        let user = named("users", "user").ok_or(AccessError::Missing("the current context's user"))?;
        let certificate = data(user, "client-certificate-data")?;
        let credentials = match (certificate, data(user, "client-key-data")?, text_of(user, "/token")) {
            (Some(certificate), Some(key), _) => Credentials::Certificate(Issued { certificate, key }),
            (_, _, Some(token)) => Credentials::Token(token),
            _ => return Err(AccessError::Missing("a token or a client certificate with its key")),
        };
        Ok(Self {
            server: text_of(cluster, "/server").ok_or(AccessError::Missing("the cluster's server"))?,
            authority: data(cluster, "certificate-authority-data")?,
            tls_server_name: text_of(cluster, "/tls-server-name"),
            credentials,
        })
    }

    /// The kubeconfig that tells this way.
    pub fn kubeconfig(&self) -> Value {
        let cluster = Cluster {
            server: self.server.clone(),
            tls_server_name: self.tls_server_name.as_deref(),
            authority: match &self.authority {
                Some(certificate) => Authority::Certificate(certificate),
                None => Authority::Unchecked,
            },
        };
        let user = match &self.credentials {
            Credentials::Token(token) => User::Token(token),
            Credentials::Certificate(pair) => User::Certificate {
                certificate: &pair.certificate,
                key: &pair.key,
            },
        };
        kubeconfig::kubeconfig(NAME, cluster, user)
    }

    /// The data of a Secret with the kubeconfig.
    pub fn secret_data(&self) -> BTreeMap<String, ByteString> {
        // JSON is YAML
        let text = self.kubeconfig().to_string();
        BTreeMap::from([(super::KUBECONFIG.to_owned(), ByteString(text.into_bytes()))])
    }

    /// The client certificate, if it is by one that this way is gone.
    pub fn certificate(&self) -> Option<ClientCertificate> {
        match &self.credentials {
            Credentials::Certificate(pair) => gardener_pki::read_client(&pair.certificate),
            Credentials::Token(_) => None,
        }
    }

    /// When the client certificate expires.
    pub fn expires(&self) -> Option<Timestamp> {
        Timestamp::from_second(self.certificate()?.not_after).ok()
    }
}

fn text_of(value: &Value, pointer: &str) -> Option<String> {
    let text = value.at(pointer).and_then(Value::as_str);
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The entry of a kubeconfig's list with a name.
fn entry<'v>(value: &'v Value, list: &str, member: &str, name: &str) -> Option<&'v Value> {
    let mut entries = value.get(list)?.as_array()?.iter();
    let found = entries.find(|entry| entry.get("name").and_then(Value::as_str) == Some(name))?;
    found.get(member)
}

fn data(value: &Value, key: &'static str) -> Result<Option<String>, AccessError> {
    let Some(text) = text_of(value, &format!("/{key}")) else {
        return Ok(None);
    };
    let bytes = STANDARD.decode(text.trim()).map_err(|_| AccessError::NoText(key))?;
    String::from_utf8(bytes).map(Some).map_err(|_| AccessError::NoText(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn access(credentials: Credentials) -> GardenAccess {
        GardenAccess {
            server: "https://garden".into(),
            authority: Some("authority".into()),
            tls_server_name: Some("api.garden".into()),
            credentials,
        }
    }

    #[test]
    fn auth_32_kubeconfigs_are_read_as_they_are_written() {
        let pair = Issued {
            certificate: "certificate".into(),
            key: "key".into(),
        };
        let mut insecure = access(Credentials::Token("a.b".into()));
        insecure.authority = None;
        for access in [
            access(Credentials::Token("a.b".into())),
            access(Credentials::Certificate(pair)),
            insecure,
        ] {
            let data = access.secret_data();
            assert!(GardenAccess::read(&data[super::super::KUBECONFIG].0) == Ok(access));
        }
    }

    #[test]
    fn auth_32_what_is_no_way_in_is_told() {
        let error = |change: &dyn Fn(&mut Value)| {
            let mut value = access(Credentials::Token("a.b".into())).kubeconfig();
            change(&mut value);
            GardenAccess::read(value.to_string().as_bytes()).map(drop).unwrap_err()
        };
        type Case<'a> = (&'a dyn Fn(&mut Value), AccessError);
        let cases: [Case<'_>; 7] = [
            (
                &|value| value["current-context"] = "".into(),
                AccessError::Missing("current-context"),
            ),
            (
                &|value| value["contexts"] = json!([]),
                AccessError::Missing("the current context"),
            ),
            (
                &|value| value["contexts"][0]["context"]["cluster"] = "x".into(),
                AccessError::Missing("the current context's cluster"),
            ),
            (
                &|value| value["users"][0]["name"] = "x".into(),
                AccessError::Missing("the current context's user"),
            ),
            (
                &|value| value["users"][0]["user"] = json!({"tokenFile": "/token"}),
                AccessError::Missing("a token or a client certificate with its key"),
            ),
            (
                &|value| value["clusters"][0]["cluster"]["server"] = Value::Null,
                AccessError::Missing("the cluster's server"),
            ),
            (
                &|value| value["clusters"][0]["cluster"]["certificate-authority-data"] = "%".into(),
                AccessError::NoText("certificate-authority-data"),
            ),
        ];
        for (change, expected) in cases {
            assert_eq!(error(change), expected);
        }
        let unreadable = GardenAccess::read(b"{").map(drop).unwrap_err();
        assert!(matches!(unreadable, AccessError::Unreadable(_)));
    }
}
