//! Bastion: a pod with a service in front.

use async_trait::async_trait;
use gardener_apis::extensions::v1alpha1::{Bastion, Cluster};
use gardener_controller::Read;
use gardener_controller::apply;
use gardener_extension::{Actuator, ActuatorError, Context, Outcome};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

const FIELD_MANAGER: &str = crate::NAME;

fn name(bastion: &Bastion) -> String {
    format!("bastion-{}", bastion.name_any())
}

/// The address of a service: of its load balancer if there is one, else its own.
fn ingress(service: &Service) -> Option<Value> {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let entry = balancer.and_then(|balancer| balancer.ingress.as_ref()?.first());
    if let Some(entry) = entry {
        return Some(json!({"ip": entry.ip, "hostname": entry.hostname}));
    }
    let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.clone())?;
    Some(json!({"ip": address}))
}

pub(crate) struct Local;

#[async_trait]
impl Actuator<Bastion> for Local {
    async fn reconcile(
        &self,
        context: &Context,
        object: &Bastion,
        _: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError> {
        let namespace = object.namespace().unwrap_or_default();
        let (name, labels) = (name(object), json!({"app": "bastion", "bastion": object.name_any()}));
        let pods: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
        if pods.read_opt(&name).await?.is_none() {
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": {"containers": [{"name": "bastion", "image": "bastion", "ports": [{"containerPort": 22}]}]},
            }))?;
            apply::apply(&pods, FIELD_MANAGER, &pod).await?;
        }
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"type": "LoadBalancer", "selector": labels, "ports": [{"name": "ssh", "port": 22, "targetPort": 22, "protocol": "TCP"}]},
        }))?;
        let services: Api<Service> = Api::namespaced(context.client.clone(), &namespace);
        let service = apply::apply(&services, FIELD_MANAGER, &service).await?;
        let ingress =
            ingress(&service).ok_or_else(|| ActuatorError::new(format!("service {name} has no address yet")))?;
        Ok(Outcome::with_status(json!({"ingress": ingress})))
    }

    async fn delete(&self, context: &Context, object: &Bastion, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        let namespace = object.namespace().unwrap_or_default();
        let services: Api<Service> = Api::namespaced(context.client.clone(), &namespace);
        apply::delete(&services, &name(object)).await?;
        let pods: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
        apply::delete(&pods, &name(object)).await?;
        Ok(())
    }
}
