//! Flags that tell who says what is allowed.

use std::path::PathBuf;

use clap::Args;
use gardener_apimachinery::duration::Duration;
use gardener_apimachinery::field::go_quote;
use gardener_apiserver::authz::configuration::{
    Configuration, Configured, KEEP_ALLOWED, KEEP_OTHERS, Kind, LONGEST_TIMEOUT, ReviewVersion, WebhookConfiguration,
};

/// The mode that needs more than its name.
const WEBHOOK: &str = "Webhook";
/// The name of the webhook that flags lead to.
const WEBHOOK_NAME: &str = "default";

/// Who says what is allowed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct AuthorizationFlags {
    /// Who says what is allowed, in order, and how webhooks are asked (AuthorizationConfiguration of apiserver.config.k8s.io). Read again when it changes. Not together with --authorization-mode and --authorization-webhook-*.
    #[arg(long, value_name = "FILE")]
    pub authorization_config: Option<PathBuf>,
    /// Who says what is allowed, in order: AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook [default: AlwaysAllow, without --authorization-config].
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub authorization_mode: Vec<String>,
    /// How long answers of the webhook are kept that allow [default: 5m0s].
    #[arg(long, value_name = "DURATION")]
    pub authorization_webhook_cache_authorized_ttl: Option<Duration>,
    /// How long other answers of the webhook are kept [default: 30s].
    #[arg(long, value_name = "DURATION")]
    pub authorization_webhook_cache_unauthorized_ttl: Option<Duration>,
    /// The kubeconfig that leads to the webhook of mode Webhook.
    #[arg(long, value_name = "FILE")]
    pub authorization_webhook_config_file: Option<PathBuf>,
    /// The version of SubjectAccessReview that the webhook reads: v1 or v1beta1 [default: v1beta1].
    #[arg(long, value_name = "STRING")]
    pub authorization_webhook_version: Option<String>,
}

impl AuthorizationFlags {
    /// Whether flags let everybody do everything. A file that says so is not meant.
    pub fn always_allow(&self) -> bool {
        let modes = &self.authorization_mode;
        self.authorization_config.is_none() && (modes.is_empty() || modes.iter().any(|mode| mode == "AlwaysAllow"))
    }

    /// What is wrong with them, in upstream's words where it has some.
    pub fn errors(&self) -> Vec<String> {
        let webhook = &self.authorization_webhook_config_file;
        let old = !self.authorization_mode.is_empty()
            || webhook.is_some()
            || self.authorization_webhook_version.is_some()
            || self.authorization_webhook_cache_authorized_ttl.is_some()
            || self.authorization_webhook_cache_unauthorized_ttl.is_some();
        if self.authorization_config.is_some() {
            let why = "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined";
            return old.then(|| why.to_owned()).into_iter().collect();
        }
        let mut errors = Vec::new();
        let modes = &self.authorization_mode;
        for mode in modes {
            if mode == "ABAC" {
                errors.push("authorization-mode ABAC is not supported: use RBAC, or Webhook".to_owned());
            } else if mode != WEBHOOK && Kind::of_mode(mode).is_none() {
                errors.push(format!(
                    "authorization-mode {} is not a valid mode: it must be AlwaysAllow, AlwaysDeny, Node, RBAC or Webhook",
                    go_quote(mode)
                ));
            }
        }
        let asks = modes.iter().any(|mode| mode == WEBHOOK);
        if asks && webhook.is_none() {
            errors.push("authorization-mode Webhook's authorization config file not passed".to_owned());
        }
        if !asks && webhook.is_some() {
            errors.push("cannot specify --authorization-webhook-config-file without mode Webhook".to_owned());
        }
        let repeated = modes
            .iter()
            .enumerate()
            .any(|(at, mode)| modes.iter().skip(at + 1).any(|other| other == mode));
        if repeated {
            let modes: Vec<String> = modes.iter().map(|mode| go_quote(mode)).collect();
            errors.push(format!(
                "authorization-mode [{}] has mode specified more than once",
                modes.join(" ")
            ));
        }
        let version = self.authorization_webhook_version.as_deref();
        if let Some(version) = version.filter(|version| asks && ReviewVersion::of(version).is_none()) {
            errors.push(format!(
                "unsupported webhook authorizer version {}, supported versions are \"v1\", \"v1beta1\"",
                go_quote(version)
            ));
        }
        errors
    }

    /// The authorizers of the modes.
    pub fn configuration(&self) -> Configuration {
        let kept = |ttl: Option<Duration>, default| ttl.map_or(default, Duration::to_std);
        let version = self.authorization_webhook_version.as_deref();
        let webhook = self.authorization_webhook_config_file.as_ref();
        let of_mode = |mode: &String| match (Kind::of_mode(mode), webhook) {
            (Some(kind), _) => Some(Configured::of_kind(kind)),
            (None, Some(kubeconfig)) if mode == WEBHOOK => Some(Configured {
                name: WEBHOOK_NAME.to_owned(),
                kind: Kind::Webhook(WebhookConfiguration {
                    timeout: LONGEST_TIMEOUT,
                    keep_allowed: kept(self.authorization_webhook_cache_authorized_ttl, KEEP_ALLOWED),
                    keep_others: kept(self.authorization_webhook_cache_unauthorized_ttl, KEEP_OTHERS),
                    version: version.and_then(ReviewVersion::of).unwrap_or(ReviewVersion::V1Beta1),
                    fails_closed: false,
                    kubeconfig: kubeconfig.clone(),
                    conditions: Vec::new(),
                }),
            }),
            // others are refused
            _ => None,
        };
        let authorizers = match self.authorization_mode.is_empty() {
            true => vec![Configured::of_kind(Kind::AlwaysAllow)],
            false => self.authorization_mode.iter().filter_map(of_mode).collect(),
        };
        Configuration { authorizers }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::NEEDED;
    use super::super::{Flags, parse};
    use super::*;

    fn read(text: &str) -> Result<Flags, String> {
        let arguments = format!("{NEEDED} {text}");
        parse(arguments.split(' ').map(str::to_owned)).map_err(|error| error.to_string())
    }

    #[test]
    fn modes_are_a_configuration() {
        let found = read("").unwrap().authorization;
        assert_eq!(
            found.configuration().authorizers,
            [Configured::of_kind(Kind::AlwaysAllow)]
        );
        assert!(found.always_allow());
        let found = read(
            "--authorization-mode=Node,Webhook,RBAC --authorization-webhook-config-file=/k --authorization-webhook-cache-authorized-ttl=0s",
        );
        let found = found.unwrap().authorization;
        assert!(!found.always_allow());
        let expected = Kind::Webhook(WebhookConfiguration {
            timeout: LONGEST_TIMEOUT,
            keep_allowed: std::time::Duration::ZERO,
            keep_others: KEEP_OTHERS,
            version: ReviewVersion::V1Beta1,
            fails_closed: false,
            kubeconfig: "/k".into(),
            conditions: Vec::new(),
        });
        let names: Vec<_> = found
            .configuration()
            .authorizers
            .into_iter()
            .map(|own| (own.name, own.kind))
            .collect();
        assert_eq!(
            names,
            [
                ("node".to_owned(), Kind::Node),
                ("default".to_owned(), expected),
                ("rbac".to_owned(), Kind::Rbac)
            ]
        );
        assert!(!read("--authorization-config=/c").unwrap().authorization.always_allow());
    }

    #[test]
    fn what_does_not_go_together_is_told() {
        for (text, expected) in [
            (
                "--authorization-config=/c --authorization-mode=RBAC",
                "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined",
            ),
            (
                "--authorization-config=/c --authorization-webhook-version=v1",
                "--authorization-config can not be specified when",
            ),
            (
                "--authorization-mode=Webhook",
                "authorization-mode Webhook's authorization config file not passed",
            ),
            (
                "--authorization-mode=RBAC --authorization-webhook-config-file=/k",
                "cannot specify --authorization-webhook-config-file without mode Webhook",
            ),
            (
                "--authorization-mode=RBAC,RBAC",
                "authorization-mode [\"RBAC\" \"RBAC\"] has mode specified more than once",
            ),
            (
                "--authorization-mode=Other",
                "authorization-mode \"Other\" is not a valid mode",
            ),
            ("--authorization-mode=ABAC", "ABAC is not supported"),
            (
                "--authorization-mode=Webhook --authorization-webhook-config-file=/k --authorization-webhook-version=v2",
                "unsupported webhook authorizer version \"v2\"",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
