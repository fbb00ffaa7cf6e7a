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
    /// It is there.
    Solid,
    /// Nobody can say: its kind is not served, it cannot be read, or an object without a namespace has no owner in one. Then nothing is done.
    Unknown,
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
    /// It is deleted in the foreground, for it has dependents and an owner that waits for it. One of those may wait for it in turn.
    DeleteWithDependents,
    /// Owners that are gone are taken out of its references.
    SetOwners(Vec<OwnerReference>),
    /// Its dependents are deleted before it.
    DeleteDependents,
    /// Its dependents are released, then its finalizer.
    Orphan,
    /// No dependent holds it any longer.
    DropForeground,
}

/// References that keep no owner from being deleted in the foreground; none, if these do not.
pub(super) fn unblocked(references: &[OwnerReference]) -> Option<Vec<OwnerReference>> {
    let blocks = |reference: &OwnerReference| reference.block_owner_deletion == Some(true);
    references.iter().any(blocks).then(|| {
        let mut references = references.to_vec();
        for reference in references.iter_mut().filter(|reference| blocks(reference)) {
            reference.block_owner_deletion = Some(false);
        }
        references
    })
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
    if owners.is_empty() || owners.contains(&Owner::Unknown) {
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
    if owners.contains(&Owner::WaitsForDependents) && !dependents.is_empty() {
        return Decision::DeleteWithDependents;
    }
    let policy = if has(ORPHAN) {
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
        use Owner::{Absent, Solid, Unknown, WaitsForDependents};
        assert_eq!(decide(&object(0, &[], false), &[], &[]), Decision::Nothing);
        assert_eq!(decide(&object(1, &[], false), &[Solid], &[]), Decision::Nothing);
        let Decision::SetOwners(left) = decide(&object(2, &[], false), &[Absent, Solid], &[]) else {
            panic!()
        };
        assert_eq!(left[0].uid, "1");
        let background = Decision::Delete { policy: "Background" };
        assert_eq!(decide(&object(2, &[], false), &[Absent, Absent], &[]), background);
        assert_eq!(decide(&object(1, &[], false), &[WaitsForDependents], &[]), background);
        assert_eq!(
            decide(&object(1, &[], false), &[WaitsForDependents], &[dependent(false)]),
            Decision::DeleteWithDependents
        );
        // what is not known may be there
        for owners in [[Unknown, Absent], [Unknown, Solid], [Absent, Unknown]] {
            assert_eq!(decide(&object(2, &[], false), &owners, &[]), Decision::Nothing);
        }
        let orphans = Decision::Delete { policy: "Orphan" };
        assert_eq!(decide(&object(1, &[ORPHAN], false), &[Absent], &[]), orphans);
    }

    #[test]
    fn references_that_block_are_made_to_block_no_more() {
        let references = |blocks: [Option<bool>; 2]| {
            blocks.map(|block_owner_deletion| OwnerReference {
                block_owner_deletion,
                ..OwnerReference::default()
            })
        };
        assert_eq!(
            unblocked(&references([Some(true), None])),
            Some(references([Some(false), None]).to_vec())
        );
        assert_eq!(unblocked(&references([Some(false), None])), None);
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
