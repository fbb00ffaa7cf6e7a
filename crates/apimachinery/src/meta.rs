//! Checks on `metadata` that all kinds share: names, labels, annotations, finalizers.

use crate::type_meta::is_no_group_version;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference,
};

use serde_json::Value;

use crate::field::{Error, ErrorList, Path};
use crate::names;

/// The most bytes that keys and values of all annotations may have together.
pub const ANNOTATIONS_MAX: usize = 256 * 1024;

/// True and false in the spellings of Go's `strconv.ParseBool`.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Whether a text is one of Go's spellings of true: what annotations and labels are asked by.
pub fn is_true(text: &str) -> bool {
    parse_bool(text) == Some(true)
}

/// A kind as Go prints a `GroupVersionKind`, which some messages show: `apps/v1, Kind=Deployment`, and `/v1, Kind=Pod` in the core group.
pub fn go_kind(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Checks the metadata of an object to be created or updated. `name_errors` says what is wrong with a name.
pub fn validate_object_meta(
    meta: &ObjectMeta,
    namespaced: bool,
    name_errors: impl Fn(&str) -> Vec<String>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let generate_name = meta.generate_name.as_deref().unwrap_or_default();
    if !generate_name.is_empty() {
        // What follows the prefix is alphanumeric, so a trailing dash or dot is fine.
        let probe = format!("{generate_name}x");
        errors.extend(
            name_errors(&probe)
                .into_iter()
                .map(|detail| Error::invalid(&path.child("generateName"), generate_name, detail)),
        );
    }
    match meta.name.as_deref().unwrap_or_default() {
        "" => errors.push(Error::required(&path.child("name"), "name or generateName is required")),
        name => errors.extend(
            name_errors(name)
                .into_iter()
                .map(|detail| Error::invalid(&path.child("name"), name, detail)),
        ),
    }
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(Error::required(&path.child("namespace"), "")),
        (true, false) => errors.extend(
            names::dns_label(namespace)
                .into_iter()
                .map(|detail| Error::invalid(&path.child("namespace"), namespace, detail)),
        ),
        (false, false) => errors.push(Error::forbidden(&path.child("namespace"), "not allowed on this type")),
        (false, true) => {}
    }
    if meta.generation.unwrap_or_default() < 0 {
        errors.push(Error::invalid(
            &path.child("generation"),
            meta.generation.unwrap_or_default(),
            "must be greater than or equal to 0",
        ));
    }
    errors.extend(validate_labels(meta.labels.iter().flatten(), &path.child("labels")));
    errors.extend(validate_annotations(
        meta.annotations.iter().flatten(),
        &path.child("annotations"),
    ));
    errors.extend(validate_owners(
        meta.owner_references.as_deref().unwrap_or_default(),
        &path.child("ownerReferences"),
    ));
    errors.extend(validate_finalizers(
        meta.finalizers.as_deref().unwrap_or_default(),
        &path.child("finalizers"),
    ));
    errors
}

/// Checks what an update may not do to metadata: add finalizers to an object in deletion, lower the generation, rename.
pub fn validate_object_meta_update(new: &ObjectMeta, old: &ObjectMeta, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.deletion_timestamp.is_some() {
        let before: Vec<&String> = old.finalizers.iter().flatten().collect();
        // a set, as upstream tells it
        let added: BTreeSet<String> = new
            .finalizers
            .iter()
            .flatten()
            .filter(|finalizer| !before.contains(finalizer))
            .map(|finalizer| crate::field::go_quote(finalizer))
            .collect();
        if !added.is_empty() {
            errors.push(Error::forbidden(
                &path.child("finalizers"),
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    added.into_iter().collect::<Vec<_>>().join(", ")
                ),
            ));
        }
    }
    if new.generation.unwrap_or_default() < old.generation.unwrap_or_default() {
        errors.push(Error::invalid(
            &path.child("generation"),
            new.generation.unwrap_or_default(),
            "must not be decremented",
        ));
    }
    for (name, new, old) in [
        ("name", &new.name, &old.name),
        ("namespace", &new.namespace, &old.namespace),
        ("uid", &new.uid, &old.uid),
    ] {
        if new != old {
            errors.push(Error::invalid(
                &path.child(name),
                new.as_deref().unwrap_or_default(),
                "field is immutable",
            ));
        }
    }
    let deletions = |of: &ObjectMeta| {
        let since = of.deletion_timestamp.as_ref();
        let since = since.and_then(|time| serde_json::to_value(time).ok());
        [since, of.deletion_grace_period_seconds.map(Value::from)]
    };
    let deletions = deletions(new).into_iter().zip(deletions(old));
    for (name, (new, old)) in ["deletionTimestamp", "deletionGracePeriodSeconds"]
        .iter()
        .zip(deletions)
    {
        if new != old {
            let new = new.unwrap_or_default();
            errors.push(Error::invalid(&path.child(name), new, "field is immutable"));
        }
    }
    errors.extend(validate_labels(new.labels.iter().flatten(), &path.child("labels")));
    errors.extend(validate_annotations(
        new.annotations.iter().flatten(),
        &path.child("annotations"),
    ));
    errors.extend(validate_owners(
        new.owner_references.as_deref().unwrap_or_default(),
        &path.child("ownerReferences"),
    ));
    errors
}

/// Checks whom an object belongs to: owners are named whole, and one of them at most controls it.
pub fn validate_owners(owners: &[OwnerReference], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut controller: Option<String> = None;
    for owner in owners {
        let (api_version, kind) = (owner.api_version.as_str(), owner.kind.as_str());
        let version = if is_no_group_version(api_version) {
            ""
        } else {
            api_version
        };
        for (key, value, shown, why) in [
            ("apiVersion", version, api_version, "version must not be empty"),
            ("kind", kind, kind, "must not be empty"),
            ("name", &owner.name, &owner.name, "must not be empty"),
            ("uid", &owner.uid, &owner.uid, "must not be empty"),
        ] {
            if value.is_empty() {
                errors.push(Error::invalid(&path.child(key), shown, why));
            }
        }
        if (api_version, kind) == ("v1", "Event") {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(Error::literal(path, owner_text(owner), why));
        }
        if owner.controller == Some(true) {
            let own = format!("{kind}/{}", owner.name);
            match &controller {
                None => controller = Some(own),
                Some(first) => {
                    let all: Vec<String> = owners.iter().map(owner_text).collect();
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {own}"
                    );
                    errors.push(Error::literal(path, format!("[{}]", all.join(",")), why));
                }
            }
        }
    }
    errors
}

/// An owner as Go writes it: in the order of the type's fields.
fn owner_text(owner: &OwnerReference) -> String {
    let mut parts: Vec<String> = [
        ("apiVersion", &owner.api_version),
        ("kind", &owner.kind),
        ("name", &owner.name),
        ("uid", &owner.uid),
    ]
    .map(|(key, value)| format!("\"{key}\":{}", Value::from(value.as_str())))
    .into();
    let optional = [
        ("controller", owner.controller),
        ("blockOwnerDeletion", owner.block_owner_deletion),
    ];
    parts.extend(
        optional
            .into_iter()
            .filter_map(|(key, value)| Some(format!("\"{key}\":{}", value?))),
    );
    format!("{{{}}}", parts.join(","))
}

/// Checks the names of finalizers, and that not both ways to treat dependents are asked for.
pub fn validate_finalizers(finalizers: &[String], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for finalizer in finalizers {
        let wrong = names::qualified_name(finalizer).into_iter();
        errors.extend(wrong.map(|detail| Error::invalid(path, finalizer.as_str(), detail)));
    }
    if ["orphan", "foregroundDeletion"]
        .iter()
        .all(|name| finalizers.iter().any(|own| own == name))
    {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(Error::invalid(path, finalizers, why));
    }
    errors
}

/// Checks keys and values of labels; findings stand at `path` itself.
pub fn validate_labels<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in labels {
        errors.extend(
            names::qualified_name(key)
                .into_iter()
                .map(|detail| Error::invalid(path, key.as_str(), detail)),
        );
        errors.extend(
            names::label_value(value)
                .into_iter()
                .map(|detail| Error::invalid(path, value.as_str(), detail)),
        );
    }
    errors
}

/// Checks keys and the whole size of annotations.
pub fn validate_annotations<'a>(
    annotations: impl IntoIterator<Item = (&'a String, &'a String)>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut size = 0;
    for (key, value) in annotations {
        size += key.len() + value.len();
        errors.extend(
            names::qualified_name(&key.to_lowercase())
                .into_iter()
                .map(|detail| Error::invalid(path, key.as_str(), detail)),
        );
    }
    if size > ANNOTATIONS_MAX {
        errors.push(Error::too_long(path, ANNOTATIONS_MAX));
    }
    errors
}

/// Checks a label selector: keys, operators and their number of values.
pub fn validate_label_selector(selector: &LabelSelector, path: &Path) -> ErrorList {
    let empty = BTreeMap::new();
    validate_selector_parts(
        selector.match_labels.as_ref().unwrap_or(&empty),
        selector.match_expressions.as_deref().unwrap_or_default(),
        path,
    )
}

/// Checks the two parts of a label selector that is part of another type.
pub fn validate_selector_parts(
    match_labels: &BTreeMap<String, String>,
    match_expressions: &[LabelSelectorRequirement],
    path: &Path,
) -> ErrorList {
    let mut errors = validate_labels(match_labels, &path.child("matchLabels"));
    for (i, requirement) in match_expressions.iter().enumerate() {
        let path = path.child("matchExpressions").index(i);
        let values = requirement.values.as_deref().unwrap_or_default();
        match requirement.operator.as_str() {
            "In" | "NotIn" => {
                if values.is_empty() {
                    errors.push(Error::required(
                        &path.child("values"),
                        "must be specified when `operator` is 'In' or 'NotIn'",
                    ));
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    errors.push(Error::forbidden(
                        &path.child("values"),
                        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                    ));
                }
            }
            other => errors.push(Error::invalid(
                &path.child("operator"),
                other,
                "not a valid selector operator",
            )),
        }
        let key = requirement.key.as_str();
        errors.extend(
            names::qualified_name(key)
                .into_iter()
                .map(|detail| Error::invalid(&path.child("key"), key, detail)),
        );
        for (j, value) in values.iter().enumerate() {
            let path = path.child("values").index(j);
            errors.extend(
                names::label_value(value)
                    .into_iter()
                    .map(|detail| Error::invalid(&path, value.as_str(), detail)),
            );
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(errors: &[Error]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_name_and_a_namespace_are_needed() {
        let meta = ObjectMeta::default();
        assert_eq!(
            texts(&validate_object_meta(
                &meta,
                true,
                names::dns_subdomain,
                &Path::new("metadata")
            )),
            [
                "metadata.name: Required value: name or generateName is required",
                "metadata.namespace: Required value"
            ]
        );
        let meta = ObjectMeta {
            name: Some("a".into()),
            namespace: Some("b".into()),
            ..ObjectMeta::default()
        };
        assert_eq!(
            texts(&validate_object_meta(
                &meta,
                false,
                names::dns_subdomain,
                &Path::new("metadata")
            )),
            ["metadata.namespace: Forbidden: not allowed on this type"]
        );
    }

    #[test]
    fn finalizers_are_not_added_in_deletion() {
        use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
        let old = ObjectMeta {
            name: Some("a".into()),
            finalizers: Some(vec!["x".into()]),
            deletion_timestamp: Some(Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        };
        let mut new = old.clone();
        new.finalizers = Some(vec!["z".into(), "x".into(), "y".into()]);
        assert_eq!(
            texts(&validate_object_meta_update(&new, &old, &Path::new("metadata"))),
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"y\", \"z\"}"
            ]
        );
        new.finalizers = None;
        assert!(validate_object_meta_update(&new, &old, &Path::new("metadata")).is_empty());
    }

    #[test]
    fn owners_are_named_whole_and_one_controls() {
        let owners = |owners: serde_json::Value| {
            let owners: Vec<OwnerReference> = serde_json::from_value(owners).unwrap();
            texts(&validate_owners(&owners, &Path::new("metadata.ownerReferences")))
        };
        let at = "metadata.ownerReferences";
        assert_eq!(
            owners(serde_json::json!([{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"}, {"kind": "B"}])),
            [
                format!("{at}.apiVersion: Invalid value: \"\": version must not be empty"),
                format!("{at}.name: Invalid value: \"\": must not be empty"),
                format!("{at}.uid: Invalid value: \"\": must not be empty"),
            ]
        );
        let controls = |name: &str| serde_json::json!({"apiVersion": "v1", "kind": "A", "name": name, "uid": "u", "controller": true});
        let shown = |name: &str| {
            format!("{{\"apiVersion\":\"v1\",\"kind\":\"A\",\"name\":\"{name}\",\"uid\":\"u\",\"controller\":true}}")
        };
        assert_eq!(
            owners(serde_json::json!([controls("a"), controls("b")])),
            [format!(
                "{at}: Invalid value: [{},{}]: Only one reference can have Controller set to true. Found \"true\" in references for A/a and A/b",
                shown("a"),
                shown("b")
            )]
        );
        assert_eq!(
            owners(serde_json::json!([{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"}])),
            [format!(
                "{at}: Invalid value: {{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"a\",\"uid\":\"u\"}}: /v1, Kind=Event is disallowed from being an owner"
            )]
        );
        let both = ["orphan", "foregroundDeletion"].map(str::to_owned);
        assert_eq!(
            texts(&validate_finalizers(&both, &Path::new("metadata.finalizers"))),
            [
                "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set"
            ]
        );
    }

    #[test]
    fn selectors() {
        let selector: LabelSelector = serde_json::from_value(serde_json::json!({
            "matchExpressions": [{"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["x"]}, {"key": "a", "operator": "Near"}]
        }))
        .unwrap();
        assert_eq!(validate_label_selector(&selector, &Path::new("spec.selector")).len(), 3);
    }
}
