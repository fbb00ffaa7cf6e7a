//! Flags that tell whose tokens are accepted besides the cluster's own, and who comes without any.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use gardener_apimachinery::duration::Duration;
use gardener_apiserver::authn::configuration::{
    ClaimMappings, ClaimValidationRule, Issuer, JwtAuthenticator, PrefixedClaimOrExpression,
};

use super::Switch;

/// The claim that names users, unless a flag says otherwise.
const SUBJECT: &str = "sub";
/// The claim that is a name without anything before it.
const EMAIL: &str = "email";
/// What stands for no prefix.
const NO_PREFIX: &str = "-";
/// The algorithm of tokens, unless a flag says otherwise.
const ALGORITHM: &str = "RS256";

/// Whose tokens are accepted besides the cluster's own, and who comes without any.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct AuthenticationFlags {
    /// Whether requests without credentials are those of system:anonymous [default: true, unless --authentication-config tells].
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub anonymous_auth: Option<bool>,
    /// Which other issuers' tokens are accepted, and who may come without credentials (AuthenticationConfiguration of apiserver.config.k8s.io). Read again when it changes. Not together with --oidc-*.
    #[arg(long, value_name = "FILE")]
    pub authentication_config: Option<PathBuf>,
    /// How long answers of the webhook for tokens are kept.
    #[arg(long, default_value = "2m0s", value_name = "DURATION")]
    pub authentication_token_webhook_cache_ttl: Duration,
    /// The kubeconfig that leads to a webhook that reads tokens which nobody else knows.
    #[arg(long, value_name = "FILE")]
    pub authentication_token_webhook_config_file: Option<PathBuf>,
    /// The version of TokenReview that the webhook reads: v1 or v1beta1.
    #[arg(long, default_value = "v1beta1", value_name = "STRING")]
    pub authentication_token_webhook_version: String,
    /// Authorities (PEM) of the certificate of the issuer of --oidc-issuer-url [default: those of the system].
    #[arg(long, value_name = "FILE")]
    pub oidc_ca_file: Option<PathBuf>,
    /// Whom the issuer's tokens must be for.
    #[arg(long, value_name = "STRING")]
    pub oidc_client_id: Option<String>,
    /// The claim that tells the user's groups.
    #[arg(long, value_name = "STRING")]
    pub oidc_groups_claim: Option<String>,
    /// What is put before the names of groups.
    #[arg(long, value_name = "STRING")]
    pub oidc_groups_prefix: Option<String>,
    /// An issuer (https) whose tokens are accepted, too.
    #[arg(long, value_name = "STRING")]
    pub oidc_issuer_url: Option<String>,
    /// A claim that tokens must have, with its value. May be repeated.
    #[arg(long, value_name = "CLAIM=VALUE", value_parser = pair)]
    pub oidc_required_claim: Vec<(String, String)>,
    /// Algorithms that may sign the issuer's tokens: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512 [default: RS256].
    #[arg(long, value_delimiter = ',', value_name = "STRINGS")]
    pub oidc_signing_algs: Vec<String>,
    /// The claim that tells the user's name [default: sub].
    #[arg(long, value_name = "STRING")]
    pub oidc_username_claim: Option<String>,
    /// What is put before names: - puts nothing [default: the issuer and #, but nothing before email].
    #[arg(long, value_name = "STRING")]
    pub oidc_username_prefix: Option<String>,
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    let pair = text.split_once('=').ok_or("malformed pair, expect string=string")?;
    Ok((pair.0.trim().to_owned(), pair.1.trim().to_owned()))
}

fn given(flag: Option<&String>) -> Option<&str> {
    flag.map(String::as_str).filter(|text| !text.is_empty())
}

impl AuthenticationFlags {
    /// Whether a flag of an issuer is there, even if it says nothing.
    fn has_issuer_flags(&self) -> bool {
        let texts = [
            &self.oidc_client_id,
            &self.oidc_groups_claim,
            &self.oidc_groups_prefix,
            &self.oidc_issuer_url,
            &self.oidc_username_claim,
            &self.oidc_username_prefix,
        ];
        texts.iter().any(|flag| flag.is_some())
            || self.oidc_ca_file.is_some()
            || !self.oidc_required_claim.is_empty()
            || !self.oidc_signing_algs.is_empty()
    }

    /// What does not go together, in upstream's words.
    pub fn errors(&self) -> Vec<String> {
        let named = given(self.oidc_issuer_url.as_ref()).zip(given(self.oidc_client_id.as_ref()));
        let why = match (&self.authentication_config, named) {
            _ if !self.has_issuer_flags() => return Vec::new(),
            (Some(_), _) => "authentication-config file and oidc-* flags are mutually exclusive",
            (None, None) => {
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
            }
            (None, Some(_)) => return Vec::new(),
        };
        vec![why.to_owned()]
    }

    /// The issuer of flags, if they name one; `authorities` are those of `--oidc-ca-file`.
    pub fn issuer(&self, authorities: Option<String>) -> Option<JwtAuthenticator> {
        let url = given(self.oidc_issuer_url.as_ref())?;
        let client = given(self.oidc_client_id.as_ref())?;
        let claim = self.oidc_username_claim.as_deref().unwrap_or(SUBJECT);
        let prefix = match given(self.oidc_username_prefix.as_ref()) {
            Some(NO_PREFIX) => String::new(),
            Some(prefix) => prefix.to_owned(),
            None if claim == EMAIL => String::new(),
            // names of several issuers must not be the same
            None => format!("{url}#"),
        };
        let groups = given(self.oidc_groups_claim.as_ref()).map(|claim| PrefixedClaimOrExpression {
            claim: claim.to_owned(),
            prefix: Some(self.oidc_groups_prefix.clone().unwrap_or_default()),
            expression: String::new(),
        });
        // of a claim that is told twice the last value counts
        let required: BTreeMap<_, _> = self.oidc_required_claim.iter().cloned().collect();
        let rules = required.into_iter().map(|(claim, required_value)| ClaimValidationRule {
            claim,
            required_value,
            ..ClaimValidationRule::default()
        });
        Some(JwtAuthenticator {
            issuer: Issuer {
                url: url.to_owned(),
                certificate_authority: authorities.unwrap_or_default(),
                audiences: vec![client.to_owned()],
                ..Issuer::default()
            },
            claim_validation_rules: rules.collect(),
            claim_mappings: ClaimMappings {
                username: PrefixedClaimOrExpression {
                    claim: claim.to_owned(),
                    prefix: Some(prefix),
                    expression: String::new(),
                },
                groups: groups.unwrap_or_default(),
                ..ClaimMappings::default()
            },
            user_validation_rules: Vec::new(),
        })
    }

    /// The names of the algorithms that may sign the tokens of the issuer of flags.
    pub fn algorithms(&self) -> Vec<&str> {
        let given: Vec<&str> = self.oidc_signing_algs.iter().map(String::as_str).collect();
        let given: Vec<&str> = given.into_iter().filter(|name| !name.is_empty()).collect();
        match given.is_empty() {
            true => vec![ALGORITHM],
            false => given,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::NEEDED;
    use super::super::{Flags, parse};
    use super::*;

    fn read(text: &str) -> Result<AuthenticationFlags, String> {
        let arguments = format!("{NEEDED} {text}");
        let flags: Result<Flags, _> = parse(arguments.split(' ').map(str::to_owned));
        flags
            .map(|flags| flags.authentication)
            .map_err(|error| error.to_string())
    }

    const ISSUER: &str = "--oidc-issuer-url=https://i --oidc-client-id=c";

    #[test]
    fn flags_name_an_issuer() {
        assert_eq!(read("").unwrap().issuer(None), None);
        let found = read(ISSUER).unwrap();
        let issuer = found.issuer(Some("pem".to_owned())).unwrap();
        assert_eq!(
            (issuer.issuer.url.as_str(), issuer.issuer.audiences.as_slice()),
            ("https://i", &["c".to_owned()][..])
        );
        assert_eq!(issuer.issuer.certificate_authority, "pem");
        assert_eq!(
            (issuer.claim_mappings.groups, issuer.claim_validation_rules),
            Default::default()
        );
        assert_eq!(found.algorithms(), ["RS256"]);
        for (flags, claim, prefix) in [
            ("", "sub", "https://i#"),
            ("--oidc-username-claim=name", "name", "https://i#"),
            ("--oidc-username-claim=email", "email", ""),
            ("--oidc-username-claim=email --oidc-username-prefix=o:", "email", "o:"),
            ("--oidc-username-prefix=", "sub", "https://i#"),
            ("--oidc-username-prefix=-", "sub", ""),
        ] {
            let issuer = read(&format!("{ISSUER} {flags}")).unwrap().issuer(None).unwrap();
            let username = issuer.claim_mappings.username;
            assert_eq!(
                (username.claim.as_str(), username.prefix.as_deref()),
                (claim, Some(prefix)),
                "{flags}"
            );
        }
        let found = read(&format!(
            "{ISSUER} --oidc-groups-claim=roles --oidc-groups-prefix=g: --oidc-signing-algs=ES256,RS256 --oidc-required-claim=b=1=2 \
             --oidc-required-claim=a=x --oidc-required-claim=a=y"
        ));
        let found = found.unwrap();
        let issuer = found.issuer(None).unwrap();
        let groups = issuer.claim_mappings.groups;
        assert_eq!((groups.claim.as_str(), groups.prefix.as_deref()), ("roles", Some("g:")));
        let rules = issuer.claim_validation_rules.iter();
        let rules: Vec<_> = rules
            .map(|rule| (rule.claim.as_str(), rule.required_value.as_str()))
            .collect();
        assert_eq!(rules, [("a", "y"), ("b", "1=2")]);
        assert_eq!(found.algorithms(), ["ES256", "RS256"]);
    }

    #[test]
    fn what_does_not_go_together_is_told() {
        let together = "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set";
        let exclusive = "authentication-config file and oidc-* flags are mutually exclusive";
        for (flags, expected) in [
            ("--oidc-issuer-url=https://i", together),
            ("--oidc-client-id=c", together),
            ("--oidc-issuer-url=", together),
            ("--oidc-signing-algs=RS256", together),
            ("--oidc-required-claim=a=b", together),
            (
                "--authentication-config=/c --oidc-issuer-url=https://i --oidc-client-id=c",
                exclusive,
            ),
            ("--authentication-config=/c --oidc-username-prefix=-", exclusive),
            ("--oidc-required-claim=a", "malformed pair, expect string=string"),
        ] {
            let error = read(flags).unwrap_err();
            assert!(error.contains(expected), "{flags}: {error}");
        }
        assert!(read("--authentication-config=/c --anonymous-auth=false").is_ok());
    }
}
