//! `gardener up`: a whole landscape in one process, in the foreground, until Ctrl-C.

/// Prints a line. A reader that closed the pipe, such as `head`, does not end the landscape.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod progress;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, ValueEnum};
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_landscape::kubeconfig::write_private;
use gardener_landscape::{Landscape, Options, Storage, apply, manifests};
use tokio::net::TcpListener;

use crate::program::{self, quoted};
use progress::Progress;

/// Arguments of `gardener up`.
#[derive(Args)]
pub struct Arguments {
    /// Where the landscape's data is kept [default: $XDG_DATA_HOME/gardener or ~/.local/share/gardener].
    #[arg(long, conflicts_with = "memory")]
    data_dir: Option<PathBuf>,
    /// Keep everything in memory: nothing is written to disk but the kubeconfig.
    #[arg(long)]
    memory: bool,
    /// Address and port of the one listener; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// How many embedded seeds to run.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    seeds: u32,
    /// Apply a manifest, or every manifest of a folder, once the landscape is ready. May be given several times.
    #[arg(long, value_name = "PATH")]
    apply: Vec<PathBuf>,
    /// Do not create the first shoot.
    #[arg(long)]
    no_shoot: bool,
    /// Where to write the garden's kubeconfig [default: kubeconfig in the data directory].
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// How to show progress.
    #[arg(long, short, value_enum, default_value_t = Output::Auto)]
    output: Output,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Live on a terminal, lines otherwise.
    Auto,
    /// A line per change.
    Plain,
    /// A JSON object per line.
    Json,
}

/// The folder in which `gardener up` keeps its data when none is given.
fn default_data_dir() -> PathBuf {
    let home = || std::env::var_os("HOME").map_or_else(|| PathBuf::from("."), PathBuf::from);
    std::env::var_os("XDG_DATA_HOME")
        .map_or_else(|| home().join(".local/share"), PathBuf::from)
        .join("gardener")
}

/// The kubeconfig that `gardener up` writes when none is named.
pub fn default_kubeconfig() -> PathBuf {
    default_data_dir().join("kubeconfig")
}

/// Runs the command.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let for_people = arguments.output != Output::Json;
    let wanted = wanted(&arguments)?;
    let data_dir = arguments.data_dir.clone().unwrap_or_else(default_data_dir);
    let storage = if arguments.memory {
        Storage::Memory
    } else {
        Storage::Disk(data_dir.clone())
    };
    let store = storage.open()?;
    let listener = TcpListener::bind(arguments.listen).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "port {} of {} is taken by another program: stop it, or choose another port with --listen {}:0 (a free one)",
            arguments.listen.port(),
            arguments.listen.ip(),
            arguments.listen.ip()
        ),
        _ => anyhow::anyhow!("cannot listen on {}: {error}; choose another address with --listen ADDRESS:PORT", arguments.listen),
    })?;
    let entry = listener.local_addr()?;
    let kubeconfig_path = arguments.kubeconfig.clone().unwrap_or_else(|| {
        if arguments.memory {
            default_kubeconfig()
        } else {
            data_dir.join("kubeconfig")
        }
    });
    let chance = Chance::from_system();
    let options = Options {
        store,
        clock: Clock::system(),
        chance,
        entry: Some(entry),
        seeds: arguments.seeds,
    };
    let landscape = Landscape::open(options).await?;
    landscape.listen(listener);
    let kubeconfig = serde_saphyr::to_string(&landscape.garden_kubeconfig()?)?;
    write_private(&kubeconfig_path, &kubeconfig)?;
    let mut progress = Progress::new(arguments.output);
    progress.note(&format!(
        "garden: {} answers, kubeconfig {}",
        landscape.url(),
        kubeconfig_path.display()
    ));
    let outcome = tokio::select! {
        outcome = work(&arguments, &wanted, &landscape, &mut progress) => outcome,
        signal = stop_signal() => signal.map(|()| false),
    };
    match outcome {
        Ok(true) => {
            if for_people {
                say!("{}", summary(&arguments, &landscape, &kubeconfig_path, &data_dir));
            } else {
                progress.ready(&landscape.url(), &kubeconfig_path);
            }
            stop_signal().await?;
        }
        Ok(false) => {}
        Err(error) => {
            landscape.stop().await;
            return Err(error);
        }
    }
    progress.note("stopping");
    landscape.stop().await;
    Ok(())
}

/// What is applied when the landscape runs: the first shoot, unless it is not wanted, and what the arguments name.
/// Read before anything starts, so that a wrong path is told at once.
fn wanted(arguments: &Arguments) -> anyhow::Result<Vec<apply::Manifest>> {
    let mut wanted = Vec::new();
    if !arguments.no_shoot {
        wanted.push(manifests::shoot());
    }
    for path in &arguments.apply {
        if !path.exists() {
            bail!("--apply {}: there is no such file or folder", path.display());
        }
        wanted.extend(apply::read(path)?);
    }
    Ok(wanted)
}

/// Sets the landscape up and waits until what was applied is ready.
async fn work(
    arguments: &Arguments,
    wanted: &[apply::Manifest],
    landscape: &Landscape,
    progress: &mut Progress,
) -> anyhow::Result<bool> {
    landscape.run().await?;
    progress.note("components: running");
    let client = landscape.garden_client();
    apply_all(&client, &manifests::landscape(arguments.seeds), progress).await?;
    progress.watch_seeds(&client).await?;
    apply_all(&client, wanted, progress).await?;
    progress.watch(&client).await?;
    Ok(true)
}

async fn apply_all(client: &kube::Client, manifests: &[apply::Manifest], progress: &Progress) -> anyhow::Result<()> {
    for manifest in manifests {
        for applied in apply::apply(client, manifest).await? {
            progress.applied(&applied);
        }
    }
    Ok(())
}

fn summary(arguments: &Arguments, landscape: &Landscape, kubeconfig: &Path, data_dir: &Path) -> String {
    let data = if arguments.memory {
        "in memory: it is gone when this process ends".to_owned()
    } else {
        data_dir.display().to_string()
    };
    let (shown, gardener) = (quoted(kubeconfig), program::name());
    let plain = kubeconfig.display();
    let seeds = manifests::seed_names(arguments.seeds);
    let (look, kind, name) = match (arguments.no_shoot, seeds.first()) {
        (true, Some(seed)) => ("seeds,cloudprofiles,projects", "seed", seed.as_str()),
        _ => ("shoots -A -o wide", "shoot", "garden-local/local"),
    };
    let seeds = seeds.join(", ");
    let url = landscape.url();
    format!(
        "
The landscape is up at {url}.
  runs        garden, seeds ({seeds}), controller-manager, scheduler, gardenlets, provider-local, and the control planes of the shoots
  data        {data}
  kubeconfig  {plain}
  simulated   nodes and the containers on them have states, addresses and leases, but no processes and no images
              (nodes carry the label gardener.cloud/simulated=true); the APIs of garden, seeds and shoots are real

Try next:
  export KUBECONFIG={shown}
  kubectl get {look}
  {gardener} kubeconfig {kind} {name} --kubeconfig {shown} --output {kind}.yaml && kubectl --kubeconfig {kind}.yaml get nodes,pods -A

Ctrl-C stops it."
    )
}

/// Waits for Ctrl-C or SIGTERM.
pub(crate) async fn stop_signal() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
