//! Who may do what in the garden, as far as roles cannot say it: what belongs to which seed, and what gardenlets and their extensions may do
//! with it. Chapter E of the garden API.
//!
//! - [`identity`]: whose gardenlet or extension a user is;
//! - [`graph`]: a directed graph of objects, where access to one implies access to what points to it;
//! - [`belongings`]: the graphs of a garden, kept up to date object by object; which edges an object makes stands in `edges`;
//! - [`seeds`] and [`self_hosted`]: the decision about a request, [AUTH-4] and [AUTH-40];
//! - [`bootstrap`]: names and texts of what lets a gardenlet in for the first time;
//! - [`names`]: names of the objects in a project that are made for a shoot.
//!
//! Everything is a pure function or a value: no I/O, no clock. Watches, requests and the admission plugins that restrict what is created are in
//! `garden-apiserver`.
#![forbid(unsafe_code)]

pub mod belongings;
pub mod bootstrap;
mod edges;
pub mod graph;
pub mod identity;
pub mod names;
mod objects;
pub mod request;
pub mod seeds;
pub mod self_hosted;
mod source;
#[cfg(test)]
mod tests;
pub mod vertex;

pub use belongings::Belongings;
pub use request::{Answer, Request};
pub use source::{Object, Source};
