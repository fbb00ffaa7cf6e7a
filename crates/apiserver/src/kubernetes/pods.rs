//! Pods: how they begin and end, and their subresources.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::quantity::Amount;
use gardener_apimachinery::selector::LabelSelector;
use serde_json::{Value, json};

use super::strategy::Kind;
use crate::definition::{Context, Effect, Subresource};
use crate::meta;

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.prepare_create = prepare_create;
    kind.validate = validate;
    kind.validate_update = validate_update;
    kind.fields = fields;
    kind.grace = grace;
    kind
}

fn prepare_create(_: &Context<'_>, pod: &mut Value) -> Result<(), ApiError> {
    let class = quality_of_service(pod);
    if let Some(members) = pod.as_object_mut() {
        members.insert("status".into(), json!({"phase": "Pending", "qosClass": class}));
    }
    Ok(())
}

/// `Guaranteed` when every container's cpu and memory limits equal its requests, `BestEffort` when there are none of either, else `Burstable`.
pub(super) fn quality_of_service(pod: &Value) -> &'static str {
    let containers: Vec<&Value> = ["/spec/containers", "/spec/initContainers"]
        .iter()
        .filter_map(|path| pod.pointer(path).and_then(Value::as_array))
        .flatten()
        .collect();
    let amount = |container: &Value, kind: &str, resource: &str| {
        container
            .pointer(&format!("/resources/{kind}/{resource}"))
            .and_then(Value::as_str)
            .filter(|text| *text != "0")
            .map(str::to_owned)
    };
    let mut any = false;
    let mut guaranteed = true;
    for container in containers {
        for resource in ["cpu", "memory"] {
            let (request, limit) = (
                amount(container, "requests", resource),
                amount(container, "limits", resource),
            );
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn validate(pod: &Value) -> ErrorList {
    let mut errors = Vec::new();
    validate_spec(
        pod.get("spec").unwrap_or(&Value::Null),
        &[],
        &Path::new("spec"),
        &mut errors,
    );
    errors
}

/// What every pod spec must have, in pods and in templates. `claims` are volumes that pods get besides the spec's own.
pub(super) fn validate_spec(spec: &Value, claims: &[&str], path: &Path, errors: &mut ErrorList) {
    let containers = spec
        .get("containers")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if containers.is_empty() {
        errors.push(Error::required(&path.child("containers"), ""));
    }
    let mut volumes = validate_volumes(spec, &path.child("volumes"), errors);
    volumes.extend(claims);
    let mut names: Vec<&str> = Vec::new();
    for (list, required) in [("containers", true), ("initContainers", false)] {
        let list_path = path.child(list);
        for (index, container) in spec
            .get(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            let at = list_path.index(index);
            let name = meta::text(container, "/name");
            if name.is_empty() {
                errors.push(Error::required(&at.child("name"), ""));
            } else {
                errors.extend(
                    meta::dns1123_label(name)
                        .into_iter()
                        .map(|error| Error::invalid(&at.child("name"), name, error)),
                );
                if names.contains(&name) {
                    errors.push(Error::duplicate(&at.child("name"), name));
                }
                names.push(name);
            }
            if required && meta::text(container, "/image").is_empty() {
                errors.push(Error::required(&at.child("image"), ""));
            }
            validate_ports(container, &at.child("ports"), errors);
            validate_mounts(container, &volumes, &at.child("volumeMounts"), errors);
            let policies = ["Always", "IfNotPresent", "Never"];
            let policy = meta::text(container, "/imagePullPolicy");
            if !policy.is_empty() && !policies.contains(&policy) {
                errors.push(Error::not_supported(&at.child("imagePullPolicy"), policy, &policies));
            }
            validate_resources(container, &at.child("resources"), errors);
        }
    }
    let policy = meta::text(spec, "/restartPolicy");
    if !policy.is_empty() && !["Always", "OnFailure", "Never"].contains(&policy) {
        errors.push(Error::not_supported(
            &path.child("restartPolicy"),
            policy,
            &["Always", "OnFailure", "Never"],
        ));
    }
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    let policy = meta::text(spec, "/dnsPolicy");
    if !policy.is_empty() && !policies.contains(&policy) {
        errors.push(Error::not_supported(&path.child("dnsPolicy"), policy, &policies));
    }
}

/// The names of a pod's volumes.
fn validate_volumes<'a>(spec: &'a Value, path: &Path, errors: &mut ErrorList) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (index, volume) in meta::elements(spec, "/volumes").iter().enumerate() {
        let at = path.index(index).child("name");
        match meta::text(volume, "/name") {
            "" => errors.push(Error::required(&at, "")),
            name if names.contains(&name) => errors.push(Error::duplicate(&at, name)),
            name => {
                let wrong = meta::dns1123_label(name).into_iter();
                errors.extend(wrong.map(|why| Error::invalid(&at, name, why)));
                names.push(name);
            }
        }
    }
    names
}

fn validate_ports(container: &Value, path: &Path, errors: &mut ErrorList) {
    for (index, port) in meta::elements(container, "/ports").iter().enumerate() {
        let at = path.index(index);
        for (member, required) in [("containerPort", true), ("hostPort", false)] {
            match port.get(member).and_then(Value::as_i64).unwrap_or(0) {
                0 if required => errors.push(Error::required(&at.child(member), "")),
                0 => {}
                number => errors.extend(port_number(number, &at.child(member))),
            }
        }
        let named = port
            .get("protocol")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty());
        errors.extend(named.and_then(|protocol| port_protocol(protocol, &at.child("protocol"))));
    }
}

/// What is wrong with the number of a port.
pub(super) fn port_number(number: i64, path: &Path) -> Option<Error> {
    let why = "must be between 1 and 65535, inclusive";
    (!(1..=65_535).contains(&number)).then(|| Error::invalid(path, number, why))
}

/// What is wrong with the protocol of a port.
pub(super) fn port_protocol(protocol: &str, path: &Path) -> Option<Error> {
    let known = ["SCTP", "TCP", "UDP"];
    (!known.contains(&protocol)).then(|| Error::not_supported(path, protocol, &known))
}

fn validate_mounts(container: &Value, volumes: &[&str], path: &Path, errors: &mut ErrorList) {
    let mut places: Vec<&str> = Vec::new();
    for (index, mount) in meta::elements(container, "/volumeMounts").iter().enumerate() {
        let at = path.index(index);
        match meta::text(mount, "/name") {
            "" => errors.push(Error::required(&at.child("name"), "")),
            name if !volumes.contains(&name) => errors.push(Error::not_found(&at.child("name"), name)),
            _ => {}
        }
        match meta::text(mount, "/mountPath") {
            "" => errors.push(Error::required(&at.child("mountPath"), "")),
            place if places.contains(&place) => {
                errors.push(Error::invalid(&at.child("mountPath"), place, "must be unique"));
            }
            place => places.push(place),
        }
    }
}

/// Nothing is negative, and no request is above its limit.
fn validate_resources(container: &Value, path: &Path, errors: &mut ErrorList) {
    let amount = |list: &str, name: &str| -> Option<Amount> {
        let value = container.get("resources")?.get(list)?.get(name)?;
        value
            .as_str()
            .map_or_else(|| value.to_string().parse().ok(), |text| text.parse().ok())
    };
    for list in ["limits", "requests"] {
        let named = container.get("resources").and_then(|resources| resources.get(list));
        for (name, value) in named.and_then(Value::as_object).into_iter().flatten() {
            let Some(asked) = amount(list, name) else { continue };
            if asked.is_negative() {
                errors.push(Error::invalid(
                    &path.child(list).key(name),
                    value.clone(),
                    "must be greater than or equal to 0",
                ));
            }
            if list == "requests"
                && let Some(limit) = amount("limits", name).filter(|limit| asked > *limit)
            {
                errors.push(Error::invalid(
                    &path.child("requests"),
                    value.clone(),
                    format!("must be less than or equal to {name} limit of {limit}"),
                ));
            }
        }
    }
}

/// Only images, tolerations added, the active deadline and the grace period of a pod's spec may change.
fn validate_update(pod: &Value, old: &Value) -> ErrorList {
    let reduced = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or(Value::Null);
        if let Some(spec) = spec.as_object_mut() {
            for key in [
                "tolerations",
                "activeDeadlineSeconds",
                "schedulingGates",
                "terminationGracePeriodSeconds",
            ] {
                spec.remove(key);
            }
            for list in ["containers", "initContainers"] {
                for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    if let Some(container) = container.as_object_mut() {
                        container.remove("image");
                    }
                }
            }
        }
        spec
    };
    if reduced(pod) == reduced(old) {
        return Vec::new();
    }
    vec![Error::forbidden(
        &Path::new("spec"),
        "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )]
}

fn fields(pod: &Value) -> Vec<(String, String)> {
    let text = |path: &str| meta::text(pod, path).to_owned();
    vec![
        ("spec.nodeName".into(), text("/spec/nodeName")),
        ("spec.restartPolicy".into(), text("/spec/restartPolicy")),
        ("spec.schedulerName".into(), text("/spec/schedulerName")),
        ("spec.serviceAccountName".into(), text("/spec/serviceAccountName")),
        (
            "spec.hostNetwork".into(),
            pod.pointer("/spec/hostNetwork")
                .and_then(Value::as_bool)
                .unwrap_or(false)
                .to_string(),
        ),
        ("status.phase".into(), text("/status/phase")),
        ("status.podIP".into(), text("/status/podIP")),
        ("status.nominatedNodeName".into(), text("/status/nominatedNodeName")),
    ]
}

/// A pod without a node, or one that has ended, goes at once; the others get their own grace period unless the client asks otherwise.
fn grace(pod: &Value, asked: Option<i64>) -> Option<i64> {
    if meta::text(pod, "/spec/nodeName").is_empty()
        || matches!(meta::text(pod, "/status/phase"), "Succeeded" | "Failed")
    {
        return Some(0);
    }
    let own = pod
        .pointer("/spec/terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(30);
    Some(asked.unwrap_or(own).max(0))
}

/// `pods/binding`: assigns a pod to a node.
pub(super) struct Binding;

#[async_trait]
impl Subresource for Binding {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        ("", "v1", "Binding")
    }

    async fn call(&self, context: &Context<'_>, _: &str, pod: &Value, body: Value) -> Result<Effect, ApiError> {
        let node = meta::text(&body, "/target/name");
        if node.is_empty() {
            return Err(ApiError::invalid(
                "",
                "Binding",
                meta::name(pod),
                &[Error::required(&Path::new("target.name"), "")],
            ));
        }
        if meta::is_deleting(pod) {
            return Err(ApiError::conflict(
                "",
                "pods",
                meta::name(pod),
                &format!("pod {} is being deleted, cannot be assigned to a host", meta::name(pod)),
            ));
        }
        let current = meta::text(pod, "/spec/nodeName");
        if !current.is_empty() {
            return Err(ApiError::conflict(
                "",
                "pods/binding",
                meta::name(pod),
                &format!("pod {} is already assigned to node {current:?}", meta::name(pod)),
            ));
        }
        let mut pod = pod.clone();
        set(&mut pod, &["spec", "nodeName"], node.into());
        set_condition(&mut pod, "PodScheduled", "True", context);
        Ok(Effect::StoreAndAnswer(
            pod,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        ))
    }
}

fn set(object: &mut Value, path: &[&str], value: Value) {
    let mut at = object;
    for step in path {
        if !at.is_object() {
            *at = json!({});
        }
        let Value::Object(members) = at else { return };
        at = members.entry(*step).or_insert(Value::Null);
    }
    *at = value;
}

fn set_condition(pod: &mut Value, kind: &str, status: &str, context: &Context<'_>) {
    let mut conditions = pod
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    conditions.retain(|condition| meta::text(condition, "/type") != kind);
    conditions.push(json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": meta::rfc3339(context.now)}));
    set(pod, &["status", "conditions"], json!(conditions));
}

/// `pods/eviction`: deletes a pod unless a disruption budget is against it.
pub(super) struct Eviction;

#[async_trait]
impl Subresource for Eviction {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        ("policy", "v1", "Eviction")
    }

    async fn call(&self, context: &Context<'_>, _: &str, pod: &Value, body: Value) -> Result<Effect, ApiError> {
        let success = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        let grace = body
            .pointer("/deleteOptions/gracePeriodSeconds")
            .and_then(Value::as_i64);
        let ended = matches!(meta::text(pod, "/status/phase"), "Succeeded" | "Failed" | "Pending");
        if ended || meta::is_deleting(pod) {
            return Ok(Effect::Delete(grace, success));
        }
        let labels = meta::string_map(pod.pointer("/metadata/labels"));
        let budgets: Vec<_> = context
            .lister
            .list("policy", "poddisruptionbudgets", Some(meta::namespace(pod)))
            .into_iter()
            .filter(|budget| {
                let selector = budget
                    .pointer("/spec/selector")
                    .cloned()
                    .and_then(|selector| serde_json::from_value(selector).ok());
                selector.is_some_and(
                    |selector: k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector| {
                        LabelSelector::from(&selector).matches(&labels)
                    },
                )
            })
            .collect();
        match budgets.as_slice() {
            [] => Ok(Effect::Delete(grace, success)),
            [budget] => {
                let allowed = budget
                    .pointer("/status/disruptionsAllowed")
                    .and_then(Value::as_i64)
                    .unwrap_or(0);
                let observed = budget
                    .pointer("/status/observedGeneration")
                    .and_then(Value::as_i64)
                    .unwrap_or(0);
                let generation = budget
                    .pointer("/metadata/generation")
                    .and_then(Value::as_i64)
                    .unwrap_or(0);
                let ready = pod
                    .pointer("/status/conditions")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .any(|c| meta::text(c, "/type") == "Ready" && meta::text(c, "/status") == "True");
                let (healthy, desired) = (
                    budget
                        .pointer("/status/currentHealthy")
                        .and_then(Value::as_i64)
                        .unwrap_or(0),
                    budget
                        .pointer("/status/desiredHealthy")
                        .and_then(Value::as_i64)
                        .unwrap_or(0),
                );
                // a pod that is not ready disrupts nothing while enough others are healthy
                if allowed > 0 && observed >= generation || (!ready && healthy >= desired && desired > 0) {
                    return Ok(Effect::Delete(grace, success));
                }
                let why = format!(
                    "The disruption budget {} needs {desired} healthy pods and has {healthy} currently",
                    meta::name(budget)
                );
                let cause = k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusCause {
                    reason: Some("DisruptionBudget".into()),
                    message: Some(why),
                    field: None,
                };
                Err(ApiError::new(
                    429,
                    "TooManyRequests",
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                )
                .with_causes(vec![cause]))
            }
            _ => Err(ApiError::new(
                500,
                "InternalError",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )),
        }
    }
}

/// `pods/log`. Pods of an embedded cluster are simulated: their log is what happened to them.
pub(super) struct Log;

#[async_trait]
impl Subresource for Log {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        ("", "v1", "Pod")
    }

    fn verbs(&self) -> &'static [&'static str] {
        &["get"]
    }

    async fn call(&self, _: &Context<'_>, _: &str, pod: &Value, query: Value) -> Result<Effect, ApiError> {
        let wanted = meta::text(&query, "/container");
        let statuses: Vec<&Value> = pod
            .pointer("/status/containerStatuses")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .collect();
        let status = if wanted.is_empty() {
            statuses.first()
        } else {
            statuses.iter().find(|status| meta::text(status, "/name") == wanted)
        };
        let exists = pod
            .pointer("/spec/containers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .any(|container| wanted.is_empty() || meta::text(container, "/name") == wanted);
        if !exists {
            return Err(ApiError::bad_request(format!(
                "container {wanted} is not valid for pod {}",
                meta::name(pod)
            )));
        }
        let Some(started) = status
            .and_then(|status| {
                status
                    .pointer("/state/running/startedAt")
                    .or_else(|| status.pointer("/state/terminated/startedAt"))
            })
            .and_then(Value::as_str)
        else {
            let name = if wanted.is_empty() {
                statuses
                    .first()
                    .map(|status| meta::text(status, "/name"))
                    .unwrap_or_default()
            } else {
                wanted
            };
            return Err(ApiError::bad_request(format!(
                "container {name:?} in pod {:?} is waiting to start: ContainerCreating",
                meta::name(pod)
            )));
        };
        Ok(Effect::Text(format!(
            "{started} this container is simulated by the embedded cluster: it has a state, but no process and no output\n"
        )))
    }
}

/// Subresources that take the whole pod: `ephemeralcontainers`, `resize`.
pub(super) struct Replace;

#[async_trait]
impl Subresource for Replace {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        ("", "v1", "Pod")
    }

    fn verbs(&self) -> &'static [&'static str] {
        &["get", "patch", "update"]
    }

    async fn call(&self, _: &Context<'_>, verb: &str, pod: &Value, body: Value) -> Result<Effect, ApiError> {
        if verb == "get" {
            return Ok(Effect::Answer(pod.clone()));
        }
        let mut pod = pod.clone();
        for key in ["ephemeralContainers", "containers"] {
            if let Some(list) = body.pointer(&format!("/spec/{key}")) {
                set(&mut pod, &["spec", key], list.clone());
            }
        }
        Ok(Effect::Store(pod))
    }
}
