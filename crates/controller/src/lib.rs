//! What controllers share: informers, queues, the loop that reconciles, leader election, waiting, patching, conditions, operation
//! annotations, events, error codes, health and metrics, and the secrets manager.
//!
//! Talks to a cluster only through [`kube::Client`]. Holds no rule of one component.
#![forbid(unsafe_code)]

pub mod apply;
pub mod certificate_requests;
pub mod conditions;
pub mod controller;
pub mod error_codes;
pub mod events;
pub mod informer;
pub mod informers;
pub mod leader;
pub mod monitor;
pub mod operation;
pub mod queue;
mod raw;
mod read;
pub mod reference;
pub mod secrets;
pub mod wait;

#[cfg(test)]
mod fake;

pub use controller::{Action, Controller};
pub use informer::{Change, Clustered, Informer};
pub use informers::Informers;
pub use monitor::Monitor;
pub use queue::{Queue, RateLimit};
pub use raw::Raw;
pub use read::Read;
pub use reference::ObjectRef;

/// What an API error says to people: the message of the `Status`, without the whole object around it.
pub fn api_error(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
