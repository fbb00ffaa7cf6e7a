//! Flags about the garden's kinds, which both servers have: kubeconfigs for shoots, rotations that are due, feature gates.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration as Std;

use clap::Args;
use gardener_apimachinery::duration::Duration;
use gardener_apimachinery::meta::parse_bool;
use gardener_apis::core::v1beta1::supports_feature_gate;
use gardener_apiserver::tokens::SigningKey;
use gardener_garden_apiserver::{Features, Options, TokenIssuer};
use gardener_kube_apiserver::VERSION;

const HOUR: Std = Std::from_secs(3600);
const LONGEST: Std = Std::from_secs(1 << 32);

/// How the garden's kinds behave.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct GardenFlags {
    /// The longest validity of administrators' kubeconfigs for shoots; longer wishes are cut.
    #[arg(long, default_value = "24h0m0s", value_name = "DURATION")]
    pub shoot_admin_kubeconfig_max_expiration: Duration,
    /// The longest validity of viewers' kubeconfigs for shoots; longer wishes are cut.
    #[arg(long, default_value = "24h0m0s", value_name = "DURATION")]
    pub shoot_viewer_kubeconfig_max_expiration: Duration,
    /// How often a shoot's credentials should be rotated; who writes the shoot is told when they were not.
    #[arg(long, default_value = "2160h0m0s", value_name = "DURATION")]
    pub shoot_credentials_rotation_interval: Duration,
    /// The private key that tokens of WorkloadIdentities are signed with, in PEM form. Without one there are no such tokens.
    #[arg(long, value_name = "FILE")]
    pub workload_identity_signing_key_file: Option<PathBuf>,
    /// The issuer that tokens of WorkloadIdentities name, a URL.
    #[arg(long, value_name = "URL")]
    pub workload_identity_token_issuer: Option<String>,
    /// The shortest validity of tokens of WorkloadIdentities; shorter wishes are prolonged.
    #[arg(long, default_value = "1h0m0s", value_name = "DURATION")]
    pub workload_identity_token_min_expiration: Duration,
    /// The longest validity of tokens of WorkloadIdentities; longer wishes are cut.
    #[arg(long, default_value = "48h0m0s", value_name = "DURATION")]
    pub workload_identity_token_max_expiration: Duration,
    /// Switches of features, name=true or name=false: CloudProfileCapabilities (on by itself), InPlaceNodeUpdates, LiveControlPlaneMigration,
    /// VersionClassificationLifecycle, DisableNginxIngressInShoot, AllAlpha, AllBeta; those of Kubernetes have no effect.
    #[arg(long, value_delimiter = ',', value_name = "NAME=BOOL")]
    pub feature_gates: Vec<String>,
}

impl GardenFlags {
    /// What is wrong with them, in upstream's words.
    pub fn errors(&self) -> Vec<String> {
        let flags = [
            (
                "shoot-admin-kubeconfig-max-expiration",
                self.shoot_admin_kubeconfig_max_expiration,
                (HOUR, "1 hour"),
            ),
            (
                "shoot-viewer-kubeconfig-max-expiration",
                self.shoot_viewer_kubeconfig_max_expiration,
                (HOUR, "1 hour"),
            ),
            (
                "shoot-credentials-rotation-interval",
                self.shoot_credentials_rotation_interval,
                (24 * HOUR, "24 hours"),
            ),
            (
                "workload-identity-token-min-expiration",
                self.workload_identity_token_min_expiration,
                (HOUR / 6, "10 minutes"),
            ),
            (
                "workload-identity-token-max-expiration",
                self.workload_identity_token_max_expiration,
                (HOUR / 6, "10 minutes"),
            ),
        ];
        let wrong = flags
            .into_iter()
            .filter(|(_, value, (least, _))| !(*least..=LONGEST).contains(&value.to_std()));
        let mut errors: Vec<String> = wrong
            .map(|(flag, _, (_, least))| format!("--{flag} must be between {least} and 2^32 seconds"))
            .collect();
        errors.extend(self.features().err());
        errors.extend(self.token_issuer().err());
        errors
    }

    /// Who signs the tokens of WorkloadIdentities, if anybody does.
    ///
    /// # Errors
    /// The key cannot be read, or the issuer is no `https` URL.
    fn token_issuer(&self) -> Result<Option<TokenIssuer>, String> {
        let Some(path) = &self.workload_identity_signing_key_file else {
            return Ok(None);
        };
        let flag = "--workload-identity-signing-key-file";
        let pem = std::fs::read_to_string(path).map_err(|why| format!("{flag} cannot be read: {why}"))?;
        let key = SigningKey::from_pem(&pem).map_err(|why| format!("{flag} does not contain valid key, err: {why}"))?;
        let issuer = self.workload_identity_token_issuer.clone().unwrap_or_default();
        if !issuer.starts_with("https://") {
            return Err("--workload-identity-token-issuer must be a URL that begins with https://".to_owned());
        }
        let validity = (
            self.workload_identity_token_min_expiration.to_std(),
            self.workload_identity_token_max_expiration.to_std(),
        );
        Ok(Some(TokenIssuer { key, issuer, validity }))
    }

    /// The features that are on, and the names of the gates that have no effect here.
    ///
    /// # Errors
    /// One of the gates is not known, or neither true nor false.
    pub fn features(&self) -> Result<(Features, Vec<&str>), String> {
        let (mut features, mut without_effect) = (Features::default(), Vec::new());
        for gate in self.feature_gates.iter().filter(|gate| !gate.is_empty()) {
            let (name, value) = gate
                .split_once('=')
                .ok_or_else(|| format!("--feature-gates: missing bool value for {gate}"))?;
            let (name, value) = (name.trim(), value.trim());
            let on = parse_bool(value)
                .ok_or_else(|| format!("--feature-gates: invalid value of {name}={value}, it must be true or false"))?;
            if !features.switch(name, on) {
                if !supports_feature_gate(name, VERSION) {
                    return Err(format!("--feature-gates: unrecognized feature gate: {name}"));
                }
                without_effect.push(name);
            }
        }
        Ok((features, without_effect))
    }

    /// What the kinds of the garden are made with. Tells in the log which gates have no effect.
    pub fn options(&self) -> Options {
        // wrong ones were told when flags were read
        let (features, without_effect) = self.features().unwrap_or_default();
        for feature in without_effect {
            tracing::warn!(
                feature,
                "--feature-gates: this feature gate is accepted, but has no effect"
            );
        }
        Options {
            admin_kubeconfig_max: self.shoot_admin_kubeconfig_max_expiration.to_std(),
            viewer_kubeconfig_max: self.shoot_viewer_kubeconfig_max_expiration.to_std(),
            credentials_rotation: self.shoot_credentials_rotation_interval.to_std(),
            features,
            workload_identities: self.token_issuer().ok().flatten().map(Arc::new),
            ..Options::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};
    use gardener_garden_apiserver::Feature;

    #[test]
    fn gapi_7_gates_are_known() {
        let read = |text: &str| {
            let command = GardenFlags::augment_args(Command::new("x"));
            let matches = command
                .try_get_matches_from(std::iter::once("x").chain(text.split(' ')))
                .unwrap();
            GardenFlags::from_arg_matches(&matches).unwrap()
        };
        let flags = read("--feature-gates=InPlaceNodeUpdates=true,CloudProfileCapabilities=f,WatchList=true");
        let (features, without_effect) = flags.features().unwrap();
        assert!(features.has(Feature::InPlaceNodeUpdates) && !features.has(Feature::CloudProfileCapabilities));
        assert_eq!(without_effect, ["WatchList"]);
        for (wrong, why) in [
            ("--feature-gates=Unknown=true", "unrecognized feature gate: Unknown"),
            ("--feature-gates=InPlaceNodeUpdates", "missing bool value"),
            ("--feature-gates=InPlaceNodeUpdates=maybe", "must be true or false"),
            (
                "--shoot-credentials-rotation-interval=1h",
                "between 24 hours and 2^32 seconds",
            ),
            (
                "--workload-identity-token-min-expiration=9m",
                "between 10 minutes and 2^32 seconds",
            ),
            (
                "--workload-identity-signing-key-file=/nowhere/key.pem",
                "--workload-identity-signing-key-file cannot be read",
            ),
        ] {
            let errors = read(wrong).errors();
            assert!(errors.len() == 1 && errors[0].contains(why), "{errors:?}");
        }
    }
}
