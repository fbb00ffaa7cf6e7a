//! For tests: a real etcd on free ports with data of its own, and stores on it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener as Listener, TcpStream};
use tokio::sync::watch;

use super::client::Client;
use super::{EtcdConfig, EtcdError, EtcdStore, Layout, wire};
use crate::{Form, Key, Options, Topic};

/// A layout for tests: topic and path as they are, below `/test/`.
pub struct Flat;

impl Flat {
    /// Keys of this logical cluster end after a second.
    pub const BRIEF: &str = "brief";
}

impl Layout for Flat {
    fn prefix(&self) -> &'static str {
        "/test/"
    }

    fn place(&self, key: &Key) -> Option<String> {
        Some(format!("/test/{}#{}", key.topic, key.path))
    }

    fn key_at(&self, place: &str) -> Option<Key> {
        let (topic, path) = place.strip_prefix("/test/")?.split_once('#')?;
        Some(Key::new(Topic::from_text(topic), path))
    }

    fn read(&self, _: &Key, value: &Bytes) -> Result<Bytes, String> {
        Ok(value.clone())
    }

    fn time_to_live(&self, key: &Key) -> Option<Duration> {
        key.path.starts_with(Self::BRIEF).then_some(Duration::from_secs(1))
    }
}

/// etcd's program, which `GARDENER_TEST_ETCD` names; says so where it does not: tests that need it pass then.
pub fn program() -> Option<PathBuf> {
    let named = std::env::var_os("GARDENER_TEST_ETCD").map(PathBuf::from);
    if named.is_none() {
        eprintln!("skipped: GARDENER_TEST_ETCD names no etcd");
    }
    named
}

/// A port that nobody listens on, for a program that takes no open socket: no other call gives it out, and it lies below
/// those that the system gives to whoever asks for any, so that it is still free when the program starts.
///
/// # Panics
/// None is free.
pub fn free_port() -> u16 {
    const PORTS: std::ops::Range<u32> = 12_000..32_000;
    static CALLS: AtomicU32 = AtomicU32::new(0);
    // tests of several binaries run at a time
    let first = std::process::id().wrapping_mul(257);
    let port = PORTS.clone().find_map(|_| {
        let call = first.wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(PORTS.start + call % (PORTS.end - PORTS.start)).ok()?;
        TcpListener::bind(("127.0.0.1", port)).ok().map(|_| port)
    });
    port.expect("a free port")
}

/// An address of this machine that nobody listens on.
pub(crate) fn free_url() -> String {
    format!("http://127.0.0.1:{}", free_port())
}

/// What all etcds of tests are told: they are killed, but the machine is not, so that what they wrote is there without
/// waiting for a disk.
pub(crate) const FLAGS: [&str; 2] = ["--log-level=error", "--unsafe-no-fsync"];

/// A running etcd; ends with this value.
pub struct Etcd {
    program: PathBuf,
    arguments: Vec<String>,
    process: Child,
    data: tempfile::TempDir,
    /// Where clients are served.
    pub url: String,
}

impl Etcd {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// The program does not start, or does not answer within 20 seconds.
    pub async fn start(program: &Path) -> io::Result<Self> {
        let data = tempfile::tempdir()?;
        let (url, peers) = (free_url(), free_url());
        let mut arguments = vec![
            format!("--data-dir={}", data.path().display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
        ];
        arguments.extend(FLAGS.map(str::to_owned));
        let process = run(program, &arguments)?;
        let etcd = Self {
            program: program.to_owned(),
            arguments,
            process,
            data,
            url,
        };
        etcd.answers().await?;
        Ok(etcd)
    }

    async fn answers(&self) -> io::Result<()> {
        let request = wire::RangeRequest {
            key: b"x".to_vec(),
            ..wire::RangeRequest::default()
        };
        for _ in 0..2 {
            if self.client().range(request.clone()).await.is_ok() {
                return Ok(());
            }
        }
        Err(io::Error::other(format!(
            "etcd on {} does not answer",
            self.data.path().display()
        )))
    }

    /// Ends it at once.
    pub async fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again on its data.
    ///
    /// # Errors
    /// As [`Etcd::start`].
    pub async fn again(&mut self) -> io::Result<()> {
        self.process = run(&self.program, &self.arguments)?;
        self.answers().await
    }

    fn client(&self) -> Client {
        let config = EtcdConfig {
            endpoints: vec![self.url.clone()],
            ..EtcdConfig::default()
        };
        Client::new(&config).unwrap()
    }

    /// A store in it, laid out as [`Flat`].
    ///
    /// # Errors
    /// As [`EtcdStore::open`].
    pub async fn store(&self, form: Form, options: Options) -> Result<EtcdStore, EtcdError> {
        self.store_at(&self.url, form, options).await
    }

    /// A store that reaches it at another address.
    ///
    /// # Errors
    /// As [`EtcdStore::open`].
    pub async fn store_at(&self, url: &str, form: Form, options: Options) -> Result<EtcdStore, EtcdError> {
        let config = EtcdConfig {
            endpoints: vec![url.to_owned()],
            ..EtcdConfig::default()
        };
        EtcdStore::open(&config, Arc::new(Flat), form, options).await
    }

    async fn change(&self, request: wire::Request) -> wire::TxnResponse {
        let request = wire::TxnRequest {
            success: vec![wire::RequestOp { request: Some(request) }],
            ..wire::TxnRequest::default()
        };
        self.client().txn(request).await.unwrap()
    }

    /// Writes as somebody else.
    pub async fn put(&self, key: &str, value: &str) {
        self.change(wire::Request::Put(wire::PutRequest {
            key: key.as_bytes().to_vec(),
            value: Bytes::copy_from_slice(value.as_bytes()),
            lease: 0,
        }))
        .await;
    }

    /// Deletes all keys with a prefix in one transaction, as somebody else.
    pub async fn delete_all(&self, prefix: &str) {
        let range = wire::RangeRequest {
            key: prefix.as_bytes().to_vec(),
            range_end: super::mirror::range_end(prefix.as_bytes()),
            keys_only: true,
            ..wire::RangeRequest::default()
        };
        let found = self.client().range(range).await.unwrap();
        let delete = |kv: wire::KeyValue| {
            wire::Request::DeleteRange(wire::DeleteRangeRequest {
                key: kv.key.to_vec(),
                prev_kv: false,
            })
        };
        let success = found.kvs.into_iter().map(|kv| wire::RequestOp {
            request: Some(delete(kv)),
        });
        let request = wire::TxnRequest {
            success: success.collect(),
            ..wire::TxnRequest::default()
        };
        self.client().txn(request).await.unwrap();
    }

    /// What stands at a key.
    pub async fn get(&self, key: &str) -> String {
        String::from_utf8(self.get_bytes(key).await).unwrap()
    }

    /// What stands at a key, of any form; empty if there is nothing.
    pub async fn get_bytes(&self, key: &str) -> Vec<u8> {
        let request = wire::RangeRequest {
            key: key.as_bytes().to_vec(),
            ..wire::RangeRequest::default()
        };
        let found = self.client().range(request).await.unwrap();
        found.kvs.first().map(|own| own.value.to_vec()).unwrap_or_default()
    }

    /// A way to it that can be closed.
    pub async fn gate(&self) -> Gate {
        let listener = Listener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let target = self.url.trim_start_matches("http://").to_owned();
        let (open, opened) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (target, mut opened) = (target.clone(), opened.clone());
                tokio::spawn(async move {
                    if !*opened.borrow_and_update() {
                        return;
                    }
                    let mut server = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                        _ = opened.wait_for(|open| !open) => {}
                    }
                });
            }
        });
        Gate { url, open }
    }
}

fn run(program: &Path, arguments: &[String]) -> io::Result<Child> {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // it may have ended
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A way to etcd that can be closed: connections through it end then.
pub struct Gate {
    /// Its address.
    pub url: String,
    open: watch::Sender<bool>,
}

impl Gate {
    /// Ends all connections, and all that are made from now on.
    pub async fn close(&self) {
        self.open.send_replace(false);
    }

    /// Lets connections through again.
    pub async fn open(&self) {
        self.open.send_replace(true);
    }
}
