//! Sets of managed seeds: which of its replicas a set creates, waits for, tries again or deletes next [GCM-25]. One at a time.

mod decide;
mod make;
mod replica;

pub use decide::{Act, Decision, Stuck, decide};
pub use make::{Owner, managed_seed, shoot};
pub use replica::{Replica, Status, is_registered, is_seed_ready};

#[cfg(test)]
mod tests;
