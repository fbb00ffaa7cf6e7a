//! Admission plugins that every cluster has: namespaces must exist, pods get a service account, a priority and tolerations.

use std::sync::Arc;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusCause;
use serde_json::{Value, json};

use crate::definition::{Admission, Attributes, Context, Operation};
use crate::meta;
use crate::user::MASTERS;
use crate::webhooks::{MutatingAdmissionWebhook, ValidatingAdmissionWebhook};

/// The plugins of a cluster with nodes, in upstream's order.
pub fn plugins() -> Vec<Arc<dyn Admission>> {
    vec![
        Arc::new(NamespaceLifecycle),
        Arc::new(ServiceAccountPlugin),
        Arc::new(Priority),
        Arc::new(DefaultTolerationSeconds),
        Arc::new(CertificateSigning),
        Arc::new(CertificateSubjectRestriction),
        Arc::new(MutatingAdmissionWebhook),
        Arc::new(ValidatingAdmissionWebhook),
    ]
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
        {
            return Ok(());
        }
        let Some(namespace) = attributes
            .context
            .lister
            .get("", "namespaces", "", attributes.namespace)
        else {
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
pub struct ServiceAccountPlugin;

#[async_trait]
impl Admission for ServiceAccountPlugin {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation != Operation::Create || !attributes.is("", "pods") || !attributes.subresource.is_empty()
        {
            return Ok(());
        }
        let name = attributes
            .object
            .as_ref()
            .map(|pod| meta::text(pod, "/spec/serviceAccountName").to_owned())
            .unwrap_or_default();
        let name = if name.is_empty() { "default".to_owned() } else { name };
        if attributes
            .context
            .lister
            .get("", "serviceaccounts", attributes.namespace, &name)
            .is_none()
        {
            return Err(attributes.forbidden(&format!(
                "error looking up service account {}/{name}: serviceaccount {name:?} not found",
                attributes.namespace
            )));
        }
        if let Some(spec) = attributes
            .object
            .as_mut()
            .and_then(|pod| pod.get_mut("spec"))
            .and_then(Value::as_object_mut)
        {
            spec.insert("serviceAccountName".into(), name.clone().into());
            spec.insert("serviceAccount".into(), name.into());
        }
        Ok(())
    }
}

/// Resolves pods' priority classes to numbers.
pub struct Priority;

#[async_trait]
impl Admission for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation != Operation::Create || !attributes.is("", "pods") || !attributes.subresource.is_empty()
        {
            return Ok(());
        }
        let class = attributes
            .object
            .as_ref()
            .map(|pod| meta::text(pod, "/spec/priorityClassName").to_owned())
            .unwrap_or_default();
        let group = "scheduling.k8s.io";
        let found = if class.is_empty() {
            let is_default = |class: &Value| class.get("globalDefault").and_then(Value::as_bool) == Some(true);
            attributes
                .context
                .lister
                .list(group, "priorityclasses", None)
                .into_iter()
                .find(|class| is_default(class))
        } else {
            let found = attributes.context.lister.get(group, "priorityclasses", "", &class);
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
            spec.insert("priority".into(), json!(value));
            spec.insert(
                "preemptionPolicy".into(),
                policy.unwrap_or_else(|| "PreemptLowerPriority".into()).into(),
            );
            if let (true, Some(found)) = (class.is_empty(), &found) {
                spec.insert("priorityClassName".into(), meta::name(found).into());
            }
        }
        Ok(())
    }
}

/// Lets pods stay five minutes on a node that is not ready or not reachable.
pub struct DefaultTolerationSeconds;

#[async_trait]
impl Admission for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation != Operation::Create || !attributes.is("", "pods") || !attributes.subresource.is_empty()
        {
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
            for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
                let tolerated = tolerations.iter().any(|own| {
                    let (own_key, effect) = (meta::text(own, "/key"), meta::text(own, "/effect"));
                    (own_key == key || own_key.is_empty()) && (effect.is_empty() || effect == "NoExecute")
                });
                if !tolerated {
                    tolerations.push(
                        json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
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
        let same = |pointer: &str| request.pointer(pointer) == old.pointer(pointer);
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
        if super::certificates::organizations(request)
            .iter()
            .any(|group| group == MASTERS)
        {
            return Err(attributes.forbidden(&format!("use of {SIGNER} signer with {MASTERS} group is not allowed")));
        }
        Ok(())
    }
}
