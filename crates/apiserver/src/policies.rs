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
use crate::definition::Definition;
use crate::followed::Followed;
use crate::intercept::matching::Constraints;
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
    /// Whether webhooks or policies may change what is sent to a resource, or to its subresource.
    pub(crate) fn mutates_by_rules(&self, definition: &Definition, subresource: &str) -> bool {
        let concerned = |constraints: &Constraints| constraints.may_concern(definition, subresource);
        let hooks = self.webhooks().mutating(self);
        let bindings = self.policies().mutating_bindings(self);
        hooks.iter().any(|hook| concerned(&hook.constraints))
            || !bindings.is_empty() && bound(&self.policies().mutating(self), &bindings, concerned)
    }

    /// Whether webhooks or policies may look at what is sent to a resource, or to its subresource.
    pub(crate) fn has_judges(&self, definition: &Definition, subresource: &str) -> bool {
        let concerned = |constraints: &Constraints| constraints.may_concern(definition, subresource);
        let hooks = self.webhooks().validating(self);
        let bindings = self.policies().bindings(self);
        hooks.iter().any(|hook| concerned(&hook.constraints))
            || !bindings.is_empty() && bound(&self.policies().policies(self), &bindings, concerned)
            || self.mutates_by_rules(definition, subresource)
    }
}

/// Whether one of the policies that are bound is for what is asked.
fn bound<R>(policies: &[Arc<Policy<R>>], bindings: &Bindings, concerned: impl Fn(&Constraints) -> bool) -> bool {
    let mut bound = policies.iter().filter(|policy| bindings.contains_key(&policy.name));
    bound.any(|policy| concerned(&policy.constraints))
}
