//! Encryption at rest: values are encrypted on their way to the disk or to etcd and decrypted on their way into the index, so that readers never wait for
//! it. What lies in memory is not encrypted.
//!
//! Forms and order of providers are those of kube-apiserver, so that both read what the other one wrote: a value begins with
//! `k8s:enc:<provider>:v1:<key>:`, the first provider writes, all read. Each value is bound to its place where the provider can do that (`aesgcm`).
//! Where the configuration is read from is not known here.

mod provider;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Key, Topic};
pub use provider::{KeyError, Provider, SecretKey};

/// What all encrypted values begin with, whoever encrypted them.
const ENCRYPTED: &[u8] = b"k8s:enc:";

/// Which values a list of providers is for. The narrowest one that there is counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Those of one resource.
    Topic(Topic),
    /// Those of all resources of a group.
    Group(String),
    /// All.
    Everything,
}

/// Who encrypts which values. Without any, values are stored as they are.
#[derive(Clone, Default)]
pub struct Encryption {
    scopes: Arc<BTreeMap<Scope, Vec<Provider>>>,
}

/// Why a value is not encrypted or decrypted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CipherError {
    /// There is no key for it.
    #[error("it is encrypted as {form}, and no provider has that key")]
    NoKey {
        /// Provider and key, as the value tells them.
        form: String,
    },
    /// A key of that name is there, but is another one, or the value was changed or moved.
    #[error(
        "it is encrypted as {form}, but that key does not open it: the key is another one, or the value was changed"
    )]
    Refused {
        /// Provider and key, as the value tells them.
        form: String,
    },
    /// The first provider stores values as they are, and this one looks like an encrypted one.
    #[error("it begins as encrypted values do, and is not to be encrypted")]
    LooksEncrypted,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    NoChance(String),
}

/// Where a value lies, as text; made only where values are encrypted.
pub(crate) trait Place {
    fn text(&self) -> Cow<'_, str>;
}

impl Place for &str {
    fn text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

/// On disk a value is bound to its key.
impl Place for &Key {
    fn text(&self) -> Cow<'_, str> {
        Cow::Owned(self.to_string())
    }
}

/// A decrypted value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) value: Bytes,
    /// Whether the value would be stored in another way today: with another provider or key.
    pub(crate) stale: bool,
}

impl fmt::Debug for Encryption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.scopes.iter()).finish()
    }
}

impl Encryption {
    /// These values are for these providers, too: behind those that they have already.
    #[must_use]
    pub fn with(mut self, scope: Scope, providers: Vec<Provider>) -> Self {
        Arc::make_mut(&mut self.scopes)
            .entry(scope)
            .or_default()
            .extend(providers);
        self
    }

    /// Whether there are providers for values of a resource.
    pub fn knows(&self, topic: &Topic) -> bool {
        !self.providers(topic).is_empty()
    }

    fn providers(&self, topic: &Topic) -> &[Provider] {
        if self.scopes.is_empty() {
            return &[];
        }
        let group = topic.as_str().split_once('/').map_or("", |(group, _)| group);
        self.scopes
            .get(&Scope::Topic(topic.clone()))
            .or_else(|| self.scopes.get(&Scope::Group(group.to_owned())))
            .or_else(|| self.scopes.get(&Scope::Everything))
            .map_or(&[], Vec::as_slice)
    }

    /// A value as it is to be stored at a place.
    ///
    /// # Errors
    /// [`CipherError`].
    pub(crate) fn seal(&self, key: &Key, place: impl Place, value: &Bytes) -> Result<Bytes, CipherError> {
        match self.providers(&key.topic).first() {
            Some(provider) if !provider.is_identity() => provider.seal(&place.text(), value),
            _ if value.starts_with(ENCRYPTED) => Err(CipherError::LooksEncrypted),
            _ => Ok(value.clone()),
        }
    }

    /// A value as it was before it was stored at a place.
    ///
    /// # Errors
    /// [`CipherError`].
    pub(crate) fn open(&self, key: &Key, place: impl Place, stored: &Bytes) -> Result<Opened, CipherError> {
        let is_encrypted = stored.starts_with(ENCRYPTED);
        let providers = self.providers(&key.topic);
        if providers.is_empty() && !is_encrypted {
            return Ok(Opened {
                value: stored.clone(),
                stale: false,
            });
        }
        let place = place.text();
        let mut tried = false;
        for (number, provider) in providers.iter().enumerate() {
            if provider.is_identity() {
                if !is_encrypted {
                    return Ok(Opened {
                        value: stored.clone(),
                        stale: number > 0,
                    });
                }
                continue;
            }
            match provider.open(&place, stored) {
                Some(Ok((value, first_key))) => {
                    return Ok(Opened {
                        value,
                        stale: number > 0 || !first_key,
                    });
                }
                // another provider may have a key of the same name
                Some(Err(())) => tried = true,
                None => {}
            }
        }
        let form = form(stored);
        Err(match tried {
            true => CipherError::Refused { form },
            false => CipherError::NoKey { form },
        })
    }
}

/// How a value is encrypted, as far as it can be shown.
fn form(stored: &[u8]) -> String {
    match stored.starts_with(ENCRYPTED) {
        true => {
            let parts = stored.splitn(6, |byte| *byte == b':');
            let parts: Vec<_> = parts
                .take(5)
                .map(|part| String::from_utf8_lossy(part).escape_debug().to_string())
                .collect();
            parts.join(":").chars().take(120).collect()
        }
        false => "no provider wants it (not encrypted)".to_owned(),
    }
}

#[cfg(test)]
mod tests;
