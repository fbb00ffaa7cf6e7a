//! Named schemas of OpenAPI documents and the way from a group, version and kind to its schema.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use crate::parse::{ParseError, Reader};
use crate::schema::{Schema, Slot};

/// The named schemas of one or several OpenAPI v3 documents. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    by_name: Arc<BTreeMap<String, Arc<Schema>>>,
    by_kind: Arc<BTreeMap<(String, String, String), String>>,
}

impl Definitions {
    /// Reads the `components.schemas` of all documents. Where documents define the same name, the first counts: an API
    /// server writes the same definition into each of its documents. References may go from one document to another; one
    /// to an unknown name stands for any value.
    ///
    /// # Errors
    /// When a document's `components.schemas` is not an object of objects.
    pub fn from_openapi<'a>(documents: impl IntoIterator<Item = &'a Value>) -> Result<Self, ParseError> {
        let mut sources: BTreeMap<&str, &Value> = BTreeMap::new();
        for document in documents {
            let Some(schemas) = document.at("/components/schemas") else {
                continue;
            };
            let Value::Object(schemas) = schemas else {
                return Err(ParseError::new("components.schemas", "an object", schemas));
            };
            for (name, schema) in schemas {
                sources.entry(name).or_insert(schema);
            }
        }
        let slots: BTreeMap<&str, Slot> = sources.keys().map(|name| (*name, Arc::new(OnceLock::new()))).collect();
        let mut by_name = BTreeMap::new();
        let mut by_kind = BTreeMap::new();
        for (name, source) in &sources {
            let reader = Reader::openapi(&slots);
            let schema = Arc::new(reader.definition(name, source)?);
            if let Some(slot) = slots.get(name) {
                let _ = slot.set(Arc::clone(&schema));
            }
            by_name.insert((*name).to_owned(), schema);
            let kinds = source.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
            for kind in kinds.into_iter().flatten() {
                let text = |key: &str| kind.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                by_kind
                    .entry((text("group"), text("version"), text("kind")))
                    .or_insert_with(|| (*name).to_owned());
            }
        }
        Ok(Self {
            by_name: Arc::new(by_name),
            by_kind: Arc::new(by_kind),
        })
    }

    /// The schema of a kind, by `x-kubernetes-group-version-kind`; the core group is empty.
    pub fn for_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
        self.get(self.name_for_kind(group, version, kind)?)
    }

    /// The name of the definition of a kind.
    pub fn name_for_kind(&self, group: &str, version: &str, kind: &str) -> Option<&str> {
        let key = (group.to_owned(), version.to_owned(), kind.to_owned());
        self.by_kind.get(&key).map(String::as_str)
    }

    /// The definition of a full name, `io.k8s.api.apps.v1.Deployment`.
    pub fn get(&self, name: &str) -> Option<Arc<Schema>> {
        self.by_name.get(name).cloned()
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}
