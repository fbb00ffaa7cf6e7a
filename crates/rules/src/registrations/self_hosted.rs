//! Which registrations a self-hosted shoot wants `[GCM-30]`, and, as such a shoot may be a seed too, who of the two looks after an installation `[GCM-31]`.

use std::collections::BTreeSet;

use gardener_apis::core::v1beta1::{BackupBucket, BackupEntry, ControllerInstallation, ControllerRegistration, Shoot};
use k8s_openapi::api::core::v1::ObjectReference;

use super::{KindType, Required, all_brought, bringing, by_policy, installed_and_required, required_of_shoot};

/// The label of installations that a seed looks after which is a self-hosted shoot; its value is the seed's name.
pub const SEED_REF_NAME: &str = "seed-ref-name";

/// What is known when registrations are chosen for a self-hosted shoot.
pub struct SelfHosted<'a> {
    /// The shoot.
    pub shoot: &'a Shoot,
    /// All backup buckets.
    pub buckets: &'a [&'a BackupBucket],
    /// All backup entries.
    pub entries: &'a [&'a BackupEntry],
    /// All registrations.
    pub registrations: &'a [ControllerRegistration],
    /// The shoot's installations.
    pub installations: &'a [ControllerInstallation],
}

/// Whether a reference leads to a shoot.
pub fn refers_to(reference: Option<&ObjectReference>, shoot: &Shoot) -> bool {
    let own = &shoot.metadata;
    reference.is_some_and(|reference| reference.name == own.name && reference.namespace == own.namespace)
}

impl SelfHosted<'_> {
    /// Kinds and types that the shoot needs for itself. Nothing is needed by one in deletion, besides what its backups need.
    fn required_now(&self) -> BTreeSet<KindType> {
        match self.shoot.metadata.deletion_timestamp {
            Some(_) => self.of_backups(),
            None => self.required(),
        }
    }

    /// Kinds and types that the shoot needs for itself while it lives.
    pub fn required(&self) -> BTreeSet<KindType> {
        let mut required = self.of_backups();
        required.extend(required_of_shoot(self.shoot, None, self.registrations));
        required
    }

    fn of_backups(&self) -> BTreeSet<KindType> {
        let mut required = Required::default();
        required.backups(
            self.buckets,
            self.entries,
            (
                |bucket| refers_to(bucket.spec.shoot_ref.as_ref(), self.shoot),
                |entry| refers_to(entry.spec.shoot_ref.as_ref(), self.shoot),
            ),
        );
        required.0
    }

    /// Names of the registrations that bring what the shoot needs.
    pub fn needed(&self) -> BTreeSet<String> {
        bringing(self.registrations, &self.required())
    }

    /// Names of the registrations that are wanted in the shoot. It is a shoot of its own, and has no labels of a seed.
    ///
    /// # Errors
    /// When something is needed that nobody registers.
    pub fn wanted(&self) -> Result<BTreeSet<String>, String> {
        let in_deletion = self.shoot.metadata.deletion_timestamp.is_some();
        let mut wanted = all_brought(self.registrations, &self.required_now())?;
        wanted.extend(by_policy(self.registrations, in_deletion, true));
        wanted.extend(installed_and_required(self.installations));
        Ok(wanted)
    }
}

/// Who chooses registrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// A seed.
    Seed,
    /// A seed that is a self-hosted shoot.
    SelfHostedSeed,
    /// A self-hosted shoot.
    Shoot,
}

/// What a keeper does about a registration's installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It makes it, or brings it up to date.
    Install,
    /// Nothing.
    Leave,
    /// It leaves it to the shoot from now on.
    HandOver,
    /// It refers to the seed from now on, as the seed needs the shoot's.
    ShowToSeed,
    /// It no longer refers to the seed.
    HideFromSeed,
    /// It deletes it.
    Remove,
}

/// What a keeper does about the installation of a registration that it wants or not, and that the self-hosted shoot needs or not.
pub fn step(keeper: Keeper, is_wanted: bool, shoot_needs: bool, existing: Option<&ControllerInstallation>) -> Step {
    let labels = existing.and_then(|own| own.metadata.labels.as_ref());
    let is_seeds = labels.is_some_and(|labels| labels.contains_key(SEED_REF_NAME));
    let shown = existing.is_some_and(|own| own.spec.seed_ref.is_some());
    match (keeper, existing.is_some(), is_wanted) {
        (Keeper::SelfHostedSeed, true, true) => match (is_seeds, shoot_needs, shown) {
            (true, true, _) => Step::HandOver,
            (true, false, _) => Step::Install,
            (false, _, false) => Step::ShowToSeed,
            (false, _, true) => Step::Leave,
        },
        // the shoot will make it, and then it is seen
        (Keeper::SelfHostedSeed, false, true) if shoot_needs => Step::Leave,
        (_, _, true) => Step::Install,
        (_, false, false) => Step::Leave,
        (Keeper::Shoot, true, false) if is_seeds => Step::Leave,
        (Keeper::SelfHostedSeed, true, false) => match (is_seeds, shoot_needs, shown) {
            (true, true, _) => Step::HandOver,
            (true, false, _) => Step::Remove,
            (false, _, true) => Step::HideFromSeed,
            (false, _, false) => Step::Leave,
        },
        (_, true, false) => Step::Remove,
    }
}

#[cfg(test)]
mod tests {
    use gardener_apis::core::v1beta1::Seed;
    use serde_json::{Value, json};

    use super::super::{Landscape, required, wanted};
    use super::*;

    macro_rules! read {
        ($value:expr $(,)?) => {
            serde_json::from_value($value).unwrap()
        };
    }

    fn shoot() -> Shoot {
        read!(json!({
            "metadata": {"name": "self", "namespace": "garden"},
            "spec": {"provider": {"type": "p", "workers": [{
                "name": "cp", "machine": {"type": "m", "image": {"name": "os"}}, "minimum": 1, "maximum": 1,
                "controlPlane": {"backup": {"provider": "b"}, "exposure": {"extension": {}}},
            }]}},
        }))
    }

    fn registration(name: &str, resources: &[(&str, &str)], policy: &str) -> ControllerRegistration {
        let resources: Vec<Value> = resources
            .iter()
            .map(|(kind, own)| json!({"kind": kind, "type": own}))
            .collect();
        read!(
            json!({"metadata": {"name": name}, "spec": {"resources": resources, "deployment": {"policy": policy,
            "seedSelector": {"matchLabels": {"nobody": "has"}}}}}),
        )
    }

    fn registrations() -> Vec<ControllerRegistration> {
        vec![
            registration(
                "p",
                &[("ControlPlane", "p"), ("Infrastructure", "p"), ("Worker", "p")],
                "OnDemand",
            ),
            registration("exposure", &[("SelfHostedShootExposure", "p")], "OnDemand"),
            registration("os", &[("OperatingSystemConfig", "os")], "OnDemand"),
            registration("b", &[("BackupBucket", "b"), ("BackupEntry", "b")], "OnDemand"),
            registration("always", &[], "Always"),
            registration("with-shoots", &[], "AlwaysExceptNoShoots"),
            registration("other", &[("Network", "other")], "OnDemand"),
        ]
    }

    #[test]
    fn gcm_31_what_a_self_hosted_shoot_wants() {
        let (mut shoot, registrations) = (shoot(), registrations());
        let wanted = |shoot: &Shoot, registrations: &[ControllerRegistration], buckets: &[&BackupBucket]| {
            let own = SelfHosted {
                shoot,
                buckets,
                entries: &[],
                registrations,
                installations: &[],
            };
            own.wanted().map(|names| names.into_iter().collect::<Vec<_>>())
        };
        // seed selectors do not count
        assert_eq!(
            wanted(&shoot, &registrations, &[]).unwrap(),
            ["always", "b", "exposure", "os", "p", "with-shoots"]
        );
        assert_eq!(
            wanted(&shoot, &registrations[1..], &[]).unwrap_err(),
            "need to install an extension controller for \"ControlPlane/p\" but no appropriate ControllerRegistration found"
        );
        shoot.metadata.deletion_timestamp = read!(json!("2026-01-01T00:00:00Z"));
        assert_eq!(wanted(&shoot, &registrations, &[]).unwrap(), ["with-shoots"]);
        let bucket = |namespace: &str| -> BackupBucket {
            read!(json!({"metadata": {"name": "x"},
                "spec": {"provider": {"type": "b", "region": "r"}, "shootRef": {"name": "self", "namespace": namespace}}}))
        };
        assert_eq!(
            wanted(&shoot, &registrations, &[&bucket("garden")]).unwrap(),
            ["b", "with-shoots"]
        );
        assert_eq!(
            wanted(&shoot, &registrations, &[&bucket("else")]).unwrap(),
            ["with-shoots"]
        );
    }

    #[test]
    fn gcm_31_a_seed_leaves_to_its_shoot_what_only_that_needs() {
        let (shoot, mut registrations) = (shoot(), registrations());
        for registration in &mut registrations {
            registration.spec.deployment = None;
        }
        let seed: Seed =
            read!(json!({"metadata": {"name": "self"}, "spec": {"provider": {"type": "p", "region": "r"}}}));
        let bucket: BackupBucket = read!(json!({"metadata": {"name": "x"},
            "spec": {"provider": {"type": "b", "region": "r"}, "seedName": "self"}}));
        let buckets = [&bucket];
        let own = SelfHosted {
            shoot: &shoot,
            buckets: &buckets,
            entries: &[],
            registrations: &registrations,
            installations: &[],
        };
        let landscape = |self_hosted| Landscape {
            seed: &seed,
            shoots: &[],
            buckets: &buckets,
            entries: &[],
            registrations: &registrations,
            installations: &[],
            self_hosted,
        };
        let has = |all: &BTreeSet<KindType>, kind: &str, own: &str| all.contains(&(kind.to_owned(), own.to_owned()));
        let alone = required(&landscape(None));
        assert!(has(&alone, "BackupBucket", "b") && has(&alone, "Worker", "p"));
        // the seed needs its provider, too; the bucket is of a type that the shoot brings
        let both = required(&landscape(Some(&own)));
        assert!(!has(&both, "BackupBucket", "b") && has(&both, "Worker", "p"));
        let names = wanted(&landscape(Some(&own))).unwrap();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["p"]);
        assert!(own.needed().contains("p") && own.needed().contains("os") && !own.needed().contains("other"));
    }

    #[test]
    fn gcm_31_who_looks_after_an_installation() {
        use Keeper::{Seed, SelfHostedSeed, Shoot};
        let installation = |label: bool, seed_ref: bool| {
            let mut own = ControllerInstallation::default();
            if label {
                own.metadata.labels = Some([(SEED_REF_NAME.to_owned(), "s".to_owned())].into());
            }
            own.spec.seed_ref = seed_ref.then(ObjectReference::default);
            Some(own)
        };
        // keeper, wanted, needed by the shoot, existing
        let cases = [
            (Seed, true, false, None, Step::Install),
            (Seed, true, false, installation(false, true), Step::Install),
            (Seed, false, false, None, Step::Leave),
            (Seed, false, false, installation(false, true), Step::Remove),
            (Shoot, true, true, None, Step::Install),
            (Shoot, true, true, installation(true, true), Step::Install),
            (Shoot, false, false, installation(true, true), Step::Leave),
            (Shoot, false, false, installation(false, false), Step::Remove),
            (SelfHostedSeed, true, false, None, Step::Install),
            (SelfHostedSeed, true, true, None, Step::Leave),
            (SelfHostedSeed, true, false, installation(true, true), Step::Install),
            (SelfHostedSeed, true, true, installation(true, true), Step::HandOver),
            (SelfHostedSeed, true, true, installation(false, false), Step::ShowToSeed),
            (SelfHostedSeed, true, true, installation(false, true), Step::Leave),
            (SelfHostedSeed, false, true, installation(true, true), Step::HandOver),
            (SelfHostedSeed, false, false, installation(true, true), Step::Remove),
            (
                SelfHostedSeed,
                false,
                true,
                installation(false, true),
                Step::HideFromSeed,
            ),
            (SelfHostedSeed, false, true, installation(false, false), Step::Leave),
        ];
        for (keeper, is_wanted, needs, existing, expected) in cases {
            let found = step(keeper, is_wanted, needs, existing.as_ref());
            assert_eq!(
                found,
                expected,
                "{keeper:?} {is_wanted} {needs} {:?}",
                existing.map(|own| own.spec.seed_ref)
            );
        }
    }
}
