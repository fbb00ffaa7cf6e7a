//! Embedded seeds: a Kubernetes cluster with one simulated node each, and the controllers and kubelets that all embedded clusters share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::clock::Clock;
use gardener_apis::constants::GARDEN_NAMESPACE;
use gardener_apis::core::v1beta1::Seed;
use gardener_apiserver::{ALL_CLUSTERS, UserInfo};
use gardener_cluster::kubelet::{self, Kubelets, NodeConfig};
use gardener_cluster::{Participants, Role};
use gardener_controller::ObjectRef;
use gardener_garden_authorizer::bootstrap::Bootstrapped;
use gardener_gardenlet::bootstrap::{self, Credentials, GardenAccess, GardenConnection, Holder, token};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::apply::{self, FIELD_MANAGER, Manifest};
use crate::garden::{GARDEN, VERSION};
use crate::identity::Identity;
use crate::landscape::{Landscape, LandscapeError, seed_cluster, seed_host, seed_kubeconfig_secret};
use crate::programs::{ControllerConfig, ControllerConfigs, Surroundings};
use crate::services::Services;

/// What a simulated node of a seed offers: enough for the control planes of a thousand shoots.
const CAPACITY: [(&str, &str); 4] = [
    ("cpu", "4000"),
    ("memory", "16000Gi"),
    ("ephemeral-storage", "16000Gi"),
    ("pods", "100000"),
];
/// Addresses of pods of a seed's node.
const POD_CIDR: &str = "10.1.0.0/16";

/// What all embedded clusters share.
pub(crate) struct Embedded {
    pub(crate) surroundings: Surroundings,
    pub(crate) kubelets: Kubelets,
}

impl Landscape {
    /// Starts the controllers and kubelets of embedded clusters.
    pub(crate) fn start_embedded(&self) -> Embedded {
        let participants = Participants::default();
        let controller_configs = ControllerConfigs::default();
        // lists and watches across clusters know Kubernetes' kinds and nobody else's
        self.server
            .open(ALL_CLUSTERS, self.kubernetes.config(VERSION, Default::default()));
        let surroundings = Surroundings {
            server: self.server.clone(),
            shared: self.shared.clone(),
            kubernetes: self.kubernetes.clone(),
            entrances: self.entrances.clone(),
            participants: participants.clone(),
            controller_configs: controller_configs.clone(),
            kubelets: Arc::default(),
            services: Services::default(),
        };
        let mut config = gardener_cluster::Config::new(self.server.clone(), participants);
        let roots = controller_configs.clone();
        config.root_ca = Arc::new(move |cluster| roots.root(cluster));
        let networks = controller_configs.clone();
        config.pod_networks = Arc::new(move |cluster| networks.pod_networks(cluster));
        let signing = controller_configs;
        config.signing_ca = Arc::new(move |cluster| signing.signing(cluster));
        let (store, tasks) = (self.shared.store.clone(), self.tasks.clone());
        config.on_volume_deleted = Arc::new(move |_, namespace, claim| {
            if !claim.contains(crate::programs::MAIN_CLAIM) {
                return;
            }
            let (store, cluster) = (store.clone(), namespace.to_owned());
            tasks.spawn(async move {
                if let Err(error) = store.purge(&cluster).await {
                    tracing::error!(cluster, %error, "the objects of a deleted control plane cannot be removed");
                }
            });
        });
        self.tasks.spawn(gardener_cluster::run(config, self.stop.clone()));
        let mut engine = kubelet::Config::new(self.shared.clock.clone());
        engine.programs = surroundings.programs();
        let kubelets = Kubelets::new(engine, self.stop.clone());
        // nobody else sets it
        let _ = surroundings.kubelets.set(kubelets.clone());
        Embedded { surroundings, kubelets }
    }

    /// Opens a seed's cluster with its node, and keeps its kubeconfig in the garden.
    pub(crate) async fn open_seed(&self, embedded: &Embedded, seed: &str) -> Result<(), LandscapeError> {
        let cluster = seed_cluster(seed);
        let identity = Identity::of(&self.shared, &cluster).await?;
        let settings = identity.authentication(&format!("https://{}", seed_host(seed)));
        let opened = self.kubernetes.open(&self.server, &cluster, VERSION, settings).await?;
        opened
            .webhooks()
            .use_transport(Arc::new(embedded.surroundings.services.clone()));
        if self.options.entry.is_some() {
            self.entrances
                .set(&seed_host(seed), identity.entrance(&[&seed_host(seed)], &[])?);
        }
        self.take_part(embedded, &cluster, &identity);
        embedded.surroundings.participants.join(&cluster, Role::Scheduler);
        embedded.kubelets.add(self.seed_node(seed, &cluster));
        let objects = Manifest {
            origin: "embedded-seed.yaml".to_owned(),
            text: include_str!("../manifests/embedded-seed.yaml").to_owned(),
        };
        apply::apply(&self.client(&cluster), &objects).await?;
        self.publish_kubeconfig(seed).await
    }

    /// Starts the gardenlet of a seed. As any other it gets into the garden by a kubeconfig in its seed, which it asks for with a bootstrap token;
    /// in its seed it may do everything.
    ///
    /// # Errors
    /// [`LandscapeError::Garden`] when the token cannot be made.
    pub(crate) async fn start_gardenlet(&self, seed: &str) -> Result<(), LandscapeError> {
        let in_seed = UserInfo::new("gardenlet", &[gardener_apiserver::user::MASTERS]);
        let mut settings = gardener_gardenlet::Settings::default();
        // Enough for a person who looks on; a thousand shoots should not spend their time on telling how far they are.
        settings.shoot.progress_report_period = Duration::from_millis(500);
        if let Some(entry) = self.options.entry {
            settings.ingress = gardener_gardenlet::Ingress {
                address: entry.ip().to_string(),
                port: entry.port(),
            };
        }
        let in_seed = self.server.client(&seed_cluster(seed), in_seed);
        self.prepare_bootstrap(seed, &in_seed).await?;
        let own = |name: &str| ObjectRef::new(GARDEN_NAMESPACE, name);
        let connection = GardenConnection {
            seed: in_seed.clone(),
            holder: Holder::Seed(seed.to_owned()),
            kubeconfig_secret: own(bootstrap::KUBECONFIG_SECRET),
            bootstrap_kubeconfig: Some(own(bootstrap::BOOTSTRAP_SECRET)),
            validity: bootstrap::Validity::default(),
            clients: Arc::new(GardenClients {
                server: self.server.clone(),
                authority: self.garden.authority.certificate.clone(),
                clock: self.shared.clock.clone(),
            }),
            clock: self.shared.clock.clone(),
            chance: self.shared.chance.clone(),
        };
        let (server, shared) = (self.server.clone(), self.shared.clone());
        let seed = seed.to_owned();
        let configure = move |garden, kubeconfig| gardener_gardenlet::Config {
            garden,
            garden_kubeconfig: Some(kubeconfig),
            seed: in_seed,
            shoots: Arc::new(ShootClients { server }),
            seed_template: None,
            identity: gardener_apis::core::v1beta1::Gardener {
                id: shared.chance.hex(16),
                name: format!("gardenlet-{seed}"),
                version: gardener_apis::constants::VERSION.to_owned(),
            },
            seed_name: seed,
            clock: shared.clock,
            chance: shared.chance,
            settings,
        };
        self.tasks
            .spawn(bootstrap::run(connection, configure, self.stop.clone()));
        Ok(())
    }

    /// Gives a gardenlet a bootstrap kubeconfig if it needs one: at the first start, and when its certificate expired while nothing ran.
    async fn prepare_bootstrap(&self, seed: &str, in_seed: &kube::Client) -> Result<(), LandscapeError> {
        let failed =
            |error: &dyn std::fmt::Display| LandscapeError::Garden(format!("gardenlet of seed {seed}: {error}"));
        let garden = token::Garden {
            client: self.garden_client(),
            server: self.url(),
            authority: Some(self.garden.authority.certificate.clone()),
            clock: self.shared.clock.clone(),
        };
        let beneficiary = token::Beneficiary {
            kind: Bootstrapped::Gardenlet,
            namespace: GARDEN_NAMESPACE.to_owned(),
            name: seed.to_owned(),
            renews: false,
        };
        let seeds: Api<Seed> = Api::all(garden.client.clone());
        let registered = seeds.get_opt(seed).await.map_err(|error| failed(&error))?;
        let by = token::By::Token;
        token::prepare(
            &garden,
            in_seed,
            GARDEN_NAMESPACE,
            &beneficiary,
            by,
            registered.as_ref(),
        )
        .await
        .map_err(|error| failed(&error))?;
        Ok(())
    }

    /// Has a cluster's controllers run.
    pub(crate) fn take_part(&self, embedded: &Embedded, cluster: &str, identity: &Identity) {
        let authority = &identity.authority;
        embedded.surroundings.controller_configs.set(
            cluster,
            ControllerConfig {
                root: authority.certificate.clone(),
                signing: (authority.certificate.clone(), authority.key.clone()),
                pod_networks: Vec::new(),
            },
        );
        embedded
            .surroundings
            .participants
            .join(cluster, Role::ControllerManager);
    }

    /// The garden's controllers.
    pub(crate) fn garden_takes_part(&self, embedded: &Embedded) {
        self.take_part(embedded, GARDEN, &self.garden);
    }

    fn seed_node(&self, seed: &str, cluster: &str) -> NodeConfig {
        let name = format!("{cluster}-node");
        let labels = [
            ("topology.kubernetes.io/region", "local"),
            ("topology.kubernetes.io/zone", "0"),
        ];
        let user = UserInfo::new(
            &format!("system:node:{name}"),
            &["system:nodes", gardener_apiserver::user::MASTERS],
        );
        NodeConfig {
            cluster: cluster.to_owned(),
            labels: labels
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            taints: Vec::new(),
            capacity: CAPACITY
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            addresses: vec![
                ("InternalIP".to_owned(), "172.18.0.2".to_owned()),
                ("Hostname".to_owned(), name.clone()),
            ],
            provider_id: Some(format!("local:///{seed}")),
            kubelet_version: format!("v{VERSION}"),
            os_image: "Gardener embedded node (simulated)".to_owned(),
            runtime_version: "simulated://1.0.0".to_owned(),
            architecture: "amd64".to_owned(),
            client: self.server.client(cluster, user),
            register: true,
            pod_cidr: Some(POD_CIDR.to_owned()),
            name,
        }
    }

    async fn publish_kubeconfig(&self, seed: &str) -> Result<(), LandscapeError> {
        if self.options.entry.is_none() {
            return Ok(());
        }
        let kubeconfig = serde_saphyr::to_string(&self.seed_kubeconfig(seed).await?)
            .map_err(|error| LandscapeError::Garden(error.to_string()))?;
        let name = seed_kubeconfig_secret(seed);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": GARDEN_NAMESPACE},
            "data": {"kubeconfig": STANDARD.encode(kubeconfig)},
        });
        let api: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(self.garden_client(), GARDEN_NAMESPACE);
        let patched = api
            .patch(
                &name,
                &PatchParams::apply(FIELD_MANAGER).force(),
                &Patch::Apply(&secret),
            )
            .await;
        patched
            .map(|_| ())
            .map_err(|error| LandscapeError::Garden(gardener_controller::api_error(&error)))
    }
}

/// Clients of the garden inside this process. Certificates are checked here as TLS does at the entrance.
struct GardenClients {
    server: gardener_apiserver::Server,
    authority: String,
    clock: Clock,
}

#[async_trait::async_trait]
impl bootstrap::GardenClients for GardenClients {
    async fn client(&self, access: &GardenAccess) -> Result<kube::Client, String> {
        match &access.credentials {
            Credentials::Token(token) => Ok(self.server.client_with_token(GARDEN, token)),
            Credentials::Certificate(pair) => {
                let now = self.clock.now().as_second();
                let der = gardener_pki::verify_client(&pair.certificate, &self.authority, now);
                let der = der.map_err(|error| error.to_string())?;
                Ok(self.server.client_with_certificate(GARDEN, &der))
            }
        }
    }
}

/// Clients of shoots inside this process.
struct ShootClients {
    server: gardener_apiserver::Server,
}

#[async_trait::async_trait]
impl gardener_gardenlet::ShootClients for ShootClients {
    async fn client(&self, technical_id: &str) -> Result<kube::Client, String> {
        Ok(self.server.client(
            technical_id,
            UserInfo::service_account("kube-system", "gardener-internal", ""),
        ))
    }
}
