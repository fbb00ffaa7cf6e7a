//! Validation of shoot states, [VAL-SS1].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::type_meta::is_no_group_version;

use super::*;
use crate::core::v1beta1::shoot::validation::spec_parts;
use crate::validation::{go_kind, no_group_version, object_meta, object_meta_update};

/// Checks a shoot state that is to be created or stored again.
pub fn validate_shoot_state(state: &ShootState) -> ErrorList {
    let mut errors = object_meta(&state.metadata, true, gardener_apimachinery::names::dns_label);
    let path = Path::new("spec");
    for (i, data) in state.spec.gardener.iter().enumerate() {
        if data.name.is_empty() {
            errors.push(Error::invalid(
                &path.child("gardener").index(i).child("name"),
                "",
                "name of data required to generate resources cannot be empty",
            ));
        }
    }
    for (i, resource) in state.spec.extensions.iter().enumerate() {
        let at = path.child("extensions").index(i);
        if resource.kind.is_empty() {
            errors.push(Error::invalid(
                &at.child("kind"),
                "",
                "extension resource kind cannot be empty",
            ));
        }
        if resource.purpose.as_deref() == Some("") {
            errors.push(Error::invalid(
                &at.child("purpose"),
                "",
                "extension resource purpose cannot be empty",
            ));
        }
        errors.extend(spec_parts::resources(
            &resource.resources,
            // upstream leaves out which extension it is
            &path.child("resources"),
            false,
        ));
    }
    for (i, resource) in state.spec.resources.iter().enumerate() {
        let at = path.child("resources").index(i);
        let version = resource.api_version.as_deref().unwrap_or_default();
        if version.is_empty() {
            errors.push(Error::required(&at.child("apiVersion"), "must provide an apiVersion"));
        }
        if resource.kind.is_empty() {
            errors.push(Error::required(&at.child("kind"), "must provide a kind"));
        }
        if is_no_group_version(version) {
            errors.push(no_group_version(&at, (&resource.kind, &resource.name, version)));
        } else if version != "v1" || !matches!(resource.kind.as_str(), "Secret" | "ConfigMap") {
            errors.push(Error::not_supported(
                &at,
                go_kind(version, &resource.kind),
                &[go_kind("v1", "Secret"), go_kind("v1", "ConfigMap")],
            ));
        }
        if resource.name.is_empty() {
            errors.push(Error::required(&at.child("name"), "must provide a name"));
        }
    }
    errors
}

/// Checks a change of a shoot state.
pub fn validate_shoot_state_update(new: &ShootState, old: &ShootState) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(validate_shoot_state(new));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_ss1_recorded_refusal() {
        let state: ShootState = serde_json::from_value(
            serde_json::json!({"metadata": {"name": "s1", "namespace": "garden-local"},
            "spec": {"gardener": [{"name": "", "type": "t", "data": {}}], "extensions": [{"kind": "", "purpose": ""}],
                     "resources": [{"kind": "", "name": "", "data": {}}]}}),
        )
        .unwrap();
        let texts: Vec<String> = validate_shoot_state(&state).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.gardener[0].name: Invalid value: \"\": name of data required to generate resources cannot be empty",
                "spec.extensions[0].kind: Invalid value: \"\": extension resource kind cannot be empty",
                "spec.extensions[0].purpose: Invalid value: \"\": extension resource purpose cannot be empty",
                "spec.resources[0].apiVersion: Required value: must provide an apiVersion",
                "spec.resources[0].kind: Required value: must provide a kind",
                "spec.resources[0]: Unsupported value: \"/, Kind=\": supported values: \"/v1, Kind=Secret\", \"/v1, Kind=ConfigMap\"",
                "spec.resources[0].name: Required value: must provide a name",
            ]
        );
    }
}
