//! gardener-apiserver's feature gates [GAPI-7]: what the API takes only where an operator wants it.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apis::core::v1beta1::{ProfileRules, Shoot, Worker};
use k8s_openapi::jiff::Timestamp;

/// A feature that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Cloud profiles say what machines and images can do. On.
    CloudProfileCapabilities,
    /// New pools may be updated in place [UPD-63].
    InPlaceNodeUpdates,
    /// Control planes may be asked to move without a pause [MIG-200].
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

    /// What they mean for cloud profiles [VER-30], [VER-31].
    pub(crate) fn profile_rules(&self, now: Timestamp) -> ProfileRules {
        ProfileRules {
            now,
            lifecycles: self.has(Feature::VersionClassificationLifecycle),
            capabilities: self.has(Feature::CloudProfileCapabilities),
        }
    }
}

/// What a shoot has that is not switched on [VAL-P20], [VAL-A2]. What it had may stay.
pub(crate) fn shoot(shoot: &Shoot, old: Option<&Shoot>, features: &Features) -> ErrorList {
    let mut errors = ErrorList::new();
    // a shoot that gets its first pools is refused for that
    let stays_so = old.is_none_or(|old| old.is_workerless() == shoot.is_workerless());
    if !features.has(Feature::InPlaceNodeUpdates) && stays_so {
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
        let now = Timestamp::UNIX_EPOCH;
        let rules = |features: &Features| {
            (
                features.profile_rules(now).lifecycles,
                features.profile_rules(now).capabilities,
            )
        };
        assert_eq!(
            [rules(&on), rules(&off), rules(&none)],
            [(true, true), (false, true), (false, false)]
        );
    }
}
