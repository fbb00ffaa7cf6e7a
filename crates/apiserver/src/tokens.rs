//! Service account tokens: JWTs signed with ECDSA P-256 (ES256), and the keys they are signed with.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use x509_parser::prelude::FromDer;

/// A key pair that signs tokens.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    /// The public half.
    pub public: VerifyingKey,
}

/// A public key that tokens are checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    /// The uncompressed point.
    point: Vec<u8>,
    /// The key's id in token headers: a digest of the point.
    pub id: String,
}

/// Why a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a service account key must be an ECDSA P-256 private key in PKCS#8 PEM form: {0}")]
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
    /// The token is over, or not valid yet.
    #[error("the token is expired or not valid yet")]
    Expired,
}

impl VerifyingKey {
    fn new(point: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, point);
        Self {
            point: point.to_vec(),
            id: URL_SAFE_NO_PAD.encode(digest.as_ref()),
        }
    }

    /// Reads all keys of a PEM text: public keys, and the public halves of private ones. Other blocks and other kinds of keys are left out.
    pub fn read_all(pem: &str) -> Vec<Self> {
        use rustls_pki_types::pem::PemObject;
        use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
        let public = SubjectPublicKeyInfoDer::pem_slice_iter(pem.as_bytes())
            .filter_map(Result::ok)
            .filter_map(|der| {
                let (_, info) = x509_parser::x509::SubjectPublicKeyInfo::from_der(der.as_ref()).ok()?;
                let point = info.subject_public_key.data.as_ref();
                // an uncompressed P-256 point: a marker and two coordinates
                (point.len() == 65 && point.first() == Some(&4)).then(|| Self::new(point))
            });
        let private = PrivatePkcs8KeyDer::pem_slice_iter(pem.as_bytes())
            .filter_map(Result::ok)
            .filter_map(|der| {
                let pair = EcdsaKeyPair::from_pkcs8(
                    &ECDSA_P256_SHA256_FIXED_SIGNING,
                    der.secret_pkcs8_der(),
                    &SystemRandom::new(),
                )
                .ok()?;
                Some(Self::new(pair.public_key().as_ref()))
            });
        public.chain(private).collect()
    }

    /// The key as a member of a JSON Web Key Set.
    pub fn jwk(&self) -> Value {
        let (x, y) = self
            .point
            .get(1..)
            .map_or((&[][..], &[][..]), |point| point.split_at(point.len() / 2));
        serde_json::json!({"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256", "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)})
    }
}

impl SigningKey {
    /// A new key pair, as PKCS#8 PEM.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn generate_pem() -> Result<String, KeyError> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|error| KeyError(error.to_string()))?;
        let body = base64::engine::general_purpose::STANDARD.encode(document.as_ref());
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

    /// Reads a PKCS#8 PEM.
    ///
    /// # Errors
    /// When it is no ECDSA P-256 private key.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        use rustls_pki_types::pem::PemObject;
        let der = rustls_pki_types::PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| KeyError(error.to_string()))?;
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.secret_pkcs8_der(), &random)
            .map_err(|error| KeyError(error.to_string()))?;
        let public = VerifyingKey::new(pair.public_key().as_ref());
        Ok(Self { pair, random, public })
    }

    /// Signs claims.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub fn sign(&self, claims: &Claims) -> Result<String, KeyError> {
        let header = serde_json::json!({"alg": "ES256", "kid": self.public.id, "typ": "JWT"}).to_string();
        let claims = serde_json::to_vec(claims).map_err(|error| KeyError(error.to_string()))?;
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self
            .pair
            .sign(&self.random, signed.as_bytes())
            .map_err(|error| KeyError(error.to_string()))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref())))
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
}

/// An object by name and uid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Name.
    pub name: String,
    /// Unique id.
    #[serde(default)]
    pub uid: String,
}

/// Checks signature and times of a token.
///
/// # Errors
/// Tells why the token is refused.
pub fn verify(token: &str, keys: &[VerifyingKey], now: Timestamp) -> Result<Claims, TokenError> {
    let mut parts = token.split('.');
    let (Some(header), Some(claims), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenError::Malformed);
    };
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed);
    let header_json: Value = serde_json::from_slice(&decode(header)?).map_err(|_| TokenError::Malformed)?;
    if header_json.get("alg").and_then(Value::as_str) != Some("ES256") {
        return Err(TokenError::Signature);
    }
    let signature = decode(signature)?;
    let signed = format!("{header}.{claims}");
    let valid = keys.iter().any(|key| {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key.point)
            .verify(signed.as_bytes(), &signature)
            .is_ok()
    });
    if !valid {
        return Err(TokenError::Signature);
    }
    let claims: Claims = serde_json::from_slice(&decode(claims)?).map_err(|_| TokenError::Malformed)?;
    if claims.exp <= now.as_second() || claims.nbf > now.as_second() + 60 {
        return Err(TokenError::Expired);
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            verify(
                &token,
                std::slice::from_ref(&key.public),
                Timestamp::from_second(2_000).unwrap()
            ),
            Err(TokenError::Expired)
        );
        let forged = token.replacen('.', ".e", 1);
        assert!(verify(&forged, std::slice::from_ref(&key.public), now).is_err());
        assert_eq!(verify("x", &[], now), Err(TokenError::Malformed));
    }
}
