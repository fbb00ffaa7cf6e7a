//! Kubernetes' schema dialect, one for both worlds: OpenAPI v3 documents of built-in kinds and structural schemas of CRDs.
//!
//! A [`Schema`] is one node. It answers what merging needs to know (kind of node, list and map types, patch strategies) and
//! carries the operations: [`Schema::decode`], [`Schema::unknown_fields`], [`Schema::prune`], [`Schema::apply_defaults`] and
//! [`Schema::validate`]. [`Definitions`] are the named schemas of OpenAPI documents; [`openapi`] writes documents.
//!
//! No I/O. CEL rules (`x-kubernetes-validations`) have their place in [`rules`], the language itself in `gardener-cel`. Whether a CRD's schema may be
//! accepted is told by [`structural`] and [`crd`]; parsing takes what it understands and never panics.
#![forbid(unsafe_code)]

pub mod crd;
mod decode;
mod default;
mod definitions;
mod empty;
#[cfg(test)]
mod fixtures;
pub mod formats;
mod go_types;
pub mod json;
mod meta;
mod numbers;
pub mod openapi;
mod parse;
mod prune;
pub mod rules;
mod schema;
pub mod structural;
mod unstructured;
mod validate;

pub use decode::{DecodeError, Order, strict_error};
pub use definitions::Definitions;
pub use empty::Empty;
pub use meta::{list_meta, object_meta};
pub use parse::ParseError;
pub use prune::RESOURCE_FIELDS;
pub use rules::Findings;
pub use schema::{Constraints, Kind, ListType, MapType, Schema};
