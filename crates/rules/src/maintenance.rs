//! What maintenance does to a shoot: the versions it brings, the fields that a new version takes away, the operation it asks for, and what it
//! tells of all that [VER-73..90], [UPD-46], [UPD-47]. Credentials whose time has come are rotated on the way.
//!
//! Not here: when it runs ([`crate::maintenance_window`]), and the writing.

mod adapt;
mod again;
mod operation;
mod report;
mod rotation;

use gardener_apis::core::v1beta1::{CloudProfileSpec, SecretBinding, Shoot, Stage, Worker};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_apis::versions::{self, normalised};
use k8s_openapi::jiff::Timestamp;

use crate::versions::{
    Listed, Needs, Strategy, fitting, image, kubernetes, kubernetes_target, machine_image, machine_image_target,
};

pub use again::next_change;
pub use report::{Event, Item, Report, Subject, is_forced, reason_of};

/// `controllers.shootMaintenance` of the controller-manager, and its feature gates.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// `enableShootControlPlaneRestarter`.
    pub restart_control_plane: bool,
    /// `enableShootCoreAddonRestarter`.
    pub restart_core_addons: bool,
    /// Feature gate `DisableNginxIngressInShoot`.
    pub disable_nginx_ingress: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            restart_control_plane: true,
            restart_core_addons: false,
            disable_nginx_ingress: false,
        }
    }
}

/// What else is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The shoot's cloud profile; of a namespaced one the merged content.
    pub profile: &'a CloudProfileSpec,
    /// The CredentialsBindings of the shoot's namespace.
    pub credentials_bindings: &'a [CredentialsBinding],
    /// The SecretBinding that the shoot uses.
    pub secret_binding: Option<&'a SecretBinding>,
    /// How maintenance is configured.
    pub settings: Settings,
    /// What time it is.
    pub now: Timestamp,
}

/// What maintenance is to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The shoot as it is to be written.
    pub shoot: Shoot,
    /// A binding that must be there before.
    pub new_binding: Option<CredentialsBinding>,
    /// What users read of it.
    pub report: Report,
    /// Why no (further) machine images were looked at [VER-78].
    pub images_left_out: Option<String>,
}

/// Why something is maintained, and whether what it has must be left.
struct Need {
    reason: String,
    forced: bool,
}

/// What something is brought to, or why it cannot be, and why it is to be.
struct Step {
    reason: String,
    target: Result<String, String>,
}

impl Step {
    /// Nothing, if there is no target.
    fn of(need: Need, target: Result<Option<&str>, String>) -> Option<Self> {
        Some(Self {
            reason: need.reason,
            target: target.transpose()?.map(str::to_owned),
        })
    }
}

/// Works out what maintenance does to a shoot now.
pub fn plan(shoot: &Shoot, around: &Surroundings<'_>) -> Plan {
    let mut plan = Plan {
        shoot: shoot.clone(),
        new_binding: None,
        report: Report::default(),
        images_left_out: None,
    };
    if let Err(why) = images(&mut plan, around) {
        plan.images_left_out = Some(why);
    }
    control_plane(&mut plan, around);
    plan.report.items.extend(rotation::due(shoot, around.now));
    adapt::obsolete_fields(&mut plan, shoot.spec.kubernetes_version(), around);
    pools(&mut plan, around);
    adapt::feature_gates(&mut plan);
    adapt::admission_plugins(&mut plan);
    operation::request(&mut plan);
    if around.settings.disable_nginx_ingress {
        adapt::nginx_ingress(&mut plan);
    }
    operation::add_tasks(&mut plan.shoot, around.settings);
    plan
}

fn auto_update(shoot: &Shoot) -> (bool, bool) {
    let maintenance = shoot.spec.maintenance.as_ref();
    let auto_update = maintenance.and_then(|own| own.auto_update.as_ref());
    auto_update.map_or((false, false), |own| {
        (own.kubernetes_version, own.machine_image_version.unwrap_or_default())
    })
}

/// Whether and why a Kubernetes version is maintained [VER-73].
fn kubernetes_need(listed: &[Listed<'_>], current: &str, automatic: bool) -> Option<Need> {
    let own = normalised(current);
    let found = listed
        .iter()
        .find(|listed| own.is_some() && normalised(listed.text) == own);
    let (reason, forced) = match found {
        None => (report::UNKNOWN_VERSION, true),
        Some(found) if found.stage == Stage::Expired => (report::KUBERNETES_EXPIRED, true),
        Some(_) if automatic => ("Automatic update of Kubernetes version configured", false),
        Some(_) => return None,
    };
    Some(Need {
        reason: reason.to_owned(),
        forced,
    })
}

/// The Kubernetes version that something is brought to, and why; nothing, if it stays.
fn kubernetes_step(listed: &[Listed<'_>], current: &str, automatic: bool) -> Option<Step> {
    let need = kubernetes_need(listed, current, automatic)?;
    let target = kubernetes_target(listed, current, need.forced);
    let target = target.map_err(|why| format!("could not determine higher suitable version than {current:?}: {why}"));
    Step::of(need, target)
}

fn updated(what: &str, from: &str, to: &str) -> String {
    format!("Updated {what} from {from:?} to {to:?}")
}

fn control_plane(plan: &mut Plan, around: &Surroundings<'_>) {
    let (automatic, _) = auto_update(&plan.shoot);
    let current = plan.shoot.spec.kubernetes_version().to_owned();
    let listed = kubernetes(around.profile, around.now);
    let Some(Step { reason, target }) = kubernetes_step(&listed, &current, automatic) else {
        return;
    };
    let result = target.map(|target| {
        let told = updated("Kubernetes version", &current, &target);
        plan.shoot.spec.kubernetes.version = Some(target);
        told
    });
    plan.report.items.push(Item {
        subject: Subject::ControlPlane,
        reason,
        result,
    });
}

/// Pools with a version of their own follow, but never lead [VER-79].
fn pools(plan: &mut Plan, around: &Surroundings<'_>) {
    let (automatic, _) = auto_update(&plan.shoot);
    let highest = plan.shoot.spec.kubernetes_version().to_owned();
    let listed = kubernetes(around.profile, around.now);
    for worker in &mut plan.shoot.spec.provider.workers {
        let Some(pinned) = worker.kubernetes.as_mut().and_then(|own| own.version.as_mut()) else {
            continue;
        };
        let Some(Step { reason, target }) = kubernetes_step(&listed, pinned, automatic) else {
            continue;
        };
        let result = target.map(|target| {
            let target = match versions::compare(&target, &highest).is_gt() {
                true => highest.clone(),
                false => target,
            };
            let told = updated("Kubernetes version", pinned, &target);
            *pinned = target;
            told
        });
        plan.report.items.push(Item {
            subject: Subject::PoolKubernetes(worker.name.clone()),
            reason,
            result,
        });
    }
}

/// Whether and why a pool's image is maintained [VER-74].
fn image_need(
    listed: &[Listed<'_>],
    same_name: bool,
    current: &str,
    automatic: bool,
    strategy: Strategy,
) -> Option<Need> {
    let strategy = strategy.as_str();
    let found = listed.iter().find(|listed| same_name && listed.text == current);
    let (reason, forced) = match found {
        None => (report::UNKNOWN_VERSION.to_owned(), true),
        Some(found) if found.stage == Stage::Expired => (
            format!("{} (image update strategy: {strategy})", report::IMAGE_EXPIRED),
            true,
        ),
        Some(_) if automatic => (
            format!("Automatic update of the machine image version is configured (image update strategy: {strategy})"),
            false,
        ),
        Some(_) => return None,
    };
    Some(Need { reason, forced })
}

/// What becomes of one pool's image; the error ends the maintenance of all images [VER-78].
fn image_step(
    worker: &Worker,
    kubelet: &str,
    automatic: bool,
    around: &Surroundings<'_>,
) -> Result<Option<Step>, String> {
    let Some(own) = &worker.machine.image else {
        return Ok(None);
    };
    let current = own.version.as_deref().unwrap_or_default();
    let profile = around.profile;
    let known = image(profile, &own.name).ok_or_else(|| {
        format!(
            "machine image {:?} of pool {:?} is not in the CloudProfile",
            own.name, worker.name
        )
    })?;
    let wanted = &worker.machine.r#type;
    let machine_type = profile.machine_types.iter().find(|known| known.name == *wanted);
    if machine_type.is_none() {
        let pool = &worker.name;
        return Err(format!(
            "machine type {wanted:?} of pool {pool:?} is not in the CloudProfile"
        ));
    }
    let needs = Needs {
        worker,
        machine_type,
        kubelet,
    };
    let listed = machine_image(fitting(known, &profile.machine_capabilities, &needs), around.now);
    let strategy = Strategy::of(known.update_strategy.as_deref());
    let Some(need) = image_need(&listed, known.name == own.name, current, automatic, strategy) else {
        return Ok(None);
    };
    let target = machine_image_target(&listed, &own.name, current, strategy, need.forced).map_err(|why| {
        let (name, strategy) = (&own.name, strategy.as_str());
        format!(
            "failed to update machine image {name:?}: failed to determine the target version for maintenance of machine image {name:?} with strategy {strategy:?}: {why}"
        )
    });
    Ok(Step::of(need, target))
}

fn images(plan: &mut Plan, around: &Surroundings<'_>) -> Result<(), String> {
    let (_, automatic) = auto_update(&plan.shoot);
    let control_plane = plan.shoot.spec.kubernetes_version().to_owned();
    for worker in &mut plan.shoot.spec.provider.workers {
        let pinned = worker.kubernetes.as_ref().and_then(|own| own.version.as_deref());
        let kubelet = pinned.unwrap_or(&control_plane);
        let Some(Step { reason, target }) = image_step(worker, kubelet, automatic, around)? else {
            continue;
        };
        let result = target.map(|target| {
            let image = worker.machine.image.get_or_insert_default();
            let from = image.version.replace(target.clone()).unwrap_or_default();
            updated(&format!("machine image {:?}", image.name), &from, &target)
        });
        plan.report.items.push(Item {
            subject: Subject::PoolImage(worker.name.clone()),
            reason,
            result,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
