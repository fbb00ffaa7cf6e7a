//! Admission policies: rules about a cluster's objects, written as expressions. A policy says what must hold of which requests, or how it
//! changes their objects; a binding says where it does, with which parameters, and what happens if it does not hold.
//!
//! [`registered`] follows a cluster's policies and bindings, [`crate::intercept`] tells which requests they are for, [`params`] finds parameters,
//! [`rules`] are the expressions of a policy that validates and what they decide, [`mutations`] those of one that changes objects, and
//! [`admission`] and [`mutating`] are the plugins. [`types`] looks whether expressions fit the kinds that they are about, which nothing depends
//! on. Policies are validated in [`crate::kubernetes`], as all kinds are.

mod admission;
mod mutating;
mod mutations;
mod params;
mod registered;
pub(crate) mod rules;
#[cfg(test)]
mod tests;
mod types;

use std::sync::Arc;

use parking_lot::Mutex;

pub use admission::ValidatingAdmissionPolicy;
pub use mutating::MutatingAdmissionPolicy;
pub use types::warnings;

use crate::cluster::LogicalCluster;
use crate::followed::Followed;
use mutations::Mutations;
use registered::{Bindings, Policy};
use rules::Rules;

/// The admission policies of one logical cluster.
#[derive(Default)]
pub struct Policies {
    policies: Mutex<Followed<Vec<Arc<Policy<Rules>>>>>,
    bindings: Mutex<Followed<Bindings>>,
    mutating: Mutex<Followed<Vec<Arc<Policy<Mutations>>>>>,
    mutating_bindings: Mutex<Followed<Bindings>>,
}

impl Policies {
    /// The bindings of policies that validate.
    fn bindings(&self, cluster: &LogicalCluster) -> Arc<Bindings> {
        registered::bindings(&mut self.bindings.lock(), cluster)
    }

    /// The policies that validate, in the order of their names.
    fn policies(&self, cluster: &LogicalCluster) -> Arc<Vec<Arc<Policy<Rules>>>> {
        registered::policies(&mut self.policies.lock(), cluster)
    }

    /// The bindings of policies that change objects.
    fn mutating_bindings(&self, cluster: &LogicalCluster) -> Arc<Bindings> {
        registered::mutating_bindings(&mut self.mutating_bindings.lock(), cluster)
    }

    /// The policies that change objects, in the order of their names.
    fn mutating(&self, cluster: &LogicalCluster) -> Arc<Vec<Arc<Policy<Mutations>>>> {
        registered::mutating(&mut self.mutating.lock(), cluster)
    }
}

impl LogicalCluster {
    /// Whether webhooks or policies may change objects.
    pub(crate) fn mutates_by_rules(&self) -> bool {
        !self.webhooks().mutating(self).is_empty() || !self.policies().mutating_bindings(self).is_empty()
    }

    /// Whether there are webhooks or policies that look at objects.
    pub(crate) fn has_judges(&self) -> bool {
        self.webhooks().any(self) || self.mutates_by_rules() || !self.policies().bindings(self).is_empty()
    }
}
