//! Defaults of controller registrations, [DEF-43].

use super::*;
use crate::Duration;

/// Fills in what the user left out.
pub fn default_controller_registration(registration: &mut ControllerRegistration) {
    for resource in &mut registration.spec.resources {
        resource.primary.get_or_insert(true);
        match resource.kind.as_str() {
            "Extension" => {
                if resource.cluster_compatibility.is_empty() {
                    resource.cluster_compatibility.push("shoot".into());
                }
                resource.reconcile_timeout.get_or_insert(Duration::from_secs(180));
                let lifecycle = resource.lifecycle.get_or_insert_default();
                lifecycle.reconcile.get_or_insert_with(|| "AfterKubeAPIServer".into());
                lifecycle.delete.get_or_insert_with(|| "BeforeKubeAPIServer".into());
                lifecycle.migrate.get_or_insert_with(|| "BeforeKubeAPIServer".into());
            }
            "SelfHostedShootExposure" => {
                resource.continuous_endpoint_update.get_or_insert(true);
            }
            _ => {}
        }
    }
    if let Some(deployment) = &mut registration.spec.deployment {
        deployment.policy.get_or_insert_with(|| "OnDemand".into());
    }
}
