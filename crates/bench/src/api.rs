//! `bench api`: the same load on our API server and on the real kube-apiserver with etcd, in one run, printed as ratios.
//!
//! Both keep every acknowledged write on disk, both are reached by TLS from this process. Like is compared with like: ours is
//! `gardener run apiserver`, an API server and its store without controllers, as theirs is. The real one is built and run by the conformance
//! crate, and needs Go the first time.
//! [`verbs`] are the requests, [`fanout`] watches.

mod fanout;
mod verbs;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use gardener_conformance::reference::{self, Reference};

use crate::Figure;
use crate::load::{self, Outcome, Server};
use crate::restart;
use crate::running::Gardener;
use fanout::Lag;
use verbs::Verb;

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
    lists: Vec<(&'static str, f64)>,
    lag: Lag,
}

/// Measures ours, then the other.
pub async fn measure(binary: &Path, arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let mut gardener = Gardener::apiserver(binary, Some(folder.path()))?;
    gardener.client().await?;
    let config = gardener.config().await?;
    let ours = on_server(&Server::new(config, vec![gardener.pid()?]), arguments).await?;
    gardener.stop().await?;
    let (gardener, restarts) = restart::measure(binary, folder.path()).await?;
    gardener.kill().await?;
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
    let mut figures = figures(&ours, theirs.as_ref());
    figures.extend(restarts);
    Ok(figures)
}

async fn on_server(server: &Server, arguments: &Arguments) -> anyhow::Result<Measured> {
    let client = server.client()?;
    verbs::namespace(&client).await?;
    let mut loads = Vec::new();
    for verb in Verb::ALL {
        let requests = match verb {
            Verb::Create => arguments.objects,
            _ => arguments.requests,
        };
        let objects = arguments.objects;
        let outcome = load::run(server, arguments.workers, requests, move |number| {
            verb.request(number, objects)
        })
        .await
        .with_context(|| format!("{verb:?}"))?;
        loads.push((verb, outcome));
    }
    let mut lists = Vec::new();
    for (name, accept) in load::LISTS {
        let taken = load::median(7, async || load::list(&client, verbs::PATH, accept).await).await?;
        lists.push((name, taken));
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
    for (index, (name, taken)) in ours.lists.iter().enumerate() {
        let other = theirs.and_then(|theirs| theirs.lists.get(index));
        row(
            format!("list of all as {name}, median"),
            "ms",
            *taken,
            other.map(|(_, taken)| *taken),
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
