//! Charts with template expressions are rendered by `helm`, if there is one: a second implementation of its language would be one that differs.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::chart::ChartError;

/// The program, found by the PATH.
const PROGRAM: &str = "helm";

/// A release to render.
#[derive(Clone, Debug)]
pub struct Release {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The values of the chart.
    pub values: Value,
    /// The version of the cluster that it is for, such as `v1.36.0`.
    pub kubernetes_version: String,
}

/// The manifests of a chart, as one YAML text. Blocks until `program` is done.
///
/// # Errors
/// There is no such program, or what it says.
fn run(program: &Path, archive: &[u8], release: &Release) -> Result<String, ChartError> {
    let failed = |error: std::io::Error| ChartError::Helm(format!("it cannot be given its files: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let (chart, values) = (folder.path().join("chart.tgz"), folder.path().join("values.json"));
    std::fs::write(&chart, archive).map_err(failed)?;
    std::fs::write(&values, release.values.to_string()).map_err(failed)?;
    let mut command = Command::new(program);
    command
        .arg("template")
        .arg(&release.name)
        .arg(&chart)
        .args([
            "--namespace",
            &release.namespace,
            "--include-crds",
            "--kube-version",
            &release.kubernetes_version,
        ])
        .arg("--values")
        .arg(&values)
        .stdin(Stdio::null());
    // neither a cluster nor settings of whoever runs this are its business
    for (variable, place) in [
        ("HELM_CACHE_HOME", "cache"),
        ("HELM_CONFIG_HOME", "config"),
        ("HELM_DATA_HOME", "data"),
    ] {
        command.env(variable, folder.path().join(place));
    }
    command.env("KUBECONFIG", folder.path().join("kubeconfig"));
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ChartError::NoHelm,
        _ => ChartError::Helm(format!("it does not run: {error}")),
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(ChartError::Helm(said));
    }
    String::from_utf8(output.stdout).map_err(|_| ChartError::Helm("what it wrote is no UTF-8".to_owned()))
}

/// The manifests of a chart, as one YAML text.
///
/// # Errors
/// There is no `helm`, or what it says.
pub async fn template(archive: &[u8], release: Release) -> Result<String, ChartError> {
    let archive = archive.to_owned();
    // a process is waited for apart: virtual time stands still meanwhile
    let rendering = tokio::task::spawn_blocking(move || run(Path::new(PROGRAM), &archive, &release));
    rendering
        .await
        .unwrap_or_else(|_| Err(ChartError::Helm("it was not waited for".to_owned())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    fn release() -> Release {
        Release {
            name: "os".to_owned(),
            namespace: "extension-os".to_owned(),
            values: json!({"a": "b"}),
            kubernetes_version: "v1.36.0".to_owned(),
        }
    }

    /// A program that stands for helm.
    fn program(script: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("helm");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        (folder, path)
    }

    #[test]
    fn ext_104_helm_gets_release_namespace_and_values() {
        let (_folder, path) = program(
            r#"printf '%s ' "$1" "$2" "$4" "$5" "$6" "$7" "$8"; cat "$3" "${10}"; test "$KUBECONFIG" != "$HOME/.kube/config""#,
        );
        assert_eq!(
            run(&path, b"archive", &release()).expect("rendered"),
            "template os --namespace extension-os --include-crds --kube-version v1.36.0 archive{\"a\":\"b\"}"
        );
    }

    #[test]
    fn ext_107_what_helm_says_is_told() {
        let (_folder, path) = program("echo 'Error: nil pointer' >&2; exit 1");
        let refused = run(&path, b"", &release()).expect_err("refused");
        assert_eq!(refused.to_string(), "helm cannot render the chart: Error: nil pointer");
        let missing = run(Path::new("/nowhere/helm"), b"", &release()).expect_err("missing");
        assert!(matches!(missing, ChartError::NoHelm));
    }
}
