//! kube-apiserver: while a replica runs, the logical cluster of the pod's namespace is open.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gardener_apiserver::authn::Settings;
use gardener_apiserver::listen::Entrance;
use gardener_apiserver::tokens::{Lifetimes, SigningKey, VerifyingKey};
use gardener_apiserver::{LogicalCluster, UserInfo};
use gardener_cluster::kubelet::{Invocation, Program};
use k8s_openapi::api::core::v1::{Container, Pod, Service};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::files::{FileError, Files};
use super::{Replicas, Surroundings, namespace};
use crate::kubernetes_service;

/// The container's name.
const NAME: &str = "kube-apiserver";
/// Annotation of the Service that tells under which host names the API is reached.
const API_HOSTS: &str = "shoot.gardener.cloud/api-hosts";
/// How soon a start that failed is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// How often host names and keys are looked at for changes.
const REFRESH: Duration = Duration::from_secs(60);

/// Why a cluster cannot be opened yet.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Key(#[from] gardener_apiserver::tokens::KeyError),
    #[error(transparent)]
    Entrance(#[from] gardener_apiserver::listen::EntranceError),
    #[error(transparent)]
    Bootstrap(#[from] gardener_apiserver::kubernetes::BootstrapError),
    #[error("etcd is not ready")]
    Etcd,
}

/// How many seconds tokens live at most.
fn longest_token(files: &Files<'_>) -> Option<i64> {
    let asked = files.argument("service-account-max-token-expiration")?;
    let longest: gardener_apimachinery::duration::Duration = asked.parse().ok()?;
    Some(longest.as_secs())
}

/// The program.
pub struct KubeApiserver {
    surroundings: Surroundings,
    replicas: Replicas,
    /// Opening and closing of one cluster must not overlap.
    turn: tokio::sync::Mutex<()>,
}

impl KubeApiserver {
    /// The program in its surroundings.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            replicas: Replicas::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// As the real one, it cannot serve before etcd does.
    async fn etcd_is_ready(&self, invocation: &Invocation) -> Result<(), StartError> {
        let pods: Api<Pod> = Api::namespaced(self.surroundings.node_client(invocation), &namespace(&invocation.pod));
        let list = pods.list(&ListParams::default()).await?;
        let ready = |pod: &Pod| {
            let conditions = pod
                .status
                .iter()
                .filter_map(|status| status.conditions.as_ref())
                .flatten();
            pod.name_any().starts_with("etcd-main-")
                && conditions
                    .into_iter()
                    .any(|condition| condition.type_ == "Ready" && condition.status == "True")
        };
        if list.items.iter().any(ready) {
            Ok(())
        } else {
            Err(StartError::Etcd)
        }
    }

    async fn settings(&self, files: &Files<'_>) -> Result<Settings, StartError> {
        let signer = SigningKey::from_pem(&files.file_of("service-account-signing-key-file").await?)?;
        let accepted = VerifyingKey::read_all(&files.file_of("service-account-key-file").await?);
        let issuers = files.arguments("service-account-issuer");
        let audiences: Vec<String> = files
            .arguments("api-audiences")
            .iter()
            .flat_map(|text| text.split(','))
            .map(str::to_owned)
            .collect();
        Ok(Settings {
            signer: Some(Arc::new(signer)),
            accepted_keys: accepted,
            issuer: issuers.first().copied().unwrap_or_default().to_owned(),
            audiences,
            lifetimes: Lifetimes {
                longest: longest_token(files),
                extends: files.argument("service-account-extend-token-expiration") != Some("false"),
            },
            anonymous: files.argument("anonymous-auth") == Some("true"),
            bootstrap_tokens: files.argument("enable-bootstrap-token-auth") == Some("true"),
            accepted_issuers: issuers.iter().skip(1).map(|issuer| (*issuer).to_owned()).collect(),
            ..Settings::default()
        })
    }

    /// Opens the cluster, or renews keys and host names of an open one.
    async fn open(&self, invocation: &Invocation) -> Result<Arc<LogicalCluster>, StartError> {
        let files = Files::new(
            self.surroundings.node_client(invocation),
            &invocation.pod,
            &invocation.container,
        );
        let name = namespace(&invocation.pod);
        let settings = self.settings(&files).await?;
        let entrance = Entrance::new(
            &name,
            &files.file_of("tls-cert-file").await?,
            &files.file_of("tls-private-key-file").await?,
            &files.file_of("client-ca-file").await?,
        )?;
        let _turn = self.turn.lock().await;
        let cluster = match self.surroundings.server.cluster(&name) {
            Some((cluster, _)) => {
                cluster.config().authenticator.set(settings);
                cluster
            }
            None => {
                let image = invocation.container.image.as_deref().unwrap_or_default();
                let version = image.rsplit_once(":v").map_or("1.36.0", |(_, version)| version);
                self.surroundings
                    .kubernetes
                    .open(&self.surroundings.server, &name, version, settings)
                    .await?
            }
        };
        for host in self.hosts(invocation).await? {
            self.surroundings.entrances.set(&host, entrance.clone());
        }
        self.provide_service(&name, &files).await?;
        Ok(cluster)
    }

    async fn hosts(&self, invocation: &Invocation) -> Result<Vec<String>, StartError> {
        let services: Api<Service> =
            Api::namespaced(self.surroundings.node_client(invocation), &namespace(&invocation.pod));
        let annotated = services
            .get_opt(NAME)
            .await?
            .and_then(|service| service.annotations().get(API_HOSTS).cloned());
        Ok(annotated
            .iter()
            .flat_map(|text| text.split(','))
            .filter(|host| !host.is_empty())
            .map(str::to_owned)
            .collect())
    }

    /// The range of service addresses, and the service `kubernetes` with its first one.
    async fn provide_service(&self, cluster: &str, files: &Files<'_>) -> Result<(), StartError> {
        let client = self.surroundings.server.client(cluster, UserInfo::apiserver());
        let ranges: Vec<String> = files
            .argument("service-cluster-ip-range")
            .iter()
            .flat_map(|text| text.split(','))
            .map(str::to_owned)
            .collect();
        kubernetes_service::provide(&client, &ranges, None, &self.surroundings.shared.clock).await?;
        Ok(())
    }
}

#[async_trait]
impl Program for KubeApiserver {
    fn runs(&self, _: &Pod, container: &Container) -> bool {
        container.name == NAME
    }

    async fn run(&self, invocation: Invocation) -> i32 {
        let name = namespace(&invocation.pod);
        loop {
            let attempt = async {
                self.etcd_is_ready(&invocation).await?;
                self.open(&invocation).await
            };
            match attempt.await {
                Ok(_) => break,
                Err(error) => tracing::debug!(cluster = name, %error, "kube-apiserver cannot serve yet"),
            }
            tokio::select! {
                biased;
                () = invocation.stop.cancelled() => return 0,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
        self.replicas.enter(&name);
        // nobody listens when the kubelet ends at the same time
        let _ = invocation.ready.send(true);
        loop {
            tokio::select! {
                biased;
                () = invocation.stop.cancelled() => break,
                () = tokio::time::sleep(REFRESH) => {
                    if let Err(error) = self.open(&invocation).await {
                        tracing::debug!(cluster = name, %error, "kube-apiserver cannot renew its keys and host names");
                    }
                }
            }
        }
        let _turn = self.turn.lock().await;
        if self.replicas.leave(&name) {
            self.surroundings.entrances.remove_cluster(&name);
            self.surroundings.server.close(&name);
        }
        0
    }
}
