//! What changes between two OperatingSystemConfigs, and what the disk says of the kubelet [GNA-12].

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gardener_apis::extensions::v1alpha1::{
    OperatingSystemConfig, OperatingSystemConfigFile, OperatingSystemConfigUnit,
};
use serde::Deserialize;

use crate::disk::{Files, path};
use crate::host::{Kubelet, Taint};

/// The unit of the kubelet.
pub(crate) const KUBELET_UNIT: &str = "kubelet.service";
const NODE_LABELS: &str = "--node-labels=";
const DEFAULT_MAX_PODS: u32 = 110;

/// A configuration that cannot be applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A file with content that is not there or not readable.
    #[error("file {path} of the operating system config has no usable content: {why}")]
    Content {
        /// Which file.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// Something the kubelet needs.
    #[error("the operating system config brings no {0}")]
    Missing(&'static str),
    /// The kubelet's configuration.
    #[error("the kubelet's configuration cannot be read: {0}")]
    Kubelet(String),
}

/// What is to be done on the machine.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Changes {
    /// Files to write, with their content; a file from an image has the image as content.
    pub(crate) files: Files,
    /// Files that are gone.
    pub(crate) removed_files: BTreeSet<String>,
    /// Units to restart, for they or their files changed.
    pub(crate) units: BTreeSet<String>,
    /// Units that are gone.
    pub(crate) removed_units: BTreeSet<String>,
}

fn content(file: &OperatingSystemConfigFile) -> Result<String, ConfigError> {
    let refused = |why: String| ConfigError::Content {
        path: file.path.clone(),
        why,
    };
    if let Some(image) = &file.content.image_ref {
        return Ok(image.image.clone());
    }
    let Some(inline) = &file.content.inline else {
        return Err(refused("neither inline nor from an image".to_owned()));
    };
    if inline.encoding != "b64" {
        return Ok(inline.data.clone());
    }
    let bytes = BASE64_STANDARD
        .decode(&inline.data)
        .map_err(|error| refused(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| refused(error.to_string()))
}

/// The same thing as the type that the CRD has for it in `spec`: `status` repeats it with a type of its own.
fn as_in_spec<T: serde::Serialize, S: serde::de::DeserializeOwned>(items: &[T]) -> Vec<S> {
    let read = |item| serde_json::to_value(item).and_then(serde_json::from_value).ok();
    items.iter().filter_map(read).collect()
}

/// The files of a host: those of the config and those that extensions add.
fn files(config: &OperatingSystemConfig, host: &str) -> Vec<OperatingSystemConfigFile> {
    let mut all = config.spec.files.clone();
    all.extend(as_in_spec(&config.status.extension_files));
    all.retain(|file| file.host_name.as_deref().is_none_or(|name| name == host));
    all
}

/// Units by name; what extensions add to a unit of the same name counts for more.
fn units(config: &OperatingSystemConfig) -> BTreeMap<String, OperatingSystemConfigUnit> {
    let mut merged: BTreeMap<String, OperatingSystemConfigUnit> = BTreeMap::new();
    let extensions: Vec<OperatingSystemConfigUnit> = as_in_spec(&config.status.extension_units);
    for unit in config.spec.units.iter().chain(&extensions) {
        match merged.get_mut(&unit.name) {
            None => {
                merged.insert(unit.name.clone(), unit.clone());
            }
            Some(own) => {
                own.enable = unit.enable.or(own.enable);
                own.command = unit.command.clone().or(own.command.take());
                own.content = unit.content.clone().or(own.content.take());
                own.drop_ins.extend(unit.drop_ins.iter().cloned());
                own.file_paths.extend(unit.file_paths.iter().cloned());
            }
        }
    }
    merged
}

/// What changes on `host` from the configuration that was applied last [GNA-12]. Without one everything is new.
///
/// # Errors
/// [`ConfigError`].
pub(crate) fn changes(
    last: Option<&OperatingSystemConfig>,
    new: &OperatingSystemConfig,
    host: &str,
) -> Result<Changes, ConfigError> {
    let mut changes = Changes::default();
    let before: BTreeMap<String, OperatingSystemConfigFile> = last
        .map(|last| files(last, host))
        .unwrap_or_default()
        .into_iter()
        .map(|file| (file.path.clone(), file))
        .collect();
    let mut kept = BTreeSet::new();
    for file in files(new, host) {
        if before.get(&file.path) != Some(&file) {
            changes.files.insert(file.path.clone(), content(&file)?);
        }
        kept.insert(file.path);
    }
    changes.removed_files = before.into_keys().filter(|path| !kept.contains(path)).collect();
    let (old_units, new_units) = (last.map(units).unwrap_or_default(), units(new));
    for (name, unit) in &new_units {
        let touched = unit.file_paths.iter().any(|path| changes.files.contains_key(path));
        if touched || old_units.get(name) != Some(unit) {
            changes.units.insert(name.clone());
        }
    }
    let gone = old_units.keys().filter(|name| !new_units.contains_key(*name));
    changes.removed_units = gone.cloned().collect();
    Ok(changes)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KubeletConfiguration {
    #[serde(default)]
    register_with_taints: Vec<Taint>,
    max_pods: Option<u32>,
}

/// How the kubelet is to run on the node: its version by its image, its labels by its unit, the rest by its configuration [OSC-5].
///
/// # Errors
/// [`ConfigError`].
pub(crate) fn kubelet(config: &OperatingSystemConfig, disk: &Files, node: &str) -> Result<Kubelet, ConfigError> {
    let image = disk.get(path::KUBELET).ok_or(ConfigError::Missing("kubelet"))?;
    let version = image
        .rsplit_once(':')
        .map(|(_, tag)| tag)
        .ok_or(ConfigError::Missing("version of the kubelet in its image's tag"))?;
    let units = units(config);
    let unit = units
        .get(KUBELET_UNIT)
        .and_then(|unit| unit.content.as_deref())
        .ok_or(ConfigError::Missing("unit kubelet.service"))?;
    let labels = unit
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(NODE_LABELS))
        .flat_map(|labels| labels.split(','))
        .filter_map(|label| label.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let text = disk
        .get(path::KUBELET_CONFIG)
        .ok_or(ConfigError::Missing("configuration of the kubelet"))?;
    let own: KubeletConfiguration =
        serde_saphyr::from_str(text).map_err(|error| ConfigError::Kubelet(error.to_string()))?;
    Ok(Kubelet {
        node: node.to_owned(),
        version: version.to_owned(),
        labels,
        taints: own.register_with_taints,
        max_pods: own.max_pods.unwrap_or(DEFAULT_MAX_PODS),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn config(files: Value, units: Value) -> OperatingSystemConfig {
        serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": {"purpose": "reconcile", "type": "local", "files": files, "units": units}})).unwrap()
    }

    fn file(path: &str, text: &str) -> Value {
        json!({"path": path, "content": {"inline": {"encoding": "", "data": text}}})
    }

    fn names(set: &BTreeSet<String>) -> Vec<&str> {
        set.iter().map(String::as_str).collect()
    }

    #[test]
    fn gna_12_only_what_differs_is_written_and_restarted() {
        let unit = |paths: Value| json!([{"name": "kubelet.service", "filePaths": paths}, {"name": "other.service"}]);
        let first = config(json!([file("/a", "1"), file("/b", "1")]), unit(json!(["/a"])));
        let everything = changes(None, &first, "n").unwrap();
        assert_eq!(everything.files.len(), 2);
        assert_eq!(names(&everything.units), ["kubelet.service", "other.service"]);
        assert_eq!(changes(Some(&first), &first, "n").unwrap(), Changes::default());
        let second = config(
            json!([file("/a", "2")]),
            json!([{"name": "kubelet.service", "filePaths": ["/a"]}]),
        );
        let step = changes(Some(&first), &second, "n").unwrap();
        assert_eq!(step.files, Files::from([("/a".to_owned(), "2".to_owned())]));
        assert_eq!(names(&step.removed_files), ["/b"]);
        assert_eq!(names(&step.units), ["kubelet.service"]);
        assert_eq!(names(&step.removed_units), ["other.service"]);
    }

    #[test]
    fn gna_12_files_of_other_hosts_do_not_count() {
        let mut other = file("/a", "1");
        other["hostName"] = "elsewhere".into();
        let found = changes(None, &config(json!([other]), json!([])), "here").unwrap();
        assert_eq!(found, Changes::default());
    }

    #[test]
    fn osc_5_the_kubelet_is_told_by_image_unit_and_configuration() {
        let config = config(
            json!([]),
            json!([{"name": "kubelet.service", "content": "ExecStart=/opt/bin/kubelet --node-labels=a=b,c=d --v=2"}]),
        );
        let disk = Files::from([
            (path::KUBELET.to_owned(), "hyperkube:v1.36.0".to_owned()),
            (
                path::KUBELET_CONFIG.to_owned(),
                json!({"maxPods": 50, "registerWithTaints": [{"key": "k", "effect": "NoSchedule"}]}).to_string(),
            ),
        ]);
        let kubelet = kubelet(&config, &disk, "node").unwrap();
        assert_eq!((kubelet.version.as_str(), kubelet.max_pods), ("v1.36.0", 50));
        assert_eq!(kubelet.labels.len(), 2);
        assert_eq!(kubelet.taints[0].key, "k");
        let nothing = super::kubelet(&config, &Files::new(), "node");
        assert_eq!(nothing, Err(ConfigError::Missing("kubelet")));
    }
}
