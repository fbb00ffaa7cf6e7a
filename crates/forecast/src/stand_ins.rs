//! What admission looks for and an inventory does not have: it is there in the copy, by name and without content. No Secret is read anywhere.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::{annotation, label, role};
use gardener_apis::core::v1beta1::Shoot;
use gardener_rules::registrations::needs_of_shoot;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};

use crate::Inventory;

/// The objects that stand in for others, for these shoots.
pub(crate) fn stand_ins(inventory: &Inventory, shoots: &[Shoot]) -> Vec<Value> {
    let mut objects = projects(inventory, shoots);
    objects.extend(seeds(inventory, shoots));
    objects.extend(registration(inventory, shoots));
    objects.extend(bindings(inventory, shoots));
    objects.extend(managed_issuer(shoots));
    let mut namespaces: BTreeSet<String> = objects
        .iter()
        .filter_map(|object| object.at("/metadata/namespace")?.as_str().map(str::to_owned))
        .collect();
    namespaces.extend(shoots.iter().map(|shoot| shoot.project_namespace().to_owned()));
    objects.extend(namespaces.into_iter().map(|name| {
        json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        })
    }));
    objects
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

/// A project for each namespace with shoots.
fn projects(inventory: &Inventory, shoots: &[Shoot]) -> Vec<Value> {
    let known: BTreeSet<&str> = inventory.projects.iter().map(|own| text(&own.spec.namespace)).collect();
    let used: BTreeSet<&str> = shoots.iter().map(Shoot::project_namespace).collect();
    let missing = used.difference(&known);
    missing
        .map(|namespace| {
            let name = namespace.strip_prefix("garden-").unwrap_or(namespace);
            json!({
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": name},
                "spec": {"namespace": namespace}, "status": {"phase": "Ready"},
            })
        })
        .collect()
}

fn seeds(inventory: &Inventory, shoots: &[Shoot]) -> Vec<Value> {
    let known: BTreeSet<&str> = inventory.seeds.iter().map(|own| text(&own.metadata.name)).collect();
    let used: BTreeMap<&str, &Shoot> = shoots
        .iter()
        .filter_map(|shoot| Some((shoot.spec.seed_name.as_deref()?, shoot)))
        .collect();
    let missing = used.into_iter().filter(|(name, _)| !known.contains(name));
    missing
        .map(|(name, shoot)| {
            json!({
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": name},
                "spec": {"provider": {"type": shoot.spec.provider.r#type, "region": shoot.spec.region}},
            })
        })
        .collect()
}

/// Where no registration is known, one for all that the shoots need.
fn registration(inventory: &Inventory, shoots: &[Shoot]) -> Option<Value> {
    if !inventory.controller_registrations.is_empty() {
        return None;
    }
    let mut needs: BTreeSet<(&str, String)> = shoots
        .iter()
        .flat_map(|shoot| needs_of_shoot(shoot).into_iter().map(|need| (need.kind, need.r#type)))
        .collect();
    // admission chooses an image for pools that name none
    let plain = inventory.cloud_profiles.iter().map(|own| &own.spec);
    let namespaced = inventory.namespaced_cloud_profiles.iter();
    let profiles = plain.chain(namespaced.map(|own| &own.status.cloud_profile_spec));
    let images = profiles.flat_map(|own| &own.machine_images);
    needs.extend(images.map(|image| ("OperatingSystemConfig", image.name.clone())));
    let resources: Vec<Value> = needs
        .into_iter()
        .map(|(kind, own_type)| match kind {
            "Extension" => {
                json!({"kind": kind, "type": own_type, "workerlessSupported": true, "clusterCompatibility": ["shoot"]})
            }
            _ => json!({"kind": kind, "type": own_type}),
        })
        .collect();
    Some(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration", "metadata": {"name": "all"},
        "spec": {"resources": resources},
    }))
}

/// Where a shoot has a managed issuer, its garden offers that: by a Secret that tells where issuers are.
fn managed_issuer(shoots: &[Shoot]) -> Option<Value> {
    shoots.iter().any(Shoot::has_managed_issuer).then(|| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "garden", "name": format!("issuer.{UNREAD}"), "labels": {label::ROLE: role::SHOOT_SERVICE_ACCOUNT_ISSUER}},
        })
    })
}

/// Namespace and name.
type Place<'a> = (&'a str, &'a str);
/// Kind, namespace and name of a binding.
type BindingName<'a> = (&'a str, &'a str, &'a str);

/// Namespace and name of a reference; without a namespace it is in the binding's.
fn place<'r>(reference: &'r ObjectReference, namespace: &'r str) -> Place<'r> {
    (
        reference.namespace.as_deref().unwrap_or(namespace),
        text(&reference.name),
    )
}

/// Bindings that shoots name, the Secrets of SecretBindings, and quotas: maintenance may make CredentialsBindings of SecretBindings, and quotas end shoots.
fn bindings(inventory: &Inventory, shoots: &[Shoot]) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut secrets: BTreeSet<(&str, &str)> = BTreeSet::new();
    // the provider's type of each binding that only shoots tell of
    let mut unknown: BTreeMap<BindingName<'_>, &str> = BTreeMap::new();
    // each binding's quotas
    let mut of_bindings: BTreeMap<BindingName<'_>, Vec<Place<'_>>> = BTreeMap::new();
    for own in &inventory.secret_bindings {
        let (namespace, name) = (text(&own.metadata.namespace), text(&own.metadata.name));
        let reference = &own.secret_ref;
        secrets.insert((
            reference.namespace.as_deref().unwrap_or(namespace),
            text(&reference.name),
        ));
        let quotas = own.quotas.iter().map(|quota| place(quota, namespace)).collect();
        of_bindings.insert((SECRET_BINDING, namespace, name), quotas);
    }
    for own in &inventory.credentials_bindings {
        let (namespace, name) = (text(&own.metadata.namespace), text(&own.metadata.name));
        let quotas = own.quotas.iter().map(|quota| place(quota, namespace)).collect();
        of_bindings.insert((CREDENTIALS_BINDING, namespace, name), quotas);
    }
    let read: BTreeSet<(&str, &str)> = inventory
        .quotas
        .iter()
        .map(|own| (text(&own.metadata.namespace), text(&own.metadata.name)))
        .collect();
    // what shoots tell of their end was a quota's word: where it cannot be read, some quota stands in that has one
    let mut ending: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut quotas: BTreeSet<(&str, &str)> = of_bindings.values().flatten().copied().collect();
    for shoot in shoots {
        let namespace = shoot.project_namespace();
        let Some((kind, name)) = binding_of(shoot) else {
            continue;
        };
        let ends = shoot.annotation(annotation::SHOOT_EXPIRATION_TIMESTAMP).is_some();
        if let Some(own) = of_bindings.get(&(kind, namespace, name)) {
            let unread = own.iter().filter(|quota| ends && !read.contains(*quota));
            ending.extend(unread.copied());
            continue;
        }
        if ends {
            quotas.insert((namespace, UNREAD));
            ending.insert((namespace, UNREAD));
        }
        unknown.insert((kind, namespace, name), &shoot.spec.provider.r#type);
        if kind == SECRET_BINDING {
            secrets.insert((namespace, name));
        }
    }
    for ((kind, namespace, name), provider) in unknown {
        let ends = ending.contains(&(namespace, UNREAD));
        let quotas: Vec<Value> = ends
            .then(|| json!({"namespace": namespace, "name": UNREAD}))
            .into_iter()
            .collect();
        let mut binding = json!({"metadata": {"namespace": namespace, "name": name}, "quotas": quotas});
        merge(
            &mut binding,
            match kind {
                SECRET_BINDING => json!({
                    "apiVersion": "core.gardener.cloud/v1beta1", "kind": kind,
                    "provider": {"type": provider}, "secretRef": {"namespace": namespace, "name": name},
                }),
                // nobody knows whose credentials these are: not those of a SecretBinding that maintenance may look for
                _ => json!({
                    "apiVersion": "security.gardener.cloud/v1alpha1", "kind": kind, "provider": {"type": provider},
                    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": namespace, "name": format!("{name}.{UNREAD}")},
                }),
            },
        );
        objects.push(binding);
    }
    objects.extend(secrets.into_iter().map(|(namespace, name)| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name}})
    }));
    let unread = quotas.into_iter().filter(|quota| !read.contains(quota));
    objects.extend(unread.map(|quota| {
        let (namespace, name) = quota;
        let days = ending.contains(&quota).then_some(UNREAD_LIFETIME);
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Quota",
            "metadata": {"namespace": namespace, "name": name}, "spec": {"clusterLifetimeDays": days},
        })
    }));
    objects
}

const SECRET_BINDING: &str = "SecretBinding";
const CREDENTIALS_BINDING: &str = "CredentialsBinding";
/// In the names of what could not be read.
const UNREAD: &str = "unread";
/// The lifetime, in days, of a quota that could not be read: what a shoot tells of its end holds, and who tells none outlives every forecast.
const UNREAD_LIFETIME: i32 = 36_500;

/// Kind and name of the binding that a shoot uses.
fn binding_of(shoot: &Shoot) -> Option<(&'static str, &str)> {
    let secret = shoot
        .spec
        .secret_binding_name
        .as_deref()
        .filter(|name| !name.is_empty());
    let credentials = shoot
        .spec
        .credentials_binding_name
        .as_deref()
        .filter(|name| !name.is_empty());
    secret
        .map(|name| (SECRET_BINDING, name))
        .or(credentials.map(|name| (CREDENTIALS_BINDING, name)))
}

/// Adds the members of an object to another one.
fn merge(into: &mut Value, members: Value) {
    if let (Some(into), Value::Object(members)) = (into.as_object_mut(), members) {
        into.extend(members);
    }
}
