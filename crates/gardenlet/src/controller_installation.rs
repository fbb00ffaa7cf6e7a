//! The ControllerInstallation controller: installs extensions in the seed, and tells how they do [EXT-104..108].
//!
//! A chart whose templates are plain manifests is taken as it is; only the namespace and the names of the installation are filled in. One with
//! template expressions is rendered by `helm`; where there is none, the installation tells so.

mod chart;
mod helm;
mod required;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use gardener_apis::constants::{GARDEN_NAMESPACE, finalizer, label};
use gardener_apis::core::v1::ControllerDeployment;
use gardener_apis::core::v1beta1::{Condition, ControllerInstallation, ControllerRegistration, Seed};
use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::apply as patching;
use gardener_controller::conditions::{self, status};
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Read};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::chart::{Chart, ChartError};
use self::values::{NoSuchData, Resources};
use crate::Config;
use crate::failed::{self, Failed};
use crate::managed_resource::{self, Content};
use crate::{apply, health};

/// Whether somebody wants something else of an installation.
fn is_news(change: &Change<ControllerInstallation>) -> bool {
    match change {
        Change::Applied { old: Some(old), new } => {
            old.spec != new.spec || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        }
        _ => true,
    }
}

fn is_of(installation: &ControllerInstallation, seed: &str) -> bool {
    let own = installation.spec.seed_ref.as_ref();
    own.and_then(|own| own.name.as_deref()) == Some(seed)
}

/// Runs the controllers until `stop`.
pub(crate) async fn run(config: Config, resources: Informer<ManagedResource>, stop: CancellationToken) {
    let queue = failed::queue();
    let installations: Informer<ControllerInstallation> = Informer::start(
        Api::all(config.garden.clone()),
        kube::runtime::watcher::Config::default().fields(&seed_field(&config.seed_name)),
        &stop,
    );
    let seed = config.seed_name.clone();
    installations.feed_if(
        &queue,
        move |change| is_news(change) && is_of(change.object(), &seed),
        |one| [ObjectRef::of(one)],
    );
    // How an extension does is seen at its ManagedResource, which is named after the installation.
    resources.feed_if(
        &queue,
        |change| change.object().namespace().as_deref() == Some(GARDEN_NAMESPACE),
        |one| [ObjectRef::cluster_scoped(one.name_any())],
    );
    let requiring = required::run(config.clone(), installations, stop.clone()).boxed();
    let config = Arc::new(config);
    let installing = Controller::new("controllerinstallation", 10, queue).run(stop, move |key| {
        let config = Arc::clone(&config);
        async move { reconcile(&config, &key).await }
    });
    tokio::join!(requiring, installing);
}

/// Selects the installations of a seed: gardenlet may list no others.
pub(crate) fn seed_field(seed: &str) -> String {
    format!("spec.seedRef.name={seed}")
}

/// Selects the installations of a seed.
pub(crate) fn of_seed(seed: &str) -> ListParams {
    ListParams::default().fields(&seed_field(seed))
}

/// The namespace of an installation [EXT-104].
pub(crate) fn namespace_of(installation: &ControllerInstallation) -> String {
    format!("extension-{}", installation.name_any())
}

fn told(list: &[Condition], kind: &str, holds: bool, reason: &str, message: &str, now: &Time) -> Condition {
    let old = conditions::get_or_init(list, kind, now);
    let value = if holds { status::TRUE } else { status::FALSE };
    conditions::with(&old, value, reason, message, now)
}

async fn tell(config: &Config, installation: &ControllerInstallation, news: Vec<Condition>) -> Result<(), Failed> {
    let api: Api<ControllerInstallation> = Api::all(config.garden.clone());
    patching::patch_status(&api, installation, |one| {
        let list = std::mem::take(&mut one.status.conditions);
        one.status.conditions = conditions::merge(list, news.clone());
    })
    .await?;
    Ok(())
}

async fn reconcile(config: &Config, key: &ObjectRef) -> Result<Action, Failed> {
    let api: Api<ControllerInstallation> = Api::all(config.garden.clone());
    let Some(installation) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    if !is_of(&installation, &config.seed_name) {
        return Ok(Action::Done);
    }
    if installation.metadata.deletion_timestamp.is_some() {
        return delete(config, &api, &installation).await;
    }
    let (installation, _) = patching::add_finalizer(&api, &installation, finalizer::CONTROLLER_INSTALLATION).await?;
    let now = config.clock.time();
    let list = installation.status.conditions.clone();
    let invalid = |reason: &str, message: &str| vec![told(&list, "Valid", false, reason, message, &now)];
    let registration_name = installation.spec.registration_ref.name.clone().unwrap_or_default();
    let registrations: Api<ControllerRegistration> = Api::all(config.garden.clone());
    let Some(registration) = registrations.read_opt(&registration_name).await? else {
        let message = format!("Referenced ControllerRegistration {registration_name:?} does not exist");
        tell(config, &installation, invalid("RegistrationNotFound", &message)).await?;
        return Err(Failed::Because(message));
    };
    let seeds: Api<Seed> = Api::all(config.garden.clone());
    let seed = seeds.read(&config.seed_name).await?;
    let Some(identity) = seed.status.cluster_identity.clone() else {
        return Err(Failed::Because(
            "the seed's cluster identity is not known yet".to_owned(),
        ));
    };
    let deployments: Api<ControllerDeployment> = Api::all(config.garden.clone());
    let Some(reference) = installation
        .spec
        .deployment_ref
        .as_ref()
        .and_then(|one| one.name.clone())
    else {
        // whoever waits for the extension must not wait for what there is not
        let nothing = "Nothing is to be installed";
        let all = [
            told(&list, "Valid", true, "RegistrationValid", "Registration is valid", &now),
            told(&list, "Installed", true, "InstallationSuccessful", nothing, &now),
            told(&list, "Healthy", true, "ControllerHealthy", nothing, &now),
            told(&list, "Progressing", false, "ControllerRolledOut", nothing, &now),
        ];
        tell(config, &installation, all.into()).await?;
        return Ok(Action::Done);
    };
    let deployment = deployments.read(&reference).await?;
    let namespace = namespace_of(&installation);
    let around = Around {
        installation: &installation.name_any(),
        registration: &registration_name,
        namespace: &namespace,
        seed: &seed,
        identity: &identity,
    };
    let rendered = render(config, &deployment, &around).await;
    let mut objects = match rendered {
        Ok(objects) => objects,
        Err(error) => {
            let message = error.to_string();
            let news = vec![
                told(&list, "Valid", false, error.reason(), &message, &now),
                told(&list, "Installed", false, "InstallationFailed", &message, &now),
            ];
            tell(config, &installation, news).await?;
            return Err(Failed::Because(message));
        }
    };
    chart::inject_environment(&mut objects, &config.seed_name);
    apply::apply(
        &config.seed,
        &namespace_manifest(&installation, &registration, &seed, &namespace),
    )
    .await?;
    let name = installation.name_any();
    let content = Content {
        namespace: GARDEN_NAMESPACE,
        name: &name,
        class: Some("seed"),
        objects: &objects,
        labels: &[("controllerinstallation-name", &name)],
        keep_objects: false,
    };
    managed_resource::deploy(&config.seed, &content).await?;
    let resources: Api<ManagedResource> = Api::namespaced(config.seed.clone(), GARDEN_NAMESPACE);
    let resource = resources.read(&name).await?;
    let mut news = vec![told(
        &list,
        "Valid",
        true,
        "RegistrationValid",
        "Registration is valid",
        &now,
    )];
    news.extend(health_of(&list, &resource, &now));
    tell(config, &installation, news).await?;
    Ok(Action::RequeueAfter(
        config.settings.controller_installation_care_sync_period,
    ))
}

/// What a chart is rendered for.
struct Around<'a> {
    installation: &'a str,
    registration: &'a str,
    namespace: &'a str,
    seed: &'a Seed,
    identity: &'a str,
}

/// Why the objects of an extension are not known.
#[derive(Debug, thiserror::Error)]
enum NotRendered {
    #[error("the ControllerDeployment has no raw chart; charts from registries are not supported")]
    NoChart,
    #[error(transparent)]
    Chart(#[from] ChartError),
    #[error(transparent)]
    Values(#[from] NoSuchData),
    #[error("{0}")]
    Resource(String),
    #[error(transparent)]
    Garden(#[from] Failed),
}

impl NotRendered {
    /// The reason of the condition `Valid` [EXT-107].
    fn reason(&self) -> &'static str {
        match self {
            Self::NoChart => "OCIChartCannotBePulled",
            Self::Values(_) | Self::Resource(_) => "RenderingHelmValuesFailed",
            Self::Chart(_) | Self::Garden(_) => "ChartCannotBeRendered",
        }
    }
}

/// The objects of an extension [EXT-104].
async fn render(
    config: &Config,
    deployment: &ControllerDeployment,
    around: &Around<'_>,
) -> Result<Vec<Value>, NotRendered> {
    let helm = deployment.helm.as_ref();
    let archive = helm
        .and_then(|helm| helm.raw_chart.as_ref())
        .ok_or(NotRendered::NoChart)?;
    let chart = Chart::unpack(&archive.0)?;
    let mut objects = if chart.has_expressions() {
        let own = helm.and_then(|helm| helm.values.clone()).unwrap_or_else(|| json!({}));
        let own = values::filled_in(&own, &resources(config, deployment).await?)?;
        let identity = crate::identity::of_garden(config).await.map_err(Failed::from)?;
        let told = values::of_gardener(around.seed, around.identity, &identity);
        let version = config.seed.apiserver_version().await.map_err(Failed::from)?;
        let release = helm::Release {
            name: around.registration.to_owned(),
            namespace: around.namespace.to_owned(),
            values: values::overlaid(own, told),
            kubernetes_version: version.git_version,
        };
        chart::manifests(&helm::template(&archive.0, release).await?, "chart")?
    } else {
        let substitutions = [
            ("NAMESPACE", around.namespace),
            ("INSTALLATION", around.installation),
            ("SEED_NAME", &config.seed_name),
            ("SEED_CLUSTER_IDENTITY", around.identity),
        ];
        let substitutions = substitutions.map(|(name, value)| (name.to_owned(), value.to_owned()));
        chart.objects(&BTreeMap::from(substitutions))?
    };
    chart::place(&mut objects, around.namespace);
    Ok(objects)
}

/// The data that values may ask for [EXT-97].
async fn resources(config: &Config, deployment: &ControllerDeployment) -> Result<Resources, NotRendered> {
    let mut found = Resources::new();
    for own in &deployment.resources {
        let (kind, name) = (own.resource_ref.kind.as_str(), own.resource_ref.name.as_str());
        let named = format!("referenced {kind} {name:?} for resource reference {:?}", own.name);
        let (labels, data) = match kind {
            "Secret" => {
                let secrets: Api<Secret> = Api::namespaced(config.garden.clone(), GARDEN_NAMESPACE);
                let secret = secrets.read_opt(name).await.map_err(Failed::from)?;
                let text = |value: ByteString| String::from_utf8_lossy(&value.0).into_owned();
                secret.map(|one| {
                    let data = one.data.unwrap_or_default().into_iter();
                    (
                        one.metadata.labels,
                        data.map(|(key, value)| (key, text(value))).collect(),
                    )
                })
            }
            "ConfigMap" => {
                let maps: Api<ConfigMap> = Api::namespaced(config.garden.clone(), GARDEN_NAMESPACE);
                let map = maps.read_opt(name).await.map_err(Failed::from)?;
                map.map(|one| (one.metadata.labels, one.data.unwrap_or_default()))
            }
            _ => {
                let why = format!(
                    "resource reference {:?} has unsupported kind {kind:?} (only Secret and ConfigMap are supported)",
                    own.name
                );
                return Err(NotRendered::Resource(why));
            }
        }
        .ok_or_else(|| NotRendered::Resource(format!("{named} not found in namespace {GARDEN_NAMESPACE:?}")))?;
        let role = labels.as_ref().and_then(|labels| labels.get(label::ROLE));
        if role.map(String::as_str) != Some("resource-reference") {
            let why = format!("{named} does not have the label \"gardener.cloud/role: resource-reference\"");
            return Err(NotRendered::Resource(why));
        }
        found.insert(own.name.clone(), data);
    }
    Ok(found)
}

/// What the ManagedResource says about the extension [EXT-107].
fn health_of(list: &[Condition], resource: &ManagedResource, now: &Time) -> Vec<Condition> {
    let resource_condition = |kind: &str| conditions::get(&resource.status.conditions, kind);
    let is_current = resource.status.observed_generation == resource.metadata.generation;
    let applied = resource_condition("ResourcesApplied");
    let installed = match applied {
        Some(applied) if is_current && applied.status == status::TRUE => told(
            list,
            "Installed",
            true,
            "InstallationSuccessful",
            "The controller was successfully installed in the seed cluster.",
            now,
        ),
        Some(applied) if applied.status == status::FALSE => {
            told(list, "Installed", false, "InstallationFailed", &applied.message, now)
        }
        _ => told(
            list,
            "Installed",
            false,
            "InstallationPending",
            "The installation of the controller is still pending.",
            now,
        ),
    };
    let healthy = match health::managed_resource(resource) {
        Ok(()) => told(
            list,
            "Healthy",
            true,
            "ControllerHealthy",
            "The controller running in the seed cluster is healthy.",
            now,
        ),
        Err(why) => told(list, "Healthy", false, "ControllerNotHealthy", &why, now),
    };
    let rolling = resource_condition("ResourcesProgressing");
    let progressing = match rolling {
        Some(one) if one.status == status::FALSE && is_current => told(
            list,
            "Progressing",
            false,
            "ControllerRolledOut",
            "The controller has been rolled out successfully.",
            now,
        ),
        Some(one) => told(list, "Progressing", true, "ControllerNotRolledOut", &one.message, now),
        None => told(
            list,
            "Progressing",
            true,
            "ControllerNotRolledOut",
            "The rollout has not been reported yet.",
            now,
        ),
    };
    vec![installed, healthy, progressing]
}

fn namespace_manifest(
    installation: &ControllerInstallation,
    registration: &ControllerRegistration,
    seed: &Seed,
    namespace: &str,
) -> Value {
    let key = "security.gardener.cloud/pod-security-enforce";
    let mut labels = json!({
        "gardener.cloud/role": "extension",
        "controllerregistration.core.gardener.cloud/name": registration.name_any(),
        "high-availability-config.resources.gardener.cloud/consider": "true",
    });
    let level = installation
        .annotations()
        .get(key)
        .or_else(|| registration.annotations().get(key));
    if let (Some(level), Some(fields)) = (level, labels.as_object_mut()) {
        fields.insert("pod-security.kubernetes.io/enforce".to_owned(), level.clone().into());
    }
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": namespace, "labels": labels,
        "annotations": {"high-availability-config.resources.gardener.cloud/zones": seed.spec.provider.zones.join(",")},
    }})
}

async fn delete(
    config: &Config,
    api: &Api<ControllerInstallation>,
    installation: &ControllerInstallation,
) -> Result<Action, Failed> {
    let name = installation.name_any();
    let now = config.clock.time();
    let list = installation.status.conditions.clone();
    managed_resource::delete(&config.seed, GARDEN_NAMESPACE, &name).await?;
    let resources: Api<ManagedResource> = Api::namespaced(config.seed.clone(), GARDEN_NAMESPACE);
    if resources.read_opt(&name).await?.is_some() {
        let message = format!("Deletion of ManagedResource {name:?} is still pending.");
        tell(
            config,
            installation,
            vec![told(&list, "Installed", false, "DeletionPending", &message, &now)],
        )
        .await?;
        return Ok(Action::RequeueAfter(Duration::from_secs(5)));
    }
    apply::delete(
        &config.seed,
        &apply::name("v1", "Namespace", None, &namespace_of(installation)),
    )
    .await?;
    let message = "Deletion of old resources succeeded.";
    tell(
        config,
        installation,
        vec![told(&list, "Installed", false, "DeletionSuccessful", message, &now)],
    )
    .await?;
    let Some(current) = api.read_opt(&name).await? else {
        return Ok(Action::Done);
    };
    patching::remove_finalizer(api, &current, finalizer::CONTROLLER_INSTALLATION).await?;
    Ok(Action::Done)
}
