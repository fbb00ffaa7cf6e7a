//! One node of a schema: what it says, and how to walk from it to its children.
//!
//! Reading nodes from documents is in `parse`; what is done with them is in `decode`, `prune`, `default` and `validate`.

use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use regex::Regex;
use serde_json::Value;

use crate::rules::Rules;

/// How many references in a row are followed. Real documents have one; a cycle of nothing but references has no end.
const REFERENCE_DEPTH: usize = 8;

/// What kind of value a node describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Any JSON value: nothing is known.
    #[default]
    Any,
    /// An object: a struct with named fields, a map, or both.
    Object,
    /// A list.
    Array,
    /// A text; [`Schema::format`] may say which.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A whole number or a text (`x-kubernetes-int-or-string`).
    IntOrString,
    /// A quantity such as `500m`: a text or a number.
    Quantity,
}

impl Kind {
    /// Whether values of this kind have no parts.
    pub fn is_scalar(self) -> bool {
        !matches!(self, Self::Any | Self::Object | Self::Array)
    }

    /// The name of the JSON type as schemas write it; empty for kinds that are not one JSON type.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Any | Self::IntOrString | Self::Quantity => "",
        }
    }
}

/// How the elements of a list are told apart (`x-kubernetes-list-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// The list is replaced as a whole.
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects told apart by the fields named in `x-kubernetes-list-map-keys`.
    Map,
}

/// Whether an object's fields are owned one by one (`x-kubernetes-map-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// The object is replaced as a whole.
    Atomic,
    /// Each field or key for itself.
    Granular,
}

/// Bounds on values; all of them are rare on one node, so they live behind one pointer.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    /// The values allowed.
    pub enumeration: Option<Vec<Value>>,
    /// The pattern's text and the compiled expression; a pattern that does not compile is dropped when reading.
    pub pattern: Option<(String, Regex)>,
    /// The smallest number and whether it is itself excluded.
    pub minimum: Option<(serde_json::Number, bool)>,
    /// The largest number and whether it is itself excluded.
    pub maximum: Option<(serde_json::Number, bool)>,
    /// A number of which values must be a multiple.
    pub multiple_of: Option<serde_json::Number>,
    /// Shortest text, in characters.
    pub min_length: Option<u64>,
    /// Longest text, in characters.
    pub max_length: Option<u64>,
    /// Fewest elements.
    pub min_items: Option<u64>,
    /// Most elements.
    pub max_items: Option<u64>,
    /// Fewest members.
    pub min_properties: Option<u64>,
    /// Most members.
    pub max_properties: Option<u64>,
    /// Whether elements must differ.
    pub unique_items: bool,
    /// All of these must hold.
    pub all_of: Vec<Schema>,
    /// One of these must hold.
    pub any_of: Vec<Schema>,
    /// Exactly one of these must hold.
    pub one_of: Vec<Schema>,
    /// This must not hold.
    pub not: Option<Schema>,
    /// CEL rules.
    pub rules: Rules,
}

/// Named fields: looked up far more often than made.
pub(crate) type Fields = IndexMap<Box<str>, Arc<Schema>, foldhash::fast::RandomState>;
/// Names of fields, and what they are where nobody set them.
pub(crate) type ZeroFields = Box<[(Box<str>, Value)]>;
/// A place that is filled with the definition of a name once all documents are read.
pub(crate) type Slot = Arc<OnceLock<Arc<Schema>>>;

/// One node of a schema.
///
/// A node may refer to a named definition and add to it (a default, a patch strategy); the accessors look at the node
/// first and then at what it refers to. Definitions that contain themselves form cycles which are never freed: they are
/// meant to live as long as the process.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The definition's full name, `io.k8s.api.apps.v1.Deployment`; only on definitions.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) reference: Option<Slot>,
    pub(crate) kind: Kind,
    pub(crate) format: Option<Box<str>>,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Box<Value>>,
    /// A default in documents that Go leaves out; it counts as a list's key.
    pub(crate) key_default: Option<Box<Value>>,
    /// The fields whose default is null: known without looking at all of them.
    pub(crate) null_fields: Vec<Box<str>>,
    /// The fields that Go always writes, with what they are where nobody set them: known without looking at all of them, once somebody asked.
    pub(crate) zero_fields: OnceLock<ZeroFields>,
    /// Whether Go leaves the field out where it is a scalar's zero value.
    pub(crate) omits_zero: bool,
    /// Sorted by name.
    pub(crate) fields: Fields,
    pub(crate) required: Vec<Box<str>>,
    pub(crate) additional: Option<Arc<Schema>>,
    pub(crate) items: Option<Arc<Schema>>,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded_resource: bool,
    pub(crate) list_type: Option<ListType>,
    pub(crate) list_map_keys: Vec<Box<str>>,
    pub(crate) map_type: Option<MapType>,
    pub(crate) patch_strategy: Vec<Box<str>>,
    pub(crate) patch_merge_key: Option<Box<str>>,
    pub(crate) constraints: Option<Box<Constraints>>,
    /// Whether there are CEL rules here or below.
    pub(crate) has_rules: bool,
    /// Whether there are sets or maps among the lists here or below.
    pub(crate) has_keyed_lists: bool,
    /// Whether there are embedded resources here or below.
    pub(crate) has_resources: bool,
}

impl Schema {
    /// A schema that knows nothing: any value is valid and no field is unknown.
    pub fn any() -> Self {
        Self {
            preserve_unknown: true,
            nullable: true,
            ..Self::default()
        }
    }

    /// The node that this one refers to, or itself.
    pub fn resolved(&self) -> &Self {
        let mut node = self;
        for _ in 0..REFERENCE_DEPTH {
            match node.reference.as_ref().and_then(|slot| slot.get()) {
                Some(target) => node = target,
                None => break,
            }
        }
        node
    }

    /// The full name of the definition, such as `io.k8s.api.apps.v1.Deployment`; none for inline nodes.
    pub fn definition_name(&self) -> Option<&str> {
        self.resolved().name.as_deref()
    }

    /// What kind of value the node describes.
    pub fn kind(&self) -> Kind {
        if self.kind == Kind::Any {
            self.resolved().kind
        } else {
            self.kind
        }
    }

    /// The `format`, such as `date-time` or `int32`.
    pub fn format(&self) -> Option<&str> {
        self.format.as_deref().or(self.resolved().format.as_deref())
    }

    /// Whether `null` is a value of its own.
    pub fn is_nullable(&self) -> bool {
        self.nullable || self.resolved().nullable
    }

    /// The default.
    pub fn default_value(&self) -> Option<&Value> {
        self.default.as_deref().or(self.resolved().default.as_deref())
    }

    /// What counts as the value of a list's key where an element leaves it out.
    pub fn key_default(&self) -> Option<&Value> {
        self.default_value().or(self.key_default.as_deref())
    }

    /// The schema of a named field; not of a map's values.
    pub fn field(&self, name: &str) -> Option<&Self> {
        self.fields
            .get(name)
            .or_else(|| self.resolved().fields.get(name))
            .map(|node| &**node)
    }

    /// The schema of a member: that of the named field, else that of the map's values. None when the member is unknown,
    /// also where unknown members are kept ([`Schema::preserves_unknown`]).
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.field(name).or_else(|| self.additional())
    }

    /// The node that has the named fields: this one, or what it refers to.
    pub(crate) fn with_fields(&self) -> &Self {
        match self.fields.is_empty() {
            true => self.resolved(),
            false => self,
        }
    }

    /// The named fields, sorted.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Self)> {
        let node = self.with_fields();
        node.fields.iter().map(|(name, node)| (&**name, &**node))
    }

    /// The fields that Go writes as null where nobody set them.
    pub fn null_fields(&self) -> impl Iterator<Item = &str> {
        self.resolved().null_fields.iter().map(|name| &**name)
    }

    /// Whether there is any named field.
    pub fn has_fields(&self) -> bool {
        !self.fields.is_empty() || !self.resolved().fields.is_empty()
    }

    /// The names of the fields that must be set.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        let node = if self.required.is_empty() {
            self.resolved()
        } else {
            self
        };
        node.required.iter().map(|name| &**name)
    }

    /// The schema of a map's values.
    pub fn additional(&self) -> Option<&Self> {
        self.additional.as_deref().or(self.resolved().additional.as_deref())
    }

    /// The schema of a list's elements.
    pub fn items(&self) -> Option<&Self> {
        self.items.as_deref().or(self.resolved().items.as_deref())
    }

    /// Whether members that the schema does not name are kept.
    pub fn preserves_unknown(&self) -> bool {
        self.preserve_unknown || self.resolved().preserve_unknown
    }

    /// Whether values are objects of an API of their own, with `apiVersion`, `kind` and `metadata`.
    pub fn is_embedded_resource(&self) -> bool {
        self.embedded_resource || self.resolved().embedded_resource
    }

    /// Whether there may be such values here or below. Of schemas of custom resources, which refer to nothing.
    pub fn has_embedded_resources(&self) -> bool {
        self.has_resources
    }

    /// How elements are told apart; none is `atomic` for server-side apply.
    pub fn list_type(&self) -> Option<ListType> {
        self.list_type.or(self.resolved().list_type)
    }

    /// The fields that tell the elements of a list of [`ListType::Map`] apart.
    pub fn list_map_keys(&self) -> impl Iterator<Item = &str> + Clone {
        let node = if self.list_map_keys.is_empty() {
            self.resolved()
        } else {
            self
        };
        node.list_map_keys.iter().map(|name| &**name)
    }

    /// Whether the object is owned as a whole; none is `granular`.
    pub fn map_type(&self) -> Option<MapType> {
        self.map_type.or(self.resolved().map_type)
    }

    /// The strategic-merge strategies of the field: `merge`, `replace`, `retainKeys`.
    pub fn patch_strategy(&self) -> impl Iterator<Item = &str> {
        let node = if self.patch_strategy.is_empty() {
            self.resolved()
        } else {
            self
        };
        node.patch_strategy.iter().map(|name| &**name)
    }

    /// Whether the field has the given strategic-merge strategy.
    pub fn has_patch_strategy(&self, strategy: &str) -> bool {
        self.patch_strategy().any(|name| name == strategy)
    }

    /// The field that tells a list's elements apart in a strategic merge patch.
    pub fn patch_merge_key(&self) -> Option<&str> {
        self.patch_merge_key
            .as_deref()
            .or(self.resolved().patch_merge_key.as_deref())
    }

    /// The bounds on the value: those of the node itself and those of what it refers to.
    pub fn constraints(&self) -> impl Iterator<Item = &Constraints> {
        let target = self.resolved();
        let own = self.constraints.as_deref();
        let other = if std::ptr::eq(self, target) {
            None
        } else {
            target.constraints.as_deref()
        };
        own.into_iter().chain(other)
    }
}
