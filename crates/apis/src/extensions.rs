//! The `extensions` API group.

pub mod v1alpha1;
