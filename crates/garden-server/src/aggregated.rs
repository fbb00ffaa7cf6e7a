//! In gardener-apiserver's place.
//!
//! The aggregator proves itself by a certificate and tells for whom it asks ([`trust`]); others are authenticated, and all authorized, by the
//! kube-apiserver (`apiserver::delegation`). What admission reads of Kubernetes' kinds is followed there (`apiserver::elsewhere`).

pub mod flags;
mod others;
mod run;
#[cfg(test)]
mod tests;
mod trust;

pub use flags::Flags;
pub use run::{RunError, run};

/// The name of the one logical cluster.
pub(crate) const CLUSTER: &str = "garden";
