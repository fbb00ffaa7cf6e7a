//! Flags for the kubeconfigs of shoots that a garden's server issues.

use std::time::Duration as Std;

use clap::Args;
use gardener_apimachinery::duration::Duration;
use gardener_garden_apiserver::Options;

const HOUR: Std = Std::from_secs(3600);
const LONGEST: Std = Std::from_secs(1 << 32);

/// How long they are valid.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct KubeconfigFlags {
    /// The longest validity of administrators' kubeconfigs for shoots; longer wishes are cut.
    #[arg(long, default_value = "24h0m0s", value_name = "DURATION")]
    pub shoot_admin_kubeconfig_max_expiration: Duration,
    /// The longest validity of viewers' kubeconfigs for shoots; longer wishes are cut.
    #[arg(long, default_value = "24h0m0s", value_name = "DURATION")]
    pub shoot_viewer_kubeconfig_max_expiration: Duration,
}

impl KubeconfigFlags {
    /// What is wrong with them, in upstream's words.
    pub fn errors(&self) -> impl Iterator<Item = String> + use<> {
        let flags = [
            (
                "shoot-admin-kubeconfig-max-expiration",
                self.shoot_admin_kubeconfig_max_expiration,
            ),
            (
                "shoot-viewer-kubeconfig-max-expiration",
                self.shoot_viewer_kubeconfig_max_expiration,
            ),
        ];
        let wrong = flags
            .into_iter()
            .filter(|(_, value)| !(HOUR..=LONGEST).contains(&value.to_std()));
        wrong.map(|(flag, _)| format!("--{flag} must be between 1 hour and 2^32 seconds"))
    }

    /// What the kinds of the garden are made with.
    pub fn options(&self) -> Options {
        Options {
            admin_kubeconfig_max: self.shoot_admin_kubeconfig_max_expiration.to_std(),
            viewer_kubeconfig_max: self.shoot_viewer_kubeconfig_max_expiration.to_std(),
            ..Options::default()
        }
    }
}
