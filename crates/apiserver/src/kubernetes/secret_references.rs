//! Which secrets pods may refer to, from plugin/pkg/admission/serviceaccount of Kubernetes: mirror pods none, and others those that their service
//! account lists, if it wants that.

use gardener_apimachinery::meta::parse_bool;
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use super::checks::text;
use super::serviceaccounts::ENFORCES_SECRETS;
use crate::authz::node::related::has_secrets;
use crate::meta;

/// What a mirror pod may not refer to, but does.
pub(super) fn of_mirror(pod: &Value) -> Option<&'static str> {
    if !meta::text(pod, "/spec/serviceAccountName").is_empty() {
        return Some("a mirror pod may not reference service accounts");
    }
    if has_secrets(pod) {
        return Some("a mirror pod may not reference secrets");
    }
    let volumes = meta::elements(pod, "/spec/volumes").iter();
    let mut sources = volumes.flat_map(|volume| meta::elements(volume, "/projected/sources"));
    let has_token = sources.any(|source| source.get("serviceAccountToken").is_some_and(Value::is_object));
    has_token.then_some("a mirror pod may not use ServiceAccountToken volume projections")
}

/// Whether pods of an account may have only the secrets that it lists.
pub(super) fn is_limited(account: &Value) -> bool {
    let wish = account
        .at("/metadata/annotations")
        .and_then(|own| own.get(ENFORCES_SECRETS)?.as_str());
    wish.and_then(parse_bool) == Some(true)
}

/// The first secret that a pod refers to and its account does not list.
pub(super) fn of_pod(pod: &Value, account: &Value) -> Option<String> {
    let listed = |name: &str| lists(account, "/secrets", name);
    let volumes = meta::elements(pod, "/spec/volumes").iter();
    let mut volumes = volumes.filter(|volume| volume.get("secret").is_some_and(Value::is_object));
    let unlisted = volumes.find_map(|volume| {
        let name = meta::text(volume, "/secret/secretName");
        (!listed(name)).then(|| format!("volume with {}", refused(name, account)))
    });
    let of_containers = || {
        let kinds = [
            ("/spec/initContainers", "init container"),
            ("/spec/containers", "container"),
        ];
        kinds
            .into_iter()
            .find_map(|(list, what)| of_containers(pod, list, what, account))
    };
    unlisted.or_else(of_containers).or_else(|| {
        let pulled = meta::elements(pod, "/spec/imagePullSecrets").iter().enumerate();
        let mut unlisted = pulled.filter(|(_, own)| !lists(account, "/imagePullSecrets", text(own, "name")));
        let (index, own) = unlisted.next()?;
        Some(format!(
            "imagePullSecrets[{index}].name=\"{}\" is not allowed because service account {} does not reference that imagePullSecret",
            text(own, "name"),
            meta::name(account)
        ))
    })
}

/// The first secret that an ephemeral container of a pod refers to and the pod's account does not list.
pub(super) fn of_ephemeral_containers(pod: &Value, account: &Value) -> Option<String> {
    of_containers(pod, "/spec/ephemeralContainers", "ephemeral container", account)
}

fn of_containers(pod: &Value, list: &str, what: &str, account: &Value) -> Option<String> {
    let listed = |name: &str| lists(account, "/secrets", name);
    meta::elements(pod, list).iter().find_map(|container| {
        let own = text(container, "name");
        let of_variable = meta::elements(container, "/env").iter().find_map(|variable| {
            let reference = variable.at("/valueFrom/secretKeyRef").filter(|own| own.is_object())?;
            let (name, variable) = (text(reference, "name"), text(variable, "name"));
            (!listed(name)).then(|| {
                format!(
                    "{what} {own} with envVar {variable} referencing {}",
                    refused(name, account)
                )
            })
        });
        of_variable.or_else(|| {
            meta::elements(container, "/envFrom").iter().find_map(|source| {
                let reference = source.get("secretRef").filter(|own| own.is_object())?;
                let name = text(reference, "name");
                (!listed(name)).then(|| format!("{what} {own} with envFrom referencing {}", refused(name, account)))
            })
        })
    })
}

fn lists(account: &Value, list: &str, name: &str) -> bool {
    meta::elements(account, list)
        .iter()
        .any(|own| text(own, "name") == name)
}

fn refused(name: &str, account: &Value) -> String {
    let account = meta::name(account);
    format!(
        "secret.secretName=\"{name}\" is not allowed because service account {account} does not reference that secret"
    )
}
