//! `conformance record`: asks the real kube-apiserver what the sequences ask, and writes down what it answers.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use gardener_conformance::reference::{self, Reference};
use gardener_conformance::webhook::Webhook;
use gardener_conformance::{player, sequence};

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
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Command::Record { topics, programs } = Cli::parse().command;
    let programs = programs.unwrap_or_else(reference::default_folder);
    reference::build(&programs).await?;
    let reference = Reference::start(&programs).await?;
    let webhook = Webhook::serve().await?;
    // one sequence that cannot be played does not keep others from being recorded
    let mut failed = Vec::new();
    for topic in sequence::topics()? {
        if !topics.is_empty() && !topics.contains(&topic.name) {
            continue;
        }
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
