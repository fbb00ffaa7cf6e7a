//! Copies of credentials for the shoot's users in the garden [CP-75].

use std::collections::BTreeMap;

use gardener_controller::secrets::{Class, data};
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};

use super::{Botanist, Done};
use crate::apply;

fn encoded(data: BTreeMap<String, k8s_openapi::ByteString>) -> Value {
    serde_json::to_value(data).unwrap_or_default()
}

impl Botanist {
    fn copy(&self, api_version: &str, kind: &str, suffix: &str, role: &str, data: Value) -> Value {
        let shoot = self.shoot();
        let owner = shoot.controller_owner_ref(&());
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "name": format!("{}.{suffix}", shoot.name_any()), "namespace": shoot.namespace(),
                "labels": {"gardener.cloud/role": role, "discovery.gardener.cloud/public": "shoot-ca", "shoot.gardener.cloud/name": shoot.name_any()},
                "ownerReferences": owner.into_iter().collect::<Vec<_>>(),
            },
            "data": data,
        })
    }

    /// Writes the copies.
    pub(crate) async fn copy_credentials(&self) -> Done {
        let all = |secret: Secret| encoded(secret.data.unwrap_or_default());
        let mut copies = vec![
            self.copy(
                "v1",
                "ConfigMap",
                "ca-cluster",
                "ca-cluster",
                json!({"ca.crt": self.cluster_ca()?}),
            ),
            self.copy(
                "core.gardener.cloud/v1beta1",
                "InternalSecret",
                "ca-client",
                "ca-client",
                all(self.generated("ca-client", Class::Current)?),
            ),
        ];
        if !self.is_workerless() {
            copies.push(self.copy(
                "v1",
                "ConfigMap",
                "ca-kubelet",
                "ca-kubelet",
                json!({"ca.crt": self.bundle("ca-kubelet")?}),
            ));
        }
        if self.has_ssh_access() {
            copies.push(self.copy(
                "v1",
                "Secret",
                "ssh-keypair",
                "ssh-keypair",
                all(self.generated("ssh-keypair", Class::Current)?),
            ));
            if let Some(old) = self.manager.get("ssh-keypair", Class::Old) {
                copies.push(self.copy("v1", "Secret", "ssh-keypair.old", "ssh-keypair", all(old)));
            }
        }
        let users = self.generated("observability-ingress-users", Class::Current)?;
        let wanted = [data::USERNAME, data::PASSWORD, data::AUTH];
        let users = users
            .data
            .unwrap_or_default()
            .into_iter()
            .filter(|(key, _)| wanted.contains(&key.as_str()));
        let mut monitoring = self.copy("v1", "Secret", "monitoring", "monitoring", encoded(users.collect()));
        let ingress = self.seed.spec.ingress.as_ref().map(|one| one.domain.clone());
        if let (Some(domain), Some(metadata)) = (ingress, monitoring.get_mut("metadata").and_then(Value::as_object_mut))
        {
            let short = self.namespace.trim_start_matches("shoot-").trim_start_matches('-');
            let mut annotations = Map::new();
            for (key, prefix) in [
                ("plutono-url", "gu"),
                ("prometheus-url", "p"),
                ("alertmanager-url", "au"),
            ] {
                annotations.insert(key.to_owned(), format!("https://{prefix}-{short}.{domain}").into());
            }
            metadata.insert("annotations".to_owned(), annotations.into());
        }
        copies.push(monitoring);
        apply::apply_all(self.garden(), &copies).await?;
        Ok(())
    }

    /// Removes the copies.
    pub(crate) async fn delete_copies(&self) -> Done {
        let shoot = self.shoot();
        let namespace = shoot.namespace();
        let name = |api_version, kind, suffix: &str| {
            apply::name(
                api_version,
                kind,
                namespace.as_deref(),
                &format!("{}.{suffix}", shoot.name_any()),
            )
        };
        let core = "core.gardener.cloud/v1beta1";
        let copies = [
            name("v1", "ConfigMap", "ca-cluster"),
            name("v1", "ConfigMap", "ca-kubelet"),
            name(core, "InternalSecret", "ca-client"),
            name("v1", "Secret", "ssh-keypair"),
            name("v1", "Secret", "ssh-keypair.old"),
            name("v1", "Secret", "monitoring"),
            name("v1", "Secret", "ca-cluster"),
        ];
        Ok(apply::delete_all(self.garden(), &copies).await?)
    }
}
