//! Provider, region, access restrictions and control plane zones are offered by the cloud profile, the credentials and the seed, [ADM-32], [ADM-32a],
//! [ADM-32i].

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apis::core::v1beta1::*;
use gardener_apis::security::v1alpha1::CredentialsBinding;

use super::Check;
use crate::lookup;

fn zones(shoot: &Shoot) -> &[String] {
    let control_plane = shoot.spec.control_plane.as_ref();
    control_plane.map(|own| own.zones.as_slice()).unwrap_or_default()
}

fn restrictions(shoot: &Shoot) -> BTreeSet<&str> {
    let restrictions = shoot.spec.access_restrictions.iter();
    restrictions.map(|own| own.name.as_str()).collect()
}

impl Check<'_> {
    /// [ADM-32].
    pub(super) fn region(&self) -> Option<Error> {
        let own = self.shoot.spec.region.as_str();
        let known: Vec<&str> = self.profile.regions.iter().map(|region| region.name.as_str()).collect();
        let unchanged = self.old.is_some_and(|old| old.spec.region == own);
        match unchanged || known.contains(&own) {
            true => None,
            false => Some(Error::not_supported(&Path::new("spec.region"), own, &known)),
        }
    }

    /// [ADM-32].
    pub(super) fn access_restrictions(&self) -> ErrorList {
        let before = self.old.map(restrictions).unwrap_or_default();
        if restrictions(self.shoot) == before {
            return ErrorList::new();
        }
        let own = self.shoot.spec.region.as_str();
        let Some(region) = self.profile.regions.iter().find(|region| region.name == own) else {
            let path = Path::new("spec.region");
            return vec![Error::invalid(&path, own, "region not present in CloudProfile")];
        };
        let names = |list: &[AccessRestriction]| -> Vec<String> { list.iter().map(|own| own.name.clone()).collect() };
        let offered = names(&region.access_restrictions);
        let of_seed = self.seed.map(|seed| names(&seed.spec.access_restrictions));
        let path = Path::new("spec.accessRestrictions");
        let wanted = || self.shoot.spec.access_restrictions.iter().enumerate();
        let mut errors = ErrorList::new();
        for (i, restriction) in wanted().filter(|(_, own)| !offered.contains(&own.name)) {
            errors.push(Error::not_supported(
                &path.index(i),
                restriction.name.as_str(),
                &offered,
            ));
        }
        if let Some(of_seed) = of_seed {
            for (i, restriction) in wanted().filter(|(_, own)| !of_seed.contains(&own.name)) {
                let why = format!("access restriction {:?} is not supported by the seed", restriction.name);
                errors.push(Error::forbidden(&path.index(i), why));
            }
        }
        errors
    }

    /// [ADM-32a], and the pools of the right provider.
    pub(super) fn provider(&self) -> ErrorList {
        match self.provider_type() {
            Some(error) => vec![error],
            None => self.pools(),
        }
    }

    fn provider_type(&self) -> Option<Error> {
        let (lister, namespace) = (self.attributes.context.lister, self.attributes.namespace);
        let spec = &self.shoot.spec;
        let own = spec.provider.r#type.as_str();
        let wrong = |why: String| Some(Error::invalid(&Path::new("spec.provider.type"), own, why));
        if self.profile.r#type != own {
            return wrong(format!(
                "provider type in shoot must equal provider type of referenced CloudProfile: {:?}",
                self.profile.r#type
            ));
        }
        if let Some(name) = &spec.secret_binding_name
            && let Some(binding) = lookup::get::<SecretBinding>(lister, namespace, name)
        {
            let types = binding.provider.map(|provider| provider.r#type).unwrap_or_default();
            if !types.split(',').any(|kind| kind == own) {
                return wrong(format!(
                    "provider type in shoot must match provider type of referenced SecretBinding: {types:?}"
                ));
            }
        }
        if let Some(name) = &spec.credentials_binding_name
            && let Some(binding) = lookup::get::<CredentialsBinding>(lister, namespace, name)
            && binding.provider.r#type != own
        {
            return wrong(format!(
                "provider type in shoot must match provider type of referenced CredentialsBinding: {:?}",
                binding.provider.r#type
            ));
        }
        None
    }

    /// [ADM-32i].
    pub(super) fn control_plane_zones(&self) -> ErrorList {
        let path = Path::new("spec.controlPlane.zones");
        let (now, before) = (zones(self.shoot), self.old.map(zones).unwrap_or_default());
        if now.is_empty() {
            return ErrorList::new();
        }
        let pinning = self
            .profile
            .control_plane
            .as_ref()
            .is_some_and(|own| own.allow_zone_pinning == Some(true));
        if before.is_empty() && !pinning {
            return vec![Error::forbidden(
                &path,
                "spec.controlPlane.zones can only be set when the CloudProfile has spec.controlPlane.allowZonePinning set to true",
            )];
        }
        let same_region = self.old.is_some_and(|old| old.spec.region == self.shoot.spec.region);
        let Some(seed) = self.seed.filter(|_| now != before || !same_region) else {
            return ErrorList::new();
        };
        let name = seed.metadata.name.as_deref().unwrap_or_default();
        let missing = now
            .iter()
            .enumerate()
            .filter(|(_, zone)| !seed.spec.provider.zones.contains(zone));
        let error = |(i, zone): (usize, &String)| {
            let why = format!("zone is not available in seed {name:?}");
            Error::invalid(&path.index(i), zone.as_str(), why)
        };
        missing.map(error).collect()
    }
}
