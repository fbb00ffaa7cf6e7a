//! How long a request waits for webhooks. That is their time and not the server's: indicators of its service level leave it out.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

tokio::task_local! {
    /// How long the request that this task carries out has waited.
    static WAITED: Cell<Duration>;
}

/// Carries out a request, and tells how long it waited.
pub(crate) async fn during<F: Future>(request: F) -> (F::Output, Duration) {
    let told = async {
        let output = request.await;
        (output, WAITED.with(Cell::get))
    };
    WAITED.scope(Cell::default(), told).await
}

/// Notes that the request that is carried out has waited. What nobody asked for, such as the server's own writes, is not noted.
pub(crate) fn add(waited: Duration) {
    let _ = WAITED.try_with(|so_far| so_far.set(so_far.get().saturating_add(waited)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_request_has_its_own_waits() {
        let second = Duration::from_secs(1);
        add(second);
        let (inner, outer) = during(async {
            add(second);
            let ((), inner) = during(async { add(second * 5) }).await;
            tokio::task::yield_now().await;
            add(second);
            inner
        })
        .await;
        assert_eq!((inner, outer), (second * 5, second * 2));
    }
}
