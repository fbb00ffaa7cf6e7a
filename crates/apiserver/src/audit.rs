//! The audit log: who asked for what, and what became of it.
//!
//! A [`Policy`] says of which requests how much is told, and when. A request of which something is told has a [`Trail`], which gathers an [`Event`] from
//! the request, from those who judge it, and from the answer. Where events go is not known here: that is a [`Sink`].

use std::sync::Arc;

mod event;
mod policy;
mod trail;
mod webhook;

pub use event::Event;
pub use policy::{Document as PolicyDocument, Level, Policy, PolicyError, Stage};
pub use trail::Audited;
pub(crate) use trail::{Begun, Trail};
pub use webhook::{Batching, Delivery, webhook};

/// Where events go.
pub trait Sink: Send + Sync + 'static {
    /// Takes an event in. False, if that failed so that the request must fail; asked of a request that has just come in.
    fn take(&self, event: &Event) -> bool;
}

/// What is told of a cluster's requests, and to whom.
pub struct Audit {
    policy: Policy,
    sinks: Vec<Arc<dyn Sink>>,
}

impl Audit {
    /// Tells all sinks what `policy` wants.
    pub fn new(policy: Policy, sinks: Vec<Arc<dyn Sink>>) -> Self {
        Self { policy, sinks }
    }

    /// Whether no sink wants the request to fail.
    fn tell(&self, event: &Event) -> bool {
        let mut all = true;
        for sink in &self.sinks {
            all &= sink.take(event);
        }
        all
    }
}
