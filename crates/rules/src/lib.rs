//! The domain's decisions: pure functions of their inputs that carry the ids of the rules they implement, one module per topic.
//!
//! No I/O, no async, no clock, no chance: whoever asks brings what is known and what time it is.
#![forbid(unsafe_code)]

pub mod extension_readiness;
pub mod health;
pub mod machines;
pub mod maintenance_window;
pub mod shoot_operation;
pub mod shoot_replicas;
pub mod shoot_zones;
pub mod worker_pool;
