//! Trials: whether an object could be created, asked by an admission plugin while it looks at another one. What is asked is what a client asks with
//! `dryRun=All`: admission, webhooks included, and validation have their say, and nothing is stored.

use gardener_apimachinery::ApiError;
use serde_json::Value;

use crate::cluster::LogicalCluster;
use crate::crd::server_scope;
use crate::decode::Source;
use crate::registry::{Scope, WriteOptions};

impl LogicalCluster {
    /// Why an object could not be created in a namespace; none if it could. It needs a `generateName`, as nothing is to be in its way.
    ///
    /// # Errors
    /// The message of the refusal, or why nobody could be asked.
    pub async fn try_to_create(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
        object: Value,
    ) -> Result<(), String> {
        let told = |error: ApiError| error.to_string();
        if let Some(elsewhere) = self.config().elsewhere.as_ref()
            && let Some(definition) = elsewhere.find(group, resource)
        {
            return elsewhere.try_to_create(definition, namespace, &object).await;
        }
        let definition = self.find(group, resource);
        let definition = definition.ok_or_else(|| told(ApiError::no_such_path()))?;
        // a cluster that is not opened serves no requests, so no plugin of it is asked
        let cluster = self.itself().ok_or("the cluster is closed")?;
        let scope = server_scope(&cluster, definition, "").ok_or_else(|| told(ApiError::no_such_path()))?;
        let scope = Scope {
            admitted: false,
            ..scope.at(namespace, "")
        };
        let options = WriteOptions {
            dry_run: true,
            ..WriteOptions::default()
        };
        scope
            .create(object, &Source::default(), &options)
            .await
            .map(drop)
            .map_err(told)
    }
}
