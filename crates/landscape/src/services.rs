//! Services of embedded clusters behind which a program of this process answers: webhooks that name them are asked without a connection. All
//! others are reached as from any API server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use gardener_apiserver::LogicalCluster;
use gardener_apiserver::webhooks::{Answer, Endpoint, EndpointResolver, HttpTransport, Transport};
use parking_lot::Mutex;

/// What answers behind a Service.
#[async_trait]
pub trait Service: Send + Sync + 'static {
    /// Answers a POST of JSON.
    async fn post(&self, path: &str, body: Bytes) -> Answer;
}

/// Cluster, namespace and name of a Service.
type Place = (String, String, String);
/// The programs behind a Service, the last to come last.
type Programs = Vec<Arc<dyn Service>>;

/// The programs behind Services. Clones share them.
#[derive(Clone)]
pub struct Services {
    /// Those that answer; a place stays when nobody is left.
    known: Arc<Mutex<BTreeMap<Place, Programs>>>,
    elsewhere: Arc<HttpTransport>,
}

impl Default for Services {
    fn default() -> Self {
        Self {
            known: Arc::default(),
            elsewhere: Arc::new(HttpTransport::new(Arc::new(EndpointResolver))),
        }
    }
}

/// That a program answers; it does until this is dropped.
#[must_use]
pub struct Answering {
    services: Services,
    place: Place,
    service: Arc<dyn Service>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(programs) = self.services.known.lock().get_mut(&self.place) {
            programs.retain(|own| !Arc::ptr_eq(own, &self.service));
        }
    }
}

impl Services {
    /// Lets a program answer behind a Service.
    pub fn answer(&self, cluster: &str, namespace: &str, name: &str, service: Arc<dyn Service>) -> Answering {
        let place = (cluster.to_owned(), namespace.to_owned(), name.to_owned());
        self.known
            .lock()
            .entry(place.clone())
            .or_default()
            .push(Arc::clone(&service));
        Answering {
            services: self.clone(),
            place,
            service,
        }
    }
}

#[async_trait]
impl Transport for Services {
    async fn post(
        &self,
        cluster: &LogicalCluster,
        endpoint: &Endpoint,
        timeout: Duration,
        body: Bytes,
    ) -> Result<Answer, String> {
        let found = endpoint.service.as_ref().and_then(|service| {
            let place = (
                cluster.name().to_owned(),
                service.namespace.clone(),
                service.name.clone(),
            );
            Some((service, self.known.lock().get(&place)?.last().cloned()))
        });
        match found {
            Some((service, Some(program))) => Ok(program.post(&service.path, body).await),
            // it has ended; behind its address is nothing that could be waited for
            Some((service, None)) => Err(format!(
                "dial tcp {}:{}: connect: connection refused",
                service.host(),
                service.port
            )),
            None => self.elsewhere.post(cluster, endpoint, timeout, body).await,
        }
    }
}
