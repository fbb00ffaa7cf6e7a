//! Takes away pods in a shoot that are in the way [ST-42]. Which those are is decided in `rules::care::stale_pods`.

use gardener_controller::{Read, api_error};
use gardener_rules::care::stale_pods::{Removal, removal};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Client, ResourceExt};

use super::Known;
use super::api_server::ApiServer;
use crate::Config;

/// Collects what there is. What cannot be collected is tried again with the next look.
pub(super) async fn collect(config: &Config, known: &Known, server: &ApiServer) {
    let Some(client) = server.client() else { return };
    let work = async { in_shoot(config, known, client).await.map_err(|error| api_error(&error)) };
    if let Err(error) = known.in_time(work).await {
        tracing::warn!(
            shoot = known.shoot.name_any(),
            error,
            "stale pods could not be collected"
        );
    }
}

async fn in_shoot(config: &Config, known: &Known, client: &Client) -> Result<(), kube::Error> {
    // what goes is the user's, too, once the shoot goes
    let all: Api<Pod> = match known.shoot.in_deletion() {
        true => Api::all(client.clone()),
        false => Api::namespaced(client.clone(), "kube-system"),
    };
    let now = config.clock.now();
    let mut failed = Ok(());
    for pod in all.read_list(&ListParams::default()).await? {
        let Some(removal) = removal(&pod, now) else { continue };
        let parameters = match removal {
            Removal::Asked => DeleteParams::default(),
            Removal::Forced => DeleteParams::background().grace_period(0),
        };
        let parameters = parameters.preconditions(Preconditions {
            uid: pod.uid(),
            resource_version: None,
        });
        let own: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        match own.delete(&pod.name_any(), &parameters).await {
            // gone meanwhile, or another one by this name
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => failed = Err(error),
            Ok(_) => {}
        }
    }
    failed
}
