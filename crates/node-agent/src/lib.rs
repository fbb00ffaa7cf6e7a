//! gardener-node-agent: makes a machine a node of its shoot and keeps it as its OperatingSystemConfig says [GNA-1..30].
//!
//! Knows the shoot's API and the machine's [`Disk`] and [`Host`]. What a machine is (a pod of the seed here) and who the kubelet is, is told by
//! the caller. In-place updates are not here.
#![forbid(unsafe_code)]

mod agent;
mod certificates;
mod disk;
mod host;
mod operating_system_config;
mod user_data;

pub use agent::{Machine, run};
pub use disk::{Disk, DiskError, Files};
pub use host::{Connect, Credentials, Host, Kubelet, Taint};
pub use user_data::UserDataError;
