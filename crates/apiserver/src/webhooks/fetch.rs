//! Documents that are fetched by HTTPS from servers that are no webhooks: issuers of tokens. Each by a connection of its own, for they are few.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, HOST, LOCATION, TRANSFER_ENCODING, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use rustls::ClientConfig;
use tokio::sync::OnceCell;
use url::Url;

use super::http::{dial, told};
use crate::egress::{Egress, Network};
use crate::tls;

/// Largest document that is read.
const LARGEST: usize = 1 << 20;
/// How long a document may take, with all redirections, where it is not said.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a server may lead elsewhere; as Go's client.
const REDIRECTIONS: usize = 10;

/// Fetches documents from servers that some authorities speak for.
pub(crate) struct Fetcher {
    /// PEM; the system's if empty. None: whoever answers is believed.
    authorities: Option<Vec<u8>>,
    way: (Arc<Egress>, Network),
    patience: Duration,
    configuration: OnceCell<Arc<ClientConfig>>,
}

/// What a server answered.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    /// The status code.
    pub(crate) status: StatusCode,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The document.
    pub(crate) body: Bytes,
}

impl Fetcher {
    /// Believes servers whose certificates these authorities (PEM) signed, or the system's if there are none. `way` leads to them.
    pub(crate) fn new(authorities: &str, way: (Arc<Egress>, Network)) -> Self {
        Self {
            authorities: Some(authorities.as_bytes().to_vec()),
            way,
            patience: PATIENCE,
            configuration: OnceCell::new(),
        }
    }

    /// Believes whoever answers in time: for servers whose certificates nobody knows, and to whom nothing is told.
    pub(crate) fn of_anyone(way: (Arc<Egress>, Network), patience: Duration) -> Self {
        Self {
            authorities: None,
            patience,
            ..Self::new("", way)
        }
    }

    /// Fetches a document; `bearer` is the token to show for it.
    ///
    /// # Errors
    /// Why nothing was answered, in the words of Go's client.
    pub(crate) async fn get(&self, url: &str, bearer: Option<&str>) -> Result<Fetched, String> {
        let failed = |why: String| format!("Get {url:?}: {why}");
        match tokio::time::timeout(self.patience, self.follow(url, bearer)).await {
            Ok(answered) => answered.map_err(failed),
            Err(_) => Err(failed("context deadline exceeded".to_owned())),
        }
    }

    async fn follow(&self, url: &str, bearer: Option<&str>) -> Result<Fetched, String> {
        let mut url = Url::parse(url).map_err(|error| error.to_string())?;
        let first = url.host_str().map(str::to_owned);
        for _ in 0..=REDIRECTIONS {
            let bearer = bearer.filter(|_| url.host_str() == first.as_deref());
            let fetched = self.once(&url, bearer).await?;
            let leads = matches!(fetched.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            let location = fetched.headers.get(LOCATION).and_then(|value| value.to_str().ok());
            match location.filter(|_| leads) {
                None => return Ok(fetched),
                Some(location) => url = url.join(location).map_err(|error| error.to_string())?,
            }
        }
        Err(format!("stopped after {REDIRECTIONS} redirects"))
    }

    async fn configuration(&self) -> Result<Arc<ClientConfig>, String> {
        let made = self.configuration.get_or_try_init(async || {
            let authorities = self.authorities.as_deref();
            let made = tls::client(authorities.unwrap_or_default(), authorities.is_none(), None).await;
            made.map(Arc::new)
        });
        made.await.map(Arc::clone)
    }

    async fn once(&self, url: &Url, bearer: Option<&str>) -> Result<Fetched, String> {
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| "no Host in request URL".to_owned())?;
        let configuration = match url.scheme() {
            "https" => Some(self.configuration().await?),
            "http" => None,
            other => return Err(format!("unsupported protocol scheme {other:?}")),
        };
        let port = url.port_or_known_default().unwrap_or(443);
        let address = format!("{host}:{port}");
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let (egress, network) = &self.way;
        let tls = configuration.as_ref().map(|own| (own, name));
        let mut sender = dial((egress, *network), &address, tls).await?;
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let told_host = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let request = Request::get(path)
            .header(HOST, told_host)
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "kube-apiserver");
        let mut request = request.body(Full::default()).map_err(|error| error.to_string())?;
        if let Some(bearer) = bearer {
            let mut value = HeaderValue::try_from(format!("Bearer {bearer}")).map_err(|error| error.to_string())?;
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let (parts, body) = sender.send_request(request).await.map_err(told)?.into_parts();
        let told_length = parts.headers.contains_key(CONTENT_LENGTH) || parts.headers.contains_key(TRANSFER_ENCODING);
        Ok(Fetched {
            status: parts.status,
            headers: parts.headers,
            body: read(body, told_length).await?,
        })
    }
}

/// Reads a document. One of no told length ends with the connection, which many servers end without a word of TLS about it; Go takes that, too.
async fn read(mut body: Incoming, told_length: bool) -> Result<Bytes, String> {
    let mut document = BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => document.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
            Err(error) if !told_length && is_end(&error) => break,
            Err(error) => return Err(told(error)),
        }
        if document.len() > LARGEST {
            return Err(format!("the document has more than {LARGEST} bytes"));
        }
    }
    Ok(document.freeze())
}

fn is_end(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers by the path, without TLS, and closes the connection.
    async fn serve() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut asked = vec![0; 4096];
                let length = stream.read(&mut asked).await.unwrap();
                let asked = String::from_utf8_lossy(&asked[..length]).to_lowercase();
                let bearer = asked.lines().find_map(|line| line.strip_prefix("authorization: "));
                let lead = |to: &str| format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
                let answer = match asked.split(' ').nth(1).unwrap() {
                    "/here" => format!("HTTP/1.0 200 OK\r\n\r\n{}", bearer.unwrap_or("nobody")),
                    "/there?a=b" => lead("/here"),
                    "/away" => lead("http://localhost:1/"),
                    "/round" => lead("/round"),
                    "/large" => format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(LARGEST + 1)),
                    "/cut" => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx".to_owned(),
                    _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno".to_owned(),
                };
                // who reads no further may be gone
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        url
    }

    #[tokio::test]
    async fn documents_are_followed_and_are_not_too_large() {
        let (url, fetcher) = (serve().await, Fetcher::new("", (Arc::default(), Network::ControlPlane)));
        let get = async |path: &str, bearer: Option<&str>| {
            let fetched = fetcher.get(&format!("{url}{path}"), bearer).await?;
            Ok::<_, String>((
                fetched.status.as_u16(),
                String::from_utf8_lossy(&fetched.body).into_owned(),
            ))
        };
        assert_eq!(get("/here", None).await, Ok((200, "nobody".to_owned())));
        assert_eq!(get("/there?a=b", Some("t")).await, Ok((200, "bearer t".to_owned())));
        assert_eq!(get("/other", None).await, Ok((404, "no".to_owned())));
        for (path, expected) in [
            ("/round", "stopped after 10 redirects"),
            ("/large", "the document has more than 1048576 bytes"),
            ("/cut", "end of file"),
            ("/away", "dial tcp localhost:1: connect: connection refused"),
        ] {
            let error = get(path, None).await.unwrap_err();
            assert!(
                error.starts_with("Get \"http://") && error.contains(expected),
                "{error}"
            );
        }
        for (url, expected) in [
            ("x", "relative URL"),
            ("ftp://x", "unsupported protocol scheme"),
            ("data:x", "no Host in request URL"),
        ] {
            let error = fetcher.get(url, None).await.unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
