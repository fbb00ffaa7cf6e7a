//! The decisions of the domain, one module per topic: pure functions that carry the ids of the rules they implement.
//!
//! No I/O, no async, no clock, no chance: whoever asks brings what is known and what time it is.
#![forbid(unsafe_code)]

pub mod backups;
pub mod bastions;
pub mod care;
pub mod cloud_profiles;
pub mod constraints;
pub mod credentials_rotation;
pub mod critical_components;
pub mod csr_approval;
pub mod events;
pub mod extension_readiness;
pub mod falling_asleep;
pub mod health;
pub mod hibernation;
pub mod machines;
pub mod maintenance;
pub mod maintenance_window;
pub mod managed_seed_sets;
pub mod node_placement;
pub mod operation;
pub mod projects;
pub mod quota;
pub mod registrations;
pub mod reserved_resources;
pub mod scheduling;
pub mod shoot_cleanup;
pub mod shoot_conditions;
pub mod shoot_lifetime;
pub mod shoot_migration;
pub mod shoot_operation;
pub mod shoot_replicas;
pub mod shoot_zones;
pub mod status_label;
#[cfg(test)]
mod testing;
pub mod versions;
pub mod webhooks;
pub mod worker_pool;
