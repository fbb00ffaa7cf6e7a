//! `resources.gardener.cloud/v1alpha1`: one file per kind.

mod managed_resource;

pub use managed_resource::*;
