//! The `security` API group.

pub mod v1alpha1;
