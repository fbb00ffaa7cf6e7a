//! Changes problematic webhooks of a shoot, if that is asked for [ST-110], [ST-113]. How is decided in `rules::webhooks::remediation`.

use std::fmt::Debug;

use gardener_controller::apply::{self, ApplyError, Writable};
use gardener_controller::{Read, api_error};
use gardener_rules::webhooks::remediation::Configuration;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::api::ListParams;
use kube::core::ClusterResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::Known;
use super::api_server::ApiServer;
use crate::Config;

/// Looks through the webhooks of a shoot. What cannot be changed is tried again with the next look.
pub(super) async fn remediate(config: &Config, known: &Known, server: &ApiServer) {
    let Some(client) = server
        .client()
        .filter(|_| config.settings.shoot_care.webhook_remediator_enabled)
    else {
        return;
    };
    let work = async {
        all::<ValidatingWebhookConfiguration>(client).await?;
        all::<MutatingWebhookConfiguration>(client).await
    };
    if let Err(error) = known.in_time(work).await {
        tracing::warn!(
            shoot = known.shoot.name_any(),
            error,
            "webhooks could not be remediated"
        );
    }
}

async fn all<K>(client: &Client) -> Result<(), String>
where
    K: Configuration + Writable + Debug + DeserializeOwned + Resource<Scope = ClusterResourceScope, DynamicType = ()>,
{
    let api: Api<K> = Api::all(client.clone());
    let unread = |error: kube::Error| {
        let kind = K::kind(&());
        let error = api_error(&error);
        format!("could not get {kind}s of Shoot cluster to remediate problematic webhooks: {error}")
    };
    let mut failed: Result<(), ApplyError> = Ok(());
    for current in api.read_list(&ListParams::default()).await.map_err(unread)? {
        if !current.clone().remediate() {
            continue;
        }
        // on a newer one there may be nothing to do any more
        let change = |own: &mut K| {
            own.remediate();
        };
        let patched = apply::patch(&api, &current, change).await;
        match patched {
            Err(error) if error.is_not_found() => {}
            Err(error) => failed = Err(error),
            Ok(_) => {}
        }
    }
    failed.map_err(|error| error.to_string())
}
