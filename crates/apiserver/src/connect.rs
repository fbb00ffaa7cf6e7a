//! Subresources that connect to what runs on a node: `exec`, `attach`, `portforward` and `proxy`.
//!
//! This API server opens no connection to a kubelet or a pod: what an embedded cluster runs is simulated. All that kube-apiserver finds out
//! before it connects is found out here too, in its order and in its words: a client that names a wrong container, or a pod that waits for a
//! node, is told so. Before that admission judges the call, as it judges writes.

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use gardener_schema::openapi::Access;
use http::Method;
use serde_json::{Map, Value};

use crate::definition::{Context, Definition, Lister};
use crate::handle::Call;
use crate::meta;
use crate::registry::Scope;

/// What is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// A container's process, or a new one in it.
    Container,
    /// Ports of a pod.
    Ports,
    /// A server in a pod.
    Pod,
    /// A server behind a service.
    Service,
    /// A kubelet.
    Node,
}

/// A subresource through which clients connect.
pub(crate) struct Connect {
    /// Its name.
    pub(crate) name: &'static str,
    /// The kind of its options.
    pub(crate) kind: &'static str,
    /// To what.
    to: Connection,
    /// The options.
    options: Options,
}

/// Names and types of options.
type Options = &'static [(&'static str, &'static str)];

const fn connect(name: &'static str, kind: &'static str, to: Connection, options: Options) -> Connect {
    Connect {
        name,
        kind,
        to,
        options,
    }
}

const EXEC: [(&str, &str); 6] = [
    ("command", "string"),
    ("container", "string"),
    ("stderr", "boolean"),
    ("stdin", "boolean"),
    ("stdout", "boolean"),
    ("tty", "boolean"),
];
/// What runs already needs no command.
const ATTACH: Options = {
    let [_, options @ ..] = &EXEC;
    options
};
const PROXY: Options = &[("path", "string")];

const OF_PODS: [Connect; 4] = [
    connect("attach", "PodAttachOptions", Connection::Container, ATTACH),
    connect("exec", "PodExecOptions", Connection::Container, &EXEC),
    connect(
        "portforward",
        "PodPortForwardOptions",
        Connection::Ports,
        &[("ports", "integer")],
    ),
    connect("proxy", "PodProxyOptions", Connection::Pod, PROXY),
];
const OF_SERVICES: [Connect; 1] = [connect("proxy", "ServiceProxyOptions", Connection::Service, PROXY)];
const OF_NODES: [Connect; 1] = [connect("proxy", "NodeProxyOptions", Connection::Node, PROXY)];

/// The subresource of this name through which clients connect, if a resource has it.
pub(crate) fn find(definition: &Definition, name: &str) -> Option<&'static Connect> {
    of(&definition.group, &definition.plural)
        .iter()
        .find(|own| own.name == name)
}

/// The subresources of a resource through which clients connect.
pub(crate) fn of(group: &str, resource: &str) -> &'static [Connect] {
    match (group, resource) {
        ("", "pods") => &OF_PODS,
        ("", "services") => &OF_SERVICES,
        ("", "nodes") => &OF_NODES,
        _ => &[],
    }
}

impl Connect {
    /// The verbs of the methods that are understood.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        match self.to {
            Connection::Container | Connection::Ports => &["create", "get"],
            Connection::Pod | Connection::Service | Connection::Node => &["create", "delete", "get", "patch", "update"],
        }
    }

    /// Whether the same is done whatever the method, so that who may do it by one may do it by POST.
    pub(crate) fn does_one_thing(&self) -> bool {
        matches!(self.to, Connection::Container | Connection::Ports)
    }

    /// Whether a request asks the server behind a proxy what may be asked of it.
    pub(crate) fn is_asked_options(&self, method: &Method) -> bool {
        method == Method::OPTIONS && !self.does_one_thing()
    }

    /// How it is reached: with the options of its kind, and beneath it where a server behind it has paths.
    pub(crate) fn access(&self) -> Access {
        Access::Connection {
            options: self.options,
            beneath: matches!(self.to, Connection::Pod | Connection::Service | Connection::Node),
        }
    }

    /// The options of a call, as an object of their kind: what admission sees of it.
    fn options_of(&self, call: &Call, scope: &Scope, beyond: &str) -> Value {
        let mut options = Map::new();
        options.insert("kind".to_owned(), self.kind.into());
        options.insert("apiVersion".to_owned(), scope.version.as_str().into());
        let list = |all: Vec<Value>| (!all.is_empty()).then_some(Value::Array(all));
        for (name, of) in self.options {
            let all = call.query.all(name);
            let value = match (*name, *of) {
                // who asks for no command is told so
                ("command", _) => Some(list(all.map(Value::from).collect()).unwrap_or_default()),
                ("ports", _) => {
                    let ports = all.flat_map(|ports| ports.split(','));
                    list(
                        ports
                            .filter_map(|port| Some(port.parse::<i32>().ok()?.into()))
                            .collect(),
                    )
                }
                ("path", _) => Some(path_beneath(call, beyond))
                    .filter(|path| !path.is_empty())
                    .map(Value::from),
                (_, "boolean") => call.query.flag(name).then_some(Value::Bool(true)),
                _ => call.query.get(name).filter(|text| !text.is_empty()).map(Value::from),
            };
            options.extend(value.map(|value| ((*name).to_owned(), value)));
        }
        options.into()
    }

    /// Why a call is not connected; `beyond` is the path on the server that a proxy connects to.
    pub(crate) async fn refuse(&self, call: &Call, scope: &Scope, verb: &str, beyond: &str) -> ApiError {
        if !self.verbs().contains(&verb) && !self.is_asked_options(&call.method) {
            return ApiError::method_not_allowed();
        }
        if call.query.has("dryRun") {
            return ApiError::bad_request("dryRun is not supported");
        }
        let context = scope.context(call.cluster.clock().now(), false);
        let options = self.options_of(call, scope, beyond);
        if let Err(refused) = scope.admit_connection(&context, options).await {
            return refused;
        }
        let found = match self.to {
            Connection::Container => container(&context, scope, call.query.get("container").unwrap_or_default()),
            Connection::Ports => pod(&context, &scope.namespace, &scope.name).and_then(|pod| {
                node_of(&context, &pod)?.ok_or_else(|| unassigned(&pod))?;
                Ok(told_of(&pod))
            }),
            Connection::Pod => server_in_pod(&context, scope),
            Connection::Service => server_of_service(&context, scope),
            Connection::Node => kubelet(&context, scope),
        };
        let is_upgrade = call.headers.contains_key(http::header::UPGRADE);
        match (found, self.to) {
            (Err(error), _) => error,
            (Ok(_), Connection::Container | Connection::Ports) if !is_upgrade => {
                ApiError::bad_request("Upgrade request required")
            }
            (Ok(whom), _) => ApiError::unavailable(format!(
                "{whom} cannot be reached: this API server connects to no nodes, and containers of an embedded cluster are simulated, without processes or ports"
            )),
        }
    }
}

/// The path on the server that a proxy connects to: with a slash in front of it, and behind it if the request's ends so.
fn path_beneath(call: &Call, beyond: &str) -> String {
    let asked = call.uri.split('?').next().unwrap_or_default();
    let mut path = match beyond.trim_matches('/') {
        "" => String::new(),
        beyond => format!("/{beyond}"),
    };
    if asked.ends_with('/') {
        path.push('/');
    }
    path
}

fn pod(context: &Context<'_>, namespace: &str, name: &str) -> Result<std::sync::Arc<Value>, ApiError> {
    let pod = context.lister.get("", "pods", namespace, name);
    pod.ok_or_else(|| ApiError::not_found("", "pods", name))
}

fn told_of(pod: &Value) -> String {
    format!("pod {}", meta::name(pod))
}

fn unassigned(pod: &Value) -> ApiError {
    ApiError::bad_request(format!("pod {} does not have a host assigned", meta::name(pod)))
}

fn container(context: &Context<'_>, scope: &Scope, wanted: &str) -> Result<String, ApiError> {
    let pod = pod(context, &scope.namespace, &scope.name)?;
    let container = chosen_container(&pod, wanted)?;
    node_of(context, &pod)?.ok_or_else(|| unassigned(&pod))?;
    Ok(format!("container {container} of {}", told_of(&pod)))
}

/// The container that a call to a pod means: the one that it names, else the pod's only one.
///
/// # Errors
/// 400 when the pod has no such container, or several and none is named.
pub(crate) fn chosen_container<'a>(pod: &'a Value, wanted: &'a str) -> Result<&'a str, ApiError> {
    let names = |of: &'a str| {
        meta::elements(pod, of)
            .iter()
            .map(|container| meta::text(container, "/name"))
    };
    let all = || {
        ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"]
            .into_iter()
            .flat_map(names)
    };
    let own = meta::name(pod);
    if !wanted.is_empty() {
        return match all().any(|name| name == wanted) {
            true => Ok(wanted),
            false => Err(ApiError::bad_request(format!(
                "container {wanted} is not valid for pod {own}"
            ))),
        };
    }
    let mut main = names("/spec/containers");
    match (main.next(), main.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {own}"
        ))),
        (Some(_), Some(_)) => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {own}, choose one of: [{}]",
            all().collect::<Vec<_>>().join(" ")
        ))),
    }
}

/// The name of the node that a pod runs on; none when it has not been assigned one.
///
/// # Errors
/// 404 when there is no such node. It is told as one of the resource that was asked for, as kube-apiserver tells it.
pub(crate) fn node_of<'a>(context: &Context<'_>, pod: &'a Value) -> Result<Option<&'a str>, ApiError> {
    let node = meta::text(pod, "/spec/nodeName");
    if node.is_empty() {
        return Ok(None);
    }
    let known = context.lister.get("", "nodes", "", node).is_some();
    known
        .then_some(Some(node))
        .ok_or_else(|| ApiError::not_found("", "pods", node))
}

/// The parts of a name in a proxy's path, `name`, `name:port` or `scheme:name:port`: name and port. `None`: it is none of these.
fn parts(asked: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = asked.split(':').collect();
    let (scheme, name, port) = match parts.as_slice() {
        [name] => ("", *name, ""),
        [name, port] => ("", *name, *port),
        [scheme, name, port] => (*scheme, *name, *port),
        _ => return None,
    };
    (matches!(scheme, "" | "http" | "https") && !name.is_empty()).then_some((name, port))
}

fn invalid(what: &str, asked: &str) -> ApiError {
    ApiError::bad_request(format!("invalid {what} request {}", go_quote(asked)))
}

/// Whether a proxy connects to an address: not to those of the API server's own machine or network.
fn is_proxied(address: &str) -> bool {
    address.parse().is_ok_and(|address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(own) => {
            !(own.is_unspecified()
                || own.is_loopback()
                || own.is_link_local()
                || own.is_multicast()
                || own.is_broadcast())
        }
        std::net::IpAddr::V6(own) => {
            !(own.is_unspecified() || own.is_loopback() || own.is_unicast_link_local() || own.is_multicast())
        }
    })
}

fn server_in_pod(context: &Context<'_>, scope: &Scope) -> Result<String, ApiError> {
    let (name, _) = parts(&scope.name).ok_or_else(|| invalid("pod", &scope.name))?;
    let pod = pod(context, &scope.namespace, name)?;
    if !is_proxied(meta::text(&pod, "/status/podIP")) {
        return Err(ApiError::bad_request("address not allowed"));
    }
    Ok(told_of(&pod))
}

fn server_of_service(context: &Context<'_>, scope: &Scope) -> Result<String, ApiError> {
    let asked = scope.name.as_str();
    let (name, port) = parts(asked).ok_or_else(|| invalid("service", asked))?;
    let missing = || ApiError::not_found("", "services", name);
    let get = |resource: &str| {
        context
            .lister
            .get("", resource, &scope.namespace, name)
            .ok_or_else(missing)
    };
    let port = match port.parse::<i64>() {
        Ok(number) => declared_port(&*get("services")?, number, name)?,
        Err(_) => port.to_owned(),
    };
    let endpoints = get("endpoints")?;
    let subsets = meta::elements(&endpoints, "/subsets");
    let none = |whom: &str| ApiError::unavailable(format!("no endpoints available for service {}", go_quote(whom)));
    if subsets.is_empty() {
        return Err(none(name));
    }
    let is_served = subsets.iter().any(|subset| {
        let mut ports = meta::elements(subset, "/ports").iter();
        let mut addresses = meta::elements(subset, "/addresses").iter();
        ports.any(|own| meta::text(own, "/name") == port)
            && addresses.any(|address| is_of_pod(context.lister, &scope.namespace, address))
    });
    match is_served {
        true => Ok(format!("service {name}")),
        false => Err(none(asked)),
    }
}

/// The name of a service's port with a number.
fn declared_port(service: &Value, number: i64, name: &str) -> Result<String, ApiError> {
    let mut ports = meta::elements(service, "/spec/ports").iter();
    let declared = ports.find(|port| port.get("port").and_then(Value::as_i64) == Some(number));
    let declared = declared.map(|port| meta::text(port, "/name").to_owned());
    declared.ok_or_else(|| {
        let name = go_quote(name);
        ApiError::unavailable(format!("no service port {number} found for service {name}"))
    })
}

/// Whether an address of endpoints is that of a pod in the namespace.
fn is_of_pod(lister: &dyn Lister, namespace: &str, address: &Value) -> bool {
    let named = meta::text(address, "/targetRef/name");
    meta::text(address, "/targetRef/namespace") == namespace && lister.get("", "pods", namespace, named).is_some()
}

fn kubelet(context: &Context<'_>, scope: &Scope) -> Result<String, ApiError> {
    let (name, _) = parts(&scope.name).ok_or_else(|| invalid("node", &scope.name))?;
    let node = context.lister.get("", "nodes", "", name);
    node.map(|_| format!("node {name}"))
        .ok_or_else(|| ApiError::not_found("", "nodes", name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_proxies_may_tell_scheme_and_port() {
        for (asked, wanted) in [
            ("web", Some(("web", ""))),
            ("web:80", Some(("web", "80"))),
            ("web:", Some(("web", ""))),
            ("https:web:http", Some(("web", "http"))),
            (":web:80", Some(("web", "80"))),
            ("ftp:web:80", None),
            ("https::80", None),
            ("a:b:c:d", None),
            ("", None),
        ] {
            assert_eq!(parts(asked), wanted, "{asked}");
        }
    }

    #[test]
    fn a_container_is_chosen_by_name_or_for_being_the_only_one() {
        let pod = |main: &[&str]| {
            let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
            json!({
                "metadata": {"name": "p"},
                "spec": {"initContainers": named(&["i"]), "containers": named(main), "ephemeralContainers": named(&["e"])},
            })
        };
        for (main, wanted, found) in [
            (&["a"][..], "", Ok("a")),
            (&["a", "b"], "b", Ok("b")),
            (&["a", "b"], "i", Ok("i")),
            (&["a", "b"], "e", Ok("e")),
            (&["a", "b"], "c", Err("container c is not valid for pod p")),
            (
                &["a", "b"],
                "",
                Err("a container name must be specified for pod p, choose one of: [i a b e]"),
            ),
            (&[], "", Err("a container name must be specified for pod p")),
        ] {
            let pod = pod(main);
            let chosen = chosen_container(&pod, wanted);
            let chosen = chosen.as_ref().map(|name| *name).map_err(ApiError::message);
            assert_eq!(chosen, found, "{main:?} {wanted}");
        }
    }

    #[test]
    fn the_machine_of_the_server_is_not_proxied() {
        for address in [
            "",
            "x",
            "127.0.0.1",
            "169.254.1.1",
            "0.0.0.0",
            "::1",
            "fe80::1",
            "224.0.0.1",
        ] {
            assert!(!is_proxied(address), "{address}");
        }
        for address in ["10.0.0.1", "fd00::1", "8.8.8.8"] {
            assert!(is_proxied(address), "{address}");
        }
    }
}
