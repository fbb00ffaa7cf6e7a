//! Events: one set of objects behind two APIs, which live for an hour.

use std::time::Duration;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::{Map, Value, json};

use super::checks::{number, text};
use super::internal;
use super::strategy::Kind;
use crate::meta;
use crate::selectable::Selectable;

/// How long an event lives after it was last written.
pub const EVENT_TIME_TO_LIVE: Duration = Duration::from_secs(3600);

/// `v1`, the form in which events are stored.
pub(super) fn core_kind(mut kind: Kind) -> Kind {
    kind.whole_first = true;
    kind.time_to_live = Some(EVENT_TIME_TO_LIVE);
    kind.create_on_update = true;
    kind.default = |event| {
        if let Some(members) = event.as_object_mut() {
            members.entry("source").or_insert_with(|| json!({}));
            for key in ["firstTimestamp", "lastTimestamp", "eventTime"] {
                members.entry(key).or_insert(Value::Null);
            }
            for key in ["reportingComponent", "reportingInstance"] {
                members.entry(key).or_insert_with(|| json!(""));
            }
        }
    };
    // what may not change of others may change of events
    kind.validate = |event| validate_sense(event, &CORE);
    kind.name = meta::path_segment;
    kind.metadata_last = true;
    kind.fields = CORE_FIELDS;
    kind.other_fields = NEW_FIELDS;
    kind
}

/// What events of the core are selected by.
const CORE_FIELDS: &[Selectable] = &[
    Selectable::text("involvedObject.kind", "/involvedObject/kind"),
    Selectable::text("involvedObject.namespace", "/involvedObject/namespace"),
    Selectable::text("involvedObject.name", "/involvedObject/name"),
    Selectable::text("involvedObject.uid", "/involvedObject/uid"),
    Selectable::text("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    Selectable::text("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
    Selectable::text("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    Selectable::text("reason", "/reason"),
    Selectable::text("type", "/type"),
    Selectable::text("source", "/source/component"),
    Selectable::text("reportingComponent", "/reportingComponent"),
];

/// What those of `events.k8s.io` are selected by. Selectors see stored events, which are in the core form.
const NEW_FIELDS: &[Selectable] = &[
    Selectable::either("regarding.kind", "/regarding/kind", "/involvedObject/kind"),
    Selectable::either(
        "regarding.namespace",
        "/regarding/namespace",
        "/involvedObject/namespace",
    ),
    Selectable::either("regarding.name", "/regarding/name", "/involvedObject/name"),
    Selectable::either("regarding.uid", "/regarding/uid", "/involvedObject/uid"),
    Selectable::either(
        "regarding.apiVersion",
        "/regarding/apiVersion",
        "/involvedObject/apiVersion",
    ),
    Selectable::either(
        "regarding.resourceVersion",
        "/regarding/resourceVersion",
        "/involvedObject/resourceVersion",
    ),
    Selectable::either(
        "regarding.fieldPath",
        "/regarding/fieldPath",
        "/involvedObject/fieldPath",
    ),
    Selectable::text("reason", "/reason"),
    Selectable::text("type", "/type"),
    Selectable::either("reportingController", "/reportingController", "/reportingComponent"),
];

/// `events.k8s.io/v1`: other names for the same fields.
pub(super) fn kind(kind: Kind) -> Kind {
    let mut kind = core_kind(kind);
    kind.name = meta::dns1123_subdomain;
    kind.metadata_last = false;
    kind.before_metadata = |_, event| validate_sense(event, &NEW);
    kind.before_change = |event| validate_sense(event, &NEW);
    kind.validate = |_| ErrorList::new();
    kind.validate_create = validate_news;
    kind.validate_update = validate_same;
    kind.default = |event| {
        if let Some(members) = event.as_object_mut() {
            members.entry("deprecatedSource").or_insert_with(|| json!({}));
        }
    };
    kind.fields = NEW_FIELDS;
    kind.other_fields = CORE_FIELDS;
    kind.convert = |event, _, _| {
        rename(event);
        Ok::<(), ApiError>(())
    };
    kind
}

/// Where one of both forms has what is judged.
struct Names {
    about: &'static str,
    controller: &'static str,
    message: &'static str,
}

const CORE: Names = Names {
    about: "involvedObject",
    controller: "reportingComponent",
    message: "message",
};
const NEW: Names = Names {
    about: "regarding",
    controller: "reportingController",
    message: "note",
};
const TEXT_MAX: usize = 128;
const MESSAGE_MAX: usize = 1024;

/// What must hold of every event. Those with a time of their own say who reports what.
fn validate_sense(event: &Value, names: &Names) -> ErrorList {
    let mut errors = ErrorList::new();
    let about = event
        .get(names.about)
        .map(|about| text(about, "namespace"))
        .unwrap_or_default();
    let namespace = meta::namespace(event);
    let is_new = !text(event, "eventTime").is_empty();
    // events about what is in no namespace are in the default one
    let fits = match (about, is_new) {
        ("", true) => matches!(namespace, "default" | "kube-system"),
        ("", false) => matches!(namespace, "" | "default"),
        (_, true) => true,
        (about, false) => about == namespace,
    };
    if !fits {
        let at = Path::new("involvedObject").child("namespace");
        errors.push(Error::invalid(&at, about, "does not match event.namespace"));
    }
    if is_new {
        let (controller, at) = (text(event, names.controller), Path::new(names.controller));
        if controller.is_empty() {
            errors.push(Error::required(&at, ""));
        }
        super::checks::syntax(meta::qualified_name(controller), controller, &at, &mut errors);
        let mut bounded = |key: &str, told: &str, may_be_empty: bool, most: usize| {
            let own = text(event, key);
            if own.is_empty() && !may_be_empty {
                errors.push(Error::required(&Path::new(told), ""));
            }
            if own.len() > most {
                errors.push(Error::invalid(
                    &Path::new(told),
                    "",
                    format!("can have at most {most} characters"),
                ));
            }
        };
        bounded("reportingInstance", "reportingInstance", false, TEXT_MAX);
        bounded("action", "action", false, TEXT_MAX);
        bounded("reason", "reason", false, TEXT_MAX);
        bounded(names.message, "message", true, MESSAGE_MAX);
    }
    let wrong = meta::dns1123_subdomain(namespace).into_iter();
    errors.extend(wrong.map(|why| Error::invalid(&Path::new("namespace"), namespace, why)));
    errors
}

fn validate_series(event: &Value, errors: &mut ErrorList) {
    let Some(series) = event.get("series").filter(|series| !series.is_null()) else {
        return;
    };
    if number(series, "count").unwrap_or(0) < 2 {
        errors.push(Error::invalid(&Path::new("series.count"), "", "should be at least 2"));
    }
    if text(series, "lastObservedTime").is_empty() {
        errors.push(Error::required(&Path::new("series.lastObservedTime"), ""));
    }
}

/// What must hold of new events of `events.k8s.io/v1`, besides.
fn validate_news(event: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    validate_series(event, &mut errors);
    if text(event, "eventTime").is_empty() {
        errors.push(Error::required(&Path::new("eventTime"), ""));
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(Error::invalid(
            &Path::new("type"),
            "",
            format!("has invalid value: {kind}"),
        ));
    }
    let none = Value::Null;
    let source = event.get("deprecatedSource").unwrap_or(&none);
    let has_source = !text(source, "component").is_empty() || !text(source, "host").is_empty();
    for (is_set, told) in [
        (!text(event, "deprecatedFirstTimestamp").is_empty(), "firstTimestamp"),
        (!text(event, "deprecatedLastTimestamp").is_empty(), "lastTimestamp"),
        (number(event, "deprecatedCount").unwrap_or(0) != 0, "count"),
        (has_source, "source"),
    ] {
        if is_set {
            errors.push(Error::invalid(&Path::new(told), "", "needs to be unset"));
        }
    }
    errors
}

/// Only the series of an event of `events.k8s.io/v1` goes on.
fn validate_same(event: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if event.get("series") != old.get("series") {
        validate_series(event, &mut errors);
    }
    for (key, told) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        // upstream looks at it twice
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let member = |event: &Value| {
            let own = event.get(key).filter(|own| !matches!(own, Value::Null)).cloned();
            own.filter(|own| own != "" && *own != json!({}) && *own != json!(0))
        };
        let is_pointer = key == "related";
        let differs = match is_pointer {
            true => event.get(key) != old.get(key),
            false => member(event) != member(old),
        };
        if differs {
            let none = Value::Null;
            let own = event.get(key).unwrap_or(&none);
            let of = match key {
                "regarding" => "core.ObjectReference",
                "related" => "*core.ObjectReference",
                "deprecatedSource" => "core.EventSource",
                "deprecatedFirstTimestamp" | "deprecatedLastTimestamp" | "eventTime" => "*time",
                "deprecatedCount" => "number",
                _ => "string",
            };
            let shown = internal::text(of, own);
            errors.push(Error::literal(&Path::new(told), shown, "field is immutable"));
        }
    }
    errors
}

/// Pairs of names: core, events.k8s.io.
const NAMES: [(&str, &str); 8] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
    ("related", "related"),
];

/// Turns either form into the other: what comes in as `events.k8s.io/v1` is stored as `v1`, what is stored as `v1` goes out as `events.k8s.io/v1`.
fn rename(event: &mut Value) {
    let to_core = meta::text(event, "/apiVersion").starts_with("events.k8s.io/");
    let Some(members) = event.as_object_mut() else { return };
    let mut renamed = Map::new();
    for (key, value) in std::mem::take(members) {
        let name = NAMES
            .iter()
            .find_map(|(core, new)| {
                let (from, to) = if to_core { (new, core) } else { (core, new) };
                (*from == key).then_some(*to)
            })
            .unwrap_or(&key);
        renamed.insert(name.to_owned(), value);
    }
    renamed.insert(
        "apiVersion".into(),
        if to_core { "v1" } else { "events.k8s.io/v1" }.into(),
    );
    if !to_core {
        // only the core's form always writes them
        renamed.retain(|key, value| {
            !matches!(key.as_str(), "reportingController" | "reportingInstance") || value.as_str() != Some("")
        });
    }
    *members = renamed;
}
