//! How long an API server takes to start with what it has stored: after it was stopped, and after it was killed.

use std::path::Path;

use crate::Figure;
use crate::running::Gardener;

/// Starts on a folder that no server uses, kills the server, and starts another one, which is the one that runs then.
pub async fn measure(binary: &Path, folder: &Path) -> anyhow::Result<(Gardener, [Figure; 2])> {
    let mut stopped = Gardener::apiserver(binary, Some(folder))?;
    stopped.client().await?;
    let after_stop = stopped.started.elapsed();
    stopped.kill().await?;
    let mut killed = Gardener::apiserver(binary, Some(folder))?;
    killed.client().await?;
    let after_kill = killed.started.elapsed();
    let figures = [("a stop", after_stop), ("kill -9", after_kill)].map(|(how, took)| {
        Figure::new(
            format!("restart with all of it after {how}, until /readyz answers 200"),
            format!("{} ms", took.as_millis()),
        )
    });
    Ok((killed, figures))
}
