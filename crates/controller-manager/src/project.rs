//! The project controller `[GCM-1]`–`[GCM-3]`: a namespace and roles for every project.

mod roles;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_apis::constants::{PROJECT_NAMESPACE_PREFIX, annotation, finalizer, label};
use gardener_apis::core::v1beta1::{Project, Shoot};
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, apply};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::ListParams;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::{CONCURRENCY, Config, ReconcileError};

const NAMESPACE_PROJECT: &str = "namespace.gardener.cloud/project";
const CREATED_BY_CONTROLLER: &str = "namespace.gardener.cloud/created-by-project-controller";
/// How soon a namespace that is going is looked at again.
const GOING_INTERVAL: Duration = Duration::from_secs(60);

struct Reconciler {
    config: Config,
    recorder: Recorder,
}

pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let projects: Informer<Project> =
        Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), &stop);
    let queue: Queue<ObjectRef> = Queue::new();
    projects.feed_if(&queue, wants_reconcile, |project| [ObjectRef::of(project)]);
    let shoots: Informer<Shoot> = Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), &stop);
    let namespaces: Informer<Namespace> = Informer::start(
        Api::all(config.garden.clone()),
        watcher::Config::default().labels("gardener.cloud/role=project"),
        &stop,
    );
    {
        // the last shoot or the namespace itself may be what a deletion waits for
        let (queue, projects) = (queue.clone(), projects.clone());
        let wake = move |namespace: &str| {
            for project in projects.list() {
                if project.metadata.deletion_timestamp.is_some() && project.spec.namespace.as_deref() == Some(namespace)
                {
                    queue.add(ObjectRef::of(project.as_ref()));
                }
            }
        };
        let wake = Arc::new(wake);
        let for_shoots = wake.clone();
        shoots.on_change(move |change| {
            if let Change::Deleted(shoot) = change {
                for_shoots(shoot.project_namespace());
            }
        });
        namespaces.on_change(move |change| {
            if let Change::Deleted(namespace) = change {
                wake(&namespace.name_any());
            }
        });
    }
    projects.synced().await;
    let recorder = Recorder::new(config.garden.clone(), config.clock.clone(), "project-controller");
    let reconciler = Arc::new(Reconciler { config, recorder });
    Controller::new("project", CONCURRENCY, queue)
        .run(stop, move |key| {
            let reconciler = reconciler.clone();
            async move { reconciler.reconcile(&key.name).await }
        })
        .await;
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

pub(crate) fn owner(project: &Project) -> OwnerReference {
    OwnerReference {
        api_version: "core.gardener.cloud/v1beta1".into(),
        kind: "Project".into(),
        name: project.name_any(),
        uid: project.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(false),
    }
}

impl Reconciler {
    fn projects(&self) -> Api<Project> {
        Api::all(self.config.garden.clone())
    }

    async fn reconcile(&self, name: &str) -> Result<Action, ReconcileError> {
        let Some(project) = self.projects().get_opt(name).await? else {
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
                if project.status.phase.as_deref() != Some("Ready") {
                    self.tell(
                        &project,
                        Severity::Normal,
                        "NamespaceReconcileSuccessful",
                        "Successfully reconciled namespace for project",
                    )
                    .await;
                }
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
        let (project, _) = apply::patch(&self.projects(), project, |project| {
            project.spec.namespace = Some(name.clone())
        })
        .await?;
        roles::apply(&self.config, &project, &name).await?;
        Ok(project)
    }

    async fn namespace(&self, project: &Project, name: &str) -> Result<(), ReconcileError> {
        let api: Api<Namespace> = Api::all(self.config.garden.clone());
        let uid = project.uid().unwrap_or_default();
        let labels = BTreeMap::from([
            (label::ROLE.to_owned(), "project".to_owned()),
            (label::PROJECT_NAME.to_owned(), project.name_any()),
        ]);
        let Some(current) = api.get_opt(name).await? else {
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
                &kube::api::PostParams::default(),
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
            return Err(ReconcileError::Blocked(format!(
                "namespace cannot be used as it needs the project labels {labels:?}"
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
            let owners = namespace.metadata.owner_references.get_or_insert_with(Vec::new);
            if !owners.iter().any(|own| own.kind == "Project") {
                owners.push(owner(project));
            }
        })
        .await?;
        Ok(())
    }

    /// `[GCM-3]`.
    async fn delete(&self, project: &Project) -> Result<Action, ReconcileError> {
        if !apply::has_finalizer(project, finalizer::GARDENER) {
            return Ok(Action::Done);
        }
        let name = namespace_name(project);
        let shoots: Api<Shoot> = Api::namespaced(self.config.garden.clone(), &name);
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
                "Cannot release namespace because it still contains Shoots",
            )
            .await;
            self.phase(project, "Terminating").await?;
            return Ok(Action::Done);
        }
        if !self.release(project, &name).await? {
            self.tell(
                project,
                Severity::Normal,
                "NamespaceMarkedForDeletion",
                "Successfully marked namespace for deletion",
            )
            .await;
            self.phase(project, "Terminating").await?;
            return Ok(Action::RequeueAfter(GOING_INTERVAL));
        }
        roles::delete(&self.config, project).await?;
        apply::remove_finalizer(
            &self.projects(),
            &self.projects().get(&project.name_any()).await?,
            finalizer::GARDENER,
        )
        .await?;
        Ok(Action::Done)
    }

    /// Gives the namespace back. Answers whether that is done.
    async fn release(&self, project: &Project, name: &str) -> Result<bool, ReconcileError> {
        let api: Api<Namespace> = Api::all(self.config.garden.clone());
        let Some(current) = api.get_opt(name).await? else {
            return Ok(true);
        };
        let uid = project.uid().unwrap_or_default();
        if current
            .annotations()
            .get(NAMESPACE_PROJECT)
            .is_some_and(|own| *own != uid)
        {
            return Ok(true);
        }
        if current
            .annotations()
            .get(annotation::KEEP_NAMESPACE)
            .is_some_and(|own| own == "true")
        {
            apply::patch(&api, &current, |namespace| {
                if let Some(labels) = &mut namespace.metadata.labels {
                    labels.remove(label::ROLE);
                    labels.remove(label::PROJECT_NAME);
                }
                if let Some(annotations) = &mut namespace.metadata.annotations {
                    annotations.remove(NAMESPACE_PROJECT);
                }
                if let Some(owners) = &mut namespace.metadata.owner_references {
                    owners.retain(|own| own.uid != uid);
                }
            })
            .await?;
            return Ok(true);
        }
        apply::delete(&api, name).await?;
        Ok(api.get_opt(name).await?.is_none())
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
