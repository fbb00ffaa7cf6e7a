//! `bench many`: many shoots at once.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use gardener_apis::core::v1beta1::Shoot;
use kube::api::ListParams;
use tokio::time::Instant;

use crate::Figure;
use crate::landscape::{apply, health, is_healthy, prepared, shoot, shoots, until};
use crate::process::{peak_memory, processor_time};
use crate::running::Gardener;

/// Arguments of `bench many`.
#[derive(Args)]
pub struct Arguments {
    /// How many shoots.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    shoots: u32,
    /// Nodes of each.
    #[arg(long, default_value_t = 2)]
    nodes: u32,
    /// How long to wait, in seconds.
    #[arg(long, default_value_t = 1800)]
    patience: u64,
}

/// Applies all shoots and waits until all are healthy at the same time.
pub async fn measure(binary: &Path, arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let mut landscape = Gardener::up(binary, None)?;
    let client = landscape.client().await?;
    prepared(&client).await?;
    let begun = Instant::now();
    for number in 0..arguments.shoots {
        apply(&client, &shoot(&format!("s{number}"), arguments.nodes)).await?;
    }
    let applied = begun.elapsed();
    let api = shoots(&client);
    let wanted = usize::try_from(arguments.shoots)?;
    until(
        "all shoots are healthy",
        Duration::from_secs(arguments.patience),
        async || {
            // a look at so many objects takes its time: seldom, so that looking is not what is measured
            tokio::time::sleep(Duration::from_millis(500)).await;
            let list = api.list(&ListParams::default()).await?;
            let ill: Vec<&Shoot> = list.items.iter().filter(|shoot| !is_healthy(shoot)).collect();
            let some: Vec<String> = ill.iter().take(5).map(|shoot| health(shoot)).collect();
            ensure!(ill.is_empty(), "{} are not, among them {}", ill.len(), some.join("; "));
            Ok(list.items.len() == wanted)
        },
    )
    .await?;
    let pid = landscape.pid()?;
    Ok(vec![
        Figure::new("shoots", format!("{wanted} with {} nodes each", arguments.nodes)),
        Figure::new("until all are applied", format!("{:.1} s", applied.as_secs_f64())),
        Figure::new(
            "until all are healthy",
            format!("{:.1} s", begun.elapsed().as_secs_f64()),
        ),
        Figure::new("most memory", format!("{:.0} MiB", peak_memory(pid)?)),
        Figure::new("processor time", format!("{:.1} s", processor_time(pid)?)),
    ])
}
