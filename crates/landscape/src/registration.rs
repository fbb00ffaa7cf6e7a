//! Registers provider-local in the garden: what it is responsible for, and the chart that a gardenlet installs it from.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::apply::Manifest;

/// Name of the registration, its deployment and the extension.
pub const PROVIDER_LOCAL: &str = "provider-local";

const CHART: &str = "apiVersion: v1\nname: provider-local\nversion: 0.1.0\n";
const TEMPLATES: &str = include_str!("../manifests/provider-local-deployment.yaml");

/// What provider-local is responsible for.
const RESOURCES: [(&str, &str); 11] = [
    ("BackupBucket", "local"),
    ("BackupEntry", "local"),
    ("Bastion", "local"),
    ("ContainerRuntime", "local"),
    ("ControlPlane", "local"),
    ("DNSRecord", "local"),
    ("Infrastructure", "local"),
    ("Network", "calico"),
    ("Network", "local"),
    ("OperatingSystemConfig", "local"),
    ("Worker", "local"),
];

/// The chart: a gzipped tar file with plain manifests.
///
/// # Errors
/// When the archive cannot be written; it is written into memory, so that this does not happen.
pub fn chart() -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (path, text) in [
        ("provider-local/Chart.yaml", CHART),
        ("provider-local/templates/provider-local.yaml", TEMPLATES),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append_data(&mut header, path, text.as_bytes())?;
    }
    let mut encoder = archive.into_inner()?;
    encoder.flush()?;
    encoder.finish()
}

/// ControllerDeployment and ControllerRegistration.
///
/// # Errors
/// As [`chart`].
pub fn manifest() -> std::io::Result<Manifest> {
    let deployment = json!({
        "apiVersion": "core.gardener.cloud/v1",
        "kind": "ControllerDeployment",
        "metadata": {"name": PROVIDER_LOCAL},
        "helm": {"rawChart": STANDARD.encode(chart()?)},
    });
    let resources: Vec<Value> = RESOURCES
        .iter()
        .map(|(kind, own_type)| json!({"kind": kind, "type": own_type}))
        .collect();
    let registration = json!({
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ControllerRegistration",
        "metadata": {"name": PROVIDER_LOCAL},
        "spec": {"deployment": {"deploymentRefs": [{"name": PROVIDER_LOCAL}]}, "resources": resources},
    });
    Ok(Manifest {
        origin: "provider-local registration".to_owned(),
        text: format!("{deployment}\n---\n{registration}\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn the_chart_is_a_readable_archive() {
        let bytes = chart().unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.push((entry.path().unwrap().display().to_string(), text.len()));
        }
        assert_eq!(
            found,
            [
                ("provider-local/Chart.yaml".to_owned(), CHART.len()),
                (
                    "provider-local/templates/provider-local.yaml".to_owned(),
                    TEMPLATES.len()
                )
            ]
        );
    }
}
