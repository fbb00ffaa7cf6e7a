//! Where an object tells lists, maps and texts of bytes without an element.

use gardener_apimachinery::pointer;
use serde_json::Value;

/// A list, a map or a text of bytes without an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Empty {
    /// Its JSON pointer.
    pub at: String,
    /// The value: `[]`, `{}` or `""`.
    pub value: Value,
}

impl Empty {
    /// An empty value at a JSON pointer.
    pub fn new(at: impl Into<String>, value: Value) -> Self {
        Self { at: at.into(), value }
    }
}

/// A place in an object on the way to its parts, written as a pointer only where somebody asks.
pub(crate) enum Place<'a> {
    /// The object itself.
    Root,
    /// A member of what is at a place.
    Member(&'a Place<'a>, &'a str),
    /// An element of the list at a place.
    Element(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Member(parent, name) => pointer::member(&parent.pointer(), name),
            Self::Element(parent, index) => format!("{}/{index}", parent.pointer()),
        }
    }

    /// The empty value at this place.
    pub(crate) fn empty(&self, value: &Value) -> Empty {
        Empty::new(self.pointer(), value.clone())
    }
}
