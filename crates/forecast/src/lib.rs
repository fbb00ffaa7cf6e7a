//! What time will do to shoots, and which versions they use.
//!
//! An [`Inventory`] is read from a garden or from manifests. [`forecast`] copies it into a garden in memory, with our own API server and admission,
//! runs what the controller-manager does to shoots as time passes there in virtual time: maintenance, hibernation by schedules, the end of lifetimes; it collects what happened from that garden's API ([`Story`]). Nothing is ever
//! written to where the inventory came from, and no Secret is read. [`versions::list`] only counts.
//!
//! Not here: how maintenance decides (`rules::maintenance`), and how things look on a terminal (`gardener`).
//!
//! What a forecast leaves out:
//! - gardenlet's work. What it tells that others wait for, ends of rotations and of turns to sleep, is told at once by a stand-in
//!   (`gardener_landscape::gardenlet_stand_in`); a failed shoot stays failed. Versions do not wait for gardenlet.
//! - what people and other controllers will write, extensions' webhooks included.
#![forbid(unsafe_code)]

pub mod calendar;
mod copy;
mod inventory;
mod run;
mod stand_ins;
mod story;
pub mod versions;

pub use copy::CopyError;
pub use inventory::{Inventory, InventoryError, LeftOut, Origin};
pub use run::{Forecast, ForecastError, Options, forecast};
pub use story::{Change, Entry, Outcome, Story};
