//! Defaults and validation of gardenlets, [DEF-45], [VAL-GL1].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::constants::{GARDEN_NAMESPACE, operation};
use crate::core::v1::validate_oci_repository;
use crate::validation::{object_meta, object_meta_update, operation_annotation};

const OPERATIONS: [&str; 3] = ["force-redeploy", operation::RECONCILE, "renew-kubeconfig"];

/// Fills in what the user left out.
pub fn default_gardenlet(gardenlet: &mut Gardenlet) {
    let deployment = &mut gardenlet.spec.deployment;
    deployment.replica_count.get_or_insert(2);
    deployment.revision_history_limit.get_or_insert(2);
    default_image(deployment.image.get_or_insert_default());
    deployment.enable_health_probes.get_or_insert(true);
    default_gardenlet_config(&mut gardenlet.spec.config, true);
}

/// Checks a gardenlet that is to be created or stored again.
pub fn validate_gardenlet(gardenlet: &Gardenlet) -> ErrorList {
    let mut errors = object_meta(&gardenlet.metadata, true, gardener_apimachinery::names::dns_label);
    if gardenlet.metadata.namespace.as_deref() != Some(GARDEN_NAMESPACE) {
        errors.push(Error::forbidden(
            &Path::new("metadata.namespace"),
            "namespace must be garden",
        ));
    }
    errors.extend(operation_annotation(&gardenlet.metadata, None, &OPERATIONS));
    let path = Path::new("spec");
    let deployment = &gardenlet.spec.deployment;
    errors.extend(validate_gardenlet_deployment(
        deployment.replica_count,
        deployment.revision_history_limit,
        deployment.service_account_name.as_deref(),
        deployment.image.as_ref(),
        (&deployment.pod_labels, &deployment.pod_annotations),
        &path.child("deployment"),
    ));
    errors.extend(validate_oci_repository(
        &deployment.helm.oci_repository,
        &path.child("deployment.helm.ociRepository"),
    ));
    if let Some(config) = &gardenlet.spec.config {
        let at = path.child("config");
        errors.extend(validate_gardenlet_config(config, "BootstrapToken", false, &at));
    }
    errors
}

/// Checks a change of a gardenlet's status.
pub fn validate_gardenlet_status_update(new: &Gardenlet) -> ErrorList {
    observed_generation(new.status.observed_generation)
}

/// Checks a change of a gardenlet.
pub fn validate_gardenlet_update(new: &Gardenlet, old: &Gardenlet) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(
        operation_annotation(&new.metadata, Some(&old.metadata), &OPERATIONS)
            .into_iter()
            .filter(|error| error.detail.starts_with("must not overwrite")),
    );
    let (config, before) = (new.spec.config.as_ref(), old.spec.config.as_ref());
    errors.extend(validate_gardenlet_config_update(
        config,
        before,
        &Path::new("spec.config"),
    ));
    errors.extend(validate_gardenlet(new));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_in_a_gardenlets_configuration_changes_as_a_seed_may() {
        let gardenlet = |pods: &str| -> Gardenlet {
            serde_json::from_value(serde_json::json!({"metadata": {"name": "g1", "namespace": "garden"},
                "spec": {"config": {"seedConfig": {"spec": {"networks": {"pods": pods, "services": "10.2.0.0/16"}}}}}}))
            .unwrap()
        };
        let (old, new) = (gardenlet("10.1.0.0/16"), gardenlet("10.3.0.0/16"));
        let of_networks = |errors: ErrorList| -> Vec<String> {
            let texts = errors.iter().map(ToString::to_string);
            texts.filter(|text| text.contains("immutable")).collect()
        };
        assert_eq!(
            of_networks(validate_gardenlet_update(&new, &old)),
            ["spec.config.seedConfig.spec.networks.pods: Invalid value: \"10.3.0.0/16\": field is immutable"]
        );
        assert!(of_networks(validate_gardenlet_update(&old, &old)).is_empty());
    }

    #[test]
    fn only_a_gardenlets_configuration_is_read_as_one() {
        let decode = |config: serde_json::Value| decode_gardenlet_config(Some(&config)).map_err(|why| why.to_string());
        assert_eq!(decode(serde_json::json!({})), Ok(()));
        assert_eq!(
            decode(serde_json::json!({"kind": "Other"})).unwrap_err(),
            "no kind \"Other\" is registered for version \"gardenlet.config.gardener.cloud/v1alpha1\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        assert_eq!(
            decode(serde_json::json!({"apiVersion": "a/b/c"})).unwrap_err(),
            "unexpected GroupVersion string: a/b/c"
        );
    }

    #[test]
    fn val_gl1_recorded_refusal() {
        let mut gardenlet: Gardenlet = serde_json::from_value(serde_json::json!({"metadata": {"name": "g1", "namespace": "garden"},
            "spec": {"deployment": {"replicaCount": -1, "helm": {"ociRepository": {}}},
                     "config": {"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration"}}}))
        .unwrap();
        default_gardenlet(&mut gardenlet);
        let texts: Vec<String> = validate_gardenlet(&gardenlet).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.deployment.replicaCount: Invalid value: -1: must be greater than or equal to 0",
                "spec.deployment.helm.ociRepository: Required value: must provide either ref or repository"
            ]
        );
    }
}
