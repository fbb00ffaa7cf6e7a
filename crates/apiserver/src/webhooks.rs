//! Webhooks: what others decide about a cluster's objects by HTTP. Admission webhooks ([`MutatingAdmissionWebhook`],
//! [`ValidatingAdmissionWebhook`]) are plugins of the admission chain; conversion webhooks ([`conversion`]) are asked for custom resources in
//! other versions.
//!
//! [`registered`] follows a cluster's configurations, [`crate::intercept`] tells which webhooks a request concerns, [`review`] writes what is
//! asked and judges what is answered, [`call`] asks, and [`http`] is the way there. Configurations are validated in [`crate::kubernetes`], as
//! all kinds are.

mod admission;
mod call;
pub(crate) mod conversion;
mod fetch;
mod http;
mod identities;
mod kubeconfig;
mod registered;
mod review;
pub(crate) mod service;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use parking_lot::Mutex;

pub use crate::intercept::reinvocation::Reinvocation;
pub use admission::{MutatingAdmissionWebhook, ValidatingAdmissionWebhook};
pub use call::{Answer, Authorization, Credentials, Endpoint, ServiceReference, Transport};
pub(crate) use call::{Unanswered, ask, post};
pub use conversion::ConversionWebhook;
pub(crate) use fetch::{Fetched, Fetcher};
pub use http::HttpTransport;
pub use identities::Identities;
pub use kubeconfig::KubeconfigError;
pub(crate) use review::check_kind;
pub use review::refusal;
pub use service::{EndpointResolver, ServiceResolver};

use crate::cluster::LogicalCluster;
use crate::followed::Followed;
use registered::Hook;

/// The webhooks of one logical cluster.
#[derive(Default)]
pub struct Webhooks {
    transport: Mutex<Option<Arc<dyn Transport>>>,
    mutating: Mutex<Registered>,
    validating: Mutex<Registered>,
}

/// The webhooks of one kind of configurations, and who asks them.
#[derive(Default)]
struct Registered {
    hooks: Followed<Vec<Hook>>,
    identities: Identities,
}

impl Webhooks {
    /// Asks webhooks in another way than by HTTP to the endpoints that the cluster's Services have.
    pub fn use_transport(&self, transport: Arc<dyn Transport>) {
        *self.transport.lock() = Some(transport);
    }

    /// Shows admission webhooks who asks; those that change objects, and those that judge them. Only before the first is asked.
    pub fn use_identities(&self, mutating: Identities, validating: Identities) {
        self.mutating.lock().identities = mutating;
        self.validating.lock().identities = validating;
    }

    /// The way to webhooks.
    pub(crate) fn transport(&self) -> Arc<dyn Transport> {
        let mut transport = self.transport.lock();
        Arc::clone(transport.get_or_insert_with(|| Arc::new(HttpTransport::new(Arc::new(EndpointResolver)))))
    }

    /// The mutating webhooks in the order in which they are called.
    pub(crate) fn mutating(&self, cluster: &LogicalCluster) -> Arc<Vec<Hook>> {
        registered::current(&mut self.mutating.lock(), cluster, registered::Kind::Mutating)
    }

    /// The validating webhooks.
    pub(crate) fn validating(&self, cluster: &LogicalCluster) -> Arc<Vec<Hook>> {
        registered::current(&mut self.validating.lock(), cluster, registered::Kind::Validating)
    }
}
