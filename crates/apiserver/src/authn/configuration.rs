//! `AuthenticationConfiguration` (`apiserver.config.k8s.io`): which other issuers' tokens are accepted, what is made of what they claim, and who may
//! come without credentials.
//!
//! Read here and checked in [`validation`] as kube-apiserver does; [`super::jwt`] makes authenticators of it.

pub(crate) mod validation;

use gardener_apimachinery::field::{self, ErrorList, go_quote};
use serde::Deserialize;

use crate::config_file::{self, Known};

const KIND: config_file::Kind = config_file::Kind::of_config("AuthenticationConfiguration");

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// It is no such document.
    #[error("{0}")]
    Malformed(String),
    /// Fields are wrong.
    #[error("invalid authentication configuration: {}", field::aggregate(.0))]
    Invalid(ErrorList),
    /// It wants a way through proxies, of which none is there.
    #[error("oidc: egress lookup required with egress selector type {}: leave egressSelectorType out, or set --egress-selector-config-file", go_quote(.0))]
    Egress(String),
}

/// A configuration as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Configuration {
    #[serde(rename = "jwt", deserialize_with = "or_default")]
    /// Issuers whose tokens are accepted.
    pub issuers: Vec<JwtAuthenticator>,
    /// Who may come without credentials; none says nothing of it.
    pub anonymous: Option<Anonymous>,
}

/// Who may come without credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Anonymous {
    /// Whether anybody may.
    pub enabled: bool,
    /// With what requests; with all of them, if there is no condition.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}

/// Requests that anybody may make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// Their path.
    pub path: String,
}

/// An issuer whose tokens are accepted, and what is made of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JwtAuthenticator {
    /// Who it is.
    pub issuer: Issuer,
    /// What tokens must claim.
    #[serde(deserialize_with = "or_default")]
    pub claim_validation_rules: Vec<ClaimValidationRule>,
    /// What becomes of their claims.
    pub claim_mappings: ClaimMappings,
    /// How the users must be that come of it.
    #[serde(deserialize_with = "or_default")]
    pub user_validation_rules: Vec<UserValidationRule>,
}

/// Who issues tokens, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Issuer {
    /// Its name, which tokens have as `iss`; also where its discovery document is.
    pub url: String,
    /// Where its discovery document is, if elsewhere.
    #[serde(rename = "discoveryURL", deserialize_with = "or_default")]
    pub discovery_url: String,
    /// The authorities (PEM) of its certificate; those of the system if empty.
    pub certificate_authority: String,
    /// Whom tokens must be for: one of these.
    #[serde(deserialize_with = "or_default")]
    pub audiences: Vec<String>,
    /// How audiences are compared; one must be the same, in any case.
    pub audience_match_policy: String,
    /// By which way through proxies the issuer is reached.
    pub egress_selector_type: String,
}

/// What a token must claim: a value of a claim, or what an expression tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimValidationRule {
    /// The claim.
    pub claim: String,
    /// Its value.
    pub required_value: String,
    /// The expression.
    pub expression: String,
    /// What is told where it does not hold.
    pub message: String,
}

/// What becomes of claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimMappings {
    /// The user's name.
    pub username: PrefixedClaimOrExpression,
    /// Its groups.
    pub groups: PrefixedClaimOrExpression,
    /// Its uid.
    pub uid: ClaimOrExpression,
    /// More facts.
    #[serde(deserialize_with = "or_default")]
    pub extra: Vec<ExtraMapping>,
}

/// A claim with what is put before it, or an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PrefixedClaimOrExpression {
    /// The claim.
    pub claim: String,
    /// What is put before it.
    pub prefix: Option<String>,
    /// The expression.
    pub expression: String,
}

/// A claim, or an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimOrExpression {
    /// The claim.
    pub claim: String,
    /// The expression.
    pub expression: String,
}

/// One more fact of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExtraMapping {
    /// Its name.
    pub key: String,
    /// What tells its values.
    pub value_expression: String,
}

/// How a user must be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserValidationRule {
    /// What tells whether it is so.
    pub expression: String,
    /// What is told where it does not hold.
    pub message: String,
}

/// A member that may be null, as Go reads it.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

const DOCUMENT: Known = Known::Object(&[
    ("apiVersion", Known::Value),
    ("kind", Known::Value),
    ("jwt", Known::List(&JWT)),
    (
        "anonymous",
        Known::Object(&[
            ("enabled", Known::Value),
            ("conditions", Known::List(&Known::Object(&[("path", Known::Value)]))),
        ]),
    ),
]);
const JWT: Known = Known::Object(&[
    (
        "issuer",
        Known::Object(&[
            ("url", Known::Value),
            ("discoveryURL", Known::Value),
            ("certificateAuthority", Known::Value),
            ("audiences", Known::Value),
            ("audienceMatchPolicy", Known::Value),
            ("egressSelectorType", Known::Value),
        ]),
    ),
    (
        "claimValidationRules",
        Known::List(&Known::Object(&[
            ("claim", Known::Value),
            ("requiredValue", Known::Value),
            ("expression", Known::Value),
            ("message", Known::Value),
        ])),
    ),
    (
        "claimMappings",
        Known::Object(&[
            ("username", PREFIXED),
            ("groups", PREFIXED),
            (
                "uid",
                Known::Object(&[("claim", Known::Value), ("expression", Known::Value)]),
            ),
            (
                "extra",
                Known::List(&Known::Object(&[
                    ("key", Known::Value),
                    ("valueExpression", Known::Value),
                ])),
            ),
        ]),
    ),
    (
        "userValidationRules",
        Known::List(&Known::Object(&[
            ("expression", Known::Value),
            ("message", Known::Value),
        ])),
    ),
]);
const PREFIXED: Known = Known::Object(&[
    ("claim", Known::Value),
    ("prefix", Known::Value),
    ("expression", Known::Value),
]);

impl Configuration {
    /// Reads a configuration (YAML or JSON), without a look at what it says.
    ///
    /// # Errors
    /// [`ConfigurationError::Malformed`].
    pub fn parse(text: &str) -> Result<Self, ConfigurationError> {
        if text.is_empty() {
            return Err(ConfigurationError::Malformed("empty config data".to_owned()));
        }
        config_file::read(text, &KIND, &DOCUMENT).map_err(ConfigurationError::Malformed)
    }

    /// All that is wrong with it, where tokens of the issuers `disallowed` are accepted already.
    pub fn errors(&self, disallowed: &[String]) -> ErrorList {
        validation::validate(self, disallowed).err().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_versions_are_read_and_nothing_else() {
        let read = |head: &str, body: &str| Configuration::parse(&format!("{head}{body}"));
        for version in ["v1", "v1beta1", "v1alpha1"] {
            let head = format!("apiVersion: apiserver.config.k8s.io/{version}\nkind: AuthenticationConfiguration\n");
            let found = read(
                &head,
                "jwt: [{issuer: {url: 'https://a', discoveryURL: 'https://b', audiences: [x]}, \
                 claimMappings: {username: {claim: sub, prefix: ''}, extra: [{key: a/b, valueExpression: 'c'}]}}]\n\
                 anonymous: {enabled: true, conditions: [{path: /livez}]}\n",
            )
            .unwrap();
            let [own] = found.issuers.as_slice() else {
                panic!("{found:?}")
            };
            assert_eq!(
                (own.issuer.url.as_str(), own.issuer.discovery_url.as_str()),
                ("https://a", "https://b")
            );
            assert_eq!(own.claim_mappings.username.prefix.as_deref(), Some(""));
            assert_eq!(own.claim_mappings.groups.prefix, None);
            assert_eq!(found.anonymous.unwrap().conditions[0].path, "/livez");
            let empty = read(&head, "jwt: null\nanonymous: null\n").unwrap();
            assert_eq!(empty, Configuration::default());
        }
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
        for (head, body, expected) in [
            ("", "", "empty config data"),
            (
                "kind: AuthenticationConfiguration\n",
                "",
                "Object 'apiVersion' is missing",
            ),
            (
                "apiVersion: apiserver.config.k8s.io/v2\nkind: AuthenticationConfiguration\n",
                "",
                "no kind \"AuthenticationConfiguration\" is registered for version \"apiserver.config.k8s.io/v2\"",
            ),
            (
                head,
                "jwt: [{issuer: {uri: x}, claimMappings: {uid: {prefix: x}}}]\n",
                "strict decoding error: unknown field \"jwt[0].claimMappings.uid.prefix\", unknown field \"jwt[0].issuer.uri\"",
            ),
            (head, "anonymous: {}\nanonymous: {}\n", "already set in map"),
            (head, "jwt: [{issuer: 1}]\n", "invalid type"),
        ] {
            let error = read(head, body).unwrap_err().to_string();
            assert!(error.contains(expected), "{body}: {error}");
        }
    }
}
