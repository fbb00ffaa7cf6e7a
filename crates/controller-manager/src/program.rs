//! The controller-manager as a program of its own: controllers, leader election, health and metrics, from start to stop.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apimachinery::metrics::CONTENT_TYPE;
use gardener_controller::Monitor;
use gardener_controller::leader::Election;
use gardener_controller::monitor::{Answer, serve};
use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Config;
use crate::configuration::{ControllerManagerConfiguration, LeaderElection};

/// Why the program does not start.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// An address of the configuration is none.
    #[error("server.{section}.bindAddress: {address:?} is no IP address")]
    Address {
        /// Which server.
        section: &'static str,
        /// What was given.
        address: String,
    },
    /// A port cannot be had.
    #[error("server.{section}: {address} cannot be listened on: {source}")]
    Listen {
        /// Which server.
        section: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Runs the controllers on a garden until `stop`, and serves health and metrics meanwhile. `host` is by what replicas are told apart, besides chance.
///
/// # Errors
/// [`ProgramError`], at the start only.
pub async fn run(
    configuration: ControllerManagerConfiguration,
    garden: Client,
    host: &str,
    stop: CancellationToken,
) -> Result<(), ProgramError> {
    let (clock, chance, monitor) = (Clock::system(), Chance::from_system(), Monitor::default());
    let (probes, metrics) = (&configuration.server.health_probes, &configuration.server.metrics);
    let for_probes = listen("healthProbes", &probes.bind_address, probes.port).await?;
    let for_metrics = listen("metrics", &metrics.bind_address, metrics.port).await?;
    // health is told as long as there is something to tell of
    let (servers, ending) = (TaskTracker::new(), CancellationToken::new());
    let told = monitor.clone();
    servers.spawn(serve(for_probes, ending.clone(), move |path| probe(&told, path)));
    let told = monitor.clone();
    servers.spawn(serve(for_metrics, ending.clone(), move |path| {
        (path == "/metrics").then(|| Answer {
            status: http::StatusCode::OK,
            content_type: CONTENT_TYPE,
            body: told.metrics(),
        })
    }));
    let maintenance = configuration.maintenance();
    let config = Config {
        maintenance,
        election: election(&configuration.leader_election, host, &chance),
        controllers: Arc::new(configuration.controllers),
        monitor,
        ..Config::new(garden, clock, chance)
    };
    crate::run(config, stop).await;
    ending.cancel();
    servers.close();
    servers.wait().await;
    Ok(())
}

/// What a probe is answered with; each check has a path of its own, too.
fn probe(monitor: &Monitor, path: &str) -> Option<Answer> {
    Some(Answer::of_check(match path.trim_end_matches('/') {
        "/healthz" | "/healthz/informer-sync" => monitor.is_well(),
        "/healthz/ping" => Ok(()),
        "/readyz" | "/readyz/informer-sync" => monitor.is_ready(),
        _ => return None,
    }))
}

async fn listen(section: &'static str, address: &str, port: u16) -> Result<TcpListener, ProgramError> {
    let any = address.is_empty();
    let ip = match any {
        true => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        false => address.parse().map_err(|_| ProgramError::Address {
            section,
            address: address.to_owned(),
        })?,
    };
    let mut bound = TcpListener::bind((ip, port)).await;
    if any && bound.is_err() {
        // a machine without IPv6
        bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await;
    }
    bound.map_err(|source| ProgramError::Listen {
        section,
        address: SocketAddr::new(ip, port),
        source,
    })
}

/// The election that a configuration asks for; none, if this process works alone.
fn election(settings: &LeaderElection, host: &str, chance: &Chance) -> Option<Election> {
    settings.leader_elect.then(|| Election {
        namespace: settings.resource_namespace.clone(),
        name: settings.resource_name.clone(),
        identity: format!("{host}_{}", chance.uid()),
        lease_duration: settings.lease_duration.to_std(),
        renew_deadline: settings.renew_deadline.to_std(),
        retry_period: settings.retry_period.to_std(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_are_checked_before_anything_is_done() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let told = |result: Result<TcpListener, ProgramError>| result.map(drop).map_err(|error| error.to_string());
        let error = told(listen("metrics", "127.0.0.1", port).await).unwrap_err();
        assert!(
            error.starts_with(&format!("server.metrics: 127.0.0.1:{port} cannot be listened on")),
            "{error}"
        );
        let error = told(listen("healthProbes", "localhost", 0).await).unwrap_err();
        assert_eq!(error, "server.healthProbes.bindAddress: \"localhost\" is no IP address");
        assert_eq!(told(listen("metrics", "", 0).await), Ok(()));
    }

    #[test]
    fn each_replica_has_a_name_of_its_own() {
        let chance = Chance::seeded(1);
        let mut settings = LeaderElection::default();
        let (one, other) = (
            election(&settings, "h", &chance).unwrap(),
            election(&settings, "h", &chance).unwrap(),
        );
        assert!(one.identity.starts_with("h_") && one.identity != other.identity);
        assert_eq!(
            (one.namespace.as_str(), one.lease_duration.as_secs()),
            ("kube-system", 15)
        );
        settings.leader_elect = false;
        assert!(election(&settings, "h", &chance).is_none());
    }

    #[test]
    fn probes_are_named_as_upstreams() {
        let monitor = Monitor::default();
        for path in [
            "/healthz",
            "/healthz/",
            "/healthz/ping",
            "/healthz/informer-sync",
            "/readyz",
            "/readyz/informer-sync",
        ] {
            let answer = probe(&monitor, path).unwrap();
            assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, "ok"), "{path}");
        }
        assert_eq!(probe(&monitor, "/readyz/ping"), None);
        assert_eq!(probe(&monitor, "/"), None);
    }
}
