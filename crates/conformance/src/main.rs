//! `conformance record`: asks the real kube-apiserver what the sequences ask, and writes down what it answers.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use futures::{StreamExt, TryStreamExt};
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::pointer::Pointed;
use gardener_conformance::reference::{self, Reference};
use gardener_conformance::sequence::{self, Sequence, Topic};
use gardener_conformance::vary::{self, Part, Variation};
use gardener_conformance::webhook::Webhook;
use gardener_conformance::{compare, player};
use http::Request;
use kube::Client;
use kube::client::Body;

/// How many variations are played at a time: most steps wait.
const AT_ONCE: usize = 8;

/// Compares API servers with kube-apiserver.
#[derive(Parser)]
#[command(name = "conformance", about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Records kube-apiserver's answers. Builds it first, which takes some minutes the first time and needs Go.
    Record {
        /// Only these topics.
        topics: Vec<String>,
        /// Where the programs are, or are built to [default: a folder of this user's cache].
        #[arg(long)]
        programs: Option<PathBuf>,
    },
    /// Plays variations of the sequences to kube-apiserver and to another server, and tells where the answers differ.
    Vary {
        /// A folder with an `etcd` and the other server, as `kube-apiserver`: links will do.
        other: PathBuf,
        /// Only these topics.
        topics: Vec<String>,
        /// What of the requests is changed.
        #[arg(long, value_enum, default_value = "bodies")]
        part: Part,
        /// Where etcd and kube-apiserver are, or are built to [default: a folder of this user's cache].
        #[arg(long)]
        programs: Option<PathBuf>,
        /// How many variations.
        #[arg(long, default_value_t = 1000)]
        number: u64,
        /// What chance begins with: the same number makes the same variations.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Record { topics, programs } => record(&topics, programs).await,
        Command::Vary {
            other,
            topics,
            part,
            programs,
            number,
            seed,
        } => {
            let both = Both::start(&other, programs).await?;
            both.compare(&topics, part, number, &Chance::seeded(seed)).await
        }
    }
}

/// The real servers, built if they are not there.
async fn real(programs: Option<PathBuf>) -> anyhow::Result<Reference> {
    let programs = programs.unwrap_or_else(reference::default_folder);
    reference::build(&programs).await?;
    Reference::start(&programs).await
}

/// The topics with these names, or all.
fn chosen(topics: &[String]) -> anyhow::Result<Vec<Topic>> {
    let mut all = sequence::topics()?;
    all.retain(|topic| topics.is_empty() || topics.contains(&topic.name));
    Ok(all)
}

async fn record(topics: &[String], programs: Option<PathBuf>) -> anyhow::Result<()> {
    let reference = real(programs).await?;
    let webhook = Webhook::serve().await?;
    // one sequence that cannot be played does not keep others from being recorded
    let mut failed = Vec::new();
    for topic in chosen(topics)? {
        let mut recordings = Vec::with_capacity(topic.sequences.len());
        for (number, sequence) in topic.sequences.iter().enumerate() {
            let namespace = format!("{}-{number}", topic.name);
            match player::play(&reference.client, &webhook, sequence, &namespace).await {
                Ok(recording) => recordings.push(recording),
                Err(error) => failed.push(format!("{}: {error:#}", topic.name)),
            }
        }
        topic.record(&recordings)?;
        println!("{}: {} sequences", topic.name, recordings.len());
    }
    anyhow::ensure!(failed.is_empty(), "not recorded:\n{}", failed.join("\n"));
    Ok(())
}

/// kube-apiserver and the server that it is compared with.
struct Both {
    real: Reference,
    other: Reference,
    webhook: Webhook,
}

impl Both {
    async fn start(other: &Path, programs: Option<PathBuf>) -> anyhow::Result<Self> {
        Ok(Self {
            real: real(programs).await?,
            other: Reference::start(other).await?,
            webhook: Webhook::serve().await?,
        })
    }

    /// Plays so many variations to both servers, and prints those that they answer differently.
    async fn compare(&self, topics: &[String], part: Part, number: u64, chance: &Chance) -> anyhow::Result<()> {
        let topics = chosen(topics)?;
        let sequences: Vec<(&str, &Sequence)> = topics
            .iter()
            .flat_map(|topic| topic.sequences.iter().map(|sequence| (topic.name.as_str(), sequence)))
            .collect();
        // made one after the other, so that chance makes the same ones however they are played
        let variations: Vec<(u64, &str, Variation)> = (0..number)
            .filter_map(|number| {
                let (topic, sequence) = vary::pick(&sequences, chance)?;
                Some((number, *topic, vary::vary(sequence, part, chance)?))
            })
            .collect();
        let mut compared = futures::stream::iter(&variations)
            .map(|(number, topic, variation)| async move {
                let found = self.differences(&format!("vary-{number}"), &variation.sequence).await?;
                anyhow::Ok((number, topic, variation, found))
            })
            .buffer_unordered(AT_ONCE);
        let mut differ = 0;
        while let Some((number, topic, variation, found)) = compared.try_next().await? {
            if !found.is_empty() {
                differ += 1;
                let (changes, found) = (variation.changes.join("\n  "), found.join("\n    "));
                println!(
                    "{number} {topic}: {}\n  {changes}\n    {found}",
                    variation.sequence.name
                );
            }
        }
        println!("{} variations, {differ} answered differently", variations.len());
        Ok(())
    }

    /// Plays a sequence to both servers and tells where they differ.
    async fn differences(&self, namespace: &str, sequence: &Sequence) -> anyhow::Result<Vec<String>> {
        let (real, other) = tokio::join!(
            player::play(&self.real.client, &self.webhook, sequence, namespace),
            player::play(&self.other.client, &self.webhook, sequence, namespace),
        );
        let found = match (real, other) {
            (Ok(real), Ok(other)) => compare::between(sequence, &real, &other),
            // what none of the two can be asked tells nothing
            (Err(_), Err(_)) => Vec::new(),
            (Err(error), Ok(_)) => vec![format!("kube-apiserver: {error:#}")],
            (Ok(_), Err(error)) => vec![format!("the other: {error:#}")],
        };
        for server in [&self.real, &self.other] {
            tidy(&server.client, sequence, namespace).await?;
        }
        Ok(found)
    }
}

/// Deletes what a variation has made outside its namespace, for the next one to find nothing there.
async fn tidy(client: &Client, sequence: &Sequence, namespace: &str) -> anyhow::Result<()> {
    for step in &sequence.steps {
        let path = step
            .request
            .strip_prefix("POST ")
            .map(|path| path.replace("${ns}", namespace));
        let name = step.body.as_ref().and_then(|body| body.at("/metadata/name")?.as_str());
        if let (Some(path), Some(name)) = (path, name)
            && !path.contains("/namespaces/")
            && !path.contains('?')
        {
            let name = name.replace("${ns}", namespace);
            let request = Request::delete(format!("{path}/{name}")).body(Body::empty());
            // of names that are none, and what is not there, nothing is to be deleted
            let Ok(request) = request else { continue };
            client.send(request).await?;
        }
    }
    Ok(())
}
