//! Whose gardenlet or extension a user is [AUTH-1] [AUTH-40].

use gardener_apis::constants::{GARDEN_NAMESPACE, PROJECT_NAMESPACE_PREFIX, SEED_NAMESPACE_PREFIX, group};
use gardener_rules::csr_approval::gardenlets::{GARDENADM_USER_PREFIX, SEED_USER_PREFIX, SHOOT_USER_PREFIX};

use crate::names;

const SERVICE_ACCOUNTS_GROUP: &str = "system:serviceaccounts";
const SERVICE_ACCOUNT_USER_PREFIX: &str = "system:serviceaccount:";

/// What acts for a seed or a shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The gardenlet.
    Gardenlet,
    /// An extension.
    Extension,
    /// gardenadm, which connects a self-hosted shoot. There is none for seeds.
    Gardenadm,
}

/// Who acts for a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedIdentity<'u> {
    /// The seed.
    pub seed: &'u str,
    /// What acts.
    pub client: Client,
}

/// Who acts for a self-hosted shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShootIdentity<'u> {
    /// The shoot's namespace.
    pub namespace: &'u str,
    /// The shoot.
    pub shoot: &'u str,
    /// What acts.
    pub client: Client,
}

fn is_in(groups: &[String], group: &str) -> bool {
    groups.iter().any(|own| own == group)
}

/// Namespace and name of a service account.
fn service_account<'u>(user: &'u str, groups: &[String]) -> Option<(&'u str, &'u str)> {
    if !is_in(groups, SERVICE_ACCOUNTS_GROUP) {
        return None;
    }
    user.strip_prefix(SERVICE_ACCOUNT_USER_PREFIX)?.split_once(':')
}

/// The user as somebody who acts for a seed.
pub fn of_seed<'u>(user: &'u str, groups: &[String]) -> Option<SeedIdentity<'u>> {
    if is_in(groups, group::SEEDS) {
        let seed = user.strip_prefix(SEED_USER_PREFIX)?;
        let client = Client::Gardenlet;
        return (!seed.is_empty()).then_some(SeedIdentity { seed, client });
    }
    let (namespace, name) = service_account(user, groups)?;
    let seed = namespace.strip_prefix(SEED_NAMESPACE_PREFIX)?;
    let client = Client::Extension;
    let own = name.starts_with(names::EXTENSION_ACCOUNT_PREFIX) && !seed.is_empty();
    own.then_some(SeedIdentity { seed, client })
}

/// The user as somebody who acts for a self-hosted shoot.
pub fn of_shoot<'u>(user: &'u str, groups: &[String]) -> Option<ShootIdentity<'u>> {
    if is_in(groups, group::SHOOTS) {
        let gardenlet = user
            .strip_prefix(SHOOT_USER_PREFIX)
            .map(|rest| (rest, Client::Gardenlet));
        let gardenadm = || {
            user.strip_prefix(GARDENADM_USER_PREFIX)
                .map(|rest| (rest, Client::Gardenadm))
        };
        let (rest, client) = gardenlet.or_else(gardenadm)?;
        let (namespace, shoot) = rest.split_once(':')?;
        let two = !shoot.contains(':');
        return two.then_some(ShootIdentity {
            namespace,
            shoot,
            client,
        });
    }
    let (namespace, name) = service_account(user, groups)?;
    if namespace != GARDEN_NAMESPACE && !namespace.starts_with(PROJECT_NAMESPACE_PREFIX) {
        return None;
    }
    Some(ShootIdentity {
        namespace,
        shoot: names::shoot_of_extension_account(name)?,
        client: Client::Extension,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn auth_1_who_acts_for_a_seed() {
        let accounts = "system:serviceaccounts,system:serviceaccounts:seed-a,system:authenticated";
        for (user, of, expected) in [
            (
                "gardener.cloud:system:seed:a",
                group::SEEDS,
                Some(("a", Client::Gardenlet)),
            ),
            ("gardener.cloud:system:seed:a", "system:authenticated", None),
            ("gardener.cloud:system:seed:", group::SEEDS, None),
            ("jane", group::SEEDS, None),
            (
                "system:serviceaccount:seed-a:extension-networking",
                accounts,
                Some(("a", Client::Extension)),
            ),
            ("system:serviceaccount:seed-a:other", accounts, None),
            ("system:serviceaccount:seed-:extension-x", accounts, None),
            ("system:serviceaccount:garden:extension-x", accounts, None),
            ("extension-x", accounts, None),
            ("system:serviceaccount:seed-a:extension-x", "system:authenticated", None),
        ] {
            let found = of_seed(user, &groups(of)).map(|own| (own.seed, own.client));
            assert_eq!(found, expected, "{user} {of}");
        }
    }

    #[test]
    fn auth_40_who_acts_for_a_self_hosted_shoot() {
        let accounts = "system:serviceaccounts";
        for (user, of, expected) in [
            (
                "gardener.cloud:system:shoot:garden-dev:a",
                group::SHOOTS,
                Some(("garden-dev", "a", Client::Gardenlet)),
            ),
            (
                "gardener.cloud:gardenadm:shoot:garden-dev:a",
                group::SHOOTS,
                Some(("garden-dev", "a", Client::Gardenadm)),
            ),
            ("gardener.cloud:system:shoot:garden-dev:a:b", group::SHOOTS, None),
            ("gardener.cloud:system:shoot:a", group::SHOOTS, None),
            ("gardener.cloud:system:shoot:garden-dev:a", group::SEEDS, None),
            (
                "system:serviceaccount:garden-dev:extension-shoot--a--x",
                accounts,
                Some(("garden-dev", "a", Client::Extension)),
            ),
            (
                "system:serviceaccount:garden:extension-shoot--a--x",
                accounts,
                Some(("garden", "a", Client::Extension)),
            ),
            (
                "system:serviceaccount:kube-system:extension-shoot--a--x",
                accounts,
                None,
            ),
            ("system:serviceaccount:garden-dev:extension-a", accounts, None),
        ] {
            let found = of_shoot(user, &groups(of)).map(|own| (own.namespace, own.shoot, own.client));
            assert_eq!(found, expected, "{user} {of}");
        }
    }
}
