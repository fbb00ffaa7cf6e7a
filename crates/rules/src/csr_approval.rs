//! Which certificate signing requests are approved: here those of a shoot's nodes `[GRM-40]` `[GRM-41]`, in [`gardenlets`] those of gardenlets in the
//! garden `[AUTH-30]` `[AUTH-31]`. Looking up nodes, machines and tokens is the caller's.

pub mod gardenlets;

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::Node;

/// Signer of kubelets' serving certificates.
pub const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// Signer of client certificates, among them those of gardener-node-agents.
pub const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// What the users of kubelets begin with; a node's name follows.
pub const NODE_USER_PREFIX: &str = "system:node:";
/// What the users of gardener-node-agents begin with; a machine's name follows.
pub const NODE_AGENT_USER_PREFIX: &str = "gardener.cloud:node-agent:machine:";

const NODES_GROUP: &str = "system:nodes";
const BOOTSTRAP_USER_PREFIX: &str = "system:bootstrap:";

/// What a request asks to be certified, and who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The user that made the request.
    pub username: String,
    /// Common name of the subject.
    pub common_name: String,
    /// Organizations of the subject.
    pub organizations: Vec<String>,
    /// DNS names among the subject alternative names.
    pub dns_names: Vec<String>,
    /// IP addresses among the subject alternative names.
    pub ip_addresses: Vec<IpAddr>,
    /// Mail addresses among the subject alternative names.
    pub email_addresses: Vec<String>,
    /// What the certificate will be used for.
    pub usages: Vec<String>,
}

impl Request {
    /// Reads a signing request (PEM) of a user, for the given usages. None when it is no signing request.
    pub fn read(pem: &[u8], username: &str, usages: &[String]) -> Option<Self> {
        let asked = gardener_pki::read_request(pem)?;
        Some(Self {
            username: username.to_owned(),
            common_name: asked.common_name,
            organizations: asked.organizations,
            dns_names: asked.dns_names,
            ip_addresses: asked.ip_addresses,
            email_addresses: asked.email_addresses,
            usages: usages.to_vec(),
        })
    }
}

/// Whose certificate is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A kubelet's serving certificate; the name of the user's node, empty if the user is none.
    KubeletServing {
        /// The node of the user.
        node: String,
    },
    /// A gardener-node-agent's client certificate.
    NodeAgent {
        /// The machine that the common name says.
        machine: String,
    },
}

/// What is done with a request. The text says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is approved.
    Approve(String),
    /// It is denied.
    Deny(String),
}

/// The machines that belong to a node, when there is a namespace with machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machines<'a> {
    /// The namespace with the machines.
    pub namespace: &'a str,
    /// How many of them are labelled with the node.
    pub count: usize,
}

/// The machine of a gardener-node-agent, as far as it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentMachine {
    /// There is no such machine.
    Missing,
    /// It has no node yet, or its node does not exist.
    WithoutNode,
    /// Its node exists.
    WithNode,
}

/// Whose certificate a request to a signer is for; none when others decide about it.
pub fn purpose(signer: &str, request: &Request) -> Option<Purpose> {
    match signer {
        KUBELET_SERVING => Some(Purpose::KubeletServing {
            node: request
                .username
                .strip_prefix(NODE_USER_PREFIX)
                .unwrap_or_default()
                .to_owned(),
        }),
        API_CLIENT => request
            .common_name
            .strip_prefix(NODE_AGENT_USER_PREFIX)
            .map(|machine| Purpose::NodeAgent {
                machine: machine.to_owned(),
            }),
        _ => None,
    }
}

/// Decides about a kubelet's serving certificate `[GRM-40]`. `node` is the node of the user; `machines` is absent where no namespace has machines.
pub fn kubelet_serving(request: &Request, node: Option<&Node>, machines: Option<Machines<'_>>) -> Decision {
    let refused = kubelet_serving_objection(request, node, machines);
    refused.map_or_else(|| Decision::Approve("all checks passed".to_owned()), Decision::Deny)
}

fn kubelet_serving_objection(request: &Request, node: Option<&Node>, machines: Option<Machines<'_>>) -> Option<String> {
    let user = &request.username;
    let Some(name) = user.strip_prefix(NODE_USER_PREFIX) else {
        return Some(format!("username {user:?} is not prefixed with {NODE_USER_PREFIX:?}"));
    };
    if request.dns_names.is_empty() && request.ip_addresses.is_empty() {
        return Some("no DNS names or IP addresses in the SANs found".to_owned());
    }
    if request.common_name != *user {
        return Some("common name in CSR does not match username".to_owned());
    }
    if request.organizations != [NODES_GROUP] {
        return Some("organization in CSR does not match nodes group".to_owned());
    }
    let Some(node) = node else {
        return Some(format!("could not find node object with name {name:?}"));
    };
    if let Some(Machines { namespace, count }) = machines.filter(|machines| machines.count != 1) {
        return Some(format!(
            "Expected exactly one machine in namespace {namespace:?} for node {name:?} but found {count}"
        ));
    }
    let asked: BTreeSet<&str> = request.dns_names.iter().map(String::as_str).collect();
    if asked != addresses(node, &["Hostname", "InternalDNS", "ExternalDNS"]) {
        return Some("DNS names in CSR do not match addresses of type 'Hostname' or 'InternalDNS' or 'ExternalDNS' in node object".to_owned());
    }
    // addresses are compared as such: one may be written in several ways
    let asked: BTreeSet<IpAddr> = request.ip_addresses.iter().copied().collect();
    let own: Option<BTreeSet<IpAddr>> = addresses(node, &["InternalIP", "ExternalIP"])
        .into_iter()
        .map(|address| address.parse().ok())
        .collect();
    if own != Some(asked) {
        return Some(
            "IP addresses in CSR do not match addresses of type 'InternalIP' or 'ExternalIP' in node object".to_owned(),
        );
    }
    None
}

fn addresses<'a>(node: &'a Node, types: &[&str]) -> BTreeSet<&'a str> {
    let all = node.status.as_ref().and_then(|status| status.addresses.as_deref());
    all.unwrap_or_default()
        .iter()
        .filter(|own| types.contains(&own.type_.as_str()))
        .map(|own| own.address.as_str())
        .collect()
}

/// Decides about a gardener-node-agent's client certificate `[GRM-41]`. `name` is the machine of the common name, `machine` what is known of it.
pub fn node_agent(request: &Request, name: &str, machine: AgentMachine) -> Decision {
    let user = &request.username;
    if machine == AgentMachine::Missing {
        return Decision::Deny(format!("machine {name:?} does not exist"));
    }
    if user.starts_with(BOOTSTRAP_USER_PREFIX) {
        if machine == AgentMachine::WithNode {
            return Decision::Deny(format!(
                "Cannot use bootstrap token since gardener-node-agent for machine {name:?} is already bootstrapped"
            ));
        }
        return Decision::Approve("all checks passed".to_owned());
    }
    if !user.starts_with(NODE_AGENT_USER_PREFIX) {
        return Decision::Deny(format!(
            "username {user:?} is not allowed to create CSRs for a gardener-node-agent"
        ));
    }
    if *user != request.common_name {
        return Decision::Deny("common name in CSR does not match username".to_owned());
    }
    Decision::Approve("all checks passed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{NodeAddress, NodeStatus};

    fn node(addresses: &[(&str, &str)]) -> Node {
        let addresses = addresses.iter().map(|(type_, address)| NodeAddress {
            type_: (*type_).to_owned(),
            address: (*address).to_owned(),
        });
        Node {
            status: Some(NodeStatus {
                addresses: Some(addresses.collect()),
                ..NodeStatus::default()
            }),
            ..Node::default()
        }
    }

    fn good() -> Request {
        Request {
            username: "system:node:a".into(),
            common_name: "system:node:a".into(),
            organizations: vec!["system:nodes".into()],
            dns_names: vec!["a".into()],
            ip_addresses: vec!["10.0.0.1".parse().unwrap()],
            ..Request::default()
        }
    }

    #[test]
    fn grm_40_serving_certificates_say_what_the_node_says() {
        let plain = node(&[("Hostname", "a"), ("InternalIP", "10.0.0.1")]);
        let wide = node(&[
            ("Hostname", "a"),
            ("InternalIP", "10.0.0.1"),
            ("InternalDNS", "a.internal"),
            ("ExternalIP", "2001:db8::1"),
        ]);
        let one = Some(Machines {
            namespace: "ns",
            count: 1,
        });
        type Change = fn(&mut Request);
        let none: Change = |_| {};
        type Case<'a> = (&'a str, Change, Option<&'a Node>, Option<usize>, &'a str);
        let cases: Vec<Case<'_>> = vec![
            ("all is well", none, Some(&plain), Some(1), ""),
            ("no machines at all", none, Some(&plain), None, ""),
            (
                "all addresses",
                |request| {
                    request.dns_names.push("a.internal".into());
                    request.ip_addresses.push("2001:0db8:0::1".parse().unwrap());
                },
                Some(&wide),
                Some(1),
                "",
            ),
            (
                "a person",
                |request| request.username = "jane".into(),
                Some(&plain),
                Some(1),
                r#"username "jane" is not prefixed with "system:node:""#,
            ),
            (
                "no names",
                |request| {
                    request.dns_names.clear();
                    request.ip_addresses.clear();
                },
                Some(&plain),
                Some(1),
                "no DNS names or IP addresses in the SANs found",
            ),
            (
                "another's name",
                |request| request.common_name = "system:node:b".into(),
                Some(&plain),
                Some(1),
                "common name in CSR does not match username",
            ),
            (
                "another group",
                |request| request.organizations.push("system:masters".into()),
                Some(&plain),
                Some(1),
                "organization in CSR does not match nodes group",
            ),
            (
                "no group",
                |request| request.organizations.clear(),
                Some(&plain),
                Some(1),
                "organization in CSR does not match nodes group",
            ),
            (
                "no node",
                none,
                None,
                Some(1),
                r#"could not find node object with name "a""#,
            ),
            (
                "no machine",
                none,
                Some(&plain),
                Some(0),
                r#"Expected exactly one machine in namespace "ns" for node "a" but found 0"#,
            ),
            (
                "two machines",
                none,
                Some(&plain),
                Some(2),
                r#"Expected exactly one machine in namespace "ns" for node "a" but found 2"#,
            ),
            (
                "fewer names",
                |request| request.ip_addresses.push("2001:db8::1".parse().unwrap()),
                Some(&wide),
                Some(1),
                "DNS names in CSR do not match",
            ),
            (
                "a foreign address",
                |request| request.ip_addresses.push("10.0.0.2".parse().unwrap()),
                Some(&plain),
                Some(1),
                "IP addresses in CSR do not match",
            ),
        ];
        for (case, change, node, count, why) in cases {
            let mut request = good();
            change(&mut request);
            let machines = count.map(|count| Machines { namespace: "ns", count });
            match kubelet_serving(&request, node, machines) {
                Decision::Approve(text) => assert_eq!(("", "all checks passed"), (why, text.as_str()), "{case}"),
                Decision::Deny(text) => assert!(!why.is_empty() && text.starts_with(why), "{case}: {text}"),
            }
        }
        assert_eq!(
            kubelet_serving(&good(), Some(&plain), one),
            Decision::Approve("all checks passed".into())
        );
    }

    #[test]
    fn grm_41_node_agents_bootstrap_once_and_renew_their_own() {
        let agent = "gardener.cloud:node-agent:machine:m";
        let other = "gardener.cloud:node-agent:machine:x";
        let cases = [
            ("system:bootstrap:abc", AgentMachine::WithoutNode, ""),
            (
                "system:bootstrap:abc",
                AgentMachine::WithNode,
                r#"Cannot use bootstrap token since gardener-node-agent for machine "m" is already bootstrapped"#,
            ),
            (
                "system:bootstrap:abc",
                AgentMachine::Missing,
                r#"machine "m" does not exist"#,
            ),
            (agent, AgentMachine::WithNode, ""),
            (agent, AgentMachine::WithoutNode, ""),
            (agent, AgentMachine::Missing, r#"machine "m" does not exist"#),
            (
                other,
                AgentMachine::WithNode,
                "common name in CSR does not match username",
            ),
            (
                "jane",
                AgentMachine::WithNode,
                r#"username "jane" is not allowed to create CSRs for a gardener-node-agent"#,
            ),
        ];
        for (user, machine, why) in cases {
            let request = Request {
                username: user.into(),
                common_name: agent.into(),
                ..Request::default()
            };
            let wanted = if why.is_empty() {
                Decision::Approve("all checks passed".into())
            } else {
                Decision::Deny(why.into())
            };
            assert_eq!(node_agent(&request, "m", machine), wanted, "{user} {machine:?}");
        }
    }

    #[test]
    fn grm_41_other_requests_are_left_alone() {
        let named = |common_name: &str| Request {
            common_name: common_name.into(),
            ..Request::default()
        };
        assert_eq!(purpose(API_CLIENT, &named("jane")), None);
        assert_eq!(purpose("kubernetes.io/kube-apiserver-client-kubelet", &good()), None);
        assert_eq!(
            purpose(API_CLIENT, &named("gardener.cloud:node-agent:machine:m")),
            Some(Purpose::NodeAgent { machine: "m".into() })
        );
        assert_eq!(
            purpose(KUBELET_SERVING, &good()),
            Some(Purpose::KubeletServing { node: "a".into() })
        );
    }
}
