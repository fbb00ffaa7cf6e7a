//! How all that is encrypted comes to be encrypted with another key, or no longer [CP-92], [CP-95], [CP-F35], [CP-F37]. What has to be done is decided in
//! `rules::credentials_rotation`.
//!
//! An object is encrypted anew when it is written, and it is written when a label comes or goes. How far that is stands in annotations of the API server's
//! Deployment, so that a flow that begins again does not begin from the start.
//!
//! Not here: the snapshot of etcd in between [CP-F36], which asks the backup's sidecar of etcd and not an API.

use futures::{StreamExt, TryStreamExt};
use gardener_controller::Read;
use gardener_controller::apply as patching;
use gardener_controller::secrets::Class;
use gardener_flow::TaskError;
use gardener_rules::credentials_rotation::Encryption;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResourceList};
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::secrets::ENCRYPTION_KEY;
use super::{Botanist, Done};
use crate::components::kube_apiserver;

/// Every replica reads what the old and what the new key wrote.
const BOTH_KEYS_KNOWN: &str = "credentials.gardener.cloud/new-encryption-key-populated";
/// All objects have the label.
const LABELLED: &str = "credentials.gardener.cloud/resources-labeled";
/// etcd was snapshotted since.
const SNAPSHOTTED: &str = "credentials.gardener.cloud/etcd-snapshotted";
/// The label of objects: the name of the key's Secret.
const KEY_NAME: &str = "credentials.gardener.cloud/key-name";

/// How many objects are read, and how many are written, at a time.
const PAGE: u32 = 500;
const AT_ONCE: usize = 20;

/// A group of an API, in its preferred version; the core group has no name.
fn preferred(groups: &[APIGroup], group: &str) -> Option<String> {
    if group.is_empty() {
        return Some("v1".to_owned());
    }
    let found = groups.iter().find(|own| own.name == group)?;
    let version = found.preferred_version.as_ref().or(found.versions.first())?;
    Some(version.version.clone())
}

/// The kind of a resource among those of its group and version; none, if its objects cannot be read and changed.
fn listed(resources: &APIResourceList, group: &str, version: &str, plural: &str) -> Option<ApiResource> {
    let found = resources.resources.iter().find(|own| own.name == plural)?;
    let can = |verb: &str| found.verbs.iter().any(|own| own == verb);
    (can("get") && can("list") && can("patch")).then(|| ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: resources.group_version.clone(),
        kind: found.kind.clone(),
        plural: plural.to_owned(),
    })
}

/// Which API a resource is, written as in specs: `secrets`, `deployments.apps`. None, if there is no such API (any more).
async fn api_of(client: &Client, resource: &str) -> Result<Option<ApiResource>, kube::Error> {
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let groups = client.list_api_groups().await?.groups;
    let Some(version) = preferred(&groups, group) else {
        return Ok(None);
    };
    let resources = match group {
        "" => client.list_core_api_resources(&version).await?,
        group => client.list_api_group_resources(&format!("{group}/{version}")).await?,
    };
    Ok(listed(&resources, group, &version, plural))
}

/// Writes a label, or with null takes it away, where the selector finds objects.
async fn relabel(client: &Client, resource: &ApiResource, selector: &str, value: &Value) -> Result<(), kube::Error> {
    let everywhere: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let patch = Patch::Merge(json!({"metadata": {"labels": {KEY_NAME: value}}}));
    let params = PatchParams::default();
    let mut page = ListParams::default().labels(selector).limit(PAGE);
    loop {
        let found = everywhere.list_metadata(&page).await?;
        let write = |object: PartialObjectMeta<DynamicObject>| {
            let api: Api<DynamicObject> = match object.namespace() {
                Some(namespace) => Api::namespaced_with(client.clone(), &namespace, resource),
                None => everywhere.clone(),
            };
            let (params, patch) = (&params, &patch);
            async move {
                match api.patch_metadata(&object.name_any(), params, patch).await {
                    // who is gone needs no key
                    Err(error) if !patching::is_not_found(&error) => Err(error),
                    _ => Ok(()),
                }
            }
        };
        let writes = futures::stream::iter(found.items.into_iter().map(write));
        writes.buffered(AT_ONCE).try_collect::<()>().await?;
        match found.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}

impl Botanist {
    /// Whether all that is encrypted is to be labelled in this operation, and whether the labels are to be taken away.
    pub(crate) fn encryption(&self) -> Encryption {
        Encryption::of(&self.shoot())
    }

    async fn api_server_metadata(&self) -> Result<Option<ObjectMeta>, TaskError> {
        let api: Api<Deployment> = self.seed_api();
        let found = api.get_metadata_opt(kube_apiserver::NAME).await?;
        Ok(found.map(|found| found.metadata))
    }

    async fn api_server_is_marked(&self, mark: &str) -> Result<bool, TaskError> {
        let found = self
            .api_server_metadata()
            .await?
            .and_then(|metadata| metadata.annotations);
        Ok(found.is_some_and(|annotations| annotations.contains_key(mark)))
    }

    /// Writes annotations of the API server's Deployment, or takes them away.
    async fn mark_api_server(&self, marks: &[(&str, bool)]) -> Done {
        let api: Api<Deployment> = self.seed_api();
        let current = api.read(kube_apiserver::NAME).await?;
        patching::patch(&api, &current, |deployment| {
            for (mark, is_set) in marks {
                let annotations = deployment.annotations_mut();
                match is_set {
                    true => annotations.insert((*mark).to_owned(), "true".to_owned()),
                    false => annotations.remove(*mark),
                };
            }
        })
        .await?;
        Ok(())
    }

    /// Whether every replica of the API server reads what the old and what the new key wrote.
    pub(crate) async fn api_servers_know_both_keys(&self) -> Result<bool, TaskError> {
        self.api_server_is_marked(BOTH_KEYS_KNOWN).await
    }

    /// Remembers it, or that it is over.
    pub(crate) async fn tell_that_api_servers_know_both_keys(&self, they_do: bool) -> Done {
        self.mark_api_server(&[(BOTH_KEYS_KNOWN, they_do)]).await
    }

    async fn rewrite(&self, selector: &str, value: &Value) -> Done {
        let client = self.shoot_client().await?;
        for resource in self.encryption().rewritten() {
            match api_of(&client, &resource).await? {
                Some(found) => relabel(&client, &found, selector, value).await?,
                None => tracing::warn!(resource, "is to be encrypted, but the shoot has no such API"),
            }
        }
        Ok(())
    }

    /// Writes all that is encrypted with a label [CP-F35].
    pub(crate) async fn label_encrypted(&self) -> Done {
        if self.api_server_is_marked(LABELLED).await? {
            return Ok(());
        }
        let key = self.generated(ENCRYPTION_KEY, Class::Current)?.name_any();
        self.rewrite(&format!("{KEY_NAME}!={key}"), &Value::from(key)).await?;
        self.mark_api_server(&[(LABELLED, true)]).await
    }

    /// Takes the labels away, and tells in the status what is encrypted now [CP-F37], [ST-161].
    pub(crate) async fn unlabel_encrypted(&self) -> Done {
        self.rewrite(KEY_NAME, &Value::Null).await?;
        self.mark_api_server(&[(LABELLED, false), (SNAPSHOTTED, false)]).await?;
        let Some(settled) = self.encryption().settled() else {
            return Ok(());
        };
        self.patch_status(|shoot| {
            let credentials = shoot.status.credentials.get_or_insert_default();
            credentials.encryption_at_rest = Some(settled.clone());
        })
        .await
    }
}
