//! Who owns the count: managedFields of an object as its scale shows them, and back.

use std::collections::BTreeMap;

use gardener_merge::fieldset::Set;
use gardener_merge::managed::{Fields, Identity, Managed, Ownership};
use serde_json::Value;

use crate::definition::Definition;

/// Group and version of scales.
pub(super) const API_VERSION: &str = "autoscaling/v1";

/// Where the versions of a resource keep their count: a set of that one field, or none for versions without a scale.
pub(super) struct Places(BTreeMap<String, Option<Set>>);

impl Places {
    pub(super) fn of(definition: &Definition) -> Self {
        let versions = definition.versions.iter().map(|version| {
            let place = version.scale.as_ref();
            let place = place.map(|scale| Set::of_fields(&[scale.spec_replicas.trim_start_matches('.')]));
            (definition.api_version(&version.name), place)
        });
        Self(versions.collect())
    }

    /// The entries of a scale: whoever owns the count in the object owns it there.
    pub(super) fn to_scale(&self, object: &Value) -> Value {
        let mut of_scale = Managed::default();
        for (identity, ownership) in Managed::of_stored(object).entries {
            let place = self.0.get(&ownership.api_version).and_then(Option::as_ref);
            if place.is_some_and(|place| ownership.fields.touches(place)) {
                let ownership = Ownership {
                    api_version: API_VERSION.to_owned(),
                    time: ownership.time,
                    fields: Fields::Read(count()),
                };
                of_scale.entries.insert(identity, ownership);
            }
        }
        of_scale.encode()
    }

    /// The entries of an object whose scale, seen in this version of the object, has got these entries: who lost the count there loses it
    /// here, and who got it has an entry of its own, without a time.
    pub(super) fn to_object(&self, object: &Value, scale: &Value, api_version: &str) -> Value {
        let mut of_scale = Managed::of_stored(scale).entries;
        let mut found = Managed::default();
        let mut times: BTreeMap<Identity, Option<String>> = BTreeMap::new();
        for (identity, mut ownership) in Managed::of_stored(object).entries {
            times.insert(identity.clone(), ownership.time.clone());
            let Some(place) = self.0.get(&ownership.api_version) else {
                continue;
            };
            if let Some(place) = place.as_ref().filter(|place| ownership.fields.touches(place))
                && of_scale.remove(&identity).is_none()
            {
                ownership.fields.set_mut().subtract(place);
                if ownership.is_empty() {
                    continue;
                }
            }
            found.entries.insert(identity, ownership);
        }
        let place = self.0.get(api_version).cloned().flatten().unwrap_or_default();
        for (identity, _) in of_scale.into_iter().filter(|(_, own)| own.fields.touches(&count())) {
            let time = times.get(&identity).cloned().flatten();
            let ownership = Ownership {
                api_version: api_version.to_owned(),
                time,
                fields: Fields::Read(place.clone()),
            };
            found.entries.insert(identity, ownership);
        }
        found.encode()
    }
}

/// The count, as a scale has it.
fn count() -> Set {
    Set::of_fields(&["spec.replicas"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn places() -> Places {
        Places(BTreeMap::from([(
            "apps/v1".to_owned(),
            Some(Set::of_fields(&["spec.size"])),
        )]))
    }

    fn object(entries: Value) -> Value {
        json!({"metadata": {"managedFields": entries}})
    }

    fn entry(manager: &str, operation: &str, api_version: &str, subresource: &str, fields: Value) -> Value {
        let mut entry = json!({
            "manager": manager, "operation": operation, "apiVersion": api_version, "fieldsType": "FieldsV1", "fieldsV1": fields,
        });
        if !subresource.is_empty() {
            entry["subresource"] = subresource.into();
        }
        entry
    }

    #[test]
    fn owners_of_the_count_are_told_both_ways() {
        let size = || json!({"f:spec": {"f:size": {}}});
        let replicas = || json!({"f:spec": {"f:replicas": {}}});
        let both = json!({"f:spec": {"f:size": {}, "f:colour": {}}});
        let before = object(json!([
            entry("one", "Apply", "apps/v1", "", both.clone()),
            entry("two", "Update", "apps/v1", "", size()),
            entry("old", "Update", "apps/v0", "", size()),
        ]));
        let scale = places().to_scale(&before);
        assert_eq!(
            scale,
            json!([
                entry("one", "Apply", API_VERSION, "", replicas()),
                entry("two", "Update", API_VERSION, "", replicas()),
            ])
        );
        // nobody in the scale lost the count: who applied keeps its entry
        let after = places().to_object(
            &before,
            &object(json!([entry("one", "Apply", API_VERSION, "", replicas())])),
            "apps/v1",
        );
        assert_eq!(after, json!([entry("one", "Apply", "apps/v1", "", both)]));
        // somebody took it
        let taken = object(json!([entry("three", "Update", API_VERSION, "scale", replicas())]));
        let after = places().to_object(&before, &taken, "apps/v1");
        assert_eq!(
            after,
            json!([
                entry("one", "Apply", "apps/v1", "", json!({"f:spec": {"f:colour": {}}})),
                entry("three", "Update", "apps/v1", "scale", size()),
            ])
        );
    }
}
