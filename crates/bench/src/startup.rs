//! `bench startup`: from the start of the process to the first answer.

use std::path::Path;

use clap::Args;

use crate::Figure;
use crate::running::Gardener;

/// Arguments of `bench startup`.
#[derive(Args)]
pub struct Arguments {
    /// How often to start.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    times: u32,
}

/// Starts again and again.
pub async fn measure(binary: &Path, arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let mut taken = Vec::new();
    for _ in 0..arguments.times {
        let mut landscape = Gardener::up(binary, None)?;
        landscape.client().await?;
        taken.push(landscape.started.elapsed());
        landscape.kill().await?;
    }
    taken.sort();
    let at = |index: usize| taken.get(index).copied().unwrap_or_default().as_millis();
    Ok(vec![
        Figure::new("starts", taken.len()),
        Figure::new(
            "until /readyz answers 200, median",
            format!("{} ms", at(taken.len() / 2)),
        ),
        Figure::new("until /readyz answers 200, fastest", format!("{} ms", at(0))),
        Figure::new(
            "until /readyz answers 200, slowest",
            format!("{} ms", at(taken.len().saturating_sub(1))),
        ),
    ])
}
