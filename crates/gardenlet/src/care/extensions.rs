//! Reads what extensions say about a shoot, and whether they live [ST-63], [ST-64]. What is made of it is decided in `rules::care::extensions`.

use std::collections::BTreeMap;

use gardener_apis::core::v1beta1::{Condition, ControllerInstallation, ControllerRegistration, Shoot};
use gardener_controller::{Read, api_error};
use gardener_rules::care::extensions::{BACKUP_ENTRY, KINDS, Told, counts, responsible};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, ListParams, Object};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};
use serde::{Deserialize, Serialize};

use crate::Config;
use crate::controller_installation::{namespace_of, of_seed};

/// The lease by which an extension shows that it lives.
const HEARTBEAT: &str = "gardener-extension-heartbeat";

/// What counts of an object; the rest may be large.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Spec {
    r#type: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Status {
    conditions: Option<Vec<Condition>>,
}

type Found = Object<Spec, Status>;

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("extensions.gardener.cloud", "v1alpha1", kind))
}

/// The objects of a shoot, in the order in which they count.
async fn objects(config: &Config, shoot: &Shoot, namespace: &str) -> Result<Vec<(&'static str, Found)>, kube::Error> {
    let mut all = Vec::new();
    let kinds = KINDS
        .into_iter()
        .take(if shoot.is_workerless() { 1 } else { KINDS.len() });
    for kind in kinds {
        let api: Api<Found> = Api::namespaced_with(config.seed.clone(), namespace, &resource(kind));
        let listed = api.read_list(&ListParams::default()).await?;
        all.extend(listed.into_iter().map(|own| (kind, own)));
    }
    let entries: Api<Found> = Api::all_with(config.seed.clone(), &resource(BACKUP_ENTRY));
    let entry = entries.read_opt(&crate::backup::entry_name(namespace, shoot)).await?;
    all.extend(entry.map(|own| (BACKUP_ENTRY, own)));
    Ok(all)
}

/// When the extensions of some kinds and types showed last that they live.
async fn heartbeats<'o>(
    config: &Config,
    of: impl Iterator<Item = (&'static str, &'o str)>,
) -> Result<BTreeMap<(&'static str, &'o str), Option<Timestamp>>, String> {
    let unread = |error: kube::Error| api_error(&error);
    let registrations: Api<ControllerRegistration> = Api::all(config.garden.clone());
    let registrations = registrations.read_list(&ListParams::default()).await.map_err(unread)?;
    let installations: Api<ControllerInstallation> = Api::all(config.garden.clone());
    let installations = installations
        .read_list(&of_seed(&config.seed_name))
        .await
        .map_err(unread)?;
    let mut by_namespace: BTreeMap<String, Option<Timestamp>> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for own in of {
        let namespace = namespace_of(responsible(own, &installations, &registrations)?);
        let last = match by_namespace.get(&namespace) {
            Some(last) => *last,
            None => {
                let leases: Api<Lease> = Api::namespaced(config.seed.clone(), &namespace);
                let lease = leases.read_opt(HEARTBEAT).await.map_err(unread)?;
                let renewed = lease.and_then(|lease| lease.spec?.renew_time);
                let last = renewed.map(|renewed| renewed.0);
                by_namespace.insert(namespace, last);
                last
            }
        };
        found.insert(own, last);
    }
    Ok(found)
}

/// What the extensions of a shoot say.
///
/// # Errors
/// It cannot be read, or nobody is responsible for an object: then nothing of it counts.
pub(super) async fn told(config: &Config, shoot: &Shoot, namespace: &str) -> Result<Vec<Told>, String> {
    let objects = objects(config, shoot, namespace).await;
    let objects = objects.map_err(|error| api_error(&error))?;
    let conditions = |own: &Found| {
        let all = own.status.iter().flat_map(|status| status.conditions.iter().flatten());
        all.filter(|own| counts(own)).cloned().collect::<Vec<_>>()
    };
    if objects.iter().all(|(_, own)| conditions(own).is_empty()) {
        // nobody says anything: who would, need not be known
        return Ok(Vec::new());
    }
    let kinds = objects.iter().map(|(kind, own)| (*kind, own.spec.r#type.as_str()));
    let heartbeats = heartbeats(config, kinds).await?;
    let told = objects.iter().flat_map(|(kind, own)| {
        let heartbeat = heartbeats.get(&(*kind, own.spec.r#type.as_str())).copied().flatten();
        conditions(own).into_iter().map(move |condition| Told {
            kind: (*kind).to_owned(),
            namespace: own.namespace().unwrap_or_default(),
            name: own.name_any(),
            heartbeat,
            condition,
        })
    });
    Ok(told.collect())
}
