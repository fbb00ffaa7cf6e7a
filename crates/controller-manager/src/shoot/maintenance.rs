//! Maintenance of shoots [GCM-41], [VER-80]–[VER-90]: once in each of their time windows, or when `maintain` is asked for. What is done is decided
//! in `rules::maintenance`.

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::constants::{annotation, operation};
use gardener_apis::core::v1beta1::{
    CloudProfile, CloudProfileSpec, LastMaintenance, NamespacedCloudProfile, SecretBinding, Shoot,
};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use gardener_rules::maintenance::{Plan, Surroundings, next_change, plan};
use gardener_rules::maintenance_window::Window;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{ListParams, PostParams};

use crate::manager::ReconcileError;
use crate::{Config, Manager};

struct Maintenance {
    config: Config,
    recorder: Recorder,
    profiles: Informer<CloudProfile>,
    namespaced_profiles: Informer<NamespacedCloudProfile>,
}

/// What a maintenance has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The shoot is another one now.
    Changed,
    /// The next maintenance comes to the same, unless shoot or cloud profile are others by then.
    Repeats,
}

fn asked_for(shoot: &Shoot) -> bool {
    shoot.operations(annotation::OPERATION).contains(&operation::MAINTAIN)
}

pub(super) async fn run(manager: &Manager) {
    let config = manager.config.clone();
    let (shoots, profiles) = (manager.informer::<Shoot>(), manager.informer::<CloudProfile>());
    let namespaced_profiles: Informer<NamespacedCloudProfile> = manager.informer();
    tokio::join!(shoots.synced(), profiles.synced(), namespaced_profiles.synced());
    let queue: Queue<ObjectRef> = Queue::new();
    shoots.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                (asked_for(new) && !asked_for(old)) || Window::of(new) != Window::of(old)
            }
            Change::Applied { old: None, .. } => true,
            Change::Deleted(_) => false,
        },
        |shoot| [ObjectRef::of(shoot)],
    );
    if config.foretells {
        // what is left out is decided by what the profiles say
        let all = |shoots: &Informer<Shoot>, queue: &Queue<ObjectRef>| {
            let keys = shoots.list().into_iter().map(|shoot| ObjectRef::of(shoot.as_ref()));
            keys.for_each(|key| queue.add(key));
        };
        let (known, again) = (shoots.clone(), queue.clone());
        profiles.on_change(move |_| all(&known, &again));
        let (known, again) = (shoots.clone(), queue.clone());
        namespaced_profiles.on_change(move |_| all(&known, &again));
    }
    let recorder = manager.recorder("shoot-maintenance");
    let maintenance = Arc::new(Maintenance {
        config,
        recorder,
        profiles,
        namespaced_profiles,
    });
    let syncs = manager.config.controllers.shoot_maintenance.concurrent_syncs;
    let controller = manager.controller("shoot-maintenance", syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let maintenance = maintenance.clone();
        async move { maintenance.reconcile(&key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

/// Whether an answer says that the garden does not want something, and not that it cannot say.
fn is_refusal(code: u16) -> bool {
    matches!(code, 400 | 403 | 422)
}

/// How late a timer may be and still be taken for the one of a moment.
const TIMER_LATE_MILLIS: i128 = 1000;

/// A cloud profile of either kind.
enum Profile {
    Plain(Arc<CloudProfile>),
    Namespaced(Arc<NamespacedCloudProfile>),
}

impl Profile {
    fn spec(&self) -> &CloudProfileSpec {
        match self {
            Self::Plain(profile) => &profile.spec,
            Self::Namespaced(profile) => &profile.status.cloud_profile_spec,
        }
    }
}

impl Maintenance {
    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, ReconcileError> {
        let api: Api<Shoot> = Api::namespaced(self.config.garden.clone(), &key.namespace);
        let Some(shoot) = api.read_opt(&key.name).await?.filter(|shoot| !shoot.in_deletion()) else {
            return Ok(Action::Done);
        };
        let window = Window::of(&shoot);
        let now = self.config.clock.now();
        let due = match self.config.foretells {
            true => self.is_moment(key, window, now),
            false => window.contains(now),
        };
        let mut from = now;
        if due || asked_for(&shoot) {
            let profile = self.profile(&shoot)?;
            let next = next_change(&shoot, profile.spec(), now);
            let outcome = self.maintain(&api, shoot, profile.spec()).await?;
            if outcome == Outcome::Repeats && self.config.foretells {
                let Some(next) = next else { return Ok(Action::Done) };
                from = next;
            }
        }
        let wait = self
            .next_moment(key, window, from)
            .duration_since(self.config.clock.now());
        Ok(Action::RequeueAfter(Duration::try_from(wait).unwrap_or_default()))
    }

    /// The random moment at which a shoot is maintained in the window that opens at `begin`. It is drawn for shoot and window, not for a timer:
    /// a controller that starts anew comes to the same.
    fn moment(&self, key: &ObjectRef, window: Window, begin: Timestamp) -> Timestamp {
        let drawn_for = format!("maintenance of {key} in the window of {begin}");
        window.moment(begin, self.config.chance.fraction_of(&drawn_for))
    }

    /// The first moment of a shoot after now and not before `from`. Where windows are not left out it is in the next window that opens.
    fn next_moment(&self, key: &ObjectRef, window: Window, from: Timestamp) -> Timestamp {
        let now = self.config.clock.now();
        if !self.config.foretells {
            return self.moment(key, window, window.next_begin(now));
        }
        let mut begin = window.last_begin(from);
        loop {
            let moment = self.moment(key, window, begin);
            if (moment > now && moment >= from) || begin == Timestamp::MAX {
                return moment;
            }
            begin = window.next_begin(begin);
        }
    }

    /// Whether a shoot's moment in the window that is open is now, up to what a timer is late.
    fn is_moment(&self, key: &ObjectRef, window: Window, now: Timestamp) -> bool {
        let moment = self.moment(key, window, window.last_begin(now));
        (0..TIMER_LATE_MILLIS).contains(&now.duration_since(moment).as_millis())
    }

    /// The profile whose versions count: of a namespaced one what it makes together with its parent.
    fn profile(&self, shoot: &Shoot) -> Result<Profile, ReconcileError> {
        let Some(reference) = shoot.spec.cloud_profile_reference() else {
            return Err(ReconcileError::Blocked("the shoot names no cloud profile".to_owned()));
        };
        let found = if reference.kind == "NamespacedCloudProfile" {
            let place = ObjectRef::new(shoot.project_namespace(), &reference.name);
            self.namespaced_profiles.get(&place).map(Profile::Namespaced)
        } else {
            let place = ObjectRef::cluster_scoped(&reference.name);
            self.profiles.get(&place).map(Profile::Plain)
        };
        found.ok_or_else(|| {
            let (kind, name) = (&reference.kind, &reference.name);
            ReconcileError::Blocked(format!("the shoot's cloud profile, {kind} {name:?}, is not there"))
        })
    }

    async fn plan(&self, shoot: &Shoot, profile: &CloudProfileSpec) -> Result<Plan, ReconcileError> {
        let namespace = shoot.project_namespace();
        let secret_binding = match &shoot.spec.secret_binding_name {
            Some(name) if !name.is_empty() && shoot.spec.credentials_binding_name.is_none() => {
                let api: Api<SecretBinding> = Api::namespaced(self.config.garden.clone(), namespace);
                api.read_opt(name).await?
            }
            _ => None,
        };
        let credentials_bindings = match &secret_binding {
            Some(_) => {
                let api: Api<CredentialsBinding> = Api::namespaced(self.config.garden.clone(), namespace);
                api.read_list(&ListParams::default()).await?
            }
            None => Vec::new(),
        };
        let around = Surroundings {
            profile,
            credentials_bindings: &credentials_bindings,
            secret_binding: secret_binding.as_ref(),
            settings: self.config.maintenance,
            now: self.config.clock.now(),
        };
        Ok(plan(shoot, &around))
    }

    async fn maintain(
        &self,
        api: &Api<Shoot>,
        mut shoot: Shoot,
        profile: &CloudProfileSpec,
    ) -> Result<Outcome, ReconcileError> {
        let mut plan = self.plan(&shoot, profile).await?;
        let outcome = match plan.changes_nothing(&shoot) {
            true => Outcome::Repeats,
            false => Outcome::Changed,
        };
        let told = !plan.report.is_empty();
        let failed = |last: &LastMaintenance| last.state == "Failed";
        let recovers = shoot.status.last_maintenance.as_ref().is_some_and(failed);
        if self.config.foretells && outcome == Outcome::Repeats && !told && !recovers {
            // there is no gardenlet to ask for anything
            return Ok(outcome);
        }
        if let Some(why) = &plan.images_left_out {
            tracing::error!(shoot = %ObjectRef::of(&shoot), why, "machine images are not maintained");
        }
        if let Some(binding) = &plan.new_binding {
            let bindings: Api<CredentialsBinding> =
                Api::namespaced(self.config.garden.clone(), shoot.project_namespace());
            match bindings.create(&PostParams::default(), binding).await {
                Ok(_) => {}
                Err(kube::Error::Api(refusal)) if is_refusal(refusal.code) => {
                    self.refused(api, shoot, &refusal.message).await?;
                    return Ok(Outcome::Repeats);
                }
                Err(error) => return self.failed(&shoot, error).await,
            }
        }
        if told {
            let try_only = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            match api.replace(shoot.own_name(), &try_only, &plan.shoot).await {
                Ok(_) => {}
                Err(kube::Error::Api(refusal)) if is_refusal(refusal.code) => {
                    self.refused(api, shoot, &refusal.message).await?;
                    return Ok(Outcome::Repeats);
                }
                Err(error) => return self.failed(&shoot, error).await,
            }
            let failure_reason = plan.report.failure_reason();
            let state = if failure_reason.is_some() {
                "Failed"
            } else {
                "Processing"
            };
            let last = self.last(plan.report.description(), state, failure_reason);
            (shoot, _) = apply::patch_status_locked(api, &shoot, |shoot| {
                shoot.status.last_maintenance = Some(last);
            })
            .await?;
            plan.shoot.metadata.resource_version = shoot.metadata.resource_version.clone();
        }
        let written = match api.replace(shoot.own_name(), &PostParams::default(), &plan.shoot).await {
            Ok(written) => written,
            Err(error) => return self.failed(&shoot, error).await,
        };
        apply::patch_status(api, &written, |shoot| {
            let Some(last) = &mut shoot.status.last_maintenance else {
                return;
            };
            match (told, last.state.as_str()) {
                // also of one who ended before it could say so
                (_, "Processing") => "Succeeded".clone_into(&mut last.state),
                (false, "Failed") => {
                    "Succeeded".clone_into(&mut last.state);
                    "Maintenance succeeded".clone_into(&mut last.description);
                    last.failure_reason = None;
                }
                _ => {}
            }
        })
        .await?;
        for event in plan.report.events() {
            let severity = match event.is_warning {
                true => Severity::Warning,
                false => Severity::Normal,
            };
            let about = object_reference(&shoot, &());
            self.recorder
                .publish(&about, severity, event.reason, &event.message)
                .await;
        }
        Ok(outcome)
    }

    fn last(&self, description: String, state: &str, failure_reason: Option<String>) -> LastMaintenance {
        LastMaintenance {
            description,
            state: state.to_owned(),
            failure_reason,
            triggered_time: Some(self.config.clock.time()),
        }
    }

    /// The garden does not take the shoot as maintenance would have it: that is told, and tried again in the next window.
    async fn refused(&self, api: &Api<Shoot>, shoot: Shoot, why: &str) -> Result<(), ReconcileError> {
        let reason = format!("Updates to the Shoot failed to be applied: {why}");
        let last = self.last("Maintenance failed".to_owned(), "Failed", Some(reason));
        let (shoot, _) = apply::patch_status(api, &shoot, |shoot| {
            shoot.status.last_maintenance = Some(last.clone());
        })
        .await?;
        if asked_for(&shoot) {
            apply::patch(api, &shoot, |shoot| {
                if let Some(annotations) = &mut shoot.metadata.annotations {
                    annotations.remove(annotation::OPERATION);
                }
            })
            .await?;
        }
        Ok(())
    }

    async fn failed(&self, shoot: &Shoot, error: kube::Error) -> Result<Outcome, ReconcileError> {
        let told = gardener_controller::api_error(&error).to_string();
        let about = object_reference(shoot, &());
        self.recorder
            .publish(&about, Severity::Warning, "MaintenanceFailed", &told)
            .await;
        Err(error.into())
    }
}
