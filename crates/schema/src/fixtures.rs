//! Recorded schemas for tests.

use std::sync::Arc;

use serde_json::Value;

use crate::{Definitions, Schema};

const CRDS: [&str; 6] = [
    include_str!("../recorded/crds/autoscaling.k8s.io_verticalpodautoscalers.yaml"),
    include_str!("../recorded/crds/druid.gardener.cloud_etcds.yaml"),
    include_str!("../recorded/crds/extensions.gardener.cloud_dnsrecords.yaml"),
    include_str!("../recorded/crds/extensions.gardener.cloud_workers.yaml"),
    include_str!("../recorded/crds/machine.sapcloud.io_machines.yaml"),
    include_str!("../recorded/crds/resources.gardener.cloud_managedresources.yaml"),
];

fn definitions(documents: &[&str]) -> Definitions {
    let documents: Vec<Value> = documents
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    Definitions::from_openapi(&documents).unwrap()
}

/// Some built-in kinds of a kube-apiserver.
pub fn built_in() -> Definitions {
    definitions(&[
        include_str!("../recorded/openapi/apis_apps_v1.json"),
        include_str!("../recorded/openapi/apis_apiextensions.k8s.io_v1.json"),
    ])
}

/// The kinds of `core.gardener.cloud/v1beta1`.
pub fn gardener() -> Definitions {
    definitions(&[include_str!("../recorded/openapi/core.gardener.cloud_v1beta1.json")])
}

/// The schema of `apps/v1` `Deployment`.
pub fn deployment() -> Arc<Schema> {
    built_in().for_kind("apps", "v1", "Deployment").unwrap()
}

/// CRDs that a seed carries: their names and the schemas of their versions.
pub fn crds() -> Vec<(String, Vec<Value>)> {
    CRDS.iter()
        .map(|text| {
            let crd: Value = serde_saphyr::from_str(text).unwrap();
            let versions = crd["spec"]["versions"].as_array().unwrap();
            let schemas = versions
                .iter()
                .map(|version| version["schema"]["openAPIV3Schema"].clone())
                .collect();
            (crd["metadata"]["name"].to_string(), schemas)
        })
        .collect()
}
