//! Defaults and validation of managed seed sets, [DEF-46], [VAL-MS2].

use std::collections::BTreeMap;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::selector;

use super::super::common::{map_in, observed_generation, template_metadata};
use super::super::managed_seed::validate_managed_seed_gardenlet as gardenlet_rules;
use super::super::managed_seed::validate_managed_seed_spec_update;
use super::*;
use crate::constants::GARDEN_NAMESPACE;
use crate::core::v1beta1::{
    ACCEPTED_ISSUERS, ShootSpec, keeps_accepted_issuers, validate_shoot_spec, validate_shoot_spec_update,
};
use crate::validation::{
    IMMUTABLE, go_json, go_list, go_members, go_struct, immutable, non_negative, object_meta, object_meta_update, shown,
};

/// Fills in what the user left out; of the templates, what gardenlets' deployments leave out.
pub fn default_managed_seed_set(set: &mut ManagedSeedSet) {
    let spec = &mut set.spec;
    spec.replicas.get_or_insert(1);
    let strategy = spec.update_strategy.get_or_insert_default();
    strategy.r#type.get_or_insert_with(|| "RollingUpdate".into());
    if let Some(rolling) = &mut strategy.rolling_update {
        rolling.partition.get_or_insert(0);
    }
    spec.revision_history_limit.get_or_insert(10);
    // upstream's internal type has no image without a version
    for worker in &mut spec.shoot_template.spec.provider.workers {
        if let Some(image) = &mut worker.machine.image {
            image.version.get_or_insert_default();
        }
    }
    if let Some(deployment) = &mut spec.template.spec.gardenlet.deployment {
        default_gardenlet_deployment(deployment);
    }
    if spec.template.spec.gardenlet.config.is_some() {
        default_gardenlet_config(&mut spec.template.spec.gardenlet.config, false);
    }
}

/// Checks a managed seed set that is to be created or stored again.
pub fn validate_managed_seed_set(set: &ManagedSeedSet) -> ErrorList {
    let mut errors = ErrorList::new();
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    if namespace != GARDEN_NAMESPACE {
        errors.push(Error::invalid(
            &Path::new("metadata.namespace"),
            namespace,
            "namespace must be garden",
        ));
    }
    errors.extend(object_meta(
        &set.metadata,
        true,
        gardener_apimachinery::names::dns_subdomain,
    ));
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
            serde_json::json!({}),
            "empty selector is invalid for ManagedSeedSet",
        ));
    }
    if !empty {
        let at = path.child("selector");
        errors.extend(gardener_apimachinery::meta::validate_label_selector(
            &spec.selector,
            &at,
        ));
        let unusable = selector::unusable(&spec.selector);
        errors.extend(unusable.map(|why| Error::literal(&at, go_selector(&spec.selector), why)));
    }
    errors.extend(template(spec, &path.child("template")));
    errors.extend(shoot_template(spec, &path.child("shootTemplate")));
    if let Some(strategy) = &spec.update_strategy {
        let at = path.child("updateStrategy");
        let partition = strategy.rolling_update.as_ref().and_then(|update| update.partition);
        match (strategy.r#type.as_deref(), partition) {
            (Some(""), _) => errors.push(Error::required(&at.child("type"), "")),
            (Some("RollingUpdate"), Some(partition)) => {
                errors.extend(non_negative(partition, &at.child("rollingUpdate.partition")));
            }
            (Some("RollingUpdate"), None) | (None, _) => {}
            (Some(other), _) => {
                errors.push(Error::not_supported(&at.child("type"), other, &["RollingUpdate"]));
            }
        }
    }
    if let Some(limit) = spec.revision_history_limit {
        errors.extend(non_negative(limit, &path.child("revisionHistoryLimit")));
    }
    errors
}

/// The template of the managed seeds.
fn template(spec: &ManagedSeedSetSpec, path: &Path) -> ErrorList {
    let template = &spec.template;
    let mut errors = labels(&spec.selector, template.metadata.labels.as_ref(), path);
    let (own, at) = (&template.metadata, path.child("metadata"));
    errors.extend(template_metadata(own.labels.as_ref(), own.annotations.as_ref(), &at));
    let gardenlet = &template.spec.gardenlet;
    errors.extend(gardenlet_rules(gardenlet, &path.child("spec.gardenlet")));
    if template.spec.shoot.is_some() {
        errors.push(Error::forbidden(&path.child("spec.shoot"), "shoot is forbidden"));
    }
    let config = gardenlet.config.as_ref();
    let at = path.child("spec.gardenlet.config.seedConfig");
    match config
        .and_then(|config| config.get("seedConfig"))
        .filter(|seed| seed.is_object())
    {
        None => errors.push(Error::required(&at, "seedConfig is required")),
        Some(seed) => {
            let own = map_in(seed, "/metadata/labels");
            errors.extend(labels(&spec.selector, own.as_ref(), &at));
        }
    }
    errors
}

/// The template of the shoots, which have workers.
fn shoot_template(spec: &ManagedSeedSetSpec, path: &Path) -> ErrorList {
    let template = &spec.shoot_template;
    let mut errors = labels(&spec.selector, template.metadata.labels.as_ref(), path);
    if template.spec.provider.workers.is_empty() {
        errors.push(Error::invalid(
            &path.child("spec.provider.workers"),
            serde_json::Value::Null,
            "workers cannot be empty in the Shoot template for a ManagedSeedSet",
        ));
    }
    let (own, at) = (&template.metadata, path.child("metadata"));
    errors.extend(template_metadata(own.labels.as_ref(), own.annotations.as_ref(), &at));
    let at = path.child("spec");
    errors.extend(validate_shoot_spec(&template.metadata, &template.spec, true, &at));
    errors
}

/// The labels of a template are such that the set finds what is made of it.
fn labels(wanted: &LabelSelector, labels: Option<&BTreeMap<String, String>>, template: &Path) -> ErrorList {
    let selector = selector::LabelSelector::from(wanted);
    let finds = || selector.is_empty() || selector.matches(labels.unwrap_or(&BTreeMap::new()));
    // what can be no selector says nothing of labels
    match selector::unusable(wanted).is_some() || finds() {
        true => ErrorList::new(),
        false => vec![Error::invalid(
            &template.child("metadata.labels"),
            labels.map_or(serde_json::Value::Null, shown),
            "selector does not match template labels",
        )],
    }
}

/// A selector as Go prints it.
fn go_selector(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.as_ref().filter(|own| !own.is_empty());
    let expressions = selector.match_expressions.as_ref().filter(|own| !own.is_empty());
    let expressions = expressions.map(|expressions| {
        go_list(expressions, |own| {
            let values = own.values.as_ref().filter(|values| !values.is_empty());
            let always = [
                ("key", own.key.as_str().into()),
                ("operator", own.operator.as_str().into()),
            ];
            go_struct(
                &always
                    .into_iter()
                    .chain(values.map(|values| ("values", shown(values))))
                    .collect::<Vec<_>>(),
            )
        })
    });
    let members = labels.map(|labels| ("matchLabels", go_json(labels)));
    let members = members
        .into_iter()
        .chain(expressions.map(|own| ("matchExpressions", own)));
    go_members(&members.collect::<Vec<_>>())
}

/// Checks a change of a managed seed set.
pub fn validate_managed_seed_set_update(new: &ManagedSeedSet, old: &ManagedSeedSet) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let path = Path::new("spec");
    if new.spec.selector != old.spec.selector {
        let shown = go_selector(&new.spec.selector);
        errors.push(Error::literal(&path.child("selector"), shown, IMMUTABLE));
    }
    errors.extend(immutable(
        &new.spec.revision_history_limit,
        &old.spec.revision_history_limit,
        &path.child("revisionHistoryLimit"),
    ));
    let (template, before) = (&new.spec.template.spec, &old.spec.template.spec);
    let at = path.child("template.spec");
    errors.extend(validate_managed_seed_spec_update(template, before, &at));
    let (template, before) = (&new.spec.shoot_template, &old.spec.shoot_template);
    let at = path.child("shootTemplate.spec");
    let in_deletion = template.metadata.deletion_timestamp.is_some();
    errors.extend(validate_shoot_spec_update(
        &template.spec,
        &before.spec,
        in_deletion,
        &at,
    ));
    let nodes = |spec: &ShootSpec| spec.networking.as_ref().and_then(|networking| networking.nodes.clone());
    if let Some(earlier) = nodes(&before.spec) {
        let at = at.child("networking.nodes");
        errors.extend(immutable(&nodes(&template.spec), &Some(earlier), &at));
    }
    let mut own = validate_managed_seed_set(new);
    if keeps_accepted_issuers(&template.spec, &before.spec) {
        let issuers = at.child(ACCEPTED_ISSUERS);
        own.retain(|error| !error.path.as_str().starts_with(issuers.as_str()));
    }
    errors.extend(own);
    errors
}

/// Checks a change of a managed seed set's status.
pub fn validate_managed_seed_set_status_update(new: &ManagedSeedSet, old: &ManagedSeedSet) -> ErrorList {
    let (status, before) = (&new.status, &old.status);
    let path = Path::new("status");
    let mut errors = observed_generation(status.observed_generation);
    let count = |count: Option<i32>| count.unwrap_or_default();
    let running = [
        ("readyReplicas", count(status.ready_replicas)),
        ("currentReplicas", count(status.current_replicas)),
        ("updatedReplicas", count(status.updated_replicas)),
    ];
    let next = count(status.next_replica_number);
    errors.extend(non_negative(status.replicas, &path.child("replicas")));
    for (name, value) in running.into_iter().chain([("nextReplicaNumber", next)]) {
        errors.extend(non_negative(value, &path.child(name)));
    }
    if let Some(collisions) = status.collision_count {
        errors.extend(non_negative(collisions, &path.child("collisionCount")));
    }
    for (name, value) in running {
        if value > status.replicas {
            errors.push(Error::invalid(
                &path.child(name),
                value,
                "cannot be greater than status.replicas",
            ));
        }
    }
    if let Some(pending) = &status.pending_replica {
        let own = new.metadata.name.as_deref().unwrap_or_default();
        errors.extend(pending_replica(pending, own, &path.child("pendingReplica")));
    }
    let decremented = "cannot be decremented";
    if next < count(before.next_replica_number) {
        errors.push(Error::invalid(&path.child("nextReplicaNumber"), next, decremented));
    }
    if before.collision_count.is_some() && status.collision_count < before.collision_count {
        let now = count(status.collision_count);
        errors.push(Error::invalid(&path.child("collisionCount"), now, decremented));
    }
    errors
}

/// What a replica can be pending for.
const REASONS: [&str; 8] = [
    "ShootReconciling",
    "ShootDeleting",
    "ShootReconcileFailed",
    "ShootDeleteFailed",
    "ManagedSeedPreparing",
    "ManagedSeedDeleting",
    "SeedNotReady",
    "ShootNotHealthy",
];

/// The replica that a set of this name waits for.
fn pending_replica(pending: &PendingReplica, set: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_ordinal = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i32>().is_ok();
    let parent = pending.name.rsplit_once('-').filter(|(_, ordinal)| is_ordinal(ordinal));
    if parent.is_none_or(|(parent, _)| parent != set) {
        errors.push(Error::invalid(
            &path.child("name"),
            pending.name.as_str(),
            "must contain the parent name and a valid ordinal",
        ));
    }
    if !REASONS.contains(&pending.reason.as_str()) {
        errors.push(Error::not_supported(
            &path.child("reason"),
            pending.reason.as_str(),
            &REASONS,
        ));
    }
    if let Some(retries) = pending.retries {
        errors.extend(non_negative(retries, &path.child("retries")));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_change_as_what_is_made_of_them_may() {
        let set = |version: &str, region: &str, nodes: &str, merge: bool| -> ManagedSeedSet {
            serde_json::from_value(serde_json::json!({"metadata": {"name": "m", "namespace": "garden"}, "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"spec": {"gardenlet": {"mergeWithParent": merge}}},
                "shootTemplate": {"spec": {"region": region, "kubernetes": {"version": version}, "networking": {"nodes": nodes}}}}}))
            .unwrap()
        };
        let old = set("1.34.3", "here", "10.1.0.0/16", true);
        let changes = |new: &ManagedSeedSet| -> Vec<String> {
            let texts = validate_managed_seed_set_update(new, &old)
                .into_iter()
                .map(|error| error.to_string());
            texts
                .filter(|text| text.contains("immutable") || text.contains("downgrade"))
                .collect()
        };
        assert!(changes(&old).is_empty());
        let mut found = changes(&set("1.33.1", "there", "10.2.0.0/16", false));
        found.dedup();
        assert_eq!(
            found,
            [
                "spec.template.spec.gardenlet.mergeWithParent: Invalid value: false: field is immutable",
                "spec.shootTemplate.spec.region: Invalid value: \"there\": field is immutable",
                "spec.shootTemplate.spec.kubernetes.version: Forbidden: kubernetes version downgrade is not supported",
                "spec.shootTemplate.spec.networking.nodes: Invalid value: \"10.2.0.0/16\": field is immutable",
            ]
        );
    }

    #[test]
    fn val_ms2_selectors() {
        let set = |selector: serde_json::Value| -> ManagedSeedSet {
            serde_json::from_value(
                serde_json::json!({"metadata": {"name": "m", "namespace": "garden"}, "spec": {
                "selector": selector, "template": {"metadata": {"labels": {"c": "d"}}}}}),
            )
            .unwrap()
        };
        let old = set(serde_json::json!({"matchLabels": {"a": "b"}}));
        let told = |selector: serde_json::Value| -> Vec<String> {
            let found = validate_managed_seed_set_update(&set(selector), &old).into_iter();
            let found = found.map(|error| error.to_string());
            found.filter(|text| text.contains("elector")).collect()
        };
        let shown =
            "Invalid value: {\"matchLabels\":{\"a\":\"b\"},\"matchExpressions\":[{\"key\":\"x\",\"operator\":\"\"}]}";
        assert_eq!(
            told(serde_json::json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "x", "operator": ""}]})),
            [
                format!("spec.selector: {shown}: field is immutable"),
                "spec.selector.matchExpressions[0].operator: Invalid value: \"\": not a valid selector operator".into(),
                format!("spec.selector: {shown}: \"\" is not a valid label selector operator"),
            ]
        );
        assert_eq!(
            told(serde_json::json!({"matchLabels": {"a": "b"}})),
            [
                "spec.template.metadata.labels: Invalid value: {\"c\":\"d\"}: selector does not match template labels",
                "spec.shootTemplate.metadata.labels: Invalid value: null: selector does not match template labels",
            ]
        );
    }

    #[test]
    fn val_ms2_status() {
        let set = |status: serde_json::Value| -> ManagedSeedSet {
            serde_json::from_value(
                serde_json::json!({"metadata": {"name": "m-1", "namespace": "garden"}, "status": status}),
            )
            .unwrap()
        };
        let old = set(serde_json::json!({"replicas": 1, "nextReplicaNumber": 3, "collisionCount": 2}));
        let pending = |name: &str, reason: &str| {
            serde_json::json!({"replicas": 1, "nextReplicaNumber": 3, "collisionCount": 2,
            "pendingReplica": {"name": name, "reason": reason, "retries": -1}})
        };
        for (status, wanted) in [
            (
                serde_json::json!({"replicas": 2, "nextReplicaNumber": 4, "collisionCount": 2}),
                vec![],
            ),
            (
                serde_json::json!({"observedGeneration": -1, "replicas": 1, "readyReplicas": 2, "updatedReplicas": -1, "nextReplicaNumber": 2}),
                vec![
                    "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
                    "status.updatedReplicas: Invalid value: -1: must be greater than or equal to 0",
                    "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
                    "status.nextReplicaNumber: Invalid value: 2: cannot be decremented",
                    "status.collisionCount: Invalid value: 0: cannot be decremented",
                ],
            ),
            (
                pending("m-1-x", "Boredom"),
                vec![
                    "status.pendingReplica.name: Invalid value: \"m-1-x\": must contain the parent name and a valid ordinal",
                    "status.pendingReplica.reason: Unsupported value: \"Boredom\": supported values: \"ShootReconciling\", \"ShootDeleting\", \"ShootReconcileFailed\", \"ShootDeleteFailed\", \"ManagedSeedPreparing\", \"ManagedSeedDeleting\", \"SeedNotReady\", \"ShootNotHealthy\"",
                    "status.pendingReplica.retries: Invalid value: -1: must be greater than or equal to 0",
                ],
            ),
            (
                pending("m-1-7", "SeedNotReady"),
                vec!["status.pendingReplica.retries: Invalid value: -1: must be greater than or equal to 0"],
            ),
        ] {
            let found = validate_managed_seed_set_status_update(&set(status), &old);
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn def_46_a_partition_is_told() {
        for (strategy, rolling) in [
            (serde_json::json!({"rollingUpdate": {}}), Some(Some(0))),
            (serde_json::json!({"rollingUpdate": {"partition": 1}}), Some(Some(1))),
            (serde_json::json!({}), None),
        ] {
            let mut set: ManagedSeedSet =
                serde_json::from_value(serde_json::json!({"metadata": {}, "spec": {"updateStrategy": strategy}}))
                    .unwrap();
            default_managed_seed_set(&mut set);
            let strategy = set.spec.update_strategy.unwrap();
            assert_eq!(strategy.rolling_update.map(|own| own.partition), rolling);
        }
    }

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

    #[test]
    fn val_a2_shoots_of_a_set_have_no_ingress_addon() {
        let refusals = |addons: serde_json::Value| -> Vec<String> {
            let mut set: ManagedSeedSet = serde_json::from_value(serde_json::json!({"metadata": {"name": "a", "namespace": "garden"},
                "spec": {"shootTemplate": {"spec": {"purpose": "evaluation", "kubernetes": {"version": "1.33.0"}, "addons": addons,
                    "provider": {"type": "x", "workers": [{"name": "w", "machine": {"type": "m"}}]}}}}}))
            .unwrap();
            default_managed_seed_set(&mut set);
            let errors = validate_managed_seed_set(&set);
            let told = errors.iter().filter(|error| error.path.as_str().contains("addons"));
            told.map(ToString::to_string).collect()
        };
        assert_eq!(
            refusals(serde_json::json!({"nginxIngress": {"enabled": true}})),
            [
                "spec.shootTemplate.spec.addons.nginxIngress.enabled: Forbidden: nginx ingress addon disallowed by landscape operator"
            ]
        );
        assert_eq!(
            refusals(serde_json::json!({"nginxIngress": {"enabled": false}})),
            [""; 0]
        );
    }
}
