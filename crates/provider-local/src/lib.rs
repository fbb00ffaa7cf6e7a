//! provider-local: the extension for local landscapes. Written on the `extension` library, and talks only to the seed.
//!
//! There is no infrastructure under it: networks, DNS and buckets exist as their objects say, machines are pods of the seed.
#![forbid(unsafe_code)]

mod backup;
mod bastion;
pub mod cloud_config;
mod container_runtime;
mod control_plane;
mod dns_record;
mod infrastructure;
pub mod machine_driver;
mod network;
mod operating_system_config;
mod worker;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_extension::{Context, Options, heartbeat};
use kube::Client;
use tokio_util::sync::CancellationToken;

/// The type of everything this extension is responsible for.
pub const TYPE: &str = "local";
/// Network types that need nothing but their object here.
pub const NETWORK_TYPES: [&str; 2] = ["calico", TYPE];
/// The name of the extension, in its heartbeat.
pub const NAME: &str = "provider-local";

/// How provider-local runs.
#[derive(Clone)]
pub struct Config {
    /// The seed.
    pub client: Client,
    /// The namespace of the extension's installation, where the heartbeat is. None: no heartbeat is shown.
    pub namespace: Option<String>,
    /// What time it is.
    pub clock: Clock,
    /// Names and keys.
    pub chance: Chance,
}

fn options(types: &[&str]) -> Options {
    Options {
        classes: ["shoot", "seed", "garden"].map(str::to_owned).to_vec(),
        ..Options::for_types(types)
    }
}

/// Runs the controllers of all kinds until `stop`.
pub async fn run(config: Config, stop: CancellationToken) {
    let context = Context {
        client: config.client.clone(),
        clock: config.clock.clone(),
        chance: config.chance.clone(),
    };
    macro_rules! controller {
        ($types:expr, $actuator:expr) => {
            gardener_extension::run(context.clone(), options($types), $actuator, stop.clone())
        };
    }
    let beating = async {
        if let Some(namespace) = &config.namespace {
            heartbeat::run(
                config.client.clone(),
                config.clock.clone(),
                namespace,
                NAME,
                stop.clone(),
            )
            .await;
        }
    };
    tokio::join!(
        beating,
        controller!(&[TYPE], infrastructure::Local),
        controller!(&[TYPE], control_plane::Local),
        controller!(&NETWORK_TYPES, network::Local),
        controller!(&[TYPE], operating_system_config::Local),
        controller!(&[TYPE], dns_record::Local),
        controller!(&[TYPE], backup::Bucket),
        controller!(&[TYPE], backup::Entry),
        controller!(&[TYPE], container_runtime::Local),
        controller!(&[TYPE], bastion::Local),
        controller!(&[TYPE], worker::Local),
    );
}

#[cfg(test)]
mod tests;
