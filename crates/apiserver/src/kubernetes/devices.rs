//! `resource.k8s.io`: devices, who offers them and who claims them.

mod authorization;
mod capacities;
mod device_status;
mod validation;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value, json};

use super::internal;
use super::strategy::Kind;
use crate::meta;
use crate::selectable::Selectable;

/// Classes of devices.
pub(super) fn classes(kind: Kind) -> Kind {
    let mut kind = kind.generation().declares_name();
    kind.whole_first = true;
    kind.validate = validation::class;
    kind
}

/// Claims of devices.
pub(super) fn claims(mut kind: Kind) -> Kind {
    kind.has_tables_of_status = false;
    kind.default = |claim| default_requests(claim, "/spec/devices/requests");
    kind.whole_first = true;
    kind.validate_create = validation::claim;
    kind.validate_update = |claim, old| same_spec(claim, old, "resource.ResourceClaimSpec");
    kind.prepare_status = |_, claim, old| validation::drop_given_back(claim, old);
    kind.authorize_status = authorization::of_status;
    kind.validate_status = validation::status;
    kind.before_metadata = |context, claim| validation::as_administrator("/spec/devices/requests", context, claim);
    kind
}

/// Templates of claims.
pub(super) fn templates(mut kind: Kind) -> Kind {
    kind.default = |template| default_requests(template, "/spec/spec/devices/requests");
    kind.whole_first = true;
    kind.validate = validation::template;
    kind.validate_update = |template, old| same_spec(template, old, "resource.ResourceClaimTemplateSpec");
    kind.before_metadata =
        |context, template| validation::as_administrator("/spec/spec/devices/requests", context, template);
    kind
}

/// What drivers offer.
pub(super) fn slices(kind: Kind) -> Kind {
    let mut kind = kind.generation();
    kind.fields = const {
        &[
            Selectable::text("spec.nodeName", "/spec/nodeName"),
            Selectable::text("spec.driver", "/spec/driver"),
        ]
    };
    kind.default_now = |slice, now| {
        let devices = slice.at_mut("/spec/devices").and_then(Value::as_array_mut);
        let lists = devices
            .into_iter()
            .flatten()
            .filter_map(|device| device.get_mut("taints"));
        let taints = lists.filter_map(Value::as_array_mut).flatten();
        for taint in taints.filter_map(Value::as_object_mut) {
            taint.entry("timeAdded").or_insert_with(|| meta::rfc3339(now).into());
        }
    };
    kind.prepare_create = |_, slice| {
        drop_disabled(slice, None);
        Ok(())
    };
    kind.prepare_update = |_, slice, old| {
        drop_disabled(slice, Some(old));
        Ok(())
    };
    kind.warnings = |slice, _| {
        let driver = meta::text(slice, "/spec/driver");
        match driver.to_lowercase() == driver {
            true => Vec::new(),
            false => vec![format!(
                "spec.driver: driver names should be lowercase; {} contains uppercase characters",
                go_quote(driver)
            )],
        }
    };
    kind.validate_create = |slice| validation::slice(slice, None);
    kind.validate_update = |slice, old| validation::slice(slice, Some(old));
    kind
}

/// Fields of attributes that hold lists.
const LISTS_OF_ATTRIBUTES: [&str; 4] = ["bools", "ints", "strings", "versions"];
/// What a device takes of what its node has.
const NODE_RESOURCES: &str = "nodeAllocatableResourceMappings";

/// Drops what belongs to features that are off, unless the slice had it already.
fn drop_disabled(slice: &mut Value, old: Option<&Value>) {
    let had = |uses: fn(&Value) -> bool| old.is_some_and(|old| meta::elements(old, "/spec/devices").iter().any(uses));
    let had_lists = had(|device| {
        let attributes = device.get("attributes").and_then(Value::as_object);
        let mut attributes = attributes.into_iter().flat_map(Map::values);
        attributes.any(|attribute| LISTS_OF_ATTRIBUTES.iter().any(|key| attribute.get(*key).is_some()))
    });
    let had_resources = had(|device| device.get(NODE_RESOURCES).is_some());
    let devices = slice.at_mut("/spec/devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten().filter_map(Value::as_object_mut) {
        if !had_resources {
            device.remove(NODE_RESOURCES);
        }
        let attributes = device.get_mut("attributes").and_then(Value::as_object_mut);
        let attributes = attributes.into_iter().flat_map(Map::values_mut);
        for attribute in attributes.filter(|_| !had_lists).filter_map(Value::as_object_mut) {
            attribute.retain(|key, _| !LISTS_OF_ATTRIBUTES.contains(&key.as_str()));
        }
    }
}

/// What may not change in slices.
fn fixed_in_slices(slice: &Value, old: &Value) -> ErrorList {
    let fixed = [
        ("/spec/pool/name", ["pool", "name"].as_slice()),
        ("/spec/driver", &["driver"]),
        ("/spec/nodeName", &["nodeName"]),
    ];
    let changed = fixed.into_iter().filter(|(place, _)| slice.at(place) != old.at(place));
    changed
        .map(|(place, names)| {
            let path = names.iter().fold(Path::new("spec"), |path, name| path.child(name));
            let value = slice.at(place).cloned().unwrap_or_default();
            Error::invalid(&path, value, "field is immutable")
        })
        .collect()
}

/// A request for devices is for one of them, unless it says otherwise.
fn default_requests(object: &mut Value, requests: &str) {
    let requests = object.at_mut(requests).and_then(Value::as_array_mut);
    for request in requests.into_iter().flatten() {
        if let Some(exactly) = request.get_mut("exactly").and_then(Value::as_object_mut) {
            default_request(exactly);
        }
        let alternatives = request.get_mut("firstAvailable").and_then(Value::as_array_mut);
        for alternative in alternatives.into_iter().flatten().filter_map(Value::as_object_mut) {
            default_request(alternative);
        }
    }
}

fn default_request(request: &mut Map<String, Value>) {
    let is_set = |request: &Map<String, Value>, key: &str| {
        request
            .get(key)
            .is_some_and(|own| *own != json!("") && *own != json!(0))
    };
    if !is_set(request, "allocationMode") {
        request.insert("allocationMode".into(), json!("ExactCount"));
    }
    if request.get("allocationMode") == Some(&json!("ExactCount")) && !is_set(request, "count") {
        request.insert("count".into(), json!(1));
    }
    let tolerations = request.get_mut("tolerations").and_then(Value::as_array_mut);
    for toleration in tolerations.into_iter().flatten().filter_map(Value::as_object_mut) {
        if !is_set(toleration, "operator") {
            toleration.insert("operator".into(), json!("Equal"));
        }
    }
}

fn same_spec(object: &Value, old: &Value, of: &str) -> ErrorList {
    let spec = |object: &Value| object.get("spec").cloned().unwrap_or_default();
    match spec(object) == spec(old) {
        true => ErrorList::new(),
        false => {
            let shown = internal::text(of, &spec(object));
            vec![Error::literal(&Path::new("spec"), shown, "field is immutable")]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_for_one_device_unless_it_says_otherwise() {
        let mut claim = json!({"spec": {"devices": {"requests": [
            {"name": "a", "exactly": {}},
            {"name": "b", "exactly": {"allocationMode": "All"}},
            {"name": "c", "exactly": {"count": 2}},
            {"name": "d", "firstAvailable": [{"name": "e"}]},
            {"name": "f"},
        ]}}});
        default_requests(&mut claim, "/spec/devices/requests");
        assert_eq!(
            claim.at("/spec/devices/requests"),
            Some(&json!([
                {"name": "a", "exactly": {"allocationMode": "ExactCount", "count": 1}},
                {"name": "b", "exactly": {"allocationMode": "All"}},
                {"name": "c", "exactly": {"allocationMode": "ExactCount", "count": 2}},
                {"name": "d", "firstAvailable": [{"name": "e", "allocationMode": "ExactCount", "count": 1}]},
                {"name": "f"},
            ]))
        );
    }
}
