//! Validation of controller deployments, [VAL-CD1].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::*;
use crate::constants::annotation::CONTROLLER_DEPLOYMENT_TYPE;
use crate::validation::{object_meta, object_meta_update};

/// Checks a controller deployment that is to be created or stored again.
pub fn validate_controller_deployment(deployment: &ControllerDeployment) -> ErrorList {
    let mut errors = object_meta(&deployment.metadata, false);
    let custom = deployment
        .metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(CONTROLLER_DEPLOYMENT_TYPE))
        .is_some_and(|kind| !kind.is_empty());
    if deployment.helm.is_some() == custom {
        errors.push(Error::forbidden(
            &Path::root().key(""),
            "must use either helm or a custom deployment configuration",
        ));
        return errors;
    }
    if let Some(helm) = &deployment.helm {
        let path = Path::new("helm");
        if helm.raw_chart.is_some() == helm.oci_repository.is_some() {
            errors.push(Error::required(&path, "must provide either rawChart or ociRepository"));
        } else if let Some(repository) = &helm.oci_repository {
            errors.extend(validate_oci_repository(repository, &path.child("ociRepository")));
        }
    }
    errors
}

/// Checks where a chart is: a whole reference, or a repository with tag or digest.
pub fn validate_oci_repository(repository: &OCIRepository, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let (whole, name, tag, digest) = (
        text(&repository.ref_),
        text(&repository.repository),
        text(&repository.tag),
        text(&repository.digest),
    );
    if whole.is_empty() && name.is_empty() {
        errors.push(Error::required(path, "must provide either ref or repository"));
        return errors;
    }
    if !whole.is_empty() {
        for (field, value) in [("repository", &name), ("tag", &tag), ("digest", &digest)] {
            if !value.is_empty() {
                errors.push(Error::forbidden(
                    &path.child(field),
                    "must not be set when ref is provided",
                ));
            }
        }
        return errors;
    }
    if tag.is_empty() && digest.is_empty() {
        errors.push(Error::required(path, "must provide either tag or digest"));
    }
    if !digest.is_empty() && !digest.starts_with("sha256:") {
        errors.push(Error::invalid(
            &path.child("digest"),
            digest,
            "must start with 'sha256:'",
        ));
    }
    errors
}

/// Checks a change of a controller deployment.
pub fn validate_controller_deployment_update(new: &ControllerDeployment, old: &ControllerDeployment) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(validate_controller_deployment(new));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_cd1_one_source() {
        let check = |helm: serde_json::Value| {
            let deployment: ControllerDeployment =
                serde_json::from_value(serde_json::json!({"metadata": {"name": "d1"}, "helm": helm})).unwrap();
            validate_controller_deployment(&deployment)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            check(
                serde_json::json!({"rawChart": "AAAA", "ociRepository": {"repository": "r.example.org/x", "tag": "v1"}})
            ),
            ["helm: Required value: must provide either rawChart or ociRepository"]
        );
        assert!(check(serde_json::json!({"rawChart": "AAAA"})).is_empty());
        assert_eq!(
            check(serde_json::json!({"ociRepository": {"repository": "x", "digest": "md5:1"}})),
            ["helm.ociRepository.digest: Invalid value: \"md5:1\": must start with 'sha256:'"]
        );
        assert_eq!(
            check(serde_json::Value::Null),
            ["[]: Forbidden: must use either helm or a custom deployment configuration"]
        );
    }
}
