//! What each kind of the garden knows about itself: glue between the rules in `apis` and [`crate::kind::GardenKind`].

mod core;
mod others;
mod shoot;
