//! What gardenlets and extensions of self-hosted shoots may do, and gardenadm, which connects such a shoot [AUTH-40].

use gardener_apis::constants::{GARDEN_NAMESPACE, label, role};

use crate::belongings::Belongings;
use crate::bootstrap;
use crate::identity::{Client, SeedIdentity, ShootIdentity};
use crate::names;
use crate::request::{
    Answer, CHANGED, Checker, GET, KEPT, MADE, NOTHING, READ, READ_ALL, Request, Rule, WORKLOAD_IDENTITY, check_verb,
};
use crate::seeds::{self, ALL_VERBS, CERTIFICATES, COORDINATION, CORE, EVENTS, OPERATIONS, SECURITY, SEEDMANAGEMENT};
use crate::vertex::Kind;

/// Tells the description of the bootstrap token whose Secret in namespace kube-system has this name; none when there is no such Secret.
pub type Description<'d> = &'d dyn Fn(&str) -> Option<String>;

/// Whether somebody who acts for a self-hosted shoot may do something with a resource.
pub fn authorize(
    belongings: &Belongings,
    who: ShootIdentity<'_>,
    request: &Request<'_>,
    description: Description<'_>,
) -> Answer {
    if who.client == Client::Gardenadm {
        return gardenadm(who, request);
    }
    let extension = who.client == Client::Extension;
    // extensions keep their identity when their shoot becomes a seed
    let is_seed = || who.namespace == GARDEN_NAMESPACE && belongings.shoots().has_vertex(Kind::Seed, "", who.shoot);
    if extension && is_seed() {
        let seed = SeedIdentity {
            seed: who.shoot,
            client: Client::Extension,
        };
        // as upstream, which does not pass selectors on
        let request = Request {
            field_selector: "",
            label_selector: "",
            ..*request
        };
        if seeds::authorize(belongings, seed, &request) == Answer::Allow {
            return Answer::Allow;
        }
    }
    let check = Checker {
        graph: belongings.shoots(),
        namespace: who.namespace,
        name: who.shoot,
    };
    let by_shoot = [
        ("spec.shootRef.name", who.shoot),
        ("spec.shootRef.namespace", who.namespace),
    ];
    let prefixed = format!("{}{}", names::SELF_HOSTED_PREFIX, who.shoot);
    let reads = matches!(request.verb, "get" | "list" | "watch");
    match (request.group, request.resource) {
        (CORE, "backupbuckets") => check.check(
            Kind::BackupBucket,
            request,
            &Rule {
                verbs: &["delete", "get", "list", "patch", "update", "watch"],
                always: &["create"],
                subresources: &["finalizers", "status"],
                fields: &by_shoot,
                ..NOTHING
            },
        ),
        (CORE, "backupentries") => check.check(
            Kind::BackupEntry,
            request,
            &Rule {
                verbs: &["delete", "get", "list", "patch", "update", "watch"],
                always: &["create"],
                subresources: &["status"],
                fields: &by_shoot,
                ..NOTHING
            },
        ),
        (OPERATIONS, "bastions") => check.check(
            Kind::Bastion,
            request,
            &Rule {
                subresources: &["status"],
                namespaces: &[who.namespace],
                fields: &by_shoot[..1],
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
                subresources: &["shootclient"],
                ..READ
            },
        ),
        ("", "configmaps") => check.check(Kind::ConfigMap, request, &KEPT),
        (CORE, "internalsecrets") => check.check(Kind::InternalSecret, request, &KEPT),
        (CORE, "controllerdeployments") => check.check(Kind::ControllerDeployment, request, &READ),
        (CORE, "controllerinstallations") => check.check(
            Kind::ControllerInstallation,
            request,
            &Rule {
                subresources: &["status"],
                fields: &by_shoot,
                ..CHANGED
            },
        ),
        (CORE, "controllerregistrations") => check.check(Kind::ControllerRegistration, request, &READ_ALL),
        ("" | EVENTS, "events") => seeds::event(request),
        (SEEDMANAGEMENT, "gardenlets") => check.check(
            Kind::Gardenlet,
            request,
            &Rule {
                always: &["create"],
                subresources: &["status"],
                namespaces: &[who.namespace],
                fields: &[("metadata.name", &prefixed)],
                ..CHANGED
            },
        ),
        (COORDINATION, "leases") if extension => lease_of_extension(who, request),
        (COORDINATION, "leases") => check.check(
            Kind::Lease,
            request,
            &Rule {
                always: &["create"],
                ..CHANGED
            },
        ),
        (SEEDMANAGEMENT, "managedseeds") => check.check(
            Kind::ManagedSeed,
            request,
            &Rule {
                subresources: &["status"],
                namespaces: &[who.namespace],
                fields: &[("spec.shoot.name", who.shoot)],
                ..CHANGED
            },
        ),
        ("", "secrets") => secret(&check, who, request, description),
        // the Seed that has the shoot's name
        (CORE, "seeds") if reads && (request.name.is_empty() || request.name == who.shoot) => Answer::Allow,
        (CORE, "seeds") => check.check(
            Kind::Seed,
            request,
            &Rule {
                verbs: &["delete", "get"],
                always: &["list", "watch"],
                ..NOTHING
            },
        ),
        ("", "namespaces") => check.check(Kind::Namespace, request, &READ),
        (CORE, "projects") => check.check(Kind::Project, request, &READ),
        ("", "serviceaccounts") if extension => check.check(Kind::ServiceAccount, request, &GET),
        ("", "serviceaccounts") => service_account(&check, who, request),
        // its own Shoot, even before it is there
        (CORE, "shoots") if reads && request.name == who.shoot && request.namespace == who.namespace => Answer::Allow,
        (CORE, "shoots") => check.check(
            Kind::Shoot,
            request,
            &Rule {
                verbs: &["patch", "update"],
                subresources: &["status"],
                ..NOTHING
            },
        ),
        (CORE, "shootstates") => check.check(
            Kind::ShootState,
            request,
            &Rule {
                verbs: &["get", "list", "patch", "watch"],
                always: &["create"],
                ..NOTHING
            },
        ),
        (SECURITY, "workloadidentities") => check.check(Kind::WorkloadIdentity, request, &WORKLOAD_IDENTITY),
        _ => Answer::silent(),
    }
}

fn lease_of_extension(who: ShootIdentity<'_>, request: &Request<'_>) -> Answer {
    let no = |why: &str| Answer::NoOpinion(why.to_owned());
    if request.namespace != who.namespace {
        return no("lease object is not in shoot namespace");
    }
    let own = request.name.strip_prefix(who.shoot);
    if !request.name.is_empty() && !own.is_some_and(|rest| rest.starts_with("--")) {
        return no("lease object name does not have the shoot name as prefix");
    }
    check_verb(request, &ALL_VERBS).map_or_else(|answer| answer, |()| Answer::Allow)
}

fn service_account(check: &Checker<'_>, who: ShootIdentity<'_>, request: &Request<'_>) -> Answer {
    let of_own_extension = format!("{}{}--", names::SHOOT_EXTENSION_ACCOUNT_PREFIX, who.shoot);
    if request.namespace == who.namespace && request.name.starts_with(&of_own_extension) {
        return Answer::Allow;
    }
    check.check(Kind::ServiceAccount, request, &MADE)
}

fn secret(check: &Checker<'_>, who: ShootIdentity<'_>, request: &Request<'_>, description: Description<'_>) -> Answer {
    // how the landscape manages issuers
    if who.client == Client::Gardenlet
        && matches!(request.verb, "list" | "watch")
        && request.namespace == GARDEN_NAMESPACE
    {
        let issuer = Rule {
            verbs: &["list", "watch"],
            namespaces: &[GARDEN_NAMESPACE],
            label: Some((label::ROLE, role::SHOOT_SERVICE_ACCOUNT_ISSUER)),
            ..NOTHING
        };
        return check.check(Kind::Secret, request, &issuer);
    }
    let token = request.namespace == names::KUBE_SYSTEM && request.name.starts_with(bootstrap::TOKEN_SECRET_PREFIX);
    match request.verb {
        "get" | "list" | "watch" if token => {
            let own = bootstrap::token_secret(who.namespace, who.shoot);
            if request.name == own {
                return Answer::Allow;
            }
            return Answer::NoOpinion(format!(
                "bootstrap token secret name {} does not match expected name {own} for shoot {}/{}",
                request.name, who.namespace, who.shoot
            ));
        }
        "delete" if token => match description(request.name).map(|text| bootstrap::shoot_of_description(&text)) {
            Some(Err(why)) => return Answer::NoOpinion(why),
            Some(Ok(Some((namespace, name)))) => {
                if namespace == who.namespace && name == who.shoot {
                    return Answer::Allow;
                }
                return Answer::NoOpinion(format!(
                    "shoot meta in bootstrap token secret {namespace}/{name} does not match with identity of requestor {}/{}",
                    who.namespace, who.shoot
                ));
            }
            // it may be a ManagedSeed's
            None | Some(Ok(None)) => {}
        },
        _ => {}
    }
    check.check(Kind::Secret, request, &KEPT)
}

/// What gardenadm may do: put the shoot and what it refers to into the garden.
fn gardenadm(who: ShootIdentity<'_>, request: &Request<'_>) -> Answer {
    let own_namespace = request.namespace == who.namespace;
    Answer::allow_if(match (request.group, request.resource) {
        (CORE, "cloudprofiles" | "controllerdeployments" | "controllerregistrations") => request.verb == "get",
        (CORE, "projects") => request.verb == "create",
        ("", "configmaps" | "secrets")
        | (CORE, "secretbindings")
        | (SECURITY, "credentialsbindings" | "workloadidentities") => own_namespace && request.verb == "create",
        (CORE, "shoots") => {
            let status = request.name == who.shoot && request.verb == "patch" && request.subresource == "status";
            own_namespace && (matches!(request.verb, "create" | "patch" | "mark-self-hosted") || status)
        }
        _ => false,
    })
}
