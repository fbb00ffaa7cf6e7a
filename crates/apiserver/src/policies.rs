//! Admission policies: rules about a cluster's objects, written as expressions. A policy says what must hold of which requests; a binding says
//! where it does, with which parameters, and what happens if it does not hold.
//!
//! [`registered`] follows a cluster's policies and bindings, [`crate::intercept`] tells which requests they are for, [`params`] finds parameters,
//! [`rules`] are a policy's expressions and what they decide, and [`admission`] is the plugin. [`types`] looks whether expressions fit the kinds
//! that they are about, which nothing depends on. Policies are validated in
//! [`crate::kubernetes`], as all kinds are.

mod admission;
mod params;
mod registered;
pub(crate) mod rules;
#[cfg(test)]
mod tests;
mod types;

use std::sync::Arc;

use parking_lot::Mutex;

pub use admission::ValidatingAdmissionPolicy;
pub use types::warnings;

use crate::cluster::LogicalCluster;
use crate::followed::Followed;
use registered::{Bindings, Policy};

/// The admission policies of one logical cluster.
#[derive(Default)]
pub struct Policies {
    policies: Mutex<Followed<Vec<Arc<Policy>>>>,
    bindings: Mutex<Followed<Bindings>>,
}

impl Policies {
    /// The bindings of policies that validate.
    fn bindings(&self, cluster: &LogicalCluster) -> Arc<Bindings> {
        registered::bindings(&mut self.bindings.lock(), cluster)
    }

    /// The policies that validate, in the order of their names.
    fn policies(&self, cluster: &LogicalCluster) -> Arc<Vec<Arc<Policy>>> {
        registered::policies(&mut self.policies.lock(), cluster)
    }
}
