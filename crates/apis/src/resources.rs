//! The `resources` API group.

pub mod v1alpha1;
