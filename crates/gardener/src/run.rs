//! `gardener run <component>`: one component by itself. A link to the program by a component's name runs that component.

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use gardener_kube_apiserver::{FlagError, flags};
use tokio_util::sync::CancellationToken;

/// The components that run by themselves.
#[derive(Subcommand)]
pub enum Component {
    /// Serve the Kubernetes API of one cluster from etcd.
    #[command(disable_help_flag = true)]
    KubeApiserver {
        /// Flags of kube-apiserver; `--help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
        arguments: Vec<String>,
    },
}

impl Component {
    /// The component that the program was called by the name of.
    pub fn called_by_name() -> Option<Self> {
        let mut arguments = std::env::args_os();
        let name = arguments.next()?;
        (Path::new(&name).file_name()? == "kube-apiserver").then(|| Self::KubeApiserver {
            arguments: arguments
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect(),
        })
    }

    /// Runs until it is told to end.
    pub fn run(self) -> ExitCode {
        let Self::KubeApiserver { arguments } = self;
        let flags = match flags::parse(arguments) {
            Ok(flags) => flags,
            Err(FlagError::Command(told)) => {
                let _ = told.print();
                return ExitCode::from(u8::from(told.use_stderr()));
            }
            Err(version @ FlagError::Version) => {
                println!("{version}");
                return ExitCode::SUCCESS;
            }
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        };
        let filter = std::env::var("GARDENER_LOG").unwrap_or_else(|_| flags.log_level().to_owned());
        if let Err(error) = crate::log(&filter) {
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
            Ok(gardener_kube_apiserver::run(flags, stop).await?)
        })
    }
}
