//! Fields that the versions after maintenance do not know any more [VER-82], [VER-83], [VER-86].

use std::collections::BTreeMap;

use gardener_apis::core::v1beta1::{Shoot, supports_admission_plugin, supports_feature_gate};
use gardener_apis::security::v1alpha1::{CredentialsBinding, CredentialsBindingProvider};
use gardener_apis::versions::at_least;
use k8s_openapi::api::core::v1::ObjectReference;

use super::{Plan, Surroundings};

/// Marks bindings that maintenance made.
const MIGRATED_LABEL: &str = "credentialsbinding.gardener.cloud/status";
const MIGRATED: &str = "force-migrated";

/// Whether the control plane comes to `1.<minor>` or above only now.
fn crosses(before: &str, after: &str, minor: u64) -> bool {
    !at_least(before, minor) && at_least(after, minor)
}

/// Takes away what the new version of the control plane does not allow.
pub(super) fn obsolete_fields(plan: &mut Plan, before: &str, around: &Surroundings<'_>) {
    let after = plan.shoot.spec.kubernetes_version().to_owned();
    let mut messages = Vec::new();
    if crosses(before, &after, 33) {
        messages.extend(up_to_33(&mut plan.shoot));
    }
    if crosses(before, &after, 34) {
        messages.extend(migrate_binding(plan, around));
    }
    if crosses(before, &after, 35) {
        messages.extend(up_to_35(&mut plan.shoot));
    }
    plan.report.messages.extend(messages);
}

fn up_to_33(shoot: &mut Shoot) -> Vec<String> {
    let mut messages = Vec::new();
    let mut unset = |field: &str, instead: &str| {
        let until = "can no longer be enabled for Shoot clusters using Kubernetes version 1.33+";
        messages.push(format!(
            "{field} is set to nil. Reason: The field was deprecated in favour of {instead} and {until}"
        ));
    };
    let kubernetes = &mut shoot.spec.kubernetes;
    if let Some(manager) = &mut kubernetes.kube_controller_manager
        && manager.pod_eviction_timeout.take().is_some()
    {
        unset(
            ".spec.kubernetes.kubeControllerManager.podEvictionTimeout",
            "`spec.kubernetes.kubeAPIServer.defaultNotReadyTolerationSeconds` and `spec.kubernetes.kubeAPIServer.defaultUnreachableTolerationSeconds`",
        );
    }
    if let Some(autoscaler) = &mut kubernetes.cluster_autoscaler
        && autoscaler.max_empty_bulk_delete.take().is_some()
    {
        unset(
            ".spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete",
            "`.spec.kubernetes.clusterAutoscaler.maxScaleDownParallelism`",
        );
    }
    messages
}

fn up_to_35(shoot: &mut Shoot) -> Vec<String> {
    let mut messages = Vec::new();
    let mut removed = |field: &str, why: &str| messages.push(format!("{field} was removed. Reason: {why}"));
    let unsupported = "The field is no longer supported for Shoot clusters using Kubernetes version 1.35+";
    let spec = &mut shoot.spec;
    let kubernetes = &mut spec.kubernetes;
    if let Some(server) = &mut kubernetes.kube_api_server
        && server.enable_anonymous_authentication.take().is_some()
    {
        removed(
            ".spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication",
            unsupported,
        );
    }
    if let Some(scheduler) = &mut kubernetes.kube_scheduler
        && scheduler.kube_max_pd_vols.take().is_some()
    {
        removed(
            ".spec.kubernetes.kubeScheduler.kubeMaxPDVols",
            "kubeMaxPDVols is deprecated and not respected by the kube-scheduler",
        );
    }
    let sizes = kubernetes
        .kube_api_server
        .as_mut()
        .map(|own| &mut own.watch_cache_sizes);
    if let Some(Some(sizes)) = sizes
        && sizes.default.take().is_some()
    {
        removed(
            ".spec.kubernetes.kubeAPIServer.watchCacheSizes.default",
            "the default size configuration is deprecated and not respected by the kube-apiserver",
        );
    }
    if spec.addons.take().is_some() {
        removed(
            ".spec.addons",
            "addons are not supported anymore for Kubernetes versions 1.35+",
        );
    }
    for (i, provider) in spec.dns.iter_mut().flat_map(|dns| &mut dns.providers).enumerate() {
        if provider.secret_name.take().is_some() {
            removed(&format!(".spec.dns.providers[{i}].secretName"), unsupported);
        }
    }
    messages
}

/// From a SecretBinding to a CredentialsBinding of the same secret and quotas.
fn migrate_binding(plan: &mut Plan, around: &Surroundings<'_>) -> Option<String> {
    let spec = &mut plan.shoot.spec;
    if spec.credentials_binding_name.is_some() {
        return None;
    }
    let name = spec.secret_binding_name.clone().filter(|name| !name.is_empty())?;
    let failed = |why: &str| format!("Failed to migrate from secretBindingName to credentialsBindingName: {why}");
    let Some(old) = around.secret_binding else {
        return Some(failed(&format!("SecretBinding {name:?} not found")));
    };
    let secret = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        name: old.secret_ref.name.clone(),
        namespace: old.secret_ref.namespace.clone(),
        ..ObjectReference::default()
    };
    let quotas = |quotas: &[ObjectReference]| {
        let mut names: Vec<_> = quotas
            .iter()
            .map(|own| (own.namespace.clone(), own.name.clone()))
            .collect();
        names.sort();
        names
    };
    let equal = |own: &&CredentialsBinding| {
        let reference = &own.credentials_ref;
        let same_secret = reference.api_version == secret.api_version
            && reference.kind == secret.kind
            && reference.name == secret.name
            && reference.namespace == secret.namespace;
        same_secret && quotas(&own.quotas) == quotas(&old.quotas)
    };
    let wanted = format!("{MIGRATED}-{name}");
    let named = |own: &CredentialsBinding| own.metadata.name.clone().unwrap_or_default();
    let mut bindings: Vec<&CredentialsBinding> = around.credentials_bindings.iter().collect();
    bindings.sort_by_key(|own| (named(own) != wanted, named(own)));
    let found = bindings.iter().copied().find(equal).map(named);
    let chosen = match found {
        Some(found) => found,
        None if bindings.iter().any(|own| named(own) == wanted) => {
            return Some(failed(&format!(
                "CredentialsBinding {wanted:?} exists but refers to something else"
            )));
        }
        None => {
            let mut binding = CredentialsBinding {
                credentials_ref: secret,
                quotas: old.quotas.clone(),
                provider: CredentialsBindingProvider {
                    r#type: old.provider.as_ref().map(|own| own.r#type.clone()).unwrap_or_default(),
                },
                ..CredentialsBinding::default()
            };
            binding.metadata.name = Some(wanted.clone());
            binding.metadata.namespace = plan.shoot.metadata.namespace.clone();
            binding.metadata.labels = Some(BTreeMap::from([(MIGRATED_LABEL.to_owned(), MIGRATED.to_owned())]));
            plan.new_binding = Some(binding);
            wanted
        }
    };
    spec.secret_binding_name = None;
    spec.credentials_binding_name = Some(chosen);
    Some(
        ".spec.secretBindingName was migrated to .spec.credentialsBindingName. Reason: SecretBinding is deprecated and can no longer be used for Shoot clusters using Kubernetes version 1.34+".to_owned(),
    )
}

/// Takes away the gates that the version does not know.
fn keep_known(gates: &mut BTreeMap<String, bool>, path: &str, version: &str, messages: &mut Vec<String>) {
    let unknown: Vec<String> = gates
        .keys()
        .filter(|gate| !supports_feature_gate(gate, version))
        .cloned()
        .collect();
    if unknown.is_empty() {
        return;
    }
    gates.retain(|gate, _| !unknown.contains(gate));
    messages.push(format!(
        "Removed feature gates from \"{path}.featureGates\" because they are not supported in Kubernetes version {version:?}: {}",
        unknown.join(", ")
    ));
}

pub(super) fn feature_gates(plan: &mut Plan) {
    let version = plan.shoot.spec.kubernetes_version().to_owned();
    let messages = &mut plan.report.messages;
    let kubernetes = &mut plan.shoot.spec.kubernetes;
    let path = "spec.kubernetes";
    let mut keep = |gates: Option<&mut BTreeMap<String, bool>>, part: &str| {
        if let Some(gates) = gates {
            keep_known(gates, &format!("{path}.{part}"), &version, messages);
        }
    };
    keep(
        kubernetes.kube_api_server.as_mut().map(|own| &mut own.feature_gates),
        "kubeAPIServer",
    );
    keep(
        kubernetes
            .kube_controller_manager
            .as_mut()
            .map(|own| &mut own.feature_gates),
        "kubeControllerManager",
    );
    keep(
        kubernetes.kube_scheduler.as_mut().map(|own| &mut own.feature_gates),
        "kubeScheduler",
    );
    keep(
        kubernetes.kube_proxy.as_mut().map(|own| &mut own.feature_gates),
        "kubeProxy",
    );
    keep(kubernetes.kubelet.as_mut().map(|own| &mut own.feature_gates), "kubelet");
    for (i, worker) in plan.shoot.spec.provider.workers.iter_mut().enumerate() {
        let Some(own) = &mut worker.kubernetes else { continue };
        let version = own.version.clone().unwrap_or_else(|| version.clone());
        if let Some(kubelet) = &mut own.kubelet {
            let path = format!("spec.provider.workers[{i}].kubernetes.kubelet");
            keep_known(&mut kubelet.feature_gates, &path, &version, &mut plan.report.messages);
        }
    }
}

pub(super) fn admission_plugins(plan: &mut Plan) {
    let version = plan.shoot.spec.kubernetes_version().to_owned();
    let Some(server) = &mut plan.shoot.spec.kubernetes.kube_api_server else {
        return;
    };
    let unknown = |name: &str| !supports_admission_plugin(name, &version);
    let plugins = server.admission_plugins.iter();
    let mut names: Vec<String> = plugins
        .map(|own| own.name.clone())
        .filter(|name| unknown(name))
        .collect();
    if names.is_empty() {
        return;
    }
    names.sort();
    server.admission_plugins.retain(|own| !unknown(&own.name));
    plan.report.messages.push(format!(
        "Removed admission plugins from \"spec.kubernetes.kubeAPIServer.admissionPlugins\" because they are not supported in Kubernetes version {version:?}: {}",
        names.join(", ")
    ));
}

pub(super) fn nginx_ingress(plan: &mut Plan) {
    let addons = plan.shoot.spec.addons.as_mut();
    if let Some(nginx) = addons.and_then(|own| own.nginx_ingress.as_mut())
        && nginx.enabled
    {
        nginx.enabled = false;
        plan.report.messages.push(
            ".spec.addons.nginxIngress was disabled. Reason: nginx ingress addon disallowed by landscape operator"
                .to_owned(),
        );
    }
}
