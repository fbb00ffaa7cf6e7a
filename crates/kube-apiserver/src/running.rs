//! A server of one logical cluster while it runs: the work that goes on beside its answers, and the order in which all of it ends.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use gardener_apiserver::{LogicalCluster, Server};
use gardener_store::Store;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::serving::Serving;

/// A server with its one cluster and its store, from its first background work to its end.
pub struct Running {
    server: Server,
    cluster: Arc<LogicalCluster>,
    store: Arc<dyn Store>,
    tasks: TaskTracker,
    background: CancellationToken,
}

impl Running {
    /// A server whose cluster is open, and which answers nobody yet.
    pub fn new(server: Server, cluster: Arc<LogicalCluster>, store: Arc<dyn Store>) -> Self {
        Self {
            server,
            cluster,
            store,
            tasks: TaskTracker::new(),
            background: CancellationToken::new(),
        }
    }

    /// Cancelled when the background's work ends.
    pub fn background(&self) -> CancellationToken {
        self.background.clone()
    }

    /// Goes on with `work` until the server ends. What it was at then is left where it stands.
    pub fn aside(&self, work: impl Future<Output = ()> + Send + 'static) {
        let background = self.background();
        self.tasks.spawn(async move {
            background.run_until_cancelled(work).await;
        });
    }

    /// Answers on `listener` until `stop` is cancelled, then ends in order: it says that it is about to end and does `leave`, answers for another
    /// `delay` until clients have turned away, ends its work and its connections, and closes the store.
    pub async fn serve(
        self,
        listener: TcpListener,
        serving: Serving,
        stop: CancellationToken,
        leave: impl Future<Output = ()>,
        delay: Duration,
    ) {
        let (entrances, closing) = (serving.entrances.clone(), CancellationToken::new());
        self.aside(serving.follow());
        self.tasks.spawn(gardener_apiserver::listen::listen(
            listener,
            self.server.clone(),
            entrances,
            closing.clone(),
        ));

        stop.cancelled().await;
        tracing::info!("ending");
        self.cluster.end_soon();
        leave.await;
        sleep(delay).await;
        self.background.cancel();
        closing.cancel();
        self.server.shut_down();
        self.tasks.close();
        self.tasks.wait().await;
        self.store.close().await;
    }
}
