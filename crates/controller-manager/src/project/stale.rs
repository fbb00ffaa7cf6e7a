//! Projects that nobody uses any more are deleted in the end [GCM-6]. What is used is decided in `rules::projects::stale`.

use std::fmt::Debug;

use gardener_apimachinery::meta::is_true;
use gardener_apis::core::v1beta1::{BackupEntry, InternalSecret, Project, Quota, SecretBinding, Shoot};
use gardener_apis::security::v1alpha1::{CredentialsBinding, WorkloadIdentity};
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply, operation};
use gardener_rules::projects::stale::{Offered, Patience, Users, is_fresh, is_over, mark_stale, mark_used};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::Manager;
use crate::manager::{ReconcileError, or_gone};
use crate::references::{CREDENTIALS_BINDING_LABEL, SECRET_BINDING_LABEL};

const SKIP: &str = "project.gardener.cloud/skip-stale-check";
/// Secrets that somebody put there, not Gardener.
const UNCONTROLLED: &str = "gardener.cloud/role notin (controlplane-cert)";

/// Who may use what projects offer.
#[derive(Clone)]
struct Known {
    manager: Manager,
    shoots: Informer<Shoot>,
    entries: Informer<BackupEntry>,
    secret_bindings: Informer<SecretBinding>,
    credentials_bindings: Informer<CredentialsBinding>,
}

pub(super) async fn run(manager: &Manager, projects: &Informer<Project>) {
    let queue: Queue<ObjectRef> = Queue::new();
    projects.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => old.metadata.generation != new.metadata.generation,
            Change::Applied { old: None, .. } => true,
            Change::Deleted(_) => false,
        },
        |project| [ObjectRef::of(project)],
    );
    let known = Known {
        manager: manager.clone(),
        shoots: manager.informer(),
        entries: manager.informer(),
        secret_bindings: manager.informer(),
        credentials_bindings: manager.informer(),
    };
    tokio::join!(
        projects.synced(),
        known.shoots.synced(),
        known.entries.synced(),
        known.secret_bindings.synced(),
        known.credentials_bindings.synced()
    );
    let syncs = manager.config.controllers.project.concurrent_syncs;
    let controller = manager.controller("project-stale", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let known = known.clone();
        async move { known.reconcile(&key.name).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

impl Known {
    async fn reconcile(&self, name: &str) -> Result<Action, ReconcileError> {
        let api: Api<Project> = self.manager.all();
        let project = api.read_opt(name).await?;
        let Some(project) = project.filter(|own| own.metadata.deletion_timestamp.is_none()) else {
            return Ok(Action::Done);
        };
        let settings = &self.manager.config.controllers.project;
        let again = Ok(Action::RequeueAfter(settings.stale_sync_period.to_std()));
        let Some(namespace) = project.spec.namespace.clone() else {
            return again;
        };
        let patience = Patience {
            minimum_lifetime: settings.minimum_lifetime_days,
            grace_period: settings.stale_grace_period_days,
            expiration: settings.stale_expiration_time_days,
        };
        let now = self.manager.config.clock.now();
        let skips = self.manager.all::<Namespace>().read(&namespace).await?;
        let skips = skips.annotations().get(SKIP).is_some_and(|value| is_true(value));
        if skips || is_fresh(&project, patience, now) || self.is_used(&namespace).await? {
            let written = apply::patch_status(&api, &project, |project| mark_used(&mut project.status));
            or_gone(written.await)?;
            return again;
        }
        let written = apply::patch_status(&api, &project, |project| mark_stale(&mut project.status, patience, now));
        let Some((project, _)) = or_gone(written.await)? else {
            return Ok(Action::Done);
        };
        if !is_over(&project.status, now) {
            return again;
        }
        tracing::info!(project = name, "deleting a project that was not used for too long");
        let confirmed = apply::patch(&api, &project, |project| {
            operation::confirm_deletion(project.annotations_mut(), now);
        });
        if or_gone(confirmed.await)?.is_some() {
            apply::delete(&api, name).await?;
        }
        Ok(Action::Done)
    }

    async fn is_used(&self, namespace: &str) -> Result<bool, ReconcileError> {
        if !self.shoots.list_namespace(namespace).is_empty() || !self.entries.list_namespace(namespace).is_empty() {
            return Ok(true);
        }
        let users = Users {
            secret_bindings: &self.secret_bindings.list(),
            credentials_bindings: &self.credentials_bindings.list(),
            shoots: &self.shoots.list(),
        };
        let uses = |offered: Offered<'_>| users.use_of(namespace, offered);
        let bound = format!("{UNCONTROLLED},{SECRET_BINDING_LABEL}=true");
        let by_credentials = format!("{CREDENTIALS_BINDING_LABEL}=true");
        if uses(Offered::Secrets(&self.names::<Secret>(namespace, &bound).await?)) {
            return Ok(true);
        }
        let secrets = self
            .names::<Secret>(namespace, &format!("{UNCONTROLLED},{by_credentials}"))
            .await?;
        if uses(Offered::Credentials("v1", "Secret", &secrets)) {
            return Ok(true);
        }
        let internal = self.names::<InternalSecret>(namespace, &by_credentials).await?;
        if uses(Offered::Credentials(
            "core.gardener.cloud/v1beta1",
            "InternalSecret",
            &internal,
        )) {
            return Ok(true);
        }
        let identities = self.names::<WorkloadIdentity>(namespace, &by_credentials).await?;
        if uses(Offered::Credentials(
            "security.gardener.cloud/v1alpha1",
            "WorkloadIdentity",
            &identities,
        )) {
            return Ok(true);
        }
        Ok(uses(Offered::Quotas(&self.names::<Quota>(namespace, "").await?)))
    }

    async fn names<K>(&self, namespace: &str, labels: &str) -> Result<Vec<String>, ReconcileError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let matching = ListParams::default().labels(labels);
        let found = self.manager.within::<K>(namespace).list_metadata(&matching).await?;
        Ok(found.items.iter().map(ResourceExt::name_any).collect())
    }
}
