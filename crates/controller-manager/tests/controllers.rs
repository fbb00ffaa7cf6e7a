//! The controllers on a garden in memory, in virtual time: what they make of what is written there, told by the garden's API alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

#[path = "controllers/deaths.rs"]
mod deaths;
#[path = "controllers/harness.rs"]
mod harness;
#[path = "controllers/others.rs"]
mod others;
#[path = "controllers/projects.rs"]
mod projects;
#[path = "controllers/references.rs"]
mod references;
#[path = "controllers/replicas.rs"]
mod replicas;
#[path = "controllers/seeds.rs"]
mod seeds;
#[path = "controllers/sets.rs"]
mod sets;
#[path = "controllers/shoots.rs"]
mod shoots;
