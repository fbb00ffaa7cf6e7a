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
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, apply};
use gardener_rules::maintenance::{Plan, Surroundings, plan};
use gardener_rules::maintenance_window::Window;
use kube::Api;
use kube::api::{ListParams, PostParams};
use tokio_util::sync::CancellationToken;

use crate::{CONCURRENCY, Config, ReconcileError};

struct Maintenance {
    config: Config,
    recorder: Recorder,
}

fn asked_for(shoot: &Shoot) -> bool {
    shoot.operations(annotation::OPERATION).contains(&operation::MAINTAIN)
}

pub(super) async fn run(config: Config, shoots: Informer<Shoot>, stop: CancellationToken) {
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
    let recorder = Recorder::new(
        config.garden.clone(),
        config.clock.clone(),
        "shoot-maintenance-controller",
    );
    let maintenance = Arc::new(Maintenance { config, recorder });
    Controller::new("shoot-maintenance", CONCURRENCY, queue)
        .run(stop, move |key| {
            let maintenance = maintenance.clone();
            async move { maintenance.reconcile(&key).await }
        })
        .await;
}

impl Maintenance {
    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, ReconcileError> {
        let api: Api<Shoot> = Api::namespaced(self.config.garden.clone(), &key.namespace);
        let Some(shoot) = api.get_opt(&key.name).await?.filter(|shoot| !shoot.in_deletion()) else {
            return Ok(Action::Done);
        };
        let window = Window::of(&shoot);
        if asked_for(&shoot) || window.contains(self.config.clock.now()) {
            self.maintain(&api, shoot).await?;
        }
        let share = self.config.chance.fraction();
        let wait = window.until_next(self.config.clock.now(), false, share);
        Ok(Action::RequeueAfter(Duration::try_from(wait).unwrap_or_default()))
    }

    /// The profile whose versions count: of a namespaced one what it makes together with its parent.
    async fn profile(&self, shoot: &Shoot) -> Result<CloudProfileSpec, ReconcileError> {
        let client = || self.config.garden.clone();
        let Some(reference) = shoot.spec.cloud_profile_reference() else {
            return Err(ReconcileError::Blocked("the shoot names no cloud profile".to_owned()));
        };
        if reference.kind == "NamespacedCloudProfile" {
            let api: Api<NamespacedCloudProfile> = Api::namespaced(client(), shoot.project_namespace());
            return Ok(api.get(&reference.name).await?.status.cloud_profile_spec);
        }
        let api: Api<CloudProfile> = Api::all(client());
        Ok(api.get(&reference.name).await?.spec)
    }

    async fn plan(&self, shoot: &Shoot) -> Result<Plan, ReconcileError> {
        let profile = self.profile(shoot).await?;
        let namespace = shoot.project_namespace();
        let secret_binding = match &shoot.spec.secret_binding_name {
            Some(name) if !name.is_empty() && shoot.spec.credentials_binding_name.is_none() => {
                let api: Api<SecretBinding> = Api::namespaced(self.config.garden.clone(), namespace);
                api.get_opt(name).await?
            }
            _ => None,
        };
        let credentials_bindings = match &secret_binding {
            Some(_) => {
                let api: Api<CredentialsBinding> = Api::namespaced(self.config.garden.clone(), namespace);
                api.list(&ListParams::default()).await?.items
            }
            None => Vec::new(),
        };
        let around = Surroundings {
            profile: &profile,
            credentials_bindings: &credentials_bindings,
            secret_binding: secret_binding.as_ref(),
            settings: self.config.maintenance,
            now: self.config.clock.now(),
        };
        Ok(plan(shoot, &around))
    }

    async fn maintain(&self, api: &Api<Shoot>, mut shoot: Shoot) -> Result<(), ReconcileError> {
        let mut plan = self.plan(&shoot).await?;
        if let Some(why) = &plan.images_left_out {
            tracing::error!(shoot = %ObjectRef::of(&shoot), why, "machine images are not maintained");
        }
        if let Some(binding) = &plan.new_binding {
            let bindings: Api<CredentialsBinding> =
                Api::namespaced(self.config.garden.clone(), shoot.project_namespace());
            bindings.create(&PostParams::default(), binding).await?;
        }
        let told = !plan.report.is_empty();
        if told {
            let try_only = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            match api.replace(shoot.own_name(), &try_only, &plan.shoot).await {
                Ok(_) => {}
                Err(kube::Error::Api(refusal)) if matches!(refusal.code, 400 | 403 | 422) => {
                    return self.refused(api, shoot, &refusal.message).await;
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
                (true, "Processing") => "Succeeded".clone_into(&mut last.state),
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
        Ok(())
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

    async fn failed(&self, shoot: &Shoot, error: kube::Error) -> Result<(), ReconcileError> {
        let told = gardener_controller::api_error(&error).to_string();
        let about = object_reference(shoot, &());
        self.recorder
            .publish(&about, Severity::Warning, "MaintenanceFailed", &told)
            .await;
        Err(error.into())
    }
}
