//! Whether a certificate and a private key belong together, in the words of Go's `tls.X509KeyPair`.

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::ber::BerObject;
use x509_parser::der_parser::der::parse_der;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::pem::{Block, blocks};

const RSA: &str = "1.2.840.113549.1.1.1";
const CURVES: &str = "1.2.840.10045.2.1";
const ED25519: &str = "1.3.101.112";
const X25519: &str = "1.3.101.110";
const P256: &str = "1.2.840.10045.3.1.7";
const P384: &str = "1.3.132.0.34";
const P521: &str = "1.3.132.0.35";

const NO_KEY: &str = "tls: failed to parse private key";
const OTHER_KEY: &str = "tls: private key does not match public key";
const OTHER_TYPE: &str = "tls: private key type does not match public key type";

/// What of a private key tells which public one belongs to it.
enum Private<'k> {
    /// The modulus and the exponent.
    Rsa(&'k [u8], &'k [u8]),
    /// The curve, and a number.
    Curve(String, &'k [u8]),
    /// What the key is made of.
    Ed25519(&'k [u8]),
}

/// What is wrong with a certificate (the first of some) and its key, both in PEM; none if they are a pair.
pub(in crate::kubernetes) fn wrong(certificates: &[u8], key: &[u8]) -> Option<String> {
    judge(certificates, key).err()
}

fn judge(certificates: &[u8], key: &[u8]) -> Result<(), String> {
    let (found, others): (Vec<Block>, Vec<Block>) =
        blocks(certificates).partition(|block| block.label == "CERTIFICATE");
    let Some(first) = found.first() else {
        return Err(match labels(&others).as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [own] if own.ends_with("PRIVATE KEY") => "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned(),
            all => format!("tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]", all.join(" ")),
        });
    };
    let is_key = |block: &Block| block.label == "PRIVATE KEY" || block.label.ends_with(" PRIVATE KEY");
    let (keys, others): (Vec<Block>, Vec<Block>) = blocks(key).partition(is_key);
    let Some(key) = keys.first() else {
        return Err(match labels(&others).as_slice() {
            [] => "tls: failed to find any PEM data in key input".to_owned(),
            ["CERTIFICATE"] => "tls: found a certificate rather than a key in the PEM for the private key".to_owned(),
            all => format!(
                "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
                all.join(" ")
            ),
        });
    };
    let (rest, certificate) =
        X509Certificate::from_der(&first.content).map_err(|_| "x509: malformed certificate".to_owned())?;
    if !rest.is_empty() {
        return Err("x509: trailing data".to_owned());
    }
    compare(certificate.public_key(), &private(&key.content)?).map_err(str::to_owned)
}

fn labels(blocks: &[Block]) -> Vec<&str> {
    blocks.iter().map(|block| block.label.as_str()).collect()
}

/// Reads a private key: PKCS #1, PKCS #8, or that of a curve by itself.
fn private(der: &[u8]) -> Result<Private<'_>, &'static str> {
    let parts = sequence(der).ok_or(NO_KEY)?;
    if let Some(own) = pkcs1(&parts).or_else(|| sec1(&parts, None)) {
        return Ok(own);
    }
    let [_, algorithm, key, ..] = parts.as_slice() else {
        return Err(NO_KEY);
    };
    let [name, parameters @ ..] = algorithm.as_sequence().map_err(|_| NO_KEY)?.as_slice() else {
        return Err(NO_KEY);
    };
    let name = name.as_oid().map_err(|_| NO_KEY)?.to_id_string();
    let key = key.as_slice().map_err(|_| NO_KEY)?;
    let read = match name.as_str() {
        RSA => sequence(key).and_then(|parts| pkcs1(&parts)),
        CURVES => {
            let curve = parameters.first().and_then(|own| own.as_oid().ok());
            let curve = curve.map(|own| own.to_id_string());
            sequence(key).and_then(|parts| sec1(&parts, curve))
        }
        ED25519 => parse_der(key)
            .ok()
            .and_then(|(_, own)| own.as_slice().ok())
            .map(Private::Ed25519),
        X25519 => return Err("tls: found unknown private key type in PKCS#8 wrapping"),
        _ => None,
    };
    read.ok_or(NO_KEY)
}

fn sequence(der: &[u8]) -> Option<Vec<BerObject<'_>>> {
    let (rest, read) = parse_der(der).ok()?;
    rest.is_empty().then(|| read.as_sequence().ok().cloned()).flatten()
}

/// A key of RSA has numbers only: behind its version what is public, and then what is not.
fn pkcs1<'k>(parts: &[BerObject<'k>]) -> Option<Private<'k>> {
    const NUMBERS: usize = 9;
    let numbers = parts.iter().map_while(|part| part.as_slice().ok());
    let numbers: Vec<&[u8]> = numbers.collect();
    match (parts.len() >= NUMBERS, numbers.as_slice()) {
        (true, [_, modulus, exponent, _, _, _, ..]) => Some(Private::Rsa(significant(modulus), significant(exponent))),
        _ => None,
    }
}

/// A key of a curve, which it names itself where nobody else does.
fn sec1<'k>(parts: &[BerObject<'k>], curve: Option<String>) -> Option<Private<'k>> {
    let [version, number, more @ ..] = parts else {
        return None;
    };
    if version.as_u32().ok()? != 1 {
        return None;
    }
    let number = number.as_slice().ok()?;
    let named = || {
        let inner = more.first()?.as_slice().ok()?;
        let (_, name) = parse_der(inner).ok()?;
        name.as_oid().ok().map(|own| own.to_id_string())
    };
    Some(Private::Curve(curve.or_else(named)?, number))
}

/// A number without the zeros in front of it.
fn significant(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

/// Whether the halves of a key belong together.
fn compare(public: &SubjectPublicKeyInfo<'_>, private: &Private<'_>) -> Result<(), &'static str> {
    let (name, data) = (
        public.algorithm.algorithm.to_id_string(),
        &public.subject_public_key.data,
    );
    let is_pair = match (name.as_str(), private) {
        (RSA, Private::Rsa(modulus, exponent)) => match public.parsed() {
            Ok(PublicKey::RSA(own)) => significant(own.modulus) == *modulus && significant(own.exponent) == *exponent,
            _ => false,
        },
        (CURVES, Private::Curve(curve, number)) => {
            let own = public.algorithm.parameters.as_ref().and_then(|own| own.as_oid().ok());
            own.is_some_and(|own| own.to_id_string() == *curve) && is_on_curve(curve, number, data)
        }
        (ED25519, Private::Ed25519(seed)) => Ed25519KeyPair::from_seed_and_public_key(seed, data).is_ok(),
        (RSA | CURVES | ED25519, _) => return Err(OTHER_TYPE),
        _ => return Err("tls: unknown public key algorithm"),
    };
    if is_pair { Ok(()) } else { Err(OTHER_KEY) }
}

/// Whether the point of a curve is that of a number; of curves that nobody here knows it is taken for that.
fn is_on_curve(curve: &str, number: &[u8], point: &[u8]) -> bool {
    let of = |algorithm: &'static EcdsaSigningAlgorithm| {
        EcdsaKeyPair::from_private_key_and_public_key(algorithm, number, point, &SystemRandom::new()).is_ok()
    };
    match curve {
        P256 => of(&ECDSA_P256_SHA256_ASN1_SIGNING),
        P384 => of(&ECDSA_P384_SHA384_ASN1_SIGNING),
        P521 => p521::ecdsa::SigningKey::from_slice(number)
            .is_ok_and(|own| own.verifying_key().to_sec1_point(false).as_bytes() == point),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn pairs_are_told_from_others() {
        let made = |name: &str| gardener_pki::authority(name, 0, Duration::from_secs(60)).unwrap();
        let (one, other) = (made("one"), made("other"));
        let (certificate, key) = (one.certificate.as_str(), one.key.as_str());
        let empty = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
        for (certificate, key, expected) in [
            (certificate, key, None),
            ("", "", Some("tls: failed to find any PEM data in certificate input")),
            (certificate, "", Some("tls: failed to find any PEM data in key input")),
            (
                key,
                certificate,
                Some(
                    "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched",
                ),
            ),
            (
                certificate,
                certificate,
                Some("tls: found a certificate rather than a key in the PEM for the private key"),
            ),
            (certificate, &other.key, Some(OTHER_KEY)),
            (empty, key, Some("x509: malformed certificate")),
            (
                certificate,
                "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n",
                Some(NO_KEY),
            ),
            (
                "-----BEGIN A-----\n-----END A-----\n-----BEGIN B-----\n-----END B-----\n",
                key,
                Some(
                    "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [A B]",
                ),
            ),
        ] {
            assert_eq!(wrong(certificate.as_bytes(), key.as_bytes()).as_deref(), expected);
        }
    }
}
