//! What this server shows of itself to admission webhooks: the users of a kubeconfig, which are named after the webhooks' hosts.

use std::collections::BTreeMap;
use std::path::Path;

use kube::config::{Cluster, Kubeconfig};

use super::call::{Credentials, Endpoint};
use super::kubeconfig::{KubeconfigError, credentials};

/// Credentials by the webhooks that they are for; without any, webhooks are asked by nobody in particular.
#[derive(Clone, Debug, Default)]
pub struct Identities {
    named: BTreeMap<String, Credentials>,
    /// The user of the current context, whom all others see.
    current: Option<String>,
}

impl Identities {
    /// The users of a kubeconfig. Files that it names are read now, but for tokens', which are read whenever they are shown.
    ///
    /// # Errors
    /// [`KubeconfigError`].
    pub fn of_kubeconfig(path: &Path) -> Result<Self, KubeconfigError> {
        let config = Kubeconfig::read_from(path)?;
        let mut named = BTreeMap::new();
        for user in config.auth_infos {
            let own = credentials(&Cluster::default(), user.auth_info.unwrap_or_default())?;
            named.insert(user.name, own);
        }
        let mut contexts = config.contexts.into_iter();
        let current = contexts.find(|own| Some(&own.name) == config.current_context.as_ref());
        let current = current.and_then(|own| own.context?.user);
        Ok(Self { named, current })
    }

    /// What a webhook is shown: as the user named after its host and port, after a domain above it (`*.example.com`), after its host alone if
    /// the port is 443, as the user `*`, or as that of the current context.
    pub(super) fn shown_to(&self, endpoint: &Endpoint) -> Credentials {
        let (host, port) = host_and_port(endpoint);
        let with_port = format!("{host}:{port}");
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let known = |name: &str| self.named.get(name);
        let of_target = |target: &str| {
            let above = target.match_indices('.').map(|(at, _)| format!("*{}", &target[at..]));
            known(target).or_else(|| above.into_iter().find_map(|name| known(&name)))
        };
        let found = of_target(&with_port)
            .or_else(|| (port == "443").then(|| of_target(bare))?)
            .or_else(|| known("*"))
            .or_else(|| known(self.current.as_ref()?));
        found.cloned().unwrap_or_default()
    }
}

/// The host of a webhook and its port, as its configuration writes them.
fn host_and_port(endpoint: &Endpoint) -> (String, String) {
    if let Some(service) = &endpoint.service {
        return (service.host(), service.port.to_string());
    }
    let url = endpoint.url.as_deref().unwrap_or_default();
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once(':') {
        // the colons of an address are none before a port
        Some((host, port)) if !port.contains(']') => (host.to_owned(), port.to_owned()),
        _ => (authority.to_owned(), "443".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::{Authorization, ServiceReference};

    fn identities(names: &[&str], context: &str) -> Identities {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let users: Vec<String> = names
            .iter()
            .map(|name| format!("{{name: '{name}', user: {{token: '{name}'}}}}"))
            .collect();
        let text = format!(
            "{{kind: Config, apiVersion: v1, users: [{}]{context}}}",
            users.join(",")
        );
        std::fs::write(&path, text).unwrap();
        Identities::of_kubeconfig(&path).unwrap()
    }

    #[test]
    fn webhooks_are_shown_who_is_named_after_them() {
        let url = |url: &str| Endpoint {
            url: Some(url.to_owned()),
            ..Endpoint::default()
        };
        let service = Endpoint {
            service: Some(ServiceReference {
                namespace: "n".into(),
                name: "s".into(),
                port: 443,
                ..ServiceReference::default()
            }),
            ..Endpoint::default()
        };
        let context = ", current-context: c, contexts: [{name: c, context: {cluster: x, user: me}}]";
        let many = [
            "h.a.b:1", "*.a.b:1", "*.b:443", "h.a.b", "*.svc", "[::1]:7", "::1", "me",
        ];
        let (many, star) = (identities(&many, context), identities(&["*", "me"], context));
        for (identities, endpoint, shown) in [
            (&many, url("https://h.a.b:1/x"), "h.a.b:1"),
            (&many, url("https://i.a.b:1?x"), "*.a.b:1"),
            (&many, url("https://h.a.b/x"), "*.b:443"),
            (&many, url("https://h.a.b:2"), "me"),
            (&many, service.clone(), "*.svc"),
            (&many, url("https://[::1]:7/x"), "[::1]:7"),
            (&many, url("https://[::1]/x"), "::1"),
            (&star, service, "*"),
        ] {
            let found = identities.shown_to(&endpoint).authorization;
            assert!(
                found == Authorization::Header(format!("Bearer {shown}")),
                "{endpoint:?}"
            );
        }
        let nobody = identities(&["me"], "").shown_to(&url("https://h"));
        assert!(nobody == Credentials::default());
    }
}
