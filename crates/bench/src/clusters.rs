//! `bench clusters`: what a logical cluster costs in which nobody does anything, how long it takes to open one, and how many one process holds.
//! Opens them in this process, as the kube-apiserver of a shoot is opened in a landscape, in a store on disk.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apiserver::authn::Settings;
use gardener_apiserver::tokens::SigningKey;
use gardener_apiserver::{ALL_CLUSTERS, Server, Shared, UserInfo};
use gardener_cluster::{Config, Participants, Role};
use gardener_landscape::embedded::EmbeddedKubernetes;
use gardener_landscape::{Storage, kubernetes_service};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::Figure;
use crate::process::memory;

/// Time without a write after which nothing is expected any more.
const QUIET: Duration = Duration::from_secs(3);

/// Arguments of `bench clusters`.
#[derive(Args)]
pub struct Arguments {
    /// How many clusters there are.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clusters: u32,
}

/// Opens one after the other.
pub async fn measure(arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let dir = tempfile::tempdir()?;
    let server = Server::new(Shared {
        store: Storage::Disk(dir.path().to_owned()).open()?,
        clock: Clock::system(),
        chance: Chance::from_system(),
    });
    let kubernetes = EmbeddedKubernetes::load()?;
    server.open(ALL_CLUSTERS, kubernetes.config("1.36.0", Settings::default()));
    let (participants, stop) = (Participants::default(), CancellationToken::new());
    let controllers = tokio::spawn(gardener_cluster::run(
        Config::new(server.clone(), participants.clone()),
        stop.clone(),
    ));
    let join = |name: &str| {
        participants.join(name, Role::ControllerManager);
        participants.join(name, Role::Scheduler);
    };
    // what all of them share is there after the first one
    open(&server, &kubernetes, "first").await?;
    join("first");
    settle(&server).await;
    let before = memory(std::process::id())?;
    let names: Vec<String> = (0..arguments.clusters)
        .map(|number| format!("shoot--bench--{number}"))
        .collect();
    let mut taken = Vec::new();
    for name in &names {
        let began = Instant::now();
        open(&server, &kubernetes, name).await?;
        taken.push(began.elapsed());
    }
    let open = memory(std::process::id())?;
    names.iter().for_each(|name| join(name));
    settle(&server).await;
    let joined = memory(std::process::id())?;
    stop.cancel();
    controllers.await?;
    taken.sort();
    let milliseconds = |time: Option<&Duration>| {
        let time = time.copied().unwrap_or_default();
        format!("{:.1} ms", time.as_secs_f64() * 1000.0)
    };
    let of_one = |mebibytes: f64| {
        let kilobytes = mebibytes * 1024.0 * 1024.0 / 1000.0;
        format!("{:.0} kB", kilobytes / f64::from(arguments.clusters))
    };
    Ok(vec![
        Figure::new("clusters in one process", arguments.clusters),
        Figure::new("opening one, median", milliseconds(taken.get(taken.len() / 2))),
        Figure::new("opening one, slowest", milliseconds(taken.last())),
        Figure::new("memory of one", of_one(open - before)),
        Figure::new("memory of one in which the controllers act", of_one(joined - before)),
    ])
}

/// Opens a cluster, with keys of its own and the service `kubernetes`.
async fn open(server: &Server, kubernetes: &EmbeddedKubernetes, name: &str) -> anyhow::Result<()> {
    let issuer = format!("https://{name}.example.com");
    let signer = SigningKey::from_pem(&SigningKey::generate_pem().context("a key for tokens")?)?;
    let settings = Settings {
        signer: Some(Arc::new(signer)),
        audiences: vec![issuer.clone()],
        issuer,
        bootstrap_tokens: true,
        ..Settings::default()
    };
    kubernetes.open(server, name, "1.36.0", settings).await?;
    let client = server.client(name, UserInfo::apiserver());
    let ranges = ["10.4.0.0/16".to_owned()];
    kubernetes_service::provide(&client, &ranges, None, &server.shared().clock).await?;
    Ok(())
}

/// Waits until nothing is written any more.
async fn settle(server: &Server) {
    let store = &server.shared().store;
    let mut revision = 0;
    while revision != store.revision() {
        revision = store.revision();
        sleep(QUIET).await;
    }
}
