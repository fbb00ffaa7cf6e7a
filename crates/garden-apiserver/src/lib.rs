//! The garden API: Gardener's own resources for the API machinery in `apiserver`.
//!
//! [`definitions`] are the resources with their schemas, strategies, tables and subresources; [`admission`] are the plugins in
//! upstream's order; [`authorization`] says what gardenlets may do. Defaults and validation that need only the object stand in `apis`. Controllers are elsewhere.
#![forbid(unsafe_code)]

pub mod admission;
pub mod authorization;
mod definitions;
mod features;
mod gardenlet_configuration;
mod generation;
mod helm_configuration;
mod kind;
mod kinds;
pub mod kubeconfig;
mod lookup;
mod rows;
#[cfg(test)]
mod tests;
mod workload_identity_tokens;

pub use definitions::{Options, PUBLISHER, RecordedError, definitions, openapi_documents};
pub use features::{Feature, Features};
pub use kind::{GardenKind, TypedStrategy};
pub use workload_identity_tokens::TokenIssuer;
