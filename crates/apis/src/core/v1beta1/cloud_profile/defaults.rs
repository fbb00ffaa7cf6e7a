//! Defaults of cloud profiles, [DEF-40], versions that creation drops, [GAPI-39], and questions about versions.

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

/// The stage that a version is in: by its lifecycle, else by its classification and expiration date.
fn stage<'a>(
    classification: Option<&'a str>,
    expiration: Option<Timestamp>,
    lifecycle: &'a [LifecycleStage],
    now: Timestamp,
) -> &'a str {
    if lifecycle.is_empty() {
        return match (classification, expiration) {
            (_, Some(expiration)) if expiration <= now => "expired",
            (Some(classification), _) => classification,
            (None, _) => "supported",
        };
    }
    lifecycle
        .iter()
        .rev()
        .find(|stage| stage.start_time.as_ref().is_none_or(|start| start.0 <= now))
        .map_or("unavailable", |stage| stage.classification.as_str())
}

/// The times at which a version comes into another stage.
fn turns(expiration: Option<Timestamp>, lifecycle: &[LifecycleStage]) -> Vec<Timestamp> {
    match lifecycle.is_empty() {
        true => expiration.into_iter().collect(),
        false => {
            let starts = lifecycle.iter().filter_map(|stage| stage.start_time.as_ref());
            starts.map(|start| start.0).collect()
        }
    }
}

impl ExpirableVersion {
    /// The times at which the version comes into another stage.
    pub fn turns(&self) -> Vec<Timestamp> {
        turns(self.expiration_date.as_ref().map(|date| date.0), &self.lifecycle)
    }

    /// The stage of the version at a time: `preview`, `supported`, `deprecated`, `expired` or `unavailable`.
    pub fn stage(&self, now: Timestamp) -> &str {
        stage(
            self.classification.as_deref(),
            self.expiration_date.as_ref().map(|date| date.0),
            &self.lifecycle,
            now,
        )
    }

    /// Whether shoots may be created with the version.
    pub fn is_active(&self, now: Timestamp) -> bool {
        !matches!(self.stage(now), "expired" | "unavailable")
    }
}

impl MachineImageVersion {
    /// The times at which the version comes into another stage.
    pub fn turns(&self) -> Vec<Timestamp> {
        turns(self.expiration_date.as_ref().map(|date| date.0), &self.lifecycle)
    }

    /// The stage of the version at a time, as for Kubernetes versions.
    pub fn stage(&self, now: Timestamp) -> &str {
        stage(
            self.classification.as_deref(),
            self.expiration_date.as_ref().map(|date| date.0),
            &self.lifecycle,
            now,
        )
    }

    /// Whether pools may be created with the version.
    pub fn is_active(&self, now: Timestamp) -> bool {
        !matches!(self.stage(now), "expired" | "unavailable")
    }
}

/// [GAPI-39]: a new cloud profile has no versions that are over already.
pub fn drop_inactive_versions(profile: &mut CloudProfile, now: Timestamp) {
    profile
        .spec
        .kubernetes
        .versions
        .retain(|version| version.is_active(now));
    for image in &mut profile.spec.machine_images {
        image.versions.retain(|version| version.is_active(now));
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
