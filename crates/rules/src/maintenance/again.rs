//! When a maintenance may decide otherwise than it does now. Nothing here changes what maintenance does: who foretells it leaves out what would only
//! repeat itself.

use std::collections::BTreeSet;

use gardener_apis::core::v1beta1::{CloudProfileSpec, Shoot};
use gardener_apis::versions::parse;
use k8s_openapi::jiff::Timestamp;

use super::{Plan, rotation};
use crate::versions::image;

impl Plan {
    /// Whether the plan leaves the shoot as it is, but for what gardenlet is asked to do: then the next one is the same, until the shoot is changed or
    /// [`next_change`] has come.
    pub fn changes_nothing(&self, shoot: &Shoot) -> bool {
        self.shoot.spec == shoot.spec && self.new_binding.is_none() && self.report.messages.is_empty()
    }
}

/// When next a version of the cloud profile that counts for a shoot comes into another stage, or credentials of the shoot are to be rotated; none, if
/// nothing of that comes.
///
/// Counting are Kubernetes versions of the minor versions that it has and of the ones after them, and all versions of its machine images.
pub fn next_change(shoot: &Shoot, profile: &CloudProfileSpec, now: Timestamp) -> Option<Timestamp> {
    let workers = &shoot.spec.provider.workers;
    let own = |text: &str| parse(text).map(|version| (version.major, version.minor));
    let mut minors: BTreeSet<(u64, u64)> = own(shoot.spec.kubernetes_version()).into_iter().collect();
    minors.extend(
        workers
            .iter()
            .filter_map(|worker| own(shoot.spec.worker_version(worker))),
    );
    let counts = |text: &str| {
        own(text).is_some_and(|(major, minor)| {
            let before = minor.checked_sub(1).map(|minor| (major, minor));
            minors.contains(&(major, minor)) || before.is_some_and(|before| minors.contains(&before))
        })
    };
    let kubernetes = profile.kubernetes.versions.iter().filter(|own| counts(&own.version));
    let names: BTreeSet<&str> = workers
        .iter()
        .filter_map(|worker| worker.machine.image.as_ref())
        .map(|image| image.name.as_str())
        .collect();
    let images = names.iter().filter_map(|name| image(profile, name));
    kubernetes
        .flat_map(|own| own.turns())
        .chain(images.flat_map(|image| &image.versions).flat_map(|own| own.turns()))
        .filter(|turn| *turn > now)
        .chain(rotation::next_due(shoot, now))
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_versions_that_count_change_something() {
        let profile: CloudProfileSpec = serde_json::from_value(json!({
            "kubernetes": {"versions": [
                {"version": "1.35.0", "expirationDate": "2026-01-02T00:00:00Z"},
                {"version": "1.34.0", "expirationDate": "2026-01-05T00:00:00Z"},
                {"version": "1.33.0", "lifecycle": [
                    {"classification": "supported"}, {"classification": "deprecated", "startTime": "2026-01-04T00:00:00Z"},
                ]},
            ]},
            "machineImages": [
                {"name": "os", "versions": [{"version": "1.0.0", "expirationDate": "2026-01-06T00:00:00Z"}]},
                {"name": "other", "versions": [{"version": "1.0.0", "expirationDate": "2026-01-03T00:00:00Z"}]},
            ],
        }))
        .unwrap();
        let shoot: Shoot = serde_json::from_value(json!({"spec": {
            "kubernetes": {"version": "1.33.0"},
            "provider": {"workers": [{"name": "a", "machine": {"image": {"name": "OS", "version": "1.0.0"}}}]},
        }}))
        .unwrap();
        for (now, expected) in [
            ("2026-01-01T00:00:00Z", Some("2026-01-04T00:00:00Z")),
            ("2026-01-04T00:00:00Z", Some("2026-01-05T00:00:00Z")),
            ("2026-01-05T00:00:00Z", Some("2026-01-06T00:00:00Z")),
            ("2026-01-06T00:00:00Z", None),
        ] {
            let next = next_change(&shoot, &profile, now.parse().unwrap());
            assert_eq!(next, expected.map(|time| time.parse().unwrap()), "{now}");
        }
    }
}
