//! What admission looks for and an inventory does not have: it is there in the copy, by name and without content. No Secret is read anywhere.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apis::core::v1beta1::Shoot;
use gardener_rules::registrations::needs_of_shoot;
use serde_json::{Value, json};

use crate::Inventory;

/// The objects that stand in for others, for these shoots.
pub(crate) fn stand_ins(inventory: &Inventory, shoots: &[Shoot]) -> Vec<Value> {
    let mut objects = projects(inventory, shoots);
    objects.extend(seeds(inventory, shoots));
    objects.extend(registration(inventory, shoots));
    objects.extend(bindings(inventory, shoots));
    let mut namespaces: BTreeSet<String> = objects
        .iter()
        .filter_map(|object| object.pointer("/metadata/namespace")?.as_str().map(str::to_owned))
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

/// SecretBindings that shoots name, their Secrets, and their quotas: maintenance may make CredentialsBindings of them.
fn bindings(inventory: &Inventory, shoots: &[Shoot]) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut secrets: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut quotas: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut known: BTreeSet<(&str, &str)> = BTreeSet::new();
    for own in &inventory.secret_bindings {
        let namespace = text(&own.metadata.namespace);
        known.insert((namespace, text(&own.metadata.name)));
        let reference = &own.secret_ref;
        secrets.insert((
            reference.namespace.as_deref().unwrap_or(namespace),
            text(&reference.name),
        ));
        quotas.extend(
            own.quotas
                .iter()
                .map(|quota| (text(&quota.namespace), text(&quota.name))),
        );
    }
    for shoot in shoots {
        let namespace = shoot.project_namespace();
        let Some(name) = shoot
            .spec
            .secret_binding_name
            .as_deref()
            .filter(|name| !name.is_empty())
        else {
            continue;
        };
        if known.insert((namespace, name)) {
            secrets.insert((namespace, name));
            objects.push(json!({
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "SecretBinding",
                "metadata": {"namespace": namespace, "name": name},
                "provider": {"type": shoot.spec.provider.r#type}, "secretRef": {"namespace": namespace, "name": name},
            }));
        }
    }
    objects.extend(secrets.into_iter().map(|(namespace, name)| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name}})
    }));
    objects.extend(quotas.into_iter().map(|(namespace, name)| {
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Quota",
            "metadata": {"namespace": namespace, "name": name},
        })
    }));
    objects
}
