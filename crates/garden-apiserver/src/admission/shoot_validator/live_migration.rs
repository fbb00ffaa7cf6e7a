//! What a shoot and two seeds must be for its control plane to move without a pause, [ADM-32n], [MIG-200] – [MIG-203].

use std::collections::BTreeMap;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::meta::is_true;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::{GARDEN_NAMESPACE, annotation, label};
use gardener_apis::core::v1beta1::{Seed, Shoot};
use gardener_apiserver::meta;
use gardener_rules::scheduling::names_profile;
use serde_json::Value;

use super::Check;
use crate::features::Feature;
use crate::lookup;

/// How far apart two regions may be, where the region ConfigMap does not say otherwise [MIG-203].
const FARTHEST: i64 = 180;
const REGION_CONFIG: &str = "region-config";

impl Check<'_> {
    /// What is said to a shoot that asks for it.
    pub(super) fn live_migration(&self) -> ErrorList {
        if !self.shoot.annotation(annotation::LIVE_MIGRATION).is_some_and(is_true) {
            return ErrorList::new();
        }
        let asked = Path::new("metadata.annotations").key(annotation::LIVE_MIGRATION);
        let refused = |why: &str| ErrorList::from([Error::forbidden(&asked, why)]);
        if !self.features.has(Feature::LiveControlPlaneMigration) {
            return refused("the \"LiveControlPlaneMigration\" feature gate is disabled in gardener-apiserver");
        }
        let Some(old) = self.old else {
            return refused("annotation must not be set on shoot creation");
        };
        match (&old.spec.seed_name, &self.shoot.spec.seed_name) {
            (Some(from), Some(to)) if from != to => self.moves_live(from, to),
            _ => ErrorList::new(),
        }
    }

    /// [MIG-202].
    fn moves_live(&self, from: &str, to: &str) -> ErrorList {
        let path = Path::new("spec.seedName");
        let shoot = self.shoot;
        let mut errors = ErrorList::new();
        let control_plane = shoot.spec.control_plane.as_ref();
        if control_plane.is_none_or(|own| own.high_availability.is_none()) {
            let why = "shoot control plane must be configured for high availability to perform a live control plane migration";
            errors.push(Error::forbidden(&path, why));
        }
        if shoot.hibernation_enabled() || shoot.status.hibernated {
            let why = "live control plane migration is not supported for hibernated or waking-up shoots";
            errors.push(Error::forbidden(&path, why));
        }
        let mut seed = |which: &str, name: &str| {
            let found = lookup::get::<Seed>(self.attributes.context.lister, "", name);
            if found.is_none() {
                let why = format!("could not get {which} seed {name:?}: seed.core.gardener.cloud {name:?} not found");
                errors.push(Error::internal(&path, why));
            }
            found
        };
        let (Some(source), Some(destination)) = (seed("source", from), seed("destination", to)) else {
            return errors;
        };
        let (own, other) = (&source.spec.provider.r#type, &destination.spec.provider.r#type);
        if own != other {
            let why = format!("source and destination seeds must use the same provider type ({own} -> {other})");
            errors.push(Error::forbidden(&path, why));
        }
        errors.extend(versions((from, &source), (to, &destination), &path));
        let regions = (
            source.spec.provider.region.as_str(),
            destination.spec.provider.region.as_str(),
        );
        errors.extend(self.distance(regions, &path));
        errors
    }

    /// [MIG-203].
    fn distance(&self, (from, to): (&str, &str), path: &Path) -> Option<Error> {
        let any = self.shoot.annotation(annotation::LIVE_MIGRATION_DISTANT);
        if from == to || any.is_some_and(is_true) {
            return None;
        }
        let profile = self.shoot.spec.cloud_profile_reference().map(|own| own.name);
        let Some(profile) = profile.filter(|name| !name.is_empty()) else {
            let why = format!("could not determine cloud profile name for shoot {}", place(self.shoot));
            return Some(Error::internal(path, why));
        };
        let lister = self.attributes.context.lister;
        let maps = lister.list("", "configmaps", Some(GARDEN_NAMESPACE));
        let fits = |map: &Value| {
            let (labels, annotations) = (map.at("/metadata/labels"), map.at("/metadata/annotations"));
            let (labels, annotations) = (meta::string_map(labels), meta::string_map(annotations));
            let is_for = annotations.get(annotation::SCHEDULING_CLOUD_PROFILES);
            labels.get(label::SCHEDULING_PURPOSE).map(String::as_str) == Some(REGION_CONFIG)
                && names_profile(is_for.map(String::as_str).unwrap_or_default(), &profile)
        };
        match maps.iter().find(|map| fits(map)) {
            Some(map) => too_far(map, (from, to), path),
            None => Some(Error::forbidden(
                path,
                format!(
                    "no scheduler region ConfigMap found for cloud profile {profile:?} (source region {from}, destination region {to})"
                ),
            )),
        }
    }
}

fn place(shoot: &Shoot) -> String {
    format!("{}/{}", shoot.project_namespace(), shoot.own_name())
}

/// Both gardenlets do the same at a time only if they are the same [MIG-202].
fn versions((from, source): (&str, &Seed), (to, destination): (&str, &Seed), path: &Path) -> ErrorList {
    let version = |seed: &'_ Seed| -> String {
        let gardener = seed.status.gardener.as_ref();
        gardener.map(|own| own.version.clone()).unwrap_or_default()
    };
    let (own, other) = (version(source), version(destination));
    let unknown = [("source", from, &own), ("destination", to, &other)];
    let errors: ErrorList = unknown
        .into_iter()
        .filter(|(.., version)| version.is_empty())
        .map(|(which, seed, _)| {
            let why = format!("gardenlet version not reported for {which} seed {seed:?}");
            Error::forbidden(path, why)
        })
        .collect();
    if !errors.is_empty() || own == other {
        return errors;
    }
    let why =
        format!("source and destination seeds must run the same gardenlet version ({from}: {own}, {to}: {other})");
    ErrorList::from([Error::forbidden(path, why)])
}

/// What a region ConfigMap says of the way between two regions [MIG-203].
fn too_far(map: &Value, (from, to): (&str, &str), path: &Path) -> Option<Error> {
    let name = meta::text(map, "/metadata/name");
    let internal = |why: String| Some(Error::internal(path, why));
    let annotations = meta::string_map(map.at("/metadata/annotations"));
    let key = annotation::LIVE_MIGRATION_THRESHOLD;
    let farthest = match annotations.get(key).map(|text| (text, text.parse::<i64>())) {
        None => FARTHEST,
        Some((_, Ok(farthest))) if farthest >= 0 => farthest,
        Some((_, Ok(below))) => {
            return internal(format!(
                "threshold must be non-negative, got {below} for annotation {key:?} on ConfigMap {GARDEN_NAMESPACE}/{name}"
            ));
        }
        Some((text, Err(_))) => {
            return internal(format!(
                "invalid value {text:?} for annotation {key:?} on ConfigMap {GARDEN_NAMESPACE}/{name}: strconv.Atoi: parsing {text:?}: invalid syntax"
            ));
        }
    };
    let data = meta::string_map(map.at("/data"));
    let Some(text) = data.get(from) else {
        let why = format!("source region {from} not configured in region ConfigMap {name:?}");
        return Some(Error::forbidden(path, why));
    };
    let distances = match text.trim() {
        "" => Ok(BTreeMap::new()),
        text => serde_saphyr::from_str::<BTreeMap<String, i64>>(text),
    };
    let why = match distances.map(|distances| distances.get(to).copied()) {
        Ok(Some(distance)) if distance <= farthest => return None,
        Ok(Some(distance)) => {
            format!(
                "distance {distance} from source region {from} to destination region {to} exceeds threshold {farthest}"
            )
        }
        Ok(None) => format!(
            "distance from source region {from} to destination region {to} not configured in region ConfigMap {name:?}"
        ),
        Err(error) => {
            return internal(format!(
                "failed to parse region distances for {from:?} from ConfigMap {GARDEN_NAMESPACE}/{name}: {error}"
            ));
        }
    };
    Some(Error::forbidden(path, why))
}
