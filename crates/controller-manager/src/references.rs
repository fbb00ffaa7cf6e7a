//! Finalizers on what others refer to `[GCM-10]`–`[GCM-13]`: an object stays as long as somebody uses it. CloudProfiles, which have a status
//! besides, are in [`crate::cloudprofile`] and [`crate::namespacedcloudprofile`].

mod bindings;

use gardener_apis::constants::finalizer;
use gardener_apis::core::v1::ControllerDeployment;
use gardener_apis::core::v1beta1::{ControllerRegistration, ExposureClass, Quota, SecretBinding, Shoot};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_controller::apply::Writable;
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::informer::Watched;
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, ResourceExt};

use crate::Manager;
use crate::manager::ReconcileError;

pub(crate) use bindings::{CREDENTIALS_BINDING_LABEL, SECRET_BINDING_LABEL};

/// Why an object cannot go.
pub(crate) struct Refusal {
    /// The event that says so, if there is one.
    pub event: Option<(Severity, String)>,
    /// The error of the reconciliation.
    pub error: String,
}

impl Refusal {
    /// A refusal whose event and error say the same.
    pub fn told(severity: Severity, message: String) -> Self {
        Self {
            event: Some((severity, message.clone())),
            error: message,
        }
    }
}

/// Keeps a finalizer on an object; in deletion takes it off, unless somebody refuses. Answers with the object while it lives.
///
/// # Errors
/// What the garden says, and the refusal.
pub(crate) async fn guard<K>(
    api: &Api<K>,
    object: K,
    own_finalizer: &str,
    recorder: &Recorder,
    refusal: impl FnOnce(&K) -> Option<Refusal>,
) -> Result<Option<K>, ReconcileError>
where
    K: Writable + kube::Resource<DynamicType = ()>,
{
    if object.meta().deletion_timestamp.is_none() {
        let (object, _) = apply::add_finalizer(api, &object, own_finalizer).await?;
        return Ok(Some(object));
    }
    if !apply::has_finalizer(&object, own_finalizer) {
        return Ok(None);
    }
    let Some(refusal) = refusal(&object) else {
        apply::remove_finalizer(api, &object, own_finalizer).await?;
        return Ok(None);
    };
    if let Some((severity, message)) = refusal.event {
        let about = object_reference(&object, &());
        recorder.publish(&about, severity, "ResourceReferenced", &message).await;
    }
    Err(ReconcileError::Blocked(refusal.error))
}

/// Lets objects in deletion come again when one of those that may use them is gone.
pub(crate) fn retry_on_deletion<K, U>(objects: &Informer<K>, queue: &Queue<ObjectRef>, users: &Informer<U>)
where
    K: Watched,
    U: Watched,
{
    let (objects, queue) = (objects.clone(), queue.clone());
    users.on_change(move |change| {
        if let Change::Deleted(_) = change {
            let all = objects.list();
            let going = all.iter().filter(|own| own.meta().deletion_timestamp.is_some());
            going.for_each(|own| queue.add(ObjectRef::of(own.as_ref())));
        }
    });
}

/// Shoots that use something, as `namespace/name`.
pub(crate) fn shoots(shoots: &Informer<Shoot>, uses: impl Fn(&Shoot) -> bool) -> Vec<String> {
    let all = shoots.list();
    let using = all.iter().filter(|shoot| uses(shoot));
    using.map(|shoot| ObjectRef::of(shoot.as_ref()).to_string()).collect()
}

pub(crate) async fn run(manager: &Manager) {
    tokio::join!(
        exposure_classes(manager),
        controller_deployments(manager),
        quotas(manager),
        bindings::run(manager),
    );
}

/// [GCM-11].
async fn exposure_classes(manager: &Manager) {
    let (classes, users) = (manager.informer::<ExposureClass>(), manager.informer::<Shoot>());
    let queue: Queue<ObjectRef> = Queue::new();
    classes.feed(&queue, |class| [ObjectRef::of(class)]);
    retry_on_deletion(&classes, &queue, &users);
    tokio::join!(classes.synced(), users.synced());
    let (recorder, own) = (manager.recorder("exposureclass"), manager.clone());
    let syncs = manager.config.controllers.exposure_class.concurrent_syncs;
    let reconcile = move |key: ObjectRef| {
        let (api, recorder, users) = (own.all::<ExposureClass>(), recorder.clone(), users.clone());
        async move {
            let Some(class) = api.read_opt(&key.name).await? else {
                return Ok(Action::Done);
            };
            let refusal = |class: &ExposureClass| {
                let name = class.name_any();
                let using = shoots(&users, |shoot| shoot.spec.exposure_class_name.as_deref() == Some(&name));
                let what = "delete ExposureClass, because it is still associated by the following Shoots";
                let list = using.join(" ");
                (!using.is_empty()).then(|| Refusal {
                    event: Some((Severity::Normal, format!("Cannot {what}: [{list}]"))),
                    error: format!("cannot {what}: [{list}]"),
                })
            };
            guard(&api, class, finalizer::GARDENER, &recorder, refusal).await?;
            Ok::<_, ReconcileError>(Action::Done)
        }
    };
    let controller = manager.controller("exposureclass", syncs, queue);
    controller.run(manager.stop.clone(), reconcile).await;
}

/// [GCM-11].
async fn controller_deployments(manager: &Manager) {
    let deployments = manager.informer::<ControllerDeployment>();
    let users = manager.informer::<ControllerRegistration>();
    let queue: Queue<ObjectRef> = Queue::new();
    deployments.feed(&queue, |deployment| [ObjectRef::of(deployment)]);
    retry_on_deletion(&deployments, &queue, &users);
    tokio::join!(deployments.synced(), users.synced());
    let (recorder, own) = (manager.recorder("controllerdeployment"), manager.clone());
    let syncs = manager.config.controllers.controller_deployment.concurrent_syncs;
    let reconcile = move |key: ObjectRef| {
        let (api, recorder, users) = (own.all::<ControllerDeployment>(), recorder.clone(), users.clone());
        async move {
            let Some(deployment) = api.read_opt(&key.name).await? else {
                return Ok(Action::Done);
            };
            let refusal = |deployment: &ControllerDeployment| {
                let name = deployment.name_any();
                let refers = |own: &ControllerRegistration| {
                    let deployments = own.spec.deployment.iter().flat_map(|own| &own.deployment_refs);
                    deployments.into_iter().any(|own| own.name == name)
                };
                let all = users.list();
                let using: Vec<String> = all.iter().filter(|own| refers(own)).map(|own| own.name_any()).collect();
                (!using.is_empty()).then(|| Refusal {
                    event: None,
                    error: format!(
                        "cannot remove finalizer of ControllerDeployment {name:?} because still found ControllerRegistrations: [{}]",
                        using.join(" ")
                    ),
                })
            };
            guard(&api, deployment, finalizer::CONTROLLER_DEPLOYMENT, &recorder, refusal).await?;
            Ok::<_, ReconcileError>(Action::Done)
        }
    };
    let controller = manager.controller("controllerdeployment", syncs, queue);
    controller.run(manager.stop.clone(), reconcile).await;
}

/// [GCM-10].
async fn quotas(manager: &Manager) {
    let quotas = manager.informer::<Quota>();
    let secret = manager.informer::<SecretBinding>();
    let credentials = manager.informer::<CredentialsBinding>();
    let queue: Queue<ObjectRef> = Queue::new();
    quotas.feed(&queue, |quota| [ObjectRef::of(quota)]);
    retry_on_deletion(&quotas, &queue, &secret);
    retry_on_deletion(&quotas, &queue, &credentials);
    tokio::join!(quotas.synced(), secret.synced(), credentials.synced());
    let (recorder, own) = (manager.recorder("quota"), manager.clone());
    let syncs = manager.config.controllers.quota.concurrent_syncs;
    let reconcile = move |key: ObjectRef| {
        let (api, recorder) = (own.within::<Quota>(&key.namespace), recorder.clone());
        let (secret, credentials) = (secret.clone(), credentials.clone());
        async move {
            let Some(quota) = api.read_opt(&key.name).await? else {
                return Ok(Action::Done);
            };
            let refusal = |_: &Quota| {
                let secret = users(&secret.list(), &key, |binding| &binding.quotas);
                let credentials = users(&credentials.list(), &key, |binding| &binding.quotas);
                let what = format!(
                    "delete Quota, because the following resources are still referencing it: SecretBindings - [{}], CredentialsBindings - [{}]",
                    secret.join(" "),
                    credentials.join(" ")
                );
                (!secret.is_empty() || !credentials.is_empty()).then(|| Refusal {
                    event: Some((Severity::Normal, format!("Cannot {what}"))),
                    error: format!("cannot {what}"),
                })
            };
            guard(&api, quota, finalizer::GARDENER, &recorder, refusal).await?;
            Ok::<_, ReconcileError>(Action::Done)
        }
    };
    let controller = manager.controller("quota", syncs, queue);
    controller.run(manager.stop.clone(), reconcile).await;
}

/// Whether one of these references is to a quota.
fn refers(quotas: &[ObjectReference], quota: &ObjectRef) -> bool {
    quotas
        .iter()
        .any(|own| own.name.as_deref() == Some(&quota.name) && own.namespace.as_deref() == Some(&quota.namespace))
}

/// The bindings that refer to a quota, as `namespace/name`.
fn users<B: Watched + kube::Resource>(
    bindings: &[std::sync::Arc<B>],
    quota: &ObjectRef,
    quotas: impl Fn(&B) -> &Vec<ObjectReference>,
) -> Vec<String> {
    let using = bindings.iter().filter(|binding| refers(quotas(binding), quota));
    using
        .map(|binding| ObjectRef::of(binding.as_ref()).to_string())
        .collect()
}
