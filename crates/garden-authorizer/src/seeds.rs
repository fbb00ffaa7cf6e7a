//! What gardenlets and extensions of seeds may do [AUTH-1] [AUTH-4] [AUTH-5].

use gardener_apis::constants::{GARDEN_NAMESPACE, label};

use crate::belongings::Belongings;
use crate::bootstrap;
use crate::identity::{Client, SeedIdentity};
use crate::names;
use crate::request::{
    Answer, CHANGED, Checker, GET, KEPT, MADE, NOTHING, READ, READ_ALL, Request, Rule, WORKLOAD_IDENTITY,
    check_subresource, check_verb,
};
use crate::vertex::Kind;

pub(crate) const CORE: &str = "core.gardener.cloud";
pub(crate) const SECURITY: &str = "security.gardener.cloud";
pub(crate) const SEEDMANAGEMENT: &str = "seedmanagement.gardener.cloud";
pub(crate) const OPERATIONS: &str = "operations.gardener.cloud";
pub(crate) const CERTIFICATES: &str = "certificates.k8s.io";
pub(crate) const COORDINATION: &str = "coordination.k8s.io";
pub(crate) const EVENTS: &str = "events.k8s.io";
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";

/// All verbs but those of subresources.
pub(crate) const ALL_VERBS: [&str; 8] = [
    "create",
    "get",
    "list",
    "watch",
    "update",
    "patch",
    "delete",
    "deletecollection",
];

/// Whether somebody who acts for a seed may do something with a resource.
pub fn authorize(belongings: &Belongings, who: SeedIdentity<'_>, request: &Request<'_>) -> Answer {
    let seed = who.seed;
    let check = Checker {
        graph: belongings.seeds(),
        namespace: "",
        name: seed,
    };
    let extension = who.client == Client::Extension;
    let own_label = format!("{}{seed}", label::SEED_NAME_PREFIX);
    let own_label = Some((own_label.as_str(), "true"));
    match (request.group, request.resource) {
        (CORE, "backupbuckets") => check.check(
            Kind::BackupBucket,
            request,
            &Rule {
                verbs: &["delete", "patch", "update"],
                always: &["create", "get", "list", "watch"],
                subresources: &["finalizers", "status"],
                ..NOTHING
            },
        ),
        (CORE, "backupentries") => check.check(
            Kind::BackupEntry,
            request,
            &Rule {
                verbs: &["delete", "patch", "update"],
                always: &["create", "get", "list", "watch"],
                subresources: &["status"],
                ..NOTHING
            },
        ),
        (OPERATIONS, "bastions") => check.check(
            Kind::Bastion,
            request,
            &Rule {
                always: &["create"],
                subresources: &["status"],
                fields: &[("spec.seedName", seed)],
                ..CHANGED
            },
        ),
        (CERTIFICATES, "certificatesigningrequests") if extension => {
            check.check(Kind::CertificateSigningRequest, request, &READ)
        }
        (CERTIFICATES, "certificatesigningrequests") => check.check(
            Kind::CertificateSigningRequest,
            request,
            &Rule {
                always: &["create"],
                subresources: &["seedclient"],
                ..READ
            },
        ),
        (CORE, "cloudprofiles") => check.check(Kind::CloudProfile, request, &READ),
        (CORE, "namespacedcloudprofiles") => check.check(Kind::NamespacedCloudProfile, request, &READ),
        (RBAC, "clusterrolebindings") if extension => check.check(Kind::ClusterRoleBinding, request, &GET),
        (RBAC, "clusterrolebindings") => cluster_role_binding(&check, request),
        ("", "configmaps") => config_map(&check, request),
        (CORE, "controllerdeployments") => check.check(Kind::ControllerDeployment, request, &READ),
        (CORE, "controllerinstallations") => check.check(
            Kind::ControllerInstallation,
            request,
            &Rule {
                subresources: &["status"],
                fields: &[("spec.seedRef.name", seed)],
                ..CHANGED
            },
        ),
        (CORE, "controllerregistrations") => check.check(Kind::ControllerRegistration, request, &READ_ALL),
        (SECURITY, "credentialsbindings") => check.check(Kind::CredentialsBinding, request, &READ),
        ("" | EVENTS, "events") => event(request),
        (CORE, "exposureclasses") => check.check(Kind::ExposureClass, request, &READ),
        (CORE, "internalsecrets") => check.check(Kind::InternalSecret, request, &KEPT),
        (COORDINATION, "leases") if extension => lease_of_extension(seed, request),
        (COORDINATION, "leases") => check.check(
            Kind::Lease,
            request,
            &Rule {
                always: &["create"],
                ..CHANGED
            },
        ),
        (SEEDMANAGEMENT, "gardenlets") => check.check(
            Kind::Gardenlet,
            request,
            &Rule {
                always: &["create"],
                subresources: &["status"],
                namespaces: &[GARDEN_NAMESPACE],
                fields: &[("metadata.name", seed)],
                ..CHANGED
            },
        ),
        (SEEDMANAGEMENT, "managedseeds") => check.check(
            Kind::ManagedSeed,
            request,
            &Rule {
                subresources: &["status"],
                label: own_label,
                ..CHANGED
            },
        ),
        ("", "namespaces") => check.check(Kind::Namespace, request, &READ),
        (CORE, "projects") => check.check(Kind::Project, request, &READ),
        (CORE, "secretbindings") => check.check(Kind::SecretBinding, request, &READ),
        ("", "secrets") => secret(&check, request),
        (SECURITY, "workloadidentities") => check.check(Kind::WorkloadIdentity, request, &WORKLOAD_IDENTITY),
        (CORE, "seeds") => check.check(
            Kind::Seed,
            request,
            &Rule {
                verbs: &["delete", "get", "list", "patch", "update", "watch"],
                always: &["create"],
                subresources: &["status"],
                label: own_label,
                ..NOTHING
            },
        ),
        ("", "serviceaccounts") if extension => check.check(Kind::ServiceAccount, request, &GET),
        ("", "serviceaccounts") => service_account(&check, request),
        (CORE, "shoots") => {
            // its own Shoot, when the seed is a self-hosted one
            if request.verb == "get" && request.namespace == GARDEN_NAMESPACE && request.name == seed {
                return Answer::Allow;
            }
            check.check(
                Kind::Shoot,
                request,
                &Rule {
                    subresources: &["finalizers", "status"],
                    label: own_label,
                    ..CHANGED
                },
            )
        }
        (CORE, "shootstates") => check.check(Kind::ShootState, request, &KEPT),
        _ => Answer::silent(),
    }
}

/// Events are written, whatever they are about.
pub(crate) fn event(request: &Request<'_>) -> Answer {
    let checked = check_verb(request, &["create", "patch"]).and_then(|()| check_subresource(request, &[]));
    checked.map_or_else(|answer| answer, |()| Answer::Allow)
}

fn cluster_role_binding(check: &Checker<'_>, request: &Request<'_>) -> Answer {
    // its own, after it got in: then there may be no Seed yet
    if request.verb == "delete" && request.name.starts_with(bootstrap::BINDING_PREFIX) {
        let (namespace, name) = bootstrap::managed_seed_of_binding(request.name);
        if namespace == GARDEN_NAMESPACE && name == check.name {
            return Answer::Allow;
        }
    }
    check.check(Kind::ClusterRoleBinding, request, &MADE)
}

fn config_map(check: &Checker<'_>, request: &Request<'_>) -> Answer {
    if request.verb == "get" && request.namespace == names::PUBLIC_NAMESPACE && request.name == "gardener-info" {
        return Answer::Allow;
    }
    check.check(Kind::ConfigMap, request, &KEPT)
}

fn lease_of_extension(seed: &str, request: &Request<'_>) -> Answer {
    if request.namespace != names::seed_namespace(seed) {
        return Answer::NoOpinion("lease object is not in seed namespace".to_owned());
    }
    check_verb(request, &ALL_VERBS).map_or_else(|answer| answer, |()| Answer::Allow)
}

fn secret(check: &Checker<'_>, request: &Request<'_>) -> Answer {
    let seed = check.name;
    if matches!(request.verb, "get" | "list" | "watch") && request.namespace == names::seed_namespace(seed) {
        return Answer::Allow;
    }
    // its own bootstrap token, after it got in: then there may be no Seed yet
    if request.verb == "delete"
        && request.namespace == names::KUBE_SYSTEM
        && request.name == bootstrap::token_secret(GARDEN_NAMESPACE, seed)
    {
        return Answer::Allow;
    }
    check.check(
        Kind::Secret,
        request,
        &Rule {
            verbs: &["delete", "get", "patch", "update"],
            always: &["create"],
            ..NOTHING
        },
    )
}

fn service_account(check: &Checker<'_>, request: &Request<'_>) -> Answer {
    let seed = check.name;
    // its own, after it got in: then there may be no Seed yet
    if request.verb == "delete"
        && request.namespace == GARDEN_NAMESPACE
        && request.name.strip_prefix(bootstrap::SERVICE_ACCOUNT_PREFIX) == Some(seed)
    {
        return Answer::Allow;
    }
    if request.namespace == names::seed_namespace(seed) {
        return Answer::Allow;
    }
    check.check(Kind::ServiceAccount, request, &MADE)
}
