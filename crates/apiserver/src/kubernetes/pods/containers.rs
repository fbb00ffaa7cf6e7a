//! What must hold of a pod's containers.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names::config_key;
use gardener_apimachinery::quantity::Amount;
use serde_json::Value;

use super::{environment, probes, security};
use crate::kubernetes::checks::{
    descending_path, is_true, list, map, number, one_of, port_name, port_number, port_protocol, required_syntax,
    syntax, text,
};
use crate::kubernetes::resource_names::{self, is_extended, is_huge, is_native};
use crate::meta;

/// A pod's volumes by name, with their sources.
pub(super) type Volumes<'v> = BTreeMap<&'v str, &'v Value>;

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];

/// Checks containers, init containers and ephemeral containers of a spec.
pub(super) fn validate(spec: &Value, volumes: &Volumes<'_>, path: &Path, errors: &mut ErrorList) {
    let host_users = spec.get("hostUsers") != Some(&Value::Bool(false));
    let grace = number(spec, "terminationGracePeriodSeconds").unwrap_or(30);
    let at = path.child("containers");
    let containers = list(spec, "containers");
    if containers.is_empty() {
        errors.push(Error::required(&at, ""));
    }
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = at.index(index);
        validate_container(container, volumes, host_users, &at, errors);
        let name = text(container, "name");
        if !names.insert(name) {
            errors.push(Error::duplicate(&at.child("name"), name));
        }
        probes::validate(container, grace, &at, errors);
        restart_policy(container, &["Always", "OnFailure", "Never"], &at, errors);
    }
    host_ports_differ(containers, &at, errors);
    let at = path.child("initContainers");
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let own = at.index(index);
        validate_container(container, volumes, host_users, &own, errors);
        restart_policy(container, &["Always", "Never", "OnFailure"], &own, errors);
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
    }
    let at = path.child("ephemeralContainers");
    for (index, container) in list(spec, "ephemeralContainers").iter().enumerate() {
        let own = at.index(index);
        validate_container(container, volumes, host_users, &own, errors);
        let name = text(container, "name");
        if !name.is_empty() && !names.insert(name) {
            errors.push(Error::duplicate(&own.child("name"), name));
        }
        for key in ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
            if container.get(key).is_some() {
                errors.push(Error::forbidden(
                    &own.child(key),
                    "cannot be set for an Ephemeral Container",
                ));
            }
        }
    }
}

fn restart_policy(container: &Value, known: &[&str], path: &Path, errors: &mut ErrorList) {
    one_of(container, "restartPolicy", known, path, errors);
}

fn validate_container(container: &Value, volumes: &Volumes<'_>, host_users: bool, path: &Path, errors: &mut ErrorList) {
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
    validate_mounts(container, volumes, &path.child("volumeMounts"), errors);
    validate_devices(container, volumes, &path.child("volumeDevices"), errors);
    one_of(container, "imagePullPolicy", &PULL_POLICIES, path, errors);
    if let Some(resources) = container.get("resources") {
        validate_resources(resources, &path.child("resources"), errors);
    }
    security::validate_container(container, host_users, &path.child("securityContext"), errors);
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
        one_of(mount, "mountPropagation", &known, path, errors);
        let is_privileged = || {
            container
                .get("securityContext")
                .is_some_and(|context| is_true(context, "privileged"))
        };
        if text(mount, "mountPropagation") == "Bidirectional" && !is_privileged() {
            let why = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(Error::forbidden(&path.child("mountPropagation"), why));
        }
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

const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// The name of a resource: one of Kubernetes' own, or one with a domain.
pub(in crate::kubernetes) fn validate_name(name: &str, at: &Path, errors: &mut ErrorList) {
    let wrong = meta::qualified_name(name);
    let is_qualified = wrong.is_empty();
    syntax(wrong, name, at, errors);
    if is_qualified && !name.contains('/') && !resource_names::is_standard(name) {
        let why = "must be a standard resource type or fully qualified";
        errors.push(Error::invalid(at, name, why));
    }
}

/// The name of a resource of containers.
pub(in crate::kubernetes) fn validate_resource_name(name: &str, at: &Path, errors: &mut ErrorList) {
    validate_name(name, at, errors);
    if !name.contains('/') {
        if !OF_CONTAINERS.contains(&name) && !is_huge(name) {
            errors.push(Error::invalid(at, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(Error::invalid(
            at,
            name,
            "doesn't follow extended resource name standard",
        ));
    }
}

fn amount(value: &Value) -> Option<Amount> {
    value.as_str()?.parse().ok()
}

/// Amounts of resources by name: neither negative nor, where they count things, fractions.
pub(in crate::kubernetes) fn validate_amounts(amounts: &Value, path: &Path, errors: &mut ErrorList) {
    for (name, value) in amounts.as_object().into_iter().flatten() {
        let at = path.key(name);
        validate_resource_name(name, &at, errors);
        let Some(asked) = amount(value) else { continue };
        if asked.is_negative() {
            let why = "must be greater than or equal to 0";
            errors.push(Error::invalid(&at, value.clone(), why));
        }
        if is_extended(name) && asked.milli_value() % 1000 != 0 {
            errors.push(Error::invalid(&at, value.clone(), "must be an integer"));
        }
    }
}

fn validate_resources(resources: &Value, path: &Path, errors: &mut ErrorList) {
    let none = Value::Null;
    let part = |key: &str| resources.get(key).unwrap_or(&none);
    validate_amounts(part("limits"), &path.child("limits"), errors);
    let mut requests = ErrorList::new();
    validate_amounts(part("requests"), &path.child("requests"), &mut requests);
    for (name, value) in map(resources, "requests") {
        let own = path.child("requests").key(name);
        let (of_name, rest): (ErrorList, ErrorList) = requests.into_iter().partition(|error| error.path == own);
        requests = rest;
        errors.extend(of_name);
        let is_exact = !is_native(name) || is_huge(name);
        match part("limits").get(name) {
            None if is_exact => {
                let why = "Limit must be set for non overcommitable resources";
                errors.push(Error::required(&path.child("limits"), why));
            }
            None => {}
            Some(limit) => {
                let (Some(asked), Some(most)) = (amount(value), amount(limit)) else {
                    continue;
                };
                let how = match asked.cmp(&most) {
                    std::cmp::Ordering::Equal => continue,
                    _ if is_exact => "must be equal to",
                    std::cmp::Ordering::Greater => "must be less than or equal to",
                    std::cmp::Ordering::Less => continue,
                };
                let why = format!("{how} {name} limit of {most}");
                errors.push(Error::invalid(&path.child("requests"), value.clone(), why));
            }
        }
    }
    let names = || {
        ["limits", "requests"]
            .into_iter()
            .flat_map(|key| map(resources, key))
            .map(|(name, _)| name.as_str())
    };
    if names().any(is_huge) && !names().any(|name| matches!(name, "cpu" | "memory")) {
        errors.push(Error::forbidden(path, "HugePages require cpu or memory"));
    }
}

/// The key of a config map or secret that a pod reads.
pub(super) fn validate_key(source: &Value, at: &Path, errors: &mut ErrorList) {
    let name = text(source, "name");
    syntax(meta::dns1123_subdomain(name), name, &at.child("name"), errors);
    required_syntax(text(source, "key"), config_key, &at.child("key"), errors);
}
