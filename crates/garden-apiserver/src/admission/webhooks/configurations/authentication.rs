//! What kube-apiserver says of a structured authentication configuration. Expressions are not compiled here: a shoot's kube-apiserver does that.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apis::core::v1beta1::Shoot;
use gardener_apis::validation::{ca_bundle, shown};
use serde::Deserialize;

use super::server;

/// `AuthenticationConfiguration`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Configuration {
    jwt: Vec<Authenticator>,
    pub(super) anonymous: Option<Anonymous>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Anonymous {
    enabled: bool,
    conditions: Vec<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Authenticator {
    issuer: Issuer,
    claim_validation_rules: Vec<ClaimRule>,
    claim_mappings: ClaimMappings,
    user_validation_rules: Vec<UserRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Issuer {
    url: String,
    #[serde(rename = "discoveryURL")]
    discovery_url: String,
    certificate_authority: String,
    audiences: Vec<String>,
    audience_match_policy: String,
    egress_selector_type: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimRule {
    claim: String,
    required_value: String,
    expression: String,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UserRule {
    expression: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimMappings {
    username: Claim,
    groups: Claim,
    uid: Claim,
    extra: Vec<Extra>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Claim {
    claim: String,
    prefix: Option<String>,
    expression: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Extra {
    key: String,
    value_expression: String,
}

/// The issuers that are the shoot's own, and cannot be somebody else's.
pub(super) fn issuers(shoot: &Shoot) -> BTreeSet<String> {
    const OWN: [&str; 3] = ["service-account-issuer", "internal", "external"];
    let config = server(shoot).and_then(|server| server.service_account_config.as_ref());
    let accepted = config
        .iter()
        .flat_map(|config| config.accepted_issuers.iter().chain(&config.issuer));
    let addresses = shoot.status.advertised_addresses.iter();
    let addresses = addresses.filter(|own| OWN.contains(&own.name.as_str()));
    accepted.chain(addresses.map(|own| &own.url)).cloned().collect()
}

/// Whether a shoot says by the older field whether requests without credentials are taken.
pub(super) fn sets_anonymous(shoot: &Shoot) -> bool {
    server(shoot).is_some_and(|server| server.enable_anonymous_authentication.is_some())
}

/// All that is wrong with it. `own` are the issuers of the shoots themselves.
pub(super) fn validate(configuration: &Configuration, own: &BTreeSet<String>) -> ErrorList {
    let root = Path::new("jwt");
    let all = &configuration.jwt;
    if all.len() > 64 {
        return vec![Error::too_many(&root, all.len(), 64)];
    }
    let mut errors = ErrorList::new();
    let (mut urls, mut discovered) = (BTreeSet::new(), BTreeSet::new());
    for (i, jwt) in all.iter().enumerate() {
        let path = root.index(i);
        errors.extend(issuer(&jwt.issuer, own, &path.child("issuer")));
        errors.extend(claim_rules(
            &jwt.claim_validation_rules,
            &path.child("claimValidationRules"),
        ));
        errors.extend(mappings(&jwt.claim_mappings, &path.child("claimMappings")));
        errors.extend(user_rules(
            &jwt.user_validation_rules,
            &path.child("userValidationRules"),
        ));
        if !urls.insert(&jwt.issuer.url) {
            errors.push(Error::duplicate(&path.child("issuer.url"), jwt.issuer.url.as_str()));
        }
        let discovery = &jwt.issuer.discovery_url;
        if !discovery.is_empty() && !discovered.insert(discovery) {
            errors.push(Error::duplicate(&path.child("issuer.discoveryURL"), discovery.as_str()));
        }
    }
    if let Some(anonymous) = &configuration.anonymous
        && !anonymous.enabled
        && !anonymous.conditions.is_empty()
    {
        let why = "enabled should be set to true when conditions are defined";
        errors.push(Error::invalid(
            &Path::new("anonymous.conditions"),
            shown(&anonymous.conditions),
            why,
        ));
    }
    errors
}

fn url(text: &str, path: &Path) -> ErrorList {
    let wrong = |why: &str| Error::invalid(path, text, why);
    let mut errors = ErrorList::new();
    let (rest, fragment) = text
        .split_once('#')
        .map_or((text, ""), |(rest, fragment)| (rest, fragment));
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, query)| (rest, query));
    let Some(rest) = rest.strip_prefix("https://") else {
        return vec![wrong("URL scheme must be https")];
    };
    if rest.split('/').next().unwrap_or_default().contains('@') {
        errors.push(wrong("URL must not contain a username or password"));
    }
    if !query.is_empty() {
        errors.push(wrong("URL must not contain a query"));
    }
    if !fragment.is_empty() {
        errors.push(wrong("URL must not contain a fragment"));
    }
    errors
}

fn issuer(issuer: &Issuer, own: &BTreeSet<String>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("url");
    if issuer.url.is_empty() {
        errors.push(Error::required(&at, ""));
    } else {
        if own.contains(&issuer.url) {
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            let why = format!("URL must not overlap with disallowed issuers: [{}]", own.join(" "));
            errors.push(Error::invalid(&at, issuer.url.as_str(), why));
        }
        errors.extend(url(&issuer.url, &at));
    }
    let discovery = issuer.discovery_url.as_str();
    if !discovery.is_empty() {
        let at = path.child("discoveryURL");
        if !issuer.url.is_empty() && issuer.url.trim_end_matches('/') == discovery.trim_end_matches('/') {
            errors.push(Error::invalid(
                &at,
                discovery,
                "discoveryURL must be different from URL",
            ));
        }
        errors.extend(url(discovery, &at));
    }
    errors.extend(audiences(issuer, path));
    if !issuer.certificate_authority.is_empty() {
        let at = path.child("certificateAuthority");
        let wrong = ca_bundle(&issuer.certificate_authority, &at);
        errors.extend(
            wrong
                .iter()
                .map(|error| Error::invalid(&at, "<omitted>", error.detail.as_str())),
        );
    }
    if !["", "controlplane", "cluster"].contains(&issuer.egress_selector_type.as_str()) {
        let why = "egress selector must be either controlplane or cluster";
        errors.push(Error::invalid(
            &path.child("egressSelectorType"),
            issuer.egress_selector_type.as_str(),
            why,
        ));
    }
    errors
}

fn audiences(issuer: &Issuer, path: &Path) -> ErrorList {
    let (at, all) = (path.child("audiences"), &issuer.audiences);
    if all.is_empty() {
        return vec![Error::required(
            &at,
            format!("at least one {} is required", at.as_str()),
        )];
    }
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, audience) in all.iter().enumerate() {
        if audience.is_empty() {
            errors.push(Error::required(&at.index(i), ""));
        }
        if !seen.insert(audience) {
            errors.push(Error::duplicate(&at.index(i), audience.as_str()));
        }
    }
    let policy = issuer.audience_match_policy.as_str();
    let why = match (all.len(), policy) {
        (_, "MatchAny") | (1, "") => return errors,
        (1, _) => "audienceMatchPolicy must be empty or MatchAny for single audience",
        _ => "audienceMatchPolicy must be MatchAny for multiple audiences",
    };
    errors.push(Error::invalid(&path.child("audienceMatchPolicy"), policy, why));
    errors
}

fn claim_rules(rules: &[ClaimRule], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (mut claims, mut expressions) = (BTreeSet::new(), BTreeSet::new());
    for (i, rule) in rules.iter().enumerate() {
        let path = path.index(i);
        let (new_claim, new_expression) = (claims.insert(&rule.claim), expressions.insert(&rule.expression));
        match (rule.claim.as_str(), rule.expression.as_str()) {
            ("", "") => errors.push(Error::required(&path, "claim or expression is required")),
            (claim, "") => {
                if !rule.message.is_empty() {
                    let why = "may not be specified when claim is set";
                    errors.push(Error::invalid(&path.child("message"), rule.message.as_str(), why));
                }
                if !new_claim {
                    errors.push(Error::duplicate(&path.child("claim"), claim));
                }
            }
            ("", expression) => {
                if !rule.required_value.is_empty() {
                    let why = "may not be specified when expression is set";
                    let path = path.child("requiredValue");
                    errors.push(Error::invalid(&path, rule.required_value.as_str(), why));
                }
                if !new_expression {
                    errors.push(Error::duplicate(&path.child("expression"), expression));
                }
            }
            (claim, _) => errors.push(Error::invalid(&path, claim, "claim and expression can't both be set")),
        }
    }
    errors
}

fn user_rules(rules: &[UserRule], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, rule) in rules.iter().enumerate() {
        let path = path.index(i).child("expression");
        if rule.expression.is_empty() {
            errors.push(Error::required(&path, ""));
        } else if !seen.insert(&rule.expression) {
            errors.push(Error::duplicate(&path, rule.expression.as_str()));
        }
    }
    errors
}

/// A claim with its prefix, or an expression.
fn claim(own: &Claim, needed: bool, path: &Path) -> ErrorList {
    let wrong = |why: &str| vec![Error::invalid(path, "", why)];
    match (own.claim.is_empty(), own.expression.is_empty()) {
        (false, false) => wrong("claim and expression can't both be set"),
        (true, true) if needed => vec![Error::required(path, "claim or expression is required")],
        (true, false) if own.prefix.is_some() => {
            let why = "may not be specified when expression is set";
            vec![Error::invalid(&path.child("prefix"), shown(&own.prefix), why)]
        }
        (false, true) if own.prefix.is_none() => {
            let why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
            vec![Error::required(&path.child("prefix"), why)]
        }
        _ => ErrorList::new(),
    }
}

fn mappings(mappings: &ClaimMappings, path: &Path) -> ErrorList {
    let mut errors = claim(&mappings.username, true, &path.child("username"));
    errors.extend(claim(&mappings.groups, false, &path.child("groups")));
    if !mappings.uid.claim.is_empty() && !mappings.uid.expression.is_empty() {
        let why = "claim and expression can't both be set";
        errors.push(Error::invalid(&path.child("uid"), "", why));
    }
    let mut seen = BTreeSet::new();
    for (i, extra) in mappings.extra.iter().enumerate() {
        let path = path.child("extra").index(i);
        if extra.key.is_empty() {
            errors.push(Error::required(&path.child("key"), ""));
        } else if extra.key != extra.key.to_lowercase() {
            errors.push(Error::invalid(
                &path.child("key"),
                extra.key.as_str(),
                "must be lowercase",
            ));
        }
        if !seen.insert(&extra.key) {
            errors.push(Error::duplicate(&path.child("key"), extra.key.as_str()));
        }
        if extra.value_expression.is_empty() {
            errors.push(Error::required(
                &path.child("valueExpression"),
                "valueExpression is required",
            ));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adm_73_whose_tokens_are_taken() {
        let check = |text: &str| -> Vec<String> {
            let configuration: Configuration = serde_saphyr::from_str(text).unwrap();
            let own = ["https://own".to_owned()].into();
            validate(&configuration, &own).iter().map(ToString::to_string).collect()
        };
        let jwt = |issuer: &str, more: &str| {
            format!("jwt: [{{issuer: {{{issuer}}}, claimMappings: {{username: {{claim: sub, prefix: ''}}}}{more}}}]")
        };
        assert_eq!(check("{}"), Vec::<String>::new());
        assert_eq!(check(&jwt("url: https://a, audiences: [x]", "")), Vec::<String>::new());
        for (text, why) in [
            (jwt("audiences: [x]", ""), "jwt[0].issuer.url: Required value"),
            (jwt("url: http://a, audiences: [x]", ""), "URL scheme must be https"),
            (
                jwt("url: https://own, audiences: [x]", ""),
                "must not overlap with disallowed issuers: [https://own]",
            ),
            (
                jwt("url: https://a?b=c, audiences: [x]", ""),
                "must not contain a query",
            ),
            (jwt("url: https://a", ""), "jwt[0].issuer.audiences: Required value"),
            (
                jwt("url: https://a, audiences: [x, y]", ""),
                "must be MatchAny for multiple audiences",
            ),
            (
                jwt("url: https://a, discoveryURL: https://a/, audiences: [x]", ""),
                "discoveryURL must be different from URL",
            ),
            (
                jwt("url: https://a, audiences: [x]", ", claimValidationRules: [{}]"),
                "claim or expression is required",
            ),
            (
                "jwt: [{issuer: {url: https://a, audiences: [x]}, claimMappings: {username: {claim: sub}}}]".to_owned(),
                "prefix is required when claim is set",
            ),
            (
                "anonymous: {conditions: [{path: /livez}]}".to_owned(),
                "enabled should be set to true when conditions are defined",
            ),
        ] {
            let found = check(&text);
            assert!(found.len() == 1 && found[0].contains(why), "{text}: {found:?}");
        }
    }
}
