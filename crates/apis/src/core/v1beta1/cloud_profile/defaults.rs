//! Defaults of cloud profiles, [DEF-40], and versions that creation drops, [GAPI-39].

use k8s_openapi::jiff::Timestamp;

use super::*;

/// Fills in what the user left out.
pub fn default_cloud_profile(profile: &mut CloudProfile) {
    let spec = &mut profile.spec;
    let capabilities = !spec.machine_capabilities.is_empty();
    for image in &mut spec.machine_images {
        image.update_strategy.get_or_insert_with(|| "major".into());
        for version in &mut image.versions {
            if version.cri.is_empty() {
                version.cri.push(CRI {
                    name: "containerd".into(),
                    container_runtimes: Vec::new(),
                });
            }
            if !capabilities && version.architectures.is_empty() {
                version.architectures.push("amd64".into());
            }
        }
    }
    default_machine_types(&mut spec.machine_types);
    if !capabilities {
        for machine in &mut spec.machine_types {
            machine.architecture.get_or_insert_with(|| "amd64".into());
        }
    }
    default_volume_types(&mut spec.volume_types);
}

/// Machine types may be used unless it is said that not.
pub(in crate::core::v1beta1) fn default_machine_types(types: &mut [MachineType]) {
    for machine in types {
        machine.usable.get_or_insert(true);
    }
}

/// Volume types may be used unless it is said that not.
pub(in crate::core::v1beta1) fn default_volume_types(types: &mut [VolumeType]) {
    for volume in types {
        volume.usable.get_or_insert(true);
    }
}

/// [GAPI-39]: a new cloud profile has no versions that are over already.
pub fn drop_inactive_versions(profile: &mut CloudProfile, now: Timestamp) {
    profile
        .spec
        .kubernetes
        .versions
        .retain(|version| version.stage(now).is_active());
    for image in &mut profile.spec.machine_images {
        // images may be there before their time
        image.versions.retain(|version| version.stage(now) != Stage::Expired);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gapi_39_expired_versions_are_dropped() {
        let mut profile: CloudProfile = serde_json::from_value(serde_json::json!({"spec": {"kubernetes": {"versions": [
            {"version": "1.35.0", "expirationDate": "2020-01-01T00:00:00Z"}, {"version": "1.36.0"},
            {"version": "1.37.0", "lifecycle": [{"classification": "preview", "startTime": "2090-01-01T00:00:00Z"}]}]}}}))
        .unwrap();
        drop_inactive_versions(&mut profile, "2026-01-01T00:00:00Z".parse().unwrap());
        let left: Vec<&str> = profile
            .spec
            .kubernetes
            .versions
            .iter()
            .map(|version| version.version.as_str())
            .collect();
        assert_eq!(left, ["1.36.0"]);
    }
}
