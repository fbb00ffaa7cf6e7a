//! A small HTTP server for health and metrics: no TLS, `GET` and `HEAD` alone.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a client may take to send a request's head.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait when no connection can be taken, as with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// What a path is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The content type.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Answer {
    /// An answer of a health check: 200, or 500 with the reason.
    pub fn of_check(check: Result<(), String>) -> Self {
        let (status, body) = match check {
            Ok(()) => (StatusCode::OK, "ok".to_owned()),
            Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")),
        };
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body,
        }
    }
}

/// Answers requests until `stop`. A path that `answer` knows none for is not found.
pub async fn serve(
    listener: TcpListener,
    stop: CancellationToken,
    answer: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static,
) {
    let (answer, connections) = (Arc::new(answer), TaskTracker::new());
    loop {
        let accepted = match stop.run_until_cancelled(listener.accept()).await {
            None => break,
            Some(Ok((stream, _))) => stream,
            Some(Err(error)) => {
                tracing::warn!(%error, "a connection cannot be taken");
                sleep(PAUSE).await;
                continue;
            }
        };
        let (answer, stop) = (Arc::clone(&answer), stop.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let answer = respond(&request, answer.as_ref());
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut server = hyper::server::conn::http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            let connection = server.serve_connection(TokioIo::new(accepted), service);
            stop.run_until_cancelled(connection).await;
        });
    }
    connections.close();
    connections.wait().await;
}

fn respond(request: &Request<Incoming>, answer: &impl Fn(&str) -> Option<Answer>) -> Response<Full<Bytes>> {
    let plain = |status: StatusCode, body: &str| Answer {
        status,
        content_type: "text/plain; charset=utf-8",
        body: format!("{body}\n"),
    };
    let answer = match *request.method() {
        Method::GET | Method::HEAD => {
            answer(request.uri().path()).unwrap_or_else(|| plain(StatusCode::NOT_FOUND, "404 page not found"))
        }
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed"),
    };
    let mut response = Response::new(Full::from(answer.body));
    *response.status_mut() = answer.status;
    let content_type = HeaderValue::from_static(answer.content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}
