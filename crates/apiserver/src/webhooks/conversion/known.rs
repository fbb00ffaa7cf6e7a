//! What a webhook made of stored objects. Those who list and watch, and writes of what they read before, do not have it make each of them anew:
//! as upstream, where they read from a cache that holds objects as they were converted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use gardener_store::Revision;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::meta;

/// How many objects are known at most.
const MOST: usize = 20_000;

/// An object as it was or will be converted: whoever asks while another one waits for the webhook waits with it.
pub(super) type Converted = Arc<OnceCell<Arc<Value>>>;

/// Converted objects of one definition, as long as that stays as it is.
#[derive(Clone, Default)]
pub(super) struct Known(Arc<Mutex<BTreeMap<Place, (Revision, Converted)>>>);

/// An object's uid, and the version that it was converted to.
type Place = (String, String);

impl Known {
    /// Where the object is kept in another version; none for what is not stored, or was stored before what is known.
    pub(super) fn of(&self, object: &Value, to: &str) -> Option<Converted> {
        let revision = meta::resource_version(object).parse::<Revision>().ok()?;
        let uid = meta::text(object, "/metadata/uid");
        if uid.is_empty() {
            return None;
        }
        let mut known = self.0.lock();
        let place = (uid.to_owned(), to.to_owned());
        match known.get(&place) {
            Some((at, converted)) if *at == revision => return Some(Arc::clone(converted)),
            Some((at, _)) if *at > revision => return None,
            // who is deleted is not told: all of them make room together
            None if known.len() >= MOST => known.clear(),
            _ => {}
        }
        let converted = Converted::default();
        known.insert(place, (revision, Arc::clone(&converted)));
        Some(converted)
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Known({} objects)", self.0.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_known_at_its_newest_revision() {
        let known = Known::default();
        let object = |revision: &str| json!({"metadata": {"uid": "u", "resourceVersion": revision}});
        let first = known.of(&object("5"), "e/v2").unwrap();
        first.set(Arc::new(json!(1))).unwrap();
        assert!(known.of(&object("5"), "e/v2").unwrap().initialized());
        assert!(
            !known.of(&object("5"), "e/v3").unwrap().initialized(),
            "another version"
        );
        assert!(!known.of(&object("6"), "e/v2").unwrap().initialized(), "it has changed");
        assert!(known.of(&object("5"), "e/v2").is_none(), "it is from before");
        assert!(
            known.of(&json!({"metadata": {"uid": "u"}}), "e/v2").is_none(),
            "it is not stored"
        );
        assert!(
            known
                .of(&json!({"metadata": {"resourceVersion": "5"}}), "e/v2")
                .is_none()
        );
    }

    #[test]
    fn as_many_are_known_as_there_is_room_for() {
        let known = Known::default();
        for number in 0..=MOST {
            known.of(
                &json!({"metadata": {"uid": format!("u{number}"), "resourceVersion": "1"}}),
                "e/v2",
            );
        }
        assert_eq!(known.0.lock().len(), 1);
    }
}
