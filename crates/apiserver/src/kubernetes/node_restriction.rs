//! Admission plugin that holds kubelets to their own node and the pods on it, from plugin/pkg/admission/noderestriction of Kubernetes: what the
//! authorizer of nodes ([`crate::authz::node`]) cannot tell, because it does not see what is written.

use std::collections::BTreeSet;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use super::certificates;
use super::checks::text;
use super::pods::annotations::{MIRROR, is_mirror};
use super::pods::volumes::SOURCES;
use crate::authz::node::related::{has_config_maps, has_secrets};
use crate::authz::node::{LEASE_NAMESPACE, NODE_USER_PREFIX, node_of};
use crate::definition::{Admission, Attributes, Lister, Operation};
use crate::intercept::matching::word;
use crate::meta;

/// Labels outside the kubelets' own domains that they may set on their node.
const KUBELET_LABELS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// Domains of labels that kubelets may set, and all domains under them.
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// The domain of labels that are there to keep workload off nodes; kubelets may never set them.
const RESTRICTED_DOMAIN: &str = "node-restriction.kubernetes.io";

/// Volumes that refer to objects, and to which; all others need nothing of the API.
const REFERRING_VOLUMES: [(&str, &str); 8] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
    ("projected", ""),
];
/// Sources of projected volumes that refer to objects, and to which.
const REFERRING_SOURCES: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];
/// Volumes of which CSI drivers took over the work, and the drivers.
const MIGRATED: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];
/// Signers of kubelets' certificates.
const SIGNERS: [&str; 2] = [
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/kube-apiserver-client-kubelet",
];

/// Why a kubelet may not write something.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// It is not for this node to do.
    Forbidden(String),
    /// What the object refers to is not there: resource and name.
    Absent(&'static str, String),
}

impl<T: Into<String>> From<T> for Refusal {
    fn from(why: T) -> Self {
        Self::Forbidden(why.into())
    }
}

fn refuse(why: impl Into<String>) -> Result<(), Refusal> {
    Err(Refusal::Forbidden(why.into()))
}

/// Lets kubelets write only what is of their own node.
pub struct NodeRestriction;

#[async_trait]
impl Admission for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let user = attributes.context.user;
        let Some(node) = node_of(user).filter(|_| attributes.operation != Operation::Connect) else {
            return Ok(());
        };
        let judged = match node {
            "" => refuse(format!("could not determine node from user {}", go_quote(&user.name))),
            node => judge(node, attributes),
        };
        judged.map_err(|refusal| match refusal {
            Refusal::Forbidden(why) => attributes.forbidden(&why),
            Refusal::Absent(resource, name) => ApiError::not_found("", resource, &name),
        })
    }
}

fn judge(node: &str, attributes: &Attributes<'_>) -> Result<(), Refusal> {
    let object = attributes.object.as_deref().unwrap_or(&Value::Null);
    let old = attributes.old_json().unwrap_or(&Value::Null);
    let lister = attributes.context.lister;
    let (operation, is_new) = (attributes.operation, attributes.operation == Operation::Create);
    let named = match attributes.name {
        "" => meta::name(object),
        name => name,
    };
    let is_own = named == node;
    match (
        attributes.definition.group.as_str(),
        attributes.definition.plural.as_str(),
        attributes.subresource,
    ) {
        ("", "pods", "") => match operation {
            Operation::Create => new_pod(node, object, lister),
            Operation::Delete if is_on(old, node) => Ok(()),
            Operation::Delete => refuse(format!(
                "node {} can only delete pods with spec.nodeName set to itself",
                go_quote(node)
            )),
            operation => refuse(format!(
                "unexpected operation {}, node {} can only create and delete mirror pods",
                go_quote(word(operation)),
                go_quote(node)
            )),
        },
        ("", "pods", "status") if operation == Operation::Update => pod_status(node, object, old),
        ("", "pods", "status") => refuse(format!("unexpected operation {}", go_quote(word(operation)))),
        ("", "pods", "eviction") if is_new => match lister.get("", "pods", attributes.namespace, named) {
            None => Err(Refusal::Absent("pod", named.to_owned())),
            Some(pod) if is_on(&pod, node) => Ok(()),
            Some(_) => refuse(format!(
                "node {node} can only evict pods with spec.nodeName set to itself"
            )),
        },
        ("", "pods", "eviction") => refuse(format!("unexpected operation {}", word(operation))),
        ("", "pods", other) => refuse(format!(
            "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
            go_quote(other)
        )),
        ("", "nodes", _) if !is_own => refuse(format!(
            "node {} is not allowed to modify node {}",
            go_quote(node),
            go_quote(named)
        )),
        ("", "nodes", _) => match operation {
            Operation::Create => new_node(node, object),
            Operation::Update => changed_node(node, object, old),
            _ => Ok(()),
        },
        ("", "persistentvolumeclaims", "status") if operation == Operation::Update => claim_status(node, object, old),
        ("", "persistentvolumeclaims", "status") => {
            refuse(format!("unexpected operation {}", go_quote(word(operation))))
        }
        ("", "persistentvolumeclaims", _) => refuse("may only update PVC status"),
        ("", "serviceaccounts", "token") if is_new => token(node, object, attributes),
        ("coordination.k8s.io", "leases", _) if attributes.namespace != LEASE_NAMESPACE => refuse(format!(
            "can only access leases in the {} system namespace",
            go_quote(LEASE_NAMESPACE)
        )),
        ("coordination.k8s.io", "leases", _) if !is_own => {
            refuse("can only access node lease with the same name as the requesting node")
        }
        ("storage.k8s.io", "csinodes", _) if !is_own => {
            refuse("can only access CSINode with the same name as the requesting node")
        }
        ("resource.k8s.io", "resourceslices", _) => match operation {
            Operation::Create if !is_on(object, node) => {
                refuse("can only create ResourceSlice with the same NodeName as the requesting node")
            }
            Operation::Delete if !is_on(old, node) => {
                refuse("can only delete ResourceSlice with the same NodeName as the requesting node")
            }
            _ => Ok(()),
        },
        ("certificates.k8s.io", "certificatesigningrequests", _) if is_new => signing_request(node, object),
        _ => Ok(()),
    }
}

/// Whether a pod, or a slice, is of the node.
fn is_on(object: &Value, node: &str) -> bool {
    meta::text(object, "/spec/nodeName") == node
}

/// Kubelets make pods only to show those that they have from files: bound to the node, owned by it, and with nothing of the API.
fn new_pod(node: &str, pod: &Value, lister: &dyn Lister) -> Result<(), Refusal> {
    let quoted = go_quote(node);
    if !is_mirror(pod) {
        return refuse(format!(
            "pod does not have {} annotation, node {quoted} can only create mirror pods",
            go_quote(MIRROR)
        ));
    }
    if !is_on(pod, node) {
        return refuse(format!(
            "node {quoted} can only create pods with spec.nodeName set to itself"
        ));
    }
    let owner = match meta::elements(pod, "/metadata/ownerReferences") {
        [owner] => owner,
        [] => {
            return refuse(format!(
                "node {quoted} can only create pods with an owner reference set to itself"
            ));
        }
        _ => {
            return refuse(format!(
                "node {quoted} can only create pods with a single owner reference set to itself"
            ));
        }
    };
    if (text(owner, "apiVersion"), text(owner, "kind"), text(owner, "name")) != ("v1", "Node", node) {
        return refuse(format!(
            "node {quoted} can only create pods with an owner reference set to itself"
        ));
    }
    let is_true = |key: &str| owner.get(key) == Some(&Value::Bool(true));
    if !is_true("controller") {
        return refuse(format!(
            "node {quoted} can only create pods with a controller owner reference set to itself"
        ));
    }
    if is_true("blockOwnerDeletion") {
        return refuse(format!(
            "node {quoted} must not set blockOwnerDeletion on an owner reference"
        ));
    }
    let Some(own) = lister.get("", "nodes", "", node) else {
        return Err(Refusal::Absent("node", node.to_owned()));
    };
    let (told, known) = (text(owner, "uid"), meta::text(&own, "/metadata/uid"));
    if told != known {
        return refuse(format!("node {node} UID mismatch: expected {told} got {known}"));
    }
    match referred(pod) {
        None => Ok(()),
        Some(Ok(what)) => refuse(format!("node {quoted} can not create pods that reference {what}")),
        Some(Err(unknown)) => refuse(format!("error checking mirror pod for API references: {unknown}")),
    }
}

/// Which objects of the API a pod refers to, if any; an error if a volume is of no known type.
fn referred(pod: &Value) -> Option<Result<&'static str, String>> {
    if !meta::text(pod, "/spec/serviceAccountName").is_empty() {
        return Some(Ok("serviceaccounts"));
    }
    if has_secrets(pod) {
        return Some(Ok("secrets"));
    }
    if has_config_maps(pod) {
        return Some(Ok("configmaps"));
    }
    if !meta::elements(pod, "/spec/resourceClaims").is_empty() {
        return Some(Ok("resourceclaims"));
    }
    meta::elements(pod, "/spec/volumes").iter().find_map(|volume| {
        let has = |key: &str| volume.get(key).is_some_and(|own| !own.is_null());
        let refers = |key: &str| REFERRING_VOLUMES.iter().any(|(own, _)| *own == key);
        if SOURCES.iter().any(|key| has(key) && !refers(key)) {
            return None;
        }
        let name = go_quote(text(volume, "name"));
        match REFERRING_VOLUMES.iter().find(|(key, _)| has(key)) {
            Some(("projected", _)) => meta::elements(volume, "/projected/sources").iter().find_map(|source| {
                let has = |key: &str| source.get(key).is_some_and(|own| !own.is_null());
                match REFERRING_SOURCES.iter().find(|(key, _)| has(key)) {
                    Some((_, what)) => Some(Ok(*what)),
                    None if has("downwardAPI") => None,
                    None => Some(Err(format!("unknown source for projected volume {name}"))),
                }
            }),
            Some((_, what)) => Some(Ok(*what)),
            None => Some(Err(format!("unknown volume type for volume  {name}"))),
        }
    })
}

fn pod_status(node: &str, pod: &Value, old: &Value) -> Result<(), Refusal> {
    let quoted = go_quote(node);
    if !is_on(old, node) {
        return refuse(format!(
            "node {quoted} can only update pod status for pods with spec.nodeName set to itself"
        ));
    }
    let labels = |pod: &Value| meta::string_map(pod.at("/metadata/labels"));
    if labels(pod) != labels(old) {
        return refuse(format!("node {quoted} cannot update labels through pod status"));
    }
    if meta::elements(pod, "/status/resourceClaimStatuses") != meta::elements(old, "/status/resourceClaimStatuses") {
        return refuse(format!("node {quoted} cannot update resource claim statues"));
    }
    let extended = |pod: &Value| {
        pod.at("/status/extendedResourceClaimStatus")
            .cloned()
            .unwrap_or_default()
    };
    if extended(pod) != extended(old) {
        return refuse(format!("node {quoted} cannot update extended resource claim status"));
    }
    Ok(())
}

/// Kubelets tell how large volumes have become.
fn claim_status(node: &str, claim: &Value, old: &Value) -> Result<(), Refusal> {
    const OWN: [&str; 4] = [
        "capacity",
        "conditions",
        "allocatedResourceStatuses",
        "allocatedResources",
    ];
    let rest = |claim: &Value| {
        let mut claim = claim.clone();
        meta::set(&mut claim, "resourceVersion", None);
        meta::set(&mut claim, "managedFields", None);
        let mut has_status = false;
        if let Some(status) = claim.get_mut("status").and_then(Value::as_object_mut) {
            OWN.iter().for_each(|key| {
                status.remove(*key);
            });
            has_status = !status.is_empty();
        }
        if let Some(members) = claim.as_object_mut().filter(|_| !has_status) {
            members.remove("status");
        }
        claim
    };
    match rest(claim) == rest(old) {
        true => Ok(()),
        false => refuse(format!(
            "node {} is not allowed to update fields other than status.quantity and status.conditions",
            go_quote(node)
        )),
    }
}

fn new_node(node: &str, object: &Value) -> Result<(), Refusal> {
    let quoted = go_quote(node);
    if object.at("/spec/configSource").is_some_and(Value::is_object) {
        return refuse(format!(
            "node {quoted} is not allowed to create pods with a non-nil configSource"
        ));
    }
    match forbidden_labels(object, &Value::Null) {
        labels if labels.is_empty() => Ok(()),
        labels => refuse(format!(
            "node {quoted} is not allowed to set the following labels: {labels}"
        )),
    }
}

fn changed_node(node: &str, object: &Value, old: &Value) -> Result<(), Refusal> {
    let quoted = go_quote(node);
    let source = |node: &Value| node.at("/spec/configSource").filter(|own| own.is_object()).cloned();
    if source(object).is_some_and(|told| Some(told) != source(old)) {
        return refuse(format!(
            "node {quoted} is not allowed to update configSource to a new non-nil configSource"
        ));
    }
    if meta::elements(object, "/spec/taints") != meta::elements(old, "/spec/taints") {
        return refuse(format!("node {quoted} is not allowed to modify taints"));
    }
    if meta::elements(object, "/metadata/ownerReferences") != meta::elements(old, "/metadata/ownerReferences") {
        return refuse(format!("node {quoted} is not allowed to modify ownerReferences"));
    }
    match forbidden_labels(object, old) {
        labels if labels.is_empty() => Ok(()),
        labels => refuse(format!("is not allowed to modify labels: {labels}")),
    }
}

/// The labels that differ and that kubelets may not set, in order.
fn forbidden_labels(object: &Value, old: &Value) -> String {
    let labels = |object: &Value| meta::string_map(object.at("/metadata/labels"));
    let (now, before) = (labels(object), labels(old));
    let keys: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
    let differing = keys.into_iter().filter(|key| now.get(*key) != before.get(*key));
    let forbidden: Vec<&str> = differing.map(String::as_str).filter(|key| is_forbidden(key)).collect();
    forbidden.join(", ")
}

fn is_forbidden(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |parent: &str| {
        let below = domain.strip_suffix(parent);
        below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
    };
    let is_kubelets = KUBELET_LABELS.contains(&label) || KUBELET_DOMAINS.iter().any(|domain| is_in(domain));
    is_in(RESTRICTED_DOMAIN) || ((is_in("kubernetes.io") || is_in("k8s.io")) && !is_kubelets)
}

/// Kubelets get tokens for pods on their node, for audiences that the pods tell.
fn token(node: &str, request: &Value, attributes: &Attributes<'_>) -> Result<(), Refusal> {
    let (namespace, context) = (attributes.namespace, attributes.context);
    let bound = request.at("/spec/boundObjectRef").unwrap_or(&Value::Null);
    let name = text(bound, "name");
    if (text(bound, "apiVersion"), text(bound, "kind")) != ("v1", "Pod") || name.is_empty() {
        return refuse("node requested token not bound to a pod");
    }
    let uid = text(bound, "uid");
    if uid.is_empty() {
        return refuse("node requested token with a pod binding without a uid");
    }
    let Some(pod) = context.lister.get("", "pods", namespace, name) else {
        return Err(Refusal::Absent("pod", name.to_owned()));
    };
    if uid != meta::text(&pod, "/metadata/uid") {
        return refuse(format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        ));
    }
    if !is_on(&pod, node) {
        return refuse("node requested token bound to a pod scheduled on a different node");
    }
    let audience = match meta::elements(request, "/spec/audiences") {
        [] => "",
        [audience] => audience.as_str().unwrap_or_default(),
        _ => return refuse("node may only request 0 or 1 audiences"),
    };
    let found = tells_audience(&pod, audience, context.lister);
    let found = found.map_err(|absent| format!("error validating audience {}: {absent}", go_quote(audience)))?;
    let verb = "request-serviceaccounts-token-audience";
    let may = || {
        context
            .lister
            .allowed(context.user, verb, "", audience, namespace, attributes.name)
    };
    if found || may() {
        return Ok(());
    }
    refuse(format!(
        "audience {} not found in pod spec volume, {} is not authorized to request tokens for this audience",
        go_quote(audience),
        context.user.name
    ))
}

/// Whether a volume of a pod wants tokens for an audience, itself or by its driver. An error tells what is missing to know.
fn tells_audience(pod: &Value, audience: &str, lister: &dyn Lister) -> Result<bool, String> {
    let absent = |what: &str, name: &str| format!("{what} {} not found", go_quote(name));
    let driver_of_claim = |name: &str| -> Result<String, String> {
        let claim = lister.get("", "persistentvolumeclaims", meta::namespace(pod), name);
        let claim = claim.ok_or_else(|| absent("persistentvolumeclaim", name))?;
        let name = meta::text(&claim, "/spec/volumeName");
        let volume = lister.get("", "persistentvolumes", "", name);
        let volume = volume.ok_or_else(|| absent("persistentvolume", name))?;
        let spec = volume.get("spec").unwrap_or(&Value::Null);
        Ok(driver_of(spec).to_owned())
    };
    let driver_tells = |name: &str| -> Result<bool, String> {
        let driver = lister.get("storage.k8s.io", "csidrivers", "", name);
        let driver = driver.ok_or_else(|| absent("csidriver.storage.k8s.io", name))?;
        let mut tokens = meta::elements(&driver, "/spec/tokenRequests").iter();
        Ok(tokens.any(|token| text(token, "audience") == audience))
    };
    let mut missing: Vec<String> = Vec::new();
    for volume in meta::elements(pod, "/spec/volumes") {
        let mut sources = meta::elements(volume, "/projected/sources").iter();
        let tells = |source: &Value| {
            let token = source.get("serviceAccountToken").filter(|own| own.is_object());
            token.is_some_and(|token| text(token, "audience") == audience)
        };
        if sources.any(tells) {
            return Ok(true);
        }
        let claimed = meta::text(volume, "/persistentVolumeClaim/claimName");
        let driver = if volume
            .at("/ephemeral/volumeClaimTemplate")
            .is_some_and(Value::is_object)
        {
            driver_of_claim(&format!("{}-{}", meta::name(pod), text(volume, "name")))
        } else if !claimed.is_empty() {
            driver_of_claim(claimed)
        } else {
            Ok(driver_of(volume).to_owned())
        };
        match driver.and_then(|driver| {
            if driver.is_empty() {
                Ok(false)
            } else {
                driver_tells(&driver)
            }
        }) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(reason) if missing.contains(&reason) => {}
            Err(reason) => missing.push(reason),
        }
    }
    match missing.as_slice() {
        [] => Ok(false),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// The CSI driver of a volume; empty if it has none.
fn driver_of(volume: &Value) -> &str {
    match meta::text(volume, "/csi/driver") {
        "" => {
            let migrated = MIGRATED
                .iter()
                .find(|(key, _)| volume.get(key).is_some_and(Value::is_object));
            migrated.map_or("", |(_, driver)| driver)
        }
        driver => driver,
    }
}

fn signing_request(node: &str, request: &Value) -> Result<(), Refusal> {
    if !SIGNERS.contains(&meta::text(request, "/spec/signerName")) {
        return Ok(());
    }
    let own = format!("{NODE_USER_PREFIX}{node}");
    match certificates::requested(request) {
        None => {
            let wrong = certificates::wrong_request(meta::text(request, "/spec/request"));
            refuse(format!("unable to parse csr: {}", wrong.unwrap_or_default()))
        }
        Some(requested) if requested.common_name == own => Ok(()),
        Some(_) => refuse(format!("can only create a node CSR with CN={own}")),
    }
}
