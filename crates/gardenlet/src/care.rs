//! The shoot care controller: looks at control planes and nodes, and tells the conditions of §6 of the status rules and the constraints of §10
//! [ST-40..61], [ST-80..89].

mod api_server;
mod checks;
mod constraints;

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::core::v1beta1::{Condition, LastOperation, Shoot};
use gardener_apis::extensions::v1alpha1::Cluster;
use gardener_controller::apply as patching;
use gardener_controller::conditions::{self, Update, status};
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, RateLimit, Read};
use gardener_rules::care::{Finding, next_look, status_of_failure};
use gardener_rules::constraints::{ALL as ALL_CONSTRAINTS, is_pardoned};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::SignedDuration;
use kube::{Api, ResourceExt};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::Config;
use api_server::ApiServer;

pub(crate) const API_SERVER: &str = "APIServerAvailable";
pub(crate) const CONTROL_PLANE: &str = "ControlPlaneHealthy";
pub(crate) const OBSERVABILITY: &str = "ObservabilityComponentsHealthy";
pub(crate) const NODES: &str = "EveryNodeReady";
pub(crate) const SYSTEM: &str = "SystemComponentsHealthy";
/// All of them, in the order in which they stand [ST-41].
const ALL: [&str; 5] = [API_SERVER, CONTROL_PLANE, OBSERVABILITY, NODES, SYSTEM];

/// How long a shoot that is on no seed yet waits [ST-40].
const UNBOUND_RETRY: Duration = Duration::from_secs(30);

/// What a check found out.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// It holds: reason and message.
    Holds(&'static str, &'static str),
    /// It does not.
    Fails(Finding),
    /// It could not be checked, for this reason [ST-32].
    Unknown(String),
}

/// Why care could not look.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Write(#[from] patching::ApplyError),
    #[error("the Cluster object in the seed tells of a shoot that cannot be read: {0}")]
    Cluster(serde_json::Error),
}

fn last_state(shoot: &Shoot) -> (&str, &str) {
    let last = shoot.status.last_operation.as_ref();
    last.map_or(("", ""), |last| (last.r#type.as_str(), last.state.as_str()))
}

/// Whether a change is a reason to look [ST-40].
fn asks_for_care(change: &Change<Shoot>) -> bool {
    match change {
        Change::Deleted(_) => false,
        Change::Applied { old: None, .. } => true,
        Change::Applied { old: Some(old), new } => {
            let ((old_kind, old_state), (new_kind, new_state)) = (last_state(old), last_state(new));
            let finished =
                old_state == "Processing" && new_state == "Succeeded" && old_kind != "Delete" && new_kind != "Delete";
            finished || old.status.seed_name.is_none() && new.status.seed_name.is_some()
        }
    }
}

/// Runs the controller until `stop`.
pub(crate) async fn run(config: Config, shoots: Informer<Shoot>, stop: CancellationToken) {
    let period = config.settings.shoot_care.sync_period;
    let queue: Queue<ObjectRef> = Queue::with_limit(RateLimit {
        base: Duration::from_millis(500),
        max: period,
    });
    {
        let (queue, config) = (queue.clone(), config.clone());
        shoots.on_change(move |change| {
            if !asks_for_care(change) {
                return;
            }
            let shoot = change.object();
            let key = ObjectRef::of(shoot.as_ref());
            let is_current = shoot.metadata.generation == shoot.status.observed_generation;
            match change {
                Change::Applied { old: None, .. } if is_current => {
                    queue.add_after(key, period.mul_f64(config.chance.fraction()))
                }
                _ => queue.add(key),
            }
        });
    }
    let concurrency = config.settings.shoot_care.concurrent_syncs;
    let config = Arc::new(config);
    Controller::new("shoot-care", concurrency, queue)
        .run(stop, move |key| {
            let config = Arc::clone(&config);
            async move { reconcile(&config, &key).await }
        })
        .await;
}

async fn reconcile(config: &Config, key: &ObjectRef) -> Result<Action, Failed> {
    let api: Api<Shoot> = Api::namespaced(config.garden.clone(), &key.namespace);
    let Some(shoot) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    match shoot.status.seed_name.as_deref() {
        None => return Ok(Action::RequeueAfter(UNBOUND_RETRY)),
        Some(seed) if seed != config.seed_name => return Ok(Action::Done),
        Some(_) => {}
    }
    let garden = shoot;
    let now = config.clock.time();
    let shoot = match rolled_out(config, &garden).await {
        Ok(shoot) => shoot,
        Err(why) => {
            not_checked(&api, &garden, &now).await?;
            return Err(why);
        }
    };
    let wanted: Vec<&str> = kinds(&shoot);
    let server = match is_hibernated(&shoot) {
        true => ApiServer::Rests,
        false => ApiServer::look(config, &namespace(&shoot)).await,
    };
    let verdicts = checks::all(config, &shoot, &wanted, &server).await;
    let old = &shoot.status.conditions;
    let mut news: Vec<Condition> = verdicts
        .into_iter()
        .map(|(kind, verdict)| {
            let before = conditions::get_or_init(old, kind, &now);
            match verdict {
                Verdict::Holds(reason, message) => conditions::with(&before, status::TRUE, reason, message, &now),
                Verdict::Unknown(why) => conditions::unknown_error(&before, &why, &now),
                Verdict::Fails(finding) => {
                    let last = shoot.status.last_operation.as_ref();
                    failing(&before, &finding, threshold(config, kind), last, &now)
                }
            }
        })
        .collect();
    let mut restrictions = constraints::all(config, &shoot, &server).await;
    let is_fine = news.iter().all(|one| one.status == status::TRUE);
    pardon(&shoot, &mut news, &now);
    pardon(&shoot, &mut restrictions, &now);
    tell(&api, &garden, &news, &restrictions).await?;
    let period = config.settings.shoot_care.sync_period;
    let last = shoot.status.last_operation.as_ref();
    let next = next_look(is_fine, last, config.clock.now(), period);
    Ok(Action::RequeueAfter(next))
}

/// The conditions that a shoot has.
fn kinds(shoot: &Shoot) -> Vec<&'static str> {
    let kinds = ALL.into_iter();
    let has_workers = !shoot.spec.provider.workers.is_empty();
    kinds.filter(|kind| *kind != NODES || has_workers).collect()
}

/// The shoot as it was rolled out last: with the specification that the seed knows, which may lag behind the garden's [ST-41].
async fn rolled_out(config: &Config, garden: &Shoot) -> Result<Shoot, Failed> {
    let clusters: Api<Cluster> = Api::all(config.seed.clone());
    let cluster = clusters.read(&namespace(garden)).await?;
    let known = Shoot::deserialize(&cluster.spec.shoot).map_err(Failed::Cluster)?;
    Ok(Shoot {
        spec: known.spec,
        ..garden.clone()
    })
}

/// Tells that nothing can be told of a shoot.
async fn not_checked(api: &Api<Shoot>, shoot: &Shoot, now: &Time) -> Result<(), Failed> {
    let why = "Precondition failed: operation could not be initialized";
    let unknown = |old: &[Condition], kinds: &[&str]| -> Vec<Condition> {
        let all = kinds.iter().map(|kind| conditions::get_or_init(old, kind, now));
        all.map(|before| conditions::unknown_error(&before, why, now)).collect()
    };
    let news = unknown(&shoot.status.conditions, &kinds(shoot));
    let restrictions = unknown(&shoot.status.constraints, &ALL_CONSTRAINTS);
    tell(api, shoot, &news, &restrictions).await
}

/// Writes what was found into a shoot's status.
async fn tell(api: &Api<Shoot>, shoot: &Shoot, news: &[Condition], restrictions: &[Condition]) -> Result<(), Failed> {
    patching::patch_status(api, shoot, |shoot| {
        let list = std::mem::take(&mut shoot.status.conditions);
        shoot.status.conditions = conditions::build(list, news.to_vec(), &ALL);
        let list = std::mem::take(&mut shoot.status.constraints);
        shoot.status.constraints = conditions::build(list, restrictions.to_vec(), &ALL_CONSTRAINTS);
    })
    .await?;
    Ok(())
}

/// Lets what fails only progress while the shoot is still coming to be, or about to go [ST-70].
fn pardon(shoot: &Shoot, checked: &mut [Condition], now: &Time) {
    if !is_pardoned(shoot.status.last_operation.as_ref(), &shoot.status.last_errors) {
        return;
    }
    for own in checked.iter_mut().filter(|own| own.status == status::FALSE) {
        let before = own.clone();
        let codes: Vec<&str> = before.codes.iter().map(String::as_str).collect();
        let update = Update {
            status: Some(status::PROGRESSING),
            codes: &codes,
            ..Update::default()
        };
        *own = conditions::updated(&before, &update, now);
    }
}

/// What a finding makes of a condition: it fails, or progresses for as long as `threshold` and the last operation allow.
pub(crate) fn failing(
    before: &Condition,
    finding: &Finding,
    threshold: Option<SignedDuration>,
    last: Option<&LastOperation>,
    now: &Time,
) -> Condition {
    let value = status_of_failure(before, &finding.reason, threshold, last, now.0);
    let codes: Vec<&str> = finding.codes.iter().map(String::as_str).collect();
    let update = Update {
        status: Some(value),
        reason: Some(&finding.reason),
        message: Some(&finding.message),
        codes: &codes,
    };
    conditions::updated(before, &update, now)
}

fn threshold(config: &Config, kind: &str) -> Option<SignedDuration> {
    let all = &config.settings.shoot_care.condition_thresholds;
    let found = all.iter().find(|(one, _)| one == kind)?;
    SignedDuration::try_from(found.1).ok()
}

/// Whether the cluster sleeps, as far as it was rolled out [ST-50].
pub(crate) fn is_hibernated(shoot: &Shoot) -> bool {
    shoot.hibernation_enabled() || shoot.status.hibernated
}

/// The control plane's namespace.
pub(crate) fn namespace(shoot: &Shoot) -> String {
    if shoot.status.technical_id.is_empty() {
        shoot.name_any()
    } else {
        shoot.status.technical_id.clone()
    }
}
