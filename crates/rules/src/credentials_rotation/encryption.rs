//! What of a shoot's values is encrypted and what is to be, and what a control plane has to do about it [CP-92], [CP-95], [CP-115], [ST-161].

use std::collections::BTreeSet;

use gardener_apis::core::v1beta1::{EncryptionAtRest, Shoot};

use super::{COMPLETING, PREPARED, PREPARING, etcd_encryption_key_phase};

/// Always encrypted, and named nowhere.
const SECRETS: &str = "secrets";

/// Which of two keys writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// The one before, while replicas may not know the new one.
    OldWrites,
    /// The new one.
    NewWrites,
}

impl Keys {
    /// The new key writes once every replica can read what it writes: until then a rotation that prepares leaves the old one in place [CP-92].
    pub fn of(phase: &str, every_replica_knows_both: bool) -> Self {
        match phase == PREPARING && !every_replica_knows_both {
            true => Self::OldWrites,
            false => Self::NewWrites,
        }
    }
}

/// What of a shoot's values is encrypted, and what is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    phase: String,
    wanted: BTreeSet<String>,
    done: BTreeSet<String>,
    wanted_provider: String,
    done_provider: String,
}

fn named(resources: &[String]) -> BTreeSet<String> {
    let plain = |resource: &String| resource.strip_suffix('.').unwrap_or(resource).to_owned();
    resources.iter().map(plain).collect()
}

impl Encryption {
    /// What a shoot's spec and status tell.
    pub fn of(shoot: &Shoot) -> Self {
        let server = shoot.spec.kubernetes.kube_api_server.as_ref();
        let wanted = server.and_then(|server| server.encryption_config.as_ref());
        let credentials = shoot.status.credentials.as_ref();
        let done = credentials.and_then(|own| own.encryption_at_rest.as_ref());
        Self {
            phase: etcd_encryption_key_phase(shoot).to_owned(),
            wanted: wanted.map(|own| named(&own.resources)).unwrap_or_default(),
            done: done.map(|own| named(&own.resources)).unwrap_or_default(),
            wanted_provider: wanted.and_then(|own| own.provider.r#type.clone()).unwrap_or_default(),
            done_provider: done.map(|own| own.provider.r#type.clone()).unwrap_or_default(),
        }
    }

    /// Whether values that are encrypted by one provider are to be encrypted by another one [CP-82].
    pub fn changes_provider(&self) -> bool {
        !self.done_provider.is_empty() && self.done_provider != self.wanted_provider
    }

    fn changes_resources(&self) -> bool {
        self.wanted != self.done
    }

    fn other_provider(&self) -> bool {
        self.done_provider != self.wanted_provider
    }

    /// Whether all that is or was to be encrypted is to be written anew, with a label [CP-F35], [CP-95].
    pub fn labels(&self) -> bool {
        self.phase == PREPARING || self.changes_resources() || (self.other_provider() && self.phase != COMPLETING)
    }

    /// Whether the labels are to be taken away, by which all is written once more [CP-F37], [CP-95].
    pub fn unlabels(&self) -> bool {
        let prepares = self.phase == PREPARING || self.phase == PREPARED;
        self.phase == COMPLETING || self.changes_resources() || (self.other_provider() && !prepares)
    }

    /// The resources whose values are written anew: those that come or go, or else all that are encrypted. As they stand in specs: with the group behind a dot,
    /// if there is one.
    pub fn rewritten(&self) -> BTreeSet<String> {
        if self.changes_resources() {
            return self.wanted.symmetric_difference(&self.done).cloned().collect();
        }
        let mut all = self.wanted.clone();
        all.insert(SECRETS.to_owned());
        all
    }

    /// The resources that are no longer to be encrypted but are, until they have been written anew [CP-115].
    pub fn leaving(&self) -> BTreeSet<String> {
        self.done.difference(&self.wanted).cloned().collect()
    }

    /// What the status is to tell when the labels are gone; none, if it tells it already [ST-161].
    pub fn settled(&self) -> Option<EncryptionAtRest> {
        (self.changes_resources() || self.other_provider()).then(|| {
            let mut settled = EncryptionAtRest {
                resources: self.wanted.iter().cloned().collect(),
                ..EncryptionAtRest::default()
            };
            settled.provider.r#type.clone_from(&self.wanted_provider);
            settled
        })
    }
}
