//! The driver for machine-controller-manager: a machine is a pod in the shoot's namespace of the seed, as upstream's.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use gardener_apis::machine::v1alpha1::MachineClass;
use gardener_controller::Read;
use gardener_controller::apply;
use gardener_controller::wait::{Patience, wait_deleted};
use gardener_machine_controller_manager::driver::{Code, Driver, DriverError, Made, Request};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

/// The container that is the machine.
pub const CONTAINER: &str = "node";
/// Where the container finds its user data.
pub const USER_DATA_PATH: &str = "/etc/machine/userdata";
/// The key of the user data in the machine's secret.
pub const USER_DATA_KEY: &str = "userdata";
/// On a machine's pod: what its node can hold, as JSON object of resources and quantities.
pub const CAPACITY_ANNOTATION: &str = "machine.local.provider.extensions.gardener.cloud/capacity";
/// On a machine's pod: what runs on it, as its node tells it.
pub const OPERATING_SYSTEM_ANNOTATION: &str = "machine.local.provider.extensions.gardener.cloud/operating-system";
/// Labels of machine pods.
pub const LABELS: [(&str, &str); 2] = [("app", "machine"), ("machine-provider", "local")];
const PROVIDER_ID_PREFIX: &str = "local:///";
/// The key of the user data in the class' secret.
const CLASS_USER_DATA: &str = "userData";
const DELETION: Patience = Patience::of(Duration::from_secs(60));

/// The name of a machine's pod, which is also its node's.
pub fn pod_name(machine: &str) -> String {
    format!("machine-{machine}")
}

/// The name of the secret with a machine's user data.
pub fn user_data_secret_name(machine: &str) -> String {
    format!("machine-{machine}-userdata")
}

fn made(machine: &str) -> Made {
    let node_name = pod_name(machine);
    Made {
        provider_id: format!("{PROVIDER_ID_PREFIX}{node_name}"),
        node_name,
    }
}

fn failed(error: kube::Error) -> DriverError {
    match error {
        kube::Error::Api(status) => {
            let code = match status.code {
                400 | 422 => Code::InvalidArgument,
                401 => Code::Unauthenticated,
                403 => Code::PermissionDenied,
                404 => Code::NotFound,
                409 => Code::Aborted,
                _ => Code::Unavailable,
            };
            DriverError::new(code, status.message)
        }
        other => DriverError::new(Code::Unavailable, other.to_string()),
    }
}

fn apply_failed(error: apply::ApplyError) -> DriverError {
    match error {
        apply::ApplyError::Api(error) => failed(error),
        other => DriverError::new(Code::Internal, other.to_string()),
    }
}

/// Makes machines that are pods of one seed.
pub struct LocalDriver {
    client: Client,
}

impl LocalDriver {
    /// A driver for the machines of a seed.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

fn labels(machine: &str) -> Value {
    let mut labels: BTreeMap<&str, &str> = LABELS.into_iter().collect();
    labels.insert("machine", machine);
    json!(labels)
}

fn pod(request: &Request) -> Result<Pod, DriverError> {
    let machine = request.machine.name_any();
    let spec = &request.class.provider_spec;
    let image = spec.get("image").and_then(Value::as_str).unwrap_or_default();
    if image.is_empty() {
        return Err(DriverError::new(
            Code::InvalidArgument,
            format!(
                "providerSpec.image of machine class {} is required",
                request.class.name_any()
            ),
        ));
    }
    let capacity = request
        .class
        .node_template
        .as_ref()
        .and_then(|template| template.get("capacity"));
    // what the node can hold and runs is the class' business, and the pod is all that a machine knows of itself
    let mut annotations = BTreeMap::from([(CAPACITY_ANNOTATION, capacity.unwrap_or(&json!({})).to_string())]);
    if let Some(system) = spec.get("operatingSystem").and_then(Value::as_str) {
        annotations.insert(OPERATING_SYSTEM_ANNOTATION, system.to_owned());
    }
    serde_json::from_value(json!({
        "metadata": {"name": pod_name(&machine), "labels": labels(&machine), "annotations": annotations},
        "spec": {
            "restartPolicy": "Always",
            "containers": [{
                "name": CONTAINER,
                "image": image,
                "securityContext": {"privileged": true},
                "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "volumeMounts": [{"name": "userdata", "mountPath": "/etc/machine"}],
            }],
            "volumes": [{"name": "userdata", "secret": {"secretName": user_data_secret_name(&machine), "defaultMode": 0o777}}],
        },
    }))
    .map_err(|error| DriverError::new(Code::Internal, error.to_string()))
}

#[async_trait]
impl Driver for LocalDriver {
    async fn create(&self, request: &Request) -> Result<Made, DriverError> {
        let machine = request.machine.name_any();
        let namespace = request.machine.namespace().unwrap_or_default();
        let pod = pod(request)?;
        let user_data = request.secret.get(CLASS_USER_DATA).cloned().unwrap_or_default();
        let mut secret = Secret::default();
        secret.metadata.name = Some(user_data_secret_name(&machine));
        let data = BTreeMap::from([(USER_DATA_KEY.to_owned(), ByteString(user_data.0))]);
        let written = apply::create_or_patch(&self.secrets(&namespace), secret, |secret| {
            secret.data = Some(data.clone())
        })
        .await;
        written.map_err(apply_failed)?;
        match self.pods(&namespace).create(&Default::default(), &pod).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(made(&machine))
    }

    async fn status(&self, request: &Request) -> Result<Made, DriverError> {
        let machine = request.machine.name_any();
        let namespace = request.machine.namespace().unwrap_or_default();
        match self
            .pods(&namespace)
            .read_opt(&pod_name(&machine))
            .await
            .map_err(failed)?
        {
            Some(_) => Ok(made(&machine)),
            None => Err(DriverError::new(
                Code::NotFound,
                format!("there is no pod {}", pod_name(&machine)),
            )),
        }
    }

    async fn delete(&self, request: &Request) -> Result<(), DriverError> {
        let machine = request.machine.name_any();
        let namespace = request.machine.namespace().unwrap_or_default();
        let (pods, name) = (self.pods(&namespace), pod_name(&machine));
        let parameters = DeleteParams::default().grace_period(0);
        apply::delete_with(&pods, &name, &parameters).await.map_err(failed)?;
        let gone = wait_deleted(&pods, &name, DELETION).await;
        gone.map_err(|error| DriverError::new(Code::DeadlineExceeded, error.to_string()))?;
        let secret = user_data_secret_name(&machine);
        apply::delete(&self.secrets(&namespace), &secret)
            .await
            .map_err(failed)?;
        Ok(())
    }

    async fn list(&self, class: &MachineClass) -> Result<BTreeMap<String, String>, DriverError> {
        let namespace = class.namespace().unwrap_or_default();
        let selector = LABELS.map(|(key, value)| format!("{key}={value}")).join(",");
        let pods = self
            .pods(&namespace)
            .read_list(&ListParams::default().labels(&selector))
            .await;
        let machine = |pod: &Pod| pod.labels().get("machine").cloned();
        let pods = pods.map_err(failed)?;
        Ok(pods
            .iter()
            .filter_map(|pod| Some((format!("{PROVIDER_ID_PREFIX}{}", pod.name_any()), machine(pod)?)))
            .collect())
    }
}
