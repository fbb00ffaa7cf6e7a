//! What claims, classes and offers of devices must be like. Selectors are compiled, but not for what they cost.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_cel::{Compiled, Declared, Environment, Shape};
use serde_json::{Value, json};

use super::{capacities, device_status};
use crate::definition::Context;
use crate::kubernetes::checks::{self, is_true, list, map, number, spec_of, syntax, text};
use crate::kubernetes::pods::{scheduling, volumes};
use crate::kubernetes::{drivers, internal, resource_names};
use crate::meta;

/// What tells a device of a claim apart from others.
pub(super) const DEVICE: [&str; 4] = ["driver", "pool", "device", "shareID"];
/// Most requests, constraints and configurations of a claim, and most selectors of a request.
const MANY: usize = 32;
/// Most alternatives of a request.
const ALTERNATIVES: usize = 8;
/// The longest expression, and the longest parameters.
const LONG: usize = 10 * 1024;
/// Most users of a claim.
const USERS: usize = 256;
/// The longest name of a pool.
const POOL_NAME_MAX: usize = 253;
/// The longest name of an attribute without its domain.
const ID_MAX: usize = 32;
/// The longest value of an attribute.
const ATTRIBUTE_MAX: usize = 64;
/// Most devices of a slice; fewer where they are described at length.
const DEVICES: (usize, usize) = (128, 64);
/// Most taints of a device.
const TAINTS: usize = 16;
/// Most conditions of one kind that a device sets for binding.
const BINDING_CONDITIONS: usize = 4;
/// Most sets of counters of a slice, counters of a set, and sets that a device takes from.
const COUNTERS: (usize, usize, usize) = (8, 32, 2);
/// Most attributes and capacities of a device.
const ATTRIBUTES: usize = 32;

const NO_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// What selectors know of a device.
static SELECTING: LazyLock<Environment> = LazyLock::new(|| {
    let any = || Declared::new(Shape::Map(Arc::new(Declared::new(Shape::Dyn))));
    let by_domain = || Declared::new(Shape::Map(Arc::new(any())));
    let device = Declared::object(
        "kubernetes.DRADevice",
        vec![
            ("driver", Declared::new(Shape::Text)),
            ("attributes", by_domain()),
            ("capacity", by_domain()),
            ("allowMultipleAllocations", Declared::new(Shape::Bool)),
        ],
    );
    Environment::default().with("device", Arc::new(device))
});

/// A list that may not be too long, element by element.
fn each(
    of: &Value,
    key: &str,
    max: usize,
    path: &Path,
    errors: &mut ErrorList,
    mut check: impl FnMut(&Value, &Path, &mut ErrorList),
) -> bool {
    let (elements, at) = (list(of, key), path.child(key));
    if elements.len() > max {
        errors.push(Error::too_many(&at, elements.len(), max));
        return false;
    }
    for (index, element) in elements.iter().enumerate() {
        check(element, &at.index(index), errors);
    }
    true
}

/// As [`each`], for a list that has nothing twice.
pub(super) fn set(
    of: &Value,
    key: &str,
    max: usize,
    path: &Path,
    errors: &mut ErrorList,
    told: impl Fn(&Value) -> String,
    check: impl FnMut(&Value, &Path, &mut ErrorList),
) {
    if each(of, key, max, path, errors, check) {
        once(of, key, path, errors, told, Error::duplicate);
    }
}

/// Refuses what a list has twice. `told` is what tells its elements apart.
fn once(
    of: &Value,
    key: &str,
    path: &Path,
    errors: &mut ErrorList,
    told: impl Fn(&Value) -> String,
    refused: impl Fn(&Path, String) -> Error,
) {
    let mut seen = BTreeSet::new();
    for (index, element) in list(of, key).iter().enumerate() {
        let own = told(element);
        if !seen.insert(own.clone()) {
            errors.push(refused(&path.child(key).index(index), own));
        }
    }
}

fn name_of(element: &Value) -> String {
    text(element, "name").to_owned()
}

pub(super) fn itself(element: &Value) -> String {
    element.as_str().unwrap_or_default().to_owned()
}

/// A claim that is new.
pub(super) fn claim(claim: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    claim_spec(spec_of(claim), &Path::new("spec"), &mut errors);
    errors
}

/// A template of claims that is new.
pub(super) fn template(template: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(template), Path::new("spec"));
    if let Some(metadata) = spec.get("metadata") {
        volumes::template_metadata(metadata, &path.child("metadata"), &mut errors);
    }
    claim_spec(spec_of(spec), &path.child("spec"), &mut errors);
    errors
}

/// Who asks for a device that others use needs a namespace for that.
pub(super) fn as_administrator(requests: &str, context: &Context<'_>, object: &Value) -> ErrorList {
    let asks = |request: &Value| request.get("exactly").is_some_and(|own| is_true(own, "adminAccess"));
    let requests = meta::elements(object, requests);
    match requests.iter().position(asks) {
        Some(index) if !is_for_administrators(context, object) => {
            let requests = Path::new("spec").child("devices").child("requests");
            vec![no_administrator(&requests.index(index))]
        }
        _ => ErrorList::new(),
    }
}

/// Refuses devices that are given as to an administrator, in namespaces that are not for administrators.
pub(super) fn result_as_administrator(context: &Context<'_>, claim: &Value, old: &Value) -> ErrorList {
    let given = |claim: &Value| {
        let results = meta::elements(claim, "/status/allocation/devices/results");
        results.iter().position(|result| is_true(result, "adminAccess"))
    };
    match given(claim).filter(|_| given(old).is_none()) {
        Some(index) if !is_for_administrators(context, claim) => {
            let results = Path::new("status")
                .child("allocation")
                .child("devices")
                .child("results");
            vec![no_administrator(&results.index(index))]
        }
        _ => ErrorList::new(),
    }
}

/// The label of namespaces whose claims may be an administrator's.
const ADMINISTRATION: &str = "resource.kubernetes.io/admin-access";

fn is_for_administrators(context: &Context<'_>, claim: &Value) -> bool {
    let namespace = context.lister.namespace(meta::namespace(claim));
    let labels = namespace.and_then(|namespace| namespace.at("/metadata/labels").cloned());
    labels.is_some_and(|labels| text(&labels, ADMINISTRATION) == "true")
}

fn no_administrator(of: &Path) -> Error {
    let why =
        format!("admin access to devices requires the `{ADMINISTRATION}: true` label on the containing namespace");
    Error::forbidden(&of.child("adminAccess"), why)
}

/// Takes from a claim's status what drivers say of devices that the claim gives back.
pub(super) fn drop_given_back(claim: &mut Value, old: &Value) {
    let given = |claim: &Value| -> BTreeSet<Device> {
        let results = meta::elements(claim, "/status/allocation/devices/results");
        results.iter().map(Device::of).collect()
    };
    let (now, before) = (given(claim), given(old));
    let Some(Value::Object(status)) = claim.get_mut("status") else {
        return;
    };
    if let Some(Value::Array(devices)) = status.get_mut("devices") {
        devices.retain(|device| {
            let device = Device::of(device);
            now.contains(&device) || !before.contains(&device)
        });
        if devices.is_empty() {
            status.remove("devices");
        }
    }
}

/// What tells a device of a claim apart from others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Device([String; 4]);

impl Device {
    /// The device that a result or a driver's word is about.
    pub(super) fn of(told: &Value) -> Self {
        Self(DEVICE.map(|key| text(told, key).to_owned()))
    }
}

/// Names of requests, and of their alternatives.
struct Requests<'v>(&'v [Value]);

impl<'v> Requests<'v> {
    fn of(spec: &'v Value) -> Self {
        Self(meta::elements(spec, "/devices/requests"))
    }

    fn has(&self, name: &str) -> bool {
        let (first, second) = match name.split_once('/') {
            Some((first, second)) => (first, Some(second)),
            None => (name, None),
        };
        // of two with one name, the later counts
        let Some(request) = self.0.iter().rev().find(|request| text(request, "name") == first) else {
            return false;
        };
        let alternatives = list(request, "firstAvailable");
        second.is_none_or(|second| alternatives.iter().any(|own| text(own, "name") == second))
    }

    fn refer(&self, name: &str, at: &Path, errors: &mut ErrorList) {
        let parts: Vec<&str> = name.split('/').collect();
        if parts.len() <= 2 {
            for part in &parts {
                syntax(meta::dns1123_label(part), part, at, errors);
            }
        }
        if parts.len() > 2 || !self.has(name) {
            errors.push(Error::invalid(at, name, NO_REQUEST));
        }
    }

    fn refer_each(&self, of: &Value, path: &Path, errors: &mut ErrorList) {
        set(of, "requests", MANY, path, errors, itself, |name, at, errors| {
            self.refer(name.as_str().unwrap_or_default(), at, errors);
        });
    }
}

fn claim_spec(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let (known, path) = (Requests::of(spec), path.child("devices"));
    let devices = spec.get("devices").unwrap_or(&Value::Null);
    set(devices, "requests", MANY, &path, errors, name_of, request);
    each(devices, "constraints", MANY, &path, errors, |constraint, at, errors| {
        known.refer_each(constraint, at, errors);
        let attribute = |key: &str| {
            constraint
                .get(key)
                .and_then(Value::as_str)
                .map(|own| (own, at.child(key)))
        };
        match attribute("matchAttribute").or_else(|| attribute("distinctAttribute")) {
            Some((name, at)) => fully_qualified(name, &at, errors),
            None => {
                let why = r#"exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set"#;
                errors.push(Error::required(at, why));
            }
        }
    });
    each(devices, "config", MANY, &path, errors, |config, at, errors| {
        known.refer_each(config, at, errors);
        configuration(config, at, errors);
    });
}

fn request(request: &Value, path: &Path, errors: &mut ErrorList) {
    let name = text(request, "name");
    syntax(meta::dns1123_label(name), name, &path.child("name"), errors);
    let (exactly, alternatives) = (request.get("exactly"), list(request, "firstAvailable"));
    match (exactly, alternatives.is_empty()) {
        (None, true) => {
            errors.push(Error::required(
                path,
                "exactly one of `exactly` or `firstAvailable` is required",
            ));
        }
        (Some(_), false) => {
            let why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            errors.push(Error::invalid(path, Value::Null, why));
        }
        (Some(exactly), true) => wanted(exactly, &path.child("exactly"), errors),
        (None, false) => set(
            request,
            "firstAvailable",
            ALTERNATIVES,
            path,
            errors,
            name_of,
            |own, at, errors| {
                let name = text(own, "name");
                syntax(meta::dns1123_label(name), name, &at.child("name"), errors);
                wanted(own, at, errors);
            },
        ),
    }
}

/// What a request or one of its alternatives wants.
fn wanted(request: &Value, path: &Path, errors: &mut ErrorList) {
    let class = text(request, "deviceClassName");
    checks::required_syntax(class, meta::dns1123_subdomain, &path.child("deviceClassName"), errors);
    selectors(request, path, errors);
    let (count, at) = (number(request, "count").unwrap_or(0), path.child("count"));
    match text(request, "allocationMode") {
        "All" if count != 0 => {
            let why = "must not be specified when allocationMode is 'All'";
            errors.push(Error::invalid(&at, count, why));
        }
        "ExactCount" if count <= 0 => errors.push(Error::invalid(&at, count, "must be greater than zero")),
        "All" | "ExactCount" => {}
        other => {
            let at = path.child("allocationMode");
            errors.push(Error::not_supported(&at, other, &["All", "ExactCount"]));
        }
    }
    for (index, own) in list(request, "tolerations").iter().enumerate() {
        toleration(own, &path.child("tolerations").index(index), errors);
    }
}

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

fn toleration(toleration: &Value, path: &Path, errors: &mut ErrorList) {
    let (key, value) = (text(toleration, "key"), text(toleration, "value"));
    if !key.is_empty() {
        syntax(meta::qualified_name(key), key, &path.child("key"), errors);
    }
    match text(toleration, "operator") {
        "Exists" if !value.is_empty() => {
            let why = "must be empty for operator `Exists`";
            errors.push(Error::invalid(&path.child("value"), value, why));
        }
        "Exists" => {}
        "Equal" => syntax(meta::label_value(value), value, &path.child("value"), errors),
        "" => errors.push(Error::required(&path.child("operator"), "")),
        other => errors.push(Error::not_supported(
            &path.child("operator"),
            other,
            &["Equal", "Exists"],
        )),
    }
    let effect = text(toleration, "effect");
    if !effect.is_empty() && !EFFECTS.contains(&effect) {
        errors.push(Error::not_supported(&path.child("effect"), effect, &EFFECTS));
    }
}

fn selectors(of: &Value, path: &Path, errors: &mut ErrorList) {
    each(of, "selectors", MANY, path, errors, |selector, at, errors| {
        let at = at.child("cel");
        match selector.get("cel") {
            Some(cel) => expression(text(cel, "expression"), &at.child("expression"), errors),
            None => errors.push(Error::required(&at, "")),
        }
    });
}

fn expression(source: &str, at: &Path, errors: &mut ErrorList) {
    if source.len() > LONG {
        errors.push(Error::too_long(at, LONG));
        return;
    }
    // names for values within expressions are not known here: what has some is taken at its word
    if source.contains("cel.bind(") {
        return;
    }
    match SELECTING.compile(source) {
        Err(why) => errors.push(Error::invalid(at, source, format!("compilation failed: {why}"))),
        Ok(program) if program.result == Compiled::Bool || matches!(program.declared.shape, Shape::Dyn) => {}
        Ok(program) => {
            let why = format!("must evaluate to bool or the unknown type, not {}", program.output);
            errors.push(Error::invalid(at, source, why));
        }
    }
}

fn configuration(config: &Value, path: &Path, errors: &mut ErrorList) {
    let at = path.child("opaque");
    let Some(opaque) = config.get("opaque") else {
        errors.push(Error::required(&at, ""));
        return;
    };
    drivers::driver_name(opaque, "driver", &at, errors);
    any_object(
        opaque.get("parameters").unwrap_or(&Value::Null),
        &at.child("parameters"),
        errors,
    );
}

/// An object of any kind that is not long.
pub(super) fn any_object(object: &Value, at: &Path, errors: &mut ErrorList) {
    match object {
        Value::Null => errors.push(Error::required(at, "")),
        object if object.to_string().len() > LONG => errors.push(Error::too_long(at, LONG)),
        Value::Object(_) => {}
        _ => errors.push(Error::invalid(at, "<value omitted>", "must be a valid JSON object")),
    }
}

/// A class of devices.
pub(super) fn class(class: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(class), Path::new("spec"));
    selectors(spec, &path, &mut errors);
    each(spec, "config", MANY, &path, &mut errors, configuration);
    if let Some(name) = spec.get("extendedResourceName").and_then(Value::as_str)
        && !resource_names::is_extended(name)
    {
        let why = "must be a valid extended resource name";
        errors.push(Error::invalid(&path.child("extendedResourceName"), name, why));
    }
    errors
}

/// A change of a claim's status.
pub(super) fn status(claim: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("status");
    let (Some(status), known) = (claim.get("status"), Requests::of(spec_of(claim))) else {
        return errors;
    };
    let uid = |user: &Value| text(user, "uid").to_owned();
    set(
        status,
        "reservedFor",
        USERS,
        &path,
        &mut errors,
        uid,
        |user, at, errors| {
            for key in ["resource", "name", "uid"] {
                if text(user, key).is_empty() {
                    errors.push(Error::required(&at.child(key), ""));
                }
            }
        },
    );
    let (allocation, before) = (status.get("allocation"), old.at("/status/allocation"));
    let results = meta::elements(status, "/allocation/devices/results");
    for (index, device) in list(status, "devices").iter().enumerate() {
        device_status::validate(device, results, &path.child("devices").index(index), &mut errors);
    }
    once(
        status,
        "devices",
        &path,
        &mut errors,
        device_status::shown,
        |at, own| {
            let mut error = Error::duplicate(at, Value::Null);
            error.show_as(own);
            error
        },
    );
    let reserved = list(status, "reservedFor");
    let at = path.child("reservedFor");
    if !reserved.is_empty() && allocation.is_none() {
        errors.push(Error::forbidden(
            &at,
            "may not be specified when `allocated` is not set",
        ));
    } else if meta::is_deleting(claim) {
        let own = meta::elements(old, "/status/reservedFor");
        if reserved.iter().any(|user| !own.contains(user)) {
            let why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.push(Error::forbidden(&at, why));
        }
    }
    let at = path.child("allocation");
    match (allocation, before) {
        (Some(allocation), Some(before)) if allocation != before => {
            let shown = internal::text("resource.AllocationResult", allocation);
            errors.push(Error::literal(&at, shown, "field is immutable"));
        }
        (Some(allocation), None) => allocated(allocation, &known, &at, &mut errors),
        _ => {}
    }
    errors
}

fn allocated(allocation: &Value, known: &Requests<'_>, path: &Path, errors: &mut ErrorList) {
    let at = path.child("devices");
    let devices = allocation.get("devices").unwrap_or(&Value::Null);
    each(devices, "results", MANY, &at, errors, |result, at, errors| {
        known.refer(text(result, "request"), &at.child("request"), errors);
        drivers::driver_name(result, "driver", at, errors);
        pool_name(text(result, "pool"), &at.child("pool"), errors);
        let device = text(result, "device");
        syntax(meta::dns1123_label(device), device, &at.child("device"), errors);
        binding(result, at, errors);
        if let Some(share) = result.get("shareID").and_then(Value::as_str) {
            errors.extend(checks::uuid(share).map(|why| Error::invalid(&at.child("shareID"), share, why)));
        }
    });
    each(devices, "config", 2 * MANY, &at, errors, |config, at, errors| {
        match text(config, "source") {
            "" => errors.push(Error::required(&at.child("source"), "")),
            "FromClaim" | "FromClass" => {}
            other => {
                let known = ["FromClaim", "FromClass"];
                errors.push(Error::not_supported(&at.child("source"), other, &known));
            }
        }
        known.refer_each(config, at, errors);
        configuration(config, at, errors);
    });
    if let Some(selector) = allocation.get("nodeSelector") {
        scheduling::validate_node_selector(selector, &path.child("nodeSelector"), errors);
    }
}

pub(super) fn pool_name(name: &str, at: &Path, errors: &mut ErrorList) {
    if name.is_empty() {
        errors.push(Error::required(at, ""));
        return;
    }
    if name.len() > POOL_NAME_MAX {
        errors.push(Error::too_long(at, POOL_NAME_MAX));
    }
    for part in name.split('/') {
        syntax(meta::dns1123_subdomain(part), part, at, errors);
    }
}

/// Where the devices of a slice, or one device, can be used: the ways that are told.
fn ways(of: &Value, keys: &[&str], empty: &str, path: &Path, errors: &mut ErrorList) -> Vec<String> {
    let mut told = Vec::new();
    for key in keys {
        let at = path.child(key);
        match of.get(key) {
            None | Some(Value::Null) => continue,
            Some(Value::String(name)) if name.is_empty() => {
                errors.push(Error::invalid(&at, "", empty));
                continue;
            }
            Some(Value::String(name)) => syntax(meta::dns1123_subdomain(name), name, &at, errors),
            Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => {
                errors.push(Error::invalid(&at, false, "must be either unset or set to true"));
                continue;
            }
            Some(selector) => {
                scheduling::validate_node_selector(selector, &at, errors);
                let terms = selector.get("nodeSelectorTerms").cloned().unwrap_or_default();
                // of a slice, whose selector is joined with others'
                if keys.contains(&"perDeviceNodeSelection") && terms.as_array().is_none_or(|terms| terms.len() != 1) {
                    let why = "must have exactly one node selector term";
                    let shown = internal::text("[]core.NodeSelectorTerm", &terms);
                    errors.push(Error::literal(&at.child("nodeSelectorTerms"), shown, why));
                }
            }
        }
        told.push(format!("`{key}`"));
    }
    told
}

/// What a driver offers; `old` of a change.
pub(super) fn slice(slice: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(slice), Path::new("spec"));
    drivers::driver_name(spec, "driver", &path, &mut errors);
    let (pool, at) = (spec.get("pool").unwrap_or(&Value::Null), path.child("pool"));
    pool_name(text(pool, "name"), &at.child("name"), &mut errors);
    let slices = number(pool, "resourceSliceCount").unwrap_or(0);
    if slices <= 0 {
        let at = at.child("resourceSliceCount");
        errors.push(Error::invalid(&at, slices, "must be greater than zero"));
    }
    if let Some(generation) = number(pool, "generation").filter(|generation| *generation < 0) {
        let why = "must be greater than or equal to zero";
        errors.push(Error::invalid(&at.child("generation"), generation, why));
    }
    if let Some(old) = old {
        errors.extend(super::fixed_in_slices(slice, old));
    }
    let keys = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
    let empty = "must be either unset or set to a non-empty string";
    let told = ways(spec, &keys, empty, &path, &mut errors);
    let why = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match told.len() {
        0 => errors.push(Error::required(&path, why)),
        1 => {}
        _ => {
            let why = format!("{why}, but multiple fields are set");
            errors.push(Error::invalid(&path, format!("{{{}}}", told.join(", ")), why));
        }
    }
    let is_there = |key: &str| spec.get(key).is_some_and(|own| !own.is_null());
    if is_there("sharedCounters") && is_there("devices") {
        let why = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(Error::invalid(&path, "", why));
    }
    let most = match list(spec, "devices").iter().any(is_long) {
        true => DEVICES.1,
        false => DEVICES.0,
    };
    let chosen_each = is_true(spec, "perDeviceNodeSelection");
    set(spec, "devices", most, &path, &mut errors, name_of, |own, at, errors| {
        device(own, chosen_each, at, errors);
    });
    set(
        spec,
        "sharedCounters",
        COUNTERS.0,
        &path,
        &mut errors,
        name_of,
        |counters, at, errors| {
            counters_of(counters, "name", at, errors);
        },
    );
    errors
}

/// Whether a device is one of those that are described at length.
fn is_long(device: &Value) -> bool {
    let lists = ["bools", "ints", "strings", "versions"];
    !list(device, "taints").is_empty()
        || !list(device, "consumesCounters").is_empty()
        || map(device, "attributes").any(|(_, own)| lists.iter().any(|key| own.get(key).is_some()))
}

fn counters_of(set: &Value, name: &str, path: &Path, errors: &mut ErrorList) {
    checks::required_syntax(text(set, name), meta::dns1123_label, &path.child(name), errors);
    let at = path.child("counters");
    let count = map(set, "counters").count();
    if count == 0 {
        errors.push(Error::required(&at, ""));
    } else if count > COUNTERS.1 {
        errors.push(Error::too_many(&at, count, COUNTERS.1));
    } else {
        for (name, _) in map(set, "counters") {
            syntax(meta::dns1123_label(name), name, &at, errors);
        }
    }
}

fn device(device: &Value, chosen_each: bool, path: &Path, errors: &mut ErrorList) {
    let name = text(device, "name");
    syntax(meta::dns1123_label(name), name, &path.child("name"), errors);
    let total = map(device, "attributes").chain(map(device, "capacity")).count();
    if total > ATTRIBUTES {
        let why = format!("the total number of attributes and capacities must not exceed {ATTRIBUTES}");
        errors.push(Error::invalid(path, total, why));
    }
    for (name, value) in map(device, "attributes") {
        let at = path.child("attributes");
        qualified(name, &at, errors);
        attribute(value, &at.key(name), errors);
    }
    for (name, value) in map(device, "capacity") {
        let at = path.child("capacity");
        qualified(name, &at, errors);
        let at = at.key(name).child("requestPolicy");
        match value.get("requestPolicy") {
            Some(policy) if is_true(device, "allowMultipleAllocations") => {
                capacities::validate(policy, value, &at, errors);
            }
            Some(_) => errors.push(Error::forbidden(&at, "allowMultipleAllocations must be true")),
            None => {}
        }
    }
    each(device, "taints", TAINTS, path, errors, |taint, at, errors| {
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        syntax(meta::qualified_name(key), key, &at.child("key"), errors);
        syntax(meta::label_value(value), value, &at.child("value"), errors);
        match effect {
            "" => errors.push(Error::required(&at.child("effect"), "")),
            known if EFFECTS.contains(&known) => {}
            other => errors.push(Error::not_supported(&at.child("effect"), other, &EFFECTS)),
        }
    });
    let counters = |own: &Value| text(own, "counterSet").to_owned();
    set(
        device,
        "consumesCounters",
        COUNTERS.2,
        path,
        errors,
        counters,
        |own, at, errors| {
            counters_of(own, "counterSet", at, errors);
        },
    );
    let keys = ["nodeName", "nodeSelector", "allNodes"];
    if chosen_each {
        let told = ways(device, &keys, "must not be empty", path, errors);
        let why = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        match told.len() {
            0 => errors.push(Error::required(path, why)),
            1 => {}
            _ => errors.push(Error::invalid(path, format!("{{{}}}", told.join(", ")), why)),
        }
    } else if keys.iter().any(|key| device.get(key).is_some_and(|own| !own.is_null())) {
        let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        errors.push(Error::invalid(path, Value::Null, why));
    }
    binding(device, path, errors);
}

/// The conditions under which a pod may, or may not, be bound to a node because of a device.
fn binding(device: &Value, path: &Path, errors: &mut ErrorList) {
    let keys = ["bindingConditions", "bindingFailureConditions"];
    for key in keys {
        each(
            device,
            key,
            BINDING_CONDITIONS,
            path,
            errors,
            |condition, at, errors| {
                let condition = condition.as_str().unwrap_or_default();
                syntax(meta::qualified_name(condition), condition, at, errors);
            },
        );
    }
    for key in keys {
        let mut seen = BTreeSet::new();
        for (index, condition) in list(device, key).iter().enumerate() {
            let at = path.child(key).index(index);
            if !seen.insert(condition.as_str()) {
                errors.push(Error::duplicate(&at, condition.clone()));
            }
            if key == "bindingFailureConditions" && list(device, "bindingConditions").contains(condition) {
                let why = "bindingFailureConditions must not overlap with bindingConditions";
                errors.push(Error::invalid(&at, condition.clone(), why));
            }
        }
    }
    for (key, other) in [(keys[0], keys[1]), (keys[1], keys[0])] {
        if list(device, key).is_empty() && !list(device, other).is_empty() {
            let why = format!("{key} are required to use {other}");
            errors.push(Error::invalid(&path.child(key), Value::Null, why));
        }
    }
}

fn attribute(attribute: &Value, at: &Path, errors: &mut ErrorList) {
    let mut told = 0;
    for key in [
        "bool", "int", "string", "version", "bools", "ints", "strings", "versions",
    ] {
        let at = at.child(key);
        match attribute.get(key) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(values)) if values.is_empty() => {
                errors.push(Error::invalid(&at, json!([]), "must not be empty if specified"));
            }
            Some(Value::Array(values)) => {
                for (index, value) in values.iter().enumerate() {
                    attribute_value(key.trim_end_matches('s'), value, &at.index(index), errors);
                }
            }
            Some(value) => attribute_value(key, value, &at, errors),
        }
        told += 1;
    }
    match told {
        0 => errors.push(Error::invalid(at, "", "exactly one value must be specified")),
        1 => {}
        _ => {
            let shown = internal::text("resource.DeviceAttribute", attribute);
            errors.push(Error::literal(at, shown, "exactly one value must be specified"));
        }
    }
}

fn attribute_value(of: &str, value: &Value, at: &Path, errors: &mut ErrorList) {
    let Some(value) = value.as_str() else { return };
    if of == "version" && !is_version(value) {
        let why = "must be a string compatible with semver.org spec 2.0.0";
        errors.push(Error::invalid(at, value, why));
    }
    if value.len() > ATTRIBUTE_MAX {
        errors.push(Error::too_long(at, ATTRIBUTE_MAX));
    }
}

/// Whether a text is a version as semver.org has it.
fn is_version(text: &str) -> bool {
    let is_number = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits && (part == "0" || !part.starts_with('0'))
    };
    let is_word =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, Some(build)),
        None => (text, None),
    };
    let (numbers, before) = match text.split_once('-') {
        Some((numbers, before)) => (numbers, Some(before)),
        None => (text, None),
    };
    let is_before = |part: &str| is_word(part) && (is_number(part) || !part.bytes().all(|byte| byte.is_ascii_digit()));
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && before.is_none_or(|before| before.split('.').all(is_before))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

/// The name of an attribute, which may have a domain.
fn qualified(name: &str, at: &Path, errors: &mut ErrorList) {
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [id] => identifier(id, at, errors),
        [domain, id] => {
            match *domain {
                "" => errors.push(Error::invalid(at, "", "the domain must not be empty")),
                domain => drivers::name_syntax(domain, at, errors),
            }
            match *id {
                "" => errors.push(Error::invalid(at, "", "the name must not be empty")),
                id => identifier(id, at, errors),
            }
        }
        // upstream lets these through
        _ => {}
    }
}

fn fully_qualified(name: &str, at: &Path, errors: &mut ErrorList) {
    qualified(name, at, errors);
    if !name.contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(Error::invalid(at, name, why));
    }
}

fn identifier(id: &str, at: &Path, errors: &mut ErrorList) {
    if id.len() > ID_MAX {
        errors.push(Error::too_long(at, ID_MAX));
    }
    let is_identifier = id.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_identifier {
        let why = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
        errors.push(Error::invalid(at, id, why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_semantic() {
        for text in ["1.2.3", "0.0.0", "1.2.3-alpha.1+build.05", "1.0.0-x-y", "1.0.0+a-b"] {
            assert!(is_version(text), "{text}");
        }
        for text in ["1.2", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "v1.2.3", "1.2.3.4", ""] {
            assert!(!is_version(text), "{text}");
        }
    }

    #[test]
    fn alternatives_are_requests_too() {
        let spec = json!({"devices": {"requests": [{"name": "a"}, {"name": "b", "firstAvailable": [{"name": "c"}]}]}});
        let known = Requests::of(&spec);
        for (name, expected) in [
            ("a", true),
            ("b", true),
            ("b/c", true),
            ("a/c", false),
            ("c", false),
            ("b/d", false),
        ] {
            assert_eq!(known.has(name), expected, "{name}");
        }
    }
}
