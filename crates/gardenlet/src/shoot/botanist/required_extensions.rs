//! Waiting until what a shoot needs is installed in its seed, before anything is done for it [CP-24].

use std::time::Duration;

use gardener_apis::core::v1beta1::{ControllerInstallation, ControllerRegistration};
use gardener_controller::wait::{Patience, wait_for_selected};
use gardener_controller::{Read, api_error};
use gardener_rules::registrations::are_ready;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::watcher;
use tokio::time::Instant;

use super::Botanist;
use crate::controller_installation::seed_field;

/// How long is waited.
const MINUTE: Duration = Duration::from_secs(60);
/// How often it is asked anew what is registered; what is installed is followed.
const INTERVAL: Duration = Duration::from_secs(5);

impl Botanist {
    /// Waits until all extensions that the shoot needs are installed and ready.
    ///
    /// # Errors
    /// Which are not.
    pub(crate) async fn wait_for_required_extensions(&self) -> Result<(), String> {
        let deadline = Instant::now() + MINUTE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Err(why) = self.has_required_extensions(left.min(INTERVAL)).await else {
                return Ok(());
            };
            if Instant::now() >= deadline {
                return Err(format!(
                    "retry failed with context deadline exceeded, last error: {why}"
                ));
            }
            // who cannot list ends before the time is over
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn has_required_extensions(&self, timeout: Duration) -> Result<(), String> {
        let registrations: Api<ControllerRegistration> = Api::all(self.garden().clone());
        let registrations = registrations.read_list(&ListParams::default()).await;
        let registrations = registrations.map_err(|error| api_error(&error))?;
        let shoot = self.shoot();
        let domains = self.internal.iter().chain(&self.external);
        let providers: Vec<&str> = domains.map(|domain| domain.provider.as_str()).collect();
        let installations: Api<ControllerInstallation> = Api::all(self.garden().clone());
        let own = watcher::Config::default().fields(&seed_field(&self.config.seed_name));
        let patience = Patience::of(timeout);
        wait_for_selected(&installations, own, patience, |installations| {
            are_ready(&shoot, &self.seed, &providers, &registrations, installations)
        })
        .await
    }
}
