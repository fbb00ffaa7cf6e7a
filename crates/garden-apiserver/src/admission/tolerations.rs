//! Which tolerations shoots get and may have, [ADM-37], [DEF-56], [TOL-10] – [TOL-14].

use std::sync::Arc;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{self, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::core::v1beta1::{Project, Shoot, Toleration};
use gardener_apis::validation::{allowed_tolerations, toleration_identity};
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use k8s_openapi::Resource;

use super::shoot_defaults::NO_PROJECT;
use super::{put, typed, typed_old};
use crate::lookup;

/// The plugin, with what holds for all projects.
#[derive(Default)]
pub(super) struct ShootTolerationRestriction {
    /// What every shoot gets.
    pub(super) defaults: Vec<Toleration>,
    /// What every shoot may have.
    pub(super) allowed: Vec<Toleration>,
}

/// Where they are in a Shoot.
const TOLERATIONS: &str = "/spec/tolerations";

fn project(attributes: &Attributes<'_>) -> Result<Arc<Project>, ApiError> {
    lookup::project_of(attributes.context.lister, attributes.namespace).ok_or_else(|| attributes.forbidden(NO_PROJECT))
}

/// Whether a change leaves a shoot's tolerations as they are, as changes of the status do: what a shoot has already it may keep.
fn is_unchanged(attributes: &Attributes<'_>) -> bool {
    match (attributes.old, &attributes.object) {
        (Some(old), Some(new)) if attributes.is(Shoot::GROUP, Shoot::URL_PATH_SEGMENT) => {
            attributes.subresource == "status" || old.at(TOLERATIONS) == new.at(TOLERATIONS)
        }
        _ => false,
    }
}

#[async_trait]
impl Admission for ShootTolerationRestriction {
    fn name(&self) -> &'static str {
        "ShootTolerationRestriction"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation != Operation::Create || !attributes.subresource.is_empty() {
            return Ok(());
        }
        let Some(shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        let of_project = project(attributes)?
            .spec
            .tolerations
            .as_ref()
            .map(|both| both.defaults.clone());
        let defaults = self.defaults.iter().cloned().chain(of_project.unwrap_or_default());
        let own = &shoot.spec.tolerations;
        let added: Vec<Toleration> = defaults
            .filter(|toleration| !own.iter().any(|own| own.key == toleration.key))
            .collect();
        if !added.is_empty() {
            let mut shoot = Shoot::clone(&shoot);
            shoot.spec.tolerations.extend(added);
            put(attributes, shoot);
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if is_unchanged(attributes) {
            return project(attributes).map(drop);
        }
        let Some(shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        let before = typed_old::<Shoot>(attributes)
            .map(|old| old.spec.tolerations.clone())
            .unwrap_or_default();
        let before: Vec<String> = before.iter().map(toleration_identity).collect();
        let new: Vec<Toleration> = shoot
            .spec
            .tolerations
            .iter()
            .filter(|own| !before.contains(&toleration_identity(own)))
            .cloned()
            .collect();
        let of_project = project(attributes)?
            .spec
            .tolerations
            .as_ref()
            .map(|both| both.whitelist.clone());
        let allowed: Vec<Toleration> = self
            .allowed
            .iter()
            .cloned()
            .chain(of_project.unwrap_or_default())
            .collect();
        let errors = allowed_tolerations(&new, &allowed, &Path::new("spec.tolerations"));
        if errors.is_empty() {
            return Ok(());
        }
        Err(attributes.forbidden(&format!(
            "error while validating tolerations against allowlist: {}",
            field::listed(&errors)
        )))
    }
}
