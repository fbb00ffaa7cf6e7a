//! Tests of [`super`].

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::fake::Fake;
use crate::{Action, Controller, Queue};

#[tokio::test(start_paused = true)]
async fn controllers_are_counted() {
    let (monitor, queue, cancel) = (Monitor::default(), Queue::new(), CancellationToken::new());
    let controller = Controller::new("own", 2, queue.clone()).watched_by(&monitor);
    let running = tokio::spawn(controller.run(cancel.clone(), |key: u8| async move {
        sleep(Duration::from_millis(20)).await;
        match key {
            1 => Ok(Action::Done),
            2 => Ok(Action::RequeueAfter(Duration::from_secs(3600))),
            3 => panic!("a panic"),
            _ => Err("an error"),
        }
    }));
    for key in [1, 2, 3, 9, 9] {
        queue.add(key);
    }
    sleep(Duration::from_millis(10)).await;
    let text = monitor.metrics();
    for line in [
        "controller_runtime_max_concurrent_reconciles{controller=\"own\"} 2",
        "controller_runtime_active_workers{controller=\"own\"} 2",
        "workqueue_depth{controller=\"own\"} 2",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
    sleep(Duration::from_millis(31)).await;
    cancel.cancel();
    running.await.unwrap();
    monitor.leads("lease", true);
    let text = monitor.metrics();
    for line in [
        "controller_runtime_active_workers{controller=\"own\"} 0",
        "controller_runtime_reconcile_total{controller=\"own\",result=\"success\"} 1",
        "controller_runtime_reconcile_total{controller=\"own\",result=\"requeue_after\"} 1",
        "controller_runtime_reconcile_total{controller=\"own\",result=\"error\"} 2",
        "controller_runtime_reconcile_errors_total{controller=\"own\"} 2",
        "controller_runtime_reconcile_panics_total{controller=\"own\"} 1",
        "controller_runtime_reconcile_time_seconds_bucket{controller=\"own\",le=\"0.01\"} 0",
        "controller_runtime_reconcile_time_seconds_bucket{controller=\"own\",le=\"0.025\"} 4",
        "controller_runtime_reconcile_time_seconds_count{controller=\"own\"} 4",
        "leader_election_master_status{name=\"lease\"} 1",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_follows_nothing_is_ready_and_who_waits_for_long_is_not_well() {
    let (monitor, stop, fake) = (Monitor::default(), CancellationToken::new(), Fake::new());
    assert_eq!(monitor.is_ready(), Ok(()));
    let informers = Informers::new(fake.client(), watcher::Config::default(), &stop);
    // nothing is ever listed
    stop.cancel();
    informers.of::<ConfigMap>();
    monitor.follows(Some(informers));
    let waits = Err("informers not synced: configmaps".to_owned());
    assert_eq!((monitor.is_ready(), monitor.is_well()), (waits.clone(), Ok(())));
    sleep(SYNC_DEADLINE + Duration::from_secs(1)).await;
    assert_eq!(monitor.is_well(), waits);
    monitor.follows(None);
    assert_eq!((monitor.is_ready(), monitor.is_well()), (Ok(()), Ok(())));
}

#[tokio::test]
async fn health_is_served() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let server = tokio::spawn(serve(listener, stop.clone(), |path| match path {
        "/healthz" => Some(Answer::of_check(Ok(()))),
        "/readyz" => Some(Answer::of_check(Err("not yet".to_owned()))),
        _ => None,
    }));
    let ask = async |line: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned();
        (answer.split(' ').nth(1).unwrap_or_default().to_owned(), body)
    };
    let told = |status: &str, body: &str| (status.to_owned(), body.to_owned());
    assert_eq!(ask("GET /healthz").await, told("200", "ok"));
    assert_eq!(ask("HEAD /healthz").await, told("200", ""));
    assert_eq!(ask("GET /readyz?verbose").await, told("500", "not yet\n"));
    assert_eq!(ask("GET /other").await, told("404", "404 page not found\n"));
    assert_eq!(ask("POST /healthz").await, told("405", "405 method not allowed\n"));
    // a client that keeps its connection does not keep the server
    let idle = TcpStream::connect(address).await.unwrap();
    stop.cancel();
    server.await.unwrap();
    drop(idle);
}
