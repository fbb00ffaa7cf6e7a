//! Changing objects as Kubernetes does: JSON patch, merge patch and strategic merge patch ([`json_patch`], [`patch`],
//! [`strategic`]), and
//! server-side apply with the ownership of fields ([`apply`], [`update`], [`fieldset`], [`managed`], [`typed`]).
//!
//! Pure functions on JSON values and a [`gardener_schema::Schema`]; no I/O and no clock.
#![forbid(unsafe_code)]

pub mod apply;
pub mod fieldset;
#[cfg(test)]
mod fixtures;
pub mod json_patch;
pub mod managed;
pub mod patch;
pub mod patched_text;
pub mod scale;
pub mod strategic;
pub mod typed;

pub use apply::{
    Across, ApplyError, Conflict, InVersion, Manager, Terms, apply, apply_across, overlay, subject, unreadable, update,
    update_across,
};
pub use json_patch::JsonPatch;
pub use managed::Operation;
pub use patch::{PatchError, merge_patch};
pub use strategic::strategic;
