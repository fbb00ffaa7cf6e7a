//! `bench idle`: the processor time of a landscape with one healthy shoot and nothing to do.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

use crate::Figure;
use crate::landscape::prepared;
use crate::process::{peak_memory, processor_time};
use crate::ready;
use crate::running::Gardener;

/// Arguments of `bench idle`.
#[derive(Args)]
pub struct Arguments {
    /// How long to look, in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Without a shoot.
    #[arg(long)]
    no_shoot: bool,
}

/// Waits until everything is healthy, then looks on.
pub async fn measure(binary: &Path, arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let mut landscape = Gardener::up(binary, None)?;
    if arguments.no_shoot {
        let client = landscape.client().await?;
        prepared(&client).await?;
    } else {
        ready::healthy(&mut landscape, 1).await?;
    }
    // what follows the last operation, e.g. care, is not idling
    tokio::time::sleep(Duration::from_secs(5)).await;
    let pid = landscape.pid()?;
    let (begun, before) = (Instant::now(), processor_time(pid)?);
    tokio::time::sleep(Duration::from_secs(arguments.seconds)).await;
    let share = (processor_time(pid)? - before) / begun.elapsed().as_secs_f64() * 100.0;
    Ok(vec![
        Figure::new("seconds", arguments.seconds),
        Figure::new("share of one processor", format!("{share:.2} %")),
        Figure::new("most memory", format!("{:.0} MiB", peak_memory(pid)?)),
    ])
}
