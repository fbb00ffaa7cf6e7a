//! As what custom resources are served: who watches them as something else is sent away when that changes, and comes back to what is served now.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use gardener_store::Topic;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::definition::Definition;

/// A number for what of a CustomResourceDefinition makes its resources what they are: its spec, and the names that were accepted.
pub(super) fn shape(crd: &Value) -> u64 {
    let mut told = crd
        .get("metadata")
        .and_then(|metadata| metadata.get("uid"))
        .map(Value::to_string)
        .unwrap_or_default();
    for part in [
        crd.get("spec"),
        crd.get("status").and_then(|status| status.get("acceptedNames")),
    ] {
        told.push_str(&part.map(Value::to_string).unwrap_or_default());
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, told.as_bytes());
    digest
        .as_ref()
        .iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The shapes of a cluster's custom resources, and what is cancelled when one of them goes.
#[derive(Default)]
pub(crate) struct Shapes(Mutex<BTreeMap<Topic, (u64, CancellationToken)>>);

impl Shapes {
    /// Takes note of all that is served from now on.
    pub(crate) fn renew<'d>(&self, served: impl IntoIterator<Item = &'d Arc<Definition>>) {
        let mut known = self.0.lock();
        let mut gone = std::mem::take(&mut *known);
        for definition in served {
            let Some(shape) = definition.strategy.shape() else {
                continue;
            };
            let topic = definition.topic.clone();
            let as_before = match gone.entry(topic.clone()) {
                Entry::Occupied(before) if before.get().0 == shape => Some(before.remove()),
                _ => None,
            };
            known.insert(topic, as_before.unwrap_or_else(|| (shape, CancellationToken::new())));
        }
        for (_, token) in gone.into_values() {
            token.cancel();
        }
    }

    /// What is cancelled when a resource is no longer served as this definition says; nothing for what is always served so.
    pub(crate) fn end_of(&self, definition: &Definition) -> Option<CancellationToken> {
        let shape = definition.strategy.shape()?;
        let known = self.0.lock();
        let (current, token) = known.get(&definition.topic)?;
        if *current == shape {
            return Some(token.clone());
        }
        let over = CancellationToken::new();
        over.cancel();
        Some(over)
    }
}
