//! Validation of quotas, [VAL-Q1].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::validation::{go_kind, immutable_as, object_meta, object_meta_update, reference_in_order, resource_amount};

const SCOPES: [(&str, &str); 3] = [
    ("core.gardener.cloud/v1beta1", "Project"),
    ("v1", "Secret"),
    ("security.gardener.cloud/v1alpha1", "WorkloadIdentity"),
];
/// The metrics that quotas limit, in the order in which they are told.
pub const QUOTA_METRICS: [&str; 6] = [
    "cpu",
    "gpu",
    "memory",
    "storage.standard",
    "storage.premium",
    "loadbalancer",
];

/// Checks a quota that is to be created or stored again.
pub fn validate_quota(quota: &Quota) -> ErrorList {
    let mut errors = object_meta(&quota.metadata, true, gardener_apimachinery::names::dns_subdomain);
    let spec = &quota.spec;
    let path = Path::new("spec");
    if let Some(days) = spec.cluster_lifetime_days
        && days < 1
    {
        errors.push(Error::invalid(
            &path.child("clusterLifetimeDays"),
            days,
            "must be greater than 0",
        ));
    }
    let scope = (
        spec.scope.api_version.as_deref().unwrap_or_default(),
        spec.scope.kind.as_deref().unwrap_or_default(),
    );
    if !SCOPES.contains(&scope) {
        let supported: Vec<String> = SCOPES.iter().map(|(version, kind)| go_kind(version, kind)).collect();
        errors.push(Error::not_supported(
            &path.child("scope"),
            go_kind(scope.0, scope.1),
            &supported,
        ));
    }
    // In reverse order of names, as upstream's recorded answer has it.
    for (metric, quantity) in spec.metrics.iter().flatten().rev() {
        let at = path.child("metrics").key(metric);
        if !QUOTA_METRICS.contains(&metric.as_str()) {
            errors.push(Error::invalid(
                &at,
                quantity.0.as_str(),
                format!("{metric} is no supported quota metric"),
            ));
        }
        errors.extend(resource_amount(metric, quantity, &at));
    }
    errors
}

/// Checks a change of a quota.
pub fn validate_quota_update(new: &Quota, old: &Quota) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(immutable_as(
        &new.spec.scope,
        &old.spec.scope,
        &Path::new("spec.scope"),
        reference_in_order,
    ));
    errors.extend(validate_quota(new));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_q1_what_is_counted_is_whole() {
        let metrics =
            serde_json::json!({"pods": "1500m", "example.com/cards": "-1500m", "other": "1500m", "cpu": "1500m"});
        let quota: Quota = serde_json::from_value(
            serde_json::json!({"metadata": {"name": "q", "namespace": "garden-local"},
            "spec": {"scope": {"apiVersion": "v1", "kind": "Secret"}, "metrics": metrics}}),
        )
        .unwrap();
        let texts: Vec<String> = validate_quota(&quota).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.metrics[pods]: Invalid value: \"1500m\": pods is no supported quota metric",
                "spec.metrics[pods]: Invalid value: \"1500m\": must be an integer",
                "spec.metrics[other]: Invalid value: \"1500m\": other is no supported quota metric",
                "spec.metrics[example.com/cards]: Invalid value: \"-1500m\": example.com/cards is no supported quota metric",
                "spec.metrics[example.com/cards]: Invalid value: \"-1500m\": must be greater than or equal to 0",
                "spec.metrics[example.com/cards]: Invalid value: \"-1500m\": must be an integer",
            ]
        );
    }

    #[test]
    fn val_q1_recorded_refusal() {
        let quota: Quota = serde_json::from_value(
            serde_json::json!({"metadata": {"name": "q", "namespace": "garden-local"},
            "spec": {"scope": {"apiVersion": "v1", "kind": "Node"}, "metrics": {"pods": "5", "memory": "-1Gi"}}}),
        )
        .unwrap();
        let texts: Vec<String> = validate_quota(&quota).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.scope: Unsupported value: \"/v1, Kind=Node\": supported values: \"core.gardener.cloud/v1beta1, Kind=Project\", \"/v1, Kind=Secret\", \"security.gardener.cloud/v1alpha1, Kind=WorkloadIdentity\"",
                "spec.metrics[pods]: Invalid value: \"5\": pods is no supported quota metric",
                "spec.metrics[memory]: Invalid value: \"-1Gi\": must be greater than or equal to 0",
            ]
        );
    }
}
