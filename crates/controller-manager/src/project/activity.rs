//! When a project was used last [GCM-7]: somebody created, changed or deleted something in its namespace that counts.

use gardener_apis::core::v1beta1::{BackupEntry, InternalSecret, Project, Quota, SecretBinding, Shoot};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_controller::informer::Watched;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::SignedDuration;
use kube::core::PartialObjectMeta;
use kube::{Api, Resource};

use super::BY_NAMESPACE;
use crate::Manager;
use crate::manager::{ReconcileError, or_gone};
use crate::references::{CREDENTIALS_BINDING_LABEL, SECRET_BINDING_LABEL};

/// What is older when it is first seen was not created just now: the controller has started.
const NEW: SignedDuration = SignedDuration::from_hours(1);

/// Who is told of what happens.
struct Listening<'a> {
    manager: &'a Manager,
    projects: &'a Informer<Project>,
    queue: &'a Queue<ObjectRef>,
}

impl Listening<'_> {
    /// Takes what happens to objects as activity: their creation, deletion, and the changes that count.
    fn follow<K: Watched>(&self, objects: &Informer<K>, counts: impl Fn(&K, &K) -> bool + Send + Sync + 'static) {
        let (projects, queue) = (self.projects.clone(), self.queue.clone());
        let clock = self.manager.config.clock.clone();
        objects.on_change(move |change| {
            let is_activity = match change {
                Change::Applied { old: Some(old), new } => counts(old, new),
                Change::Applied { old: None, new } => {
                    let created = new.meta().creation_timestamp.as_ref();
                    created.is_some_and(|created| clock.now().duration_since(created.0) <= NEW)
                }
                Change::Deleted(_) => true,
            };
            if is_activity {
                let namespace = change.object().namespace().unwrap_or_default();
                let own = projects.by_index(BY_NAMESPACE, &namespace);
                own.iter()
                    .for_each(|project| queue.add(ObjectRef::of(project.as_ref())));
            }
        });
    }

    /// Takes every change of objects with a binding's label as activity. One that loses its label is gone for who follows those that have it.
    fn follow_bound<K>(&self)
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + serde::de::DeserializeOwned + 'static,
    {
        for label in [SECRET_BINDING_LABEL, CREDENTIALS_BINDING_LABEL] {
            let api: Api<PartialObjectMeta<K>> = self.manager.all();
            self.follow(&self.manager.informers.selected(api, label), |_, _| true);
        }
    }
}

pub(super) async fn run(manager: &Manager, projects: &Informer<Project>) {
    projects.synced().await;
    let queue: Queue<ObjectRef> = Queue::new();
    let listening = Listening {
        manager,
        projects,
        queue: &queue,
    };
    listening.follow(&manager.informer::<Shoot>(), |old, new| {
        old.metadata.generation != new.metadata.generation
    });
    listening.follow(&manager.informer::<BackupEntry>(), |old, new| {
        old.metadata.generation != new.metadata.generation
    });
    listening.follow(&manager.informer::<SecretBinding>(), |old, new| {
        old.metadata.labels != new.metadata.labels || old.secret_ref != new.secret_ref || old.quotas != new.quotas
    });
    listening.follow(&manager.informer::<CredentialsBinding>(), |old, new| {
        old.metadata.labels != new.metadata.labels
            || old.credentials_ref != new.credentials_ref
            || old.quotas != new.quotas
    });
    listening.follow_bound::<Quota>();
    listening.follow_bound::<Secret>();
    listening.follow_bound::<InternalSecret>();
    let own = manager.clone();
    let syncs = manager.config.controllers.project.concurrent_syncs;
    let controller = manager.controller("project-activity", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { reconcile(&own, &key.name).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

async fn reconcile(manager: &Manager, name: &str) -> Result<Action, ReconcileError> {
    let api: Api<Project> = manager.all();
    let Some(project) = api.read_opt(name).await? else {
        return Ok(Action::Done);
    };
    let now = manager.config.clock.time();
    let written = apply::patch_status(&api, &project, |project| {
        project.status.last_activity_timestamp = Some(now.clone());
    });
    or_gone(written.await)?;
    Ok(Action::Done)
}
