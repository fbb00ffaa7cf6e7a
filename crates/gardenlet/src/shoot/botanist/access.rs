//! Gardener's access to the shoot [CP-101], [CP-F32], [CP-F33].

use std::time::Duration;

use gardener_apimachinery::pointer::Pointed;
use gardener_controller::Read;
use gardener_controller::wait::{Patience, Verdict, wait_for};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;

use super::{Botanist, Done};
use crate::components::access;

impl Botanist {
    /// The Secrets for gardenlet's tokens, and what the shoot holds for them.
    pub(crate) async fn deploy_gardener_access(&self) -> Done {
        let view = self.view();
        let cluster = view.cluster();
        let secrets = access::gardener_secrets(
            &self.namespace,
            cluster.external_host.as_deref(),
            "https://kube-apiserver",
            &self.cluster_ca()?,
        );
        let api: Api<Secret> = self.seed_api();
        for mut secret in secrets {
            let name = secret
                .at("/metadata/name")
                .and_then(serde_json::Value::as_str)
                .unwrap_or_default()
                .to_owned();
            // The token requestor has written its token into the kubeconfig; writing it anew would lose that.
            if api
                .read_opt(&name)
                .await?
                .is_some_and(|known| known.data.is_some_and(|data| data.contains_key("kubeconfig")))
                && let Some(fields) = secret.as_object_mut()
            {
                fields.remove("data");
            }
            if secret.get("data").is_none() {
                continue;
            }
            self.apply(&[secret]).await?;
        }
        self.deploy_to_shoot("shoot-core-gardeneraccess", &access::gardener_objects())
            .await
    }

    /// Waits until the shoot's API answers.
    pub(crate) async fn connect(&self) -> Done {
        let client = self.shoot_client().await?;
        let api: Api<Namespace> = Api::all(client);
        let timeout = Duration::from_secs(120);
        let judge = |found: Option<&Namespace>| match found {
            Some(_) => Verdict::Ready(()),
            None => Verdict::Pending("the shoot has no namespace kube-system yet".to_owned()),
        };
        Ok(wait_for(&api, "kube-system", Patience::of(timeout), judge).await?)
    }
}
