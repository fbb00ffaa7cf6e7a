//! `seedmanagement.gardener.cloud/v1alpha1`: one file per kind.

mod common;
mod gardenlet;
mod managed_seed;
mod managed_seed_set;

pub use common::*;
pub use gardenlet::*;
pub use managed_seed::*;
pub use managed_seed_set::*;
