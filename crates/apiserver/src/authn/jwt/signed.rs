//! Tokens as they come: a header, claims and a signature, and which algorithms may have made it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gardener_apimachinery::field::go_quote;
use serde_json::Value;

use super::claims::Claims;
use crate::tokens;

/// Longest token that is looked at: as much as Go's server reads of a request's headers.
const LONGEST: usize = 1 << 20;
/// Google's name, with and without its scheme: its tokens have either.
const GOOGLE: (&str, &str) = ("https://accounts.google.com", "accounts.google.com");

/// Algorithms of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// ECDSA on P-521 with SHA-512.
    Es512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    Rs256,
    /// RSA (PKCS #1 v1.5) with SHA-384.
    Rs384,
    /// RSA (PKCS #1 v1.5) with SHA-512.
    Rs512,
}

impl Algorithm {
    /// All, in the order in which messages list them.
    pub const ALL: [Self; 9] = [
        Self::Es256,
        Self::Es384,
        Self::Es512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
    ];

    /// Its name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
        }
    }

    /// An algorithm by its name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.name() == name)
    }
}

/// A token in its parts. Nothing is verified.
pub(super) struct Signed<'t> {
    /// What was signed: header and claims as they were sent.
    pub(super) message: &'t str,
    /// The header's algorithm.
    pub(super) algorithm: Algorithm,
    /// Which of the issuer's keys made the signature; empty: not told.
    pub(super) key: String,
    /// The signature.
    pub(super) signature: Vec<u8>,
    /// Whether the header wants nothing that is not known here: no signature is good then.
    pub(super) is_understood: bool,
    /// What the token says, once its signature is found to be good.
    pub(super) claims: Claims,
}

/// Who a token says issued it, if it is one at all. Not to be believed yet.
pub(super) fn issuer(token: &str) -> Option<String> {
    if token.len() > LONGEST {
        return None;
    }
    let issuer = tokens::issuer(token)?;
    match issuer == GOOGLE.1 {
        true => Some(GOOGLE.0.to_owned()),
        false => Some(issuer),
    }
}

/// Whether a token may name its issuer so.
pub(super) fn is_issuer(claimed: &str, issuer: &str) -> bool {
    claimed == issuer || (claimed, issuer) == (GOOGLE.1, GOOGLE.0)
}

/// Texts as Go prints a list of them.
pub(super) fn listed<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| go_quote(text.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

/// Whether a header wants (`crit`) no more than that the claims are encoded as they always are (`b64`).
fn is_understood(header: &Claims) -> bool {
    let encoded = header.get("b64").is_none_or(|own| *own == Value::Bool(true));
    let wanted = match header.get("crit") {
        None | Some(Value::Null) => return encoded,
        Some(wanted) => wanted.as_array(),
    };
    encoded && wanted.is_some_and(|wanted| wanted.iter().all(|name| name == "b64"))
}

impl<'t> Signed<'t> {
    /// Reads a token that one of these algorithms signed.
    ///
    /// # Errors
    /// It is none, or another algorithm did.
    pub(super) fn read(token: &'t str, algorithms: &[Algorithm]) -> Result<Self, String> {
        let malformed = |why: &str| format!("oidc: malformed jwt: {why}");
        if token.len() > LONGEST {
            return Err(malformed("it is too long"));
        }
        let (message, signature) = token
            .rsplit_once('.')
            .ok_or_else(|| malformed("it must have three parts"))?;
        let parts = message.split_once('.').filter(|(_, claims)| !claims.contains('.'));
        let (header, claims) = parts.ok_or_else(|| malformed("it must have three parts"))?;
        let decoded = |part: &str| {
            URL_SAFE_NO_PAD
                .decode(part)
                .map_err(|error| malformed(&error.to_string()))
        };
        let (header, claims, signature) = (decoded(header)?, decoded(claims)?, decoded(signature)?);
        let header: Claims = serde_json::from_slice(&header).map_err(|error| malformed(&error.to_string()))?;
        let member = |name: &str| header.get(name).and_then(Value::as_str).unwrap_or_default();
        let algorithm = Algorithm::of(member("alg")).filter(|own| algorithms.contains(own));
        let algorithm = algorithm.ok_or_else(|| {
            format!(
                "oidc: id token signed with unsupported algorithm, expected {} got {}",
                listed(algorithms.iter().map(|own| own.name())),
                go_quote(member("alg"))
            )
        })?;
        let claims = serde_json::from_slice(&claims);
        Ok(Self {
            message,
            algorithm,
            key: member("kid").to_owned(),
            signature,
            is_understood: is_understood(&header),
            claims: claims.map_err(|error| format!("oidc: failed to unmarshal claims: {error}"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(header: &str, claims: &str) -> String {
        format!(
            "{}.{}.AAAA",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims)
        )
    }

    #[test]
    fn tokens_are_read_in_their_parts() {
        let found = token(r#"{"alg":"ES256","kid":"k"}"#, r#"{"iss":"https://a","x":1}"#);
        assert_eq!(issuer(&found).as_deref(), Some("https://a"));
        let read = Signed::read(&found, &Algorithm::ALL).unwrap();
        assert_eq!(
            (read.algorithm, read.key.as_str(), read.signature.len()),
            (Algorithm::Es256, "k", 3)
        );
        assert_eq!(
            (read.claims["x"].as_i64(), format!("{}.AAAA", read.message)),
            (Some(1), found.clone())
        );
        let google = token("{}", r#"{"iss":"accounts.google.com"}"#);
        assert_eq!(issuer(&google).as_deref(), Some("https://accounts.google.com"));
        assert!(is_issuer("accounts.google.com", "https://accounts.google.com"));
        assert!(!is_issuer("https://accounts.google.com", "accounts.google.com"));
        for text in ["", "a.b", "a.b.c.d", "%.%.%", "{}"] {
            assert_eq!(issuer(text), None, "{text}");
        }
        for (header, expected) in [
            (r#"{"alg":"ES256"}"#, true),
            (r#"{"alg":"ES256","crit":[]}"#, true),
            (r#"{"alg":"ES256","crit":["b64"],"b64":true}"#, true),
            (r#"{"alg":"ES256","crit":["b64"],"b64":false}"#, false),
            (r#"{"alg":"ES256","crit":["b64","exp"]}"#, false),
            (r#"{"alg":"ES256","crit":"b64"}"#, false),
        ] {
            let token = token(header, "{}");
            assert_eq!(
                Signed::read(&token, &Algorithm::ALL).unwrap().is_understood,
                expected,
                "{header}"
            );
        }
        let long = format!("{}.a", "a.".repeat(LONGEST));
        let signed_by = |algorithms: &[Algorithm]| Signed::read(&found, algorithms).err().unwrap();
        assert_eq!(
            signed_by(&[Algorithm::Rs256, Algorithm::Ps512]),
            r#"oidc: id token signed with unsupported algorithm, expected ["RS256" "PS512"] got "ES256""#
        );
        for (text, expected) in [
            ("a.b", "malformed jwt"),
            ("a.b.c.d", "malformed jwt"),
            (&*long, "it is too long"),
            (&token("1", "{}"), "malformed jwt"),
            (&token(r#"{"alg":"none"}"#, "{}"), r#"got "none""#),
            (&token(r#"{"alg":"HS256"}"#, "{}"), r#"got "HS256""#),
            (&token(r#"{"alg":"ES256"}"#, "[]"), "failed to unmarshal claims"),
            (
                &token(r#"{"alg":"ES256"}"#, &"[".repeat(100_000)),
                "failed to unmarshal claims",
            ),
        ] {
            let error = Signed::read(text, &Algorithm::ALL).err().unwrap();
            assert!(error.contains(expected), "{error}");
        }
    }
}
