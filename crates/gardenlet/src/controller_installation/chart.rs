//! Reading charts: what they are made of, and the manifests of those whose templates are plain. Those with expressions are rendered elsewhere
//! ([`super::helm`]).

use std::collections::BTreeMap;
use std::io::Read;

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

/// Why a chart cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// It is no archive.
    #[error("the chart is not a gzip-compressed tar archive: {0}")]
    Archive(#[from] std::io::Error),
    /// Its templates have expressions, and nobody is there who can render them.
    #[error(
        "the chart has template expressions, which helm renders, and there is no helm in the PATH: install it where gardenlet runs"
    )]
    NoHelm,
    /// Helm does not render it.
    #[error("helm cannot render the chart: {0}")]
    Helm(String),
    /// A template is no YAML.
    #[error("template {file} cannot be read: {reason}")]
    Yaml {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
}

/// The largest archive that is unpacked, against charts that fill the memory.
const LIMIT: u64 = 32 * 1024 * 1024;

/// Kinds that have no namespace.
const CLUSTER_SCOPED: [&str; 12] = [
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "PersistentVolume",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ValidatingWebhookConfiguration",
];

fn is_manifest(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    let in_folder = matches!(parts.next(), Some("templates" | "crds"));
    let name = path.rsplit('/').next().unwrap_or_default();
    in_folder && !name.starts_with('_') && [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end))
}

/// A chart that was unpacked: its manifests by file.
#[derive(Debug)]
pub struct Chart(BTreeMap<String, String>);

impl Chart {
    /// Unpacks an archive.
    ///
    /// # Errors
    /// [`ChartError::Archive`].
    pub fn unpack(archive: &[u8]) -> Result<Self, ChartError> {
        let unpacked = flate2::read::GzDecoder::new(archive).take(LIMIT);
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(unpacked).entries()? {
            let mut entry = entry?;
            let path = entry.path()?.to_string_lossy().trim_start_matches("./").to_owned();
            if is_manifest(&path) {
                let mut text = String::new();
                entry.read_to_string(&mut text)?;
                files.insert(path, text);
            }
        }
        Ok(Self(files))
    }

    /// Whether its manifests are only made from its templates.
    pub fn has_expressions(&self) -> bool {
        let mut templates = self.0.iter().filter(|(path, _)| !path.contains("/crds/"));
        templates.any(|(_, text)| text.contains("{{"))
    }

    /// The objects of a chart without expressions, ordered by file. `${NAME}` is replaced for each name in `substitutions`.
    ///
    /// # Errors
    /// [`ChartError::Yaml`].
    pub fn objects(self, substitutions: &BTreeMap<String, String>) -> Result<Vec<Value>, ChartError> {
        let mut objects = Vec::new();
        for (file, mut text) in self.0 {
            for (name, value) in substitutions {
                text = text.replace(&format!("${{{name}}}"), value);
            }
            objects.extend(manifests(&text, &file)?);
        }
        Ok(objects)
    }
}

/// The objects of a YAML text.
///
/// # Errors
/// [`ChartError::Yaml`] that names the file.
pub fn manifests(text: &str, file: &str) -> Result<Vec<Value>, ChartError> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| ChartError::Yaml {
        file: file.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(documents.into_iter().filter(Value::is_object).collect())
}

/// Objects with a namespace that name none get this one.
pub fn place(objects: &mut [Value], namespace: &str) {
    for object in objects {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        if CLUSTER_SCOPED.contains(&kind) {
            continue;
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.entry("namespace").or_insert_with(|| namespace.into());
        }
    }
}

/// Tells all containers of a chart's workloads the seed's name [EXT-106]; what they set themselves stays.
pub fn inject_environment(objects: &mut [Value], seed_name: &str) {
    for object in objects {
        let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        if !api_version.starts_with("apps/") && !api_version.starts_with("batch/") {
            continue;
        }
        let template = if object.get("kind").and_then(Value::as_str) == Some("CronJob") {
            "/spec/jobTemplate/spec/template/spec"
        } else {
            "/spec/template/spec"
        };
        for list in ["initContainers", "containers"] {
            let containers = object
                .at_mut(&format!("{template}/{list}"))
                .and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
                let environment = container.entry("env").or_insert_with(|| json!([]));
                if let Some(environment) = environment.as_array_mut()
                    && !environment
                        .iter()
                        .any(|one| one.get("name") == Some(&"SEED_NAME".into()))
                {
                    environment.push(json!({"name": "SEED_NAME", "value": seed_name}));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, path, text.as_bytes()).unwrap();
        }
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&builder.into_inner().unwrap()).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn ext_104_plain_charts_are_filled_in() {
        let chart = archive(&[
            ("x/Chart.yaml", "name: x"),
            ("x/templates/_helpers.tpl", "{{ define }}"),
            (
                "x/templates/a.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n      containers: [{name: c, args: [\"--in=${NAMESPACE}\"]}]\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n",
            ),
        ]);
        let substitutions = BTreeMap::from([("NAMESPACE".to_owned(), "extension-x".to_owned())]);
        let chart = Chart::unpack(&chart).unwrap();
        assert!(!chart.has_expressions());
        let mut objects = chart.objects(&substitutions).unwrap();
        place(&mut objects, "extension-x");
        inject_environment(&mut objects, "local");
        assert_eq!(objects.len(), 2);
        assert_eq!(objects[0]["metadata"]["namespace"], "extension-x");
        let container = &objects[0]["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["args"][0], "--in=extension-x");
        assert_eq!(container["env"][0]["value"], "local");
        assert!(objects[1]["metadata"].get("namespace").is_none());
    }

    #[test]
    fn ext_107_what_needs_an_engine_is_seen() {
        let chart = archive(&[("x/templates/a.yaml", "name: {{ .Values.name }}")]);
        assert!(Chart::unpack(&chart).unwrap().has_expressions());
        // definitions are taken as they are
        let chart = archive(&[("x/crds/a.yaml", "description: '{{ x }}'")]);
        assert!(!Chart::unpack(&chart).unwrap().has_expressions());
        assert!(matches!(Chart::unpack(b"nothing"), Err(ChartError::Archive(_))));
    }
}
