//! The library for extension controllers: the operation protocol between gardenlet and extensions, so that who writes an extension only
//! writes an [`Actuator`] per kind.
//!
//! Nothing here knows a provider.
#![forbid(unsafe_code)]

mod actuator;
pub mod cluster;
mod controller;
pub mod heartbeat;
mod kind;
pub mod managed_resource;
pub mod operation;
mod status;

pub use actuator::{Actuator, ActuatorError, Context, Outcome};
pub use controller::{Options, run};
pub use kind::ExtensionKind;
