//! Shoots fit their project, cloud profile and seed, [ADM-29] – [ADM-32n].
//!
//! Here is the order in which it is looked; the checks are by what they look at. Most of them look only at what changed: what was fine when it came
//! stays fine when a cloud profile or a seed changes.

mod credentials;
mod images;
mod live_migration;
mod networks;
mod pools;
mod profile;
mod provider;
mod scheduling;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};

use gardener_apis::core::v1beta1::*;
use gardener_apiserver::definition::{Admission, Attributes, Operation};

use super::shoot_defaults::NO_PROJECT;
use super::{typed, typed_old};
use crate::features::Features;
use crate::lookup;
use gardener_rules::constraints::HIBERNATION_POSSIBLE;

/// The plugin.
pub(super) struct ShootValidator {
    /// What is switched on.
    pub(super) features: Features,
}

/// The most characters that the names of project and shoot have together.
const NAMES_MAX: usize = 21;

/// A write of a shoot with all that it is compared with.
struct Check<'a> {
    attributes: &'a Attributes<'a>,
    shoot: &'a Shoot,
    old: Option<&'a Shoot>,
    profile: &'a CloudProfileSpec,
    seed: Option<&'a Seed>,
    features: &'a Features,
}

#[async_trait]
impl Admission for ShootValidator {
    fn name(&self) -> &'static str {
        "ShootValidator"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !matches!(attributes.subresource, "" | "binding") {
            return Ok(());
        }
        if attributes.operation == Operation::Delete {
            return match typed_old::<Shoot>(attributes) {
                Some(shoot) => scheduling::may_be_deleted(attributes, &shoot),
                None => Ok(()),
            };
        }
        let Some(shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        let old = typed_old::<Shoot>(attributes);
        if let Some(old) = &old {
            if attributes.subresource == "binding" && old.spec.seed_name == shoot.spec.seed_name {
                return Err(ApiError::unclassified(
                    "update of binding rejected, shoot is already assigned to the same seed",
                ));
            }
            if old.spec == shoot.spec && old.metadata == shoot.metadata {
                return Ok(());
            }
        }
        let lister = attributes.context.lister;
        let reference = shoot.spec.cloud_profile_reference();
        let profile =
            lookup::cloud_profile(lister, attributes.namespace, reference.as_ref()).map_err(ApiError::internal)?;
        if let Some(old) = &old {
            profile::change(attributes, &shoot, old, &profile)?;
        }
        let seed = match &shoot.spec.seed_name {
            Some(name) => Some(lookup::get::<Seed>(lister, "", name).ok_or_else(|| {
                ApiError::internal(format!(
                    "could not find referenced seed {name:?}: seed.core.gardener.cloud {name:?} not found"
                ))
            })?),
            None => None,
        };
        let check = Check {
            attributes,
            shoot: &shoot,
            old: old.as_deref(),
            profile: &profile,
            seed: seed.as_ref(),
            features: &self.features,
        };
        check.in_order()
    }
}

impl Check<'_> {
    /// What is refused by itself in its order, then all that is told together.
    fn in_order(&self) -> Result<(), ApiError> {
        let project = lookup::project_of(self.attributes.context.lister, self.attributes.namespace)
            .ok_or_else(|| self.attributes.forbidden(NO_PROJECT))?;
        if self.old.is_none() {
            self.new_in_project(&project)?;
        }
        self.scheduling()?;
        self.hibernation()?;
        self.managed_issuer()?;
        self.credentials()?;
        let mut errors = self.seed_selector();
        errors.extend(self.internal_versions());
        errors.extend(self.networks());
        errors.extend(self.kubernetes());
        errors.extend(self.region());
        errors.extend(self.access_restrictions());
        errors.extend(self.provider());
        errors.extend(self.control_plane_zones());
        errors.extend(self.admission_plugins());
        errors.extend(self.limits());
        errors.extend(self.live_migration());
        if self.spec_changes() {
            errors.extend(self.domain());
        }
        self.attributes.forbid_all(&errors)
    }

    fn spec_changes(&self) -> bool {
        self.old.is_none_or(|old| old.spec != self.shoot.spec)
    }

    /// [ADM-29], [VAL-S2].
    fn new_in_project(&self, project: &Project) -> Result<(), ApiError> {
        let (attributes, shoot) = (self.attributes, self.shoot);
        let name = project.metadata.name.as_deref().unwrap_or_default();
        let own = shoot.own_name();
        if name.len() + own.len() > NAMES_MAX {
            let why = format!(
                "the length of the shoot name and the project name must not exceed {NAMES_MAX} characters (project: {name}; shoot: {own})"
            );
            return Err(attributes.invalid(&[Error::invalid(&Path::new("name"), own, why)]));
        }
        if project.metadata.deletion_timestamp.is_some() {
            return Err(attributes.forbidden(&format!(
                "cannot create shoot '{own}' in project '{name}' that is already marked for deletion"
            )));
        }
        Ok(())
    }

    /// [ADM-29e]: a shoot that could not wake up again is not put to sleep.
    fn hibernation(&self) -> Result<(), ApiError> {
        let before = self.old.is_some_and(Shoot::hibernation_enabled);
        if before || !self.shoot.hibernation_enabled() {
            return Ok(());
        }
        let mut constraints = self.shoot.status.constraints.iter();
        match constraints.find(|own| own.r#type == HIBERNATION_POSSIBLE && own.status != "True") {
            Some(own) => Err(self.attributes.forbidden(&format!(
                "'{}' constraint is '{}': {}",
                own.r#type, own.status, own.message
            ))),
            None => Ok(()),
        }
    }

    /// [ADM-29f].
    fn managed_issuer(&self) -> Result<(), ApiError> {
        let now = self.shoot.has_managed_issuer();
        let before = self.old.is_some_and(Shoot::has_managed_issuer);
        if !now && !before {
            return Ok(());
        }
        let configured = lookup::issuer_secret(self.attributes.context.lister).is_some();
        let own_issuer = || {
            let server = self.shoot.spec.kubernetes.kube_api_server.as_ref()?;
            server.service_account_config.as_ref()?.issuer.as_ref()
        };
        let why = match (configured, now) {
            (false, true) => {
                "cannot enable managed service account issuer as it is not supported in this Gardener installation"
            }
            (false, false) => {
                return Err(ApiError::internal(
                    "old shoot object has managed service account issuer enabled, but Gardener configuration is missing",
                ));
            }
            (true, false) => "once enabled managed service account issuer cannot be disabled",
            (true, true) if own_issuer().is_some() => {
                "managed service account issuer cannot be enabled when .kubernetes.kubeAPIServer.serviceAccountConfig.issuer is set"
            }
            (true, true) => return Ok(()),
        };
        Err(self.attributes.forbidden(why))
    }

    /// [ADM-31]: no configuration of an extension in a version that only its controllers know.
    fn internal_versions(&self) -> ErrorList {
        let spec = &self.shoot.spec;
        let provider = Path::new("spec.provider");
        let mut configs = vec![
            (
                provider.child("infrastructureConfig"),
                &spec.provider.infrastructure_config,
            ),
            (
                provider.child("controlPlaneConfig"),
                &spec.provider.control_plane_config,
            ),
        ];
        if let Some(networking) = &spec.networking {
            configs.push((Path::new("spec.networking.providerConfig"), &networking.provider_config));
        }
        for (i, worker) in spec.provider.workers.iter().enumerate() {
            let path = provider.child("workers").index(i);
            configs.push((path.child("providerConfig"), &worker.provider_config));
            if let Some(image) = &worker.machine.image {
                configs.push((path.child("machine.image.providerConfig"), &image.provider_config));
            }
            for (j, runtime) in worker.cri.iter().flat_map(|cri| &cri.container_runtimes).enumerate() {
                let path = path.child("cri.containerRuntimes").index(j).child("providerConfig");
                configs.push((path, &runtime.provider_config));
            }
        }
        let internal = |(path, config): (Path, &Option<serde_json::Value>)| {
            let config = config.as_ref()?;
            let member = |name: &str| config.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
            let (group, version) = member("apiVersion")
                .split_once('/')
                .unwrap_or(("", member("apiVersion")));
            (version == "__internal" && !member("kind").is_empty()).then(|| {
                let shown = format!("{group}/{version}, Kind={}", member("kind"));
                Error::invalid(&path, shown, "must not use apiVersion 'internal'")
            })
        };
        configs.into_iter().filter_map(internal).collect()
    }

    /// [ADM-32b] of the control plane.
    fn kubernetes(&self) -> ErrorList {
        let own = self.shoot.spec.kubernetes_version();
        if self.old.is_some_and(|old| old.spec.kubernetes_version() == own) {
            return ErrorList::new();
        }
        let path = Path::new("spec.kubernetes.version");
        self.version(own, self.old.is_none(), &path).into_iter().collect()
    }

    /// [ADM-32b], [VER-42], [VER-43]: whoever runs a version may go to an expired one, as forced updates must.
    fn version(&self, version: &str, is_new: bool, path: &Path) -> Option<Error> {
        let now = self.attributes.context.now;
        let mut offered = Vec::new();
        for known in &self.profile.kubernetes.versions {
            let stage = known.stage(now);
            if stage == Stage::Unavailable || (is_new && !stage.is_active()) {
                continue;
            }
            if known.version == version {
                return None;
            }
            offered.push(match stage {
                Stage::Preview => format!("{} (preview)", known.version),
                _ => known.version.clone(),
            });
        }
        Some(Error::not_supported(path, version, &offered))
    }

    /// [ADM-32k].
    fn limits(&self) -> Option<Error> {
        let limit = self.profile.limits.as_ref()?.max_nodes_total?;
        if self.shoot.in_deletion() {
            return None;
        }
        let workers = self.shoot.spec.provider.workers.iter();
        let total: i64 = workers.map(|worker| i64::from(worker.minimum)).sum();
        (total > i64::from(limit)).then(|| {
            Error::forbidden(
                &Path::new("spec.provider.workers"),
                format!(
                    "the total minimum node count of all worker pools must not exceed the limit of {limit} configured in the CloudProfile"
                ),
            )
        })
    }

    /// [ADM-32l]. A domain that a shoot has already was looked at when it came: all shoots are read for that.
    fn domain(&self) -> Option<Error> {
        let domain_of = |shoot: &Shoot| shoot.spec.dns.as_ref()?.domain.clone();
        let own = domain_of(self.shoot)?;
        let own = own.as_str();
        if self.old.and_then(domain_of).as_deref() == Some(own) {
            return None;
        }
        let path = Path::new("spec.dns.domain");
        let place = |shoot: &Shoot| (shoot.project_namespace().to_owned(), shoot.own_name().to_owned());
        let here = place(self.shoot);
        lookup::list::<Shoot>(self.attributes.context.lister, None)
            .iter()
            .filter(|other| place(other) != here)
            .filter_map(domain_of)
            .find_map(|other| {
                if other == own {
                    Some(Error::duplicate(&path, own))
                } else if own.ends_with(&format!(".{other}")) || other.ends_with(&format!(".{own}")) {
                    Some(Error::forbidden(
                        &path,
                        "the domain is already used by another shoot or it is a subdomain of an already used domain",
                    ))
                } else {
                    None
                }
            })
    }
}
