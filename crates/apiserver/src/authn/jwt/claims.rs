//! From the claims of a token whose signature is good to a user, or to why there is none, in upstream's words. Pure.

use std::collections::BTreeMap;

use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::go_json::type_of;
use serde_json::{Map, Number, Value, json};

use super::expressions::{self, Expression, Untold};
use crate::authn::configuration::{ClaimMappings, JwtAuthenticator};
use crate::user::UserInfo;

/// The fact by which a token can be told from others.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The claims of a token.
pub(super) type Claims = Map<String, Value>;

/// The compiled expressions of an issuer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expressions {
    /// Tells the user's name.
    pub(crate) username: Option<Expression>,
    /// Tells its groups.
    pub(crate) groups: Option<Expression>,
    /// Tells its uid.
    pub(crate) uid: Option<Expression>,
    /// Tell more facts, by their names.
    pub(crate) extra: Vec<(String, Expression)>,
    /// Judge claims, with what is told where they do not hold.
    pub(crate) claim_rules: Vec<(Expression, String)>,
    /// Judge the user.
    pub(crate) user_rules: Vec<(Expression, String)>,
}

impl Expressions {
    fn read_claims(&self) -> bool {
        let single = self.username.is_some() || self.groups.is_some() || self.uid.is_some();
        single || !self.extra.is_empty() || !self.claim_rules.is_empty()
    }
}

/// The text of a claim.
fn text(claims: &Claims, name: &str) -> Result<String, String> {
    match claims.get(name) {
        None => Err("claim not present".to_owned()),
        // Go leaves what it reads into as it was
        Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(misread(other, "string")),
    }
}

/// What Go says of a value that is of another type than it should be.
fn misread(value: &Value, wanted: &str) -> String {
    let found = type_of(value);
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// The texts of a claim that is a text or a list of them.
fn texts(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Array(elements) => {
            let texts = elements.iter().map(|element| match element {
                Value::Null => Ok(String::new()),
                Value::String(text) => Ok(text.clone()),
                // the list is read as a text then
                _ => Err(misread(value, "string")),
            });
            texts.collect()
        }
        other => Err(misread(other, "string")),
    }
}

/// Claims as expressions see them: every number is one with a fraction, as Go reads JSON of no type.
fn with_fractions(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let fraction = number.as_f64().and_then(Number::from_f64);
            fraction.map_or_else(|| value.clone(), Value::Number)
        }
        Value::Array(elements) => elements.iter().map(with_fractions).collect(),
        Value::Object(members) => of_members(members),
        other => other.clone(),
    }
}

fn of_members(members: &Claims) -> Value {
    let members = members
        .iter()
        .map(|(name, value)| (name.clone(), with_fractions(value)));
    Value::Object(members.collect())
}

fn username(own: &ClaimMappings, compiled: &Expressions, claims: &Claims, seen: &Value) -> Result<String, String> {
    if let Some(expression) = &compiled.username {
        let told = expression.text(seen, "username");
        let name = told.map_err(|why| format!("oidc: error evaluating username claim expression: {why}"))?;
        return match name.is_empty() {
            true => Err("oidc: empty username via CEL expression is not allowed".to_owned()),
            false => Ok(name),
        };
    }
    let claim = own.username.claim.as_str();
    let name = text(claims, claim);
    let name = name.map_err(|why| format!("oidc: parse username claims {}: {why}", go_quote(claim)))?;
    if claim == "email" {
        match claims.get("email_verified") {
            None | Some(Value::Bool(true)) => {}
            Some(Value::Bool(false) | Value::Null) => return Err("oidc: email not verified".to_owned()),
            Some(other) => {
                return Err(format!(
                    "oidc: parse 'email_verified' claim: {}",
                    misread(other, "bool")
                ));
            }
        }
    }
    Ok(format!("{}{name}", own.username.prefix.as_deref().unwrap_or_default()))
}

fn groups(own: &ClaimMappings, compiled: &Expressions, claims: &Claims, seen: &Value) -> Result<Vec<String>, String> {
    let claim = own.groups.claim.as_str();
    if let Some(value) = claims.get(claim).filter(|_| !claim.is_empty()) {
        let groups = texts(value).map_err(|why| format!("oidc: parse groups claim {}: {why}", go_quote(claim)))?;
        let prefix = own.groups.prefix.as_deref().unwrap_or_default();
        return Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect());
    }
    let Some(expression) = &compiled.groups else {
        return Ok(Vec::new());
    };
    let told = expression.texts(seen);
    told.map_err(|why| format!("oidc: error evaluating group claim expression: {why}"))
}

fn uid(own: &ClaimMappings, compiled: &Expressions, claims: &Claims, seen: &Value) -> Result<String, String> {
    let claim = own.uid.claim.as_str();
    if !claim.is_empty() {
        let told = text(claims, claim);
        return told.map_err(|why| format!("oidc: parse uid claim {}: {why}", go_quote(claim)));
    }
    let Some(expression) = &compiled.uid else {
        return Ok(String::new());
    };
    let told = expression.text(seen, "uid");
    told.map_err(|why| format!("oidc: error evaluating uid claim expression: {why}"))
}

fn extra(compiled: &Expressions, claims: &Claims, seen: &Value) -> Result<BTreeMap<String, Vec<String>>, String> {
    let mut extra = BTreeMap::new();
    if let Some(id) = claims.get("jti").and_then(Value::as_str).filter(|id| !id.is_empty()) {
        extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
    }
    for (key, expression) in &compiled.extra {
        let values = expression.texts(seen);
        let values = values.map_err(|why| match why {
            Untold::Failed(_) => why.to_string(),
            Untold::Unfit => {
                let source = expression.source();
                format!("oidc: error evaluating extra claim expression: {source}: {why}")
            }
        })?;
        if !values.is_empty() {
            extra.insert(key.clone(), values);
        }
    }
    Ok(extra)
}

/// Whom a token with these claims stands for.
///
/// # Errors
/// Why it stands for nobody.
pub(super) fn user(own: &JwtAuthenticator, compiled: &Expressions, claims: &Claims) -> Result<UserInfo, String> {
    let seen = match compiled.read_claims() {
        true => of_members(claims),
        false => Value::Null,
    };
    let mappings = &own.claim_mappings;
    let mut user = UserInfo {
        name: username(mappings, compiled, claims, &seen)?,
        groups: groups(mappings, compiled, claims, &seen)?,
        uid: uid(mappings, compiled, claims, &seen)?,
        extra: extra(compiled, claims, &seen)?,
    };
    for rule in own.claim_validation_rules.iter().filter(|rule| !rule.claim.is_empty()) {
        let (claim, wanted) = (rule.claim.as_str(), rule.required_value.as_str());
        if !claims.contains_key(claim) {
            return Err(format!("oidc: required claim {claim} not present in ID token"));
        }
        let found = text(claims, claim).map_err(|why| format!("oidc: parse claim {claim}: {why}"))?;
        if found != wanted {
            return Err(format!(
                "oidc: required claim {claim} value does not match. Got = {found}, want = {wanted}"
            ));
        }
    }
    let judged = expressions::judge_claims(&compiled.claim_rules, &seen);
    judged.map_err(|why| format!("oidc: error evaluating claim validation expression: {why}"))?;
    if !compiled.user_rules.is_empty() {
        let told = json!({"username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra});
        let judged = expressions::judge_user(&compiled.user_rules, &told);
        judged.map_err(|why| format!("oidc: error evaluating user info validation rule: {why}"))?;
    }
    user.admit();
    Ok(user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::configuration::Configuration;
    use crate::authn::configuration::validation::validate;

    /// Whom claims stand for: the name, groups, uid and facts.
    fn mapped(mappings: &str, rules: &str, claims: &Value) -> Result<String, String> {
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
        let text = format!(
            "{head}jwt: [{{issuer: {{url: 'https://i', audiences: [a]}}, claimMappings: {{{mappings}}}{rules}}}]\n"
        );
        let mut configuration = Configuration::parse(&text).unwrap();
        let compiled = validate(&configuration, &[]).unwrap();
        let own = configuration.issuers.remove(0);
        let user = user(&own, &compiled[0], claims.as_object().unwrap())?;
        let mut told = format!("{} {}", user.name, user.groups.join(","));
        if !user.uid.is_empty() {
            told.push_str(&format!(" uid={}", user.uid));
        }
        for (key, values) in &user.extra {
            told.push_str(&format!(" {key}={}", values.join(",")));
        }
        Ok(told)
    }

    const BY_CLAIM: &str =
        "username: {claim: sub, prefix: 'o:'}, groups: {claim: roles, prefix: 'g:'}, uid: {claim: id}";
    const BY_EMAIL: &str = "username: {claim: email, prefix: ''}";
    const BY_EXPRESSION: &str = "username: {expression: \"claims.sub + ':x'\"}, groups: {expression: claims.roles}, uid: {expression: claims.id}, \
        extra: [{key: a.b/c, valueExpression: claims.x}, {key: a.b/d, valueExpression: 'claims.?y.orValue([])'}]";

    #[test]
    fn claims_become_users() {
        for (mappings, claims, expected) in [
            (
                BY_CLAIM,
                json!({"sub": "a", "roles": ["x", "y"], "id": "1", "jti": "t"}),
                Ok("o:a g:x,g:y,system:authenticated uid=1 authentication.kubernetes.io/credential-id=JTI=t"),
            ),
            (
                BY_CLAIM,
                json!({"sub": "a", "roles": "x", "id": "1", "jti": 5}),
                Ok("o:a g:x,system:authenticated uid=1"),
            ),
            (
                BY_CLAIM,
                json!({"sub": "a", "roles": null, "id": null}),
                Ok("o:a system:authenticated"),
            ),
            (
                BY_CLAIM,
                json!({"id": "1"}),
                Err("oidc: parse username claims \"sub\": claim not present"),
            ),
            (
                BY_CLAIM,
                json!({"sub": 1}),
                Err("oidc: parse username claims \"sub\": json: cannot unmarshal number into Go value of type string"),
            ),
            (
                BY_CLAIM,
                json!({"sub": "a", "roles": [1]}),
                Err("oidc: parse groups claim \"roles\": json: cannot unmarshal array into Go value of type string"),
            ),
            (
                BY_CLAIM,
                json!({"sub": "a"}),
                Err("oidc: parse uid claim \"id\": claim not present"),
            ),
            (BY_EMAIL, json!({"email": "a@b"}), Ok("a@b system:authenticated")),
            (
                BY_EMAIL,
                json!({"email": "a@b", "email_verified": true}),
                Ok("a@b system:authenticated"),
            ),
            (
                BY_EMAIL,
                json!({"email": "a@b", "email_verified": false}),
                Err("oidc: email not verified"),
            ),
            (
                BY_EMAIL,
                json!({"email": "a@b", "email_verified": "true"}),
                Err("oidc: parse 'email_verified' claim: json: cannot unmarshal string into Go value of type bool"),
            ),
            (
                BY_EXPRESSION,
                json!({"sub": "a", "roles": ["x", "", "y"], "id": "1", "x": "v", "y": ["", "w"]}),
                Ok("a:x x,y,system:authenticated uid=1 a.b/c=v a.b/d=w"),
            ),
            (
                BY_EXPRESSION,
                json!({"sub": "a", "roles": null, "id": "", "x": ""}),
                Ok("a:x system:authenticated"),
            ),
            (
                BY_EXPRESSION,
                json!({"sub": 1}),
                Err(
                    "oidc: error evaluating username claim expression: expression 'claims.sub + ':x'' resulted in error: no such overload",
                ),
            ),
            (
                BY_EXPRESSION,
                json!({"sub": "a", "roles": {"x": 1}}),
                Err(
                    "oidc: error evaluating group claim expression: expression must return a string or a list of strings",
                ),
            ),
            (
                BY_EXPRESSION,
                json!({"sub": "a", "roles": [], "id": 1}),
                Err("oidc: error evaluating uid claim expression: uid claim expression must return a string"),
            ),
            (
                "username: {expression: claims.sub}",
                json!({"sub": ""}),
                Err("oidc: empty username via CEL expression is not allowed"),
            ),
            (
                "username: {expression: 'claims.sub.lowerAscii()'}, groups: {expression: 'claims.a__dot__b.map(r, r.c__dash__d)'}",
                json!({"sub": "A", "a.b": [{"c-d": "x"}, {"c-d": "y"}]}),
                Ok("a x,y,system:authenticated"),
            ),
        ] {
            let found = mapped(mappings, "", &claims);
            assert_eq!(
                found.as_deref().map_err(String::as_str),
                expected,
                "{mappings} {claims}"
            );
        }
    }

    #[test]
    fn rules_judge_claims_and_users() {
        let rules = ", claimValidationRules: [{claim: hd, requiredValue: example.com}, \
            {expression: 'claims.exp - claims.iat <= 3600', message: 'it is good for too long'}], \
            userValidationRules: [{expression: \"!user.username.startsWith('system:') && user.groups.all(g, g != 'system:masters')\", message: 'it is reserved'}]";
        let mappings = "username: {claim: sub, prefix: ''}, groups: {claim: roles, prefix: ''}";
        let claims = |change: Value| {
            let mut claims = json!({"sub": "a", "hd": "example.com", "iat": 1, "exp": 3601});
            claims
                .as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            claims
        };
        for (change, expected) in [
            (json!({}), Ok("a system:authenticated")),
            (
                json!({"hd": "x"}),
                Err("oidc: required claim hd value does not match. Got = x, want = example.com"),
            ),
            (
                json!({"hd": 1}),
                Err("oidc: parse claim hd: json: cannot unmarshal number into Go value of type string"),
            ),
            (
                json!({"exp": 3602}),
                Err(
                    "oidc: error evaluating claim validation expression: validation expression 'claims.exp - claims.iat <= 3600' failed: it is good for too long",
                ),
            ),
            (
                json!({"iat": "x"}),
                Err(
                    "oidc: error evaluating claim validation expression: expression 'claims.exp - claims.iat <= 3600' resulted in error: no such overload",
                ),
            ),
            (
                json!({"sub": "system:x"}),
                Err(
                    "oidc: error evaluating user info validation rule: validation expression '!user.username.startsWith('system:') && user.groups.all(g, g != 'system:masters')' failed: it is reserved",
                ),
            ),
            (
                json!({"roles": "system:masters"}),
                Err(
                    "oidc: error evaluating user info validation rule: validation expression '!user.username.startsWith('system:') && user.groups.all(g, g != 'system:masters')' failed: it is reserved",
                ),
            ),
        ] {
            let found = mapped(mappings, rules, &claims(change.clone()));
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{change}");
        }
        let mut without = claims(json!({}));
        without.as_object_mut().unwrap().remove("hd");
        assert_eq!(
            mapped(mappings, rules, &without),
            Err("oidc: required claim hd not present in ID token".to_owned())
        );
    }
}
