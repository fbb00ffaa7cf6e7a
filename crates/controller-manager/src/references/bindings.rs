//! Bindings and the credentials they bind `[GCM-12]` `[GCM-13]`: bound credentials carry a finalizer and labels, quotas of bindings a label.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apis::constants::{finalizer, label};
use gardener_apis::core::v1beta1::{InternalSecret, Quota, SecretBinding, Shoot};
use gardener_apis::security::v1alpha1::{CredentialsBinding, WorkloadIdentity};
use gardener_controller::apply::Writable;
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::informer::Watched;
use gardener_controller::{Action, Change, Informer, ObjectRef, Queue, Read, apply};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use kube::{Api, Resource, ResourceExt};

use super::{Refusal, guard, refers, shoots};
use crate::Manager;
use crate::manager::ReconcileError;

/// On credentials and quotas of SecretBindings.
pub(crate) const SECRET_BINDING_LABEL: &str = "reference.gardener.cloud/secretbinding";
/// On credentials and quotas of CredentialsBindings.
pub(crate) const CREDENTIALS_BINDING_LABEL: &str = "reference.gardener.cloud/credentialsbinding";
/// The finalizer of Gardeners of long ago.
const LEGACY_FINALIZER: &str = "gardener.cloud/gardener";

/// What is bound: the kind, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    api_version: String,
    kind: String,
    place: ObjectRef,
}

/// A kind of binding.
trait Binding: Watched + Writable + Resource<Scope = NamespaceResourceScope, DynamicType = ()> {
    /// The kind's name in messages.
    const KIND: &'static str;
    /// The controller's name.
    const CONTROLLER: &'static str;
    /// On what is bound.
    const FINALIZER: &'static str;
    /// On what is bound and on quotas.
    const LABEL: &'static str;

    /// What is bound; none if the reference names nothing.
    fn bound(&self) -> Option<Bound>;
    /// The quotas of shoots that use the binding.
    fn quotas(&self) -> &[ObjectReference];
    /// The types of the provider.
    fn providers(&self) -> Vec<String>;
    /// The name of the binding of this kind that a shoot uses.
    fn used_by(shoot: &Shoot) -> Option<&String>;
}

impl Binding for SecretBinding {
    const KIND: &'static str = "SecretBinding";
    const CONTROLLER: &'static str = "secretbinding";
    const FINALIZER: &'static str = finalizer::SECRET_BINDING;
    const LABEL: &'static str = SECRET_BINDING_LABEL;

    fn bound(&self) -> Option<Bound> {
        let given = self.secret_ref.namespace.clone().filter(|own| !own.is_empty());
        let namespace = given.or_else(|| self.namespace())?;
        Some(Bound {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            place: ObjectRef::new(namespace, self.secret_ref.name.clone()?),
        })
    }

    fn quotas(&self) -> &[ObjectReference] {
        &self.quotas
    }

    fn providers(&self) -> Vec<String> {
        let types = self.provider.iter().flat_map(|own| own.r#type.split(','));
        types.filter(|own| !own.is_empty()).map(str::to_owned).collect()
    }

    fn used_by(shoot: &Shoot) -> Option<&String> {
        shoot.spec.secret_binding_name.as_ref()
    }
}

impl Binding for CredentialsBinding {
    const KIND: &'static str = "CredentialsBinding";
    const CONTROLLER: &'static str = "credentialsbinding";
    const FINALIZER: &'static str = finalizer::CREDENTIALS_BINDING;
    const LABEL: &'static str = CREDENTIALS_BINDING_LABEL;

    fn bound(&self) -> Option<Bound> {
        let reference = &self.credentials_ref;
        let given = reference.namespace.clone().filter(|own| !own.is_empty());
        let namespace = given.or_else(|| self.namespace())?;
        Some(Bound {
            api_version: reference.api_version.clone()?,
            kind: reference.kind.clone()?,
            place: ObjectRef::new(namespace, reference.name.clone()?),
        })
    }

    fn quotas(&self) -> &[ObjectReference] {
        &self.quotas
    }

    fn providers(&self) -> Vec<String> {
        vec![self.provider.r#type.clone()]
    }

    fn used_by(shoot: &Shoot) -> Option<&String> {
        shoot.spec.credentials_binding_name.as_ref()
    }
}

pub(super) async fn run(manager: &Manager) {
    let controllers = &manager.config.controllers;
    tokio::join!(
        follow::<SecretBinding>(manager, controllers.secret_binding.concurrent_syncs),
        follow::<CredentialsBinding>(manager, controllers.credentials_binding.concurrent_syncs),
    );
}

struct Reconciler<B> {
    manager: Manager,
    bindings: Informer<B>,
    shoots: Informer<Shoot>,
    recorder: Recorder,
}

async fn follow<B: Binding>(manager: &Manager, concurrent_syncs: usize) {
    let (bindings, shoots) = (manager.informer::<B>(), manager.informer::<Shoot>());
    let queue: Queue<ObjectRef> = Queue::new();
    bindings.feed(&queue, |binding| [ObjectRef::of(binding)]);
    {
        let queue = queue.clone();
        shoots.on_change(move |change| {
            if let Change::Deleted(shoot) = change {
                let used = B::used_by(shoot).map(|name| ObjectRef::new(shoot.project_namespace(), name));
                used.into_iter().for_each(|key| queue.add(key));
            }
        });
    }
    tokio::join!(bindings.synced(), shoots.synced());
    let own = Arc::new(Reconciler {
        recorder: manager.recorder(B::CONTROLLER),
        manager: manager.clone(),
        bindings,
        shoots,
    });
    let controller = manager.controller(B::CONTROLLER, concurrent_syncs, queue);
    let reconcile = move |key: ObjectRef| {
        let own = own.clone();
        async move { own.reconcile(&key).await }
    };
    controller.run(manager.stop.clone(), reconcile).await;
}

impl<B: Binding> Reconciler<B> {
    async fn reconcile(&self, key: &ObjectRef) -> Result<Action, ReconcileError> {
        let api: Api<B> = self.manager.within(&key.namespace);
        let Some(binding) = api.read_opt(&key.name).await? else {
            return Ok(Action::Done);
        };
        let going = binding.meta().deletion_timestamp.is_some();
        if going && !apply::has_finalizer(&binding, finalizer::GARDENER) {
            return Ok(Action::Done);
        }
        let using = shoots(&self.shoots, |shoot| {
            shoot.project_namespace() == key.namespace && B::used_by(shoot) == Some(&key.name)
        });
        if going && using.is_empty() {
            self.let_go(&binding, key).await?;
        }
        let refusal = |_: &B| {
            let message = format!(
                "Cannot delete {}, because the following Shoots are still referencing it: [{}]",
                B::KIND,
                using.join(" ")
            );
            (!using.is_empty()).then(|| Refusal::told(Severity::Warning, message))
        };
        if let Some(binding) = guard(&api, binding, finalizer::GARDENER, &self.recorder, refusal).await? {
            self.mark(&binding).await?;
        }
        Ok(Action::Done)
    }

    /// Puts finalizer and labels on what is bound, and the label on quotas.
    async fn mark(&self, binding: &B) -> Result<(), ReconcileError> {
        let Some(bound) = binding.bound() else {
            return Ok(());
        };
        let (providers, name) = (binding.providers(), &bound.place.name);
        match bound.kind.as_str() {
            "InternalSecret" => {
                mark(
                    &self.within::<InternalSecret>(&bound),
                    name,
                    &providers,
                    B::FINALIZER,
                    B::LABEL,
                )
                .await?
            }
            // their label is one of admission
            "WorkloadIdentity" => {
                mark(
                    &self.within::<WorkloadIdentity>(&bound),
                    name,
                    &[],
                    B::FINALIZER,
                    B::LABEL,
                )
                .await?
            }
            _ => mark(&self.within::<Secret>(&bound), name, &providers, B::FINALIZER, B::LABEL).await?,
        }
        for quota in binding.quotas() {
            let api: Api<Quota> = self.manager.within(quota.namespace.as_deref().unwrap_or_default());
            let quota = api.read(quota.name.as_deref().unwrap_or_default()).await?;
            apply::patch(&api, &quota, |quota| {
                quota
                    .labels_mut()
                    .entry(B::LABEL.to_owned())
                    .or_insert_with(|| "true".to_owned());
            })
            .await?;
        }
        Ok(())
    }

    /// Frees what no other binding of this kind binds.
    async fn let_go(&self, binding: &B, key: &ObjectRef) -> Result<(), ReconcileError> {
        let bindings = self.bindings.list();
        let others = || bindings.iter().filter(|own| ObjectRef::of(own.as_ref()) != *key);
        let bound = binding.bound();
        let bound_by_others = others()
            .filter(|own| own.meta().deletion_timestamp.is_none())
            .any(|own| own.bound() == bound);
        if let Some(bound) = bound.filter(|_| !bound_by_others) {
            let name = &bound.place.name;
            match bound.kind.as_str() {
                "InternalSecret" => {
                    unmark(&self.within::<InternalSecret>(&bound), name, B::FINALIZER, B::LABEL).await?
                }
                "WorkloadIdentity" => {
                    unmark(&self.within::<WorkloadIdentity>(&bound), name, B::FINALIZER, B::LABEL).await?
                }
                _ => unmark(&self.within::<Secret>(&bound), name, B::FINALIZER, B::LABEL).await?,
            }
        }
        for reference in binding.quotas() {
            let namespace = reference.namespace.clone().unwrap_or_default();
            let quota = ObjectRef::new(namespace, reference.name.clone().unwrap_or_default());
            if others().any(|own| refers(own.quotas(), &quota)) {
                continue;
            }
            let api: Api<Quota> = self.manager.within(&quota.namespace);
            if let Some(quota) = api.read_opt(&quota.name).await? {
                apply::patch_locked(&api, &quota, |quota| drop(quota.labels_mut().remove(B::LABEL))).await?;
            }
        }
        Ok(())
    }

    fn within<C: Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(&self, bound: &Bound) -> Api<C> {
        self.manager.within(&bound.place.namespace)
    }
}

async fn mark<C>(
    api: &Api<C>,
    name: &str,
    providers: &[String],
    own_finalizer: &str,
    own_label: &str,
) -> Result<(), ReconcileError>
where
    C: Writable + Resource<DynamicType = ()>,
{
    let credentials = api.read(name).await?;
    apply::patch_locked(api, &credentials, |credentials| {
        let labels = credentials.meta_mut().labels.get_or_insert_with(BTreeMap::new);
        let providers = providers
            .iter()
            .map(|own| format!("{}{own}", label::SHOOT_PROVIDER_PREFIX));
        for label in providers.chain([own_label.to_owned()]) {
            labels.entry(label).or_insert_with(|| "true".to_owned());
        }
        let finalizers = credentials.finalizers_mut();
        finalizers.retain(|own| own != LEGACY_FINALIZER);
        if !finalizers.iter().any(|own| own == own_finalizer) {
            finalizers.push(own_finalizer.to_owned());
        }
    })
    .await?;
    Ok(())
}

/// Takes finalizer and labels off. The provider's label is put there again by admission if another binding needs it.
async fn unmark<C>(api: &Api<C>, name: &str, own_finalizer: &str, own_label: &str) -> Result<(), ReconcileError>
where
    C: Writable + Resource<DynamicType = ()>,
{
    let Some(credentials) = api.read_opt(name).await? else {
        return Ok(());
    };
    let labels = [SECRET_BINDING_LABEL, CREDENTIALS_BINDING_LABEL];
    let bound_otherwise = credentials
        .labels()
        .keys()
        .any(|own| labels.contains(&own.as_str()) && own != own_label);
    let freed = apply::patch_locked(api, &credentials, |credentials| {
        if let Some(labels) = &mut credentials.meta_mut().labels {
            labels.remove(own_label);
            labels.retain(|own, _| bound_otherwise || !own.starts_with(label::SHOOT_PROVIDER_PREFIX));
        }
        let finalizers = credentials.finalizers_mut();
        finalizers.retain(|own| own != own_finalizer && own != LEGACY_FINALIZER);
    });
    crate::manager::or_gone(freed.await)?;
    Ok(())
}
