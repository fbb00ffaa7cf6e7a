//! The `seedmanagement` API group.

pub mod v1alpha1;
