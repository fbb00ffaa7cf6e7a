//! Defaults of namespaced cloud profiles: types may be used unless it is said that not, [VAL-NC3]; and versions that a write drops.

use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::core::v1beta1::cloud_profile::{default_machine_types, default_volume_types};

/// Fills in what the user left out.
pub fn default_namespaced_cloud_profile(profile: &mut NamespacedCloudProfile) {
    default_machine_types(&mut profile.spec.machine_types);
    default_volume_types(&mut profile.spec.volume_types);
}

/// [GAPI-39]: versions that are over, or not there yet, are dropped unless the old profile names them; so are images that say nothing then.
pub fn drop_inactive_overrides(new: &mut NamespacedCloudProfile, old: Option<&NamespacedCloudProfile>, now: Timestamp) {
    if let Some(kubernetes) = &mut new.spec.kubernetes {
        let before = old.and_then(|old| old.spec.kubernetes.as_ref());
        let before = before.map(|before| before.versions.as_slice()).unwrap_or_default();
        kubernetes
            .versions
            .retain(|own| before.iter().any(|before| before.version == own.version) || own.stage(now).is_active());
    }
    let before = old.map(|old| old.spec.machine_images.as_slice()).unwrap_or_default();
    new.spec.machine_images.retain_mut(|image| {
        let before = before.iter().rfind(|before| before.name == image.name);
        let before = before.map(|before| before.versions.as_slice()).unwrap_or_default();
        image
            .versions
            .retain(|own| before.iter().any(|before| before.version == own.version) || own.stage(now).is_active());
        !image.versions.is_empty() || image.update_strategy.as_ref().is_some_and(|own| !own.is_empty())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gapi_39_overrides_that_are_over_are_dropped_unless_they_were_there() {
        let profile = |kubernetes: serde_json::Value, images: serde_json::Value| -> NamespacedCloudProfile {
            let spec = serde_json::json!({"kubernetes": {"versions": kubernetes}, "machineImages": images});
            serde_json::from_value(serde_json::json!({"spec": spec})).unwrap()
        };
        let over = |version: &str| serde_json::json!({"version": version, "expirationDate": "2020-01-01T00:00:00Z"});
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let old = profile(
            serde_json::json!([over("1.35.0")]),
            serde_json::json!([{"name": "a", "versions": [over("1.0.0")]}]),
        );
        let written = profile(
            serde_json::json!([over("1.35.0"), over("1.35.1"), {"version": "1.36.0"}]),
            serde_json::json!([
                {"name": "a", "versions": [over("1.0.0"), over("1.0.1")]},
                {"name": "b", "versions": [over("1.0.0")]},
                {"name": "c", "updateStrategy": "minor", "versions": [over("1.0.0")]},
            ]),
        );
        let left = |old: Option<&NamespacedCloudProfile>| {
            let mut written = written.clone();
            drop_inactive_overrides(&mut written, old, now);
            let kubernetes = written.spec.kubernetes.unwrap_or_default().versions;
            let kubernetes: Vec<String> = kubernetes.into_iter().map(|own| own.version).collect();
            let images = written.spec.machine_images.into_iter();
            let images: Vec<(String, usize)> = images.map(|own| (own.name, own.versions.len())).collect();
            (kubernetes, images)
        };
        assert_eq!(left(None), (vec!["1.36.0".to_owned()], vec![("c".to_owned(), 0)]));
        assert_eq!(
            left(Some(&old)),
            (
                vec!["1.35.0".to_owned(), "1.36.0".to_owned()],
                vec![("a".to_owned(), 1), ("c".to_owned(), 0)]
            )
        );
    }
}
