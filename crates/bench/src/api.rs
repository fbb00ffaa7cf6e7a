//! `bench api`: the same load on our API server and on the real kube-apiserver with etcd, in one run, printed as ratios.
//!
//! Both keep every acknowledged write on disk, both are reached by TLS from this process. Ours is the garden of a `gardener up` without shoots:
//! all components of a landscape run beside it. The real one is built and run by the conformance crate, and needs Go the first time.
//! [`load`] sends the requests, [`fanout`] watches.

mod fanout;
mod load;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use gardener_conformance::reference::{self, Reference};
use kube::Client;
use tokio::time::Instant;

use crate::Figure;
use crate::landscape::Landscape;
use crate::process;
use fanout::Lag;
use load::{Load, Outcome, Verb};

/// Arguments of `bench api`.
#[derive(Args)]
pub struct Arguments {
    /// How many ConfigMaps there are.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(16..))]
    objects: u32,
    /// How many requests of each other kind are sent.
    #[arg(long, default_value_t = 5_000)]
    requests: u32,
    /// How many clients send them.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    workers: u32,
    /// How many clients watch.
    #[arg(long, default_value_t = 100)]
    watchers: u32,
    /// How many changes a second they watch.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    changes: u32,
    /// Where the real kube-apiserver and etcd are, or are built to [default: a folder of this user's cache].
    #[arg(long)]
    programs: Option<PathBuf>,
    /// Measure ours alone.
    #[arg(long)]
    alone: bool,
}

/// What was measured on one server.
struct Measured {
    loads: Vec<(Verb, Outcome)>,
    lists: Vec<(&'static str, Duration)>,
    lag: Lag,
}

/// Measures ours, then the other.
pub async fn measure(binary: &Path, arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let mut landscape = Landscape::spawn(binary, None)?;
    let client = landscape.client().await?;
    landscape.prepared(&client).await?;
    let config = landscape.config().await?;
    let ours = on_server(&Server::new(config, vec![landscape.pid()?]), arguments).await?;
    landscape.kill().await?;
    let theirs = match arguments.alone {
        true => None,
        false => {
            let programs = arguments.programs.clone().unwrap_or_else(reference::default_folder);
            reference::build(&programs).await?;
            let reference = Reference::start(&programs).await?;
            let server = Server::new(reference.config.clone(), reference.pids()?);
            Some(on_server(&server, arguments).await?)
        }
    };
    Ok(figures(&ours, theirs.as_ref()))
}

/// A server under load.
pub struct Server {
    config: kube::Config,
    pids: Vec<u32>,
}

impl Server {
    fn new(config: kube::Config, pids: Vec<u32>) -> Self {
        Self { config, pids }
    }

    /// A client with connections of its own.
    pub fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::try_from(self.config.clone())?)
    }

    /// Processor time that its processes have taken, in seconds.
    fn processor_time(&self) -> anyhow::Result<f64> {
        self.pids.iter().map(|pid| process::processor_time(*pid)).sum()
    }

    fn memory(&self) -> anyhow::Result<f64> {
        self.pids.iter().map(|pid| process::memory(*pid)).sum()
    }
}

async fn on_server(server: &Server, arguments: &Arguments) -> anyhow::Result<Measured> {
    let client = server.client()?;
    load::namespace(&client).await?;
    let mut loads = Vec::new();
    for verb in Verb::ALL {
        let requests = match verb {
            Verb::Create => arguments.objects,
            _ => arguments.requests,
        };
        let load = Load {
            verb,
            requests,
            objects: arguments.objects,
            workers: arguments.workers,
        };
        let before = server.processor_time()?;
        let mut outcome = load.run(server).await.with_context(|| format!("{verb:?}"))?;
        outcome.processor_time = server.processor_time()? - before;
        loads.push((verb, outcome));
    }
    let mut lists = Vec::new();
    for (name, accept) in load::LISTS {
        let mut taken = Vec::new();
        for _ in 0..7 {
            let started = Instant::now();
            load::list(&client, accept).await?;
            taken.push(started.elapsed());
        }
        taken.sort();
        lists.push((name, taken.get(taken.len() / 2).copied().unwrap_or_default()));
    }
    let lag = fanout::measure(server, arguments.watchers, arguments.changes).await?;
    Ok(Measured { loads, lists, lag })
}

fn figures(ours: &Measured, theirs: Option<&Measured>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut row = |name: String, unit: &str, ours: f64, theirs: Option<f64>, more_is_better: bool| {
        let value = match theirs {
            Some(theirs) => {
                let ratio = if more_is_better { ours / theirs } else { theirs / ours };
                format!("{ours:>9.1} {unit:<11} theirs {theirs:>9.1} {unit:<11} {ratio:>6.1} times better")
            }
            None => format!("{ours:>9.1} {unit}"),
        };
        figures.push(Figure::new(name, value));
    };
    for (index, (verb, outcome)) in ours.loads.iter().enumerate() {
        let other = theirs
            .and_then(|theirs| theirs.loads.get(index))
            .map(|(_, outcome)| outcome);
        let name = verb.name();
        row(
            format!("{name}, rate"),
            "/s",
            outcome.rate(),
            other.map(Outcome::rate),
            true,
        );
        row(
            format!("{name}, per second of processor"),
            "/cpu s",
            outcome.per_processor_second(),
            other.map(Outcome::per_processor_second),
            true,
        );
        row(
            format!("{name}, 99 % within"),
            "ms",
            outcome.within(0.99),
            other.map(|outcome| outcome.within(0.99)),
            false,
        );
    }
    let milliseconds = |taken: Duration| taken.as_secs_f64() * 1000.0;
    for (index, (name, taken)) in ours.lists.iter().enumerate() {
        let other = theirs.and_then(|theirs| theirs.lists.get(index));
        row(
            format!("list of all as {name}, median"),
            "ms",
            milliseconds(*taken),
            other.map(|(_, taken)| milliseconds(*taken)),
            false,
        );
    }
    row(
        "watch lag, 99 % within".to_owned(),
        "ms",
        ours.lag.within(0.99),
        theirs.map(|theirs| theirs.lag.within(0.99)),
        false,
    );
    row(
        "changes watched".to_owned(),
        "/s",
        ours.lag.rate,
        theirs.map(|theirs| theirs.lag.rate),
        true,
    );
    row(
        "resident memory with objects and watchers".to_owned(),
        "MiB",
        ours.lag.memory,
        theirs.map(|theirs| theirs.lag.memory),
        false,
    );
    figures
}

/// The value below which a share of the sorted `values` is.
fn quantile(values: &[f64], share: f64) -> f64 {
    let last = values.len().saturating_sub(1);
    let at = (last as f64 * share).round() as usize;
    values.get(at.min(last)).copied().unwrap_or_default()
}
