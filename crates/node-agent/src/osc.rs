//! What the kubelet is to be, read from an OperatingSystemConfig [OSC-5], [OSC-6].

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gardener_apis::extensions::v1alpha1::{OperatingSystemConfig, OperatingSystemConfigFile};
use k8s_openapi::api::core::v1::Taint;
use serde::Deserialize;

/// The node's Kubernetes version, as the agent tells it.
pub const VERSION_LABEL: &str = "worker.gardener.cloud/kubernetes-version";
const KUBELET_UNIT: &str = "kubelet.service";
const KUBELET_CONFIG: &str = "/var/lib/kubelet/config/kubelet";

/// What the kubelet of an OperatingSystemConfig is to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kubelet {
    /// Its version, without `v`; empty when nothing says it.
    pub version: String,
    /// Labels the node registers with.
    pub labels: BTreeMap<String, String>,
    /// Taints the node registers with.
    pub taints: Vec<Taint>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KubeletConfiguration {
    register_with_taints: Vec<Taint>,
}

fn text(file: &OperatingSystemConfigFile) -> Option<String> {
    let inline = file.content.inline.as_ref()?;
    if inline.encoding == "b64" {
        String::from_utf8(BASE64_STANDARD.decode(&inline.data).ok()?).ok()
    } else {
        Some(inline.data.clone())
    }
}

/// Reads the kubelet's flags and configuration.
///
/// # Errors
/// When the configuration is not YAML.
pub fn kubelet(osc: &OperatingSystemConfig) -> Result<Kubelet, String> {
    let mut kubelet = Kubelet::default();
    let unit = osc.spec.units.iter().find(|unit| unit.name == KUBELET_UNIT);
    let command = unit.and_then(|unit| unit.content.as_deref()).unwrap_or_default();
    for word in command.split_whitespace() {
        let Some(labels) = word.strip_prefix("--node-labels=") else {
            continue;
        };
        for (key, value) in labels.split(',').filter_map(|label| label.split_once('=')) {
            kubelet.labels.insert(key.to_owned(), value.to_owned());
        }
    }
    let in_place = osc
        .spec
        .in_place_updates
        .as_ref()
        .map(|updates| updates.kubelet.clone());
    let version = kubelet
        .labels
        .get(VERSION_LABEL)
        .cloned()
        .or(in_place)
        .unwrap_or_default();
    kubelet.version = version.trim_start_matches('v').to_owned();
    let file = osc.spec.files.iter().find(|file| file.path == KUBELET_CONFIG);
    if let Some(config) = file.and_then(text) {
        let config: KubeletConfiguration =
            serde_saphyr::from_str(&config).map_err(|error| format!("file {KUBELET_CONFIG}: {error}"))?;
        kubelet.taints = config.register_with_taints;
    }
    Ok(kubelet)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn osc_5_the_kubelet_is_read() {
        let osc: OperatingSystemConfig = serde_json::from_value(json!({"metadata": {}, "spec": {
            "units": [{"name": "kubelet.service", "content": "[Service]\nExecStart=/opt/bin/kubelet \\\n    --node-labels=worker.gardener.cloud/kubernetes-version=1.36.0,a=b \\\n    --v=2\n"}],
            "files": [{"path": KUBELET_CONFIG, "content": {"inline": {"encoding": "", "data": "registerWithTaints: [{key: x, effect: NoSchedule}]"}}}],
        }}))
        .unwrap();
        let found = kubelet(&osc).unwrap();
        assert_eq!((&*found.version, &*found.labels["a"]), ("1.36.0", "b"));
        assert_eq!(found.taints[0].key, "x");
        assert_eq!(kubelet(&OperatingSystemConfig::default()), Ok(Kubelet::default()));
    }
}
