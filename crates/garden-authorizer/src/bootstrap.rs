//! How a gardenlet gets in for the first time [AUTH-33]: by a bootstrap token or a service account made for its ManagedSeed or Gardenlet. Names and
//! descriptions tell for whom.

use sha2::{Digest, Sha256};

/// The ClusterRole of those who may only ask for a client certificate.
pub const BOOTSTRAPPER_ROLE: &str = "gardener.cloud:system:seed-bootstrapper";
/// What names of ClusterRoleBindings to [`BOOTSTRAPPER_ROLE`] begin with; the service account's namespace, a colon and its name follow.
pub const BINDING_PREFIX: &str = "gardener.cloud:system:seed-bootstrapper:";
/// What names of service accounts to bootstrap with begin with; the ManagedSeed's name follows.
pub const SERVICE_ACCOUNT_PREFIX: &str = "gardenlet-bootstrap-";
/// What names of bootstrap tokens' Secrets begin with; the token's id follows.
pub const TOKEN_SECRET_PREFIX: &str = "bootstrap-token-";
/// What users with bootstrap tokens begin with; the token's id follows.
pub const TOKEN_USER_PREFIX: &str = "system:bootstrap:";
/// The group of all users with bootstrap tokens.
pub const TOKEN_GROUP: &str = "system:bootstrappers";

/// What tokens' descriptions call a ManagedSeed and a Gardenlet.
const KINDS: [(&str, Bootstrapped); 2] = [
    (
        "seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource",
        Bootstrapped::ManagedSeed,
    ),
    (
        "seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource",
        Bootstrapped::Gardenlet,
    ),
];
/// What descriptions of tokens for self-hosted shoots begin with; `<namespace>/<name>` and more words follow.
const SELF_HOSTED_DESCRIPTION: &str = "Used for connecting the self-hosted Shoot ";

const ID_LENGTH: usize = 6;

/// The kind of object for whose gardenlet a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bootstrapped {
    /// A ManagedSeed.
    ManagedSeed,
    /// A Gardenlet.
    Gardenlet,
}

/// The id of the bootstrap token for an object.
pub fn token_id(namespace: &str, name: &str) -> String {
    let value = match namespace {
        "" => name.to_owned(),
        namespace => format!("{namespace}--{name}"),
    };
    let digest = Sha256::digest(value.as_bytes());
    let mut id: String = digest
        .iter()
        .take(ID_LENGTH)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    id.truncate(ID_LENGTH);
    id
}

/// The name of the Secret with the bootstrap token for an object, in namespace kube-system.
pub fn token_secret(namespace: &str, name: &str) -> String {
    format!("{TOKEN_SECRET_PREFIX}{}", token_id(namespace, name))
}

/// The service account for a ManagedSeed, in its namespace.
pub fn service_account(managed_seed: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{managed_seed}")
}

/// The ClusterRoleBinding of the service account for a ManagedSeed.
pub fn binding(namespace: &str, managed_seed: &str) -> String {
    format!("{BINDING_PREFIX}{namespace}:{}", service_account(managed_seed))
}

/// Namespace and name of the ManagedSeed for whose service account a ClusterRoleBinding is, from its name.
pub fn managed_seed_of_binding(binding: &str) -> (&str, &str) {
    let rest = binding.strip_prefix(BINDING_PREFIX).unwrap_or(binding);
    let mut parts = rest.split(':');
    let first = parts.next().unwrap_or_default();
    let (namespace, name) = match parts.next() {
        Some(second) => (first, second),
        None => ("", first),
    };
    (namespace, name.strip_prefix(SERVICE_ACCOUNT_PREFIX).unwrap_or(name))
}

/// The description of a bootstrap token.
pub fn description(kind: Bootstrapped, namespace: &str, name: &str) -> String {
    let text = KINDS.iter().find(|(_, own)| *own == kind).map_or("", |(text, _)| text);
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{}{namespace}{slash}{name}.", introduction(text))
}

fn introduction(kind: &str) -> String {
    format!("A bootstrap token for the Gardenlet for {kind} ")
}

/// For what a bootstrap token is, from its description: kind (if it is one of the two), namespace and name.
pub fn read_description(description: &str) -> (Option<Bootstrapped>, &str, &str) {
    let found = KINDS.iter().find(|(text, _)| description.contains(text));
    let introduction = introduction(found.map_or("", |(text, _)| text));
    let rest = description.strip_suffix('.').unwrap_or(description);
    let rest = rest.strip_prefix(introduction.as_str()).unwrap_or(rest);
    let mut parts = rest.split('/');
    let first = parts.next().unwrap_or_default();
    let (namespace, name) = match parts.next() {
        Some(second) => (first, second),
        None => ("", first),
    };
    (found.map(|(_, kind)| *kind), namespace, name)
}

/// The self-hosted shoot for whose gardenlet a bootstrap token is, from the token's description; none when it is for none.
///
/// # Errors
/// The description begins as one for a self-hosted shoot, but tells none.
pub fn shoot_of_description(description: &str) -> Result<Option<(String, String)>, String> {
    if let Some(rest) = description.strip_prefix(SELF_HOSTED_DESCRIPTION) {
        let first = rest
            .split_whitespace()
            .next()
            .ok_or_else(|| format!("could not extract shoot meta from bootstrap token description: {description}"))?;
        let parts: Vec<&str> = first.split('/').collect();
        return match parts.as_slice() {
            [namespace, name] => Ok(Some(((*namespace).to_owned(), (*name).to_owned()))),
            _ => Err(format!(
                "could not extract shoot namespace and name from bootstrap token description: {description}"
            )),
        };
    }
    Ok(match read_description(description) {
        (Some(Bootstrapped::Gardenlet), namespace, name) => {
            let shoot = name.strip_prefix(crate::names::SELF_HOSTED_PREFIX).unwrap_or(name);
            Some((namespace.to_owned(), shoot.to_owned()))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auth_33_tokens_are_named_after_their_object() {
        // printf %s garden--seed-a | sha256sum
        assert_eq!(token_id("garden", "seed-a"), "c75b92");
        assert_eq!(token_id("", "seed-a").len(), 6);
        assert_ne!(token_id("", "seed-a"), token_id("garden", "seed-a"));
        assert_eq!(
            binding("garden", "b"),
            "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-b"
        );
        assert_eq!(managed_seed_of_binding(&binding("garden", "b")), ("garden", "b"));
        assert_eq!(
            managed_seed_of_binding("gardener.cloud:system:seed-bootstrapper:b"),
            ("", "b")
        );
    }

    #[test]
    fn auth_33_descriptions_tell_for_whom() {
        for kind in [Bootstrapped::ManagedSeed, Bootstrapped::Gardenlet] {
            let text = description(kind, "garden", "b");
            assert_eq!(read_description(&text), (Some(kind), "garden", "b"), "{text}");
        }
        assert_eq!(read_description("whatever"), (None, "", "whatever"));
        let shoot = |text: &str| shoot_of_description(text);
        let found = Ok(Some(("garden-dev".to_owned(), "a".to_owned())));
        assert_eq!(
            shoot("Used for connecting the self-hosted Shoot garden-dev/a to the garden"),
            found
        );
        assert_eq!(
            shoot(&description(
                Bootstrapped::Gardenlet,
                "garden-dev",
                "self-hosted-shoot-a"
            )),
            found
        );
        assert_eq!(shoot(&description(Bootstrapped::ManagedSeed, "garden", "a")), Ok(None));
        assert!(shoot("Used for connecting the self-hosted Shoot ").is_err());
        assert!(shoot("Used for connecting the self-hosted Shoot a/b/c").is_err());
    }
}
