//! Admission plugins that every cluster has: namespaces must exist, pods get a service account, a priority and tolerations.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusCause;
use serde_json::{Value, json};

use super::default_classes::{DefaultIngressClass, DefaultStorageClass};
use super::in_use_protection::StorageObjectInUseProtection;
use super::node_restriction::NodeRestriction;
use super::pods::annotations::is_mirror;
use super::runtime_class::{RuntimeClass, unaskable};
use super::secret_references;
use super::topology_labels::PodTopologyLabels;
use crate::definition::{Admission, Attributes, Context, Operation};
use crate::meta;
use crate::policies::{MutatingAdmissionPolicy, ValidatingAdmissionPolicy};
use crate::user::MASTERS;
use crate::webhooks::{MutatingAdmissionWebhook, ValidatingAdmissionWebhook};

/// The plugins of a cluster with nodes, in upstream's order, with those that are not the same everywhere. [`NodeRestriction`] is off by default
/// upstream.
pub fn plugins(accounts: ServiceAccountPlugin, tolerations: DefaultTolerationSeconds) -> Vec<Arc<dyn Admission>> {
    vec![
        Arc::new(NamespaceLifecycle),
        Arc::new(accounts),
        Arc::new(NodeRestriction),
        Arc::new(Priority),
        Arc::new(tolerations),
        Arc::new(DefaultStorageClass),
        Arc::new(StorageObjectInUseProtection),
        Arc::new(PersistentVolumeClaimResize),
        Arc::new(RuntimeClass),
        Arc::new(CertificateApproval),
        Arc::new(CertificateSigning),
        Arc::new(CertificateSubjectRestriction),
        Arc::new(DefaultIngressClass),
        Arc::new(PodTopologyLabels),
        Arc::new(MutatingAdmissionPolicy),
        Arc::new(MutatingAdmissionWebhook),
        Arc::new(ValidatingAdmissionPolicy),
        Arc::new(ValidatingAdmissionWebhook),
    ]
}

/// Whether upstream's kube-apiserver runs a plugin of [`plugins`] without being told to.
pub fn is_on_by_default(plugin: &str) -> bool {
    plugin != "NodeRestriction"
}

/// Refuses writes into namespaces that do not exist, creations in those that end, and the deletion of the system's own.
pub struct NamespaceLifecycle;

#[async_trait]
impl Admission for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation == Operation::Delete && attributes.is("", "namespaces") {
            return match attributes.name {
                "default" | "kube-system" | "kube-public" => {
                    Err(attributes.forbidden("this namespace may not be deleted"))
                }
                _ => Ok(()),
            };
        }
        if !attributes.definition.namespaced
            || attributes.namespace.is_empty()
            || attributes.operation != Operation::Create
            // who may do what can be asked of a namespace before there is one
            || attributes.is("authorization.k8s.io", "localsubjectaccessreviews")
        {
            return Ok(());
        }
        let Some(namespace) = attributes.context.lister.namespace(attributes.namespace) else {
            return Err(ApiError::not_found("", "namespaces", attributes.namespace));
        };
        if meta::text(&namespace, "/status/phase") == "Terminating" {
            let why = format!(
                "unable to create new content in namespace {} because it is being terminated",
                attributes.namespace
            );
            let cause = StatusCause {
                reason: Some("NamespaceTerminating".into()),
                message: Some(format!("namespace {} is being terminated", attributes.namespace)),
                field: Some("metadata.namespace".into()),
            };
            return Err(attributes.forbidden(&why).with_causes(vec![cause]));
        }
        Ok(())
    }
}

/// Gives pods their service account.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceAccountPlugin {
    /// Whether pods get a volume with a token of their account. Simulated pods read none, and it is a good part of a small pod.
    pub mounts_tokens: bool,
}

/// Where containers find what their service account gives them.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";
/// How often it is looked for, and how long is waited in between; up to twice as long.
const ATTEMPTS: usize = 10;
const RETRY: Duration = Duration::from_millis(100);

/// How names of volumes with what a service account gives begin.
const TOKEN_VOLUMES: &str = "kube-api-access-";

impl ServiceAccountPlugin {
    /// Refuses pods that refer to secrets which are not for them.
    fn judge(attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let is_new = attributes.creates("", "pods");
        let is_debugged = attributes.is("", "pods") && attributes.subresource == "ephemeralcontainers";
        if !is_new && !is_debugged {
            return Ok(());
        }
        let pod = attributes.object.as_deref().unwrap_or(&Value::Null);
        if is_new && is_mirror(pod) {
            return match secret_references::of_mirror(pod) {
                Some(why) => Err(attributes.forbidden(why)),
                None => Ok(()),
            };
        }
        let account = Self::account(attributes, meta::text(pod, "/spec/serviceAccountName"))?;
        if is_new {
            return Self::judge_new(attributes, &account);
        }
        let is_limited = secret_references::is_limited(&account);
        let unlisted = secret_references::of_ephemeral_containers(pod, &account).filter(|_| is_limited);
        unlisted.map_or(Ok(()), |why| Err(ApiError::unclassified(why)))
    }

    /// As [`Self::judge`], of a new pod whose account is known.
    fn judge_new(attributes: &Attributes<'_>, account: &Value) -> Result<(), ApiError> {
        if !secret_references::is_limited(account) {
            return Ok(());
        }
        let pod = attributes.object.as_deref().unwrap_or(&Value::Null);
        let unlisted = secret_references::of_pod(pod, account);
        unlisted.map_or(Ok(()), |why| Err(attributes.forbidden(&why)))
    }

    /// The account of a new pod. That of a new namespace, `default`, comes a moment later, and is waited for.
    async fn awaited(attributes: &Attributes<'_>, name: &str) -> Result<Arc<Value>, ApiError> {
        let mut found = Self::account(attributes, name);
        for _ in 1..ATTEMPTS {
            if found.is_ok() || name != DEFAULT_ACCOUNT {
                break;
            }
            let spread = Duration::from_millis(attributes.context.chance % 100);
            tokio::time::sleep(RETRY + spread).await;
            found = Self::account(attributes, name);
        }
        found
    }

    /// The account of a name.
    fn account(attributes: &Attributes<'_>, name: &str) -> Result<Arc<Value>, ApiError> {
        let namespace = attributes.namespace;
        let account = attributes.context.lister.get("", "serviceaccounts", namespace, name);
        account.ok_or_else(|| {
            let why = unaskable(name).unwrap_or_else(|| format!("serviceaccount {} not found", go_quote(name)));
            attributes.forbidden(&format!("error looking up service account {namespace}/{name}: {why}"))
        })
    }

    /// Mounts a token into a pod, unless it or its account is against it.
    fn mount_token(attributes: &mut Attributes<'_>, account: &Value) {
        let suffix = gardener_apimachinery::chance::suffix_of(attributes.context.chance, 5);
        let Some(spec) = attributes.object.as_mut().and_then(|pod| pod.get_mut("spec")) else {
            return;
        };
        let wish = |object: &Value| object.get("automountServiceAccountToken").and_then(Value::as_bool);
        if !wish(spec).or_else(|| wish(account)).unwrap_or(true) {
            return;
        }
        let there = meta::elements(spec, "/volumes")
            .iter()
            .map(|volume| meta::text(volume, "/name"));
        // a pod that is made of another brings the other's volume
        let there = there
            .filter(|name| name.starts_with(TOKEN_VOLUMES))
            .map(str::to_owned)
            .next();
        let is_there = there.is_some();
        let name = there.unwrap_or_else(|| format!("{TOKEN_VOLUMES}{suffix}"));
        let mut mounted = false;
        for list in ["initContainers", "containers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                let Some(container) = container.as_object_mut() else {
                    continue;
                };
                let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
                let Some(mounts) = mounts.as_array_mut() else { continue };
                if mounts.iter().any(|mount| meta::text(mount, "/mountPath") == TOKEN_PATH) {
                    continue;
                }
                mounts.push(json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH}));
                mounted = true;
            }
        }
        let Some(spec) = spec.as_object_mut().filter(|_| mounted && !is_there) else {
            return;
        };
        let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
        if let Some(volumes) = volumes.as_array_mut() {
            volumes.push(json!({"name": name, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
            ]}}));
        }
    }
}

#[async_trait]
impl Admission for ServiceAccountPlugin {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let is_class = attributes.is(SCHEDULING, "priorityclasses");
        if is_class && attributes.operation == Operation::Delete && super::policies::is_system_class(attributes.name) {
            return Err(attributes.forbidden("this is a system priority class and cannot be deleted"));
        }
        if !attributes.creates("", "pods") {
            return Ok(());
        }
        if attributes.object.as_deref().is_some_and(is_mirror) {
            return Self::judge(attributes);
        }
        let pod = attributes.object.as_deref().unwrap_or(&Value::Null);
        let name = match meta::text(pod, "/spec/serviceAccountName") {
            "" => DEFAULT_ACCOUNT.to_owned(),
            name => name.to_owned(),
        };
        let account = Self::awaited(attributes, &name).await?;
        if let Some(spec) = attributes
            .object
            .as_mut()
            .and_then(|pod| pod.get_mut("spec"))
            .and_then(Value::as_object_mut)
        {
            spec.insert("serviceAccountName".into(), name.clone().into());
            spec.insert("serviceAccount".into(), name.into());
        }
        if self.mounts_tokens {
            Self::mount_token(attributes, &account);
        }
        let secrets = account.get("imagePullSecrets").filter(|secrets| secrets.is_array());
        if let (Some(spec), Some(secrets)) = (
            attributes
                .object
                .as_mut()
                .and_then(|pod| pod.get_mut("spec"))
                .and_then(Value::as_object_mut),
            secrets,
        ) {
            spec.entry("imagePullSecrets").or_insert_with(|| secrets.clone());
        }
        Self::judge_new(attributes, &account)
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        Self::judge(attributes)
    }
}

/// Resolves pods' priority classes to numbers, which stay afterwards, and keeps a second class from being the default.
pub struct Priority;

const SCHEDULING: &str = "scheduling.k8s.io";

/// The class of pods that name none: of several, the one with the least value.
fn default_class(attributes: &Attributes<'_>) -> Option<Arc<Value>> {
    let classes = attributes.context.lister.list(SCHEDULING, "priorityclasses", None);
    let defaults = classes.into_iter().filter(|class| is_default_class(class));
    defaults.min_by_key(|class| class.get("value").and_then(Value::as_i64))
}

fn is_default_class(class: &Value) -> bool {
    class.get("globalDefault").and_then(Value::as_bool) == Some(true)
}

/// Gives a changed pod the priority that it has where the change does not tell any.
fn keep_priority(attributes: &mut Attributes<'_>) {
    let before = attributes
        .old_json()
        .and_then(|old| old.get("spec"))
        .cloned()
        .unwrap_or_default();
    let spec = attributes.object.as_mut().and_then(|pod| pod.get_mut("spec"));
    let Some(spec) = spec.and_then(Value::as_object_mut) else {
        return;
    };
    for key in ["priority", "preemptionPolicy"] {
        if let (true, Some(own)) = (spec.get(key).is_none_or(Value::is_null), before.get(key)) {
            spec.insert(key.to_owned(), own.clone());
        }
    }
}

#[async_trait]
impl Admission for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.is("", "pods") || !attributes.subresource.is_empty() {
            return Ok(());
        }
        match attributes.operation {
            Operation::Create => {}
            Operation::Update => {
                keep_priority(attributes);
                return Ok(());
            }
            _ => return Ok(()),
        }
        let class = attributes
            .object
            .as_ref()
            .map(|pod| meta::text(pod, "/spec/priorityClassName").to_owned())
            .unwrap_or_default();
        let found = if class.is_empty() {
            default_class(attributes)
        } else {
            let found = attributes.context.lister.get(SCHEDULING, "priorityclasses", "", &class);
            if found.is_none() {
                return Err(attributes.forbidden(&format!("no PriorityClass with name {class} was found")));
            }
            found
        };
        if let Some(spec) = attributes
            .object
            .as_mut()
            .and_then(|pod| pod.get_mut("spec"))
            .and_then(Value::as_object_mut)
        {
            let value = found
                .as_ref()
                .and_then(|class| class.get("value").and_then(Value::as_i64))
                .unwrap_or(0);
            let policy = found
                .as_ref()
                .map(|class| meta::text(class, "/preemptionPolicy").to_owned())
                .filter(|policy| !policy.is_empty());
            let policy = policy.unwrap_or_else(|| "PreemptLowerPriority".into());
            let own = (
                spec.get("priority").and_then(Value::as_i64),
                spec.get("preemptionPolicy").and_then(Value::as_str),
            );
            let wrong = match own {
                (Some(own), _) if own != value => Some(format!(
                    "the integer value of priority ({own}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
                )),
                (_, Some(own)) if own != policy => Some(format!(
                    "the string value of PreemptionPolicy ({own}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
                )),
                _ => None,
            };
            if let Some(wrong) = wrong {
                return Err(attributes.forbidden(&wrong));
            }
            spec.insert("priority".into(), json!(value));
            spec.insert("preemptionPolicy".into(), policy.into());
            if let (true, Some(found)) = (class.is_empty(), &found) {
                spec.insert("priorityClassName".into(), meta::name(found).into());
            }
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        if !writes || !attributes.is(SCHEDULING, "priorityclasses") || !attributes.subresource.is_empty() {
            return Ok(());
        }
        let class = attributes.object.as_deref().filter(|class| is_default_class(class));
        let Some(class) = class else { return Ok(()) };
        let Some(other) = default_class(attributes) else {
            return Ok(());
        };
        if attributes.operation == Operation::Update && meta::name(&other) == meta::name(class) {
            return Ok(());
        }
        Err(attributes.forbidden(&format!(
            "PriorityClass {} is already marked as default. Only one default can exist",
            meta::name(&other)
        )))
    }
}

/// Lets pods stay some time on a node that is not ready or not reachable.
#[derive(Clone, Copy, Debug)]
pub struct DefaultTolerationSeconds {
    /// How many seconds on one that is not ready.
    pub not_ready: i64,
    /// How many seconds on one that cannot be reached.
    pub unreachable: i64,
}

impl Default for DefaultTolerationSeconds {
    fn default() -> Self {
        Self {
            not_ready: 300,
            unreachable: 300,
        }
    }
}

#[async_trait]
impl Admission for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        if !writes || !attributes.is("", "pods") || !attributes.subresource.is_empty() {
            return Ok(());
        }
        let Some(spec) = attributes
            .object
            .as_mut()
            .and_then(|pod| pod.get_mut("spec"))
            .and_then(Value::as_object_mut)
        else {
            return Ok(());
        };
        let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
        if let Some(tolerations) = tolerations.as_array_mut() {
            for (key, seconds) in [
                ("node.kubernetes.io/not-ready", self.not_ready),
                ("node.kubernetes.io/unreachable", self.unreachable),
            ] {
                let tolerated = tolerations.iter().any(|own| {
                    let (own_key, effect) = (meta::text(own, "/key"), meta::text(own, "/effect"));
                    (own_key == key || own_key.is_empty()) && (effect.is_empty() || effect == "NoExecute")
                });
                if !tolerated {
                    tolerations.push(
                        json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}),
                    );
                }
            }
        }
        Ok(())
    }
}

const REQUESTS: (&str, &str) = ("certificates.k8s.io", "certificatesigningrequests");

/// Whether a user may do something for a signer: for itself, or for all of its domain.
pub(super) fn may_for_signer(context: &Context<'_>, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")].iter().any(|name| {
        context
            .lister
            .allowed(context.user, verb, REQUESTS.0, "signers", "", name)
    })
}

/// Lets only approvers approve and deny requests.
pub struct CertificateApproval;

#[async_trait]
impl Admission for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let is_approval = attributes.is(REQUESTS.0, REQUESTS.1) && attributes.subresource == "approval";
        let Some(old) = attributes.old.filter(|_| is_approval) else {
            return Ok(());
        };
        let signer = meta::text(old, "/spec/signerName");
        match may_for_signer(attributes.context, "approve", signer) {
            true => Ok(()),
            false => Err(attributes.forbidden(&format!(
                "user not permitted to approve requests with signerName {}",
                go_quote(signer)
            ))),
        }
    }
}

/// Lets only signers write certificates into requests.
pub struct CertificateSigning;

#[async_trait]
impl Admission for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let is_status = attributes.is(REQUESTS.0, REQUESTS.1) && attributes.subresource == "status";
        let (Some(request), Some(old)) = (&attributes.object, attributes.old) else {
            return Ok(());
        };
        let same = |pointer: &str| request.at(pointer) == old.at(pointer);
        if !is_status || same("/status/certificate") && same("/status/conditions") {
            return Ok(());
        }
        let signer = meta::text(old, "/spec/signerName");
        if may_for_signer(attributes.context, "sign", signer) {
            return Ok(());
        }
        Err(attributes.forbidden(&format!(
            "user not permitted to sign requests with signerName {}",
            go_quote(signer)
        )))
    }
}

/// Lets claims grow where their class allows it.
pub struct PersistentVolumeClaimResize;

#[async_trait]
impl Admission for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let (Some(claim), Some(old)) = (&attributes.object, attributes.old) else {
            return Ok(());
        };
        if !attributes.is("", "persistentvolumeclaims") || !attributes.subresource.is_empty() {
            return Ok(());
        }
        let size = |claim: &Value| {
            let size = claim.at("/spec/resources/requests/storage");
            size.and_then(super::checks::amount)
        };
        let grows = match (size(claim), size(old)) {
            (Some(new), Some(old)) => new > old,
            (new, None) => new.is_some_and(|new| !new.is_zero()),
            (None, Some(_)) => false,
        };
        if !grows {
            return Ok(());
        }
        if meta::text(old, "/status/phase") != "Bound" {
            return Err(attributes.forbidden("Only bound persistent volume claims can be expanded"));
        }
        let class = super::claims::class(claim);
        let found = Some(class)
            .filter(|class| !class.is_empty() && *class == super::claims::class(old))
            .and_then(|class| {
                attributes
                    .context
                    .lister
                    .get("storage.k8s.io", "storageclasses", "", class)
            });
        if found.is_some_and(|class| class.get("allowVolumeExpansion") == Some(&Value::Bool(true))) {
            return Ok(());
        }
        Err(attributes.forbidden("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"))
    }
}

/// Refuses requests of clients that want to be masters.
pub struct CertificateSubjectRestriction;

#[async_trait]
impl Admission for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
        let is_new = attributes.operation == Operation::Create && attributes.subresource.is_empty();
        let Some(request) = attributes.object.as_ref() else {
            return Ok(());
        };
        if !is_new || !attributes.is(REQUESTS.0, REQUESTS.1) || meta::text(request, "/spec/signerName") != SIGNER {
            return Ok(());
        }
        let requested = super::certificates::requested(request).unwrap_or_default();
        if requested.organizations.iter().any(|group| group == MASTERS) {
            return Err(attributes.forbidden(&format!("use of {SIGNER} signer with {MASTERS} group is not allowed")));
        }
        Ok(())
    }
}
