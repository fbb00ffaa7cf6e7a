//! The `druid` API group.

pub mod v1alpha1;
