//! Whether a token whose signature is good is for this cluster and for now, in upstream's words. Pure.

use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::go_json::type_of;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::claims::Claims;
use super::signed::{is_issuer, listed};
use crate::meta;

/// By how many seconds a token may be ahead of its time.
const LEEWAY: i64 = 60;
/// The claims that tell which other claims are elsewhere, and where.
pub(super) const CLAIM_NAMES: &str = "_claim_names";
pub(super) const CLAIM_SOURCES: &str = "_claim_sources";

/// What Go says of a claim that is of another type than it should be.
fn misread(value: &Value, name: &str, wanted: &str) -> String {
    let found = type_of(value);
    format!(
        "oidc: failed to unmarshal claims: json: cannot unmarshal {found} into Go struct field idToken.{name} of type {wanted}"
    )
}

/// Seconds that may have a fraction. Go makes the earliest moment of what is out of reach, on most machines: who is good for ever is not good.
fn whole(seconds: f64) -> i64 {
    match seconds.abs() < i64::MAX as f64 {
        true => seconds as i64,
        false => i64::MIN,
    }
}

/// A moment in seconds since the epoch, which may be written in several ways.
fn moment(claims: &Claims, name: &str) -> Result<Option<Timestamp>, String> {
    let seconds = match claims.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number
            .as_i64()
            .unwrap_or_else(|| number.as_f64().map_or(i64::MIN, whole)),
        Some(Value::String(text)) => {
            let fraction = || text.parse::<f64>().ok().filter(|number| number.is_finite()).map(whole);
            text.parse::<i64>().ok().or_else(fraction).ok_or_else(|| {
                let shown = go_quote(&go_quote(text));
                format!("oidc: failed to unmarshal claims: json: invalid number literal, trying to unmarshal {shown} into Number")
            })?
        }
        Some(other) => return Err(misread(other, name, "json.Number")),
    };
    let ends = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Ok(Timestamp::from_second(seconds.clamp(ends.0, ends.1)).ok())
}

/// A text; empty if there is none.
fn text<'c>(claims: &'c Claims, name: &str) -> Result<&'c str, String> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(misread(other, name, "string")),
    }
}

fn audiences(claims: &Claims) -> Result<Vec<&str>, String> {
    match claims.get("aud") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one]),
        Some(Value::Array(many)) => {
            let texts = many
                .iter()
                .map(|own| own.as_str().ok_or_else(|| misread(own, "aud", "string")));
            texts.collect()
        }
        Some(other) => Err(misread(other, "aud", "[]string")),
    }
}

/// As Go prints a moment in UTC.
fn printed(moment: Option<Timestamp>) -> String {
    let moment = moment.map(|own| own.strftime("%Y-%m-%d %H:%M:%S").to_string());
    format!("{} +0000 UTC", moment.as_deref().unwrap_or("0001-01-01 00:00:00"))
}

/// Whether claims that are elsewhere are told in a way that can be followed.
fn check_sources(claims: &Claims) -> Result<(), String> {
    let members = |name: &str, wanted: &str| match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(members)) => Ok(Some(members)),
        Some(other) => Err(misread(other, name, wanted)),
    };
    let names = members(CLAIM_NAMES, "map[string]string")?;
    let sources = members(CLAIM_SOURCES, "map[string]oidc.claimSource")?;
    for source in names.into_iter().flat_map(Claims::values) {
        match source.as_str().ok_or_else(|| misread(source, CLAIM_NAMES, "string"))? {
            "" => return Err("oidc: failed to obtain source from claim name".to_owned()),
            source if sources.and_then(|own| own.get(source)).is_none() => {
                return Err("oidc: source does not exist".to_owned());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a token is the issuer's, for one of these audiences, and for now.
///
/// # Errors
/// Why it is not.
pub(super) fn check(claims: &Claims, issuer: &str, wanted: &[String], now: Timestamp) -> Result<(), String> {
    let claimed = text(claims, "iss")?;
    // these are not looked at, but must be what they are
    for name in ["sub", "nonce", "at_hash"] {
        text(claims, name)?;
    }
    moment(claims, "iat")?;
    let (found, expiry, not_before) = (audiences(claims)?, moment(claims, "exp")?, moment(claims, "nbf")?);
    check_sources(claims)?;
    if !is_issuer(claimed, issuer) {
        return Err(format!(
            "oidc: id token issued by a different provider, expected {} got {}",
            go_quote(issuer),
            go_quote(claimed)
        ));
    }
    let for_one = wanted.iter().any(|own| found.contains(&own.as_str()));
    if let (false, [single]) = (for_one, wanted) {
        return Err(format!(
            "oidc: expected audience {} got {}",
            go_quote(single),
            listed(found)
        ));
    }
    if expiry.is_none_or(|expiry| expiry < now) {
        return Err(format!("oidc: token is expired (Token Expiry: {})", printed(expiry)));
    }
    if let Some(start) = not_before.filter(|start| meta::later(now, LEEWAY) < *start) {
        return Err(format!(
            "oidc: current time {} before the nbf (not before) time: {}",
            printed(Some(now)),
            printed(Some(start))
        ));
    }
    if !for_one {
        let mut sorted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        return Err(format!(
            "oidc: expected audience in {} got {}",
            listed(sorted),
            listed(found)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_are_for_somebody_and_for_some_time() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let (one, two) = (vec!["a".to_owned()], vec!["b".to_owned(), "a".to_owned()]);
        let good = json!({"iss": "https://i", "aud": "a", "exp": 1_000_000});
        for (change, wanted, expected) in [
            (json!({}), &one, None),
            (json!({"aud": ["x", "a"], "nbf": 1_000_060}), &two, None),
            (json!({"exp": 1_000_000.7}), &one, None),
            (json!({"exp": "1000001"}), &one, None),
            (json!({"exp": 1_000_000_000_000_i64}), &one, None),
            (
                json!({"exp": 1e300}),
                &one,
                Some("oidc: token is expired (Token Expiry: -9999-01-02 01:59:59 +0000 UTC)"),
            ),
            (
                json!({"exp": 999_999}),
                &one,
                Some("oidc: token is expired (Token Expiry: 1970-01-12 13:46:39 +0000 UTC)"),
            ),
            (
                json!({"exp": null}),
                &one,
                Some("oidc: token is expired (Token Expiry: 0001-01-01 00:00:00 +0000 UTC)"),
            ),
            (
                json!({"exp": []}),
                &one,
                Some(
                    "oidc: failed to unmarshal claims: json: cannot unmarshal array into Go struct field idToken.exp of type json.Number",
                ),
            ),
            (
                json!({"nbf": 1_000_061}),
                &one,
                Some(
                    "oidc: current time 1970-01-12 13:46:40 +0000 UTC before the nbf (not before) time: 1970-01-12 13:47:41 +0000 UTC",
                ),
            ),
            (
                json!({"aud": ["b", "c"]}),
                &one,
                Some(r#"oidc: expected audience "a" got ["b" "c"]"#),
            ),
            (
                json!({"aud": "c"}),
                &two,
                Some(r#"oidc: expected audience in ["a" "b"] got ["c"]"#),
            ),
            (
                json!({"aud": null}),
                &two,
                Some(r#"oidc: expected audience in ["a" "b"] got []"#),
            ),
            (
                json!({"aud": [1]}),
                &two,
                Some(
                    "oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field idToken.aud of type string",
                ),
            ),
            (
                json!({"iss": "https://j"}),
                &one,
                Some(r#"oidc: id token issued by a different provider, expected "https://i" got "https://j""#),
            ),
            (
                json!({"_claim_names": {"groups": "s"}, "_claim_sources": {"s": {"endpoint": "https://x"}}}),
                &one,
                None,
            ),
            (
                json!({"_claim_names": {"groups": "s"}}),
                &one,
                Some("oidc: source does not exist"),
            ),
            (
                json!({"_claim_names": {"groups": ""}}),
                &one,
                Some("oidc: failed to obtain source from claim name"),
            ),
            (
                json!({"_claim_names": []}),
                &one,
                Some(
                    "oidc: failed to unmarshal claims: json: cannot unmarshal array into Go struct field idToken._claim_names of type map[string]string",
                ),
            ),
        ] {
            let mut claims = good.as_object().unwrap().clone();
            claims.extend(change.as_object().unwrap().clone());
            assert_eq!(
                check(&claims, "https://i", wanted, now).err().as_deref(),
                expected,
                "{change}"
            );
        }
    }
}
