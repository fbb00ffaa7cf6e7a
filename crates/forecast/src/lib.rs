//! What maintenance will do to shoots, and which versions they use.
//!
//! An [`Inventory`] is read from a garden or from manifests. [`forecast`] copies it into a garden in memory, with our own API server and admission,
//! runs the controller-manager's maintenance there in virtual time, and collects what happened from that garden's API ([`Story`]). Nothing is ever
//! written to where the inventory came from, and no Secret is read. [`versions::list`] only counts.
//!
//! Not here: how maintenance decides (`rules::maintenance`), and how things look on a terminal (`gardener`).
//!
//! What a forecast leaves out:
//! - gardenlet. Maintenance looks at one thing that gardenlet writes, whether the last operation failed, and only to choose what to ask gardenlet for;
//!   versions do not wait for it. So nobody reconciles in the copy, and a failed shoot stays failed.
//! - hibernation by schedules, because shoots are maintained asleep and awake alike [VER-80], and the end of shoots by quotas.
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
