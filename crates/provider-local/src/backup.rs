//! BackupBucket and BackupEntry: buckets are only names here; the secret with which etcd would reach its bucket is real [EXT-55].

use std::collections::BTreeMap;

use async_trait::async_trait;
use gardener_apis::extensions::v1alpha1::{BackupBucket, BackupEntry, Cluster};
use gardener_controller::Read;
use gardener_controller::apply;
use gardener_extension::{Actuator, ActuatorError, Context, Outcome};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{Api, ResourceExt};

const SOURCE: &str = "source-";
const CREATED_BY: &str = "backup.gardener.cloud/created-by";

pub(crate) struct Bucket;

#[async_trait]
impl Actuator<BackupBucket> for Bucket {
    async fn reconcile(&self, _: &Context, _: &BackupBucket, _: Option<&Cluster>) -> Result<Outcome, ActuatorError> {
        Ok(Outcome::default())
    }

    async fn delete(&self, _: &Context, _: &BackupBucket, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        Ok(())
    }
}

/// The namespace and the name of the secret of an entry [EXT-55].
pub(crate) fn secret_place(entry: &str) -> Result<(String, &'static str), ActuatorError> {
    let (name, secret) = match entry.strip_prefix(SOURCE) {
        Some(rest) => (rest, "source-etcd-backup"),
        None => (entry, "etcd-backup"),
    };
    match name.rsplit_once("--") {
        Some((namespace, uid)) if !namespace.is_empty() && !uid.is_empty() => Ok((namespace.to_owned(), secret)),
        _ => Err(ActuatorError::new(format!(
            "the name of BackupEntry {entry} must be <technical id>--<uid>"
        ))),
    }
}

pub(crate) struct Entry;

impl Entry {
    /// The namespace, unless it is not there or goes.
    async fn is_alive(context: &Context, namespace: &str) -> Result<bool, kube::Error> {
        let api: Api<Namespace> = Api::all(context.client.clone());
        let found = api.read_opt(namespace).await?;
        Ok(found.is_some_and(|found| found.metadata.deletion_timestamp.is_none()))
    }

    async fn remove_secret(context: &Context, object: &BackupEntry) -> Result<(), ActuatorError> {
        let (namespace, name) = secret_place(&object.name_any())?;
        let secrets: Api<Secret> = Api::namespaced(context.client.clone(), &namespace);
        let Some(secret) = secrets.read_opt(name).await? else {
            return Ok(());
        };
        let creator = secret.annotations().get(CREATED_BY);
        if creator.is_none_or(|creator| *creator == object.name_any()) {
            apply::delete(&secrets, name).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Actuator<BackupEntry> for Entry {
    async fn reconcile(
        &self,
        context: &Context,
        object: &BackupEntry,
        _: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError> {
        let (namespace, name) = secret_place(&object.name_any())?;
        if !Self::is_alive(context, &namespace).await? {
            return Ok(Outcome::default());
        }
        let reference = &object.spec.secret_ref;
        let from = reference.namespace.clone().unwrap_or_default();
        let credentials: Api<Secret> = Api::namespaced(context.client.clone(), &from);
        let credentials = credentials.read(reference.name.as_deref().unwrap_or_default()).await?;
        let mut data: BTreeMap<String, ByteString> = credentials.data.unwrap_or_default();
        data.insert(
            "bucketName".into(),
            ByteString(object.spec.bucket_name.clone().into_bytes()),
        );
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.to_owned());
        secret.type_ = Some("Opaque".to_owned());
        let secrets: Api<Secret> = Api::namespaced(context.client.clone(), &namespace);
        apply::create_or_patch(&secrets, secret, |secret| {
            secret.data = Some(data.clone());
            secret.annotations_mut().insert(CREATED_BY.into(), object.name_any());
        })
        .await?;
        Ok(Outcome::default())
    }

    async fn delete(&self, context: &Context, object: &BackupEntry, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        Self::remove_secret(context, object).await
    }

    async fn migrate(&self, context: &Context, object: &BackupEntry, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        Self::remove_secret(context, object).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ext_55_where_the_secret_is() {
        let place = |name: &str| {
            secret_place(name)
                .map(|(namespace, secret)| format!("{namespace}/{secret}"))
                .ok()
        };
        let table = [
            ("shoot--a--b--uid", Some("shoot--a--b/etcd-backup")),
            ("source-shoot--a--b--uid", Some("shoot--a--b/source-etcd-backup")),
            ("plain", None),
            ("a--", None),
        ];
        for (name, expected) in table {
            assert_eq!(place(name).as_deref(), expected, "{name}");
        }
    }
}
