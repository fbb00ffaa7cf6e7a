//! The seed controller: registers the Seed, renews its lease, and installs what every seed has [CP-140]. Whether that
//! runs is [`care`]'s to tell.

mod backup_bucket;
pub(crate) mod care;
pub(crate) mod system;

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::constants::{annotation, finalizer, operation};
use gardener_apis::core::v1beta1::{Condition, Gardener, Seed};
use gardener_controller::apply as patching;
use gardener_controller::conditions::{self, status};
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, RateLimit, Read};
use gardener_rules::operation::{OperationType, last_operation};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::Config;
use crate::bootstrap::{self, GardenKubeconfig};
use crate::failed::Failed;

/// The condition that gardenlet is there.
const READY: &str = "GardenletReady";
/// Where the seeds' leases are in the garden.
const LEASE_NAMESPACE: &str = "gardener-system-seed-lease";

/// Registers the Seed as the template says; one that is there gets labels, annotations and spec.
pub(crate) async fn register(config: &Config) -> Result<(), Failed> {
    let Some(template) = &config.seed_template else {
        return Ok(());
    };
    let api: Api<Seed> = Api::all(config.garden.clone());
    let mut initial = Seed::default();
    initial.metadata.name = Some(config.seed_name.clone());
    patching::create_or_patch(&api, initial, |seed| {
        seed.labels_mut().extend(template.labels().clone());
        seed.annotations_mut().extend(template.annotations().clone());
        seed.spec.clone_from(&template.spec);
    })
    .await?;
    Ok(())
}

/// Renews the seed's lease until `stop`: the garden knows by it that gardenlet lives [CP-140]. Before there is a Seed, there is no lease of it
/// either; as soon as there is one, there is.
pub(crate) async fn renew_lease(config: Config, seeds: Informer<Seed>, stop: CancellationToken) {
    let own = ObjectRef::cluster_scoped(config.seed_name.clone());
    let changed = Arc::new(Notify::new());
    let notified = Arc::clone(&changed);
    seeds.on_change(move |_| notified.notify_one());
    let mut tick = interval(config.settings.lease_resync.max(Duration::from_millis(100)));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let renewing = async {
        loop {
            while seeds.get(&own).is_none() {
                changed.notified().await;
                tick.reset_immediately();
            }
            tick.tick().await;
            // who cannot reach the seed does not say that all is well
            if let Err(error) = is_alive(&config.seed).await {
                tracing::warn!(%error, "the seed's API server does not answer that it is well");
                continue;
            }
            if let Err(error) = renew(&config).await {
                tracing::warn!(%error, "cannot renew the seed's lease");
                continue;
            }
            if let Some(seed) = seeds.get(&own)
                && let Err(error) = tell_ready(&config, &seed).await
            {
                tracing::warn!(%error, "cannot tell that gardenlet is ready");
            }
        }
    };
    stop.run_until_cancelled(renewing).await;
}

/// The condition that gardenlet is there [ST-75].
fn ready(seed: &Seed, now: &Time) -> Condition {
    let old = conditions::get_or_init(&seed.status.conditions, READY, now);
    let message = "Gardenlet is posting ready status.";
    conditions::with(&old, status::TRUE, READY, message, now)
}

/// Says that gardenlet is there again where somebody took it for gone [ST-79]. Before the seed was reconciled once there is nothing to correct.
async fn tell_ready(config: &Config, seed: &Seed) -> Result<(), Failed> {
    let told = conditions::get(&seed.status.conditions, READY);
    if told.is_none_or(|own| own.status == status::TRUE) {
        return Ok(());
    }
    let api: Api<Seed> = Api::all(config.garden.clone());
    let now = config.clock.time();
    patching::patch_status(&api, seed, |seed| {
        let news = ready(seed, &now);
        seed.status.conditions = conditions::merge(std::mem::take(&mut seed.status.conditions), [news]);
    })
    .await?;
    Ok(())
}

/// Whether the seed's API server says that it is well [ST-75].
async fn is_alive(seed: &Client) -> Result<(), kube::Error> {
    let request = http::Request::get("/healthz").body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    seed.request_text(request).await.map(drop)
}

async fn renew(config: &Config) -> Result<(), Failed> {
    let api: Api<Lease> = Api::namespaced(config.garden.clone(), LEASE_NAMESPACE);
    let now = config.clock.micro_time();
    let seconds = i32::try_from(config.settings.lease_resync.as_secs().max(1)).unwrap_or(i32::MAX);
    let mut initial = Lease::default();
    initial.metadata.name = Some(config.seed_name.clone());
    initial.metadata.namespace = Some(LEASE_NAMESPACE.to_owned());
    patching::create_or_patch(&api, initial, |lease| {
        let spec: &mut LeaseSpec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(config.seed_name.clone());
        spec.lease_duration_seconds = Some(seconds);
        spec.renew_time = Some(now.clone());
    })
    .await?;
    Ok(())
}

/// Runs the controller until `stop`.
pub(crate) async fn run(config: Config, seeds: Informer<Seed>, stop: CancellationToken) {
    let queue: Queue<ObjectRef> = Queue::with_limit(RateLimit {
        base: Duration::from_millis(200),
        max: Duration::from_secs(60),
    });
    {
        let queue = queue.clone();
        seeds.on_change(move |change| {
            let wanted = match change {
                Change::Applied { old: Some(old), new } => {
                    old.metadata.generation != new.metadata.generation
                        || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
                }
                Change::Applied { old: None, .. } => true,
                Change::Deleted(_) => false,
            };
            if wanted {
                queue.add(ObjectRef::of(change.object().as_ref()));
            }
        });
    }
    let config = Arc::new(config);
    Controller::new("seed", 1, queue)
        .run(stop, move |key| {
            let config = Arc::clone(&config);
            async move { reconcile(&config, &key).await }
        })
        .await;
}

async fn reconcile(config: &Config, key: &ObjectRef) -> Result<Action, Failed> {
    let api: Api<Seed> = Api::all(config.garden.clone());
    let Some(seed) = api.read_opt(&key.name).await? else {
        return Ok(Action::Done);
    };
    if seed.metadata.deletion_timestamp.is_some() {
        return delete(config, &api, &seed).await;
    }
    let (seed, _) = patching::add_finalizer(&api, &seed, finalizer::GARDENER).await?;
    let now = config.clock.time();
    let identity = system::identity(config, &seed).await?;
    let version = config.seed.apiserver_version().await?;
    let kind = OperationType::next(false, seed.status.last_operation.as_ref());
    if seed.status.last_operation.is_none() {
        tell(
            &api,
            &seed,
            kind,
            "Processing",
            0,
            "Seed cluster is being reconciled.",
            &now,
        )
        .await?;
    }
    let installed = match system::install(config, &seed, &identity).await {
        Ok(()) => match backup_bucket::ensure(config, &seed).await {
            Ok(()) => renew_kubeconfig(config, &api, &seed).await,
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
    let expires = config.garden_kubeconfig.as_ref().and_then(GardenKubeconfig::expires);
    let gardenlet: Gardener = config.identity.clone();
    let ready = ready(&seed, &now);
    let generation = seed.metadata.generation;
    patching::patch_status(&api, &seed, |seed| {
        seed.status.gardener = Some(gardenlet.clone());
        seed.status.kubernetes_version = Some(version.git_version.clone());
        seed.status.cluster_identity = Some(identity.clone());
        seed.status.observed_generation = generation;
        seed.status.client_certificate_expiration_timestamp = expires.map(Time);
        let list = std::mem::take(&mut seed.status.conditions);
        seed.status.conditions = conditions::merge(list, [ready.clone()]);
        seed.status.last_operation = Some(match &installed {
            Ok(()) => last_operation(
                kind,
                "Succeeded",
                100,
                "Seed cluster has been successfully reconciled.",
                now.clone(),
            ),
            Err(error) => last_operation(
                kind,
                "Error",
                50,
                format!("{error} Operation will be retried."),
                now.clone(),
            ),
        });
    })
    .await?;
    installed?;
    Ok(Action::RequeueAfter(config.settings.seed_sync_period))
}

/// Has the gardenlet ask for a new client certificate if its Seed says so [AUTH-32]; then the Seed no longer does.
async fn renew_kubeconfig(config: &Config, api: &Api<Seed>, seed: &Seed) -> Result<(), Failed> {
    if !bootstrap::token::asks_to_renew(seed) {
        return Ok(());
    }
    let Some(kubeconfig) = &config.garden_kubeconfig else {
        return Err(Failed::Because(format!(
            "unable to renew garden kubeconfig. No gardenClientConnection.kubeconfigSecret specified in configuration of gardenlet. \
             Remove \"{}={}\" annotation from seed to reconcile successfully",
            annotation::OPERATION,
            operation::RENEW_KUBECONFIG
        )));
    };
    let secrets: Api<Secret> = Api::namespaced(config.seed.clone(), &kubeconfig.secret.namespace);
    let secret = secrets.read(&kubeconfig.secret.name).await?;
    patching::patch(&secrets, &secret, |secret| {
        let annotations = secret.annotations_mut();
        annotations.insert(annotation::OPERATION.to_owned(), operation::RENEW.to_owned());
    })
    .await?;
    patching::patch(api, seed, |seed| {
        seed.annotations_mut().remove(annotation::OPERATION);
    })
    .await?;
    Ok(())
}

/// Writes how far the operation is.
async fn tell(
    api: &Api<Seed>,
    seed: &Seed,
    kind: OperationType,
    state: &str,
    progress: i32,
    description: &str,
    now: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,
) -> Result<(), Failed> {
    patching::patch_status(api, seed, |seed| {
        seed.status.last_operation = Some(last_operation(kind, state, progress, description, now.clone()));
    })
    .await?;
    Ok(())
}

async fn delete(config: &Config, api: &Api<Seed>, seed: &Seed) -> Result<Action, Failed> {
    use gardener_apis::core::v1beta1::Shoot;
    let shoots: Api<Shoot> = Api::all(config.garden.clone());
    let own = ListParams::default().labels(&config.seed_label());
    let listed = shoots.read_list(&own).await?;
    let here = listed
        .iter()
        .filter(|shoot| gardener_rules::shoot_operation::is_responsible(shoot, &seed.name_any()))
        .count();
    if here > 0 {
        tracing::info!(shoots = here, "the seed is to go, but still has shoots");
        return Ok(Action::RequeueAfter(Duration::from_secs(30)));
    }
    if backup_bucket::delete(config, seed).await? > 0 {
        return Ok(Action::RequeueAfter(Duration::from_secs(1)));
    }
    patching::remove_finalizer(api, seed, finalizer::GARDENER).await?;
    Ok(Action::Done)
}
