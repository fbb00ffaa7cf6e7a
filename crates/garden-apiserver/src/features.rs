//! gardener-apiserver's feature gates [GAPI-7]: what the API takes only where an operator wants it.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apis::core::v1beta1::{
    CloudProfile, ExpirableVersion, MachineImage, NamespacedCloudProfile, Shoot, Worker,
};

/// A feature that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Cloud profiles say what machines and images can do. On.
    CloudProfileCapabilities,
    /// New pools may be updated in place [UPD-63].
    InPlaceNodeUpdates,
    /// Control planes may move without a pause.
    LiveControlPlaneMigration,
    /// Versions have lifecycles [VER-12].
    VersionClassificationLifecycle,
    /// No shoot gets the ingress addon any more.
    DisableNginxIngressInShoot,
}

const ALL: [(&str, Feature); 5] = [
    ("CloudProfileCapabilities", Feature::CloudProfileCapabilities),
    ("InPlaceNodeUpdates", Feature::InPlaceNodeUpdates),
    ("LiveControlPlaneMigration", Feature::LiveControlPlaneMigration),
    (
        "VersionClassificationLifecycle",
        Feature::VersionClassificationLifecycle,
    ),
    ("DisableNginxIngressInShoot", Feature::DisableNginxIngressInShoot),
];

/// The features that are on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features(BTreeSet<Feature>);

impl Default for Features {
    fn default() -> Self {
        Self([Feature::CloudProfileCapabilities].into())
    }
}

impl Features {
    /// Switches one; false if there is none of that name. `AllAlpha` and `AllBeta` switch those of a stage, as with upstream.
    pub fn switch(&mut self, name: &str, on: bool) -> bool {
        let is_beta = |feature: Feature| feature == Feature::CloudProfileCapabilities;
        let meant: Vec<Feature> = ALL
            .into_iter()
            .filter(|(own, feature)| match name {
                "AllAlpha" => !is_beta(*feature),
                "AllBeta" => is_beta(*feature),
                name => *own == name,
            })
            .map(|(_, feature)| feature)
            .collect();
        for feature in &meant {
            match on {
                true => self.0.insert(*feature),
                false => self.0.remove(feature),
            };
        }
        !meant.is_empty()
    }

    /// Whether one is on.
    pub fn has(&self, feature: Feature) -> bool {
        self.0.contains(&feature)
    }
}

/// What a shoot has that is not switched on [VAL-P20], [VAL-A2]. What it had may stay.
pub(crate) fn shoot(shoot: &Shoot, old: Option<&Shoot>, features: &Features) -> ErrorList {
    let mut errors = ErrorList::new();
    if !features.has(Feature::InPlaceNodeUpdates) {
        let is_there = |worker: &Worker| {
            let mut workers = old.into_iter().flat_map(|old| &old.spec.provider.workers);
            workers.any(|own| own.name == worker.name)
        };
        let workers = shoot.spec.provider.workers.iter().enumerate();
        for (i, worker) in workers.filter(|(_, worker)| worker.is_in_place() && !is_there(worker)) {
            let path = Path::new("spec.provider.workers").index(i).child("updateStrategy");
            let why = "can not configure `AutoInPlaceUpdate` or `ManualInPlaceUpdate` update strategies when the `InPlaceNodeUpdates` feature gate is disabled.";
            errors.push(Error::invalid(&path, worker.strategy(), why));
        }
    }
    let adds_nginx = shoot.nginx_ingress_enabled() && !old.is_some_and(Shoot::nginx_ingress_enabled);
    if features.has(Feature::DisableNginxIngressInShoot) && adds_nginx {
        let why = "nginx ingress addon disallowed by landscape operator";
        errors.push(Error::forbidden(&Path::new("spec.addons.nginxIngress.enabled"), why));
    }
    errors
}

fn lifecycle(has: bool, path: &Path) -> Option<Error> {
    has.then(|| {
        let why = "lifecycles are not allowed with disabled VersionClassificationLifecycle feature gate";
        Error::forbidden(&path.child("lifecycle"), why)
    })
}

fn lifecycles(versions: &[ExpirableVersion], images: &[MachineImage], features: &Features) -> ErrorList {
    if features.has(Feature::VersionClassificationLifecycle) {
        return ErrorList::new();
    }
    let kubernetes = Path::new("spec.kubernetes.versions");
    let versions = versions.iter().enumerate();
    let mut errors: ErrorList = versions
        .filter_map(|(i, version)| lifecycle(!version.lifecycle.is_empty(), &kubernetes.index(i)))
        .collect();
    for (i, image) in images.iter().enumerate() {
        let path = Path::new("spec.machineImages").index(i).child("versions");
        let versions = image.versions.iter().enumerate();
        errors.extend(versions.filter_map(|(j, version)| lifecycle(!version.lifecycle.is_empty(), &path.index(j))));
    }
    errors
}

/// What a cloud profile has that is not switched on [VER-30], [VER-31].
pub(crate) fn cloud_profile(profile: &CloudProfile, features: &Features) -> ErrorList {
    let spec = &profile.spec;
    let mut errors = lifecycles(&spec.kubernetes.versions, &spec.machine_images, features);
    if !spec.machine_capabilities.is_empty() && !features.has(Feature::CloudProfileCapabilities) {
        let why = "machineCapabilities are not allowed with disabled CloudProfileCapabilities feature gate";
        errors.push(Error::forbidden(&Path::new("spec.machineCapabilities"), why));
    }
    errors
}

/// What a namespaced cloud profile has that is not switched on.
pub(crate) fn namespaced_cloud_profile(profile: &NamespacedCloudProfile, features: &Features) -> ErrorList {
    let spec = &profile.spec;
    let versions = spec.kubernetes.as_ref().map(|own| own.versions.as_slice());
    lifecycles(versions.unwrap_or_default(), &spec.machine_images, features)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn gapi_7_what_is_off_is_refused() {
        let mut on = Features::default();
        assert!(on.switch("AllAlpha", true) && !on.switch("Other", true));
        let in_place: Shoot = serde_json::from_value(json!({"spec": {
            "addons": {"nginxIngress": {"enabled": true}},
            "provider": {"type": "x", "workers": [{"name": "a", "updateStrategy": "AutoInPlaceUpdate", "machine": {"type": "m"}}]},
        }}))
        .unwrap();
        let found =
            |errors: ErrorList| -> Vec<String> { errors.iter().map(|error| error.path.as_str().to_owned()).collect() };
        let (none, off) = (Features(BTreeSet::new()), Features::default());
        assert_eq!(
            found(shoot(&in_place, None, &off)),
            ["spec.provider.workers[0].updateStrategy"]
        );
        assert_eq!(found(shoot(&in_place, None, &on)), ["spec.addons.nginxIngress.enabled"]);
        // what was there stays
        assert!(
            shoot(&in_place, Some(&in_place), &off).is_empty() && shoot(&in_place, Some(&in_place), &on).is_empty()
        );
        let profile: CloudProfile = serde_json::from_value(json!({"spec": {
            "machineCapabilities": [{"name": "architecture", "values": ["amd64"]}],
            "kubernetes": {"versions": [{"version": "1.34.1", "lifecycle": [{"classification": "supported"}]}]},
            "machineImages": [{"name": "a", "versions": [{"version": "1.0.0"}, {"version": "2.0.0", "lifecycle": [{"classification": "preview"}]}]}],
        }}))
        .unwrap();
        let paths = [
            "spec.kubernetes.versions[0].lifecycle",
            "spec.machineImages[0].versions[1].lifecycle",
        ];
        assert_eq!(found(cloud_profile(&profile, &off)), paths);
        assert_eq!(found(cloud_profile(&profile, &none)).len(), 3);
        assert!(cloud_profile(&profile, &on).is_empty());
    }
}
