//! Secrets and config maps that shoots refer to stay while they do `[GCM-17]`.

use std::collections::BTreeSet;
use std::sync::Arc;

use gardener_apis::constants::finalizer;
use gardener_apis::core::v1beta1::Shoot;
use gardener_controller::apply::Writable;
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, apply};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::{CONCURRENCY, Config, ReconcileError};

/// Kind and name of something in the shoot's namespace.
type Referenced = (&'static str, String);

/// What a shoot refers to.
fn references(shoot: &Shoot) -> BTreeSet<Referenced> {
    let mut found: BTreeSet<Referenced> = BTreeSet::new();
    let mut add = |kind: &str, name: &str| {
        let kind = match kind {
            "Secret" => "Secret",
            "ConfigMap" => "ConfigMap",
            _ => return,
        };
        if !name.is_empty() {
            found.insert((kind, name.to_owned()));
        }
    };
    for provider in shoot.spec.dns.iter().flat_map(|dns| &dns.providers) {
        add("Secret", provider.secret_name.as_deref().unwrap_or_default());
        if let Some(reference) = &provider.credentials_ref {
            add(&reference.kind, &reference.name);
        }
    }
    for resource in &shoot.spec.resources {
        add(&resource.resource_ref.kind, &resource.resource_ref.name);
    }
    if let Some(server) = &shoot.spec.kubernetes.kube_api_server {
        let policy = server
            .audit_config
            .as_ref()
            .and_then(|own| own.audit_policy.as_ref())
            .and_then(|own| own.config_map_ref.as_ref());
        add(
            "ConfigMap",
            policy.and_then(|own| own.name.as_deref()).unwrap_or_default(),
        );
        for plugin in &server.admission_plugins {
            add("Secret", plugin.kubeconfig_secret_name.as_deref().unwrap_or_default());
        }
        add(
            "ConfigMap",
            server
                .structured_authentication
                .as_ref()
                .map_or("", |own| &own.config_map_name),
        );
        if let Some(authorization) = &server.structured_authorization {
            add("ConfigMap", &authorization.config_map_name);
            for kubeconfig in &authorization.kubeconfigs {
                add("Secret", &kubeconfig.secret_name);
            }
        }
    }
    found
}

pub(super) async fn run(config: Config, shoots: Informer<Shoot>, stop: CancellationToken) {
    let queue: Queue<ObjectRef> = Queue::new();
    shoots.feed_if(
        &queue,
        |change| match change {
            Change::Applied { old: Some(old), new } => {
                old.spec != new.spec || old.metadata.finalizers != new.metadata.finalizers
            }
            _ => true,
        },
        |shoot| [ObjectRef::of(shoot)],
    );
    let shared = Arc::new((config, shoots));
    Controller::new("shoot-reference", CONCURRENCY, queue)
        .run(stop, move |key| {
            let shared = shared.clone();
            async move { reconcile(&shared.0, &shared.1, &key).await }
        })
        .await;
}

async fn reconcile(config: &Config, shoots: &Informer<Shoot>, key: &ObjectRef) -> Result<Action, ReconcileError> {
    let api: Api<Shoot> = Api::namespaced(config.garden.clone(), &key.namespace);
    let Some(shoot) = api.get_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    // in deletion the protection lasts until gardenlet is through
    let gone = shoot.metadata.deletion_timestamp.is_some() && !apply::has_finalizer(&shoot, finalizer::GARDENER);
    let own = if gone { BTreeSet::new() } else { references(&shoot) };
    let mut wanted = own.clone();
    for other in shoots
        .list_namespace(&key.namespace)
        .iter()
        .filter(|other| other.own_name() != key.name)
    {
        wanted.extend(references(other));
    }
    for (kind, name) in &own {
        match *kind {
            "Secret" => protect::<Secret>(config, &key.namespace, name).await?,
            _ => protect::<ConfigMap>(config, &key.namespace, name).await?,
        }
    }
    let keeps: BTreeSet<&str> = wanted
        .iter()
        .filter(|(kind, _)| *kind == "Secret")
        .map(|(_, name)| name.as_str())
        .collect();
    release::<Secret>(config, &key.namespace, &keeps).await?;
    let keeps: BTreeSet<&str> = wanted
        .iter()
        .filter(|(kind, _)| *kind == "ConfigMap")
        .map(|(_, name)| name.as_str())
        .collect();
    release::<ConfigMap>(config, &key.namespace, &keeps).await?;
    if own.is_empty() {
        apply::remove_finalizer(&api, &shoot, finalizer::REFERENCE_PROTECTION).await?;
    } else {
        apply::add_finalizer(&api, &shoot, finalizer::REFERENCE_PROTECTION).await?;
    }
    Ok(Action::Done)
}

async fn protect<K>(config: &Config, namespace: &str, name: &str) -> Result<(), ReconcileError>
where
    K: Writable + Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    let api: Api<K> = Api::namespaced(config.garden.clone(), namespace);
    if let Some(object) = api.get_opt(name).await? {
        apply::add_finalizer(&api, &object, finalizer::REFERENCE_PROTECTION).await?;
    }
    Ok(())
}

async fn release<K>(config: &Config, namespace: &str, keeps: &BTreeSet<&str>) -> Result<(), ReconcileError>
where
    K: Writable + Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    let api: Api<K> = Api::namespaced(config.garden.clone(), namespace);
    for object in api.list(&kube::api::ListParams::default()).await?.items {
        if apply::has_finalizer(&object, finalizer::REFERENCE_PROTECTION) && !keeps.contains(object.name_any().as_str())
        {
            apply::remove_finalizer(&api, &object, finalizer::REFERENCE_PROTECTION).await?;
        }
    }
    Ok(())
}
