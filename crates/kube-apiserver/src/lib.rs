//! kube-apiserver: one Kubernetes cluster on an etcd of its own, with upstream's flags; what envtest starts, or a Deployment of the real one.
//!
//! The API machinery is in `apiserver`, the store in `store`; here is what makes them a server that stands alone: flags ([`flags`]), certificates
//! ([`serving`]), the way to etcd ([`storage`]), who may come in ([`access`], `authentication`), who says what they may do (`authorization`), by which ways it reaches others ([`egress`]), what is told of requests ([`audit`]), what upstream's server keeps up by itself (`upkeep`, `address_repair`),
//! and the order in which all of it ends ([`running`]). No controllers.
//!
//! [`audit`], [`egress`], [`flags::groups`], [`flags::line`], [`running`], [`serving`] and [`storage`] are for every server that stands alone: `garden-server` is made of them, too.
#![forbid(unsafe_code)]

pub mod access;
mod address_repair;
pub mod admission_configuration;
mod announced;
pub mod audit;
mod authentication;
mod authorization;
pub mod egress;
pub mod flags;
mod identity_lease;
pub mod run;
pub mod running;
pub mod serving;
pub mod storage;
mod upkeep;
mod write;

pub use flags::{FlagError, Flags};
pub use run::{RunError, run};

/// The name of the one logical cluster.
pub(crate) const CLUSTER: &str = "kubernetes";

/// The Kubernetes version that is served: the release whose answers ours are compared with.
pub const VERSION: &str = "1.36.3";
