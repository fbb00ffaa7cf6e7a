//! Declarations: what is known of a variable's values before there are any. Schemas become declarations; they tell types, how large values
//! can be, and how JSON is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::parser::RESERVED;

/// Largest request, in bytes: what no schema bounds, this bounds.
pub const REQUEST_SIZE: u64 = 3 * 1024 * 1024;

/// What is known of values at one place.
#[derive(Clone, Debug)]
pub struct Declared {
    /// What kind of value.
    pub shape: Shape,
    /// Most elements, or bytes of a text.
    pub max_elements: u64,
    /// Fewest bytes of a value in JSON.
    pub min_size: u64,
}

/// Kinds of values.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Anything; checked when evaluated.
    Dyn,
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Double,
    /// A text.
    Text,
    /// A text in base64, seen as bytes.
    Bytes,
    /// A text with a time.
    Timestamp,
    /// A text with a duration.
    Duration,
    /// Who may do what.
    Authorizer,
    /// A question to the authorizer about a resource.
    ResourceCheck,
    /// A value that may not be there.
    Optional(Arc<Declared>),
    /// A list.
    List {
        /// What is in it.
        items: Arc<Declared>,
        /// How lists are compared and added.
        elements: Elements,
    },
    /// An object with any keys.
    Map(Arc<Declared>),
    /// An object with any keys, which expressions may also write as they write names of fields: `claims.a__dot__b` is `claims["a.b"]`. Where
    /// its values are anything, that goes for objects in them, too.
    Named(Arc<Declared>),
    /// An object with known fields.
    Object {
        /// What messages call it.
        name: String,
        /// By the name that expressions use.
        fields: BTreeMap<String, Field>,
    },
}

/// How the elements of a list are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Elements {
    /// By their place.
    #[default]
    Atomic,
    /// By their value.
    Set,
    /// By these members.
    Map(Vec<String>),
}

/// A field of an object.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in JSON.
    pub property: String,
    /// What is in it.
    pub declared: Arc<Declared>,
}

impl Declared {
    /// A declaration without bounds of its own.
    pub fn new(shape: Shape) -> Self {
        let (max_elements, min_size) = match &shape {
            Shape::Bool => (0, 4),
            Shape::Int | Shape::Double | Shape::Dyn => (0, 1),
            Shape::Text | Shape::Bytes => (REQUEST_SIZE - 2, 2),
            Shape::Timestamp => (32, 21),
            Shape::Duration => (32, 3),
            Shape::List { items, .. } => ((REQUEST_SIZE - 2) / (items.min_size + 1), 2),
            Shape::Map(values) | Shape::Named(values) => ((REQUEST_SIZE - 2) / (values.min_size + 6), 2),
            Shape::Object { .. } => (0, 2),
            Shape::Authorizer | Shape::ResourceCheck | Shape::Optional(_) => (0, 1),
        };
        Self {
            shape,
            max_elements,
            min_size,
        }
    }

    /// The same with a bound on its elements.
    #[must_use]
    pub fn at_most(mut self, elements: Option<u64>) -> Self {
        if let Some(elements) = elements {
            self.max_elements = elements;
        }
        self
    }

    /// An object whose fields have the names of its properties.
    pub fn object(name: &str, fields: Vec<(&str, Self)>) -> Self {
        let fields = fields.into_iter().map(|(property, declared)| {
            let field = Field {
                property: property.to_owned(),
                declared: Arc::new(declared),
            };
            (property.to_owned(), field)
        });
        Self::new(Shape::Object {
            name: name.to_owned(),
            fields: fields.collect(),
        })
    }

    /// A list of such values.
    pub fn list_of(items: Self) -> Self {
        Self::new(Shape::List {
            items: Arc::new(items),
            elements: Elements::Atomic,
        })
    }

    pub(crate) fn object_name(&self) -> &str {
        match &self.shape {
            Shape::Object { name, .. } => name,
            _ => "",
        }
    }

    /// The declaration of a field, by the name that expressions use.
    pub fn field(&self, name: &str) -> Option<&Field> {
        match &self.shape {
            Shape::Object { fields, .. } => fields.get(name),
            _ => None,
        }
    }
}

/// Words of the grammar, which expressions cannot use as names of fields either.
const WORDS: [&str; 4] = ["true", "false", "null", "in"];

/// Whether a variable may have this name.
pub fn is_identifier(name: &str) -> bool {
    let in_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let begins = name.chars().next().is_some_and(|first| !first.is_ascii_digit());
    begins && name.chars().all(in_name) && !WORDS.contains(&name) && !RESERVED.contains(&name)
}

/// The name of a property in expressions; none for those that expressions cannot reach.
pub fn escape(property: &str) -> Option<String> {
    if WORDS.contains(&property) || RESERVED.contains(&property) {
        return Some(format!("__{property}__"));
    }
    let mut out = String::with_capacity(property.len());
    let mut rest = property;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("__") {
            out.push_str("__underscores__");
            rest = rest.get(2..).unwrap_or_default();
            continue;
        }
        match c {
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            c if c == '_' || c.is_ascii_alphanumeric() => out.push(c),
            _ => return None,
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    let begins = out.chars().next()?;
    (!begins.is_ascii_digit()).then_some(out)
}

/// The property that a name in an expression stands for; none for a name that is only itself, or is no escaped one.
pub(crate) fn unescape(name: &str) -> Option<String> {
    let (mut out, mut rest, mut found) = (String::with_capacity(name.len()), name, false);
    while let Some(at) = rest.find("__") {
        let (before, marked) = rest.split_at(at);
        let inner = marked.get(2..).unwrap_or_default();
        let length = inner.find('_').unwrap_or(inner.len());
        let (word, after) = inner.split_at(length);
        let Some(after) = after.strip_prefix("__").filter(|_| !word.is_empty()) else {
            // the marks begin one character later at the earliest
            let (kept, later) = rest.split_at(at + 1);
            out.push_str(kept);
            rest = later;
            continue;
        };
        out.push_str(before);
        match word {
            "underscores" => out.push_str("__"),
            "dot" => out.push('.'),
            "dash" => out.push('-'),
            "slash" => out.push('/'),
            word if name.len() == word.len() + 4 && (WORDS.contains(&word) || RESERVED.contains(&word)) => {
                out.push_str(word);
            }
            _ => return None,
        }
        (rest, found) = (after, true);
    }
    out.push_str(rest);
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_escaped() {
        for property in [
            "a.b",
            "a-b/c.d",
            "a__b",
            "namespace",
            "x_y.z",
            "true",
            "example.com/role",
        ] {
            let escaped = escape(property).unwrap();
            assert_eq!(unescape(&escaped).as_deref(), Some(property), "{escaped}");
        }
        for name in ["a", "a_b", "a__b", "a__other__b", "a__true__", "__", "____", "a___b"] {
            assert_eq!(unescape(name), None, "{name}");
        }
        assert_eq!(unescape("a___dot__").as_deref(), Some("a_."));
    }
}
