//! Who may come in, from flags and the files they name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gardener_apiserver::UserInfo;
use gardener_apiserver::aggregation::ProxyIdentity;
use gardener_apiserver::authn::{FrontProxies, Settings};
use gardener_apiserver::tokens::{KeyError, Lifetimes, SigningKey, VerifyingKey};

use crate::flags::{CallerFlags, Flags};

/// Why a file that a flag names cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("--{flag}: {} cannot be read: {source}", path.display())]
    Unreadable {
        /// The flag.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It holds no key that can be used.
    #[error("--{flag}: {}: {source}", path.display())]
    Key {
        /// The flag.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: KeyError,
    },
    /// A line of it is wrong.
    #[error("--{flag}: {} line {line}: {reason}", path.display())]
    Line {
        /// The flag.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// It holds nothing of what it should.
    #[error("--{flag}: {} holds no {expected}", path.display())]
    Empty {
        /// The flag.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
    },
}

/// The text of a file that a flag names.
///
/// # Errors
/// It cannot be read.
pub fn read(flag: &'static str, path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|source| FileError::Unreadable {
        flag,
        path: path.to_owned(),
        source,
    })
}

/// The text of a file that a flag may name.
///
/// # Errors
/// It cannot be read.
pub fn read_optional(flag: &'static str, path: Option<&PathBuf>) -> Result<Option<String>, FileError> {
    path.map(|path| read(flag, path)).transpose()
}

/// How callers prove who they are, but for what [`crate::authentication`] adds.
///
/// # Errors
/// [`FileError`].
pub fn settings(flags: &Flags) -> Result<Settings, FileError> {
    let signer = match &flags.service_account_signing_key_file {
        Some(path) => {
            let flag = "service-account-signing-key-file";
            let key = SigningKey::from_pem(&read(flag, path)?).map_err(|source| FileError::Key {
                flag,
                path: path.clone(),
                source,
            })?;
            Some(Arc::new(key))
        }
        None => None,
    };
    let mut accepted_keys = Vec::new();
    for path in &flags.service_account_key_file {
        let flag = "service-account-key-file";
        let keys = VerifyingKey::read_all(&read(flag, path)?);
        if keys.is_empty() {
            return Err(FileError::Empty {
                flag,
                path: path.clone(),
                expected: "ECDSA (P-256, P-384) or RSA key",
            });
        }
        accepted_keys.extend(keys);
    }
    let issuers: Vec<String> = flags
        .service_account_issuer
        .iter()
        .filter(|issuer| !issuer.is_empty())
        .cloned()
        .collect();
    let audiences = match flags.api_audiences.is_empty() {
        true => issuers.clone(),
        false => flags.api_audiences.clone(),
    };
    let static_tokens = match &flags.token_auth_file {
        Some(path) => static_tokens(path)?,
        None => BTreeMap::new(),
    };
    Ok(Settings {
        signer,
        accepted_keys,
        issuer: issuers.first().cloned().unwrap_or_default(),
        keys_uri: flags.service_account_jwks_uri.clone(),
        accepted_issuers: issuers.into_iter().skip(1).collect(),
        audiences,
        lifetimes: Lifetimes {
            longest: Some(flags.service_account_max_token_expiration.as_secs()),
            extends: flags.service_account_extend_token_expiration,
        },
        static_tokens,
        bootstrap_tokens: flags.enable_bootstrap_token_auth,
        front_proxies: front_proxies(&flags.callers),
        ..Settings::default()
    })
}

/// Which front proxies are believed; none without their authorities.
pub fn front_proxies(flags: &CallerFlags) -> Option<FrontProxies> {
    flags.requestheader_client_ca_file.as_ref().map(|_| FrontProxies {
        names: flags.requestheader_allowed_names.clone(),
        user: flags.requestheader_username_headers.clone(),
        uid: flags.requestheader_uid_headers.clone(),
        groups: flags.requestheader_group_headers.clone(),
        extra_prefixes: flags.requestheader_extra_headers_prefix.clone(),
    })
}

/// Users by token from lines of `token,user,uid,"group,group"`.
fn static_tokens(path: &Path) -> Result<BTreeMap<String, UserInfo>, FileError> {
    let flag = "token-auth-file";
    let text = read(flag, path)?;
    let mut tokens = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |reason: &str| FileError::Line {
            flag,
            path: path.to_owned(),
            line: number,
            reason: reason.to_owned(),
        };
        let fields = fields(line).ok_or_else(|| wrong("a quote is not closed"))?;
        let [token, name, uid, more @ ..] = fields.as_slice() else {
            return Err(wrong("it must have at least 3 columns (token, user name, user uid)"));
        };
        if token.is_empty() {
            return Err(wrong("the token is empty"));
        }
        let groups: Vec<&str> = more
            .first()
            .map(String::as_str)
            .unwrap_or_default()
            .split(',')
            .collect();
        let groups: Vec<&str> = groups.into_iter().filter(|group| !group.is_empty()).collect();
        let mut user = UserInfo::new(name, &groups);
        user.uid = uid.clone();
        tokens.insert(token.clone(), user);
    }
    Ok(tokens)
}

/// The fields of a line of comma separated values; none if a quote is not closed.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let (mut quoted, mut characters) = (false, line.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                fields.last_mut()?.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut()?.push(other),
        }
    }
    (!quoted).then_some(fields)
}

/// What this server shows to the servers behind APIServices; nothing without both flags.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn proxy_identity(flags: &Flags) -> Result<Option<ProxyIdentity>, FileError> {
    let certificate = read_optional("proxy-client-cert-file", flags.proxy_client_cert_file.as_ref())?;
    let key = read_optional("proxy-client-key-file", flags.proxy_client_key_file.as_ref())?;
    Ok(certificate
        .zip(key)
        .map(|(certificate, key)| ProxyIdentity { certificate, key }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_by_token() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.csv");
        std::fs::write(&path, "a,alice,1,\"one,two\"\n\nb,bob,2\nc,\"c\"\"c\",,three\n").unwrap();
        let tokens = static_tokens(&path).unwrap();
        let groups = |token: &str| tokens[token].groups.join(" ");
        assert_eq!(groups("a"), "one two system:authenticated");
        assert_eq!(groups("b"), "system:authenticated");
        assert_eq!(
            (tokens["c"].name.as_str(), groups("c").as_str()),
            ("c\"c", "three system:authenticated")
        );
        for (text, expected) in [("a,b\n", "line 1"), ("a,b,c\nx,\"y,z\n", "line 2"), (",b,c\n", "empty")] {
            std::fs::write(&path, text).unwrap();
            assert!(
                static_tokens(&path).unwrap_err().to_string().contains(expected),
                "{text}"
            );
        }
    }
}
