//! Tokens of service accounts and other issuers: JWTs signed with ECDSA (ES256, ES384) or RSA (RS256), and the keys they are signed with.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use k8s_openapi::jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED, ECDSA_P384_SHA384_FIXED_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair,
    UnparsedPublicKey, VerificationAlgorithm,
};
use rustls_pki_types::pem::{PemObject, SectionKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// The kinds of keys, by the name of their signatures in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    Rs256,
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
        }
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Es256 => &ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &ECDSA_P384_SHA384_FIXED,
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        }
    }
}

/// A key pair that signs tokens.
pub struct SigningKey {
    pair: Pair,
    random: SystemRandom,
    /// The public half.
    pub public: VerifyingKey,
}

enum Pair {
    Ecdsa(Box<EcdsaKeyPair>),
    Rsa(Box<RsaKeyPair>),
}

/// A public key that tokens are checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    algorithm: Algorithm,
    /// An uncompressed point, or an `RSAPublicKey`.
    bytes: Vec<u8>,
    /// The key's id in token headers: a digest of its `SubjectPublicKeyInfo`.
    pub id: String,
}

/// Why a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a service account key must be a PEM private key, ECDSA on P-256 or P-384, or RSA of 2048 bits or more: {0}")]
pub struct KeyError(String);

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The text is no JWT.
    #[error("the token is malformed")]
    Malformed,
    /// No known key made the signature.
    #[error("the token's signature fits no known key")]
    Signature,
    /// The token is over.
    #[error("the token is expired")]
    Expired,
    /// The token is not valid yet.
    #[error("the token is not valid yet")]
    NotYet,
    /// It says that it was made later than now.
    #[error("the token is made in the future")]
    OfTheFuture,
}

/// Object identifiers in DER.
mod oid {
    pub(super) const EC_PUBLIC_KEY: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    pub(super) const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    pub(super) const P384: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];
    pub(super) const RSA_ENCRYPTION: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
}

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const NULL: &[u8] = &[0x05, 0x00];
const ZERO: &[u8] = &[0x02, 0x01, 0x00];

/// One DER value.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let bytes = content.len().to_be_bytes();
    let length = bytes.iter().skip_while(|byte| **byte == 0).copied().collect::<Vec<_>>();
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short @ 0..0x80) => out.push(short),
        // a length has at most eight bytes
        _ => {
            out.push(0x80 | u8::try_from(length.len()).unwrap_or(8));
            out.extend(length);
        }
    }
    out.extend(content);
    out
}

impl VerifyingKey {
    fn from_info(info: &[u8]) -> Option<Self> {
        let (_, parsed) = SubjectPublicKeyInfo::from_der(info).ok()?;
        let bytes = parsed.subject_public_key.data.to_vec();
        let algorithm = match parsed.parsed().ok()? {
            PublicKey::RSA(_) => Algorithm::Rs256,
            // an uncompressed point: a marker and two coordinates
            PublicKey::EC(_) if bytes.first() == Some(&4) && bytes.len() == 65 => Algorithm::Es256,
            PublicKey::EC(_) if bytes.first() == Some(&4) && bytes.len() == 97 => Algorithm::Es384,
            _ => return None,
        };
        let digest = ring::digest::digest(&ring::digest::SHA256, info);
        Some(Self {
            algorithm,
            bytes,
            id: URL_SAFE_NO_PAD.encode(digest.as_ref()),
        })
    }

    /// Reads all keys of a PEM text: public keys, those of certificates, and the public halves of private ones. Other blocks and other kinds of
    /// keys are left out.
    pub fn read_all(pem: &str) -> Vec<Self> {
        let blocks = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok);
        blocks
            .filter_map(|(kind, block)| match kind {
                SectionKind::PublicKey => Self::from_info(&block),
                SectionKind::Certificate => {
                    let (_, certificate) = X509Certificate::from_der(&block).ok()?;
                    Self::from_info(certificate.public_key().raw)
                }
                kind => SigningKey::read(kind, &block).ok().map(|key| key.public),
            })
            .collect()
    }

    /// The key as a member of a JSON Web Key Set.
    pub fn jwk(&self) -> Value {
        let mut jwk = json!({"use": "sig", "kid": self.id, "alg": self.algorithm.name()});
        let more = match self.algorithm {
            Algorithm::Rs256 => {
                let (n, e) = rsa_numbers(&self.bytes).unwrap_or_default();
                json!({"kty": "RSA", "n": n, "e": e})
            }
            curve => {
                let (x, y) = self
                    .bytes
                    .get(1..)
                    .map_or((&[][..], &[][..]), |point| point.split_at(point.len() / 2));
                let name = if curve == Algorithm::Es256 { "P-256" } else { "P-384" };
                json!({"kty": "EC", "crv": name, "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)})
            }
        };
        if let (Value::Object(jwk), Value::Object(more)) = (&mut jwk, more) {
            jwk.extend(more);
        }
        jwk
    }
}

/// Modulus and exponent of an `RSAPublicKey`, as a JSON Web Key has them.
fn rsa_numbers(key: &[u8]) -> Option<(String, String)> {
    let (_, key) = x509_parser::public_key::RSAPublicKey::from_der(key).ok()?;
    let number = |bytes: &[u8]| {
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(0);
        URL_SAFE_NO_PAD.encode(bytes.get(start..).unwrap_or_default())
    };
    Some((number(key.modulus), number(key.exponent)))
}

impl SigningKey {
    /// A new key pair on P-256, as PKCS#8 PEM.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn generate_pem() -> Result<String, KeyError> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|error| KeyError(error.to_string()))?;
        let body = STANDARD.encode(document.as_ref());
        let lines: Vec<&str> = body
            .as_bytes()
            .chunks(64)
            .filter_map(|line| std::str::from_utf8(line).ok())
            .collect();
        Ok(format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            lines.join("\n")
        ))
    }

    /// Reads the first private key of a PEM text: PKCS #8, `RSA PRIVATE KEY` or `EC PRIVATE KEY`.
    ///
    /// # Errors
    /// When there is none, or it is of another kind.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let blocks = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem.as_bytes());
        for block in blocks {
            let (kind, block) = block.map_err(|error| KeyError(error.to_string()))?;
            if matches!(
                kind,
                SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey
            ) {
                return Self::read(kind, &block);
            }
        }
        Err(KeyError("there is no private key".into()))
    }

    fn read(kind: SectionKind, block: &[u8]) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let rejected = |error: ring::error::KeyRejected| KeyError(error.to_string());
        let rsa = |pair: RsaKeyPair| {
            let algorithm = der(SEQUENCE, &[oid::RSA_ENCRYPTION, NULL]);
            let info = der(
                SEQUENCE,
                &[&algorithm, &der(BIT_STRING, &[&[0], pair.public().as_ref()])],
            );
            (Pair::Rsa(Box::new(pair)), info)
        };
        let ecdsa = |block: &[u8]| {
            let curves: [(&'static EcdsaSigningAlgorithm, &[u8]); 2] = [
                (&ECDSA_P256_SHA256_FIXED_SIGNING, oid::P256),
                (&ECDSA_P384_SHA384_FIXED_SIGNING, oid::P384),
            ];
            let mut failure = KeyError("it is of no known curve".into());
            for (curve, name) in curves {
                let algorithm = der(SEQUENCE, &[oid::EC_PUBLIC_KEY, name]);
                let wrapped = match kind {
                    SectionKind::EcPrivateKey => der(SEQUENCE, &[ZERO, &algorithm, &der(OCTET_STRING, &[block])]),
                    _ => block.to_vec(),
                };
                match EcdsaKeyPair::from_pkcs8(curve, &wrapped, &random) {
                    Ok(pair) => {
                        let point = pair.public_key().as_ref();
                        let info = der(SEQUENCE, &[&algorithm, &der(BIT_STRING, &[&[0], point])]);
                        return Ok((Pair::Ecdsa(Box::new(pair)), info));
                    }
                    Err(error) => failure = rejected(error),
                }
            }
            Err(failure)
        };
        let (pair, info) = match kind {
            SectionKind::RsaPrivateKey => RsaKeyPair::from_der(block).map(rsa).map_err(rejected)?,
            SectionKind::PrivateKey => match RsaKeyPair::from_pkcs8(block) {
                Ok(pair) => rsa(pair),
                // what is no RSA key at all may be one of a curve
                Err(error) => ecdsa(block).map_err(|other| match error.to_string().as_str() {
                    "WrongAlgorithm" | "InvalidEncoding" => other,
                    _ => rejected(error),
                })?,
            },
            SectionKind::EcPrivateKey => ecdsa(block)?,
            _ => return Err(KeyError("it is no private key".into())),
        };
        let public = VerifyingKey::from_info(&info).ok_or_else(|| KeyError("its public half is unusable".into()))?;
        Ok(Self { pair, random, public })
    }

    /// Signs claims: a service account's ([`Claims`]), or those of another issuer.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn sign<C: Serialize>(&self, claims: &C) -> Result<String, KeyError> {
        let header = json!({"alg": self.public.algorithm.name(), "kid": self.public.id}).to_string();
        let claims = serde_json::to_vec(claims).map_err(|error| KeyError(error.to_string()))?;
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let failed = |error: ring::error::Unspecified| KeyError(error.to_string());
        let signature = match &self.pair {
            Pair::Ecdsa(pair) => {
                let signature = pair.sign(&self.random, signed.as_bytes()).map_err(failed)?;
                URL_SAFE_NO_PAD.encode(signature.as_ref())
            }
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &self.random, signed.as_bytes(), &mut signature)
                    .map_err(failed)?;
                URL_SAFE_NO_PAD.encode(signature)
            }
        };
        Ok(format!("{signed}.{signature}"))
    }
}

/// What a service account token says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    /// Issuer.
    pub iss: String,
    /// `system:serviceaccount:<namespace>:<name>`.
    pub sub: String,
    /// Whom the token is for.
    #[serde(default)]
    pub aud: Vec<String>,
    /// End of validity, seconds since the epoch.
    pub exp: i64,
    /// Time of issue.
    pub iat: i64,
    /// Start of validity.
    pub nbf: i64,
    /// Unique id of the token.
    #[serde(default)]
    pub jti: String,
    /// The service account and the object the token is bound to.
    #[serde(rename = "kubernetes.io", default)]
    pub kubernetes: KubernetesClaims,
}

/// The `kubernetes.io` claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KubernetesClaims {
    /// The service account's namespace.
    pub namespace: String,
    /// The service account.
    pub serviceaccount: Reference,
    /// The pod the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    /// The secret the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    /// The node the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    /// When the token should have been replaced, though it is still good: seconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<i64>,
}

/// What the kubelet asks for where a pod's volume is the one that the ServiceAccount plugin adds: an hour and a bit, in seconds.
const OF_ADDED_VOLUMES: i64 = 3600 + 7;
/// How long such a token is good where lives are extended, in seconds: a year.
const EXTENDED: i64 = 365 * 24 * 3600;

/// How long tokens live that are asked for, as `--service-account-max-token-expiration` and `--service-account-extend-token-expiration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The most that anybody gets, in seconds.
    pub longest: Option<i64>,
    /// Whether tokens of the volumes that the ServiceAccount plugin adds to pods are good for a year, for programs that read them only once.
    pub extends: bool,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            longest: None,
            extends: true,
        }
    }
}

/// How long a token lives, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// What is told to who asked.
    pub told: i64,
    /// How long the token is good.
    pub good: i64,
}

impl Lifetimes {
    /// How long a token lives for which `asked` seconds are asked. It is bound to a pod, and for the cluster's own API, or it is not.
    pub fn of(&self, asked: i64, of_pod: bool, for_cluster: bool) -> Lifetime {
        let told = match self.longest {
            Some(longest) if longest > 0 => asked.min(longest),
            _ => asked,
        };
        let extended = self.extends && of_pod && for_cluster && told == OF_ADDED_VOLUMES;
        let good = if extended { EXTENDED } else { told };
        Lifetime { told, good }
    }
}

/// An object by name and uid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Name.
    pub name: String,
    /// Unique id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// By how many seconds clocks may differ.
pub const LEEWAY: i64 = 60;

/// Checks signature and times of a token, in kube-apiserver's order: a token is good for [`LEEWAY`] longer, and by as much earlier, than it says.
///
/// # Errors
/// Tells why the token is refused.
pub fn verify(token: &str, keys: &[VerifyingKey], now: Timestamp) -> Result<Claims, TokenError> {
    let claims: Claims = signed(token, keys)?;
    let moment = |seconds: i64| i128::from(seconds) * 1_000_000_000;
    let (now, leeway) = (now.as_nanosecond(), moment(LEEWAY));
    if now + leeway < moment(claims.nbf) {
        return Err(TokenError::NotYet);
    }
    if now - leeway > moment(claims.exp) {
        return Err(TokenError::Expired);
    }
    if now + leeway < moment(claims.iat) {
        return Err(TokenError::OfTheFuture);
    }
    Ok(claims)
}

/// Checks the signature of a token, and nothing else.
///
/// # Errors
/// Tells why the token is refused.
pub fn signed<C: DeserializeOwned>(token: &str, keys: &[VerifyingKey]) -> Result<C, TokenError> {
    let mut parts = token.split('.');
    let (Some(header), Some(claims), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenError::Malformed);
    };
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed);
    let header_json: Value = serde_json::from_slice(&decode(header)?).map_err(|_| TokenError::Malformed)?;
    let algorithm = header_json.get("alg").and_then(Value::as_str).unwrap_or_default();
    let signature = decode(signature)?;
    let signed = format!("{header}.{claims}");
    let valid = keys.iter().filter(|key| key.algorithm.name() == algorithm).any(|key| {
        UnparsedPublicKey::new(key.algorithm.verification(), &key.bytes)
            .verify(signed.as_bytes(), &signature)
            .is_ok()
    });
    if !valid {
        return Err(TokenError::Signature);
    }
    serde_json::from_slice(&decode(claims)?).map_err(|_| TokenError::Malformed)
}

/// Who a token says made it. Nothing is verified.
pub fn issuer(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (_, claims, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else {
        return None;
    };
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    Some(claims.get("iss").and_then(Value::as_str).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_live_as_long_as_flags_allow() {
        let life = |told, good| Lifetime { told, good };
        let (usual, hourly) = (
            Lifetimes::default(),
            Lifetimes {
                longest: Some(3600),
                extends: true,
            },
        );
        let strict = Lifetimes {
            longest: Some(0),
            extends: false,
        };
        for (lifetimes, asked, of_pod, for_cluster, expected) in [
            (usual, 600, true, true, life(600, 600)),
            (usual, 3607, true, true, life(3607, 31_536_000)),
            (usual, 3607, false, true, life(3607, 3607)),
            (usual, 3607, true, false, life(3607, 3607)),
            (hourly, 3607, true, true, life(3600, 3600)),
            (hourly, 600, true, true, life(600, 600)),
            (strict, 3607, true, true, life(3607, 3607)),
        ] {
            assert_eq!(
                lifetimes.of(asked, of_pod, for_cluster),
                expected,
                "{lifetimes:?} {asked}"
            );
        }
    }

    #[test]
    fn only_own_and_current_tokens_pass() {
        let key = SigningKey::from_pem(&SigningKey::generate_pem().unwrap()).unwrap();
        let other = SigningKey::from_pem(&SigningKey::generate_pem().unwrap()).unwrap();
        let now = Timestamp::from_second(1_000).unwrap();
        let claims = Claims {
            exp: 2_000,
            sub: "system:serviceaccount:a:b".into(),
            ..Claims::default()
        };
        let token = key.sign(&claims).unwrap();
        assert_eq!(
            verify(&token, &[other.public.clone(), key.public.clone()], now).unwrap(),
            claims
        );
        assert_eq!(
            verify(&token, std::slice::from_ref(&other.public), now),
            Err(TokenError::Signature)
        );
        let at = |claims: &Claims, millisecond: i64| {
            let now = Timestamp::from_millisecond(millisecond).unwrap();
            verify(&key.sign(claims).unwrap(), std::slice::from_ref(&key.public), now).map(drop)
        };
        // clocks differ
        assert_eq!(at(&claims, 2_060_000), Ok(()));
        assert_eq!(at(&claims, 2_060_001), Err(TokenError::Expired));
        let later = Claims {
            nbf: 1_000,
            ..claims.clone()
        };
        assert_eq!(at(&later, 940_000), Ok(()));
        assert_eq!(at(&later, 939_999), Err(TokenError::NotYet));
        let made_later = Claims {
            iat: 1_000,
            ..claims.clone()
        };
        assert_eq!(at(&made_later, 940_000), Ok(()));
        assert_eq!(at(&made_later, 939_999), Err(TokenError::OfTheFuture));
        let forged = token.replacen('.', ".e", 1);
        assert!(verify(&forged, std::slice::from_ref(&key.public), now).is_err());
        assert_eq!(verify("x", &[], now), Err(TokenError::Malformed));
    }
}
