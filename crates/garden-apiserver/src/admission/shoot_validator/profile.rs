//! A shoot may change to another cloud profile of the same hierarchy that has what it uses, [ADM-32m].

use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::*;
use gardener_apiserver::definition::{Attributes, Lister};

use crate::lookup;

/// The CloudProfile that a reference comes down to.
fn root(lister: &dyn Lister, namespace: &str, reference: &CloudProfileReference) -> Result<String, String> {
    match reference.kind.as_str() {
        "CloudProfile" => Ok(reference.name.clone()),
        "NamespacedCloudProfile" => {
            let found = lookup::get::<NamespacedCloudProfile>(lister, namespace, &reference.name);
            found.map(|profile| profile.spec.parent.name).ok_or_else(|| {
                format!(
                    "namespacedcloudprofile.core.gardener.cloud {:?} not found",
                    reference.name
                )
            })
        }
        other => Err(format!("unexpected cloudprofile kind {other}")),
    }
}

/// Whether a shoot may have the profile that it names now.
pub(super) fn change(
    attributes: &Attributes<'_>,
    shoot: &Shoot,
    old: &Shoot,
    profile: &CloudProfileSpec,
) -> Result<(), ApiError> {
    let (from, to) = (old.spec.cloud_profile_reference(), shoot.spec.cloud_profile_reference());
    let (Some(from), Some(to)) = (&from, &to) else {
        return Ok(());
    };
    if from == to {
        return Ok(());
    }
    let (lister, namespace) = (attributes.context.lister, attributes.namespace);
    let root_of = |reference| root(lister, namespace, reference).map_err(ApiError::internal);
    let (new_root, old_root) = (root_of(to)?, root_of(from)?);
    if new_root != old_root {
        let told = |reference: &CloudProfileReference, root: &str| match reference.kind.as_str() {
            "CloudProfile" => format!("{:?}", reference.name),
            _ => format!("{:?} (root: {root:?})", reference.name),
        };
        return Err(ApiError::unclassified(format!(
            "cloud profile reference change is invalid: cannot change from {} to {}. The cloud profile reference must remain within the same hierarchy",
            told(from, &old_root),
            told(to, &new_root)
        )));
    }
    let before = lookup::cloud_profile(lister, namespace, Some(from)).map_err(|why| {
        ApiError::unclassified(format!(
            "could not find cloudProfileSpec from the shoot cloudProfile reference: {why}"
        ))
    })?;
    match missing(shoot, profile, &before) {
        Some(missing) => Err(ApiError::unclassified(format!(
            "newly referenced cloud profile does not contain the {missing}"
        ))),
        None => Ok(()),
    }
}

/// The first that a pool uses and a profile has not. Kubernetes versions may be missing: the next maintenance changes them.
fn missing(shoot: &Shoot, profile: &CloudProfileSpec, before: &CloudProfileSpec) -> Option<String> {
    let has_image = |profile: &CloudProfileSpec, image: &ShootMachineImage| {
        let images = profile.machine_images.iter().filter(|own| own.name == image.name);
        let mut versions = images.flat_map(|own| &own.versions);
        versions.any(|own| Some(&own.version) == image.version.as_ref())
    };
    shoot.spec.provider.workers.iter().find_map(|worker| {
        let name = &worker.name;
        if let Some(image) = &worker.machine.image
            && has_image(before, image)
            && !has_image(profile, image)
        {
            let version = image.version.as_deref().unwrap_or_default();
            return Some(format!(
                "machine image version \"{}@{version}\" currently in use by worker \"{name}\"",
                image.name
            ));
        }
        let machine_type = &worker.machine.r#type;
        if !profile.machine_types.iter().any(|own| own.name == *machine_type) {
            return Some(format!(
                "machine type {machine_type:?} currently in use by worker {name:?}"
            ));
        }
        let volume_type = worker.volume.as_ref().and_then(|volume| volume.r#type.as_ref())?;
        let listed = profile.volume_types.iter().any(|own| own.name == *volume_type);
        (!listed).then(|| format!("volume type {volume_type:?} currently in use by worker {name:?}"))
    })
}
