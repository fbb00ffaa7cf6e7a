//! The `machine` API group.

pub mod v1alpha1;
