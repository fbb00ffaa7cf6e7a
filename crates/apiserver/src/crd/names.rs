//! What the server itself notes in the status of CustomResourceDefinitions: which names are accepted, that the resource is established, and
//! whether a protected group was approved. Upstream's controllers do that a moment after a write; here it is done before the write is
//! answered, so that a definition's resource is served at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::{ApiError, field};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::approval::{self, Approval};
use super::{GROUP, PLURAL, server_scope};
use crate::cluster::LogicalCluster;
use crate::definition::Lister;
use crate::registry::WriteOptions;
use crate::{meta, object};

/// All that is looked at of definitions to settle them: not their schemas, which are many and large.
const SETTLED_BY: [&str; 6] = [
    "/metadata/name",
    "/metadata/annotations",
    "/spec/group",
    "/spec/names",
    "/spec/conversion",
    "/status",
];

/// Settles the definitions of the group that the named definition belongs to, that one first.
///
/// # Errors
/// A status cannot be stored.
pub(crate) async fn settle(cluster: &Arc<LogicalCluster>, name: &str) -> Result<(), ApiError> {
    let Some((_, group)) = name.split_once('.') else {
        return Ok(());
    };
    loop {
        let entries = cluster.custom_resource_definitions(group);
        let parts = entries.iter().map(|entry| object::part_of(entry, &SETTLED_BY));
        let mut all: Vec<Arc<Value>> = parts.map(Arc::new).collect();
        all.sort_by_key(|crd| meta::name(crd) != name);
        let now = cluster.clock().now();
        let next = all
            .iter()
            .find_map(|crd| Some((meta::name(crd), next_status(crd, &all, now)?)));
        let Some((name, status)) = next else { return Ok(()) };
        write(cluster, name, &status, now).await?;
    }
}

/// Settles all definitions: what a write by another way than a name changed, or a server that ended early left behind.
///
/// # Errors
/// A status cannot be stored.
pub(crate) async fn settle_all(cluster: &Arc<LogicalCluster>) -> Result<(), ApiError> {
    let mut groups: BTreeMap<String, Vec<Arc<Value>>> = BTreeMap::new();
    for crd in cluster.list(GROUP, PLURAL, None) {
        let group = meta::text(&crd, "/spec/group").to_owned();
        groups.entry(group).or_default().push(crd);
    }
    let now = cluster.clock().now();
    for (group, all) in groups {
        if all.iter().any(|crd| next_status(crd, &all, now).is_some()) {
            settle(cluster, &format!(".{group}")).await?;
        }
    }
    Ok(())
}

async fn write(cluster: &Arc<LogicalCluster>, name: &str, status: &Value, now: Timestamp) -> Result<(), ApiError> {
    let Some(scope) = cluster
        .find(GROUP, PLURAL)
        .and_then(|definition| server_scope(cluster, definition, "status"))
    else {
        return Ok(());
    };
    let scope = scope.at("", name);
    // what is gone needs no status
    let Ok(entry) = scope.entry() else { return Ok(()) };
    let crd = with_status(&object::value_of(&entry), status.clone());
    let options = WriteOptions {
        field_manager: crate::user::KUBE_APISERVER.to_owned(),
        ..WriteOptions::default()
    };
    let context = scope.context(now, false);
    // another write that came first is looked at in the next round
    scope
        .store_by_subresource(&entry, crd, &context, &options, false)
        .await?;
    Ok(())
}

/// The status that upstream's controllers would write one after another; none when the definition is settled among `all` of its group.
fn next_status(crd: &Value, all: &[Arc<Value>], now: Timestamp) -> Option<Value> {
    let mut settled = named(crd, all, now).map(|status| with_status(crd, status));
    for rule in [established, approved] {
        let before = settled.as_ref().unwrap_or(crd);
        if let Some(status) = rule(before, now) {
            settled = Some(with_status(crd, status));
        }
    }
    settled?.get_mut("status").map(Value::take)
}

fn with_status(crd: &Value, status: Value) -> Value {
    let mut crd = crd.clone();
    if let Some(members) = crd.as_object_mut() {
        members.insert("status".into(), status);
    }
    crd
}

fn members_of<'a>(crd: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    crd.at(pointer).and_then(Value::as_object)
}

fn short_names(names: &Map<String, Value>) -> Vec<&str> {
    let list = names.get("shortNames").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

fn name<'a>(names: &'a Map<String, Value>, member: &str) -> &'a str {
    names.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// The names that definitions have accepted: of resources and of kinds.
fn taken(all: &[Arc<Value>]) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for names in all.iter().filter_map(|crd| members_of(crd, "/status/acceptedNames")) {
        resources.extend([name(names, "plural"), name(names, "singular")]);
        resources.extend(short_names(names));
        kinds.extend([name(names, "kind"), name(names, "listKind")]);
    }
    (resources, kinds)
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

/// Accepts the names that no other definition has.
fn named(crd: &Value, all: &[Arc<Value>], now: Timestamp) -> Option<Value> {
    let nothing = Map::new();
    let wanted = members_of(crd, "/spec/names")?;
    let own = members_of(crd, "/status/acceptedNames").unwrap_or(&nothing);
    if without_empty(wanted) == without_empty(own) {
        return None;
    }
    let (resources, kinds) = taken(all);
    let mut accepted = own.clone();
    let mut conflict = None;
    let mut settle = |member: &str, used: &BTreeSet<&str>, reason: &'static str| {
        let asked = name(wanted, member);
        if asked != name(own, member) && used.contains(asked) {
            conflict = Some((reason, in_use(asked)));
        } else {
            accepted.insert(member.to_owned(), asked.into());
        }
    };
    settle("plural", &resources, "PluralConflict");
    settle("singular", &resources, "SingularConflict");
    settle("kind", &kinds, "KindConflict");
    settle("listKind", &kinds, "ListKindConflict");
    let (asked, before) = (short_names(wanted), short_names(own));
    let is_used = |name: &&&str| !before.contains(*name) && resources.contains(**name);
    let used: Vec<String> = asked.iter().filter(is_used).map(|name| in_use(name)).collect();
    if used.is_empty() {
        accepted.insert("shortNames".into(), json!(asked));
    } else if conflict.as_ref().is_none_or(|(reason, _)| !reason.contains("Kind")) {
        // the last conflict is told, and kinds are looked at after short names
        conflict = Some(("ShortNamesConflict", field::aggregate(&used)));
    }
    let categories = wanted.get("categories").cloned().unwrap_or(Value::Null);
    accepted.insert("categories".into(), categories);
    let mut accepted = without_empty(&accepted);
    for member in ["plural", "kind"] {
        accepted.entry(member).or_insert_with(|| "".into());
    }
    let (fine, reason, message) = match &conflict {
        Some((reason, message)) => ("False", *reason, message.as_str()),
        None => ("True", "NoConflicts", "no conflicts found"),
    };
    let same = condition(crd, "NamesAccepted").is_some_and(|own| is_condition(own, fine, reason, message))
        && without_empty(own) == without_empty(&accepted);
    if same {
        return None;
    }
    let mut status = crd.get("status").cloned().unwrap_or_else(|| json!({}));
    if let Some(members) = status.as_object_mut() {
        members.insert("acceptedNames".into(), accepted.into());
    }
    set_condition(&mut status, "NamesAccepted", (fine, reason, message), now);
    if !is_established(crd) {
        let installing = ("False", "Installing", "the initial names have been accepted");
        let refused = ("False", "NotAccepted", "not all names are accepted");
        match (conflict.is_none(), condition(crd, "Established")) {
            (true, _) => set_condition(&mut status, "Established", installing, now),
            (false, None) => set_condition(&mut status, "Established", refused, now),
            (false, Some(_)) => {}
        }
    }
    Some(status)
}

/// Establishes a definition whose names are accepted.
fn established(crd: &Value, now: Timestamp) -> Option<Value> {
    if !is_true(crd, "NamesAccepted") || is_established(crd) {
        return None;
    }
    let bundle = crd.at("/spec/conversion/webhook/clientConfig/caBundle");
    let told = if bundle
        .and_then(Value::as_str)
        .is_some_and(|bundle| !bundle.is_empty() && !is_bundle(bundle))
    {
        ("False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
    } else {
        ("True", "InitialNamesAccepted", "the initial names have been accepted")
    };
    tell(crd, "Established", told, now)
}

/// Tells how a definition in a protected group is approved.
fn approved(crd: &Value, now: Timestamp) -> Option<Value> {
    let (approval, message) = approval::of(crd)?;
    let (status, reason) = match approval {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
    };
    tell(
        crd,
        "KubernetesAPIApprovalPolicyConformant",
        (status, reason, &message),
        now,
    )
}

/// Whether this is a bundle of certificates as webhooks have it: base64 of PEM with one at least.
fn is_bundle(text: &str) -> bool {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let Ok(pem) = STANDARD.decode(text) else { return false };
    CertificateDer::pem_slice_iter(&pem).any(|certificate| certificate.is_ok())
}

fn tell(crd: &Value, kind: &str, told: (&str, &str, &str), now: Timestamp) -> Option<Value> {
    if condition(crd, kind).is_some_and(|own| is_condition(own, told.0, told.1, told.2)) {
        return None;
    }
    let mut status = crd.get("status").cloned().unwrap_or_else(|| json!({}));
    set_condition(&mut status, kind, told, now);
    Some(status)
}

/// A definition's condition of this type.
pub(super) fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = crd.at("/status/conditions").and_then(Value::as_array)?;
    conditions
        .iter()
        .find(|condition| meta::text(condition, "/type") == kind)
}

/// Whether a definition's condition is true.
pub(super) fn is_true(crd: &Value, kind: &str) -> bool {
    condition(crd, kind).is_some_and(|condition| meta::text(condition, "/status") == "True")
}

fn is_established(crd: &Value) -> bool {
    is_true(crd, "Established")
}

fn is_condition(condition: &Value, status: &str, reason: &str, message: &str) -> bool {
    let pairs = [("/status", status), ("/reason", reason), ("/message", message)];
    pairs
        .iter()
        .all(|(pointer, text)| meta::text(condition, pointer) == *text)
}

/// Sets a condition: its status, reason and message. Its time changes with its status only.
pub(super) fn set_condition(status: &mut Value, kind: &str, told: (&str, &str, &str), now: Timestamp) {
    let Some(status) = status.as_object_mut() else { return };
    let mut conditions = match status.remove("conditions") {
        Some(Value::Array(conditions)) => conditions,
        _ => Vec::new(),
    };
    let at = conditions
        .iter()
        .position(|condition| meta::text(condition, "/type") == kind);
    let before = at.and_then(|at| conditions.get(at));
    let since = before
        .filter(|before| meta::text(before, "/status") == told.0)
        .map_or_else(
            || meta::rfc3339(now),
            |before| meta::text(before, "/lastTransitionTime").to_owned(),
        );
    let set = json!({
        "type": kind, "status": told.0, "reason": told.1, "message": told.2, "lastTransitionTime": since,
    });
    match at.and_then(|at| conditions.get_mut(at)) {
        Some(before) => *before = set,
        None => conditions.push(set),
    }
    status.insert("conditions".into(), conditions.into());
}

/// Names without those that are not said.
fn without_empty(names: &Map<String, Value>) -> Map<String, Value> {
    let said = |value: &Value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        other => !other.is_null(),
    };
    let kept = names.iter().filter(|(_, value)| said(value));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(plural: &str, names: Value) -> Value {
        json!({
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {"group": "example.com", "names": names},
            "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
        })
    }

    fn settled(crd: &Value, others: &[&Value]) -> Value {
        let all: Vec<Arc<Value>> = others
            .iter()
            .chain([&crd])
            .map(|crd| Arc::new((*crd).clone()))
            .collect();
        let now = Timestamp::from_second(0).unwrap();
        let settled = with_status(crd, next_status(crd, &all, now).unwrap());
        assert_eq!(next_status(&settled, &all, now), None, "settled once");
        settled
    }

    fn told(crd: &Value, kind: &str) -> String {
        let condition = condition(crd, kind).unwrap();
        let text = |pointer: &str| meta::text(condition, pointer);
        format!("{} {} {}", text("/status"), text("/reason"), text("/message"))
    }

    #[test]
    fn names_are_accepted_once() {
        let names = |plural: &str, kind: &str, short: &[&str]| json!({"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"), "shortNames": short});
        let first = settled(&crd("ones", names("ones", "One", &["o"])), &[]);
        assert_eq!(told(&first, "NamesAccepted"), "True NoConflicts no conflicts found");
        assert_eq!(
            told(&first, "Established"),
            "True InitialNamesAccepted the initial names have been accepted"
        );
        assert_eq!(first["status"]["acceptedNames"], first["spec"]["names"]);
        for (own, reason) in [
            (
                names("twos", "One", &[]),
                "False ListKindConflict \"OneList\" is already in use",
            ),
            (names("o", "Two", &[]), "False PluralConflict \"o\" is already in use"),
            (
                names("twos", "Two", &["o", "one"]),
                "False ShortNamesConflict [\"o\" is already in use, \"one\" is already in use]",
            ),
        ] {
            let second = settled(&crd("twos", own), &[&first]);
            assert_eq!(told(&second, "NamesAccepted"), reason);
            assert_eq!(
                told(&second, "Established"),
                "False NotAccepted not all names are accepted"
            );
        }
        // when the first is gone, the second has its names
        let waiting = settled(&crd("twos", names("twos", "One", &[])), &[&first]);
        let free = settled(&waiting, &[]);
        assert!(is_true(&free, "NamesAccepted") && is_true(&free, "Established"));
    }

    #[test]
    fn protected_groups_tell_who_approved() {
        for (annotation, expected) in [
            (
                "https://example.com/pull/1",
                "True ApprovedAnnotation approved in https://example.com/pull/1",
            ),
            (
                "unapproved, a test",
                "False UnapprovedAnnotation not approved: \"unapproved, a test\"",
            ),
        ] {
            let mut own = crd("ones", json!({"plural": "ones", "kind": "One"}));
            own["spec"]["group"] = "x.k8s.io".into();
            own["metadata"]["annotations"] = json!({approval::ANNOTATION: annotation});
            assert_eq!(
                told(&settled(&own, &[]), "KubernetesAPIApprovalPolicyConformant"),
                expected
            );
        }
    }
}
