//! The domain's decisions: pure functions of their inputs, one module per topic. No I/O, no clock, no chance.
#![forbid(unsafe_code)]

pub mod health;
pub mod registrations;
pub mod scheduling;
pub mod status_label;
