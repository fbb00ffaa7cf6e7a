//! The server: logical clusters by name, and the way into them from inside the process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use gardener_apimachinery::ApiError;
use parking_lot::RwLock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::accept::Wanted;
use crate::authn::certificate_user;
use crate::cluster::{ClusterConfig, LogicalCluster, Shared};
use crate::flow_control::waits_until;
use crate::handle::{self, Caller};
use crate::request::{self, Target};
use crate::respond::{self, Body};
use crate::time_limit;
use crate::user::UserInfo;

/// The name that stands for all clusters at once in lists and watches.
pub const ALL_CLUSTERS: &str = "*";

/// A server of many logical clusters. Cheap to clone.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Shared,
    clusters: RwLock<BTreeMap<String, Arc<LogicalCluster>>>,
}

impl Server {
    /// A server without clusters.
    pub fn new(shared: Shared) -> Self {
        Self {
            inner: Arc::new(Inner {
                shared,
                clusters: RwLock::default(),
            }),
        }
    }

    /// What all clusters share.
    pub fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    /// Opens a cluster for requests, in place of one of the same name.
    pub fn open(&self, name: &str, config: ClusterConfig) -> Arc<LogicalCluster> {
        let cluster = LogicalCluster::new(name, self.inner.shared.clone(), config);
        cluster.config().authorizer.prepare(&cluster);
        let before = self.inner.clusters.write().insert(name.to_owned(), cluster.clone());
        if let Some(before) = before {
            before.closed().cancel();
        }
        crate::crd::termination::resume(&cluster);
        crate::flow_schemas::resume(&cluster);
        cluster
    }

    /// Closes a cluster: its watches end, requests are refused. Its objects stay in the store.
    pub fn close(&self, name: &str) {
        if let Some(cluster) = self.inner.clusters.write().remove(name) {
            cluster.closed().cancel();
        }
    }

    /// An open cluster, with the token that is cancelled when it closes.
    pub fn cluster(&self, name: &str) -> Option<(Arc<LogicalCluster>, CancellationToken)> {
        self.inner
            .clusters
            .read()
            .get(name)
            .map(|cluster| (Arc::clone(cluster), cluster.closed().clone()))
    }

    /// Names of the open clusters.
    pub fn clusters(&self) -> Vec<String> {
        self.inner.clusters.read().keys().cloned().collect()
    }

    /// Ends the watches of all clusters, the last of them after `period` at the latest; requests are answered as before.
    pub fn end_watches(&self, period: Duration) {
        for cluster in self.inner.clusters.read().values() {
            cluster.watch_end().begin_within(period);
        }
    }

    /// Waits until no watch runs, for as long as `patience`.
    pub async fn watches_ended(&self, patience: Duration) {
        let clusters: Vec<_> = self.inner.clusters.read().values().cloned().collect();
        let ended = async {
            for cluster in &clusters {
                cluster.watch_end().ended().await;
            }
        };
        let _ = tokio::time::timeout(patience, ended).await;
    }

    /// Ends every watch and refuses every request from here on.
    pub fn shut_down(&self) {
        for (_, cluster) in std::mem::take(&mut *self.inner.clusters.write()) {
            cluster.closed().cancel();
        }
    }

    /// A client of one cluster (or of [`ALL_CLUSTERS`]) inside this process. It asks as `user`, through the same authorization as everybody.
    pub fn client(&self, cluster: &str, user: UserInfo) -> kube::Client {
        let caller = Caller {
            cluster: cluster.to_owned(),
            user: Some(user),
            ..Caller::default()
        };
        self.client_of(caller, None)
    }

    /// A client of one cluster inside this process that shows a client certificate (DER). The caller answers for its authenticity, as TLS does
    /// for certificates from outside.
    pub fn client_with_certificate(&self, cluster: &str, certificate: &[u8]) -> kube::Client {
        let shown = certificate_user(certificate);
        let caller = Caller {
            cluster: cluster.to_owned(),
            refused_certificate: shown.is_err(),
            certificate: shown.ok().flatten(),
            ..Caller::default()
        };
        self.client_of(caller, None)
    }

    /// A client of one cluster inside this process that shows a bearer token.
    pub fn client_with_token(&self, cluster: &str, token: &str) -> kube::Client {
        let caller = Caller {
            cluster: cluster.to_owned(),
            ..Caller::default()
        };
        self.client_of(caller, http::HeaderValue::from_str(&format!("Bearer {token}")).ok())
    }

    fn client_of(&self, caller: Caller, authorization: Option<http::HeaderValue>) -> kube::Client {
        let own = InProcess {
            server: self.clone(),
            caller: Arc::new(caller),
            authorization,
        };
        kube::Client::new(own, "default")
    }

    /// Serves one request of a caller that came in by TLS, which may take as long as `limit`. A write that takes longer is still brought to its end.
    pub async fn serve<B>(
        &self,
        caller: Caller,
        request: http::Request<B>,
        limit: Option<Duration>,
    ) -> http::Response<Body>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // what goes with this future
        let gone = CancellationToken::new();
        let caller = Caller {
            waits_until: limit.map(waits_until),
            gone: Some(gone.clone()),
            ..caller
        };
        let _gone = gone.drop_guard();
        let Some(limit) = limit else {
            return handle_apart(self.clone(), caller, request).await;
        };
        let bounded = limit > time_limit::OF_WRITES && self.writes(&caller, &request);
        let limit = if bounded { time_limit::OF_WRITES } else { limit };
        let wanted = bounded.then(|| Wanted::of(request.headers(), request.uri().query().unwrap_or_default()));
        let until = Instant::now() + limit;
        let caller = Caller {
            until: Some(until),
            ..caller
        };
        let served = handle_apart(self.clone(), caller, request);
        match (tokio::time::timeout_at(until, served).await, wanted) {
            (Ok(response), _) if Instant::now() < until => response,
            (_, Some(wanted)) => respond::error(&time_limit::write_exceeded(), &wanted),
            (_, None) => time_limit::exceeded(),
        }
    }

    /// Whether a request writes, and to this server, not to one behind it.
    fn writes<B>(&self, caller: &Caller, request: &http::Request<B>) -> bool {
        let target = request::target(&request::decode_path(request.uri().path()));
        let Target::Resource(path) = &target else { return false };
        let is_elsewhere = || {
            let (cluster, _) = self.cluster(&caller.cluster)?;
            cluster.aggregation().backend(&cluster, &path.group, &path.version)
        };
        time_limit::is_write(request.method(), &target) && is_elsewhere().is_none()
    }
}

/// Serves a request in a task of its own: the caller's stack is not the server's, a panic here is not one there, and a write whose caller
/// went away is still brought to its end.
fn handle_apart<B>(
    server: Server,
    caller: Caller,
    request: http::Request<B>,
) -> impl Future<Output = http::Response<Body>> + Send + 'static
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // on the heap: a task is moved several times, and what serves a request is large
    let serving = tokio::spawn(async move { Box::pin(handle::handle(&server, caller, request)).await });
    async move {
        let served = serving.await;
        served.unwrap_or_else(|_| {
            let error = ApiError::internal("the request was not finished: see the log");
            respond::error(&error, &Wanted::default())
        })
    }
}

/// A `tower` service that leads into one cluster as one caller.
#[derive(Clone)]
pub struct InProcess {
    server: Server,
    caller: Arc<Caller>,
    authorization: Option<http::HeaderValue>,
}

impl<B> tower::Service<http::Request<B>> for InProcess
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = http::Response<Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        let own = self.clone();
        let agent = own.caller.user.as_ref().map_or("", UserInfo::program);
        if let Ok(agent) = http::HeaderValue::from_str(agent)
            && !agent.is_empty()
        {
            request.headers_mut().entry(http::header::USER_AGENT).or_insert(agent);
        }
        if let Some(authorization) = own.authorization.clone() {
            request.headers_mut().insert(http::header::AUTHORIZATION, authorization);
        }
        let caller = (*own.caller).clone();
        let served = handle_apart(own.server, caller, request);
        Box::pin(async move { Ok(served.await) })
    }
}
