//! Defaults and validation of the gardenlet configuration inside ManagedSeeds, ManagedSeedSets and Gardenlets,
//! [DEF-45], [VAL-MS1]. The configuration stays JSON; only its seed template is read as a type.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::{Map, Value, json};

use super::{GardenletDeployment, Image};
use crate::core::v1beta1::{SeedSpec, validate_seed_spec};
use crate::validation::{non_negative, shown};

/// Fills in what the wire always shows of a gardenlet configuration; `capacity`: the default number of shoots as well.
pub fn default_gardenlet_config(config: &mut Value, capacity: bool) {
    let Some(fields) = config.as_object_mut() else { return };
    if capacity {
        let resources = fields.entry("resources").or_insert_with(|| json!({}));
        if let Some(resources) = resources.as_object_mut() {
            let amounts = resources.entry("capacity").or_insert_with(|| json!({}));
            if let Some(amounts) = amounts.as_object_mut() {
                amounts.entry("shoots").or_insert_with(|| json!("250"));
            }
        }
    }
    fields.entry("logLevel").or_insert_with(|| json!(""));
    fields.entry("logFormat").or_insert_with(|| json!(""));
    fields.entry("server").or_insert_with(|| json!({}));
    if let Some(seed) = fields.get_mut("seedConfig").and_then(Value::as_object_mut) {
        seed.entry("metadata").or_insert_with(|| json!({}));
        normalize_seed_spec(seed);
    }
}

/// The seed template as its type writes it: empty lists gone, required texts there.
fn normalize_seed_spec(seed: &mut Map<String, Value>) {
    let spec: Option<SeedSpec> = seed
        .get("spec")
        .cloned()
        .map_or(Some(SeedSpec::default()), |spec| serde_json::from_value(spec).ok());
    if let Some(spec) = spec {
        seed.insert("spec".into(), shown(&spec));
    }
}

/// The seed template's spec, when the configuration has one that can be read.
pub fn seed_spec_of(config: Option<&Value>) -> Option<SeedSpec> {
    serde_json::from_value(config?.get("seedConfig")?.get("spec")?.clone()).ok()
}

/// Fills in an image's pull policy: `latest` is pulled always.
pub fn default_image(image: &mut Image) {
    let latest = image.tag.as_deref() == Some("latest");
    image
        .pull_policy
        .get_or_insert_with(|| if latest { "Always".into() } else { "IfNotPresent".into() });
}

/// Fills in a gardenlet's deployment.
pub fn default_gardenlet_deployment(deployment: &mut GardenletDeployment) {
    deployment.replica_count.get_or_insert(2);
    deployment.revision_history_limit.get_or_insert(2);
    default_image(deployment.image.get_or_insert_default());
    deployment.enable_health_probes.get_or_insert(true);
}

/// Checks the numbers and the image of a gardenlet's deployment.
pub fn validate_gardenlet_deployment(
    replicas: Option<i32>,
    history: Option<i32>,
    image: Option<&Image>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, value) in [("replicaCount", replicas), ("revisionHistoryLimit", history)] {
        if let Some(value) = value {
            errors.extend(non_negative(value, &path.child(name)));
        }
    }
    if let Some(image) = image {
        let at = path.child("image");
        const POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
        if let Some(policy) = &image.pull_policy
            && !POLICIES.contains(&policy.as_str())
        {
            errors.push(Error::not_supported(
                &at.child("pullPolicy"),
                policy.as_str(),
                &POLICIES,
            ));
        }
        let set = |value: &Option<String>| value.as_deref().is_some_and(|text| !text.is_empty());
        if set(&image.ref_) && (set(&image.repository) || set(&image.tag)) {
            errors.push(Error::forbidden(
                &at.child("ref"),
                "must not be set together with repository or tag",
            ));
        }
    }
    errors
}

/// Checks a gardenlet configuration. `in_template`: the seed may leave out what the shoot supplies.
pub fn validate_gardenlet_config(config: &Value, in_template: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(seed) = config.get("seedConfig") else {
        return errors;
    };
    let at = path.child("seedConfig");
    if seed
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .is_some_and(|name| !name.is_empty())
    {
        errors.push(Error::forbidden(&at.child("metadata.name"), "seed name is forbidden"));
    }
    match serde_json::from_value::<SeedSpec>(seed.get("spec").cloned().unwrap_or_else(|| json!({}))) {
        Ok(spec) => errors.extend(validate_seed_spec(&spec, in_template, &at.child("spec"))),
        Err(why) => errors.push(Error::invalid(&at.child("spec"), Value::Null, why.to_string())),
    }
    errors
}
