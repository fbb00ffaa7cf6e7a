//! Controllers of projects: a namespace, a quota and roles for every project `[GCM-1]`–`[GCM-4]`; room in quotas for what shoots need `[GCM-5]`;
//! projects that nobody uses any more `[GCM-6]`, and when each was used last `[GCM-7]`.

mod activity;
mod resourcequota;
mod roles;
mod stale;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::meta::is_true;
use gardener_apimachinery::selector::LabelSelector;
use gardener_apis::constants::{PROJECT_NAMESPACE_PREFIX, annotation, finalizer, label};
use gardener_apis::core::v1beta1::{Project, Shoot};
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::projects::quota;
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use k8s_openapi::api::rbac::v1::RoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use sha2::{Digest, Sha256};

use crate::Manager;
use crate::manager::ReconcileError;

const NAMESPACE_PROJECT: &str = "namespace.gardener.cloud/project";
const CREATED_BY_CONTROLLER: &str = "namespace.gardener.cloud/created-by-project-controller";
/// The ResourceQuota that the controllers keep.
const QUOTA: &str = "gardener";
/// Projects by their namespace.
const BY_NAMESPACE: &str = "namespace";
/// How soon a namespace that is going is looked at again.
const GOING_INTERVAL: Duration = Duration::from_secs(60);

struct Reconciler {
    manager: Manager,
    recorder: Recorder,
}

pub(crate) async fn run(manager: &Manager) {
    let projects = manager.informer::<Project>();
    projects.add_index(BY_NAMESPACE, |project| project.spec.namespace.iter().cloned().collect());
    tokio::join!(
        follow(manager, &projects),
        resourcequota::run(manager, &projects),
        stale::run(manager, &projects),
        activity::run(manager, &projects),
    );
}

async fn follow(manager: &Manager, projects: &Informer<Project>) {
    let queue: Queue<ObjectRef> = Queue::new();
    projects.feed_if(&queue, wants_reconcile, |project| [ObjectRef::of(project)]);
    let shoots = manager.informer::<Shoot>();
    let namespaces = manager
        .informers
        .selected(manager.all::<Namespace>(), "gardener.cloud/role=project");
    let bindings = manager
        .informers
        .selected(manager.all::<RoleBinding>(), label::PROJECT_NAME);
    {
        // the last shoot or the namespace itself may be what a deletion waits for
        let (queue, projects) = (queue.clone(), projects.clone());
        let wake = Arc::new(move |namespace: &str, going: bool| {
            let all = projects.by_index(BY_NAMESPACE, namespace);
            let own = all
                .iter()
                .filter(|own| !going || own.metadata.deletion_timestamp.is_some());
            own.for_each(|project| queue.add(ObjectRef::of(project.as_ref())));
        });
        let (for_shoots, for_bindings) = (wake.clone(), wake.clone());
        shoots.on_change(move |change| {
            if let Change::Deleted(shoot) = change {
                for_shoots(shoot.project_namespace(), true);
            }
        });
        namespaces.on_change(move |change| {
            if let Change::Deleted(namespace) = change {
                wake(&namespace.name_any(), false);
            }
        });
        bindings.on_change(move |change| {
            let is_damaged = match change {
                Change::Applied { old: Some(old), new } => old.role_ref != new.role_ref || old.subjects != new.subjects,
                Change::Applied { old: None, .. } => false,
                Change::Deleted(_) => true,
            };
            if is_damaged
                && change
                    .object()
                    .owner_references()
                    .iter()
                    .any(|own| own.kind == "Project")
            {
                for_bindings(&change.object().namespace().unwrap_or_default(), false);
            }
        });
    }
    tokio::join!(
        projects.synced(),
        shoots.synced(),
        namespaces.synced(),
        bindings.synced()
    );
    let reconciler = Arc::new(Reconciler {
        manager: manager.clone(),
        recorder: manager.recorder("project"),
    });
    let syncs = manager.config.controllers.project.concurrent_syncs;
    let controller = manager.controller("project", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let reconciler = reconciler.clone();
        async move { reconciler.reconcile(&key.name).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

fn wants_reconcile(change: &Change<Project>) -> bool {
    match change {
        Change::Applied { old: None, .. } => true,
        Change::Applied { old: Some(old), new } => {
            old.spec != new.spec || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        }
        Change::Deleted { .. } => false,
    }
}

/// The namespace of a project `[GCM-2]`.
fn namespace_name(project: &Project) -> String {
    project.spec.namespace.clone().unwrap_or_else(|| {
        let digest = Sha256::digest(project.uid().unwrap_or_default());
        let hash: String = digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect();
        format!(
            "{PROJECT_NAMESPACE_PREFIX}{}-{}",
            project.name_any(),
            hash.chars().take(5).collect::<String>()
        )
    })
}

/// The project as the owner of its namespace and what is in there by its configuration. Those hold its deletion up where somebody waits for them,
/// roles do not.
pub(crate) fn owner(project: &Project) -> OwnerReference {
    OwnerReference {
        api_version: "core.gardener.cloud/v1beta1".into(),
        kind: "Project".into(),
        name: project.name_any(),
        uid: project.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Makes sure that an object is owned as told.
fn own_by(metadata: &mut ObjectMeta, owner: OwnerReference) {
    let owners = metadata.owner_references.get_or_insert_default();
    match owners.iter_mut().find(|own| own.uid == owner.uid) {
        Some(own) => *own = owner,
        None => owners.push(owner),
    }
}

impl Reconciler {
    fn projects(&self) -> Api<Project> {
        self.manager.all()
    }

    async fn reconcile(&self, name: &str) -> Result<Action, ReconcileError> {
        let Some(project) = self.projects().read_opt(name).await? else {
            return Ok(Action::Done);
        };
        if project.metadata.deletion_timestamp.is_some() {
            return self.delete(&project).await;
        }
        let (project, _) = apply::add_finalizer(&self.projects(), &project, finalizer::GARDENER).await?;
        let project = match project.status.phase.as_deref() {
            None | Some("") => self.phase(&project, "Pending").await?,
            Some(_) => project,
        };
        match self.set_up(&project).await {
            Ok(project) => {
                self.phase(&project, "Ready").await?;
                Ok(Action::Done)
            }
            Err(error) => {
                self.tell(
                    &project,
                    Severity::Warning,
                    "NamespaceReconcileFailed",
                    &error.to_string(),
                )
                .await;
                self.phase(&project, "Failed").await?;
                Err(error)
            }
        }
    }

    async fn set_up(&self, project: &Project) -> Result<Project, ReconcileError> {
        let name = namespace_name(project);
        self.namespace(project, &name).await?;
        let message = format!("Successfully reconciled namespace {name:?} for project");
        self.tell(project, Severity::Normal, "NamespaceReconcileSuccessful", &message)
            .await;
        let (project, _) = apply::patch(&self.projects(), project, |project| {
            project.spec.namespace = Some(name.clone())
        })
        .await?;
        self.quota(&project, &name)
            .await
            .map_err(|error| ReconcileError::Blocked(format!("Error while setting up ResourceQuota: {error}")))?;
        roles::apply(&self.manager.config, &project, &name)
            .await
            .map_err(|error| {
                let what = format!("Error while reconciling RBAC resources for namespace {name:?}");
                ReconcileError::Blocked(format!("{what}: {error}"))
            })?;
        Ok(project)
    }

    /// `[GCM-4]`.
    async fn quota(&self, project: &Project, namespace: &str) -> Result<(), ReconcileError> {
        let quotas = &self.manager.config.controllers.project.quotas;
        let labels = project.metadata.labels.clone().unwrap_or_default();
        let matching = quotas
            .iter()
            .find(|own| LabelSelector::from(&own.project_selector).matches(&labels));
        let Some(configured) = matching.map(|own| &own.config) else {
            return Ok(());
        };
        let hard = configured
            .spec
            .as_ref()
            .and_then(|spec| spec.hard.clone())
            .unwrap_or_default();
        let initial = ResourceQuota {
            metadata: ObjectMeta {
                name: Some(QUOTA.to_owned()),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            ..ResourceQuota::default()
        };
        apply::create_or_patch(&self.manager.within(namespace), initial, |quota| {
            own_by(&mut quota.metadata, owner(project));
            let metadata = &configured.metadata;
            quota.labels_mut().extend(metadata.labels.clone().unwrap_or_default());
            quota
                .annotations_mut()
                .extend(metadata.annotations.clone().unwrap_or_default());
            let spec = quota.spec.get_or_insert_default();
            let known = spec.hard.take().unwrap_or_default();
            spec.hard = Some(quota::limits(&hard, &known));
        })
        .await?;
        Ok(())
    }

    async fn namespace(&self, project: &Project, name: &str) -> Result<(), ReconcileError> {
        let api: Api<Namespace> = self.manager.all();
        let uid = project.uid().unwrap_or_default();
        let labels = BTreeMap::from([
            (label::ROLE.to_owned(), "project".to_owned()),
            (label::PROJECT_NAME.to_owned(), project.name_any()),
        ]);
        let Some(current) = api.read_opt(name).await? else {
            let annotations = BTreeMap::from([
                (NAMESPACE_PROJECT.to_owned(), uid),
                (CREATED_BY_CONTROLLER.to_owned(), "true".to_owned()),
            ]);
            let metadata = ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(labels),
                annotations: Some(annotations),
                owner_references: Some(vec![owner(project)]),
                ..ObjectMeta::default()
            };
            api.create(
                &PostParams::default(),
                &Namespace {
                    metadata,
                    ..Namespace::default()
                },
            )
            .await?;
            return Ok(());
        };
        if !labels
            .iter()
            .all(|(key, value)| current.labels().get(key) == Some(value))
        {
            let told: Vec<String> = labels.iter().map(|(key, value)| format!("{key:?}:{value:?}")).collect();
            return Err(ReconcileError::Blocked(format!(
                "namespace cannot be used as it needs the project labels map[string]string{{{}}}",
                told.join(", ")
            )));
        }
        if current
            .annotations()
            .get(NAMESPACE_PROJECT)
            .is_some_and(|own| *own != uid)
        {
            return Err(ReconcileError::Blocked(
                "namespace is already in-use by another project".into(),
            ));
        }
        apply::patch(&api, &current, |namespace| {
            let created = namespace
                .annotations()
                .get(CREATED_BY_CONTROLLER)
                .is_some_and(|own| own == "true");
            let annotations = namespace.metadata.annotations.get_or_insert_with(BTreeMap::new);
            annotations.insert(NAMESPACE_PROJECT.to_owned(), uid.clone());
            if !created {
                annotations.insert(annotation::KEEP_NAMESPACE.to_owned(), "true".to_owned());
            }
            own_by(&mut namespace.metadata, owner(project));
        })
        .await?;
        Ok(())
    }

    /// `[GCM-3]`.
    async fn delete(&self, project: &Project) -> Result<Action, ReconcileError> {
        if !apply::has_finalizer(project, finalizer::GARDENER) {
            return Ok(Action::Done);
        }
        // what was made before its name was written goes by its owner
        if let Some(name) = &project.spec.namespace
            && let Some(action) = self.give_back(project, name).await?
        {
            return Ok(action);
        }
        roles::delete(&self.manager.config, project).await?;
        apply::remove_finalizer(
            &self.projects(),
            &self.projects().read(&project.name_any()).await?,
            finalizer::GARDENER,
        )
        .await?;
        Ok(Action::Done)
    }

    /// Gives the namespace back when no shoot is in it any more. Answers what is to be done while that is not so.
    async fn give_back(&self, project: &Project, name: &str) -> Result<Option<Action>, ReconcileError> {
        let shoots: Api<Shoot> = self.manager.within(name);
        if !shoots
            .list_metadata(&ListParams::default().limit(1))
            .await?
            .items
            .is_empty()
        {
            self.tell(
                project,
                Severity::Warning,
                "NamespaceNotEmpty",
                &format!("Cannot release namespace {name:?} because it still contains Shoots"),
            )
            .await;
            self.phase(project, "Terminating").await?;
            return Ok(Some(Action::Done));
        }
        let released = match self.release(project, name).await {
            Ok(released) => released,
            Err(error) => {
                let message = format!("Failed to release project namespace {name:?}: {error}");
                self.tell(project, Severity::Warning, "NamespaceDeletionFailed", &message)
                    .await;
                self.phase(project, "Failed").await?;
                return Err(error);
            }
        };
        if !released {
            self.tell(
                project,
                Severity::Normal,
                "NamespaceMarkedForDeletion",
                &format!("Successfully marked project namespace {name:?} for deletion"),
            )
            .await;
            self.phase(project, "Terminating").await?;
            return Ok(Some(Action::RequeueAfter(GOING_INTERVAL)));
        }
        Ok(None)
    }

    /// Releases the namespace. Answers whether that is done.
    async fn release(&self, project: &Project, name: &str) -> Result<bool, ReconcileError> {
        let api: Api<Namespace> = self.manager.all();
        let Some(current) = api.read_opt(name).await? else {
            return Ok(true);
        };
        if current.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        let uid = project.uid().unwrap_or_default();
        let is_own = current.labels().get(label::PROJECT_NAME) == Some(&project.name_any())
            && current.labels().get(label::ROLE).is_some_and(|role| role == "project")
            && current
                .annotations()
                .get(NAMESPACE_PROJECT)
                .is_none_or(|own| *own == uid);
        if !is_own {
            return Ok(true);
        }
        if current
            .annotations()
            .get(annotation::KEEP_NAMESPACE)
            .is_some_and(|keep| is_true(keep))
        {
            apply::patch(&api, &current, |namespace| {
                let labels = namespace.labels_mut();
                labels.remove(label::ROLE);
                labels.remove(label::PROJECT_NAME);
                let annotations = namespace.annotations_mut();
                annotations.remove(NAMESPACE_PROJECT);
                annotations.remove(annotation::KEEP_NAMESPACE);
                annotations.remove(CREATED_BY_CONTROLLER);
                namespace.owner_references_mut().retain(|own| own.uid != uid);
            })
            .await?;
            return Ok(true);
        }
        apply::delete(&api, name).await?;
        Ok(api.read_opt(name).await?.is_none())
    }

    async fn phase(&self, project: &Project, phase: &str) -> Result<Project, ReconcileError> {
        let generation = project.metadata.generation;
        let (project, _) = apply::patch_status(&self.projects(), project, |project| {
            project.status.phase = Some(phase.to_owned());
            project.status.observed_generation = generation;
        })
        .await?;
        Ok(project)
    }

    async fn tell(&self, project: &Project, severity: Severity, reason: &str, message: &str) {
        self.recorder
            .publish(&object_reference(project, &()), severity, reason, message)
            .await;
    }
}
