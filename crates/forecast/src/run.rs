//! The forecast: the copy, the controllers that run in it, and the story of it.

use std::time::Duration;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_landscape::gardenlet_stand_in;
use gardener_rules::maintenance::Settings;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::copy::{CopyError, copy};
use crate::{Entry, Inventory, Story};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// From when.
    pub from: Timestamp,
    /// For how many days.
    pub days: u32,
    /// What chance starts from: it says where in its window a shoot is maintained.
    pub seed_number: u64,
    /// How maintenance is configured.
    pub settings: Settings,
}

/// Why there is no forecast.
#[derive(Debug, thiserror::Error)]
pub enum ForecastError {
    /// The runtime of virtual time cannot start.
    #[error("the runtime cannot start: {0}")]
    Runtime(#[from] std::io::Error),
    /// There is no copy.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The last day is beyond what a time can be.
    #[error("{0} days are too many")]
    TooFar(u32),
}

/// What will happen.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// From when it looks.
    pub from: Timestamp,
    /// Until when it looks.
    pub until: Timestamp,
    /// What chance started from.
    pub seed_number: u64,
    /// How many shoots it looks at.
    pub shoots: usize,
    /// What will happen, by time.
    pub entries: Vec<Entry>,
}

/// Foretells what time does to the shoots of an inventory. Blocks: it runs in a runtime of its own, of which the time is virtual; not to be
/// called by a task.
///
/// # Errors
/// [`ForecastError`].
pub fn forecast(inventory: &Inventory, options: &Options) -> Result<Forecast, ForecastError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(foretell(inventory, options))
}

async fn foretell(inventory: &Inventory, options: &Options) -> Result<Forecast, ForecastError> {
    let span = SignedDuration::from_hours(i64::from(options.days).saturating_mul(24));
    let until = options.from.checked_add(span);
    let until = until.map_err(|_| ForecastError::TooFar(options.days))?;
    let clock = Clock::starting_at(options.from);
    let chance = Chance::seeded(options.seed_number);
    let landscape = copy(inventory, &clock, &chance).await?;
    let stop = CancellationToken::new();
    let story = Story::begin(&landscape.garden_client(), &clock, &stop).await;
    let config = gardener_controller_manager::Config {
        maintenance: options.settings,
        foretells: true,
        ..gardener_controller_manager::Config::new(landscape.garden_client(), clock.clone(), chance)
    };
    let gardenlet = gardenlet_stand_in::run(landscape.garden_client(), clock.clone(), stop.clone());
    let gardenlet = tokio::spawn(gardenlet);
    let manager = tokio::spawn(gardener_controller_manager::run_by_time(config, stop.clone()));
    let left = until.duration_since(clock.now());
    tokio::time::sleep(Duration::try_from(left).unwrap_or_default()).await;
    stop.cancel();
    let entries = story.entries();
    let _ = tokio::join!(manager, gardenlet);
    landscape.stop().await;
    Ok(Forecast {
        from: options.from,
        until,
        seed_number: options.seed_number,
        shoots: inventory.shoots.iter().filter(|shoot| !shoot.in_deletion()).count(),
        entries,
    })
}
