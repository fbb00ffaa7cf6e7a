//! A shoot's API server as care finds it: one look for conditions and constraints.

use gardener_controller::Read;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client};

use super::{Known, namespace, until};
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
    /// Looks whether the API server of a control plane runs [ST-43]. It has half of the time: the rest is for what can be told without it.
    pub(super) async fn look(config: &Config, known: &Known) -> Self {
        let deadline = known.deadline - config.settings.shoot_care.sync_period / 2;
        let namespace = namespace(&known.shoot);
        let api: Api<Deployment> = Api::namespaced(config.seed.clone(), &namespace);
        let runs =
            |one: &Deployment| one.metadata.deletion_timestamp.is_none() && one.spec.replicas.unwrap_or_default() > 0;
        let read = async {
            let found = api.read_opt("kube-apiserver").await;
            found.map_err(|error| gardener_controller::api_error(&error))
        };
        match until(deadline, read).await {
            Ok(found) if found.as_ref().is_some_and(runs) => {
                Self::Runs(until(deadline, config.shoots.client(&namespace)).await)
            }
            Ok(_) => Self::Rests,
            Err(error) => Self::Unknown(error),
        }
    }

    /// A client, if it runs and can be reached.
    pub(super) fn client(&self) -> Option<&Client> {
        match self {
            Self::Runs(Ok(client)) => Some(client),
            _ => None,
        }
    }
}
