//! The configurations of gardenlets that are embedded in ManagedSeeds, ManagedSeedSets and Gardenlets. Their type is in no document of the garden's API;
//! its schema stands in `recorded/gardenlet-configuration.json`. As upstream reads it into its type and writes that back, what the type does not know is
//! lost, and what does not fit is refused.
//!
//! What is wrong with a configuration that can be read is told in `apis`.

use std::sync::{Arc, LazyLock};

use gardener_apis::seedmanagement::v1alpha1::decode_gardenlet_config;
use gardener_schema::{Definitions, Schema};
use serde_json::Value;

use crate::openapi_documents;

const RECORDED: &str = include_str!("../recorded/gardenlet-configuration.json");
const KIND: &str = "GardenletConfiguration";

/// None only where the program is damaged.
static SCHEMA: LazyLock<Option<Arc<Schema>>> = LazyLock::new(|| {
    let texts = openapi_documents().map(|(_, text)| text).chain([RECORDED]);
    let documents: Vec<Value> = texts.map(serde_json::from_str).collect::<Result<_, _>>().ok()?;
    let definitions = Definitions::from_openapi(&documents).ok()?;
    definitions.for_kind("gardenlet.config.gardener.cloud", "v1alpha1", KIND)
});

/// Whether an embedded configuration can be read.
///
/// # Errors
/// What Go's decoder says of it.
pub(crate) fn decode(config: Option<&Value>) -> Result<(), String> {
    decode_gardenlet_config(config)?;
    match (config, &*SCHEMA) {
        (Some(config), Some(schema)) => schema.decode(config, KIND).map_err(|why| why.to_string()),
        _ => Ok(()),
    }
}

/// Writes an embedded configuration as its Go type does.
pub(crate) fn normalize(config: Option<&mut Value>) {
    let (Some(config), Some(schema)) = (config, &*SCHEMA) else {
        return;
    };
    if !config.is_object() || schema.decode(config, KIND).is_err() {
        return;
    }
    schema.prune(config);
    schema.canonicalize(config);
    schema.drop_empty(config);
    schema.complete(config);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn configurations_are_as_their_type_writes_them() {
        let mut config = json!({
            "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": KIND, "colour": "blue",
            "controllers": {"shoot": {"syncPeriod": "60m", "concurrentSyncs": 0, "speed": 1}, "shootCare": {"conditionThresholds": [{"type": "A"}]}},
            "leaderElection": {"leaderElect": true}, "featureGates": {}, "exposureClassHandlers": [{"name": "x"}],
            "gardenClientConnection": {"qps": 100},
            "seedConfig": {"metadata": {"labels": {"a": "b"}}, "spec": {"provider": {"type": "local", "size": "xl"}}},
        });
        normalize(Some(&mut config));
        assert_eq!(
            config["controllers"],
            json!({"shoot": {"syncPeriod": "1h0m0s", "concurrentSyncs": 0}, "shootCare": {"conditionThresholds": [{"type": "A", "duration": "0s"}]}})
        );
        assert_eq!(
            config["leaderElection"],
            json!({"leaderElect": true, "leaseDuration": "0s", "renewDeadline": "0s", "retryPeriod": "0s", "resourceLock": "",
                "resourceName": "", "resourceNamespace": ""})
        );
        assert_eq!(
            config["exposureClassHandlers"],
            json!([{"name": "x", "loadBalancerService": {"annotations": null}}])
        );
        assert_eq!(
            config["gardenClientConnection"],
            json!({"kubeconfig": "", "acceptContentTypes": "", "contentType": "", "qps": 100, "burst": 0})
        );
        assert!(config.get("colour").is_none() && config.get("featureGates").is_none());
        assert!(config["seedConfig"]["spec"]["provider"].get("size").is_none());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |config: Value| decode(Some(&config)).unwrap_err();
        assert_eq!(
            refused(json!({"controllers": {"shoot": {"concurrentSyncs": "many"}}})),
            "json: cannot unmarshal string into Go struct field ShootControllerConfiguration.controllers.shoot.concurrentSyncs of type int"
        );
        assert_eq!(
            refused(json!({"controllers": {"shoot": {"syncPeriod": "long"}}})),
            "time: invalid duration \"long\""
        );
        assert!(refused(json!({"kind": "Other"})).contains("no kind \"Other\" is registered"));
    }
}
