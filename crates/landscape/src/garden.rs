//! The garden.
