//! OperatingSystemConfig: user data for `provision`, nothing to add for `reconcile` [EXT-40], [EXT-41].

use std::collections::BTreeMap;

use async_trait::async_trait;
use gardener_apis::extensions::v1alpha1::{Cluster, OperatingSystemConfig};
use gardener_controller::Read;
use gardener_controller::apply;
use gardener_extension::{Actuator, ActuatorError, Context, Outcome};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::cloud_config::{Secrets, cloud_config, referenced_secrets};

/// The key of the user data.
const KEY: &str = "cloud_config";

fn secret_name(osc: &OperatingSystemConfig) -> String {
    format!("osc-result-{}", osc.name_any())
}

pub(crate) struct Local;

#[async_trait]
impl Actuator<OperatingSystemConfig> for Local {
    async fn reconcile(
        &self,
        context: &Context,
        object: &OperatingSystemConfig,
        _: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError> {
        match object.spec.purpose.as_str() {
            "reconcile" => return Ok(Outcome::default()),
            "provision" => {}
            other => return Err(ActuatorError::new(format!("unknown purpose: {other}"))),
        }
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<Secret> = Api::namespaced(context.client.clone(), &namespace);
        let mut secrets = Secrets::new();
        for (name, key) in referenced_secrets(object) {
            let data = api.read(&name).await?.data.unwrap_or_default();
            if let Some(value) = data.get(&key) {
                secrets.insert((name, key), value.0.clone());
            }
        }
        let text = cloud_config(object, &secrets).map_err(|error| ActuatorError::new(error.to_string()))?;
        let name = secret_name(object);
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.clone());
        let data = BTreeMap::from([(KEY.to_owned(), ByteString(text.into_bytes()))]);
        apply::create_or_patch(&api, secret, |secret| secret.data = Some(data.clone())).await?;
        Ok(Outcome::with_status(json!({
            "cloudConfig": {"secretRef": {"name": name, "namespace": namespace}},
        })))
    }

    async fn delete(
        &self,
        context: &Context,
        object: &OperatingSystemConfig,
        _: Option<&Cluster>,
    ) -> Result<(), ActuatorError> {
        let api: Api<Secret> = Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default());
        apply::delete(&api, &secret_name(object)).await?;
        Ok(())
    }

    async fn migrate(
        &self,
        context: &Context,
        object: &OperatingSystemConfig,
        cluster: Option<&Cluster>,
    ) -> Result<(), ActuatorError> {
        self.delete(context, object, cluster).await
    }
}
