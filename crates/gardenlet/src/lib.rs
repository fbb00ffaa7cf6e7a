//! gardenlet: runs the seed, and the control planes of the shoots in it.
//!
//! One folder per controller, named as in Gardener. Talks to garden, seed and shoots by their APIs only; what is deployed is rendered in
//! [`components`], what is decided is in `gardener-rules`.
#![forbid(unsafe_code)]

mod apply;
mod checksum;
pub mod components;
mod config;
mod extension;
mod health;
mod managed_resource;

pub use config::{CareSettings, Config, Ingress, Settings, ShootClients, ShootSettings};
