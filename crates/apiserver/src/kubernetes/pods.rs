//! Pods: how they begin and end, and their subresources. What must hold of their specs is in the modules below.

pub(super) mod annotations;
mod containers;
mod environment;
mod eviction;
pub(super) mod gates;
pub(super) mod in_tree;
mod log;
mod probes;
pub(super) mod resources;
pub(super) mod scheduling;
mod security;
pub(super) mod spec;
mod status;
pub(super) mod volumes;
pub(super) mod warnings;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{self, Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::checks::{keep, keep_node_affinity, list, spec_of, text};
use super::defaults;
use super::internal;
use super::strategy::Kind;
use crate::definition::{Context, Effect, Subresource};
use crate::meta;
use crate::selectable::Selectable;

pub(super) use eviction::Eviction;
pub(super) use log::Log;
pub(super) use security::not_allowed;

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.prepare_create = prepare_create;
    kind.validate = validate;
    kind.validate_create = validate_create;
    kind.validate_update = validate_update;
    kind.default = |pod| {
        defaults::pod(pod);
        status::agree_on_addresses(pod);
    };
    kind.prepare_status = |_, pod, old| status::prepare(pod, old);
    kind.validate_status = status::validate;
    kind.views = &["ephemeralcontainers", "resize"];
    kind.update_view = |view, _, pod, old| update_view(view, pod, old);
    kind.whole_first = true;
    kind.status_keeps = Some("ownerReferences");
    kind.left_alone = |subresource| match subresource {
        "status" => &["metadata.deletionTimestamp", "metadata.ownerReferences"],
        _ => &[],
    };
    // last, for who is warned of an annotation is told before it has become a field
    kind.canonicalize = annotations::take_app_armor;
    kind.fields = FIELDS;
    kind.grace = grace;
    // upstream spares the changes, which are hardly ever people's
    kind.warnings = |pod, old| old.map_or_else(|| warnings::of_pod(pod), |_| Vec::new());
    kind
}

fn prepare_create(context: &Context<'_>, pod: &mut Value) -> Result<(), ApiError> {
    let class = resources::quality_of_service(pod);
    let mut status = json!({"phase": "Pending", "qosClass": class});
    if !meta::elements(pod, "/spec/schedulingGates").is_empty() {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": meta::rfc3339(context.now),
        }]);
    }
    if let Some(members) = pod.as_object_mut() {
        members.insert("status".into(), status);
    }
    scheduling::merge_label_keys(pod);
    Ok(())
}

fn validate(pod: &Value) -> ErrorList {
    let mut errors = Vec::new();
    let none = Value::Null;
    let own = pod.get("spec").unwrap_or(&none);
    let path = Path::new("spec");
    annotations::validate(pod, &Path::new("metadata").child("annotations"), &mut errors);
    spec::validate(own, Some(meta::name(pod)), &path, &mut errors);
    if text(own, "serviceAccountName").is_empty() {
        for (index, volume) in list(own, "volumes").iter().enumerate() {
            let at = path.child("volumes").index(index).child("projected").child("sources");
            let sources = volume.get("projected").map_or(&[][..], |own| list(own, "sources"));
            let tokens = sources
                .iter()
                .enumerate()
                .filter(|(_, source)| source.get("serviceAccountToken").is_some());
            errors.extend(tokens.map(|(index, _)| {
                let why = "must not be specified when serviceAccountName is not set";
                Error::forbidden(&at.index(index).child("serviceAccountToken"), why)
            }));
        }
    }
    for key in ["containers", "initContainers"] {
        for (index, container) in list(own, key).iter().enumerate() {
            containers::untrimmed_image(container, &path.child(key).index(index), &mut errors);
        }
    }
    errors
}

fn validate_create(pod: &Value) -> ErrorList {
    let mut errors = Vec::new();
    let path = Path::new("spec");
    if !meta::elements(pod, "/spec/ephemeralContainers").is_empty() {
        errors.push(Error::forbidden(
            &path.child("ephemeralContainers"),
            "cannot be set on create",
        ));
    }
    if !meta::text(pod, "/spec/nodeName").is_empty() && !meta::elements(pod, "/spec/schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(Error::forbidden(&path.child("nodeName"), why));
    }
    annotations::validate_profiles(pod, &path, true, &mut errors);
    errors
}

/// Only images, tolerations added, gates taken away, and the active deadline of a pod's spec may change.
fn validate_update(pod: &Value, old: &Value) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = Vec::new();
    annotations::validate_changes(pod, old, &mut errors);
    for key in ["containers", "initContainers"] {
        let containers = |pod| list(spec_of(pod), key);
        let at = path.child(key);
        if containers(pod).len() != containers(old).len() {
            let why = "pod updates may not add or remove containers";
            errors.push(Error::forbidden(&at, why));
            return errors;
        }
        for (index, container) in containers(pod).iter().enumerate() {
            let at = at.index(index);
            if text(container, "image").is_empty() {
                errors.push(Error::required(&at.child("image"), ""));
            }
            containers::untrimmed_image(container, &at, &mut errors);
        }
    }
    let at = path.child("activeDeadlineSeconds");
    let deadline = |pod: &Value| pod.at("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    match (deadline(pod), deadline(old)) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            errors.push(Error::invalid(&at, new, "must be between 0 and 2147483647, inclusive"));
            return errors;
        }
        (Some(new), Some(before)) if new > before => {
            errors.push(Error::invalid(&at, new, "must be less than or equal to previous value"));
            return errors;
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(Error::invalid(&at, Value::Null, why));
        }
        _ => {}
    }
    let without_time = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(members) = toleration.as_object_mut() {
            members.remove("tolerationSeconds");
        }
        toleration
    };
    let tolerations: Vec<Value> = meta::elements(pod, "/spec/tolerations")
        .iter()
        .map(without_time)
        .collect();
    let mut before = meta::elements(old, "/spec/tolerations").iter().map(without_time);
    if before.any(|toleration| !tolerations.contains(&toleration)) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(Error::forbidden(&path.child("tolerations"), why));
    } else {
        scheduling::validate_tolerations(spec_of(pod), &path.child("tolerations"), &mut errors);
    }
    let gates = meta::elements(old, "/spec/schedulingGates");
    let added = meta::elements(pod, "/spec/schedulingGates").iter().enumerate();
    errors.extend(added.filter(|(_, gate)| !gates.contains(gate)).map(|(at, gate)| {
        let why = format!(
            "only deletion is allowed, but found new scheduling gate '{}'",
            text(gate, "name")
        );
        Error::forbidden(&path.child("schedulingGates").index(at).child("name"), why)
    }));
    let is_gated = !gates.is_empty();
    if is_gated {
        errors.extend(more_selective(pod, old, &path));
    }
    let (before, none) = (old.get("spec"), Value::Null);
    let fixed = without_permitted_changes(pod, before.unwrap_or(&none), is_gated);
    if Some(&fixed) != before {
        let changes = internal::changes("core.PodSpec", before.unwrap_or(&none), &fixed);
        let why = format!(
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n{changes}"
        );
        errors.push(Error::forbidden(&path, why));
    }
    errors
}

/// A pod's new spec with what may change in it as it was.
fn without_permitted_changes(pod: &Value, before: &Value, is_gated: bool) -> Value {
    let mut fixed = pod.get("spec").cloned().unwrap_or(Value::Null);
    let Some(spec) = fixed.as_object_mut() else {
        return fixed;
    };
    for key in ["containers", "initContainers"] {
        let containers = spec.get_mut(key).and_then(Value::as_array_mut);
        for (own, old) in containers.into_iter().flatten().zip(list(before, key)) {
            keep(own.as_object_mut(), old, "image");
        }
    }
    for key in ["tolerations", "activeDeadlineSeconds", "schedulingGates"] {
        keep(Some(&mut *spec), before, key);
    }
    let grace = |spec: Option<&Value>| spec.and_then(|spec| spec.get("terminationGracePeriodSeconds")?.as_i64());
    if grace(Some(before)).is_some_and(|seconds| seconds < 0) && grace(pod.get("spec")) == Some(1) {
        keep(Some(&mut *spec), before, "terminationGracePeriodSeconds");
    }
    if is_gated {
        keep(Some(&mut *spec), before, "nodeSelector");
        keep_node_affinity(spec, before.get("affinity").unwrap_or(&Value::Null));
    }
    fixed
}

/// What is wrong with where a pod behind gates may now run: that may only be narrowed.
fn more_selective(pod: &Value, old: &Value, path: &Path) -> ErrorList {
    let mut errors = Vec::new();
    let selector = pod.at("/spec/nodeSelector");
    let kept = |key: &String, value: &Value| selector.and_then(|own| own.get(key)) == Some(value);
    let mut before = old
        .at("/spec/nodeSelector")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    if !before.all(|(key, value)| kept(key, value)) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        let shown = selector.cloned().unwrap_or(Value::Null);
        errors.push(Error::invalid(&path.child("nodeSelector"), shown, why));
    }
    let terms = |pod: &Value| {
        let pointer = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        meta::elements(pod, pointer).to_vec()
    };
    let (before, after) = (terms(old), terms(pod));
    let at = path
        .child("affinity")
        .child("nodeAffinity")
        .child("requiredDuringSchedulingIgnoredDuringExecution")
        .child("nodeSelectorTerms");
    if !before.is_empty() && before.len() != after.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(Error::invalid(&at, json!(after), why));
        return errors;
    }
    for (index, (before, after)) in before.iter().zip(&after).enumerate() {
        let lists = ["/matchExpressions", "/matchFields"]
            .map(|list| (meta::elements(before, list), meta::elements(after, list)));
        let selects_nothing = lists.iter().all(|(before, _)| before.is_empty());
        let is_narrower = match selects_nothing {
            true => lists.iter().all(|(_, after)| after.is_empty()),
            false => lists.iter().all(|(before, after)| after.starts_with(before)),
        };
        if !is_narrower {
            let why = "only additions are allowed (no mutations or deletions)";
            errors.push(Error::invalid(&at.index(index), after.clone(), why));
        }
    }
    errors
}

const FIELDS: &[Selectable] = &[
    Selectable::text("spec.nodeName", "/spec/nodeName"),
    Selectable::text("spec.restartPolicy", "/spec/restartPolicy"),
    Selectable::text("spec.schedulerName", "/spec/schedulerName"),
    Selectable::text("spec.serviceAccountName", "/spec/serviceAccountName"),
    Selectable::flag("spec.hostNetwork", "/spec/hostNetwork"),
    Selectable::text("status.phase", "/status/phase"),
    Selectable::text("status.podIP", "/status/podIP"),
    Selectable::text("status.nominatedNodeName", "/status/nominatedNodeName"),
];

/// A pod without a node, or one that has ended, goes at once; the others get their own grace period unless the client asks otherwise.
fn grace(pod: &Value, asked: Option<i64>) -> Option<i64> {
    if meta::text(pod, "/spec/nodeName").is_empty()
        || matches!(meta::text(pod, "/status/phase"), "Succeeded" | "Failed")
    {
        return Some(0);
    }
    let own = pod
        .at("/spec/terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(30);
    Some(asked.unwrap_or(own))
}

/// `pods/binding`: assigns a pod to a node.
pub(super) struct Binding;

#[async_trait]
impl Subresource for Binding {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        ("", "v1", "Binding")
    }

    fn notes_author(&self) -> bool {
        true
    }

    fn receive(&self, namespace: &str, body: &mut Value) {
        meta::set(body, "namespace", Some(namespace.into()));
    }

    fn examine(&self, _: &Context<'_>, name: &str, body: &mut Value) -> Result<(), ApiError> {
        check_name(body, name, "Binding")?;
        let mut errors = Vec::new();
        let target = Path::new("target");
        let kind = meta::text(body, "/target/kind");
        if !matches!(kind, "" | "Node") {
            errors.push(Error::not_supported(&target.child("kind"), kind, &["Node", "<empty>"]));
        }
        if meta::text(body, "/target/name").is_empty() {
            errors.push(Error::required(&target.child("name"), ""));
        }
        if errors.is_empty() {
            return Ok(());
        }
        // upstream answers with what is wrong, but not as what is
        Err(ApiError::unclassified(field::aggregate(&errors)))
    }

    async fn call(&self, context: &Context<'_>, _: &str, pod: &Value, body: Value) -> Result<Effect, ApiError> {
        let node = meta::text(&body, "/target/name");
        check_preconditions(&body, pod)?;
        if meta::is_deleting(pod) {
            return Err(ApiError::conflict(
                "",
                "pods/binding",
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
        if !meta::elements(pod, "/spec/schedulingGates").is_empty() {
            let why = format!("pod {} has non-empty .spec.schedulingGates", meta::name(pod));
            return Err(ApiError::conflict("", "pods/binding", meta::name(pod), &why));
        }
        let mut pod = pod.clone();
        set(&mut pod, &["spec", "nodeName"], node.into());
        // who bound it knows better than who hoped to
        if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("nominatedNodeName");
        }
        for key in ["labels", "annotations"] {
            for (name, value) in meta::string_map(body.at(&format!("/metadata/{key}"))) {
                set(&mut pod, &["metadata", key, &name], value.into());
            }
        }
        let now = meta::rfc3339(context.now);
        meta::set_condition(
            &mut pod,
            &json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}),
        );
        Ok(Effect::StoreAndAnswer(
            pod,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        ))
    }
}

/// Refuses a body that does not name the pod of the path.
fn check_name(body: &Value, name: &str, kind: &str) -> Result<(), ApiError> {
    if meta::name(body) == name {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "name in URL does not match name in {kind} object"
    )))
}

/// Refuses a binding that means another pod of the name, or the pod at another revision.
fn check_preconditions(binding: &Value, pod: &Value) -> Result<(), ApiError> {
    let wanted = ["UID", "ResourceVersion"]
        .into_iter()
        .zip(["/metadata/uid", "/metadata/resourceVersion"]);
    for (called, at) in wanted {
        let (wanted, found) = (meta::text(binding, at), meta::text(pod, at));
        if wanted.is_empty() || wanted == found {
            continue;
        }
        let (namespace, name) = (meta::namespace(pod), meta::name(pod));
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {called} in precondition: {wanted}, {called} in object meta: {found}"
        );
        return Err(ApiError::conflict("", "pods", name, &why));
    }
    Ok(())
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

/// Changes a part of a pod that is fixed otherwise: that of the view is as `pod` says, all else is as it was. Says what is wrong with that.
fn update_view(view: &str, pod: &mut Value, old: &Value) -> ErrorList {
    let change = match view {
        "resize" => resize,
        _ => add_ephemeral_containers,
    };
    let managed = meta::take_managed_fields(pod);
    let asked = std::mem::replace(pod, old.clone());
    meta::set(pod, "managedFields", managed);
    let wrong = change(old, pod, &asked);
    let mut errors = validate(pod);
    errors.extend(wrong);
    errors
}

/// Adds containers that are not restarted. What is there stays as it is.
fn add_ephemeral_containers(old: &Value, pod: &mut Value, body: &Value) -> ErrorList {
    let asked = body.get("spec").unwrap_or(&Value::Null);
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        keep(Some(&mut *spec), asked, "ephemeralContainers");
        if spec
            .get("ephemeralContainers")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
        {
            spec.remove("ephemeralContainers");
        }
    }
    if annotations::is_mirror(old) {
        let why = "static pods do not support ephemeral containers";
        return vec![Error::forbidden(&Path::root(), why)];
    }
    let mut errors = ErrorList::new();
    let path = Path::new("spec").child("ephemeralContainers");
    let new = meta::elements(pod, "/spec/ephemeralContainers");
    for before in meta::elements(old, "/spec/ephemeralContainers") {
        let name = meta::text(before, "/name");
        let what = match new.iter().find(|own| meta::text(own, "/name") == name) {
            None => "removed\n".to_owned(),
            Some(own) if own != before => {
                let changes = internal::changes("core.EphemeralContainer", before, own);
                format!("changed\n{changes}")
            }
            Some(_) => continue,
        };
        let why = format!(
            "existing ephemeral containers {} may not be {what}",
            gardener_apimachinery::field::go_quote(name)
        );
        errors.push(Error::forbidden(&path, why));
    }
    errors
}

/// Changes what containers may take of CPU and memory.
fn resize(old: &Value, pod: &mut Value, body: &Value) -> ErrorList {
    let path = Path::new("spec");
    let names = |pod: &Value, key: &str| -> Vec<String> {
        let all = meta::elements(pod, &format!("/spec/{key}")).iter();
        all.map(|own| text(own, "name").to_owned()).collect()
    };
    const LISTS: [&str; 2] = ["containers", "initContainers"];
    let counts_differ = LISTS.iter().any(|key| names(body, key).len() != names(old, key).len());
    if counts_differ && let (Some(members), Some(spec)) = (pod.as_object_mut(), body.get("spec")) {
        members.insert("spec".to_owned(), spec.clone());
    }
    for key in LISTS {
        let asked = body.at(&format!("/spec/{key}")).cloned();
        let (Some(spec), Some(asked)) = (pod.get_mut("spec").and_then(Value::as_object_mut), asked) else {
            continue;
        };
        if names(body, key) != names(old, key) {
            spec.insert(key.to_owned(), asked);
            continue;
        }
        let own = spec.get_mut(key).and_then(Value::as_array_mut);
        for (container, asked) in own.into_iter().flatten().zip(asked.as_array().into_iter().flatten()) {
            for key in ["resources", "resizePolicy"] {
                keep(container.as_object_mut(), asked, key);
            }
        }
    }
    if !counts_differ && let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        keep(Some(spec), body.get("spec").unwrap_or(&Value::Null), "resources");
    }
    if annotations::is_mirror(old) {
        return vec![Error::forbidden(&Path::root(), "static pods cannot be resized")];
    }
    if meta::text(old, "/spec/os/name") == "windows" {
        return vec![Error::forbidden(&Path::root(), "windows pods cannot be resized")];
    }
    let mut errors = ErrorList::new();
    let class = meta::text(old, "/status/qosClass");
    if class != resources::quality_of_service(pod) {
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.push(Error::invalid(&path, class, why));
    }
    let running = meta::elements(old, "/status/containerStatuses")
        .iter()
        .find(|own| own.at("/state/running").is_some());
    if running.is_some_and(|own| own.get("resources").is_none()) {
        let why = "Pod running on node without support for resize";
        errors.push(Error::forbidden(&path, why));
    }
    let mut fixed = pod.get("spec").cloned().unwrap_or(Value::Null);
    let before = old.get("spec").unwrap_or(&Value::Null);
    errors.extend(resize_pod(&mut fixed, before, &path));
    let mut moved = ErrorList::new();
    for key in LISTS {
        let (new, old) = (names(pod, key), names(old, key));
        if new.len() != old.len() {
            let why = format!("{key} may not be added or removed on resize");
            moved.push(Error::forbidden(&path.child(key), why));
            continue;
        }
        let renamed = new.iter().zip(&old).enumerate().filter(|(_, (new, old))| new != old);
        moved.extend(renamed.map(|(index, _)| {
            let why = format!("{key} may not be renamed or reordered on resize");
            Error::forbidden(&path.child(key).index(index).child("name"), why)
        }));
    }
    if !moved.is_empty() {
        errors.extend(moved);
        return errors;
    }
    for key in ["initContainers", "containers"] {
        let pairs = list(&fixed, key).iter().zip(list(before, key)).enumerate();
        for (index, (own, before)) in pairs {
            let at = path.child(key).index(index).child("resources");
            for kind in ["requests", "limits"] {
                if is_removed(own.get("resources"), before.get("resources"), kind) {
                    let why = format!("resource {kind} cannot be removed");
                    errors.push(Error::forbidden(&at.child(kind), why));
                }
            }
        }
    }
    for key in LISTS {
        let own = fixed.get_mut(key).and_then(Value::as_array_mut);
        for (index, (own, before)) in own.into_iter().flatten().zip(list(before, key)).enumerate() {
            let (is_changed, is_plain_init) = (
                own != before,
                key == "initContainers" && text(own, "restartPolicy") != "Always",
            );
            keep_compute(own, before);
            // upstream compares without claims, so that who has some cannot be resized
            if let Some(resources) = own.get_mut("resources").and_then(Value::as_object_mut) {
                resources.remove("claims");
            }
            let at = path.child(key).index(index);
            if own != before {
                errors.push(match key {
                    "containers" => Error::forbidden(&path, "only cpu and memory resources are mutable"),
                    _ => {
                        let why = "only cpu and memory resources for init or sidecar containers are mutable";
                        Error::forbidden(&at, why)
                    }
                });
            }
            if is_changed && is_plain_init {
                let why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                let restarts = |policy: &&Value| text(policy, "restartPolicy") == "RestartContainer";
                let found = list(own, "resizePolicy").iter().filter(restarts);
                errors.extend(found.map(|_| Error::forbidden(&at, why)));
            }
        }
    }
    if errors.is_empty() && fixed != *before {
        errors.push(Error::forbidden(&path, "only cpu and memory resources are mutable"));
    }
    errors
}

/// Whether something is not limited or asked for any more.
fn is_removed(new: Option<&Value>, old: Option<&Value>, kind: &str) -> bool {
    let part = |resources: Option<&Value>| -> Vec<String> {
        let amounts = resources.and_then(|own| own.get(kind)?.as_object());
        amounts.into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let (new, old) = (part(new), part(old));
    old.iter().any(|name| !new.contains(name))
}

/// Makes CPU and memory of something what they were.
fn keep_compute(own: &mut Value, before: &Value) {
    let none = Value::Null;
    for kind in ["requests", "limits"] {
        let old = before.at(&format!("/resources/{kind}")).unwrap_or(&none);
        let Some(resources) = own.get_mut("resources").and_then(Value::as_object_mut) else {
            continue;
        };
        if !old.is_null() {
            resources.entry(kind).or_insert_with(|| json!({}));
        }
        let amounts = resources.get_mut(kind).and_then(Value::as_object_mut);
        if let Some(amounts) = amounts {
            for name in ["cpu", "memory"] {
                keep(Some(&mut *amounts), old, name);
            }
            if amounts.is_empty() && old.is_null() {
                resources.remove(kind);
            }
        }
    }
}

/// Checks a change of what a pod takes as a whole, and makes CPU and memory what they were.
fn resize_pod(fixed: &mut Value, before: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_set = |spec: &Value| {
        let has = |kind: &str| {
            spec.at(kind)
                .and_then(Value::as_object)
                .is_some_and(|own| !own.is_empty())
        };
        has("/resources/requests") || has("/resources/limits")
    };
    if !is_set(fixed) && !is_set(before) {
        return errors;
    }
    let at = path.child("resources");
    let old = before.get("resources");
    if old.is_some() && fixed.get("resources").is_none() {
        return vec![Error::forbidden(&at, "pod-level resources cannot be removed")];
    }
    if old.is_some() {
        for kind in ["requests", "limits"] {
            if is_removed(fixed.get("resources"), old, kind) {
                let why = format!("pod-level resource {kind} cannot be removed");
                errors.push(Error::forbidden(&at.child(kind), why));
            }
        }
    }
    keep_compute(fixed, before);
    if old.is_none()
        && fixed
            .get("resources")
            .and_then(Value::as_object)
            .is_some_and(serde_json::Map::is_empty)
        && let Some(members) = fixed.as_object_mut()
    {
        members.remove("resources");
    }
    if fixed.get("resources") != old {
        let why = "only cpu and memory resources are mutable at pod-level";
        errors.push(Error::forbidden(path, why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_judged_as_upstream_does() {
        let pod = |image: &str, seconds: Value, toleration: Value| {
            json!({"spec": {
                "containers": [{"name": "c", "image": image}],
                "activeDeadlineSeconds": seconds,
                "tolerations": [toleration],
            }})
        };
        let toleration = json!({"key": "a", "operator": "Exists"});
        let old = pod("i", json!(9), toleration.clone());
        for (new, expected) in [
            (pod("j", json!(8), toleration.clone()), vec![]),
            (
                pod(" j", json!(8), toleration.clone()),
                vec!["spec.containers[0].image: Invalid value: \" j\": must not have leading or trailing whitespace"],
            ),
            (
                pod("j", json!(-1), json!({"key": "b"})),
                vec!["spec.activeDeadlineSeconds: Invalid value: -1: must be between 0 and 2147483647, inclusive"],
            ),
        ] {
            let errors = validate_update(&new, &old);
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(errors, expected);
        }
        let mut more = old.clone();
        more["spec"]["tolerations"] = json!([toleration, {"operator": "Equal"}]);
        let errors = validate_update(&more, &old);
        let at: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(at, ["spec.tolerations[1].operator"]);
    }
}
