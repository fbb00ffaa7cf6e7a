//! What storage drivers say of themselves, of nodes and of what they can hold; attachments, and classes of attributes.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::checks::{self, list, map, nonnegative, number, spec_of, syntax, text};
use super::pods::warnings;
use super::strategy::Kind;
use super::{defaults, internal, storage, volumes};
use crate::meta;

const IMMUTABLE: &str = "field is immutable";
/// The shortest and longest life of a token for a driver, in seconds.
const TOKEN_SECONDS: std::ops::RangeInclusive<i64> = 600..=1 << 32;
/// The longest id of a node.
const NODE_ID_MAX: usize = 256;
/// The longest name of a driver.
const NAME_MAX: usize = 63;

/// The name of a driver that another object tells.
pub(super) fn driver_name(object: &Value, key: &str, path: &Path, errors: &mut ErrorList) {
    let (name, at) = (text(object, key), path.child(key));
    if name.is_empty() {
        errors.push(Error::required(&at, ""));
        return;
    }
    name_syntax(name, &at, errors);
}

/// A name of a driver.
pub(super) fn name_syntax(name: &str, at: &Path, errors: &mut ErrorList) {
    if name.len() > NAME_MAX {
        errors.push(Error::too_long(at, NAME_MAX));
    }
    syntax(meta::dns1123_subdomain(&name.to_lowercase()), name, at, errors);
}

fn validate_driver(driver: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(driver), Path::new("spec"));
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    if let Some(policy) = spec.get("fsGroupPolicy").and_then(Value::as_str)
        && !policies.contains(&policy)
    {
        errors.push(Error::not_supported(&path.child("fsGroupPolicy"), policy, &policies));
    }
    let mut audiences: Vec<&str> = Vec::new();
    let requests = list(spec, "tokenRequests");
    for (index, request) in requests.iter().enumerate() {
        let at = path.child("tokenRequests").index(index);
        let audience = text(request, "audience");
        if audiences.contains(&audience) {
            errors.push(Error::duplicate(&at.child("audience"), audience));
            continue;
        }
        audiences.push(audience);
        let Some(seconds) = number(request, "expirationSeconds") else {
            continue;
        };
        let why = match seconds {
            few if few < *TOKEN_SECONDS.start() => "may not specify a duration less than 10 minutes",
            many if many > *TOKEN_SECONDS.end() => "may not specify a duration larger than 2^32 seconds",
            _ => continue,
        };
        errors.push(Error::invalid(&at.child("expirationSeconds"), seconds, why));
    }
    let modes = ["Persistent", "Ephemeral"];
    for mode in list(spec, "volumeLifecycleModes").iter().filter_map(Value::as_str) {
        if !modes.contains(&mode) {
            errors.push(Error::not_supported(&path.child("volumeLifecycleModes"), mode, &modes));
        }
    }
    if let Some(seconds) = number(spec, "nodeAllocatableUpdatePeriodSeconds").filter(|seconds| *seconds < 10) {
        let why = "must be greater than or equal to 10 seconds";
        errors.push(Error::invalid(
            &path.child("nodeAllocatableUpdatePeriodSeconds"),
            seconds,
            why,
        ));
    }
    if let Some(set) = spec.get("serviceAccountTokenInSecrets").filter(|_| requests.is_empty()) {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(Error::invalid(
            &path.child("serviceAccountTokenInSecrets"),
            set.clone(),
            why,
        ));
    }
    errors
}

fn drop_alpha(driver: &mut Value) {
    if let Some(spec) = driver.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("preventPodSchedulingIfMissing");
    }
}

/// Drivers.
pub(super) fn csi_drivers(mut kind: Kind) -> Kind {
    kind.default = |driver| {
        if let Some(members) = driver.as_object_mut() {
            members.entry("spec").or_insert_with(|| json!({}));
        }
        defaults::csi_driver(driver);
    };
    // what upstream does not do by default, it forgets
    kind.prepare_create = |_, driver| {
        drop_alpha(driver);
        Ok(())
    };
    kind.validate = validate_driver;
    kind.whole_first = true;
    kind.validate_update = |driver, old| {
        let mut errors = ErrorList::new();
        // upstream tells the first of them by another name
        for (key, told) in [
            ("attachRequired", "attachedRequired"),
            ("volumeLifecycleModes", "volumeLifecycleModes"),
        ] {
            let own = spec_of(driver).get(key);
            if own != spec_of(old).get(key) {
                let shown = own.cloned().unwrap_or(Value::Null);
                errors.push(Error::invalid(&Path::new("spec").child(told), shown, IMMUTABLE));
            }
        }
        errors
    };
    kind.prepare_update = |_, driver, old| {
        drop_alpha(driver);
        if driver.get("spec") != old.get("spec") {
            let generation = old.at("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
            meta::set(driver, "generation", Some(json!(generation + 1)));
        }
        Ok(())
    };
    kind.warnings = |driver, old| {
        let requests = |driver: &Value| spec_of(driver).get("tokenRequests").cloned();
        let has_requests = !list(spec_of(driver), "tokenRequests").is_empty();
        let is_news = old.is_none_or(|old| requests(old) != requests(driver));
        match has_requests && is_news && spec_of(driver).get("serviceAccountTokenInSecrets").is_none() {
            true => vec!["spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes".to_owned()],
            false => Vec::new(),
        }
    };
    kind
}

/// What a driver says of a node, as upstream shows it.
fn node_driver_text(driver: &Value) -> String {
    format!(
        "{{\"Name\":{},\"NodeID\":{},\"TopologyKeys\":{},\"Allocatable\":null}}",
        Value::from(text(driver, "name")),
        Value::from(text(driver, "nodeID")),
        driver.get("topologyKeys").unwrap_or(&Value::Null)
    )
}

/// What drivers say of nodes.
pub(super) fn csi_nodes(mut kind: Kind) -> Kind {
    kind.whole_first = true;
    kind.validate = |node| {
        let mut errors = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for (index, driver) in list(spec_of(node), "drivers").iter().enumerate() {
            let at = Path::new("spec").child("drivers").index(index);
            driver_name(driver, "name", &at, &mut errors);
            let id = text(driver, "nodeID");
            if id.is_empty() {
                errors.push(Error::required(&at.child("nodeID"), ""));
            } else if id.len() > NODE_ID_MAX {
                let why = format!("must be {NODE_ID_MAX} characters or less");
                errors.push(Error::invalid(&at.child("nodeID"), id, why));
            }
            if let Some(allocatable) = driver.get("allocatable") {
                nonnegative(allocatable, "count", &at.child("allocatable"), &mut errors);
            }
            let name = text(driver, "name");
            if names.contains(&name) {
                errors.push(Error::duplicate(&at.child("name"), name));
            }
            names.push(name);
            let mut keys: Vec<&str> = Vec::new();
            for key in list(driver, "topologyKeys").iter().filter_map(Value::as_str) {
                if key.is_empty() {
                    errors.push(Error::required(&at, ""));
                }
                if keys.contains(&key) {
                    errors.push(Error::duplicate(&at, key));
                }
                keys.push(key);
                syntax(meta::qualified_name(key), key, &at, &mut errors);
            }
        }
        errors
    };
    kind.validate_update = |node, old| {
        let mut errors = ErrorList::new();
        let fixed = |driver: &Value| {
            let mut driver = driver.clone();
            if let Some(members) = driver.as_object_mut() {
                members.remove("allocatable");
            }
            driver
        };
        for before in list(spec_of(old), "drivers") {
            let same = list(spec_of(node), "drivers")
                .iter()
                .filter(|own| text(own, "name") == text(before, "name"));
            for changed in same.filter(|own| fixed(own) != fixed(before)) {
                let at = Path::new("spec").child("drivers");
                errors.push(Error::literal(&at, node_driver_text(changed), IMMUTABLE));
            }
        }
        errors
    };
    kind
}

/// What drivers can hold.
pub(super) fn capacities(mut kind: Kind) -> Kind {
    kind.name = meta::dns1123_subdomain;
    kind.whole_first = true;
    kind.validate = |capacity| {
        let mut errors = ErrorList::new();
        if let Some(selector) = capacity.get("nodeTopology") {
            checks::label_selector(selector, &Path::new("nodeTopology"), &mut errors);
        }
        let class = text(capacity, "storageClassName");
        syntax(
            meta::dns1123_subdomain(class),
            class,
            &Path::new("storageClassName"),
            &mut errors,
        );
        let amount = capacity.get("capacity").and_then(checks::amount);
        if let Some(amount) = amount.filter(|amount| amount.is_negative()) {
            let why = "must be greater than or equal to 0";
            errors.push(Error::invalid(&Path::new("capacity"), amount.to_string(), why));
        }
        errors
    };
    kind.warnings = |capacity, _| {
        let mut found = Vec::new();
        let (selector, at) = (
            capacity.get("nodeTopology").unwrap_or(&Value::Null),
            Path::new("nodeTopology"),
        );
        warnings::of_terms(selector, false, &at, &mut found);
        for (key, _) in map(selector, "matchLabels") {
            let why = warnings::of_label(key);
            found.extend(why.map(|why| format!("{}: {why}", at.child("matchLabels").child(key))));
        }
        found
    };
    kind.validate_update = |capacity, old| {
        let changed = ["nodeTopology", "storageClassName"]
            .into_iter()
            .filter(|key| capacity.get(key) != old.get(key));
        let error = |key: &str| {
            let of = match key {
                "nodeTopology" => "*v1.LabelSelector",
                _ => "string",
            };
            let own = capacity.get(key).unwrap_or(&Value::Null);
            Error::literal(&Path::new(key), internal::text(of, own), IMMUTABLE)
        };
        changed.map(error).collect()
    };
    kind
}

/// The longest message of why a volume was not attached or detached, in bytes.
const MAX_MESSAGE: usize = 1024;

fn validate_attachment(attachment: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let none = Value::Null;
    let (spec, path) = (spec_of(attachment), Path::new("spec"));
    driver_name(spec, "attacher", &path, &mut errors);
    let source = spec.get("source").unwrap_or(&none);
    let at = path.child("source");
    let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (source.get("inlineVolumeSpec"), source.get("persistentVolumeName")) {
        (None, None) => errors.push(Error::required(&at, why)),
        (Some(_), Some(_)) => errors.push(Error::forbidden(&at, why)),
        (None, Some(name)) if name == "" => {
            let why = "must specify non empty persistentVolumeName";
            errors.push(Error::required(&at.child("persistentVolumeName"), why));
        }
        (Some(inline), None) => volumes::validate_inline(inline, &at.child("inlineVolumeSpec"), &mut errors),
        (None, Some(_)) => {}
    }
    let node = text(spec, "nodeName");
    syntax(
        meta::dns1123_subdomain(node),
        node,
        &path.child("nodeName"),
        &mut errors,
    );
    let status = attachment.get("status").unwrap_or(&none);
    if storage::size_of_texts(status, "attachmentMetadata") > storage::MAX_PARAMETERS_SIZE {
        let at = Path::new("status").child("attachmentMetadata");
        errors.push(Error::too_long(&at, storage::MAX_PARAMETERS_SIZE));
    }
    for key in ["attachError", "detachError"] {
        let message = status.get(key).map_or("", |error| text(error, "message"));
        if message.len() > MAX_MESSAGE {
            // upstream tells another limit than it has
            let at = Path::new("status").child(key).child("message");
            errors.push(Error::too_long(&at, storage::MAX_PARAMETERS_SIZE));
        }
        let code = status.get(key).and_then(|error| number(error, "errorCode"));
        if let Some(code) = code.filter(|code| *code < 0) {
            let at = Path::new("status").child(key).child("errorCode");
            errors.push(Error::invalid(&at, code, "must be between 0 and 2147483647, inclusive"));
        }
    }
    if let Some(name) = source.get("persistentVolumeName").and_then(Value::as_str) {
        let at = path.child("source").child("persistentVolumeName");
        syntax(meta::dns1123_subdomain(name), name, &at, &mut errors);
    }
    errors
}

pub(super) fn attachments(mut kind: Kind) -> Kind {
    kind.validate = validate_attachment;
    kind.validate_status = |attachment, _| validate_attachment(attachment);
    kind.whole_first = true;
    kind.validate_update = |attachment, old| match spec_of(attachment) == spec_of(old) {
        true => Vec::new(),
        false => vec![Error::literal(
            &Path::new("spec"),
            internal::text("storage.VolumeAttachmentSpec", spec_of(attachment)),
            IMMUTABLE,
        )],
    };
    kind
}

/// Classes of attributes of volumes.
pub(super) fn attributes(mut kind: Kind) -> Kind {
    kind.validate = |class| {
        let mut errors = ErrorList::new();
        storage::provisioner(class, "driverName", &mut errors);
        let at = Path::new("parameters");
        if !storage::parameters(class, &mut errors) && map(class, "parameters").next().is_none() {
            errors.push(Error::required(&at, "must contain at least one key/value pair"));
        }
        errors
    };
    kind.validate_update = |class, old| {
        let empty = json!({});
        let parameters = |class: &Value| class.get("parameters").unwrap_or(&empty).clone();
        let mut errors = ErrorList::new();
        if text(class, "driverName") != text(old, "driverName") {
            errors.push(Error::forbidden(
                &Path::new("driverName"),
                "updates to driverName are forbidden.",
            ));
        }
        if parameters(class) != parameters(old) {
            errors.push(Error::forbidden(
                &Path::new("parameters"),
                "updates to parameters are forbidden.",
            ));
        }
        errors
    };
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_attachments_is_short() {
        let told = |message: usize, metadata: usize| {
            let attachment = json!({"status": {
                "attachmentMetadata": {"a": "a".repeat(metadata)},
                "detachError": {"message": "a".repeat(message)},
            }});
            let errors = validate_attachment(&attachment);
            let of_status = errors.iter().filter(|error| error.path.as_str().starts_with("status"));
            of_status.map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(told(MAX_MESSAGE, storage::MAX_PARAMETERS_SIZE - 1), [""; 0]);
        assert_eq!(
            told(MAX_MESSAGE + 1, storage::MAX_PARAMETERS_SIZE),
            [
                "status.attachmentMetadata: Too long: may not be more than 262144 bytes",
                "status.detachError.message: Too long: may not be more than 262144 bytes",
            ]
        );
    }
}
