//! Validation of controller registrations, [VAL-CR1], [EXT-90].

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::meta;

use super::*;
use crate::validation::{immutable, object_meta, object_meta_update, requested_changes};

/// The kinds of extension resources, in upstream's order.
pub const EXTENSION_KINDS: [&str; 12] = [
    "BackupBucket",
    "BackupEntry",
    "Bastion",
    "DNSRecord",
    "Infrastructure",
    "Network",
    "SelfHostedShootExposure",
    "ContainerRuntime",
    "ControlPlane",
    "Extension",
    "OperatingSystemConfig",
    "Worker",
];
const CLUSTER_TYPES: [&str; 2] = ["seed", "shoot"];
const POLICIES: [&str; 3] = ["Always", "AlwaysExceptNoShoots", "OnDemand"];

/// Checks a controller registration that is to be created or stored again.
pub fn validate_controller_registration(registration: &ControllerRegistration) -> ErrorList {
    let mut errors = object_meta(&registration.metadata, false, gardener_apimachinery::names::dns_label);
    let spec = &registration.spec;
    let path = Path::new("spec");
    let resources = &spec.resources;
    // of each kind upstream remembers the last type only
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    for (i, resource) in resources.iter().enumerate() {
        let at = path.child("resources").index(i);
        let before = types.insert(&resource.kind, &resource.r#type);
        errors.extend(validate_resource(resource, before == Some(&resource.r#type), &at));
    }
    if let Some(deployment) = &spec.deployment {
        let at = path.child("deployment");
        if let Some(policy) = &deployment.policy
            && !POLICIES.contains(&policy.as_str())
        {
            errors.push(Error::not_supported(&at.child("policy"), policy.as_str(), &POLICIES));
        }
        if let Some(selector) = &deployment.seed_selector {
            if resources.iter().any(|resource| resource.primary.unwrap_or(true)) {
                errors.push(Error::forbidden(
                    &at.child("seedSelector"),
                    "specifying a seed selector is not allowed when controlling resources primarily",
                ));
            }
            errors.extend(meta::validate_label_selector(selector, &at.child("seedSelector")));
        }
        if deployment.deployment_refs.len() > 1 {
            errors.push(Error::forbidden(
                &at.child("deploymentRefs"),
                "only one deployment reference is allowed",
            ));
        }
        for (i, reference) in deployment.deployment_refs.iter().enumerate() {
            if reference.name.is_empty() {
                errors.push(Error::required(
                    &at.child("deploymentRefs").index(i).child("name"),
                    "must not be empty",
                ));
            }
        }
    }
    errors
}

fn validate_resource(resource: &ControllerResource, again: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if resource.kind.is_empty() {
        errors.push(Error::required(&path.child("kind"), "field is required"));
    }
    if !EXTENSION_KINDS.contains(&resource.kind.as_str()) {
        errors.push(Error::not_supported(
            &path.child("kind"),
            resource.kind.as_str(),
            &EXTENSION_KINDS,
        ));
    }
    if resource.r#type.is_empty() {
        errors.push(Error::required(&path.child("type"), "field is required"));
    }
    if again {
        let shown = format!("{}/{}", resource.kind, resource.r#type);
        errors.push(Error::duplicate(path, shown));
    }
    let mut only_for = |set: bool, field: &str, kind: &str| {
        if set && resource.kind != kind {
            errors.push(Error::forbidden(
                &path.child(field),
                format!("field must not be set when kind != {kind}"),
            ));
        }
    };
    only_for(
        resource.continuous_endpoint_update.is_some(),
        "continuousEndpointUpdate",
        "SelfHostedShootExposure",
    );
    only_for(!resource.auto_enable.is_empty(), "autoEnable", "Extension");
    only_for(
        !resource.cluster_compatibility.is_empty(),
        "clusterCompatibility",
        "Extension",
    );
    only_for(resource.reconcile_timeout.is_some(), "reconcileTimeout", "Extension");
    only_for(resource.lifecycle.is_some(), "lifecycle", "Extension");
    if resource.kind != "Extension" {
        return errors;
    }
    let compatible = &resource.cluster_compatibility;
    for (field, list) in [
        ("clusterCompatibility", compatible),
        ("autoEnable", &resource.auto_enable),
    ] {
        let mut seen = BTreeSet::new();
        for (i, cluster) in list.iter().enumerate() {
            let at = path.child(field).index(i);
            if !CLUSTER_TYPES.contains(&cluster.as_str()) {
                errors.push(Error::not_supported(&at, cluster.as_str(), &CLUSTER_TYPES));
            }
            if field == "autoEnable" && !compatible.contains(cluster) {
                let why = format!(
                    "autoEnable is not allowed for cluster type {cluster:?} when clusterCompatibility is set to [{}]",
                    compatible
                        .iter()
                        .collect::<BTreeSet<_>>()
                        .into_iter()
                        .map(String::as_str)
                        .collect::<Vec<_>>()
                        .join(" ")
                );
                errors.push(Error::forbidden(&at, why));
            }
            if !seen.insert(cluster) {
                errors.push(Error::duplicate(&at, cluster.as_str()));
            }
        }
    }
    if let Some(lifecycle) = &resource.lifecycle {
        const STRATEGIES: [&str; 3] = ["AfterKubeAPIServer", "AfterWorker", "BeforeKubeAPIServer"];
        const SHORT: [&str; 2] = ["AfterKubeAPIServer", "BeforeKubeAPIServer"];
        for (field, value, allowed) in [
            ("reconcile", &lifecycle.reconcile, &STRATEGIES[..]),
            ("delete", &lifecycle.delete, &SHORT[..]),
            ("migrate", &lifecycle.migrate, &SHORT[..]),
        ] {
            if let Some(value) = value
                && !allowed.contains(&value.as_str())
            {
                errors.push(Error::not_supported(
                    &path.child("lifecycle").child(field),
                    value.as_str(),
                    allowed,
                ));
            }
        }
    }
    errors
}

/// Checks a change of a controller registration.
pub fn validate_controller_registration_update(
    new: &ControllerRegistration,
    old: &ControllerRegistration,
) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let path = Path::new("spec");
    if new.metadata.deletion_timestamp.is_some() && new.spec != old.spec {
        let why = requested_changes("controller registration", &old.spec, &new.spec);
        errors.push(Error::forbidden(&path, why));
        errors.extend(validate_controller_registration(new));
        return errors;
    }
    for (i, resource) in new.spec.resources.iter().enumerate() {
        let same = |earlier: &&ControllerResource| earlier.kind == resource.kind && earlier.r#type == resource.r#type;
        if let Some(earlier) = old.spec.resources.iter().find(same) {
            errors.extend(immutable(
                &resource.primary,
                &earlier.primary,
                &path.child("resources").index(i).child("primary"),
            ));
        }
    }
    errors.extend(validate_controller_registration(new));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn val_cr1_recorded_refusal() {
        let mut registration: ControllerRegistration = serde_json::from_value(json!({"metadata": {"name": "r1"}, "spec": {
            "deployment": {"policy": "Sometimes"},
            "resources": [{"kind": "Magic", "type": "x"}, {"kind": "Worker", "type": "a", "autoEnable": ["shoot"]}, {"kind": "Worker", "type": "a"}]}}))
        .unwrap();
        default_controller_registration(&mut registration);
        let texts: Vec<String> = validate_controller_registration(&registration)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "spec.resources[0].kind: Unsupported value: \"Magic\": supported values: \"BackupBucket\", \"BackupEntry\", \"Bastion\", \"DNSRecord\", \"Infrastructure\", \"Network\", \"SelfHostedShootExposure\", \"ContainerRuntime\", \"ControlPlane\", \"Extension\", \"OperatingSystemConfig\", \"Worker\"",
                "spec.resources[1].autoEnable: Forbidden: field must not be set when kind != Extension",
                "spec.resources[2]: Duplicate value: \"Worker/a\"",
                "spec.deployment.policy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"AlwaysExceptNoShoots\", \"OnDemand\"",
            ]
        );
    }
}
