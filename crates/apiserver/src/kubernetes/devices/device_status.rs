//! What drivers say of devices that claims were given.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::{Value, json};

use super::validation::{DEVICE, any_object, itself, pool_name, set};
use crate::kubernetes::checks::{self, list, syntax, text};
use crate::kubernetes::{addresses, drivers, jobs};
use crate::meta;

/// Most conditions of a device.
const CONDITIONS: usize = 8;
/// Most addresses of a device.
const ADDRESSES: usize = 16;
/// The longest names of a device in a network: that of its interface, and that of its hardware.
const NAMES: [(&str, usize); 2] = [("interfaceName", 256), ("hardwareAddress", 128)];

/// Which device a claim's status is about, as upstream shows it.
pub(super) fn shown(device: &Value) -> String {
    let [driver, pool, device, share] = DEVICE.map(|key| json!(text(device, key)));
    format!(r#"{{"Driver":{driver},"Pool":{pool},"Device":{device},"ShareID":{share}}}"#)
}

/// What is wrong with what is said of a device; `given` are those that the claim was given.
pub(super) fn validate(device: &Value, given: &[Value], path: &Path, errors: &mut ErrorList) {
    drivers::driver_name(device, "driver", path, errors);
    pool_name(text(device, "pool"), &path.child("pool"), errors);
    let name = text(device, "device");
    syntax(meta::dns1123_label(name), name, &path.child("device"), errors);
    if let Some(share) = device.get("shareID").and_then(Value::as_str) {
        errors.extend(checks::uuid(share).map(|why| Error::invalid(&path.child("shareID"), share, why)));
    }
    if !given
        .iter()
        .any(|own| DEVICE.iter().all(|key| text(own, key) == text(device, key)))
    {
        let why = "must be an allocated device in the claim";
        errors.push(Error::literal(path, shown(device), why));
    }
    let conditions = list(device, "conditions").len();
    if conditions > CONDITIONS {
        errors.push(Error::too_many(&path.child("conditions"), conditions, CONDITIONS));
    }
    jobs::conditions_in(device, path, errors);
    if let Some(data) = device.get("data").filter(|data| !data.is_null()) {
        any_object(data, &path.child("data"), errors);
    }
    let (network, at) = (
        device.get("networkData").unwrap_or(&Value::Null),
        path.child("networkData"),
    );
    for (key, most) in NAMES {
        if text(network, key).len() > most {
            errors.push(Error::too_long(&at.child(key), most));
        }
    }
    set(network, "ips", ADDRESSES, &at, errors, itself, |address, at, errors| {
        addresses::of_interface(address.as_str().unwrap_or_default(), at, errors);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_device_is_bounded() {
        let own = json!({"driver": "d.io", "pool": "p", "device": "d"});
        let condition = |index: usize| json!({"type": format!("c{index}"), "status": "True", "reason": "R", "lastTransitionTime": "2024-01-01T00:00:00Z"});
        let conditions: Vec<Value> = (0..=CONDITIONS).map(condition).collect();
        for (key, value, expected) in [
            ("data", json!({"a": 1}), None),
            (
                "data",
                json!([]),
                Some("d.data: Invalid value: \"<value omitted>\": must be a valid JSON object"),
            ),
            (
                "data",
                json!({"a": "a".repeat(10 * 1024)}),
                Some("d.data: Too long: may not be more than 10240 bytes"),
            ),
            ("networkData", json!({"interfaceName": "a".repeat(256)}), None),
            (
                "networkData",
                json!({"interfaceName": "a".repeat(257)}),
                Some("d.networkData.interfaceName: Too long: may not be more than 256 bytes"),
            ),
            (
                "networkData",
                json!({"hardwareAddress": "a".repeat(129)}),
                Some("d.networkData.hardwareAddress: Too long: may not be more than 128 bytes"),
            ),
            (
                "networkData",
                json!({"ips": ["10.0.0.7/08"]}),
                Some(
                    "d.networkData.ips[0]: Invalid value: \"10.0.0.7/08\": must be in canonical form (\"10.0.0.7/8\")",
                ),
            ),
            (
                "conditions",
                json!(conditions),
                Some("d.conditions: Too many: 9: must have at most 8 items"),
            ),
        ] {
            let mut device = own.clone();
            device[key] = value;
            let mut errors = ErrorList::new();
            validate(&device, std::slice::from_ref(&own), &Path::new("d"), &mut errors);
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let expected: Vec<&str> = expected.into_iter().collect();
            assert_eq!(errors, expected, "{key}");
        }
    }
}
