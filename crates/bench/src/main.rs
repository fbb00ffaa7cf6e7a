//! `bench`: measures a `gardener` binary from outside, as its users meet it, and in this process what cannot be seen from there. Each figure is
//! printed with the command that made it.
//! What lives here: the command line and the table. The measurements are one module each; `landscape` runs the binary.
#![forbid(unsafe_code)]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod api;
mod authorizer;
mod clusters;
mod garden;
mod idle;
mod kill;
mod landscape;
mod large;
mod load;
mod many;
mod noop;
mod process;
mod ready;
mod restart;
mod running;
mod startup;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures a gardener binary.
#[derive(Parser)]
#[command(name = "bench", version, about)]
struct Cli {
    /// The binary to measure [default: `gardener` beside this program, else target/release/gardener].
    #[arg(long, global = true)]
    binary: Option<PathBuf>,
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Subcommand)]
enum Measurement {
    /// How long until a fresh garden answers.
    Startup(startup::Arguments),
    /// How long from start until the first shoot is healthy, and the most memory taken.
    Ready,
    /// How long many shoots take, and the most memory taken.
    Many(many::Arguments),
    /// What a reconciliation of a healthy shoot writes when nothing is to do.
    Noop,
    /// Load on the API server, and the same on the real kube-apiserver with etcd.
    Api(api::Arguments),
    /// Load on a garden of many Shoots: creations, updates of their status, lists, memory, a restart.
    Garden(garden::Arguments),
    /// How long it takes to decide what a gardenlet may do.
    Authorizer(authorizer::Arguments),
    /// What an idle logical cluster costs, and how long it takes to open one.
    Clusters(clusters::Arguments),
    /// What writes of large objects cost, and whether they cost more than twice as much at twice the size.
    Large(large::Arguments),
    /// The processor time of a landscape that has nothing to do.
    Idle(idle::Arguments),
    /// Kills the process again and again, and looks whether anything that was acknowledged is lost.
    Kill(kill::Arguments),
}

/// One line of the table.
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// The figure with its unit.
    pub value: String,
}

impl Figure {
    /// A figure.
    pub fn new(name: impl Into<String>, value: impl ToString) -> Self {
        Self {
            name: name.into(),
            value: value.to_string(),
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = tokio::runtime::Runtime::new()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(measure(&cli)));
    match outcome {
        Ok(figures) => {
            print_table(&figures);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(cli: &Cli) -> anyhow::Result<Vec<Figure>> {
    let binary = || running::binary(cli.binary.as_deref());
    match &cli.measurement {
        Measurement::Startup(arguments) => startup::measure(&binary()?, arguments).await,
        Measurement::Ready => ready::measure(&binary()?).await,
        Measurement::Many(arguments) => many::measure(&binary()?, arguments).await,
        Measurement::Noop => noop::measure(&binary()?).await,
        Measurement::Api(arguments) => api::measure(&binary()?, arguments).await,
        Measurement::Garden(arguments) => garden::measure(&binary()?, arguments).await,
        Measurement::Authorizer(arguments) => authorizer::measure(arguments),
        Measurement::Clusters(arguments) => clusters::measure(arguments).await,
        Measurement::Large(arguments) => large::measure(&binary()?, arguments).await,
        Measurement::Idle(arguments) => idle::measure(&binary()?, arguments).await,
        Measurement::Kill(arguments) => kill::measure(&binary()?, arguments).await,
    }
}

fn print_table(figures: &[Figure]) {
    let command: Vec<String> = std::env::args().collect();
    println!("command: {}", command.join(" "));
    let width = figures.iter().map(|figure| figure.name.len()).max().unwrap_or(0);
    for figure in figures {
        println!("{:width$}  {}", figure.name, figure.value);
    }
}
