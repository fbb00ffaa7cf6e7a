//! `core.gardener.cloud/v1beta1`: one file per kind.

mod backup_bucket;
mod backup_entry;
mod cloud_profile;
mod common;
mod controller_deployment;
mod controller_installation;
mod controller_registration;
mod exposure_class;
mod internal_secret;
mod namespaced_cloud_profile;
mod project;
mod quota;
mod secret_binding;
mod seed;
mod shoot;
mod shoot_state;

pub use backup_bucket::*;
pub use backup_entry::*;
pub use cloud_profile::*;
pub use common::*;
pub use controller_deployment::*;
pub use controller_installation::*;
pub use controller_registration::*;
pub use exposure_class::*;
pub use internal_secret::*;
pub use namespaced_cloud_profile::*;
pub use project::*;
pub use quota::*;
pub use secret_binding::*;
pub use seed::*;
pub(crate) use shoot::validation::spec_parts::resources as named_resources;
pub use shoot::*;
pub use shoot_state::*;
