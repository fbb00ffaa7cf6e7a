//! The configurations of gardenlets that are embedded in ManagedSeeds, ManagedSeedSets and Gardenlets. Their type is in no document of the garden's API;
//! its schema stands in `recorded/gardenlet-configuration.json`. As upstream reads it into its type and writes that back, what the type does not know is
//! lost, and what does not fit is refused.
//!
//! What is wrong with a configuration that can be read is told in `apis`.

use std::sync::{Arc, LazyLock};

use gardener_apimachinery::type_meta::unreadable;
use gardener_apis::seedmanagement::v1alpha1::decode_gardenlet_config;
use gardener_schema::{Definitions, Schema};
use serde_json::Value;

use crate::openapi_documents;

const RECORDED: &str = include_str!("../recorded/gardenlet-configuration.json");
const KIND: &str = "GardenletConfiguration";

/// The schemas of configurations, and of Gardenlets, whose deployment has what those of ManagedSeeds have. None only where the program is damaged.
static SCHEMAS: LazyLock<Option<[Arc<Schema>; 2]>> = LazyLock::new(|| {
    let texts = openapi_documents().map(|(_, text)| text).chain([RECORDED]);
    let documents: Vec<Value> = texts.map(serde_json::from_str).collect::<Result<_, _>>().ok()?;
    let definitions = Definitions::from_openapi(&documents).ok()?;
    Some([
        definitions.for_kind("gardenlet.config.gardener.cloud", "v1alpha1", KIND)?,
        definitions.for_kind("seedmanagement.gardener.cloud", "v1alpha1", "Gardenlet")?,
    ])
});

/// Whether an embedded configuration can be read.
///
/// # Errors
/// What Go's decoder says of it.
pub(crate) fn decode(config: Option<&Value>) -> Result<(), String> {
    config.and_then(unreadable).map_or(Ok(()), Err)?;
    decode_gardenlet_config(config)?;
    match (config, &*SCHEMAS) {
        (Some(config), Some([schema, _])) => schema.decode(config, KIND).map_err(|why| why.to_string()),
        _ => Ok(()),
    }
}

/// Writes an embedded configuration as its Go type does.
pub(crate) fn normalize(config: Option<&mut Value>) {
    let (Some(config), Some([schema, _])) = (config, &*SCHEMAS) else {
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

/// Gives volumes and variables of a gardenlet's deployment the defaults that their types are marked with, and writes them as their Go types do.
pub(crate) fn default_deployment(volumes: &mut [Value], variables: &mut [Value]) {
    let Some([_, gardenlet]) = &*SCHEMAS else { return };
    let deployment = gardenlet.field("spec").and_then(|spec| spec.field("deployment"));
    for (list, elements) in [("additionalVolumes", volumes), ("env", variables)] {
        let Some(items) = deployment.and_then(|own| own.field(list)).and_then(Schema::items) else {
            continue;
        };
        for element in elements {
            items.fill_defaults(element);
            items.canonicalize(element);
            items.drop_empty(element);
            items.complete(element);
        }
    }
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
    fn volumes_and_variables_have_the_defaults_of_their_types() {
        let mut volumes: Vec<Value> = [
            json!({"name": "a", "iscsi": {"targetPortal": "t", "iqn": "i", "lun": 1}}),
            json!({"name": "b", "rbd": {"image": "i", "pool": "own"}}),
            json!({"name": "c", "azureDisk": {"diskName": "d", "diskURI": "u"}}),
            json!({"name": "d", "scaleIO": {"gateway": "g"}}),
            json!({"name": "e", "cephfs": {"monitors": []}}),
            json!({"name": "f", "configMap": {"items": [{"key": "k", "path": "p"}]}}),
            json!({"name": "g", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["a"]}}}}),
            json!({"name": "h", "emptyDir": {}}),
        ]
        .into();
        let source = |reference: Value| json!({"name": "A", "valueFrom": reference});
        let mut variables = vec![
            json!({"name": "A", "value": ""}),
            source(json!({"resourceFieldRef": {"resource": "limits.cpu"}})),
            source(json!({"secretKeyRef": {"key": "k"}})),
            source(json!({"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}})),
        ];
        for _ in 0..2 {
            default_deployment(&mut volumes, &mut variables);
            assert_eq!(
                volumes,
                [
                    json!({"name": "a", "iscsi": {"targetPortal": "t", "iqn": "i", "lun": 1, "iscsiInterface": "default"}}),
                    json!({"name": "b", "rbd": {"monitors": null, "image": "i", "pool": "own", "user": "admin", "keyring": "/etc/ceph/keyring"}}),
                    json!({"name": "c", "azureDisk": {"diskName": "d", "diskURI": "u", "cachingMode": "ReadWrite", "fsType": "ext4",
                        "readOnly": false, "kind": "Shared"}}),
                    json!({"name": "d", "scaleIO": {"gateway": "g", "system": "", "secretRef": null, "storageMode": "ThinProvisioned", "fsType": "xfs"}}),
                    json!({"name": "e", "cephfs": {"monitors": null}}),
                    json!({"name": "f", "configMap": {"items": [{"key": "k", "path": "p"}]}}),
                    json!({"name": "g", "ephemeral": {"volumeClaimTemplate": {"metadata": {}, "spec": {"accessModes": ["a"], "resources": {}}}}}),
                    json!({"name": "h", "emptyDir": {}}),
                ]
            );
            assert_eq!(
                variables,
                [
                    json!({"name": "A"}),
                    source(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}})),
                    source(json!({"secretKeyRef": {"key": "k"}})),
                    source(json!({"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k", "optional": false}})),
                ]
            );
        }
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
        assert_eq!(
            refused(json!({"apiVersion": "x/__internal", "kind": "Other"})),
            "no kind \"Other\" is registered for the internal version of group \"x\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        assert_eq!(
            refused(json!("x")),
            "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"
        );
    }
}
