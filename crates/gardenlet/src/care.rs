//! The shoot care controller: looks at control planes and nodes, and tells the conditions of §6 of the status rules and the constraints of §10
//! [ST-40..61], [ST-80..89]. Beside that it takes away what is in the way in shoots [ST-42], [ST-110].

mod api_server;
mod checks;
mod constraints;
mod control_plane;
mod extensions;
mod garbage;
mod nodes;
mod system;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use gardener_apis::core::v1beta1::{Condition, LastOperation, Seed, Shoot};
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
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::Config;
use crate::shoot::live;
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
    /// It does not; whether that counts already is decided by its threshold.
    Fails(Finding),
    /// It has this status, whatever its threshold is.
    Is(&'static str, Finding),
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
    #[error("the Cluster object in the seed tells of a shoot or a seed that cannot be read: {0}")]
    Cluster(serde_json::Error),
}

/// What is looked at.
struct Known {
    /// The shoot as it was rolled out last, with its status of now.
    shoot: Shoot,
    /// Its seed as it was then.
    seed: Seed,
    /// When the look is over, whoever has not answered yet [ST-40].
    deadline: Instant,
}

/// What is told of what did not answer in time.
const LATE: &str = "context deadline exceeded";

/// What `work` comes to, if it does until then.
async fn until<T>(deadline: Instant, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    timeout_at(deadline, work)
        .await
        .unwrap_or_else(|_| Err(LATE.to_owned()))
}

impl Known {
    /// What `work` comes to, if it does in time.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        until(self.deadline, work).await
    }
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
            let (config, shoots) = (Arc::clone(&config), shoots.clone());
            async move { reconcile(&config, &shoots, &key).await }
        })
        .await;
}

async fn reconcile(config: &Config, shoots: &Informer<Shoot>, key: &ObjectRef) -> Result<Action, Failed> {
    let Some(shoot) = live(config, shoots, key).await? else {
        return Ok(Action::Done);
    };
    let api: Api<Shoot> = Api::namespaced(config.garden.clone(), &key.namespace);
    match shoot.status.seed_name.as_deref() {
        None => return Ok(Action::RequeueAfter(UNBOUND_RETRY)),
        Some(seed) if seed != config.seed_name => return Ok(Action::Done),
        Some(_) => {}
    }
    let garden = shoot;
    let now = config.clock.time();
    let period = config.settings.shoot_care.sync_period;
    let known = match rolled_out(config, &garden, Instant::now() + period).await {
        Ok(known) => known,
        Err(why) => {
            not_checked(&api, &garden, &now).await?;
            return Err(why);
        }
    };
    let shoot = &known.shoot;
    let wanted: Vec<&str> = kinds(shoot);
    let server = match is_hibernated(shoot) {
        true => ApiServer::Rests,
        false => ApiServer::look(config, &known).await,
    };
    let (verdicts, mut restrictions, (), ()) = tokio::join!(
        checks::all(config, &known, &wanted, &server).boxed(),
        constraints::all(config, &known, &server).boxed(),
        garbage::collect(config, &known, &server).boxed(),
        webhooks::remediate(config, &known, &server).boxed(),
    );
    let last = shoot.status.last_operation.as_ref();
    let mut news: Vec<Condition> = verdicts
        .into_iter()
        .map(|(kind, verdict)| {
            let before = conditions::get_or_init(&shoot.status.conditions, kind, &now);
            judged(&before, verdict, threshold(config, kind), last, &now)
        })
        .collect();
    let is_fine = news.iter().all(|one| one.status == status::TRUE);
    pardon(shoot, &mut news, &now);
    pardon(shoot, &mut restrictions, &now);
    tell(&api, &garden, &news, &restrictions).await?;
    let next = next_look(is_fine, last, config.clock.now(), period);
    Ok(Action::RequeueAfter(next))
}

/// What a check makes of a condition.
fn judged(
    before: &Condition,
    verdict: Verdict,
    threshold: Option<SignedDuration>,
    last: Option<&LastOperation>,
    now: &Time,
) -> Condition {
    match verdict {
        Verdict::Holds(reason, message) => conditions::with(before, status::TRUE, reason, message, now),
        Verdict::Unknown(why) => conditions::unknown_error(before, &why, now),
        Verdict::Fails(finding) => failing(before, &finding, threshold, last, now),
        Verdict::Is(value, finding) => with_finding(before, value, &finding, now),
    }
}

/// The conditions that a shoot has.
fn kinds(shoot: &Shoot) -> Vec<&'static str> {
    let kinds = ALL.into_iter();
    let has_workers = !shoot.spec.provider.workers.is_empty();
    kinds.filter(|kind| *kind != NODES || has_workers).collect()
}

/// The shoot as it was rolled out last: with the specification that the seed knows, which may lag behind the garden's [ST-41].
async fn rolled_out(config: &Config, garden: &Shoot, deadline: Instant) -> Result<Known, Failed> {
    let clusters: Api<Cluster> = Api::all(config.seed.clone());
    let cluster = clusters.read(&namespace(garden)).await?;
    let known = Shoot::deserialize(&cluster.spec.shoot).map_err(Failed::Cluster)?;
    let seed = cluster.spec.seed.as_ref().map(Seed::deserialize).transpose();
    Ok(Known {
        shoot: Shoot {
            spec: known.spec,
            ..garden.clone()
        },
        seed: seed.map_err(Failed::Cluster)?.unwrap_or_default(),
        deadline,
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
    with_finding(before, value, finding, now)
}

fn with_finding(before: &Condition, value: &str, finding: &Finding, now: &Time) -> Condition {
    let codes: Vec<&str> = finding.codes.iter().map(String::as_str).collect();
    let update = Update {
        status: Some(value),
        reason: Some(&finding.reason),
        message: Some(&finding.message),
        codes: &codes,
    };
    conditions::updated(before, &update, now)
}

/// The threshold of a condition among those that are configured.
pub(crate) fn threshold_of(all: &[(String, Duration)], kind: &str) -> Option<SignedDuration> {
    let found = all.iter().find(|(one, _)| one == kind)?;
    SignedDuration::try_from(found.1).ok()
}

fn threshold(config: &Config, kind: &str) -> Option<SignedDuration> {
    threshold_of(&config.settings.shoot_care.condition_thresholds, kind)
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

#[cfg(test)]
mod tests {
    use gardener_apis::core::v1beta1::LastError;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn at(second: i64) -> Time {
        // far enough from the time that stands for none
        Time(Timestamp::from_second(1_700_000_000 + second).unwrap())
    }

    fn second(time: Option<&Time>) -> i64 {
        time.unwrap().0.as_second() - 1_700_000_000
    }

    /// Status, reason, last transition and last update.
    fn told(condition: &Condition) -> (&str, &str, i64, i64) {
        let (transition, update) = (&condition.last_transition_time, &condition.last_update_time);
        (
            &condition.status,
            &condition.reason,
            second(transition.as_ref()),
            second(update.as_ref()),
        )
    }

    fn old(status: &str, reason: &str, since: i64) -> Condition {
        Condition {
            r#type: API_SERVER.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: "m".to_owned(),
            last_transition_time: Some(at(since)),
            last_update_time: Some(at(since)),
            codes: Vec::new(),
        }
    }

    fn operation(kind: &str, state: &str, updated: i64) -> LastOperation {
        LastOperation {
            r#type: kind.to_owned(),
            state: state.to_owned(),
            last_update_time: Some(at(updated)),
            ..LastOperation::default()
        }
    }

    const MINUTE: Option<SignedDuration> = Some(SignedDuration::from_mins(1));

    #[test]
    fn st_30_worked_cases() {
        let succeeded = |updated| Some(operation("Reconcile", "Succeeded", updated));
        let (running, holds, failed) = ("Progressing", "True", "False");
        type Case = (
            &'static str,
            Condition,
            Option<SignedDuration>,
            Option<LastOperation>,
            &'static str,
            &'static str,
        );
        let table: [Case; 12] = [
            ("W-T1", old(holds, "R", -300), MINUTE, None, "A", running),
            ("W-T2", old(holds, "R", -300), None, None, "A", failed),
            ("W-T3", old(running, "R", -300), MINUTE, succeeded(-30), "A", running),
            ("W-T4", old(running, "R", -30), MINUTE, succeeded(-120), "A", running),
            ("W-T5", old(running, "R", -61), MINUTE, succeeded(-120), "A", failed),
            (
                "W-T6",
                old(running, "R", -60),
                MINUTE,
                Some(operation("Reconcile", "Error", -5)),
                "A",
                running,
            ),
            ("W-T7", old(failed, "A", -300), MINUTE, succeeded(-30), "A", running),
            ("W-T8", old(failed, "A", -300), MINUTE, succeeded(-90), "A", failed),
            ("W-T9", old(failed, "A", -300), MINUTE, succeeded(-90), "B", running),
            ("W-T10", old(failed, "A", -300), MINUTE, succeeded(-90), "A", failed),
            ("W-T11", old(failed, "A", -300), None, None, "B", failed),
            ("W-T12", old("Unknown", "R", -300), MINUTE, None, "A", failed),
        ];
        for (id, before, threshold, last, reason, expected) in table {
            let verdict = Verdict::Fails(Finding::new(reason, "other message"));
            let after = judged(&before, verdict, threshold, last.as_ref(), &at(0));
            assert_eq!(
                (after.status.as_str(), after.reason.as_str()),
                (expected, reason),
                "{id}"
            );
            assert_eq!(second(after.last_update_time.as_ref()), 0, "{id}");
        }
    }

    #[test]
    fn st_21_30_31_an_api_server_that_fails_and_recovers() {
        let fails = |reason: &str, message: &str| Verdict::Fails(Finding::new(reason, message));
        let (failed, down) = ("HealthzRequestFailed", "APIServerDown");
        let fine = "HealthzRequestSucceeded";
        let mut condition = old("True", fine, 0);
        for (now, verdict, expected) in [
            (60, fails(failed, "m1"), ("Progressing", failed, 60, 60)),
            (90, fails(failed, "m2"), ("Progressing", failed, 60, 90)),
            (120, fails(failed, "m2"), ("Progressing", failed, 60, 90)),
            (121, fails(failed, "m2"), ("False", failed, 121, 90)),
            (150, fails(down, "m3"), ("Progressing", down, 150, 150)),
            (180, Verdict::Holds(fine, "m"), ("True", fine, 180, 180)),
        ] {
            condition = judged(&condition, verdict, MINUTE, None, &at(now));
            assert_eq!(told(&condition), expected, "22.2 at {now}");
        }
    }

    #[test]
    fn st_70_71_a_control_plane_that_is_created() {
        let shoot = |kind: &str, errors: Vec<LastError>| {
            let mut shoot = Shoot::default();
            shoot.status.last_operation = Some(operation(kind, "Processing", 0));
            shoot.status.last_errors = errors;
            shoot
        };
        let creating = shoot("Create", Vec::new());
        let mut conditions = Vec::new();
        for (now, transition) in [(10, 10), (40, 10), (70, 10), (100, 100), (130, 100)] {
            let before = conditions::get_or_init(&conditions, CONTROL_PLANE, &at(now));
            let last = creating.status.last_operation.as_ref();
            let verdict = Verdict::Fails(Finding::new("EtcdMissing", "m"));
            conditions = vec![judged(&before, verdict, MINUTE, last, &at(now))];
            pardon(&creating, &mut conditions, &at(now));
            assert_eq!(
                told(&conditions[0]),
                ("Progressing", "EtcdMissing", transition, 10),
                "22.3 at {now}"
            );
        }
        let mut failed = vec![old("False", "EtcdMissing", 0)];
        pardon(&shoot("Reconcile", vec![LastError::default()]), &mut failed, &at(1));
        assert_eq!(failed[0].status, "False", "22.3");
    }

    #[test]
    fn st_51_65_what_counts_at_once() {
        let before = old("True", "R", -300);
        for status in ["False", "Unknown", "Progressing"] {
            let verdict = Verdict::Is(status, Finding::new("A", "m"));
            assert_eq!(judged(&before, verdict, MINUTE, None, &at(0)).status, status);
        }
        let unknown = judged(&before, Verdict::Unknown(String::new()), MINUTE, None, &at(0));
        assert_eq!(told(&unknown), ("Unknown", "ConditionCheckError", 0, 0), "[ST-32]");
        assert_eq!(unknown.message, "unknown", "[ST-22]");
    }
}
