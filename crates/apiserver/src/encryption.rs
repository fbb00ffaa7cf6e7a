//! `EncryptionConfiguration` (`apiserver.config.k8s.io/v1`): which resources are encrypted at rest, with which providers and keys.
//!
//! Read and checked here as kube-apiserver does; what encrypts is the store's. `kms` providers are not supported.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::field::{self, Error, ErrorList, Path};
use gardener_store::{Encryption, KeyError, Provider, Scope, SecretKey, Topic};
use serde::Deserialize;

const API_VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "EncryptionConfiguration";

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EncryptionConfigError {
    /// It says nothing.
    #[error("it is empty")]
    Empty,
    /// It is no such document.
    #[error("it cannot be read as {KIND} of {API_VERSION}: {0}")]
    Malformed(String),
    /// It is of another kind.
    #[error("expected {KIND} of {API_VERSION}, found {0}")]
    OtherKind(String),
    /// It wants what is not there.
    #[error("{0}: kms providers are not supported yet: use secretbox, aesgcm or aescbc")]
    Kms(Path),
    /// Fields are wrong.
    #[error("{}", field::aggregate(.0))]
    Invalid(ErrorList),
    /// A resource list has no effect.
    #[error("resource {resource:?} is masked by earlier rule {rule:?}")]
    Masked {
        /// What is listed.
        resource: String,
        /// What was listed before it.
        rule: String,
    },
    /// A key does not fit.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// What a parser says without what it quotes: keys may be in it.
fn redacted(message: &str) -> String {
    // the lines behind the first one show the source
    let first = message.lines().next().unwrap_or_default();
    let parts = first.split('"').enumerate();
    let parts: Vec<_> = parts
        .map(|(number, part)| if number % 2 == 0 { part } else { "REDACTED" })
        .collect();
    parts.join("\"")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    resources: Option<Vec<Resources>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resources {
    #[serde(default)]
    resources: Option<Vec<String>>,
    #[serde(default)]
    providers: Option<Vec<Providers>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Providers {
    aesgcm: Option<Keys>,
    aescbc: Option<Keys>,
    secretbox: Option<Keys>,
    identity: Option<Identity>,
    kms: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(default)]
    keys: Option<Vec<KeyOf>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyOf {
    #[serde(default)]
    name: String,
    #[serde(default)]
    secret: String,
}

/// A group and a resource as they are listed, `deployments.apps`; either may be `*`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GroupResource<'a> {
    group: &'a str,
    resource: &'a str,
}

impl<'a> GroupResource<'a> {
    fn parse(text: &'a str) -> Self {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        Self { group, resource }
    }

    fn scope(&self) -> Scope {
        match (self.group, self.resource) {
            ("*", "*") => Scope::Everything,
            (group, "*") => Scope::Group(group.to_owned()),
            (group, resource) => Scope::Topic(Topic::new(group, resource)),
        }
    }

    fn shown(&self) -> String {
        match (self.group, self.resource) {
            ("", "*") => "*.".to_owned(),
            ("", resource) => resource.to_owned(),
            (group, resource) => format!("{resource}.{group}"),
        }
    }
}

/// Reads a configuration (YAML or JSON).
///
/// # Errors
/// [`EncryptionConfigError`], in upstream's words where it has some.
pub fn parse(text: &str) -> Result<Encryption, EncryptionConfigError> {
    if text.is_empty() {
        return Err(EncryptionConfigError::Empty);
    }
    let document: Document =
        serde_saphyr::from_str(text).map_err(|error| EncryptionConfigError::Malformed(redacted(&error.to_string())))?;
    if (document.api_version.as_str(), document.kind.as_str()) != (API_VERSION, KIND) {
        let found = format!("{:?} of {:?}", document.kind, document.api_version);
        return Err(EncryptionConfigError::OtherKind(found));
    }
    let lists = document.resources.unwrap_or_default();
    let errors = validate(&lists);
    if !errors.is_empty() {
        return Err(EncryptionConfigError::Invalid(errors));
    }
    let mut encryption = Encryption::default();
    let mut listed: BTreeMap<GroupResource<'_>, ()> = BTreeMap::new();
    for (number, list) in lists.iter().enumerate() {
        let path = Path::new("resources").index(number).child("providers");
        let mut providers = Vec::new();
        for (number, provider) in list.providers.iter().flatten().enumerate() {
            providers.push(made(provider, &path.index(number))?);
        }
        let before = listed.clone();
        for resource in list.resources.iter().flatten() {
            let own = GroupResource::parse(resource);
            let of_group = GroupResource {
                group: own.group,
                resource: "*",
            };
            let all = GroupResource {
                group: "*",
                resource: "*",
            };
            for rule in [of_group, all] {
                if before.contains_key(&rule) {
                    return Err(EncryptionConfigError::Masked {
                        resource: own.shown(),
                        rule: rule.shown(),
                    });
                }
            }
            encryption = encryption.with(own.scope(), providers.clone());
            listed.insert(own, ());
        }
    }
    Ok(encryption)
}

fn made(provider: &Providers, path: &Path) -> Result<Provider, EncryptionConfigError> {
    let keys = |keys: &Keys| -> Vec<SecretKey> {
        let keys = keys.keys.iter().flatten();
        keys.map(|key| SecretKey {
            name: key.name.clone(),
            secret: decoded(&key.secret).unwrap_or_default().into(),
        })
        .collect()
    };
    Ok(match provider {
        Providers { kms: Some(_), .. } => return Err(EncryptionConfigError::Kms(path.child("kms"))),
        Providers { aesgcm: Some(own), .. } => Provider::aes_gcm(&keys(own))?,
        Providers { aescbc: Some(own), .. } => Provider::aes_cbc(&keys(own))?,
        Providers {
            secretbox: Some(own), ..
        } => Provider::secretbox(&keys(own))?,
        _ => Provider::identity(),
    })
}

/// Base64 as Go reads it: line ends do not count.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().filter(|one| !matches!(one, '\r' | '\n')).collect();
    STANDARD.decode(text).ok()
}

fn validate(lists: &[Resources]) -> ErrorList {
    let root = Path::new("resources");
    if lists.is_empty() {
        return vec![Error::required(&root, "at least one resources is required")];
    }
    let mut errors = ErrorList::new();
    for (number, list) in lists.iter().enumerate() {
        let (resources, providers) = (
            root.index(number).child("resources"),
            root.index(number).child("providers"),
        );
        let names = list.resources.as_deref().unwrap_or_default();
        if names.is_empty() {
            let detail = format!("at least one {} is required", resources.as_str());
            errors.push(Error::required(&resources, detail));
        }
        errors.extend(overlaps(names, &resources));
        for (number, name) in names.iter().enumerate() {
            if let Some(detail) = wrong_name(name) {
                errors.push(Error::invalid(&resources.index(number), name.as_str(), detail));
            }
        }
        let all = list.providers.as_deref().unwrap_or_default();
        if all.is_empty() {
            let detail = format!("at least one {} is required", providers.as_str());
            errors.push(Error::required(&providers, detail));
        }
        for (number, provider) in all.iter().enumerate() {
            errors.extend(wrong_provider(provider, &providers.index(number)));
        }
    }
    errors
}

fn overlaps(names: &[String], path: &Path) -> ErrorList {
    let all: Vec<_> = names.iter().map(|name| GroupResource::parse(name)).collect();
    let (mut duplicate, mut overlap) = (false, false);
    for (i, one) in all.iter().enumerate() {
        for (j, other) in all.iter().enumerate() {
            if i == j {
                continue;
            }
            if one == other && !duplicate {
                duplicate = true;
            } else if (one.group, one.resource) == ("*", "*")
                || (one.group == other.group && (one.resource == "*" || other.resource == "*"))
            {
                overlap = true;
            }
        }
    }
    let invalid = |detail: &str| Error::invalid(path, names.to_vec(), detail);
    let mut errors = ErrorList::new();
    if duplicate {
        errors.push(invalid("the same resource cannot be specified multiple times"));
    }
    if overlap {
        errors.push(invalid(
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked",
        ));
    }
    errors
}

fn wrong_name(name: &str) -> Option<&'static str> {
    let own = GroupResource::parse(name);
    if name.to_lowercase() != name {
        return Some("resource name should not contain capital letters");
    }
    match (name, own.group, own.resource) {
        ("*", ..) => Some("use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"),
        ("apiserveripinfo" | "serviceipallocations" | "servicenodeportallocations", ..) => {
            Some("resources which do not have REST API/s cannot be encrypted")
        }
        (_, "events.k8s.io", _) => Some(
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file",
        ),
        (_, "extensions", _) => Some("'extensions' group has been removed and cannot be used for encryption"),
        (_, "*", resource) if resource != "*" => Some("encrypting the same resource across groups is not supported"),
        _ => None,
    }
}

fn wrong_provider(provider: &Providers, path: &Path) -> ErrorList {
    let kinds = [
        ("aesgcm", &provider.aesgcm, &[16, 24, 32][..]),
        ("aescbc", &provider.aescbc, &[16, 24, 32]),
        ("secretbox", &provider.secretbox, &[32]),
    ];
    let given = kinds.iter().filter(|(_, keys, _)| keys.is_some()).count();
    let mut errors = ErrorList::new();
    // which is not told: keys are in it
    match given + usize::from(provider.identity.is_some()) + usize::from(provider.kms.is_some()) {
        0 => errors.push(Error::invalid_part(
            path,
            "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
        )),
        1 => {}
        _ => errors.push(Error::invalid_part(
            path,
            "more than one provider specified in a single element, should split into different list elements",
        )),
    }
    let first = kinds
        .iter()
        .find_map(|(kind, keys, sizes)| Some((kind, keys.as_ref()?, sizes)));
    if let Some((kind, keys, sizes)) = first.filter(|_| provider.kms.is_none()) {
        let path = path.child(kind).child("keys");
        let keys = keys.keys.as_deref().unwrap_or_default();
        if keys.is_empty() {
            errors.push(Error::required(&path, "at least one keys is required"));
        }
        for (number, key) in keys.iter().enumerate() {
            errors.extend(wrong_key(key, &path.index(number), sizes));
        }
    }
    errors
}

fn wrong_key(key: &KeyOf, path: &Path, sizes: &[usize]) -> ErrorList {
    let mut errors = ErrorList::new();
    let secret = path.child("secret");
    if key.name.is_empty() {
        errors.push(Error::required(
            &path.child("name"),
            "name is a mandatory field for a key",
        ));
    }
    if key.secret.is_empty() {
        errors.push(Error::required(&secret, "secret is a mandatory field for a key"));
        return errors;
    }
    match decoded(&key.secret) {
        None => errors.push(Error::invalid(&secret, "REDACTED", "secrets must be base64 encoded")),
        Some(found) if !sizes.contains(&found.len()) => {
            let sizes: Vec<_> = sizes.iter().map(usize::to_string).collect();
            let detail = format!(
                "secret is not of the expected length, got {}, expected one of [{}]",
                found.len(),
                sizes.join(" ")
            );
            errors.push(Error::invalid(&secret, "REDACTED", detail));
        }
        Some(_) => {}
    }
    errors
}

/// A configuration with one new key of `secretbox` for some resources, that reads what was stored unencrypted before.
pub fn generate(resources: &[&str], key: &SecretKey) -> String {
    let resources: String = resources
        .iter()
        .map(|resource| format!("  - {}\n", serde_json::Value::from(*resource)))
        .collect();
    format!(
        "apiVersion: {API_VERSION}\nkind: {KIND}\nresources:\n- resources:\n{resources}  providers:\n  - secretbox:\n      keys:\n      - name: {}\n        \
         secret: {}\n  - identity: {{}}\n",
        serde_json::Value::from(key.name.as_str()),
        STANDARD.encode(&*key.secret)
    )
}

#[cfg(test)]
mod tests;
