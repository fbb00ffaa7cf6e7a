//! The constraints that care tells [ST-80], [ST-81]: what is read for them, and what is left out. What is made of it is decided in `rules::constraints`.

use gardener_apis::core::v1beta1::{Condition, Shoot};
use gardener_apis::machine::v1alpha1::MachineDeployment;
use gardener_apis::resources::v1alpha1::ManagedResource;
use gardener_controller::Read;
use gardener_controller::conditions::{self, Update, status};
use gardener_rules::constraints::{self as rules, Judgement};
use gardener_rules::webhooks::first_problem;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ListParams;
use kube::{Api, Client};

use super::api_server::ApiServer;
use super::{Known, is_hibernated, namespace};
use crate::Config;

/// The Secrets of a control plane that are kept, authorities among them [ST-84].
const KEPT_SECRETS: &str = "managed-by=secrets-manager,manager-identity=gardenlet,persist=true";

/// What was found, or why nothing could be.
type Found = Result<Judgement, String>;

struct Sight<'a> {
    config: &'a Config,
    known: &'a Known,
    shoot: &'a Shoot,
    namespace: String,
    now: Time,
}

impl Sight<'_> {
    /// The constraint as it is to stand, after what was found.
    fn tell(&self, kind: &str, found: &Found) -> Condition {
        let before = conditions::get_or_init(&self.shoot.status.constraints, kind, &self.now);
        match found {
            Ok(judgement) => {
                let update = Update {
                    status: Some(if judgement.holds { status::TRUE } else { status::FALSE }),
                    reason: Some(judgement.reason),
                    message: Some(&judgement.message),
                    codes: &judgement.codes,
                };
                conditions::updated(&before, &update, &self.now)
            }
            Err(why) => conditions::unknown_error(&before, why, &self.now),
        }
    }

    async fn managed_resources(&self) -> Found {
        let api: Api<ManagedResource> = Api::namespaced(self.config.seed.clone(), &self.namespace);
        let listed = api.list_metadata(&ListParams::default()).await.map_err(|error| {
            format!(
                "could not list ManagedResources in shoot namespace in seed to check for ignored resources: {error}"
            )
        })?;
        Ok(rules::managed_resources(listed.items.iter().map(|own| &own.metadata)))
    }

    async fn preserved_machines(&self) -> Found {
        if self.shoot.is_workerless() {
            return Ok(rules::preserved_machines(None));
        }
        let api: Api<MachineDeployment> = Api::namespaced(self.config.seed.clone(), &self.namespace);
        let listed = api
            .read_list(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?;
        let preserved = listed.iter().filter_map(|own| own.status.preserved_failed_replicas);
        Ok(rules::preserved_machines(Some(preserved.sum())))
    }

    async fn authorities(&self) -> Found {
        let api: Api<Secret> = Api::namespaced(self.config.seed.clone(), &self.namespace);
        let listed = api
            .read_list(&ListParams::default().labels(KEPT_SECRETS))
            .await
            .map_err(|error| {
                format!(
                    "could not list secrets in shoot namespace in seed to check for expiring CA certificates: {error}"
                )
            })?;
        rules::authorities(&listed, self.now.0)
    }

    async fn webhooks(&self, client: &Client) -> Found {
        let unread = |kind: &str, error: kube::Error| {
            format!("could not get {kind} of Shoot cluster to check for problematic webhooks: {error}")
        };
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        let validating = validating.read_list(&ListParams::default()).await;
        let validating = validating.map_err(|error| unread("ValidatingWebhookConfigurations", error))?;
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        let mutating = mutating.read_list(&ListParams::default()).await;
        let mutating = mutating.map_err(|error| unread("MutatingWebhookConfigurations", error))?;
        Ok(rules::webhooks(first_problem(&validating, &mutating)))
    }

    async fn conversion_webhooks(&self, client: &Client) -> Found {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let listed = api.read_list(&ListParams::default()).await;
        let listed = listed.map_err(|error| format!("could not list CRDs in the shoot: {error}"))?;
        Ok(rules::conversion_webhooks(&listed))
    }

    /// All that is to stand in the status, before anything is pardoned [ST-81].
    async fn checked(&self, server: &ApiServer) -> Vec<Condition> {
        let mut rotation_and_resources = vec![
            self.tell(
                rules::AUTOMATIC_CREDENTIALS_ROTATION_POSSIBLE,
                &Ok(rules::automatic_rotation(self.shoot, self.now.0)),
            ),
            self.tell(
                rules::HAS_IGNORED_MANAGED_RESOURCES,
                &self.known.in_time(self.managed_resources()).await,
            ),
        ];
        if is_hibernated(self.shoot) {
            let asleep = Ok(Judgement::not_checked(true, rules::ASLEEP));
            let mut all: Vec<Condition> = rules::NOT_CHECKED_ASLEEP
                .iter()
                .map(|kind| self.tell(kind, &asleep))
                .collect();
            all.extend(rules::shown(rotation_and_resources));
            return all;
        }
        let required = |found: &Found| rules::REQUIRED.map(|kind| self.tell(kind, found));
        let mut all = Vec::new();
        let authorities = self.known.in_time(self.authorities()).await;
        let mut definitions = None;
        match server {
            ApiServer::Runs(Ok(client)) => {
                all.extend(required(&self.known.in_time(self.webhooks(client)).await));
                definitions = Some(self.known.in_time(self.conversion_webhooks(client)).await);
            }
            ApiServer::Rests => all.extend(required(&Ok(Judgement::not_checked(false, rules::NOT_RUNNING)))),
            ApiServer::Runs(Err(why)) | ApiServer::Unknown(why) => {
                let why = format!("Could not initialize Shoot client for constraints check: {why}");
                all.extend(required(&Err(why)));
            }
        }
        all.push(self.tell(rules::CA_CERTIFICATE_VALIDITIES_ACCEPTABLE, &authorities));
        if let Some(found) = definitions {
            all.push(self.tell(rules::CRDS_WITH_PROBLEMATIC_CONVERSION_WEBHOOKS, &found));
        }
        let manual = Ok(rules::manual_in_place(self.shoot));
        all.push(self.tell(rules::MANUAL_IN_PLACE_WORKERS_UPDATED, &manual));
        all.append(&mut rotation_and_resources);
        all.push(self.tell(
            rules::PRESERVED_FAILED_MACHINES_ABSENT,
            &self.known.in_time(self.preserved_machines()).await,
        ));
        rules::shown(all)
    }
}

/// The constraints of a shoot as they are to stand in its status.
pub(super) async fn all(config: &Config, known: &Known, server: &ApiServer) -> Vec<Condition> {
    let shoot = &known.shoot;
    let sight = Sight {
        config,
        known,
        shoot,
        namespace: namespace(shoot),
        now: config.clock.time(),
    };
    sight.checked(server).await
}
