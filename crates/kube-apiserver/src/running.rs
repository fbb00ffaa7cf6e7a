//! A server of one logical cluster while it runs: the work that goes on beside its answers, and the order in which all of it ends.

use std::future::Future;
use std::sync::Arc;

use gardener_apiserver::listen::{Closing, listen};
use gardener_apiserver::{LogicalCluster, Server};
use gardener_store::Store;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::flags::EndingFlags;
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

    /// Goes on with `work` until the server ends, and then until it has ended by itself: it is told by a token, and should not take long.
    pub fn to_the_end<F>(&self, work: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(work(self.background()));
    }

    /// Answers on `listener` until `stop` is cancelled, then ends in order. It says that it is about to end and does `leave`, and goes on answering for
    /// a time in which clients turn away. Then it takes no more connections or requests, lets requests that run and watches end, ends its own work, and
    /// closes the store.
    pub async fn serve(
        self,
        listener: TcpListener,
        serving: Serving,
        stop: CancellationToken,
        leave: impl Future<Output = ()>,
        ending: &EndingFlags,
    ) {
        let entrances = serving.entrances.clone();
        let watches_end = ending.shutdown_watch_termination_grace_period.to_std();
        let mut closing = Closing::on(CancellationToken::new());
        closing.goaway_chance = ending.goaway_chance;
        closing.transport_security = serving.transport_security.clone();
        closing.origins = serving.origins.clone();
        closing.request_timeout = Some(ending.request_timeout.to_std());
        closing.patience = ending.request_timeout.to_std().max(watches_end);
        self.aside(serving.follow());
        let listening = listen(listener, self.server.clone(), entrances, closing.clone());
        let listening = self.tasks.spawn(listening);

        stop.cancelled().await;
        tracing::info!("ending");
        self.cluster.end_soon();
        tokio::join!(leave, sleep(ending.shutdown_delay_duration.to_std()));
        self.server.end_watches(watches_end);
        if ending.shutdown_send_retry_after {
            closing.refuse();
            tokio::join!(closing.idle(), self.server.watches_ended(watches_end));
        }
        closing.stop();
        // it ends by itself, in time; that a task panics has been told already
        let _ = listening.await;
        self.background.cancel();
        self.server.shut_down();
        self.tasks.close();
        self.tasks.wait().await;
        self.store.close().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use gardener_apimachinery::chance::Chance;
    use gardener_apimachinery::clock::Clock;
    use gardener_apimachinery::duration::Duration;
    use gardener_apiserver::authn::Settings;
    use gardener_apiserver::{Shared, UserInfo, object, user};
    use gardener_landscape::embedded::EmbeddedKubernetes;
    use gardener_pki::Subject;
    use gardener_store::{MemoryStore, Options};
    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::{Api, WatchEvent, WatchParams};
    use tokio::sync::oneshot;

    use super::*;
    use crate::serving::Bundles;

    fn ending(grace: i64) -> EndingFlags {
        EndingFlags {
            goaway_chance: 0.0,
            min_request_timeout: 1800,
            request_timeout: Duration::from_secs(60),
            shutdown_delay_duration: Duration::default(),
            shutdown_send_retry_after: false,
            shutdown_watch_termination_grace_period: Duration::from_secs(grace),
        }
    }

    #[tokio::test]
    async fn it_says_that_it_ends_before_it_does() {
        let clock = Clock::system();
        let (now, day) = (clock.now().as_second(), std::time::Duration::from_secs(24 * 3600));
        let authority = gardener_pki::authority("ca", now, day).unwrap();
        let own =
            gardener_pki::issue(&Subject::server("localhost", &["localhost"], &[]), &authority, now, day).unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(object::FORM, Options::default()));
        let server = Server::new(Shared {
            store: Arc::clone(&store),
            clock,
            chance: Chance::seeded(1),
        });
        let admin = UserInfo::new("admin", &[user::MASTERS]);
        let settings = Settings {
            static_tokens: [("secret".to_owned(), admin)].into(),
            ..Settings::default()
        };
        let cluster = server.open(
            "c",
            EmbeddedKubernetes::load().unwrap().config(crate::VERSION, settings),
        );
        let certificate = (own.certificate, own.key);
        let serving = Serving::with("c", move || Ok(certificate.clone()), || Ok(Bundles::default())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, (left, leave)) = (CancellationToken::new(), oneshot::channel::<()>());
        let running = Running::new(server, cluster, store);
        let stopping = stop.clone();
        let serving = tokio::spawn(async move {
            let leave = async { leave.await.unwrap() };
            running.serve(listener, serving, stopping, leave, &ending(1)).await;
        });
        let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
        config.accept_invalid_certs = true;
        config.auth_info.token = Some("secret".to_owned().into());
        let client = kube::Client::try_from(config).unwrap();
        let text = async |path: &str| {
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            client.request_text(request).await
        };
        assert_eq!(text("/readyz").await.unwrap(), "ok");
        let watched = Api::<Namespace>::all(client.clone());
        let mut watched = watched.watch(&WatchParams::default(), "0").await.unwrap().boxed();
        stop.cancel();
        // it is still served, and told not to come here
        while text("/readyz").await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert_eq!(text("/livez").await.unwrap(), "ok");
        left.send(()).unwrap();
        // the watch ends as if its time was over: what was there, the mark of its end, and no error
        while let Some(event) = watched.next().await {
            assert!(
                matches!(event, Ok(WatchEvent::Added(_) | WatchEvent::Bookmark(_))),
                "{event:?}"
            );
        }
        drop(watched);
        serving.await.unwrap();
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
    }
}
