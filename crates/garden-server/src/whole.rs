//! A whole garden: Gardener's kinds and those of Kubernetes that a garden needs, roles and all, in memory, in a folder or in etcd. No controllers.
//!
//! Its authority and the key of its service accounts' tokens are made when it starts for the first time and kept beside its objects, so that servers on
//! one etcd have the same.

pub mod flags;
mod run;

pub use flags::Flags;
pub use run::{RunError, run};
