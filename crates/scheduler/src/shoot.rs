//! The shoot controller of the scheduler `[SCH-2]`–`[SCH-5]`.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apis::constants::{DEFAULT_SCHEDULER_NAME, GARDEN_NAMESPACE, annotation};
use gardener_apis::core::v1beta1::{
    CloudProfile, LastOperation, NamespacedCloudProfile, Project, Seed, SeedSelector, Shoot,
};
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::scheduling::{self, Landscape};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::Config;

const COMPONENT: &str = "shoot-scheduler";
const REGION_CONFIG: &str = "scheduling.gardener.cloud/purpose=region-config";

/// Why a shoot has no seed yet.
#[derive(Debug, thiserror::Error)]
enum ScheduleError {
    /// None fits; the words are upstream's.
    #[error("{0}")]
    Undetermined(String),
    /// The garden refused.
    #[error("{}", gardener_controller::api_error(.0))]
    Api(#[from] kube::Error),
    /// The garden refused.
    #[error(transparent)]
    Apply(#[from] apply::ApplyError),
}

struct Reconciler {
    config: Config,
    seeds: Informer<Seed>,
    shoots: Informer<Shoot>,
    recorder: Recorder,
}

pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let seeds: Informer<Seed> = Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), &stop);
    let shoots: Informer<Shoot> = Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), &stop);
    seeds.synced().await;
    let queue: Queue<ObjectRef> = Queue::new();
    shoots.feed_if(&queue, wants_scheduling, |shoot| [ObjectRef::of(shoot)]);
    {
        // a seed that becomes usable may be what a shoot waits for
        let (queue, waiting) = (queue.clone(), shoots.clone());
        seeds.on_change(move |_| {
            waiting
                .list()
                .iter()
                .filter(|shoot| is_pending(shoot))
                .for_each(|shoot| queue.add(ObjectRef::of(shoot.as_ref())));
        });
    }
    shoots.synced().await;
    let recorder = Recorder::new(config.garden.clone(), config.clock.clone(), COMPONENT);
    let concurrency = config.concurrency;
    let reconciler = Arc::new(Reconciler {
        config,
        seeds,
        shoots,
        recorder,
    });
    Controller::new("scheduler-shoot", concurrency, queue)
        .run(stop, move |key| {
            let reconciler = reconciler.clone();
            async move { reconciler.reconcile(&key).await }
        })
        .await;
}

/// Whether this scheduler is to find a seed for a shoot `[SCH-2]`.
fn is_pending(shoot: &Shoot) -> bool {
    let scheduler = shoot.spec.scheduler_name.as_deref().unwrap_or(DEFAULT_SCHEDULER_NAME);
    shoot.spec.seed_name.as_deref().unwrap_or_default().is_empty()
        && scheduler == DEFAULT_SCHEDULER_NAME
        && shoot.metadata.deletion_timestamp.is_none()
        && !shoot.is_self_hosted()
}

fn wants_scheduling(change: &Change<Shoot>) -> bool {
    match change {
        Change::Applied { old: None, new } => is_pending(new),
        Change::Applied { old: Some(old), new } => is_pending(new) && old.spec != new.spec,
        Change::Deleted { .. } => false,
    }
}

impl Reconciler {
    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, ScheduleError> {
        let api: Api<Shoot> = Api::namespaced(self.config.garden.clone(), &key.namespace);
        let Some(shoot) = api.read_opt(&key.name).await?.filter(is_pending) else {
            return Ok(Action::Done);
        };
        match self.schedule(&api, &shoot).await {
            Ok(seed) => {
                self.tell(
                    &shoot,
                    Severity::Normal,
                    "SchedulingSuccessful",
                    &format!("Scheduled to seed {seed:?}"),
                )
                .await;
                Ok(Action::Done)
            }
            // somebody changed the shoot meanwhile: the next run sees it
            Err(ScheduleError::Api(kube::Error::Api(status))) if status.reason == "Conflict" => {
                Ok(Action::RequeueAfter(std::time::Duration::ZERO))
            }
            Err(error) => {
                let description = format!("Failed to schedule Shoot: {error}");
                self.tell(&shoot, Severity::Warning, "SchedulingFailed", &description)
                    .await;
                let now = self.config.clock.time();
                let told = shoot
                    .status
                    .last_operation
                    .as_ref()
                    .is_some_and(|operation| operation.description == description);
                if !told {
                    apply::patch_status(&api, &shoot, |shoot| {
                        let operation = shoot.status.last_operation.get_or_insert_with(LastOperation::default);
                        operation.r#type = "Create".into();
                        operation.state = "Pending".into();
                        operation.last_update_time = Some(now.clone());
                        operation.description = description.clone();
                    })
                    .await?;
                }
                Err(error)
            }
        }
    }

    async fn tell(&self, shoot: &Shoot, severity: Severity, reason: &str, message: &str) {
        self.recorder
            .publish(&object_reference(shoot, &()), severity, reason, message)
            .await;
    }

    /// Finds a seed and binds the shoot to it. Answers the seed's name.
    async fn schedule(&self, api: &Api<Shoot>, shoot: &Shoot) -> Result<String, ScheduleError> {
        let seeds: Vec<Seed> = self.seeds.list().iter().map(|seed| (**seed).clone()).collect();
        let shoots: Vec<Shoot> = self.shoots.list().iter().map(|shoot| (**shoot).clone()).collect();
        let (profile, selector) = self.profile(shoot).await?;
        let project = self.project(shoot.project_namespace()).await?;
        let distances = self.distances(&profile, &shoot.spec.region).await?;
        let landscape = Landscape {
            seeds: &seeds,
            shoots: &shoots,
            profile_selector: selector.as_ref(),
            project: &project,
            distances: distances.as_ref(),
        };
        let seed =
            scheduling::determine(shoot, &landscape, self.config.strategy).map_err(ScheduleError::Undetermined)?;
        let name = seed.name_any();
        let mut bound = shoot.clone();
        bound.spec.seed_name = Some(name.clone());
        api.replace_subresource("binding", shoot.own_name(), &PostParams::default(), &bound)
            .await?;
        Ok(name)
    }

    /// Name and seed selector of a shoot's cloud profile.
    async fn profile(&self, shoot: &Shoot) -> Result<(String, Option<SeedSelector>), ScheduleError> {
        let Some(reference) = shoot.spec.cloud_profile_reference() else {
            return Err(ScheduleError::Undetermined(
                "the shoot refers to no cloud profile".into(),
            ));
        };
        if reference.kind == "NamespacedCloudProfile" {
            let api: Api<NamespacedCloudProfile> =
                Api::namespaced(self.config.garden.clone(), shoot.project_namespace());
            let profile = api.read(&reference.name).await?;
            return Ok((reference.name, profile.status.cloud_profile_spec.seed_selector));
        }
        let api: Api<CloudProfile> = Api::all(self.config.garden.clone());
        let profile = api.read(&reference.name).await?;
        Ok((reference.name, profile.spec.seed_selector))
    }

    async fn project(&self, namespace: &str) -> Result<String, ScheduleError> {
        let api: Api<Project> = Api::all(self.config.garden.clone());
        let list = api
            .read_list(&kube::api::ListParams::default().fields(&format!("spec.namespace={namespace}")))
            .await?;
        let project = list.first().map(ResourceExt::name_any);
        project.ok_or_else(|| ScheduleError::Undetermined(format!("no project has the namespace {namespace:?}")))
    }

    /// The distances that an operator configured for a region `[SCH-12]`.
    async fn distances(&self, profile: &str, region: &str) -> Result<Option<BTreeMap<String, i64>>, ScheduleError> {
        if self.config.strategy != scheduling::Strategy::MinimalDistance {
            return Ok(None);
        }
        let api: Api<ConfigMap> = Api::namespaced(self.config.garden.clone(), GARDEN_NAMESPACE);
        let list = api
            .read_list(&kube::api::ListParams::default().labels(REGION_CONFIG))
            .await?;
        let names = |map: &ConfigMap| {
            map.annotations()
                .get(annotation::SCHEDULING_CLOUD_PROFILES)
                .is_some_and(|text| scheduling::names_profile(text, profile))
        };
        let mut fitting = list.into_iter().filter(names);
        let Some(map) = fitting.next() else { return Ok(None) };
        if fitting.next().is_some() {
            tracing::info!(
                profile,
                used = map.name_any(),
                "several region ConfigMaps name this cloud profile"
            );
        }
        let Some(text) = map
            .data
            .as_ref()
            .and_then(|data| data.get(region))
            .filter(|text| !text.is_empty())
        else {
            return Ok(None);
        };
        serde_saphyr::from_str(text).map(Some).map_err(|error| {
            ScheduleError::Undetermined(format!(
                "failed to determine seed candidates. Wrong format in region ConfigMap {}/{}, Region {region:?}: {error}",
                map.namespace().unwrap_or_default(),
                map.name_any()
            ))
        })
    }
}
