//! An EgressSelectorConfiguration: read, judged in upstream's words, and made into ways out.

use std::path::PathBuf;

use gardener_apimachinery::field::{Error, ErrorList, Path, aggregate};
use rustls::pki_types::ServerName;
use serde::Deserialize;
use serde_json::Value;
use tokio_rustls::TlsConnector;

use super::{Egress, Place, Proxy};
use crate::config_file::{self, Kind, Known};
use crate::tls;

const KIND: Kind = Kind {
    group: "apiserver.k8s.io",
    versions: &["v1beta1", "v1alpha1"],
    name: "EgressSelectorConfiguration",
};
const PROTOCOLS: [&str; 3] = ["Direct", "HTTPConnect", "GRPC"];
/// The networks that have names, in the order in which messages list them.
const NETWORKS: [&str; 3] = ["cluster", "controlplane", "etcd"];

const DOCUMENT: Known = Known::Object(&[
    ("apiVersion", Known::Value),
    ("kind", Known::Value),
    ("egressSelections", Known::List(&SELECTION)),
]);
const SELECTION: Known = Known::Object(&[("name", Known::Value), ("connection", CONNECTION)]);
const CONNECTION: Known = Known::Object(&[("proxyProtocol", Known::Value), ("transport", TRANSPORT)]);
const TRANSPORT: Known = Known::Object(&[("tcp", TCP), ("uds", Known::Object(&[("udsName", Known::Value)]))]);
const TCP: Known = Known::Object(&[
    ("url", Known::Value),
    (
        "tlsConfig",
        Known::Object(&[
            ("caBundle", Known::Value),
            ("clientKey", Known::Value),
            ("clientCert", Known::Value),
            ("tlsServerName", Known::Value),
        ]),
    ),
]);

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// It is none.
    #[error("failed to read egress selector config: {0}")]
    Malformed(String),
    /// It contradicts itself.
    #[error("failed to validate egress selector configuration: {}", aggregate(.0))]
    Invalid(ErrorList),
    /// It wants what is not done here.
    #[error("egress selector configuration: {0}")]
    Unsupported(&'static str),
    /// Files that it names cannot be used.
    #[error("failed to setup egress selector: {0}")]
    Setup(String),
}

/// A configuration as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Configuration {
    egress_selections: Vec<Selection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selection {
    name: String,
    connection: Connection,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Connection {
    proxy_protocol: String,
    transport: Option<Transport>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Transport {
    tcp: Option<Tcp>,
    uds: Option<Uds>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tcp {
    url: String,
    tls_config: Option<TlsFiles>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Uds {
    uds_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TlsFiles {
    ca_bundle: String,
    client_key: String,
    client_cert: String,
    tls_server_name: String,
}

impl Configuration {
    /// Reads a configuration (YAML or JSON) and looks for what contradicts itself; `is_there` tells whether a file is.
    ///
    /// # Errors
    /// [`EgressError::Malformed`], [`EgressError::Invalid`].
    pub fn read(text: &str, is_there: impl Fn(&str) -> bool) -> Result<Self, EgressError> {
        let read: Self = config_file::read(text, &KIND, &DOCUMENT).map_err(EgressError::Malformed)?;
        let errors = read.errors(&is_there);
        match errors.is_empty() {
            true => Ok(read),
            false => Err(EgressError::Invalid(errors)),
        }
    }

    fn errors(&self, is_there: &dyn Fn(&str) -> bool) -> ErrorList {
        // upstream's path names nothing that is written in the file
        let path = Path::new("service.connection");
        let mut errors = ErrorList::new();
        for selection in &self.egress_selections {
            let Connection {
                proxy_protocol,
                transport,
            } = &selection.connection;
            match proxy_protocol.as_str() {
                "Direct" if transport.is_some() => {
                    let why = "config must be absent for direct connect";
                    errors.push(Error::invalid(&path.child("transport"), "direct", why));
                }
                "Direct" => {}
                "HTTPConnect" => errors.extend(by_connect(transport.as_ref(), &path, is_there)),
                "GRPC" => errors.extend(by_grpc(transport.as_ref(), &path)),
                other => errors.push(Error::not_supported(&path.child("protocol"), other, &PROTOCOLS)),
            }
        }
        let mut seen = Vec::new();
        for (at, selection) in self.egress_selections.iter().enumerate() {
            let name = selection.name.to_lowercase();
            if seen.contains(&name) {
                errors.push(Error::duplicate(&path.index(at), name.as_str()));
                continue;
            }
            if !NETWORKS.contains(&name.as_str()) {
                errors.push(Error::not_supported(&path, name.as_str(), &NETWORKS));
            }
            seen.push(name);
        }
        errors
    }

    /// The ways out that it describes. Reads the files that it names.
    ///
    /// # Errors
    /// [`EgressError::Unsupported`], [`EgressError::Setup`].
    pub async fn egress(&self) -> Result<Egress, EgressError> {
        let mut egress = Egress::default();
        for Selection { name, connection } in &self.egress_selections {
            let proxy = match connection.proxy_protocol.as_str() {
                "HTTPConnect" => connection.transport.as_ref(),
                "GRPC" => {
                    let why = "GRPC is not supported yet: use HTTPConnect";
                    return Err(EgressError::Unsupported(why));
                }
                _ => None,
            };
            let proxy = match proxy {
                Some(transport) => Some(proxy_of(transport).await.map_err(EgressError::Setup)?),
                None => None,
            };
            match name.to_lowercase().as_str() {
                "controlplane" => egress.control_plane = proxy,
                "cluster" => egress.cluster = proxy,
                _ if proxy.is_some() => {
                    let why = "a proxy to etcd is not supported yet: use Direct";
                    return Err(EgressError::Unsupported(why));
                }
                _ => {}
            }
        }
        Ok(egress)
    }
}

fn by_connect(transport: Option<&Transport>, path: &Path, is_there: &dyn Fn(&str) -> bool) -> ErrorList {
    let required = |name: &str, why: &str| vec![Error::required(&path.child(name), why)];
    match transport.map(|own| (&own.tcp, &own.uds)) {
        None => required("transport", "transport must be set for HTTPConnect"),
        Some((Some(tcp), Some(_))) => {
            let shown = Value::from(tcp.url.as_str());
            let why = "TCP and UDS cannot both be set";
            vec![Error::invalid(&path.child("tcp"), shown, why)]
        }
        Some((None, None)) => required("tcp", "One of TCP or UDS must be set"),
        Some((Some(tcp), None)) => by_tcp(tcp, path, is_there),
        Some((None, Some(uds))) => by_socket(uds, path),
    }
}

fn by_grpc(transport: Option<&Transport>, path: &Path) -> ErrorList {
    match transport.map(|own| &own.uds) {
        None => vec![Error::required(
            &path.child("transport"),
            "transport must be set for GRPC",
        )],
        Some(None) => vec![Error::required(&path.child("uds"), "UDS must be set with GRPC")],
        Some(Some(uds)) => by_socket(uds, path),
    }
}

fn by_socket(uds: &Uds, path: &Path) -> ErrorList {
    let missing = uds.uds_name.is_empty();
    let error = || Error::invalid(&path.child("udsName"), "nil", "must be present for UDS connections");
    missing.then(error).into_iter().collect()
}

fn by_tcp(tcp: &Tcp, path: &Path, is_there: &dyn Fn(&str) -> bool) -> ErrorList {
    let invalid = |name: &str, shown: &str, why: &str| Error::invalid(&path.child(name), shown, why);
    if tcp.url.starts_with("http://") {
        let why = "config must not be present when using HTTP";
        let error = tcp.tls_config.as_ref().map(|_| invalid("tlsConfig", "nil", why));
        return error.into_iter().collect();
    }
    if !tcp.url.starts_with("https://") {
        let why = "supported connection protocols are http:// and https://";
        return vec![invalid("url", &tcp.url, why)];
    }
    let Some(files) = &tcp.tls_config else {
        let why = "TLSConfig must be present when using HTTPS";
        return vec![Error::required(&path.child("tlsConfig"), why)];
    };
    let mut errors = ErrorList::new();
    if !files.ca_bundle.is_empty() && !is_there(&files.ca_bundle) {
        let why = "TLS config ca bundle does not exist";
        errors.push(invalid("tlsConfig.caBundle", &files.ca_bundle, why));
    }
    for (name, file, missing, absent) in [
        (
            "tlsConfig.clientCert",
            &files.client_cert,
            "Using TLS requires clientCert",
            "TLS client cert does not exist",
        ),
        (
            "tlsConfig.clientKey",
            &files.client_key,
            "Using TLS requires requires clientKey",
            "TLS client key does not exist",
        ),
    ] {
        if file.is_empty() {
            errors.push(invalid(name, "nil", missing));
        } else if !is_there(file) {
            errors.push(invalid(name, file, absent));
        }
    }
    errors
}

async fn proxy_of(transport: &Transport) -> Result<Proxy, String> {
    let Some(tcp) = &transport.tcp else {
        let file = transport.uds.as_ref().map(|uds| PathBuf::from(&uds.uds_name));
        return Ok(Proxy {
            place: Place::Unix(file.unwrap_or_default()),
            tls: None,
        });
    };
    let url = url::Url::parse(&tcp.url).map_err(|error| format!("invalid proxy server url {:?}: {error}", tcp.url))?;
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(format!("invalid proxy server url {:?}: it has no host", tcp.url));
    };
    let tls = match &tcp.tls_config {
        None => None,
        Some(files) => {
            let read = |path: &str| std::fs::read(path).map_err(|error| format!("failed to read {path}: {error}"));
            let authorities = match files.ca_bundle.as_str() {
                "" => Vec::new(),
                path => read(path)?,
            };
            let (certificate, key) = (read(&files.client_cert)?, read(&files.client_key)?);
            let config = tls::client(&authorities, false, Some((&certificate, &key))).await?;
            let name = match files.tls_server_name.as_str() {
                "" => host.trim_start_matches('[').trim_end_matches(']'),
                other => other,
            };
            let name = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
            Some((TlsConnector::from(std::sync::Arc::new(config)), name))
        }
    };
    Ok(Proxy {
        place: Place::Tcp(format!("{host}:{port}")),
        tls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(selections: &str) -> String {
        let text = format!(
            "{{apiVersion: apiserver.k8s.io/v1beta1, kind: EgressSelectorConfiguration, egressSelections: [{selections}]}}"
        );
        match Configuration::read(&text, |path| path == "/there") {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_contradicts_itself_is_told() {
        let invalid = |why: &str| format!("failed to validate egress selector configuration: {why}");
        let https = |files: &str| {
            format!(
                "{{name: cluster, connection: {{proxyProtocol: HTTPConnect, transport: {{tcp: {{url: 'https://p', tlsConfig: {files}}}}}}}}}"
            )
        };
        for (selections, expected) in [
            (String::new(), String::new()),
            (
                "{name: Cluster, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: /s}}}}, \
                 {name: etcd, connection: {proxyProtocol: Direct}}"
                    .into(),
                String::new(),
            ),
            (https("{clientCert: /there, clientKey: /there, caBundle: /there}"), String::new()),
            (
                https("{clientCert: /gone}"),
                invalid(
                    "[service.connection.tlsConfig.clientCert: Invalid value: \"/gone\": TLS client cert does not exist, \
                     service.connection.tlsConfig.clientKey: Invalid value: \"nil\": Using TLS requires requires clientKey]",
                ),
            ),
            (
                "{name: cluster, connection: {proxyProtocol: Direct, transport: {}}}".into(),
                invalid("service.connection.transport: Invalid value: \"direct\": config must be absent for direct connect"),
            ),
            (
                "{name: cluster, connection: {proxyProtocol: SOCKS}}".into(),
                invalid(
                    "service.connection.protocol: Unsupported value: \"SOCKS\": supported values: \"Direct\", \"HTTPConnect\", \"GRPC\"",
                ),
            ),
            (
                "{name: cluster, connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: 'p:1'}}}}".into(),
                invalid(
                    "service.connection.url: Invalid value: \"p:1\": supported connection protocols are http:// and https://",
                ),
            ),
            (
                "{name: cluster, connection: {proxyProtocol: Direct}}, {name: CLUSTER, connection: {proxyProtocol: Direct}}".into(),
                invalid("service.connection[1]: Duplicate value: \"cluster\""),
            ),
            (
                "{name: master, connection: {proxyProtocol: Direct}}".into(),
                invalid(
                    "service.connection: Unsupported value: \"master\": supported values: \"cluster\", \"controlplane\", \"etcd\"",
                ),
            ),
            (
                "{name: cluster, odd: 1}".into(),
                "failed to read egress selector config: strict decoding error: unknown field \"egressSelections[0].odd\"".into(),
            ),
        ] {
            assert_eq!(told(&selections), expected, "{selections}");
        }
    }

    #[tokio::test]
    async fn what_is_not_done_here_is_told() {
        for (selection, expected) in [
            (
                "{name: etcd, connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: /s}}}}",
                "a proxy to etcd",
            ),
            (
                "{name: cluster, connection: {proxyProtocol: GRPC, transport: {uds: {udsName: /s}}}}",
                "GRPC is not supported yet",
            ),
        ] {
            let text = format!(
                "{{apiVersion: apiserver.k8s.io/v1beta1, kind: EgressSelectorConfiguration, egressSelections: [{selection}]}}"
            );
            let made = Configuration::read(&text, |_| true).unwrap().egress().await;
            let error = made.err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
