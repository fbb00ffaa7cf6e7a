//! `gardener run controller-manager`: its command line, its configuration file, and the way to its garden.

use std::path::{Path, PathBuf};

use clap::Args;
use gardener_controller_manager::configuration::{self, ControllerManagerConfiguration};
use gardener_controller_manager::program::{self, ProgramError};
use gardener_kube_apiserver::flags::line::Others;
use gardener_kube_apiserver::flags::{FlagError, Program};
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tokio_util::sync::CancellationToken;

use super::Log;

/// The flags.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
struct Flags {
    /// Path of a configuration file: ControllerManagerConfiguration of controllermanager.config.gardener.cloud/v1alpha1 [default: all as by default].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Kubeconfig of the garden [default: $KUBECONFIG, else that of the configuration file, else that of the pod].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

const PROGRAM: Program = Program {
    name: "gardener run controller-manager",
    about: "Runs the controllers of a garden: those of gardener-controller-manager. Of several replicas one works.",
    version: || format!("Gardener v{}", env!("CARGO_PKG_VERSION")),
    others: &Others {
        switches: &[],
        values: &[],
        refused: &[],
    },
};

/// What was asked for.
pub struct Setup {
    flags: Flags,
    configuration: ControllerManagerConfiguration,
    without_effect: Vec<&'static str>,
}

/// Why the controllers do not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A kubeconfig cannot be used.
    #[error("the garden's kubeconfig {} cannot be used: {source}", path.display())]
    Kubeconfig {
        /// Which.
        path: PathBuf,
        /// Why.
        source: KubeconfigError,
    },
    /// There is no kubeconfig, and this is no pod.
    #[error("no kubeconfig of a garden: give --kubeconfig: {0}")]
    NoGarden(InferConfigError),
    /// There is no client of the garden.
    #[error("the garden cannot be reached: {0}")]
    Client(#[from] kube::Error),
    /// The program does not start.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// Reads the arguments behind the program's name, and the file that they name.
///
/// # Errors
/// [`FlagError`].
pub fn read(arguments: impl IntoIterator<Item = String>) -> Result<Setup, FlagError> {
    let line = PROGRAM.parse(PROGRAM.command::<Flags>(), arguments, |_: &Flags| Vec::new())?;
    let flags = line.flags;
    let (configuration, without_effect) = match &flags.config {
        Some(path) => read_file(path).map_err(|why| FlagError::Invalid(vec![why]))?,
        None => {
            // who gives no file reads the log himself
            let log_format = "text".to_owned();
            let configuration = ControllerManagerConfiguration {
                log_format,
                ..ControllerManagerConfiguration::default()
            };
            (configuration, Vec::new())
        }
    };
    Ok(Setup {
        flags,
        configuration,
        without_effect,
    })
}

fn read_file(path: &Path) -> Result<(ControllerManagerConfiguration, Vec<&'static str>), String> {
    let told = |error: &dyn std::fmt::Display| format!("--config {}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| told(&error))?;
    configuration::read(&text).map_err(|error| told(&error))
}

impl Setup {
    /// How it logs.
    pub(super) fn log(&self) -> Log {
        Log {
            filter: match self.configuration.log_level.as_str() {
                "debug" => "debug",
                "error" => "error",
                _ => "info",
            },
            json: self.configuration.log_format == "json",
        }
    }

    /// Runs until `stop`.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        for field in &self.without_effect {
            tracing::warn!(field, "this field of the configuration has no effect");
        }
        let garden = self.garden().await?;
        program::run(self.configuration, garden, &host(), stop).await?;
        Ok(())
    }

    /// The way to the garden.
    async fn garden(&self) -> Result<Client, RunError> {
        let own = Some(&self.configuration.garden_client_connection.kubeconfig);
        let own = own.filter(|path| !path.is_empty()).map(PathBuf::from);
        let from_environment = std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty());
        let path = self
            .flags
            .kubeconfig
            .clone()
            .or(from_environment.map(PathBuf::from))
            .or(own);
        let config = match path {
            Some(path) => {
                let told = |source| RunError::Kubeconfig {
                    path: path.clone(),
                    source,
                };
                let kubeconfig = Kubeconfig::read_from(&path).map_err(told)?;
                let options = KubeConfigOptions::default();
                Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .map_err(told)?
            }
            None => Config::infer().await.map_err(RunError::NoGarden)?,
        };
        Ok(Client::try_from(config)?)
    }
}

/// The name of this machine.
fn host() -> String {
    let name = hostname::get().unwrap_or_default();
    match name.to_string_lossy().as_ref() {
        "" => "gardener-controller-manager".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            format!("--config={}", path.display())
        };
        let head =
            "apiVersion: controllermanager.config.gardener.cloud/v1alpha1\nkind: ControllerManagerConfiguration\n";
        let log = |arguments: &[String]| {
            let setup = read(arguments.iter().cloned()).unwrap_or_else(|error| panic!("{error}"));
            let log = setup.log();
            (log.filter, log.json, setup.without_effect)
        };
        assert_eq!(log(&[]), ("info", false, vec![]));
        let good = file(
            "good",
            &format!("{head}logLevel: debug\ngardenClientConnection: {{qps: 1}}"),
        );
        assert_eq!(log(&[good]), ("debug", true, vec!["gardenClientConnection.qps"]));
        let wrong = file("wrong", &format!("{head}controllers: {{bastions: {{}}}}"));
        for (argument, expected) in [
            (
                wrong,
                "wrong: strict decoding error: unknown field \"controllers.bastions\"",
            ),
            ("--config=/nowhere".to_owned(), "--config /nowhere: No such file"),
            ("--master=x".to_owned(), "--master"),
        ] {
            let error = read([argument]).map(drop).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
