//! Names of objects in a project's namespace that gardenlets make for a shoot: the shoot's name, a dot, and a suffix. Others that belong to a
//! shoot or seed by their name stand here, too.

use gardener_apis::constants::SEED_NAMESPACE_PREFIX;

/// Suffixes of Secrets.
pub const SECRETS: [&str; 4] = ["ca-cluster", "ssh-keypair", "ssh-keypair.old", "monitoring"];
/// Suffixes of InternalSecrets.
pub const INTERNAL_SECRETS: [&str; 1] = ["ca-client"];
/// Suffixes of ConfigMaps.
pub const CONFIG_MAPS: [&str; 2] = ["ca-cluster", "ca-kubelet"];

/// What names of Secrets begin with that BackupBuckets get; the bucket's name follows.
pub const GENERATED_BUCKET_PREFIX: &str = "generated-bucket-";
/// What names of BackupEntries begin with that show the source of a migration; a dash and the shoot's entry's name follow.
pub const BACKUP_SOURCE_PREFIX: &str = "source";
/// What names of Gardenlets and Leases of self-hosted shoots begin with; the shoot's name follows.
pub const SELF_HOSTED_PREFIX: &str = "self-hosted-shoot-";
/// What names of extensions' service accounts in a seed's namespace begin with.
pub const EXTENSION_ACCOUNT_PREFIX: &str = "extension-";
/// What names of extensions' service accounts in the namespace of a self-hosted shoot begin with; the shoot's name, two dashes and the
/// ControllerInstallation's name follow.
pub const SHOOT_EXTENSION_ACCOUNT_PREFIX: &str = "extension-shoot--";

/// The namespace with the leases of seeds' gardenlets.
pub const SEED_LEASE_NAMESPACE: &str = "gardener-system-seed-lease";
/// The namespace with the public keys of managed issuers.
pub const SHOOT_ISSUER_NAMESPACE: &str = "gardener-system-shoot-issuer";
/// The namespace with what everybody may know.
pub const PUBLIC_NAMESPACE: &str = "gardener-system-public";
/// Kubernetes' own namespace.
pub const KUBE_SYSTEM: &str = "kube-system";
/// The ConfigMap with the garden's identity.
pub const CLUSTER_IDENTITY: &str = "cluster-identity";

/// The name of a shoot's object with a suffix.
pub fn of_shoot(shoot: &str, suffix: &str) -> String {
    format!("{shoot}.{suffix}")
}

/// The shoot whose object with one of the suffixes has this name.
pub fn shoot_of<'n>(name: &'n str, suffixes: &[&str]) -> Option<&'n str> {
    let mut shoots = suffixes
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix)?.strip_suffix('.'));
    shoots.next()
}

/// The namespace of what belongs to one seed alone.
pub fn seed_namespace(seed: &str) -> String {
    format!("{SEED_NAMESPACE_PREFIX}{seed}")
}

/// The Secret with the public keys of a shoot with a managed issuer.
pub fn issuer_secret(project: &str, shoot_uid: &str) -> String {
    format!("{project}--{shoot_uid}")
}

/// The shoot of an extension's service account of a self-hosted shoot.
pub fn shoot_of_extension_account(name: &str) -> Option<&str> {
    let (shoot, _) = name.strip_prefix(SHOOT_EXTENSION_ACCOUNT_PREFIX)?.split_once("--")?;
    Some(shoot).filter(|shoot| !shoot.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_shoot() {
        for (name, suffixes, shoot) in [
            ("a.ca-cluster", &SECRETS[..], Some("a")),
            ("a.b.ssh-keypair.old", &SECRETS[..], Some("a.b")),
            ("a.ssh-keypair", &SECRETS[..], Some("a")),
            ("a.ca-client", &SECRETS[..], None),
            ("a.ca-client", &INTERNAL_SECRETS[..], Some("a")),
            ("aca-client", &INTERNAL_SECRETS[..], None),
            ("a.ca-kubelet", &CONFIG_MAPS[..], Some("a")),
        ] {
            assert_eq!(shoot_of(name, suffixes), shoot, "{name}");
        }
        assert_eq!(shoot_of_extension_account("extension-shoot--a--inst-x"), Some("a"));
        assert_eq!(shoot_of_extension_account("extension-shoot----inst"), None);
        assert_eq!(shoot_of_extension_account("extension-shoot--a"), None);
        assert_eq!(shoot_of_extension_account("extension-provider"), None);
    }
}
