//! The entries of `metadata.managedFields`: reading and writing them, telling managers apart, keeping them few.
//!
//! What becomes of the entries when an object changes is decided in `apply`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::fieldset::Set;

/// How many managers of [`Operation::Update`] are kept; the oldest are merged into one.
pub const MAX_UPDATE_MANAGERS: usize = 10;
/// The manager that older ones are merged into.
pub const ANCIENT_CHANGES: &str = "ancient-changes";

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By create, update or another kind of patch.
    Update,
}

impl Operation {
    /// The name in entries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What tells managers apart. One that applies is the same in all versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// The field manager's name.
    pub manager: String,
    /// By apply or otherwise.
    pub operation: Operation,
    /// Group and version; empty for [`Operation::Apply`].
    pub api_version: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
}

impl Identity {
    /// The identity of who writes.
    pub fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => api_version.to_owned(),
            },
            subresource: subresource.to_owned(),
        }
    }
}

/// The fields of an entry. What is stored is read only where it matters: most writes touch the fields of one manager, or of none.
#[derive(Clone, Debug)]
pub enum Fields<'a> {
    /// As they are stored: `FieldsV1`.
    Stored(Cow<'a, Value>),
    /// As a set.
    Read(Set),
}

impl Fields<'_> {
    /// The fields as a set. What is stored and no `FieldsV1` is no fields.
    pub fn set(&self) -> Cow<'_, Set> {
        match self {
            Self::Stored(stored) => Cow::Owned(Set::from_fields_v1(stored).unwrap_or_default()),
            Self::Read(set) => Cow::Borrowed(set),
        }
    }

    /// The fields as a set that can be changed.
    pub fn set_mut(&mut self) -> &mut Set {
        if let Self::Stored(_) = self {
            *self = Self::Read(self.set().into_owned());
        }
        match self {
            Self::Read(set) => set,
            Self::Stored(_) => unreachable!("they were read just now"),
        }
    }

    /// Whether some of the paths of a set are among the fields.
    pub fn touches(&self, paths: &Set) -> bool {
        match self {
            Self::Stored(stored) => paths.touches_fields_v1(stored),
            Self::Read(set) => !set.intersection(paths).is_empty(),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Stored(stored) => stored.as_object().is_none_or(Map::is_empty),
            Self::Read(set) => set.is_empty(),
        }
    }

    fn into_fields_v1(self) -> Value {
        match self {
            Self::Stored(stored) => stored.into_owned(),
            Self::Read(set) => set.into_fields_v1(),
        }
    }
}

impl PartialEq for Fields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.set() == other.set()
    }
}

impl Eq for Fields<'_> {}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership<'a> {
    /// Group and version that the field paths are of.
    pub api_version: String,
    /// When the manager last took fields, as RFC 3339 in whole seconds.
    pub time: Option<String>,
    /// The fields.
    pub fields: Fields<'a>,
}

impl Ownership<'_> {
    /// Whether nothing is owned.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

/// All entries of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managed<'a> {
    /// Managers and what they own.
    pub entries: BTreeMap<Identity, Ownership<'a>>,
}

/// Entries that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata.managedFields: expected {expected}, found {found}")]
pub struct MalformedEntries {
    expected: &'static str,
    found: String,
}

impl MalformedEntries {
    fn new(expected: &'static str, found: &Value) -> Self {
        let found = found.to_string();
        Self { expected, found }
    }
}

impl<'a> Managed<'a> {
    /// Reads `metadata.managedFields` that somebody sent; null and absence are no entries.
    ///
    /// # Errors
    /// When an entry has another operation than `Apply` and `Update`, no version, or fields that are not `FieldsV1`.
    pub fn decode(value: Option<&Value>) -> Result<Managed<'static>, MalformedEntries> {
        let list = match value {
            None | Some(Value::Null) => return Ok(Managed::default()),
            Some(Value::Array(list)) => list,
            Some(other) => return Err(MalformedEntries::new("a list of entries", other)),
        };
        let entries = list.iter().map(|entry| {
            let fields = match entry.get("fieldsV1") {
                None | Some(Value::Null) => Set::new(),
                Some(fields) => Set::from_fields_v1(fields).map_err(|_| MalformedEntries::new("fieldsV1", fields))?,
            };
            owned(entry, Fields::Read(fields))
        });
        Ok(Managed {
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// The versions in which others own fields than those of `own`.
    pub fn versions_but(&self, own: &str) -> BTreeSet<String> {
        let versions = self.entries.values().map(|owner| &owner.api_version);
        versions.filter(|version| *version != own).cloned().collect()
    }

    /// The entries that an object is stored with; none where they cannot be read.
    pub fn of_stored(entries: Option<Cow<'a, Value>>) -> Self {
        let entries: Result<_, MalformedEntries> = match entries {
            Some(Cow::Borrowed(Value::Array(list))) => list
                .iter()
                .map(|entry| owned(entry, stored(entry.get("fieldsV1").map(Cow::Borrowed))))
                .collect(),
            Some(Cow::Owned(Value::Array(list))) => list
                .into_iter()
                .map(|mut entry| {
                    let fields = entry.get_mut("fieldsV1").map(Value::take);
                    owned(&entry, stored(fields.map(Cow::Owned)))
                })
                .collect(),
            _ => Ok(BTreeMap::new()),
        };
        Self {
            entries: entries.unwrap_or_default(),
        }
    }

    /// Writes `metadata.managedFields`: appliers first, then by time, manager, version and subresource.
    pub fn encode(self) -> Value {
        let mut entries: Vec<(Identity, Ownership<'_>)> = self.entries.into_iter().collect();
        entries.sort_by(|(a, x), (b, y)| {
            (a.operation, &x.time, &a.manager, &x.api_version, &a.subresource).cmp(&(
                b.operation,
                &y.time,
                &b.manager,
                &y.api_version,
                &b.subresource,
            ))
        });
        let encoded = entries.into_iter().map(|(identity, ownership)| {
            let mut entry = Map::new();
            let mut put = |name: &str, value: &str| {
                if !value.is_empty() {
                    entry.insert(name.to_owned(), Value::String(value.to_owned()));
                }
            };
            put("manager", &identity.manager);
            put("operation", identity.operation.as_str());
            put("apiVersion", &ownership.api_version);
            put("time", ownership.time.as_deref().unwrap_or_default());
            put("fieldsType", "FieldsV1");
            put("subresource", &identity.subresource);
            entry.insert("fieldsV1".to_owned(), ownership.fields.into_fields_v1());
            Value::Object(entry)
        });
        Value::Array(encoded.collect())
    }

    /// Merges the oldest managers of [`Operation::Update`] into one per version until they are few enough.
    pub(crate) fn cap(&mut self) {
        let mut updaters: Vec<(Option<String>, Identity)> = self
            .entries
            .iter()
            .filter(|(identity, _)| identity.operation == Operation::Update)
            .map(|(identity, ownership)| (ownership.time.clone(), identity.clone()))
            .collect();
        let mut count = updaters.len();
        if count <= MAX_UPDATE_MANAGERS {
            return;
        }
        updaters.sort();
        let mut first_of_version: BTreeMap<String, Identity> = BTreeMap::new();
        for (_, identity) in updaters {
            if count <= MAX_UPDATE_MANAGERS {
                break;
            }
            let version = identity.api_version.clone();
            let Some(first) = first_of_version.get(&version) else {
                first_of_version.insert(version, identity);
                continue;
            };
            let bucket = Identity::new(ANCIENT_CHANGES, Operation::Update, &version, "");
            if !self.entries.contains_key(&bucket)
                && let Some(oldest) = self.entries.remove(first)
            {
                self.entries.insert(bucket.clone(), oldest);
            }
            if identity == bucket {
                continue;
            }
            let Some(merged) = self.entries.remove(&identity) else {
                continue;
            };
            if let Some(ownership) = self.entries.get_mut(&bucket) {
                ownership.fields.set_mut().extend(merged.fields.set().into_owned());
                // That of the later one.
                ownership.time = merged.time;
            }
            count -= 1;
        }
    }
}

/// Whose an entry is, and that these fields are owned.
fn owned<'a>(entry: &Value, fields: Fields<'a>) -> Result<(Identity, Ownership<'a>), MalformedEntries> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(MalformedEntries::new("operation Apply or Update", entry)),
    };
    if text("fieldsType") != "FieldsV1" {
        return Err(MalformedEntries::new("fieldsType FieldsV1", entry));
    }
    if text("apiVersion").is_empty() {
        return Err(MalformedEntries::new("an apiVersion", entry));
    }
    let identity = Identity::new(text("manager"), operation, text("apiVersion"), text("subresource"));
    let ownership = Ownership {
        api_version: text("apiVersion").to_owned(),
        time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
        fields,
    };
    Ok((identity, ownership))
}

/// The fields of a stored entry.
fn stored(fields: Option<Cow<'_, Value>>) -> Fields<'_> {
    match fields.filter(|fields| !fields.is_null()) {
        None => Fields::Read(Set::new()),
        Some(fields) => Fields::Stored(fields),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_read_and_written_in_order() {
        let entry = |manager: &str, operation: &str, time: &str| {
            json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}})
        };
        let a = entry("a", "Update", "2026-01-01T00:00:02Z");
        let b = entry("b", "Update", "2026-01-01T00:00:01Z");
        let c = entry("c", "Apply", "2026-01-01T00:00:03Z");
        let managed = Managed::decode(Some(&json!([a, b, c]))).unwrap();
        assert_eq!(managed.clone().encode(), json!([c, b, a]));
        let list = json!([a, b, c]);
        assert_eq!(Managed::of_stored(Some(Cow::Borrowed(&list))), managed);
        assert_eq!(Managed::of_stored(Some(Cow::Owned(list))), managed);
        assert_eq!(Managed::decode(None).unwrap(), Managed::default());
        for bad in [
            json!({}),
            json!([{}]),
            json!([{"operation": "Apply"}]),
            json!([{"operation": "X", "fieldsType": "FieldsV1"}]),
        ] {
            assert!(Managed::decode(Some(&bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn old_updaters_are_merged() {
        let mut managed = Managed::default();
        for i in 0..13 {
            let fields = Set::of_fields(&[&format!("spec.f{i}")]);
            managed.entries.insert(
                Identity::new(
                    &format!("m{i:02}"),
                    Operation::Update,
                    if i == 1 { "v2" } else { "v1" },
                    "",
                ),
                Ownership {
                    api_version: if i == 1 { "v2" } else { "v1" }.into(),
                    time: Some(format!("2026-01-01T00:00:{i:02}Z")),
                    fields: Fields::Read(fields),
                },
            );
        }
        managed.cap();
        assert_eq!(managed.entries.len(), MAX_UPDATE_MANAGERS);
        let bucket = &managed.entries[&Identity::new(ANCIENT_CHANGES, Operation::Update, "v1", "")];
        assert_eq!(
            *bucket.fields.set(),
            Set::of_fields(&["spec.f0", "spec.f2", "spec.f3", "spec.f4"])
        );
        assert_eq!(bucket.time.as_deref(), Some("2026-01-01T00:00:04Z"));
        assert!(managed.entries.keys().any(|identity| identity.api_version == "v2"));
    }
}
