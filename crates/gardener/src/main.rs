//! The `gardener` command: reads the command line and puts the parts together. Nothing else lives here.
#![forbid(unsafe_code)]

/// Half of what an API server does is taking and giving back memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod forecast;
mod garden;
mod kubeconfig;
mod program;
mod run;
mod up;
mod versions;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs Kubernetes clusters as a service.
#[derive(Parser)]
#[command(name = "gardener", version, about, propagate_version = true)]
struct Cli {
    /// What to log, e.g. `info` or `gardener_gardenlet=debug`; goes to standard error.
    #[arg(long, global = true, env = "GARDENER_LOG", default_value = "error")]
    log: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a whole landscape in this process: garden, seeds and shoots.
    Up(up::Arguments),
    /// Run one component by itself, with the flags of the one it stands for.
    #[command(subcommand)]
    Run(run::Component),
    /// Write a kubeconfig for a shoot or a seed.
    #[command(subcommand)]
    Kubeconfig(kubeconfig::Target),
    /// List the versions of cloud profiles, and how many shoots use each.
    Versions(versions::Arguments),
    /// Tell what maintenance will do to which shoot, and when. Reads a garden or manifests, and writes nothing.
    Forecast(forecast::Arguments),
}

fn main() -> ExitCode {
    if let Some(component) = run::Component::called_by_name() {
        return component.run();
    }
    let cli = Cli::parse();
    let work = match cli.command {
        Command::Run(component) => return component.run(),
        Command::Up(arguments) => Work::Up(arguments),
        Command::Kubeconfig(target) => Work::Kubeconfig(target),
        Command::Versions(arguments) => Work::Versions(arguments),
        Command::Forecast(arguments) => Work::Forecast(arguments),
    };
    if let Err(error) = log(&cli.log, false) {
        eprintln!("error: --log {:?} is no log filter: {error}", cli.log);
        return ExitCode::from(2);
    }
    in_runtime(async {
        match work {
            Work::Up(arguments) => up::run(arguments).await,
            Work::Kubeconfig(target) => kubeconfig::run(target).await,
            Work::Versions(arguments) => versions::run(arguments).await,
            Work::Forecast(arguments) => forecast::run(arguments).await,
        }
    })
}

/// What is done with the landscape.
enum Work {
    Up(up::Arguments),
    Kubeconfig(kubeconfig::Target),
    Versions(versions::Arguments),
    Forecast(forecast::Arguments),
}

/// Writes logs to standard error from now on: lines for people, or a JSON object each.
fn log(filter: &str, json: bool) -> Result<(), tracing_subscriber::filter::ParseError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_new(filter)?)
        .with_ansi(!json && std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(std::io::stderr);
    match json {
        true => builder.json().init(),
        false => builder.init(),
    }
    Ok(())
}

fn in_runtime(work: impl Future<Output = anyhow::Result<()>> + Send + 'static) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the runtime cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    // On a thread that goes on working: what starting has taken and given back stays with its thread, for what is taken there next.
    let work = runtime.spawn(work);
    let result = match runtime.block_on(work) {
        Ok(result) => result,
        Err(failure) => match failure.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(failure) => Err(failure.into()),
        },
    };
    // background threads of libraries must not keep an ended program alive
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", words(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes; causes whose words the error already tells are left out.
fn words(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
