//! Keys of issuers, as their JSON Web Key Sets have them, and whether one of them signed a token.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, EcdsaVerificationAlgorithm, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

use super::signed::{Algorithm, Signed};

/// A key set as it is sent.
#[derive(Deserialize)]
struct Document {
    keys: Option<Vec<Written>>,
}

/// A key as it is sent. Members of other types than they should be make a set that is none, as with upstream.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Written {
    kty: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Public {
    /// Modulus and exponent, of at least 2048 bits.
    Rsa(Vec<u8>, Vec<u8>),
    /// A point on a curve, uncompressed.
    Point(Curve, Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    fn of(name: &str) -> Option<Self> {
        match name {
            "P-256" => Some(Self::P256),
            "P-384" => Some(Self::P384),
            "P-521" => Some(Self::P521),
            _ => None,
        }
    }

    /// The length of a coordinate in bytes.
    fn length(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }
}

/// An issuer's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    id: String,
    public: Public,
}

impl Key {
    /// None for a key of a kind that cannot verify a token here.
    fn of(own: Written) -> Option<Self> {
        let bytes = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?.trim_end_matches('=')).ok();
        let public = match own.kty?.as_str() {
            "RSA" => {
                let plain = |bytes: Vec<u8>| -> Vec<u8> { bytes.into_iter().skip_while(|byte| *byte == 0).collect() };
                Public::Rsa(plain(bytes(own.n)?), plain(bytes(own.e)?))
            }
            "EC" => {
                let curve = Curve::of(&own.crv?)?;
                let (x, y) = (bytes(own.x)?, bytes(own.y)?);
                let fits = |coordinate: &[u8]| coordinate.len() == curve.length();
                (fits(&x) && fits(&y)).then_some(())?;
                Public::Point(curve, [&[4], x.as_slice(), y.as_slice()].concat())
            }
            _ => return None,
        };
        Some(Self {
            id: own.kid.unwrap_or_default(),
            public,
        })
    }

    fn signed(&self, token: &Signed<'_>) -> bool {
        let (message, signature) = (token.message.as_bytes(), token.signature.as_slice());
        let rsa = |parameters: &RsaParameters, n: &[u8], e: &[u8]| {
            RsaPublicKeyComponents { n, e }
                .verify(parameters, message, signature)
                .is_ok()
        };
        let point = |algorithm: &'static EcdsaVerificationAlgorithm, point: &[u8]| {
            UnparsedPublicKey::new(algorithm, point)
                .verify(message, signature)
                .is_ok()
        };
        match (token.algorithm, &self.public) {
            (Algorithm::Rs256, Public::Rsa(n, e)) => rsa(&RSA_PKCS1_2048_8192_SHA256, n, e),
            (Algorithm::Rs384, Public::Rsa(n, e)) => rsa(&RSA_PKCS1_2048_8192_SHA384, n, e),
            (Algorithm::Rs512, Public::Rsa(n, e)) => rsa(&RSA_PKCS1_2048_8192_SHA512, n, e),
            (Algorithm::Ps256, Public::Rsa(n, e)) => rsa(&RSA_PSS_2048_8192_SHA256, n, e),
            (Algorithm::Ps384, Public::Rsa(n, e)) => rsa(&RSA_PSS_2048_8192_SHA384, n, e),
            (Algorithm::Ps512, Public::Rsa(n, e)) => rsa(&RSA_PSS_2048_8192_SHA512, n, e),
            (Algorithm::Es256, Public::Point(Curve::P256, own)) => point(&ECDSA_P256_SHA256_FIXED, own),
            (Algorithm::Es384, Public::Point(Curve::P384, own)) => point(&ECDSA_P384_SHA384_FIXED, own),
            (Algorithm::Es512, Public::Point(Curve::P521, own)) => signed_on_p521(own, message, signature),
            _ => false,
        }
    }
}

/// Whether the holder of a point on P-521, which `ring` does not know, signed a message.
fn signed_on_p521(point: &[u8], message: &[u8], signature: &[u8]) -> bool {
    use p521::ecdsa::signature::Verifier;
    use p521::ecdsa::{Signature, VerifyingKey};
    let read = VerifyingKey::from_sec1_bytes(point)
        .ok()
        .zip(Signature::from_slice(signature).ok());
    read.is_some_and(|(key, signature)| key.verify(message, &signature).is_ok())
}

/// The keys of a set. Those of other kinds are left out.
///
/// # Errors
/// It is no key set.
pub(super) fn read(text: &[u8]) -> Result<Vec<Key>, String> {
    let document: Document = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let keys = document.keys.unwrap_or_default();
    Ok(keys.into_iter().filter_map(Key::of).collect())
}

/// Whether one of the keys signed a token: the one that it names, or any if it names none.
pub(super) fn any_signed(keys: &[Key], token: &Signed<'_>) -> bool {
    if !token.is_understood {
        return false;
    }
    let mut named = keys.iter().filter(|key| token.key.is_empty() || key.id == token.key);
    named.any(|key| key.signed(token))
}

#[cfg(test)]
mod tests {
    use p521::ecdsa::signature::Signer;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair,
        RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512,
        RsaEncoding, RsaKeyPair,
    };
    use rustls_pki_types::PrivatePkcs8KeyDer;
    use rustls_pki_types::pem::PemObject;
    use serde_json::{Value, json};

    use super::*;

    /// Made for this test.
    const RSA: &str = "-----BEGIN PRIVATE KEY-----\n\
        MIIEuwIBADANBgkqhkiG9w0BAQEFAASCBKUwggShAgEAAoIBAQCu3pOWE/oqQSF/\n\
        MGClU5MSM8o9EQEJ6xDZPIOA37bXLGYM+ICt6YEmUSduAknfeN7EVzDJjDYkqds7\n\
        JisGqxU6Xf1YpQT9/synLkTNq2jkOqhjpMJ0EVeIlmPF/DjlpzxtfIAEERrvRtyj\n\
        GifrUcnX4CHHcZUMzEIH8LaCdjcxBJRkSD97YzdER/kYcVE5KRjpCK4xv/ws2QCG\n\
        VzN96ppHm/0elaRybQ8Qu/Bw7/8+3QvYtKXwAjybL7rlF1gY7sWC7tuNZcclnj3v\n\
        sHVebcLjY1G1oIfSwgk0TteacrfnH1wwtWZ+UXb/XIrwWpOnnUzSYjR+CVn7OT6/\n\
        LgPQckq/AgMBAAECggEABT4kOXkWJGoreqPeGMSI+I3g8g/Au+8a0e0W0MzkQZfR\n\
        v3E73vrxgSqWR8JZPBI/64lS0EXTBk7yhSDkGw7KCrY5iWhCTA6aKCfZifIp8p3D\n\
        Bhd6MGyoG3fyPB9YmMfB78CuYnDURi+oRBFLQaqWXS0ZqHKLm3JVa+XOxUeyDQ3W\n\
        LAGTlx/tZtlutnVj1/tNXSV4JqBLb8NT+uFWDh8R8f1q7Z14behtgjmrlhamfWgn\n\
        1gEaeM36ikW1ENV7KwT4eeX1eVrVi05bArkD6Ecp9uXnpDOiMbIdY7r5Eyn2QZGy\n\
        7olGuYTo7E0ZPMLk0BKTgYTGAqoynF6Kw4ZPwHf90QKBgQDu966X2XaElHznHkYh\n\
        bbWMsBXOUXsT3dOIZ0qScvSsEqSQphyQm4jZIByDzqdtypufBWj856QESu8By4YR\n\
        G20sjDshQoypKhzpBX4Wd6LgfPd4cLiLEBWCUcIHEgZSGK+ANV5C+233jRmcU6NW\n\
        J1pteoLW2V/j/zONc9ZhEQS0zQKBgQC7VVRuQEU55nsElxkhUkgnUe4gcy1ye3sP\n\
        miGwQ6hOe6ENcrm7goBMhnNpPZhEY8rPwACDq5SeDi63ufm7XdPugaVBGds7yCWk\n\
        I6HkCaUbKTPKjRtFELucWNfBn/a6l8IslOfkuEfM3dcmW2e1ITE+xvRPiJEZG3n8\n\
        hLc2p6MduwKBgQChWUbfbItjdUboXj6H76V3eqUei1GI1mwvW160hz3AuU24BRCg\n\
        awP5Zn8aV/wgW3673lFHAbhy1Y2PLrY08snCHGUITgDfb3nZtEWwMdMdtAL7pVBV\n\
        ROTg+wcA8yCladmFvYMJwu47CWBTdv1//E5IQUH6gwcF0JgkWCRVocIFuQJ/FfPp\n\
        8QGXGzHnOKJ8T2tVCUaQoTzeFoxh33IwgHdtQcU7GlhXa6HfZxhabfrJ3TnUioP1\n\
        i3iP8fW3g9BHc62LKGgI9ZgSGO9beeCzGAYJUyWA7Duc9nr/gVLn9cjJIRSnrJHG\n\
        mwb9YwScMeKERLWfD7xA5REb79VIdk8XKVB7zQKBgBNoS6+Bskl086EY4Dntj5Kx\n\
        RXBtWn0OkD1SpcTM8PzwyVL/+eA64Y8x7YAy61mnzbrscxxBULx4X+Gwm0/Tr8cG\n\
        RtrHCzG0uiMzBYf4ptuvMv6SKySp5XaEKmKfebmb4N6fxfOgau2wdxxZcGFZKWbR\n\
        hDIZ/rDPrF+iLiNIzjHl\n\
        -----END PRIVATE KEY-----\n";

    type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

    /// Signs messages, and the key that tells whether it did.
    struct Holder {
        algorithm: Algorithm,
        sign: Sign,
        key: Value,
    }

    fn encoded(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn point(curve: &str, point: &[u8]) -> Value {
        let (x, y) = point[1..].split_at((point.len() - 1) / 2);
        json!({"kty": "EC", "crv": curve, "x": encoded(x), "y": encoded(y)})
    }

    fn on_curve(algorithm: Algorithm, curve: &str, own: &'static EcdsaSigningAlgorithm) -> Holder {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(own, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(own, document.as_ref(), &random).unwrap();
        Holder {
            algorithm,
            key: point(curve, pair.public_key().as_ref()),
            sign: Box::new(move |message| pair.sign(&random, message).unwrap().as_ref().to_vec()),
        }
    }

    fn on_p521() -> Holder {
        let pair = p521::ecdsa::SigningKey::from_slice(&[1; 66]).unwrap();
        let own = pair.verifying_key().to_sec1_point(false);
        Holder {
            algorithm: Algorithm::Es512,
            key: point("P-521", own.as_bytes()),
            sign: Box::new(move |message| {
                let signature: p521::ecdsa::Signature = pair.sign(message);
                signature.to_bytes().to_vec()
            }),
        }
    }

    fn with_rsa(algorithm: Algorithm, encoding: &'static dyn RsaEncoding) -> Holder {
        let der = PrivatePkcs8KeyDer::from_pem_slice(RSA.as_bytes()).unwrap();
        let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
        let numbers: RsaPublicKeyComponents<Vec<u8>> = pair.public().into();
        Holder {
            algorithm,
            key: json!({"kty": "RSA", "n": encoded(&numbers.n), "e": encoded(&numbers.e)}),
            sign: Box::new(move |message| {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(encoding, &SystemRandom::new(), message, &mut signature)
                    .unwrap();
                signature
            }),
        }
    }

    fn set(keys: &[Value]) -> Vec<Key> {
        read(json!({"keys": keys}).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn every_algorithm_is_known_by_its_own_keys_alone() {
        let holders = [
            on_curve(Algorithm::Es256, "P-256", &ECDSA_P256_SHA256_FIXED_SIGNING),
            on_curve(Algorithm::Es384, "P-384", &ECDSA_P384_SHA384_FIXED_SIGNING),
            on_p521(),
            with_rsa(Algorithm::Ps256, &RSA_PSS_SHA256),
            with_rsa(Algorithm::Ps384, &RSA_PSS_SHA384),
            with_rsa(Algorithm::Ps512, &RSA_PSS_SHA512),
            with_rsa(Algorithm::Rs256, &RSA_PKCS1_SHA256),
            with_rsa(Algorithm::Rs384, &RSA_PKCS1_SHA384),
            with_rsa(Algorithm::Rs512, &RSA_PKCS1_SHA512),
        ];
        assert_eq!(
            holders.iter().map(|own| own.algorithm).collect::<Vec<_>>(),
            Algorithm::ALL
        );
        for (at, holder) in holders.iter().enumerate() {
            let header = json!({"alg": holder.algorithm.name(), "kid": at.to_string()}).to_string();
            let message = format!("{}.{}", encoded(header.as_bytes()), encoded(b"{}"));
            let token = format!("{message}.{}", encoded(&(holder.sign)(message.as_bytes())));
            let signed = Signed::read(&token, &Algorithm::ALL).unwrap();
            let named = |id: &str, key: &Value| {
                let mut key = key.clone();
                key["kid"] = id.into();
                key
            };
            let own = at.to_string();
            let all: Vec<Value> = holders.iter().map(|own| own.key.clone()).collect();
            assert!(
                any_signed(&set(&[named(&own, &holder.key)]), &signed),
                "{:?}",
                holder.algorithm
            );
            assert!(!any_signed(&set(&[named("other", &holder.key)]), &signed));
            let others = all.iter().filter(|key| **key != holder.key).map(|key| named(&own, key));
            assert!(!any_signed(&set(&others.collect::<Vec<_>>()), &signed));
            let mut forged = Signed::read(&token, &Algorithm::ALL).unwrap();
            forged.signature[7] ^= 1;
            assert!(!any_signed(&set(&[named(&own, &holder.key)]), &forged));
            forged.signature.clear();
            assert!(!any_signed(&set(&[named(&own, &holder.key)]), &forged));
            // a token that names no key may be of any
            forged = Signed::read(&token, &Algorithm::ALL).unwrap();
            forged.key.clear();
            assert!(any_signed(&set(&all), &forged));
        }
    }

    #[test]
    fn keys_that_cannot_be_used_are_left_out() {
        let good = point("P-256", &[[4].as_slice(), &[7; 64]].concat());
        let with = |change: Value| {
            let mut key = good.clone();
            key.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            set(&[key]).len()
        };
        assert_eq!(with(json!({"use": "sig", "x5c": ["x"]})), 1);
        for change in [
            json!({"kty": "oct"}),
            json!({"kty": null}),
            json!({"crv": "P-224"}),
            json!({"x": "AA"}),
            json!({"x": "%"}),
            json!({"y": null}),
            json!({"kty": "RSA"}),
        ] {
            assert_eq!(with(change.clone()), 0, "{change}");
        }
        assert_eq!(read(b"{}").unwrap(), []);
        for text in ["", "[]", "{\"keys\": 1}", "{\"keys\": [{\"kid\": 1}]}"] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
