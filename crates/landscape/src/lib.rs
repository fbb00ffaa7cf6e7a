//! Puts a landscape together: one store, one API server, a garden, its seeds, and all components, in one process.
//!
//! Used by `gardener up` (disk store, TLS listener) and by tests (memory store, virtual time). What a component does is not here; what is under
//! the Kubernetes API of an embedded cluster is: which programs run in place of a container's process ([`programs`]).
#![forbid(unsafe_code)]

pub mod apply;
pub mod embedded;
pub mod garden;
pub mod gardenlet_stand_in;
pub mod identity;
pub mod kubeconfig;
pub mod kubernetes_service;
pub mod landscape;
pub mod manifests;
pub mod programs;
pub mod registration;
mod seeds;
pub mod services;
pub mod storage;
pub mod token_tracking;

pub use landscape::{Landscape, LandscapeError, Options, seed_kubeconfig_secret};
pub use storage::{Storage, StorageError};
