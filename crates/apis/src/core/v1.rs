//! `core.gardener.cloud/v1`: one file per kind.

mod controller_deployment;

pub use controller_deployment::*;
