//! What a merge patch has to say to make one object of another.
//!
//! Both are compared as they are serialized: most of an object is the same before and after a change, and equal text needs no value to be made of it.

use std::collections::BTreeMap;

use gardener_apimachinery::skim;
use serde::Serialize;
use serde::de::Error as _;
use serde_json::{Error, Map, Value};

/// The JSON merge patch that makes `new` of `old`; none if they are equal. Of objects alone: the patch of others is what they are to become.
///
/// # Errors
/// When one of them has no JSON form.
pub(crate) fn merge_diff(old: &impl Serialize, new: &impl Serialize) -> Result<Option<Value>, Error> {
    diff(&serde_json::to_vec(old)?, &serde_json::to_vec(new)?)
}

fn diff(old: &[u8], new: &[u8]) -> Result<Option<Value>, Error> {
    if old == new {
        return Ok(None);
    }
    if !(old.starts_with(b"{") && new.starts_with(b"{")) {
        let new: Value = serde_json::from_slice(new)?;
        let is_other = serde_json::from_slice::<Value>(old)? != new;
        return Ok(is_other.then_some(new));
    }
    let (old, new) = (members(old)?, members(new)?);
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(text(key)?, Value::Null);
    }
    for (key, value) in new {
        let change = match old.get(key) {
            Some(before) => diff(before, value)?,
            None => Some(serde_json::from_slice(value)?),
        };
        if let Some(change) = change {
            patch.insert(text(key)?, change);
        }
    }
    Ok((!patch.is_empty()).then_some(Value::Object(patch)))
}

/// The members of an object: keys as they are written, and values.
fn members(object: &[u8]) -> Result<BTreeMap<&[u8], &[u8]>, Error> {
    skim::members(object).collect::<Result<_, _>>().map_err(Error::custom)
}

/// A key that is written so between quotes.
fn text(key: &[u8]) -> Result<String, Error> {
    serde_json::from_slice(&[b"\"", key, b"\""].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            "[a\"\\\\é]{0,2}".prop_map(Value::from),
            proptest::collection::vec(0..3, 0..3).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            proptest::collection::btree_map("[ab\"]{1,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
        })
    }

    #[test]
    fn members_may_come_in_any_order() {
        let (old, new) = (
            &br#"{"a":1,"b":{"x":[{"p":1,"q":2}]}}"#[..],
            &br#"{"b":{"x":[{"q":2,"p":1}]},"a":1}"#[..],
        );
        assert_eq!(diff(old, new).unwrap(), None);
        assert_eq!(
            diff(old, br#"{"b":{"x":[]}}"#).unwrap(),
            Some(json!({"a": null, "b": {"x": []}}))
        );
    }

    proptest! {
        /// Applying the difference gives the new value, and there is none exactly between equal values.
        #[test]
        fn merge_diff_is_what_a_merge_patch_undoes(old in any_json(), new in any_json()) {
            // A merge patch can only say what an object is to become.
            let (old, new) = (json!({"root": old}), json!({"root": new}));
            match merge_diff(&old, &new).unwrap() {
                None => prop_assert_eq!(old, new),
                Some(patch) => {
                    prop_assert_ne!(&old, &new);
                    let mut patched = old;
                    json_patch::merge(&mut patched, &patch);
                    prop_assert_eq!(patched, new);
                }
            }
        }
    }
}
