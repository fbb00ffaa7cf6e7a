//! Who owns the count of an object that is written through its scale: ownership goes from the object to its scale and back, as upstream's
//! `ScaleHandler` takes it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fieldset::{PathElement, Set};
use crate::managed::{Fields, Identity, Managed, Ownership};

/// The group and version of scales.
pub const API_VERSION: &str = "autoscaling/v1";

/// Where the versions of a kind have the count, by group and version; none for versions without a scale.
#[derive(Clone, Debug, Default)]
pub struct CountPaths {
    versions: BTreeMap<String, Option<Vec<PathElement>>>,
}

fn path(text: &str) -> Vec<PathElement> {
    let fields = text.trim_start_matches('.').split('.');
    fields.map(PathElement::field).collect()
}

fn of_one(path: &[PathElement]) -> Set {
    let mut set = Set::new();
    set.insert(path);
    set
}

fn managed(entries: Option<&Value>) -> Managed<'static> {
    Managed::decode(entries).unwrap_or_default()
}

impl CountPaths {
    /// Adds a version: `apps/v1`, and the count's path in it, `spec.replicas`.
    pub fn add(&mut self, api_version: String, count: Option<&str>) {
        self.versions.insert(api_version, count.map(path));
    }

    fn of(&self, api_version: &str) -> Option<&[PathElement]> {
        self.versions.get(api_version)?.as_deref()
    }

    /// The `managedFields` of a scale: whoever owns the object's count owns the scale's.
    pub fn to_scale(&self, entries: Option<&Value>) -> Value {
        let owners = managed(entries).entries.into_iter();
        let own = owners.filter(|(_, owned)| {
            self.of(&owned.api_version)
                .is_some_and(|path| owned.fields.set().has(path))
        });
        let entries = own.map(|(identity, owned)| {
            let ownership = Ownership {
                api_version: API_VERSION.to_owned(),
                time: owned.time,
                fields: Fields::Read(of_one(&path("spec.replicas"))),
            };
            (identity, ownership)
        });
        let managed = Managed {
            entries: entries.collect(),
        };
        managed.encode()
    }

    /// The `managedFields` of an object whose scale was written, in this version, with these entries. Who owns the count by having written it in
    /// the object loses it to an entry of the count alone; who applies it keeps it where it is.
    pub fn to_object(&self, entries: Option<&Value>, of_scale: Option<&Value>, api_version: &str) -> Value {
        let mut scales = managed(of_scale).entries;
        let of_object = managed(entries).entries;
        let mut entries: BTreeMap<Identity, Ownership<'static>> = BTreeMap::new();
        for (identity, mut owned) in of_object {
            // who owns fields of a version that there is none of any more owns nothing
            let Some(path) = self.versions.get(&owned.api_version) else {
                continue;
            };
            let counted = path.as_deref().filter(|path| owned.fields.set().has(path));
            if let Some(path) = counted
                && scales.remove(&identity).is_none()
            {
                owned.fields.set_mut().subtract(&of_one(path));
                if owned.is_empty() {
                    continue;
                }
            }
            entries.insert(identity, owned);
        }
        let count = path("spec.replicas");
        if let Some(path) = self.of(api_version) {
            let owners = scales.into_iter().filter(|(_, owned)| owned.fields.set().has(&count));
            entries.extend(owners.map(|(identity, _)| {
                let ownership = Ownership {
                    api_version: api_version.to_owned(),
                    time: None,
                    fields: Fields::Read(of_one(path)),
                };
                (identity, ownership)
            }));
        }
        Managed { entries }.encode()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, api_version: &str, fields: &Value) -> Value {
        json!({
            "manager": manager, "operation": operation, "apiVersion": api_version, "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }

    fn paths() -> CountPaths {
        let mut paths = CountPaths::default();
        paths.add("apps/v1".to_owned(), Some(".spec.replicas"));
        paths.add("apps/v2".to_owned(), None);
        paths
    }

    fn count() -> Value {
        json!({"f:spec": {"f:replicas": {}}})
    }

    #[test]
    fn owners_of_the_count_own_the_scales() {
        let entries = json!([
            entry(
                "a",
                "Apply",
                "apps/v1",
                &json!({"f:spec": {"f:replicas": {}, "f:paused": {}}})
            ),
            entry("b", "Update", "apps/v1", &json!({"f:spec": {"f:paused": {}}})),
            entry("c", "Update", "apps/v2", &count()),
            entry("d", "Update", "other/v1", &count()),
        ]);
        assert_eq!(
            paths().to_scale(Some(&entries)),
            json!([entry("a", "Apply", API_VERSION, &count())])
        );
        assert_eq!(paths().to_scale(None), json!([]));
    }

    #[test]
    fn what_was_owned_goes_on_in_the_object() {
        let both = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
        let object = json!([
            entry("applier", "Apply", "apps/v1", &both),
            entry("writer", "Update", "apps/v1", &both),
            entry("scaler", "Update", "apps/v1", &count()),
            entry("elsewhere", "Update", "apps/v2", &json!({"f:spec": {"f:x": {}}})),
            entry("gone", "Update", "apps/v0", &count()),
        ]);
        let mut alone = entry("writer", "Update", "apps/v1", &count());
        if let Some(alone) = alone.as_object_mut() {
            alone.remove("time");
        }
        // the applier keeps the count, the writer has it apart, the scaler has lost it
        let scale = json!([
            entry("applier", "Apply", API_VERSION, &count()),
            entry("writer", "Update", API_VERSION, &count()),
            entry("nobody", "Update", API_VERSION, &json!({"f:status": {}})),
        ]);
        assert_eq!(
            paths().to_object(Some(&object), Some(&scale), "apps/v1"),
            json!([
                entry("applier", "Apply", "apps/v1", &both),
                alone,
                entry("elsewhere", "Update", "apps/v2", &json!({"f:spec": {"f:x": {}}})),
                entry("writer", "Update", "apps/v1", &json!({"f:spec": {"f:paused": {}}})),
            ])
        );
    }
}
