//! What every seed has: definitions, priorities, identity, resource manager, etcd-druid [CP-140].

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::label;
use gardener_apis::core::v1beta1::Seed;
use gardener_controller::Read;
use gardener_controller::secrets::{Certificate, Class, Generate, Kind, Rotation, SecretConfig, SignedBy, Usage, data};
use gardener_controller::wait::{Patience, Verdict, wait_for};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use kube::{Api, Client, ResourceExt};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Config;
use crate::apply;
use crate::components::{resource_manager, seed_system, service_names};
use crate::failed::Failed;

/// The Deployments that a seed cannot do without.
pub(super) const DEPLOYMENTS: [&str; 2] = [resource_manager::NAME, "etcd-druid"];

/// The seed's identity: what is there, or its name, told once.
pub(super) async fn identity(config: &Config, seed: &Seed) -> Result<String, Failed> {
    let api: Api<ConfigMap> = Api::namespaced(config.seed.clone(), "kube-system");
    let known = api.read_opt("cluster-identity").await?.and_then(|map| map.data);
    if let Some(identity) = known.and_then(|data| data.get("cluster-identity").cloned()) {
        return Ok(identity);
    }
    let identity = seed.status.cluster_identity.clone().unwrap_or_else(|| seed.name_any());
    apply::apply(&config.seed, &seed_system::cluster_identity(&identity)).await?;
    Ok(identity)
}

/// What is read of a definition that was applied: schemas are large.
#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    status: ToldStatus,
}

#[derive(Default, Deserialize)]
struct ToldStatus {
    #[serde(default)]
    conditions: Vec<CustomResourceDefinitionCondition>,
}

fn is_established(conditions: &[CustomResourceDefinitionCondition]) -> bool {
    let mut conditions = conditions.iter();
    conditions.any(|one| one.type_ == "Established" && one.status == "True")
}

/// How long a definition may take until its kind is served.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(60);

/// Waits until a cluster serves the kind of a definition.
///
/// # Errors
/// It does not within a minute.
async fn until_established(cluster: &Client, name: &str) -> Result<(), Failed> {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.clone());
    let established = |found: Option<&CustomResourceDefinition>| {
        let conditions = found.and_then(|one| one.status.as_ref()?.conditions.as_deref());
        match is_established(conditions.unwrap_or_default()) {
            true => Verdict::Ready(()),
            false => Verdict::Pending(format!("definition {name} is not established")),
        }
    };
    let patience = Patience::of(ESTABLISHED_WITHIN);
    let waited = wait_for(&api, name, patience, established).await;
    waited.map_err(|error| Failed::Because(error.to_string()))
}

/// Waits until a cluster serves a definition's kind, however long that takes: an informer that finds no such kind looks again only after a while.
pub(crate) async fn until_served(cluster: &Client, definition: &str) {
    while let Err(error) = until_established(cluster, definition).await {
        tracing::debug!(%error, "the cluster does not have the kind yet");
    }
}

/// The groups whose definitions are deleted only when that was confirmed [EXT-130]: with a definition all of its objects go.
const PROTECTED_GROUPS: [&str; 3] = [
    "druid.gardener.cloud",
    "extensions.gardener.cloud",
    "machine.sapcloud.io",
];

async fn install_definitions(config: &Config) -> Result<(), Failed> {
    let mut definitions = Vec::new();
    for (name, text) in gardener_apis::crds::ALL {
        let mut definition: Value =
            serde_saphyr::from_str(text).map_err(|error| Failed::Because(format!("definition {name}: {error}")))?;
        let group = definition.at("/spec/group").and_then(Value::as_str).unwrap_or_default();
        if PROTECTED_GROUPS.contains(&group)
            && let Some(metadata) = definition.at_mut("/metadata").and_then(Value::as_object_mut)
            && let Some(labels) = metadata.entry("labels").or_insert_with(|| json!({})).as_object_mut()
        {
            labels.insert(label::DELETION_PROTECTED.to_owned(), "true".into());
        }
        definitions.push(definition);
    }
    let applied = apply::apply_all(&config.seed, &definitions).await?;
    for ((name, _), applied) in gardener_apis::crds::ALL.iter().zip(&applied) {
        // some servers establish a definition before they answer
        let told = applied.read::<Told>();
        if !told.is_ok_and(|told| is_established(&told.status.conditions)) {
            until_established(&config.seed, name).await?;
        }
    }
    Ok(())
}

/// The authority of a seed, its server certificates' only.
const AUTHORITY: &str = "ca-seed";
const AUTHORITY_VALIDITY: Duration = Duration::from_hours(30 * 24);

/// The names of the resource manager's certificate and, in base64, who signed it.
struct Certified {
    certificate: String,
    authority: String,
}

/// The certificate that the seed's resource manager answers webhooks with.
async fn certify(config: &Config) -> Result<Certified, Failed> {
    let manager = config.secrets_manager(seed_system::NAMESPACE, BTreeMap::new()).await?;
    let authority = SecretConfig {
        name: AUTHORITY.to_owned(),
        kind: Kind::CertificateAuthority {
            common_name: "kubernetes".to_owned(),
        },
    };
    let kept = Generate {
        rotation: Rotation::KeepOld { ignore_old: false },
        validity: Some(AUTHORITY_VALIDITY),
        ..Generate::default()
    };
    manager.generate(&authority, &kept).await?;
    let server = SecretConfig {
        name: "gardener-resource-manager-server".to_owned(),
        kind: Kind::Certificate(Certificate {
            usage: Usage::Server,
            common_name: resource_manager::NAME.to_owned(),
            organizations: Vec::new(),
            dns_names: service_names(resource_manager::NAME, seed_system::NAMESPACE),
            ip_addresses: Vec::new(),
            with_ca: false,
        }),
    };
    let signed = Generate {
        signed_by: Some(SignedBy::ca(AUTHORITY)),
        ..Generate::default()
    };
    let certificate = manager.generate(&server, &signed).await?;
    manager.cleanup().await?;
    let bundle = manager.get(AUTHORITY, Class::Bundle).and_then(|secret| secret.data);
    let bundle = bundle.and_then(|mut data| data.remove(data::BUNDLE));
    let bundle = bundle.ok_or_else(|| Failed::Because(format!("secret {AUTHORITY} has no {}", data::BUNDLE)))?;
    Ok(Certified {
        certificate: certificate.name_any(),
        authority: STANDARD.encode(bundle.0),
    })
}

/// Installs all of it.
pub(super) async fn install(config: &Config, seed: &Seed, identity: &str) -> Result<(), Failed> {
    install_definitions(config).await?;
    apply::apply_all(&config.seed, &seed_system::namespaces(&seed.spec.provider.zones)).await?;
    apply::apply_all(&config.seed, &seed_system::priority_classes()).await?;
    let certified = certify(config).await?;
    let (namespace, certificate) = (seed_system::NAMESPACE, &certified.certificate);
    let manager = resource_manager::seed_manifests(namespace, identity, certificate);
    apply::apply_all(&config.seed, &manager).await?;
    let webhooks = resource_manager::validating_webhooks(namespace, &certified.authority);
    apply::apply(&config.seed, &webhooks).await?;
    apply::apply_all(&config.seed, &seed_system::etcd_druid()).await?;
    Ok(())
}
