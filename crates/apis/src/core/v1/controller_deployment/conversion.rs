//! The two versions of ControllerDeployment, [GAPI-5]. `v1` is the one that is stored and validated.

use serde_json::{Map, Value};

use super::*;
use crate::constants::annotation::{CONTROLLER_DEPLOYMENT_PROVIDER_CONFIG, CONTROLLER_DEPLOYMENT_TYPE};
use crate::core::v1beta1;

/// The `v1` form of a `v1beta1` object.
///
/// # Errors
/// Fails when a `helm` provider configuration has fields of wrong types.
pub fn from_v1beta1(old: &v1beta1::ControllerDeployment) -> Result<ControllerDeployment, serde_json::Error> {
    let mut new = ControllerDeployment {
        metadata: old.metadata.clone(),
        inject_garden_kubeconfig: old.inject_garden_kubeconfig,
        ..ControllerDeployment::default()
    };
    if old.r#type == "helm" {
        let mut helm = old.provider_config.clone();
        if let Some(fields) = helm.as_object_mut()
            && let Some(chart) = fields.remove("chart")
        {
            fields.insert("rawChart".into(), chart);
        }
        new.helm = Some(if helm.is_null() {
            HelmControllerDeployment::default()
        } else {
            serde_json::from_value(helm)?
        });
    } else {
        let annotations = new.metadata.annotations.get_or_insert_default();
        annotations.insert(CONTROLLER_DEPLOYMENT_TYPE.into(), old.r#type.clone());
        if !old.provider_config.is_null() {
            annotations.insert(
                CONTROLLER_DEPLOYMENT_PROVIDER_CONFIG.into(),
                old.provider_config.to_string(),
            );
        }
    }
    Ok(new)
}

/// The `v1beta1` form of a `v1` object.
pub fn to_v1beta1(new: &ControllerDeployment) -> v1beta1::ControllerDeployment {
    let mut old = v1beta1::ControllerDeployment {
        metadata: new.metadata.clone(),
        inject_garden_kubeconfig: new.inject_garden_kubeconfig,
        ..v1beta1::ControllerDeployment::default()
    };
    if let Some(helm) = &new.helm {
        old.r#type = "helm".into();
        let mut fields = Map::new();
        let value = serde_json::to_value(helm).unwrap_or_default();
        for (from, to) in [
            ("rawChart", "chart"),
            ("values", "values"),
            ("ociRepository", "ociRepository"),
        ] {
            if let Some(value) = value.get(from) {
                fields.insert(to.into(), value.clone());
            }
        }
        old.provider_config = Value::Object(fields);
    } else if let Some(annotations) = &mut old.metadata.annotations {
        old.r#type = annotations.remove(CONTROLLER_DEPLOYMENT_TYPE).unwrap_or_default();
        old.provider_config = annotations
            .remove(CONTROLLER_DEPLOYMENT_PROVIDER_CONFIG)
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        if annotations.is_empty() {
            old.metadata.annotations = None;
        }
    }
    old
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gapi_5_both_ways() {
        for value in [
            json!({"metadata": {"name": "a"}, "type": "helm", "providerConfig": {"chart": "AAAA", "values": {"x": 1}}}),
            json!({"metadata": {"name": "a"}, "type": "helm", "providerConfig": {"ociRepository": {"ref": "example.org/x:v1"}}}),
            json!({"metadata": {"name": "a"}, "type": "custom", "providerConfig": {"z": [1, 2]}}),
            json!({"metadata": {"name": "a"}, "type": "custom", "providerConfig": null}),
        ] {
            let old: v1beta1::ControllerDeployment = serde_json::from_value(value).unwrap();
            assert_eq!(to_v1beta1(&from_v1beta1(&old).unwrap()), old);
        }
    }
}
