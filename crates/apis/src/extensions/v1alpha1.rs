//! `extensions.gardener.cloud/v1alpha1`: one file per kind.

mod backup_bucket;
mod backup_entry;
mod bastion;
mod cluster;
mod container_runtime;
mod control_plane;
mod dns_record;
mod extension;
mod infrastructure;
mod network;
mod operating_system_config;
mod self_hosted_shoot_exposure;
mod validation;
mod worker;

pub use backup_bucket::*;
pub use backup_entry::*;
pub use bastion::*;
pub use cluster::*;
pub use container_runtime::*;
pub use control_plane::*;
pub use dns_record::*;
pub use extension::*;
pub use infrastructure::*;
pub use network::*;
pub use operating_system_config::*;
pub use self_hosted_shoot_exposure::*;
pub use worker::*;
