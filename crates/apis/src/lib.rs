//! Every API type of Gardener's own groups, of the extension contract and of the machine API: one folder per group, one file per kind.
//!
//! Lives here: the types as they stand on the wire (JSON names, omitted-when-empty as upstream's Go types do it), and next to
//! them their constants, defaults, validation and small helpers. Does not live here: I/O, time, decisions that need more
//! than the object itself and its old version (those are in `rules`).
#![forbid(unsafe_code)]

pub mod constants;
pub mod crds;
mod resource;
pub mod validation;
pub mod versions;
pub mod wire;

pub mod authentication;
pub mod core;
pub mod druid;
pub mod extensions;
pub mod machine;
pub mod operations;
pub mod resources;
pub mod security;
pub mod seedmanagement;

pub use gardener_apimachinery::duration::Duration;
