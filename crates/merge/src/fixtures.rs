//! Recorded schemas and arbitrary values for tests.

use std::sync::Arc;

use gardener_schema::{Definitions, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The schema of `apps/v1` `Deployment`.
pub fn deployment() -> Arc<Schema> {
    let document: Value = serde_json::from_str(include_str!("../recorded/apis_apps_v1.json")).unwrap();
    let definitions = Definitions::from_openapi([&document]).unwrap();
    definitions.for_kind("apps", "v1", "Deployment").unwrap()
}

/// A custom kind with a set, a map of settings, an atomic and a free-form part.
pub fn custom() -> Arc<Schema> {
    Schema::from_crd(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "number": {"type": "integer"},
        "text": {"type": "string"},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "plain": {"type": "array", "items": {"type": "string"}},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items":
            {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "integer"}}}},
        "settings": {"type": "object", "additionalProperties": {"type": "string"}},
        "atomic": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}),
    )
    .unwrap()
}

/// Any JSON.
pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4).prop_map(Value::from),
        prop::sample::select(vec!["a", "b", "replace", "delete"]).prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "spec",
        "metadata",
        "name",
        "labels",
        "finalizers",
        "managedFields",
        "template",
        "containers",
        "ports",
        "strategy",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "free",
        "list",
    ]);
    leaf.prop_recursive(6, 64, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..5)
                .prop_map(|map| map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

/// An object of [`custom`] that fits its schema.
pub fn custom_object() -> impl Strategy<Value = Value> {
    let letter = || prop::sample::select(vec!["a", "b", "c", "d"]);
    let strings = move || prop::collection::btree_set(letter(), 0..4).prop_shuffle_set();
    let map = move || prop::collection::btree_map(letter(), letter(), 0..3).prop_map(|map| json!(map));
    let list = prop::collection::btree_map(letter(), prop::option::of(0..3), 0..4).prop_map(|map| {
        map.into_iter()
            .map(|(name, value)| match value {
                Some(value) => json!({"name": name, "value": value}),
                None => json!({"name": name}),
            })
            .collect::<Value>()
    });
    let free = prop::collection::btree_map(
        letter(),
        prop_oneof![Just(json!(1)), Just(json!({"x": 1})), Just(json!({})), Just(json!([1]))],
        0..3,
    )
    .prop_map(|map| json!(map));
    let parts = (
        prop::option::of((0..3).prop_map(Value::from)),
        prop::option::of(strings()),
        prop::option::of(strings()),
        prop::option::of(list),
        prop::option::of(map()),
        prop::option::of(map()),
        prop::option::of(free),
    );
    parts.prop_map(|(number, set, plain, list, settings, atomic, free)| {
        let mut spec = serde_json::Map::new();
        for (name, value) in [
            ("number", number),
            ("set", set),
            ("plain", plain),
            ("list", list),
            ("settings", settings),
            ("atomic", atomic),
            ("free", free),
        ] {
            if let Some(value) = value {
                spec.insert(name.to_owned(), value);
            }
        }
        json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec})
    })
}

trait ShuffleSet {
    fn prop_shuffle_set(self) -> BoxedStrategy<Value>;
}

impl<S: Strategy<Value = std::collections::BTreeSet<&'static str>> + 'static> ShuffleSet for S {
    fn prop_shuffle_set(self) -> BoxedStrategy<Value> {
        self.prop_map(|set| set.into_iter().collect::<Vec<_>>())
            .prop_shuffle()
            .prop_map(|list| json!(list))
            .boxed()
    }
}
