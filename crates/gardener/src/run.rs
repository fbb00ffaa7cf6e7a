//! `gardener run <component>`: one component by itself. A link to the program by a component's name runs that component.

mod controller_manager;

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use gardener_garden_server::{aggregated, whole};
use gardener_kube_apiserver::flags::{self, FlagError};
use tokio_util::sync::CancellationToken;

/// The components that run by themselves.
#[derive(Subcommand)]
pub enum Component {
    /// Serve the Kubernetes API of one cluster from etcd.
    #[command(disable_help_flag = true)]
    KubeApiserver(Line),
    /// Serve Gardener's APIs behind a kube-apiserver, from etcd.
    #[command(disable_help_flag = true)]
    GardenerApiserver(Line),
    /// Serve a whole garden API: Gardener's kinds and those of Kubernetes that a garden needs, without controllers.
    #[command(disable_help_flag = true)]
    Apiserver(Line),
    /// Run the controllers of a garden: gardener-controller-manager's.
    #[command(disable_help_flag = true)]
    ControllerManager(Line),
}

/// The command line of a component that reads it itself.
#[derive(Args)]
pub struct Line {
    /// Flags of the component; `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    arguments: Vec<String>,
}

/// How a component logs.
struct Log {
    filter: &'static str,
    json: bool,
}

impl Component {
    /// The component that the program was called by the name of.
    pub fn called_by_name() -> Option<Self> {
        let mut arguments = std::env::args_os();
        let program = arguments.next()?;
        let component = match Path::new(&program).file_name()?.to_str()? {
            "kube-apiserver" => Self::KubeApiserver,
            "gardener-apiserver" => Self::GardenerApiserver,
            "gardener-controller-manager" => Self::ControllerManager,
            _ => return None,
        };
        let arguments = arguments
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        Some(component(Line { arguments }))
    }

    /// Runs until it is told to end.
    pub fn run(self) -> ExitCode {
        let run = match self {
            Self::KubeApiserver(Line { arguments }) => flags::parse(arguments).map(|flags| {
                let log = Log {
                    filter: flags.log_level(),
                    json: false,
                };
                until_told(log, |stop| gardener_kube_apiserver::run(flags, stop))
            }),
            Self::GardenerApiserver(Line { arguments }) => {
                aggregated::flags::parse(arguments).map(|(flags, without_effect)| {
                    let log = Log {
                        filter: flags.log_filter(),
                        json: flags.log_format == "json",
                    };
                    until_told(log, |stop| aggregated::run(flags, without_effect, stop))
                })
            }
            Self::Apiserver(Line { arguments }) => whole::flags::parse(arguments).map(|flags| {
                let log = Log {
                    filter: flags.log_filter(),
                    json: false,
                };
                until_told(log, |stop| whole::run(flags, stop))
            }),
            Self::ControllerManager(Line { arguments }) => controller_manager::read(arguments).map(|setup| {
                let log = setup.log();
                until_told(log, |stop| setup.run(stop))
            }),
        };
        run.unwrap_or_else(|error| refused(&error))
    }
}

/// Says why a command line is not followed, or what it asks for.
fn refused(error: &FlagError) -> ExitCode {
    match error {
        FlagError::Command(told) => {
            let _ = told.print();
            ExitCode::from(u8::from(told.use_stderr()))
        }
        FlagError::Version(version) => {
            println!("{version}");
            ExitCode::SUCCESS
        }
        FlagError::Invalid(_) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a component until a signal tells it to end.
fn until_told<F, E>(log: Log, component: impl FnOnce(CancellationToken) -> F + Send + 'static) -> ExitCode
where
    F: Future<Output = Result<(), E>> + Send,
    E: std::error::Error + Send + Sync + 'static,
{
    let filter = std::env::var("GARDENER_LOG").unwrap_or_else(|_| log.filter.to_owned());
    if let Err(error) = crate::log(&filter, log.json) {
        eprintln!("error: GARDENER_LOG={filter:?} is no log filter: {error}");
        return ExitCode::FAILURE;
    }
    crate::in_runtime(async {
        let stop = CancellationToken::new();
        let told = stop.clone();
        tokio::spawn(async move {
            if let Err(error) = crate::up::stop_signal().await {
                eprintln!("error: signals cannot be heard: {error}");
            }
            told.cancel();
            // who asks twice does not want to wait
            if crate::up::stop_signal().await.is_ok() {
                std::process::exit(1);
            }
        });
        Ok(component(stop).await?)
    })
}
