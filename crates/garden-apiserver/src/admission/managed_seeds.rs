//! Shoots that are seeds: they are fit for it, their seed's configuration follows them, and neither goes while it is used, [ADM-36], [ADM-62],
//! [ADM-63].

use std::collections::BTreeSet;

use std::sync::Arc;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apis::constants::GARDEN_NAMESPACE;
use gardener_apis::core::v1beta1::*;
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_apis::seedmanagement::v1alpha1::{ManagedSeed, seed_spec_of};
use gardener_apis::validation::{go_json, go_members, go_struct, shown};
use gardener_apiserver::definition::{Admission, Attributes, Lister, Operation};
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;

use super::dns::global_domains;
use super::seeds::{changed_default_domains, changes_internal_domain, removed_zones, users};
use super::{put, typed, typed_old};
use crate::lookup;

const NGINX: &str = "shoot ingress addon is not supported for managed seeds - use the managed seed ingress controller";
const VPA: &str = "shoot VPA has to be enabled for managed seeds";

/// The managed seed of a shoot.
fn of_shoot(lister: &dyn Lister, namespace: &str, shoot: &str) -> Option<ManagedSeed> {
    let mut all = lookup::list::<ManagedSeed>(lister, Some(namespace)).into_iter();
    all.find(|managed| managed.spec.shoot.as_ref().is_some_and(|own| own.name == shoot))
}

fn wants_vpa(shoot: &Shoot) -> bool {
    let vpa = shoot.spec.kubernetes.vertical_pod_autoscaler.as_ref();
    vpa.is_some_and(|vpa| vpa.enabled)
}

/// The zones of all pools.
fn zones(shoot: &Shoot) -> BTreeSet<&str> {
    let workers = shoot.spec.provider.workers.iter();
    workers.flat_map(|worker| &worker.zones).map(String::as_str).collect()
}

fn nodes(shoot: &Shoot) -> Option<&str> {
    shoot.spec.networking.as_ref()?.nodes.as_deref()
}

fn seed_spec(managed: &ManagedSeed) -> Option<SeedSpec> {
    seed_spec_of(managed.spec.gardenlet.config.as_ref())
}

/// [ADM-36].
pub(super) struct ShootManagedSeed;

#[async_trait]
impl Admission for ShootManagedSeed {
    fn name(&self) -> &'static str {
        "ShootManagedSeed"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.is("core.gardener.cloud", "shoots") || !attributes.subresource.is_empty() {
            return Ok(());
        }
        let (lister, namespace, name) = (attributes.context.lister, attributes.namespace, attributes.name);
        let managed = || of_shoot(lister, namespace, name);
        match attributes.operation {
            Operation::Delete if managed().is_some() => Err(attributes.forbidden(&format!(
                "cannot delete shoot {namespace}/{name} since it is still referenced by a managed seed"
            ))),
            Operation::Update => {
                let (Some(new), Some(old)) = (typed::<Shoot>(attributes), typed_old::<Shoot>(attributes)) else {
                    return Ok(());
                };
                let Some(managed) = managed() else { return Ok(()) };
                let seed = seed_spec(&managed)
                    .ok_or_else(|| ApiError::internal("seed template is unset in gardenlet config"))?;
                let errors = stays_fit(&new, &old, &seed);
                match errors.is_empty() {
                    true => Ok(()),
                    false => Err(attributes.invalid(&errors)),
                }
            }
            _ => Ok(()),
        }
    }
}

fn stays_fit(new: &Shoot, old: &Shoot, seed: &SeedSpec) -> ErrorList {
    let mut errors = ErrorList::new();
    if new.nginx_ingress_enabled() {
        let path = Path::new("spec.addons.nginxIngress.enabled");
        errors.push(Error::invalid(&path, true, NGINX));
    }
    if !wants_vpa(new) {
        let path = Path::new("spec.kubernetes.verticalPodAutoscaler.enabled");
        errors.push(Error::invalid(&path, false, VPA));
    }
    if nodes(old).is_some() && nodes(old) != nodes(new) {
        let path = Path::new("spec.networking.nodes");
        let why = "field is immutable for managed seeds";
        errors.push(Error::invalid(&path, shown(&nodes(new)), why));
    }
    let (kept, before) = (zones(new), zones(old));
    let used = |zone: &&&str| seed.provider.zones.iter().any(|own| own == **zone);
    if before.difference(&kept).any(|zone| used(&zone)) {
        // the path is upstream's
        let path = Path::new("spec.providers.workers");
        let why = "shoot worker zone(s) must not be removed as long as registered in managedseed";
        errors.push(Error::forbidden(&path, why));
    }
    errors
}

/// [ADM-63].
pub(super) struct ManagedSeedShoot;

#[async_trait]
impl Admission for ManagedSeedShoot {
    fn name(&self) -> &'static str {
        "ManagedSeedShoot"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let deletes = attributes.is("seedmanagement.gardener.cloud", "managedseeds")
            && attributes.operation == Operation::Delete
            && attributes.subresource.is_empty();
        let name = attributes.name;
        match deletes && !users(attributes.context.lister, name).is_empty() {
            true => Err(attributes.forbidden(&format!(
                "cannot delete managed seed {}/{name} since its seed {name} is still used by shoot(s)",
                attributes.namespace
            ))),
            false => Ok(()),
        }
    }
}

/// [ADM-62].
pub(super) struct ManagedSeedPlugin;

/// The managed seed of a write with its shoot; nothing if it names none, which validation tells.
fn concerned(attributes: &Attributes<'_>) -> Result<Option<(Arc<ManagedSeed>, Shoot)>, ApiError> {
    if !attributes.subresource.is_empty() || attributes.operation == Operation::Delete {
        return Ok(None);
    }
    let Some(managed) = typed::<ManagedSeed>(attributes) else {
        return Ok(None);
    };
    let Some(name) = managed
        .spec
        .shoot
        .as_ref()
        .map(|shoot| shoot.name.clone())
        .filter(|name| !name.is_empty())
    else {
        return Ok(None);
    };
    match lookup::named_shoot(attributes.context.lister, attributes.namespace, &name)? {
        Some(shoot) => Ok(Some((managed, shoot))),
        None => {
            let why = format!("shoot {}/{name} not found", attributes.namespace);
            let path = Path::new("spec.shoot.name");
            Err(attributes.invalid(&[Error::invalid(&path, name.as_str(), why)]))
        }
    }
}

#[async_trait]
impl Admission for ManagedSeedPlugin {
    fn name(&self) -> &'static str {
        "ManagedSeed"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let Some((managed, shoot)) = concerned(attributes)? else {
            return Ok(());
        };
        let mut managed = ManagedSeed::clone(&managed);
        if let Some(mut spec) = seed_spec(&managed) {
            let why = follow(attributes.context.lister, &mut spec, &shoot)?;
            let template = managed
                .spec
                .gardenlet
                .config
                .as_mut()
                .and_then(|config| config.get_mut("seedConfig"));
            if let Some(template) = template.and_then(Value::as_object_mut) {
                template.insert("spec".to_owned(), shown(&spec));
            }
            if let Some(why) = why {
                let path = Path::new("spec.gardenlet.config.seedConfig.spec.ingress");
                // as Go shows its internal form, which has not the names of JSON
                let ingress = spec.ingress.unwrap_or_default();
                let controller = go_struct(&[
                    ("Kind", ingress.controller.kind.into()),
                    ("ProviderConfig", ingress.controller.provider_config.into()),
                ]);
                let ingress = go_members(&[("Domain", go_json(&ingress.domain)), ("Controller", controller)]);
                return Err(attributes.invalid(&[Error::literal(&path, ingress, why)]));
            }
        }
        maintain_seed_labels(&mut managed.metadata, &[shoot.spec.seed_name.as_deref()]);
        put(attributes, managed);
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if attributes.is("seedmanagement.gardener.cloud", "managedseeds")
            && attributes.operation != Operation::Delete
            && attributes.subresource.is_empty()
            && attributes.namespace != GARDEN_NAMESPACE
        {
            let path = Path::new("metadata.namespace");
            let error = Error::invalid(&path, attributes.namespace, "namespace must be garden");
            return Err(attributes.invalid(&[error]));
        }
        let Some((managed, shoot)) = concerned(attributes)? else {
            return Ok(());
        };
        let told = |managed: &ManagedSeed| {
            seed_spec(managed).ok_or_else(|| {
                let name = managed.metadata.name.as_deref().unwrap_or_default();
                ApiError::unclassified(format!("no seed config found for managedseed {name}"))
            })
        };
        let mut errors = is_fit(attributes, &managed, &shoot);
        let old = typed_old::<ManagedSeed>(attributes).map(|old| told(&old)).transpose()?;
        let spec = told(&managed)?;
        errors.extend(follows(&spec, &shoot));
        errors.extend(changes(attributes, &spec, old.as_ref(), &shoot));
        match errors.is_empty() {
            true => Ok(()),
            false => Err(attributes.invalid(&errors)),
        }
    }
}

/// Whether a shoot can be a seed, and is none yet.
fn is_fit(attributes: &Attributes<'_>, managed: &ManagedSeed, shoot: &Shoot) -> ErrorList {
    let path = Path::new("spec.shoot.name");
    let (namespace, name) = (attributes.namespace, shoot.own_name());
    let domain = shoot.spec.dns.as_ref().and_then(|dns| dns.domain.as_deref());
    let other = of_shoot(attributes.context.lister, namespace, name).and_then(|other| other.metadata.name);
    let other = other.filter(|other| Some(other) != managed.metadata.name.as_ref());
    let found = [
        domain
            .is_none_or(str::is_empty)
            .then(|| format!("shoot {namespace}/{name} does not specify a domain")),
        shoot.nginx_ingress_enabled().then(|| NGINX.to_owned()),
        (!wants_vpa(shoot)).then(|| VPA.to_owned()),
        shoot
            .is_workerless()
            .then(|| "workerless shoot cannot be used to create managed seed".to_owned()),
        other.map(|other| {
            format!("shoot {namespace}/{name} already registered as seed by managed seed {namespace}/{other}")
        }),
    ];
    let found = found.into_iter().flatten();
    found.map(|why| Error::invalid(&path, name, why)).collect()
}

/// Fills a seed's spec from its shoot. Answers why there is no DNS provider for it, if there is none.
fn follow(lister: &dyn Lister, spec: &mut SeedSpec, shoot: &Shoot) -> Result<Option<String>, ApiError> {
    if let Some(backup) = spec.backup.as_mut().filter(|backup| backup.provider.is_empty()) {
        backup.provider.clone_from(&shoot.spec.provider.r#type);
    }
    let mut why = None;
    if spec.dns.provider.is_none() {
        match dns_provider(lister, shoot)? {
            Ok(provider) => spec.dns.provider = Some(provider),
            Err(reason) => why = Some(reason),
        }
    }
    let ingress = spec.ingress.get_or_insert_with(|| Ingress {
        controller: IngressController {
            kind: "nginx".to_owned(),
            provider_config: None,
        },
        domain: String::new(),
    });
    let domain = shoot.spec.dns.as_ref().and_then(|dns| dns.domain.as_deref());
    if let Some(domain) = domain.filter(|_| ingress.domain.is_empty()) {
        ingress.domain = format!("ingress.{domain}");
    }
    if let Some(networking) = &shoot.spec.networking {
        let fill = |own: &mut String, theirs: &Option<String>| {
            if own.is_empty() {
                own.clone_from(theirs.as_ref().unwrap_or(&String::new()));
            }
        };
        if spec.networks.nodes.is_none() {
            spec.networks.nodes.clone_from(&networking.nodes);
        }
        fill(&mut spec.networks.pods, &networking.pods);
        fill(&mut spec.networks.services, &networking.services);
    }
    if spec.provider.r#type.is_empty() {
        spec.provider.r#type.clone_from(&shoot.spec.provider.r#type);
    }
    if spec.provider.region.is_empty() {
        spec.provider.region.clone_from(&shoot.spec.region);
    }
    if spec.provider.zones.is_empty() {
        spec.provider.zones = zones(shoot).into_iter().map(str::to_owned).collect();
    }
    let settings = spec.settings.get_or_insert_default();
    // the shoot's own is there
    settings.vertical_pod_autoscaler.get_or_insert_default();
    Ok(why)
}

/// Who makes a shoot's DNS records, as its seed may use it; or why that cannot be told.
fn dns_provider(lister: &dyn Lister, shoot: &Shoot) -> Result<Result<SeedDNSProvider, String>, ApiError> {
    let shown = format!("{}/{}", shoot.project_namespace(), shoot.own_name());
    if let Some(primary) = shoot.spec.primary_dns_provider() {
        let Some(kind) = &primary.r#type else {
            return Ok(Err(format!(
                "primary DNS provider of shoot {shown} does not have a type"
            )));
        };
        if kind != "unmanaged" {
            return Ok(
                credentials(lister, shoot, primary, &shown).map(|reference| SeedDNSProvider {
                    credentials_ref: Some(reference),
                    r#type: kind.clone(),
                }),
            );
        }
    }
    let none = || format!("domain of shoot {shown} is neither a custom domain nor a default domain");
    let Some(domain) = shoot.spec.dns.as_ref().and_then(|dns| dns.domain.as_deref()) else {
        return Ok(Err(none()));
    };
    if let Some(name) = &shoot.spec.seed_name {
        let seed = lookup::get::<Seed>(lister, "", name).ok_or_else(|| {
            ApiError::internal(format!(
                "could not get seed {name}: seed.core.gardener.cloud {name:?} not found"
            ))
        })?;
        let defaults = &seed.spec.dns.defaults;
        if !defaults.is_empty() {
            let found = defaults
                .iter()
                .find(|own| domain.ends_with(&format!(".{}", own.domain)));
            let provider = found.map(|own| SeedDNSProvider {
                credentials_ref: Some(own.credentials_ref.clone()),
                r#type: own.r#type.clone(),
            });
            return Ok(provider.ok_or_else(none));
        }
    }
    let mut global = global_domains(lister).into_iter();
    let found = global.find(|own| domain.ends_with(&own.domain));
    let provider = found.map(|own| SeedDNSProvider {
        credentials_ref: Some(secret(Some(own.secret), Some(GARDEN_NAMESPACE.to_owned()))),
        r#type: own.provider,
    });
    Ok(provider.ok_or_else(none))
}

fn secret(name: Option<String>, namespace: Option<String>) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        name,
        namespace,
        ..ObjectReference::default()
    }
}

/// The credentials of a shoot's DNS provider: its own, else the shoot's.
fn credentials(
    lister: &dyn Lister,
    shoot: &Shoot,
    provider: &DNSProvider,
    shown: &str,
) -> Result<ObjectReference, String> {
    let namespace = shoot.project_namespace();
    if let Some(own) = &provider.credentials_ref {
        return Ok(ObjectReference {
            api_version: own.api_version.clone(),
            kind: Some(own.kind.clone()),
            name: Some(own.name.clone()),
            namespace: Some(namespace.to_owned()),
            ..ObjectReference::default()
        });
    }
    if let Some(name) = &shoot.spec.secret_binding_name {
        let binding = lookup::get::<SecretBinding>(lister, namespace, name);
        let binding = binding.ok_or_else(|| format!("secret binding {namespace}/{name} not found"))?;
        return Ok(secret(binding.secret_ref.name, binding.secret_ref.namespace));
    }
    if let Some(name) = &shoot.spec.credentials_binding_name {
        let binding = lookup::get::<CredentialsBinding>(lister, namespace, name);
        let binding = binding.ok_or_else(|| format!("credentials binding {namespace}/{name} not found"))?;
        return Ok(binding.credentials_ref);
    }
    Err(format!(
        "cannot initialize a reference to the primary DNS provider credentials of shoot {shown}"
    ))
}

const SPEC: &str = "spec.gardenlet.config.seedConfig.spec";

/// What a seed says otherwise than its shoot.
fn follows(spec: &SeedSpec, shoot: &Shoot) -> ErrorList {
    let path = Path::new(SPEC);
    let mut errors = ErrorList::new();
    let domain = shoot.spec.dns.as_ref().and_then(|dns| dns.domain.as_deref());
    if let (Some(domain), Some(ingress)) = (domain, &spec.ingress) {
        let wanted = format!("ingress.{domain}");
        if ingress.domain != wanted {
            let why = format!("seed ingress domain must be equal to shoot DNS domain {wanted}");
            errors.push(Error::invalid(
                &path.child("ingress.domain"),
                ingress.domain.as_str(),
                why,
            ));
        }
    }
    let networking = shoot.spec.networking.as_ref();
    let (networks, pods) = (&spec.networks, &spec.networks.pods);
    // as with upstream, the pods' network is shown for services, too
    for (name, own, value, theirs) in [
        (
            "nodes",
            networks.nodes.as_deref(),
            shown(&networks.nodes),
            networking.and_then(|own| own.nodes.as_deref()),
        ),
        (
            "pods",
            Some(pods.as_str()),
            shown(pods),
            networking.and_then(|own| own.pods.as_deref()),
        ),
        (
            "services",
            Some(networks.services.as_str()),
            shown(pods),
            networking.and_then(|own| own.services.as_deref()),
        ),
    ] {
        if let Some(theirs) = theirs.filter(|theirs| own != Some(*theirs)) {
            let why = format!("seed {name} CIDR must be equal to shoot {name} CIDR {theirs}");
            errors.push(Error::invalid(&path.child("networks").child(name), value, why));
        }
    }
    for (name, own, what, theirs) in [
        (
            "type",
            &spec.provider.r#type,
            "shoot provider type",
            &shoot.spec.provider.r#type,
        ),
        ("region", &spec.provider.region, "shoot region", &shoot.spec.region),
    ] {
        if own != theirs {
            let why = format!("seed provider {name} must be equal to {what} {theirs}");
            errors.push(Error::invalid(&path.child("provider").child(name), own.as_str(), why));
        }
    }
    let settings = spec.settings.as_ref();
    if settings
        .and_then(|own| own.vertical_pod_autoscaler.as_ref())
        .is_some_and(|vpa| vpa.enabled)
    {
        errors.push(Error::invalid(
            &path.child("settings.verticalPodAutoscaler.enabled"),
            true,
            "seed VPA is not supported for managed seeds - use the shoot VPA",
        ));
    }
    if settings
        .and_then(|own| own.topology_aware_routing.as_ref())
        .is_some_and(|routing| routing.enabled)
    {
        errors.extend(topology_hints(
            shoot,
            &path.child("settings.topologyAwareRouting.enabled"),
        ));
    }
    errors
}

/// The components of a shoot that are told to leave topologies alone.
fn topology_hints(shoot: &Shoot, path: &Path) -> ErrorList {
    let kubernetes = &shoot.spec.kubernetes;
    let gates = [
        (
            "kube-apiserver",
            kubernetes.kube_api_server.as_ref().map(|own| &own.feature_gates),
        ),
        (
            "kube-controller-manager",
            kubernetes
                .kube_controller_manager
                .as_ref()
                .map(|own| &own.feature_gates),
        ),
        (
            "kube-proxy",
            kubernetes.kube_proxy.as_ref().map(|own| &own.feature_gates),
        ),
    ];
    let off = gates
        .into_iter()
        .filter(|(_, gates)| gates.is_some_and(|gates| gates.get("TopologyAwareHints") == Some(&false)));
    let error = |(component, _)| {
        let why = format!(
            "the topology-aware routing seed setting cannot be enabled when the TopologyAwareHints feature gate is disabled for {component}"
        );
        Error::invalid(path, true, why)
    };
    off.map(error).collect()
}

/// What a seed may not become: zones that the shoot has not, and what shoots on the seed would miss.
fn changes(attributes: &Attributes<'_>, spec: &SeedSpec, old: Option<&SeedSpec>, shoot: &Shoot) -> ErrorList {
    let path = Path::new(SPEC);
    let at_zones = path.child("provider.zones");
    let known = zones(shoot);
    let unknown = |zone: &&String| !known.contains(zone.as_str());
    let Some(old) = old else {
        return match spec.provider.zones.iter().any(|zone| unknown(&zone)) {
            true => vec![Error::invalid(
                &at_zones,
                shown(&spec.provider.zones),
                "cannot use zone in seed provider that is not available in referenced shoot",
            )],
            false => ErrorList::new(),
        };
    };
    let (lister, name) = (attributes.context.lister, attributes.name);
    let users = users(lister, name);
    let mut errors = ErrorList::new();
    if !removed_zones(spec, old, &users).is_empty() {
        let why = "zones must not be removed while shoots are still scheduled onto seed";
        errors.push(Error::forbidden(&at_zones, why));
    }
    if changes_internal_domain(spec, old, &users) {
        let why = "internal domain must not be changed while shoots are still scheduled onto seed";
        errors.push(Error::forbidden(&path.child("dns.internal.domain"), why));
    }
    if changed_default_domains(lister, (spec, old), &users, name).is_some() {
        let why = "default domains must not be removed while shoots are still using them";
        errors.push(Error::forbidden(&path.child("dns.defaults"), why));
    }
    let added = spec
        .provider
        .zones
        .iter()
        .filter(|zone| !old.provider.zones.contains(zone));
    let added: Vec<&String> = added.collect();
    if added.iter().any(unknown) {
        errors.push(Error::invalid(
            &at_zones,
            shown(&added),
            "added zones must match zone names configured for workers in the referenced shoot cluster",
        ));
    }
    errors
}
