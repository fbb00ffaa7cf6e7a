//! Workload kinds: selectors that must fit their templates, and what may not change.

use std::borrow::Cow;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_escaped};
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::selector::LabelSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as SelectorObject;
use serde_json::{Value, json};

use super::checks::{self, label_selector, list, map, nonnegative, number, one_of, spec_of, syntax, text};
use super::pods::warnings;
use super::strategy::Kind;
use super::{claims, defaults, pods};
use crate::meta;
use crate::request;
use crate::selectable::Selectable;
use crate::table::drop_annotations;

/// Most bytes of all annotations of an object.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// A selector as upstream shows it: in the order of the type's fields.
pub(super) fn selector_text(selector: &Value) -> String {
    if selector.is_null() {
        return "null".to_owned();
    }
    let mut parts = Vec::new();
    if let Some(labels) = selector.get("matchLabels") {
        parts.push(format!("\"matchLabels\":{labels}"));
    }
    if selector.get("matchExpressions").is_some() {
        let shown = list(selector, "matchExpressions").iter().map(|requirement| {
            let member = |key: &str| Value::from(text(requirement, key));
            let values = match list(requirement, "values") {
                [] => String::new(),
                values => format!(",\"values\":{}", Value::from(values.to_vec())),
            };
            format!(
                "{{\"key\":{},\"operator\":{}{values}}}",
                member("key"),
                member("operator")
            )
        });
        let shown: Vec<String> = shown.collect();
        parts.push(format!("\"matchExpressions\":[{}]", shown.join(",")));
    }
    go_escaped(format!("{{{}}}", parts.join(","))).into_owned()
}

/// Whether a selector selects labels; None when it is malformed. Without a selector nothing is selected.
pub(super) fn selects(selector: &Value, labels: &Value) -> Option<bool> {
    if selector.is_null() {
        return Some(false);
    }
    let mut wrong = Vec::new();
    label_selector(selector, &Path::root(), &mut wrong);
    if !wrong.is_empty() {
        return None;
    }
    let parsed: SelectorObject = serde_json::from_value(selector.clone()).ok()?;
    Some(LabelSelector::from(&parsed).matches(&meta::string_map(Some(labels))))
}

fn is_empty_selector(selector: &Value) -> bool {
    !selector.is_null()
        && map(selector, "matchLabels").next().is_none()
        && list(selector, "matchExpressions").is_empty()
}

fn labels_do_not_match(labels: &Value, template: &Path) -> Error {
    let why = "`selector` does not match template `labels`";
    Error::invalid(&template.child("metadata").child("labels"), labels.clone(), why)
}

/// What every template's metadata must be.
fn validate_template_metadata(template: &Value, path: &Path, errors: &mut ErrorList) {
    let none = Value::Null;
    let metadata = template.get("metadata").unwrap_or(&none);
    checks::labels(metadata, "labels", path, errors);
    let at = path.child("annotations");
    for (key, _) in map(metadata, "annotations") {
        syntax(meta::qualified_name(&key.to_lowercase()), key, &at, errors);
    }
    let bytes = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if map(metadata, "annotations").map(bytes).sum::<usize>() > ANNOTATIONS_MAX {
        errors.push(Error::too_long(&at, ANNOTATIONS_MAX));
    }
    pods::annotations::validate(template, &at, errors);
}

/// What every template must have.
pub(super) fn validate_template(template: &Value, path: &Path, errors: &mut ErrorList) {
    let none = Value::Null;
    validate_template_metadata(template, path, errors);
    let spec = template.get("spec").unwrap_or(&none);
    pods::spec::validate(spec, None, &path.child("spec"), errors);
    pods::annotations::validate_profiles(template, &path.child("spec"), false, errors);
    if !list(spec, "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.push(Error::forbidden(&path.child("spec").child("ephemeralContainers"), why));
    }
}

/// Pods that run for ever: they restart, and have no deadline.
fn validate_endless(template: &Value, kind: &str, path: &Path, errors: &mut ErrorList) {
    let at = path.child("spec");
    let spec = template.get("spec").unwrap_or(&Value::Null);
    let policy = text(spec, "restartPolicy");
    if !matches!(policy, "" | "Always") {
        errors.push(Error::not_supported(&at.child("restartPolicy"), policy, &["Always"]));
    }
    if spec.get("activeDeadlineSeconds").is_some() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(Error::forbidden(&at.child("activeDeadlineSeconds"), why));
    }
}

/// A selector and the template that it selects. `of` is the kind that messages name; `kind` that of the pods' owner.
fn validate_selected(spec: &Value, of: &str, kind: &str, errors: &mut ErrorList) {
    let none = Value::Null;
    let path = Path::new("spec");
    let at = path.child("selector");
    let selector = spec.get("selector").unwrap_or(&none);
    if selector.is_null() {
        errors.push(Error::required(&at, ""));
    } else {
        label_selector(selector, &at, errors);
        if is_empty_selector(selector) {
            let why = format!("empty selector is invalid for {of}");
            errors.push(Error::invalid(&at, selector.clone(), why));
        }
    }
    let template = spec.get("template").unwrap_or(&none);
    let labels = template.at("/metadata/labels").unwrap_or(&none);
    let place = path.child("template");
    let Some(selects) = selects(selector, labels) else {
        let why = if of == "statefulset" {
            ""
        } else {
            "invalid label selector"
        };
        errors.push(Error::literal(&at, selector_text(selector), why));
        if kind == "StatefulSet" {
            validate_endless(template, kind, &place, errors);
        }
        return;
    };
    if !selects && !is_empty_selector(selector) {
        errors.push(labels_do_not_match(labels, &place));
    }
    validate_template(template, &place, errors);
    if kind == "StatefulSet" {
        // upstream tells it twice
        validate_template_metadata(template, &place, errors);
    }
    validate_endless(template, kind, &place, errors);
}

/// A number, or a share like `25%`.
pub(super) fn amount_or_share(object: &Value, key: &str, path: &Path, errors: &mut ErrorList) {
    let at = path.child(key);
    match object.get(key) {
        Some(Value::String(share)) => {
            let digits = share.strip_suffix('%').unwrap_or_default();
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
                errors.push(Error::invalid(&at, share.as_str(), why));
            }
        }
        _ => nonnegative(object, key, path, errors),
    }
}

/// A share of no more than all.
pub(super) fn at_most_all(object: &Value, key: &str, path: &Path, errors: &mut ErrorList) {
    let share = text(object, key);
    let percent = share.strip_suffix('%').and_then(|digits| digits.parse::<u64>().ok());
    if percent.is_some_and(|percent| percent > 100) {
        let why = "must not be greater than 100%";
        errors.push(Error::invalid(&path.child(key), share, why));
    }
}

/// Whether an amount or share is none.
fn is_none(object: &Value, key: &str) -> bool {
    match object.get(key) {
        None => true,
        // what is no share is none either
        Some(Value::String(share)) => share.trim_end_matches('%').parse().unwrap_or(0) == 0,
        Some(other) => other.as_i64() == Some(0),
    }
}

/// An update strategy of an unknown type, as upstream shows it: its members with what they are when they are not set.
fn strategy_text(strategy: &Value, members: &[(&str, &str, &str)]) -> String {
    let rolling = strategy.get("rollingUpdate").map_or_else(
        || "null".to_owned(),
        |rolling| {
            let shown = members.iter().map(|(name, key, unset)| {
                let value = rolling.get(key).map_or_else(|| (*unset).to_owned(), Value::to_string);
                format!("\"{name}\":{value}")
            });
            format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
        },
    );
    format!(
        "{{\"Type\":{},\"RollingUpdate\":{rolling}}}",
        Value::from(text(strategy, "type"))
    )
}

/// How many pods may be missing or more than wanted.
const BOUNDS: [(&str, &str, &str); 2] = [("MaxUnavailable", "maxUnavailable", "0"), ("MaxSurge", "maxSurge", "0")];
/// From which pod on those of a StatefulSet are replaced, and how many at once.
const PARTITION: [(&str, &str, &str); 2] = [
    ("Partition", "partition", "0"),
    ("MaxUnavailable", "maxUnavailable", "null"),
];

/// How a Deployment replaces its pods.
fn validate_strategy(spec: &Value, errors: &mut ErrorList) {
    let none = Value::Null;
    let strategy = spec.get("strategy").unwrap_or(&none);
    let at = Path::new("spec").child("strategy");
    let path = at.child("rollingUpdate");
    match (text(strategy, "type"), strategy.get("rollingUpdate")) {
        ("Recreate", Some(_)) => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(Error::forbidden(&path, why));
        }
        ("RollingUpdate", Some(rolling)) => {
            amount_or_share(rolling, "maxUnavailable", &path, errors);
            amount_or_share(rolling, "maxSurge", &path, errors);
            if is_none(rolling, "maxSurge") && is_none(rolling, "maxUnavailable") {
                let shown = rolling.get("maxUnavailable").cloned().unwrap_or(Value::Null);
                let why = "may not be 0 when `maxSurge` is 0";
                errors.push(Error::invalid(&path.child("maxUnavailable"), shown, why));
            }
            at_most_all(rolling, "maxUnavailable", &path, errors);
        }
        ("" | "Recreate" | "RollingUpdate", _) => {}
        _ => {
            let mut error = Error::not_supported(&at, "", &["Recreate", "RollingUpdate"]);
            error.show_as(strategy_text(strategy, &BOUNDS));
            errors.push(error);
        }
    }
}

/// Numbers of a status: none is negative.
pub(super) fn counts(object: &Value, keys: &[&str], errors: &mut ErrorList) {
    let status = object.get("status").unwrap_or(&Value::Null);
    for key in keys {
        nonnegative(status, key, &Path::new("status"), errors);
    }
}

/// Numbers of a status of which none is above another; `most` as messages name it.
fn not_above(object: &Value, keys: &[&str], of: &str, most: &str, errors: &mut ErrorList) {
    let status = object.get("status").unwrap_or(&Value::Null);
    let limit = number(status, of).unwrap_or(0);
    for key in keys {
        let count = number(status, key).unwrap_or(0);
        if count > limit {
            let why = format!("cannot be greater than {most}");
            errors.push(Error::invalid(&Path::new("status").child(key), count, why));
        }
    }
}

fn not_decremented(object: &Value, old: &Value, key: &str, errors: &mut ErrorList) {
    let count = |object: &Value| object.get("status").and_then(|status| number(status, key));
    let Some(before) = count(old) else { return };
    let new = count(object);
    if new.is_none_or(|new| new < before) {
        let at = Path::new("status").child(key);
        errors.push(Error::invalid(&at, new.unwrap_or(0), "cannot be decremented"));
    }
}

fn selector_unchanged(object: &Value, old: &Value) -> ErrorList {
    let selector = |object: &Value| object.at("/spec/selector").cloned().unwrap_or(Value::Null);
    if selector(object) == selector(old) {
        return Vec::new();
    }
    vec![Error::literal(
        &Path::new("spec").child("selector"),
        selector_text(&selector(object)),
        "field is immutable",
    )]
}

pub(super) fn deployments(mut kind: Kind) -> Kind {
    kind.status_keeps = Some("labels");
    kind.left_alone = |subresource| match subresource {
        "status" => &["metadata.labels"],
        _ => &[],
    };
    kind.made_annotations = &[ROLLBACK_TO];
    kind.read_annotations = |deployment| match whole_number(deployment, ROLLBACK_TO) {
        Some((text, Err(why))) if !text.is_empty() => Err(format!(
            "failed to parse annotation[{ROLLBACK_TO}]={text} as int64: {why}"
        )),
        _ => Ok(()),
    };
    kind.default = |deployment| {
        defaults::deployment(deployment);
        rewrite_rollback(deployment);
    };
    kind.warnings = warnings::of_workload;
    kind.validate = |object| {
        let mut errors = Vec::new();
        let (spec, path) = (spec_of(object), Path::new("spec"));
        nonnegative(spec, "replicas", &path, &mut errors);
        validate_selected(spec, "deployment", "ReplicaSet", &mut errors);
        validate_strategy(spec, &mut errors);
        for key in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
            nonnegative(spec, key, &path, &mut errors);
        }
        let deadline = number(spec, "progressDeadlineSeconds");
        if let Some(deadline) = deadline.filter(|own| *own <= number(spec, "minReadySeconds").unwrap_or(0)) {
            let why = "must be greater than minReadySeconds";
            errors.push(Error::invalid(&path.child("progressDeadlineSeconds"), deadline, why));
        }
        errors
    };
    kind.prepare_update = |_, object, old| {
        // annotations go to the replica sets: their change is one of what is wanted
        let annotations = |object: &Value| object.at("/metadata/annotations").cloned();
        if annotations(object) != annotations(old) && object.get("spec") == old.get("spec") {
            let generation = old.at("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
            meta::set(object, "generation", Some(json!(generation + 1)));
        }
        Ok(())
    };
    kind.validate_update = selector_unchanged;
    kind.status_alone = true;
    kind.validate_status = |object, old| {
        let mut errors = Vec::new();
        let keys = [
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ];
        counts(object, &keys, &mut errors);
        let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
        not_above(object, &parts, "replicas", "status.replicas", &mut errors);
        not_above(
            object,
            &["availableReplicas"],
            "readyReplicas",
            "readyReplicas",
            &mut errors,
        );
        not_decremented(object, old, "collisionCount", &mut errors);
        errors
    };
    kind.whole_first = true;
    kind
}

fn replicas_status(object: &Value, _: &Value) -> ErrorList {
    let mut errors = Vec::new();
    let keys = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    counts(object, &keys, &mut errors);
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    not_above(object, &parts, "replicas", "status.replicas", &mut errors);
    not_above(
        object,
        &["availableReplicas"],
        "readyReplicas",
        "readyReplicas",
        &mut errors,
    );
    errors
}

pub(super) fn replica_sets(mut kind: Kind) -> Kind {
    kind.warnings = warnings::of_workload;
    kind.status_alone = true;
    kind.validate_status = replicas_status;
    kind.validate = |object| {
        let mut errors = Vec::new();
        let (spec, path) = (spec_of(object), Path::new("spec"));
        nonnegative(spec, "replicas", &path, &mut errors);
        nonnegative(spec, "minReadySeconds", &path, &mut errors);
        validate_selected(spec, "deployment", "ReplicaSet", &mut errors);
        errors
    };
    kind.validate_update = selector_unchanged;
    kind.whole_first = true;
    kind
}

pub(super) fn replication_controllers(mut kind: Kind) -> Kind {
    kind.warnings = |object, old| match old {
        // upstream looks at what was
        Some(old) => warnings::of_workload(old, Some(object)),
        None => warnings::of_workload(object, None),
    };
    kind.status_alone = true;
    kind.validate_status = replicas_status;
    kind.fields = const { &[Selectable::number("status.replicas", "/status/replicas")] };
    kind.validate = |object| {
        let mut errors = Vec::new();
        let (spec, path) = (spec_of(object), Path::new("spec"));
        nonnegative(spec, "minReadySeconds", &path, &mut errors);
        if map(spec, "selector").next().is_none() {
            errors.push(Error::required(&path.child("selector"), ""));
        }
        nonnegative(spec, "replicas", &path, &mut errors);
        let place = path.child("template");
        let Some(template) = spec.get("template") else {
            errors.push(Error::required(&place, ""));
            return errors;
        };
        let labels = template.at("/metadata/labels").unwrap_or(&Value::Null);
        let is_selected = map(spec, "selector").all(|(key, value)| labels.get(key) == Some(value));
        if !is_selected {
            errors.push(labels_do_not_match(labels, &place));
        }
        validate_template(template, &place, &mut errors);
        validate_endless(template, "ReplicationController", &place, &mut errors);
        errors
    };
    kind
}

/// The spec of a StatefulSet as its pods will have it: with volumes of its claims in place of those of the same names, and without the host's
/// name and domain, which each pod gets its own of.
fn with_claims(spec: &Value) -> Cow<'_, Value> {
    let claims = list(spec, "volumeClaimTemplates");
    let pod = spec.at("/template/spec").unwrap_or(&Value::Null);
    if claims.is_empty() && pod.get("hostname").is_none() && pod.get("subdomain").is_none() {
        return Cow::Borrowed(spec);
    }
    let mut spec = spec.clone();
    let mut names: Vec<&str> = Vec::new();
    for name in claims.iter().map(meta::name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if let Some(pod) = spec.at_mut("/template/spec").and_then(Value::as_object_mut) {
        pod.remove("hostname");
        pod.remove("subdomain");
        let own = pod.remove("volumes").unwrap_or(Value::Null);
        let own = own.as_array().into_iter().flatten();
        let others = own
            .filter(|volume| !names.contains(&meta::text(volume, "/name")))
            .cloned();
        let volume = |name: &&str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        let volumes: Vec<Value> = names.iter().map(volume).chain(others).collect();
        if !volumes.is_empty() {
            pod.insert("volumes".to_owned(), volumes.into());
        }
    }
    Cow::Owned(spec)
}

pub(super) fn stateful_sets(mut kind: Kind) -> Kind {
    kind.name = meta::dns1123_label;
    kind.warnings = |object, old| {
        let (spec, path) = (spec_of(object), Path::new("spec"));
        let mut found = Vec::new();
        if old.is_none_or(|old| spec_of(old) != spec) {
            warnings::of_template(spec.get("template"), &path.child("template"), &mut found);
        }
        for (index, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
            let at = path.child("volumeClaimTemplates").index(index);
            let at = if old.is_some() { at.child("Spec") } else { at };
            claims::warn_of_fractions(spec_of(claim), &at, &mut found);
        }
        if number(spec, "revisionHistoryLimit").is_some_and(|limit| limit < 0) {
            let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
            found.push(format!("spec.revisionHistoryLimit: {why}"));
        }
        found
    };
    kind.validate_create = |object| validate_stateful_set(object, true);
    kind.status_alone = true;
    kind.validate_status = |object, old| {
        let mut errors = Vec::new();
        let parts = [
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
        ];
        counts(object, &["replicas"], &mut errors);
        counts(object, &parts, &mut errors);
        counts(object, &["observedGeneration", "collisionCount"], &mut errors);
        not_above(object, &parts, "replicas", "status.replicas", &mut errors);
        not_above(
            object,
            &["availableReplicas"],
            "readyReplicas",
            "status.readyReplicas",
            &mut errors,
        );
        not_decremented(object, old, "collisionCount", &mut errors);
        errors
    };
    kind.validate_update = |object, old| {
        let reduced = |object: &Value| {
            let mut spec = object.get("spec").cloned().unwrap_or(Value::Null);
            if let Some(spec) = spec.as_object_mut() {
                for key in [
                    "replicas",
                    "ordinals",
                    "template",
                    "updateStrategy",
                    "revisionHistoryLimit",
                    "persistentVolumeClaimRetentionPolicy",
                    "minReadySeconds",
                ] {
                    spec.remove(key);
                }
            }
            spec
        };
        let mut errors = validate_stateful_set(object, false);
        if reduced(object) != reduced(old) {
            let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
            errors.push(Error::forbidden(&Path::new("spec"), why));
        }
        errors
    };
    kind.prepare_create = |_, set| {
        set_status(set, json!({"replicas": 0, "availableReplicas": 0}));
        Ok(())
    };
    kind.drop_disabled = drop_max_unavailable;
    kind
}

/// Updates of several pods at once are off, as upstream has them.
fn drop_max_unavailable(set: &mut Value, old: Option<&Value>) {
    const ROLLING: &str = "/spec/updateStrategy/rollingUpdate";
    let is_used = |set: &Value| {
        set.at(ROLLING)
            .is_some_and(|rolling| rolling.get("maxUnavailable").is_some())
    };
    if !old.is_some_and(is_used)
        && let Some(rolling) = set.at_mut(ROLLING).and_then(Value::as_object_mut)
    {
        rolling.remove("maxUnavailable");
    }
}

/// What a StatefulSet must have. What never changes is looked at in new ones only.
fn validate_stateful_set(object: &Value, is_new: bool) -> ErrorList {
    let mut errors = Vec::new();
    let (spec, path) = (spec_of(object), Path::new("spec"));
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "" | "OrderedReady" | "Parallel") {
        let why = "must be 'OrderedReady' or 'Parallel'";
        errors.push(Error::invalid(&path.child("podManagementPolicy"), policy, why));
    }
    validate_set_strategy(spec, &path.child("updateStrategy"), &mut errors);
    let none = Value::Null;
    let retention = spec.get("persistentVolumeClaimRetentionPolicy").unwrap_or(&none);
    for key in ["whenDeleted", "whenScaled"] {
        let at = path.child("persistentVolumeClaimRetentionPolicy");
        one_of(retention, key, &["Retain", "Delete"], &at, &mut errors);
    }
    let claims = list(spec, "volumeClaimTemplates").iter().filter(|_| is_new);
    for (index, claim) in claims.enumerate() {
        let at = path.child("volumeClaimTemplates").index(index).child("spec");
        claims::validate_spec(claim.get("spec").unwrap_or(&none), &at, &mut errors);
    }
    nonnegative(spec, "replicas", &path, &mut errors);
    nonnegative(spec, "minReadySeconds", &path, &mut errors);
    if let Some(ordinals) = spec.get("ordinals") {
        nonnegative(ordinals, "start", &path.child("ordinals"), &mut errors);
    }
    let service = text(spec, "serviceName");
    if is_new && !service.is_empty() {
        syntax(
            meta::dns1123_label(service),
            service,
            &path.child("serviceName"),
            &mut errors,
        );
    }
    validate_selected(&with_claims(spec), "statefulset", "StatefulSet", &mut errors);
    errors
}

/// How a StatefulSet replaces its pods.
fn validate_set_strategy(spec: &Value, at: &Path, errors: &mut ErrorList) {
    let none = Value::Null;
    let strategy = spec.get("updateStrategy").unwrap_or(&none);
    let rolling = strategy.get("rollingUpdate");
    match (text(strategy, "type"), rolling) {
        ("OnDelete", Some(rolling)) => {
            let part = |key: &str| rolling.get(key).unwrap_or(&none);
            let shown = format!(
                "{{\"Partition\":{},\"MaxUnavailable\":{}}}",
                part("partition").as_i64().unwrap_or(0),
                part("maxUnavailable")
            );
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(Error::literal(&at.child("rollingUpdate"), shown, why));
        }
        ("RollingUpdate", Some(rolling)) => {
            let path = at.child("rollingUpdate");
            nonnegative(rolling, "partition", &path, errors);
            amount_or_share(rolling, "maxUnavailable", &path, errors);
            at_most_all(rolling, "maxUnavailable", &path, errors);
        }
        ("" | "OnDelete" | "RollingUpdate", _) => {}
        _ => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(Error::literal(at, strategy_text(strategy, &PARTITION), why));
        }
    }
}

pub(super) fn set_status(object: &mut Value, status: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert("status".into(), status);
    }
}

pub(super) fn daemon_sets(mut kind: Kind) -> Kind {
    kind.made_annotations = &[TEMPLATE_GENERATION];
    kind.read_annotations = |set| whole_number(set, TEMPLATE_GENERATION).map_or(Ok(()), |(_, read)| read.map(drop));
    kind.warnings = |object, old| {
        let mut found = Vec::new();
        if old.is_none_or(|old| old.at("/spec/template") != object.at("/spec/template")) {
            let path = Path::new("spec").child("template");
            warnings::of_template(spec_of(object).get("template"), &path, &mut found);
        }
        found
    };
    kind.validate = |object| {
        let mut errors = Vec::new();
        let none = Value::Null;
        let (spec, path) = (spec_of(object), Path::new("spec"));
        let selector = spec.get("selector").unwrap_or(&none);
        let template = spec.get("template").unwrap_or(&none);
        let place = path.child("template");
        label_selector(selector, &path.child("selector"), &mut errors);
        let labels = template.at("/metadata/labels").unwrap_or(&none);
        if selects(selector, labels) == Some(false) {
            errors.push(labels_do_not_match(labels, &place));
        }
        if is_empty_selector(selector) {
            let why = "empty selector is invalid for daemonset";
            errors.push(Error::invalid(&path.child("selector"), selector.clone(), why));
        }
        validate_template(template, &place, &mut errors);
        validate_endless(template, "DaemonSet", &place, &mut errors);
        nonnegative(spec, "minReadySeconds", &path, &mut errors);
        validate_daemon_strategy(spec, &path.child("updateStrategy"), &mut errors);
        nonnegative(spec, "revisionHistoryLimit", &path, &mut errors);
        errors
    };
    kind.default = |set| {
        defaults::daemon_set(set);
        // whoever writes it owns it, though the server decides it
        let annotations = set.at("/metadata/annotations");
        if annotations.and_then(|own| own.get(TEMPLATE_GENERATION)).is_none() {
            set_template_generation(set, 0);
        }
    };
    kind.validate_update = selector_unchanged;
    kind.status_alone = true;
    kind.validate_status = |object, old| {
        let mut errors = Vec::new();
        let keys = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ];
        counts(object, &keys, &mut errors);
        not_decremented(object, old, "collisionCount", &mut errors);
        errors
    };
    kind.prepare_create = |_, set| {
        set_status(
            set,
            json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}),
        );
        set_template_generation(set, template_generation(set).max(1));
        Ok(())
    };
    // the annotation stands for a field of the specification
    kind.prepare_status = |_, set, old| set_template_generation(set, template_generation(old));
    kind.prepare_update = |_, set, old| {
        let generation = template_generation(old);
        let changed = set.at("/spec/template") != old.at("/spec/template");
        set_template_generation(set, if changed { generation + 1 } else { generation });
        Ok(())
    };
    kind
}

/// How a DaemonSet replaces its pods.
fn validate_daemon_strategy(spec: &Value, at: &Path, errors: &mut ErrorList) {
    let none = Value::Null;
    let strategy = spec.get("updateStrategy").unwrap_or(&none);
    match (text(strategy, "type"), strategy.get("rollingUpdate")) {
        ("RollingUpdate", Some(rolling)) => {
            let path = at.child("rollingUpdate");
            let keys = ["maxUnavailable", "maxSurge"];
            keys.iter().for_each(|key| amount_or_share(rolling, key, &path, errors));
            keys.iter().for_each(|key| at_most_all(rolling, key, &path, errors));
            match (is_none(rolling, "maxUnavailable"), is_none(rolling, "maxSurge")) {
                (true, true) => {
                    let why = "cannot be 0 when maxSurge is 0";
                    errors.push(Error::required(&path.child("maxUnavailable"), why));
                }
                (false, false) => {
                    let shown = rolling.get("maxSurge").cloned().unwrap_or(Value::Null);
                    let why = "may not be set when maxUnavailable is non-zero";
                    errors.push(Error::invalid(&path.child("maxSurge"), shown, why));
                }
                _ => {}
            }
        }
        ("" | "OnDelete" | "RollingUpdate", _) => {}
        _ => {
            let mut error = Error::not_supported(at, "", &["RollingUpdate", "OnDelete"]);
            error.show_as(strategy_text(strategy, &BOUNDS));
            errors.push(error);
        }
    }
}

/// To which revision a Deployment of an older version was to go back.
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

/// Writes the revision to go back to as upstream writes the field that it makes of it: one that is empty is none.
fn rewrite_rollback(deployment: &mut Value) {
    let Some((text, number)) = whole_number(deployment, ROLLBACK_TO) else {
        return;
    };
    let is_empty = text.is_empty();
    let metadata = deployment.get_mut("metadata");
    match (number, metadata) {
        (Ok(number), Some(metadata)) => {
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.insert(ROLLBACK_TO.to_owned(), number.to_string().into());
            }
        }
        (Err(_), Some(metadata)) if is_empty => drop_annotations(metadata, &[ROLLBACK_TO]),
        _ => {}
    }
}

/// How often a DaemonSet's template changed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// An annotation's text, and the number that it tells, or what Go says of one that tells none.
fn whole_number<'o>(object: &'o Value, annotation: &str) -> Option<(&'o str, Result<i64, String>)> {
    let text = object.at("/metadata/annotations")?.get(annotation)?.as_str()?;
    let number = request::integer(text).map_err(|error| error.message().to_owned());
    Some((text, number))
}

fn template_generation(set: &Value) -> i64 {
    let told = whole_number(set, TEMPLATE_GENERATION);
    told.and_then(|(_, number)| number.ok()).unwrap_or(1)
}

fn set_template_generation(set: &mut Value, generation: i64) {
    let annotations = meta::metadata_mut(set)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(TEMPLATE_GENERATION.into(), generation.to_string().into());
    }
}

/// Templates of pods on their own.
pub(super) fn pod_templates(mut kind: Kind) -> Kind {
    kind.warnings = |object, old| {
        let mut found = Vec::new();
        if old.is_none_or(|old| old.get("template") != object.get("template")) {
            warnings::of_template(object.get("template"), &Path::new("template"), &mut found);
        }
        found
    };
    kind.validate = |object| {
        let mut errors = Vec::new();
        let none = Value::Null;
        validate_template(
            object.get("template").unwrap_or(&none),
            &Path::new("template"),
            &mut errors,
        );
        errors
    };
    kind
}

/// What controllers remember of former templates.
pub(super) fn revisions(mut kind: Kind) -> Kind {
    kind.validate_create = |object| {
        let mut errors = Vec::new();
        nonnegative(object, "revision", &Path::root(), &mut errors);
        let why = match object.get("data") {
            None | Some(Value::Null) => "data is mandatory",
            Some(Value::Object(_)) => return errors,
            Some(_) => "data must be a valid JSON object",
        };
        errors.push(Error::required(&Path::new("data"), why));
        errors
    };
    kind.validate_update = |object, old| {
        let mut errors = Vec::new();
        nonnegative(object, "revision", &Path::root(), &mut errors);
        let data = |object: &Value| object.get("data").cloned().unwrap_or(Value::Null);
        if data(object) != data(old) {
            errors.push(Error::invalid(&Path::new("data"), data(object), "field is immutable"));
        }
        errors
    };
    kind
}
