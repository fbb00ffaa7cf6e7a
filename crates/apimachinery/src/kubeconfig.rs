//! Kubeconfigs as they are written. They are JSON, which is YAML.
//!
//! Not here: reading them, which is for those who go where they lead.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Where an API server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster<'a> {
    /// Its URL.
    pub server: String,
    /// The host name to ask for in TLS, when it is not the URL's.
    pub tls_server_name: Option<&'a str>,
    /// Who vouches for it.
    pub authority: Authority<'a>,
}

/// Who vouches for an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority<'a> {
    /// An authority with this certificate, PEM.
    Certificate(&'a str),
    /// Those that the client's system trusts.
    System,
    /// Nobody: it is not checked who answers.
    Unchecked,
}

/// What tells who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User<'a> {
    /// A client certificate and its key, PEM.
    Certificate { certificate: &'a str, key: &'a str },
    /// A bearer token.
    Token(&'a str),
    /// The path of a file with a bearer token.
    TokenFile(&'a str),
}

/// A kubeconfig that leads to one cluster; cluster, user and context have one name.
pub fn kubeconfig(name: &str, cluster: Cluster<'_>, user: User<'_>) -> Value {
    with_contexts(&[(name.to_owned(), cluster)], (name, user), None)
}

/// A kubeconfig by which one user reaches several clusters: a context for each, of its name, of which the first is the current one. `namespace` is
/// that of each context.
pub fn with_contexts(clusters: &[(String, Cluster<'_>)], user: (&str, User<'_>), namespace: Option<&str>) -> Value {
    let (user_name, user) = user;
    let context = |name: &str| {
        let mut context = json!({"cluster": name, "user": user_name});
        set(&mut context, "namespace", namespace);
        json!({"name": name, "context": context})
    };
    json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": clusters.iter().map(|(name, cluster)| json!({"name": name, "cluster": cluster.member()})).collect::<Vec<_>>(),
        "users": [{"name": user_name, "user": user.member()}],
        "contexts": clusters.iter().map(|(name, _)| context(name)).collect::<Vec<_>>(),
        "current-context": clusters.first().map_or("", |(name, _)| name),
    })
}

impl Cluster<'_> {
    fn member(&self) -> Value {
        let mut member = json!({"server": self.server});
        match self.authority {
            Authority::Certificate(pem) => member["certificate-authority-data"] = STANDARD.encode(pem).into(),
            Authority::System => {}
            Authority::Unchecked => member["insecure-skip-tls-verify"] = true.into(),
        }
        set(&mut member, "tls-server-name", self.tls_server_name);
        member
    }
}

impl User<'_> {
    fn member(self) -> Value {
        match self {
            Self::Certificate { certificate, key } => json!({
                "client-certificate-data": STANDARD.encode(certificate),
                "client-key-data": STANDARD.encode(key),
            }),
            Self::Token(token) => json!({"token": token}),
            Self::TokenFile(path) => json!({"tokenFile": path}),
        }
    }
}

fn set(member: &mut Value, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        member[key] = text.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_way_has_one_name() {
        let cluster = Cluster {
            server: "https://h".to_owned(),
            tls_server_name: Some("n"),
            authority: Authority::Certificate("pem"),
        };
        assert_eq!(
            kubeconfig("a", cluster, User::Token("t")),
            json!({
                "apiVersion": "v1", "kind": "Config",
                "clusters": [{"name": "a", "cluster": {
                    "server": "https://h", "tls-server-name": "n", "certificate-authority-data": "cGVt",
                }}],
                "users": [{"name": "a", "user": {"token": "t"}}],
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "current-context": "a",
            })
        );
    }

    #[test]
    fn each_cluster_has_a_context_and_the_first_is_current() {
        let to = |server: &str, authority| Cluster {
            server: server.to_owned(),
            tls_server_name: None,
            authority,
        };
        let clusters = [
            ("a".to_owned(), to("https://a", Authority::System)),
            ("b".to_owned(), to("https://b", Authority::Unchecked)),
        ];
        let user = User::Certificate {
            certificate: "c",
            key: "k",
        };
        let written = with_contexts(&clusters, ("u", user), Some("default"));
        assert_eq!(
            written["clusters"],
            json!([
                {"name": "a", "cluster": {"server": "https://a"}},
                {"name": "b", "cluster": {"server": "https://b", "insecure-skip-tls-verify": true}},
            ])
        );
        assert_eq!(
            written["contexts"],
            json!([
                {"name": "a", "context": {"cluster": "a", "user": "u", "namespace": "default"}},
                {"name": "b", "context": {"cluster": "b", "user": "u", "namespace": "default"}},
            ])
        );
        assert_eq!(written["current-context"], "a");
        assert_eq!(
            written["users"],
            json!([{"name": "u", "user": {"client-certificate-data": "Yw==", "client-key-data": "aw=="}}])
        );
        assert_eq!(with_contexts(&[], ("u", user), None)["current-context"], "");
    }
}
