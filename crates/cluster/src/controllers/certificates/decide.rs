//! Which requests are recognized as a node's, and what a signer permits.

use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

/// Signs any client's certificate, once somebody approved it.
pub(super) const API_CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// Signs a node's client certificate.
pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signs a node's serving certificate.
pub(super) const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const NODES: &str = "system:nodes";
const NODE_PREFIX: &str = "system:node:";
const BOOTSTRAPPERS: &str = "system:bootstrappers";

/// A request that is approved by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recognized {
    /// A node that has no certificate yet, with a bootstrap token.
    Bootstrap,
    /// A node renews its own certificate.
    Renewal,
    /// A node's serving certificate.
    Serving,
}

impl Recognized {
    pub fn message(self) -> &'static str {
        match self {
            Self::Bootstrap => "Auto approving kubelet client certificate after SubjectAccessReview.",
            Self::Renewal => "Auto approving self kubelet client certificate after SubjectAccessReview.",
            Self::Serving => "Auto approving kubelet serving certificate.",
        }
    }
}

/// What a request asks to be certified.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    common_name: String,
    organizations: Vec<String>,
    dns_names: Vec<String>,
    ip_addresses: usize,
    other_names: usize,
}

fn asked(request: &CertificateSigningRequest) -> Option<Asked> {
    let pem = pem::parse(&request.spec.request.0).ok()?;
    let (_, parsed) = X509CertificationRequest::from_der(pem.contents()).ok()?;
    let subject = &parsed.certification_request_info.subject;
    let mut asked = Asked {
        common_name: subject.iter_common_name().next()?.as_str().ok()?.to_owned(),
        organizations: subject
            .iter_organization()
            .filter_map(|own| own.as_str().ok())
            .map(str::to_owned)
            .collect(),
        ..Asked::default()
    };
    let names = parsed
        .requested_extensions()
        .into_iter()
        .flatten()
        .filter_map(|extension| match extension {
            ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
            _ => None,
        });
    for name in names.flatten() {
        match name {
            GeneralName::DNSName(name) => asked.dns_names.push((*name).to_owned()),
            GeneralName::IPAddress(_) => asked.ip_addresses += 1,
            _ => asked.other_names += 1,
        }
    }
    Some(asked)
}

fn usages_are(request: &CertificateSigningRequest, required: &str) -> bool {
    let usages = request.spec.usages.as_deref().unwrap_or_default();
    let allowed = ["digital signature", "key encipherment", required];
    usages.iter().all(|own| allowed.contains(&own.as_str()))
        && ["digital signature", required]
            .iter()
            .all(|own| usages.iter().any(|usage| usage == own))
}

fn is_node(asked: &Asked) -> bool {
    asked.organizations == [NODES] && asked.common_name.starts_with(NODE_PREFIX)
}

/// Whether a request is a node's, and of which sort.
pub(super) fn recognize(request: &CertificateSigningRequest) -> Option<Recognized> {
    let spec = &request.spec;
    let asked = asked(request)?;
    let in_group = |group: &str| {
        let groups = spec.groups.as_deref().unwrap_or_default();
        groups
            .iter()
            .any(|own| own == group || own.strip_prefix(group).is_some_and(|rest| rest.starts_with(':')))
    };
    let itself = spec.username.as_deref() == Some(asked.common_name.as_str());
    permitted(request).ok()?;
    match spec.signer_name.as_str() {
        KUBELET_CLIENT if itself && in_group(NODES) => Some(Recognized::Renewal),
        KUBELET_CLIENT if in_group(BOOTSTRAPPERS) => Some(Recognized::Bootstrap),
        KUBELET_SERVING if itself && in_group(NODES) => Some(Recognized::Serving),
        _ => None,
    }
}

/// Whether the signer signs such a request.
///
/// # Errors
/// What the signer does not permit.
pub(super) fn permitted(request: &CertificateSigningRequest) -> Result<(), String> {
    let Some(asked) = asked(request) else {
        return Err("the request is no PEM-encoded certificate request with a common name".to_owned());
    };
    let no_names = asked.dns_names.is_empty() && asked.ip_addresses == 0 && asked.other_names == 0;
    match request.spec.signer_name.as_str() {
        KUBELET_CLIENT if !is_node(&asked) => {
            Err("subject organization is not system:nodes, or common name does not begin with system:node:".to_owned())
        }
        KUBELET_CLIENT if !no_names => Err("subject alternative names are not allowed".to_owned()),
        KUBELET_CLIENT | API_CLIENT if !usages_are(request, "client auth") => {
            Err("usages did not match [key encipherment digital signature client auth]".to_owned())
        }
        API_CLIENT if asked.organizations.iter().any(|own| own == "system:masters") => {
            Err("subject organization system:masters is not allowed".to_owned())
        }
        KUBELET_SERVING if !is_node(&asked) => {
            Err("subject organization is not system:nodes, or common name does not begin with system:node:".to_owned())
        }
        KUBELET_SERVING if asked.other_names > 0 || (asked.dns_names.is_empty() && asked.ip_addresses == 0) => {
            Err("DNS or IP subjectAltName is required, and nothing else is allowed".to_owned())
        }
        KUBELET_SERVING if !usages_are(request, "server auth") => {
            Err("usages did not match [key encipherment digital signature server auth]".to_owned())
        }
        _ => Ok(()),
    }
}

/// Whether the certificates of a signer are for clients and for servers; none for signers that are not served here.
pub(super) fn usages_of(signer: &str) -> Option<(bool, bool)> {
    match signer {
        API_CLIENT | KUBELET_CLIENT => Some((true, false)),
        KUBELET_SERVING => Some((false, true)),
        _ => None,
    }
}

/// How long a request is kept after it was made.
pub(super) fn kept_for(signed: bool, approved: bool, refused: bool) -> Duration {
    const HOUR: Duration = Duration::from_secs(3600);
    if signed || refused || approved { HOUR } else { HOUR * 24 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gardener_pki::Subject;
    use k8s_openapi::ByteString;
    use k8s_openapi::api::certificates::v1::CertificateSigningRequestSpec;

    fn request(subject: &Subject, signer: &str, user: &str, group: &str, usage: &str) -> CertificateSigningRequest {
        let pem = gardener_pki::request(subject).unwrap().certificate;
        CertificateSigningRequest {
            spec: CertificateSigningRequestSpec {
                request: ByteString(pem.into_bytes()),
                signer_name: signer.into(),
                username: Some(user.into()),
                groups: Some(vec![group.into()]),
                usages: Some(vec!["digital signature".into(), usage.into()]),
                ..CertificateSigningRequestSpec::default()
            },
            ..CertificateSigningRequest::default()
        }
    }

    #[test]
    fn requests_of_nodes_are_recognized() {
        let node = Subject::client("system:node:a", &["system:nodes"]);
        let ask =
            |signer: &str, user: &str, group: &str| recognize(&request(&node, signer, user, group, "client auth"));
        assert_eq!(
            ask(KUBELET_CLIENT, "system:bootstrap:x", "system:bootstrappers"),
            Some(Recognized::Bootstrap)
        );
        assert_eq!(
            ask(KUBELET_CLIENT, "system:bootstrap:x", "system:bootstrappers:kubeadm"),
            Some(Recognized::Bootstrap)
        );
        assert_eq!(
            ask(KUBELET_CLIENT, "system:node:a", "system:nodes"),
            Some(Recognized::Renewal)
        );
        assert_eq!(ask(KUBELET_CLIENT, "system:node:b", "system:nodes"), None);
        assert_eq!(ask(API_CLIENT, "system:node:a", "system:nodes"), None);
        let mut serving = Subject::server("system:node:a", &["a"], &[]);
        serving.organizations = vec!["system:nodes".into()];
        let serving = request(
            &serving,
            KUBELET_SERVING,
            "system:node:a",
            "system:nodes",
            "server auth",
        );
        assert_eq!(recognize(&serving), Some(Recognized::Serving));
        let person = Subject::client("jane", &["dev"]);
        assert_eq!(
            recognize(&request(
                &person,
                KUBELET_CLIENT,
                "x",
                "system:bootstrappers",
                "client auth"
            )),
            None
        );
    }

    #[test]
    fn signers_refuse_what_they_do_not_permit() {
        let masters = Subject::client("jane", &["system:masters"]);
        assert!(permitted(&request(&masters, API_CLIENT, "x", "y", "client auth")).is_err());
        let jane = Subject::client("jane", &["dev"]);
        assert!(permitted(&request(&jane, API_CLIENT, "x", "y", "client auth")).is_ok());
        assert!(permitted(&request(&jane, API_CLIENT, "x", "y", "server auth")).is_err());
    }
}
