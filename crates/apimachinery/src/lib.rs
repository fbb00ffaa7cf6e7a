//! What every room of the house shares about Kubernetes' API conventions: field errors and paths, API errors as `Status`,
//! selectors, names, addresses, metadata, kubeconfigs, quantities, durations, cron expressions, taints, the text form
//! of metrics, the words of Go for what is no JSON or tells no kind, and the clock.
//!
//! No I/O, no async, no API types of our own (those are in `apis`).
#![forbid(unsafe_code)]

pub mod chance;
pub mod clock;
pub mod cron;
pub mod duration;
pub mod error;
pub mod field;
pub mod go_json;
pub mod ip;
pub mod kubeconfig;
pub mod link;
pub mod meta;
pub mod metrics;
pub mod names;
pub mod pointer;
pub mod quantity;
pub mod selector;
pub mod skim;
pub mod taints;
pub mod type_meta;

pub use error::ApiError;
