//! Sets of field paths and their serialized form, `FieldsV1`.
//!
//! A set says which fields of an object a manager owns. It knows nothing of schemas; walking values is `typed`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use gardener_apimachinery::field::go_escaped;
use serde_json::{Map, Number, Value};

/// How deep sets may nest when they are read; deeper ones are malformed.
const MAX_DEPTH: usize = 128;

/// One step of a path. The order is that of upstream: fields, keys, values, indices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of a struct or a key of a map (`f:`).
    Field(Box<str>),
    /// The element of an associative list, as canonical JSON of its key fields (`k:`).
    Key(Box<str>),
    /// The element of a set, as canonical JSON (`v:`).
    Value(Box<str>),
    /// The element at a position (`i:`).
    Index(u64),
}

impl PathElement {
    /// The step to a field.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// The step to the list element with these key fields.
    pub fn key(fields: &Map<String, Value>) -> Self {
        let fields = fields
            .iter()
            .map(|(name, value)| (name.clone(), canonical(value)))
            .collect();
        Self::Key(Value::Object(fields).to_string().into())
    }

    /// The step to this element of a set.
    pub fn value(value: &Value) -> Self {
        Self::Value(canonical(value).to_string().into())
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        let json = || serde_json::from_str::<Value>(rest).ok();
        match kind {
            "f" => Some(Self::field(rest)),
            "k" => json()?.as_object().map(Self::key),
            "v" => Some(Self::value(&json()?)),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    fn serialize(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(json) => ["k:", &go_escaped(&**json)].concat(),
            Self::Value(json) => ["v:", &go_escaped(&**json)].concat(),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

impl fmt::Display for PathElement {
    /// As messages tell it: `.spec`, `[name="a"]`, `[="x"]`, `[0]`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(formatter, ".{name}"),
            Self::Key(json) => {
                let fields: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
                let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(formatter, "[{}]", fields.join(","))
            }
            Self::Value(json) => write!(formatter, "[={json}]"),
            Self::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}

/// Whole numbers are one number however they are written.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                // In range by the condition.
                Value::Number(Number::from(float as i64))
            }
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

/// What a set says about one step: whether the path that ends here is a member, and what is below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Whether the path that ends here is in the set.
    pub member: bool,
    /// The paths that go on.
    pub below: Set,
}

impl Node {
    /// The path ends here.
    pub(crate) fn leaf() -> Self {
        Self {
            member: true,
            below: Set::new(),
        }
    }

    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

/// A set of field paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    nodes: BTreeMap<PathElement, Node>,
}

impl FromIterator<(PathElement, Node)> for Set {
    /// The set with these steps, each told once and none of them empty.
    fn from_iter<I: IntoIterator<Item = (PathElement, Node)>>(nodes: I) -> Self {
        Self {
            nodes: nodes.into_iter().collect(),
        }
    }
}

/// Serialized fields that are not `FieldsV1`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected fieldsV1 of path elements (f:, k:, v:, i:) and objects, found {0}")]
pub struct MalformedFields(String);

impl Set {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// A set of dotted paths of fields, such as `status` or `metadata.labels`.
    pub fn of_fields(paths: &[&str]) -> Self {
        let mut set = Self::new();
        for path in paths {
            let path: Vec<PathElement> = path.split('.').map(PathElement::field).collect();
            set.insert(&path);
        }
        set
    }

    /// Whether the set has no path.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many paths the set has.
    pub fn len(&self) -> usize {
        self.nodes
            .values()
            .map(|node| usize::from(node.member) + node.below.len())
            .sum()
    }

    /// Adds a path; the empty path is none.
    pub fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => self.node(last).member = true,
            [first, rest @ ..] => self.node(first).below.insert(rest),
        }
    }

    /// Whether the path is in the set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last).is_some_and(|node| node.member),
            [first, rest @ ..] => self.get(first).is_some_and(|node| node.below.has(rest)),
        }
    }

    /// What the set says about a first step.
    pub fn get(&self, element: &PathElement) -> Option<&Node> {
        self.nodes.get(element)
    }

    /// The first steps, in order.
    pub fn nodes(&self) -> impl Iterator<Item = (&PathElement, &Node)> {
        self.nodes.iter()
    }

    /// The node of a first step, made when there is none. Callers leave it non-empty.
    fn node(&mut self, element: &PathElement) -> &mut Node {
        self.nodes.entry(element.clone()).or_default()
    }

    /// Puts a subset below a first step; nothing when both flags say nothing.
    pub(crate) fn place(&mut self, element: PathElement, member: bool, below: Self) {
        if !member && below.is_empty() {
            return;
        }
        let node = self.nodes.entry(element).or_default();
        node.member |= member;
        node.below.extend(below);
    }

    /// Adds all paths of another set.
    pub fn extend(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        for (element, theirs) in other.nodes {
            match self.nodes.entry(element) {
                Entry::Occupied(own) => {
                    let node = own.into_mut();
                    node.member |= theirs.member;
                    node.below.extend(theirs.below);
                }
                Entry::Vacant(free) => drop(free.insert(theirs)),
            }
        }
    }

    /// The paths of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut set = self.clone();
        set.extend(other.clone());
        set
    }

    /// The paths of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let nodes = self.nodes.iter().filter_map(|(element, node)| {
            let theirs = other.nodes.get(element)?;
            let both = Node {
                member: node.member && theirs.member,
                below: node.below.intersection(&theirs.below),
            };
            (!both.is_empty()).then(|| (element.clone(), both))
        });
        Self { nodes: nodes.collect() }
    }

    /// Whether some of the paths are in another set, of which only the canonical `FieldsV1` are at hand.
    pub(crate) fn touches_fields_v1(&self, fields: &Value) -> bool {
        self.nodes.iter().any(|(element, node)| {
            let Some(theirs) = fields.get(element.serialize()) else {
                return false;
            };
            let is_member = theirs
                .as_object()
                .is_some_and(|theirs| theirs.is_empty() || theirs.contains_key("."));
            node.member && is_member || node.below.touches_fields_v1(theirs)
        })
    }

    /// Takes away the paths of another set; what lies below them stays.
    pub fn subtract(&mut self, other: &Self) {
        self.take(other, false);
    }

    /// Takes away the paths of another set and all that lies below them.
    pub fn subtract_recursively(&mut self, other: &Self) {
        self.take(other, true);
    }

    fn take(&mut self, other: &Self, recursively: bool) {
        if other.is_empty() {
            return;
        }
        self.nodes.retain(|element, node| {
            let Some(theirs) = other.nodes.get(element) else {
                return true;
            };
            if theirs.member {
                node.member = false;
                if recursively {
                    return false;
                }
            }
            node.below.take(&theirs.below, recursively);
            !node.is_empty()
        });
    }

    /// The set without the paths of another one.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut set = self.clone();
        set.subtract(other);
        set
    }

    /// All paths, in order, as messages tell them.
    pub fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect("", &mut found);
        found
    }

    fn collect(&self, prefix: &str, found: &mut Vec<String>) {
        // as upstream: first what is a member here, then what is below
        let members = self.nodes.iter().filter(|(_, node)| node.member);
        found.extend(members.map(|(element, _)| format!("{prefix}{element}")));
        for (element, node) in &self.nodes {
            node.below.collect(&format!("{prefix}{element}"), found);
        }
    }

    /// Reads `FieldsV1`.
    ///
    /// # Errors
    /// When it is no object of path elements.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, MalformedFields> {
        Self::parse(fields, 0).map(|(set, _)| set)
    }

    /// The set and whether the path that leads here is a member itself.
    fn parse(fields: &Value, depth: usize) -> Result<(Self, bool), MalformedFields> {
        let Value::Object(members) = fields else {
            return Err(MalformedFields(fields.to_string()));
        };
        if depth > MAX_DEPTH {
            return Err(MalformedFields("more than 128 levels".into()));
        }
        let mut set = Self::new();
        let mut member = members.is_empty();
        for (name, value) in members {
            if name == "." {
                member = true;
                continue;
            }
            let element = PathElement::parse(name).ok_or_else(|| MalformedFields(name.clone()))?;
            let (below, member) = Self::parse(value, depth + 1)?;
            set.place(element, member, below);
        }
        Ok((set, member))
    }

    /// Writes `FieldsV1`.
    pub fn into_fields_v1(self) -> Value {
        let fields = self.nodes.into_iter().map(|(element, node)| {
            let mut value = node.below.into_fields_v1();
            if let Value::Object(members) = &mut value
                && node.member
                && !members.is_empty()
            {
                members.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (element.serialize(), value)
        });
        Value::Object(fields.collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(fields: Value) -> Set {
        Set::from_fields_v1(&fields).unwrap()
    }

    #[test]
    fn fields_v1_is_read_and_written() {
        let fields = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:finalizers": {".": {}, "v:\"a/b\"": {}}},
            "f:spec": {"f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                "f:args": {"i:0": {}}},
        });
        let read = set(fields.clone());
        assert_eq!(read.clone().into_fields_v1(), fields);
        assert_eq!(
            read.paths(),
            [
                ".metadata.finalizers",
                ".metadata.labels",
                ".metadata.finalizers[=\"a/b\"]",
                ".metadata.labels.app",
                ".spec.args[0]",
                ".spec.ports[containerPort=80,protocol=\"TCP\"]",
                ".spec.ports[containerPort=80,protocol=\"TCP\"].containerPort",
            ]
        );
        assert_eq!(read.len(), 7);
        // As Go writes JSON.
        let odd = json!({"f:a": {"v:\"a\\u003cb\\u003e\"": {}, "k:{\"a\":\"\\u0026\"}": {}}});
        assert_eq!(set(odd.clone()).into_fields_v1(), odd);
        assert_eq!(
            set(json!({"f:a": {"v:\"a<b>\"": {}, "k:{\"a\":\"&\"}": {}}})).into_fields_v1(),
            odd
        );
        // Keys are canonical however they are written.
        let other = set(json!({"f:a": {"k:{\"b\": 1.0, \"a\":2}": {}}}));
        assert_eq!(other.into_fields_v1(), json!({"f:a": {"k:{\"a\":2,\"b\":1}": {}}}));
        for bad in [
            json!(1),
            json!({"x:a": {}}),
            json!({"f:a": 1}),
            json!({"k:{": {}}),
            json!({"i:x": {}}),
            json!({"a": {}}),
        ] {
            assert!(Set::from_fields_v1(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn algebra() {
        let a = set(json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}}));
        let b = set(json!({"f:a": {}, "f:c": {}}));
        assert_eq!(
            a.union(&b),
            set(json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}, "f:c": {}}))
        );
        assert_eq!(a.intersection(&b), set(json!({"f:a": {}})));
        assert_eq!(a.difference(&b), set(json!({"f:a": {"f:x": {}}, "f:b": {}})));
        let mut c = a.clone();
        c.subtract_recursively(&b);
        assert_eq!(c, set(json!({"f:b": {}})));
        assert!(a.difference(&a).is_empty());
        assert!(Set::of_fields(&["status", "metadata.labels"]).has(&["metadata", "labels"].map(PathElement::field)));
    }
}
