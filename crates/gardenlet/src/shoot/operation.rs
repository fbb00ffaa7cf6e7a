//! One operation from its start to its end, as the shoot's status tells it [CP-15..17].

use std::sync::Arc;

use futures::future::BoxFuture;
use gardener_apis::constants::{annotation, finalizer, task};
use gardener_apis::core::v1beta1::{LastError, LastOperation, Project, Seed, Shoot};
use gardener_controller::Read;
use gardener_controller::apply as patching;
use gardener_controller::error_codes;
use gardener_flow::{FlowError, ProgressReporter, TaskError};
use gardener_rules::operation::last_operation;
use gardener_rules::shoot_operation::{self as rules, OperationType};
use gardener_rules::{constraints, credentials_rotation};
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::botanist::{Botanist, is_hibernation_enabled};
use super::{flow, signed};
use crate::Config;
use crate::failed::Failed;

/// How the description begins while the seed is not ready [CP-14].
const BLOCKED: &str = "Shoot cannot be reconciled on seed: ";

const CONDITIONS: [&str; 5] = [
    "APIServerAvailable",
    "ControlPlaneHealthy",
    "ObservabilityComponentsHealthy",
    "EveryNodeReady",
    "SystemComponentsHealthy",
];

fn api(config: &Config, shoot: &Shoot) -> Api<Shoot> {
    Api::namespaced(config.garden.clone(), &shoot.namespace().unwrap_or_default())
}

/// Tells that a shoot that was never reconciled has to wait, so that asking for an operation counts [CP-12], [ST-127].
pub(crate) async fn mark_pending(config: &Config, shoot: &Shoot) -> Result<(), Failed> {
    patching::patch_status(&api(config, shoot), shoot, |shoot| {
        shoot.status.last_operation = Some(LastOperation {
            state: "Pending".to_owned(),
            ..LastOperation::default()
        });
    })
    .await?;
    Ok(())
}

/// Tells that the seed is not ready for shoots; only if that is news [CP-14].
pub(crate) async fn mark_blocked(config: &Config, shoot: &Shoot, kind: OperationType, why: &str) -> Result<(), Failed> {
    let description = format!("{BLOCKED}{why} Operation will be retried.");
    if shoot
        .status
        .last_operation
        .as_ref()
        .is_some_and(|last| last.description == description)
    {
        return Ok(());
    }
    let now = config.clock.time();
    patching::patch_status(&api(config, shoot), shoot, |shoot| {
        let progress = shoot.status.last_operation.as_ref().map_or(0, |last| last.progress);
        shoot.status.last_operation = Some(last_operation(
            kind,
            "Error",
            progress,
            description.clone(),
            now.clone(),
        ));
    })
    .await?;
    Ok(())
}

/// A shoot whose operation has begun.
pub(crate) struct Started {
    pub(crate) shoot: Shoot,
    /// What its owner asked for that this gardenlet cannot do. It does not stay in the annotation: every change of the shoot would ask for it anew.
    pub(crate) unsupported: Vec<String>,
}

/// Starts an operation [CP-15].
pub(crate) async fn start(
    config: &Config,
    shoot: Shoot,
    project: &Project,
    kind: OperationType,
) -> Result<Started, Failed> {
    let api = api(config, &shoot);
    let shoot = match kind {
        OperationType::Delete => shoot,
        _ => patching::add_finalizer(&api, &shoot, finalizer::GARDENER).await?.0,
    };
    let now = config.clock.time();
    let asked = shoot.operations(annotation::OPERATION);
    let asked = asked.into_iter().filter(|own| !own.is_empty()).map(str::to_owned);
    let (handled, unsupported): (Vec<String>, Vec<String>) =
        asked.partition(|own| credentials_rotation::is_handled(own));
    let (shoot, _) = patching::patch_status(&api, &shoot, |shoot| {
        if rules::starts_retry_cycle(shoot, kind, &config.identity.version) {
            shoot.status.retry_cycle_start_time = Some(now.clone());
        }
        shoot.status.technical_id = rules::technical_id(shoot, &project.name_any());
        shoot.status.last_errors = rules::without_task(&shoot.status.last_errors, rules::INITIALIZATION);
        if kind != OperationType::Delete {
            shoot.status.seed_name.clone_from(&shoot.spec.seed_name);
        }
        shoot.status.gardener = config.identity.clone();
        shoot.status.observed_generation = shoot.metadata.generation;
        shoot.status.last_operation = Some(last_operation(
            kind,
            "Processing",
            0,
            kind.start_description(),
            now.clone(),
        ));
        credentials_rotation::started(shoot, &handled, &now);
    })
    .await?;
    let done = [handled.as_slice(), &unsupported].concat();
    if done.is_empty() {
        return Ok(Started { shoot, unsupported });
    }
    let (shoot, _) = patching::patch(&api, &shoot, |shoot| take_away(shoot, &done)).await?;
    Ok(Started { shoot, unsupported })
}

/// Takes operations out of the annotation that asks for them.
fn take_away(shoot: &mut Shoot, handled: &[String]) {
    let Some(annotations) = &mut shoot.metadata.annotations else {
        return;
    };
    let Some(asked) = annotations.remove(annotation::OPERATION) else {
        return;
    };
    if let Some(left) = rules::remaining_operations(&asked, handled) {
        annotations.insert(annotation::OPERATION.to_owned(), left);
    }
}

fn reporter(botanist: &Arc<Botanist>, kind: OperationType) -> ProgressReporter {
    let (reporting, succeeding) = (Arc::clone(botanist), Arc::clone(botanist));
    let report = move |progress: gardener_flow::Progress| {
        let botanist = Arc::clone(&reporting);
        async move {
            let now = botanist.config.clock.time();
            let written = botanist
                .patch_status(|shoot| {
                    shoot.status.last_operation = Some(last_operation(
                        kind,
                        "Processing",
                        progress.percent,
                        progress.description.clone(),
                        now.clone(),
                    ));
                })
                .await;
            if let Err(error) = written {
                tracing::debug!(%error, "cannot write progress");
            }
        }
    };
    let succeeded = move |task: Arc<str>| {
        let botanist = Arc::clone(&succeeding);
        async move {
            let known = botanist
                .shoot()
                .status
                .last_errors
                .iter()
                .any(|one| one.task_id.as_deref() == Some(&*task));
            if known
                && let Err(error) = botanist
                    .patch_status(|shoot| {
                        shoot.status.last_errors = rules::without_task(&shoot.status.last_errors, &task)
                    })
                    .await
            {
                tracing::debug!(%error, "cannot remove an error that passed");
            }
        }
    };
    ProgressReporter::new(report)
        .on_success(succeeded)
        .at_most_every(botanist.config.settings.shoot.progress_report_period)
}

/// What went wrong: the text for the last operation, and the errors.
struct Wrong {
    description: String,
    errors: Vec<LastError>,
}

fn last_error(error: &TaskError) -> LastError {
    LastError {
        description: error.to_string(),
        codes: error.codes().to_vec(),
        task_id: None,
        last_update_time: None,
    }
}

/// A description as it is told: it begins with a capital letter [ST-125].
fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|first| first.to_uppercase());
    first.into_iter().flatten().chain(rest).collect()
}

impl Wrong {
    /// An operation could not begin [ST-126].
    fn not_initialized(shoot: &Shoot, error: &TaskError) -> Self {
        Self {
            description: format!("Could not initialize a new operation for Shoot cluster: {error}"),
            errors: rules::with_initialization_error(&shoot.status.last_errors, last_error(error)),
        }
    }

    /// Something that is in the way; what is known of errors stays.
    fn in_the_way(shoot: &Shoot, why: &TaskError) -> Self {
        Self {
            description: why.to_string(),
            errors: shoot.status.last_errors.clone(),
        }
    }
}

impl From<TaskError> for Wrong {
    fn from(error: TaskError) -> Self {
        Self {
            description: capitalized(&error.to_string()),
            errors: vec![last_error(&error)],
        }
    }
}

impl From<FlowError> for Wrong {
    fn from(error: FlowError) -> Self {
        let errors = error.failures().iter().map(|failure| LastError {
            description: failure.to_string(),
            codes: failure.error.codes().to_vec(),
            task_id: Some(failure.task.clone()),
            last_update_time: None,
        });
        Self {
            description: capitalized(&error.to_string()),
            errors: errors.collect(),
        }
    }
}

/// Runs an operation. Returns the shoot as it is then; none if it is gone.
///
/// The future is boxed: it is large, and what awaits it would be larger yet.
pub(crate) fn run<'a>(
    config: &'a Config,
    shoot: Shoot,
    project: Project,
    seed: Seed,
    kind: OperationType,
    stop: &'a CancellationToken,
) -> BoxFuture<'a, Result<Option<Shoot>, Failed>> {
    Box::pin(run_unboxed(config, shoot, project, seed, kind, stop))
}

async fn run_unboxed(
    config: &Config,
    shoot: Shoot,
    project: Project,
    seed: Seed,
    kind: OperationType,
    stop: &CancellationToken,
) -> Result<Option<Shoot>, Failed> {
    let latest = shoot.clone();
    let mut known = shoot;
    known.status.uid = latest.uid().unwrap_or_default();
    let gathered = Botanist::gather(config.clone(), known, project, seed, kind).await;
    let (outcome, latest) = match gathered {
        Err(error) => (Err(Wrong::not_initialized(&latest, &error)), latest),
        Ok(botanist) => {
            // from here on there may be something that a deletion has to remove
            patching::patch_status(&api(config, &latest), &latest, |shoot| {
                shoot.status.uid = shoot.uid().unwrap_or_default();
            })
            .await?;
            let botanist = Arc::new(botanist);
            let outcome = work(&botanist, kind, stop).await;
            (outcome, (*botanist.shoot()).clone())
        }
    };
    match outcome {
        Ok(()) => succeed(config, latest, kind).await,
        Err(wrong) => {
            let text = wrong.description.clone();
            fail(config, &latest, kind, wrong).await?;
            Err(Failed::Because(text))
        }
    }
}

/// Does what has to be over before a flow begins [ST-125]. What it failed with before is forgotten when it succeeds [ST-141].
async fn before_the_flow(
    botanist: &Botanist,
    task: &str,
    stop: &CancellationToken,
    work: impl Future<Output = Result<(), String>>,
) -> Result<(), Wrong> {
    let done = stop.run_until_cancelled(work).await;
    if let Err(why) = done.unwrap_or_else(|| Err("context canceled".to_owned())) {
        let description = format!("{task} failed ({why})");
        return Err(Wrong {
            errors: vec![LastError {
                description: description.clone(),
                task_id: Some(task.to_owned()),
                ..LastError::default()
            }],
            description: capitalized(&description),
        });
    }
    let is_it = |one: &LastError| one.task_id.as_deref() == Some(task);
    if botanist.shoot().status.last_errors.iter().any(is_it) {
        let forget = |shoot: &mut Shoot| {
            shoot.status.last_errors = rules::without_task(&shoot.status.last_errors, task);
        };
        botanist.patch_status(forget).await?;
    }
    Ok(())
}

async fn work(botanist: &Arc<Botanist>, kind: OperationType, stop: &CancellationToken) -> Result<(), Wrong> {
    if kind == OperationType::Delete {
        let free = botanist.check_no_bastions().await;
        free.map_err(|why| Wrong::in_the_way(&botanist.shoot(), &why))?;
    }
    let task = match kind {
        OperationType::Delete => "Check required extensions exist",
        _ => "Check required extensions",
    };
    before_the_flow(botanist, task, stop, botanist.wait_for_required_extensions()).await?;
    botanist.learn_situation().await?;
    let graph = match kind {
        OperationType::Restore => flow::reconcile::graph(
            botanist,
            "Shoot cluster restoration",
            flow::reconcile::Shape::of(botanist),
        ),
        OperationType::Create | OperationType::Reconcile => flow::reconcile::graph(
            botanist,
            "Shoot cluster reconciliation",
            flow::reconcile::Shape::of(botanist),
        ),
        OperationType::Delete => {
            let shape = flow::delete::Shape::of(botanist).await?;
            let graph = flow::delete::graph(botanist, shape);
            graph.run(&reporter(botanist, kind), stop).await?;
            return Ok(());
        }
        OperationType::Migrate => {
            return Err(TaskError::new("this gardenlet cannot prepare shoots for migration").into());
        }
    };
    graph.run(&reporter(botanist, kind), stop).await?;
    botanist.clean_up_secrets().await?;
    if !botanist.is_hibernation_enabled() {
        // the addons' steps have seen it
        botanist.remove_task(task::RESTART_CORE_ADDONS).await?;
    }
    if botanist.skips_readiness() {
        botanist
            .patch_shoot(|shoot| drop(shoot.annotations_mut().remove("shoot.gardener.cloud/skip-readiness")))
            .await?;
    }
    Ok(())
}

/// Ends an operation that succeeded [CP-16].
async fn succeed(config: &Config, shoot: Shoot, kind: OperationType) -> Result<Option<Shoot>, Failed> {
    let api = api(config, &shoot);
    let now = config.clock.time();
    // what the operation worked for, whatever is wanted by now
    let hibernated = is_hibernation_enabled(&shoot) && kind != OperationType::Delete;
    let patched = patching::patch_status(&api, &shoot, |shoot| {
        shoot.status.last_errors = Vec::new();
        shoot.status.retry_cycle_start_time = None;
        shoot.status.hibernated = hibernated;
        shoot.status.conditions = rules::progressing_after_success(&shoot.status.conditions, &CONDITIONS, &now);
        shoot.status.constraints =
            rules::progressing_after_success(&shoot.status.constraints, &constraints::REQUIRED, &now);
        credentials_rotation::succeeded(shoot, &now);
        shoot.status.last_operation = Some(last_operation(
            kind,
            "Succeeded",
            100,
            kind.success_description(),
            now.clone(),
        ));
    })
    .await?;
    if kind == OperationType::Delete {
        patching::remove_finalizer(&api, &patched.0, finalizer::GARDENER).await?;
        return Ok(None);
    }
    let seeds: Api<Seed> = Api::all(config.garden.clone());
    let seed = seeds.read(&config.seed_name).await?;
    super::botanist::sync_cluster_of(config, &patched.0, &seed).await?;
    Ok(Some(patched.0))
}

/// Ends an operation that failed [CP-17].
async fn fail(config: &Config, shoot: &Shoot, kind: OperationType, wrong: Wrong) -> Result<(), Failed> {
    let now = config.clock.time();
    let non_retryable =
        error_codes::has_non_retryable(wrong.errors.iter().flat_map(|one| &one.codes).map(String::as_str));
    let retry_duration = signed(config.settings.shoot.retry_duration);
    patching::patch_status(&api(config, shoot), shoot, |shoot| {
        let progress = shoot.status.last_operation.as_ref().map_or(0, |last| last.progress);
        let since = shoot.status.retry_cycle_start_time.as_ref().map(|time| time.0);
        let last = rules::failed(
            &wrong.description,
            kind,
            progress,
            non_retryable,
            since,
            retry_duration,
            &now,
        );
        if last.state == "Failed" {
            shoot.status.retry_cycle_start_time = None;
        }
        shoot.status.last_operation = Some(last);
        let news = wrong.errors.clone().into_iter().map(|mut error| {
            error.last_update_time.get_or_insert(now.clone());
            error
        });
        shoot.status.last_errors = news.collect();
    })
    .await?;
    Ok(())
}
