//! Values walked together with their schema: which fields a value has, how two values differ, merging, removing.
//!
//! The schema decides what a field is: granular maps and associative lists are walked, everything else is one field.
//! Where the schema says nothing (free-form parts), maps are granular and lists atomic. What the sets of fields mean is
//! decided in `apply`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::go_json::type_of;
use gardener_apimachinery::pointer::Pointed;
use gardener_schema::json::{go_syntax, go_text, same};
use gardener_schema::{Kind, ListType, MapType, Schema};
use serde_json::{Map, Value};

use crate::fieldset::{Node, PathElement, Set};

static NO_ELEMENTS: Value = Value::Array(Vec::new());

type Members = Map<String, Value>;

/// What is known at a place of a value.
#[derive(Clone, Copy, Debug)]
pub struct Type<'a> {
    /// None where nothing is known.
    schema: Option<&'a Schema>,
    /// Whether null is something else than nothing, as it is in what somebody sent until Go has read it.
    null_is_told: bool,
}

/// How a value is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// As one field.
    Leaf,
    /// Member by member.
    Map,
    /// Element by element, told apart by keys or by value.
    List,
}

/// How the elements of a list are told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Atomic,
    Set,
    Keyed,
}

impl<'a> From<&'a Schema> for Type<'a> {
    fn from(schema: &'a Schema) -> Self {
        Self {
            schema: Some(schema),
            null_is_told: false,
        }
    }
}

impl<'a> Type<'a> {
    /// The same at another place.
    fn at(self, schema: Option<&'a Schema>) -> Self {
        Self { schema, ..self }
    }

    /// The type of a member, and whether the schema names it as a field.
    fn member(self, name: &str) -> (Self, bool) {
        let Some(schema) = self.schema else {
            return (self, false);
        };
        match schema.field(name) {
            Some(field) => (self.at(Some(field)), true),
            None => (self.at(schema.additional()), false),
        }
    }

    /// Whether values of this type come from Go structs, as those of built-in kinds do.
    fn is_go_type(self) -> bool {
        self.schema.is_some_and(|schema| schema.definition_name().is_some())
    }

    /// Whether any JSON may be here, though documents tell of an object.
    fn is_any(self) -> bool {
        let name = self.schema.and_then(Schema::definition_name);
        name.is_some_and(|name| name.ends_with(".pkg.runtime.RawExtension"))
    }

    /// What a member is where nobody set it. Go always writes structs and required fields of its types: with such a member nothing is
    /// added but what is in it.
    fn zero(self, name: &str) -> Option<&'a Value> {
        let schema = self.schema.filter(|schema| schema.definition_name().is_some())?;
        let field = schema.field(name)?;
        let is_list = field.kind() == Kind::Array && !field.omits_zero();
        let required_list = is_list && schema.required().any(|required| required == name);
        schema.zero_value(name).or(required_list.then_some(&NO_ELEMENTS))
    }

    /// The members that Go writes as null where nobody set them.
    fn nulls(self) -> impl Iterator<Item = &'a str> {
        self.schema.into_iter().flat_map(Schema::null_fields)
    }

    /// The members that Go always writes but a value has not, with what Go writes.
    fn missing<'v>(self, value: &'v Value) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a, 'v> {
        let always = self.schema.into_iter().flat_map(Schema::zero_fields);
        always.filter(|(name, zero)| !zero.is_null() && value.get(*name).is_none())
    }

    fn items(self) -> Self {
        self.at(self.schema.and_then(Schema::items))
    }

    fn below(self, element: &PathElement) -> Self {
        match element {
            PathElement::Field(name) => self.member(name).0,
            PathElement::Key(_) | PathElement::Value(_) | PathElement::Index(_) => self.items(),
        }
    }

    fn relation(self) -> Relation {
        let Some(schema) = self.schema else {
            return Relation::Atomic;
        };
        match schema.list_type() {
            Some(ListType::Atomic) => Relation::Atomic,
            Some(ListType::Set) => Relation::Set,
            Some(ListType::Map) => Relation::Keyed,
            // Kinds that only know strategic merge.
            None if schema.has_patch_strategy("merge") => match schema.patch_merge_key() {
                Some(_) => Relation::Keyed,
                None => Relation::Set,
            },
            None => Relation::Atomic,
        }
    }

    fn keys(self) -> Vec<&'a str> {
        let Some(schema) = self.schema else { return Vec::new() };
        let keys: Vec<&str> = schema.list_map_keys().collect();
        if keys.is_empty() {
            schema.patch_merge_key().into_iter().collect()
        } else {
            keys
        }
    }

    /// Whether a map here is walked member by member.
    fn is_walked(self) -> bool {
        self.schema.and_then(Schema::map_type) != Some(MapType::Atomic)
    }

    fn shape(self, value: &Value) -> Shape {
        let kind = self.schema.map_or(Kind::Any, Schema::kind);
        let map = || if self.is_walked() { Shape::Map } else { Shape::Leaf };
        let list = || match self.relation() {
            Relation::Atomic => Shape::Leaf,
            Relation::Set | Relation::Keyed => Shape::List,
        };
        match (value, kind) {
            (Value::Object(_) | Value::Null, Kind::Any | Kind::Object) => map(),
            (Value::Array(_), Kind::Any | Kind::Array) | (Value::Null, Kind::Array) => list(),
            _ => Shape::Leaf,
        }
    }

    /// The step to a list's element.
    ///
    /// # Errors
    /// Why the element cannot be told apart from others.
    fn element(self, item: &Value) -> Result<PathElement, String> {
        if self.relation() == Relation::Set {
            return match item {
                Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
                Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                scalar => Ok(PathElement::value(scalar)),
            };
        }
        let Value::Object(members) = item else {
            return Err(if item.is_null() {
                "associative list with keys may not have a null element".into()
            } else {
                "associative list with keys may not have non-map elements".into()
            });
        };
        let keys = self.keys();
        let mut found = Map::new();
        for key in &keys {
            let value = members.get(*key).or_else(|| {
                // Such as `protocol` of ports; required fields have Go's zero value as default.
                self.items().schema?.field(key)?.key_default()
            });
            if let Some(value) = value {
                found.insert((*key).to_owned(), value.clone());
            }
        }
        if found.is_empty() {
            let keys = keys.iter().map(|key| go_quote(key)).collect::<Vec<_>>().join(" ");
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{keys}] (and doesn't have default values for any key fields)"
            ));
        }
        Ok(PathElement::key(&found))
    }

    /// The step to a list's element; by position where it cannot be told apart otherwise.
    fn element_at(self, index: usize, item: &Value) -> PathElement {
        self.element(item).unwrap_or(PathElement::Index(index as u64))
    }
}

/// Whether [`is_tracked`] holds of a stored value. It did when it got its managedFields, and a type in Go does not change afterwards.
pub(crate) fn stays_tracked(stored: &Value, schema: &Schema) -> bool {
    Type::from(schema).is_go_type() && stored.at("/metadata/managedFields").is_some()
        || is_tracked(stored, None, schema)
}

/// Whether all elements of the value's lists can be told apart where they have to be. Of other values nobody can tell who owns what. `known` is
/// a value of which this holds: what is the same there is not looked at again.
pub fn is_tracked(value: &Value, known: Option<&Value>, schema: &Schema) -> bool {
    let kind = Type::from(schema);
    match (kind.shape(value), value, known) {
        (Shape::Map, Value::Object(members), Some(known)) => {
            let mut changed = members.iter().filter(|(name, value)| known.get(*name) != Some(value));
            changed.all(|(name, value)| has_keys(kind.member(name).0, value))
        }
        _ => has_keys(kind, value),
    }
}

fn has_keys(kind: Type<'_>, value: &Value) -> bool {
    match (kind.shape(value), value) {
        (Shape::Map, Value::Object(members)) => {
            members.iter().all(|(name, value)| has_keys(kind.member(name).0, value))
        }
        (Shape::List, Value::Array(elements)) => elements
            .iter()
            .all(|value| kind.element(value).is_ok() && has_keys(kind.items(), value)),
        _ => true,
    }
}

/// The fields that a value has.
pub fn to_fieldset(value: &Value, schema: &Schema) -> Set {
    fields_of(Type::from(schema), value).below
}

fn fields_of(kind: Type<'_>, value: &Value) -> Node {
    let mut node = Node::default();
    match (kind.shape(value), value) {
        (Shape::Map, Value::Object(members)) => {
            for (name, value) in members {
                let (child, named) = kind.member(name);
                let found = fields_of(child, value);
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                node.below
                    .place(PathElement::field(name), found.member || empty || !named, found.below);
            }
        }
        (Shape::List, Value::Array(elements)) => {
            for (i, value) in elements.iter().enumerate() {
                let found = fields_of(kind.items(), value);
                node.below.place(kind.element_at(i, value), true, found.below);
            }
        }
        (Shape::Leaf, _) => node.member = true,
        (Shape::Map | Shape::List, _) => {}
    }
    node
}

/// How a value differs from an older one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the new value has.
    pub added: Set,
    /// Fields that only the old value has.
    pub removed: Set,
    /// Fields that both have, with different values.
    pub modified: Set,
}

impl Comparison {
    /// Whether the values are the same.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.modified.is_empty()
    }

    /// Forgets fields and all that lies below them.
    pub(crate) fn forget(&mut self, fields: &Set) {
        self.added.subtract_recursively(fields);
        self.removed.subtract_recursively(fields);
        self.modified.subtract_recursively(fields);
    }
}

#[derive(Default)]
struct Difference {
    added: Node,
    removed: Node,
    modified: Node,
}

impl From<Difference> for Comparison {
    fn from(difference: Difference) -> Self {
        Self {
            added: difference.added.below,
            removed: difference.removed.below,
            modified: difference.modified.below,
        }
    }
}

impl Difference {
    fn place(&mut self, element: &PathElement, below: Self) {
        let put = |node: &mut Node, below: Node| {
            if below.member || !below.below.is_empty() {
                node.below.place(element.clone(), below.member, below.below);
            }
        };
        put(&mut self.added, below.added);
        put(&mut self.removed, below.removed);
        put(&mut self.modified, below.modified);
    }
}

/// Compares two values.
pub fn compare(old: &Value, new: &Value, schema: &Schema) -> Comparison {
    let mut difference = Difference::default();
    differ(Type::from(schema), Some(old), Some(new), &mut difference);
    difference.into()
}

/// Compares two values but for some fields and all that lies below them. Members that are left out as a whole are not looked at.
/// `sent`: the new value has what somebody sent, which may tell of nothing.
pub(crate) fn compare_but(left_out: &Set, old: &Value, new: &Value, schema: &Schema, sent: bool) -> Comparison {
    let kind = Type {
        null_is_told: sent,
        ..Type::from(schema)
    };
    let mut difference = Difference::default();
    match (old.as_object(), new.as_object()) {
        (Some(old), Some(new)) if kind.is_walked() => {
            differ_members(kind, Some(old), Some(new), left_out, &mut difference);
        }
        _ => differ(kind, Some(old), Some(new), &mut difference),
    }
    let mut comparison = Comparison::from(difference);
    comparison.forget(left_out);
    comparison
}

fn differ(kind: Type<'_>, old: Option<&Value>, new: Option<&Value>, found: &mut Difference) {
    match (old, new) {
        // most of what is compared is the same; to find that out is cheaper than to walk it by its schema
        (Some(old), Some(new)) if old == new => {}
        (Some(old), Some(new)) => {
            let (before, after) = (kind.shape(old), kind.shape(new));
            // A free-form field may change from a map to something else: then its old members are removed and it is modified.
            if before != after {
                differ_as(before, kind, old, new, found);
            }
            differ_as(after, kind, old, new, found);
        }
        (Some(removed), None) => found.removed = whole(kind, removed),
        (None, Some(added)) => found.added = whole(kind, added),
        (None, None) => {}
    }
}

/// What comes or goes with a value: its fields, and what Go writes beside them.
fn whole(kind: Type<'_>, value: &Value) -> Node {
    let member = |name: &str, value| (PathElement::field(name), whole(kind.member(name).0, value));
    let below = match (kind.shape(value), value) {
        (Shape::Map, Value::Object(members)) => {
            let nulls = kind.nulls().filter(|name| !members.contains_key(*name));
            let nulls = nulls.map(|name| (PathElement::field(name), Node::leaf()));
            let unset = kind.missing(value).map(|(name, zero)| member(name, zero));
            let set = members.iter().map(|(name, value)| member(name, value));
            nulls.chain(unset).chain(set).collect()
        }
        (Shape::List, Value::Array(elements)) => {
            let mut found: BTreeMap<PathElement, Node> = BTreeMap::new();
            for (i, value) in elements.iter().enumerate() {
                match found.entry(kind.element_at(i, value)) {
                    Entry::Vacant(free) => drop(free.insert(whole(kind.items(), value))),
                    // nobody can tell elements with one key apart
                    Entry::Occupied(mut several) => drop(several.insert(Node::leaf())),
                }
            }
            found.into_iter().collect()
        }
        _ => Set::new(),
    };
    Node { member: true, below }
}

fn differ_as(shape: Shape, kind: Type<'_>, old: &Value, new: &Value, found: &mut Difference) {
    let size = |value: &Value| match (shape, value) {
        (Shape::Map, Value::Object(members)) => members.len(),
        (Shape::List, Value::Array(elements)) => elements.len(),
        _ => 0,
    };
    if shape == Shape::Leaf || size(old) == 0 && size(new) == 0 {
        found.modified.member |= !same(old, new);
    } else if shape == Shape::Map {
        differ_members(kind, old.as_object(), new.as_object(), &Set::new(), found);
    } else {
        differ_list(kind, old, new, found);
    }
}

fn differ_members(
    kind: Type<'_>,
    old: Option<&Members>,
    new: Option<&Members>,
    left_out: &Set,
    found: &mut Difference,
) {
    let is_left_out = |name: &str| !left_out.is_empty() && left_out.has(&[PathElement::field(name)]);
    for (name, value) in old.into_iter().flatten().filter(|(name, _)| !is_left_out(name)) {
        let other = new.and_then(|new| new.get(name));
        // Go writes nothing and null for the same
        if new.is_some() && other.is_none() && value.is_null() && kind.is_go_type() {
            continue;
        }
        // what is taken away is null then where Go always writes it
        let is_null = new.is_some() && other.is_none() && kind.nulls().any(|null| null == name);
        let other = other.or(is_null.then_some(&Value::Null));
        differ_member(kind, name, Some(value), other, found);
    }
    for (name, value) in new.into_iter().flatten().filter(|(name, _)| !is_left_out(name)) {
        match old {
            Some(old) if old.contains_key(name) => {}
            Some(_) if value.is_null() && kind.is_go_type() && !kind.null_is_told => {}
            Some(_) => differ_member(kind, name, kind.zero(name), Some(value), found),
            None => differ_member(kind, name, None, Some(value), found),
        }
    }
}

fn differ_member(kind: Type<'_>, name: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Difference) {
    let mut below = Difference::default();
    differ(kind.member(name).0, old, new, &mut below);
    let quiet = |node: &Node| !node.member && node.below.is_empty();
    if !(quiet(&below.added) && quiet(&below.removed) && quiet(&below.modified)) {
        found.place(&PathElement::field(name), below);
    }
}

fn differ_list(kind: Type<'_>, old: &Value, new: &Value, found: &mut Difference) {
    let empty = Vec::new();
    let old = old.as_array().unwrap_or(&empty);
    let new = new.as_array().unwrap_or(&empty);
    // Most lists do not change; finding out is cheaper than telling their elements apart.
    if old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new)) {
        return;
    }
    let mut elements: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for (i, value) in old.iter().enumerate() {
        elements.entry(kind.element_at(i, value)).or_default().0.push(value);
    }
    for (i, value) in new.iter().enumerate() {
        elements.entry(kind.element_at(i, value)).or_default().1.push(value);
    }
    for (element, (old, new)) in elements {
        let mut below = Difference::default();
        match (old.as_slice(), new.as_slice()) {
            ([] | [_], [] | [_]) => differ(kind.items(), old.first().copied(), new.first().copied(), &mut below),
            ([_, _, ..], [_, _, ..]) => {
                below.modified.member =
                    old.len() != new.len() || !old.iter().zip(&new).all(|(old, new)| same(old, new));
            }
            ([_, _, ..], rest) => {
                if let Some(new) = rest.first() {
                    differ(kind.items(), None, Some(new), &mut below);
                }
                below.removed.member = true;
            }
            (rest, [_, _, ..]) => {
                if let Some(old) = rest.first() {
                    differ(kind.items(), Some(old), None, &mut below);
                }
                below.added.member = true;
            }
        }
        found.place(&element, below);
    }
}

/// Merges a configuration into a value: what the configuration says counts, what it does not say stays.
pub fn merge(live: &Value, config: &Value, schema: &Schema) -> Value {
    merged(Type::from(schema), live, config)
}

fn merged(kind: Type<'_>, live: &Value, config: &Value) -> Value {
    let shape = kind.shape(config);
    if shape != kind.shape(live) {
        return config.clone();
    }
    match (shape, live, config) {
        (Shape::Map, Value::Object(_), Value::Null) | (Shape::List, Value::Array(_), Value::Null) => live.clone(),
        (Shape::Map, Value::Object(live), Value::Object(config)) => {
            let mut out = Map::new();
            for (name, value) in live {
                let value = match config.get(name) {
                    Some(config) => merged(kind.member(name).0, value, config),
                    None => value.clone(),
                };
                out.insert(name.clone(), value);
            }
            for (name, value) in config {
                if !live.contains_key(name) {
                    out.insert(name.clone(), value.clone());
                }
            }
            Value::Object(out)
        }
        (Shape::List, Value::Array(live), Value::Array(config)) => Value::Array(merged_list(kind, live, config)),
        _ => config.clone(),
    }
}

/// Merges associative lists: elements of both are merged, in the order of the configuration; elements of the live list
/// stay where they are relative to those.
fn merged_list(kind: Type<'_>, live: &[Value], config: &[Value]) -> Vec<Value> {
    let index = |list: &[Value]| -> Vec<PathElement> {
        list.iter()
            .enumerate()
            .map(|(i, value)| kind.element_at(i, value))
            .collect()
    };
    let theirs = index(live);
    let ours = index(config);
    let mut live_by_element: BTreeMap<&PathElement, Option<&Value>> = BTreeMap::new();
    for (element, value) in theirs.iter().zip(live) {
        // Duplicates of the live list are replaced by the configuration's element, not merged with it.
        live_by_element
            .entry(element)
            .and_modify(|known| *known = None)
            .or_insert(Some(value));
    }
    let wanted: BTreeSet<&PathElement> = ours.iter().collect();
    let take = |i: usize| -> Option<Value> {
        let config = config.get(i)?;
        let live = ours.get(i).and_then(|element| *live_by_element.get(element)?);
        Some(match live {
            Some(live) => merged(kind.items(), live, config),
            None => config.clone(),
        })
    };
    let mut shared = ours.iter().filter(|element| live_by_element.contains_key(element));
    let mut next_shared = shared.next();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let (mut l, mut r) = (0, 0);
    while l < theirs.len() || r < ours.len() {
        if let (Some(left), Some(right)) = (theirs.get(l), ours.get(r)) {
            if left == right {
                done.insert(right);
                out.extend(take(r));
                (l, r) = (l + 1, r + 1);
                next_shared = shared.next();
                continue;
            }
            if wanted.contains(left) && next_shared.is_some_and(|next| next != left) {
                // Shared, but its turn in the configuration's order has not come or is over.
                l += 1;
                continue;
            }
        }
        if let (Some(left), Some(value)) = (theirs.get(l), live.get(l)) {
            if !wanted.contains(left) {
                out.push(value.clone());
                l += 1;
                continue;
            }
            if done.contains(left) {
                l += 1;
            }
        }
        if let Some(right) = ours.get(r) {
            done.insert(right);
            out.extend(take(r));
            r += 1;
            if next_shared == Some(right) {
                next_shared = shared.next();
            }
        }
    }
    out
}

/// Removes fields from a value. A map or list that stays, but of which nothing is left, is null then.
pub fn remove(value: &mut Value, fields: &Set, schema: &Schema) {
    remove_below(Type::from(schema), value, fields);
}

/// Answers whether nothing is left.
fn remove_below(kind: Type<'_>, value: &mut Value, fields: &Set) -> bool {
    if fields.is_empty() {
        return false;
    }
    // Whether the child stays.
    let stays = |element: &PathElement, child: &mut Value| -> bool {
        let Some(node) = fields.get(element) else { return true };
        if node.member {
            return false;
        }
        if remove_below(kind.below(element), child, &node.below) {
            *child = Value::Null;
        }
        true
    };
    match (kind.shape(value), value) {
        (Shape::Map, Value::Object(members)) => {
            let before = members.len();
            members.retain(|name, child| stays(&PathElement::field(name), child));
            members.is_empty() && before > 0
        }
        (Shape::List, Value::Array(elements)) => {
            let before = elements.len();
            let mut i = 0;
            elements.retain_mut(|child| {
                let element = kind.element_at(i, child);
                i += 1;
                stays(&element, child)
            });
            elements.is_empty() && before > 0
        }
        _ => false,
    }
}

/// The set with every named field of a struct as a member that leads to a member.
pub(crate) fn with_named_fields(set: &Set, schema: &Schema) -> Set {
    named_below(set, Type::from(schema))
}

fn named_below(set: &Set, kind: Type<'_>) -> Set {
    let mut out = Set::new();
    for (element, node) in set.nodes() {
        let named = matches!(element, PathElement::Field(name) if kind.member(name).1);
        let below = named_below(&node.below, kind.below(element));
        out.place(element.clone(), node.member || named, below);
    }
    out
}

/// Checks that a configuration fits the schema: types, declared fields, keys of list elements, no duplicates.
///
/// # Errors
/// What does not fit, in the order of the document, each as `<path>: <why>`.
pub fn check(value: &Value, schema: &Schema) -> Result<(), Vec<String>> {
    let mut found = Vec::new();
    check_at(Type::from(schema), value, "", &mut found);
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// The paths of lists and maps in a value that are one field each: a change of them replaces them.
pub fn atomics(value: &Value, schema: &Schema) -> Vec<String> {
    let mut found = Vec::new();
    atomics_at(Type::from(schema), value, "", &mut found);
    found
}

fn atomics_at(kind: Type<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    match (value, kind.schema.map_or(Kind::Any, Schema::kind)) {
        (Value::Object(members), Kind::Any | Kind::Object) => {
            if !kind.is_walked() {
                found.push(path.to_owned());
            }
            for (name, value) in members {
                // what has no field of its own is not looked at
                if let (child, true) = kind.member(name) {
                    atomics_at(child, value, &format!("{path}.{name}"), found);
                }
            }
        }
        (Value::Array(elements), Kind::Any | Kind::Array) => {
            if kind.relation() == Relation::Atomic {
                found.push(path.to_owned());
            }
            for (at, element) in elements.iter().enumerate() {
                atomics_at(kind.items(), element, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

/// A value of a wrong type, as upstream shows it where it expected something.
fn got(expected: &str, value: &Value) -> String {
    match (expected, value) {
        ("string", value) => format!("&value.valueUnstructured{{Value:{}}}", go_syntax(value)),
        ("numeric (int or float)", Value::Object(_)) => "map[string]interface {}".to_owned(),
        ("numeric (int or float)", Value::Array(_)) => "[]interface {}".to_owned(),
        ("numeric (int or float)", value) => type_of(value).to_owned(),
        (_, value) => format!("&{{{}}}", go_text(value)),
    }
}

/// Whether a text is one of a format: upstream takes any scalar for it here, and looks at it later. Bytes and durations have none there.
fn is_of_a_format(schema: &Schema) -> bool {
    schema
        .format()
        .is_some_and(|format| !matches!(format, "" | "byte" | "go-duration"))
}

/// What is said of elements that a list has twice.
pub(crate) const TWICE: &str = ": duplicate entries for key ";

/// Whether members that the schema does not name may be applied. A Go type without a field looks as if it took any.
fn takes_any(schema: &Schema) -> bool {
    schema.preserves_unknown()
        || schema.is_embedded_resource()
        || schema.definition_name().is_some() && !schema.has_fields() && schema.additional().is_none()
}

fn check_at(kind: Type<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    let Some(schema) = kind.schema else { return };
    let expected = match (schema.kind(), value) {
        _ if kind.is_any() => None,
        // who makes an object of its Go type looks at it
        (Kind::IntOrString, _) if schema.definition_name().is_some() => return,
        (_, Value::Null)
        | (Kind::Any, _)
        | (Kind::Object, Value::Object(_))
        | (Kind::Array, Value::Array(_))
        | (Kind::String, Value::String(_))
        | (Kind::Integer | Kind::Number, Value::Number(_))
        | (Kind::Boolean, Value::Bool(_))
        | (Kind::IntOrString | Kind::Quantity, Value::String(_) | Value::Number(_) | Value::Bool(_)) => None,
        (Kind::String, Value::Number(_) | Value::Bool(_)) if is_of_a_format(schema) => None,
        (Kind::String, _) if is_of_a_format(schema) => Some("any scalar"),
        (Kind::Object, _) => Some("map"),
        (Kind::Array, _) => Some("list"),
        (Kind::String, _) => Some("string"),
        (Kind::Integer | Kind::Number, _) => Some("numeric (int or float)"),
        (Kind::Boolean, _) => Some("boolean"),
        (Kind::IntOrString | Kind::Quantity, _) => Some("any scalar"),
    };
    if let Some(expected) = expected {
        found.push(format!("{path}: expected {expected}, got {}", got(expected, value)));
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let path = format!("{path}.{name}");
                let (child, named) = kind.member(name);
                if !named && child.schema.is_none() && !takes_any(schema) {
                    // nobody looks further then
                    return found.push(format!("{path}: field not declared in schema"));
                }
                check_at(child, value, &path, found);
            }
        }
        Value::Array(elements) => {
            let associative = kind.shape(value) == Shape::List;
            let mut seen = BTreeSet::new();
            for (i, value) in elements.iter().enumerate() {
                if !associative {
                    check_at(kind.items(), value, &format!("{path}[{i}]"), found);
                    continue;
                }
                match kind.element(value) {
                    // what stands behind an element that cannot be told apart is not looked at
                    Err(why) => return found.push(format!("{path}: element {i}: {why}")),
                    Ok(element) => {
                        if seen.contains(&element) {
                            found.push(format!("{path}{TWICE}{element}"));
                        }
                        check_at(kind.items(), value, &format!("{path}{element}"), found);
                        seen.insert(element);
                    }
                }
            }
        }
        _ => {}
    }
}
