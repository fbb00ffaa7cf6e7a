//! A client whose way can be changed while it is in use: requests go by the newest way, those under way end on theirs.

use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use kube::client::Body;
use parking_lot::RwLock;

/// Changes the way of the client that came with it.
pub(super) struct Switch(Arc<RwLock<Client>>);

impl Switch {
    /// From now on requests go this way.
    pub(super) fn to(&self, client: Client) {
        *self.0.write() = client;
    }
}

/// A client that goes the way of `client` until it is switched to another.
pub(super) fn switchable(client: Client) -> (Client, Switch) {
    let namespace = client.default_namespace().to_owned();
    let shared = Arc::new(RwLock::new(client));
    let service = Switchable(Arc::clone(&shared));
    (Client::new(service, namespace), Switch(shared))
}

#[derive(Clone)]
struct Switchable(Arc<RwLock<Client>>);

impl tower::Service<http::Request<Body>> for Switchable {
    type Response = http::Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let client = self.0.read().clone();
        Box::pin(async move { client.send(request).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client of a server that answers everything with a status code.
    fn answering(code: u16) -> Client {
        let service = tower::service_fn(move |_: http::Request<Body>| async move {
            let answer = http::Response::builder().status(code).body(Body::empty());
            answer.map_err(kube::Error::HttpError)
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn requests_go_by_the_newest_way() {
        let (client, switch) = switchable(answering(200));
        let other = client.clone();
        let code = async |client: &Client| {
            let request = http::Request::get("/").body(Body::empty()).unwrap();
            client.send(request).await.unwrap().status().as_u16()
        };
        assert_eq!(code(&client).await, 200);
        switch.to(answering(202));
        assert_eq!((code(&client).await, code(&other).await), (202, 202));
    }
}
