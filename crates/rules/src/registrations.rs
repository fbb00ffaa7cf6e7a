//! Which extensions a seed needs, and which registrations bring them `[EXT-101]` `[EXT-102]` `[GCM-30]`. Those of self-hosted shoots are in
//! [`self_hosted`].

pub mod self_hosted;

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::selector::LabelSelector;
use gardener_apis::core::v1beta1::{
    BackupBucket, BackupEntry, ControllerInstallation, ControllerRegistration, ControllerResource, Seed, Shoot,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use self_hosted::SelfHosted;

/// A kind of extension object and its type, e.g. `Infrastructure` and `local`.
pub type KindType = (String, String);

/// A type that an object needs to be registered [ADM-34].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Extension kind.
    pub kind: &'static str,
    /// Type.
    pub r#type: String,
    /// What the type is called.
    pub word: &'static str,
    /// Where it stands.
    pub path: String,
}

impl Need {
    /// A need.
    pub fn new(kind: &'static str, r#type: &str, word: &'static str, path: impl Into<String>) -> Self {
        Self {
            kind,
            r#type: r#type.to_owned(),
            word,
            path: path.into(),
        }
    }
}

/// The types that a shoot needs to be registered [ADM-34].
pub fn needs_of_shoot(shoot: &Shoot) -> Vec<Need> {
    let spec = &shoot.spec;
    let mut needs = Vec::new();
    if !shoot.is_workerless() {
        for kind in ["ControlPlane", "Infrastructure", "Worker"] {
            needs.push(Need::new(kind, &spec.provider.r#type, "provider", "spec.provider.type"));
        }
        if let Some(kind) = spec
            .networking
            .as_ref()
            .and_then(|networking| networking.r#type.as_deref())
        {
            needs.push(Need::new("Network", kind, "networking", "spec.networking.type"));
        }
    }
    for (i, provider) in spec.dns.iter().flat_map(|dns| &dns.providers).enumerate() {
        if let Some(kind) = provider.r#type.as_deref()
            && provider.primary == Some(true)
            && kind != "unmanaged"
        {
            needs.push(Need::new(
                "DNSRecord",
                kind,
                "extension",
                format!("spec.dns.providers[{i}].type"),
            ));
        }
    }
    for (i, extension) in spec.extensions.iter().enumerate() {
        needs.push(Need::new(
            "Extension",
            &extension.r#type,
            "extension",
            format!("spec.extensions[{i}].type"),
        ));
    }
    for (i, worker) in spec.provider.workers.iter().enumerate() {
        let at = format!("spec.provider.workers[{i}]");
        for (j, runtime) in worker.cri.iter().flat_map(|cri| &cri.container_runtimes).enumerate() {
            let path = format!("{at}.cri.containerRuntimes[{j}].type");
            let (kind, word) = ("ContainerRuntime", "container runtime");
            needs.push(Need::new(kind, &runtime.r#type, word, path));
        }
        // as upstream, which looks at nothing else of a pool without image
        let Some(image) = &worker.machine.image else { continue };
        let path = format!("{at}.machine.image.name");
        let (kind, word) = ("OperatingSystemConfig", "operating system");
        needs.push(Need::new(kind, &image.name, word, path));
        let exposure = worker.control_plane.as_ref().and_then(|own| own.exposure.as_ref());
        if let Some(extension) = exposure.and_then(|exposure| exposure.extension.as_ref()) {
            let (kind, word) = ("SelfHostedShootExposure", "self hosted shoot exposure");
            let path = format!("{at}.controlPlane.exposure.type");
            needs.push(Need::new(
                kind,
                extension.r#type.as_deref().unwrap_or_default(),
                word,
                path,
            ));
        }
    }
    needs
}

/// What is known when registrations are chosen for a seed.
pub struct Landscape<'a> {
    /// The seed.
    pub seed: &'a Seed,
    /// All shoots.
    pub shoots: &'a [&'a Shoot],
    /// All backup buckets.
    pub buckets: &'a [&'a BackupBucket],
    /// All backup entries.
    pub entries: &'a [&'a BackupEntry],
    /// All registrations.
    pub registrations: &'a [ControllerRegistration],
    /// The seed's installations.
    pub installations: &'a [ControllerInstallation],
    /// The self-hosted shoot that the seed is, if it is one.
    pub self_hosted: Option<&'a SelfHosted<'a>>,
}

fn name(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}

fn is_on(seed: &str, shoot: &Shoot) -> bool {
    shoot.spec.seed_name.as_deref() == Some(seed) || shoot.status.seed_name.as_deref() == Some(seed)
}

/// Types of kind `Extension` that a cluster gets: those enabled in its list and those that enable themselves.
fn extension_types(
    listed: &[gardener_apis::core::v1beta1::Extension],
    registrations: &[ControllerRegistration],
    cluster: &str,
    workerless: bool,
) -> BTreeSet<String> {
    let disabled = |own: &gardener_apis::core::v1beta1::Extension| own.disabled.unwrap_or(false);
    let mut types: BTreeSet<String> = listed
        .iter()
        .filter(|own| !disabled(own))
        .map(|own| own.r#type.clone())
        .collect();
    let automatic = |resource: &&ControllerResource| {
        resource.kind == "Extension"
            && resource.auto_enable.iter().any(|own| own == cluster)
            && (!workerless || resource.workerless_supported.unwrap_or(false))
    };
    let resources = registrations
        .iter()
        .flat_map(|registration| &registration.spec.resources)
        .filter(automatic);
    types.extend(
        resources
            .filter(|resource| !listed.iter().any(|own| own.r#type == resource.r#type && disabled(own)))
            .map(|own| own.r#type.clone()),
    );
    types
}

/// Kinds and types that one shoot needs, on its seed or, if it is self-hosted, by itself `[EXT-101]`.
pub fn required_of_shoot(
    shoot: &Shoot,
    seed: Option<&Seed>,
    registrations: &[ControllerRegistration],
) -> BTreeSet<KindType> {
    let mut required = Required::default();
    let pool = shoot
        .spec
        .provider
        .workers
        .iter()
        .find_map(|pool| pool.control_plane.as_ref());
    let backup = match pool {
        Some(control_plane) => control_plane.backup.as_ref(),
        None => seed.and_then(|seed| seed.spec.backup.as_ref()),
    };
    if let Some(backup) = backup {
        required.need("BackupBucket", &backup.provider);
        required.need("BackupEntry", &backup.provider);
    }
    if let Some(seed) = seed {
        required.need("ControlPlane", &seed.spec.provider.r#type);
    }
    let provider = shoot.spec.provider.r#type.as_str();
    if !shoot.is_workerless() {
        for kind in PROVIDER_KINDS {
            required.need(kind, provider);
        }
        if let Some(networking) = shoot.spec.networking.as_ref().and_then(|own| own.r#type.as_deref()) {
            required.need("Network", networking);
        }
        for worker in &shoot.spec.provider.workers {
            if let Some(image) = &worker.machine.image {
                required.need("OperatingSystemConfig", &image.name);
            }
            for runtime in worker.cri.iter().flat_map(|cri| &cri.container_runtimes) {
                required.need("ContainerRuntime", &runtime.r#type);
            }
        }
    }
    let exposure = pool.and_then(|control_plane| control_plane.exposure.as_ref()?.extension.as_ref());
    if let Some(extension) = exposure {
        let own = extension.r#type.as_deref().unwrap_or(provider);
        required.need("SelfHostedShootExposure", own);
    }
    if let Some(provider) = shoot.spec.primary_dns_provider().and_then(|own| own.r#type.as_deref()) {
        required.need("DNSRecord", provider);
    }
    for own_type in extension_types(&shoot.spec.extensions, registrations, "shoot", shoot.is_workerless()) {
        required.need("Extension", &own_type);
    }
    required.0
}

/// Whether an installation works and is at rest.
fn is_successful(installation: &ControllerInstallation) -> bool {
    let is = |kind: &str, status: &str| {
        let mut conditions = installation.status.conditions.iter();
        conditions.any(|own| own.r#type == kind && own.status == status)
    };
    is("Installed", "True") && is("Healthy", "True") && is("Progressing", "False")
}

/// Whether all that a shoot needs on its seed is installed there, works and is at rest [CP-24]. `providers` are those of its DNS records, `installations`
/// the seed's.
///
/// # Errors
/// What is not, as upstream tells it.
pub fn are_ready(
    shoot: &Shoot,
    seed: &Seed,
    providers: &[&str],
    registrations: &[ControllerRegistration],
    installations: &[ControllerInstallation],
) -> Result<(), String> {
    let mut required = Required(required_of_shoot(shoot, Some(seed), registrations));
    for provider in providers {
        required.need("DNSRecord", provider);
    }
    for installation in installations.iter().filter(|own| is_successful(own)) {
        let of = installation.spec.registration_ref.name.as_deref();
        let brought = registrations
            .iter()
            .filter(|own| of.is_some() && own.metadata.name.as_deref() == of)
            .flat_map(|own| &own.spec.resources);
        for own in brought {
            required.0.remove(&(own.kind.clone(), own.r#type.clone()));
        }
    }
    if required.0.is_empty() {
        return Ok(());
    }
    let missing: BTreeSet<String> = required
        .0
        .iter()
        .map(|(kind, own_type)| format!("{kind}/{own_type}:{{}}"))
        .collect();
    let missing: Vec<String> = missing.into_iter().collect();
    Err(format!(
        "extension controllers missing or unready: map[{}]",
        missing.join(" ")
    ))
}

/// The kinds that every provider has.
const PROVIDER_KINDS: [&str; 3] = ["ControlPlane", "Infrastructure", "Worker"];

/// What is needed, without what nobody has to bring.
#[derive(Default)]
struct Required(BTreeSet<KindType>);

impl Required {
    fn need(&mut self, kind: &str, own_type: &str) {
        if !own_type.is_empty() && own_type != "unmanaged" {
            self.0.insert((kind.to_owned(), own_type.to_owned()));
        }
    }

    /// What buckets and entries need that belong to somebody. The type of an entry is its bucket's.
    fn backups<'a>(
        &mut self,
        buckets: &[&'a BackupBucket],
        entries: &[&BackupEntry],
        (of_bucket, of_entry): (impl Fn(&BackupBucket) -> bool, impl Fn(&BackupEntry) -> bool),
    ) {
        let own: BTreeMap<&'a str, &'a BackupBucket> =
            buckets.iter().map(|bucket| (name(&bucket.metadata), *bucket)).collect();
        for bucket in buckets.iter().filter(|bucket| of_bucket(bucket)) {
            self.need("BackupBucket", &bucket.spec.provider.r#type);
        }
        for entry in entries.iter().filter(|entry| of_entry(entry)) {
            if let Some(bucket) = own.get(entry.spec.bucket_name.as_str()) {
                self.need("BackupEntry", &bucket.spec.provider.r#type);
            }
        }
    }
}

/// Kinds and types that a seed needs `[EXT-101]`. What it needs only as the self-hosted shoot that it is, is the shoot's to bring `[GCM-31]`.
pub fn required(landscape: &Landscape<'_>) -> BTreeSet<KindType> {
    let seed = landscape.seed;
    let own = name(&seed.metadata);
    let mut backups = Required::default();
    backups.backups(
        landscape.buckets,
        landscape.entries,
        (
            |bucket| bucket.spec.seed_name.as_deref() == Some(own),
            |entry| entry.spec.seed_name.as_deref() == Some(own),
        ),
    );
    let mut hosted = Required::default();
    for shoot in landscape.shoots.iter().filter(|shoot| is_on(own, shoot)) {
        hosted
            .0
            .extend(required_of_shoot(shoot, Some(seed), landscape.registrations));
        // of the domains that the seed offers only those count that somebody uses
        let domain = shoot.spec.dns.as_ref().and_then(|dns| dns.domain.as_deref());
        let is_below = |offered: &str| {
            let stem = domain.and_then(|domain| domain.strip_suffix(offered));
            stem.is_some_and(|stem| stem.ends_with('.'))
        };
        let default = seed.spec.dns.defaults.iter().find(|own| is_below(&own.domain));
        for dns in seed.spec.dns.internal.iter().chain(default) {
            hosted.need("DNSRecord", &dns.r#type);
        }
    }
    let mut itself = Required::default();
    if seed.metadata.deletion_timestamp.is_none() {
        if let Some(provider) = &seed.spec.dns.provider {
            itself.need("DNSRecord", &provider.r#type);
        }
        for kind in PROVIDER_KINDS {
            itself.need(kind, &seed.spec.provider.r#type);
        }
        for own_type in extension_types(&seed.spec.extensions, landscape.registrations, "seed", false) {
            itself.need("Extension", &own_type);
        }
    }
    if let Some(shoot) = landscape.self_hosted {
        let of_shoot = shoot.required();
        backups.0.retain(|own| !of_shoot.contains(own));
    }
    let mut required = backups.0;
    required.extend(hosted.0);
    required.extend(itself.0);
    required
}

/// Names of the registrations that bring any of these.
fn bringing(registrations: &[ControllerRegistration], needed: &BTreeSet<KindType>) -> BTreeSet<String> {
    let brings = |own: &ControllerResource| needed.contains(&(own.kind.clone(), own.r#type.clone()));
    let found = registrations.iter().filter(|own| own.spec.resources.iter().any(brings));
    found.map(|own| name(&own.metadata).to_owned()).collect()
}

/// The same, if each of them is brought by somebody.
fn all_brought(
    registrations: &[ControllerRegistration],
    needed: &BTreeSet<KindType>,
) -> Result<BTreeSet<String>, String> {
    let brought: BTreeSet<(&str, &str)> = registrations
        .iter()
        .flat_map(|own| &own.spec.resources)
        .map(|own| (own.kind.as_str(), own.r#type.as_str()))
        .collect();
    for (kind, own_type) in needed {
        if !brought.contains(&(kind.as_str(), own_type.as_str())) {
            return Err(format!(
                "need to install an extension controller for \"{kind}/{own_type}\" but no appropriate ControllerRegistration found"
            ));
        }
    }
    Ok(bringing(registrations, needed))
}

/// Names of the registrations whose policy wants them.
fn by_policy(
    registrations: &[ControllerRegistration],
    in_deletion: bool,
    has_shoots: bool,
) -> impl Iterator<Item = String> {
    registrations.iter().filter_map(move |registration| {
        let deployment = registration.spec.deployment.as_ref();
        let policy = deployment.and_then(|own| own.policy.as_deref()).unwrap_or("OnDemand");
        let lives = registration.metadata.deletion_timestamp.is_none();
        let always = policy == "Always" && !in_deletion;
        let wanted = lives && (always || (policy == "AlwaysExceptNoShoots" && has_shoots));
        wanted.then(|| name(&registration.metadata).to_owned())
    })
}

/// Names of the registrations whose installations say that they are still required.
fn installed_and_required(installations: &[ControllerInstallation]) -> impl Iterator<Item = String> {
    let required = |own: &&ControllerInstallation| {
        let mut conditions = own.status.conditions.iter();
        conditions.any(|condition| condition.r#type == "Required" && condition.status == "True")
    };
    let found = installations.iter().filter(required);
    found.filter_map(|own| own.spec.registration_ref.name.clone())
}

/// What of a registration is still in a seed [EXT-107], as `Kind/type`. `has` tells whether there is an object of a kind and type, and none while the
/// kind was not listed yet. None if what is there does not say it yet.
pub fn still_required(
    registration: &ControllerRegistration,
    has: impl Fn(&str, &str) -> Option<bool>,
) -> Option<Vec<String>> {
    let mut still = BTreeSet::new();
    let mut are_all_known = true;
    for own in &registration.spec.resources {
        match has(&own.kind, &own.r#type) {
            Some(true) => {
                still.insert(format!("{}/{}", own.kind, own.r#type));
            }
            Some(false) => {}
            None => are_all_known = false,
        }
    }
    (are_all_known || !still.is_empty()).then(|| still.into_iter().collect())
}

/// Names of the registrations that are wanted on a seed.
///
/// # Errors
/// When something is needed that nobody registers.
pub fn wanted(landscape: &Landscape<'_>) -> Result<BTreeSet<String>, String> {
    let seed = landscape.seed;
    let has_shoots = landscape.shoots.iter().any(|shoot| is_on(name(&seed.metadata), shoot));
    let in_deletion = seed.metadata.deletion_timestamp.is_some();
    let mut wanted = all_brought(landscape.registrations, &required(landscape))?;
    // a self-hosted shoot looks after these itself
    if landscape.self_hosted.is_none() {
        wanted.extend(by_policy(landscape.registrations, in_deletion, has_shoots));
        wanted.extend(installed_and_required(landscape.installations));
    }
    let labels = seed.metadata.labels.clone().unwrap_or_default();
    wanted.retain(|own| {
        let registration = landscape
            .registrations
            .iter()
            .find(|registration| name(&registration.metadata) == own);
        let selector = registration
            .and_then(|own| own.spec.deployment.as_ref())
            .and_then(|own| own.seed_selector.as_ref());
        selector.is_none_or(|selector| LabelSelector::from(selector).matches(&labels))
    });
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gardener_apis::core::v1beta1::{ControllerRegistrationDeployment, Extension, Worker};

    fn registration(own_name: &str, resources: &[(&str, &str)], policy: &str) -> ControllerRegistration {
        let mut registration = ControllerRegistration::default();
        registration.metadata.name = Some(own_name.into());
        registration.spec.deployment = Some(ControllerRegistrationDeployment {
            policy: Some(policy.into()),
            ..ControllerRegistrationDeployment::default()
        });
        registration.spec.resources = resources
            .iter()
            .map(|(kind, own_type)| ControllerResource {
                kind: (*kind).into(),
                r#type: (*own_type).into(),
                ..ControllerResource::default()
            })
            .collect();
        registration
    }

    #[test]
    fn ext_107_required_is_what_is_there() {
        let own = registration("a", &[("Worker", "a"), ("Network", "b"), ("Bastion", "a")], "OnDemand");
        let told = |worker, network, bastion| {
            still_required(&own, |kind, _| match kind {
                "Worker" => worker,
                "Network" => network,
                _ => bastion,
            })
        };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(told(yes, yes, no).unwrap(), ["Network/b", "Worker/a"]);
        assert_eq!(told(no, no, no).unwrap(), [""; 0]);
        assert_eq!(told(no, None, no), None, "who was not listed may be there");
        assert_eq!(told(yes, None, no).unwrap(), ["Worker/a"]);
    }

    fn seed() -> Seed {
        let mut seed = Seed::default();
        seed.metadata.name = Some("s".into());
        seed.spec.provider.r#type = "gcp".into();
        seed
    }

    fn landscape<'a>(
        seed: &'a Seed,
        shoots: &'a [&'a Shoot],
        registrations: &'a [ControllerRegistration],
    ) -> Landscape<'a> {
        Landscape {
            seed,
            shoots,
            buckets: &[],
            entries: &[],
            registrations,
            installations: &[],
            self_hosted: None,
        }
    }

    #[test]
    fn w_ext_10_what_a_shoot_needs() {
        let mut shoot = Shoot::default();
        shoot.spec.seed_name = Some("s".into());
        shoot.spec.provider.r#type = "aws".into();
        shoot.spec.networking = serde_json::from_str("{\"type\":\"calico\"}").ok();
        let worker: Worker = serde_json::from_str(
            "{\"name\":\"w\",\"machine\":{\"type\":\"m\",\"image\":{\"name\":\"gardenlinux\"}},\"minimum\":1,\"maximum\":1,\"cri\":{\"name\":\"containerd\",\"containerRuntimes\":[{\"type\":\"gvisor\"}]}}",
        )
        .unwrap();
        shoot.spec.provider.workers = vec![worker];
        let seed = seed();
        let needed = required(&landscape(&seed, &[&shoot], &[]));
        for (kind, own_type) in [
            ("ControlPlane", "gcp"),
            ("ControlPlane", "aws"),
            ("Infrastructure", "aws"),
            ("Worker", "aws"),
            ("Network", "calico"),
            ("OperatingSystemConfig", "gardenlinux"),
            ("ContainerRuntime", "gvisor"),
        ] {
            assert!(
                needed.contains(&(kind.to_owned(), own_type.to_owned())),
                "{kind}/{own_type}"
            );
        }
        assert!(
            wanted(&landscape(&seed, &[&shoot], &[]))
                .unwrap_err()
                .starts_with("need to install an extension controller for")
        );
    }

    #[test]
    fn ext_101_only_the_default_domain_that_is_used_counts() {
        let mut seed = seed();
        seed.spec.dns = serde_json::from_value(serde_json::json!({
            "internal": {"type": "inner", "domain": "i.example"},
            "defaults": [{"type": "one", "domain": "a.example"}, {"type": "two", "domain": "b.example"}],
        }))
        .unwrap();
        for (domain, types) in [
            (Some("x.p.b.example"), vec!["inner", "two"]),
            (Some("b.example"), vec!["inner"]),
            (Some("x.own.example"), vec!["inner"]),
            (None, vec!["inner"]),
        ] {
            let mut shoot = Shoot::default();
            shoot.spec.seed_name = Some("s".into());
            shoot.spec.dns = serde_json::from_value(serde_json::json!({"domain": domain})).unwrap();
            let needed = required(&landscape(&seed, &[&shoot], &[]));
            let dns = needed.iter().filter(|(kind, _)| kind == "DNSRecord");
            let found: Vec<&str> = dns.map(|(_, own_type)| own_type.as_str()).collect();
            assert_eq!(found, types, "{domain:?}");
        }
    }

    #[test]
    fn w_ext_11_disabled_extensions_are_not_wanted() {
        let mut logs = registration("logs", &[("Extension", "logs")], "OnDemand");
        logs.spec.resources[0].auto_enable = vec!["shoot".into()];
        let listed = |disabled| {
            vec![Extension {
                r#type: "logs".into(),
                disabled: Some(disabled),
                ..Extension::default()
            }]
        };
        let registrations = [logs];
        assert!(extension_types(&[], &registrations, "shoot", false).contains("logs"));
        assert!(!extension_types(&listed(true), &registrations, "shoot", false).contains("logs"));
        assert!(!extension_types(&[], &registrations, "shoot", true).contains("logs"));
    }

    #[test]
    fn w_ext_12_policies() {
        let all = [
            registration(
                "gcp",
                &[("ControlPlane", "gcp"), ("Infrastructure", "gcp"), ("Worker", "gcp")],
                "OnDemand",
            ),
            registration("always", &[], "Always"),
            registration("shoots", &[], "AlwaysExceptNoShoots"),
        ];
        let seed = seed();
        let names = wanted(&landscape(&seed, &[], &all)).unwrap();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["always", "gcp"]);
    }
}
