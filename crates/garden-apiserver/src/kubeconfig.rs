//! `shoots/adminkubeconfig` and `shoots/viewerkubeconfig`, [GAPI-60] – [GAPI-63]: short-lived client certificates for a shoot's API.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::kubeconfig::{Authority, Cluster, User, with_contexts};
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::{advertised_address, group};
use gardener_apis::core::v1beta1::{InternalSecret, Shoot};
use gardener_apis::validation::{go_list, go_struct};
use gardener_apiserver::definition::{Context, Effect, Subresource};
use gardener_apiserver::{UserInfo, meta};
use gardener_schema::Schema;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::lookup;

/// Seconds that a kubeconfig is valid unless the request says otherwise.
const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = (1 << 32) - 1;
/// Seconds by which certificates begin earlier than now, for clocks that lag.
const BACKDATED_SECONDS: i64 = 30;

/// Addresses that a kubeconfig may use, [GAPI-61].
const ADDRESSES: [&str; 4] = [
    advertised_address::EXTERNAL,
    advertised_address::INTERNAL,
    advertised_address::WILDCARD_TLS_SEED_BOUND,
    advertised_address::UNMANAGED,
];

/// The one listener that serves all logical clusters, told apart by the name in the TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPoint {
    /// URL of the listener, such as `https://127.0.0.1:6443`.
    pub url: String,
}

/// What a kubeconfig lets its owner do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    Admin,
    /// Reading all but secrets.
    Viewer,
}

impl Access {
    /// The kind of the request for it.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Admin => "AdminKubeconfigRequest",
            Self::Viewer => "ViewerKubeconfigRequest",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Viewer => "viewer",
        }
    }

    /// The group of the certificate's owner, [GAPI-63].
    fn group(self, context: &Context<'_>) -> &'static str {
        let (group, resource) = match self {
            Self::Admin => ("", "secrets"),
            Self::Viewer => ("core.gardener.cloud", "projects"),
        };
        let operator = context.lister.allowed(context.user, "list", group, resource, "", "");
        match (self, operator) {
            (Self::Admin, true) => group::SYSTEM_ADMINS,
            (Self::Admin, false) => group::PROJECT_ADMINS,
            (Self::Viewer, true) => group::SYSTEM_VIEWERS,
            (Self::Viewer, false) => group::PROJECT_VIEWERS,
        }
    }
}

/// The subresource.
pub struct Kubeconfig {
    /// What the kubeconfig allows.
    pub access: Access,
    /// What is known of the request's kind.
    pub schema: Option<Arc<Schema>>,
    /// The longest validity that is granted; longer wishes are cut.
    pub longest: Duration,
    /// Used instead of the advertised address' own host when there is one.
    pub entry_point: Option<EntryPoint>,
}

impl Kubeconfig {
    /// The validity in seconds that is granted to a request.
    fn granted(&self, request: &Value) -> Result<i64, ApiError> {
        let wish = request.at("/spec/expirationSeconds").and_then(Value::as_i64);
        granted_seconds(self.access, wish, self.longest)
    }
}

fn invalid(access: Access, name: &str, error: Error) -> ApiError {
    ApiError::invalid("authentication.gardener.cloud", access.kind(), name, &[error])
}

/// The validity that is granted for a wish, [GAPI-60].
fn granted_seconds(access: Access, wish: Option<i64>, longest: Duration) -> Result<i64, ApiError> {
    let path = Path::new("spec.expirationSeconds");
    let seconds = wish.unwrap_or(DEFAULT_SECONDS);
    if seconds < MIN_SECONDS {
        let why = "may not specify a duration less than 10 minutes";
        return Err(invalid(access, "", Error::invalid(&path, seconds, why)));
    }
    if seconds > MAX_SECONDS {
        return Err(invalid(
            access,
            "",
            Error::too_long(&path, usize::try_from(MAX_SECONDS).unwrap_or(usize::MAX)),
        ));
    }
    Ok(seconds.min(i64::try_from(longest.as_secs()).unwrap_or(MAX_SECONDS)))
}

/// A client CA, as the project namespace holds it.
struct ClientCa {
    certificate: String,
    key: String,
}

fn client_ca(context: &Context<'_>, shoot: &Shoot) -> Result<ClientCa, ApiError> {
    let name = format!("{}.ca-client", shoot.own_name());
    let secret: Option<InternalSecret> = lookup::get(context.lister, shoot.project_namespace(), &name);
    let Some(secret) = secret else {
        let why = format!("internalsecret.core.gardener.cloud {name:?} not found");
        return Err(ApiError::internal(format!("could not get client CA secret: {why}")));
    };
    let text = |key: &str| {
        let text = secret
            .data
            .get(key)
            .and_then(|bytes| String::from_utf8(bytes.0.clone()).ok());
        text.ok_or_else(|| {
            let why = format!("internal secret {name} has no {key}");
            ApiError::internal(format!("could not load client CA certificate from secret: {why}"))
        })
    };
    Ok(ClientCa {
        certificate: text("ca.crt")?,
        key: text("ca.key")?,
    })
}

/// The authorities (PEM) that a shoot's API server is known by. Before they were kept in a ConfigMap they were in a Secret of its name.
///
/// # Errors
/// There are none.
fn cluster_ca(context: &Context<'_>, shoot: &Shoot) -> Result<String, ApiError> {
    let (namespace, name) = (shoot.project_namespace(), format!("{}.ca-cluster", shoot.own_name()));
    let bundle = match context.lister.get("", "configmaps", namespace, &name) {
        Some(map) => meta::text(&map, "/data/ca.crt").to_owned(),
        None => {
            let secret: Option<Secret> = lookup::get(context.lister, namespace, &name);
            let secret = secret.ok_or_else(|| {
                ApiError::internal(format!("could not get cluster CA secret: secret {name:?} not found"))
            })?;
            let data = secret.data.unwrap_or_default();
            data.get("ca.crt")
                .map_or(String::new(), |bytes| String::from_utf8_lossy(&bytes.0).into_owned())
        }
    };
    match bundle.is_empty() {
        true => Err(ApiError::internal("could not load cluster CA bundle")),
        false => Ok(bundle),
    }
}

/// A client certificate with its key, both PEM.
struct Signed {
    certificate: String,
    key: String,
}

fn sign(
    ca: &ClientCa,
    user: &str,
    organization: &str,
    from: Timestamp,
    until: Timestamp,
) -> Result<Signed, rcgen::Error> {
    let issuer = Issuer::from_ca_cert_pem(&ca.certificate, KeyPair::from_pem(&ca.key)?)?;
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, organization);
    name.push(DnType::CommonName, user);
    params.distinguished_name = name;
    // rcgen's time type comes from a crate of its own; it is reached from the epoch.
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let seconds = |time: Timestamp| std::time::Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
    params.not_before = epoch + seconds(from);
    params.not_after = epoch + seconds(until);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Signed {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Host of a URL without scheme, port and path.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    authority
        .rsplit_once(':')
        .filter(|(_, port)| port.chars().all(|c| c.is_ascii_digit()))
        .map_or(authority, |(host, _)| host)
}

/// The kubeconfig of [GAPI-62], as JSON, which is YAML.
fn kubeconfig(shoot: &Shoot, cluster_ca: &str, entry_point: Option<&EntryPoint>, signed: &Signed) -> Value {
    let prefix = format!("{}--{}", shoot.project_namespace(), shoot.own_name());
    let authority = |name: &str| match name {
        advertised_address::WILDCARD_TLS_SEED_BOUND => Authority::System,
        _ => Authority::Certificate(cluster_ca),
    };
    let clusters: Vec<(String, Cluster<'_>)> = shoot
        .status
        .advertised_addresses
        .iter()
        .filter(|address| ADDRESSES.contains(&address.name.as_str()))
        .map(|address| {
            let mut cluster = Cluster {
                server: address.url.clone(),
                tls_server_name: None,
                authority: authority(&address.name),
            };
            if let Some(entry) = entry_point {
                cluster.server = format!("{}/clusters/{}", entry.url, shoot.status.technical_id);
                cluster.tls_server_name = Some(host(&address.url));
            }
            (format!("{prefix}-{}", address.name), cluster)
        })
        .collect();
    let user = User::Certificate {
        certificate: &signed.certificate,
        key: &signed.key,
    };
    with_contexts(&clusters, (&prefix, user), Some("default"))
}

fn common_name(access: Access, user: &UserInfo) -> String {
    format!("gardener.cloud:{}:{}", access.word(), user.name)
}

#[async_trait]
impl Subresource for Kubeconfig {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        ("authentication.gardener.cloud", "v1alpha1", self.access.kind())
    }

    fn schema(&self) -> Option<Arc<Schema>> {
        self.schema.clone()
    }

    fn examine(&self, _: &Context<'_>, _: &str, body: &mut Value) -> Result<(), ApiError> {
        self.granted(body).map(drop)
    }

    async fn call(&self, context: &Context<'_>, _: &str, parent: &Value, body: Value) -> Result<Effect, ApiError> {
        let seconds = self.granted(&body)?;
        let shoot = Shoot::deserialize(parent).map_err(ApiError::internal)?;
        let addresses = &shoot.status.advertised_addresses;
        if !addresses
            .iter()
            .any(|address| ADDRESSES.contains(&address.name.as_str()))
        {
            let shown = go_list(addresses, |address| {
                go_struct(&[
                    ("Name", address.name.as_str().into()),
                    ("URL", address.url.as_str().into()),
                    ("Application", address.application.as_deref().into()),
                ])
            });
            let why = "no suitable advertised address for kube-apiserver found in .status.advertisedAddresses";
            return Err(invalid(
                self.access,
                shoot.own_name(),
                Error::literal(&Path::new("status.status"), shown, why),
            ));
        }
        let ca = client_ca(context, &shoot)?;
        let cluster_ca = cluster_ca(context, &shoot)?;
        let until = meta::later(context.now, seconds);
        let signed = sign(
            &ca,
            &common_name(self.access, context.user),
            self.access.group(context),
            meta::later(context.now, -BACKDATED_SECONDS),
            until,
        )
        .map_err(ApiError::internal)?;
        let config = kubeconfig(&shoot, &cluster_ca, self.entry_point.as_ref(), &signed);
        let text = serde_json::to_string(&config).map_err(ApiError::internal)?;
        let answer = json!({
            "apiVersion": "authentication.gardener.cloud/v1alpha1",
            "kind": self.access.kind(),
            "metadata": {"name": shoot.own_name(), "namespace": shoot.project_namespace()},
            "spec": {"expirationSeconds": seconds},
            "status": {"kubeconfig": STANDARD.encode(text), "expirationTimestamp": meta::rfc3339(until)},
        });
        Ok(Effect::Answer(answer, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shoot(addresses: Value) -> Shoot {
        serde_json::from_value(json!({"metadata": {"name": "s", "namespace": "garden-local"}, "status": {"advertisedAddresses": addresses, "technicalID": "shoot--local--s"}}))
            .unwrap()
    }

    #[test]
    fn gapi_60_lifetimes() {
        let granted_seconds = |access, wish| granted_seconds(access, wish, Duration::from_secs(24 * 3600));
        assert_eq!(granted_seconds(Access::Admin, None).unwrap(), 3600);
        assert_eq!(granted_seconds(Access::Admin, Some(1 << 31)).unwrap(), 24 * 3600);
        assert_eq!(
            granted_seconds(Access::Admin, Some(-1)).unwrap_err().message(),
            "AdminKubeconfigRequest.authentication.gardener.cloud \"\" is invalid: spec.expirationSeconds: Invalid value: -1: may not specify a duration less than 10 minutes"
        );
        assert_eq!(granted_seconds(Access::Viewer, Some(1 << 32)).unwrap_err().code(), 422);
    }

    #[test]
    fn gapi_62_one_context_per_suitable_address() {
        let shoot = shoot(json!([
            {"name": "service-account-issuer", "url": "https://x"},
            {"name": "external", "url": "https://api.s.local.example.org"},
            {"name": "internal", "url": "https://api.s.internal.example.org:443"}
        ]));
        let signed = Signed {
            certificate: "c".into(),
            key: "k".into(),
        };
        let plain = kubeconfig(&shoot, "ca", None, &signed);
        assert_eq!(plain["current-context"], "garden-local--s-external");
        assert_eq!(plain["clusters"].as_array().unwrap().len(), 2);
        assert_eq!(
            plain["clusters"][0]["cluster"]["server"],
            "https://api.s.local.example.org"
        );
        let entry = EntryPoint {
            url: "https://127.0.0.1:6443".into(),
        };
        let embedded = kubeconfig(&shoot, "ca", Some(&entry), &signed);
        assert_eq!(
            embedded["clusters"][1]["cluster"]["server"],
            "https://127.0.0.1:6443/clusters/shoot--local--s"
        );
        assert_eq!(
            embedded["clusters"][1]["cluster"]["tls-server-name"],
            "api.s.internal.example.org"
        );
    }

    #[test]
    fn gapi_63_certificates_are_the_client_cas() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca = ClientCa {
            certificate: params.self_signed(&key).unwrap().pem(),
            key: key.serialize_pem(),
        };
        let from: Timestamp = "2026-05-01T10:00:00Z".parse().unwrap();
        let signed = sign(
            &ca,
            "gardener.cloud:admin:me",
            group::PROJECT_ADMINS,
            from,
            meta::later(from, 600),
        )
        .unwrap();
        assert!(signed.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(KeyPair::from_pem(&signed.key).is_ok());
        let other = ClientCa {
            certificate: "none".into(),
            key: ca.key,
        };
        assert!(sign(&other, "x", "y", from, from).is_err());
    }
}
