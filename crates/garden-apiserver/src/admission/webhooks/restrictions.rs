//! What gardenlets and their extensions may create, and some of what they may change: those of seeds in [`seeds`] [ADM-77], those of self-hosted shoots
//! in [`shoots`] [ADM-78]. Authorization lets them create whatever kind they need, because what is not there belongs to nobody yet; here the object
//! itself is looked at.

mod seeds;
mod shoots;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use gardener_apiserver::definition::Attributes;
use gardener_rules::csr_approval::Request;
use k8s_openapi::Resource;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use serde::de::DeserializeOwned;

pub(super) use seeds::SeedRestriction;
pub(super) use shoots::ShootRestriction;

use super::denied;
use crate::admission::{Rules, typed};
use crate::lookup;

const CORE: &str = "core.gardener.cloud";
const SECURITY: &str = "security.gardener.cloud";
const SEEDMANAGEMENT: &str = "seedmanagement.gardener.cloud";
const OPERATIONS: &str = "operations.gardener.cloud";
const CERTIFICATES: &str = "certificates.k8s.io";
const COORDINATION: &str = "coordination.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// A refusal: HTTP status and message.
#[derive(Debug, PartialEq, Eq)]
struct Refusal(i32, String);

impl Refusal {
    fn forbidden(why: impl Into<String>) -> Self {
        Self(403, why.into())
    }

    fn bad_request(why: impl Into<String>) -> Self {
        Self(400, why.into())
    }

    fn unprocessable(why: impl Into<String>) -> Self {
        Self(422, why.into())
    }

    fn internal(why: impl Into<String>) -> Self {
        Self(500, why.into())
    }

    /// As it reaches the client.
    fn told_by(self, webhook: &str) -> ApiError {
        let Self(code, why) = self;
        denied(webhook, ApiError::new(code, "", why))
    }
}

type Verdict = Result<(), Refusal>;

fn unexpected_resource(attributes: &Attributes<'_>) -> Refusal {
    let definition = attributes.definition;
    let resource = match definition.group.as_str() {
        "" => definition.plural.clone(),
        group => format!("{}.{group}", definition.plural),
    };
    Refusal::bad_request(format!("unexpected resource: {}", go_quote(&resource)))
}

/// The object of the request.
fn object<K: Rules>(attributes: &Attributes<'_>) -> Result<K, Refusal> {
    let object = typed(attributes).map(Arc::unwrap_or_clone);
    object.ok_or_else(|| Refusal::bad_request(format!("the object is no {}", K::KIND)))
}

/// Another object of the garden.
///
/// # Errors
/// Tells that it is missing.
fn other<K: Resource + DeserializeOwned>(
    attributes: &Attributes<'_>,
    namespace: &str,
    name: &str,
) -> Result<K, String> {
    let found = match name {
        "" => None,
        name => lookup::get(attributes.context.lister, namespace, name),
    };
    let kind = match K::GROUP {
        "" => K::KIND.to_owned(),
        group => format!("{}.{group}", K::KIND),
    };
    found.ok_or_else(|| format!("{kind} {} not found", go_quote(name)))
}

/// The signing request that the request brings.
fn signing_request(attributes: &Attributes<'_>) -> Result<Request, Refusal> {
    let request: CertificateSigningRequest = object(attributes)?;
    let usages = request.spec.usages.as_deref().unwrap_or_default();
    Request::read(&request.spec.request.0, "", usages)
        .ok_or_else(|| Refusal::bad_request("PEM block type must be CERTIFICATE REQUEST"))
}
