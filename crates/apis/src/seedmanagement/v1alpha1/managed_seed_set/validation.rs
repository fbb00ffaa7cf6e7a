//! Defaults and validation of managed seed sets, [DEF-46], [VAL-MS2].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::selector;

use super::super::managed_seed::validate_managed_seed_gardenlet as gardenlet_rules;
use super::*;
use crate::constants::GARDEN_NAMESPACE;
use crate::core::v1beta1::validate_shoot_spec;
use crate::validation::{immutable, non_negative, object_meta, object_meta_update};

/// Fills in what the user left out; the templates stay as they are.
pub fn default_managed_seed_set(set: &mut ManagedSeedSet) {
    let spec = &mut set.spec;
    spec.replicas.get_or_insert(1);
    let strategy = spec.update_strategy.get_or_insert_default();
    strategy.r#type.get_or_insert_with(|| "RollingUpdate".into());
    spec.revision_history_limit.get_or_insert(10);
    if let Some(config) = &mut spec.template.spec.gardenlet.config {
        default_gardenlet_config(config, false);
    }
}

/// Checks a managed seed set that is to be created or stored again.
pub fn validate_managed_seed_set(set: &ManagedSeedSet) -> ErrorList {
    let mut errors = object_meta(&set.metadata, true);
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    if !namespace.is_empty() && namespace != GARDEN_NAMESPACE {
        errors.push(Error::invalid(
            &Path::new("metadata.namespace"),
            namespace,
            "namespace must be garden",
        ));
    }
    let spec = &set.spec;
    let path = Path::new("spec");
    if let Some(replicas) = spec.replicas {
        errors.extend(non_negative(replicas, &path.child("replicas")));
    }
    let empty = spec
        .selector
        .match_labels
        .as_ref()
        .is_none_or(std::collections::BTreeMap::is_empty)
        && spec.selector.match_expressions.as_ref().is_none_or(Vec::is_empty);
    if empty {
        errors.push(Error::invalid(
            &path.child("selector"),
            crate::validation::shown(&spec.selector),
            "empty selector is invalid for ManagedSeedSet",
        ));
    }
    errors.extend(gardener_apimachinery::meta::validate_label_selector(
        &spec.selector,
        &path.child("selector"),
    ));
    let template = path.child("template");
    let config = spec.template.spec.gardenlet.config.as_ref();
    let seed_config = config.and_then(|config| config.get("seedConfig"));
    let seed_path = template.child("spec.gardenlet.config.seedConfig");
    if spec.template.spec.shoot.is_some() {
        errors.push(Error::forbidden(&template.child("spec.shoot"), "shoot is forbidden"));
    }
    match seed_config {
        None => errors.push(Error::required(&seed_path, "seedConfig is required")),
        Some(_) => {
            errors.extend(gardenlet_rules(
                &spec.template.spec.gardenlet,
                &template.child("spec.gardenlet"),
            ));
        }
    }
    let shoot = path.child("shootTemplate");
    if spec.shoot_template.spec.provider.workers.is_empty() {
        errors.push(Error::invalid(
            &shoot.child("spec.provider.workers"),
            serde_json::Value::Null,
            "workers cannot be empty in the Shoot template for a ManagedSeedSet",
        ));
    }
    errors.extend(validate_shoot_spec(
        &spec.shoot_template.metadata,
        &spec.shoot_template.spec,
        true,
        &shoot.child("spec"),
    ));
    if !empty {
        let seed_labels = seed_config
            .and_then(|seed| seed.pointer("/metadata/labels"))
            .and_then(|labels| serde_json::from_value(labels.clone()).ok());
        for (at, labels) in [
            (template.child("metadata.labels"), spec.template.metadata.labels.clone()),
            (
                shoot.child("metadata.labels"),
                spec.shoot_template.metadata.labels.clone(),
            ),
            (seed_path.child("metadata.labels"), seed_labels),
        ] {
            let labels = labels.unwrap_or_default();
            if !selects(&spec.selector, &labels) {
                errors.push(Error::invalid(
                    &at,
                    crate::validation::shown(&labels),
                    "selector does not match template labels",
                ));
            }
        }
    }
    if let Some(strategy) = &spec.update_strategy {
        let at = path.child("updateStrategy");
        if let Some(kind) = &strategy.r#type
            && kind != "RollingUpdate"
        {
            errors.push(Error::not_supported(
                &at.child("type"),
                kind.as_str(),
                &["RollingUpdate"],
            ));
        }
        if let Some(partition) = strategy.rolling_update.as_ref().and_then(|update| update.partition) {
            errors.extend(non_negative(partition, &at.child("rollingUpdate.partition")));
        }
    }
    if let Some(limit) = spec.revision_history_limit {
        errors.extend(non_negative(limit, &path.child("revisionHistoryLimit")));
    }
    errors
}

fn selects(wanted: &LabelSelector, labels: &std::collections::BTreeMap<String, String>) -> bool {
    selector::LabelSelector::from(wanted).matches(labels)
}

/// Checks a change of a managed seed set.
pub fn validate_managed_seed_set_update(new: &ManagedSeedSet, old: &ManagedSeedSet) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let path = Path::new("spec");
    errors.extend(immutable(
        &new.spec.selector,
        &old.spec.selector,
        &path.child("selector"),
    ));
    errors.extend(immutable(
        &new.spec.revision_history_limit,
        &old.spec.revision_history_limit,
        &path.child("revisionHistoryLimit"),
    ));
    errors.extend(validate_managed_seed_set(new));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_ms2_recorded_refusal() {
        let mut set: ManagedSeedSet = serde_json::from_value(serde_json::json!({"metadata": {"name": "m1", "namespace": "garden"},
            "spec": {"replicas": -1, "selector": {}, "template": {"metadata": {"labels": {"a": "b"}}},
                     "shootTemplate": {"metadata": {"labels": {"c": "d"}}}, "updateStrategy": {"type": "OnDelete"}, "revisionHistoryLimit": -1}}))
        .unwrap();
        default_managed_seed_set(&mut set);
        let texts: Vec<String> = validate_managed_seed_set(&set)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.selector: Invalid value: {}: empty selector is invalid for ManagedSeedSet",
                "spec.template.spec.gardenlet.config.seedConfig: Required value: seedConfig is required",
                "spec.shootTemplate.spec.provider.workers: Invalid value: null: workers cannot be empty in the Shoot template for a ManagedSeedSet",
                "spec.shootTemplate.spec.cloudProfile.name: Required value: must specify a cloud profile",
                "spec.shootTemplate.spec.provider.type: Required value: must specify a provider type",
                "spec.shootTemplate.spec.kubernetes.version: Required value: kubernetes version must not be empty",
                "spec.shootTemplate.spec.region: Required value: must specify a region",
                "spec.updateStrategy.type: Unsupported value: \"OnDelete\": supported values: \"RollingUpdate\"",
                "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
    }
}
