//! Events: one set of objects behind two APIs, which live for an hour.

use std::time::Duration;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path};
use serde_json::{Map, Value, json};

use super::strategy::Kind;
use crate::meta;

/// How long an event lives after it was last written.
pub const EVENT_TIME_TO_LIVE: Duration = Duration::from_secs(3600);

/// `v1`, the form in which events are stored.
pub(super) fn core_kind(mut kind: Kind) -> Kind {
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
    kind.validate = |event| {
        let about = meta::text(event, "/involvedObject/namespace");
        // events about what is in no namespace are in the default one
        let fits = about == meta::namespace(event) || about.is_empty() && meta::namespace(event) == "default";
        let path = Path::new("involvedObject").child("namespace");
        let why = "does not match event.namespace";
        if fits {
            Vec::new()
        } else {
            vec![Error::invalid(&path, about, why)]
        }
    };
    kind.fields = |event| {
        let text = |path: &str| meta::text(event, path).to_owned();
        let mut fields: Vec<(String, String)> = [
            "kind",
            "namespace",
            "name",
            "uid",
            "apiVersion",
            "resourceVersion",
            "fieldPath",
        ]
        .iter()
        .map(|key| (format!("involvedObject.{key}"), text(&format!("/involvedObject/{key}"))))
        .collect();
        fields.push(("reason".into(), text("/reason")));
        fields.push(("type".into(), text("/type")));
        fields.push(("source".into(), text("/source/component")));
        fields.push(("reportingComponent".into(), text("/reportingComponent")));
        fields
    };
    kind
}

/// `events.k8s.io/v1`: other names for the same fields.
pub(super) fn kind(kind: Kind) -> Kind {
    let mut kind = core_kind(kind);
    kind.validate = |event| match meta::text(event, "/eventTime") {
        "" => vec![Error::required(&Path::new("eventTime"), "")],
        _ => Vec::new(),
    };
    kind.default = |event| {
        if let Some(members) = event.as_object_mut() {
            members.entry("deprecatedSource").or_insert_with(|| json!({}));
        }
    };
    kind.fields = |event| {
        // selectors see stored events, which are in the core form
        let text = |new: &str, old: &str| {
            let text = meta::text(event, new);
            if text.is_empty() {
                meta::text(event, old).to_owned()
            } else {
                text.to_owned()
            }
        };
        let mut fields: Vec<(String, String)> = [
            "kind",
            "namespace",
            "name",
            "uid",
            "apiVersion",
            "resourceVersion",
            "fieldPath",
        ]
        .iter()
        .map(|key| {
            (
                format!("regarding.{key}"),
                text(&format!("/regarding/{key}"), &format!("/involvedObject/{key}")),
            )
        })
        .collect();
        fields.push(("reason".into(), text("/reason", "/reason")));
        fields.push(("type".into(), text("/type", "/type")));
        fields.push((
            "reportingController".into(),
            text("/reportingController", "/reportingComponent"),
        ));
        fields
    };
    kind.convert = |event, _, _| {
        rename(event);
        Ok::<(), ApiError>(())
    };
    kind
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
    *members = renamed;
}
