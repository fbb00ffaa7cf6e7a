//! `security.gardener.cloud/v1alpha1`: one file per kind.

mod common;
mod credentials_binding;
mod workload_identity;

pub use common::*;
pub use credentials_binding::*;
pub use workload_identity::*;
