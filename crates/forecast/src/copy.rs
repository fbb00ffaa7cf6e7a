//! The copy: a garden in memory with what an inventory has, what admission looks for besides, and nothing that works in it.

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::clock::Clock;
use gardener_apis::core::v1beta1::Shoot;
use gardener_landscape::garden::GARDEN;
use gardener_landscape::{Landscape, LandscapeError, Options, Storage, StorageError};
use gardener_rules::versions::default_architecture;
use k8s_openapi::{Metadata, Resource};
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::stand_ins::stand_ins;
use crate::{Inventory, Origin};

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The garden in memory cannot be opened.
    #[error("the garden in memory cannot be opened: {0}")]
    Open(#[from] LandscapeError),
    /// Its store cannot.
    #[error("the store in memory cannot be opened: {0}")]
    Store(#[from] StorageError),
    /// It does not take the objects.
    #[error("the garden in memory does not take the objects: {0}")]
    Take(#[from] gardener_apiserver::CopyError),
    /// An object is no JSON.
    #[error("an object cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A garden would not have these objects.
    #[error("a garden would refuse {}", shortened(.0))]
    Refused(Vec<String>),
}

/// How many refusals are told.
const TOLD: usize = 10;

fn shortened(refusals: &[String]) -> String {
    let told = refusals.iter().take(TOLD).map(String::as_str);
    let mut text = told.collect::<Vec<_>>().join("\n");
    if let Some(left) = refusals.len().checked_sub(TOLD).filter(|left| *left > 0) {
        text = format!("{text}\nand {left} more");
    }
    text
}

/// Opens a garden and puts the inventory's objects and stand-ins into it, without shoots that are in deletion.
pub(crate) async fn copy(inventory: &Inventory, clock: &Clock, chance: &Chance) -> Result<Landscape, CopyError> {
    let landscape = Landscape::open(Options {
        store: Storage::Memory.open()?,
        clock: clock.clone(),
        chance: chance.clone(),
        entry: None,
        seeds: 0,
    })
    .await?;
    let mut shoots: Vec<Shoot> = inventory.shoots.clone();
    shoots.retain(|shoot| !shoot.in_deletion());
    if inventory.origin == Origin::Manifests {
        shoots
            .iter_mut()
            .for_each(|shoot| choose_architectures(inventory, shoot));
    }
    let mut objects = stand_ins(inventory, &shoots);
    add(&mut objects, &inventory.cloud_profiles)?;
    add(&mut objects, &inventory.namespaced_cloud_profiles)?;
    add(&mut objects, &inventory.projects)?;
    add(&mut objects, &inventory.seeds)?;
    add(&mut objects, &inventory.controller_registrations)?;
    add(&mut objects, &inventory.secret_bindings)?;
    add(&mut objects, &inventory.credentials_bindings)?;
    add(&mut objects, &inventory.quotas)?;
    add(&mut objects, &shoots)?;
    if let Some((garden, _)) = landscape.server.cluster(GARDEN) {
        garden.copy_in(objects).await?;
    }
    if inventory.origin == Origin::Manifests {
        review(inventory, &shoots, &landscape.garden_client()).await?;
    }
    Ok(landscape)
}

fn add<K: Serialize>(objects: &mut Vec<Value>, list: &[K]) -> Result<(), CopyError> {
    for object in list {
        objects.push(serde_json::to_value(object)?);
    }
    Ok(())
}

/// Pools of manifests say their architecture before admission does: otherwise it would take that for a change of the pool, and ask for an image that
/// new pools may have.
fn choose_architectures(inventory: &Inventory, shoot: &mut Shoot) {
    let Some(reference) = shoot.spec.cloud_profile_reference() else {
        return;
    };
    let mut profiles = inventory.cloud_profiles.iter();
    let types = match profiles.find(|own| own.metadata.name.as_deref() == Some(&*reference.name)) {
        Some(profile) if reference.kind == "CloudProfile" => profile.spec.machine_types.as_slice(),
        _ => &[],
    };
    for worker in &mut shoot.spec.provider.workers {
        let known = types.iter().find(|own| own.name == worker.machine.r#type);
        let architecture = &mut worker.machine.architecture;
        architecture.get_or_insert_with(|| default_architecture(known));
    }
}

/// Writes each object of manifests once as it is: so versions that are given in part become whole, and what no garden would have is found. Unlike
/// a creation this lets shoots have versions that have expired.
async fn review(inventory: &Inventory, shoots: &[Shoot], client: &Client) -> Result<(), CopyError> {
    let mut refused = Vec::new();
    for own in &inventory.cloud_profiles {
        write(Api::all(client.clone()), own, &mut refused).await;
    }
    for own in &inventory.namespaced_cloud_profiles {
        let namespace = own.metadata.namespace.as_deref().unwrap_or_default();
        write(Api::namespaced(client.clone(), namespace), own, &mut refused).await;
    }
    // a profile that is refused explains most of what is wrong with shoots
    if refused.is_empty() {
        for own in shoots {
            write(
                Api::namespaced(client.clone(), own.project_namespace()),
                own,
                &mut refused,
            )
            .await;
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(CopyError::Refused(refused)),
    }
}

async fn write<K>(api: Api<K>, own: &K, refused: &mut Vec<String>)
where
    K: Resource + Metadata<Ty = ObjectMeta> + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let metadata = own.metadata();
    let name = metadata.name.clone().unwrap_or_default();
    let written = async {
        let stored = api.get(&name).await?;
        api.replace(&name, &PostParams::default(), &stored).await
    };
    if let Err(error) = written.await {
        let place = match metadata.namespace.as_deref() {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        };
        refused.push(format!(
            "{} {place}: {}",
            K::KIND,
            gardener_controller::api_error(&error)
        ));
    }
}
