//! Finalizers on what others refer to `[GCM-10]`–`[GCM-14]`: an object stays as long as somebody uses it.

mod bindings;

use std::sync::Arc;

use gardener_apis::constants::finalizer;
use gardener_apis::core::v1::ControllerDeployment;
use gardener_apis::core::v1beta1::{
    CloudProfile, ControllerRegistration, ExposureClass, NamespacedCloudProfile, Quota, SecretBinding, Shoot,
};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_controller::apply::Writable;
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::informer::Watched;
use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Controller, Informer, ObjectRef, Queue, apply};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::{CONCURRENCY, Config, ReconcileError};

/// What may refer to something.
pub(crate) struct Users {
    pub(crate) shoots: Informer<Shoot>,
    pub(crate) secret_bindings: Informer<SecretBinding>,
    pub(crate) credentials_bindings: Informer<CredentialsBinding>,
    registrations: Informer<ControllerRegistration>,
    namespaced_profiles: Informer<NamespacedCloudProfile>,
}

fn informer<K: Watched + kube::Resource<DynamicType = ()>>(config: &Config, stop: &CancellationToken) -> Informer<K> {
    Informer::start(Api::all(config.garden.clone()), watcher::Config::default(), stop)
}

pub(crate) async fn run(config: Config, stop: CancellationToken) {
    let users = Arc::new(Users {
        shoots: informer(&config, &stop),
        secret_bindings: informer(&config, &stop),
        credentials_bindings: informer(&config, &stop),
        registrations: informer(&config, &stop),
        namespaced_profiles: informer(&config, &stop),
    });
    tokio::join!(
        users.shoots.synced(),
        users.secret_bindings.synced(),
        users.credentials_bindings.synced(),
        users.registrations.synced(),
        users.namespaced_profiles.synced()
    );
    tokio::join!(
        guard::<ExposureClass>(
            &config,
            &users,
            &stop,
            "exposureclass",
            finalizer::GARDENER,
            |class, users| {
                let name = class.name_any();
                shoots(users, |shoot| shoot.spec.exposure_class_name.as_deref() == Some(&name))
            }
        ),
        guard::<ControllerDeployment>(
            &config,
            &users,
            &stop,
            "controllerdeployment",
            finalizer::CONTROLLER_DEPLOYMENT,
            |deployment, users| {
                let name = deployment.name_any();
                let uses = |own: &ControllerRegistration| {
                    own.spec
                        .deployment
                        .iter()
                        .flat_map(|own| &own.deployment_refs)
                        .any(|own| own.name == name)
                };
                users
                    .registrations
                    .list()
                    .iter()
                    .filter(|own| uses(own))
                    .map(|own| own.name_any())
                    .collect()
            }
        ),
        guard::<CloudProfile>(
            &config,
            &users,
            &stop,
            "cloudprofile",
            finalizer::GARDENER,
            |profile, users| {
                let name = profile.name_any();
                let children = users.namespaced_profiles.list();
                let mut used: Vec<String> = children
                    .iter()
                    .filter(|own| own.spec.parent.name == name)
                    .map(|own| format!("{}/{}", own.namespace().unwrap_or_default(), own.name_any()))
                    .collect();
                used.extend(shoots(users, |shoot| {
                    shoot
                        .spec
                        .cloud_profile_reference()
                        .is_some_and(|own| own.kind != "NamespacedCloudProfile" && own.name == name)
                }));
                used
            }
        ),
        guard::<Quota>(&config, &users, &stop, "quota", finalizer::GARDENER, |quota, users| {
            let (name, namespace) = (quota.name_any(), quota.namespace().unwrap_or_default());
            let refers = |quotas: &[k8s_openapi::api::core::v1::ObjectReference]| {
                quotas
                    .iter()
                    .any(|own| own.name.as_deref() == Some(&name) && own.namespace.as_deref() == Some(&namespace))
            };
            let secret = users.secret_bindings.list();
            let credentials = users.credentials_bindings.list();
            let secret = secret
                .iter()
                .filter(|own| refers(&own.quotas))
                .map(|own| own.name_any());
            let credentials = credentials
                .iter()
                .filter(|own| refers(&own.quotas))
                .map(|own| own.name_any());
            secret.chain(credentials).collect()
        }),
        bindings::run(&config, &users, &stop),
    );
}

/// Shoots that use something, as `namespace/name`.
fn shoots(users: &Users, uses: impl Fn(&Shoot) -> bool) -> Vec<String> {
    users
        .shoots
        .list()
        .iter()
        .filter(|shoot| uses(shoot))
        .map(|shoot| format!("{}/{}", shoot.project_namespace(), shoot.own_name()))
        .collect()
}

/// Keeps a finalizer on every object of a kind, and takes it off in deletion once nobody uses the object.
async fn guard<K>(
    config: &Config,
    users: &Arc<Users>,
    stop: &CancellationToken,
    name: &'static str,
    own_finalizer: &'static str,
    used_by: fn(&K, &Users) -> Vec<String>,
) where
    K: Watched + Writable + kube::Resource<DynamicType = ()>,
{
    let objects: Informer<K> = informer(config, stop);
    let queue: Queue<ObjectRef> = Queue::new();
    objects.feed(&queue, |object| [ObjectRef::of(object)]);
    {
        // whoever uses it may be what a deletion waits for
        let (queue, objects) = (queue.clone(), objects.clone());
        users.shoots.on_change(move |change| {
            if let gardener_controller::Change::Deleted(_) = change {
                for object in objects
                    .list()
                    .iter()
                    .filter(|object| object.meta().deletion_timestamp.is_some())
                {
                    queue.add(ObjectRef::of(object.as_ref()));
                }
            }
        });
    }
    objects.synced().await;
    let recorder = Recorder::new(
        config.garden.clone(),
        config.clock.clone(),
        format!("{name}-controller"),
    );
    let (client, users) = (config.garden.clone(), users.clone());
    Controller::new(name, CONCURRENCY, queue)
        .run(stop.clone(), move |key| {
            let (objects, users, recorder, client) = (objects.clone(), users.clone(), recorder.clone(), client.clone());
            async move {
                let Some(object) = objects.get(&key) else {
                    return Ok(Action::Done);
                };
                let resource = kube::core::ApiResource::erase::<K>(&());
                let api: Api<kube::core::DynamicObject> = if key.namespace.is_empty() {
                    Api::all_with(client, &resource)
                } else {
                    Api::namespaced_with(client, &key.namespace, &resource)
                };
                let Some(current) = api.get_opt(&key.name).await? else {
                    return Ok(Action::Done);
                };
                if current.metadata.deletion_timestamp.is_none() {
                    apply::add_finalizer(&api, &current, own_finalizer).await?;
                    return Ok(Action::Done);
                }
                let used = used_by(&object, &users);
                if used.is_empty() {
                    apply::remove_finalizer(&api, &current, own_finalizer).await?;
                    return Ok(Action::Done);
                }
                let message = format!(
                    "Cannot delete {name}, because the following objects are still referencing it: [{}]",
                    used.join(" ")
                );
                recorder
                    .publish(
                        &object_reference(object.as_ref(), &()),
                        Severity::Warning,
                        "ResourceReferenced",
                        &message,
                    )
                    .await;
                Err(ReconcileError::Blocked(message))
            }
        })
        .await;
}
