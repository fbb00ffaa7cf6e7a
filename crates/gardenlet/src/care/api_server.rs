//! A shoot's API server as care finds it: one look for conditions and constraints.

use gardener_controller::Read;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client};

use crate::Config;

/// What is found of a shoot's API server.
pub(super) enum ApiServer {
    /// It runs: a client of it, or why there is none.
    Runs(Result<Client, String>),
    /// Nobody wants it to run.
    Rests,
    /// Why nobody can tell.
    Unknown(String),
}

impl ApiServer {
    /// Looks whether the API server of a control plane runs [ST-43].
    pub(super) async fn look(config: &Config, namespace: &str) -> Self {
        let api: Api<Deployment> = Api::namespaced(config.seed.clone(), namespace);
        let runs =
            |one: &Deployment| one.metadata.deletion_timestamp.is_none() && one.spec.replicas.unwrap_or_default() > 0;
        match api.read_opt("kube-apiserver").await {
            Ok(found) if found.as_ref().is_some_and(runs) => Self::Runs(config.shoots.client(namespace).await),
            Ok(_) => Self::Rests,
            Err(error) => Self::Unknown(error.to_string()),
        }
    }
}
