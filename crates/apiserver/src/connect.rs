//! Subresources that connect to what runs. Nothing that runs is reached from here; what is not there, or cannot be reached by anybody, is told
//! as upstream tells it.

use std::net::IpAddr;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use serde_json::Value;

use crate::definition::{Definition, Lister};
use crate::meta;
use crate::registry::Scope;

/// A subresource that connects: the resource, its name, and the kind of its options.
pub(crate) struct Connection {
    plural: &'static str,
    /// Its name.
    pub(crate) name: &'static str,
    /// The kind of its options.
    pub(crate) options: &'static str,
}

const fn connection(plural: &'static str, name: &'static str, options: &'static str) -> Connection {
    Connection { plural, name, options }
}

const CONNECTIONS: [Connection; 6] = [
    connection("nodes", "proxy", "NodeProxyOptions"),
    connection("pods", "attach", "PodAttachOptions"),
    connection("pods", "exec", "PodExecOptions"),
    connection("pods", "portforward", "PodPortForwardOptions"),
    connection("pods", "proxy", "PodProxyOptions"),
    connection("services", "proxy", "ServiceProxyOptions"),
];

impl Connection {
    /// The verbs by which one connects.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        match self.name {
            "proxy" => &["create", "delete", "get", "patch", "update"],
            _ => &["create", "get"],
        }
    }
}

/// The connections that a resource has.
pub(crate) fn of(definition: &Definition) -> impl Iterator<Item = &'static Connection> {
    let of_core = definition.group.is_empty();
    CONNECTIONS
        .iter()
        .filter(move |own| of_core && own.plural == definition.plural)
}

/// Why nobody connects to what a request names. Behind `proxy` more of a path may follow.
pub(crate) fn refusal(scope: &Scope, verb: &str) -> ApiError {
    let (name, more) = scope.subresource.split_once('/').unwrap_or((&scope.subresource, ""));
    let mut own = of(&scope.definition);
    let Some(connection) = own.find(|own| own.name == name && (name == "proxy" || more.is_empty())) else {
        return ApiError::no_such_path();
    };
    if !connection.verbs().contains(&verb) {
        return ApiError::method_not_allowed();
    }
    let target = match name {
        "proxy" => Target::of(&scope.name),
        _ => Some(Target {
            name: &scope.name,
            port: "",
        }),
    };
    let singular = scope.definition.singular.as_str();
    let Some(target) = target else {
        return ApiError::bad_request(format!("invalid {singular} request {}", go_quote(&scope.name)));
    };
    let get = |plural: &str| scope.cluster.get("", plural, &scope.namespace, target.name);
    let not_found = || ApiError::not_found("", &scope.definition.plural, target.name);
    let unavailable = |why: String| ApiError::new(503, "ServiceUnavailable", why);
    match (connection.plural, name) {
        ("services", _) => {
            if let Ok(port) = target.port.parse::<i64>() {
                let Some(service) = get("services") else {
                    return not_found();
                };
                let mut ports = meta::elements(&service, "/spec/ports").iter();
                if !ports.any(|own| own.get("port").and_then(Value::as_i64) == Some(port)) {
                    let name = go_quote(target.name);
                    return unavailable(format!("no service port {port} found for service {name}"));
                }
            }
            let Some(endpoints) = get("endpoints") else {
                return not_found();
            };
            let asked = match meta::elements(&endpoints, "/subsets").is_empty() {
                true => target.name,
                false => &scope.name,
            };
            unavailable(format!("no endpoints available for service {}", go_quote(asked)))
        }
        ("pods", "proxy") => {
            let Some(pod) = get("pods") else { return not_found() };
            let address = meta::text(&pod, "/status/podIP").parse();
            match address.is_ok_and(|address: IpAddr| is_global(address)) {
                true => ApiError::no_such_path(),
                false => ApiError::bad_request("address not allowed"),
            }
        }
        (plural, _) => match get(plural) {
            Some(_) => ApiError::no_such_path(),
            None => not_found(),
        },
    }
}

/// What a name before `proxy` says: `[<scheme>:]<name>[:<port>]`.
struct Target<'n> {
    name: &'n str,
    port: &'n str,
}

impl<'n> Target<'n> {
    fn of(text: &'n str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme, name, port] => (*scheme, *name, *port),
            _ => return None,
        };
        let valid = !name.is_empty() && matches!(scheme, "" | "http" | "https");
        valid.then_some(Self { name, port })
    }
}

/// Whether an address may be that of a pod: one of a single machine in a network.
fn is_global(address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || link_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_a_scheme_and_a_port() {
        let read = |text: &'static str| Target::of(text).map(|target| (target.name, target.port));
        assert_eq!(read("a"), Some(("a", "")));
        assert_eq!(read("a:80"), Some(("a", "80")));
        assert_eq!(read("https:a:web"), Some(("a", "web")));
        for wrong in ["", ":80", "ftp:a:80", "http:a:80:x"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn pods_have_addresses_of_networks() {
        for (address, expected) in [
            ("10.0.0.1", true),
            ("127.0.0.1", false),
            ("169.254.1.1", false),
            ("fe80::1", false),
            ("2001:db8::1", true),
        ] {
            assert_eq!(is_global(address.parse().unwrap()), expected, "{address}");
        }
    }
}
