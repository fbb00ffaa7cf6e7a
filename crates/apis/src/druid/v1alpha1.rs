//! `druid.gardener.cloud/v1alpha1`: one file per kind.

mod etcd;
mod validation;

pub use etcd::*;
