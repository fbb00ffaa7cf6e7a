//! Whether single objects are healthy, as waits and care see it [EXT-172], [EXT-174]. Not which objects a cluster must have.

use gardener_apis::druid::v1alpha1::Etcd;
use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::conditions;
use k8s_openapi::api::apps::v1::Deployment;

fn named(namespace: &Option<String>, name: &Option<String>) -> String {
    format!(
        "{}/{}",
        namespace.as_deref().unwrap_or_default(),
        name.as_deref().unwrap_or_default()
    )
}

/// Whether a ManagedResource is applied and healthy [EXT-174].
///
/// # Errors
/// The first check that failed.
pub fn managed_resource(resource: &ManagedResource) -> Result<(), String> {
    let name = named(&resource.metadata.namespace, &resource.metadata.name);
    let (observed, generation) = (
        resource.status.observed_generation.unwrap_or_default(),
        resource.metadata.generation.unwrap_or_default(),
    );
    if observed != generation {
        return Err(format!(
            "observed generation of managed resource {name} outdated ({observed}/{generation})"
        ));
    }
    for wanted in ["ResourcesApplied", "ResourcesHealthy"] {
        match conditions::get(&resource.status.conditions, wanted) {
            None => {
                return Err(format!(
                    "condition {wanted} for managed resource {name} has not been reported yet"
                ));
            }
            Some(found) if found.status != "True" => {
                return Err(format!(
                    "condition {wanted} of managed resource {name} is {}: {}",
                    found.status, found.message
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Whether a Deployment is healthy [EXT-172].
///
/// # Errors
/// The first check that failed.
pub fn deployment(deployment: &Deployment) -> Result<(), String> {
    let status = deployment.status.clone().unwrap_or_default();
    let (observed, generation) = (
        status.observed_generation.unwrap_or_default(),
        deployment.metadata.generation.unwrap_or_default(),
    );
    if observed < generation {
        return Err(format!("observed generation outdated ({observed}/{generation})"));
    }
    let conditions = status.conditions.unwrap_or_default();
    for (wanted, is, required) in [
        ("Available", "True", true),
        ("Progressing", "True", false),
        ("ReplicaFailure", "False", false),
    ] {
        match conditions.iter().find(|one| one.type_.as_deref() == Some(wanted)) {
            None if required => return Err(format!("condition {wanted:?} is missing")),
            Some(found) if found.status.as_deref() != Some(is) => {
                let message = found.message.as_deref().unwrap_or_default();
                return Err(format!(
                    "condition {wanted:?} has invalid status {} (expected {is}) due to {}: {message}",
                    found.status.as_deref().unwrap_or_default(),
                    found.reason.as_deref().unwrap_or_default(),
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a Deployment has finished its rollout: as many updated and available replicas as desired, and no old ones.
///
/// # Errors
/// What is missing.
pub fn rolled_out(deployment: &Deployment) -> Result<(), String> {
    self::deployment(deployment).or_else(|why| match desired(deployment) {
        // Nothing is to be available.
        0 if !why.starts_with("observed") => Ok(()),
        _ => Err(why),
    })?;
    let status = deployment.status.clone().unwrap_or_default();
    let desired = desired(deployment);
    let updated = status.updated_replicas.unwrap_or_default();
    if updated < desired {
        return Err(format!("{updated} of {desired} replicas are updated"));
    }
    let all = status.replicas.unwrap_or_default();
    if all > updated {
        return Err(format!("{} old replicas are pending termination", all - updated));
    }
    let available = status.available_replicas.unwrap_or_default();
    if available < updated {
        return Err(format!("{available} of {updated} updated replicas are available"));
    }
    Ok(())
}

fn desired(deployment: &Deployment) -> i32 {
    deployment.spec.replicas.unwrap_or(1)
}

/// Whether an Etcd is reconciled and ready.
///
/// # Errors
/// The first check that failed.
pub fn etcd(etcd: &Etcd) -> Result<(), String> {
    let annotations = etcd.metadata.annotations.as_ref();
    if annotations.is_some_and(|all| all.contains_key("gardener.cloud/operation")) {
        return Err("gardener operation \"reconcile\" is not yet picked up by etcd-druid".to_owned());
    }
    let generation = etcd.metadata.generation.unwrap_or_default();
    match etcd.status.observed_generation {
        None => return Err("observed generation not recorded".to_owned()),
        Some(observed) if observed != generation => {
            return Err(format!("observed generation outdated ({observed}/{generation})"));
        }
        Some(_) => {}
    }
    match etcd.status.ready {
        Some(true) => Ok(()),
        _ => Err(format!(
            "etcd {:?} is not ready yet",
            etcd.metadata.name.as_deref().unwrap_or_default()
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(status: serde_json::Value) -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"name": "x", "generation": 2},
            "spec": {"replicas": 2, "selector": {}, "template": {}},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn ext_172_deployments() {
        let available = json!([{"type": "Available", "status": "True"}]);
        let table = [
            (json!({"observedGeneration": 1}), "observed generation outdated (1/2)"),
            (json!({"observedGeneration": 2}), "condition \"Available\" is missing"),
            (
                json!({"observedGeneration": 2, "conditions": available, "replicas": 3, "updatedReplicas": 2}),
                "1 old replicas are pending termination",
            ),
            (
                json!({"observedGeneration": 2, "conditions": available, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}),
                "1 of 2 updated replicas are available",
            ),
            (
                json!({"observedGeneration": 2, "conditions": available, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}),
                "",
            ),
        ];
        for (status, expected) in table {
            assert_eq!(rolled_out(&of(status)).err().unwrap_or_default(), expected);
        }
    }

    #[test]
    fn ext_174_managed_resources() {
        let resource = |conditions: serde_json::Value| -> ManagedResource {
            serde_json::from_value(json!({
                "metadata": {"name": "m", "namespace": "n", "generation": 1},
                "status": {"observedGeneration": 1, "conditions": conditions},
            }))
            .unwrap()
        };
        let applied = json!({"type": "ResourcesApplied", "status": "True"});
        let table = [
            (
                json!([]),
                "condition ResourcesApplied for managed resource n/m has not been reported yet",
            ),
            (
                json!([applied, {"type": "ResourcesHealthy", "status": "False", "message": "no"}]),
                "condition ResourcesHealthy of managed resource n/m is False: no",
            ),
            (json!([applied, {"type": "ResourcesHealthy", "status": "True"}]), ""),
        ];
        for (conditions, expected) in table {
            assert_eq!(
                managed_resource(&resource(conditions)).err().unwrap_or_default(),
                expected
            );
        }
    }
}
