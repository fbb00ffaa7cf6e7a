//! How many watches follow what: each change of an object is work for those that follow it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::authz::Attributes;
use crate::request::Query;

/// The watches of a cluster that came from outside, by what they follow: a kind, and of it what lies in a namespace, or one object.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    numbers: Mutex<BTreeMap<String, usize>>,
}

/// A watch; it counts until this value goes.
#[derive(Debug)]
pub(super) struct Watcher {
    of: Arc<Watchers>,
    followed: String,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut numbers = self.of.numbers.lock();
        if let Some(number) = numbers.get_mut(&self.followed) {
            *number -= 1;
            if *number == 0 {
                numbers.remove(&self.followed);
            }
        }
    }
}

impl Watchers {
    /// Counts a watch. Not those of one node's pods: of each change only one of these is told.
    pub(super) fn add(self: &Arc<Self>, request: &Attributes<'_>, query: &Query) -> Option<Watcher> {
        if request.resource == "pods" && is_of_one_node(query) {
            return None;
        }
        let mut followed = format!("{}/{}", request.group, request.resource);
        if !request.namespace.is_empty() || !request.name.is_empty() {
            followed.extend(["/", request.namespace]);
        }
        if !request.name.is_empty() {
            followed.extend(["/", request.name]);
        }
        *self.numbers.lock().entry(followed.clone()).or_default() += 1;
        Some(Watcher {
            of: Arc::clone(self),
            followed,
        })
    }

    /// How many watches a change may be told to.
    pub(super) fn of(&self, request: &Attributes<'_>) -> usize {
        let numbers = self.numbers.lock();
        if numbers.is_empty() {
            return 0;
        }
        let number = |followed: &str| numbers.get(followed).copied().unwrap_or_default();
        let mut followed = format!("{}/{}", request.group, request.resource);
        let mut all = number(&followed);
        followed.extend(["/", request.namespace]);
        if !request.namespace.is_empty() {
            all += number(&followed);
        }
        if !request.name.is_empty() {
            followed.extend(["/", request.name]);
            all += number(&followed);
        }
        all
    }
}

fn is_of_one_node(query: &Query) -> bool {
    use gardener_apimachinery::selector::FieldSelector;

    let selector = query
        .get("fieldSelector")
        .and_then(|text| FieldSelector::parse(text).ok());
    selector.is_some_and(|selector| selector.exact("spec.nodeName").is_some_and(|node| !node.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::UserInfo;

    #[test]
    fn changes_are_told_to_who_follows_them() {
        let (watchers, user) = (Arc::new(Watchers::default()), UserInfo::anonymous());
        let of = |resource: &'static str, namespace: &'static str, name: &'static str| {
            Attributes::of_resource(&user, "watch", "", resource, namespace, name)
        };
        let none = Query::default();
        let node = Query::parse("fieldSelector=spec.nodeName%3Dn");
        let all = watchers.add(&of("pods", "", ""), &none);
        let _space = watchers.add(&of("pods", "a", ""), &none);
        let _one = watchers.add(&of("pods", "a", "x"), &none);
        assert!(watchers.add(&of("pods", "", ""), &node).is_none());
        let _nodes = watchers.add(&of("nodes", "", ""), &node);
        assert_eq!(watchers.of(&of("pods", "a", "x")), 3);
        assert_eq!(watchers.of(&of("pods", "a", "y")), 2);
        assert_eq!(watchers.of(&of("pods", "a", "")), 2);
        assert_eq!(watchers.of(&of("pods", "b", "x")), 1);
        assert_eq!(watchers.of(&of("nodes", "", "x")), 1);
        drop(all);
        assert_eq!(watchers.of(&of("pods", "b", "x")), 0);
    }
}
