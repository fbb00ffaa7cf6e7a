//! The `authentication` API group.

pub mod v1alpha1;
