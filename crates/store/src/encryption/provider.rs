//! Providers: what encrypts values, byte for byte as kube-apiserver's providers do.

use std::fmt;
use std::sync::Arc;

use aes_gcm::aead::consts::U12;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::aes::{Aes128, Aes192, Aes256};
use aes_gcm::{Aes128Gcm, Aes256Gcm, AesGcm};
use bytes::Bytes;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use crypto_secretbox::XSalsa20Poly1305;
use crypto_secretbox::aead::{Aead as _, KeyInit as _};
use zeroize::Zeroizing;

use super::CipherError;

const BLOCK: usize = 16;

/// A key with its name, which the values that it encrypts tell.
#[derive(Clone)]
pub struct SecretKey {
    /// Its name.
    pub name: String,
    /// The key itself.
    pub secret: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretKey({})", self.name)
    }
}

impl SecretKey {
    /// A new key of 32 bytes.
    ///
    /// # Errors
    /// [`CipherError::NoChance`].
    pub fn random(name: &str) -> Result<Self, CipherError> {
        let secret = nonce::<32>()?;
        Ok(Self {
            name: name.to_owned(),
            secret: Zeroizing::new(secret.to_vec()),
        })
    }
}

/// Why a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key {name:?} has {found} bytes, the provider takes {expected}")]
pub struct KeyError {
    /// The key's name.
    pub name: String,
    /// Its size in bytes.
    pub found: usize,
    /// The sizes that are taken.
    pub expected: &'static str,
}

type Aes192Gcm = AesGcm<Aes192, U12>;

enum Cipher {
    Gcm128(Box<Aes128Gcm>),
    Gcm192(Box<Aes192Gcm>),
    Gcm256(Box<Aes256Gcm>),
    Cbc(Zeroizing<Vec<u8>>),
    Secretbox(Box<XSalsa20Poly1305>),
}

/// One way to store values: as they are, or encrypted with the first of some keys. Clones share the keys.
#[derive(Clone)]
pub struct Provider {
    prefix: &'static str,
    keys: Arc<[(String, Cipher)]>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.keys.iter().map(|(prefix, _)| prefix).collect();
        write!(formatter, "Provider({}{names:?})", self.prefix)
    }
}

fn made<T, E>(key: &SecretKey, made: Result<T, E>, expected: &'static str) -> Result<T, KeyError> {
    made.map_err(|_| KeyError {
        name: key.name.clone(),
        found: key.secret.len(),
        expected,
    })
}

const AES_SIZES: &str = "16, 24 or 32";

impl Provider {
    /// Stores values as they are.
    pub fn identity() -> Self {
        Self {
            prefix: "",
            keys: Arc::new([]),
        }
    }

    /// AES-GCM with random nonces: a key should not be used for more than some billion values.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn aes_gcm(keys: &[SecretKey]) -> Result<Self, KeyError> {
        Self::of("k8s:enc:aesgcm:v1:", keys, |key| {
            Ok(match key.secret.len() {
                16 => Cipher::Gcm128(Box::new(made(key, Aes128Gcm::new_from_slice(&key.secret), AES_SIZES)?)),
                24 => Cipher::Gcm192(Box::new(made(key, Aes192Gcm::new_from_slice(&key.secret), AES_SIZES)?)),
                _ => Cipher::Gcm256(Box::new(made(key, Aes256Gcm::new_from_slice(&key.secret), AES_SIZES)?)),
            })
        })
    }

    /// AES-CBC with PKCS#7 padding. It keeps values secret, and does not tell whether they were changed.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn aes_cbc(keys: &[SecretKey]) -> Result<Self, KeyError> {
        Self::of("k8s:enc:aescbc:v1:", keys, |key| {
            let fits = matches!(key.secret.len(), 16 | 24 | 32).then_some(()).ok_or(());
            made(key, fits, AES_SIZES)?;
            Ok(Cipher::Cbc(key.secret.clone()))
        })
    }

    /// XSalsa20 and Poly1305.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn secretbox(keys: &[SecretKey]) -> Result<Self, KeyError> {
        Self::of("k8s:enc:secretbox:v1:", keys, |key| {
            let cipher = made(key, XSalsa20Poly1305::new_from_slice(&key.secret), "32")?;
            Ok(Cipher::Secretbox(Box::new(cipher)))
        })
    }

    fn of(
        prefix: &'static str,
        keys: &[SecretKey],
        cipher: impl Fn(&SecretKey) -> Result<Cipher, KeyError>,
    ) -> Result<Self, KeyError> {
        let keys = keys.iter().map(|key| Ok((format!("{}:", key.name), cipher(key)?)));
        Ok(Self {
            prefix,
            keys: keys.collect::<Result<_, KeyError>>()?,
        })
    }

    pub(super) fn is_identity(&self) -> bool {
        self.prefix.is_empty()
    }

    /// Encrypts with the first key.
    pub(super) fn seal(&self, place: &str, value: &[u8]) -> Result<Bytes, CipherError> {
        let (name, cipher) = self.keys.first().ok_or_else(|| CipherError::NoKey {
            form: self.prefix.to_owned(),
        })?;
        let sealed = cipher.seal(place.as_bytes(), value)?;
        let parts = [self.prefix.as_bytes(), name.as_bytes(), &sealed.0, &sealed.1];
        Ok(parts.concat().into())
    }

    /// Decrypts a value of this provider, and tells whether it was encrypted with the first key; none if no key has the value's name.
    pub(super) fn open(&self, place: &str, stored: &[u8]) -> Option<Result<(Bytes, bool), ()>> {
        let rest = stored.strip_prefix(self.prefix.as_bytes())?;
        let mut tried = false;
        for (number, (name, cipher)) in self.keys.iter().enumerate() {
            // keys may be named alike
            let Some(sealed) = rest.strip_prefix(name.as_bytes()) else {
                continue;
            };
            tried = true;
            if let Some(value) = cipher.open(place.as_bytes(), sealed) {
                return Some(Ok((value.into(), number == 0)));
            }
        }
        tried.then_some(Err(()))
    }
}

fn nonce<const SIZE: usize>() -> Result<[u8; SIZE], CipherError> {
    let mut nonce = [0; SIZE];
    getrandom::fill(&mut nonce).map_err(|error| CipherError::NoChance(error.to_string()))?;
    Ok(nonce)
}

fn gcm_seal(
    cipher: &impl Aead<NonceSize = U12>,
    place: &[u8],
    value: &[u8],
) -> Result<(Vec<u8>, Vec<u8>), CipherError> {
    let nonce = nonce::<12>()?;
    let payload = Payload { msg: value, aad: place };
    let sealed = cipher.encrypt(&nonce.into(), payload).map_err(|_| too_large())?;
    Ok((nonce.to_vec(), sealed))
}

fn gcm_open(cipher: &impl Aead<NonceSize = U12>, place: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, msg) = sealed.split_first_chunk::<12>()?;
    cipher.decrypt(&(*nonce).into(), Payload { msg, aad: place }).ok()
}

/// Ciphers refuse values only from sizes on that no store takes.
fn too_large() -> CipherError {
    CipherError::NoChance("the value is larger than a cipher takes".to_owned())
}

fn cbc_seal<C: KeyIvInit + BlockModeEncrypt>(key: &[u8], iv: &[u8], value: &[u8]) -> Result<Vec<u8>, CipherError> {
    let mode = C::new_from_slices(key, iv).map_err(|_| too_large())?;
    Ok(mode.encrypt_padded_vec::<Pkcs7>(value))
}

fn cbc_open<C: KeyIvInit + BlockModeDecrypt>(key: &[u8], iv: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    C::new_from_slices(key, iv)
        .ok()?
        .decrypt_padded_vec::<Pkcs7>(sealed)
        .ok()
}

impl Cipher {
    /// What goes before the encrypted value, and that value.
    fn seal(&self, place: &[u8], value: &[u8]) -> Result<(Vec<u8>, Vec<u8>), CipherError> {
        match self {
            Self::Gcm128(cipher) => gcm_seal(&**cipher, place, value),
            Self::Gcm192(cipher) => gcm_seal(&**cipher, place, value),
            Self::Gcm256(cipher) => gcm_seal(&**cipher, place, value),
            Self::Cbc(key) => {
                let iv = nonce::<BLOCK>()?;
                let sealed = match key.len() {
                    16 => cbc_seal::<cbc::Encryptor<Aes128>>(key, &iv, value)?,
                    24 => cbc_seal::<cbc::Encryptor<Aes192>>(key, &iv, value)?,
                    _ => cbc_seal::<cbc::Encryptor<Aes256>>(key, &iv, value)?,
                };
                Ok((iv.to_vec(), sealed))
            }
            Self::Secretbox(cipher) => {
                let nonce = nonce::<24>()?;
                let sealed = cipher.encrypt(&nonce.into(), value).map_err(|_| too_large())?;
                Ok((nonce.to_vec(), sealed))
            }
        }
    }

    fn open(&self, place: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Gcm128(cipher) => gcm_open(&**cipher, place, sealed),
            Self::Gcm192(cipher) => gcm_open(&**cipher, place, sealed),
            Self::Gcm256(cipher) => gcm_open(&**cipher, place, sealed),
            Self::Cbc(key) => {
                let (iv, sealed) = sealed.split_first_chunk::<BLOCK>()?;
                match key.len() {
                    16 => cbc_open::<cbc::Decryptor<Aes128>>(key, iv, sealed),
                    24 => cbc_open::<cbc::Decryptor<Aes192>>(key, iv, sealed),
                    _ => cbc_open::<cbc::Decryptor<Aes256>>(key, iv, sealed),
                }
            }
            Self::Secretbox(cipher) => {
                let (nonce, sealed) = sealed.split_first_chunk::<24>()?;
                cipher.decrypt(&(*nonce).into(), sealed).ok()
            }
        }
    }
}
