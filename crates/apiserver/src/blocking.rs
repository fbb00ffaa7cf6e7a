//! Questions to other servers from where nothing can be awaited: admission and the evaluation of expressions.

use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

/// What a future answers within a time. Blocks the thread, while the runtime's other tasks go on on other threads.
///
/// None if it takes longer, and in a runtime of one thread: that would wait for itself.
pub(crate) fn wait<T>(patience: Duration, future: impl Future<Output = T>) -> Option<T> {
    let runtime = Handle::try_current().ok()?;
    if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
        tracing::warn!("another server cannot be asked in a runtime of one thread");
        return None;
    }
    tokio::task::block_in_place(|| runtime.block_on(async { tokio::time::timeout(patience, future).await.ok() }))
}
