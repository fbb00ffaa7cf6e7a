//! Makes key pairs that are not certificates', passwords and tokens, from the chance that is handed in.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::{Rng, RngExt};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

/// A private and a public key as they are written to a Secret.
pub(super) struct Pair {
    pub(super) private: String,
    pub(super) public: String,
}

/// A P-256 key pair in PEM, from the system's generator.
pub(super) fn service_account_key() -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let public = pem::Pem::new("PUBLIC KEY", key.subject_public_key_info());
    let lines = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    Ok(Pair {
        private: key.serialize_pem(),
        public: pem::encode_config(&public, lines),
    })
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    // Everything written here is far below 4 GiB.
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// An Ed25519 key pair in the formats of OpenSSH (its `PROTOCOL.key`), without a passphrase.
pub(super) fn ssh_key_pair(chance: &mut dyn Rng) -> Result<Pair, ring::error::KeyRejected> {
    const NAME: &[u8] = b"ssh-ed25519";
    let mut seed = [0u8; 32];
    chance.fill_bytes(&mut seed);
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed)?;
    let point = pair.public_key().as_ref();

    let mut public = Vec::new();
    string(&mut public, NAME);
    string(&mut public, point);

    let mut private = Vec::new();
    // The same number twice tells a reader that it decrypted rightly.
    let check = chance.next_u32().to_be_bytes();
    private.extend_from_slice(&check);
    private.extend_from_slice(&check);
    string(&mut private, NAME);
    string(&mut private, point);
    string(&mut private, &[seed.as_slice(), point].concat());
    string(&mut private, b"");
    let padding = (1u8..).take((8 - private.len() % 8) % 8);
    private.extend(padding);

    let mut file = b"openssh-key-v1\0".to_vec();
    string(&mut file, b"none");
    string(&mut file, b"none");
    string(&mut file, b"");
    file.extend_from_slice(&1u32.to_be_bytes());
    string(&mut file, &public);
    string(&mut file, &private);

    let lines = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    Ok(Pair {
        private: pem::encode_config(&pem::Pem::new("OPENSSH PRIVATE KEY", file), lines),
        public: format!("ssh-ed25519 {}\n", STANDARD.encode(public)),
    })
}

/// A password of letters and digits.
pub(super) fn password(chance: &mut dyn Rng, length: usize) -> String {
    const CHARACTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    (0..length)
        .filter_map(|_| CHARACTERS.get(chance.random_range(0..CHARACTERS.len())))
        .map(|character| char::from(*character))
        .collect()
}

/// Random bytes in base64.
pub(super) fn encryption_secret(chance: &mut dyn Rng, length: usize) -> String {
    let mut bytes = vec![0u8; length];
    chance.fill_bytes(&mut bytes);
    STANDARD.encode(bytes)
}

/// User and password as web servers read them from a file.
pub(super) fn basic_auth_line(username: &str, password: &str) -> String {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, password.as_bytes());
    format!("{username}:{{SHA}}{}", STANDARD.encode(hash))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn ssh_keys_have_the_published_layout() {
        let pair = ssh_key_pair(&mut StdRng::seed_from_u64(1)).unwrap();
        let file = pem::parse(&pair.private).unwrap();
        assert_eq!(file.tag(), "OPENSSH PRIVATE KEY");
        let bytes = file.contents();
        assert!(bytes.starts_with(b"openssh-key-v1\0\0\0\0\x04none\0\0\0\x04none\0\0\0\0\0\0\0\x01"));
        let encoded = pair.public.trim().split(' ').nth(1).unwrap();
        let public = STANDARD.decode(encoded).unwrap();
        assert_eq!(public.len(), 4 + 11 + 4 + 32);
        let at = bytes.windows(public.len()).position(|part| part == public);
        assert_eq!(at, Some(15 + 8 + 8 + 4 + 4 + 4));
        let private = &bytes[15 + 8 + 8 + 4 + 4 + 4 + public.len() + 4..];
        assert_eq!(private.len() % 8, 0);
        assert_eq!(private[..4], private[4..8]);
        // The private half ends with the public point.
        let seed_and_point = &private[8 + 15 + 36 + 4..][..64];
        assert_eq!(seed_and_point[32..], public[19..]);
    }

    #[test]
    fn what_comes_from_chance_is_repeatable() {
        let make = |seed| {
            let chance = &mut StdRng::seed_from_u64(seed);
            (
                ssh_key_pair(chance).unwrap().private,
                password(chance, 32),
                encryption_secret(chance, 32),
            )
        };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        let (_, password, secret) = make(3);
        assert_eq!(password.len(), 32);
        assert!(password.chars().all(|c| c.is_ascii_alphanumeric()));
        assert_eq!(STANDARD.decode(secret).unwrap().len(), 32);
    }

    #[test]
    fn basic_auth_is_hashed_as_web_servers_expect() {
        assert_eq!(
            basic_auth_line("admin", "password"),
            "admin:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="
        );
    }

    #[test]
    fn service_account_keys_are_p256() {
        let pair = service_account_key().unwrap();
        let key = KeyPair::from_pem(&pair.private).unwrap();
        assert!(key.is_compatible(&PKCS_ECDSA_P256_SHA256));
        let public = pem::parse(&pair.public).unwrap();
        assert_eq!(public.contents(), key.subject_public_key_info());
    }
}
