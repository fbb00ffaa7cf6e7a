//! Fields that selectors name, `metadata.name` and `metadata.namespace` apart: what they are called, and where in a stored object they are read. How
//! selectors are read and compared is told elsewhere.

use std::borrow::Cow;

use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use crate::{json_path, meta};

/// A field by which objects of a kind are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selectable {
    /// What selectors call it.
    pub name: Cow<'static, str>,
    place: Place,
}

/// Where a field's value stands, and what is told where it is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// A text at a JSON pointer; empty, where none is.
    Text(&'static str),
    /// The first text of two pointers that is not empty.
    Either(&'static str, &'static str),
    /// `true` or `false` at a pointer; false, where none is.
    Flag(&'static str),
    /// A whole number at a pointer; zero, where none is.
    Number(&'static str),
    /// A text, number or flag at the JSON path of a custom resource's definition; empty, where nothing is. Beside it the pointer to the member that
    /// it leads into.
    Path(String, String),
}

impl Selectable {
    /// A text at a JSON pointer.
    pub const fn text(name: &'static str, pointer: &'static str) -> Self {
        Self::of(name, Place::Text(pointer))
    }

    /// The text at a pointer, or else that at another.
    pub(crate) const fn either(name: &'static str, pointer: &'static str, other: &'static str) -> Self {
        Self::of(name, Place::Either(pointer, other))
    }

    /// A flag at a JSON pointer.
    pub(crate) const fn flag(name: &'static str, pointer: &'static str) -> Self {
        Self::of(name, Place::Flag(pointer))
    }

    /// A whole number at a JSON pointer.
    pub(crate) const fn number(name: &'static str, pointer: &'static str) -> Self {
        Self::of(name, Place::Number(pointer))
    }

    /// The field at a JSON path, as custom resources tell theirs.
    pub(crate) fn path(path: &str) -> Self {
        Self {
            name: Cow::Owned(path.trim_start_matches('.').to_owned()),
            place: Place::Path(path.to_owned(), member_of(path)),
        }
    }

    const fn of(name: &'static str, place: Place) -> Self {
        Self {
            name: Cow::Borrowed(name),
            place,
        }
    }

    /// The field's value, of a stored object or of what of it is at [`Self::pointers`].
    pub fn value<'v>(&self, object: &'v Value) -> Cow<'v, str> {
        let text = |pointer: &str| meta::text(object, pointer);
        match &self.place {
            Place::Text(pointer) => Cow::Borrowed(text(pointer)),
            Place::Either(pointer, other) => Cow::Borrowed(match text(pointer) {
                "" => text(other),
                first => first,
            }),
            Place::Flag(pointer) => match object.at(pointer).and_then(Value::as_bool) {
                Some(true) => Cow::Borrowed("true"),
                Some(false) | None => Cow::Borrowed("false"),
            },
            Place::Number(pointer) => {
                let number = object.at(pointer).and_then(Value::as_i64).unwrap_or(0);
                Cow::Owned(number.to_string())
            }
            Place::Path(path, _) => match json_path::first(object, path) {
                Some(Value::String(text)) => Cow::Borrowed(text),
                Some(Value::Null) | None => Cow::Borrowed(""),
                Some(other) => Cow::Owned(other.to_string()),
            },
        }
    }

    /// JSON pointers to all that the value is made of; that of the whole object is empty.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = &str> {
        let (first, other) = match &self.place {
            Place::Text(pointer) | Place::Flag(pointer) | Place::Number(pointer) => (*pointer, None),
            Place::Either(pointer, other) => (*pointer, Some(*other)),
            Place::Path(_, member) => (member.as_str(), None),
        };
        std::iter::once(first).chain(other)
    }
}

/// The pointer to the object's member that a JSON path leads into; to the whole object, if that is not told plainly.
fn member_of(path: &str) -> String {
    let inside = path.strip_prefix('.').unwrap_or_default();
    let (member, _) = inside.split_once(['.', '[']).unwrap_or((inside, ""));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match !member.is_empty() && member.bytes().all(is_plain) {
        true => format!("/{member}"),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_where_they_stand() {
        let object = json!({"spec": {"a": "x", "n": 3, "on": true, "b": {"c-d": 7, "e.f": "dotted"}}, "old": "o"});
        let cases = [
            (Selectable::text("a", "/spec/a"), "x"),
            (Selectable::text("a", "/spec/z"), ""),
            (Selectable::text("a", "/spec/n"), ""),
            (Selectable::either("a", "/new", "/old"), "o"),
            (Selectable::either("a", "/spec/a", "/old"), "x"),
            (Selectable::flag("on", "/spec/on"), "true"),
            (Selectable::flag("on", "/spec/off"), "false"),
            (Selectable::number("n", "/spec/n"), "3"),
            (Selectable::number("n", "/spec/a"), "0"),
            (Selectable::path(".spec.b.c-d"), "7"),
            (Selectable::path(".spec.on"), "true"),
            (Selectable::path(".spec.none"), ""),
        ];
        for (field, wanted) in cases {
            assert_eq!(field.value(&object), wanted, "{field:?}");
        }
    }

    #[test]
    fn paths_tell_the_member_that_they_lead_into() {
        for (path, pointer) in [
            (".spec.a", "/spec"),
            (".spec", "/spec"),
            (".spec['a.b']", "/spec"),
            (".a-b_c.d", "/a-b_c"),
            ("spec.a", ""),
            ("['spec'].a", ""),
            (".", ""),
            (".a\\.b.c", ""),
        ] {
            let field = Selectable::path(path);
            assert_eq!(field.pointers().collect::<Vec<_>>(), [pointer], "{path}");
        }
    }
}
