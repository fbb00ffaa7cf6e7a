//! `bench ready`: from the start of the process to the first healthy shoot.

use std::path::Path;
use std::time::Duration;

use crate::Figure;
use crate::landscape::{apply, is_healthy, prepared, shoot, shoots, until};
use crate::process::peak_memory;
use crate::running::Gardener;

/// Starts a landscape, applies a shoot as soon as the seed is ready, and waits for it.
pub async fn measure(binary: &Path) -> anyhow::Result<Vec<Figure>> {
    let mut landscape = Gardener::up(binary, None)?;
    healthy(&mut landscape, 1).await?;
    Ok(vec![
        Figure::new(
            "start until the first shoot is healthy",
            format!("{:.1} s", landscape.started.elapsed().as_secs_f64()),
        ),
        Figure::new("most memory", format!("{:.0} MiB", peak_memory(landscape.pid()?)?)),
    ])
}

/// Applies the shoot `local` and waits until it is healthy.
pub async fn healthy(landscape: &mut Gardener, nodes: u32) -> anyhow::Result<kube::Client> {
    let client = landscape.client().await?;
    prepared(&client).await?;
    apply(&client, &shoot("local", nodes)).await?;
    let api = shoots(&client);
    until("the shoot is healthy", Duration::from_secs(300), async || {
        Ok(is_healthy(&api.get("local").await?))
    })
    .await?;
    Ok(client)
}
