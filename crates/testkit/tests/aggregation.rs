//! Versions that another server serves: found, described and reached through the cluster's own API.
#![allow(clippy::unwrap_used)] // memory does not refuse, and the other server is this test

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gardener_apiserver::aggregation;
use gardener_testkit::cluster::MemoryClusters;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Api, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

const GROUP: &str = "/apis/wardle.example.com";

/// Answers as an API server would; of objects it tells who asked for them, and how.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let header = |name: &str| -> Vec<&str> {
        let values = parts.headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok()).collect()
    };
    let found = match parts.uri.path() {
        "/apis/wardle.example.com/v1" => {
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "wardle.example.com/v1", "resources": [
                {"name": "flunders", "singularName": "flunder", "namespaced": true, "kind": "Flunder", "verbs": ["get", "list"]},
            ]})
        }
        "/openapi/v3" => {
            json!({"paths": {"apis/wardle.example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/wardle.example.com/v1?hash=ABC"}}})
        }
        "/openapi/v3/apis/wardle.example.com/v1" => json!({"openapi": "3.0.0"}),
        path if path.ends_with("/away") => {
            let mut response = Response::new(Full::new(Bytes::new()));
            *response.status_mut() = StatusCode::FOUND;
            let elsewhere = http::HeaderValue::from_static("https://elsewhere.example.com");
            response.headers_mut().insert("location", elsewhere);
            return Ok(response);
        }
        path if path.ends_with("/large") => json!(body.len()),
        path if path.starts_with("/apis/wardle.example.com/v1/") => json!({
            "method": parts.method.as_str(), "path": parts.uri.path_and_query().map(ToString::to_string),
            "user": header("x-remote-user"), "groups": header("x-remote-group"), "token": header("authorization"),
            "body": String::from_utf8_lossy(&body),
        }),
        _ => {
            let mut response = Response::new(Full::new(Bytes::from("404 page not found")));
            *response.status_mut() = StatusCode::NOT_FOUND;
            return Ok(response);
        }
    };
    Ok(Response::new(Full::new(Bytes::from(found.to_string()))))
}

/// Starts the other server. Answers its port and the certificate of its authority.
async fn other_server() -> (u16, String) {
    let day = Duration::from_secs(86_400);
    let now = gardener_apimachinery::clock::Clock::system().now().as_second() - 3600;
    let authority = gardener_pki::authority("wardle", now, day).unwrap();
    let subject = gardener_pki::Subject::server("wardle", &["api.wardle.svc"], &[]);
    let issued = gardener_pki::issue(&subject, &authority, now, day).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection
                        .serve_connection(TokioIo::new(stream), service_fn(answer))
                        .await;
                }
            });
        }
    });
    (port, authority.certificate)
}

async fn json_of(client: &Client, request: http::request::Builder, body: &str) -> Value {
    let text = client
        .request_text(request.body(body.as_bytes().to_vec()).unwrap())
        .await
        .unwrap();
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn available(status: &'static str, reason: &'static str) -> impl Fn(Option<&APIService>) -> bool {
    move |service| {
        let conditions = service.and_then(|service| service.status.as_ref()?.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| {
            condition.type_ == "Available" && condition.status == status && condition.reason.as_deref() == Some(reason)
        })
    }
}

async fn create<T>(client: &Client, namespace: Option<&str>, object: Value) -> T
where
    T: kube::Resource<DynamicType = ()> + serde::Serialize + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
{
    let object: T = serde_json::from_value(object).unwrap();
    let url = T::url_path(&(), namespace);
    let request = Request::post(url).header("content-type", "application/json");
    let body = serde_json::to_vec(&object).unwrap();
    client.request(request.body(body).unwrap()).await.unwrap()
}

#[tokio::test]
async fn another_servers_version_is_reached_as_if_it_were_here() {
    let (port, authority) = other_server().await;
    let clusters = MemoryClusters::new();
    let client = clusters.open("front").await;
    let (cluster, _) = clusters.server.cluster("front").unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(aggregation::run(cluster, client.clone(), stop.clone()));
    let _: k8s_openapi::api::core::v1::Namespace = create(&client, None, json!({"metadata": {"name": "wardle"}})).await;
    let services: Api<APIService> = Api::all(client.clone());
    let service = serde_json::from_value(json!({
        "metadata": {"name": "v1.wardle.example.com"},
        "spec": {
            "group": "wardle.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
            "service": {"namespace": "wardle", "name": "api", "port": port},
            "caBundle": k8s_openapi::ByteString(authority.into_bytes()),
        },
    }));
    let created = services
        .create(&PostParams::default(), &service.unwrap())
        .await
        .unwrap();
    await_condition(
        services.clone(),
        &created.name_any(),
        available("False", "ServiceNotFound"),
    )
    .await
    .unwrap();
    let refused = client.request_text(Request::get(format!("{GROUP}/v1/flunders")).body(Vec::new()).unwrap());
    assert!(refused.await.unwrap_err().to_string().contains("service unavailable"));
    let _: k8s_openapi::api::core::v1::Service = create(
        &client,
        Some("wardle"),
        json!({"metadata": {"name": "api"}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}),
    )
    .await;
    await_condition(services.clone(), &created.name_any(), available("True", "Passed"))
        .await
        .unwrap();

    // found
    let groups = json_of(&client, Request::get("/apis"), "").await;
    let found = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .any(|group| group["name"] == "wardle.example.com");
    assert!(found, "{groups}");
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let discovered = json_of(&client, Request::get("/apis").header("accept", aggregated), "").await;
    let group = discovered["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|group| group["metadata"]["name"] == "wardle.example.com");
    assert_eq!(group.unwrap()["versions"][0]["resources"][0]["resource"], "flunders");
    assert_eq!(
        json_of(&client, Request::get(format!("{GROUP}/v1")), "").await["kind"],
        "APIResourceList"
    );

    // listed beside those that are here
    let local = services.get("v1.apps").await.unwrap();
    assert!(available("True", "Local")(Some(&local)), "{local:?}");

    // described
    let index = json_of(&client, Request::get("/openapi/v3"), "").await;
    let url = index["paths"]["apis/wardle.example.com/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    assert_eq!(url, "/openapi/v3/apis/wardle.example.com/v1?hash=ABC");
    assert_eq!(
        json_of(&client, Request::get(url), "").await,
        json!({"openapi": "3.0.0"})
    );

    // reached, by those who may
    let path = format!("{GROUP}/v1/namespaces/wardle/flunders?dryRun=All");
    let post = || {
        Request::post(&path)
            .header("x-remote-user", "root")
            .header("content-type", "application/json")
    };
    let answered = json_of(&client, post(), r#"{"a": 1}"#).await;
    assert_eq!(
        answered,
        json!({"method": "POST", "path": path, "user": ["admin"], "groups": ["system:masters", "system:authenticated"], "token": [], "body": r#"{"a": 1}"#})
    );
    // how large a body may be is not said here, but where it goes is
    let large = json_of(
        &client,
        Request::post(format!("{GROUP}/v1/flunders/large")),
        &" ".repeat(4 << 20),
    )
    .await;
    assert_eq!(large, 4 << 20);
    let away = client.request_text(
        Request::get(format!("{GROUP}/v1/flunders/away"))
            .body(Vec::new())
            .unwrap(),
    );
    let refused = away.await.unwrap_err().to_string();
    assert!(
        refused.contains("the backend attempted to redirect this request, which is not permitted"),
        "{refused}"
    );
    let nobody = clusters.client("front", "nobody", &[]);
    let refused = nobody
        .request_text(post().body(b"{}".to_vec()).unwrap())
        .await
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("cannot create resource \"flunders\" in API group \"wardle.example.com\""),
        "{refused}"
    );
    stop.cancel();
}
