//! In-process landscapes, builders and assertions for tests. No product code.
#![forbid(unsafe_code)]

pub mod cluster;
pub mod seed;
