//! [ADM-77]: what gardenlets and extensions of seeds may create [AUTH-20], the deletion of BackupBuckets and Seeds, and changes of Seeds.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::{GARDEN_NAMESPACE, annotation, operation};
use gardener_apis::core::v1beta1::{BackupBucket, BackupEntry, Seed, Shoot};
use gardener_apis::operations::v1alpha1::Bastion;
use gardener_apis::seedmanagement::v1alpha1::{Gardenlet, ManagedSeed};
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use gardener_garden_authorizer::bootstrap::{self, Bootstrapped};
use gardener_garden_authorizer::identity::{self, Client};
use gardener_garden_authorizer::names;
use gardener_rules::csr_approval::gardenlets;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::*;

const WEBHOOK: &str = "seed-restriction.gardener.cloud";

/// Labels of Secrets with public keys of managed issuers.
const SHOOT_NAME: &str = "shoot.gardener.cloud/name";
const SHOOT_NAMESPACE: &str = "shoot.gardener.cloud/namespace";
const PUBLIC_KEYS: (&str, &str) = ("discovery.gardener.cloud/public", "serviceaccount");

/// [ADM-77].
pub(in super::super) struct SeedRestriction;

#[async_trait]
impl Admission for SeedRestriction {
    fn name(&self) -> &'static str {
        WEBHOOK
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let user = attributes.context.user;
        if !looks_at(attributes) {
            return Ok(());
        }
        match identity::of_seed(&user.name, &user.groups) {
            Some(who) => judge(attributes, who.seed, who.client).map_err(|refusal| refusal.told_by(WEBHOOK)),
            None => Ok(()),
        }
    }
}

/// The writes that are looked at.
fn looks_at(attributes: &Attributes<'_>) -> bool {
    if !attributes.subresource.is_empty() {
        return false;
    }
    let definition = attributes.definition;
    match (definition.group.as_str(), definition.plural.as_str()) {
        (CORE, "seeds") => attributes.operation != Operation::Connect,
        (CORE, "backupbuckets") => matches!(attributes.operation, Operation::Create | Operation::Delete),
        ("", "configmaps" | "secrets" | "serviceaccounts")
        | (RBAC, "clusterrolebindings")
        | (COORDINATION, "leases")
        | (CERTIFICATES, "certificatesigningrequests")
        | (CORE, "backupentries" | "internalsecrets" | "shootstates")
        | (OPERATIONS, "bastions")
        | (SEEDMANAGEMENT, "gardenlets") => attributes.operation == Operation::Create,
        _ => false,
    }
}

fn judge(attributes: &Attributes<'_>, seed: &str, client: Client) -> Verdict {
    let definition = attributes.definition;
    let there = || {
        let lister = attributes.context.lister;
        lister.get(
            &definition.group,
            &definition.plural,
            attributes.namespace,
            attributes.name,
        )
    };
    // it was judged when it was created; now only its creator may learn that it is there
    if attributes.operation == Operation::Create && !attributes.name.is_empty() && there().is_some() {
        return Ok(());
    }
    let extension = client == Client::Extension;
    let may_not = |what: &str| Err(Refusal::forbidden(format!("extension client may not create {what}")));
    match (definition.group.as_str(), definition.plural.as_str()) {
        (CORE, "backupbuckets") => backup_bucket(attributes, seed),
        (CORE, "backupentries") => backup_entry(attributes, seed),
        (OPERATIONS, "bastions") => {
            let bastion: Bastion = object(attributes)?;
            own(seed, [bastion.spec.seed_name.as_deref()])
        }
        (CERTIFICATES, _) if extension => may_not("CertificateSigningRequests"),
        (CERTIFICATES, _) => {
            let request = signing_request(attributes)?;
            let asked = gardenlets::seed_client(&request)
                .map_err(|why| Refusal::forbidden(format!("can only create CSRs for seed clusters: {why}")))?;
            own(seed, [Some(asked)])
        }
        (RBAC, _) if extension => may_not("ClusterRoleBindings"),
        (RBAC, _) => cluster_role_binding(attributes, seed),
        ("", "configmaps") => of_shoot(attributes, seed, &names::CONFIG_MAPS),
        (CORE, "internalsecrets") => of_shoot(attributes, seed, &names::INTERNAL_SECRETS),
        (SEEDMANAGEMENT, "gardenlets") => {
            if attributes.namespace != GARDEN_NAMESPACE {
                return Err(Refusal::bad_request(format!(
                    "object must be in namespace: \"{GARDEN_NAMESPACE}\""
                )));
            }
            own(seed, [Some(attributes.name)])
        }
        (COORDINATION, _) => lease(attributes, seed, extension),
        ("", "secrets") => secret(attributes, seed),
        (CORE, "seeds") => of_seed(attributes, seed),
        ("", "serviceaccounts") if extension => may_not("ServiceAccounts"),
        ("", "serviceaccounts") => {
            if let Some(name) = attributes.name.strip_prefix(bootstrap::SERVICE_ACCOUNT_PREFIX) {
                return managed_seed_needs_bootstrap(attributes, seed, attributes.namespace, name);
            }
            own(
                seed,
                [(attributes.namespace == names::seed_namespace(seed)).then_some(seed)],
            )
        }
        (CORE, "shootstates") => {
            let shoot: Shoot = other(attributes, attributes.namespace, attributes.name).map_err(Refusal::internal)?;
            own(
                seed,
                [shoot.spec.seed_name.as_deref(), shoot.status.seed_name.as_deref()],
            )
        }
        _ => Err(unexpected_resource(attributes)),
    }
}

/// Allows what is of the seed by one of its names.
fn own<'n>(seed: &str, names: impl IntoIterator<Item = Option<&'n str>>) -> Verdict {
    if names.into_iter().any(|name| name == Some(seed)) {
        return Ok(());
    }
    Err(Refusal::forbidden(format!(
        "object does not belong to seed {}",
        go_quote(seed)
    )))
}

fn on_seed(seed: &str, shoot: &Shoot) -> Verdict {
    own(seed, [shoot.spec.seed_name.as_deref()])
}

/// Allows an object that is made for a shoot of the seed, by its name.
fn of_shoot(attributes: &Attributes<'_>, seed: &str, suffixes: &[&str]) -> Verdict {
    let Some(name) = names::shoot_of(attributes.name, suffixes) else {
        return own(seed, [None]);
    };
    let shoot: Shoot = other(attributes, attributes.namespace, name).map_err(Refusal::forbidden)?;
    on_seed(seed, &shoot)
}

fn backup_bucket(attributes: &Attributes<'_>, seed: &str) -> Verdict {
    if attributes.operation == Operation::Create {
        let bucket: BackupBucket = object(attributes)?;
        return own(seed, [bucket.spec.seed_name.as_deref()]);
    }
    let found: Seed = other(attributes, "", seed).map_err(Refusal::internal)?;
    if found.metadata.uid.as_deref() != Some(attributes.name) {
        return Err(Refusal::forbidden("cannot delete unrelated BackupBucket"));
    }
    Ok(())
}

fn backup_entry(attributes: &Attributes<'_>, seed: &str) -> Verdict {
    let entry: BackupEntry = object(attributes)?;
    own(seed, [entry.spec.seed_name.as_deref()])?;
    if attributes.name.starts_with(names::BACKUP_SOURCE_PREFIX) {
        return source_entry(attributes, &entry);
    }
    let bucket: BackupBucket = other(attributes, "", &entry.spec.bucket_name).map_err(Refusal::internal)?;
    own(seed, [bucket.spec.seed_name.as_deref()])
}

/// The source of a migration: made while the shoot is restored, as a copy of the shoot's entry.
fn source_entry(attributes: &Attributes<'_>, entry: &BackupEntry) -> Verdict {
    let owners = entry.metadata.owner_references.iter().flatten();
    let owner = owners.into_iter().find(|owner| owner.kind == "Shoot");
    let name = owner.map_or("", |owner| owner.name.as_str());
    let shoot: Shoot = other(attributes, attributes.namespace, name).map_err(Refusal::internal)?;
    let operation = shoot.status.last_operation.as_ref();
    if !operation.is_some_and(|last| last.r#type == "Restore" && last.state == "Processing") {
        return Err(Refusal::forbidden(format!(
            "creation of source BackupEntry is only allowed during shoot Restore operation (shoot: {name})"
        )));
    }
    let prefix = format!("{}-", names::BACKUP_SOURCE_PREFIX);
    let original = attributes.name.strip_prefix(&prefix).unwrap_or(attributes.name);
    let found: BackupEntry = other(attributes, attributes.namespace, original)
        .map_err(|why| Refusal::forbidden(format!("could not find original BackupEntry {original}: {why}")))?;
    if found.spec != entry.spec {
        return Err(Refusal::forbidden(format!(
            "specification of source BackupEntry must equal specification of original BackupEntry {original}"
        )));
    }
    Ok(())
}

fn cluster_role_binding(attributes: &Attributes<'_>, seed: &str) -> Verdict {
    if !attributes.name.starts_with(bootstrap::BINDING_PREFIX) {
        return own(seed, [None]);
    }
    let binding: ClusterRoleBinding = object(attributes)?;
    let role = &binding.role_ref;
    if role.api_group.as_deref() != Some(RBAC)
        || role.kind != "ClusterRole"
        || role.name != bootstrap::BOOTSTRAPPER_ROLE
    {
        return Err(Refusal::forbidden(
            "can only bindings referring to the bootstrapper role",
        ));
    }
    let (namespace, name) = bootstrap::managed_seed_of_binding(attributes.name);
    managed_seed_needs_bootstrap(attributes, seed, namespace, name)
}

fn lease(attributes: &Attributes<'_>, seed: &str, extension: bool) -> Verdict {
    if extension {
        if attributes.namespace == names::seed_namespace(seed) {
            return Ok(());
        }
        return Err(Refusal::forbidden(format!(
            "extension client can only create leases in the namespace for seed {}",
            go_quote(seed)
        )));
    }
    // the garden may be a seed, too
    if attributes.name == "gardenlet-leader-election" {
        return Ok(());
    }
    let of_seeds = attributes.namespace == names::SEED_LEASE_NAMESPACE;
    own(seed, [of_seeds.then_some(attributes.name)])
}

fn secret(attributes: &Attributes<'_>, seed: &str) -> Verdict {
    let (namespace, name) = (attributes.namespace, attributes.name);
    if let Some(bucket) = name.strip_prefix(names::GENERATED_BUCKET_PREFIX) {
        let bucket: BackupBucket = other(attributes, "", bucket).map_err(Refusal::forbidden)?;
        return own(seed, [bucket.spec.seed_name.as_deref()]);
    }
    if names::shoot_of(name, &names::SECRETS).is_some() {
        return of_shoot(attributes, seed, &names::SECRETS);
    }
    if namespace == names::SHOOT_ISSUER_NAMESPACE {
        return issuer(attributes, seed);
    }
    if name.starts_with(bootstrap::TOKEN_SECRET_PREFIX) && namespace == names::KUBE_SYSTEM {
        return bootstrap_token(attributes, seed);
    }
    if is_backup_of_managed_seed(attributes, seed)? {
        return Ok(());
    }
    own(seed, [None])
}

/// The public keys of a shoot's managed issuer.
fn issuer(attributes: &Attributes<'_>, seed: &str) -> Verdict {
    let secret: Secret = object(attributes)?;
    let labels = secret.metadata.labels.unwrap_or_default();
    let label = |key: &str| {
        let found = labels.get(key).map(String::as_str);
        found.ok_or_else(|| Refusal::unprocessable(format!("label {} is missing", go_quote(key))))
    };
    let (name, namespace) = (label(SHOOT_NAME)?, label(SHOOT_NAMESPACE)?);
    let (key, value) = PUBLIC_KEYS;
    if label(key)? != value {
        return Err(Refusal::unprocessable(format!(
            "label {} value must be set to {}",
            go_quote(key),
            go_quote(value)
        )));
    }
    let shoot: Shoot = other(attributes, namespace, name).map_err(Refusal::forbidden)?;
    on_seed(seed, &shoot)
}

/// A token with which a ManagedSeed's or a Gardenlet's gardenlet gets in for the first time.
fn bootstrap_token(attributes: &Attributes<'_>, seed: &str) -> Verdict {
    let secret: Secret = object(attributes)?;
    let type_ = secret.type_.unwrap_or_default();
    if type_ != "bootstrap.kubernetes.io/token" {
        return Err(Refusal::unprocessable(format!(
            "unexpected secret type: {}",
            go_quote(&type_)
        )));
    }
    let data = secret.data.unwrap_or_default();
    for key in ["usage-bootstrap-authentication", "usage-bootstrap-signing"] {
        if data.get(key).map(|value| value.0.as_slice()) != Some(b"true") {
            return Err(Refusal::unprocessable(format!(
                "{} must be set to 'true'",
                go_quote(key)
            )));
        }
    }
    const GROUPS: &str = "auth-extra-groups";
    if data.contains_key(GROUPS) {
        return Err(Refusal::unprocessable(format!("{} must not be set", go_quote(GROUPS))));
    }
    let description = data
        .get("description")
        .map(|value| value.0.as_slice())
        .unwrap_or_default();
    let description = String::from_utf8_lossy(description);
    let (kind, namespace, name) = bootstrap::read_description(&description);
    match kind {
        Some(Bootstrapped::ManagedSeed) => managed_seed_needs_bootstrap(attributes, seed, namespace, name),
        Some(Bootstrapped::Gardenlet) => gardenlet_needs_bootstrap(attributes, seed, namespace, name),
        None => Err(Refusal::bad_request(format!(
            "unknown kind \"\" found in bootstrap token secret description {}",
            go_quote(&description)
        ))),
    }
}

/// Whether a Secret holds the credentials of backups of a seed that runs on this one.
fn is_backup_of_managed_seed(attributes: &Attributes<'_>, seed: &str) -> Result<bool, Refusal> {
    for managed in lookup::list::<ManagedSeed>(attributes.context.lister, None) {
        let shoot = shoot_of(attributes, &managed)?;
        if on_seed(seed, &shoot).is_err() {
            continue;
        }
        let name = go_quote(managed.metadata.name.as_deref().unwrap_or_default());
        let config = managed
            .spec
            .gardenlet
            .config
            .as_ref()
            .ok_or_else(|| Refusal::internal(format!("no gardenlet config provided in object: {name}")))?;
        let template = config.get("seedConfig").filter(|template| !template.is_null());
        let template =
            template.ok_or_else(|| Refusal::internal(format!("seed template is nil for ManagedSeed {name}")))?;
        let text = |key: &str| {
            let reference = template.at("/spec/backup/credentialsRef");
            reference
                .and_then(|reference| reference.get(key)?.as_str())
                .unwrap_or_default()
        };
        let named = text("namespace") == attributes.namespace && text("name") == attributes.name;
        if text("apiVersion") == "v1" && text("kind") == "Secret" && named {
            return Ok(true);
        }
    }
    Ok(false)
}

fn shoot_of(attributes: &Attributes<'_>, managed: &ManagedSeed) -> Result<Shoot, Refusal> {
    let namespace = managed.metadata.namespace.as_deref().unwrap_or_default();
    let name = managed.spec.shoot.as_ref().map_or("", |shoot| shoot.name.as_str());
    other(attributes, namespace, name).map_err(Refusal::internal)
}

fn of_seed(attributes: &Attributes<'_>, seed: &str) -> Verdict {
    let refused = match own(seed, [Some(attributes.name)]) {
        Err(refused) if attributes.operation == Operation::Delete => refused,
        verdict => return verdict,
    };
    // who runs a seed deletes it with its ManagedSeed, which gardenlets may not delete
    let Ok(managed) = other::<ManagedSeed>(attributes, GARDEN_NAMESPACE, attributes.name) else {
        return Err(refused);
    };
    if managed.metadata.deletion_timestamp.is_none() {
        return Err(Refusal::forbidden(
            "object can only be deleted if corresponding ManagedSeed has a deletion timestamp",
        ));
    }
    if managed.spec.shoot.is_none() {
        return Err(refused);
    }
    on_seed(seed, &shoot_of(attributes, &managed)?)
}

fn renews(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    let asked = annotations.and_then(|all| all.get(annotation::OPERATION));
    asked.map(String::as_str) == Some(operation::RENEW_KUBECONFIG)
}

fn has_expired(attributes: &Attributes<'_>, seed: &Seed) -> bool {
    let expires = seed.status.client_certificate_expiration_timestamp.as_ref();
    expires.is_some_and(|expires| expires.0 < attributes.context.now)
}

/// Allows what lets a ManagedSeed's gardenlet in, while it cannot get in otherwise and the ManagedSeed runs on the seed.
fn managed_seed_needs_bootstrap(attributes: &Attributes<'_>, seed: &str, namespace: &str, name: &str) -> Verdict {
    let managed: ManagedSeed = other(attributes, namespace, name).map_err(Refusal::forbidden)?;
    on_seed(seed, &shoot_of(attributes, &managed)?)?;
    let Ok(registered) = other::<Seed>(attributes, "", name) else {
        return Ok(());
    };
    if has_expired(attributes, &registered) || renews(&managed.metadata) {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "managed seed {namespace}/{name} is already bootstrapped"
    )))
}

/// Allows a new token for the seed's own gardenlet, when its certificate has expired or a new one is asked for.
fn gardenlet_needs_bootstrap(attributes: &Attributes<'_>, seed: &str, namespace: &str, name: &str) -> Verdict {
    if name != seed || namespace != GARDEN_NAMESPACE {
        return Err(Refusal::forbidden(format!(
            "gardenlet {namespace}/{name} does not belong to seed {}",
            go_quote(seed)
        )));
    }
    let gardenlet: Gardenlet = other(attributes, namespace, name).map_err(Refusal::forbidden)?;
    let registered: Seed = other(attributes, "", name).map_err(Refusal::forbidden)?;
    if has_expired(attributes, &registered) || renews(&gardenlet.metadata) {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "gardenlet {namespace}/{name} is already bootstrapped"
    )))
}
