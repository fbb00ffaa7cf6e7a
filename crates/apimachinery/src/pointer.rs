//! JSON pointers (RFC 6901) into values. Requests follow many of them, so that they are followed without copying their segments, as
//! [`Value::pointer`] does.

use std::borrow::Cow;

use serde_json::Value;

/// A value into which pointers lead.
pub trait Pointed {
    /// The part of the value at a pointer, such as `/metadata/name`; the empty pointer leads to the value itself.
    fn at(&self, pointer: &str) -> Option<&Value>;

    /// As [`Self::at`], to be changed.
    fn at_mut(&mut self, pointer: &str) -> Option<&mut Value>;
}

impl Pointed for Value {
    fn at(&self, pointer: &str) -> Option<&Value> {
        segments(pointer)?.try_fold(self, |value, segment| match value {
            Self::Object(members) => members.get(segment.as_ref()),
            Self::Array(elements) => elements.get(index(&segment)?),
            _ => None,
        })
    }

    fn at_mut(&mut self, pointer: &str) -> Option<&mut Value> {
        segments(pointer)?.try_fold(self, |value, segment| match value {
            Self::Object(members) => members.get_mut(segment.as_ref()),
            Self::Array(elements) => elements.get_mut(index(&segment)?),
            _ => None,
        })
    }
}

/// The pointer to a member of what a pointer leads to.
pub fn member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The pointer to what has a member that a pointer leads to, and the member's name. None for the value itself.
pub fn parent(pointer: &str) -> Option<(&str, Cow<'_, str>)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    Some((parent, unescaped(name)))
}

/// The segments of a pointer, unescaped. None, if it is no pointer.
fn segments(pointer: &str) -> Option<impl Iterator<Item = Cow<'_, str>>> {
    let rest = match pointer.is_empty() {
        true => None,
        false => Some(pointer.strip_prefix('/')?),
    };
    let segments = rest.into_iter().flat_map(|rest| rest.split('/'));
    Some(segments.map(unescaped))
}

fn unescaped(segment: &str) -> Cow<'_, str> {
    match segment.contains('~') {
        true => Cow::Owned(segment.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(segment),
    }
}

/// The place of an element: digits without a sign or zeros in front.
fn index(segment: &str) -> Option<usize> {
    let is_padded = segment.starts_with('+') || segment.starts_with('0') && segment.len() != 1;
    segment.parse().ok().filter(|_| !is_padded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value() -> Value {
        json!({"a": {"b": [1, {"c": null}], "": 2, "0": 3}, "~x/y": {"~1": 4}, "01": 5})
    }

    proptest! {
        #[test]
        #[allow(clippy::disallowed_methods)] // the judge
        fn they_lead_where_serde_json_leads(pointer in "(/(a|b|c|0|1|01|\\+1|-|~0x~1y|~01|~|)){0,4}/?|a/b") {
            let mut value = value();
            prop_assert_eq!(value.at(&pointer), value.pointer(&pointer));
            let expected = value.pointer(&pointer).cloned();
            prop_assert_eq!(value.at_mut(&pointer).cloned(), expected);
        }
    }

    #[test]
    fn members_have_parents() {
        assert_eq!(parent(&member("/a/b", "~x/y")), Some(("/a/b", "~x/y".into())));
        assert_eq!(parent("/a"), Some(("", "a".into())));
        assert_eq!(parent(""), None);
    }
}
