//! `ResourceQuota`: how many objects of a kind a namespace may have. What pods and claims may use is not looked at.
//!
//! Upstream counts in the quota's status, which a controller sets right from time to time. Here a creation counts the objects that are there, and
//! those that other requests are about to store; so that it neither waits for a controller, nor writes to the quota. Servers that share one
//! etcd do not see what the other is about to store.

mod limited;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::quantity::Amount;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::Value;

pub use self::limited::LimitedResources;
use crate::definition::{Admission, Attributes, Lister, Operation};
use crate::meta;

/// For how long at most an admitted object may take until it is stored.
const UNDER_WAY: SignedDuration = SignedDuration::from_secs(10);
/// How often the objects are counted again because their number changed meanwhile.
const COUNTS: usize = 5;
/// Kinds whose number a quota may also name by the plain resource.
const PLAIN: [&str; 5] = [
    "configmaps",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

/// Kinds whose number no quota limits: of most there are no objects.
const UNCOUNTED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("events.k8s.io", "events"),
];

/// Of which kind (group and plural name) an entry of a quota limits the number, such as `count/shoots.core.gardener.cloud` or `secrets`.
pub fn counted(entry: &str) -> Option<(&str, &str)> {
    match entry.strip_prefix("count/") {
        Some(resource) => {
            let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
            Some((group, plural)).filter(|kind| !UNCOUNTED.contains(kind))
        }
        None => PLAIN.contains(&entry).then_some(("", entry)),
    }
}

/// The names of the entries that limit the number of objects of a kind.
fn names(group: &str, resource: &str) -> Vec<String> {
    let own = match group {
        "" => format!("count/{resource}"),
        group => format!("count/{resource}.{group}"),
    };
    let plain = PLAIN.contains(&resource) && group.is_empty();
    std::iter::once(own).chain(plain.then(|| resource.to_owned())).collect()
}

/// Whether a quota limits numbers of objects at all: one for some pods only does not.
fn limits_numbers(quota: &Value) -> bool {
    let scopes = quota.at("/spec/scopes").and_then(Value::as_array);
    scopes.is_none_or(Vec::is_empty) && quota.at("/spec/scopeSelector").is_none_or(Value::is_null)
}

/// The limits that a quota sets to the number of objects of a kind, by entry.
fn limits(quota: &Value, group: &str, resource: &str) -> BTreeMap<String, Amount> {
    let hard = quota.at("/spec/hard").and_then(Value::as_object);
    let entries = hard.filter(|_| limits_numbers(quota)).into_iter().flatten();
    entries
        .filter(|(entry, _)| counted(entry) == Some((group, resource)))
        .filter_map(|(entry, limit)| Some((entry.clone(), limit.as_str()?.parse().ok()?)))
        .collect()
}

/// What a quota has against one object more of a kind that has `used`, in upstream's words.
fn refusal(quota: &Value, limits: &BTreeMap<String, Amount>, used: i64) -> Option<String> {
    let exceeded: Vec<(&String, &Amount)> = limits
        .iter()
        .filter(|(_, limit)| Amount::units(used + 1) > **limit)
        .collect();
    if exceeded.is_empty() {
        return None;
    }
    let each = |amount: &dyn Fn(&Amount) -> Amount| {
        let told = exceeded
            .iter()
            .map(|(entry, limit)| format!("{entry}={}", amount(limit)));
        told.collect::<Vec<_>>().join(",")
    };
    Some(format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        meta::name(quota),
        each(&|_| Amount::units(1)),
        each(&|_| Amount::units(used)),
        each(&|limit| *limit)
    ))
}

/// Group, plural name and namespace.
type Collection = (String, String, String);

/// Refuses objects that a namespace's ResourceQuotas leave no room for, and such as may only be made where a quota limits them.
#[derive(Default)]
pub struct ResourceQuota {
    limited: LimitedResources,
    /// The names of objects that were admitted and are not stored yet, and since when.
    under_way: Mutex<BTreeMap<Collection, BTreeMap<String, Timestamp>>>,
}

impl ResourceQuota {
    /// Where some kinds have to be limited.
    pub fn new(limited: LimitedResources) -> Self {
        Self {
            limited,
            ..Self::default()
        }
    }

    /// What quotas have to limit for an object of a kind, and do not: a refusal in upstream's words.
    fn uncovered(&self, group: &str, resource: &str, limits: &[BTreeMap<String, Amount>]) -> Option<String> {
        let demanded = self.limited.demanded(group, resource);
        let covered: BTreeSet<String> = limits.iter().flat_map(BTreeMap::keys).cloned().collect();
        let missing: Vec<&str> = demanded.difference(&covered).map(String::as_str).collect();
        (!missing.is_empty()).then(|| format!("insufficient quota to consume: {}", missing.join(",")))
    }

    /// How many objects there are, with those that are about to be stored.
    fn used(
        lister: &dyn Lister,
        collection: &Collection,
        under_way: &mut BTreeMap<String, Timestamp>,
        now: Timestamp,
    ) -> usize {
        let (group, resource, namespace) = collection;
        under_way.retain(|_, since| now.duration_since(*since) < UNDER_WAY);
        let mut there = lister.count(group, resource, namespace);
        if under_way.is_empty() {
            return there;
        }
        for _ in 0..COUNTS {
            under_way.retain(|name, _| lister.get(group, resource, namespace, name).is_none());
            let again = lister.count(group, resource, namespace);
            if again == there {
                break;
            }
            there = again;
        }
        there + under_way.len()
    }
}

#[async_trait]
impl Admission for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let (definition, context) = (attributes.definition, attributes.context);
        let namespace = attributes.namespace;
        let creates = attributes.operation == Operation::Create && attributes.subresource.is_empty();
        if !creates || !definition.namespaced || namespace.is_empty() {
            return Ok(());
        }
        let (group, resource) = (definition.group.as_str(), definition.plural.as_str());
        if UNCOUNTED.contains(&(group, resource)) {
            return Ok(());
        }
        let quotas = context.lister.list("", "resourcequotas", Some(namespace));
        let limits: Vec<_> = quotas.iter().map(|quota| limits(quota, group, resource)).collect();
        if let Some(why) = self.uncovered(group, resource, &limits) {
            return Err(attributes.forbidden(&why));
        }
        let mut limited = quotas
            .iter()
            .zip(&limits)
            .filter(|(_, limits)| !limits.is_empty())
            .peekable();
        if limited.peek().is_none() {
            return Ok(());
        }
        let collection = (group.to_owned(), resource.to_owned(), namespace.to_owned());
        let mut all = self.under_way.lock();
        let under_way = all.entry(collection.clone()).or_default();
        let used = Self::used(context.lister, &collection, under_way, context.now);
        let used = i64::try_from(used).unwrap_or(i64::MAX - 1);
        let refused = limited.find_map(|(quota, limits)| refusal(quota, limits, used));
        if refused.is_none() && !context.dry_run {
            under_way.insert(attributes.name.to_owned(), context.now);
        }
        if under_way.is_empty() {
            all.remove(&collection);
        }
        match refused {
            Some(why) => Err(attributes.forbidden(&why)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_name_kinds() {
        for (entry, kind) in [
            (
                "count/shoots.core.gardener.cloud",
                Some(("core.gardener.cloud", "shoots")),
            ),
            ("count/secrets", Some(("", "secrets"))),
            ("secrets", Some(("", "secrets"))),
            ("requests.cpu", None),
            ("pods", None),
        ] {
            assert_eq!(counted(entry), kind, "{entry}");
            if let Some((group, resource)) = kind {
                assert!(names(group, resource).contains(&entry.to_owned()), "{entry}");
            }
        }
    }

    #[test]
    fn what_has_to_be_limited_is_limited_by_some_quota() {
        let limited = json!({"limitedResources": [{"resource": "secrets", "matchContains": ["secrets"]}]});
        let plugin = ResourceQuota::new(serde_json::from_value(limited).unwrap());
        let quota = |entries: serde_json::Value| limits(&json!({"spec": {"hard": entries}}), "", "secrets");
        let uncovered = |limits: &[BTreeMap<String, Amount>]| plugin.uncovered("", "secrets", limits);
        assert_eq!(
            uncovered(&[]).as_deref(),
            Some("insufficient quota to consume: count/secrets,secrets")
        );
        assert_eq!(
            uncovered(&[quota(json!({"secrets": "1", "count/configmaps": "1"}))]).as_deref(),
            Some("insufficient quota to consume: count/secrets")
        );
        let both = [quota(json!({"secrets": "1"})), quota(json!({"count/secrets": "1"}))];
        assert_eq!(uncovered(&both), None);
        assert_eq!(plugin.uncovered("", "configmaps", &[]), None);
    }

    #[test]
    fn what_is_exceeded_is_told() {
        let quota = json!({"metadata": {"name": "gardener"}, "spec": {"hard": {
            "count/secrets": "3", "secrets": "2k", "count/configmaps": "0", "requests.cpu": "1"}}});
        let limits = limits(&quota, "", "secrets");
        assert_eq!(limits.len(), 2);
        assert_eq!(refusal(&quota, &limits, 2), None);
        assert_eq!(
            refusal(&quota, &limits, 3).as_deref(),
            Some(
                "exceeded quota: gardener, requested: count/secrets=1, used: count/secrets=3, limited: count/secrets=3"
            )
        );
        assert_eq!(
            refusal(&quota, &limits, 2000).as_deref(),
            Some(
                "exceeded quota: gardener, requested: count/secrets=1,secrets=1, used: count/secrets=2k,secrets=2k, limited: count/secrets=3,secrets=2k"
            )
        );
    }

    #[test]
    fn a_quota_for_some_pods_limits_no_numbers() {
        for scoped in [
            json!({"scopes": ["BestEffort"]}),
            json!({"scopeSelector": {"matchExpressions": []}}),
        ] {
            let mut quota = json!({"spec": {"hard": {"count/secrets": "1"}}});
            assert_eq!(limits(&quota, "", "secrets").len(), 1);
            gardener_merge::merge_patch(&quota.clone(), &json!({"spec": scoped}))
                .map(|scoped| quota = scoped)
                .unwrap();
            assert!(limits(&quota, "", "secrets").is_empty(), "{quota}");
        }
    }
}
