//! Extensions that need more permissions in the garden than all have get them by roles `[GCM-32]`: such a role is bound to the service accounts of
//! extensions that its annotation selects.

use gardener_apimachinery::selector::LabelSelector;
use gardener_apis::constants::{GARDEN_NAMESPACE, PROJECT_NAMESPACE_PREFIX, SEED_NAMESPACE_PREFIX};
use gardener_controller::{Action, Informer, ObjectRef, Queue, Read, apply};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, OwnerReference};
use kube::core::PartialObjectMeta;
use kube::{Api, Resource, ResourceExt};

use super::CONCURRENT_SYNCS;
use crate::Manager;
use crate::manager::ReconcileError;

const LABEL: &str = "authorization.gardener.cloud/custom-extensions-permissions=true";
const SELECTOR: &str = "authorization.gardener.cloud/extensions-serviceaccount-selector";
/// Begins the names of service accounts of extensions in shoots that host themselves.
const SHOOT_PREFIX: &str = "extension-shoot--";
const GROUP: &str = "rbac.authorization.k8s.io";

type Account = PartialObjectMeta<ServiceAccount>;

/// Whether a service account is an extension's.
fn is_extensions(name: &str, namespace: &str) -> bool {
    let of_shoot = namespace == GARDEN_NAMESPACE || namespace.starts_with(PROJECT_NAMESPACE_PREFIX);
    namespace.starts_with(SEED_NAMESPACE_PREFIX) || (of_shoot && name.starts_with(SHOOT_PREFIX))
}

/// Which service accounts a role is for.
fn selector(role: &ClusterRole) -> Result<LabelSelector, String> {
    let told = role.annotations().get(SELECTOR);
    let told = told.ok_or("no service account selector annotations present")?;
    let selector: meta::LabelSelector = serde_json::from_str(told)
        .map_err(|error| format!("failed unmarshalling extensions service account selector {told}: {error}"))?;
    Ok(LabelSelector::from(&selector))
}

/// The service accounts that a role is bound to; they come ordered by namespace and name.
fn subjects<'a>(selector: &LabelSelector, accounts: impl Iterator<Item = &'a Account>) -> Vec<Subject> {
    let matches = |own: &&Account| {
        let labels = own.metadata.labels.clone().unwrap_or_default();
        is_extensions(&own.name_any(), &own.namespace().unwrap_or_default()) && selector.matches(&labels)
    };
    let subject = |own: &Account| Subject {
        kind: "ServiceAccount".to_owned(),
        name: own.name_any(),
        namespace: own.namespace(),
        api_group: None,
    };
    accounts.filter(matches).map(subject).collect()
}

pub(super) async fn run(manager: &Manager) {
    let roles = manager.informers.selected(manager.all::<ClusterRole>(), LABEL);
    let accounts: Informer<Account> = manager.informer();
    let queue: Queue<ObjectRef> = Queue::new();
    roles.feed(&queue, |role| [ObjectRef::of(role)]);
    let known = roles.clone();
    accounts.feed(&queue, move |account| {
        let labels = account.metadata.labels.clone().unwrap_or_default();
        let is_extensions = is_extensions(&account.name_any(), &account.namespace().unwrap_or_default());
        let all = if is_extensions { known.list() } else { Vec::new() };
        let own = all
            .into_iter()
            .filter(|role| selector(role).is_ok_and(|selector| selector.matches(&labels)));
        own.map(|role| ObjectRef::of(role.as_ref())).collect::<Vec<_>>()
    });
    tokio::join!(roles.synced(), accounts.synced());
    let own = (manager.clone(), accounts);
    let controller = manager.controller("controllerregistration-extension-clusterrole", CONCURRENT_SYNCS, queue);
    let reconcile = move |key: ObjectRef| {
        let (manager, accounts) = own.clone();
        async move { reconcile(&manager, &accounts, &key.name).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

async fn reconcile(manager: &Manager, accounts: &Informer<Account>, name: &str) -> Result<Action, ReconcileError> {
    let role = manager.all::<ClusterRole>().read_opt(name).await?;
    let Some(role) = role.filter(|role| role.metadata.deletion_timestamp.is_none()) else {
        return Ok(Action::Done);
    };
    let selector = selector(&role)
        .map_err(|why| ReconcileError::Blocked(format!("failed computing subjects for ClusterRoleBinding: {why}")))?;
    let accounts = accounts.list();
    let subjects = subjects(&selector, accounts.iter().map(AsRef::as_ref));
    let owner = OwnerReference {
        api_version: ClusterRole::api_version(&()).into_owned(),
        kind: "ClusterRole".to_owned(),
        name: name.to_owned(),
        uid: role.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(false),
    };
    let mut initial = ClusterRoleBinding {
        role_ref: RoleRef {
            api_group: Some(GROUP.to_owned()),
            kind: "ClusterRole".to_owned(),
            name: name.to_owned(),
        },
        ..ClusterRoleBinding::default()
    };
    initial.metadata.name = Some(name.to_owned());
    let api: Api<ClusterRoleBinding> = manager.all();
    apply::create_or_patch(&api, initial, |binding| {
        binding.metadata.owner_references = Some(vec![owner.clone()]);
        binding.subjects = Some(subjects.clone());
    })
    .await?;
    Ok(Action::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn gcm_32_whose_service_accounts_get_a_role() {
        let account = |namespace: &str, name: &str, app: &str| -> Account {
            let metadata = json!({"name": name, "namespace": namespace, "labels": {"app": app}});
            serde_json::from_value(json!({"metadata": metadata})).unwrap()
        };
        let all = [
            account("garden", "extension-foo", "foo"),
            account("garden", "extension-shoot--foo", "foo"),
            account("garden-dev", "extension-shoot--foo", "foo"),
            account("other", "extension-shoot--foo", "foo"),
            account("seed-a", "bar", "bar"),
            account("seed-a", "foo", "foo"),
        ];
        let role = |annotation: Option<&str>| {
            let mut role = ClusterRole::default();
            if let Some(annotation) = annotation {
                role.annotations_mut()
                    .insert(SELECTOR.to_owned(), annotation.to_owned());
            }
            role
        };
        let selected = selector(&role(Some(r#"{"matchLabels":{"app":"foo"}}"#))).unwrap();
        let found: Vec<(String, String)> = subjects(&selected, all.iter())
            .into_iter()
            .map(|own| (own.namespace.unwrap_or_default(), own.name))
            .collect();
        let expected = [
            ("garden", "extension-shoot--foo"),
            ("garden-dev", "extension-shoot--foo"),
            ("seed-a", "foo"),
        ];
        assert_eq!(
            found,
            expected.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
        );
        assert_eq!(
            selector(&role(None)).unwrap_err(),
            "no service account selector annotations present"
        );
        assert!(
            selector(&role(Some("app=foo")))
                .unwrap_err()
                .starts_with("failed unmarshalling")
        );
    }
}
