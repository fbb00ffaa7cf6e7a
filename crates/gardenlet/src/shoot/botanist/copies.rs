//! Copies of credentials for the shoot's users in the garden [CP-75].

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::label;
use gardener_controller::secrets::{Class, data};
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};

use super::{Botanist, Done};
use crate::apply;

const CONFIG_MAP: (&str, &str) = ("v1", "ConfigMap");
const SECRET: (&str, &str) = ("v1", "Secret");
const INTERNAL_SECRET: (&str, &str) = ("core.gardener.cloud/v1beta1", "InternalSecret");

fn encoded(data: BTreeMap<String, k8s_openapi::ByteString>) -> Value {
    serde_json::to_value(data).unwrap_or_default()
}

impl Botanist {
    /// A copy, labelled with its role and whose it is.
    fn copy(&self, (api_version, kind): (&str, &str), suffix: &str, role: &str, data: Value) -> Value {
        let shoot = self.shoot();
        let owner = shoot.controller_owner_ref(&());
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "name": format!("{}.{suffix}", shoot.name_any()), "namespace": shoot.namespace(),
                "labels": {"gardener.cloud/role": role, "shoot.gardener.cloud/name": shoot.name_any()},
                "ownerReferences": owner.into_iter().collect::<Vec<_>>(),
            },
            "data": data,
        })
    }

    /// An authority that everybody may know and nobody but gardenlets may change: kubeconfigs are made with it.
    fn authority(&self, role: &str, bundle: String, is_public: bool) -> Value {
        let mut copy = self.copy(CONFIG_MAP, role, role, json!({"ca.crt": bundle}));
        let labels = copy.at_mut("/metadata/labels").and_then(Value::as_object_mut);
        if let Some(labels) = labels {
            labels.insert(label::UPDATE_RESTRICTION.to_owned(), "true".into());
            labels.insert("shoot.gardener.cloud/uid".to_owned(), self.shoot().uid().into());
            if is_public {
                labels.insert("discovery.gardener.cloud/public".to_owned(), "shoot-ca".into());
            }
        }
        copy
    }

    /// Writes the copies, and removes those of credentials that the shoot has no more.
    pub(crate) async fn copy_credentials(&self) -> Done {
        let all = |secret: Secret| encoded(secret.data.unwrap_or_default());
        let client = all(self.generated("ca-client", Class::Current)?);
        let mut copies = vec![
            self.authority("ca-cluster", self.cluster_ca()?, true),
            self.copy(
                SECRET,
                "ca-cluster",
                "ca-cluster",
                json!({"ca.crt": STANDARD.encode(self.cluster_ca()?)}),
            ),
            self.copy(INTERNAL_SECRET, "ca-client", "ca-client", client),
        ];
        if !self.is_workerless() {
            copies.push(self.authority("ca-kubelet", self.bundle("ca-kubelet")?, false));
        }
        if self.has_ssh_access() {
            let keys = all(self.generated("ssh-keypair", Class::Current)?);
            copies.push(self.copy(SECRET, "ssh-keypair", "ssh-keypair", keys));
            if let Some(old) = self.manager.get("ssh-keypair", Class::Old) {
                copies.push(self.copy(SECRET, "ssh-keypair.old", "ssh-keypair", all(old)));
            }
        } else {
            let keys = ["ssh-keypair", "ssh-keypair.old"].map(|suffix| self.copy_named(SECRET, suffix));
            apply::delete_all(self.garden(), &keys).await?;
        }
        let users = self.generated("observability-ingress-users", Class::Current)?;
        let wanted = [data::USERNAME, data::PASSWORD, data::AUTH];
        let users = users
            .data
            .unwrap_or_default()
            .into_iter()
            .filter(|(key, _)| wanted.contains(&key.as_str()));
        let mut monitoring = self.copy(SECRET, "monitoring", "monitoring", encoded(users.collect()));
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

    /// The name of a copy.
    fn copy_named(&self, (api_version, kind): (&str, &str), suffix: &str) -> Value {
        let shoot = self.shoot();
        let name = format!("{}.{suffix}", shoot.name_any());
        apply::name(api_version, kind, shoot.namespace().as_deref(), &name)
    }

    /// Removes the copies.
    pub(crate) async fn delete_copies(&self) -> Done {
        let copies = [
            (CONFIG_MAP, "ca-cluster"),
            (CONFIG_MAP, "ca-kubelet"),
            (INTERNAL_SECRET, "ca-client"),
            (SECRET, "ssh-keypair"),
            (SECRET, "ssh-keypair.old"),
            (SECRET, "monitoring"),
            (SECRET, "ca-cluster"),
        ];
        let copies = copies.map(|(kind, suffix)| self.copy_named(kind, suffix));
        Ok(apply::delete_all(self.garden(), &copies).await?)
    }
}
