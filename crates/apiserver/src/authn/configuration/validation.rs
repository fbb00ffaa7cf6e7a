//! What is wrong with an authentication configuration, in upstream's words, and its expressions compiled.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::link::Link;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};

use super::{
    Anonymous, ClaimMappings, ClaimValidationRule, Configuration, Issuer, JwtAuthenticator, PrefixedClaimOrExpression,
    UserValidationRule,
};
use crate::authn::jwt::{Expression, Expressions, Subject};
use crate::kubernetes::domain_prefixed;

/// Most issuers.
const MOST_ISSUERS: usize = 64;
const MATCH_ANY: &str = "MatchAny";
/// What nobody but Kubernetes may name facts after.
const RESERVED: [&str; 2] = ["kubernetes.io", "k8s.io"];

/// Checks a configuration and gives the expressions of each issuer. `disallowed` are issuers whose tokens are accepted already.
///
/// # Errors
/// All that is wrong.
pub(crate) fn validate(configuration: &Configuration, disallowed: &[String]) -> Result<Vec<Expressions>, ErrorList> {
    let (root, mut errors) = (Path::new("jwt"), ErrorList::new());
    let issuers = &configuration.issuers;
    if issuers.len() > MOST_ISSUERS {
        errors.push(Error::too_many(&root, issuers.len(), MOST_ISSUERS));
        return Err(errors);
    }
    let (mut urls, mut documents) = (BTreeSet::new(), BTreeSet::new());
    let mut compiled = Vec::with_capacity(issuers.len());
    for (number, own) in issuers.iter().enumerate() {
        let path = root.index(number);
        compiled.push(of_authenticator(own, disallowed, &path, &mut errors));
        let (url, document) = (own.issuer.url.as_str(), own.issuer.discovery_url.as_str());
        if !urls.insert(url) {
            errors.push(Error::duplicate(&path.child("issuer").child("url"), url));
        }
        if !document.is_empty() && !documents.insert(document) {
            errors.push(Error::duplicate(&path.child("issuer").child("discoveryURL"), document));
        }
    }
    errors.extend(configuration.anonymous.as_ref().and_then(of_anonymous));
    match errors.is_empty() {
        true => Ok(compiled),
        false => Err(errors),
    }
}

fn of_anonymous(own: &Anonymous) -> Option<Error> {
    let contradicts = !own.enabled && !own.conditions.is_empty();
    contradicts.then(|| {
        let path = Path::new("anonymous").child("conditions");
        let why = "enabled should be set to true when conditions are defined";
        let mut error = Error::invalid(&path, "", why);
        // upstream shows its internal type
        let conditions = own.conditions.iter().map(|own| json!({"Path": own.path}));
        error.show_as(Value::from_iter(conditions).to_string());
        error
    })
}

fn of_authenticator(own: &JwtAuthenticator, disallowed: &[String], path: &Path, errors: &mut ErrorList) -> Expressions {
    let mut compiled = Expressions::default();
    of_issuer(&own.issuer, disallowed, &path.child("issuer"), errors);
    let at = path.child("claimValidationRules");
    compiled.claim_rules = of_claim_rules(&own.claim_validation_rules, &at, errors);
    of_mappings(&own.claim_mappings, &mut compiled, &path.child("claimMappings"), errors);
    let at = path.child("userValidationRules");
    compiled.user_rules = of_user_rules(&own.user_validation_rules, &at, errors);
    compiled
}

fn of_issuer(own: &Issuer, disallowed: &[String], path: &Path, errors: &mut ErrorList) {
    let at = path.child("url");
    match own.url.is_empty() {
        true => errors.push(Error::required(&at, "")),
        false => of_url(&own.url, disallowed, &at, errors),
    }
    let (document, at) = (own.discovery_url.as_str(), path.child("discoveryURL"));
    if !document.is_empty() {
        if !own.url.is_empty() && own.url.trim_end_matches('/') == document.trim_end_matches('/') {
            errors.push(Error::invalid(&at, document, "discoveryURL must be different from URL"));
        }
        of_url(document, &[], &at, errors);
    }
    of_audiences(own, path, errors);
    let bundle = own.certificate_authority.as_str();
    if let Some(why) = wrong_bundle(bundle).filter(|_| !bundle.is_empty()) {
        errors.push(Error::invalid(&path.child("certificateAuthority"), "<omitted>", why));
    }
    let (selector, at) = (own.egress_selector_type.as_str(), path.child("egressSelectorType"));
    if !matches!(selector, "" | "controlplane" | "cluster") {
        let why = "egress selector must be either controlplane or cluster";
        errors.push(Error::invalid(&at, selector, why));
    }
}

/// What is wrong with the certificates (PEM) of authorities.
fn wrong_bundle(bundle: &str) -> Option<&'static str> {
    let mut found = CertificateDer::pem_slice_iter(bundle.as_bytes()).flatten().peekable();
    if found.peek().is_none() {
        return Some("data does not contain any valid RSA or ECDSA certificates");
    }
    let all_are_read = found.all(|own| x509_parser::parse_x509_certificate(&own).is_ok());
    (!all_are_read).then_some("x509: malformed certificate")
}

fn of_url(url: &str, disallowed: &[String], at: &Path, errors: &mut ErrorList) {
    if disallowed.iter().any(|own| own == url) {
        let sorted: BTreeSet<&str> = disallowed.iter().map(String::as_str).collect();
        let sorted: Vec<&str> = sorted.into_iter().collect();
        let why = format!("URL must not overlap with disallowed issuers: [{}]", sorted.join(" "));
        errors.push(Error::invalid(at, url, why));
    }
    let parsed = match Link::parse(url) {
        Ok(parsed) => parsed,
        Err(why) => {
            errors.push(Error::invalid(at, url, why));
            return;
        }
    };
    for (wrong, why) in [
        (parsed.scheme() != "https", "URL scheme must be https"),
        (parsed.user().is_some(), "URL must not contain a username or password"),
        (!parsed.query().is_empty(), "URL must not contain a query"),
        (!parsed.fragment().is_empty(), "URL must not contain a fragment"),
    ] {
        if wrong {
            errors.push(Error::invalid(at, url, why));
        }
    }
}

fn of_audiences(own: &Issuer, path: &Path, errors: &mut ErrorList) {
    let at = path.child("audiences");
    if own.audiences.is_empty() {
        errors.push(Error::required(&at, format!("at least one {at} is required")));
        return;
    }
    let mut seen = BTreeSet::new();
    for (number, audience) in own.audiences.iter().enumerate() {
        let at = at.index(number);
        if audience.is_empty() {
            errors.push(Error::required(&at, ""));
        }
        if !seen.insert(audience) {
            errors.push(Error::duplicate(&at, audience.as_str()));
        }
    }
    let policy = own.audience_match_policy.as_str();
    let why = match own.audiences.len() {
        1 if !policy.is_empty() && policy != MATCH_ANY => {
            "audienceMatchPolicy must be empty or MatchAny for single audience"
        }
        2.. if policy != MATCH_ANY => "audienceMatchPolicy must be MatchAny for multiple audiences",
        _ => return,
    };
    errors.push(Error::invalid(&path.child("audienceMatchPolicy"), policy, why));
}

/// Compiles an expression, or tells what is wrong with it.
fn compiled(subject: Subject, expression: &str, at: &Path, errors: &mut ErrorList) -> Option<Expression> {
    match Expression::compile(subject, expression) {
        Ok(compiled) => Some(compiled),
        Err(fault) => {
            errors.push(fault.at(at, expression));
            None
        }
    }
}

fn of_claim_rules(rules: &[ClaimValidationRule], path: &Path, errors: &mut ErrorList) -> Vec<(Expression, String)> {
    let (mut claims, mut expressions, mut found) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (number, rule) in rules.iter().enumerate() {
        let path = path.index(number);
        match (rule.claim.as_str(), rule.expression.as_str()) {
            ("", "") => errors.push(Error::required(&path, "claim or expression is required")),
            (claim, "") => {
                if !rule.message.is_empty() {
                    let (at, why) = (path.child("message"), "may not be specified when claim is set");
                    errors.push(Error::invalid(&at, rule.message.as_str(), why));
                }
                if !claims.insert(claim) {
                    errors.push(Error::duplicate(&path.child("claim"), claim));
                }
            }
            ("", expression) => {
                if !rule.required_value.is_empty() {
                    let (at, why) = (
                        path.child("requiredValue"),
                        "may not be specified when expression is set",
                    );
                    errors.push(Error::invalid(&at, rule.required_value.as_str(), why));
                }
                let at = path.child("expression");
                if !expressions.insert(expression) {
                    errors.push(Error::duplicate(&at, expression));
                    continue;
                }
                let rule = compiled(Subject::ClaimRule, expression, &at, errors).map(|own| (own, rule.message.clone()));
                found.extend(rule);
            }
            (claim, _) => errors.push(Error::invalid(&path, claim, "claim and expression can't both be set")),
        }
    }
    found
}

fn of_user_rules(rules: &[UserValidationRule], path: &Path, errors: &mut ErrorList) -> Vec<(Expression, String)> {
    let (mut expressions, mut found) = (BTreeSet::new(), Vec::new());
    for (number, rule) in rules.iter().enumerate() {
        let (at, expression) = (path.index(number).child("expression"), rule.expression.as_str());
        if expression.is_empty() {
            errors.push(Error::required(&at, ""));
        } else if !expressions.insert(expression) {
            errors.push(Error::duplicate(&at, expression));
        } else {
            let rule = compiled(Subject::UserRule, expression, &at, errors).map(|own| (own, rule.message.clone()));
            found.extend(rule);
        }
    }
    found
}

/// A claim or an expression. What is wrong besides does not keep an expression from being compiled, as with upstream.
fn of_prefixed(
    own: &PrefixedClaimOrExpression,
    required: bool,
    path: &Path,
    errors: &mut ErrorList,
) -> Option<Expression> {
    match (own.claim.as_str(), own.expression.as_str()) {
        ("", "") => {
            if required {
                errors.push(Error::required(path, "claim or expression is required"));
            }
            None
        }
        (_, "") => {
            if own.prefix.is_none() {
                let why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                errors.push(Error::required(&path.child("prefix"), why));
            }
            None
        }
        ("", expression) => {
            if let Some(prefix) = &own.prefix {
                let why = "may not be specified when expression is set";
                errors.push(Error::invalid(&path.child("prefix"), prefix.as_str(), why));
            }
            compiled(Subject::Mapping, expression, &path.child("expression"), errors)
        }
        _ => {
            errors.push(Error::invalid(path, "", "claim and expression can't both be set"));
            None
        }
    }
}

fn of_mappings(own: &ClaimMappings, found: &mut Expressions, path: &Path, errors: &mut ErrorList) {
    let before = errors.len();
    found.username = of_prefixed(&own.username, true, &path.child("username"), errors);
    let username_fits = errors.len() == before;
    found.groups = of_prefixed(&own.groups, false, &path.child("groups"), errors);
    let at = path.child("uid");
    match (own.uid.claim.as_str(), own.uid.expression.as_str()) {
        (_, "") => {}
        ("", expression) => found.uid = compiled(Subject::Mapping, expression, &at.child("expression"), errors),
        _ => errors.push(Error::invalid(&at, "", "claim and expression can't both be set")),
    }
    let mut keys = BTreeSet::new();
    for (number, mapping) in own.extra.iter().enumerate() {
        let path = path.child("extra").index(number);
        let (key, at) = (mapping.key.as_str(), path.child("key"));
        domain_prefixed(key, &at, errors);
        if key != key.to_lowercase() {
            errors.push(Error::invalid(&at, key, "must be lowercase"));
        }
        if is_reserved(key) {
            let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
            errors.push(Error::invalid(&at, key, why));
        }
        if !keys.insert(key) {
            errors.push(Error::duplicate(&at, key));
            continue;
        }
        let (expression, at) = (mapping.value_expression.as_str(), path.child("valueExpression"));
        if expression.is_empty() {
            errors.push(Error::required(&at, ""));
            continue;
        }
        let value = compiled(Subject::Mapping, expression, &at, errors);
        found.extra.extend(value.map(|value| (key.to_owned(), value)));
    }
    let username = found.username.as_ref().filter(|_| username_fits);
    let by_email = username.is_some_and(|own| own.asks_for("email"));
    let rules = found.claim_rules.iter().map(|(rule, _)| rule);
    let extra = found.extra.iter().map(|(_, value)| value);
    let verified = rules
        .chain(extra)
        .chain(username)
        .any(|own| own.asks_for("email_verified"));
    if by_email && !verified {
        let why = "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression";
        let at = path.child("username").child("expression");
        errors.push(Error::invalid(&at, own.username.expression.as_str(), why));
    }
}

/// Whether a fact is named after a domain that is Kubernetes' own.
fn is_reserved(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else {
        return false;
    };
    RESERVED.iter().any(|own| {
        let before = domain.strip_suffix(own);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

#[cfg(test)]
mod tests;
