//! What is to happen with an object, given its owners and dependents.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::graph::Dependent;
use crate::topics::Ownership;

/// The finalizer of an object that goes after its dependents.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents stay.
pub(super) const ORPHAN: &str = "orphan";

/// What is known of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It is there, or nobody can say.
    Solid,
    /// It does not exist, or another object has its name.
    Absent,
    /// It is being deleted in the foreground.
    WaitsForDependents,
}

/// What is to happen with an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decision {
    /// It stays as it is.
    Nothing,
    /// It is deleted.
    Delete { policy: &'static str },
    /// Owners that are gone are taken out of its references.
    SetOwners(Vec<OwnerReference>),
    /// Its dependents are deleted before it.
    DeleteDependents,
    /// Its dependents are released, then its finalizer.
    Orphan,
    /// No dependent holds it any longer.
    DropForeground,
}

pub(super) fn decide(object: &Ownership, owners: &[Owner], dependents: &[Dependent]) -> Decision {
    let has = |finalizer: &str| object.finalizers.iter().any(|own| own == finalizer);
    if object.deletion_timestamp.is_some() {
        return if has(ORPHAN) {
            Decision::Orphan
        } else if !has(FOREGROUND) {
            Decision::Nothing
        } else if dependents.iter().any(|dependent| dependent.blocks) {
            Decision::DeleteDependents
        } else {
            Decision::DropForeground
        };
    }
    if owners.is_empty() {
        return Decision::Nothing;
    }
    if owners.contains(&Owner::Solid) {
        let solid: Vec<OwnerReference> = object
            .owner_references
            .iter()
            .zip(owners)
            .filter(|(_, owner)| **owner == Owner::Solid)
            .map(|(reference, _)| reference.clone())
            .collect();
        return if solid.len() == owners.len() {
            Decision::Nothing
        } else {
            Decision::SetOwners(solid)
        };
    }
    let policy = if owners.contains(&Owner::WaitsForDependents) && !dependents.is_empty() {
        "Foreground"
    } else if has(ORPHAN) {
        "Orphan"
    } else if has(FOREGROUND) {
        "Foreground"
    } else {
        "Background"
    };
    Decision::Delete { policy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topics::Place;
    use gardener_store::Topic;

    fn object(owners: usize, finalizers: &[&str], deleting: bool) -> Ownership {
        Ownership {
            owner_references: (0..owners)
                .map(|number| OwnerReference {
                    uid: number.to_string(),
                    ..OwnerReference::default()
                })
                .collect(),
            finalizers: finalizers.iter().map(|one| (*one).to_owned()).collect(),
            deletion_timestamp: deleting.then(|| "now".into()),
            ..Ownership::default()
        }
    }

    fn dependent(blocks: bool) -> Dependent {
        let place = Place {
            cluster: "c".into(),
            topic: Topic::new("", "pods"),
            namespace: "n".into(),
            name: "p".into(),
        };
        Dependent { place, blocks }
    }

    #[test]
    fn objects_stay_while_an_owner_is_there() {
        use Owner::{Absent, Solid, WaitsForDependents};
        assert_eq!(decide(&object(0, &[], false), &[], &[]), Decision::Nothing);
        assert_eq!(decide(&object(1, &[], false), &[Solid], &[]), Decision::Nothing);
        let Decision::SetOwners(left) = decide(&object(2, &[], false), &[Absent, Solid], &[]) else {
            panic!()
        };
        assert_eq!(left[0].uid, "1");
        let background = Decision::Delete { policy: "Background" };
        assert_eq!(decide(&object(2, &[], false), &[Absent, Absent], &[]), background);
        assert_eq!(decide(&object(1, &[], false), &[WaitsForDependents], &[]), background);
        let foreground = Decision::Delete { policy: "Foreground" };
        assert_eq!(
            decide(&object(1, &[], false), &[WaitsForDependents], &[dependent(false)]),
            foreground
        );
    }

    #[test]
    fn deleted_owners_wait_for_what_blocks_them() {
        let owner = object(0, &[FOREGROUND], true);
        assert_eq!(decide(&owner, &[], &[dependent(true)]), Decision::DeleteDependents);
        assert_eq!(decide(&owner, &[], &[dependent(false)]), Decision::DropForeground);
        assert_eq!(
            decide(&object(0, &[ORPHAN], true), &[], &[dependent(true)]),
            Decision::Orphan
        );
        assert_eq!(
            decide(&object(1, &["other"], true), &[Owner::Absent], &[]),
            Decision::Nothing
        );
    }
}
