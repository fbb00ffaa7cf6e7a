//! [ADM-78]: what gardenlets and extensions of self-hosted shoots may create, which ManagedSeeds they may change, and what gardenadm may create.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::{BackupBucket, BackupEntry, Project, Shoot};
use gardener_apis::seedmanagement::v1alpha1::ManagedSeed;
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use gardener_garden_authorizer::bootstrap::{self, Bootstrapped};
use gardener_garden_authorizer::identity::{self, Client, ShootIdentity};
use gardener_garden_authorizer::names;
use gardener_rules::csr_approval::gardenlets;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};

use super::*;

const WEBHOOK: &str = "shoot-restriction.gardener.cloud";

/// [ADM-78].
pub(in super::super) struct ShootRestriction;

#[async_trait]
impl Admission for ShootRestriction {
    fn name(&self) -> &'static str {
        WEBHOOK
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let user = attributes.context.user;
        if !attributes.subresource.is_empty() {
            return Ok(());
        }
        let Some(who) = identity::of_shoot(&user.name, &user.groups) else {
            return Ok(());
        };
        if !looks_at(attributes, who.client) {
            return Ok(());
        }
        let verdict = match who.client {
            Client::Gardenadm => gardenadm(attributes, who),
            Client::Gardenlet | Client::Extension => judge(attributes, who),
        };
        verdict.map_err(|refusal| refusal.told_by(WEBHOOK))
    }
}

/// The writes that are looked at.
fn looks_at(attributes: &Attributes<'_>, client: Client) -> bool {
    let definition = attributes.definition;
    match (definition.group.as_str(), definition.plural.as_str()) {
        (SEEDMANAGEMENT, "managedseeds") => attributes.operation == Operation::Update,
        (SECURITY, "workloadidentities") => attributes.operation == Operation::Create && client == Client::Gardenadm,
        ("", "configmaps" | "secrets" | "serviceaccounts")
        | (COORDINATION, "leases")
        | (CERTIFICATES, "certificatesigningrequests")
        | (CORE, "backupbuckets" | "backupentries" | "internalsecrets" | "projects" | "shoots" | "shootstates")
        | (SEEDMANAGEMENT, "gardenlets") => attributes.operation == Operation::Create,
        _ => false,
    }
}

fn foreign(who: ShootIdentity<'_>) -> Refusal {
    Refusal::forbidden(format!(
        "object does not belong to shoot {}/{}",
        who.namespace, who.shoot
    ))
}

/// Allows what is of the shoot.
fn own(who: ShootIdentity<'_>, namespace: &str, shoot: &str) -> Verdict {
    if namespace == who.namespace && shoot == who.shoot {
        return Ok(());
    }
    Err(foreign(who))
}

fn own_reference(who: ShootIdentity<'_>, reference: Option<&ObjectReference>) -> Verdict {
    let reference = reference.ok_or_else(|| foreign(who))?;
    own(
        who,
        reference.namespace.as_deref().unwrap_or_default(),
        reference.name.as_deref().unwrap_or_default(),
    )
}

/// Allows an object that is made for the shoot, by its name.
fn by_suffix(attributes: &Attributes<'_>, who: ShootIdentity<'_>, suffixes: &[&str]) -> Verdict {
    let shoot = names::shoot_of(attributes.name, suffixes).ok_or_else(|| foreign(who))?;
    own(who, attributes.namespace, shoot)
}

/// Allows an object that carries the shoot's name behind the prefix of self-hosted shoots.
fn by_prefix(attributes: &Attributes<'_>, who: ShootIdentity<'_>) -> Verdict {
    let Some(shoot) = attributes.name.strip_prefix(names::SELF_HOSTED_PREFIX) else {
        return Err(Refusal::bad_request(format!(
            "the resource for self-hosted shoots must be prefixed with {}",
            go_quote(names::SELF_HOSTED_PREFIX)
        )));
    };
    own(who, attributes.namespace, shoot)
}

fn judge(attributes: &Attributes<'_>, who: ShootIdentity<'_>) -> Verdict {
    let extension = who.client == Client::Extension;
    let definition = attributes.definition;
    match (definition.group.as_str(), definition.plural.as_str()) {
        (CORE, "backupbuckets") => {
            let bucket: BackupBucket = object(attributes)?;
            own_reference(who, bucket.spec.shoot_ref.as_ref())
        }
        (CORE, "backupentries") => {
            let entry: BackupEntry = object(attributes)?;
            own_reference(who, entry.spec.shoot_ref.as_ref())?;
            let bucket: BackupBucket = other(attributes, "", &entry.spec.bucket_name).map_err(Refusal::forbidden)?;
            own_reference(who, bucket.spec.shoot_ref.as_ref())
        }
        (CERTIFICATES, _) if extension => Err(Refusal::forbidden(
            "only gardenlet clients may create CertificateSigningRequests",
        )),
        (CERTIFICATES, _) => {
            let request = signing_request(attributes)?;
            let (namespace, shoot) = gardenlets::shoot_client(&request)
                .map_err(|why| Refusal::forbidden(format!("can only create CSRs for shoot clusters: {why}")))?;
            own(who, namespace, shoot)
        }
        ("", "configmaps") => by_suffix(attributes, who, &names::CONFIG_MAPS),
        (CORE, "internalsecrets") => by_suffix(attributes, who, &names::INTERNAL_SECRETS),
        (SEEDMANAGEMENT, "gardenlets") => by_prefix(attributes, who),
        (COORDINATION, _) if extension => lease_of_extension(attributes, who),
        (COORDINATION, _) => by_prefix(attributes, who),
        (SEEDMANAGEMENT, "managedseeds") => {
            let managed: ManagedSeed =
                other(attributes, attributes.namespace, attributes.name).map_err(Refusal::forbidden)?;
            let shoot = managed.spec.shoot.as_ref().map_or("", |shoot| shoot.name.as_str());
            own(who, attributes.namespace, shoot)
        }
        ("", "secrets") => secret(attributes, who),
        ("", "serviceaccounts") if extension => {
            Err(Refusal::forbidden("extension client may not create ServiceAccounts"))
        }
        ("", "serviceaccounts") => match names::shoot_of_extension_account(attributes.name) {
            Some(_) if of_own_extension(attributes, who) => Ok(()),
            _ => Err(foreign(who)),
        },
        (CORE, "shootstates") => own(who, attributes.namespace, attributes.name),
        _ => Err(unexpected_resource(attributes)),
    }
}

/// Names of shoots may hold two dashes themselves, so the shoot's own name is compared.
fn of_own_extension(attributes: &Attributes<'_>, who: ShootIdentity<'_>) -> bool {
    let prefix = format!("{}{}--", names::SHOOT_EXTENSION_ACCOUNT_PREFIX, who.shoot);
    attributes.namespace == who.namespace && attributes.name.starts_with(&prefix)
}

fn lease_of_extension(attributes: &Attributes<'_>, who: ShootIdentity<'_>) -> Verdict {
    if attributes.namespace != who.namespace {
        return Err(Refusal::forbidden(format!(
            "extension client can only create leases in the namespace for shoot {}",
            go_quote(&format!("{}/{}", who.namespace, who.shoot))
        )));
    }
    if !attributes.name.starts_with(&format!("{}--", who.shoot)) {
        return Err(Refusal::forbidden(format!(
            "extension client can only create leases with the shoot name {} as prefix",
            go_quote(who.shoot)
        )));
    }
    Ok(())
}

fn secret(attributes: &Attributes<'_>, who: ShootIdentity<'_>) -> Verdict {
    let name = attributes.name;
    if names::shoot_of(name, &names::SECRETS).is_some() {
        return by_suffix(attributes, who, &names::SECRETS);
    }
    if let Some(bucket) = name.strip_prefix(names::GENERATED_BUCKET_PREFIX) {
        let found: BackupBucket = other(attributes, "", bucket).map_err(Refusal::forbidden)?;
        if found.spec.shoot_ref.is_none() {
            return Err(Refusal::forbidden(format!(
                ".spec.shootRef must be set in the BackupBucket resource {} belonging to this Secret",
                go_quote(bucket)
            )));
        }
        return own_reference(who, found.spec.shoot_ref.as_ref());
    }
    if attributes.namespace != names::KUBE_SYSTEM || !name.starts_with(bootstrap::TOKEN_SECRET_PREFIX) {
        return Err(foreign(who));
    }
    let secret: Secret = object(attributes)?;
    let data = secret.data.unwrap_or_default();
    let description = data
        .get("description")
        .map(|value| value.0.as_slice())
        .unwrap_or_default();
    let description = String::from_utf8_lossy(description);
    let (kind, namespace, name) = bootstrap::read_description(&description);
    match kind {
        Some(Bootstrapped::ManagedSeed) => {
            let managed: ManagedSeed = other(attributes, namespace, name).map_err(Refusal::forbidden)?;
            let shoot = managed.spec.shoot.as_ref().map_or("", |shoot| shoot.name.as_str());
            own(who, namespace, shoot)
        }
        Some(Bootstrapped::Gardenlet) => own(
            who,
            namespace,
            name.strip_prefix(names::SELF_HOSTED_PREFIX).unwrap_or(name),
        ),
        None => Err(foreign(who)),
    }
}

/// What gardenadm puts into the garden: the shoot, its project and what the shoot refers to.
fn gardenadm(attributes: &Attributes<'_>, who: ShootIdentity<'_>) -> Verdict {
    let definition = attributes.definition;
    let own_namespace = match (definition.group.as_str(), definition.plural.as_str()) {
        ("", "configmaps" | "secrets") | (SECURITY, "workloadidentities") => attributes.namespace == who.namespace,
        (CORE, "projects") => {
            let project: Project = object(attributes)?;
            project.spec.namespace.unwrap_or_default() == who.namespace
        }
        (CORE, "shoots") => {
            let _: Shoot = object(attributes)?;
            return own(who, attributes.namespace, attributes.name);
        }
        _ => return Err(unexpected_resource(attributes)),
    };
    own_namespace.then_some(()).ok_or_else(|| foreign(who))
}
