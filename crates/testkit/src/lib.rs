//! In-process landscapes, builders and assertions for tests. No product code.
#![forbid(unsafe_code)]

/// The product's own: tests of landscapes take a quarter less time with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub mod cluster;
#[cfg(feature = "landscape")]
pub mod garden;
#[cfg(feature = "landscape")]
pub mod landscape;
pub mod seed;
