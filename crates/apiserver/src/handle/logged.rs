//! The log of requests.

use http::header::USER_AGENT;
use http::{Method, Request, StatusCode};

use super::Caller;

/// What the log of requests tells; gathered only when somebody reads it (`--log gardener_apiserver::handle=debug`).
pub(super) struct Logged {
    cluster: String,
    method: Method,
    uri: http::Uri,
    agent: String,
}

impl Logged {
    pub(super) fn of<B>(caller: &Caller, request: &Request<B>) -> Option<Self> {
        tracing::enabled!(tracing::Level::DEBUG).then(|| Self {
            cluster: caller.cluster.clone(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            agent: request
                .headers()
                .get(USER_AGENT)
                .and_then(|agent| agent.to_str().ok())
                .unwrap_or_default()
                .to_owned(),
        })
    }

    pub(super) fn log(&self, status: StatusCode) {
        let Self {
            cluster,
            method,
            uri,
            agent,
        } = self;
        tracing::debug!(%cluster, %method, %uri, agent, status = status.as_u16(), "request");
    }
}
