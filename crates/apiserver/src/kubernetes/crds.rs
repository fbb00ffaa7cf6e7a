//! CustomResourceDefinitions as objects. What the server notes in their status is in `crd::names`.

mod validate;

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::defaults;
use super::strategy::Kind;
use crate::meta;

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.has_tables_of_status = false;
    kind.default = |crd| {
        let kind_name = meta::text(crd, "/spec/names/kind").to_owned();
        if let Some(names) = crd.at_mut("/spec/names").and_then(Value::as_object_mut) {
            names
                .entry("singular")
                .or_insert_with(|| kind_name.to_lowercase().into());
            if !kind_name.is_empty() {
                let list_kind = format!("{kind_name}List");
                names.entry("listKind").or_insert_with(|| list_kind.into());
            }
        }
        if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
            spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
        }
        drop_empty_webhook(crd);
        let service = crd.at_mut("/spec/conversion/webhook/clientConfig/service");
        if let Some(service) = service.and_then(Value::as_object_mut) {
            defaults::called_service(service);
        }
        let stored = meta::elements(crd, "/status/storedVersions");
        if crd.get("status").is_some_and(Value::is_object) && stored.is_empty() {
            add_stored_version(crd);
        }
    };
    kind.prepare_create = |_, crd| {
        if let Some(members) = crd.as_object_mut() {
            let nothing =
                json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null});
            members.insert("status".into(), nothing);
        }
        add_stored_version(crd);
        Ok(())
    };
    kind.prepare_update = |_, crd, _| {
        add_stored_version(crd);
        Ok(())
    };
    kind.marks_for_deletion = |crd, now| {
        crate::crd::termination::mark(crd, now);
        true
    };
    kind.warnings = |crd, old| {
        let before = old.map(unknown_formats).unwrap_or_default();
        let mut found = unknown_formats(crd);
        found.retain(|format| !before.contains(format));
        found
            .iter()
            .map(|format| format!("unrecognized format {format:?}"))
            .collect()
    };
    kind.own_name = validate::own_name;
    kind.validate_create = |crd| validate::definition(crd, None);
    kind.validate_update = |crd, old| validate::definition(crd, Some(old));
    kind.validate_status = |crd, _| validate::status(crd);
    kind
}

/// Takes a webhook that tells nothing out of a definition: the internal type has what it tells in `conversion` itself.
fn drop_empty_webhook(crd: &mut Value) {
    let Some(conversion) = crd.at_mut("/spec/conversion").and_then(Value::as_object_mut) else {
        return;
    };
    let is_told = |webhook: &Value| {
        webhook.get("clientConfig").is_some_and(Value::is_object)
            || !meta::elements(webhook, "/conversionReviewVersions").is_empty()
    };
    if conversion.get("webhook").is_some_and(|webhook| !is_told(webhook)) {
        conversion.remove("webhook");
    }
}

/// The formats in a definition's schemas that nobody checks.
fn unknown_formats(crd: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for version in meta::elements(crd, "/spec/versions") {
        if let Some(schema) = version.at("/schema/openAPIV3Schema") {
            collect_formats(schema, &mut found);
        }
    }
    found
}

fn collect_formats(schema: &Value, found: &mut Vec<String>) {
    let format = meta::text(schema, "/format");
    if !format.is_empty() && !gardener_schema::formats::named::is_known(meta::text(schema, "/type"), format) {
        found.push(format.to_owned());
    }
    subschemas(schema).for_each(|below| collect_formats(below, found));
}

/// The schemas that a schema is made of. Parts that no definition may have are among them: they are refused elsewhere.
fn subschemas(schema: &Value) -> impl Iterator<Item = &Value> {
    let one = ["items", "additionalProperties", "not", "additionalItems"];
    let lists = ["items", "allOf", "anyOf", "oneOf"];
    let maps = ["properties", "patternProperties", "definitions", "dependencies"];
    let one = one.into_iter().filter_map(|key| schema.get(key));
    let lists = lists.into_iter().filter_map(|key| schema.get(key)?.as_array());
    let maps = maps.into_iter().filter_map(|key| schema.get(key)?.as_object());
    one.chain(lists.flatten())
        .chain(maps.flat_map(|map| map.into_iter().map(|(_, below)| below)))
}

/// Notes the version in which objects are stored.
fn add_stored_version(crd: &mut Value) {
    let versions = crd.at("/spec/versions").and_then(Value::as_array);
    let is_stored = |version: &&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    let stored = versions
        .and_then(|versions| versions.iter().find(is_stored)?.get("name"))
        .cloned();
    let (Some(name), Some(status)) = (stored, crd.get_mut("status").and_then(Value::as_object_mut)) else {
        return;
    };
    match status.get_mut("storedVersions").and_then(Value::as_array_mut) {
        Some(versions) if versions.contains(&name) => {}
        Some(versions) => versions.push(name),
        None => {
            status.insert("storedVersions".into(), json!([name]));
        }
    }
}
