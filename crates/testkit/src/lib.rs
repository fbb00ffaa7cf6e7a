//! In-process landscapes, builders and assertions for tests. No product code.
#![forbid(unsafe_code)]

pub mod cluster;
#[cfg(feature = "landscape")]
pub mod garden;
#[cfg(feature = "landscape")]
pub mod landscape;
pub mod seed;
