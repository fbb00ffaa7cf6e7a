//! SelfHostedShootExposures.

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::{ip, names};

use crate::extensions::v1alpha1::{
    SelfHostedShootExposure, SelfHostedShootExposureCredentialsRef, SelfHostedShootExposureEndpointAddresse,
    SelfHostedShootExposureSpec,
};
use crate::validation::extension_object::{ExtensionObject, required};
use crate::validation::{go_kind, immutable, invalid_each};

/// The kinds of addresses of nodes.
const ADDRESS_TYPES: [&str; 5] = ["ExternalDNS", "ExternalIP", "Hostname", "InternalDNS", "InternalIP"];

impl ExtensionObject for SelfHostedShootExposure {
    type Spec = SelfHostedShootExposureSpec;
    const NAMESPACED: bool = true;
    const WORDS: &'static str = "SelfHostedShootExposure";

    fn spec(&self) -> &SelfHostedShootExposureSpec {
        &self.spec
    }

    fn validate_content(&self) -> ErrorList {
        let (spec, path) = (&self.spec, Path::new("spec"));
        let mut errors = required(&path, &[("type", spec.r#type.is_empty())]);
        if let Some(reference) = &spec.credentials_ref {
            let namespace = self.metadata.namespace.as_deref().unwrap_or_default();
            errors.extend(credentials(reference, namespace, &path.child("credentialsRef")));
        }
        if !(1..=65535).contains(&spec.port) {
            let why = "must be between 1 and 65535, inclusive";
            errors.push(Error::invalid(&path.child("port"), spec.port, why));
        }
        errors.extend(required(&path, &[("endpoints", spec.endpoints.is_empty())]));
        for (i, endpoint) in spec.endpoints.iter().enumerate() {
            let at = path.child("endpoints").index(i);
            errors.extend(required(&at, &[("nodeName", endpoint.node_name.is_empty())]));
            for (j, one) in endpoint.addresses.iter().enumerate() {
                errors.extend(address(one, &at.child("addresses").index(j)));
            }
        }
        errors
    }

    fn validate_changes(
        new: &SelfHostedShootExposureSpec,
        old: &SelfHostedShootExposureSpec,
        path: &Path,
    ) -> ErrorList {
        immutable(&new.r#type, &old.r#type, &path.child("type"))
    }
}

fn address(address: &SelfHostedShootExposureEndpointAddresse, path: &Path) -> ErrorList {
    let (kind, at) = (address.r#type.as_str(), path.child("type"));
    let mut errors = required(path, &[("type", kind.is_empty())]);
    if !kind.is_empty() && !ADDRESS_TYPES.contains(&kind) {
        errors.push(Error::not_supported(&at, kind, &ADDRESS_TYPES));
    }
    let (text, at) = (address.address.as_str(), path.child("address"));
    if text.is_empty() {
        errors.extend(required(path, &[("address", true)]));
        return errors;
    }
    match kind {
        "InternalIP" | "ExternalIP" => {
            if ip::lenient(text).is_none() {
                errors.push(Error::invalid(&at, text, ip::NO_ADDRESS));
            }
        }
        "Hostname" | "InternalDNS" | "ExternalDNS" => {
            errors.extend(invalid_each(&at, text, names::dns_subdomain(text)));
        }
        _ => {
            let why = format!("invalid address for unsupported address type {}", go_quote(kind));
            errors.push(Error::invalid(&at, text, why));
        }
    }
    errors
}

/// Credentials are a Secret beside the object.
fn credentials(reference: &SelfHostedShootExposureCredentialsRef, own_namespace: &str, path: &Path) -> ErrorList {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let (version, kind) = (text(&reference.api_version), text(&reference.kind));
    let (namespace, name) = (text(&reference.namespace), text(&reference.name));
    let mut errors = ErrorList::new();
    let mut wanted = |field: &str, value: &str, article: &str| {
        if value.is_empty() {
            errors.push(Error::required(
                &path.child(field),
                format!("must provide {article} {field}"),
            ));
        }
    };
    wanted("apiVersion", &version, "an");
    wanted("kind", &kind, "a");
    wanted("namespace", &namespace, "a");
    if !namespace.is_empty() && namespace != own_namespace {
        let why = "must equal metadata.namespace";
        errors.push(Error::invalid(&path.child("namespace"), namespace.as_str(), why));
    }
    if name.is_empty() {
        errors.push(Error::required(&path.child("name"), "must provide a name"));
    } else {
        errors.extend(invalid_each(&path.child("name"), &name, names::dns_subdomain(&name)));
    }
    if (version.as_str(), kind.as_str()) != ("v1", "Secret") {
        let given = go_kind(&version, &kind);
        let mut error = Error::not_supported(path, given.as_str(), &[go_kind("v1", "Secret")]);
        error.show_as(given);
        errors.push(error);
    }
    errors
}
