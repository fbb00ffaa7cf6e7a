//! Copies of objects that another API server holds: they have been accepted there, and are taken as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::pointer::Pointed;
use gardener_store::{Change, CommitError, Expect};
use serde_json::Value;

use crate::cluster::LogicalCluster;
use crate::definition::{Context, Definition, Draft};
use crate::user::UserInfo;
use crate::{meta, object};

/// How many objects are stored at once.
const AT_ONCE: usize = 100;

/// Why objects cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The cluster does not serve such objects.
    #[error("{kind} of {api_version} is not served here")]
    Unknown {
        /// `apiVersion` of the object.
        api_version: String,
        /// `kind` of the object.
        kind: String,
    },
    /// The object cannot be rewritten into the stored version.
    #[error("{kind} {name:?} cannot be converted: {why}")]
    Unconverted {
        /// Kind of the object.
        kind: String,
        /// Its name.
        name: String,
        /// What is in the way.
        why: ApiError,
    },
    /// The store refused.
    #[error("the copies cannot be stored: {0}")]
    Store(#[from] CommitError),
}

impl LogicalCluster {
    /// Stores objects as they are in another cluster: with their uids, times, generations and status, deletion included. Neither admission nor
    /// validation see them. What every stored object has and one of these lacks is filled in; who owns its fields is forgotten. Objects that are
    /// here by the same name are replaced.
    ///
    /// # Errors
    /// [`CopyError`].
    pub async fn copy_in(&self, objects: Vec<Value>) -> Result<(), CopyError> {
        let definitions = self.by_kind();
        let mut changes = Vec::new();
        let mut written: BTreeMap<(String, String), Arc<Definition>> = BTreeMap::new();
        for mut object in objects {
            let (api_version, kind) = (text(&object, "/apiVersion"), text(&object, "/kind"));
            let Some((definition, version)) = definitions.get(&(api_version.clone(), kind.clone())) else {
                return Err(CopyError::Unknown { api_version, kind });
            };
            let name = meta::name(&object).to_owned();
            self.complete_copy(definition, version, &mut object)
                .map_err(|why| CopyError::Unconverted {
                    kind,
                    name: name.clone(),
                    why,
                })?;
            let key = self.key(definition, meta::namespace(&object), &name);
            written.insert(
                (definition.group.clone(), definition.plural.clone()),
                definition.clone(),
            );
            changes.push(Change::Put {
                key,
                expect: Expect::Any,
                value: object::encode(&object),
            });
        }
        while !changes.is_empty() {
            let rest = changes.split_off(changes.len().min(AT_ONCE));
            self.store().commit_all(std::mem::replace(&mut changes, rest)).await?;
        }
        written.values().for_each(|definition| self.written(definition));
        Ok(())
    }

    /// Definitions by `apiVersion` and kind, with the name of the version.
    fn by_kind(&self) -> BTreeMap<(String, String), (Arc<Definition>, String)> {
        let mut found = BTreeMap::new();
        for definition in self.definitions() {
            for version in &definition.versions {
                let key = (definition.api_version(&version.name), version.kind.clone());
                found
                    .entry(key)
                    .or_insert_with(|| (definition.clone(), version.name.clone()));
            }
        }
        found
    }

    fn complete_copy(&self, definition: &Definition, version: &str, object: &mut Value) -> Result<(), ApiError> {
        let now = self.clock().now();
        let user = UserInfo::apiserver();
        let context = Context {
            user: &user,
            cluster: self.name(),
            now,
            chance: self.chance().number(),
            dry_run: false,
            verb: "",
            lister: self,
        };
        definition.strategy.default(&context, object);
        if let Some(stored) = definition.stored_version() {
            definition.convert(object, version, &stored.name)?;
        }
        if !definition.namespaced {
            meta::set(object, "namespace", None);
        }
        for key in ["resourceVersion", "managedFields"] {
            meta::set(object, key, None);
        }
        let missing = |object: &Value, key: &str| object.at(&format!("/metadata/{key}")).is_none_or(Value::is_null);
        if missing(object, "uid") {
            meta::set(object, "uid", Some(self.chance().uid().into()));
        }
        if missing(object, "creationTimestamp") {
            meta::set(object, "creationTimestamp", Some(meta::rfc3339(now).into()));
        }
        if missing(object, "generation") {
            meta::set(object, "generation", Some(1.into()));
        }
        let mut draft = Draft::from(object.take());
        definition.canonicalize(&mut draft);
        *object = draft.into_json();
        Ok(())
    }
}

fn text(object: &Value, pointer: &str) -> String {
    meta::text(object, pointer).to_owned()
}
