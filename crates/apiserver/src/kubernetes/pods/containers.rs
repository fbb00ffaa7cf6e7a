//! What must hold of a pod's containers.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names::config_key;
use serde_json::Value;

use super::{environment, probes, resources, security};
use crate::kubernetes::checks::{
    descending_path, is_true, list, number, one_of, one_of_if_set, port_name, port_number, port_protocol,
    required_syntax, syntax, text,
};
use crate::meta;

/// A pod's volumes by name, with their sources.
pub(super) type Volumes<'v> = BTreeMap<&'v str, &'v Value>;

pub(super) const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const RESIZED: [&str; 2] = ["cpu", "memory"];
const RESIZE_POLICIES: [&str; 2] = ["NotRequired", "RestartContainer"];
/// What ephemeral containers may not have, in the order of the type.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// What checks of containers must know of their pod.
struct Surroundings<'v> {
    volumes: &'v Volumes<'v>,
    /// Names of the claims of devices that the pod has.
    claims: &'v BTreeSet<&'v str>,
    /// Whether users in containers are those of the node.
    host_users: bool,
    /// Whether containers that end are not started again.
    restarts_never: bool,
}

/// All containers of a spec and where they stand, in upstream's order.
pub(super) fn each_container<'v>(spec: &'v Value, path: &Path) -> impl Iterator<Item = (Path, &'v Value)> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(move |key| {
            let at = path.child(key);
            let all = list(spec, key).iter().enumerate();
            all.map(move |(index, container)| (at.index(index), container))
        })
}

/// Checks containers, init containers and ephemeral containers of a spec.
pub(super) fn validate(
    spec: &Value,
    volumes: &Volumes<'_>,
    claims: &BTreeSet<&str>,
    path: &Path,
    errors: &mut ErrorList,
) {
    let around = Surroundings {
        volumes,
        claims,
        host_users: spec.get("hostUsers") != Some(&Value::Bool(false)),
        restarts_never: text(spec, "restartPolicy") == "Never",
    };
    let grace = number(spec, "terminationGracePeriodSeconds").unwrap_or(30);
    let at = path.child("containers");
    let containers = list(spec, "containers");
    if containers.is_empty() {
        errors.push(Error::required(&at, ""));
    }
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = at.index(index);
        validate_container(container, &around, &at, errors);
        let name = text(container, "name");
        if !names.insert(name) {
            errors.push(Error::duplicate(&at.child("name"), name));
        }
        probes::validate(container, grace, &at, errors);
        validate_restart(container, &at, errors);
    }
    host_ports_differ(containers, &at, errors);
    let at = path.child("initContainers");
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let own = at.index(index);
        validate_container(container, &around, &own, errors);
        if container.get("restartPolicy").is_some() {
            validate_restart(container, &own, errors);
        } else if !list(container, "restartPolicyRules").is_empty() {
            errors.push(Error::required(&own.child("restartPolicy"), RULES_NEED_POLICY));
        }
        let name = text(container, "name");
        if names.contains(name) {
            errors.push(Error::duplicate(&own.child("name"), name));
        } else if !name.is_empty() {
            names.insert(name);
        }
        host_ports_differ(std::slice::from_ref(container), &at, errors);
        if text(container, "restartPolicy") == "Always" {
            probes::validate(container, grace, &own, errors);
            continue;
        }
        for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.get(key).is_some() {
                let why = "may not be set for init containers without restartPolicy=Always";
                errors.push(Error::forbidden(&own.child(key), why));
            }
        }
        for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
            if text(policy, "restartPolicy") == "RestartContainer" {
                let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                let at = own.child("resizePolicy").index(index).child("restartPolicy");
                errors.push(Error::invalid(&at, "RestartContainer", why));
            }
        }
    }
    let others = || {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(|key| list(spec, key))
            .map(|container| text(container, "name"))
    };
    names.extend(others());
    let at = path.child("ephemeralContainers");
    for (index, container) in list(spec, "ephemeralContainers").iter().enumerate() {
        let own = at.index(index);
        validate_container(container, &around, &own, errors);
        untrimmed_image(container, &own, errors);
        let name = text(container, "name");
        if !names.insert(name) {
            errors.push(Error::duplicate(&own.child("name"), name));
        }
        validate_ephemeral(container, others, &own, errors);
    }
}

/// What holds of ephemeral containers only. `others` are the names of the pod's other containers.
fn validate_ephemeral<'v, I: Iterator<Item = &'v str>>(
    container: &'v Value,
    others: impl Fn() -> I,
    path: &Path,
    errors: &mut ErrorList,
) {
    const WHY: &str = "cannot be set for an Ephemeral Container";
    let target = text(container, "targetContainerName");
    if !target.is_empty() && !others().any(|name| name == target) {
        errors.push(Error::not_found(&path.child("targetContainerName"), target));
    }
    let is_set = |key: &str| match container.get(key) {
        Some(Value::Object(members)) => key != "resources" || !members.is_empty(),
        Some(Value::Array(elements)) => !elements.is_empty(),
        other => other.is_some(),
    };
    for key in NOT_EPHEMERAL.into_iter().filter(|key| is_set(key)) {
        errors.push(Error::forbidden(&path.child(key), WHY));
    }
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        for key in ["subPath", "subPathExpr"] {
            if !text(mount, key).is_empty() {
                errors.push(Error::forbidden(
                    &path.child("volumeMounts").index(index).child(key),
                    WHY,
                ));
            }
        }
    }
}

/// An image without space around its name, which only pods must have.
pub(super) fn untrimmed_image(container: &Value, path: &Path, errors: &mut ErrorList) {
    let image = text(container, "image");
    if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        errors.push(Error::invalid(&path.child("image"), image, why));
    }
}

const RULES_NEED_POLICY: &str = "must specify restartPolicy when restart rules are used";

/// When a container is started again.
fn validate_restart(container: &Value, path: &Path, errors: &mut ErrorList) {
    let rules = list(container, "restartPolicyRules");
    let at = path.child("restartPolicy");
    match container.get("restartPolicy").and_then(Value::as_str) {
        None if rules.is_empty() => return,
        None => errors.push(Error::required(&at, RULES_NEED_POLICY)),
        Some(policy) if !RESTART_POLICIES.contains(&policy) => {
            errors.push(Error::not_supported(&at, policy, &RESTART_POLICIES));
        }
        Some(_) => {}
    }
    let at = path.child("restartPolicyRules");
    if rules.len() > 20 {
        errors.push(Error::too_many(&at, rules.len(), 20));
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = at.index(index);
        let (action, known) = (text(rule, "action"), ["Restart", "RestartAllContainers"]);
        if !known.contains(&action) {
            errors.push(Error::not_supported(&at.child("action"), action, &known));
        }
        let at = at.child("exitCodes");
        let Some(codes) = rule.get("exitCodes") else {
            errors.push(Error::required(&at, "must be specified"));
            continue;
        };
        let (operator, known) = (text(codes, "operator"), ["In", "NotIn"]);
        if !known.contains(&operator) {
            errors.push(Error::not_supported(&at.child("operator"), operator, &known));
        }
        let count = list(codes, "values").len();
        if count > 255 {
            errors.push(Error::too_many(&at.child("values"), count, 255));
        }
    }
}

fn validate_container(container: &Value, around: &Surroundings<'_>, path: &Path, errors: &mut ErrorList) {
    required_syntax(
        text(container, "name"),
        meta::dns1123_label,
        &path.child("name"),
        errors,
    );
    if text(container, "image").is_empty() {
        errors.push(Error::required(&path.child("image"), ""));
    }
    one_of(container, "terminationMessagePolicy", &MESSAGE_POLICIES, path, errors);
    validate_ports(container, &path.child("ports"), errors);
    environment::validate(container, path, errors);
    validate_mounts(container, around.volumes, &path.child("volumeMounts"), errors);
    validate_devices(container, around.volumes, &path.child("volumeDevices"), errors);
    one_of(container, "imagePullPolicy", &PULL_POLICIES, path, errors);
    if let Some(resources) = container.get("resources") {
        resources::validate(
            resources,
            resources::validate_name_of_container,
            around.claims,
            &path.child("resources"),
            errors,
        );
    }
    validate_resize_policy(container, around.restarts_never, &path.child("resizePolicy"), errors);
    security::validate_container(container, around.host_users, &path.child("securityContext"), errors);
}

/// What a change of resources means for a container.
fn validate_resize_policy(container: &Value, restarts_never: bool, at: &Path, errors: &mut ErrorList) {
    let policies = list(container, "resizePolicy");
    let mut seen = BTreeSet::new();
    for (index, own) in policies.iter().enumerate() {
        let (resource, policy) = (text(own, "resourceName"), text(own, "restartPolicy"));
        if !seen.insert(resource) {
            errors.push(Error::duplicate(&at.index(index), resource));
        }
        for (value, known) in [(resource, RESIZED), (policy, RESIZE_POLICIES)] {
            if value.is_empty() {
                errors.push(Error::required(at, ""));
            } else if !known.contains(&value) {
                errors.push(Error::not_supported(at, value, &known));
            }
        }
        if restarts_never && policy != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(Error::invalid(at, policy, why));
        }
    }
}

fn validate_ports(container: &Value, path: &Path, errors: &mut ErrorList) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let at = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let wrong = port_name(name);
            if wrong.is_empty() && !names.insert(name) {
                errors.push(Error::duplicate(&at.child("name"), name));
            }
            syntax(wrong, name, &at.child("name"), errors);
        }
        for (member, required) in [("containerPort", true), ("hostPort", false)] {
            match number(port, member).unwrap_or(0) {
                0 if required => errors.push(Error::required(&at.child(member), "")),
                0 => {}
                number => errors.extend(port_number(number, &at.child(member))),
            }
        }
        let protocol = Some(text(port, "protocol")).filter(|protocol| !protocol.is_empty());
        errors.extend(protocol.and_then(|protocol| port_protocol(protocol, &at.child("protocol"))));
    }
}

/// No two containers take one port of the node.
fn host_ports_differ(containers: &[Value], path: &Path, errors: &mut ErrorList) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (at, container) in containers.iter().enumerate() {
        for (index, port) in list(container, "ports").iter().enumerate() {
            let Some(number) = number(port, "hostPort").filter(|number| *number != 0) else {
                continue;
            };
            let place = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if taken.contains(&place) {
                let at = path.index(at).child("ports").index(index).child("hostPort");
                errors.push(Error::duplicate(&at, place));
            } else {
                taken.insert(place);
            }
        }
    }
}

/// In the node's network a container's ports are the node's.
pub(super) fn host_ports_are_own(spec: &Value, of_pod: bool, path: &Path, errors: &mut ErrorList) {
    for (at, container) in list(spec, "containers").iter().enumerate() {
        for (index, port) in list(container, "ports").iter().enumerate() {
            let (host, own) = (
                number(port, "hostPort").unwrap_or(0),
                number(port, "containerPort").unwrap_or(0),
            );
            if host != own && (of_pod || host != 0) {
                let at = path
                    .child("containers")
                    .index(at)
                    .child("ports")
                    .index(index)
                    .child("hostPort");
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(Error::invalid(&at, host, why));
            }
        }
    }
}

fn validate_mounts(container: &Value, volumes: &Volumes<'_>, path: &Path, errors: &mut ErrorList) {
    let devices = list(container, "volumeDevices");
    let mut places: BTreeSet<&str> = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = path.index(index);
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.push(Error::required(&at.child("name"), ""));
        }
        if !volumes.contains_key(name) {
            errors.push(Error::not_found(&at.child("name"), name));
        }
        if place.is_empty() {
            errors.push(Error::required(&at.child("mountPath"), ""));
        }
        if !places.insert(place) {
            errors.push(Error::invalid(&at.child("mountPath"), place, "must be unique"));
        }
        if devices.iter().any(|device| text(device, "name") == name) {
            errors.push(Error::invalid(
                &at.child("name"),
                name,
                "must not already exist in volumeDevices",
            ));
        }
        if devices.iter().any(|device| text(device, "devicePath") == place) {
            let why = "must not already exist as a path in volumeDevices";
            errors.push(Error::invalid(&at.child("mountPath"), place, why));
        }
        let (below, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if !below.is_empty() {
            descending_path(below, &path.child("subPath"), errors);
        }
        if !expression.is_empty() {
            if !below.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                errors.push(Error::invalid(&at.child("subPathExpr"), expression, why));
            }
            descending_path(expression, &path.child("subPathExpr"), errors);
        }
        let known = ["Bidirectional", "HostToContainer", "None"];
        one_of_if_set(mount, "mountPropagation", &known, path, errors);
        let is_privileged = || {
            container
                .get("securityContext")
                .is_some_and(|context| is_true(context, "privileged"))
        };
        if text(mount, "mountPropagation") == "Bidirectional" && !is_privileged() {
            let why = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(Error::forbidden(&path.child("mountPropagation"), why));
        }
        validate_recursive_read_only(mount, &path.child("recursiveReadOnly"), errors);
    }
}

/// Mounts below a mount that are to be read only, too.
fn validate_recursive_read_only(mount: &Value, at: &Path, errors: &mut ErrorList) {
    match mount.get("recursiveReadOnly").and_then(Value::as_str) {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !is_true(mount, "readOnly") {
                errors.push(Error::forbidden(at, "may only be specified when readOnly is true"));
            }
            if mount.get("mountPropagation").is_some_and(|own| own != "None") {
                let why = "may only be specified when mountPropagation is None or not specified";
                errors.push(Error::forbidden(at, why));
            }
        }
        Some(other) => errors.push(Error::not_supported(at, other, &["Disabled", "Enabled", "IfPossible"])),
    }
}

fn validate_devices(container: &Value, volumes: &Volumes<'_>, path: &Path, errors: &mut ErrorList) {
    let mounts = list(container, "volumeMounts");
    let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in list(container, "volumeDevices").iter().enumerate() {
        let at = path.index(index);
        let (name, place) = (text(device, "name"), text(device, "devicePath"));
        let invalid = |key: &str, value: &str, why: &str| Error::invalid(&at.child(key), value, why);
        if name.is_empty() {
            errors.push(Error::required(&at.child("name"), ""));
        }
        if names.contains(name) {
            errors.push(invalid("name", name, "must be unique"));
        }
        match volumes.get(name) {
            None => errors.push(Error::not_found(&at.child("name"), name)),
            Some(volume)
                if volume.get("persistentVolumeClaim").is_none()
                    && volume.get("ephemeral").is_none()
                    && !volume.is_null() =>
            {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(invalid("name", name, why));
            }
            Some(_) => {}
        }
        if place.is_empty() {
            errors.push(Error::required(&at.child("devicePath"), ""));
        }
        if places.contains(place) {
            errors.push(invalid("devicePath", place, "must be unique"));
        }
        if place.split('/').any(|part| part == "..") {
            errors.push(invalid("devicePath", place, "can not contain backsteps ('..')"));
        } else {
            places.insert(place);
        }
        if mounts.iter().any(|mount| text(mount, "name") == name) {
            errors.push(invalid("name", name, "must not already exist in volumeMounts"));
        }
        if mounts.iter().any(|mount| text(mount, "mountPath") == place) {
            errors.push(invalid(
                "devicePath",
                place,
                "must not already exist as a path in volumeMounts",
            ));
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}

/// The key of a config map or secret that a pod reads.
pub(super) fn validate_key(source: &Value, at: &Path, errors: &mut ErrorList) {
    let name = text(source, "name");
    syntax(meta::dns1123_subdomain(name), name, &at.child("name"), errors);
    required_syntax(text(source, "key"), config_key, &at.child("key"), errors);
}
