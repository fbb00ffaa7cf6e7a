//! What every room of the house shares about Kubernetes' API conventions: field errors and paths, API errors as `Status`,
//! selectors, names, quantities, durations, and the clock.
//!
//! No I/O, no async, no API types of our own (those are in `apis`).
#![forbid(unsafe_code)]

pub mod chance;
pub mod clock;
pub mod duration;
pub mod error;
pub mod field;
pub mod selector;

pub use error::ApiError;
