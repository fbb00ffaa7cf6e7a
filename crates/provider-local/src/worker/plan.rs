//! Which machine classes and machine deployments a Worker needs.

use std::collections::BTreeMap;

use gardener_apimachinery::pointer::Pointed;
use gardener_apis::extensions::v1alpha1::{Worker, WorkerPool, WorkerPoolMachineControllerManager};
use gardener_apis::machine::v1alpha1::{
    ClassSpec, MachineClass, MachineDeployment, MachineDeploymentStrategy, MachineDeploymentStrategyRollingUpdate,
    MachineNodeTemplate, MachineNodeTemplateSpec, MachineSpec,
};
use gardener_extension::ActuatorError;
use gardener_rules::machines::key;
use gardener_rules::machines::pools::{autoscaler_annotations, class_hash, distribute};
use k8s_openapi::api::core::v1::SecretReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use serde_json::{Value, json};

use gardener_apis::Duration;

/// A machine deployment there is to be.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Its name.
    pub(crate) name: String,
    /// The name of its class, and of the class' secret.
    pub(crate) class: String,
    /// Its pool.
    pub(crate) pool: WorkerPool,
    /// The zone, if the pool has zones.
    pub(crate) zone: Option<String>,
    /// The zone's share.
    pub(crate) minimum: i32,
    /// The zone's share.
    pub(crate) maximum: i32,
    /// The zone's share of failed machines that are kept.
    pub(crate) auto_preserve: Option<i32>,
    /// The image of the machine's pod.
    pub(crate) image: String,
}

/// The image of a pool: what the cloud profile maps its machine image to, or the image's own name.
fn image(pool: &WorkerPool, profile: Option<&Value>) -> String {
    let wanted = pool.machine_image.clone().unwrap_or_default();
    let named = |list: Option<&Value>, key: &str, value: &str| {
        let list = list.and_then(Value::as_array)?;
        list.iter()
            .find(|entry| entry.get(key).and_then(Value::as_str) == Some(value))
            .cloned()
    };
    let images = profile.and_then(|profile| profile.at("/spec/providerConfig/machineImages"));
    let image = named(images, "name", &wanted.name);
    let version = named(
        image.as_ref().and_then(|image| image.get("versions")),
        "version",
        &wanted.version,
    );
    let mapped = version.and_then(|version| version.get("image")?.as_str().map(str::to_owned));
    mapped.unwrap_or_else(|| format!("{}:{}", wanted.name, wanted.version))
}

/// What a pool's machines run, as their nodes tell it: several versions may be one image of the pod.
fn operating_system(pool: &WorkerPool) -> Option<String> {
    let image = pool.machine_image.as_ref()?;
    Some(format!("{} {}", image.name, image.version))
}

/// The machine deployments of all pools, in order [MCH-20], [MCH-21].
pub(crate) fn wanted(
    worker: &Worker,
    technical_id: &str,
    profile: Option<&Value>,
) -> Result<Vec<Wanted>, ActuatorError> {
    let mut all = Vec::new();
    for pool in &worker.spec.pools {
        if matches!(
            pool.update_strategy.as_deref(),
            Some("AutoInPlaceUpdate" | "ManualInPlaceUpdate")
        ) {
            return Err(ActuatorError::with_code(
                format!(
                    "pool {}: updates in place are not supported yet, choose AutoRollingUpdate",
                    pool.name
                ),
                gardener_controller::error_codes::CONFIGURATION_PROBLEM,
            ));
        }
        let zones = pool.zones.len().max(1);
        let hash = class_hash(pool.node_agent_secret_name.as_deref().unwrap_or_default(), None, &[]);
        let settings = pool.machine_controller_manager.as_ref();
        for index in 0..zones {
            let name = format!("{technical_id}-{}-z{}", pool.name, index + 1);
            all.push(Wanted {
                class: format!("{name}-{hash}"),
                name,
                zone: pool.zones.get(index).cloned(),
                minimum: distribute(pool.minimum, zones, index),
                maximum: distribute(pool.maximum, zones, index),
                auto_preserve: settings
                    .and_then(|settings| settings.auto_preserve_failed_machine_max)
                    .map(|most| distribute(most, zones, index)),
                image: image(pool, profile),
                pool: pool.clone(),
            });
        }
    }
    Ok(all)
}

/// The class of a machine deployment [MCH-9].
pub(crate) fn machine_class(worker: &Worker, wanted: &Wanted) -> MachineClass {
    let namespace = worker.namespace();
    let template = wanted.pool.node_template.clone().unwrap_or_default();
    MachineClass {
        credentials_secret_ref: Some(SecretReference {
            name: worker.spec.secret_ref.name.clone(),
            namespace: worker.spec.secret_ref.namespace.clone().or_else(|| namespace.clone()),
        }),
        secret_ref: Some(SecretReference {
            name: Some(wanted.class.clone()),
            namespace,
        }),
        provider: Some(crate::TYPE.to_owned()),
        provider_spec: json!({"image": wanted.image, "operatingSystem": operating_system(&wanted.pool)}),
        node_template: Some(json!({
            "capacity": template.capacity,
            "instanceType": wanted.pool.machine_type,
            "region": worker.spec.region,
            "zone": wanted.zone.as_deref().unwrap_or(&worker.spec.region),
            "architecture": wanted.pool.architecture.as_deref().unwrap_or("amd64"),
        })),
        ..MachineClass::default()
    }
}

fn duration(text: Option<&String>) -> Option<Duration> {
    text.and_then(|text| text.parse().ok())
}

fn machine_spec(wanted: &Wanted) -> MachineSpec {
    let pool = &wanted.pool;
    let settings: WorkerPoolMachineControllerManager = pool.machine_controller_manager.clone().unwrap_or_default();
    let mut labels = pool.labels.clone();
    if let Some(zone) = &wanted.zone {
        labels.insert("topology.kubernetes.io/zone".into(), zone.clone());
    }
    let mut template = MachineNodeTemplate {
        spec: Some(MachineNodeTemplateSpec {
            taints: pool.taints.clone(),
            ..MachineNodeTemplateSpec::default()
        }),
        ..MachineNodeTemplate::default()
    };
    template.metadata.labels = Some(labels);
    template.metadata.annotations = Some(pool.annotations.clone()).filter(|annotations| !annotations.is_empty());
    MachineSpec {
        class: Some(ClassSpec {
            api_group: None,
            kind: Some("MachineClass".to_owned()),
            name: Some(wanted.class.clone()),
        }),
        creation_timeout: duration(settings.machine_creation_timeout.as_ref()),
        disable_health_timeout: settings.disable_health_timeout,
        drain_timeout: duration(settings.machine_drain_timeout.as_ref()),
        health_timeout: duration(settings.machine_health_timeout.as_ref()),
        in_place_update_timeout: duration(settings.in_place_update_timeout.as_ref()),
        machine_preserve_timeout: duration(settings.machine_preserve_timeout.as_ref()),
        max_evict_retries: settings.max_evict_retries,
        node_conditions: Some(settings.node_conditions.join(",")).filter(|list| !list.is_empty()),
        node_template: Some(template),
        provider_id: None,
    }
}

/// Writes what a machine deployment is to be [MCH-32], [MCH-33]. Surge and unavailability are the pool's in every zone [MCH-23].
pub(crate) fn write_deployment(deployment: &mut MachineDeployment, wanted: &Wanted, replicas: i32) {
    let own = BTreeMap::from([(key::NAME.to_owned(), wanted.name.clone())]);
    deployment
        .labels_mut()
        .insert("worker.gardener.cloud/pool".into(), wanted.pool.name.clone());
    for (annotation, value) in autoscaler_annotations(&wanted.pool) {
        match value {
            Some(value) => {
                deployment.annotations_mut().insert(annotation, value);
            }
            None => {
                deployment.annotations_mut().remove(&annotation);
            }
        }
    }
    let zero = || IntOrString::Int(0);
    let spec = &mut deployment.spec;
    spec.replicas = Some(replicas);
    spec.revision_history_limit = Some(0);
    spec.min_ready_seconds = Some(500);
    spec.auto_preserve_failed_machine_max = wanted.auto_preserve;
    spec.selector = Some(LabelSelector {
        match_labels: Some(own.clone()),
        ..LabelSelector::default()
    });
    spec.strategy = Some(MachineDeploymentStrategy {
        r#type: Some("RollingUpdate".to_owned()),
        rolling_update: Some(MachineDeploymentStrategyRollingUpdate {
            max_surge: Some(wanted.pool.max_surge.clone().unwrap_or_else(zero)),
            max_unavailable: Some(wanted.pool.max_unavailable.clone().unwrap_or_else(zero)),
        }),
        in_place_update: None,
    });
    // annotations stay: they carry rollouts that were asked for by hand
    spec.template.metadata.labels = Some(own);
    spec.template.spec = machine_spec(wanted);
}
