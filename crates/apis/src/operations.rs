//! The `operations` API group.

pub mod v1alpha1;
