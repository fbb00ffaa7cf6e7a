//! `operations.gardener.cloud/v1alpha1`: one file per kind.

mod bastion;

pub use bastion::*;
