//! What time did to the shoots of a garden, told from the garden's API alone: changes of specs, `status.lastMaintenance`, events, and deletions.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::clock::Clock;
use gardener_apis::constants::annotation;
use gardener_apis::core::v1beta1::{LastMaintenance, Shoot};
use gardener_controller::{Change as Observed, Informer, ObjectRef};
use gardener_rules::hibernation::Turn;
use gardener_rules::maintenance::{Subject, is_forced, reason_of};
use gardener_rules::maintenance_window::Window;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

/// What has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Outcome {
    /// All that was due was done.
    Updated,
    /// Something could not be done; the changes tell what could.
    Failed,
    /// What had failed before has nothing to do any more.
    Recovered,
    /// A schedule put the shoot to sleep.
    Hibernated,
    /// A schedule woke it up.
    WokenUp,
    /// The lifetime that its quota allows was over.
    Deleted,
}

impl Outcome {
    /// Whether this is about a maintenance.
    pub fn is_of_maintenance(self) -> bool {
        matches!(self, Self::Updated | Self::Failed | Self::Recovered)
    }
}

/// One version that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The pool; none: the control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// `Kubernetes`, or the name of the machine image.
    pub what: String,
    /// The version before.
    pub from: String,
    /// The version after.
    pub to: String,
    /// Why, in the words of the event.
    pub reason: String,
    /// Whether the owner had no choice.
    pub forced: bool,
}

/// One maintenance of a shoot that did, or could not do, something; or what else time has brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When, to the second.
    pub time: Timestamp,
    /// When the window of this maintenance opens; of what waits for no window the time itself.
    pub window_begin: Timestamp,
    /// Until when maintenance may begin in this window; likewise.
    pub window_end: Timestamp,
    /// The shoot's namespace.
    pub namespace: String,
    /// The shoot's name.
    pub shoot: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether something was done, or was to be done, without the owner's choice.
    pub forced: bool,
    /// What was changed of versions.
    pub changes: Vec<Change>,
    /// `status.lastMaintenance.description`, or what was done besides.
    pub description: String,
    /// `status.lastMaintenance.failureReason`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Messages of warnings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Entry {
    /// Whether another entry tells of the same failure of the same shoot, once more.
    fn is_repeated_by(&self, later: &Self) -> bool {
        self.outcome == Outcome::Failed
            && later.changes.is_empty()
            && (&self.shoot, &self.namespace) == (&later.shoot, &later.namespace)
            && (self.outcome, &self.failure_reason, &self.description)
                == (later.outcome, &later.failure_reason, &later.description)
    }
}

struct Seen {
    time: Timestamp,
    old: Arc<Shoot>,
    new: Arc<Shoot>,
}

struct Told {
    time: Timestamp,
    about: ObjectRef,
    warning: bool,
    message: String,
}

/// Collects what happens to the shoots of a garden while it lives.
pub struct Story {
    seen: Arc<Mutex<Vec<Seen>>>,
    told: Arc<Mutex<Vec<Told>>>,
    turned: Arc<Mutex<Vec<Entry>>>,
    _informers: (Informer<Shoot>, Informer<Event>),
}

impl Story {
    /// Begins to look. What is there already happened before the story.
    pub async fn begin(client: &Client, clock: &Clock, stop: &CancellationToken) -> Self {
        // nobody is to look after watches in months of virtual time
        let watching = watcher::Config::default().timeout(u32::MAX).disable_bookmarks();
        let shoots: Informer<Shoot> = Informer::start(Api::all(client.clone()), watching.clone(), stop);
        let events: Informer<Event> = Informer::start(Api::all(client.clone()), watching, stop);
        shoots.synced().await;
        events.synced().await;
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let told: Arc<Mutex<Vec<Told>>> = Arc::default();
        let turned: Arc<Mutex<Vec<Entry>>> = Arc::default();
        {
            let (seen, turned, clock) = (seen.clone(), turned.clone(), clock.clone());
            shoots.on_change(move |change| {
                let time = clock.time().0;
                match change {
                    Observed::Applied { old: None, .. } => {}
                    Observed::Applied { old: Some(old), new } => {
                        if is_of_interest(old, new) {
                            let (old, new) = (old.clone(), new.clone());
                            seen.lock().push(Seen { time, old, new });
                        }
                        turned.lock().extend(turn(old, new, time));
                    }
                    Observed::Deleted(last) if last.in_deletion() => {}
                    Observed::Deleted(last) => turned.lock().push(end(last, time)),
                }
            });
        }
        {
            let (told, clock, begun) = (told.clone(), clock.clone(), clock.now());
            events.on_change(move |change| {
                if let Observed::Applied { new: event, .. } = change
                    && event.last_timestamp.as_ref().is_none_or(|last| last.0 >= begun)
                    && let Some(note) = note(event, clock.time().0)
                {
                    told.lock().push(note);
                }
            });
        }
        Self {
            seen,
            told,
            turned,
            _informers: (shoots, events),
        }
    }

    /// What happened so far, by time and shoot. A failure that is the same in window after window is told once.
    pub fn entries(&self) -> Vec<Entry> {
        let told = self.told.lock();
        let mut notes: BTreeMap<(Timestamp, &ObjectRef), Vec<&Told>> = BTreeMap::new();
        for own in told.iter() {
            notes.entry((own.time, &own.about)).or_default().push(own);
        }
        let mut runs: BTreeMap<(Timestamp, ObjectRef), (Arc<Shoot>, Arc<Shoot>)> = BTreeMap::new();
        for seen in self.seen.lock().iter() {
            let run = runs
                .entry((seen.time, ObjectRef::of(seen.new.as_ref())))
                .or_insert_with(|| (seen.old.clone(), seen.new.clone()));
            run.1 = seen.new.clone();
        }
        let mut entries: Vec<Entry> = Vec::new();
        let mut last: BTreeMap<ObjectRef, usize> = BTreeMap::new();
        for ((time, shoot), (old, new)) in runs {
            let own = notes.get(&(time, &shoot)).map_or(&[][..], Vec::as_slice);
            let Some(entry) = entry(time, &old, &new, own) else {
                continue;
            };
            let before = last.get(&shoot).and_then(|at| entries.get(*at));
            if before.is_some_and(|before| before.is_repeated_by(&entry)) {
                continue;
            }
            last.insert(shoot, entries.len());
            entries.push(entry);
        }
        entries.extend(self.turned.lock().iter().cloned());
        entries.sort_by(|one, other| place(one).cmp(&place(other)));
        entries
    }
}

fn place(entry: &Entry) -> (Timestamp, &str, &str, Outcome) {
    (entry.time, &entry.namespace, &entry.shoot, entry.outcome)
}

/// What comes at its own time, in no window.
fn at(time: Timestamp, shoot: &Shoot, outcome: Outcome, description: String) -> Entry {
    Entry {
        time,
        window_begin: time,
        window_end: time,
        namespace: shoot.project_namespace().to_owned(),
        shoot: shoot.own_name().to_owned(),
        outcome,
        forced: outcome == Outcome::Deleted,
        changes: Vec::new(),
        description,
        failure_reason: None,
        warnings: Vec::new(),
    }
}

fn end(shoot: &Shoot, time: Timestamp) -> Entry {
    let told = shoot.annotation(annotation::SHOOT_EXPIRATION_TIMESTAMP);
    let why = match told {
        Some(end) => format!("The lifetime that its quota allows ended at {end}"),
        None => "It was deleted".to_owned(),
    };
    at(time, shoot, Outcome::Deleted, why)
}

/// Whether a shoot was put to sleep, woken up, or ended.
fn turn(old: &Shoot, new: &Shoot, time: Timestamp) -> Option<Entry> {
    if new.in_deletion() {
        return (!old.in_deletion()).then(|| end(new, time));
    }
    let (outcome, turn) = match (old.hibernation_enabled(), new.hibernation_enabled()) {
        (false, true) => (Outcome::Hibernated, Turn::Hibernate),
        (true, false) => (Outcome::WokenUp, Turn::WakeUp),
        _ => return None,
    };
    Some(at(time, new, outcome, turn.event().1.to_owned()))
}

fn is_of_interest(old: &Shoot, new: &Shoot) -> bool {
    old.status.last_maintenance != new.status.last_maintenance || versions(old) != versions(new)
}

fn note(event: &Event, time: Timestamp) -> Option<Told> {
    let about = &event.involved_object;
    let of_maintenance = event.reason.as_deref().is_some_and(|own| own.contains("Maintenance"));
    (about.kind.as_deref() == Some("Shoot") && of_maintenance).then(|| Told {
        time,
        about: ObjectRef::new(
            about.namespace.clone().unwrap_or_default(),
            about.name.clone().unwrap_or_default(),
        ),
        warning: event.type_.as_deref() == Some("Warning"),
        message: event.message.clone().unwrap_or_default(),
    })
}

/// The versions of a shoot: what they are of, and what they are.
fn versions(shoot: &Shoot) -> BTreeMap<Subject, (String, String)> {
    let kubernetes = |version: &str| ("Kubernetes".to_owned(), version.to_owned());
    let mut found = BTreeMap::from([(Subject::ControlPlane, kubernetes(shoot.spec.kubernetes_version()))]);
    for worker in &shoot.spec.provider.workers {
        if let Some(version) = worker.kubernetes.as_ref().and_then(|own| own.version.as_deref()) {
            found.insert(Subject::PoolKubernetes(worker.name.clone()), kubernetes(version));
        }
        if let Some(image) = &worker.machine.image {
            let version = image.version.clone().unwrap_or_default();
            found.insert(Subject::PoolImage(worker.name.clone()), (image.name.clone(), version));
        }
    }
    found
}

fn entry(time: Timestamp, old: &Shoot, new: &Shoot, told: &[&Told]) -> Option<Entry> {
    let before = versions(old);
    let mut changes = Vec::new();
    for (subject, (what, to)) in versions(new) {
        let Some((_, from)) = before.get(&subject).filter(|(_, from)| *from != to) else {
            continue;
        };
        let reason = told.iter().find_map(|own| reason_of(&own.message, &subject));
        let reason = reason.unwrap_or_default().to_owned();
        changes.push(Change {
            pool: match subject {
                Subject::ControlPlane | Subject::Credentials(_) => None,
                Subject::PoolKubernetes(pool) | Subject::PoolImage(pool) => Some(pool),
            },
            what,
            from: from.clone(),
            to,
            forced: is_forced(&reason),
            reason,
        });
    }
    let last = new.status.last_maintenance.as_ref();
    let is_new = last != old.status.last_maintenance.as_ref();
    let last = last.filter(|_| is_new);
    if last.is_none() && changes.is_empty() {
        return None;
    }
    let outcome = match last {
        Some(last) if last.state == "Failed" => Outcome::Failed,
        Some(last) if changes.is_empty() && has_recovered(old, last) => Outcome::Recovered,
        _ => Outcome::Updated,
    };
    let subjects = || before.keys();
    let forced_failure = told.iter().filter(|own| own.warning).any(|own| {
        let mut reasons = subjects().filter_map(|subject| reason_of(&own.message, subject));
        reasons.any(is_forced)
    });
    let maintenance = new.spec.maintenance.as_ref();
    let window = Window::effective(maintenance.and_then(|own| own.time_window.as_ref()));
    let begin = window.last_begin(time);
    Some(Entry {
        time,
        window_begin: begin,
        window_end: window.moment(begin, 1.0),
        namespace: new.project_namespace().to_owned(),
        shoot: new.own_name().to_owned(),
        outcome,
        forced: forced_failure || changes.iter().any(|change| change.forced),
        changes,
        description: last.map(|last| last.description.clone()).unwrap_or_default(),
        failure_reason: last.and_then(|last| last.failure_reason.clone()),
        warnings: told
            .iter()
            .filter(|own| own.warning)
            .map(|own| own.message.clone())
            .collect(),
    })
}

/// Whether only the failure of an earlier maintenance went: the time of that one stays.
fn has_recovered(old: &Shoot, last: &LastMaintenance) -> bool {
    let before = old.status.last_maintenance.as_ref();
    before.is_some_and(|before| before.state == "Failed" && before.triggered_time == last.triggered_time)
}
